"""CUBIC TCP (RFC 9438): after a loss a window climbs back by the cube of time, whatever its round
trip.

At a cut the window w falls to beta w, and W_max becomes w, or less where w has not come back to the
last W_max (fast convergence, Section 4.7). From then on the target is

    W(T) = C T^3 + W_max,   T = time since the cut - K,   K = cbrt((W_max - beta w)/C)

at the time of the next round trip, within [w, 1.5 w] (4.2). Each acknowledgement brings w nearer by
(target - w)/w, which is a round trip late, as much as the target is ahead. W_est is the window of
an AIMD control that keeps beta at a cut and has the mean window of Reno at equal losses; CUBIC's is
not smaller (4.3).

It is a law of jumps, with one cut a round trip at most. Left out are slow start (it begins as after
it, with K = 0) and time-outs.

Linux has C = 410/1024 and beta = 717/1024, takes the least round trip for the lead, and W_est
never grows as fast as Reno.
"""

from __future__ import annotations

from sympy import Eq, Heaviside, Max, Min, Rational, Symbol

from fluidcc.laws import Jump
from fluidcc.sources.windows import acked, w, window
from fluidcc.symbols import RTT, Let, pi, positive

__all__ = ["CUBIC"]

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
    jumps=[Jump(when=pi, reset=_cut, refractory=RTT)],
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
