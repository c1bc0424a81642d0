"""Roots, margins and verdicts against qpmr, the method of DDE-BIFTOOL in Octave and
python-control, at equal accuracy.

Margins over many points of a network are measured with the sweeps.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from warnings import catch_warnings, simplefilter

import numpy as np

import fluidcc as fc
from benchmarks.speed import Row, Skipped
from fluidcc.numerics.linear.dlti import DelayLTI
from fluidcc.numerics.linear.margins import margins, margins_of_stack
from fluidcc.numerics.linear.wiring import Blocks, entries_of

__all__ = [
    "crowd",
    "different",
    "dumbbell",
    "identical",
    "large",
    "network",
    "rightmost",
    "scalar",
    "stability",
    "stack",
    "verdicts",
]

WANTED = 25.0
WANTED_STACK = 50.0
WANTED_ROOTS = 5.0
CLOSE = 1e-9  # relative error of a margin at which python-control's Pade order is taken


def shortest(run: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of several runs."""
    best = np.inf
    for _ in range(repeats):
        start = perf_counter()
        run()
        best = min(best, perf_counter() - start)
    return best


def network(
    lags: tuple[float, ...] = (0.05, 0.1, 0.2), gain: float = 2.0, side: str = "flows"
) -> DelayLTI:
    """Flows with a lag each over a leaky queue: the return ratio at the flows, or the scalar one
    at the queue.
    """
    m = len(lags)
    A = np.diag([-0.05, *(-0.5 / lag for lag in lags)])
    B, C = np.zeros((1 + m, 2 * m)), np.zeros((2 * m, 1 + m))
    B[0, :m], C[m:, 0] = 1 / m, 1.0
    for i, lag in enumerate(lags):
        B[1 + i, m + i] = gain / lag
        C[i, 1 + i] = 1.0
    rates = DelayLTI(A, B, C, np.zeros((2 * m, 2 * m)), delays=lags)
    if side == "flows":
        return rates
    B, C = np.zeros((1 + m, 1 + m)), np.zeros((1 + m, 1 + m))
    B[0, 0], C[1:, 0] = 1.0, 1.0
    C[0, 1:] = 1 / m
    B[1:, 1:] = np.diag([gain / lag for lag in lags])
    return DelayLTI(A, B, C, np.zeros((1 + m, 1 + m)), delays=lags)


def scalar() -> Iterator[Row]:
    """The delayed integrator: its rightmost pair to twelve digits."""
    exact = -0.31813150520476413531 + 1.33723570143068940890j

    def fresh() -> complex:
        return complex(DelayLTI.retarded(0, (-1, 1.0)).roots(count=2)[0])

    wrong = abs(fresh() - exact)
    seconds = shortest(fresh, 300)
    value = f"{seconds * 1e3:.3f} ms (error {wrong:.1e})"
    yield Row("x' = -x(t - 1)", value, "< 1 ms", bool(seconds < 1e-3 and wrong < 1e-12))


def roots() -> Iterator[Row]:
    """All roots of s^2 + 3 s + 4 exp(-s) in a box: ours against qpmr at its tightest accuracy."""
    try:
        from qpmr import qpmr
    except ImportError as problem:
        raise Skipped(f"qpmr is not installed ({problem})") from problem
    box = (-6.0, 1.0, 0.0, 60.0)
    system = DelayLTI.transfer([4.0], [1.0, 3.0, 0.0], 1.0).feedback()

    def ours() -> np.ndarray:
        return DelayLTI(system.A, system.B, system.C, system.D, delays=system.delays).roots(
            region=box
        )

    def theirs() -> np.ndarray:
        found, _ = qpmr(
            np.array([[0.0, 3.0, 1.0], [4.0, 0.0, 0.0]]), np.array([0.0, 1.0]), region=box, e=1e-10
        )
        return np.asarray(found)

    def error(s: np.ndarray) -> float:
        step = (s**2 + 3 * s + 4 * np.exp(-s)) / (2 * s + 3 - 4 * np.exp(-s))
        return float(np.abs(step).max())

    us, them = ours(), theirs()
    if len(us) != len(them):
        raise Skipped(f"{len(us)} roots here and {len(them)} there")
    turns = [
        (shortest(theirs, 1), shortest(ours, 10)) for _ in range(7)
    ]  # so that one slow moment does not decide
    them_seconds, us_seconds = (min(turn[i] for turn in turns) for i in (0, 1))
    yield Row("qpmr", f"{them_seconds * 1e3:.2f} ms ({len(them)} roots, error {error(them):.0e})")
    yield _ratio("roots", us_seconds, them_seconds, f"error {error(us):.0e}", WANTED_ROOTS)


