"""Held inputs on integrators: against the loop of one period, and against sums on a grid, with several periods."""

from __future__ import annotations

import numpy as np
import pytest

from fluidcc.errors import InvalidInput, Unsupported
from fluidcc.numerics.linear.held import HeldLoop, Measurement, Path, common_period
from fluidcc.numerics.linear.sampled import SampledLoop


def test_one_period_has_the_multipliers_of_the_loop_of_one_period() -> None:
    rng = np.random.default_rng(1)
    h, n, m = 0.1, 2, 3
    gain, ahead, keep = rng.normal(size=(n, m)), rng.uniform(0, 0.35, m).tolist(), rng.uniform(0, 0.9, m).tolist()
    seen = [(j, i, rng.normal() / 3, rng.uniform(0, 0.3), w) for j in range(m) for i in range(n) for w in (0.0, h)]
    paths = [Path(i, j, gain[i, j], ahead[j]) for i in range(n) for j in range(m)]
    found = HeldLoop([h] * m, n, keep, paths, [Measurement(*v) for v in seen]).multipliers
    C, J = np.zeros((len(seen), n)), np.zeros((m, len(seen)))
    for k, (j, i, g, _, _) in enumerate(seen):
        C[k, i], J[j, k] = 1.0, g
    F = np.diag(keep)
    other = SampledLoop(
        h, np.zeros((n, n)), gain, C, F, J, F, J, ahead, [v[3] for v in seen], [v[4] > 0 for v in seen]
    ).multipliers
    large = np.abs(other) > 1e-2
    assert large.sum() > 10
    np.testing.assert_allclose(np.abs(found[: large.sum()]), np.abs(other[large]), rtol=1e-6)
    assert np.abs(found[large.sum() :]).max(initial=0.0) < 2e-2


PARTS = 20  # of the shortest period: everything below is a multiple of that


def _several() -> HeldLoop:
    h = 0.1
    unit = h / PARTS
    paths = [
        Path(0, 0, -1.1, 7 * unit), Path(0, 1, 0.9, 0.0), Path(1, 1, 1.3, 31 * unit), Path(1, 2, -0.7, 3 * unit),
        Path(1, 0, 0.2, 44 * unit),
    ]  # fmt: skip
    seen = [
        Measurement(0, 0, 0.8, 0.0), Measurement(0, 0, -0.3, 5 * unit, h), Measurement(1, 1, -0.6, 27 * unit),
        Measurement(1, 0, -0.5, 0.0, 3 * h), Measurement(2, 1, 0.4, 11 * unit, 2.5 * h),
    ]  # fmt: skip
    return HeldLoop([h, 1.5 * h, 2 * h], 2, [0.3, 1.0, -0.4], paths, seen)


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
        for j, every in enumerate(each):
            r[k, j] = r[k - 1, j] if k else 0.0
            if k % every == 0:
                r[k, j] *= loop.keep[j]
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


def test_several_periods_are_those_of_sums_on_a_grid() -> None:
    loop = _several()
    assert loop.period == pytest.approx(0.6)
    wanted = _on_a_grid(loop, 5)
    state = np.zeros(len(loop.monodromy))
    state[:2] = 1.0, -2.0
    for k in range(6):
        np.testing.assert_allclose(state[:2], wanted[k], rtol=1e-10, atol=1e-12)
        state = loop.monodromy @ state


def test_what_nothing_sees_is_left_out_once_it_is_so() -> None:
    """Two inputs into one queue, of which the difference is held for ever."""
    parts = {
        "periods": [0.1, 0.1], "states": 1, "keep": [1.0, 1.0], "paths": [Path(0, 0, 1.0, 0.0), Path(0, 1, 1.0, 0.0)],
        "measurements": [Measurement(j, 0, g, d) for j in (0, 1) for g, d in ((-4.0, 0.0), (3.0, 0.1))],
    }  # fmt: skip
    whole, rest = HeldLoop(**parts), HeldLoop(**parts, free=[[1.0], [-1.0]])  # type: ignore[arg-type]
    assert whole.multipliers[0] == pytest.approx(1)
    assert (rest.undetermined, len(rest.multipliers)) == (1, len(whole.multipliers) - 1)
    assert abs(rest.multipliers[0]) < 1
    for one in rest.multipliers:
        assert np.abs(whole.multipliers - one).min() < 1e-6
    with pytest.raises(InvalidInput, match="the loop answers it"):
        HeldLoop(**parts, free=[[1.0], [1.0]]).multipliers  # type: ignore[arg-type] # noqa: B018


def test_periods_without_a_common_multiple_are_refused() -> None:
    assert common_period([0.16, 0.2]) == pytest.approx(0.8)
    for periods in ([0.1, 0.1 * np.pi], [0.1, 0.0999]):
        if periods[1] < 0.1:
            assert common_period(periods) == pytest.approx(99.9)
            continue
        with pytest.raises(Unsupported, match="no short common multiple"):
            common_period(periods)
    with pytest.raises(InvalidInput, match="must be positive"):
        HeldLoop([0.0], 1, [1.0], [], [])
