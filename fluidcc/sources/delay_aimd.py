r"""Delay-based AIMD (Leith, Shorten, McCullagh, Heffner, Dunn and Baker, PFLDnet 2007), and H-TCP
with its increase.

Where the paper is not of one mind, a parameter or a rule here says which reading was taken:

- (2) prints a minimum with 1, which would never exceed 1; the maximum is meant. `coefficient` is
  0.5 as printed; the H-TCP draft and its kernels have 0.25.
- Algorithm 1 multiplies the increase by 2 (1 - beta), which (1) and (6) do not. Its line 22
  compares with the base threshold where (6) has tau0, and it has no branch for loss. (6) was taken;
  `PrintedDelayAIMD` does what is printed.
- Algorithm 1 caps beta at 0.9, unsaid in the text: `cap`.
- Backoffs are at least `hold` round trips apart: one until news of the last one comes back, and a
  part of one until the queue has drained, during which nothing is sent that could tell.
- The smoothed round trip of (1) is the round trip itself, as in Algorithm 1; `SmoothedDelayAIMD`
  smooths it.
- The largest round trip falls by `decay` seconds a second: Algorithm 1's a RTT/cwnd at each
  acknowledgement.
- Line 8 compares with a T_max that is never set. What is meant by (7) was taken: as long as the
  round trip is at its largest, so that what stays is its value when the round trip turns downwards,
  at the last ack of a round.
- Line 12 adds a segment, in bytes, to a window in packets: one packet was taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Heaviside, Max, Min, Symbol

from fluidcc.laws import Jump, Source
from fluidcc.sources.windows import acked, answered, change, high, largest, low, w, window
from fluidcc.symbols import RTT, Let, nonnegative, pi, positive

__all__ = [
    "HTCP", "DelayAIMD", "PlainDelayAIMD", "PrintedDelayAIMD", "SlowStartAIMD", "SmoothedDelayAIMD",
]  # fmt: skip

Delta = nonnegative("Delta")  # time since the last backoff [s]
alpha, slope, coefficient, offset = nonnegative("alpha slope coefficient offset")
tau0, w0, gamma, Delta0, kappa = nonnegative("tau0 w0 gamma Delta0 kappa")
slow, m = nonnegative("slow m")  # 1 in slow start, then 0; max_ssthresh [packet]
srtt, gain = nonnegative("srtt gain")  # smoothed round trip [s], and what each ack has in it
probe, cap, hold, beta_min, beta_max = positive("delta_p cap hold beta_min beta_max")

_UNITS: dict[Symbol, str] = {
    alpha: "packet", slope: "1/s", coefficient: "1/s^2", offset: "s", Delta: "s", tau0: "s",
    w0: "packet", gamma: "1", Delta0: "s", kappa: "1", probe: "1", cap: "1", hold: "1",
    beta_min: "1", beta_max: "1", slow: "1", m: "packet",
    srtt: "s", gain: "1",
}  # fmt: skip

_MEANING = {
    Delta: "time since the last backoff",
    slow: "1 in slow start, then 0",
    m: "max_ssthresh: window at which slow start slows down",
    srtt: "smoothed round trip",
    gain: "part of the smoothed round trip that an acknowledgement brings",
    alpha: "increase a round trip, just after a backoff",
    slope: "growth of the increase with the time since the last backoff",
    coefficient: "growth of the increase with the square of that time",
    offset: "time after a backoff in which the increase does not grow",
    tau0: "queueing delay above which it backs off",
    w0: "window below which it never backs off on delay",
    probe: "factor of the backoff, to see below the smallest round trip",
    cap: "largest part of the window kept at a backoff",
    gamma: "weight of the recent queue in the threshold",
    Delta0: "shortest time between backoffs on delay",
    kappa: "growth of that time with the recent queue",
    hold: "round trips between backoffs, at least",
    beta_min: "smallest part of the window kept at a backoff",
    beta_max: "largest part of the window kept at a backoff",
}

_late = Let("d", Max(Delta - offset, 0))
_increase = Let(
    "alpha_h", alpha * (1 + slope * _late + coefficient * _late**2)
)  # (2), packets a round trip
_HTCP = {alpha: 1, slope: 10, coefficient: 0.5, offset: 1}

_NONE = 1e-9  # seconds that are no queue
_delay = Let("delta", RTT - low)
_span = Let("s", largest - low)  # the recent queue


def _law(
    name: str,
    growth: Any,
    beta: Any,
    params: Mapping[Symbol, Any],
    ref: str,
    about: str,
    on_delay: tuple[Any, ...] = (),
    first: Mapping[Symbol, Any] | None = None,
    flow: Mapping[Symbol, Any] | None = None,
    on_loss: tuple[Any, ...] = (pi,),
    jumps: tuple[Jump, ...] = (),
    **more: Any,
) -> Source:
    """Make a law whose window grows by `growth` over itself at each ack; at a loss, or on a delay,
    beta of it is left.

    Parameters
    ----------
    on_delay : tuple of Expr
        Conditions of backoffs before any loss.
    first : mapping
        Further states, with their initial values; `slow` is 0 after a backoff.
    flow : mapping
        Derivatives of those that not only jumps change.
    on_loss : tuple of Expr
        Conditions of backoffs at a loss.
    jumps : tuple of Jump
        More of them.
    **more
        Of `Source`.
    """
    own = first or {}
    cut = {w: beta * w, Delta: 0, **({slow: 0} if slow in own else {})}
    return window(
        name,
        growth * acked / w,
        flow={Delta: 1, **dict.fromkeys(own, 0), **(flow or {})},
        initial={Delta: 0, **own},
        params={**params, hold: 1.5},
        units={s: _UNITS[s] for s in (*params, *own, hold, Delta)},
        # Or (4) would not probe, (5) not lie between, and a window grow where it is to be cut.
        limits={s: 1 for s in (probe, gamma, cap, beta_max) if s in params},
        jumps=(
            *jumps,
            *(Jump(when=f, reset=cut, refractory=hold * RTT) for f in on_delay),
            *(Jump(on=f, reset=cut, refractory=hold * RTT) for f in on_loss),
        ),
        ref=ref,
        about=about,
        meaning=_MEANING,
        clock="neutral",
        **more,
    )


HTCP = _law(
    "HTCP",
    2 * (1 - (_backoff := Let("beta", Min(Max(low / largest, beta_min), beta_max)))) * _increase,
    _backoff,
    {**_HTCP, coefficient: 0.25, beta_min: 0.5, beta_max: 0.8},
    "Leith and Shorten, H-TCP, PFLDnet 2004: increase 2 (1 - beta) (1 + 10 d + d^2/4), beta = "
    "RTT_min/RTT_max",
    "H-TCP: AIMD at losses whose increase grows with the time since the last one.",
    where=(beta_min <= beta_max,),
)

_beta = Let("beta", Min(probe * low / RTT, cap))  # (4), and (3) with delta_p = 1
_limit = Let("h", (1 - gamma) * tau0 + gamma * _span)  # (5)
_idle = Let("g", Delta0 + kappa * _span)
_DELAY = {tau0: 0.02, w0: 0, probe: 1, cap: 0.9}
_ADAPTS = {**_HTCP, **_DELAY, gamma: 0, Delta0: 0, kappa: 0}
_large = Heaviside(w - w0, 0)
# (6) with (5): no increase above the threshold, and a backoff at most every Delta0 + kappa (RTT_max
# - RTT_min).
_held = _increase * (1 - _large * Heaviside(_delay - _limit, 0))
_backs_off = (_delay * _large * Heaviside(Delta - _idle, 0) - _limit,)

# (1) with (3) or (4).
PlainDelayAIMD = _law(
    "PlainDelayAIMD",
    _increase,
    _beta,
    {**_HTCP, **_DELAY},
    "Delay-based AIMD, (1) to (4)",
    "AIMD that backs off when the queueing delay exceeds a fixed threshold.",
    on_delay=(_delay * _large - tau0,),
    threshold=tau0,
)

# (1) with its smoothed round trip, which begins with the first acknowledgement.
SmoothedDelayAIMD = _law(
    "SmoothedDelayAIMD",
    _increase,
    _beta,
    {**_HTCP, **_DELAY, gain: 0.125},
    "Delay-based AIMD, (1) to (4)",
    "PlainDelayAIMD that compares a smoothed round trip with the smallest one.",
    on_delay=((srtt - low) * _large - tau0,),
    first={srtt: 0},
    flow={srtt: gain * acked * (RTT - srtt)},
    jumps=(Jump(when=answered, reset={srtt: RTT}, once=True, refractory=1e9 * RTT),),
    threshold=tau0,
)

DelayAIMD = _law(
    "DelayAIMD",
    _held,
    _beta,
    _ADAPTS,
    "Delay-based AIMD, (2) to (6)",
    "AIMD that backs off when the queueing delay exceeds a threshold that adapts.",
    on_delay=_backs_off,
    threshold=_limit,
)

# Lines 1 to 5 and 17 to 26 of Algorithm 1.
PrintedDelayAIMD = _law(
    "PrintedDelayAIMD",
    2 * (1 - _beta) * _held,
    _beta,
    _ADAPTS,
    "Delay-based AIMD, Algorithm 1, lines 1 to 5 and 17 to 26",
    "DelayAIMD as Algorithm 1 prints it, which never answers losses.",
    on_delay=(_delay * _large * Heaviside(Delta - _idle, 0) - tau0,),
    on_loss=(),
    threshold=tau0,
)

# DelayAIMD after slow start as in Section IV: a packet at each ack up to max_ssthresh, then
# max_ssthresh/2 a round trip, until the first backoff. An exact clock, for it is bursts whose queue
# tells the rate of the link.
_few = Heaviside(m - w, 1)
_turns = Heaviside(_NONE - high, 0) * Heaviside(
    _delay - _NONE, 0
)  # the round trip has been at its largest
SlowStartAIMD = _law(
    "SlowStartAIMD",
    slow * (w * _few + m / 2 * (1 - _few)) + (1 - slow) * _held,
    _beta,
    _ADAPTS,
    "Delay-based AIMD, (2) to (7) and Section IV",
    "DelayAIMD that begins with slow start.",
    on_delay=_backs_off,
    threshold=_limit,
    first={slow: 1, m: 1e9},
    jumps=(
        Jump(
            when=-change * slow * _few * _turns,
            reset={m: w / 4 * tau0 / (RTT - low)},
            refractory=RTT / 10,
        ),
    ),
)(pace=0, burst=0.001)