def rightmost(lags: tuple[float, ...] = (0.05, 0.1, 0.2), gain: float = 2.0) -> Iterator[Row]:
    """The six rightmost roots, each pair once, of flows with a lag each over a leaky queue."""
    octave = shutil.which("octave-cli")
    if octave is None:
        raise Skipped("there is no octave-cli")
    matrices = [np.diag([-0.05, *(-0.5 / lag for lag in lags)])]
    for i, lag in enumerate(lags, 1):
        late = np.zeros((1 + len(lags), 1 + len(lags)))
        late[0, i], late[i, 0] = 1 / len(lags), -gain / lag
        matrices.append(late)
    listed = ", ".join(f"[{'; '.join(' '.join(map(str, row)) for row in M)}]" for M in matrices)
    program = f"""A = {{{listed}}}; tau = [{" ".join(map(str, lags))}]; best = Inf;
        for i = 1:20 t = tic; s = rightmost(A, tau, 6); best = min(best, toc(t)); end
        printf("%.17g ", best, [real(s), imag(s)]');"""
    told = subprocess.run([octave, "-qf", "--eval", program], capture_output=True, text=True,
                          cwd=Path(__file__).parent / "octave")  # fmt: skip
    them, *found = map(float, told.stdout.split())
    theirs = np.array(found[::2]) + 1j * np.array(found[1::2])
    delayed = [*zip(matrices[1:], lags, strict=True)]

    def ours() -> np.ndarray:
        roots = DelayLTI.retarded(matrices[0], *delayed).roots(count=11)
        return roots[roots.imag >= 0][:6]

    apart = float(np.abs(ours() - theirs).max())
    yield Row("DDE-BIFTOOL's method", f"{them * 1e3:.2f} ms (six rightmost roots, in Octave)")
    us = shortest(ours, 60)
    yield _ratio("rightmost", us, them, f"at most {apart:.0e} from these roots", WANTED_ROOTS)


def against_control() -> tuple[float, int, float]:
    """Seconds of python-control's margins at the Pade order that first gives them, that order,
    and the error.
    """
    try:
        import control
    except ImportError as problem:
        raise Skipped(f"python-control is not installed ({problem})") from problem
    loop = network(side="queue")
    exact = margins(loop)
    for order in range(1, 16):
        approximate = loop.to_control(pade=order)
        with catch_warnings():
            simplefilter("ignore")
            gain, phase, modulus, *_ = control.stability_margins(approximate)
        wrong = max(
            abs(gain / exact.gain - 1),
            abs(phase / exact.phase - 1),
            abs(modulus / exact.modulus - 1),
        )
        if wrong < CLOSE:
            break
    with catch_warnings():
        simplefilter("ignore")
        seconds = shortest(lambda: control.stability_margins(loop.to_control(pade=order)), 5)
    return seconds, order, wrong


def one_loop() -> Iterator[Row]:
    """Margins of one loop of three flows."""
    them, order, wrong = against_control()
    yield Row("python-control", f"{them * 1e3:.2f} ms (Pade order {order}, error {wrong:.0e})")
    loop = network(side="queue")

    def ours() -> object:
        return margins(DelayLTI(loop.A, loop.B, loop.C, loop.D, delays=loop.delays))

    yield _ratio("margins", shortest(ours, 60), them, "with all margins", WANTED)
    full = network()

    def verdict() -> object:
        fresh = DelayLTI(full.A, full.B, full.C, full.D, delays=full.delays)
        closed = fresh.feedback()
        return margins(fresh), closed.count_unstable(), closed.roots(count=2)

    seconds = shortest(verdict, 60)
    yield Row(
        "verdict, 3 flows",
        f"{seconds * 1e3:.2f} ms (count, roots, margins)",
        "<= 5 ms",
        seconds <= 5e-3,
    )


def stack(points: int = 2000) -> Iterator[Row]:
    """Margins of many parameter points at once, per point."""
    them, order, _ = against_control()
    rng = np.random.default_rng(1)
    loops = [
        network((0.05, 0.1 * a, 0.2 * b), 2 * c, "queue")
        for a, b, c in rng.uniform(0.5, 1.5, (points, 3))
    ]
    arrays = [
        np.stack([getattr(loop, name) for loop in loops]) for name in ("A", "B", "C", "D", "delays")
    ]
    of, none = entries_of(Blocks(*arrays)), np.zeros(points)
    seconds = shortest(lambda: margins_of_stack(of, none), 3) / points
    yield _ratio("margins, stacked", seconds, them, f"a point, Pade order {order}", WANTED_STACK)


def dumbbell() -> fc.Network:
    """Three different LDCC flows on one link."""
    net = fc.Network().link("l", fc.DropTail, capacity=3e6, delay=0.01)
    for i, (access, beta) in enumerate(((0.01, 0.1), (0.03, 0.12), (0.05, 0.08))):
        net.flow(f"f{i}", fc.LDCC(beta=beta), route=["l"], access_delay=access)
    return net


def crowd(flows: int = 100, links: int = 10) -> fc.Network:
    """Different LDCC flows over one to three links in a row."""
    rng = np.random.default_rng(0)
    net = fc.Network()
    for l in range(links):
        net.link(
            f"l{l}",
            fc.DropTail,
            capacity=float(rng.uniform(5e6, 2e7)),
            delay=float(rng.uniform(5e-3, 0.03)),
        )
    for i in range(flows):
        hops = int(rng.integers(1, 4))
        first = int(rng.integers(0, links - hops + 1))
        law = fc.LDCC(beta=float(rng.uniform(0.08, 0.15)))
        route = [f"l{l}" for l in range(first, first + hops)]
        net.flow(f"f{i}", law, route=route, access_delay=float(rng.uniform(1e-3, 0.03)))
    return net


