"""`stability`: the verdict on a network near its equilibrium, from two counts of roots, and its
margins.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.continuum import left_out, without_zeros
from fluidcc.analysis.linearize import LinearNetwork
from fluidcc.analysis.operating_point import operating_point
from fluidcc.analysis.point import Point
from fluidcc.analysis.report import StabilityReport
from fluidcc.analysis.wiring import all_flows, has_loop, wire_both
from fluidcc.base.arguments import explained, flag, whole
from fluidcc.base.errors import warn
from fluidcc.network.network import require_network

if TYPE_CHECKING:
    from fluidcc.equilibria.equilibrium import Equilibrium
    from fluidcc.network import Network
    from fluidcc.numerics.linear.certify import Certificate


__all__ = ["stability"]


@explained
def stability(
    net: Network,
    *,
    delays: str = "fifo",
    at: float | str | Equilibrium = math.inf,
    roots: int = 4,
    certify: bool = False,
) -> StabilityReport:
    """Judge a network near its equilibrium, exactly.

    The verdict is the number of characteristic roots in the right half plane, counted by the
    argument principle and by finding them; margins come from the eigenloci of the return ratio L,
    broken at the flows' rates.

    Parameters
    ----------
    net : Network
    delays : {"fifo", "frozen"}
        As for `fluidcc.linearize`.
    at : float, str or Equilibrium
        As for `fluidcc.linearize`.
    roots : int
        How many rightmost roots to report.
    certify : bool
        Enclose the count and the rightmost root in interval arithmetic too.

    Returns
    -------
    StabilityReport
        True if stable. ``margins`` of all flows and `StabilityReport.of_flow` of one,
        ``rightmost_roots`` and what moves at them in ``modes`` and ``fairness``, the papers'
        conditions in ``sufficient``, ``passivity``, ``sensitivities``, and with `certify` what is
        proved in ``certified`` and ``certificates``.

    Raises
    ------
    NoEquilibrium, Unsupported, InvalidInput
        As `fluidcc.linearize`.
    Undecided
        The two counts disagree after refinement.

    Notes
    -----
    Laws of the literature that send a window over the round trip, W/RTT, such as `fluidcc.Reno`,
    are judged as they stand: the rate follows the round trip that the sender hears of, one round
    trip late. Over active queue management that misjudges TCP, and the report says so in its
    ``warnings``. 60 flows of Reno at 3,750 packets/s, with a round trip of 0.246 s and marks in
    proportion to the queue, are stable up to 6.65e-5 a packet; in the model of Misra, Gong and
    Towsley, where the rate follows the queue's round trip at once, up to 1.82e-4; with a clock of
    acknowledgements up to 2.3e-4. Over RED, the queue of such a run is up to 20 % off that of
    packets, and its utilisation up to 19 %.

    Examples
    --------
    >>> import fluidcc as fc
    >>> report = fc.stability(fc.dumbbell([fc.LDCC] * 3, {"capacity": "3 Mbit/s"}, rtt="50 ms"))
    >>> report.stable, report.regime, report.encirclements
    (True, 'delay-driven', 0)
    """
    from fluidcc.numerics.linear.margins import margins

    require_network(net)
    roots = whole(roots, "roots", least=1, most=10_000)
    flag(certify, "certify")
    point = operating_point(net, at, delays)
    joined, broken = wire_both(point)
    loops = ((joined, "closed"), (broken, "open"), (all_flows(point, broken), "open"))
    closed, by_class, opened = (LinearNetwork.of(point, m, loop) for m, loop in loops)
    _warn_without_loop(point, by_class)
    among = closed.deviations()
    times = {"": 1, **{f.label: f.count - 1 for f in point.classes}}
    zeros = {
        "": closed.count_unstable(),
        **{name: system.count_unstable() for name, system in among.items()},
    }
    poles = {
        name: system.count_unstable()
        for name, system in {"": by_class, **by_class.deviations("open")}.items()
    }
    unstable, by_contour = (
        sum(times[n] * getattr(c, kind) for n, c in zeros.items())
        for kind in ("unstable", "by_contour")
    )
    open_unstable = sum(times[n] * c.unstable for n, c in poles.items())
    on_axis = sum(c.marginal + c.at_zero for c in zeros.values())
    free, gone = left_out(point, zeros) if on_axis else ((), {})
    found = [without_zeros(closed.rightmost(roots + gone.get("", 0)), gone.get("", 0))]
    for name, system in among.items():
        left = gone.get(name, 0)
        if system.n_states > left:
            found.append(
                np.repeat(without_zeros(system.rightmost(roots + left), left), times[name])
            )
    on_axis -= sum(gone.values())
    return StabilityReport(
        stable=unstable == 0 and on_axis == 0,
        marginal=unstable == 0 and on_axis > 0,
        unstable=unstable,
        encirclements=by_contour - open_unstable,
        open_unstable=open_unstable,
        rightmost_roots=_first(np.concatenate(found), roots),
        margins=margins(opened),
        closed=closed,
        open=opened,
        free=free,
        certificates=_certified(closed) if certify else {},
    )


def _first(every: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """The rightmost of some roots, each beside its conjugate: one more where that is the last."""
    upper = every[every.imag >= 0]
    found: list[complex] = []
    for root in upper[np.argsort(-upper.real, kind="stable")].tolist():
        if len(found) >= count:
            break
        found += [root, root.conjugate()] if root.imag else [root]
    return np.array(found, complex)


def _certified(closed: LinearNetwork) -> dict[str, Certificate]:
    from fluidcc.numerics.linear.certify import certify

    return {
        name: certify(system) for name, system in {"loop": closed, **closed.deviations()}.items()
    }


def _warn_without_loop(point: Point, opened: LinearNetwork) -> None:
    if not np.any(point.regulating) and not has_loop(opened):
        links = sorted({point.links[l].name for f in point.classes for l in f.route})
        warn(
            f"no flow is connected to a saturated link or a price ({', '.join(links)} carry less "
            "than their capacity), so there is no loop: the verdict is that of the laws alone, "
            "and the margins are infinite",
            stacklevel=4,  # beyond `explained`: the line that asks
        )
