"""What sources keep account of having in flight, counted anew from the history of a run.

An ack clock's F integrates what is sent less what is acknowledged. What one step adds to it by
mistake no later step takes off again, so that after a long run a source has something else under
way than it believes, by the accuracy of all the run. The history itself says what is under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fluidcc.laws.trackers import trackers
from fluidcc.network.network import FlowSpec, Network
from fluidcc.numerics.fluid import state as s
from fluidcc.numerics.fluid.entry import resume
from fluidcc.simulation.layout import lay_out
from fluidcc.simulation.restart import FinalState, nudged
from fluidcc.simulation.workspace import Workspace
from fluidcc.symbols import packet, plain

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["counted_anew"]


def counted_anew(net: Network, run: xr.Dataset) -> xr.Dataset:
    """The run with every account of data in flight put right in its final state.

    Accounts that jumps or ticks change are left as they are, and those of flows that were on
    before: what these still had under way when they began again is not known any more.

    Parameters
    ----------
    net : Network
        Of the run.
    run : Dataset
        A result of `simulate` with FIFO delays.
    """
    mine = {name: places for name, flow in net.flows.items() if (places := _accounts(flow))}
    if not mine:
        return run
    before = FinalState.of(run)
    flown = _in_flight(net, before)
    changes = {}
    for name, places in mine.items():
        was = before.flows[name]
        if was["on"] == s.ON:
            changes["flow", name] = {
                j: first + share * flown[name] - was["states"][j]
                for j, (first, share) in places.items()
            }
    return run.assign(final_state=("final_state_byte", nudged(run["final_state"].values, changes)))


def _accounts(flow: FlowSpec) -> dict[int, tuple[float, float]]:
    """By number of the state: what it was without data in flight, and how much of it a bit of them
    is.
    """
    if len(flow.intervals) != 1:
        return {}
    law, found = flow.law, {}
    changed = {z for jump in law.jumps for z in jump.reset} | {
        z for tick in law.ticks for z in tick.update
    }
    for j, z in enumerate(law.states):
        account = trackers(law).get(z)
        if account is not None and account.delay == 0 and z not in changed:
            share = account.data.xreplace({**law.params, packet: flow.packet})
            found[j] = float(flow.initial[plain(z)]), float(share)
    return found


def _in_flight(net: Network, before: FinalState) -> dict[str, float]:
    """Bits that each flow whose law looks back at its own rate has sent and not heard of."""
    at = lay_out(before.continued(net, None), None)
    space = Workspace(
        at,
        np.array([before.time]),
        before.time,
        rtol=1e-6,
        atol=1e-9,
        patterns={},
        since=before.time,
    )
    before.place(space)
    resume(space.state, before.time, before.about["step"])
    heard = space.state.entry_time  # when that was sent of which a class hears now
    leaves = space.state.leaf
    here = {f.name: c for f, c in zip(at.flows, at.flow_class, strict=True)}
    head, _, _, own, _ = before.parts
    return {
        name: _integral(head, own[:, k], float(heard[leaves[here[name]]]), before.time)
        for k, name in enumerate(before.about["own"])
    }


def _integral(
    head: NDArray[np.float64], quartics: NDArray[np.float64], since: float, until: float
) -> float:
    """Of the quartics (records, 5), each from its record's time to that of the next one."""
    begin = head[:, s.RT0]
    edges = np.clip([begin, np.append(begin[1:], until)], since, until)
    low, high = (edges - begin) * head[:, s.RINVH]
    powers = np.arange(1, quartics.shape[1] + 1)
    rises = (high[:, None] ** powers - low[:, None] ** powers) / powers
    return float(np.sum(head[:, s.RH] * np.sum(quartics * rises, axis=1)))
