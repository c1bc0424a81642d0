"""What was before time 0, for flows that keep account of it."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from fluidcc.laws import Source
from fluidcc.laws.trackers import trackers
from fluidcc.network.network import FlowSpec, Network

__all__ = ["begun", "with_beginnings"]


def begun(flow: FlowSpec) -> FlowSpec:
    """The flow, from time 0 on if it has always been on and keeps account of what it has under way.

    A constant rate before time 0 would fill its path with data that it knows nothing of: an ack clock would send them
    round for ever, beyond its window.
    """
    if not flow.intervals or flow.intervals[0][0] != -math.inf:
        return flow
    if not _keeps_account(flow.law):
        return flow
    return replace(flow, intervals=((0.0, flow.intervals[0][1]), *flow.intervals[1:]))


@lru_cache(maxsize=512)
def _keeps_account(law: Source) -> bool:
    """Whether a law keeps account of what it has under way."""
    return any(account.data != 0 for account in trackers(law).values())


def with_beginnings(net: Network) -> Network:
    """The network with every flow `begun`."""
    new = net
    for name, flow in net.flows.items():
        started = begun(flow)
        if started is not flow:
            new = net.copy() if new is net else new
            new._flows[name] = started
    return new
