"""Events, jumps and switches of `solve_dde`, against solutions by hand."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from fluidcc.numerics.dde import solve as dde
from tests.numerics.dde.problems import WALTMAN_START, WALTMAN_TIMES, marked, waltman, waltman_lags

solve_dde: Callable[..., Any] = dde.solve_dde  # what the result holds depends on the arguments
LAG = 1.5 * np.pi  # y' = y(t - 3 pi / 2) has the solution sin t


def sine(t_end: float, **kwargs: Any) -> Any:
    return solve_dde(
        lambda t, y, Z: Z[:, 0], (0, t_end), np.sin, [LAG], rtol=1e-10, atol=1e-10, **kwargs
    )


def test_events_are_found_in_both_directions_and_the_start_is_none() -> None:
    result = sine(20, events=lambda t, y: y[0])
    np.testing.assert_allclose(result.t_events[0], np.pi * np.arange(1, 7), atol=1e-8)
    assert np.abs(result.y_events[0]).max() < 1e-14
    assert result.statistics.events == 6


def test_observing_an_event_does_not_change_the_solution() -> None:
    watched = sine(20, events=[lambda t, y: y[0], lambda t, y: y[0] - 0.5])
    np.testing.assert_array_equal(sine(20).y, watched.y)


def test_an_event_may_look_at_delayed_states() -> None:
    """sin(t - 3 pi / 2) = cos t."""
    result = sine(12, events=marked(lambda t, y, Z: Z[0, 0], delayed=True))
    np.testing.assert_allclose(result.t_events[0], np.pi * (np.arange(4) + 0.5), atol=1e-8)


@pytest.mark.parametrize("terminal", [False, True])
def test_an_event_exactly_on_a_mesh_point_is_found_once(terminal: bool) -> None:
    """y = t reaches 2 at a multiple of the lag, where a breaking point puts a mesh point."""
    event = marked(lambda t, y: y[0] - 2, terminal=terminal)
    result = solve_dde(lambda t, y, Z: [1.0], (0, 5), 0.0, [1.0], events=event)
    np.testing.assert_allclose(result.t_events[0], [2.0], atol=1e-15)


def test_two_crossings_within_one_step_are_both_found() -> None:
    """A parabola is exact for any step; it is above 0.99 of its height for a tenth of the time."""
    event = lambda t, y: y[0] - 0.9  # noqa: E731
    result = solve_dde(lambda t, y, Z: [2 - 2 * t], (0, 2), 0.0, [3.0], events=event)
    exact = [1 - math.sqrt(0.1), 1 + math.sqrt(0.1)]
    np.testing.assert_allclose(result.t_events[0], exact, atol=1e-12)


#: events of y = t up to 1000, and their zeros
ZEROS: dict[str, tuple[Callable[[float], float], list[float]]] = {
    "318 of a sine": (math.sin, [math.pi * k for k in range(1, 319)]),  # scipy/scipy#9228
    "two 0.02 apart": (lambda y: (y - 50) * (y - 50.02), [50, 50.02]),
    "three 0.01 apart": (lambda y: (y - 500) * (y - 500.01) * (y - 500.02), [500, 500.01, 500.02]),
    "three pairs": (
        lambda y: math.prod(y - z for z in (10, 10.02, 300, 300.02, 700, 700.02)),
        [10, 10.02, 300, 300.02, 700, 700.02],
    ),
    "shallow dips": (
        lambda y: math.cos(y) - 1 + 1e-6,
        sorted(
            2 * math.pi * k + s * math.acos(1 - 1e-6)
            for k in range(160) for s in (-1, 1) if k or s > 0
        ),
    ),
    "one that only touches": (lambda y: (y - 123.456) ** 2, []),
    "a jump": (lambda y: math.copysign(1.0, y - 123.456), [123.456]),
    "one that stays zero": (lambda y: max(123.456 - y, 0.0), [123.456]),
    "one touched but for rounding": (lambda y: y**2 - 246.912 * y + 123.456**2, []),
} | {
    f"six {gap:g} apart": (
        lambda y, gap=gap: math.prod(y - 300.05 - gap * k for k in range(6)),
        [300.05 + gap * k for k in range(6)],
    )
    for gap in (0.1, 1e-5, 1e-9)
}  # fmt: skip


@pytest.mark.parametrize("name", ZEROS)
def test_no_zero_is_lost_in_a_long_step(name: str) -> None:
    g, zeros = ZEROS[name]
    result = solve_dde(
        lambda t, y, Z: [1.0], (0, 1000), 0.0, [], events=lambda t, y: g(float(y[0]))
    )
    assert result.statistics.steps < 30
    np.testing.assert_allclose(result.t_events[0], zeros, atol=1e-11 if "six" in name else 1e-6)
    assert np.unique(result.t_events[0]).size == len(zeros)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.8]), st.floats(-1, 1)), max_size=9),
    st.floats(-6, -1), st.floats(-6, 6), st.floats(-8, 8),
)  # fmt: skip
def test_clusters_of_zeros_are_found_at_any_scale(
    places: list[tuple[float, float]], width: float, unit: float, size: float
) -> None:
    """Of products of linear factors, the closest a thousandth of a cluster apart."""
    zeros = sorted({centre + 10**width * round(x, 3) for centre, x in places})
    event = lambda t, y: 10**size * math.prod(t / 10**unit - z for z in zeros)  # noqa: E731
    result = solve_dde(lambda t, y, Z: [0.0], (0, 10**unit), 0.0, [], events=event)
    np.testing.assert_allclose(result.t_events[0] / 10**unit, zeros, atol=1e-13)


def test_what_comes_after_the_end_of_a_run_need_not_be_defined() -> None:
    empty = marked(lambda t, y: y[0], terminal=True)
    root = lambda t, y: np.sqrt(y[0]) - 0.5  # noqa: E731
    result = solve_dde(lambda t, y, Z: [-1.0], (0, 9), 1.0, [], events=[empty, root])
    assert [list(t) for t in result.t_events] == [pytest.approx([1.0]), pytest.approx([0.75])]


def test_an_event_that_is_noise_is_refused_and_more_zeros_than_a_step_may_have_are_found() -> None:
    rng = np.random.default_rng(0)
    noise = lambda t, y: rng.normal()  # noqa: E731
    result = solve_dde(lambda t, y, Z: [1.0], (0, 1), 0.0, [], events=noise)
    assert not result.success
    assert "it is noise" in result.message
    result = solve_dde(
        lambda t, y, Z: [0.0], (0, 1000), 0.0, [], events=lambda t, y: math.sin(10 * t)
    )
    np.testing.assert_allclose(result.t_events[0], math.pi / 10 * np.arange(1, 3184), rtol=1e-9)


@pytest.mark.parametrize(("end", "start"), [(45, 20.0), (45, 41.3), (300, 10.0), (300, 217.0)])
@pytest.mark.parametrize("at_first", [0.0, 1.0])
def test_a_pulse_after_rest_is_found_though_nobody_declares_it(
    end: float, start: float, at_first: float
) -> None:
    """Of 0.4, with a time constant of 1 (scipy/scipy#18039, SDXorg/pysd#7)."""
    result = solve_dde(
        lambda t, y, Z: [-y[0] + (start <= t < start + 0.4)], (0, end), at_first, [],
        t_eval=[start + 0.4],
    )  # fmt: skip
    exact = at_first * math.exp(-start - 0.4) + 1 - math.exp(-0.4)
    assert result.y[0, 0] == pytest.approx(exact, abs=1e-5)


def test_given_times_are_kept_bit_by_bit_and_each_jump_says_which_it_was() -> None:
    """Though multiples of 0.3 and 0.04 meet but for rounding (SciML/DifferentialEquations.jl#1124,
    #725).
    """
    times = 0.04 * np.arange(1, 1001)
    top = marked(lambda t, y: y[0] - 500.5, direction=1)
    jumps = [(times, lambda t, y: y + 1), (top, lambda t, y: y + 1), (7.7, lambda t, y: y)]
    result = solve_dde(lambda t, y, Z: [0.0 * Z[0, 0]], (0, 41), 0.0, [0.3], jumps=jumps)
    assert result.y[0, -1] == 1001
    np.testing.assert_array_equal(result.t_jumps[result.jump_index == 0], times)
    assert result.t_jumps[result.jump_index == 1].tolist() == [times[500]]
    assert result.t_jumps[result.jump_index == 2].tolist() == [7.7]


def test_a_jump_at_a_given_time_is_seen_by_delayed_look_ups() -> None:
    """y' = -y(t - 1), y = 1, and y + 1 at t = 1/2: the fundamental solution from 1/2 is added."""

    def fundamental(t: np.ndarray) -> np.ndarray:
        powers = ((-np.maximum(t - k, 0)) ** k * (t >= k) for k in range(12))
        return sum(power / math.factorial(k) for k, power in enumerate(powers))

    options: dict[str, Any] = {"dense_output": True, "rtol": 1e-10, "atol": 1e-10}
    plain, result = (
        solve_dde(lambda t, y, Z: -Z[:, 0], (0, 6), 1.0, [1.0], jumps=jumps, **options)
        for jumps in ([], [(0.5, lambda t, y: y + 1)])
    )
    t = np.linspace(0, 6, 601)
    np.testing.assert_allclose(result.sol(t)[0], plain.sol(t)[0] + fundamental(t - 0.5), atol=1e-9)
    assert result.sol(0.5) - result.sol(0.5, side="left") == pytest.approx(1.0, abs=1e-14)
    assert np.sum(result.t == 0.5) == 2
    np.testing.assert_array_equal(result.breaking_points[0], [0.5, 0])
    assert [1.5, 1.0] in result.breaking_points.tolist()


def test_jumps_at_the_start_and_at_the_end_and_two_at_one_time_in_order() -> None:
    jumps = [([0.0, 1.0], lambda t, y: 2 * y), (1.0, lambda t, y: y + 1)]
    result = solve_dde(
        lambda t, y, Z: Z[:, 0], (0, 1), 1.0, [2.0], jumps=jumps, t_eval=[0.0, 1.0],
        dense_output=True,
    )  # fmt: skip
    np.testing.assert_allclose(result.y[0], [2.0, 7.0])
    np.testing.assert_allclose(result.sol([-0.1, 0.0, 0.5, 1.0])[0], np.array([1.0, 2.0, 2.5, 7.0]))


@pytest.mark.parametrize("restart", [0.5, 1.0, 1.2])
@pytest.mark.parametrize("kind", ["constant", "function"])
def test_a_run_that_goes_on_remembers_jumps(restart: float, kind: str) -> None:
    lags = [1.0] if kind == "constant" else lambda t, y: [1.0]
    options: dict[str, Any] = {"dense_output": True, "rtol": 1e-9, "atol": 1e-9}

    def jumps(low: float, high: float) -> list[Any]:
        return [([s for s in (0.5, 1.0) if low < s <= high], lambda t, y: y + 1)]

    def run(low: float, high: float, history: Any, lags: Any) -> Any:
        fun = lambda t, y, Z: -Z[:, 0]  # noqa: E731
        return solve_dde(fun, (low, high), history, lags, jumps=jumps(low, high), **options)

    whole, first = run(0, 3, 1.0, [1.0]), run(0, restart, 1.0, [1.0])
    second = run(restart, 3, first.sol, lags)
    t = np.linspace(0, 3, 301)
    np.testing.assert_allclose(second.sol(t), whole.sol(t), atol=1e-7)


def test_a_history_may_jump_at_the_start() -> None:
    """y' = y(t - 1), y = 1 before 0 and y(0) = 3: y = 3 + t, then 4 + 3 (t - 1) + (t - 1)^2 / 2."""
    for lags in ([1.0], lambda t, y: [1.0]):
        result = solve_dde(lambda t, y, Z: Z[:, 0], (0, 2), lambda t: 1.0 if t < 0 else 3.0, lags)
        np.testing.assert_allclose(result.y[0, -1], 7.5, atol=1e-9)
        # the jump is of order 0, and so its image of order 1 (SciML/DifferentialEquations.jl#211)
        np.testing.assert_allclose(result.breaking_points[0], [1.0, 1.0], atol=1e-9)


def test_a_jump_that_carries_another_over_its_threshold_fires_it() -> None:
    """Two integrators: the first one's reset pushes the second over 1, at the same time."""
    jumps = [
        (lambda t, y: y[0] - 1, lambda t, y: [0.0, y[1] + 0.5]),
        (lambda t, y: y[1] - 1, lambda t, y: [y[0], y[1] - 1]),
    ]
    for order in (1, -1):
        options: dict[str, Any] = {"jumps": jumps[::order]}
        result = solve_dde(lambda t, y, Z: [1.0, 0.6], (0, 1.5), [0.0, 0.0], [], **options)
        np.testing.assert_allclose(result.t_jumps, [1.0, 1.0], atol=1e-14)
        assert result.jump_index.tolist() == [0, 1][::order]
        np.testing.assert_allclose(result.y[:, -1], [0.5, 0.4], atol=1e-14)


@pytest.mark.parametrize(
    ("passed_on", "jumps"),
    [
        (lambda n: (n + 1) % 3 if n < 9 else -1, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]),
        (lambda n: 1, [0, 1]),
        (lambda n: (n + 1) % 3, None),
    ],
)
def test_a_cascade_of_jumps_at_one_time_runs_until_it_stops_or_is_refused(
    passed_on: Callable[[int], int], jumps: list[int] | None
) -> None:
    """A token goes from jump to jump; each leaves its own function where it was met."""
    count = [-1]

    def change(t: float, y: np.ndarray) -> np.ndarray:
        count[0] += 1
        return np.array([0.0, *(2.0 * (np.arange(3) == passed_on(count[0])) - 1.0)])

    when = [lambda t, y, k=k: y[1 + k] - 0.5 if k else max(y[1], y[0] - 1) for k in range(3)]
    given = [(marked(g, direction=1), change) for g in when]
    result = solve_dde(lambda t, y, Z: [1, 0, 0, 0], (0, 1.5), [0, -1, -1, -1], [], jumps=given)
    if jumps is None:
        assert "trigger each other without end at t = 1" in result.message
    else:
        assert result.jump_index.tolist() == jumps
        assert set(result.t_jumps.round(12)) == {1.0}