def verdicts() -> Iterator[Row]:
    """Whole verdicts of networks of laws: equilibrium, Jacobians, both counts, roots and all
    margins.
    """
    net = dumbbell()
    fc.stability(net)
    seconds = shortest(lambda: fc.stability(net), 60)
    yield Row(
        "fc.stability, 3 flows",
        f"{seconds * 1e3:.2f} ms (the whole report)",
        "<= 5 ms",
        seconds <= 5e-3,
    )
    net = crowd()
    began = perf_counter()
    fc.stability(net)
    first = perf_counter() - began
    seconds = shortest(lambda: fc.stability(net), 3)
    yield Row(
        "fc.stability, 100 flows",
        f"{seconds:.2f} s (10 links; {first:.2f} s at first)",
        "< 1 s",
        seconds < 1,
    )


def different(counts: tuple[int, ...] = (100, 1000, 10_000)) -> Iterator[Row]:
    """Flows that all have another round trip: CPU seconds of a whole verdict with its rightmost
    root, and the power of their number with which they grow.
    """
    least = dict(zip(counts, (0.3, 3.0, 60.0), strict=True))
    spent: list[float] = []
    for n in (min(counts), *counts):  # the first loads what is compiled
        trips = np.linspace(0.02, 0.2, n).tolist()
        net = fc.dumbbell([fc.LDCC] * n, {"capacity": 1e6 * n}, rtt=trips)
        began = process_time()
        root = fc.stability(net).decay_rate
        spent.append(process_time() - began)
        if len(spent) > 1:
            good = spent[-1] < least[n] and bool(np.isfinite(root))
            value = f"{spent[-1]:.2f} s (decay rate {root:.4g} 1/s)"
            yield Row(f"{n} different flows", value, f"< {least[n]:g} s", good)
    spent = spent[1:]
    power = float(np.polyfit(np.log(counts), np.log(spent), 1)[0])
    yield Row("exponent", f"{power:.2f}", "< 1.3", power < 1.3)


def identical(few: int = 3, many: int = 300, repeats: int = 40) -> Iterator[Row]:
    """Identical flows against few of them: CPU seconds, measured by turns so that a busy machine
    does not decide.
    """
    nets = {
        n: fc.dumbbell([fc.LDCC] * n, {"capacity": 1e6 * n, "buffer": "2 s"}, rtt="50 ms")
        for n in (few, many)
    }
    for analyse in (fc.equilibrium, fc.linearize, fc.stability):
        least = dict.fromkeys(nets, np.inf)
        for _ in range(repeats):
            for n, net in nets.items():
                began = process_time()
                analyse(net)
                least[n] = min(least[n], process_time() - began)
        more = least[many] / least[few] - 1
        value = (
            f"{100 * more:+.0f} % ({least[few] * 1e3:.2f} ms with {few}, "
            f"{least[many] * 1e3:.2f} ms with {many})"
        )
        yield Row(f"{analyse.__name__}, {many} alike", value, "< 10 %", bool(more < 0.1))


def large() -> Iterator[Row]:
    """A hundred different flows on ten links: count, rightmost roots and margins."""
    rng = np.random.default_rng(0)
    links, flows = 10, 100
    routes = (rng.random((links, flows)) < 0.15) | (
        np.arange(flows) % links == np.arange(links)[:, None]
    )
    lags = rng.uniform(0.02, 0.3, flows)
    A = np.diag(np.r_[np.full(links, -0.01), -0.5 / lags])
    B, C = np.zeros((links + flows, 2 * flows)), np.zeros((2 * flows, links + flows))
    B[:links, :flows] = routes / routes.sum(axis=1, keepdims=True)
    B[links:, flows:] = np.diag(0.4 / lags / routes.sum(axis=0))
    C[:flows, links:], C[flows:, :links] = np.eye(flows), routes.T

    def verdict() -> object:
        loop = DelayLTI(A, B, C, np.zeros((2 * flows, 2 * flows)), delays=lags)
        closed = loop.feedback()
        return margins(loop), closed.count_unstable(), closed.roots(count=3)

    seconds = shortest(verdict, 4)
    yield Row("verdict, 100 flows", f"{seconds:.2f} s (10 links)", "< 1 s", seconds < 1)


def _ratio(what: str, us: float, them: float, note: str, wanted: float) -> Row:
    value = them / us
    return Row(
        f"{what} ratio",
        f"{value:.1f} ({us * 1e3:.3f} ms, {note})",
        f">= {wanted:.0f}",
        value >= wanted,
    )


def stability() -> Iterator[Row]:
    """The whole table; what cannot be measured here says so."""
    for part in (scalar, roots, rightmost, one_loop, stack, verdicts, identical, different, large):
        try:
            yield from part()
        except Skipped as reason:
            yield Row(part.__name__, f"skipped: {reason}")
