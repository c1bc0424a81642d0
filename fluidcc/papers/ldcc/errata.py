"""Section VI of the LDCC paper on other controls, and misprints without a row elsewhere."""

from __future__ import annotations

from functools import cache

import numpy as np
from sympy import Piecewise, symbols

from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.laws import Source
from fluidcc.links import DropTail, DualLink
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell
from fluidcc.numerics.dde.solve import solve_dde
from fluidcc.papers.ldcc.coexistence import CAPACITY, PACKET, beside
from fluidcc.papers.ldcc.common import alone, run, series, with_law
from fluidcc.papers.model import Claim, Outcome, law_proof
from fluidcc.papers.printed import named
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import AIMD, CBR, GCC, LDCC, LEDBAT, NADA, NADA8698, AdaptiveGCC, CxTCP
from fluidcc.symbols import c, y


@cache
def beside_tcp(law: Source, packets: int) -> tuple[float, float]:
    """Mean rates of a law and of TCP on the link of Fig. 12, over the last 400 of 600 s [bit/s]."""
    mean = simulate(beside(AIMD, packets, law), 600, samples=6001).rate[2000:].mean("time")
    return float(mean[0]), float(mean[1])


def _link(*laws: Source, later: float = 0.0, buffer: float | None = None) -> Network:
    """The link of Fig. 12 with flows that start one after the other."""
    flows = [{"law": law, "start": i * later} for i, law in enumerate(laws)]
    return dumbbell(flows, {"capacity": CAPACITY, "delay": 0.05, "buffer": buffer})


def related_ledbat_starves(claim: Claim) -> Outcome:
    rate, tcp = beside_tcp(LEDBAT, 180)
    least = 2 * PACKET / (0.1 + 180 * PACKET / CAPACITY)
    return claim.reproduced_if(rate < 0.05 * tcp, {"LEDBAT": rate, "TCP": tcp}, least=least)


def related_ledbat_late(claim: Claim) -> Outcome:
    run = simulate(_link(LEDBAT, LEDBAT, later=60.0), 200, samples=2001)
    first, late = (float(v) for v in run.rate.values[-1])
    seen = run.rtt.values[-1] - run.LEDBAT_delta.values[-1]
    return claim.reproduced_if(
        late > 3 * first and seen[1] > seen[0] + 0.05, {"first": first, "late": late}, seen=seen
    )


def related_cxtcp_law(claim: Claim) -> Outcome:
    return claim.proved(*(law_proof(CxTCP, label) for label in CxTCP.claims))


def related_cxtcp_coexists(claim: Claim) -> Outcome:
    shares = {n: beside_tcp(CxTCP, n) for n in (30, 60, 180)}
    ratio = {n: a / b for n, (a, b) in shares.items()}
    alone = simulate(_link(CxTCP(peak=0.01), CxTCP(peak=0.01), buffer=CAPACITY), 200)
    queue = float(alone.queueing_delay[-1, 0])
    good = 0.8 < ratio[180] < 1.3 and 0.8 < ratio[60] < 1.3 and queue < 0.02
    return claim.differs_if(
        ratio[30] < 0.8 or not good, {**named("{} packets", ratio), "queue": queue}
    )


def related_nada_consistent(claim: Claim) -> Outcome:
    rates = {n: beside_tcp(NADA(R_max=CAPACITY), n)[0] for n in (30, 60, 180)}
    return claim.differs_if(
        min(rates.values()) <= 0.7 * max(rates.values()), named("{} packets", rates), rates=rates
    )


def related_nada_new(claim: Claim) -> Outcome:
    R, p, x_ref, r = symbols("R p x r", positive=True)
    new, old = x_ref * R / r, p * (R / r - 1)
    share = 1 - 0.01 / 0.025
    values = {}
    for capacity in (0.3e6, 0.6e6):
        for law in (NADA8698, NADA):
            run = simulate(alone(law, capacity=capacity), 200)
            values[f"{law.name} {capacity:g}"] = float(run.queueing_delay[-1, 0])
    return claim.proved(
        (old - new) * r - (R * (p - x_ref) - p * r),
        law_proof(NADA8698, "(7) stands where x = PRIO XREF RMAX/r"),
        values=values,
        share=share,
    )


def related_gcc_starves(claim: Claim) -> Outcome:
    fixed, adaptive = ({n: beside_tcp(law, n)[0] for n in (30, 180)} for law in (GCC, AdaptiveGCC))
    return claim.reproduced_if(
        fixed[30] < 1e4 and min(adaptive.values()) > 2e5,
        named("fixed {}", fixed) | named("adaptive {}", adaptive),
    )


def related_gcc_unfair(claim: Claim) -> Outcome:
    flows = [{"law": GCC, "start": 0, "initial": {"A": rate}} for rate in (2e5, 6e5)]
    run = simulate(dumbbell(flows, {"capacity": 2e6, "delay": 0.025}), 120, samples=1201)
    ratio = run.rate.values[:, 1] / run.rate.values[:, 0]
    return claim.reproduced_if(np.ptp(ratio) < 1e-5, {"ratio": ratio[-1]}, run=run)


