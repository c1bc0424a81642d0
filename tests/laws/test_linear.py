"""Linearised laws: exact on each branch, and answering small signals as the law itself does."""

import numpy as np
import pytest
from sympy import Eq, Symbol, lambdify, simplify, symbols

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.laws import Law
from fluidcc.laws.linear import active_modes, at_rest, branch_function, slope, standing
from fluidcc.papers.model import proof
from fluidcc.sources import LDCC, SampledLDCC, StaticReno
from fluidcc.symbols import RTT, c, e, e_b, edot, packet, pi, plain, price, unfold, x_tau, y
from tests.some_laws import all_laws, random_values, reference

N = 25
STEP = 1e-40
s = Symbol("s", positive=True)


@pytest.mark.slow
@pytest.mark.parametrize("law", all_laws(), ids=lambda law: law.name)
def test_branches_equal_the_law_and_jacobians_equal_complex_steps(law: Law) -> None:
    values = random_values(law, N, seed=3)
    z, u, p = (
        np.array([values[s] for s in group]).reshape(len(group), N)
        for group in (law.states, law.inputs, law.params)
    )
    branch, function = branch_function(law)(z, u, p, active_modes(law, z, u, p)), reference(law)
    for got, wanted in zip(branch[:2], function(z, u, p), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13 * np.abs(u).max())
    found = branch.jacobians
    for columns, matrices in ((z, (found.A, found.C)), (u, (found.B, found.D))):
        for j in range(len(columns)):
            moved = columns.astype(complex)
            moved[j] += 1j * STEP
            flow, out = function(moved, u, p) if columns is z else function(z, moved, p)
            for matrix, rows in zip(matrices, (flow, out), strict=True):
                atol = 1e-13 * np.abs(matrix).max(initial=1.0)
                np.testing.assert_allclose(matrix[:, j], rows.imag / STEP, rtol=1e-12, atol=atol)


def test_ldcc_at_rest_follows_its_delay_by_its_penalty() -> None:
    (x,), (_, beta, T, eta) = LDCC.states, LDCC.params
    rest = at_rest(LDCC, given={pi: 0}, eliminate=e)  # (18)
    wanted = -eta * x / (e + e_b) * beta * (T + e_b) / (e + e_b) ** 2  # -k x v'(e)
    assert simplify(rest.B[0, LDCC.inputs.index(e)] - rest.put(wanted)) == 0


def test_a_sampled_law_stands_still_where_the_continuous_one_does() -> None:
    """At a constant delay the averages of an interval are the delay itself."""
    (x,), steady = LDCC.states, {edot: 0, pi: 0, packet: 8000, e: 0.3, e_b: 0.02}
    held, flow = (
        unfold(law.flow[x]).subs({**law.params, **steady, x: 1e6})
        for law in (standing(SampledLDCC, "flow"), LDCC)
    )
    assert float(held) == pytest.approx(float(flow))
    assert float(flow) < 0


def test_a_switching_surface_is_refused() -> None:
    z, p = [np.array(1e6)], [np.array(v) for v in LDCC.params.values()]
    u = [np.array(LDCC.parameter("T") if s == e else 0.1) for s in LDCC.inputs]
    with pytest.raises(InvalidInput, match=r"LDCC stands on a switching surface, -T \+ e = 0"):
        active_modes(LDCC, z, u, p)