@pytest.mark.parametrize("terminal", [True, 2])
def test_a_jump_may_end_the_run(terminal: int) -> None:
    full = marked(lambda t, y: y[0] - 1, terminal=terminal)
    result = solve_dde(lambda t, y, Z: [1.0], (0, 9), 0.0, [], jumps=[(full, lambda t, y: 0 * y)])
    assert (result.status, result.t[-1], result.y[0, -1]) == (1, pytest.approx(int(terminal)), 0.0)


def test_a_change_may_look_at_delayed_states() -> None:
    change = marked(lambda t, y, Z: Z[:, 0], delayed=True)
    result = solve_dde(lambda t, y, Z: [1.0], (0, 2), 0.0, [0.5], jumps=[(1.0, change)])
    assert result.y[0, -1] == pytest.approx(1.5)


def test_a_bouncing_ball_keeps_its_times_and_zeno_is_refused() -> None:
    """Height 1, restitution 1/2: bounces at sqrt 2 (1 + 2 (1/2 + 1/4 + ...)), up to 3 sqrt 2."""
    floor = marked(lambda t, y: y[0], direction=-1)
    jumps = [(floor, lambda t, y: [0.0, -0.5 * y[1]])]
    result = solve_dde(lambda t, y, Z: [y[1], -1.0], (0, 6), [1.0, 0.0], [], jumps=jumps)
    expected = math.sqrt(2) * (3 - 2 * 0.5 ** np.arange(result.t_jumps.size))
    np.testing.assert_allclose(result.t_jumps, expected, atol=1e-10)
    assert result.t_jumps.size >= 12
    assert not result.success
    assert "accumulate at t = 4.24" in result.message


