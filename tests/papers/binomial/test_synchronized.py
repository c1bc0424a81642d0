"""The interval model: against a loop over flows, against formulas, and its orbits exactly."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Symbol, log

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, InvalidInput, NegativeRate, SolverError, Unsupported
from fluidcc.formulas import binomial
from fluidcc.papers.binomial.intervals import move
from fluidcc.papers.binomial.synchronized import Synchronized

C = 1544e3
x = Symbol("x", positive=True)


def by_hand(flows: Any, rates: list[float], C: float, steps: int, delay: int = 0) -> Any:
    """Section V-B in the plainest way."""
    x, kept, late, lost, sent = list(rates), [], [False] * delay, 0.0, 0.0
    for _ in range(steps):
        kept.append(list(x))
        total = sum(x)
        sent, lost = sent + total, lost + max(total - C, 0.0)
        late.append(total > C)
        if late.pop(0):
            x = [r - sigma * r**l for r, (_, l, _, sigma) in zip(x, flows, strict=True)]
        else:
            x = [r + lam * r**-k for r, (k, _, lam, _) in zip(x, flows, strict=True)]
    return np.array(kept), lost, sent


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_it_is_the_loop_over_flows(delay: int) -> None:
    flows = [(0, 1, 1.0, 0.2), (0, 1, 0.4, 0.3), (1, 0, 30.0, 0.7), (0.5, 0.5, 5.0, 0.5)]
    flows.append((-1.5, 2, 0.01, 3e-3))
    start = [10.0, 20.0, 30.0, 5.0, 40.0]
    kept, lost, sent = by_hand(flows, start, 100.0, 400, delay)
    k, l, lam, sigma = np.array(flows).T
    run = fc.synchronized(k, l, lam, sigma, 100.0, initial=start, intervals=400, delay=delay)
    assert run.rates == pytest.approx(kept, rel=1e-9)
    assert (run.lost, run.sent) == pytest.approx((lost, sent), rel=1e-9)
    assert run.loss == pytest.approx(lost / sent)


@pytest.mark.parametrize("how", [{}, {"delay": 2}, {"missed": 0.3}, {"hears": "one"}])
def test_steps_that_are_expressions_are_the_powers_they_are(how: dict[str, Any]) -> None:
    how = {"initial": [20.0, 30.0, 25.0], "intervals": 500, "floor": 1.0, **how}
    one = fc.synchronized([0, 0.5, 0], 1.5, [1.0, 3.0, 2.0], 0.05, 100.3, **how)
    up = [1, 3 * x**-0.5, 2.0]
    other = fc.synchronized(capacity=100.3, increase=up, decrease=0.05 * x**1.5, **how)
    assert other.rates == pytest.approx(one.rates, rel=1e-12)
    assert (other.lost, other.decreases) == pytest.approx((one.lost, one.decreases))


def test_steps_of_any_kind_have_an_orbit() -> None:
    """(2) with R_D = x - ln(1 + x), which improves fairness strictly, in the plainest way."""
    steps: Any = {"increase": 1, "decrease": x - log(1 + x)}
    run = fc.synchronized(capacity=20.3, **steps, initial=[1.0, 19.0], intervals=400)
    rates, kept = np.array([1.0, 19.0]), []
    for _ in range(400):
        kept.append(rates)
        rates = np.log1p(rates) if rates.sum() > 20.3 else rates + 1
    assert run.rates == pytest.approx(np.array(kept), rel=1e-13)
    assert np.all(np.diff(run.fairness) >= -1e-15)
    orbit = run.orbit
    assert (orbit.fairness, orbit.overloads) == (pytest.approx(1), 1)
    assert np.log1p(orbit.rates.max()) == pytest.approx(orbit.rates.min())


@given(
    st.sampled_from([0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.0, 0.3]),
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9),
)
def test_simple_powers_are_powers(p: float, values: list[float]) -> None:
    x, by = np.array(values), np.linspace(0.1, 2, len(values))
    move(x, by, -1.0, p)
    old = np.array(values)
    assert x == pytest.approx(old - by * old**p, rel=1e-12, abs=1e-12 * float(np.max(by * old**p)))


@given(st.integers(1, 40), st.integers(2, 60), st.integers(1, 9))
@settings(max_examples=40)
def test_exact_and_floating_orbits_agree(n: int, steps: int, tenths: int) -> None:
    lam, sigma = Fraction(1, steps) + Fraction(1, 10007), Fraction(tenths, 10)
    exact = fc.synchronized(0, 1, lam, sigma, 1, n=n, exact=True).orbit
    assert exact.sent == sum(n * x for row in exact.rates for x in row)
    # it is an orbit: a step from its end leads to its beginning
    last, first = exact.rates[-1, 0], exact.rates[0, 0]
    assert first in (last + lam, last - sigma * last)
    if min(abs(float(n * x) - 1) for x in exact.rates[:, 0]) > 1e-9:
        floating = fc.synchronized(0, 1, float(lam), float(sigma), 1.0, n=n).orbit
        assert floating.period == exact.period
        assert floating.loss == pytest.approx(float(exact.loss), rel=1e-8, abs=1e-14)
        assert floating.efficiency == pytest.approx(float(exact.efficiency), rel=1e-10)
        assert floating.overloads == exact.overloads


def test_one_aimd_flow_by_hand() -> None:
    # 3/5, 7/10, ..., 11/10 is over 1 and is cut to 11/20: 11/20, 13/20, ..., down to 1/2.
    run = fc.synchronized(0, 1, "1/10", "1/2", 1, initial="3/5", intervals=12, exact=True)
    orbit = run.orbit
    assert (run.overloads, run.decreases) == (2, 2)  # at 10/10 nothing is lost
    found = [int(10 * rate) for rate in orbit.rates[:, 0]]
    first = found.index(5)
    assert found[first:] + found[:first] == [5, 6, 7, 8, 9, 10]
    assert (orbit.loss, orbit.efficiency) == (0, Fraction(3, 4))


def test_a_tie_that_rounding_decides_is_warned_of() -> None:
    with pytest.warns(FluidccWarning, match="within rounding"):
        _ = fc.synchronized(0, 1, 0.1, 0.5, 1.0).orbit


def test_exact_steps_of_any_integer_powers() -> None:
    run = fc.synchronized(1, 0, "1/10", "1/4", 1, initial="1/2", intervals=6, exact=True)
    third = Fraction(7, 10) + Fraction(1, 7)
    assert run.rates[:3, 0].tolist() == [Fraction(1, 2), Fraction(7, 10), third]
    floating = fc.synchronized(1, 0, 0.1, 0.25, 1.0, initial=0.5, intervals=6)
    assert run.rates.astype(float) == pytest.approx(floating.rates, rel=1e-14)
    with pytest.raises(Unsupported, match="take exact=False with numbers in place of text"):
        _ = run.orbit
    assert floating.orbit.period > 1


def test_the_orbit_is_where_long_runs_end() -> None:
    for k, l in ((0.5, 0.5), (1, 0), (-1.5, 2)):
        lam, sigma = 0.03, 0.3
        orbit = fc.synchronized(k, l, lam, sigma, 1.0).orbit
        run = fc.synchronized(k, l, lam, sigma, 1.0, intervals=20000 * orbit.period)
        assert run.loss == pytest.approx(orbit.loss, rel=1e-3)
        assert run.efficiency == pytest.approx(orbit.efficiency, rel=1e-3)
        assert 0 < orbit.period < 20000


def test_small_steps_are_the_sawtooth() -> None:
    # with steps of a 2000th of the swing the fluid's efficiency (28) is met to that order
    for k, l in ((0, 1), (1, 0), (0.5, 0.5), (-1.5, 2)):
        orbit = fc.synchronized(k, l, 1.0003e-4, 0.4, 1.0).orbit
        wanted = binomial.efficiency(k, l, 0.4, 1.0)
        assert orbit.efficiency == pytest.approx(wanted, rel=2e-3)
        assert 0 < orbit.loss < binomial.loss(k, l, 1.0003e-4, 0.4, 1.0)


def test_flows_of_a_class_are_as_many_flows() -> None:
    one = fc.synchronized(0, 1, 5e3, 0.5, "1544 kbit/s", n=7, intervals=300)
    many = fc.synchronized(0, 1, 5e3, 0.5, C, initial=[C / 7] * 7, intervals=300)
    assert many.rates == pytest.approx(np.repeat(one.rates, 7, axis=1), rel=1e-12)
    assert (one.lost, one.overloads) == pytest.approx((many.lost, many.overloads), rel=1e-9)
    assert one.orbit.loss == pytest.approx(many.orbit.loss, rel=1e-6)


def test_fair_rates_stay_fair_and_unfair_ones_become_so() -> None:
    run = fc.synchronized(0, 1, 1.0, 0.5, 100.3, initial=[20.0, 80.0], intervals=600)
    assert np.all(np.diff(run.fairness) >= -1e-15)  # AIMD is monotone
    assert run.orbit.fairness == pytest.approx(1)


def test_the_fairness_of_an_orbit_is_its_worst() -> None:
    """Peaks 2 lam/sigma, here 2/5 and 4/5, are cut to 1/5 and 3/5: from 1/2 down to 1/3."""
    orbit = fc.synchronized(0, 1, "1/10", ["1/2", "1/4"], 1, exact=True).orbit
    assert (orbit.period, orbit.fairness) == (3, 1 / 3)


def test_one_flow_hears_in_proportion_to_its_rate() -> None:
    how: Any = {"initial": np.full(20, 500.0), "intervals": 4000, "hears": "one", "seed": 3}
    run, again = (fc.synchronized(0, 1, 1.0, 0.5, 1e4, **how) for _ in range(2))
    assert np.array_equal(run.rates, again.rates)
    assert run.decreases == run.overloads
    fell = np.diff(run.rates, axis=0) < 0
    assert fell.sum(axis=1).max() == 1
    # those that fall have higher rates than the mean: E x^2/(E x)^2 of it
    cut = run.rates[:-1][fell.any(axis=1)]
    chosen = run.rates[:-1][fell].mean() / cut.mean()
    assert chosen == pytest.approx((cut**2).mean() / cut.mean() ** 2, rel=0.05)


@pytest.mark.parametrize("l", [0.0, 0.5, 1.0])
def test_a_flow_that_is_alone_hears_alone(l: float) -> None:
    alone, one = (
        fc.synchronized(0.5, l, 2.0, 0.4, 50.0, initial=[10.0], intervals=200, hears=hears)
        for hears in ("all", "one")
    )
    assert alone.decreases > 1
    np.testing.assert_allclose(one.rates, alone.rates, rtol=1e-12)


def test_missed_feedback_costs_losses() -> None:
    how: Any = {"initial": [400.0, 500.0], "intervals": 20000}
    heard, missed = (fc.synchronized(0, 1, 1.0, 0.5, 1e3, missed=p, **how) for p in (0, 0.5))
    assert missed.loss > 1.5 * heard.loss


def test_a_floor_instead_of_a_negative_rate() -> None:
    with pytest.raises(NegativeRate, match="(29)"):
        _ = fc.synchronized(1, 0, 1.0, 4.0, 100.0, n=30, intervals=50)
    held = fc.synchronized(1, 0, 1.0, 4.0, 100.0, n=30, floor=1.0, intervals=50)
    assert held.rates.min() == 1.0


@pytest.mark.parametrize(
    ("given", "how", "says"),
    [
        ((0, 1, 1.0, 0.5, 10.0), {"missed": 0.1}, "at random"),
        ((-1, 1, "1/10", "1/12", 1), {"exact": True}, "does not attract"),
        ((0, 0, "1/10", "1/9", 1), {"initial": ["1/5", "1/3"], "exact": True}, "attract|periodic"),
        ((0.5, 0.5, 1, "1/2", 10), {"exact": True, "intervals": 3}, "integer powers"),
        ((0, 1, 1, "1/2", 10), {"exact": True, "delay": 2}, "immediate feedback"),
        ((1, 0, "1/3", "1/7", 10), {"exact": True, "intervals": 40}, "fractions of more than"),
    ],
)
def test_orbits_that_are_not_there_and_what_is_not_exact(given: Any, how: Any, says: str) -> None:
    with pytest.raises((SolverError, Unsupported), match=says):
        _ = fc.synchronized(*given, **how).orbit


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"capacity": "3 ms"}, "the capacity is '3 ms'"),
        ({"initial": [1.0, 2.0], "k": [0, 0, 0]}, "do not fit together"),
        ({"initial": [[1.0]]}, r"shape \(1, 1\); give numbers"),
        ({"missed": 1.0}, "missed is 1"),
        ({"hears": "none"}, "hears is 'none'"),
        ({"hears": "one", "n": 2}, "its own rate"),
    ],
)
def test_arguments_are_checked(changes: dict[str, Any], text: str) -> None:
    arguments = {"k": 0, "l": 1, "lam": 1.0, "sigma": 0.5, "capacity": 10.0} | changes
    with pytest.raises(InvalidInput, match=text):
        fc.synchronized(**arguments)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"increase": 1}, InvalidInput, "k, l, lam, sigma, decrease are left out"),
        ({"increase": 1, "decrease": x, "k": 0}, InvalidInput, "l, lam, sigma are left out"),
        ({"increase": Symbol("a") * x, "decrease": x / 2}, InvalidInput, "in a, x; give one in"),
        ({"increase": "x", "decrease": x / 2}, InvalidInput, "increase is 'x'"),
        ({"increase": [1, 2], "decrease": [x] * 3}, InvalidInput, "2 expressions and decrease"),
        ({"increase": 1, "decrease": x / 2, "exact": True}, Unsupported, "integer powers"),
        ({"increase": 1, "decrease": 2 * x, "intervals": 9}, NegativeRate, r"\(20\)"),
        ({"increase": log(-x), "decrease": x / 2, "intervals": 9}, NegativeRate, "no finite"),
    ],
)
def test_steps_are_powers_or_expressions_in_the_rate(given: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        fc.synchronized(capacity=10, **given)


@pytest.mark.parametrize("exact", [False, True])
def test_a_run_that_keeps_nothing_ends_where_one_that_keeps_all_does(exact: bool) -> None:
    def run(intervals: int, keep: bool = True) -> Synchronized:
        how: Any = {"n": [2, 1], "initial": [20, 30], "exact": exact}
        return fc.synchronized(0, 1, 1, 0.5, 100, intervals=intervals, keep=keep, **how)

    long, kept, brief = run(38), run(37), run(37, keep=False)
    assert brief.rates.shape == (1, 2)
    assert np.array_equal(brief.rates[0], long.rates[37])
    for name in ("sent", "lost", "carried", "intervals", "loss", "efficiency"):
        assert getattr(brief, name) == getattr(kept, name), name
