"""The sawtooth of delay-based AIMD: closed forms against integration of the window's equation."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluidcc.formulas import delay_aimd as da

NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)  # exact for the polynomials here


def sawtooth(
    alpha: float, tau0: float, T: float, C: float, beta: float, n: int
) -> tuple[float, float, float]:
    """Period, utilisation and mean queueing delay, by quadrature over the windows of a cycle."""
    top = C * (T + tau0)
    edges = np.unique([beta * top, np.clip(C * T, beta * top, top), top])
    period = sent = delay = 0.0
    for a, b in pairwise(edges):
        W = (a + b) / 2 + (b - a) / 2 * NODES
        trip = np.maximum(T, W / C)
        dt = (b - a) / 2 * WEIGHTS * trip / (n * alpha)  # W' = n alpha/trip
        period += dt.sum()
        sent += np.dot(dt, np.minimum(C, W / T))
        delay += np.dot(dt, trip - T)
    return period, sent / (C * period), delay / period


@settings(deadline=None)
@given(
    st.floats(0.1, 5.0),
    st.floats(0.005, 0.1),
    st.floats(0.01, 0.3),
    st.floats(1e3, 1e4),
    st.floats(0.3, 0.97),
    st.integers(1, 9),
)
def test_the_cycle_is_that_of_the_window_equation(
    alpha: float, tau0: float, T: float, C: float, beta: float, n: int
) -> None:
    found = da.cycle(alpha, tau0, T, C, beta, n)
    period, used, delay = sawtooth(alpha, tau0, T, C, beta, n)
    assert found.period == pytest.approx(period, rel=1e-11)
    assert found.utilisation == pytest.approx(used, rel=1e-11)
    assert found.mean_queueing_delay == pytest.approx(delay, rel=1e-9)
    assert da.mean_queueing_delay(tau0, T, beta) == pytest.approx(
        found.mean_queueing_delay, rel=1e-14
    )


def test_the_adaptive_backoff_keeps_the_link_busy_and_half_a_backoff_does_not() -> None:
    T, tau0, C = 0.12, 0.02, 6250.0  # Fig. 2: 50 Mbit/s, 1000-byte packets
    beta = da.backoff_factor(T, T + tau0)
    assert da.cycle(1, tau0, T, C, beta).utilisation == pytest.approx(1.0, rel=1e-15)
    assert da.cycle(1, tau0, T, C, beta).rtt_low == pytest.approx(T, rel=1e-15)
    assert da.cycle(1, tau0, T, C, 0.5).utilisation < 0.9


def test_the_growth_is_the_integral_of_the_increase() -> None:
    Delta, rtt = 7.3, 0.1
    for coefficient, offset in ((0.5, 1.0), (0.25, 0.0)):
        total = 0.0
        for a, b in pairwise((0.0, offset, Delta)):
            at = (a + b) / 2 + (b - a) / 2 * NODES
            total += (b - a) / 2 * np.dot(WEIGHTS, da.increase(at, coefficient, offset))
        found = da.epoch_growth(Delta, rtt, coefficient, offset)
        assert found == pytest.approx(total / rtt, rel=1e-13)


def test_the_epoch_is_the_inverse_of_the_growth() -> None:
    window = np.array([2.0, 100.0, 1e4, 5e6])
    T = da.epoch_duration(window, 0.1, 0.7)
    np.testing.assert_allclose(da.epoch_growth(T, 0.1), 0.3 * window, rtol=1e-10)
    assert da.epoch_duration(10.0, 0.1, 0.5) == pytest.approx(0.5)  # one packet in each of five


def test_epochs_broadcast_over_every_argument() -> None:
    found = da.epoch_duration([100, 1000], "100 ms", [[0.5], [0.8]])
    assert found.shape == (2, 2)
    for i, beta in enumerate((0.5, 0.8)):
        for k, window in enumerate((100, 1000)):
            assert found[i, k] == da.epoch_duration(window, 0.1, beta)


def test_a_queue_at_the_backoff_is_part_of_the_window() -> None:
    assert da.epoch_duration(1000.0, 0.1, queue=40.0) == da.epoch_duration(1040.0, 0.1)


def test_for_small_thresholds_rates_are_inverse_to_the_propagation_delays() -> None:
    assert da.rtt_unfairness(0.04, 0.12, 1e-9) == pytest.approx(3.0, rel=1e-6)
    exact = np.log(1.5) / np.log(7 / 6)
    assert da.rtt_unfairness("40 ms", "120 ms", "20 ms") == pytest.approx(exact, rel=1e-12)


def test_whole_round_trips_tend_to_the_fluid() -> None:
    fluid = da.epoch_duration(1e4, 1e-3)
    assert da.epoch_duration(1e4, 1e-3, rounds=True) == pytest.approx(fluid, abs=3e-3)


def test_the_ratchet_ends_at_the_propagation_delay() -> None:
    found = da.ratchet(np.arange(5), "200 ms", 0.12, 0.75)
    np.testing.assert_allclose(found, [0.2, 0.15, 0.12, 0.12, 0.12])


def test_a_difference_decays_to_a_tenth_in_eight_backoffs_of_three_quarters() -> None:
    epochs = da.convergence_epochs(0.75)
    assert epochs == pytest.approx(8.0, abs=0.01)
    assert 0.75**epochs == pytest.approx(0.1)
