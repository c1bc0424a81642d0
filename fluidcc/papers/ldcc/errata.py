"""What is printed wrongly or ambiguously in the LDCC paper, where it has no row of its own elsewhere."""

from __future__ import annotations

import numpy as np
from sympy import Piecewise

from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.links import DropTail, DualLink
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.numerics.dde.solve import solve_dde
from fluidcc.papers.ldcc.common import bound, ms, percent, run
from fluidcc.papers.ldcc.networks import series
from fluidcc.papers.model import DIFFERS, REFUTED, REPRODUCED, Outcome, claim
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, LDCC
from fluidcc.symbols import c, y


def _overloaded(until: float) -> float:
    """Queueing delay [s] that the library finds on an empty queue fed at 1.5 c for that long."""
    net = Network().link("l", DropTail, capacity=1e6, delay=0.01).flow("f", CBR(rate=1.5e6), route=["l"])
    return float(simulate(net, until, samples=2, progress=False).queueing_delay.values[-1, 0])


@claim(
    "ldcc",
    "(2), (14b), (45)",
    "'(z)^+_x is equal to z if x is positive and zero otherwise.'",
    "0 at x = 0",
    erratum=True,
)
def projection_freezes() -> Outcome:
    (q,) = DropTail.states
    (price,) = DualLink.states
    frozen = []
    for state, law in ((q, DropTail), (price, DualLink)):
        literal = Piecewise((law.flow[state], state > 0), (0, True))
        frozen.append(literal.subs(state, 0).subs({y: 3, c: 2}) == 0)
    # The literal equation, integrated from an empty queue at y = 1.5 c.
    printed = solve_dde(
        lambda t, z, Z: np.array([0.5 if z[0] > 0 else 0.0]), (0.0, 1.0), np.array([0.0]), [], t_eval=[1.0]
    )
    literal_q, meant = float(printed.y[0, -1]), _overloaded(1.0)
    if not all(frozen) or literal_q != 0 or abs(meant - 0.5) > 1e-9:
        return Outcome(REPRODUCED, f"q = {ms(literal_q)} after 1 s", "", {"printed": literal_q, "meant": meant})
    return Outcome(
        REFUTED,
        f"y = 1.5 c for 1 s on an empty queue: q = {ms(literal_q)} as printed, {ms(meant)} as meant",
        "Literally, a state that is 0 stays 0 for ever: no queue ever forms and no price ever "
        "rises. Meant is max(z, 0) "
        "at x = 0, and z where x > 0; the library's laws have this as a lower bound.",
        {"printed": literal_q, "meant": meant},
    )


@claim(
    "ldcc",
    "(2)",
    "The queueing delay follows (2) although buffers have a maximum size.",
    "no bound in (2)",
    erratum=True,
)
def no_upper_projection() -> Outcome:
    s = scenarios["ldcc_fig6"]
    link = s.net.links["bottleneck"]
    q_max = link.buffer / link.capacity
    endless = simulate(s.net.with_link("bottleneck", buffer=None), 100.0, samples=101, progress=False)
    literal, bounded = float(endless.queueing_delay.max()), float(run("ldcc_fig6").queueing_delay.max())
    if not (literal > q_max >= bounded - 1e-12):
        return Outcome(REPRODUCED, f"{ms(literal)} of {ms(q_max)}", "", {"literal": literal, "bounded": bounded})
    return Outcome(
        DIFFERS,
        f"Fig. 6 by (2) alone reaches {ms(literal)}, with the buffer {ms(bounded)}",
        "(2) needs the other projection as well: at q = q_max, min(z, 0). The text says so (drop tail), the equation "
        "does not.",
        {"literal": literal, "bounded": bounded, "q_max": q_max},
    )


@claim(
    "ldcc", "(4)", "The loss ratio is ((y - c)/y)^+ whenever y > c.", "no condition on the queue in (4)", erratum=True
)
def loss_only_while_full() -> Outcome:
    r = run("ldcc_fig5")
    arrival = r.arrival_rate.values[:, 0]
    literal = np.maximum(arrival - 3.5e6, 0) / arrival
    sent, lost = float(r.entered.values[-1, 0]), float(r.lost.values[-1, 0])
    worst = float(np.max(literal))
    would = float(np.trapezoid(literal * arrival, r.time.values)) / sent
    if worst == 0 or lost > 0:
        return Outcome(REPRODUCED, percent(worst), "", {"worst": worst})
    return Outcome(
        DIFFERS,
        f"Fig. 5: y exceeds c by up to {percent(worst)} of y and nothing is lost",
        "The surplus is queued. Without the condition 'while the buffer is full', which the "
        "text has and the equation has "
        f"not, (4) would make {percent(would)} of all data lost in Fig. 5, and the queue count them again.",
        {"worst": worst, "would": would, "lost": lost},
    )


