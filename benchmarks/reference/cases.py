"""The networks that are solved independently: P1, P2, and the harder ones the tests need."""

from __future__ import annotations

from benchmarks.reference.problem import Case, FlowCase, LinkCase

__all__ = ["CASES", "FULL", "FULL_CYCLE", "LIMIT_CYCLE", "P1", "P2", "PARKING_CYCLE", "PARKING_LOT"]


def _one_link(name: str, rates: tuple[float, ...], **kwargs: float | bool) -> Case:
    q_max = float(kwargs.pop("q_max", float("inf")))
    link = LinkCase(3e6, 0.025, q_max)
    flows = tuple(FlowCase((0,), 0.025, rate) for rate in rates)
    return Case(name, (link,), flows, **{"until": 60.0, **kwargs})  # type: ignore[arg-type]


P1 = _one_link("p1", (0.1e6, 0.2e6, 0.3e6), fifo=False)
P2 = _one_link("p2", (0.1e6, 0.2e6, 0.3e6))

# A gain so high that the queue empties and fills for ever.
LIMIT_CYCLE = _one_link("limit_cycle", (0.5e6, 0.7e6, 1.1e6), eta=3.0)

# 25 packets of 1000 bytes: below T, so that loss alone holds the rates, and the buffer once full
# stays full.
FULL = _one_link("full", (0.5e6, 0.7e6, 1.1e6), q_max=25 * 8000 / 3e6, until=20.0)

# A buffer so small, and a gain so high, that the queue goes from empty to full and back all the
# time. (Gains near 2 make this chaotic: two accurate solutions part by a factor of ten each
# second.)
FULL_CYCLE = _one_link("full_cycle", (0.5e6, 0.7e6, 1.1e6), q_max=30e3 / 3e6, eta=3.0, until=10.0)

_HOPS = (LinkCase(3e6, 0.025), LinkCase(2.5e6, 0.025))
_PARKING = (
    FlowCase((0, 1), 0.05, 0.8e6),
    FlowCase((0,), 0.025, 1.5e6),
    FlowCase((1,), 0.025, 1.2e6),
)
PARKING_LOT = Case("parking_lot", _HOPS, _PARKING, until=20.0)
PARKING_CYCLE = Case("parking_cycle", _HOPS, _PARKING, until=4.0, eta=2.0)

CASES = (P1, P2, LIMIT_CYCLE, FULL, FULL_CYCLE, PARKING_LOT, PARKING_CYCLE)
