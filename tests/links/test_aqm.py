"""RED and PI: marks against closed forms; TCP over them as Hollot, Misra, Towsley and Gong."""

import itertools
import math

import numpy as np
import pytest
from sympy import lambdify

import fluidcc as fc
from fluidcc.equilibria.result import Equilibrium
from fluidcc.papers.published import tcp_loops
from fluidcc.symbols import c, q_max, unfold, y

PACKET = 8000.0
C = 3750 * PACKET
SLOPE = 1.86e-4 * 3750  # 1.86e-4 a packet
TCP_RED = fc.RED(min_th=0.04, max_th=0.04 + 0.1 / SLOPE, p_max=0.1, T=200)
TCP_PI = fc.PI(q_ref=175 / 3750)


def tcp(
    law: fc.Link, flows: int, trip: float, start: Equilibrium | None = None, push: float = 1.0
) -> fc.Network:
    """`flows` equal Reno flows as one of their common window: a n packets up, b/n of it down."""
    initial = {} if start is None else start.states
    path = {"capacity": C, "delay": trip / 2, "buffer": 4000 * PACKET}
    net = fc.Network().link("l", law, initial=initial.get("l"), **path)
    window = {"W": initial["tcp"]["W"] * push} if initial else None
    reno = fc.StaticReno(a=flows, b=0.5 / flows)
    return net.flow("tcp", reno, route=["l"], return_delay=trip / 2, packet=PACKET, initial=window)


# --- marks ----------------------------------------------------------------------------------------


def test_red_marks_by_its_average() -> None:
    law = fc.RED(min_th=0.1, max_th=0.3, p_max=0.2)
    mark = lambdify(law.states[1], unfold(law.out["mark"]).subs(law.params), "numpy")
    averages = np.array([0.0, 0.1, 0.15, 0.3, 0.45, 0.6, 1.0])
    wanted = [0, 0, 0.05, 0.2, 0.6, 1, 1]
    np.testing.assert_allclose([mark(a) for a in averages], wanted, atol=1e-15)
    steep = law(gentle=1e-9)
    mark = lambdify(law.states[1], unfold(steep.out["mark"]).subs(steep.params), "numpy")
    np.testing.assert_allclose([mark(0.2), mark(0.3), mark(0.3 + 1e-8)], [0.1, 0.2, 1], rtol=1e-6)


def test_pi_integrates_what_the_queue_does() -> None:
    """Too much for a second, too little for five: the queue is two ramps and then empty."""
    a, b, ref = 0.2, 0.3, 0.1
    net = fc.Network().link("l", fc.PI(a=a, b=b, q_ref=ref), capacity=1e6, delay=0.01)
    net.flow("f", fc.CBR, route=["l"], pattern=[(0, 2e6), (1, 0.5e6)])
    ds = fc.simulate(net, 6, rtol=1e-9, samples=601)
    t = ds.time.values
    rise = a * t + b * (t**2 / 2 - ref * t)
    fall = rise[100] - a * (t - 1) / 2 + b * ((t - 1) - (t - 1) ** 2 / 4 - ref * (t - 1))
    rest = fall[300] - b * ref * (t - 3)
    wanted = np.where(t <= 1, rise, np.where(t <= 3, fall, rest))
    assert wanted.min() == 0.0  # projected nowhere but at the start
    np.testing.assert_allclose(ds.PI_p.values[:, 0], wanted, atol=1e-6)


def test_pi_stays_within_zero_and_one() -> None:
    net = fc.Network().link("l", fc.PI(a=3, b=5, q_ref=0.1), capacity=1e6, delay=0.01, buffer=4e5)
    net.flow("f", fc.CBR, route=["l"], pattern=[(0, 0.5e6), (1, 2e6)])
    ds = fc.simulate(net, 4, samples=401)
    p, t = ds.PI_p.values[:, 0], ds.time.values
    assert np.all(p[t < 1] == 0)
    assert p.max() == pytest.approx(1, rel=1e-14)
    assert p[-1] == pytest.approx(1, rel=1e-14)
    assert ds.queueing_delay.values.max() == pytest.approx(0.4)


