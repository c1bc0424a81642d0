"""Delay-based AIMD: its sawtooth in closed form, the ratchet of the smallest round trip, and slow
start.

All equation numbers are those of D. Leith, R. Shorten, G. McCullagh, J. Heffner, L. Dunn and F.
Baker, "Delay-based AIMD congestion control", PFLDnet 2007. Windows are in packets, C in packets/s,
times in seconds. The cycle is that of windows which change the queue at once: the round trip is R =
W/C while the queue is busy (W is the sum of all windows) and T, the propagation delay there and
back, while it is empty. A lag of the feedback adds overshoot, which a simulation shows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sympy import Eq, Max, Min, integrate, log, sqrt

from fluidcc.base.arguments import explained, flag
from fluidcc.formulas._formula import Bound, Formula
from fluidcc.symbols import nonnegative, positive

__all__ = [
    "backoff_factor", "convergence_epochs", "cycle", "epoch_duration", "epoch_growth",
    "increase", "late_cycle", "max_ssthresh", "mean_queueing_delay", "ratchet",
    "rtt_unfairness", "slow_start_rounds", "threshold",
]  # fmt: skip

tau0, T, alpha, C, beta, rtt, n = positive("tau0 T alpha C beta rtt n")
RTT_min, RTT_max, delta, cwnd, W, coefficient = positive("RTT_min RTT_max delta cwnd W coefficient")
offset, gamma, Delta, tau0_bar, k = nonnegative("offset gamma Delta tau0_bar k")
left, T_near, T_far, q, window = positive("left T_near T_far q window")
trickle, queue = nonnegative("trickle queue")

_UNITS = {tau0: "s", T: "s", rtt: "s", RTT_min: "s", RTT_max: "s", offset: "s", Delta: "s",
          tau0_bar: "s", T_near: "s", T_far: "s", alpha: "packet", cwnd: "packet", W: "packet",
          C: "packet/s", coefficient: "1/s^2", window: "packet", queue: "packet"}  # fmt: skip
formula = partial(Formula, units=_UNITS)
_part = Bound(beta < 1, "a backoff leaves a part of the window")
_probe = Bound(delta <= 1, "with delta above 1 a backoff would not empty the estimated queue")

# --- the rules ------------------------------------------------------------------------------------

_d = Max(Delta - offset, 0)

increase = formula(
    "increase",
    (Delta, coefficient, offset),
    1 + 10 * _d + coefficient * _d**2,
    defaults={coefficient: 0.5, offset: 1.0},
    ref="(2), what a window grows a round trip [packet], Delta seconds after the last backoff. The "
    "paper prints min[1, ...], which would never be more than 1: the larger of the two is meant. "
    "It prints the coefficient 0.5 where the H-TCP draft and its kernels have 0.25",
)
backoff_factor = formula(
    "backoff_factor",
    (RTT_min, rtt, delta),
    delta * RTT_min / rtt,
    domain=(
        _probe,
        Bound(RTT_min <= rtt, "the smallest round trip seen is not above the present one"),
    ),
    defaults={delta: 1.0},
    ref="(4), and (3) with delta = 1: what a backoff leaves of the window [1]",
    claims={
        "(3) keeps the link busy: R+ = R-": Eq(W * (RTT_min / rtt) / RTT_min, W / rtt),
    },
)
threshold = formula(
    "threshold",
    (tau0_bar, gamma, RTT_max, RTT_min),
    (1 - gamma) * tau0_bar + gamma * (RTT_max - RTT_min),
    domain=(
        Bound(gamma <= 1, "tau0 is a mean of its two parts"),
        Bound(RTT_max >= RTT_min, "the largest round trip seen is not below the smallest"),
    ),
    ref="(5), the queueing delay that triggers a backoff [s]",
)
max_ssthresh = formula(
    "max_ssthresh",
    (cwnd, tau0, RTT_max, RTT_min),
    cwnd / 4 * tau0 / (RTT_max - RTT_min),
    domain=(Bound(RTT_max > RTT_min, "a queue must have been seen to tell the rate of the link"),),
    ref="(7), how much limited slow start may have in the queue [packet], when the round trip is "
    "first above RTT_max",
)

# --- the sawtooth ---------------------------------------------------------------------------------

_R = T + tau0  # round trip at a backoff
_virtual = Min(beta * _R, T)  # sum of the windows over C after it
_low = Max(beta * _R, T)  # round trip after it
_idle = (
    2 * T * (T - _virtual)
)  # time with an empty queue and with a busy one, both in units of C/(2 n alpha)
_busy = _R**2 - _low**2
_unit = C / (2 * n * alpha)

cycle = formula(
    "cycle",
    (alpha, tau0, T, C, beta, n),
    {
        "period": _unit * (_idle + _busy),
        "window_high": C * _R / n,
        "window_low": C * beta * _R / n,
        "rtt_low": _low,
        "utilisation": (T**2 - _virtual**2 + _busy) / (_idle + _busy),
        "mean_queueing_delay": (2 * (_R**3 - _low**3) / 3 - T * _busy) / (_idle + _busy),
    },
    domain=(_part,),
    defaults={n: 1},
    ref="the periodic sawtooth of n synchronised flows which grow by alpha packets a round trip "
    "and back off to beta of their windows when the queueing delay is tau0: period [s], largest "
    "and smallest window of a flow [packet], smallest round trip [s], utilisation [1] and mean "
    "queueing delay over time [s]; C in packets/s. With beta by (3), T/(T + tau0), the queue just "
    "empties and the link is always busy",
)
_trip = T + tau0  # what a packet takes that meets tau0 in the queue
_peak = sqrt(
    (C * _trip) ** 2 + 2 * n * alpha * C * _trip
)  # sum of the windows when news of it comes
_left = T / _trip * _peak
_pace = 1 - trickle
# until C (1 - trickle) t packets more have left than were sent, and the window has grown to what is
# there
_silent = (
    _pace * _peak
    + n * alpha
    - sqrt((_pace * _peak + n * alpha) ** 2 - _pace**2 * (_peak**2 - _left**2))
) / (_pace**2 * C)
late_cycle = formula(
    "late_cycle",
    (alpha, tau0, T, C, n, trickle),
    {
        "period": (_peak**2 - _left**2) / (2 * n * alpha * C),
        "window_high": _peak / n,
        "window_low": _left / n,
        "queue_high": _peak / C - T,
        "queue_low": sqrt(_left**2 + 2 * n * alpha * C * _silent) / C - T,
    },
    domain=(Bound(trickle < 1, "a flow that sends no less does not back off"),),
    defaults={n: 1, trickle: 0},
    ref="the same sawtooth with (3) and with feedback that takes its time, of n synchronised flows "
    "with an ack clock, which grow by alpha over the window at each ack: period [s], largest and "
    "smallest window of a flow [packet], largest and smallest queueing delay [s]; C in packets/s. "
    "While the queue is busy acks come at the rate C, so that the square of all windows grows by 2 "
    "n alpha C a second, and the queue is W/C - T. What crosses tau0 is known T + tau0 later. "
    "After a backoff only the part `trickle` of C is sent until what is under way is the window",
)
mean_queueing_delay = formula(
    "mean_queueing_delay",
    (tau0, T, beta),
    cycle.form["mean_queueing_delay"],
    domain=(_part,),
    ref="mean queueing delay over time of the sawtooth [s]; the same for any number of flows, any "
    "increase and any capacity. With beta by (3), 2/3 (R**3 - T**3)/(R**2 - T**2) - T for R = T + "
    "tau0, a little above tau0/2",
)

rtt_unfairness = formula(
    "rtt_unfairness",
    (T_near, T_far, tau0),
    log(1 + tau0 / T_near) / log(1 + tau0 / T_far),
    ref="rate of a flow with the propagation delay T_near over that of one with T_far [1], which "
    "back off together by (3) whenever their common queueing delay is tau0, and between backoffs "
    "see it grow at a constant pace. A window grows by alpha/RTT a second, and (3) takes the part "
    "tau0/(T + tau0) of it; so does the rate, which is the window over T + tau0 then",
    claims={
        "growth over an epoch, in proportion": Eq(
            integrate(1 / (T + q), (q, 0, tau0)), log(1 + tau0 / T)
        ),
        "rate at a backoff, in proportion": Eq(
            log(1 + tau0 / T) / (1 - T / (T + tau0)) / (T + tau0), log(1 + tau0 / T) / tau0
        ),
    },
)

# --- H-TCP's increase -----------------------------------------------------------------------------

epoch_growth = formula(
    "epoch_growth",
    (Delta, rtt, coefficient, offset),
    (Delta + 5 * _d**2 + coefficient * _d**3 / 3) / rtt,
    defaults={coefficient: 0.5, offset: 1.0},
    ref="what a window has grown [packet] Delta seconds after a backoff by (2), at a round trip "
    "of rtt",
)


_growth = formula(
    "epoch_duration",
    (window, rtt, beta, coefficient, offset, queue),
    {
        "growth": (1 - beta) * (window + queue),
        "rtt": rtt,
        "coefficient": coefficient,
        "offset": offset,
    },
    domain=(_part,),
)


@explained
def epoch_duration(
    window: Any,
    rtt: Any,
    beta: Any = 0.5,
    *,
    coefficient: Any = 0.5,
    offset: Any = 1.0,
    rounds: bool = False,
    queue: Any = 0.0,
) -> Any:
    """Return how long a window takes to grow back from beta of itself, by (2).

    Parameters
    ----------
    window : array_like
        Window at the backoff, or what of it is not in the queue [packet].
    rtt : array_like
        Round-trip time, taken as constant [s].
    beta : array_like
        What a backoff leaves of the window [1].
    coefficient : array_like
        Of the square in (2) [1/s^2]: 0.5 as printed, 0.25 in the H-TCP draft.
    offset : array_like
        For how long after a backoff the increase is one packet a round trip [s]; the paper has 1 s.
    rounds : bool
        Count whole round trips, the window growing at the end of each by the increase at that time,
        and not a fluid.
    queue : array_like
        By how much the window at the backoff is above `window` [packet].

    Returns
    -------
    float or ndarray
        Duration of the epoch [s], of the shape to which the arguments broadcast.

    Raises
    ------
    InvalidInput
        If a value is not positive (`offset` and `queue`: is negative), or `beta` is not below 1.

    Examples
    --------
    >>> round(epoch_duration(1000.0, 0.1), 2)
    3.9
    """
    by_rounds = flag(rounds, "epoch_duration: rounds")
    given = _growth(window, rtt, beta, coefficient, offset, queue)
    found = _fluid(*given)
    if by_rounds:
        found = np.vectorize(_rounds, otypes=[float])(found, *given)
    return found if found.ndim else float(found)


def _fluid(growth: Any, rtt: Any, coefficient: Any, offset: Any) -> Any:
    from scipy.optimize.elementwise import find_root

    def missing(t: Any, growth: Any, *more: Any) -> Any:
        return epoch_growth(t, *more) - growth

    most = np.multiply(growth, rtt)  # the increase is at least one packet a round trip
    found = find_root(missing, (offset, most), args=(growth, rtt, coefficient, offset))
    return np.where(most <= offset, most, found.x)


def _rounds(fluid: float, growth: float, rtt: float, coefficient: float, offset: float) -> float:
    times = rtt * np.arange(1, int(np.ceil(fluid / rtt)) + 2)
    grown = np.cumsum(increase(times, coefficient, offset))
    return float(rtt * (1 + np.searchsorted(grown, growth * (1 - 1e-15))))


# --- the ratchet, convergence, slow start ---------------------------------------------------------

ratchet = formula(
    "ratchet",
    (k, RTT_min, T, delta),
    Max(T, delta**k * RTT_min),
    domain=(_probe, Bound(RTT_min >= T, "no round trip is shorter than the propagation delay")),
    ref="smallest round trip seen after k backoffs by (4) [s], from an estimate RTT_min at first, "
    "if all flows have the same; whatever round trip triggers the backoffs. The queue then "
    "empties, and T is the propagation delay",
    claims={"one backoff": Eq(delta * RTT_min / rtt * (C * rtt) / C, delta * RTT_min)},
)
convergence_epochs = formula(
    "convergence_epochs",
    (beta, left),
    log(left) / log(beta),
    domain=(_part, Bound(left < 1, "it is the part of a difference that is left")),
    defaults={left: 0.1},
    ref="backoffs after which the part `left` of a difference between two windows is left [1]; the "
    "90% of Fig. 8 are left = 0.1",
)
slow_start_rounds = formula(
    "slow_start_rounds",
    (rtt, tau0),
    2 * rtt / tau0,
    ref="round trips [1] in which limited slow start, at max_ssthresh/2 a round trip, reaches the "
    "window C rtt when max_ssthresh = C tau0",
    claims={"O(RTT/tau0)": Eq(C * rtt / (C * tau0 / 2), 2 * rtt / tau0)},
)