def test_a_wall_is_met_once_where_rounding_is_coarse() -> None:
    """Of time and place near 1e5, 1.5e-11: just after the jump, the sign of its event is that."""
    wall = lambda t, y: (y[0] - 1e5) - 0.6  # noqa: E731
    result = solve_dde(
        lambda t, y, Z: [y[1], 0.0], (1e5, 1e5 + 0.1), [1e5 + 0.5877, 1.0], [],
        jumps=[(wall, lambda t, y: [y[0], -y[1]])], max_step=1e-3,
    )  # fmt: skip
    np.testing.assert_allclose(result.t_jumps - 1e5, [0.0123], atol=1e-9)
    np.testing.assert_allclose(result.y[:, -1] - [1e5, 0.0], [0.5123, -1.0], atol=1e-9)


def test_hundreds_of_switchings_keep_their_accuracy() -> None:
    """A relay with delay: y' = -1 while y(t - 1) > 0, else +1: a triangle of period 4."""
    result = solve_dde(
        lambda t, y, Z, m: [1 - 2 * m[0]], (0, 1001), 0.5, [1.0], switches=lambda t, y, Z: Z[0, 0],
        events=lambda t, y: y[0], rtol=1e-8, atol=1e-10,
    )  # fmt: skip
    np.testing.assert_allclose(result.t_events[0], 0.5 + 2 * np.arange(501), atol=1e-8)
    assert result.statistics.switchings >= 500
    assert result.modes is not None


