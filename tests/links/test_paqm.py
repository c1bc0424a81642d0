"""The inner loop of P-AQM: its samples against the recursion (1) to (3)."""

import numpy as np
import pytest

import fluidcc as fc

C, DT = 1e6, 0.02


def recursion(
    rate: float, steps: int, K: float = 0.3, a: float = 0.3, target: float = 0.04
) -> np.ndarray:
    """(1) to (3) in bits, as printed, of a constant rate that nobody slows down."""
    r, rows = 0.0, []
    for k in range(1, steps + 1):
        queue = max(0.0, (rate - C) * k * DT)
        r = (1 - a) * r + a * rate
        u = C / r + K * (target * C - queue) / (DT * r) if r > C else 1.0
        rows.append((r, min(1.0, max(0.0, u))))
    return np.array(rows)


@pytest.mark.parametrize("rate", [0.6e6, 1.1e6, 1.3e6, 4e6])
def test_samples_are_those_of_the_recursion(rate: float) -> None:
    path = {"law": fc.PAQM(dT=DT, a=0.3), "capacity": C, "delay": 0.01}
    net = fc.dumbbell([fc.CBR(rate=rate)], path)
    ds = fc.simulate(net, 31 * DT, t_eval=DT * np.arange(1, 31) + 0.3 * DT)
    wanted = recursion(rate, 30)
    np.testing.assert_allclose(ds.PAQM_r.values[:, 0], wanted[:, 0], rtol=1e-9)
    np.testing.assert_allclose(ds.PAQM_u.values[:, 0], wanted[:, 1], atol=1e-9)


def test_an_idle_link_marks_nothing() -> None:
    net = fc.dumbbell([fc.CBR(rate=0)], {"law": fc.PAQM, "capacity": C, "delay": 0.01})
    assert np.all(fc.simulate(net, 1).PAQM_u.values == 1)


def test_marks_slow_tcp_down_before_the_buffer_is_full() -> None:
    net = fc.Network().link("l", fc.PAQM, capacity=30e6, delay=0.1, buffer=3.2e6)
    net.flow("tcp", fc.StaticReno(a=60, b=0.5 / 60), route=["l"], return_delay=0.1)
    ds = fc.simulate(net, 60, samples=6001)
    assert float(ds.lost[-1, 0]) == 0
    assert 0.04 < float(ds.queueing_delay.max()) < 0.8 * 3.2e6 / 30e6
    assert float(ds.mark.max()) > 0.01
