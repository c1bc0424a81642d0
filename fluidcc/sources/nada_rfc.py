r"""NADA of RFC 8698: sampled, with accelerated ramp-up and gradual updates, beside the form of 2013
in `nada`.

Every `delta_s` seconds the composite congestion signal of Section 4.2 is formed from the queueing
delay, losses and marks,

    x = d~ + D_mark (p_mark/PMR_ref)^2 + D_loss (p_loss/PLR_ref)^2,

where d~ is the queueing delay, and falls again beyond `QTH` for a while after a loss, so as to
stand up to flows that fill the buffer. The rate is updated as Section 4.3 says: while for `LOGWIN`
there was no loss, no mark and no queue of `QEPS`, by (3) and (4) from what was received; else by
(5) to (7).

- What is received is averaged over `delta_s`, not over `LOGWIN`. There is no noise for a minimum
  filter to take away.
- A loss is recent for `MULTILOSS` loss intervals, of the ratio of the last period that had any.
- The shaping buffer of the encoder is left out.
- `R_max` is the most that the encoder makes, 1.5 Mbit/s: raise it where a flow is to fill a link.
"""

from __future__ import annotations

from typing import Any

from sympy import Eq, Expr, Heaviside, Max, Min, exp

from fluidcc.laws import Source, Tick
from fluidcc.sources.windows import MEANING, change, delta
from fluidcc.symbols import RTT, Let, edot, loss, mark, nonnegative, packet, positive, x_tau

__all__ = ["NADA8698"]

r = positive("r")  # reference rate, which is sent [bit/s]
x_prev, calm, queued, losses, marks, got = nonnegative("x_prev calm Q L M G")
# smoothed ratios [1]; packets until a loss is no longer recent
p_loss, p_mark, left = nonnegative("p_loss p_mark n")
R_min, R_max, x_ref, kappa, eta, tau, delta_s = positive("R_min R_max x_ref kappa eta tau delta_s")
LOGWIN, QEPS, DFILT, gamma_max, QBOUND = positive("LOGWIN QEPS DFILT gamma_max QBOUND")
MULTILOSS, QTH, slope, PLR_ref, PMR_ref, D_loss, D_mark, a, prio = positive(
    "MULTILOSS QTH LAMBDA PLR_ref PMR_ref D_loss D_mark alpha prio"
)
none = positive("none")  # a ratio, or part of a period, that counts as none [1]

_lost, _marked = Let(r"\bar{L}", losses / delta_s), Let(r"\bar{M}", marks / delta_s)
_p_loss = Let("p_{loss}'", p_loss + a * (_lost - p_loss))
_p_mark = Let("p_{mark}'", p_mark + a * (_marked - p_mark))
_received = Let(r"r_{\mathrm{recv}}", got / delta_s)
_any = Heaviside(_lost - none, 0)
_recent = Let("n'", _any * MULTILOSS / Max(_lost, none) + (1 - _any) * Max(left - got / packet, 0))

# (1) and (2)
_beyond = Heaviside(delta - QTH, 0) * Heaviside(_recent, 0)
_delay = Let(r"\tilde{d}", delta + _beyond * (QTH * exp(-slope * (delta - QTH) / QTH) - delta))
_signal = Let(
    r"x_{\mathrm{curr}}",
    _delay + D_mark * (_p_mark / PMR_ref) ** 2 + D_loss * (_p_loss / PLR_ref) ** 2,
)

# (3) and (4)
_calm = Let(
    "C'", Heaviside(none - queued / delta_s - _lost - _marked, 0) * Min(calm + delta_s, LOGWIN)
)
_clear = Heaviside(_calm / LOGWIN - (1 - none), 0)
_gamma = Let("gamma", Min(gamma_max, QBOUND / (RTT + delta_s + DFILT)))
_accelerated = Max(r, (1 + _gamma) * _received)


# (5) to (7)
def _gradual(x: Any, before: Any) -> Expr:
    """Return the next rate, when the signal is x and was `before` a period ago."""
    offset = Let(r"x_{\mathrm{offset}}", x - prio * x_ref * R_max / r)
    return r - kappa * delta_s / tau * offset / tau * r - kappa * eta * (x - before) / tau * r


