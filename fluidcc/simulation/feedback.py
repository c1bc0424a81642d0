"""Which links act on their own, and how long what they tell is on its way: see `fluidcc.numerics.fluid.feedback`."""

from __future__ import annotations

from collections.abc import Sequence

from fluidcc.base.errors import InvalidInput
from fluidcc.laws import Law
from fluidcc.network.network import LinkSpec
from fluidcc.numerics.fluid import slots as s
from fluidcc.symbols import REPORTING, symbols_of, y

__all__ = ["ACTING", "acts", "told_lags"]

#: what a link law may give that is not the solver's own
ACTING = {"drop": s.DROPS, "offer": s.OFFERS, "reports": s.REPORTS}


def acts(law: Law) -> int:
    """What a link law gives, as bits of `slots`."""
    return sum(bit for name, bit in ACTING.items() if name in law.out)


def told_lags(flow: str, route: Sequence[LinkSpec], access: float) -> list[tuple[int, float]]:
    """The hops of a route that tell sources something, and how long ago they said what is heard now [s].

    A class's clock is that of its first queue, an access delay after that of its sources.

    Raises
    ------
    InvalidInput
        If more links report than a source keeps reports of, or a loop has no delay.
    """
    found, lag = [], 2 * access
    for hop, link in enumerate(route):
        if acts(link.law) & (s.OFFERS | s.REPORTS):
            if not lag > 0.0 and _by_arrivals(link.law):
                raise InvalidInput(
                    f"flow {flow!r} is beside link {link.name!r}, which tells it at once what follows from the rate "
                    "that arrives, a loop without any delay; give the flow an access_delay above 0"
                )
            found.append((hop, lag))
        lag += link.delay
    reporters = [route[hop].name for hop, _ in found if acts(route[hop].law) & s.REPORTS]
    if len(reporters) > s.REPORTERS:
        raise InvalidInput(
            f"flow {flow!r} crosses {len(reporters)} links that report, and a source keeps a rate for {s.REPORTERS} of "
            "them; let those that never are the narrowest drop without reporting, as fluidcc.PAQMDrop does"
        )
    return found


def _by_arrivals(law: Law) -> bool:
    """Whether what a link tells changes at once with the rate that arrives."""
    return any(y in symbols_of(law.out[name]) for name in ("offer", *REPORTING) if name in law.out)