def test_a_sliding_mode_is_refused() -> None:
    result = solve_dde(
        lambda t, y, Z, m: [1 - 2 * m[0]], (0, 5), -1.0, [], switches=lambda t, y, Z: y[0]
    )
    assert not result.success
    assert "accumulate at t = 1" in result.message


@pytest.mark.parametrize(
    ("f", "low", "high", "zero"),
    [
        (lambda x: 2 - x**2, 0.0, 3.0, math.sqrt(2)),
        (lambda x: 1 - x, 0.0, 1.0, 1.0),
        (lambda x: -x, 0.0, 1.0, 0.0),
        (lambda x: math.exp(-50 * x) - 1e-9, 0.0, 9.0, 9 * math.log(10) / 50),
        (lambda x: 1.0 if x < 1 / 3 else -1.0, 0.0, 1.0, 1 / 3),
        (lambda x: (0.7 - x) ** 9, 0.0, 1.0, 0.7),
    ],
)
def test_zeros_are_found_to_rounding_on_the_far_side(
    f: Callable[[float], float], low: float, high: float, zero: float
) -> None:
    """In one step from low to high, on which nothing depends but the time."""
    result = solve_dde(
        lambda t, y, Z: [0.0], (low - 1, high), 0.0, [], breaking_points=[low],
        events=lambda t, y: f(max(t, low)) + (t < low), first_step=1.0,
    )  # fmt: skip
    (x,) = result.t_events[0]
    assert f(x) <= 0
    assert x == pytest.approx(zero, abs=1e-15 if zero != 0.7 else 1e-2)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.floats(0.1, 2), min_size=1, max_size=3),
    st.lists(st.tuples(st.floats(0, 4), st.floats(-1, 1)), max_size=3),
)
def test_constant_lags_and_functions_of_the_same_value_agree(
    lags: list[float], changes: list[tuple[float, float]]
) -> None:
    """Landings known in advance and landings found in trial steps give one solution."""
    jumps = [(when, lambda t, y, change=change: y + change) for when, change in changes]
    t = np.linspace(0, 4, 41)

    def fun(t: float, y: np.ndarray, Z: np.ndarray) -> Any:
        return np.cos(t) - np.tanh(Z.sum(axis=1))

    options: dict[str, Any] = {"jumps": jumps, "t_eval": t, "rtol": 1e-8, "atol": 1e-8}
    known = solve_dde(fun, (0, 4), 0.3, lags, **options)
    found = solve_dde(fun, (0, 4), 0.3, lambda t, y: lags, **options)
    np.testing.assert_allclose(known.y, found.y, atol=1e-5)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.2, 1), st.floats(0, 0.9), st.floats(1, 6))
