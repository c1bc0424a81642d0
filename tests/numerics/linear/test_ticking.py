"""Multipliers of systems with delays and ticks: by hand, and of systems without ticks by roots."""

import numpy as np
import pytest

from fluidcc.base.errors import Undecided, Unsupported
from fluidcc.numerics.linear.dlti import DelayLTI
from fluidcc.numerics.linear.ticking import Ticking, Update, common_period, multipliers

ONE = np.eye(1)


@pytest.mark.parametrize("late", [0.0, 0.1, 0.4, 0.73])
@pytest.mark.parametrize("T", [0.5, 0.8])
def test_a_scalar_with_held_feedback_is_a_short_recursion(late: float, T: float) -> None:
    """x' = -a x - k u, where u is x(nT - d) from nT on: x_(n+1) = E(T) x_n - J(T) u_n."""
    a, k = 1.3, 2.0
    m = int(np.ceil(late / T))  # x(nT - d) is r after the tick n - m
    r = m * T - late
    A, C = np.array([[-a, -k], [0.0, 0.0]]), np.array([[1.0, 0.0]])
    if late:
        system = Ticking(A, np.zeros((2, 1)), C, np.zeros((1, 1)), np.array([late]), [
            Update(T, 0.0, np.diag([1.0, 0.0]), np.array([[0.0], [1.0]]))])  # fmt: skip
    else:
        G = np.array([[1.0, 0.0], [1.0, 0.0]])
        system = Ticking(A, np.zeros((2, 0)), np.zeros((0, 2)), np.zeros((0, 0)), np.zeros(0), [
            Update(T, 0.0, G, np.zeros((2, 0)))])  # fmt: skip
    all_kept, kept = np.exp(-a * np.array([T, r]))
    all_held, by_held = k * (1 - np.array([all_kept, kept])) / a
    M = np.zeros((2 * m + 1, 2 * m + 1))  # of x_n, ..., x_(n-m), u_(n-1), ..., u_(n-m)
    u = np.zeros(2 * m + 1)
    u[m] = kept
    u[2 * m] -= by_held if m else 0.0
    M[0] = -all_held * u
    M[0, 0] += all_kept
    M[1 : m + 1, :m] = np.eye(m)
    if m:
        M[m + 1] = u
        M[m + 2 :, m + 1 : -1] = np.eye(m - 1)
    wanted = np.linalg.eigvals(M)
    found, error = multipliers(system, T)
    assert error < 1e-8
    for value in wanted[np.abs(wanted) > 1e-3]:
        assert np.abs(found - value).min() < 1e-9
    assert abs(found[0]) == pytest.approx(np.abs(wanted).max(), rel=1e-9)


def test_without_ticks_multipliers_are_powers_of_roots() -> None:
    """x' = -x + 0.4 x(t - 0.7) and a signal that hears itself, w = x + 0.3 w(t - 0.2)."""
    B, C = np.array([[0.4, -0.5]]), np.array([[1.0], [1.0]])
    D, delays = np.array([[0.0, 0.0], [0.0, 0.3]]), np.array([0.7, 0.2])
    period = 0.1
    nothing = Update(period, 0.0, ONE, np.zeros((1, 2)))
    found, _ = multipliers(Ticking(-ONE, B, C, D, delays, [nothing]), period)
    lti = DelayLTI(-ONE, B, C, D, delays=delays)
    assert len(found) >= 3
    for root in lti.roots(3):
        assert np.abs(found - np.exp(period * root)).min() < 1e-8


def test_of_simultaneous_ticks_the_first_listed_is_first() -> None:
    """u takes x, then x is halved, each second: x halves before u reads it only if listed so."""
    A, none = np.array([[0.0, -1.0], [0.0, 0.0]]), np.zeros((2, 0))
    read = Update(1.0, 0.0, np.array([[1.0, 0.0], [1.0, 0.0]]), none)
    halve = Update(1.0, 0.0, np.diag([0.5, 1.0]), none)
    for order, kept in (((read, halve), -0.5), ((halve, read), 0.0)):
        system = Ticking(A, none, none.T, np.zeros((0, 0)), np.zeros(0), order)
        found, _ = multipliers(system, 1.0)
        assert found[0] == pytest.approx(kept, abs=1e-12)


def test_ticks_between_ticks_are_where_they_are() -> None:
    """A rate -k x(0) from 0 on, and -k x(s) from s on: two factors."""
    A, none, k, s = np.array([[0.0, -1.0], [0.0, 0.0]]), np.zeros((2, 0)), 0.9, 0.35
    G = np.array([[1.0, 0.0], [k, 0.0]])
    ticks = [Update(1.0, first, G, none) for first in (0.0, s)]
    found, _ = multipliers(Ticking(A, none, none.T, np.zeros((0, 0)), np.zeros(0), ticks), 1.0)
    assert found[0] == pytest.approx((1 - k * s) * (1 - k * (1 - s)), rel=1e-10)


def test_a_quick_loop_beside_a_slow_tick_is_not_missed() -> None:
    """x' = -3.2 x(t - 0.5) swings 10 times between two ticks of a state that has nothing to do with
    it: few nodes a tick would agree on multipliers that are none.
    """
    A, B = np.zeros((2, 2)), np.array([[-3.2], [0.0]])
    C, D, period = np.array([[1.0, 0.0]]), np.zeros((1, 1)), 20.0
    tick = Update(period, 0.0, np.diag([1.0, 0.5]), np.zeros((2, 1)))
    found, _ = multipliers(Ticking(A, B, C, D, np.array([0.5]), [tick]), period)
    root = DelayLTI(A[:1, :1], B[:1], C[:, :1], D, delays=[0.5]).roots(1)[0]
    assert abs(found[0]) == pytest.approx(np.exp(period * root.real), rel=1e-6)


def test_what_takes_too_many_pieces_is_undecided() -> None:
    G = np.diag([1.0, 0.0])
    A = np.array([[-1.0, -1.0], [0.0, 0.0]])
    H = np.array([[0.0], [1.0]])
    tick = Update(1e-3, 0.0, G, H)
    system = Ticking(
        A, np.zeros((2, 1)), np.array([[1.0, 0.0]]), np.zeros((1, 1)), np.array([30.0]), [tick]
    )
    with pytest.raises(Undecided, match="takes too many pieces"):
        multipliers(system, 1e-3)


def test_periods_without_a_common_multiple_are_refused() -> None:
    assert common_period([0.16, 0.2]) == pytest.approx(0.8)
    assert common_period([0.1, 0.0999]) == pytest.approx(99.9)
    with pytest.raises(Unsupported, match="no short common multiple"):
        common_period([0.1, 0.1 * np.pi])
