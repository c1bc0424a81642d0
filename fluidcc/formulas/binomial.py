"""Binomial congestion controls in steady state: efficiency, packet loss and their growth with the
number of flows.

All equation numbers are those of D. Loguinov and H. Radha, "End-to-end rate-based congestion
control: convergence properties and scalability analysis", IEEE/ACM Transactions on Networking 11
(2003) 564-577. A flow at the rate x [bit/s] adds lambda x**-k in an interval R without loss and
takes away sigma x**l in one with loss; in the steady state it swings between U = C/n and U (1 - z),
where z = sigma U**(l - 1) < 1. C and U are in bit/s or, with (alpha, beta) in place of (lambda,
sigma), in packets a round trip.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from sympy import Expr, Ge, Gt, Le, Lt, Piecewise, S, oo, symbols, sympify

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import InvalidInput
from fluidcc.formulas._formula import Bound, Formula, deficit
from fluidcc.proofs.prove import Proof, prove
from fluidcc.symbols import plain, positive

__all__ = [
    "convergence_factor", "cycle_data", "cycle_time", "efficiency", "efficiency_n",
    "efficiency_n_two_term", "efficiency_one_term", "efficiency_two_term", "iscc_loss",
    "iscc_parameters", "loss", "loss_approximate", "loss_increase", "loss_increase_exact",
    "loss_increase_two_term", "max_flows", "monotonic_convergence", "rate_to_window",
    "scalability_exponent", "tcp_friendly_alpha", "window_to_rate",
]  # fmt: skip

k, l = symbols("k l", real=True)
lam, sigma, U, C, n, R = positive("lam sigma U C n R")
alpha, beta, mtu, rtt = positive("alpha beta mtu rtt")
m_I, m_D = positive("m_I m_D")

z = sigma * U ** (l - 1)
"""The part of the rate that a decrease takes away."""
SHARE = {U: C / n}

_UNITS = {U: "bit/s", C: "bit/s", R: "s", mtu: "bit", rtt: "s"}
formula = partial(Formula, units=_UNITS)
_Z = "z = sigma U**(l - 1)"
_below_one = Bound(
    z < 1,
    "the rate would fall to zero or below; (29) limits U to ",
    sigma ** (1 / (1 - l)),
    _Z,
)
_shared = Bound(
    z.subs(SHARE) < 1,
    "the rate would fall to zero or below; (29) limits n to ",
    C * sigma ** (1 / (l - 1)),
    "z = sigma (C/n)**(l - 1)",
)
_a_flow = Bound(n >= 1)

# --- one cycle ------------------------------------------------------------------------------------

cycle_time = formula(
    "cycle_time",
    (k, l, lam, sigma, U, R),
    U ** (k + 1) * deficit(k + 1, z) * R / lam,
    domain=(_below_one,),
    defaults={R: 1.0},
    ref="(26), the time [s] from U (1 - z) to U; R [s] is the control interval",
)
cycle_data = formula(
    "cycle_data",
    (k, l, lam, sigma, U, R),
    U ** (k + 2) * deficit(k + 2, z) * R / lam,
    domain=(_below_one,),
    defaults={R: 1.0},
    ref="(27), what is sent [bit] from U (1 - z) to U",
)
convergence_factor = formula(
    "convergence_factor",
    (k, l, sigma, U),
    (1 - l * z) * (1 - z) ** k,
    domain=(_below_one,),
    ref="factor by which a small difference of two rates near U shrinks in a cycle [1]; not in the "
    "paper. A decrease multiplies it by 1 - l z, and an increase, x' = lam x**-k/R, by (U/L)**-k. "
    "Its first order in z is 1 - (k + l) z",
)

# --- efficiency -----------------------------------------------------------------------------------

efficiency = formula(
    "efficiency",
    (k, l, sigma, U),
    deficit(k + 2, z) / deficit(k + 1, z),
    domain=(_below_one,),
    ref="(28), mean rate over U [1], with its limits at k = -1 and k = -2",
)
efficiency_one_term = formula(
    "efficiency_one_term",
    (k, l, sigma, U),
    S.One,
    domain=(_below_one,),
    ref="(31), the efficiency [1] to the leading term of (30)",
)
efficiency_two_term = formula(
    "efficiency_two_term",
    (k, l, sigma, U),
    1 - z / (2 - k * z),
    domain=(_below_one, Bound(k * z < 2, "the two-term form of X/dt has its pole at k z = 2")),
    ref="(32), the efficiency [1] to two terms of (30)",
)
efficiency_n = formula(
    "efficiency_n",
    (k, l, sigma, C, n),
    efficiency.form.subs(SHARE),
    domain=(_shared, _a_flow),
    ref="(28) at U = C/n, the efficiency [1] of n flows; its two-term form (33) is "
    "efficiency_n_two_term",
)
efficiency_n_two_term = formula(
    "efficiency_n_two_term",
    (k, l, sigma, C, n),
    efficiency_two_term.form.subs(SHARE),
    domain=(
        _shared,
        _a_flow,
        Bound((k * z).subs(SHARE) < 2, "the two-term form has its pole at k z = 2"),
    ),
    ref="(33), that is (32) at U = C/n [1]; where the paper prints U in it, C is meant",
)
max_flows = formula(
    "max_flows",
    (l, sigma, C),
    Piecewise((C / sigma ** (1 / (1 - l)), l < 1), (oo, True)),
    domain=(
        Bound(
            l <= 1,
            "a decrease with l > 1 takes away less the smaller the rate, so more flows are no "
            "danger",
        ),
        # At l = 1 z is sigma, whatever n is; elsewhere any sigma leaves room for some n.
        Bound(
            Piecewise((sigma, l >= 1), (0, True)) < 1,
            "with l = 1 the rate would fall to zero or below at every n",
            what="z",
        ),
    ),
    ref="(29): n must stay below it [1]; infinite at l = 1",
    infinite=True,
)

# --- loss -----------------------------------------------------------------------------------------

_sent = U ** (2 * k + 2) * deficit(
    k + 2, z
)  # X lam**2 / (lam U**-k R): data over overshoot, times lam**2

loss = formula(
    "loss",
    (k, l, lam, sigma, C, n),
    (lam**2 / (lam**2 + _sent)).subs(SHARE),
    domain=(_shared, _a_flow),
    defaults={n: 1.0},
    ref="(34) at U = C/n, lost over sent [1] if every overshoot is the largest there can be, lam "
    "U**-k R",
)
loss_approximate = formula(
    "loss_approximate",
    (k, l, lam, sigma, C, n),
    (lam**2 / _sent).subs(SHARE),
    domain=(_shared, _a_flow),
    defaults={n: 1.0},
    ref="(36), the loss ratio [1] while it is small; it exceeds 1 where it is not",
)
loss_increase_exact = formula(
    "loss_increase_exact",
    (k, l, lam, sigma, C, n),
    loss.form / loss.form.subs(n, 1),
    domain=(
        _shared,
        _a_flow,
        Bound(z.subs(U, C) < 1, "a single flow would fall to zero or below", what="z at n = 1"),
    ),
    ref="s_n = p_n/p_1 [1] with p_n from (34)",
)
loss_increase = formula(
    "loss_increase",
    (k, l, sigma, C, n),
    loss_approximate.form / loss_approximate.form.subs(n, 1),
    domain=loss_increase_exact.domain,
    ref="s_n = p_n/p_1 [1] with p_n from (36): the first line of (37), in which lam has cancelled",
)
loss_increase_two_term = formula(
    "loss_increase_two_term",
    (k, l, sigma, C, n),
    n ** (l + 2 * k + 1) * (2 - (k + 1) * z.subs(U, C)) / (2 - (k + 1) * z.subs(SHARE)),
    domain=(
        *loss_increase_exact.domain,
        Bound(((k + 1) * z).subs(SHARE) < 2, "the two-term form has its pole at (k + 1) z = 2"),
    ),
    ref="s_n [1] to two terms of (30): the second line of (37)",
)
scalability_exponent = formula(
    "scalability_exponent",
    (k, l),
    l + 2 * k + 1,
    ref="(37): s_n grows as n to this power [1] while losses are small",
)

# --- ideally scalable congestion control ----------------------------------------------------------

_scalable = (
    Bound(l > 1, "(39) is for l > 1"),
    Bound(m_I >= 1),
    Bound(m_D - l >= 0, "(39) asks for m_D of at least ", l, "m_D - l"),
)

iscc_parameters = formula(
    "iscc_parameters",
    (k, l, C, m_I, m_D),
    {"lam": C ** (k + 1) / m_I, "sigma": 1 / (m_D * C ** (l - 1))},
    domain=_scalable,
    ref="(41) and (39): no rate up to C grows by more than 1/m_I or shrinks by more than 1/m_D of "
    "itself, if k <= -1",
)
iscc_loss = formula(
    "iscc_loss",
    (k, l, m_I, m_D, n),
    loss.form.subs(
        dict(zip((lam, sigma), iscc_parameters.form.values(), strict=True)), simultaneous=True
    ).simplify(),
    domain=(*_scalable, _a_flow),
    defaults={n: 1.0},
    ref="(34) with (39) and (41), lost over sent [1]; (42) is its value at n = 1. C cancels, n "
    "does not",
)

# --- windows and rates ----------------------------------------------------------------------------

window_to_rate = formula(
    "window_to_rate",
    (alpha, beta, k, l, mtu, rtt),
    {"lam": alpha * (mtu / rtt) ** (k + 1), "sigma": beta * (mtu / rtt) ** (1 - l)},
    ref="(4): constants for windows in packets to constants for rates in bit/s",
)
rate_to_window = formula(
    "rate_to_window",
    (lam, sigma, k, l, mtu, rtt),
    {"alpha": lam * (mtu / rtt) ** (-k - 1), "beta": sigma * (mtu / rtt) ** (l - 1)},
    ref="(4), solved for the constants of windows",
)
tcp_friendly_alpha = formula(
    "tcp_friendly_alpha",
    (beta,),
    3 * beta / (2 - beta),
    domain=(Bound(beta < 1, "a decrease takes away a part of the window"),),
    ref="(5): the increase [packet a round trip] of an AIMD as fast as TCP's, AIMD(1, 1/2), at "
    "the same loss ratio",
)

# --- any increase and decrease --------------------------------------------------------------------


@explained
def monotonic_convergence(
    increase: Any, decrease: Any, *, where: Iterable[Any] = (), rate: Any = "x"
) -> Proof:
    """Return which conditions of Section III a pair of steps obeys, each as `fluidcc.prove` has it.

    Flows whose rates x go up by R_I(x) or down by R_D(x) get fairer in every step if R_I > 0 (21),
    (22), R_D > 0 (10), (15), (19) and (20) hold, and they converge to equal rates if one of (15)
    and (21) is strict. Of windows the same is true. (19) and (22) are sufficient only; a slope of 1
    or -1 at single rates does no harm.

    Parameters
    ----------
    increase, decrease : Expr or float
        R_I and R_D in the rate, and in other symbols, which range over what their assumptions say.
    where : iterable of relational
        Conditions under which it is asked, such as ``[x <= C]``.
    rate : str
        Name of the symbol that is the rate.

    Returns
    -------
    Proof
        A verdict for each condition by its label: "R_D > 0", "(15)", "(19)", "(20)", "R_I > 0",
        "(21)", "(22)", "(15) or (21) strict". It is true if they all hold.

    Raises
    ------
    InvalidInput
        If a step is no expression in real numbers, or neither has the rate.

    Examples
    --------
    The paper says that (15) cannot be strict. It can:

    >>> from sympy import log
    >>> from fluidcc.symbols import positive
    >>> x, a = positive("x a")
    >>> bool(monotonic_convergence(a, x - log(1 + x)))
    True
    >>> iiad = monotonic_convergence(a / x, 1)
    >>> [v.label for v in iiad if not v]
    ['(15)', '(20)', '(22)']
    """
    steps = {"increase": increase, "decrease": decrease}
    for name, step in steps.items():
        try:
            steps[name] = sympify(step, strict=True)
        except ValueError:
            steps[name] = None
        if not isinstance(steps[name], Expr):
            raise InvalidInput(f"{name} is {shown(step)}; give an expression of SymPy in the rate")
    up, down = steps.values()
    of = {plain(s): s for s in up.free_symbols | down.free_symbols}
    if not isinstance(rate, str) or rate not in of:
        raise InvalidInput(
            f"rate is {shown(rate)}, of which neither step is made; their symbols are "
            f"{', '.join(sorted(of)) or 'none'}: give the name of one"
        )
    x = of[rate]
    rise, fall = up.diff(x), down.diff(x)
    given = [x > 0, *where]

    def asked(label: str, relation: Any, left: Any, right: Any) -> Any:
        statement = relation(left, right, evaluate=False)
        verdict: Any = prove(statement, where=given, label=label)
        return verdict

    strict = [asked("(15) or (21) strict", Gt, fall, down / x)]
    if not strict[0]:
        strict.append(asked("(15) or (21) strict", Lt, rise, up / x))
    found = (
        asked("R_D > 0", Gt, down, S.Zero), asked("(15)", Ge, fall, down / x),
        asked("(19)", Lt, fall, S.One), asked("(20)", Gt, x - down, S.Zero),
        asked("R_I > 0", Gt, up, S.Zero), asked("(21)", Le, rise, up / x),
        asked("(22)", Gt, rise, S.NegativeOne), strict[-1],
    )  # fmt: skip
    return Proof(found, "monotonic convergence")