def test_arguments_that_cross_a_jump_back_and_forth(mean: float, swing: float, pace: float) -> None:
    """y is set from 1 to 2 at t = 1; q' = y(t - lag) counts for how long that is heard."""

    def lag(t: float, y: Any = None) -> list[float]:
        return [mean * (1 + swing * math.sin(pace * t))]

    how: Any = {"jumps": [(1.0, lambda t, y: [2.0, y[1]])], "max_step": 0.1}
    result = solve_dde(lambda t, y, Z: [0.0, Z[0, 0]], (0, 6), [1.0, 0.0], lag, **how)
    t = np.linspace(0, 6, 600_001)
    seen = 1.0 + (t - mean * (1 + swing * np.sin(pace * t)) >= 1)
    assert result.success
    assert result.y[1, -1] == pytest.approx(seen.mean() * 6, abs=1e-4)


@pytest.mark.parametrize("terminal", [False, True, 2, 3])
@pytest.mark.parametrize("direction", [0, 1, -1])
def test_events_are_counted_as_by_scipy(terminal: int, direction: int) -> None:
    """Without lags the two solve the same problem, and end it at the same occurrence."""

    def crossing(t: float, y: np.ndarray) -> float:
        return float(y[0])

    crossing.terminal, crossing.direction = terminal, direction  # type: ignore[attr-defined]
    same: Any = {"events": crossing, "rtol": 1e-9, "atol": 1e-9}
    ours = solve_dde(lambda t, y, Z: [y[1], -y[0]], (0, 20), [1.0, 0.0], [], **same)
    theirs = solve_ivp(lambda t, y: [y[1], -y[0]], (0, 20), [1.0, 0.0], **same)
    assert ours.status == theirs.status
    assert ours.t_events is not None
    np.testing.assert_allclose(ours.t_events[0], theirs.t_events[0], atol=1e-6)
    assert ours.t[-1] == pytest.approx(theirs.t[-1], abs=1e-6)
    if ours.status == 1:
        assert ours.t[-1] == ours.t_events[0][-1]


