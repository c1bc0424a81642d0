"""Recurrences of labelled instants, and quadrature between breaks, against what is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fluidcc.numerics.periodic import find_recurrence, smooth_pieces


def test_the_shortest_cycle_is_found_with_its_convergence() -> None:
    gaps = np.tile([0.1, 0.4, 0.2], 12) + 0.05 * 0.5 ** (np.arange(36) // 3)
    times = np.cumsum(gaps)
    found = find_recurrence(times, list("bca" * 12), close=0.01)
    assert found is not None
    assert found.events == 3
    assert found.period == pytest.approx(times[-1] - times[-4], abs=0)
    np.testing.assert_allclose(found.errors[1:] / found.errors[:-1], 0.5, rtol=0.01)


def test_equal_intervals_of_two_owners_are_a_cycle_of_two() -> None:
    found = find_recurrence(np.arange(20.0), ["a", "b"] * 10)
    assert found is not None
    assert (found.events, found.period, found.start) == (2, 2.0, 17.0)


@pytest.mark.parametrize(
    ("times", "labels"),
    [(np.arange(3.0), "aaa"), (np.cumsum(1.1 ** np.arange(40)), "a" * 40), (np.arange(12.0), "aabbbaababba"), ([], "")],
)
def test_what_does_not_repeat_is_no_cycle(times: object, labels: str) -> None:
    assert find_recurrence(np.asarray(times, dtype=np.float64), list(labels)) is None


def test_integrals_and_extremes_are_those_of_the_pieces() -> None:
    """exp on (0, 1), then a sine that jumps down and has its maximum inside: the mean and both extremes."""
    pieces = smooth_pieces(0.0, 4.0, np.array([1.0, 1.0 + 1e-13, 5.0]), least=3)
    t = pieces.nodes
    assert np.all(np.diff(t.ravel()) > 0)
    values = pieces.limits(np.where(t < 1, np.exp(t), np.sin(t) - 2))
    exact = math.e - 1 + math.cos(1) - math.cos(4) - 6
    assert pieces.mean(values) == pytest.approx(exact / 4, rel=1e-9)
    assert pieces.extremes(values) == pytest.approx((math.sin(4) - 2, math.e), rel=1e-10)
    turned = pieces.limits(np.where(t < 1, 0.0, np.sin(t)))
    assert pieces.extremes(turned)[1] == pytest.approx(1.0, rel=1e-9)
