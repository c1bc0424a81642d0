"""What a call costs and what each of its points does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluidcc.sweeps.pace import Pace


@pytest.mark.parametrize("counts", [(1, 8, 64), (3, 24, 30), (1, 60, 40), (1, 30, 30), (1, 8, 64, 5)])
def test_pace(counts: tuple[int, ...]) -> None:
    """A straight line is found from two calls of different sizes, of which the later one may be somewhat smaller."""
    pace = Pace()
    for count in counts:
        pace.learn(count, 0.01 + 0.005 * count)
    assert pace.each == pytest.approx(0.005)
    assert pace.call == pytest.approx(0.01)


def test_a_small_last_call_does_not_look_dear() -> None:
    """What is left for the last call of a job may be a point or two, of which nearly all is the call."""
    pace = Pace()
    for count in (1, 16, 256, 1):
        pace.learn(count, 5e-3 + 2e-4 * count)
    assert pace.each == pytest.approx(2e-4)


def test_a_call_that_took_longer_with_fewer_points_leaves_what_a_call_costs() -> None:
    pace = Pace()
    for count, seconds in ((1, 0.1), (10, 0.02), (100, 0.11), (90, 0.15)):
        pace.learn(count, seconds)
    assert pace.each == pytest.approx((0.15 - 0.01) / 90)
    assert pace.call == pytest.approx(0.01)


def test_an_odd_call_does_not_decide_what_a_call_costs() -> None:
    """The last of these calls met a slow moment: a call costs no more than the shortest has taken."""
    pace = Pace()
    for count, seconds in ((1, 0.5), (8, 1e-3), (64, 7e-3), (128, 0.1), (256, 0.11)):
        pace.learn(count, seconds)
        if count > 8:
            assert pace.call <= 1e-3 * (1 + 1e-9)
    assert pace.each == pytest.approx((0.11 - 1e-3) / 256)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.floats(0.85, 1.15), min_size=4, max_size=4), st.floats(1e-3, 20e-3))
def test_what_a_call_costs_is_told_by_its_shortest(slower: list[float], call: float) -> None:
    """Long calls, each in a moment of its own, would tell of 5 ms in 200 anything at all."""
    pace, each = Pace(), 2e-4
    for count, factor in zip((1, 16, 256, 1000), slower, strict=True):
        pace.learn(count, factor * (call + each * count))
    assert abs(pace.call - call) <= 0.2 * call + 0.5 * each * 16
