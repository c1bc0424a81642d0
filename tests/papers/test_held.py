"""Held inputs on integrators: against sums on a grid, and against a recursion."""

from typing import Any

import numpy as np
import pytest

from fluidcc.base.errors import InvalidInput
from fluidcc.papers.held import HeldLoop, Measurement, Path

PARTS = 20  # of the shortest period: everything below is a multiple of that


def _several(second: float = 1.5, third: float = 2.0) -> HeldLoop:
    h = 0.1
    unit = h / PARTS
    lags = [(0, 0, -1.1, 7), (0, 1, 0.9, 0), (1, 1, 1.3, 31), (1, 2, -0.7, 3), (1, 0, 0.2, 44)]
    paths = [Path(i, j, gain, lag * unit) for i, j, gain, lag in lags]
    seen = [
        Measurement(0, 0, 0.8, 0.0), Measurement(0, 0, -0.3, 5 * unit, h),
        Measurement(1, 1, -0.6, 27 * unit), Measurement(1, 0, -0.5, 0.0, 3 * h),
        Measurement(2, 1, 0.4, 11 * unit, 2.5 * h),
    ]  # fmt: skip
    keep = [[0.3, 0.0, 0.2], [0.0, 1.0, 0.0], [0.5, -0.1, -0.4]]
    return HeldLoop([h, second * h, third * h], 2, keep, paths, seen)


def _on_a_grid(loop: HeldLoop, periods: int) -> np.ndarray:
    """x at the multiples of the common period, from x = (1, -2) and inputs that were 0."""
    unit = min(loop.periods) / PARTS
    each = [round(T / unit) for T in loop.periods]
    steps = periods * round(loop.period / unit)
    x = np.zeros((steps + 1, loop.states))
    x[0] = 1.0, -2.0
    area, r = np.zeros_like(x), np.zeros((steps, len(each)))  # area: integral of x since 0

    def at(values: np.ndarray, i: int, step: int) -> float:
        if step >= 0:
            return float(values[step, i])
        return float(x[0, i] * (1.0 if values is x else step * unit))

    for k in range(steps):
        before = r[k - 1] if k else np.zeros(len(each))
        for j, every in enumerate(each):
            r[k, j] = before[j]
            if k % every == 0:
                r[k, j] = np.asarray(loop.keep)[j] @ before
                for m in loop.measurements:
                    if m.source == j:
                        end, width = k - round(m.delay / unit), round(m.window / unit)
                        if width == 0:
                            r[k, j] += m.gain * at(x, m.state, end)
                        else:
                            whole = at(area, m.state, end) - at(area, m.state, end - width)
                            r[k, j] += m.gain * whole / m.window
        slope = np.zeros(loop.states)
        for p in loop.paths:
            then = k - round(p.delay / unit)
            slope[p.state] += p.gain * (r[then, p.source] if then >= 0 else 0.0)
        x[k + 1] = x[k] + unit * slope
        area[k + 1] = area[k] + unit * x[k] + unit**2 / 2 * slope
    return x[:: round(loop.period / unit)]


@pytest.mark.parametrize(
    ("second", "third", "period"), [(1.0, 1.0, 0.1), (1.5, 2.0, 0.6), (3.0, 1.0, 0.3)]
)
def test_several_periods_are_those_of_sums_on_a_grid(
    second: float, third: float, period: float
) -> None:
    loop = _several(second, third)
    assert loop.period == pytest.approx(period)
    wanted = _on_a_grid(loop, 5)
    state = np.zeros(len(loop.monodromy))
    state[:2] = 1.0, -2.0
    for k in range(6):
        np.testing.assert_allclose(state[:2], wanted[k], rtol=1e-10, atol=1e-12)
        state = loop.monodromy @ state


def test_one_queue_and_one_late_input_are_a_short_recursion() -> None:
    """q+ = q + (h - d) r + d r_1, r = -g q: the eigenvalues are those of three numbers."""
    h, d, g = 0.1, 0.04, 7.0
    found = HeldLoop([h], 1, [0.0], [Path(0, 0, 1.0, d)], [Measurement(0, 0, -g, 0.0)]).multipliers
    wanted = np.linalg.eigvals([[1 - g * (h - d), d], [-g, 0]])
    wanted = np.sort_complex(wanted.astype(complex))
    np.testing.assert_allclose(np.sort_complex(found), wanted, rtol=1e-12)


def test_what_nothing_sees_is_left_out_once_it_is_so() -> None:
    """Two inputs into one queue, of which the difference is held for ever."""
    paths = [Path(0, j, 1.0, 0.0) for j in (0, 1)]
    seen = [Measurement(j, 0, g, d) for j in (0, 1) for g, d in ((-4.0, 0.0), (3.0, 0.1))]

    def loop(free: Any = None) -> HeldLoop:
        return HeldLoop([0.1, 0.1], 1, [1.0, 1.0], paths, seen, free=free)

    whole, rest = loop(), loop([[1.0], [-1.0]])
    assert whole.multipliers[0] == pytest.approx(1)
    assert (rest.undetermined, len(rest.multipliers)) == (1, len(whole.multipliers) - 1)
    assert abs(rest.multipliers[0]) < 1
    for one in rest.multipliers:
        assert np.abs(whole.multipliers - one).min() < 1e-6
    with pytest.raises(InvalidInput, match="the loop answers it"):
        _ = loop([[1.0], [1.0]]).multipliers


def test_a_period_that_is_not_positive_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must be positive"):
        HeldLoop([0.0], 1, [1.0], [], [])