def test_adaptive_red_raises_and_lowers_its_maximum_every_half_second() -> None:
    path = {"law": fc.AdaptiveRED, "capacity": 1e6, "delay": 0.01}
    low = fc.dumbbell([fc.CBR(rate=5e5)], path)
    p, wanted = 0.1, []
    for _ in range(30):
        p *= 0.9 if p > 0.01 else 1
        wanted.append(p)
    times = 0.5 * np.arange(1, 31) + 0.01
    found = fc.simulate(low, 16, t_eval=times).AdaptiveRED_p.values[:, 0]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    full = {"q": 1, "avg": 1, "p": 0.02}
    high = fc.dumbbell([fc.CBR(rate=2e6)], {**path, "initial": full})
    p, wanted = 0.02, []
    for _ in range(60):
        p += min(0.01, p / 4) if p < 0.5 else 0
        wanted.append(p)
    found = fc.simulate(high, 31, t_eval=0.5 * np.arange(1, 61) + 0.01).AdaptiveRED_p.values[:, 0]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("flows", [20, 60, 150])
def test_adaptive_red_keeps_the_average_in_the_middle(flows: int) -> None:
    """From 0.4 to 0.6 of the way between the thresholds, unless its maximum is at its least."""
    ds = fc.simulate(tcp(fc.AdaptiveRED(min_th=0.04, max_th=0.12), flows, 0.2), 150, samples=1501)
    share = (ds.AdaptiveRED_avg.values[1200:, 0] - 0.04) / 0.08
    p = float(ds.AdaptiveRED_p[-1, 0])
    assert share.max() < 0.6
    assert share.min() > 0.4 or p < 0.01
    assert (p < 0.01) == (flows == 20)


def sampled_pie(t: np.ndarray, q: np.ndarray, every: float) -> np.ndarray:
    """RFC 8033, 4.2, at a short interval, to which its gains are scaled."""
    p, out = 0.0, [0.0]
    for before, now in itertools.pairwise(q):
        step = 0.125 * (now - 0.015) * every / 0.015 + 1.25 * (now - before)
        below = [n for n, most in ((2048, 1e-6), (512, 1e-5), (128, 1e-4), (32, 1e-3), (8, 1e-2),
                                   (2, 0.1)) if p < most]  # fmt: skip
        step /= below[0] if below else 1
        if p >= 0.1:
            step = min(step, 0.02 * every / 0.015)
        p = min(max(p + step, 0.0), 1.0)
        if now == before == 0:
            p *= 0.98 ** (every / 0.015)
        out.append(p)
    return np.array(out)


def test_pie_is_the_limit_of_the_rfc_s_program() -> None:
    """Too much for 1.5 s, then little: its ratio passes all its gains, is held back, and decays."""
    net = fc.Network().link("l", fc.PIE, capacity=1e6, delay=0.01)
    net.flow("f", fc.CBR, route=["l"], pattern=[(0, 1.2e6), (1.5, 0.5e6)])
    times = np.linspace(0, 4, 40_001) + 0.0
    ds = fc.simulate(net, 4, t_eval=times, rtol=1e-8)
    p = ds.PIE_p.values[:, 0]
    wanted = sampled_pie(times, ds.queueing_delay.values[:, 0], 1e-4)
    assert wanted.max() > 0.3
    for low, high in ((0.3, 0.5), (0.5, 1.5), (1.5, 2.0), (2.2, 4.0)):
        on = (times > low) & (times < high)
        np.testing.assert_allclose(p[on], wanted[on], rtol=5e-3)


def test_pie_spares_what_finds_little_queue() -> None:
    """RFC 8033, 4.1: nothing is dropped below half the target while the ratio is below 0.2."""
    q, _, h = fc.PIE.states
    f = unfold(fc.PIE.out["mark"])
    found = [
        float(f.subs({q: a, h: b, **fc.PIE.params}))
        for a, b in ((0.007, 0.1), (0.008, 0.1), (0.007, 0.3))
    ]
    assert found == [0, 0.1, 0.3]


def test_pi2_marks_by_the_square() -> None:
    """RFC 9332: p' = sqrt(p) is linear in what Reno needs, 1/W; stable at 100 ms with its gains."""
    rest = fc.equilibrium(tcp(fc.PI2, 60, 0.2))
    ratio, window = float(rest.mark[0]), rest.states["tcp"]["W"] / 60
    assert float(rest.queueing_delay[0]) == pytest.approx(0.015, rel=1e-9)
    assert math.sqrt(ratio) == pytest.approx(math.sqrt(2) / window, rel=1e-9)
    assert rest.states["l"]["p"] == pytest.approx(math.sqrt(ratio), rel=1e-12)


