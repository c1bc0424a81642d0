"""`fc.ago` in the language of laws: what it splits into, how it is written, what is refused."""

import pickle
from typing import Any

import pytest
from sympy import Max, Piecewise, Symbol, symbols

import fluidcc as fc
from fluidcc.laws.kernels import kernel_text
from fluidcc.laws.past import ago, pasts, running
from fluidcc.symbols import RTT, Let, c, e, edot, t, unfold, y

x, k, w, T = symbols("x k w T", positive=True)
n, q = symbols("n q", nonnegative=True)
UNITS = {x: "bit/s", k: "1/s", w: "bit/s", T: "s", n: "bit"}


def law(flow: Any, **more: Any) -> fc.Source:
    given: Any = {
        "params": {k: 1, w: 1e5, T: 0.1},
        "initial": {x: 1e5, n: 0},
        "units": UNITS,
    } | more
    return fc.Source("Late", {x: flow, n: x}, {"rate": x}, lower={x: 0}, **given)


def test_an_expression_splits_into_the_past_of_each_symbol() -> None:
    late = ago(Let("v", x * e) ** 2 / RTT, T)
    assert late == ago(x, T) ** 2 * ago(e, T) ** 2 / (ago(e, T) + Symbol("e_b", nonnegative=True))
    assert ago(t, T) == t - T
    assert ago(5, T) == 5


def test_parameters_have_no_past() -> None:
    assert law(k * (w - ago(w * x / w * k / k, T))) is law(k * (w - ago(x, T)))


def test_a_lag_by_name_is_that_lag() -> None:
    assert ago(x, RTT) == ago(x, unfold(RTT)) == unfold(ago(x, RTT))
    assert pickle.loads(pickle.dumps(ago(x, RTT))) == ago(x, RTT)
    assert ago(x, T).xreplace({x: n, T: 2 * T}) == ago(n, 2 * T)
    assert ago(x, T).diff(x) == 0  # the state now says nothing of the state then
    assert ago(x, T).subs(x, 3) == ago(x, T)


def test_it_is_written_as_people_do() -> None:
    late = law(k * (w - ago(x, RTT + T)))
    assert r"x\!\left(t - \left(T + \mathrm{RTT}\right)\right)" in late.latex
    assert r"\mathrm{RTT} &= e + e_{b}" in late.latex
    assert "dx/dt = k*(w - x(t - (T + RTT)))" in str(late.__doc__)


def test_a_state_known_by_differences_runs_on() -> None:
    assert running(law(k * (w - (n - ago(n, RTT)) / RTT))) == (n,)
    assert running(law(k * (w - Max(ago(n, T) - ago(n, 2 * T), 0) / T))) == (n,)
    assert running(law(k * (w - (2 * n - ago(n, RTT)) / RTT))) == ()
    assert running(law(k * (w - ago(x, T)))) == ()
    assert [one.of for one in pasts(law(k * (w - ago(x, T))))] == [x]


def test_a_round_trip_that_branches_share_stays_in_the_lag() -> None:
    """What is computed once for two branches is not put in the place of a lag."""
    branch = Piecewise((ago(x, RTT) * T / RTT, x > w), (x * T / RTT, True))
    text = kernel_text(law(k * (w * T / RTT + w * RTT / T - branch)))
    assert "u22 = u[22*su + i]" in text


_SIZE = {q: "s", k: "1/s", T: "s"}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: law(k * (w - ago(e, T))), r"mixes units: it adds w \[bit/s\] and -e\(t - \(T\)\)"),
        (lambda: law(k * (w - ago(x, k))), r"the lag of x\(t-\(k\)\) has unit 1/s, wanted s"),
        (lambda: law(k * (w - ago(x, T * (1 + edot)))), "the lag in the flow of x depends on edot"),
        (lambda: law(k * (w - ago(x, y))), "y in the lag in the flow of x is neither a state"),
        (lambda: ago(ago(x, T), T), "the expression of ago is .* has a past itself"),
        (lambda: ago(x, T + ago(e, T)), "the lag of ago is .* has a past itself"),
        (lambda: ago("x", T), "the expression of ago is 'x'"),
        (lambda: law(k * (w - ago(y, T))), "has the past of y, which is neither a state, a param"),
        (
            lambda: law(k * w, initial={x: 1e5, n: ago(x, T) * T}),
            r"x\(t-\(T\)\) in the initial value of n is neither",
        ),
        (
            lambda: fc.Link("Late", {q: (y - c) / c}, {"mark": k * ago(q, T)}, queue=q,
                            lower={q: 0}, params={k: 1, T: 1}, units=_SIZE, initial={q: 0}),
            r"output 'mark' has the past q\(t-\(T\)\), but links know of none",
        ),
    ],
)  # fmt: skip
def test_what_has_no_past_is_refused(make: Any, said: str) -> None:
    with pytest.raises(fc.errors.LawError, match=said):
        make()
