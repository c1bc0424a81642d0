"""The binomial paper's closed forms against direct integration of the sawtooth, and against each
other.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq
from sympy import log, sin

import fluidcc as fc
from fluidcc.base.errors import InvalidInput
from fluidcc.formulas import binomial
from fluidcc.formulas import binomial as f
from fluidcc.symbols import positive

x, a, s, p = positive("x a s p")

powers_k = st.one_of(st.floats(-3, 3), st.sampled_from([-2.0, -1.0, 0.0, 1.0, -1.5]))
powers_l = st.floats(-1, 3)
parts = st.floats(1e-3, 0.95)
tops = st.floats(0.1, 1e3)


def over_time(k: float, low: float, high: float, value: Callable[[float], float]) -> float:
    """Integral of value(x) over the time in which x climbs from low to high, x' = x**-k."""
    slowness = lambda y: value(np.exp(y)) * np.exp((k + 1) * y)  # noqa: E731
    return float(quad(slowness, np.log(low), np.log(high), epsrel=1e-12, epsabs=0)[0])


@given(powers_k, powers_l, parts, tops)
@settings(max_examples=150)
def test_efficiency_is_the_mean_of_the_sawtooth(k: float, l: float, z: float, U: float) -> None:
    sigma = z * U ** (1 - l)
    time, data = (over_time(k, U * (1 - z), U, value) for value in (lambda x: 1.0, lambda x: x))
    assert f.efficiency(k, l, sigma, U) == pytest.approx(data / time / U, rel=1e-9)
    assert f.cycle_time(k, l, 1.0, sigma, U) == pytest.approx(time, rel=1e-9)
    assert f.cycle_data(k, l, 1.0, sigma, U) == pytest.approx(data, rel=1e-9)


@given(powers_k, powers_l, parts, tops, st.floats(1e-3, 1e3), st.integers(1, 300))
@settings(max_examples=100)
def test_loss_is_the_overshoot_over_all_that_is_sent(
    k: float, l: float, z: float, U: float, step: float, n: int
) -> None:
    lam, sigma = step * U ** (k + 1), z * U ** (1 - l)
    over = lam * U**-k
    sent = over_time(k, U * (1 - z), U, lambda x: x) / lam
    assert f.loss(k, l, lam, sigma, n * U, n) == pytest.approx(over / (over + sent), rel=1e-9)
    assert f.loss_approximate(k, l, lam, sigma, n * U, n) == pytest.approx(over / sent, rel=1e-9)


@pytest.mark.parametrize(("k", "l"), [(0, 1), (1, 0), (0.5, 0.5), (-1.5, 2), (-2, 3)])
def test_the_convergence_factor_is_the_derivative_of_a_cycle(k: float, l: float) -> None:
    lam, sigma, U, small = 0.3, 0.4 * 4.0 ** (1 - l), 4.0, 1e-6
    up = lambda t, x: lam * x**-k  # noqa: E731
    reached = lambda t, x: x.sum() - 2 * U  # noqa: E731
    reached.terminal, reached.direction = True, 1  # type: ignore[attr-defined]
    start = np.array([U - small, U + small])
    run = solve_ivp(up, (0, 1e4), start - sigma * start**l, events=reached, rtol=1e-13, atol=1e-13)
    end = run.y[:, -1]
    slope = (end[1] - end[0]) / (2 * small)
    assert slope == pytest.approx(f.convergence_factor(k, l, sigma, U), rel=1e-5)


def test_growth_of_the_loss() -> None:
    n = np.array([1, 2, 10, 100])
    arguments = (0.5, 0.5, 2.0, 40.0, 1e6)
    loss = f.loss(*arguments, n)
    assert f.loss_increase_exact(*arguments, n) == pytest.approx(loss / loss[0], rel=1e-13)
    small = f.loss_approximate(*arguments, n)
    assert f.loss_increase(0.5, 0.5, 40.0, 1e6, n) == pytest.approx(small / small[0], rel=1e-13)
    ideal = n ** f.scalability_exponent(0.5, 0.5)
    assert f.loss_increase_two_term(0.5, 0.5, 1e-6, 1e6, n) == pytest.approx(ideal, rel=1e-6)


def test_the_paper_s_numbers() -> None:
    assert int(f.max_flows(-0.5, 0.5, 100)) == 158
    assert f.efficiency(0, 1, 0.5, 1e6) == 0.75
    assert f.tcp_friendly_alpha(0.5) == 1.0
    powers = np.array([[0, 1], [1, 0], [0.5, 0.5], [-1.5, 2]]).T
    assert f.scalability_exponent(*powers).tolist() == [2, 3, 2.5, 0]


def test_iscc_is_binomial_with_its_parameters() -> None:
    k, l, m_I, m_D = -1.5, 2.0, 20.0, 3.0
    for C in (1.0, 1.5e6):
        lam, sigma = f.iscc_parameters(k, l, C, m_I, m_D)
        n = np.array([1, 2, 50])
        loss = f.loss(k, l, lam, sigma, C, n)
        assert f.iscc_loss(k, l, m_I, m_D, n) == pytest.approx(loss, rel=1e-12)
        x = np.linspace(0.01, 1, 50) * C
        assert np.all(lam * x**-k <= x / m_I * (1 + 1e-12))  # (40)
        assert np.all(sigma * x**l <= x / m_D * (1 + 1e-12))


