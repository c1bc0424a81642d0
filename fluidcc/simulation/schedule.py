"""What is known beforehand to change: starts and stops, scheduled rates, capacities."""

from __future__ import annotations

import math
from typing import Any

from fluidcc.network.network import LinkSpec, Modulated
from fluidcc.numerics.fluid import slots as s
from fluidcc.simulation.arrays import Arrays
from fluidcc.simulation.layout import Layout

__all__ = ["Change", "add_capacities", "add_changes", "collect_changes"]

Change = tuple[float, int, int, float]  # time, kind, index, value


def add_capacities(into: Arrays, at: Layout, since: float) -> None:
    """What each link can do, and the work it can have done up to each change of that."""
    starts, when, work, rate = [0], [], [], []
    for link in at.links:
        t0, done, c0 = 0.0, 0.0, link.capacity
        when.append(t0)
        work.append(done)
        rate.append(c0)
        for t1, c1 in link.schedule:
            done += c0 * (t1 - t0)
            t0, c0 = t1, c1
            when.append(t0)
            work.append(done)
            rate.append(c0)
        starts.append(len(when))
    into.floats(s.OCAP, [_capacity_before(link, since) for link in at.links])
    into.floats(s.OSEGT, when)
    into.floats(s.OSEGS, work)
    into.floats(s.OSEGC, rate)
    into.ints(s.JSEG, starts)


def _capacity_before(link: LinkSpec, since: float) -> float:
    """Capacity just before the run; what changes at its very start is then a change like any other."""
    return next((c for t, c in reversed(link.schedule) if t < since), link.capacity)


def collect_changes(at: Layout, patterns: dict[str, Any], since: float) -> tuple[list[Change], dict[int, float]]:
    """Starts, stops, scheduled rates and capacities, at the clock of each flow's first queue.

    And the rates of flows with scheduled ones just before `since`.
    """
    changes: list[Change] = []
    before: dict[int, float] = {}
    for l, link in enumerate(at.links):
        changes += [(time, s.CAPACITY, l, value) for time, value in link.schedule]
    for i, f in enumerate(at.flows):
        shift = f.access_delay
        for begin, stop in f.intervals:
            if begin >= 0.0:
                changes.append((begin + shift, s.FLOW_ON, i, 0.0))
            elif shift > 0.0 and (at.locate or at.hybrid):
                changes.append((shift, s.FLOW_RELEASE, i, 0.0))
            if math.isfinite(stop):
                changes.append((stop + shift, s.FLOW_OFF, i, 0.0))
        if f.name in patterns:
            if not (isinstance(f.pattern, Modulated) and f.pattern.kind == "noise"):  # else its law sets the rate
                at.rate_state[i] = -2
            drawn = zip(*patterns[f.name], strict=True)
            rates = [(max(time, 0.0) + shift, value) for time, value in drawn]
            changes += [(time, s.FLOW_RATE, i, value) for time, value in rates]
            before[i] = next((value for time, value in reversed(rates) if time < since), 0.0)
    now = since * (1.0 - 1e-11)  # what happens at the start again does no harm
    return sorted((change for change in changes if change[0] >= now), key=lambda change: change[0]), before


def add_changes(into: Arrays, at: Layout, changes: list[Change]) -> None:
    """The list of changes."""
    into.head[s.NSCHED] = len(changes)
    into.floats(s.OSCHED, [number for time, _, _, value in changes for number in (time, value)])
    into.ints(s.JSCHED, [number for _, kind, index, _ in changes for number in (kind, index)])
    into.ints(s.JRATE, at.rate_state)
