"""The measurements of sweeps. CPU seconds where one process is measured, so that a busy machine
does not decide.

The floor of a trajectory, from operation counts: P1 takes about 2,000 evaluations of four states at
rtol 3e-7. One evaluation is some 110 floating-point operations (three laws of 15, three queue
look-ups of 12, the stage sums of 30), of which about a third wait for one another: 25 ns at 4 GHz,
or 50 us a point; 601 samples of ten rows at 1 ns each are 6 us more. So no scalar kernel of this
method can do better than about 55 us a point here.

The floor of a margin point: three flows on one link are a return ratio of rank one, whose value at
a frequency takes three exponentials of an imaginary number (20 ns each) and some 60 complex
operations (1 ns each): 120 ns. Some 60 frequencies bracket its crossings, each of a dozen crossings
and extrema is polished by 5 evaluations with a derivative (twice the work): 20 us a point, and 10
us for the equilibrium (ten Newton steps of 1 us).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter, process_time
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

import fluidcc as fc
from benchmarks.networks import as_network, delays
from benchmarks.reference.cases import P1
from benchmarks.speed import ROOT, Row, Skipped, fastest, ours, theirs
from fluidcc.numerics.linear.dlti import DelayLTI
from fluidcc.sweeps import Refine

__all__ = [
    "GRID",
    "MARGINS",
    "MEASURES",
    "THREE",
    "chart",
    "margin_points",
    "three_flows",
    "trajectories",
]

GRID = {
    "w": np.linspace(15e3, 25e3, 25),
    "beta": np.linspace(0.08, 0.12, 20),
    "return_delay": np.linspace(0.02, 0.05, 20),
}
MEASURES = ["mean_rate", "final_rate", "max_queueing_delay"]
FLOOR = 55e-6  # seconds a point, from the module's count
RUNS = 50
ROUNDS = 3
CONDITIONS = ("-1/M rule", "convex hull")

THREE = {
    "eta": np.linspace(0.2, 0.8, 25),
    "w": np.linspace(15e3, 25e3, 20),
    "capacity": np.linspace(2e6, 6e6, 20),
}
MARGINS = ["gain_margin", "phase_margin", "modulus_margin", "delay_margin"]
FLOOR_MARGINS = 30e-6  # seconds a point, from the module's count


def trajectories() -> Iterator[Row]:
    """10,000 points of P1 against JiTCDDE's time for one, at equal accuracy, per core."""
    rtol = fastest(ours(P1, "fused"))[0]
    how: dict[str, Any] = {
        "until": P1.until,
        "delays": delays(P1),
        "rtol": rtol,
        "atol": 0.01 * rtol,
    }
    net = as_network(P1)
    fc.sweep(net, GRID, MEASURES, executor="serial", **how)  # compiled and loaded
    spent = []
    for _ in range(3):
        began = process_time()
        data = fc.sweep(net, GRID, MEASURES, executor="serial", **how)
        spent.append(process_time() - began)
    each = min(spent) / data.attrs["points"]
    value = (
        f"{each * 1e6:.0f} us a point of {data.attrs['points']} (rtol {rtol:.0e}), "
        f"{each / FLOOR:.1f} times the floor"
    )
    yield Row("sweep of P1", value)
    them = theirs(P1)
    at = fastest(them)[0]
    began = process_time()
    for _ in range(RUNS):
        them(at)
    run = (process_time() - began) / RUNS
    yield Row("JiTCDDE, a run", f"{run * 1e3:.2f} ms, the mean of {RUNS}")
    yield Row("P1 per core", f"{run / each:.1f}", ">= 15", run / each >= 15)


def three_flows() -> fc.Network:
    """Three LDCC flows of different round trips on one link."""
    net = fc.dumbbell([fc.LDCC] * 3, {"capacity": "3 Mbit/s"}, rtt="50 ms")
    for k, trip in enumerate((0.06, 0.12, 0.2)):
        net = net.with_flow(f"flow{k + 1}", return_delay=trip)
    return net


def margin_points(loops: int = 60) -> Iterator[Row]:
    """10,000 margin points of three LDCC flows against a loop over python-control, per core, in
    turns.
    """
    net = three_flows()
    them, order, wrong = _python_control(net, loops)
    spent, theirs_, failed = [], [], 0
    for _ in range(ROUNDS):
        each, failed = _each(net, MARGINS)
        spent.append(each)
        theirs_.append(them())
    value = (
        f"{min(spent) * 1e6:.0f} us a point of 10,000, {min(spent) / FLOOR_MARGINS:.1f} times "
        f"the floor"
    )
    yield Row("margins of 3 flows", f"{value}, {failed} failed")
    verdicts = min(_each(net, [*MARGINS, "stable", "rightmost_root"])[0] for _ in range(ROUNDS))
    yield Row("and verdicts, roots", f"{verdicts * 1e6:.0f} us a point")
    value = (
        f"{min(theirs_) * 1e3:.2f} ms, the mean of {loops} (Pade order {order}, error {wrong:.0e})"
    )
    yield Row("python-control", value)
    ratio = min(theirs_) / min(spent)
    yield Row("margins per core", f"{ratio:.1f}", ">= 25", ratio >= 25)


