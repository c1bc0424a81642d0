"""Laws at rest as formulas on registers: values and derivatives against the symbolic ones."""

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import DiracDelta, S, lambdify, symbols
from sympy.codegen.cfunctions import expm1, log1p

import fluidcc as fc
from fluidcc import sources
from fluidcc.base.errors import Unsupported
from fluidcc.laws import Source
from fluidcc.laws.bytecode import hears_rate, link_tape, source_tape, tape
from fluidcc.laws.parts import told_apart
from fluidcc.symbols import (
    e,
    e_b,
    edot,
    loss,
    mark,
    noise,
    numpy_function,
    offer_min,
    packet,
    pi,
    price,
    t,
    unfold,
    x_tau,
)  # fmt: skip

ALL = [law for name in sources.__all__ if isinstance(law := getattr(sources, name), Source)]
LAWS = [
    law for law in ALL if not {s for _, f in law.expressions() for s in f.free_symbols} & {t, noise}
]
a, b, c = symbols("a b c", real=True)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=lambda v: v.name)
def test_source_tape_gives_the_system_and_its_jacobians(law: Source) -> None:
    heard = {e: 0.2, pi: 0.01, price: 0.02, offer_min: 3e6}
    heard |= {loss: 0.004, mark: 0.006} if told_apart(law) else {}
    point = {z: 3e5 + 7 * i for i, z in enumerate(law.states)} | heard | {x_tau: 2e5}
    point |= {edot: 0.0, e_b: 0.05, packet: 8000.0, **law.params}
    G = sp.Matrix([unfold(f) for f in (*law.flow.values(), law.out["rate"])])
    J = G.jacobian([*law.states, x_tau, *heard])
    flat = (DiracDelta, sp.Subs, sp.Derivative)  # of steps, and of ceilings
    wanted = [
        f.doit().replace(lambda a: isinstance(a, flat), lambda _: S.Zero) if f.has(*flat) else f
        for f in (*G, *J)
    ]
    with np.errstate(all="ignore"):  # the side not taken
        numbers = numpy_function([*point], wanted, {}, cse=True)(*map(np.float64, point.values()))
    values = source_tape(law)(*map(float, point.values()))
    np.testing.assert_allclose(values, numbers, rtol=1e-11, atol=1e-30)


def test_link_tape_leaves_the_queue_out() -> None:
    assert link_tape(fc.DropTail)(0.1, 2e6, 1e6, 0.5).tolist() == [0, 0, 0, 0, 0, 0]
    # DualLink: nu (y - c), no mark, price lambda; derivatives by q, lambda, y.
    values = link_tape(fc.DualLink)(0.0, 0.3, 3e6, 1e6, np.inf, 1e-6)
    np.testing.assert_allclose(values, [2, 0, 0.3, 0, 0, 1e-6, 0, 0, 0, 0, 1, 0], rtol=1e-14)
    assert hears_rate(fc.DualLink)
    assert not hears_rate(fc.DropTail)


FORMULAS = [
    a / b, -a * b / 3, (a - b) ** 3, (a + b) ** -2, sp.sqrt(1 + a**2), 1 / sp.sqrt(1 + b**2),
    (1 + a**2) ** 0.3, sp.exp(-a) * sp.log(1 + b**2), sp.Max(a, b, c), sp.Min(a, 2 * b),
    sp.Abs(a - b),
    sp.sign(a) * sp.Heaviside(b), sp.tanh(a) + sp.floor(3 * b), sp.ceiling(2 * a),
    sp.Piecewise((a, a > b), (b**2, sp.Or(b > c, sp.Ne(a, c))), (c, True)),
    sp.Piecewise((sp.log(a), a > 0), (c, sp.And(b <= c, sp.Not(a >= c))), (1, True)),
    2 * a * b / (c * (1 + a**2)) - 1.5, sp.sin(a) + sp.cos(b), sp.tan(a), sp.atan(b), sp.asinh(c),
    sp.sinh(a) - sp.cosh(b), sp.asin(a / 4), sp.acos(b / 4), sp.atanh(c / 4), sp.acosh(1 + a**2),
    expm1(a), log1p(b**2),
]  # fmt: skip
TAPE, BY_NUMPY = tape([a, b, c], FORMULAS), lambdify([a, b, c], FORMULAS, ["numpy"])


@settings(max_examples=30, deadline=None)
@given(point=st.tuples(*[st.floats(-3, 3)] * 3))
def test_formulas_are_numpys(point: tuple[float, ...]) -> None:
    with np.errstate(all="ignore"):
        wanted = [complex(v) for v in BY_NUMPY(*map(np.float64, point))]
    got = TAPE(*point)
    real = [v.real if v.imag == 0 else np.nan for v in wanted]
    np.testing.assert_allclose(got, real, rtol=1e-13, atol=1e-300)


def test_formulas_at_zero_and_of_nan() -> None:
    run = tape([a, b], [sp.Heaviside(a), sp.sign(a), sp.Max(a, b), sp.Min(a, b), a**3])
    assert run(0.0, 0.0).tolist() == [0.5, 0, 0, 0, 0]
    assert np.isnan(run(np.nan, 1.0)).all()


def test_shared_parts_are_computed_once() -> None:
    f = sp.exp(a * b) + 1
    assert len(tape([a, b], [f, f**2, 1 / f]).instructions) <= 6


def test_unknown_functions_are_refused() -> None:
    with pytest.raises(Unsupported, match="besselj is no function"):
        tape([a], [sp.besselj(1, a)])
    with pytest.raises(Unsupported, match="hidden is no function"):
        tape([a], [sp.Function("hidden")(a)])


def test_what_has_no_steady_value_is_named() -> None:
    with pytest.raises(Unsupported, match="noise has no steady value"):
        tape([a], [a + noise])
