"""`solve_dde` of SymPy equations: the solution of the same functions by hand, errors in words."""

from typing import Any

import numpy as np
import pytest
import sympy as sp

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, UnknownName, Unsupported
from tests.numerics.dde.problems import PROBLEMS

t, s, a, tau = sp.symbols("t s a tau")
x, u, v, w, z = map(sp.Function, "xuvwz")
HALF = sp.Rational(1, 2)

#: the exact problems in SymPy: equations and history
SYMBOLIC: dict[str, tuple[Any, Any]] = {
    "constant": ({x(t): -x(t - 1)}, 1.0),
    "vanishing": ({x(t): 1 - x(sp.exp(1 - 1 / t))}, {x(t): sp.log(t)}),
    "vanishing state-dependent": (
        {x(t): v(t), v(t): -v(sp.exp(1 - v(t))) * v(t) ** 2 * sp.exp(1 - v(t))},
        {x(t): sp.log(t), v(t): 1 / t},
    ),
    "Feldstein-Neves": ([sp.Eq(x(t).diff(t), x(x(t) - sp.sqrt(2) + 1) / (2 * sp.sqrt(t)))], [1.0]),
    "Paul": ({x(t): x(t) * x(sp.log(x(t)) - 1) / (t + 1)}, {x(t): 1}),
    "switching": ({x(t): -1 - x(t) + 2 * sp.Heaviside(-x(t / 2))}, 1.0),
    "switching undeclared": (
        {x(t): -1 - x(t) + sp.Piecewise((2, x(t / 2) < 0), (0, True))},
        1.0,
    ),
    "harmonic": ({x(t): -x(t - sp.pi / 2)}, {x(t): sp.cos(t)}),
    "pantograph": ({x(t): -(x(t / 2) ** 2)}, 1.0),
    "Tavernini": ({x(t): sp.cos(t) * x(x(t) - 2)}, 1.0),
    "a lag in time": (
        {x(t): -x(t - 1 - 1 / (1 + t)) * sp.exp(-1 - 1 / (1 + t))},
        {x(t): sp.exp(-t)},
    ),
    "two lags": (
        {
            x(t): z(t - 1) + v(t - 1),
            u(t): x(t - 1) + u(t - HALF),
            v(t): v(t - 1) + x(t - HALF),
            w(t): z(t - 1) * w(t - 1),
            z(t): x(t - 1),
        },
        {
            x(t): sp.exp(t + 1),
            u(t): sp.exp(t + HALF),
            v(t): sp.sin(t + 1),
            w(t): sp.exp(t + 1),
            z(t): sp.exp(t + 1),
        },
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SYMBOLIC)
def test_the_exact_problems_in_sympy(name: str) -> None:
    """Within a hundred tolerances, and to rounding as the plain functions where these declare all
    kinks.
    """
    problem, (equations, history) = PROBLEMS[name], SYMBOLIC[name]
    times = np.linspace(*problem.span, 501)
    for rtol in (1e-4, 1e-6, 1e-8, 1e-10):
        same: Any = {"rtol": rtol, "atol": rtol, "t_eval": times}
        ours = fc.solve_dde(equations, problem.span, history, **same)
        assert ours.success, ours.message
        assert np.abs(ours.y - problem.solution(times)).max() <= 100 * rtol
        if name != "switching undeclared":
            plain = fc.solve_dde(
                problem.fun, problem.span, problem.history, problem.lags, **problem.kwargs, **same
            )
            np.testing.assert_allclose(ours.y, plain.y, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_kinks_of_equations_are_switches() -> None:
    """y' = max(sin t, 0) + |cos t| costs no steps for its kinks, and no accuracy."""
    result = fc.solve_dde(
        {x(t): sp.Max(sp.sin(t), 0) + sp.Abs(sp.cos(t))}, (0.1, 6), 0.0, rtol=1e-10, atol=1e-10
    )
    assert result.statistics.switchings == 3
    exact = 5 + np.cos(0.1) - np.sin(0.1) + np.sin(6)
    assert result.y[0, -1] == pytest.approx(exact, abs=1e-9)


def test_a_root_beyond_its_kink_has_no_value_and_needs_none() -> None:
    """x' = -sqrt(max(x, 0)) reaches zero at t = 2, and rests."""
    result = fc.solve_dde({x(t): -sp.sqrt(sp.Max(x(t), 0))}, (0, 3), 1.0, rtol=1e-8, atol=1e-8)
    assert result.success, result.message
    assert result.y[0, -1] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.slow
def test_events_parameters_and_many_runs() -> None:
    """x' = -a x(t - tau), and when x and x(t - tau) pass a half."""
    equations, start = {x(t): -a * x(t - tau)}, {x(t): 1 + t * 0}
    watched = [x(t) - a / 2, x(t - tau) - a / 2]
    lags = np.array([0.5, 1.0, 1.5])
    runs = fc.solve_dde(equations, (0, 3), start, args={a: 1, "tau": lags}, events=watched)
    for lag, run in zip(lags, runs, strict=True):
        alone = fc.solve_dde(equations, (0, 3), start, args={a: 1, tau: lag}, events=watched)
        np.testing.assert_array_equal(run.y, alone.y)
        now, then = alone.t_events
        assert now[0] == pytest.approx(0.5, abs=1e-8)
        assert then[0] == pytest.approx(0.5 + lag, abs=1e-8)


@pytest.mark.slow
def test_histories_may_depend_on_parameters() -> None:
    """x' = x(t - 1) with the past a t + 1: x = 1 + (1 - a) t + a t^2 / 2 up to 1."""
    result = fc.solve_dde({x(t): x(t - 1)}, (0, 1), {x(t): a * t + 1}, args={a: 0.5})
    assert result.y[0, -1] == pytest.approx(1.75, abs=1e-9)
    runs = fc.solve_dde({x(t): a * x(t - 1)}, (0, 1), {x(t): a}, args={a: [1.0, 2.0]})
    np.testing.assert_allclose([run.y[0, -1] for run in runs], [2.0, 6.0])


#: equations of higher order with exact solutions: equations, history, end, exact value of each row
HIGHER: dict[str, tuple[Any, Any, float, list[float]]] = {
    "second order, at rest before": (  # Zulko/ddeint#10
        [sp.Eq(x(t).diff(t, 2), -x(t))], 1.0, 5.0, [np.cos(5), -np.sin(5)],
    ),
    "second order by its name in a dict, from a sine": (
        {x(t).diff(t, 2): -x(t)}, sp.sin(t), 5.0, [np.sin(5), np.cos(5)],
    ),
    "velocity given": (
        {x(t).diff(t, 2): -x(t)}, {x: 1, x(t).diff(t): 2}, 1.0,
        [np.cos(1) + 2 * np.sin(1), 2 * np.cos(1) - np.sin(1)],
    ),
    "a delayed velocity": (  # of exp(-t), 1 before: -exp(1 - t)
        {x(t).diff(t, 2): -sp.exp(-1) * x(t - 1).diff(t)}, {x(t): sp.exp(-t)}, 3.0,
        [np.exp(-3), -np.exp(-3)],
    ),
    "a lag in proportion, third order": (  # the slope of exp at t / 2, squared, is exp(t)
        {x(t).diff(t, 3): (2 * x(t / 2).diff(t)) ** 2}, {x(t): sp.exp(t)}, 1.0, [np.exp(1)] * 3,
    ),
    "mixed orders, velocity on the right": (
        [sp.Eq(x(t).diff(t, 2), -x(t)), sp.Eq(v(t).diff(t), x(t).diff(t) + x(t).diff(t, 2))],
        {x(t): sp.sin(t), v(t): sp.sin(t) + sp.cos(t)}, 2.0,
        [np.sin(2), np.sin(2) + np.cos(2), np.cos(2)],
    ),
    "the slope of a sum": (
        {sp.Derivative(x(t) + t**2, t): 2 * t - x(t - 1)}, 1.0, 2.0, [-0.5],
    ),
    "implicit": (
        [sp.Eq(x(t).diff(t) + v(t).diff(t), 0), sp.Eq(2 * x(t).diff(t) - v(t).diff(t), 3 * x(t))],
        {x(t): 1, v(t): 1}, 1.0, [2 - np.exp(1), np.exp(1)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HIGHER)
def test_equations_of_higher_order_are_solved_as_systems(name: str) -> None:
    equations, history, end, exact = HIGHER[name]
    run = fc.solve_dde(equations, (0, end), history, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(run.y[:, -1], exact, atol=1e-8)
    assert run.rows["x"] == (1 if name == "implicit" else 0)
    np.testing.assert_array_equal(run.of(x(t)), run.y[run.rows["x"]])
    if "order" in name:
        np.testing.assert_array_equal(run.of(x(t).diff(t)), run.of("x'"))
    with pytest.raises(UnknownName, match="the result has no variable z; it has "):
        run.of("z")


def test_events_of_derivatives_have_direction_and_end() -> None:
    """x = sin t: its maxima, its first zero as it falls, and a jump where it does."""
    falls = (x(t), {"direction": -1, "terminal": True})
    given: Any = {"fun": {x(t).diff(t, 2): -x(t)}, "t_span": (0, 9), "history": sp.sin(t)}
    run = fc.solve_dde(**given, events=[(x(t).diff(t), {"direction": -1}), falls])
    assert run.t_events[0] == pytest.approx([np.pi / 2], abs=1e-5)
    assert run.t[-1] == pytest.approx(np.pi, abs=1e-5)
    run = fc.solve_dde(**given, jumps=[((x(t), {"direction": -1}), lambda t, y: [0.0, 0.0])])
    assert (run.y[:, -1] == 0).all()


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"lags": [1.0]}, InvalidInput, "lags are told by the equations"),
        ({"switches": [x(t)]}, InvalidInput, "switches are told by the equations"),
        ({"fun": []}, InvalidInput, "no equations"),
        ({"fun": [x(t)]}, InvalidInput, r"x\(t\), which is no equation"),
        ({"fun": {x(t): v(t)}}, UnknownName, r"no equation of v\(t\); there are those of x"),
        ({"fun": {x(t): x(t), x(2 * t): x(t)}}, InvalidInput, r"x\(2\*t\) is no state"),
        ({"fun": {x(t): x(t - x(t - 1))}}, Unsupported,
         r"lag x\(t - 1\) .* Eq\(lag\(t\)\.diff\(t\), \(x\(t - 1\) - lag\(t\)\)/T\)"),
        ({"args": {}}, InvalidInput, "parameter a of the equations has no value"),
        ({"args": (1.0,)}, InvalidInput, "args must name parameters"),
        ({"args": {a: 1, "b": 2}}, UnknownName, "args has b, no parameter of the equations"),
        ({"args": {a: "one"}}, InvalidInput, "a is 'one'"),
        ({"history": {v(t): 1}}, InvalidInput, r"history has v\(t\); give it for each of x"),
        ({"history": {x(t): a * t}, "args": {a: [1, 2]}}, Unsupported, "parameters of many runs"),
        ({"t_span": (1, 0)}, Unsupported, "backwards"),
        ({"nonsense": 1}, InvalidInput, "has no argument 'nonsense'"),
        ({"fun": {x(t): -x(t - 1).diff(t)}}, Unsupported, r"neutral: x'\(t - 1\)"),  # scipy#818
        ({"fun": {x(t).diff(t, 2): sp.Subs(x(t).diff(t, 2), t, t / 2)}}, Unsupported,
         r"neutral: x''\(t/2\)"),
        ({"fun": [sp.Eq((x(t) - x(t - 1) / 2).diff(t, evaluate=False), -x(t))]}, Unsupported,
         r"neutral: x'\(t - 1\)"),
        ({"fun": {x(t): sp.Derivative(x(t) * x(t - x(t)), t)}}, Unsupported, "neutral"),
        ({"fun": [sp.Eq(x(t - 1).diff(t), -x(t))]}, InvalidInput, "no derivative at time itself"),
        ({"fun": {x(t): sp.Integral(x(s), (s, t - 1, t))}}, Unsupported, "distributed delay"),
        ({"fun": {x(t): sp.DiracDelta(t - 1)}}, Unsupported, "impulse; give it as jumps"),
        ({"fun": {x(t): sp.Derivative(sp.Heaviside(t - 1), t)}}, Unsupported, "impulse; give it"),
        ({"fun": {x(t): sp.Derivative(sp.Piecewise((0, t < 1), (1, True)), t)}}, Unsupported,
         "impulses where its function jumps"),
        ({"fun": {x(t): sp.Matrix([x(t)])}}, InvalidInput, "which is no equation"),
        ({"fun": {x(t): sp.Sum(x(t) ** s, (s, 0, a))}}, Unsupported, "write it out"),
        ({"fun": {x(t): w(t, s).diff(s)}}, Unsupported, "partial differential"),
        ({"fun": [sp.Eq(sp.Derivative(x(t), s), 1)]}, Unsupported, "with respect to s"),
        ({"fun": {x(t): sp.I * x(t)}}, Unsupported, "complex"),
        ({"fun": {x(t): sp.besselj(0, a * x(t))}}, Unsupported, "use besselj, which cannot"),
        ({"fun": {x(t): x(t).diff(t, 2)}}, InvalidInput, "write it for the highest"),
        ({"fun": [sp.Eq(x(t).diff(t), 1)] * 2}, InvalidInput, "two equations"),
        ({"fun": [sp.Eq(x(t).diff(t) ** 2, 1)]}, Unsupported, "must be linear in one"),
        ({"fun": [sp.Eq(x(t).diff(t) - v(t).diff(t), 0)]}, InvalidInput,
         "fun has 1 equation, and derivatives of v, x"),
        ({"fun": [sp.Eq(x(t).diff(t) + s, v(t)), sp.Eq(v(t).diff(t) + s, 0)]}, InvalidInput,
         r"by name: \{v: ..., x: ...\}"),
        ({"fun": {x(t): -a * x(t - tau)}, "args": {a: [1, 2], tau: [1, 2, 3]}}, InvalidInput,
         "a 2 values, tau 3 values; give each"),  # neurophysik/jitcdde#41
        ({"fun": {x(t): a * x(t) * sp.Symbol("a", real=True)}}, InvalidInput, "one name"),
        ({"fun": {x(t).diff(t, 2): x(t)}, "history": np.cos}, InvalidInput, "states are x, x'"),
        ({"history": [1.0, 2.0]}, InvalidInput, "history gives 2 numbers, and the states are x"),
        ({"history": {x(0): 1}}, InvalidInput, r"history has x\(0\); give it for each of x\(t\)"),
        ({"fun": {x(t).diff(t, 2): -a * x(t)}, "history": {x(t): sp.Heaviside(t)}}, InvalidInput,
         r"derivative is not known; give it too: \{Derivative\(x\(t\), t\)"),
        ({"events": [(x(t), {"dir": 1})]}, InvalidInput, "option 'dir'; give direction"),
    ],
)  # fmt: skip
def test_wrong_equations_are_named(changes: dict[str, Any], error: Any, text: str) -> None:
    given = {"fun": {x(t): -a * x(t - 1)}, "t_span": (0, 1), "history": 1.0, "args": {a: 1.0}}
    with pytest.raises(error, match=text):
        fc.solve_dde(**{**given, **changes})
