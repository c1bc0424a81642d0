"""LDCC's closed forms: proved, derived from the law, and as networks have them."""

import numpy as np
import pytest
from sympy import I, diff, solve
from sympy import exp as sexp

import fluidcc as fc
from fluidcc.formulas import ldcc
from fluidcc.symbols import RTT, e, e_b, edot, pi, plain, unfold

(X,) = fc.LDCC.states
FLOW = unfold(fc.LDCC.flow[X])
P = {plain(s): s for s in fc.LDCC.params}


@pytest.mark.parametrize("name", ldcc.__all__)
def test_claims_are_proved_and_defaults_are_the_laws(name: str) -> None:
    form = getattr(ldcc, name)
    assert all(map(fc.prove, form.claims.values()))
    assert all(v == fc.LDCC.params[P[s.name]] for s, v in form.defaults.items() if s.name in P)


def test_rest_and_slope_follow_from_the_law() -> None:
    still = FLOW.subs({edot: 0, pi: 0}).subs(P["T"], e - fc.symbols.positive("d"))  # beyond T
    own = dict(zip(("e", "e_b", "w", "beta", "T"), ldcc.equilibrium_rate.arguments, strict=True))
    put = {own["e"]: e, own["e_b"]: e_b, own["T"]: e - fc.symbols.positive("d")}
    (found,) = [z for z in solve(still, X) if z != 0]
    wanted = ldcc.equilibrium_rate.form.subs({**put, **{own[k]: P[k] for k in ("w", "beta")}})
    assert (found - wanted).simplify() == 0
    values = {P["w"]: 2e4, P["beta"]: 0.1, P["T"]: 0.1, e_b: 0.025}
    delay, n, c = ldcc.equilibrium_delay(1e6, 0.025), 3, 3e6
    price = -diff(FLOW.subs({edot: 0, pi: 0}), e) / (P["eta"] * X / unfold(RTT))
    slope = price.subs({**values, X: 1e6}).subs(e, delay).evalf()
    # Along e the gain eta/RTT varies too, but what it multiplies is 0.
    assert float(slope) == pytest.approx(ldcc.penalty_slope(1e6, delay + 0.025), rel=1e-9)
    rate, loss = ldcc.loss_driven(c, n)
    at = {**values, P["eta"]: 0.4, X: rate, pi: loss, edot: 0, e: 0.05}
    assert float(FLOW.subs(at)) == pytest.approx(0, abs=1e-9 * rate)


def test_nada_rests_there() -> None:
    rest = fc.equilibrium(fc.dumbbell([fc.NADA(R_max=5e6)], {"capacity": 2e6}, rtt=0.05))
    assert rest.one_way_delay.item() == pytest.approx(ldcc.nada_delay(2e6, 0.025, 5e6))


def test_the_user_loop_is_43() -> None:
    omega, x, R = 3.0, 1e6, 0.2
    found = ldcc.user_loop(omega, x, R, rho=2)
    s, eta, w, beta = I * omega, 0.4, 2e4, 0.1
    wanted = 2 * eta * sexp(-s * R) / (s * R) * ((beta - w / x) / R + s) / (s + eta * w / (x * R))
    value = complex(wanted.evalf())
    assert found.magnitude == pytest.approx(abs(value))
    assert np.exp(1j * found.phase) == pytest.approx(value / abs(value))


def test_the_printed_update_gains_below_the_threshold() -> None:
    at = {"x": 1e6, "x_recv": 1e6, "rtt": 0.1, "T_s": 0.1}
    above, below = (ldcc.discrete_update(e=e, **at) / 1e6 for e in (0.15, 0.05))
    assert [above, below] == pytest.approx([1 + 0.4 * (0.02 - 0.05), 1 + 0.4 * (0.02 + 0.05)])
