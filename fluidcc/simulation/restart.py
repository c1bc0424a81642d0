"""Going on from the final state of another run as if it had never stopped: does it fit, and what goes where."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput
from fluidcc.network.network import FlowSpec, LinkSpec, Network
from fluidcc.numerics.fluid import slots as s
from fluidcc.simulation.initial_history import begun
from fluidcc.simulation.snapshot import (
    CLOCKS,
    COUNTS,
    VERSION,
    digest,
    event_keys,
    event_table,
    flow_places,
    link_places,
    past,
    read_back,
)  # fmt: skip
from fluidcc.simulation.workspace import Workspace

__all__ = ["FinalState"]

Array = NDArray[Any]


@dataclass
class FinalState:
    """A final state, read back.

    Attributes
    ----------
    time : float
        The end of the run that left it [s].
    """

    time: float
    step: float
    about: dict[str, Any]
    arrays: Mapping[str, Array]

    @classmethod
    def of(cls, ds: Any) -> FinalState:
        """The final state in a dataset of `simulate`.

        Raises
        ------
        InvalidInput
            If there is none, or it is damaged or of another version.
        """
        values = getattr(ds, "data_vars", {})
        if "final_state" not in values:
            raise InvalidInput(
                f"restart is {type(ds).__name__} without the variable final_state; "
                "give a result of simulate() as it was returned, or as read from its NetCDF file"
            )
        arrays = read_back(ds["final_state"].values)
        about = json.loads(str(arrays["about"]))
        if about["version"] != VERSION:
            raise InvalidInput(
                f"the final_state of restart is of version {about['version']}, this fluidcc reads {VERSION}; "
                "run the first part again"
            )
        time, step = (float(v) for v in arrays["clock"])
        return cls(time, step, about, arrays)

    def row(self, name: str, i: int) -> Array:
        """Row `i` of a ragged array."""
        starts = self.arrays[f"{name}_starts"]
        return self.arrays[name][starts[i] : starts[i + 1]]

    # --- does it fit? ---------------------------------------------------------------------------------------------

    def continued(self, net: Network, frozen: Mapping[str, float] | None) -> Network:
        """The network with its past: capacities as they were, and new flows from now on.

        Raises
        ------
        InvalidInput
            If the network is one into which this state does not fit: the message says what, and what to do.
        """
        before = self.about["frozen"]
        if (dict(frozen) if frozen is not None else None) != before:
            which = "delays='fifo'" if before is None else f"delays='frozen' and frozen_at={before}"
            raise InvalidInput(f"restart is from a run with {which}; give the same")
        new = net.copy()
        old_links = {str(name): k for k, name in enumerate(self.arrays["link"])}
        old_flows = {str(name): k for k, name in enumerate(self.arrays["flow"])}
        for kind, olds, news in (("link", old_links, net.links), ("flow", old_flows, net.flows)):
            for name in olds:
                if name not in news:
                    hint = "" if kind == "link" else f" with stop={self.time:g}"
                    raise InvalidInput(f"restart has a {kind} {name!r}, which the network lacks; keep it there{hint}")
        for name, link in net.links.items():
            k = old_links.get(name)
            new._links[name] = _new_link(link) if k is None else self._old_link(link, k)
        for name, flow in net.flows.items():
            k = old_flows.get(name)
            if k is None:
                new._flows[name] = self._new_flow(flow, net)
            else:
                self._check_flow(flow, net, k)
        return new

    def _old_link(self, link: LinkSpec, k: int) -> LinkSpec:
        of = f"link {link.name!r}"
        if digest(link.law) != self.arrays["link_law"][k]:
            raise InvalidInput(f"the law of {of} is not that of the run in restart; only its parameters may change")
        if link.delay != self.arrays["link_delay"][k]:
            raise InvalidInput(
                f"the delay of {of} is {link.delay:g} s, in restart {self.arrays['link_delay'][k]:g} s; "
                "data under way cannot change its delay, so keep it"
            )
        backlog = float(self.arrays["link_backlog"][k])
        if backlog > link.buffer * (1 + 1e-12):
            raise InvalidInput(
                f"the buffer of {of} is {link.buffer:g} bit, and {backlog:g} bit are queued at the restart; "
                "give a buffer that holds them"
            )
        changes = [(float(t), float(c)) for t, c in self.row("link_capacity", k).reshape(-1, 2) if t < self.time]
        wanted = [(0.0, link.capacity), *link.schedule]
        now = [c for t, c in wanted if t <= self.time][-1]
        if changes[-1][1] != now:
            changes.append((self.time, now))
        changes += [(t, c) for t, c in wanted if t > self.time]
        return replace(link, capacity=changes[0][1], schedule=tuple(changes[1:]))

    def _check_flow(self, flow: FlowSpec, net: Network, k: int) -> None:
        of = f"flow {flow.name!r}"
        advice = f"stop it at {self.time:g} s and add a flow of another name"
        if digest(flow.law) != self.arrays["flow_law"][k]:
            raise InvalidInput(f"the law of {of} is not that of the run in restart; {advice}")
        if flow.route != tuple(str(self.arrays["link"][l]) for l in self.row("flow_route", k)):
            raise InvalidInput(f"the route of {of} is not that of the run in restart; {advice}")
        now = (flow.access_delay, net.return_delay(flow.name), flow.packet)
        for what, value, was in zip(
            ("access_delay", "return_delay", "packet"), now, self.arrays["flow_delays"][k], strict=True
        ):
            if value != was:
                raise InvalidInput(f"the {what} of {of} is {value:g}, in restart {was:g}; {advice}")
        before = [tuple(row) for row in self.row("flow_past", k).reshape(-1, 2)]
        if past(begun(flow), self.time) != before:
            raise InvalidInput(
                f"start and stop of {of} differ from the run in restart before its end at {self.time:g} s; "
                "change only what comes after"
            )

    def _new_flow(self, flow: FlowSpec, net: Network) -> FlowSpec:
        of = f"flow {flow.name!r}"
        intervals = flow.intervals
        if intervals and intervals[0][0] == -math.inf:
            intervals = ((self.time, intervals[0][1]), *intervals[1:])
        if any(begin < self.time for begin, _ in intervals) or any(end <= begin for begin, end in intervals):
            raise InvalidInput(
                f"{of} is not in the run of restart and starts before its end at {self.time:g} s; "
                "let it start then or later, or put it in the first run"
            )
        reach = self._reach(flow, net)
        oldest = float(self.arrays["record_head"][0, s.RT0])
        if oldest > 0.0 and self.time - reach < oldest:
            raise InvalidInput(
                f"{of} hears of what was sent {reach:g} s ago, and restart keeps {self.time - oldest:g} s; "
                f"put it in the first run with start={self.time:g}"
            )
        return replace(flow, intervals=intervals)

    def _reach(self, flow: FlowSpec, net: Network) -> float:
        """How far back a flow can look: its delays, and the longest queues that were on its way."""
        wait = 0.0
        old = [str(name) for name in self.arrays["link"]]
        for name in flow.route:
            if name in old:
                block = self.arrays["record_links"][:, old.index(name)]
                wait += float(np.max(np.sum(np.abs(block[:, :5]), axis=1) / block[:, s.LC], initial=0.0))
        return net.base_rtt(flow.name) + wait

    # --- filling a workspace --------------------------------------------------------------------------------------

    def place(self, space: Workspace) -> list[tuple[float, int, Array]]:
        """Fill the workspace of the next run.

        Returns
        -------
        list of (time, flow, parameters)
            Where a flow's parameters have changed: when that is felt at its first queue, and the new values. Until
            then the old ones are in the workspace.
        """
        at = space.at
        here = {f.name: i for i, f in enumerate(at.flows)}
        flows = [here[str(name)] for name in self.arrays["flow"]]
        where = {link.name: l for l, link in enumerate(at.links)}
        links = [where[str(name)] for name in self.arrays["link"]]
        y = space.F[space.I[s.OY] :]
        on = space.I[space.I[s.JON] :]
        places, held = flow_places(space), link_places(at)
        for k, i in enumerate(flows):
            y[places[i]] = self.row("flow_states", k)
            on[i] = self.arrays["flow_on"][k]
        nl = len(at.links)
        totals = space.F[space.I[s.OINT] :][: 2 * nl].reshape(2, nl)
        for k, l in enumerate(links):
            y[at.backlog + l] = self.arrays["link_backlog"][k]
            y[held[l]] = self.row("link_states", k)
            space.I[space.I[s.JMODE] + l] = self.arrays["link_mode"][k]
            totals[:, l] = self.arrays["link_totals"][:, k]
        self._place_history(space, flows, links)
        self._place_landings(space, flows, links)
        self._place_events(space)
        return self._place_parameters(space, flows)

    def _place_history(self, space: Workspace, flows: list[int], links: list[int]) -> None:
        at, head = space.at, self.arrays["record_head"]
        count, nl, nx = len(head), len(at.links), len(at.aggregates)
        while int(space.I[s.MASK]) < count + 2 and space.grow_ring():
            pass
        stride = int(space.I[s.STRIDE])
        ring = space.F[int(space.I[s.OHIST]) :].reshape(-1, stride)[:count]
        ring[:, : s.RLINKS] = head
        blocks = np.zeros((count, nl, s.LSIZE))
        for l, link in enumerate(at.links):  # of a new link: empty, and nothing comes
            blocks[:, l, s.LCH] = link.capacity * head[:, s.RH]
            blocks[:, l, s.LS0] = link.capacity * head[:, s.RT0]
            blocks[:, l, s.LC] = link.capacity
            blocks[:, l, s.LMODE] = s.EMPTY
        blocks[:, links] = self.arrays["record_links"]
        after = s.RLINKS + nl * s.LSIZE
        ring[:, s.RLINKS : after] = blocks.reshape(count, -1)
        rates = np.zeros((count, nx + int(space.I[s.NT]), 5))
        known = {route: g for g, route in enumerate(at.aggregates)}
        for k in range(len(self.arrays["route_starts"]) - 1):
            rates[:, known[tuple(links[l] for l in self.row("route", k))]] = self.arrays["record_routes"][:, k]
        for k, i in enumerate(self.arrays["own"]):
            rates[:, nx + at.own_rate[flows[i]]] = self.arrays["record_own"][:, k]
        ring[:, after : after + rates[0].size] = rates.reshape(count, -1)
        acting = np.zeros((count, len(at.acting), 5 * s.XSIZE))
        for k, l in enumerate(self.arrays["acting"]):
            acting[:, at.acting.index(links[l])] = self.arrays["record_acting"][:, k]
        ring[:, after + rates[0].size :] = acting.reshape(count, -1)
        space.I[s.NREC] = count
        space.I[space.I[s.JNCUR0] :][: len(at.nodes)] = count - 1

    def _place_landings(self, space: Workspace, flows: list[int], links: list[int]) -> None:
        from fluidcc.numerics.fluid.breaks import push

        rows = zip(self.arrays["landing_time"].tolist(), self.arrays["landing"].tolist(), strict=True)
        for time, (kind, index, generation) in rows:
            while int(space.I[s.NHEAP]) >= int(space.I[s.HEAPCAP]) // 2:
                space.grow_heap()
            to = links[index] if kind == s.AT_LINK else space.at.flow_class[flows[index]]
            push(space.F, space.I, time, kind, to, generation)

    def _place_events(self, space: Workspace) -> None:
        here = {key: k for k, key in enumerate(event_keys(space))}
        rows = [here[str(key)] for key in self.arrays["event"]]
        for slot, values in zip(CLOCKS, self.arrays["event_clocks"], strict=True):
            space.F[int(space.I[slot]) + np.array(rows, dtype=np.int64)] = values
        event_table(space)[np.ix_(rows, COUNTS)] = self.arrays["event_counts"]

    def _place_parameters(self, space: Workspace, flows: list[int]) -> list[tuple[float, int, Array]]:
        changes = []
        for k, i in enumerate(flows):
            before, where = self.row("flow_params", k), space.parameter_places(i)
            now = space.F[where].copy()
            if not np.array_equal(before, now):
                space.F[where] = before
                changes.append((self.time + space.at.flows[i].access_delay, i, now))
        return sorted(changes, key=lambda change: change[:2])


def _new_link(link: LinkSpec) -> LinkSpec:
    law = link.law
    if any(z != law.queue for z in law.states) or {*law.out} - {"loss"} or any(link.initial.values()):
        raise InvalidInput(
            f"link {link.name!r} is not in the run of restart, and only an empty queue without states of its own has "
            "no past; put it in the first run"
        )
    if link.schedule:
        raise InvalidInput(f"link {link.name!r} is not in the run of restart; give it one capacity")
    return link
