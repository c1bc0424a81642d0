"""Networks that people asked about in public, each with its thread and its right value."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sympy import Max, Min, Rational, symbols

import fluidcc as fc
from fluidcc.symbols import RTT, c, packet, pi, y

W, one = symbols("W one", positive=True)
Halving = fc.Source(
    "Halving",
    {W: one / RTT - W**2 * pi / (2 * RTT * one)},
    {"rate": W * packet / RTT},
    params={one: 1.0},
    units={W: "packet", one: "packet"},
    lower={W: 1},
    initial={W: 10},
)


@pytest.mark.parametrize(
    ("rtt", "share"), [(0.004, 0.0), (0.006, 0.04580152671755712), (0.010, 1.0)]
)
def test_a_round_trip_of_pushing_passes_the_threshold_of_marks(rtt: float, share: float) -> None:
    """private-octopus/picoquic#2029: 25 % above capacity for one round trip, by hand."""
    q, low, span = symbols("q low span", nonnegative=True)
    ramp = fc.Link(
        "Ramp", {q: (y - c) / c}, {"mark": Min(1, Max(0, (q - low) / span))}, queue=q,
        lower={q: 0}, params={low: 1476e-6, span: 524e-6},
        units={q: "s", low: "s", span: "s"}, initial={q: 0},
    )  # fmt: skip
    pattern = [(0, "100 Mbit/s"), (1, "125 Mbit/s"), (1 + rtt, "100 Mbit/s")]
    net = fc.Network().link("l", ramp, capacity="100 Mbit/s", delay=rtt / 2)
    net.flow("u", fc.CBR, route=["l"], pattern=pattern)
    assert fc.simulate(net, until=1.2).loss[-1, 0] == pytest.approx(share, abs=1e-6)


def test_cubic_that_loses_every_5000th_packet() -> None:
    """NTAP/rfc8312bis PR#158, h2o/quicly#679: times of losses by the exact map."""
    last, s, n = symbols("last s n", nonnegative=True)
    C, b, N = symbols("C b N", positive=True)
    K = fc.Let("K", (last * (1 - b) / C) ** Rational(1, 3))
    cubic = fc.Source(
        "Cubic", {W: 3 * C * (s - K) ** 2, last: 0, s: 1, n: W / RTT},
        {"rate": W * packet / RTT}, params={C: 0.4, b: 0.7, N: 5000.0},
        units={W: "packet", last: "packet", s: "s", n: "packet", C: "packet/s^3", b: "1",
               N: "packet"},
        lower={W: 1}, initial={W: 63, last: 90, s: 0, n: 0},
        jumps=(fc.Jump(when=n - N, reset={W: b * W, last: W, s: 0, n: 0}, refractory=0),),
    )  # fmt: skip
    net = fc.Network().link("l", fc.DropTail, capacity="10 Gbit/s", delay=0.04)
    times = fc.simulate(net.flow("a", cubic, route=["l"]), until=60).jump_time.values
    expected: list[float] = []
    most = 90.0
    for _ in range(12):  # 5000 packets are the integral of most + 0.4 (s - k)^3 over the round trip
        k = (most * 0.3 / 0.4) ** (1 / 3)
        roots = np.roots([0.1, -0.4 * k, 0.6 * k**2, most - 0.4 * k**3, -5000 * 0.08])
        took = min(root.real for root in roots if abs(root.imag) < 1e-9 and root.real > 0)
        most += 0.4 * (took - k) ** 3
        expected.append(took + sum(expected[-1:]))
    np.testing.assert_allclose(times[:12], expected, atol=2e-5)


def test_losses_around_a_ring_of_full_links() -> None:
    """netiken/m3#5, codes-org/codes#257: each link passes a on, a = 2.5 + 2.5 * 4/a [Mbit/s]."""
    net = fc.Network()
    for i in range(3):
        net.link(f"l{i}", fc.DropTail, capacity=4e6, delay=0.005, buffer="20 packets")
    for i in range(3):
        net.flow(f"f{i}", fc.CBR(rate=2.5e6), route=[f"l{i}", f"l{(i + 1) % 3}"])
    run = fc.simulate(net, until=30)
    arrivals = (2.5 + np.sqrt(2.5**2 + 4 * 2.5 * 4)) / 2
    assert run.arrival_rate[-1, 0] / 1e6 == pytest.approx(arrivals, abs=1e-6)
    assert run.loss[-1, 0] == pytest.approx(1 - (4 / arrivals) ** 2, abs=1e-6)


def test_threads_and_a_forked_process_have_the_same_numbers() -> None:
    """numba/numba#9288, #7872."""

    def numbers(beta: float) -> tuple[float, float]:
        flows = {"a": fc.LDCC(beta=beta), "b": fc.LDCC}
        net = fc.dumbbell(flows, {"capacity": "3 Mbit/s"}, rtt="50 ms")
        rate = float(fc.simulate(net, until=10, samples=11).rate[-1, 0])
        return rate, fc.stability(net).gain_margin

    betas = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3]
    expected = [numbers(beta) for beta in betas]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(numbers, betas)) == expected
    child = os.fork()
    if child == 0:
        os._exit(0 if [numbers(beta) for beta in betas[:3]] == expected[:3] else 1)
    assert os.waitpid(child, 0)[1] == 0
