"""Where laws stand still, and how they answer small signals there, in symbols."""

import numpy as np
import pytest
from sympy import Eq, Symbol, lambdify, simplify, symbols

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.papers.model import proof
from fluidcc.proofs.standstill import at_rest
from fluidcc.sources import LDCC, StaticReno
from fluidcc.symbols import RTT, e, e_b, packet, pi, plain, price, unfold, x_tau, y

s = Symbol("s", positive=True)


def test_ldcc_at_rest_follows_its_delay_by_its_penalty() -> None:
    (x,), (_, beta, T, eta) = LDCC.states, LDCC.params
    rest = at_rest(LDCC, given={pi: 0}, eliminate=e)  # (18)
    wanted = -eta * x / (e + e_b) * beta * (T + e_b) / (e + e_b) ** 2  # -k x v'(e)
    assert simplify(rest.B[0, LDCC.inputs.index(e)] - rest.put(wanted)) == 0


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
