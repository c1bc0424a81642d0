"""Candidates for Lyapunov functions: those that are known to be, and those that are known not to
be.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from sympy import Float, Symbol, log

import fluidcc as fc
from fluidcc.analysis.passivity import (
    Storage,
    check_storage,
    evaluated,
    paper_storage,
    repaired_storage,
    steepest,
)
from fluidcc.analysis.undelayed import Undelayed, undelayed
from fluidcc.base.errors import InvalidInput, UnknownName, Unsupported


@pytest.fixture(scope="module")
def held() -> Undelayed:
    return undelayed(fc.dumbbell([fc.LDCC] * 2, {"capacity": 3.5e6}, rtt=0.05), held=("k",))


@pytest.fixture(scope="module")
def free() -> Undelayed:
    return undelayed(fc.dumbbell([fc.LDCC] * 2, {"capacity": 3.5e6}, rtt=0.05))


def test_the_papers_function_grows_somewhere(held: Undelayed) -> None:
    found = check_storage(held, paper_storage(held), samples=256)
    assert found.positive_definite
    assert not found.decreasing
    assert found.rate > 0.1
    assert found.dissipation[-1] > 0 > found.dissipation[0]  # indefinite at the equilibrium
    state = np.array(list(found.counterexample.values()))
    storage = paper_storage(held)
    terms = evaluated(held.states, storage.terms(held), state)
    assert terms.sum() > 0
    # The same number from the equations of the paper, written out here.
    x, q = state[:2], state[2]
    k, alpha, still = 0.4 / float(held.rest.rtt[0]), 0.8, 1.75e6
    slope = (x.sum() - 3.5e6) / 3.5e6
    v = 0.1 * max(q + 0.025 - 0.1, 0) / (q + 0.05)
    own = np.sum((x - still) / x / (k * alpha) * k * x * (20e3 / x - v - slope))
    q_still = float(held.rest.queueing_delay[0])
    assert terms.sum() == pytest.approx(own + 3.5e6 * (q - q_still) * slope, rel=1e-5)


def test_the_repaired_function_never_grows(free: Undelayed, held: Undelayed) -> None:
    for system in (free, held):
        found = check_storage(system, repaired_storage(system), samples=256)
        assert found
        assert found.counterexample == {}
        assert found.rate <= 0
        assert np.all(found.curvature > 0)


def test_growth_by_a_hundred_millionth_is_growth(held: Undelayed) -> None:
    """V' = little f1 f2 of terms f1 f2 and -(1 - little) f1 f2: of their sizes little/2, up or
    down.
    """
    one, other, _ = held.states
    for little in (1e-8, 1e-10):
        kept = Float(1 - little, 30)
        gradient = {one: held.flow[other], other: -kept * held.flow[one]}
        found = check_storage(held, Storage("nearly balanced", gradient), samples=64)
        assert not found.decreasing
        assert found.rate == pytest.approx(little / 2, rel=1e-4)


def test_candidates_are_made_and_checked_by_the_undelayed_network_itself() -> None:
    """By public names alone: sum (x - x^)^2 + (q - q^)^2 is positive definite, and is told from
    V* by its growth.
    """
    system = fc.undelayed(fc.dumbbell([fc.LDCC] * 2, {"capacity": 3.5e6}, rtt=0.05), held="k")
    assert isinstance(system, Undelayed)
    assert system.check(system.repaired_storage(), samples=64)
    for printed in (system.paper_storage(), system.paper_storage(alpha=2.0)):
        found = system.check(printed, samples=64)
        assert (found.positive_definite, found.decreasing) == (True, False)
    squares = sum((z / system.point[z] - 1) ** 2 for z in system.states)
    bare, named = (
        system.check(squares, samples=64),
        system.check(system.storage(squares, "squares"), samples=64),
    )
    assert (bare.name, named.name) == ("V", "squares")
    assert (bare.positive_definite, bare.decreasing, bare.rate) == (True, False, named.rate)
    state = dict(zip(system.states, bare.counterexample.values(), strict=True))
    grows = sum(squares.diff(z) * f for z, f in system.flow.items()).subs(state)
    assert grows > 0
    with pytest.raises(
        InvalidInput, match=r"storage is 3; give a candidate, such as system.paper_storage\(\)"
    ):
        system.check(3)
    with pytest.raises(InvalidInput, match="V contains y, no states of the network"):
        system.check(Symbol("y") ** 2)


def test_the_repaired_function_with_a_wrong_gain_is_found_out(
    free: Undelayed, held: Undelayed
) -> None:
    # Its integral holds k where the network's k moves with the delay: close, but no Lyapunov
    # function.
    wrong = Storage("V* with a constant k", repaired_storage(held).gradient)
    assert not check_storage(free, wrong, samples=256).decreasing


def test_a_formula_and_its_gradient_agree(free: Undelayed) -> None:
    x1, x2, q = free.states
    parts = [z - free.point[z] - free.point[z] * log(z / free.point[z]) for z in (x1, x2)]
    formula = Storage.of(
        free, parts[0] + parts[1] + 3.5e6 * (q - free.point[q]) ** 2 / 2, "by formula"
    )
    separate = Storage(
        "by gradient",
        {**{z: 1 - free.point[z] / z for z in (x1, x2)}, q: 3.5e6 * (q - free.point[q])},
    )
    states = np.array([[1e6, 2e6, 0.3], [3e5, 4e6, 0.01]]).T
    np.testing.assert_allclose(
        separate.values(free, states), formula.values(free, states), rtol=1e-9
    )
    assert formula.separable
    assert separate.separable
    assert abs(formula.offset) < 1e-9


@pytest.mark.slow
def test_the_printed_link_function_is_not_zero_at_rest() -> None:
    net = fc.Network().link("a", fc.DropTail, capacity=2e6, delay=0.025)
    net.link("b", fc.DropTail, capacity=3e6, delay=0.01)
    system = undelayed(net.flow("f", fc.LDCC, route=["a", "b"]), held=("k",))
    printed = paper_storage(system, literal=True)
    assert printed.offset == pytest.approx((3e6 - 2e6) * 0.01 / steepest(system), rel=1e-9)
    found = check_storage(system, printed, samples=64)
    assert not found.positive_definite
    assert "not zero" in found.why
    assert paper_storage(system).offset == 0


def test_a_function_that_is_not_positive_or_misses_a_state_is_reported(free: Undelayed) -> None:
    x1, x2, q = free.states
    negative = check_storage(
        free, Storage.of(free, -((q - free.point[q]) ** 2) - (x1 - x2) ** 2), samples=64
    )
    assert not negative.positive_definite
    some = check_storage(free, Storage.of(free, (q - free.point[q]) ** 2), samples=64)
    assert not some.positive_definite
    assert not some


def test_alpha_is_the_steepest_slope_of_any_user() -> None:
    system = undelayed(fc.dumbbell([fc.LDCC, fc.LDCC(T=0.2)], {"capacity": 3e6}, rtt=[0.3, 0.08]))
    # beta (T + e_b)/(e + e_b)^2 at the larger of T and p: flow 1 starts above its threshold.
    slopes = [0.1 * (0.1 + 0.15) / 0.3**2, 0.1 / 0.24]
    assert steepest(system) == pytest.approx(max(slopes), rel=1e-9)
    assert math.isclose(slopes[1], 0.1 * 0.24 / 0.24**2)


def test_what_does_not_apply_is_refused() -> None:
    different = undelayed(fc.dumbbell([fc.LDCC] * 2, {"capacity": 3e6}, rtt=[0.05, 0.08]))
    with pytest.raises(Unsupported, match="same gain and penalty"):
        repaired_storage(different)
    with pytest.raises(InvalidInput, match="no states of the network"):
        Storage.of(different, Symbol("z") ** 2)
    other = undelayed(
        fc.Network()
        .link("l", fc.PenaltyLink, capacity=2e6)
        .flow("f", fc.PrimalPenalty, route=["l"])
    )
    with pytest.raises(Unsupported, match="declares no gain and penalty"):
        paper_storage(other)


def test_the_report_is_readable(held: Undelayed) -> None:
    found = check_storage(held, paper_storage(held), samples=64)
    assert "no Lyapunov function" in repr(found)
    text = found._repr_html_()
    assert "<table>" in text
    assert "q_bottleneck" in text


def test_wrong_arguments_are_told(held: Undelayed) -> None:
    storage = paper_storage(held)
    assert repr(held) == "Undelayed(states: x_flow1, x_flow2, q_bottleneck; held: k)"
    with pytest.raises(
        UnknownName,
        match="no law of the network has a definition 'q' to be held; did you mean .*'k'",
    ):
        undelayed(held.net, held=("q",))
    with pytest.raises(InvalidInput, match=r"system is Storage.*; give an undelayed network"):
        check_storage(storage, held)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="samples is 0; give a whole number"):
        check_storage(held, storage, samples=0)
    with pytest.raises(InvalidInput, match="spread is nan; give a factor above 1"):
        check_storage(held, storage, spread=float("nan"))