# --- TCP over them --------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [TCP_RED, TCP_PI], ids=lambda law: law.name)
def test_equilibrium_of_hollot_misra_towsley_gong(law: fc.Link) -> None:
    """Printed: N = 60, C = 3750 packets/s, T_p = 0.2 s give W0 = 15, p0 = 0.008, R0 = 0.246 s."""
    rest = fc.equilibrium(tcp(law, 60, 0.2))
    queue = float(rest.queueing_delay[0])
    window = rest.states["tcp"]["W"] / 60
    assert window == pytest.approx((0.2 + queue) * 3750 / 60, rel=1e-9)
    assert float(rest.mark[0]) * window**2 == pytest.approx(2, rel=1e-9)
    assert rest.loss.item() == rest.link_drop.item() == 0
    assert rest.link_mark.item() == pytest.approx(rest.mark.item(), rel=1e-15)
    if law is TCP_PI:
        assert float(rest.rtt[0]) == pytest.approx(0.246, abs=1e-3)
        assert (round(window), round(float(rest.mark[0]), 3)) == (15, 0.008)
    else:
        assert SLOPE * (queue - 0.04) == pytest.approx(float(rest.mark[0]), rel=1e-9)


VERDICTS = [  # by the loop as published, and by the network's own linearisation
    (TCP_RED, 60, 0.2, True, True),
    (TCP_RED, 20, 0.2, True, True),
    (TCP_RED, 60, 1.2, False, False),
    (TCP_RED, 30, 1.2, False, False),
    (TCP_PI, 60, 0.2, True, True),
    (TCP_PI, 20, 0.2, True, True),
    (TCP_PI, 10, 0.2, True, False),
    (TCP_PI, 20, 0.4, False, False),
]


@pytest.mark.parametrize(("law", "flows", "trip", "printed", "stable"), VERDICTS)
def test_the_published_loop_and_the_exact_one_judge(
    law: fc.Link, flows: int, trip: float, printed: bool, stable: bool
) -> None:
    """Few flows tell them apart: a sender divides by a round-trip time that it has heard of."""
    published, exact, _ = tcp_loops(tcp(law, flows, trip))
    assert (published.feedback().count_unstable().unstable == 0) is printed
    assert (exact.feedback().count_unstable().unstable == 0) is stable


@pytest.mark.parametrize(
    ("law", "flows", "trip", "stable"),
    [(*VERDICTS[k][:3], VERDICTS[k][4]) for k in (0, 2, 6)],
)
def test_the_exact_verdict_is_what_the_nonlinear_run_does(
    law: fc.Link, flows: int, trip: float, stable: bool
) -> None:
    """A push dies out, or grows at the rate and frequency of the root until it hits the ends."""
    net = tcp(law, flows, trip)
    report = fc.stability(net)
    assert bool(report) is stable
    rest = fc.equilibrium(net)
    pushed = tcp(law, flows, trip, rest, 1 + 1e-7)
    ds = fc.simulate(pushed, 300, rtol=1e-10, atol=1e-14, samples=30_001)
    off, t = ds.queueing_delay.values[:, 0] - float(rest.queueing_delay[0]), ds.time.values
    if stable:
        assert np.abs(off[20_000:]).max() < 1e-2 * np.abs(off).max()
        return
    root, other = (mode.root for mode in report.modes[:2])
    size = np.abs(off)
    peaks = np.flatnonzero((size[1:-1] > size[:-2]) & (size[1:-1] >= size[2:])) + 1
    end = t[np.argmax(size > 1e-3)]
    peaks = peaks[(t[peaks] > 5 / (root - other).real) & (t[peaks] < end)]  # one mode is left
    assert len(peaks) > 4
    assert np.polyfit(t[peaks], np.log(size[peaks]), 1)[0] == pytest.approx(root.real, rel=0.02)
    assert math.pi / np.diff(t[peaks]).mean() == pytest.approx(abs(root.imag), rel=0.01)
    assert np.ptp(off[15_000:]) > 1e-2  # and it never settles


@pytest.mark.parametrize(
    ("queue", "arriving", "moves"),
    [(0.1, 2e6, 1.0), (0.1, 0.5e6, -0.5), (0.0, 0.5e6, 0.0), (0.2, 2e6, 0.0)],
)
def test_pi_hears_the_queue_move_and_at_its_ends_it_does_not(
    queue: float, arriving: float, moves: float
) -> None:
    """An empty queue does not fall, and a full one does not rise."""
    q, p = fc.PI.states
    now = {q: queue, y: arriving, c: 1e6, q_max: 0.2, **fc.PI.params}
    slope = float(unfold(fc.PI.flow[p]).subs(now))
    assert slope == pytest.approx(0.0682 * moves + 0.03615 * (queue - 0.05))
