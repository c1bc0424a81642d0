"""Figs. 12 to 14: an integrator of its own finds the same sawtooth, and wrong results turn the
verdicts.
"""

import numpy as np
import pytest

from fluidcc.papers.ldcc import coexistence as ldcc_coexistence
from fluidcc.papers.ldcc.coexistence import sawtooth
from fluidcc.papers.zoo.ldcc import beside
from fluidcc.sources import LDCC

STEP = 1e-3


def stepped(packets: int, until: float, settle: float) -> tuple[float, float, float]:
    """Mean rates of LDCC and TCP and crossings of the buffer's limit a second, by Euler steps of
    plain numbers.
    """
    c, packet, w, beta, T, eta = 2.5e6, 8000.0, 20e3, 0.1, 0.1, 0.4
    n, limit = int(until / STEP), packets * packet / c
    q, loss = [0.0] * (n + 1), [0.0] * (n + 1)
    x, window, wait = 100e3, 1.0, 0.0
    heard, sums, cuts = 0, [0.0, 0.0], 0
    for i in range(n):
        now = i * STEP
        while heard < i and heard * STEP + q[heard] + 0.1 <= now:
            heard += 1
        k = max(heard - 1, 0)
        e, gradient = 0.05 + q[k], (q[k + 1] - q[k]) / STEP if k else 0.0
        rtt = e + 0.05
        tcp = window * packet / rtt
        y = x + tcp + 0.5e6
        q[i + 1] = min(max(q[i] + STEP * (y - c) / c, 0.0), limit)
        loss[i + 1] = (y - c) / y if q[i + 1] == limit and y > c else 0.0
        x += STEP * eta / rtt * (w - x * (beta * max(e - T, 0.0) / rtt + gradient + loss[k]))
        window += STEP / rtt
        if loss[k] > 0 and now >= wait:
            window, wait = (
                max(window / 2, 1.0),
                now + rtt + 4 * STEP,
            )  # all losses of a round trip are one
            cuts += now > settle
        if now > settle:
            sums[0] += x
            sums[1] += tcp
    span = until - settle
    return sums[0] * STEP / span, sums[1] * STEP / span, cuts / span


@pytest.mark.parametrize(("packets", "until"), [(30, 200.0), (90, 200.0)])
def test_euler_steps_find_the_same_sawtooth(packets: int, until: float) -> None:
    ldcc, tcp, pace = stepped(packets, until, 100.0)
    cycle = sawtooth(packets)
    mean = cycle.mean.rate.values
    assert ldcc == pytest.approx(mean[0], rel=0.02)
    assert tcp == pytest.approx(mean[1], rel=0.02)
    assert pace == pytest.approx(1 / cycle.period, rel=0.1)


def test_the_network_is_that_of_the_text() -> None:
    net = beside(LDCC, 30)
    assert net.base_rtt("ldcc") == pytest.approx(0.1)
    assert [net.flows[n].law.name for n in net.flow_names] == ["LDCC", "LDCC", "CBR"]


@pytest.mark.parametrize("largest", [2e6, 3.5e6, 3.6e6, 5e6, 20e6])
def test_between_the_even_capacities_nada_waits_longer(largest: float) -> None:
    c = np.linspace(0.21e6, 0.99 * largest, 4001)
    r = 0.2e6 / c
    longer = c[largest * 0.025 / c > (0.025 * r + 0.1) / (1 - r)]
    edges = ldcc_coexistence.even_capacities(largest)
    assert (edges is None) == (longer.size == 0)
    if edges is not None:
        step = c[1] - c[0]
        assert longer[[0, -1]] == pytest.approx(edges, abs=1.01 * step)
