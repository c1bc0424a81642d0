"""CUBIC TCP (RFC 9438): after a loss a window climbs back by the cube of time, whatever its round
trip.

At a cut the window w falls to beta w, and W_max becomes w, or less where w has not come back to the
last W_max (fast convergence, Section 4.7). From then on the target is

    W(T) = C T^3 + W_max,   T = time since the cut - K,   K = cbrt((W_max - beta w)/C)

at the time of the next round trip, within [w, 1.5 w] (4.2). Each acknowledgement brings w nearer by
(target - w)/w, which is a round trip late, as much as the target is ahead. W_est is the window of
an AIMD control that keeps beta at a cut and has the mean window of Reno at equal losses; CUBIC's is
not smaller (4.3).

It is a law of jumps, with one cut a round trip at most. Of many flows at a full buffer all cut at
once by default and lose too little; runs with ``losses="random"`` are nearer to packets. Left out
are slow start (it begins as after it, with K = 0) and time-outs.

Linux has C = 410/1024 and beta = 717/1024, takes the least round trip for the lead, and W_est
never grows as fast as Reno.

`CUBICFluid` is its mean over losses or marks at random, for queues that mark or drop early and for
random loss. Per packet of its window a flow cuts at the rate nu. Of w' = 3 C T^2 and T' = 1, with
w to beta w and T to -K(w) at cuts, the means are, exactly,

    E w'   = 3 C E T^2 - (1 - beta) nu E w^2
    E T'   = 1 - nu E w (T + K)
    var T' = nu (E w (K + E T)^2 - E w (T - E T)^2)

The states are w and T, here the means, and V, the variance of T. What else stands on the right is
closed by scale: its shape is that of losses at a constant ratio, whatever w, T and V are. So with
kappa = cbrt(w/C),

    E w^2 = 1.275 w^2,   E w T = w (T + 0.0335 kappa),   E w (T - E T)^2 = 1.467 w V,
    E w K = 0.6155 w kappa,   E w K^2 = 0.3962 w kappa^2

with numbers of the process itself at beta = 0.7 with fast convergence, which are not fitted to
anything. Where W_est leads, of which the mean increase is 0.661 a round trip and E w^2 = 1.11 w^2,
the window changes by that: by the greater of the two.

Beside the mean of single flows over 8,000,000 round trips, with one cut a round trip at most, at
loss ratios of 1e-5 to 1e-2 and round trips of 10 to 200 ms, the window is 6 % larger at 1e-2, where
packets lose the round trip of a cut, up to 5 % smaller where the cube and W_est are about equal,
and within 4 % elsewhere. After a small step of the ratio it is 63 % of the way in 0.94 of the time
that the mean of 250,000 flows takes, and overshoots by 17 %, they by 4 %: it is less damped. Its
response to ratios has their gain within 30 % and their phase within 11 degrees up to where the gain
has fallen to a fifth. On its way from 10 packets it is within 25 %.
"""

from __future__ import annotations

from sympy import Eq, Float, Heaviside, Max, Min, Rational, Symbol

from fluidcc.laws import Jump
from fluidcc.sources.windows import acked, cuts, w, window
from fluidcc.symbols import RTT, Let, nonnegative, pi, positive

__all__ = ["CUBIC", "CUBICFluid"]

W_max, W_est, w_prior = positive("W_max W_est w_prior")
T = Symbol("T", real=True)
C, beta = positive("C beta")

_W = C * T**3 + W_max
_target = Let("W", _W.subs(T, T + RTT))
_cubic = Let("g", Min(Max(_target - w, 0), w / 2))
_alpha = Let(r"\alpha", 3 * (1 - beta) / (1 + beta))  # increase at which W_est is fair to Reno
_friendly = _alpha + (1 - _alpha) * Heaviside(W_est - w_prior, 1)
_part = 1 - (1 - beta) / 2 * Heaviside(W_max - w)  # of w that the new W_max is
_cut = {
    w: beta * w,
    W_max: w * _part,
    T: -((w * (_part - beta) / C) ** Rational(1, 3)),
    W_est: beta * w,
    w_prior: w,
}

CUBIC = window(
    "CUBIC",
    acked / w * Max(_cubic, W_est - w),
    flow={T: 1, W_max: 0, W_est: acked / w * _friendly, w_prior: 0},
    initial={T: 0, W_max: w, W_est: w, w_prior: w},
    jumps=[Jump(on=pi, reset=_cut, refractory=RTT)],
    params={C: 0.4, beta: 0.7},
    units={C: "packet/s^3", beta: "1", T: "s", W_max: "packet", W_est: "packet", w_prior: "packet"},
    limits={beta: 1},
    claims={"4.2: at a cut the cube is at beta w": Eq(_W.subs(_cut, simultaneous=True), beta * w)},
    about="CUBIC TCP: windows climb by the cube of the time since the last loss.",
    meaning={
        T: "time since the cut, less K",
        W_max: "window at which the cube turns upwards",
        W_est: "window of the AIMD control that is fair to Reno",
        w_prior: "window before the last cut",
        C: "coefficient of the cube",
        beta: "part kept at a cut",
    },
    ref="RFC 9438, Sections 4.1 to 4.7",
)

V = nonnegative("V")
_BETA = Rational(7, 10)
_kappa = Let(r"\kappa", (w / C) ** Rational(1, 3))
_K, _K2 = Float("0.6155") * _kappa, Float("0.3962") * _kappa**2  # of E w K, E w K^2, a packet
_grows = Min(3 * C * (T**2 + V), acked / 2) - (1 - _BETA) * Float("1.275") * w * cuts()
_fair = Float("0.661") * (1 - pi) * acked / w - (1 - _BETA) * Float("1.11") * w * cuts()

CUBICFluid = window(
    "CUBICFluid",
    Max(_grows, _fair),
    flow={
        T: 1 - (T + Float("0.0335") * _kappa + _K) * cuts(),
        V: (_K2 + 2 * T * _K + T**2 - Float("1.467") * V) * cuts(),
    },
    initial={T: 0, V: 0},
    params={C: 0.4},
    units={C: "packet/s^3", T: "s", V: "s^2"},
    mean_of="fluidcc.CUBIC",
    about="CUBIC TCP as a fluid: its mean over random losses or marks.",
    meaning={
        T: "time since the cut, less K, in the mean",
        V: "variance of that",
        C: "coefficient of the cube",
    },
    ref="RFC 9438; beta = 0.7, fast convergence, at most one cut a round trip",
)