@claim(
    "ldcc",
    "(5)",
    "pi_r = 1 - prod_l R_lr (1 - pi_l), the product over all links.",
    "R_lr outside the bracket",
    erratum=True,
)
def path_loss_as_printed() -> Outcome:
    net = scenarios["ldcc_fig11"].net
    eq, R = equilibrium(net, at=200.0), net.routing_matrix()
    link_loss = np.array([float(eq.loss.sel(flow=name)) for name in ("flow2", "flow3")])  # each crosses one link
    printed = 1 - np.prod(R * (1 - link_loss[:, None]), axis=0)
    meant = 1 - np.prod(1 - R * link_loss[:, None], axis=0)
    values = {"printed": float(printed[1]), "meant": float(meant[1]), "path": float(eq.loss.values[1])}
    if printed[1] != 1 or abs(values["meant"] - values["path"]) > 1e-12:
        return Outcome(REPRODUCED, str(values), "", values)
    return Outcome(
        REFUTED,
        f"Fig. 11: flow 2, which misses link 2, loses {percent(values['printed'])} as printed, "
        f"{percent(values['path'])} in fact",
        "A link that a user misses puts a factor 0 into the product, so the "
        "printed ratio is 1 for all but those who cross every link. Meant is 1 - prod (1 - R_lr "
        "pi_l).",
        values,
    )


@claim(
    "ldcc",
    "V-B",
    "'The threshold delay imposed on the three LDCC flows is 50 ms'; 'a delay threshold parameter of 100 ms'.",
    "50 ms and 100 ms",
    erratum=True,
)
def threshold() -> Outcome:
    short = scenarios["ldcc_fig6"].net
    found = {}
    for T in (0.05, 0.1):
        net = short
        for name in ("flow1", "flow2", "flow3"):
            net = net.with_flow(name, law=LDCC(T=T))
        found[T] = equilibrium(net, at=200.0)
    delay = {T: float(eq.one_way_delay.values[0]) for T, eq in found.items()}
    full = {T: bool(eq.full.values[0]) for T, eq in found.items()}
    values = {
        "delay50": delay[0.05],
        "delay100": delay[0.1],
        "loss50": float(found[0.05].loss.values[0]),
        "loss100": float(found[0.1].loss.values[0]),
    }
    if full[0.05] or not full[0.1]:
        return Outcome(REPRODUCED, f"full: {full}", "", values)
    return Outcome(
        DIFFERS,
        f"Fig. 6 with T = 50 ms: e = {ms(delay[0.05])}, no losses; with T = 100 ms: e = {ms(delay[0.1])}, "
        f"{percent(values['loss100'])} lost",
        "Only 100 ms agrees with the text of Fig. 6, that the longest delay is below "
        "the threshold and losses drive the flows: with 50 ms three flows never fill the 25 "
        "packets. Fig. 5 "
        "decides by its curves alone, which are lost; without losses either value would do.",
        values,
    )


@claim("ldcc", "V-A", "Packets have a fixed size of 1 KB.", "1 KB", erratum=True)
def kilobyte() -> Outcome:
    net = scenarios["ldcc_fig5"].net
    link = net.links["bottleneck"]
    delays = {size: 130 * size * 8 / link.capacity for size in (1000, 1024)}
    same = link.buffer == 130 * 8000
    values = {f"{k} B": v for k, v in delays.items()}
    loss = {}
    for size in (1000, 1024):
        short = scenarios["ldcc_fig6"].net.with_link("bottleneck", buffer=25 * size * 8)
        loss[size] = float(equilibrium(short, at=200.0).loss.values[0])
    if not same:
        return Outcome(DIFFERS, f"{link.buffer:g} bit", "the scenario takes another size", values)
    return Outcome(
        DIFFERS,
        f"1000 B taken; 130 packets are {ms(delays[1000])}, with 1024 B {ms(delays[1024])}; the paper: 300 ms",
        "A choice: the printed 300 ms does not decide. It moves buffers by 2.4 % and no rate of Figs. 5 and 6: "
        f"the loss of Fig. 6 is {percent(loss[1000], 4)} with either.",
        values | {"loss1000": loss[1000], "loss1024": loss[1024]},
    )


@claim("ldcc", "(8)", "Flow conservation: what enters a network is queued, lost or delivered.", "not discussed")
def conservation() -> Outcome:
    r = simulate(series(2e6, 1.5e6, 3e6, start=0.0), 10.0, samples=101, progress=False)
    first, second = r.entered.values[:, 0], r.entered.values[:, 1]
    passed = first - r.backlog.values[:, 0] - r.lost.values[:, 0]  # link 1 has sent this, link 2 gets it 10 ms later
    flying = passed - second
    error = float(np.max(np.abs(flying[2:] - 2e6 * 0.01)) / first[-1])
    if error > 1e-9:
        return Outcome(
            DIFFERS, f"off by {error:.0e} of all data", "between the links there should be c times the delay"
        )
    return Outcome(
        REPRODUCED,
        f"two links in series: what has left the first and not reached the second is c times its "
        f"propagation delay, within {bound(error)} of all data",
        "With delays='fifo'; see (8).",
        {"error": error},
    )
