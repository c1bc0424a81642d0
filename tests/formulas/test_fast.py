"""Persistent congestion: the closed forms against the equations that they solve."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluidcc.base.errors import InvalidInput
from fluidcc.formulas import fast

flows = st.integers(1, 500)
capacities = st.floats(1e2, 1e6)
alphas = st.floats(1.0, 500.0)


def test_the_threshold_of_the_paper_is_108_ms() -> None:
    """Eight flows with alpha = 50 packets of 1000 bytes on 100 Mbit/s."""
    assert round(1e3 * fast.rate_reduction_threshold(8, 100e6 / 8000, 50)) == 108


@settings(deadline=None)
@given(flows, capacities, alphas)
def test_rates_and_backlog_are_an_equilibrium(n: int, C: float, alpha: float) -> None:
    """(2) for each flow, alpha packets above what it takes for propagation; the link is full."""
    rate, own = fast.equilibrium_rates(n, C, alpha), fast.newcomer_backlog(n, alpha)
    queue = (own + n * alpha) / C
    assert rate.newcomer == pytest.approx(alpha / (queue - n * alpha / C), rel=1e-12)
    assert rate.others == pytest.approx(alpha / queue, rel=1e-12)
    assert rate.newcomer + n * rate.others == pytest.approx(C, rel=1e-12)
    assert fast.unfairness(n) == pytest.approx(rate.newcomer / rate.others, rel=1e-12)


def test_unfairness_grows_as_the_square_root_of_the_flows() -> None:
    n = np.array([1e4, 1e6, 1e8])
    np.testing.assert_allclose(fast.unfairness(n) / np.sqrt(n), 1.0, atol=6e-3)


@settings(deadline=None)
@given(st.integers(1, 40), capacities, alphas)
def test_each_arrival_is_an_equilibrium_and_the_backlog_is_more_than_fair(
    m: int, C: float, alpha: float
) -> None:
    backlog, rate = fast.arrival_recursion(m, C, alpha)
    met = np.concatenate([[0.0], backlog[:-1]])
    for j in range(m):
        np.testing.assert_allclose(
            rate[j, : j + 1], alpha * C / (backlog[j] - met[: j + 1]), rtol=1e-9
        )
        assert rate[j].sum() == pytest.approx(C, rel=1e-12)
        assert np.all(np.diff(rate[j, : j + 1]) > 0)  # the later, the more
    assert np.all(backlog >= alpha * np.arange(1, m + 1) * (1 - 1e-12))


@settings(deadline=None)
@given(
    flows,
    capacities,
    alphas,
    st.floats(-2.0, 0.99).filter(lambda v: abs(v) > 1e-3),
    st.floats(1e-3, 1.0),
)
def test_the_estimator_finds_flows_capacity_and_delay(
    n: int, C: float, alpha: float, theta: float, t: float
) -> None:
    x0, d = fast.equilibrium_rates(n, C, alpha).newcomer, 0.04
    change = fast.rtt_change(theta, t, x0, C)
    assert fast.estimate_flows(theta, t, change) == pytest.approx(n, rel=1e-9)
    assert fast.estimate_capacity(theta, t, change, x0) == pytest.approx(C, rel=1e-9)
    taken = d + n * alpha / C
    assert fast.corrected_delay(taken, theta, t, change, alpha, x0) == pytest.approx(
        d, abs=1e-9 * taken
    )
    assert fast.probe_backlog(theta, t, x0) == pytest.approx(-change * C, rel=1e-9)


def test_capacities_are_in_packets_a_second_as_numbers_and_as_text() -> None:
    rates = fast.equilibrium_rates(8, 12500, 50)
    assert fast.equilibrium_rates(8, "12.5 kpackets/s", "50 packets") == rates
    text, plain = (fast.arrival_recursion(3, C, 50).rate for C in ("12500 packets/s", 12500))
    assert np.array_equal(text, plain)
    for formula in (fast.equilibrium_rates, fast.rate_reduction_threshold, fast.arrival_recursion):
        assert re.search(r"^ *C : .*\n.*\[packet/s\]", formula.__doc__ or "", re.MULTILINE)


def test_rates_at_any_errors_are_those_of_the_recursion_and_of_newcomers_at_once() -> None:
    C, alpha = 12500.0, 50.0
    backlog, rate = fast.arrival_recursion(4, C, alpha)
    met = np.array([0.0, *backlog[:-1]]) / C
    found = fast.rates_of_errors(met, C, alpha)
    assert found.rate == pytest.approx(rate[-1])
    assert found.backlog == pytest.approx(backlog[-1])
    for n, m in ((4, 2), (9, 3), (5, 1)):
        errors = [0.0] * n + [n * alpha / C] * m
        queue, rate = fast.rates_of_errors(errors, C, alpha)
        assert rate == pytest.approx(alpha / (queue / C - np.array(errors)))
        assert rate.sum() == pytest.approx(C)
        assert fast.flows_together(m, rate[-1], C) == pytest.approx(n)
    with pytest.raises(InvalidInput, match="one flow after the other"):
        fast.rates_of_errors([], C, alpha)
