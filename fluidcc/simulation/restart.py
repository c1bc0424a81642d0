"""The final state of a run, and going on from it in another one as if it had never stopped.

A final state is two things: a table of what each flow, link, jump and tick has at the end, by name,
and the records of the history over the largest delay. They stand as text in the attribute
``final_state`` of the dataset, so that it survives NetCDF, Zarr and pickling.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput
from fluidcc.base.packed import packed, unpacked
from fluidcc.laws import Law
from fluidcc.laws.steady import trackers
from fluidcc.network.network import Network
from fluidcc.network.specs import FlowSpec, LinkSpec
from fluidcc.numerics.fluid import state as s
from fluidcc.numerics.fluid.breaking_points import push
from fluidcc.numerics.fluid.entry import resume
from fluidcc.simulation.layout import Group, begun, lay_out
from fluidcc.simulation.tables import event_of
from fluidcc.simulation.workspace import Workspace
from fluidcc.symbols import packet, plain, unfold

if TYPE_CHECKING:
    import xarray as xr

_VERSION = 7  # of what is written down
_CLOCKS = ("rule_time", "rule_base", "rule_period", "rule_last", "rule_gap")
_COUNTS = [s.HCOUNT, s.HREPEAT]
_OWNERS = ("links", "routes", "own", "acting")  # of the parts of a record, after its head
Array = NDArray[Any]


# --- writing it down ------------------------------------------------------------------------------


def snapshot(space: Workspace) -> str:
    """Return the final state of a run whose clock stands at its end, as text."""
    at, state = space.at, space.state
    own = [f.name for f, slot in zip(at.flows, at.own_rate, strict=True) if slot >= 0]
    about = {
        "frozen": None if at.frozen is None else dict(at.frozen),
        "time": float(state.t),
        "step": float(state.h_next),
        "flows": _flows(space),
        "links": _links(space),
        "landings": _landings(space),
        "events": _events(space),
        "routes": [[at.links[l].name for l in route] for route in at.aggregates],
        "own": own,
        "acting": [at.links[l].name for l in at.acting],
        "record_size": at.record_size,
    }
    ring = state.ring.reshape(-1, at.record_size)
    return _written(about, ring[np.arange(state.oldest, state.n_records) & state.ring_mask])


def nudged(run: xr.Dataset, changes: Mapping[tuple[str, str], Mapping[int, float]]) -> xr.Dataset:
    """A run with some states of its final state moved a little, at the instant it was taken.

    Parameters
    ----------
    run : Dataset
        A result of `simulate`.
    changes : mapping of (kind, name) to mapping of int to float
        What to add, by ``("flow", name)`` or ``("link", name)`` and the number of the state in its
        law; of a link, not its queue.
    """
    before = FinalState.of(run)
    for (kind, name), moves in changes.items():
        states = before.about[f"{kind}s"][name]["states"]
        for number, step in moves.items():
            states[number] += step
    return run.assign_attrs(final_state=_written(before.about, before.records))


def _written(about: dict[str, Any], records: Array) -> str:
    """The table and the records as text."""
    table = json.dumps({"version": _VERSION, **about}).encode()
    return packed({"about": np.frombuffer(table, np.uint8), "records": records.ravel()})


def _read_back(text: Any) -> tuple[dict[str, Any], Array]:
    """Return the table and the records of a final state.

    Raises
    ------
    InvalidInput
        If it is not as `snapshot` gave it.
    """
    try:
        found = unpacked(text)
        about = json.loads(found["about"].tobytes())
        if about["version"] == _VERSION:
            return about, found["records"].reshape(-1, about["record_size"])
    except (ValueError, TypeError, KeyError):
        pass
    raise InvalidInput(
        "the final_state of restart is damaged, or of another version of fluidcc; give a "
        "result of simulate() as it was returned, or run the first part again"
    )


@lru_cache(maxsize=256)
def _digest_of(structure: Any, law: Law) -> str:
    parts = [law.kind, law.name, *map(plain, law.states), "|", *map(plain, law.params), "|"]
    parts += [f"{what}={unfold(f)}" for what, f in law.expressions()]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def _digest(law: Law) -> str:
    """The law apart from its parameter values."""
    return _digest_of(law.structure, law)


def _state_places(groups: list[Group], count: int) -> list[list[int]]:
    """Where the states of each flow, or those that each link has beside its backlog, stand in
    `State.y`.
    """
    rows: list[list[int]] = [[] for _ in range(count)]
    for g in groups:
        for n, i in enumerate(g.members):
            rows[i] = [g.states + j * g.size + n for j in range(len(g.own))]
    return rows


def _flows(space: Workspace) -> dict[str, dict[str, Any]]:
    at, state = space.at, space.state
    y, time = state.y[: at.n_states].tolist(), float(state.t)
    places = _state_places(at.groups, len(at.flows))
    return {
        f.name: {
            "law": _digest(f.law),
            "route": f.route,
            "delays": _delays(f, at.net),
            "past": _past(f, time),
            "on": int(state.flow_on[i]),
            "states": [y[n] for n in places[i]],
            "parameters": [float(value) for value in f.law.params.values()],
        }
        for i, f in enumerate(at.flows)
    }


def _delays(flow: FlowSpec, net: Network) -> dict[str, float]:
    """What of a flow its data under way cannot change."""
    back = net.return_delay(flow.name)
    return {"access_delay": flow.access_delay, "return_delay": back, "packet": flow.packet}


def _past(flow: FlowSpec, time: float) -> list[list[float]]:
    """When a flow was on before `time`."""
    return [[begin, min(end, time)] for begin, end in flow.intervals if begin < time]


def _links(space: Workspace) -> dict[str, dict[str, Any]]:
    at, state, nl = space.at, space.state, len(space.at.links)
    y, totals = state.y[: at.n_states].tolist(), state.totals[: 2 * nl].reshape(2, nl)
    places = _state_places(at.link_groups, nl)
    return {
        link.name: {
            "law": _digest(link.law),
            "delay": link.delay,
            "capacity": [(0.0, link.capacity), *link.schedule],
            "mode": int(state.mode[l]),
            "totals": totals[:, l].tolist(),
            "backlog": y[at.backlog + l],
            "states": [y[n] for n in places[l]],
        }
        for l, link in enumerate(at.links)
    }


def _landings(space: Workspace) -> list[tuple[float, int, str, int]]:
    """Breaking points under way: when each lands, whether at a link, its name, or at a class of
    flows, the name of one of it, and its generation.
    """
    at, state, count = space.at, space.state, int(space.state.n_landings)
    rows = state.landing[: 3 * count].reshape(count, 3).tolist()
    found = []
    for time, (kind, index, generation) in zip(
        state.landing_time[:count].tolist(), rows, strict=True
    ):
        to = at.flows[at.flow_class.index(index)] if kind == s.AT_CLASS else at.links[index]
        found.append((time, kind, to.name, generation))
    return found


def _event_table(space: Workspace) -> NDArray[np.int64]:
    """The rows of jumps and ticks in the workspace, as they are now; changing it changes them."""
    count = int(space.state.n_rules)
    return space.state.rule[: count * s.HSIZE].reshape(count, s.HSIZE)


def _event_keys(space: Workspace) -> list[str]:
    """Whose each jump or tick is, and its number in the law."""
    events = ((event_of(space.at, row), row[s.HWANT]) for row in space.event_rows)
    return [f"{event.owner} {event.name} {number}" for event, number in events]


def _events(space: Workspace) -> dict[str, dict[str, list[float]]]:
    """When each jump or tick is next due, and when its refractory time ends."""
    clocks = [getattr(space.state, name) for name in _CLOCKS]
    counts = _event_table(space)[:, _COUNTS].tolist()
    return {
        key: {"clocks": [float(clock[k]) for clock in clocks], "counts": counts[k]}
        for k, key in enumerate(_event_keys(space))
    }


# --- going on from it: does it fit, and what goes where -------------------------------------------


def _parts(records: Array, links: int, routes: int, own: int, acting: int) -> list[Array]:
    """The heads of some records, and what they have of links, routes, own rates and acting links:
    views, each with an axis of these.
    """
    shapes = [(links, s.LSIZE), (routes, 5), (own, 5), (acting, 5 * s.XSIZE)]
    ends = s.RLINKS + np.cumsum([0, *(count * size for count, size in shapes)])
    head, *parts = np.split(records, ends[:-1], axis=1)
    return [head, *(p.reshape(len(p), *shape) for p, shape in zip(parts, shapes, strict=True))]


@dataclass
class FinalState:
    """A final state, read back.

    Attributes
    ----------
    about : dict
        The table: see `snapshot`.
    records : array (records, numbers)
        The history, oldest first.
    """

    about: dict[str, Any]
    records: Array

    @classmethod
    def of(cls, ds: Any) -> FinalState:
        """The final state in a dataset of `simulate`.

        Raises
        ------
        InvalidInput
            If there is none, or it is damaged, of another version, or of an earlier run than the
            samples are.
        """
        values = getattr(ds, "attrs", {})
        if "final_state" not in values:
            raise InvalidInput(
                f"restart is {type(ds).__name__} without the attribute final_state; "
                "give a result of simulate() as it was returned, or as read from its NetCDF file"
            )
        found = cls(*_read_back(values["final_state"]))
        if "time" not in ds.coords or not ds["time"].size:
            raise InvalidInput(
                "restart has no times of samples; give a result of simulate() as it was returned"
            )
        last = float(ds["time"].max())
        if last > found.time * (1 + 1e-9):
            raise InvalidInput(
                f"restart has samples up to {last:g} s, and a final state of {found.time:g} s, as "
                "where runs have been put together; give the last of them as simulate() returned it"
            )
        return found

    @property
    def time(self) -> float:
        """The end of the run that left it [s]."""
        return float(self.about["time"])

    @property
    def flows(self) -> dict[str, dict[str, Any]]:
        """What each flow has, by name."""
        return self.about["flows"]

    @property
    def links(self) -> dict[str, dict[str, Any]]:
        """What each link has, by name."""
        return self.about["links"]

    @cached_property
    def parts(self) -> list[Array]:
        """The parts of its records, in its own order of links, routes and flows."""
        return _parts(self.records, *(len(self.about[key]) for key in _OWNERS))

    # --- does it fit? -----------------------------------------------------------------------------

    def continued(self, net: Network, frozen: Mapping[str, float] | None) -> Network:
        """The network with its past: capacities as they were, and new flows from now on.

        Raises
        ------
        InvalidInput
            If the network is one into which this state does not fit: the message says what, and
            what to do.
        """
        before = self.about["frozen"]
        if (dict(frozen) if frozen is not None else None) != before:
            which = "delays='fifo'" if before is None else f"delays='frozen' and frozen_at={before}"
            raise InvalidInput(f"restart is from a run with {which}; give the same")
        new = net.copy()
        for kind, olds, news in (
            ("link", self.links, net.links), ("flow", self.flows, net.flows),
        ):  # fmt: skip
            for name in olds:
                if name not in news:
                    hint = "" if kind == "link" else f" with stop={self.time:g}"
                    raise InvalidInput(
                        f"restart has a {kind} {name!r}, which the network lacks; keep it "
                        f"there{hint}"
                    )
        for name, link in net.links.items():
            new._links[name] = self._old_link(link) if name in self.links else _new_link(link)
        for name, flow in net.flows.items():
            if name in self.flows:
                self._check_flow(flow, net)
            else:
                new._flows[name] = self._new_flow(flow, net)
        return new

    def _old_link(self, link: LinkSpec) -> LinkSpec:
        of, was = f"link {link.name!r}", self.links[link.name]
        if _digest(link.law) != was["law"]:
            raise InvalidInput(
                f"the law of {of} is not that of the run in restart; only its parameters may change"
            )
        if link.delay != was["delay"]:
            raise InvalidInput(
                f"the delay of {of} is {link.delay:g} s, in restart {was['delay']:g} s; "
                "data under way cannot change its delay, so keep it"
            )
        if was["backlog"] > link.buffer * (1 + 1e-12):
            raise InvalidInput(
                f"the buffer of {of} is {link.buffer:g} bit, and {was['backlog']:g} bit are queued "
                "at the restart; give a buffer that holds them"
            )
        changes = [(t, c) for t, c in was["capacity"] if t < self.time]
        wanted = [(0.0, link.capacity), *link.schedule]
        now = [c for t, c in wanted if t <= self.time][-1]
        if changes[-1][1] != now:
            changes.append((self.time, now))
        changes += [(t, c) for t, c in wanted if t > self.time]
        return replace(link, capacity=changes[0][1], schedule=tuple(changes[1:]))

    def _check_flow(self, flow: FlowSpec, net: Network) -> None:
        of, was = f"flow {flow.name!r}", self.flows[flow.name]
        advice = f"stop it at {self.time:g} s and add a flow of another name"
        for what, now in (("law", _digest(flow.law)), ("route", list(flow.route))):
            if now != was[what]:
                raise InvalidInput(
                    f"the {what} of {of} is not that of the run in restart; {advice}"
                )
        for what, value in _delays(flow, net).items():
            before = was["delays"][what]
            if value != before:
                raise InvalidInput(
                    f"the {what} of {of} is {value:g}, in restart {before:g}; {advice}"
                )
        if _past(begun(flow), self.time) != was["past"]:
            raise InvalidInput(
                f"start and stop of {of} differ from the run in restart before its end at "
                f"{self.time:g} s; change only what comes after"
            )

    def _new_flow(self, flow: FlowSpec, net: Network) -> FlowSpec:
        of = f"flow {flow.name!r}"
        intervals = flow.intervals
        if intervals and intervals[0][0] == -math.inf:
            intervals = ((self.time, intervals[0][1]), *intervals[1:])
        if any(begin < self.time for begin, _ in intervals) or any(
            end <= begin for begin, end in intervals
        ):
            raise InvalidInput(
                f"{of} is not in the run of restart and starts before its end at {self.time:g} s; "
                "let it start then or later, or put it in the first run"
            )
        reach = self._reach(flow, net)
        oldest = float(self.parts[0][0, s.RT0])
        if oldest > 0.0 and self.time - reach < oldest:
            raise InvalidInput(
                f"{of} hears of what was sent {reach:g} s ago, and restart keeps "
                f"{self.time - oldest:g} s; put it in the first run with start={self.time:g}"
            )
        return replace(flow, intervals=intervals)

    def _reach(self, flow: FlowSpec, net: Network) -> float:
        """How far back a flow can look: its delays, and the longest queues that were on its way."""
        _, blocks, *_ = self.parts
        waits = np.max(
            np.sum(np.abs(blocks[:, :, :5]), axis=2) / blocks[:, :, s.LC], axis=0, initial=0.0
        )
        longest = dict(zip(self.links, waits.tolist(), strict=True))
        return net.base_rtt(flow.name) + sum(longest.get(name, 0.0) for name in flow.route)

    # --- filling a workspace ----------------------------------------------------------------------

    def place(self, space: Workspace) -> list[tuple[float, int, Array]]:
        """Fill the workspace of the next run.

        Returns
        -------
        list of (time, flow, parameters)
            Where a flow's parameters have changed: when that is felt at its first queue, and the
            new values. Until then the old ones are in the workspace.
        """
        at, state, nl = space.at, space.state, len(space.at.links)
        flows = {f.name: i for i, f in enumerate(at.flows)}
        links = {link.name: l for l, link in enumerate(at.links)}
        changes = []
        places = _state_places(at.groups, len(at.flows))
        for name, was in self.flows.items():
            i = flows[name]
            state.y[places[i]] = was["states"]
            state.flow_on[i] = was["on"]
            set_now = space.flow_parameters(i)
            if set_now.tolist() != was["parameters"]:
                changes.append((self.time + at.flows[i].access_delay, i, set_now.copy()))
                set_now[:] = was["parameters"]
        places = _state_places(at.link_groups, nl)
        totals = state.totals[: 2 * nl].reshape(2, nl)
        for name, was in self.links.items():
            l = links[name]
            state.y[at.backlog + l], state.mode[l] = was["backlog"], was["mode"]
            state.y[places[l]] = was["states"]
            totals[:, l] = was["totals"]
        self._place_history(space, flows, links)
        for time, kind, name, generation in self.about["landings"]:
            while int(space.state.n_landings) >= int(space.state.heap_size) // 2:
                space.grow_heap()
            to = at.flow_class[flows[name]] if kind == s.AT_CLASS else links[name]
            push(space.state, time, kind, to, generation)
        self._place_events(space)
        return sorted(changes, key=lambda change: change[:2])

    def _place_history(
        self, space: Workspace, flows: Mapping[str, int], links: Mapping[str, int]
    ) -> None:
        at, count = space.at, len(self.records)
        while int(space.state.ring_mask) < count + 2 and space.grow_ring():
            pass
        ring = space.state.ring.reshape(-1, at.record_size)[:count]
        sizes = (len(at.links), len(at.aggregates), at.own_rates, len(at.acting))
        head, blocks, routes, own, acting = _parts(ring, *sizes)
        old_head, old_blocks, old_routes, old_own, old_acting = self.parts
        head[:] = old_head
        for l, link in enumerate(at.links):  # of a new link: empty, and nothing comes
            blocks[:, l, s.LCH] = link.capacity * head[:, s.RH]
            blocks[:, l, s.LS0] = link.capacity * head[:, s.RT0]
            blocks[:, l, s.LC] = link.capacity
            blocks[:, l, s.LMODE] = s.EMPTY
        blocks[:, [links[name] for name in self.links]] = old_blocks
        known = {route: g for g, route in enumerate(at.aggregates)}
        places = [known[tuple(links[name] for name in route)] for route in self.about["routes"]]
        routes[:, places] = old_routes
        own[:, [at.own_rate[flows[name]] for name in self.about["own"]]] = old_own
        acting[:, [at.acting.index(links[name]) for name in self.about["acting"]]] = old_acting
        space.state.n_records = count
        space.state.cursor_start[: len(at.nodes)] = count - 1

    def _place_events(self, space: Workspace) -> None:
        here = {key: k for k, key in enumerate(_event_keys(space))}
        table = _event_table(space)
        for key, was in self.about["events"].items():
            for name, value in zip(_CLOCKS, was["clocks"], strict=True):
                getattr(space.state, name)[here[key]] = value
            table[here[key], _COUNTS] = was["counts"]


def _new_link(link: LinkSpec) -> LinkSpec:
    law = link.law
    if (
        any(z != law.queue for z in law.states)
        or {*law.out} - {"loss"}
        or any(link.initial.values())
    ):
        raise InvalidInput(
            f"link {link.name!r} is not in the run of restart, and only an empty queue without "
            "states of its own has "
            "no past; put it in the first run"
        )
    if link.schedule:
        raise InvalidInput(f"link {link.name!r} is not in the run of restart; give it one capacity")
    return link


# --- what sources keep account of having in flight, counted anew from the history of a run --------

# An ack clock's F integrates what is sent less what is acknowledged. What one step adds to it by
# mistake no later step takes off again, so that after a long run a source has something else under
# way than it believes, by the accuracy of all the run. The history itself says what is under way.


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
    return nudged(run, changes)


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
