"""FAST and Vegas when a flow arrives at a standing queue: who gets what, and how the newcomer can
find out.

All equation numbers are those of M. Rodriguez-Perez, S. Herreria-Alonso, M. Fernandez-Veiga and C.
Lopez-Garcia, "The persistent congestion problem of FAST-TCP: analysis and solutions" (IEEE
Communications Letters version). Windows and backlogs are in packets, C and rates in packets/s, as
in the paper; a network of fluidcc has its capacities in bit/s, which are these times the packet
size in bits. A newcomer, flow 0, meets n flows in equilibrium that know their propagation delays
and have alpha packets each in the queue: it takes their queueing delay n alpha/C for propagation.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sympy import Eq, sqrt, symbols

from fluidcc.base.arguments import explained, numbers, shown, whole
from fluidcc.base.errors import InvalidInput
from fluidcc.formulas._formula import Bound, Formula
from fluidcc.symbols import nonnegative, positive

__all__ = [
    "Arrivals", "arrival_recursion", "corrected_delay", "drain_time", "equilibrium_rates",
    "estimate_capacity", "estimate_flows", "flows_together", "newcomer_backlog", "probe_backlog",
    "rate_reduction_threshold", "rates_of_errors", "rtt_change", "unfairness",
]  # fmt: skip

n = nonnegative("n")
alpha, C, t_eps, x0, d_hat, m = positive("alpha C t_eps x0 d_hat m")
theta, delta_r = symbols("theta delta_r", real=True, nonzero=True)

_b0 = alpha * (1 + sqrt(1 + 4 * n)) / 2
_B = _b0 / alpha
_x0 = alpha * C / _b0
_xf = alpha * C / (_b0 + n * alpha)
_UNITS = {C: "packet/s", x0: "packet/s", alpha: "packet", t_eps: "s", delta_r: "s", d_hat: "s"}
formula = partial(Formula, units=_UNITS)

newcomer_backlog = formula(
    "newcomer_backlog",
    (n, alpha),
    _b0,
    ref="(5), what the newcomer adds to the queue [packet]",
    claims={"(5) is where the rates (3) and (4) fill the link": Eq(_x0 + n * _xf, C)},
)
equilibrium_rates = formula(
    "equilibrium_rates",
    (n, C, alpha),
    {"newcomer": _x0, "others": _xf},
    ref="(3) and (4), rate of the newcomer and of each of the n others [packet/s]; C in packets/s. "
    "They do not depend on alpha",
    claims={
        "(3)": Eq(_x0, alpha / (_b0 / C)),
        "(4)": Eq(_xf, alpha / ((_b0 + n * alpha) / C)),
    },
)
unfairness = formula(
    "unfairness",
    (n,),
    _B,
    ref="x_0/x_f by (3) and (4), how many times an old flow's rate the newcomer has [1]; about "
    "sqrt(n)",
    claims={"ratio of (3) to (4)": Eq(_x0 / _xf, _B), "as a backlog": Eq(_B * (_B - 1), n)},
)
drain_time = formula(
    "drain_time",
    (n, C, alpha),
    (_b0 + n * alpha) / (C - n * _xf),
    ref="left side of (6), the time [s] in which the queue empties while the newcomer pauses; C "
    "in packets/s",
)
rate_reduction_threshold = formula(
    "rate_reduction_threshold",
    (n, C, alpha),
    n * _b0 / C,
    ref="(7), the round-trip propagation delay [s] above which a pause of the newcomer empties the "
    "queue before the others know; C in packets/s",
    claims={"(6) at the threshold": Eq(drain_time.form, n * _b0 / C + (_b0 + n * alpha) / C)},
)

# --- the estimator of Section IV ------------------------------------------------------------------

_C_over = C / x0
_a = theta * t_eps / delta_r  # the newcomer's share of the capacity is 1/a
_same_sign = Bound(
    _a >= 1, "a probe of share theta for t_eps changes the round trip by at most theta t_eps"
)
_below = Bound(
    theta < 1, "theta is the part of its rate that the newcomer gives up; more than all it has not"
)

rtt_change = formula(
    "rtt_change",
    (theta, t_eps, x0, C),
    theta * x0 * t_eps / C,
    domain=(_below,),
    ref="(8), by how much the round trip falls [s] when the newcomer sends (1 - theta) x0 for "
    "t_eps, while the others go on as before and the queue does not empty; x0 and C in packets/s",
    claims={
        "(8), with the rates of all adding up to C": Eq(
            C * (theta * x0 * t_eps / C), (C - ((C - x0) + (1 - theta) * x0)) * t_eps
        )
    },
)
estimate_flows = formula(
    "estimate_flows",
    (theta, t_eps, delta_r),
    _a * (_a - 1),
    domain=(_below, _same_sign),
    ref="(9), the number of other flows [1], from the change delta_r [s] of the round trip",
    claims={"(9) inverts (8)": Eq((_a * (_a - 1)).subs(delta_r, theta * _x0 * t_eps / C), n)},
)
estimate_capacity = formula(
    "estimate_capacity",
    (theta, t_eps, delta_r, x0),
    _a * x0,
    domain=(_below, _same_sign),
    ref="capacity [packet/s], from (9) and (3); x0 in packets/s",
    claims={
        "the paper's form, (1 + sqrt(1 + 4 n)) x0/2": Eq(
            (1 + sqrt(1 + 4 * n)) * x0 / 2, (_a * x0).subs(delta_r, theta * t_eps / _B)
        )
    },
)
corrected_delay = formula(
    "corrected_delay",
    (d_hat, theta, t_eps, delta_r, alpha, x0),
    d_hat - estimate_flows.form * alpha / estimate_capacity.form,
    domain=(_below, _same_sign),
    ref="the propagation delay [s] after the correction of Section IV: d_hat less alpha times the "
    "number of others over the capacity; x0 in packets/s",
)
probe_backlog = formula(
    "probe_backlog",
    (theta, t_eps, x0),
    -theta * t_eps * x0,
    domain=(_below,),
    ref="what the probe adds to the queue [packet]; room for it is needed if theta < 0, and it "
    "must be there to be taken away if theta > 0; x0 in packets/s",
)

flows_together = formula(
    "flows_together",
    (m, x0, C),
    _C_over * (_C_over - m) / m,
    domain=(Bound(m * x0 <= C, "m newcomers of rate x0 have at most the whole link"),),
    ref="Section II, the number of flows that know their delays [1] among which each of m "
    "newcomers at once has the rate x0; x0 and C in packets/s",
    claims={
        "the rates fill the link": Eq(
            m / _C_over + (_C_over * (_C_over - m) / m) / (_C_over + _C_over * (_C_over - m) / m),
            1,
        ),
    },
)

# --- arrivals one after the other -----------------------------------------------------------------


class Arrivals(NamedTuple):
    """Equilibria after each arrival.

    Attributes
    ----------
    backlog : ndarray (m,)
        Queue after arrival j + 1 [packet].
    rate : ndarray (m, m)
        Row j has the rates of the flows after arrival j + 1, in the order of arrival [packet/s]; 0
        before a flow's own.
    """

    backlog: NDArray[np.float64]
    rate: NDArray[np.float64]


_given = formula("arrival_recursion", (C, alpha), {"C": C, "alpha": alpha})


@explained
def arrival_recursion(m: int, C: Any, alpha: Any) -> Arrivals:
    """Return the backlogs and rates when m flows start one after the other, each at the equilibrium
    of those before it.

    Flow k takes the queue that it meets, b_{k-1}, for propagation; after the arrival of flow j the
    queue b_j solves sum over k <= j of alpha/(b_j - b_{k-1}) = 1, which is (2) for all flows and a
    full link.

    Parameters
    ----------
    m : int
        Number of flows, at least 1.
    C : float or str
        Capacity [packet/s].
    alpha : float or str
        What a flow wants in the queue [packet].

    Returns
    -------
    Arrivals
        ``backlog`` [packet] (m,) and ``rate`` [packet/s] (m, m).

    Raises
    ------
    InvalidInput
        If `m` is not a whole number of at least 1, or `C` or `alpha` is not positive.

    Examples
    --------
    >>> backlog, rate = arrival_recursion(2, 12500.0, 50.0)
    >>> backlog.round(3).tolist(), rate[1].round(1).tolist()
    ([50.0, 130.902], [4774.6, 7725.4])
    """
    flows = whole(m, "arrival_recursion: m", least=1)
    capacity, wanted = _given(C, alpha)
    for name, value in (("C", C), ("alpha", alpha)):
        if np.ndim(value):
            raise InvalidInput(f"arrival_recursion: {name} is {shown(value)}; give one number")
    met = np.zeros(flows)  # the queue that each flow met, over alpha
    rate = np.zeros((flows, flows))
    for j in range(flows):
        # Each flow's own part of the queue is what is above the queue that it met.
        gaps = met[j] - met[: j + 1]
        own = _newcomer_part(gaps)
        rate[j, : j + 1] = capacity / (gaps + own)
        if j + 1 < flows:
            met[j + 1] = met[j] + own
    last = met[-1] + own
    return Arrivals(wanted * np.append(met[1:], last), rate)


@explained
def rates_of_errors(errors: Any, C: Any, alpha: Any) -> Arrivals:
    """Return the backlog and the rates where flows take too much for propagation, by (2).

    Parameters
    ----------
    errors : array_like (n,)
        What each flow takes for propagation less what it is [s], d^ - d.
    C : float or str
        Capacity [packet/s].
    alpha : float or str
        What a flow wants in the queue [packet].

    Returns
    -------
    Arrivals
        ``backlog`` [packet], a number, and ``rate`` [packet/s] (n,): alpha/(b/C - errors), which
        add up to C.

    Raises
    ------
    InvalidInput
        If there is no flow, or `C` or `alpha` is not one positive number.

    Examples
    --------
    >>> backlog, rate = rates_of_errors([0, 0.004], 12500.0, 50.0)
    >>> rate.round(1).tolist()
    [4774.6, 7725.4]
    """
    off = np.atleast_1d(numbers(errors, "rates_of_errors: errors", "an array of seconds"))
    capacity, wanted = _given(C, alpha)
    if off.ndim != 1 or not off.size or np.ndim(capacity) or np.ndim(wanted):
        raise InvalidInput(
            "rates_of_errors takes the errors of one flow after the other, and one C and one alpha"
        )
    gaps = (off.max() - off) * capacity / wanted
    own = _newcomer_part(gaps)
    return Arrivals(wanted * own + off.max() * capacity, capacity / (gaps + own))


def _newcomer_part(gaps: NDArray[np.float64]) -> float:
    """Solve sum 1/(gap + z) = 1; the last gap is 0, so the sum is at least 1 at z = 1 and at
    most 1 at their number.
    """
    from scipy.optimize import brentq

    return float(
        brentq(
            lambda z: np.sum(1 / (gaps + z)) - 1, 1.0, len(gaps), xtol=4e-16 * len(gaps), rtol=9e-16
        )
    )