# --- Misprints and ambiguities without a row of their own elsewhere


def _overloaded(until: float) -> float:
    """Queueing delay [s] that the library finds on an empty queue fed at 1.5 c for that long."""
    net = dumbbell([CBR(rate=1.5e6)], {"capacity": 1e6, "delay": 0.01})
    return float(simulate(net, until, samples=2).queueing_delay.values[-1, 0])


def projection_freezes(claim: Claim) -> Outcome:
    (q,) = DropTail.states
    (price,) = DualLink.states
    frozen = []
    for state, law in ((q, DropTail), (price, DualLink)):
        literal = Piecewise((law.flow[state], state > 0), (0, True))
        frozen.append(literal.subs(state, 0).subs({y: 3, c: 2}) == 0)
    # The literal equation, integrated from an empty queue at y = 1.5 c.
    slope = lambda t, z, Z: np.array([0.5 if z[0] > 0 else 0.0])  # noqa: E731
    printed = solve_dde(slope, (0.0, 1.0), np.array([0.0]), [], t_eval=[1.0])
    literal_q, meant = float(printed.y[0, -1]), _overloaded(1.0)
    return claim.refuted_if(
        all(frozen) and literal_q == 0 and abs(meant - 0.5) <= 1e-9,
        {"printed": literal_q, "meant": meant},
    )


def no_upper_projection(claim: Claim) -> Outcome:
    s = scenarios["ldcc_fig6"]
    link = s.net.links["bottleneck"]
    q_max = link.buffer / link.capacity
    endless = s.net.with_link("bottleneck", buffer=None)
    runs = simulate(endless, 100.0, samples=101), run("ldcc_fig6")
    literal, bounded = (float(r.queueing_delay.max()) for r in runs)
    return claim.differs_if(
        literal > q_max >= bounded - 1e-12, {"literal": literal, "bounded": bounded, "q_max": q_max}
    )


def loss_only_while_full(claim: Claim) -> Outcome:
    r = run("ldcc_fig5")
    arrival = r.arrival_rate.values[:, 0]
    literal = np.maximum(arrival - 3.5e6, 0) / arrival
    sent, lost = r.entered.values[-1, 0], r.lost.values[-1, 0]
    worst = np.max(literal)
    would = np.trapezoid(literal * arrival, r.time.values) / sent
    return claim.differs_if(
        worst != 0 and lost <= 0, {"worst": worst, "would": would, "lost": lost}
    )


def path_loss_as_printed(claim: Claim) -> Outcome:
    net = scenarios["ldcc_fig11"].net
    eq, R = equilibrium(net, at=200.0), net.routing_matrix()
    link_loss = eq.loss.sel(flow=["flow2", "flow3"]).values[:, None]  # each crosses one link
    printed = 1 - np.prod(R * (1 - link_loss), axis=0)
    meant = 1 - np.prod(1 - R * link_loss, axis=0)
    values = {"printed": printed[1], "meant": meant[1], "path": eq.loss.values[1]}
    return claim.refuted_if(
        printed[1] == 1 and abs(values["meant"] - values["path"]) <= 1e-12, values
    )


def threshold(claim: Claim) -> Outcome:
    short = scenarios["ldcc_fig6"].net
    found = [equilibrium(with_law(short, LDCC(T=T)), at=200.0) for T in (0.05, 0.1)]
    delay = [eq.one_way_delay.values[0] for eq in found]
    loss = [eq.loss.values[0] for eq in found]
    values = {"delay50": delay[0], "delay100": delay[1], "loss50": loss[0], "loss100": loss[1]}
    return claim.differs_if(not found[0].full.values[0] and found[1].full.values[0], values)


def kilobyte(claim: Claim) -> Outcome:
    link = scenarios["ldcc_fig5"].net.links["bottleneck"]
    delays = {size: 130 * size * 8 / link.capacity for size in (1000, 1024)}
    values = named("{} B", delays)
    loss = {}
    for size in (1000, 1024):
        short = scenarios["ldcc_fig6"].net.with_link("bottleneck", buffer=25 * size * 8)
        loss[size] = equilibrium(short, at=200.0).loss.values[0]
    return claim.differs_if(
        link.buffer == 130 * 8000,
        values | {"loss1000": loss[1000], "loss1024": loss[1024]},
        otherwise="differs",
    )


def conservation(claim: Claim) -> Outcome:
    r = simulate(series(2e6, 1.5e6, 3e6, start=0.0), 10.0, samples=101)
    first, second = r.entered.values[:, 0], r.entered.values[:, 1]
    # What link 1 has sent; link 2 gets it 10 ms later.
    passed = first - r.backlog.values[:, 0] - r.lost.values[:, 0]
    flying = passed - second
    error = float(np.max(np.abs(flying[2:] - 2e6 * 0.01)) / first[-1])
    return claim.reproduced_if(error <= 1e-9, {"error": error})