@pytest.mark.parametrize("at", [0.3, 1.0, 197.0])
def test_a_switch_of_time_alone_changes_its_mode_once_however_short_the_next_step(
    at: float,
) -> None:
    """y' = 1e6 exp(-1e6 (t - at)) from t = at on: y rises by one at once."""
    result = solve_dde(
        lambda t, y, Z, m: [m[0] * 1e6 * np.exp(min(1e6 * (at - t), 0.0))], (0, 300), 0.0, [],
        switches=lambda t, y, Z: t - at,
    )  # fmt: skip
    assert result.success, result.message
    assert result.statistics.switchings == 1
    assert result.y[0, -1] == pytest.approx(1.0, abs=1e-6)


@pytest.fixture(scope="module", params=["switches", "breaking_points"])
def waltman_run(request: Any) -> Any:
    """Waltman's threshold model with its two switches declared in either way."""
    sizes = np.array([1e-6, 1e-15, 1e-6, 1e-6, 1e-2, 1e-2])
    options: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-6 * sizes}
    first, second = WALTMAN_TIMES
    if request.param == "switches":
        options["switches"] = [lambda t, y, Z: t - first, lambda t, y, Z: t - second]
        fun: Any = waltman
    else:
        options["breaking_points"] = WALTMAN_TIMES

        def fun(t: float, y: np.ndarray, Z: np.ndarray) -> np.ndarray:
            return waltman(t, y, Z, (t > first, t > second))

    return solve_dde(fun, (0, 300), WALTMAN_START, waltman_lags, dense_output=True, **options)


def test_waltmans_thresholds_are_met_however_its_switches_are_declared(waltman_run: Any) -> None:
    """Integrals from the delayed time to now are exact constants, each from its switch on."""
    assert waltman_run.success, waltman_run.message
    for time in WALTMAN_TIMES:
        assert np.abs(waltman_run.t - time).min() < 1e-12

    def gathered(low: float, high: float, k: int) -> float:
        mesh = waltman_run.t[(waltman_run.t > low) & (waltman_run.t < high)]
        ends = np.concatenate([[low], mesh, [high]])
        nodes, weights = np.polynomial.legendre.leggauss(6)
        half = np.diff(ends) / 2
        t = (ends[:-1] + half)[:, None] + half[:, None] * nodes
        y = waltman_run.sol(t.ravel())
        density = y[0] * y[1] + y[2] if k == 0 else 1e-12 + y[1] + y[2]
        return float(half @ (density.reshape(t.shape) @ weights))

    for k, switch in enumerate(WALTMAN_TIMES):
        threshold = gathered(0.0, switch, k)
        for t in (switch + 2, 230.0, 300.0):
            delayed = min(float(waltman_run.sol(t)[4 + k]), t)
            assert gathered(delayed, t, k) == pytest.approx(threshold, rel=2e-3)


@pytest.mark.parametrize("start", [0.07, 0.2])
def test_an_event_that_coincides_to_rounding_with_the_end_of_the_run_is_not_lost(
    start: float,
) -> None:
    """y - 0.3 ends the run, and scale (y - 0.3) is zero then, but for rounding on either side."""
    last = marked(lambda t, y: y[0] - 0.3, terminal=True)
    for scale in np.random.default_rng(0).uniform(0.1, 10, 20):
        events = [last, lambda t, y, s=scale: s * y[0] - s * 0.3]
        result = solve_dde(lambda t, y, Z: y, (0, 5), start, [], events=events)
        assert (result.status, len(result.t_events[0]), len(result.t_events[1])) == (1, 1, 1)


@pytest.mark.parametrize("method", ["Tsit5", "DP5"])
def test_at_a_declared_breaking_point_fun_may_give_the_value_of_either_side(method: str) -> None:
    """y' = cos t + 5 from t = 1.1 on: no step is refused, on which side 1.1 itself may be."""
    options: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-8, "method": method}
    plain = solve_dde(
        lambda t, y, Z: [np.cos(t)], (0, 3), 0.0, [], breaking_points=[1.1], **options
    )
    for after in (np.greater, np.greater_equal):
        result = solve_dde(
            lambda t, y, Z, after=after: [np.cos(t) + 5 * after(t, 1.1)], (0, 3), 0.0, [],
            breaking_points=[1.1],
            **options,
        )  # fmt: skip
        assert 1.1 in result.t
        exact = np.sin(result.t) + 5 * np.maximum(result.t - 1.1, 0)
        np.testing.assert_allclose(result.y[0], exact, atol=2e-8)
        assert result.statistics.rejections <= plain.statistics.rejections + 1