def test_reno_has_the_coefficients_of_hollot_misra_towsley_gong() -> None:
    """INFOCOM 2001, (5): W0^2 p0 = 2 and dW' = -(N/(R^2 C)) (dW + dW_R) - (R C^2/(2 N^2)) dp,
    less queue terms, with W0 = R C/N; x_tau = packet W_R/R is a signal of its own.
    """
    (W,), (a, b) = StaticReno.states, StaticReno.params
    rest = at_rest(StaticReno, eliminate=pi)
    assert proof(Eq(rest.values[pi], a / (b * W**2))).status == "proved"
    half = {a: 1, b: 1 / unfold(2)}
    own, by_mark = rest.A[0, 0].subs(half), rest.B[0, StaticReno.inputs.index(pi)].subs(half)
    delayed = (rest.B[0, StaticReno.inputs.index(x_tau)] * packet / (e + e_b)).subs(half)
    assert simplify(own + 1 / (W * (e + e_b))) == 0  # N/(R^2 C) = 1/(W0 R)
    assert simplify(delayed - own) == 0
    assert simplify(by_mark + W**2 / (2 * (e + e_b))) == 0  # R C^2/(2 N^2)
    assert proof(Eq(rest.A[0, 0], -a / (W * rest.put(RTT)))).status == "proved"
    assert proof(Eq(rest.D[0, StaticReno.inputs.index(pi)], 0))


def test_a_power_with_a_symbol_as_exponent_has_a_slope_at_zero() -> None:
    B, g = symbols("B g", positive=True)
    f = (c * (y / c) ** B + g * y**2) * (1 + (y / c) ** g)
    found = slope(f, y)
    assert simplify(found - f.diff(y)) == 0
    assert found.subs({B: 3, g: 2, c: 5, y: 0}) == 0
    assert slope(B**y, y) == (B**y).diff(y)


def test_ldcc_answers_a_sine_of_delay_as_its_nonlinear_law_does() -> None:
    rest = at_rest(fc.LDCC, given={pi: 0}, eliminate=e)
    (x,) = fc.LDCC.states
    values = {**fc.LDCC.params, x: 1e6, e_b: 0.05}
    delay, omega, size = float(rest.values[e].subs(values)), 7.0, 1e-6
    answer = complex(rest.transfer("rate", e, s).subs(values).subs(s, 1j * omega))
    flow = fc.LDCC.flow[x]
    slope = next(u for u in fc.LDCC.inputs if plain(u) == "edot")
    known = {pi: 0, e_b: 0.05, **fc.LDCC.params}
    f = lambdify((x, e, slope), unfold(flow).subs(known), "numpy")
    forced = fc.solve_dde(
        lambda t, z, Z: f(z, delay + size * np.sin(omega * t), size * omega * np.cos(omega * t)),
        (0.0, 400.0), np.array([1e6]), [], t_eval=np.linspace(380, 400, 400), rtol=1e-10,
        atol=1e-10,
    )  # fmt: skip
    angle = omega * forced.t
    basis = np.column_stack([np.sin(angle), np.cos(angle), np.ones(len(angle))])
    a, b, _ = np.linalg.lstsq(basis, forced.y[0], rcond=None)[0]
    assert abs((a + 1j * b) / size - answer) < 1e-4 * abs(answer)


def test_a_static_link_has_its_derivative() -> None:
    (_B,) = fc.PenaltyLink.params
    rest = at_rest(fc.PenaltyLink)
    slope = unfold(fc.PenaltyLink.out["price"]).diff(y)
    assert proof(Eq(rest.transfer("price", y, s), slope)).status == "proved"
    assert rest.A.shape == (0, 0)


def test_a_price_source_answers_its_price_with_a_lag() -> None:
    rest = at_rest(fc.PrimalPenalty)
    (x,), alpha = fc.PrimalPenalty.states, symbols("alpha", positive=True)
    assert fc.PrimalPenalty.utility is not None
    curvature = fc.PrimalPenalty.utility.diff(x, 2)
    wanted = -alpha / (s - alpha * curvature)
    assert proof(Eq(rest.transfer("rate", price, s), rest.put(wanted))).status == "proved"


def test_what_it_cannot_do_is_said() -> None:
    with pytest.raises(Unsupported, match="no branch"):
        at_rest(fc.LDCC, given={pi: 0, e: 0, symbols("T", positive=True): 1})
    with pytest.raises(InvalidInput, match="no output 'speed'"):
        at_rest(fc.StaticReno, eliminate=pi).transfer("speed", e, s)
    assert {x_tau, packet} <= set(fc.StaticReno.inputs)
