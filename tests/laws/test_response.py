"""Transfer functions of laws at rest, against differentiation of the law by hand and by
differences.
"""

from __future__ import annotations

import numpy as np
import pytest
from sympy import Eq, Symbol, lambdify, symbols

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.laws.linear import at_rest
from fluidcc.papers.model import proof
from fluidcc.symbols import RTT, e, e_b, packet, pi, plain, price, unfold, x_tau, y

s = Symbol("s", positive=True)


def test_ldcc_answers_a_sine_of_delay_as_its_nonlinear_law_does() -> None:
    rest = at_rest(fc.LDCC, given={pi: 0}, eliminate=e)
    (x,) = fc.LDCC.states
    values = {**fc.LDCC.params, x: 1e6, e_b: 0.05}
    delay, omega, size = float(rest.values[e].subs(values)), 7.0, 1e-6
    answer = complex(rest.transfer("rate", e, s).subs(values).subs(s, 1j * omega))
    flow = fc.LDCC.flow[x]
    slope = next(u for u in fc.LDCC.inputs if plain(u) == "edot")
    f = lambdify(
        (x, e, slope), unfold(flow).subs({pi: 0, e_b: 0.05} | dict(fc.LDCC.params)), "numpy"
    )
    forced = fc.solve_dde(
        lambda t, z, Z: f(z, delay + size * np.sin(omega * t), size * omega * np.cos(omega * t)),
        (0.0, 400.0), np.array([1e6]), [], t_eval=np.linspace(380, 400, 400), rtol=1e-10,
        atol=1e-10,
    )  # fmt: skip
    basis = np.column_stack(
        [np.sin(omega * forced.t), np.cos(omega * forced.t), np.ones(len(forced.t))]
    )
    a, b, _ = np.linalg.lstsq(basis, forced.y[0], rcond=None)[0]
    assert abs((a + 1j * b) / size - answer) < 1e-4 * abs(answer)


def test_reno_at_rest_has_the_square_root_law_and_the_known_pole() -> None:
    rest = at_rest(fc.Reno, eliminate=pi)
    (W,) = fc.Reno.states
    a, b = fc.Reno.params
    assert proof(Eq(rest.values[pi], a / (b * W**2))).status == "proved"
    # With x_tau a signal of its own, W' = a/RTT - b W x_tau pi/packet has the pole -b x pi/packet =
    # -a/(W RTT).
    assert proof(Eq(rest.A[0, 0], -a / (W * rest.put(RTT)))).status == "proved"
    assert proof(Eq(rest.D[0, list(fc.Reno.inputs).index(pi)], 0))


def test_a_static_link_has_its_derivative() -> None:
    (_B,) = fc.PenaltyLink.params
    rest = at_rest(fc.PenaltyLink)
    assert (
        proof(Eq(rest.transfer("price", y, s), unfold(fc.PenaltyLink.out["price"]).diff(y))).status
        == "proved"
    )
    assert rest.A.shape == (0, 0)


def test_a_price_source_answers_its_price_with_a_lag() -> None:
    rest = at_rest(fc.PrimalPenalty)
    x, alpha = (
        fc.PrimalPenalty.states[0],
        next(v for v in fc.PrimalPenalty.params if plain(v) == "alpha"),
    )
    assert fc.PrimalPenalty.utility is not None
    curvature = fc.PrimalPenalty.utility.diff(x, 2)
    wanted = -alpha / (s - alpha * curvature)
    assert proof(Eq(rest.transfer("rate", price, s), rest.put(wanted))).status == "proved"


def test_what_it_cannot_do_is_said() -> None:
    with pytest.raises(Unsupported, match="no branch"):
        at_rest(fc.LDCC, given={pi: 0, e: 0, symbols("T", positive=True): 1})
    with pytest.raises(InvalidInput, match="no output 'speed'"):
        at_rest(fc.Reno, eliminate=pi).transfer("speed", e, s)
    assert {x_tau, packet} <= set(fc.Reno.inputs)