@given(powers_k, powers_l, st.floats(0.1, 10), st.floats(0.1, 10))
def test_windows_to_rates_and_back(k: float, l: float, alpha: float, beta: float) -> None:
    lam, sigma = f.window_to_rate(alpha, beta, k, l, "12 kbit", "100 ms")
    assert f.rate_to_window(lam, sigma, k, l, 12e3, 0.1) == pytest.approx((alpha, beta), rel=1e-12)
    W, unit = 7.0, 12e3 / 0.1
    assert lam * (W * unit) ** -k == pytest.approx(alpha * W**-k * unit, rel=1e-12)
    assert sigma * (W * unit) ** l == pytest.approx(beta * W**l * unit, rel=1e-12)


def test_a_decrease_that_takes_all_of_the_rate_away_is_refused() -> None:
    """At l = 1 the part taken away is sigma itself: all of it for sigma = 1."""
    assert 0 < f.cycle_time(1.0, 1.0, 1.0, 0.999, 1e6) < np.inf
    with pytest.raises(InvalidInput, match="must be below 1"):
        f.cycle_time(1.0, 1.0, 1.0, 1.0, 1e6)


# --- cycles of the jump automata ------------------------------------------------------------------

C, UNIT, INTERVAL = 1e6, 1e5, 0.1  # capacity and MTU/RTT [bit/s], control interval [s]
AFTER = 1e-12  # a look just after a jump [s]


@pytest.mark.parametrize("flows", [1, 3])
@pytest.mark.parametrize(
    ("k", "l", "alpha", "beta"),
    [(0, 1, 0.3, 0.5), (1, 0, 0.5, 2.0), (0.5, 0.5, 0.4, 1.0), (-1.5, 2, 0.02, 0.03),
     (-2, 3, 3e-3, 2e-3), (-1, 1, 0.05, 0.4)],
)  # fmt: skip
def test_the_cycle_of_the_automaton_is_the_formula_s(
    k: float, l: float, alpha: float, beta: float, flows: int
) -> None:
    net = fc.Network().link("l", fc.DropTail, capacity=flows * C, delay=0.002, buffer="1000 bit")
    law = fc.RateBinomial(k=k, l=l, alpha=alpha, beta=beta, m=UNIT, R=INTERVAL)
    for i in range(flows):
        net.flow(f"f{i}", law, route=["l"], return_delay=0.002, start=0, initial={"x": 0.9 * C})
    run = fc.simulate(net, 40, rtol=1e-11, atol=1e-13, samples=2)
    edges = fc.metrics.jumps(run).time.values.reshape(-1, flows)[-3:-1, 0]
    cycle = fc.simulate(net, edges[-1] + 1e-3, rtol=1e-11, atol=1e-13, t_eval=edges + AFTER)
    lam, sigma = binomial.window_to_rate(alpha, beta, k, l, UNIT, 1.0)
    low = cycle.rate.values[-1, 0]
    U = brentq(lambda top: top - sigma * top**l - low, low, 1.1 * C, xtol=1e-9, rtol=1e-15)
    time, sent = np.diff(edges)[0], np.diff(cycle.entered.values[:, 0])[0] / flows
    assert time == pytest.approx(binomial.cycle_time(k, l, lam, sigma, U, INTERVAL), rel=1e-9)
    assert sent == pytest.approx(binomial.cycle_data(k, l, lam, sigma, U, INTERVAL), rel=1e-9)
    assert sent / time / U == pytest.approx(binomial.efficiency(k, l, sigma, U), rel=1e-9)


def test_the_automaton_s_steps_are_those_of_the_interval_model() -> None:
    # one definition in SymPy, one compiled: R_I and R_D of the law against a step of
    # fc.synchronized
    for k, l, alpha, beta in ((0, 1, 0.3, 0.5), (0.5, 0.5, 0.4, 1.0), (-1.5, 2, 0.02, 0.03)):
        law = fc.RateBinomial(k=k, l=l, alpha=alpha, beta=beta, m=UNIT, R=INTERVAL)
        (x,) = law.states
        values = {**law.params, x: 0.8 * C}
        up = float(law.flow[x].subs(values)) * INTERVAL
        down = 0.8 * C - float(law.jumps[0].reset[x].subs(values))
        lam, sigma = binomial.window_to_rate(alpha, beta, k, l, UNIT, 1.0)
        for capacity, step in ((C, up), (0.5 * C, -down)):
            run = fc.synchronized(k, l, lam, sigma, capacity, initial=0.8 * C, intervals=2)
            assert run.rates[1, 0] - run.rates[0, 0] == pytest.approx(step, rel=1e-9)


@pytest.mark.parametrize(
    ("increase", "decrease", "where", "fails"),
    [
        (a, s * x, [s < 1], ""),  # AIMD
        (a, s * p * x, [s < 1, p <= 1], ""),  # AIPD, at one loss ratio for all
        (a, x - log(1 + x), [], ""),  # both (15) and (21) are strict
        (a / x, s, [], "(15), (20), (22)"),  # IIAD
        (a * x, s * x, [s < 1], "(15) or (21) strict"),  # MIMD
        (a, x - log(2 + x), [], "R_D > 0"),  # the paper's example
        (x**1.5 / 20, x**2 / 2, [x < 1], "(21)"),  # ISCC(-1.5, 2)
        (a - 2 * x, (x - sin(x)) / 2 + x / 2, [], "(15), (19), (20), R_I > 0, (22)"),
    ],
)
def test_which_steps_converge_monotonically(
    increase: Any, decrease: Any, where: Any, fails: str
) -> None:
    found = binomial.monotonic_convergence(increase, decrease, where=where)
    assert ", ".join(v.label for v in found if not v) == fails
    assert bool(found) is (not fails)
    with pytest.raises(InvalidInput, match="rate is 'y', of which neither"):
        binomial.monotonic_convergence(increase, decrease, rate="y")
