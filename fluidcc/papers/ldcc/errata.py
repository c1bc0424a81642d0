"""Section VI of the LDCC paper on other controls, and misprints without a row elsewhere."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from sympy import Eq, Piecewise

from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.laws import Source
from fluidcc.links import DropTail, DualLink
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell
from fluidcc.numerics.dde.solve import solve_dde
from fluidcc.papers.ldcc.coexistence import mean_rates, sawtooth
from fluidcc.papers.ldcc.common import alone, near, run, series, with_law
from fluidcc.papers.model import (
    Found,
    differs_if,
    law_proof,
    not_given,
    proof,
    proved,
    reproduced_if,
)
from fluidcc.papers.printed import named, off
from fluidcc.papers.zoo.ldcc import CAPACITY, PACKET
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, GCC, LDCC, LEDBAT, NADA, NADA8698, AdaptiveGCC, CxTCP
from fluidcc.symbols import Let, c, e, e_b, edot, pi, plain, positive, unfold, y


def _link(*laws: Source, later: float = 0.0, buffer: float | None = None) -> Network:
    """The link of Fig. 12 with flows that start one after the other."""
    flows = [{"law": law, "start": i * later} for i, law in enumerate(laws)]
    return dumbbell(flows, {"capacity": CAPACITY, "delay": 0.05, "buffer": buffer})


def related_ledbat_starves() -> Found:
    rate, tcp = mean_rates(180, LEDBAT)
    least, ends = 2 * PACKET / (0.1 + 180 * PACKET / CAPACITY), _window()
    return reproduced_if(
        near(ends, [2, 2]) and rate < tcp, LEDBAT=rate, TCP=tcp, least=least, part=rate / tcp,
        ends=ends[1],
    )  # fmt: skip


def _window() -> tuple[float, float]:
    """The least and the largest window of LEDBAT over that cycle [packet]."""
    cycle = sawtooth(180, LEDBAT)
    return cycle.least.LEDBAT_w[0].item(), cycle.most.LEDBAT_w[0].item()


def _late(law: Source, delay: str = "rtt") -> dict[str, Any]:
    """A flow and one that starts 60 s later, at 200 s: rates, and what they take for propagation
    where they hear that delay; `met` is the queueing delay that they see."""
    last = simulate(_link(law, law, later=60.0), 200, samples=2001).isel(time=-1)
    first, late = last.rate.values
    met = last[f"{law.name}_delta"].values
    seen = last[delay].values - met
    return {"first": first, "late": late, "ratio": late / first, "seen": seen, "met": met}


def related_ledbat_late() -> Found:
    found = _late(LEDBAT)
    return reproduced_if(found["ratio"] > 1 and found["seen"][1] > found["seen"][0], found)


def related_cxtcp_late() -> Found:
    found = _late(CxTCP(peak=0.01, turn=0.1))
    # While the probability rises W^2 p = a/b with p = peak delta/turn, so W goes as 1/sqrt(delta).
    share = np.sqrt(found["met"][0] / found["met"][1])
    return reproduced_if(found["ratio"] > 1 and off(found["ratio"], share) < 1e-6, found)


def related_nada_late() -> Found:
    found = _late(NADA(R_max=2 * CAPACITY), "one_way_delay")
    share = found["seen"][1] / found["seen"][0]  # by theta = R_max x_ref
    return reproduced_if(found["ratio"] > 1 and off(found["ratio"], share) < 1e-4, found)


def related_no_estimate() -> Found:
    keeps = ["delta" in map(plain, law.states) for law in (LDCC, GCC, NADA, CxTCP)]
    parts = (*GCC.flow.values(), *(jump.when for jump in GCC.jumps))
    hears = {s for f in parts for s in unfold(f).free_symbols & {e, e_b, edot}}
    one, other = equilibrium(_link(LDCC, LDCC)).rate.values
    held = keeps == [False, False, True, True] and hears == {edot} and near(one, other)
    return reproduced_if(held, ratio=other / one)


def related_ledbat_unfair() -> Found:
    flows = [{"law": LEDBAT, "start": 0, "initial": {"w": w}} for w in (100, 10)]
    run = simulate(dumbbell(flows, {"capacity": 1e7, "delay": 0.025}), 300, samples=11)
    rates = run.rate.sel(time=[30, 300]).values
    left = rates[:, 0] / rates[:, 1]
    return reproduced_if(np.all(left > 1) and np.ptp(left) < 0.01 * left[0], rates=rates[1])


def related_cxtcp_law() -> Found:
    (heard,) = (v for f in CxTCP.flow.values() for v in f.atoms(Let) if v.name == "p")
    g = unfold(heard).subs(pi, 0)
    delta, fall, peak, turn = sorted(g.free_symbols, key=plain)
    beyond = turn + fall
    return proved(
        proof(Eq(g, peak * delta / turn), delta <= turn),
        proof(Eq(g, peak * (beyond - delta) / fall), delta >= turn, delta <= beyond),
        proof(Eq(g, 0), delta >= beyond),
        *(law_proof(CxTCP, label) for label in CxTCP.claims),
    )


def related_cxtcp_coexists() -> Found:
    shares = {n: mean_rates(n, CxTCP) for n in (30, 60, 180)}
    ratio = {n: a / b for n, (a, b) in shares.items()}
    alone = simulate(_link(CxTCP(peak=0.01), CxTCP(peak=0.01), buffer=CAPACITY), 200)
    queue = alone.queueing_delay[-1, 0]
    return not_given(named("{} packets", ratio), queue=queue)


def related_nada_consistent() -> Found:
    rates = {n: mean_rates(n, NADA(R_max=CAPACITY))[0] for n in (30, 60, 180)}
    return not_given(named("{} packets", rates), rates=rates)


def related_nada_new() -> Found:
    R, p, x_ref, r = positive("R p x_ref r")
    forms = {NADA8698: x_ref * R / r, NADA: p * (R / r - 1)}
    new, old = forms.values()
    met, wanted = {}, {}
    for law, rate in product(forms, (0.3e6, 0.6e6)):
        key, values = f"{law.name} {rate:g}", {R: 1.5e6, p: 0.025, x_ref: 0.01, r: rate}
        met[key] = simulate(alone(law, capacity=rate), 200).queueing_delay[-1, 0].item()
        wanted[key] = float(forms[law].subs(values))
    return differs_if(
        proof(Eq((old - new) * r, R * (p - x_ref) - p * r))
        and law_proof(NADA8698, "(7) stands where x = PRIO XREF RMAX/r")
        and near(list(met.values()), list(wanted.values()), 1e-4),
        met,
        share=1 - 0.01 / 0.025,
    )


def related_gcc_starves() -> Found:
    fixed, adaptive = (
        {n: mean_rates(n, law, tol)[0] for n in (30, 180)}
        for law, tol in ((GCC, 1e-6), (AdaptiveGCC, 2e-3))
    )
    return reproduced_if(
        fixed[30] < 100 and all(fixed[n] < adaptive[n] for n in fixed),
        named("fixed {}", fixed),
        named("adaptive {}", adaptive),
    )


def related_gcc_unfair() -> Found:
    flows = [{"law": GCC, "start": 0, "initial": {"A": rate}} for rate in (2e5, 6e5)]
    run = simulate(dumbbell(flows, {"capacity": 2e6, "delay": 0.025}), 120, samples=1201)
    ratio = run.rate.values[:, 1] / run.rate.values[:, 0]
    return reproduced_if(np.ptp(ratio) < 1e-5, ratio=ratio[-1], run=run)


# --- Misprints and ambiguities without a row of their own elsewhere


def _overloaded(until: float) -> float:
    """Queueing delay [s] that the library finds on an empty queue fed at 1.5 c for that long."""
    net = dumbbell([CBR(rate=1.5e6)], {"capacity": 1e6, "delay": 0.01})
    return float(simulate(net, until, samples=2).queueing_delay.values[-1, 0])


def projection_freezes() -> Found:
    frozen = []
    for law in (DropTail, DualLink):
        ((state, flow),) = law.flow.items()
        literal = Piecewise((flow, state > 0), (0, True))
        frozen.append(literal.subs(state, 0).subs({y: 3, c: 2}) == 0)
    # The literal equation, integrated from an empty queue at y = 1.5 c.
    slope = lambda t, z, Z: np.where(z > 0, 0.5, 0.0)  # noqa: E731
    printed = solve_dde(slope, (0.0, 1.0), np.array([0.0]), [], t_eval=[1.0])
    literal_q, meant = printed.y[0, -1], _overloaded(1.0)
    return differs_if(
        all(frozen) and literal_q == 0 and abs(meant - 0.5) <= 1e-9, printed=literal_q, meant=meant
    )


def no_upper_projection() -> Found:
    net = scenarios["ldcc_fig6"].net
    link = net.links["bottleneck"]
    q_max = link.buffer / link.capacity
    endless = net.with_link("bottleneck", buffer=None)
    literal, bounded = (
        r.queueing_delay.max() for r in (simulate(endless, 260.0, samples=521), run("ldcc_fig6"))
    )
    rest = equilibrium(endless, at=200.0).queueing_delay[0]
    return differs_if(
        literal > q_max >= bounded - 1e-12, literal=literal, bounded=bounded, q_max=q_max, rest=rest
    )


def path_loss_as_printed() -> Found:
    net = scenarios["ldcc_fig11"].net
    eq, R = equilibrium(net, at=200.0), net.routing_matrix()
    link_loss = eq.loss.values[1:3, None]  # flows 2 and 3 cross one link each
    printed = (1 - np.prod(R * (1 - link_loss), axis=0))[1]
    meant, path = (1 - np.prod(1 - R * link_loss, axis=0))[1], eq.loss[1]
    return differs_if(
        printed == 1 and abs(meant - path) <= 1e-12, printed=printed, meant=meant, path=path
    )


def threshold() -> Found:
    short = scenarios["ldcc_fig6"].net
    low, high = (equilibrium(with_law(short, LDCC(T=T)), at=200.0) for T in (0.05, 0.1))
    return differs_if(
        not low.full[0] and high.full[0],
        delay50=low.one_way_delay[0],
        delay100=high.one_way_delay[0],
        loss50=low.loss[0],
        loss100=high.loss[0],
    )


def kilobyte() -> Found:
    sizes = (1000, 1024)
    link, short = scenarios["ldcc_fig5"].net.links["bottleneck"], scenarios["ldcc_fig6"].net
    loss = [
        equilibrium(short.with_link("bottleneck", buffer=25 * size * 8), at=200.0).loss[0]
        for size in sizes
    ]
    queue = {f"{size} B": 130 * size * 8 / link.capacity for size in sizes}
    return not_given(queue, named("loss{}", sizes, loss))


def conservation() -> Found:
    r = simulate(series(2e6, 1.5e6, 3e6, start=0.0), 10.0, samples=101)
    first, second = r.entered.values.T
    # What link 1 has sent; link 2 gets it 10 ms later.
    passed = first - (r.backlog + r.lost).values[:, 0]
    error = np.max(np.abs((passed - second)[2:] - 2e6 * 0.01)) / first[-1]
    return reproduced_if(error <= 1e-9, error=error)
