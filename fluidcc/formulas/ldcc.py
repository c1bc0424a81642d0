"""LDCC at and near its equilibrium, (17) to (20), (42), (43), and controllers it is compared with.

Rates are in bit/s and delays in seconds, as in a network of fluidcc; e is the one-way delay and e_b
the return delay, so that the round trip is their sum. The defaults are the values of the LDCC
paper's Section V.
"""

from __future__ import annotations

from functools import partial

from sympy import Eq, Max, atan, pi, sqrt

from fluidcc.formulas._formula import Bound, Formula
from fluidcc.symbols import nonnegative, positive

__all__ = [
    "discrete_update", "equilibrium_delay", "equilibrium_rate", "ledbat_latecomer", "loss_driven",
    "nada_delay", "nada_queue", "penalty", "penalty_slope", "rate_floor", "user_loop",
]  # fmt: skip

x, e, w, beta, T, eta, rtt = positive("x e w beta T eta rtt")
omega, c, n, rho = positive("omega c n rho")
e_b = nonnegative("e_b")
p, R_max, x_ref, met, target = positive("p R_max x_ref met target")
received, T_s = positive("x_recv T_s")

_VALUES = {w: 20e3, beta: 0.1, T: 0.1}
_UNITS = dict.fromkeys((x, w, c, R_max, received), "bit/s") | {omega: "rad/s"}
_UNITS |= dict.fromkeys((e, e_b, T, rtt, p, x_ref, met, target, T_s), "s")
formula = partial(Formula, units=_UNITS)

_v = beta * Max(e - T, 0) / (e + e_b)
_r = w / (beta * x)
_e = (e_b * _r + T) / (1 - _r)
_above = Bound(
    _r < 1,
    "without losses a flow has more than w/beta, (20); give a larger x or a smaller w",
    what="w/beta over x",
)

penalty = formula(
    "penalty",
    (e, e_b, beta, T),
    _v,
    defaults={s: _VALUES[s] for s in (beta, T)},
    ref="(17), the penalty for delay [1]",
    claims={"it is never negative": _v >= 0, "it saturates below beta": _v < beta},
)
equilibrium_delay = formula(
    "equilibrium_delay",
    (x, e_b, w, beta, T),
    _e,
    domain=(_above,),
    defaults=_VALUES,
    ref="(19), the one-way delay [s] of a flow that rests at rate x without losses",
    claims={
        "(18)": Eq(_e, (_e + e_b) * w / (beta * x) + T),
        "at 2 w/beta, with e_b one way of the path, the queue is 2 T": Eq(
            _e.subs(x, 2 * w / beta) - e_b, 2 * T
        ),
    },
)
equilibrium_rate = formula(
    "equilibrium_rate",
    (e, e_b, w, beta, T),
    w * (e + e_b) / (beta * (e - T)),
    domain=(Bound(e > T, "up to T there is no penalty, and the rate grows until there is loss"),),
    defaults=_VALUES,
    ref="(18), the rate [bit/s] at which a flow rests without losses where the one-way delay is e",
    claims={"it inverts (19)": Eq((w * (e + e_b) / (beta * (e - T))).subs(e, _e), x)},
)
rate_floor = formula(
    "rate_floor",
    (w, beta),
    w / beta,
    defaults={s: _VALUES[s] for s in (w, beta)},
    ref="(20), the rate [bit/s] above which delay alone leaves every flow",
)
loss_driven = formula(
    "loss_driven",
    (c, n, w),
    {"rate": c / n + w, "loss": w / (c / n + w)},
    defaults={w: _VALUES[w]},
    ref="what each of n equal flows sends [bit/s] and loses [1] on a full buffer of a link of c "
    "bit/s while the one-way delay is at most T: its share is c/n of what passes",
    claims={
        "what is not lost fills the link": Eq(n * (c / n + w) * (1 - w / (c / n + w)), c),
    },
)
_signal = (x - received) / received
_update = x + T_s * eta / rtt * x * (w / x - beta * (e - T) / rtt - _signal)

discrete_update = formula(
    "discrete_update",
    (x, received, e, rtt, T_s, w, beta, T, eta),
    _update,
    defaults=_VALUES | {eta: 0.4},
    ref="(25) as printed, the next rate [bit/s] of a flow whose rate x has come in as x_recv. "
    "Below T the penalty is negative, where (17) has 0; SampledLDCC keeps that 0",
    claims={
        "it stays where (18) holds and all comes in": Eq(
            _update.subs({received: x, e: _e, rtt: _e + e_b}), x
        ),
    },
)
penalty_slope = formula(
    "penalty_slope",
    (x, rtt, w, beta),
    (beta - w / x) / rtt,
    domain=(_above,),
    defaults={s: _VALUES[s] for s in (w, beta)},
    ref="(42), how steep the penalty is at the equilibrium [1/s]",
    claims={
        "the slope of (17) where (18) holds": Eq(
            (beta * (e - T) / (e + e_b)).diff(e).subs(e, _e), (beta - w / x) / (_e + e_b)
        )
    },
)

_zero, _pole = penalty_slope.form, eta * w / (x * rtt)
_ratio = (_zero**2 + omega**2) / (_pole**2 + omega**2)

user_loop = formula(
    "user_loop",
    (omega, x, rtt, w, beta, eta, rho),
    {
        "magnitude": rho * eta / (omega * rtt) * sqrt(_ratio),
        "phase": -omega * rtt - pi / 2 + atan(omega / _zero) - atan(omega / _pole),
        "zero": _zero,
        "pole": _pole,
    },
    domain=(_above,),
    defaults={w: _VALUES[w], beta: _VALUES[beta], eta: 0.4, rho: 1.0},
    ref="(43), magnitude [1] and phase [rad] of G at omega, and the frequencies of its zero and "
    "second pole [rad/s]. For n equal flows on a link of capacity c, rho is n x/c",
    claims={
        "the pole is below eta beta/RTT": eta * w / ((w / beta + x) * rtt) < eta * beta / rtt,
    },
)

# --- what Sections V-C, V-D and VI compare it with ------------------------------------------------

nada_delay = formula(
    "nada_delay",
    (x, p, R_max),
    R_max * p / x,
    domain=(Bound(x <= R_max, "NADA sends at most R_max"),),
    ref="V-D, the one-way delay [s] of a flow of NADA (2013) that rests at rate x on a path of "
    "propagation delay p",
)
nada_queue = formula(
    "nada_queue",
    (x, x_ref, R_max),
    x_ref * R_max / x,
    domain=(Bound(x <= R_max, "NADA sends at most R_max"),),
    ref="the queueing delay [s] of a flow of NADA (RFC 8698) that rests at rate x without losses, "
    "with the reference delay x_ref",
)
ledbat_latecomer = formula(
    "ledbat_latecomer",
    (met, target),
    {"queue": target + met / 2, "fall": met / (2 * target), "end": target + met},
    defaults={target: 0.1},
    ref="VI, a flow of LEDBAT and one that takes the queue `met` [s] for propagation: "
    "queueing delay while one gives way [s], what its window loses [packets a round trip], and "
    "queueing delay at the end [s]",
    claims={
        "what one gains the other loses": Eq(
            (target - (target + met / 2)) + (target - (target + met / 2 - met)), 0
        ),
        "the fall, of (target - q)/target": Eq(
            -(target - (target + met / 2)) / target, met / (2 * target)
        ),
    },
)
