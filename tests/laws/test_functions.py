"""The functions that laws may use: the same in runs, in equilibria and in linearisations; all
others are refused.
"""

import math
from typing import Any

import numpy as np
import pytest
import sympy
from scipy.optimize import brentq
from sympy import Max, Min, Piecewise, ceiling, floor, log, symbols
from sympy.codegen.cfunctions import exp2, expm1, hypot, log1p, log2

import fluidcc as fc
from fluidcc.base.errors import LawError
from fluidcc.laws.bytecode import tape
from fluidcc.sources.windows import delta
from fluidcc.symbols import FUNCTIONS, RTT, Let, e, pi

x, k, a, b, s = symbols("x k a b s", positive=True)
ONE = [f for f in FUNCTIONS if f not in (Max, Min, Piecewise)]


def law(f: Any) -> Any:
    """A rate that is drawn to a (1 + b f)."""
    units = {x: "bit/s", k: "1/s", a: "bit/s", b: "1"}
    values: dict[Any, Any] = {k: 1, a: 1e6, b: 0.3}
    return fc.Source(
        "Own", {x: k * (a * (1 + b * f) - x)}, {"rate": x}, values, units, initial={x: 1e6}
    )


def net(f: Any) -> Any:
    return fc.dumbbell([{"law": law(f), "return_delay": 0}], {"capacity": 5e6, "delay": 0.01})


@pytest.mark.slow
@pytest.mark.parametrize("some", [ONE[k::5] for k in range(5)], ids=lambda some: some[0].__name__)
def test_each_function_works_everywhere(some: list[Any]) -> None:
    """A sum of functions of 3/2 or 1/2 of a ratio of delays: the rest, and a run's end, are those
    of the formula.
    """
    halves = [sympy.Rational(3 if f is sympy.acosh else 1, 2) for f in some]
    value = sum(float(f(half).evalf()) for f, half in zip(some, halves, strict=True))
    rest = 1e6 * (1 + 0.3 * value)
    made = net(sympy.Add(*(f(half * e / RTT) for f, half in zip(some, halves, strict=True))))
    assert fc.equilibrium(made).rate.item() == pytest.approx(rest, rel=1e-12)
    run = fc.simulate(made, 40.0, samples=3)
    assert run.rate.values[-1, 0] == pytest.approx(rest, rel=1e-6)
    assert np.isfinite(fc.linearize(made).frequency_response([1.0])).all()


@pytest.mark.parametrize(
    "f", [expm1, log1p, sympy.asinh, sympy.atanh, sympy.acosh], ids=lambda f: f.__name__
)
def test_slopes_are_those_of_the_functions(f: Any) -> None:
    at = 1.7 if f is sympy.acosh else 0.3
    value, slope = tape([s], [f(s), f(s).diff(s)])(at)
    assert value == pytest.approx(float(f(at)), rel=1e-14)
    rise = float(f(at + 1e-6)) - float(f(at - 1e-6))
    assert slope == pytest.approx(rise / 2e-6, rel=1e-8)
    if f in (expm1, log1p):  # small numbers keep their digits
        assert tape([s], [f(s)])(1e-12) == pytest.approx(1e-12, rel=1e-11, abs=0)


@pytest.mark.parametrize(
    "f", [exp2, log2, sympy.erf, sympy.gamma, sympy.sec, sympy.sinc], ids=lambda f: f.__name__
)
def test_other_functions_are_refused_when_the_law_is_made(f: Any) -> None:
    says = rf"Own: the flow of x holds {f.__name__}\(.*but laws have no {f.__name__}; wri"
    with pytest.raises(LawError, match=says):
        law(f(e / RTT))


def test_functions_of_two_are_refused_by_name() -> None:
    for f in (hypot, sympy.atan2, sympy.Mod):
        with pytest.raises(LawError, match=f"laws have no {f.__name__}; write it by "):
            law(f(e / RTT, 2 + e / RTT))


def test_a_guard_in_a_let_guards() -> None:
    """log(1 - p) with p = max(pi, 1e-9): a Let is no polynomial because of its name."""
    guarded = log(1 - Let("p", Max(pi, 1e-9)))
    made = fc.dumbbell([law(guarded)], {"capacity": 5e5, "delay": 0.01, "buffer": 1e5})
    # At rest x = a (1 + b log(1 - pi)) with pi = 1 - c/x, the link full.
    wanted = brentq(lambda rate: 1e6 * (1 + 0.3 * math.log(5e5 / rate)) - rate, 5e5, 1e6, xtol=1e-9)
    assert fc.equilibrium(made).rate.item() == pytest.approx(wanted, rel=1e-9)
    run = fc.simulate(made, 60.0, samples=3)
    assert run.rate.values[-1, 0] == pytest.approx(wanted, rel=1e-4)
    unmarked = fc.equilibrium(net(guarded)).rate.item()
    assert unmarked == pytest.approx(1e6 * (1 + 0.3 * math.log1p(-1e-9)), rel=1e-12)


def test_a_let_is_the_kind_of_function_that_it_stands_for() -> None:
    kink, line = Let("p", Max(pi, 1e-9)), Let("v", 2 * pi + 1)
    for kind in ("is_polynomial", "is_rational_function", "is_algebraic_expr"):
        assert not getattr(1 - kink, kind)(pi)
        assert getattr(1 - line, kind)(pi)


def test_steps_are_flat_beside_their_steps() -> None:
    for f in (floor, ceiling):
        value, slope = tape([s], [f(s) * s, (f(s) * s).diff(s)])(2.5)
        assert value == 2.5 * float(f(2.5))
        assert slope == float(f(2.5))


@pytest.mark.parametrize(("f", "step"), [(floor, 3), (ceiling, 4)])
def test_a_verdict_is_that_of_the_step_the_law_is_on(f: Any, step: int) -> None:
    def root(gain: Any) -> complex:
        law = fc.window("Steps", gain * (1 - 10 * delta / b) / RTT, params={k: 0.04, b: 1},
                        units={k: "s", b: "s"}, clock="neutral")  # fmt: skip
        report = fc.stability(fc.dumbbell([law] * 2, {"capacity": "1 Mbit/s"}, rtt="50 ms"))
        return complex(report.rightmost_roots[0])

    assert root(f(delta / k) + 1) == pytest.approx(root(step + 0 * k))  # delta = 0.1 s at rest