NADA8698 = Source(
    name="NADA8698",
    flow={
        r: 0,
        x_prev: 0,
        p_loss: 0,
        p_mark: 0,
        left: 0,
        calm: 0,
        queued: Heaviside(delta - QEPS, 0),  # time with a queue
        losses: loss,
        marks: mark,
        got: x_tau * (1 - loss) / (1 + edot),
        delta: change,
    },
    out={"rate": r},
    params={
        R_min: 150e3, R_max: 1.5e6, prio: 1, x_ref: 0.01, kappa: 0.5, eta: 2, tau: 0.5,
        delta_s: 0.1, LOGWIN: 0.5, QEPS: 0.01, DFILT: 0.12, gamma_max: 0.5, QBOUND: 0.05,
        MULTILOSS: 7, QTH: 0.05, slope: 0.5, PLR_ref: 0.01, PMR_ref: 0.01, D_loss: 0.01,
        D_mark: 0.002, a: 0.1, none: 1e-9,
    },
    units={
        **dict.fromkeys((r, R_min, R_max), "bit/s"),
        **dict.fromkeys(
            (x_prev, calm, queued, losses, marks, delta, x_ref, tau, delta_s, LOGWIN, QEPS, DFILT,
             QBOUND, QTH, D_loss, D_mark), "s"),
        **dict.fromkeys(
            (p_loss, p_mark, prio, kappa, eta, gamma_max, slope, PLR_ref, PMR_ref, a, none), "1"),
        got: "bit", left: "packet", MULTILOSS: "packet",
    },
    lower={r: R_min, delta: 0},
    upper={r: R_max},
    initial={
        r: R_min, calm: LOGWIN,
        **dict.fromkeys((x_prev, p_loss, p_mark, left, queued, losses, marks, got, delta), 0),
    },
    ticks=(
        Tick(
            every=delta_s,
            update={
                r: _clear * _accelerated + (1 - _clear) * _gradual(_signal, x_prev),
                x_prev: _signal, p_loss: _p_loss, p_mark: _p_mark, left: _recent, calm: _calm,
                queued: 0, losses: 0, marks: 0, got: 0,
            },
        ),
    ),
    claims={
        "(7) stands where x = PRIO XREF RMAX/r": Eq(
            _gradual(x_prev, x_prev) - r,
            kappa * delta_s / tau**2 * (prio * x_ref * R_max - x_prev * r)
        ),
        "delay alone": Eq(
            _signal.subs(dict.fromkeys((left, losses, marks, p_loss, p_mark), 0)), delta
        ),
    },
    where=(R_min <= R_max,),
    about="NADA of RFC 8698: sampled, with accelerated ramp-up and gradual updates.",
    meaning={
        r: "reference rate, which is sent", x_prev: "congestion signal of the last period",
        p_loss: "smoothed loss ratio", p_mark: "smoothed mark ratio",
        left: "packets until a loss is no longer recent",
        calm: "time without losses, marks or a queue", queued: "part of the period with a queue",
        losses: "losses of the period", marks: "marks of the period",
        got: "bits received in the period",
        delta: MEANING[delta],
        R_min: "smallest rate", R_max: "largest rate", prio: "weight of the flow",
        x_ref: "congestion signal at the largest rate", kappa: "gain",
        eta: "gain of the change of the signal", tau: "longest round trip that it is made for",
        delta_s: "period of updates", LOGWIN: "time in which it looks for losses and queues",
        QEPS: "queueing delay that counts as none", DFILT: "delay of the filters",
        gamma_max: "largest increase in ramp-up", QBOUND: "queueing delay allowed in ramp-up",
        MULTILOSS: "loss intervals for which a loss is recent",
        QTH: "delay above which losses make it insist", slope: "how fast it insists beyond QTH",
        PLR_ref: "loss ratio of reference", PMR_ref: "mark ratio of reference",
        D_loss: "delay that stands for losses", D_mark: "delay that stands for marks",
        a: "weight of the newest ratio",
        none: "ratio that counts as none",
    },
    ref="RFC 8698, Sections 4.2 and 4.3",
)  # fmt: skip
