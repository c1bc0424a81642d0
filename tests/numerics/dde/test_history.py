"""The stored past of `solve_dde`: polynomial pieces, one-sided histories, bounded memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fluidcc.numerics.dde.driver import Integration
from fluidcc.numerics.dde.history import History, Pieces, delayed_states, shift_polynomial
from fluidcc.numerics.dde.input import check
from fluidcc.numerics.dde.solve import solve_dde
from fluidcc.numerics.dde.table import BreakingPoints, Delays


def pieces_of_square(count: int) -> Pieces:
    """t**2 on unit steps."""
    pieces = Pieces(1)
    for i in range(count):
        pieces.append(
            float(i), 1.0, np.array([float(i**2)]), np.array([[2.0 * i, 1.0, 0.0, 0.0]]), i + 1.0
        )
    return pieces


def test_pieces_evaluate_on_either_side_and_forget_the_oldest() -> None:
    pieces = pieces_of_square(300)
    t = np.array([0.0, 0.5, 7.0, 299.9])
    np.testing.assert_allclose(pieces(t)[0], t**2)
    assert not pieces.forget(250.0)  # there is still room
    for i in range(300, pieces.starts.size):
        pieces.append(
            float(i), 1.0, np.array([float(i**2)]), np.array([[2.0 * i, 1.0, 0.0, 0.0]]), i + 1.0
        )
    assert pieces.forget(400.5)
    assert (pieces.base, pieces.starts[0], pieces.total) == (400, 400.0, 512)
    np.testing.assert_allclose(pieces(np.array([401.5]))[0], 401.5**2)


def test_look_ups_stay_in_their_interval_and_extrapolate() -> None:
    p = pieces_of_square(4)
    p.values[2:] += 100  # a jump at t = 2
    at = np.array([1.999, 2.0, 2.1, 1.9, 3.5])
    first, last = np.array([0, 0, 0, 2, 2]), np.array([2, 2, 2, -1, -1])
    out, top = np.empty((1, 5)), np.zeros(5, dtype=np.int64)
    step = np.array([16.0 + 100]), np.array([[8.0, 1.0, 0.0, 0.0]])
    implicit = delayed_states(
        p.starts, p.widths, p.values, p.slopes, first, last, p.count, at, 4.0, 1.0, *step, top, out
    )  # fmt: skip
    assert not implicit
    np.testing.assert_allclose(out[0], at**2 + [0, 0, 0, 100, 100])
    assert delayed_states(
        p.starts, p.widths, p.values, p.slopes, first, last, p.count, at + np.eye(5)[4], 4.0, 1.0,
        *step, top, out
    )  # fmt: skip
    assert out[0, 4] == pytest.approx(4.5**2 + 100)


def test_a_polynomial_continues_itself() -> None:
    q = np.array([[1.0, -2.0, 3.0, -4.0], [0.5, 0.1, 0.0, 2.0]])
    u, stretch = 0.9, 1.7

    def p(x: float) -> np.ndarray:
        return q @ np.array([x, x**2, x**3, x**4])

    shifted = shift_polynomial(q, u, stretch)
    for v in (0.3, 1.0):
        np.testing.assert_allclose(
            shifted @ np.array([v, v**2, v**3, v**4]), p(u + stretch * v) - p(u), rtol=1e-13
        )


def test_a_history_is_never_asked_beyond_its_piece() -> None:
    asked: list[float] = []

    def past(t: float) -> np.ndarray:
        asked.append(t)
        return np.array([t**3 if t < -1 else 5.0])

    history = History(past, np.array([5.0]), 0.0)
    asked.clear()
    assert history.piece(-0.9, -math.inf, -1.0)[0] == pytest.approx(
        (-0.9) ** 3
    )  # the cubic, continued
    assert history.piece(-1.0, -math.inf, -1.0)[0] == pytest.approx(-1.0)
    assert max(asked) < -1
    asked.clear()
    assert history.piece(0.2, -1.0, 0.0)[0] == 5.0
    assert history.piece(-1.1, -1.0, 0.0)[0] == 5.0
    assert max(asked) <= 0
    assert min(asked) > -1


def test_a_history_is_not_asked_earlier_than_it_is_needed() -> None:
    def past(t: float) -> np.ndarray:
        return np.array([math.log(t)])  # raises where t is not positive

    history = History(past, np.array([math.log(0.1)]), 0.1)
    assert history.piece(0.04, -math.inf, 0.1)[0] == math.log(0.04)
    for beyond in (0.11, 0.2, 1.0):  # the cubic through four points from 0.04 to 0.1
        nodes = np.array([0.1, 0.1 - min(beyond - 0.1, 0.02)])
        nodes = nodes[0] - np.arange(4) * (nodes[0] - nodes[1])
        cubic = np.polynomial.Polynomial.fit(nodes, np.log(nodes), 3)
        assert history.piece(beyond, -math.inf, 0.1)[0] == pytest.approx(cubic(beyond), rel=1e-9)


def test_a_history_may_be_defined_no_further_back_than_the_lags_reach() -> None:
    run = solve_dde(
        lambda t, y, Z: 1 - Z[:, 0],
        (0.1, 10),
        lambda t: [math.log(t)],
        lambda t, y: [t - math.exp(1 - 1 / t)],
        rtol=1e-8,
        atol=1e-8,
    )
    np.testing.assert_allclose(run.y[0], np.log(run.t), atol=1e-6)


def test_memory_is_bounded_by_the_largest_lag() -> None:
    options = {
        "method": "Tsit5", "t_eval": [0.0, 500.0], "events": None, "jumps": None, "switches": None,
        "args": (),
        "rtol": 1e-6, "atol": 1e-9, "max_step": 0.5, "first_step": None, "max_steps": 10_000,
        "breaking_points": (), "max_order": None, "lag_states": None,
    }  # fmt: skip
    kept = {}
    for dense in (False, True):
        options["dense_output"] = dense
        problem = check(lambda t, y, Z: -Z[:, 0], (0, 500), 1.0, [1.0], **options)  # type: ignore[arg-type]
        run = Integration(problem)
        assert run.run().success
        assert run.pieces.total >= 1000
        kept[dense] = run.pieces.starts.size
    assert kept[False] == 64
    assert kept[True] >= 1000


def test_coincident_points_take_the_lower_order_and_high_orders_are_dropped() -> None:
    points = BreakingPoints(3)
    assert points.add(0.0, 1, 0) == 0
    assert points.add(1.0, 2, 5) == 1
    assert points.add(1.0, 0, 5) == 1
    assert points.add(2.0, 3, 9) is None
    assert (points.times, points.orders) == ([0.0, 1.0], [1, 0])
    assert points.landed == [(0.0, 1), (1.0, 0), (2.0, 3)]
    assert points.interval(1) == (0.0, 1.0)
    assert points.interval(2) == (1.0, math.inf)


def test_landings_move_the_branch_and_raise_the_order() -> None:
    points, pieces = BreakingPoints(5), pieces_of_square(3)
    delays = Delays(
        np.array([1.0, 0.3]), (), History(None, np.array([0.0]), 0.0), points, pieces, 2
    )
    index = points.add(0.0, 1, 0)
    delays.schedule(index, 0.0)
    delays.locate(0.0, np.array([0.0]), np.array([0.0]), 1e-12)
    assert delays.branch == [0, 0]
    assert delays.land(0.3, 1e-12) == 2
    assert delays.branch == [0, 1]
    assert delays.land(0.9, 1e-12) is None
    assert delays.land(1.0 - 1e-14, 1e-12) == 2
    assert delays.branch == [1, 1]
