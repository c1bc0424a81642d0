"""Recurrences of labelled instants, and quadrature between breaks, against what is known."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from fluidcc.numerics.periodic import (
    HAIR,
    find_recurrence,
    nearest_recurrence,
    return_map,
    smooth_pieces,
)


def test_the_shortest_cycle_is_found_with_its_convergence() -> None:
    gaps = np.tile([0.1, 0.4, 0.2], 12) + 0.05 * 0.5 ** (np.arange(36) // 3)
    times = np.cumsum(gaps)
    found = find_recurrence(times, np.zeros((36, 0)), close=0.01)
    assert found is not None
    assert found.marks == 3
    assert found.period == pytest.approx(times[-1] - times[-4], abs=0)
    np.testing.assert_allclose(found.changes[1:] / found.changes[:-1], 0.5, rtol=0.01)


def test_equal_intervals_with_two_states_are_a_cycle_of_two() -> None:
    found = find_recurrence(np.arange(20.0), np.tile([[1.0], [2.0]], (10, 1)))
    assert found is not None
    assert (found.marks, found.period) == (2, 2.0)


@pytest.mark.parametrize(
    ("times", "states"),
    [
        (np.arange(3.0), np.zeros((3, 1))),
        (np.cumsum(1.1 ** np.arange(40)), np.zeros((40, 1))),
        (np.arange(12.0), np.arange(12.0)[:, None]),
        (np.empty(0), np.empty((0, 1))),
    ],
)
def test_what_does_not_repeat_is_no_cycle(
    times: NDArray[np.float64], states: NDArray[np.float64]
) -> None:
    assert find_recurrence(times, states) is None


def test_the_nearest_to_a_cycle_of_two_frequencies_is_a_convergent_of_their_ratio() -> None:
    """1 + 0.1 cos(2 pi k g), g the golden ratio: Fibonacci numbers of them nearly repeat."""
    times = np.cumsum(1 + 0.1 * np.cos(2 * np.pi * np.arange(200) * (math.sqrt(5) - 1) / 2))
    assert find_recurrence(times, np.zeros((200, 0)), close=1e-5) is None
    near = nearest_recurrence(times)
    assert near is not None
    assert near.marks in (21, 34)
    assert 1e-5 < near.changes.max() < 1e-2
    assert nearest_recurrence(times[:3]) is None


def test_the_return_map_has_the_eigenvalues_of_what_made_the_responses() -> None:
    """Three inputs into five directions, one still and one forgotten at once."""
    rng = np.random.default_rng(1)
    turn = 0.8 * np.array([[np.cos(1), -np.sin(1)], [np.sin(1), np.cos(1)]])
    inner = np.zeros((5, 5))
    inner[:2, :2], inner[2, 2], inner[3, 3] = turn, 0.95, 0.3
    basis = np.linalg.qr(rng.normal(size=(7, 5)))[0]
    start = rng.normal(size=(5, 3))
    start[4] = 0.0
    seen = np.array([basis @ np.linalg.matrix_power(inner, k) @ start for k in range(5)])
    found = return_map(seen, 1e-12)
    wanted = np.array([0.95, 0.8 * np.exp(1j), 0.8 * np.exp(-1j), 0.3])
    np.testing.assert_allclose(found.multipliers, wanted, atol=1e-10)
    assert found.misfit < 1e-12
    away = basis @ (rng.normal(size=5) * [1, 1, 1, 1, 0])
    after = basis @ inner @ basis.T @ away
    np.testing.assert_allclose(found.basis @ found.error(after - away), after, atol=1e-10)


def test_what_does_not_follow_from_what_was_before_is_told() -> None:
    rng = np.random.default_rng(3)
    assert return_map(rng.normal(size=(6, 4, 2)), 1e-12).misfit > 0.3
    still = return_map(np.full((4, 3, 2), 1e-9), 1e-6)
    assert (still.misfit, len(still.multipliers)) == (0.0, 0)


def test_an_eigenvalue_that_the_responses_contradict_is_no_multiplier() -> None:
    """A decay of 0.9 a return, seen beside noise of a hundredth that follows from nothing."""
    rng = np.random.default_rng(5)
    decays = 0.9 ** np.arange(7)[:, None, None] * rng.normal(size=(1, 3))
    noise = 0.005 * rng.normal(size=(7, 2, 3))
    found = return_map(np.concatenate([decays, noise], axis=1), 1e-12)
    assert found.follows
    np.testing.assert_allclose(found.multipliers, [0.9], rtol=0.01)


def test_integrals_and_extremes_are_those_of_the_pieces() -> None:
    """exp on (0, 1), then a sine that jumps down and has its maximum inside."""
    pieces = smooth_pieces(0.0, 4.0, np.array([1.0, 1.0 + 1e-13, 5.0]), least=3)
    t = pieces.nodes
    assert np.all(np.diff(t.ravel()) > 0)
    values = pieces.limits(np.where(t < 1, np.exp(t), np.sin(t) - 2))
    exact = math.e - 1 + math.cos(1) - math.cos(4) - 6
    assert pieces.mean(values) == pytest.approx(exact / 4, rel=1e-9)
    assert pieces.extremes(values) == pytest.approx((math.sin(4) - 2, math.e), rel=1e-10)
    turned = pieces.limits(np.where(t < 1, 0.0, np.sin(t)))
    assert pieces.extremes(turned)[1] == pytest.approx(1.0, rel=1e-9)


def test_a_piece_of_ten_hairs_has_nodes_that_rise() -> None:
    """Late in a run two breaks may be nearer to each other than inner nodes are to a hair."""
    short = 10 * HAIR * 1800.0
    pieces = smooth_pieces(1700.0, 1800.0, np.array([1750.0, 1750.0 + short]))
    assert np.all(np.diff(pieces.nodes.ravel()) > 0)
    t = pieces.nodes - 1750.0
    values = pieces.limits(np.where(t < 0, t, np.where(t < short, 1e6 * t, 2 + t)))
    assert pieces.mean(values) == pytest.approx(1.0, rel=1e-7)  # (-50^2/2 + 2 50 + 50^2/2)/100
    assert pieces.extremes(values) == pytest.approx((-50.0, 52.0), rel=1e-9)
