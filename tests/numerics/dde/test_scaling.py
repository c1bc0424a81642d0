"""`solve_dde` knows no unit of time and none of the state: the same results and the same work."""

from typing import Any

import numpy as np
import pytest

from fluidcc.numerics.dde.solve import solve_dde
from tests.numerics.dde.problems import marked

#: in their own units: fun, end, history, lags, and what else is given
SYSTEMS: dict[str, tuple[Any, float, Any, Any, dict[str, Any]]] = {
    "Mackey-Glass": (
        lambda t, y, Z: 0.2 * Z[:, 0] / (1 + Z[:, 0] ** 10) - 0.1 * y, 200.0, lambda t: [0.5],
        [17.0], {},
    ),
    "delayed logistic": (
        lambda t, y, Z: 2 * y * (1 - Z[:, 0]), 20.0, lambda t: [0.1 + 0.01 * t], [1.0], {}
    ),
    "several lags": (
        lambda t, y, Z: [-Z[0, 0] - Z[1, 1], Z[0, 2] - y[1]], 10.0,
        lambda t: [np.cos(t), np.sin(t)], [0.3, 1.0, 2.7], {},
    ),
    "a lag of the state": (
        lambda t, y, Z: -Z[:, 0], 10.0, lambda t: [1.0], lambda t, y: [0.5 + 0.3 * y[0] ** 2], {}
    ),
    "a vanishing lag": (
        lambda t, y, Z: -Z[:, 0], 10.0, lambda t: [1.0], lambda t, y: [0.2 * np.sin(t) ** 2], {}
    ),
    "events": (
        lambda t, y, Z: -Z[:, 0], 10.0, lambda t: [1.0], [1.0],
        {"events": [lambda t, y: y[0], marked(lambda t, y: np.sin(9 * t), direction=1)]},
    ),
    "jumps": (
        lambda t, y, Z: [1.0 - 0.1 * Z[0, 0]], 10.0, lambda t: [0.0], [0.3],
        {"jumps": [(lambda t, y: y[0] - 1, lambda t, y: y / 2)]},
    ),
    "a switch": (
        lambda t, y, Z, m: [1 - 2 * m[0]], 10.0, lambda t: [0.5], [1.0],
        {"switches": lambda t, y, Z: Z[0, 0]},
    ),
    "a pulse after rest": (
        lambda t, y, Z: [-y[0] + (4.033 <= t < 4.133)], 10.0, lambda t: [0.0], [], {}
    ),
    "many lags": (
        lambda t, y, Z: [-Z[0].mean()], 2.0, lambda t: [np.exp(-t)], np.linspace(0.1, 2, 150), {}
    ),
    "a history that overshoots": (
        lambda t, y, Z: -Z[:, 0], 3.0, lambda t: [1.0 if t >= 0 else np.cos(9 * t)], [0.5], {}
    ),
}  # fmt: skip


def run(name: str, time: float, size: float) -> Any:
    """A system in units of time and state that are so many of its own."""
    fun, end, history, lags, more = SYSTEMS[name]

    def own(g: Any, unit: float = 1.0) -> Any:
        def scaled(t: float, *parts: Any) -> Any:
            states = [p / size for p in parts[:2]]
            return unit * np.asarray(g(t / time, *states, *parts[2:]), dtype=float)

        return scaled

    def watched(g: Any) -> Any:
        return marked(own(g, 7.0), direction=getattr(g, "direction", 0))

    given: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9 * size}
    if "events" in more:
        given["events"] = [watched(g) for g in more["events"]]
    if "jumps" in more:
        given["jumps"] = [(watched(g), own(change, size)) for g, change in more["jumps"]]
    if "switches" in more:
        given["switches"] = own(more["switches"], 7.0)
    fixed = own(lags, time) if callable(lags) else time * np.asarray(lags)
    past = lambda t: size * np.asarray(history(t / time), dtype=float)  # noqa: E731
    times = time * np.linspace(0, end, 51)
    return solve_dde(own(fun, size / time), (0, times[-1]), past, fixed, t_eval=times, **given)


@pytest.mark.parametrize("name", SYSTEMS)
def test_results_and_work_do_not_depend_on_the_units(name: str) -> None:
    reference = run(name, 1.0, 1.0)
    assert reference.success, reference.message
    # where an undeclared jump is found depends on rounding, within tens of tolerances
    close = (1e-7 if "pulse" in name else 1e-9) * np.abs(reference.y).max()
    for time, size in ((1e-6, 1.0), (1e3, 1e6), (1e6, 1e-6)):
        result = run(name, time, size)
        np.testing.assert_allclose(result.y / size, reference.y, rtol=0, atol=close)
        np.testing.assert_allclose(result.t_jumps / time, reference.t_jumps, rtol=1e-9)
        for ours, known in zip(result.t_events or [], reference.t_events or [], strict=True):
            np.testing.assert_allclose(ours / time, known, rtol=1e-9)
        assert 1 / 1.5 < result.statistics.steps / reference.statistics.steps < 1.5
        assert 1 / 1.5 < result.nfev / reference.nfev < 1.5