def _each(net: fc.Network, measures: list[str]) -> tuple[float, int]:
    """Seconds a point, and how many points failed."""
    began = process_time()
    data = fc.sweep(net, THREE, measures, executor="serial")
    return (process_time() - began) / data.attrs["points"], int(data.attrs["failed"])


def _python_control(net: fc.Network, loops: int) -> tuple[Callable[[], float], int, float]:
    """What takes its seconds a point of stability margins, at the least Pade order that gives ours
    to 1e-9; its error.

    The nets, laws and reports that it starts from are made beforehand, which is not counted.
    """
    try:
        import control
    except ImportError as problem:
        raise Skipped(f"python-control is not installed ({problem})") from problem
    chosen = np.random.default_rng(1).uniform(0, 1, (loops, 3))
    nets = []
    for a, b, c in chosen:
        law = fc.LDCC(eta=0.2 + 0.6 * a, w=15e3 + 10e3 * b)
        one = net.with_link("bottleneck", capacity=2e6 + 4e6 * c)
        for name in net.flows:
            one = one.with_flow(name, law=law)
        nets.append(one)
    reports = [fc.stability(one) for one in nets]
    systems = [_at_the_queue(report.open) for report in reports]

    def found(order: int) -> list[Any]:
        with catch_warnings():
            simplefilter("ignore")
            return [
                control.stability_margins(system.to_control(pade=order))[:3] for system in systems
            ]

    ours_ = np.array([(r.margins.gain_nearest, r.phase_margin) for r in reports])
    wrong, order = np.inf, 1
    while wrong >= 1e-9 and order < 15:
        order += 1
        wrong = float(np.max(np.abs(np.array(found(order))[:, :2] / ours_ - 1)))

    def seconds() -> float:
        began = process_time()
        found(order)
        return (process_time() - began) / loops

    return seconds, order, wrong


def _at_the_queue(loop: Any) -> DelayLTI:
    """The scalar loop at the queue: all flows enter it alike, and it hears their sum."""
    n, k = len(loop.A), len(loop.D)
    r = k - len(loop.delays)
    B = np.hstack([loop.B[:, :1], loop.B[:, r:]])
    C = np.vstack([loop.C[:r].sum(axis=0, keepdims=True), loop.C[r:]])
    D = np.vstack([loop.D[:r].sum(axis=0, keepdims=True), loop.D[r:]])
    return DelayLTI(loop.A.reshape(n, n), B, C, np.hstack([D[:, :1], D[:, r:]]), delays=loop.delays)


def parking_lot() -> fc.Network:
    """A long flow over three links with one flow of its own each; the long one's round trip is
    what is swept.
    """
    net = fc.parking_lot(
        {"long": fc.LDCC}, [fc.LDCC] * 3, {"capacity": "3 Mbit/s", "delay": "5 ms"}
    )
    for name in list(net.flows)[1:]:
        net = net.with_flow(name, return_delay="45 ms")
    return net


def _conditions(point: Any) -> dict[str, float]:
    """The gain over the largest that each condition allows: nearly linear in the gain, so that a
    few values will do.
    """
    return {name: 1.0 / point.stability.sufficient[name].margin for name in CONDITIONS}


def chart(
    file: str = "figures/ldcc_stability.png", points: int = 300, few: int = 12
) -> Iterator[Row]:
    """The stability of a parking lot of LDCC flows over the gain and the long flow's round-trip
    time, drawn.

    The conditions cost hundreds of times a verdict, so that they are found at fewer points; they
    have no corners.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    net = parking_lot()
    gains, trips = np.linspace(0.1, 2.2, points), np.geomspace(0.03, 1.0, points)
    began = perf_counter()
    data = fc.sweep(
        net,
        {"eta": gains, "long.rtt": trips},
        ["stable", "gain_margin", "decay_rate"],
        refine=Refine("stable", 32),
    )
    first = perf_counter() - began
    some = {
        "eta": np.linspace(gains[0], gains[-1], few),
        "long.rtt": np.geomspace(trips[0], trips[-1], few),
    }
    rules = fc.sweep(net, some, _conditions, executor="processes")
    took = perf_counter() - began
    axis: Any = fc.plot.stability_chart(
        data, value="gain_margin", over={name: rules[name] for name in CONDITIONS}
    )
    axis.set(xlabel="gain $\\eta$ of all flows",
             ylabel="round-trip propagation time of the long flow [ms]",
             title="Three links, a flow over all of them and one on each")  # fmt: skip
    axis.figure.savefig(ROOT / file, dpi=120)
    many, failed = data.attrs["measured"], data.attrs["failed"] + rules.attrs["failed"]
    value = (
        f"{took:.0f} s for {points} x {points} points ({first:.1f} s for {many} verdicts, the "
        f"rest for "
        f"{rules.attrs['points']} points of the conditions), {failed} failed"
    )
    yield Row("stability chart", value, "< 60 s", took < 60 and not failed)
