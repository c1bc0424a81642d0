"""The final state of a run, and going on from it in another one as if it had never stopped.

A final state is the states at the end, and the history over the largest delay, as named arrays.
They stand in one row of bytes, a variable of the dataset like any other, so that it survives
NetCDF, Zarr and pickling.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput
from fluidcc.laws import Law
from fluidcc.network.network import FlowSpec, LinkSpec, Network
from fluidcc.numerics.fluid import state as s
from fluidcc.numerics.fluid.breaking_points import push
from fluidcc.simulation.layout import Group, Layout, begun
from fluidcc.simulation.tables import event_of
from fluidcc.simulation.workspace import Workspace
from fluidcc.symbols import plain, unfold

__all__ = ["FinalState", "nudged", "snapshot"]

_MARK = b"fluidcc final state 5"  # and its version
_DIGEST = hashlib.sha256().digest_size
Array = NDArray[Any]


# --- writing it down ------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _digest_of(structure: Any, law: Law) -> str:
    parts = [law.kind, law.name, *map(plain, law.states), "|", *map(plain, law.params), "|"]
    parts += [f"{what}={unfold(f)}" for what, f in law.expressions()]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def digest(law: Law) -> str:
    """The law apart from its parameter values."""
    return _digest_of(law.structure, law)


def _ragged(name: str, rows: Iterable[Iterable[Any]], kind: type) -> dict[str, Array]:
    full = [list(row) for row in rows]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in full])]).astype(np.int64)
    return {name: np.array([v for row in full for v in row], dtype=kind), f"{name}_starts": starts}


def snapshot(space: Workspace) -> NDArray[np.uint8]:
    """The final state of a run whose clock stands at its end."""
    arrays = {
        **_flows(space),
        **_links(space),
        **_history(space),
        **_landings(space),
        **_events(space),
    }
    frozen = space.at.frozen
    about = {"frozen": dict(frozen) if frozen is not None else None}
    arrays["about"] = np.array(json.dumps(about))
    arrays["clock"] = np.array([space.state.t, space.state.h_next])
    return _bytes(arrays)


def nudged(final: Any, changes: Mapping[tuple[str, str], Mapping[int, float]]) -> Array:
    """A final state with some states moved a little, at the instant it was taken.

    Parameters
    ----------
    final : array of bytes
        As `snapshot` gives it.
    changes : mapping of (kind, name) to mapping of int to float
        What to add, by ``("flow", name)`` or ``("link", name)`` and the number of the state in its
        law; of a link, not its queue.
    """
    arrays = read_back(final)
    for (kind, name), moves in changes.items():
        first = arrays[f"{kind}_states_starts"][list(arrays[kind]).index(name)]
        for number, step in moves.items():
            arrays[f"{kind}_states"][first + number] += step
    return _bytes(arrays)


def _bytes(arrays: dict[str, Array]) -> Array:
    """Return a mark, the length of a table of contents, that table, the arrays, and the digest of
    all this.
    """
    table = json.dumps([(name, a.dtype.str, a.shape) for name, a in arrays.items()]).encode()
    parts = [
        _MARK,
        len(table).to_bytes(8, "little"),
        table,
        *(a.tobytes() for a in arrays.values()),
    ]
    data = b"".join(parts)
    return np.frombuffer(data + hashlib.sha256(data).digest(), dtype=np.uint8)


def read_back(final: Any) -> dict[str, Array]:
    """Return the arrays of a final state.

    Raises
    ------
    InvalidInput
        If it is not to the bit as `snapshot` gave it.
    """
    given = np.asarray(final)
    raw = given.tobytes() if given.dtype == np.uint8 else b""
    data, end = raw[:-_DIGEST], raw[-_DIGEST:]
    if hashlib.sha256(data).digest() != end or not data.startswith(_MARK):
        raise InvalidInput(
            "the final_state of restart is damaged, or of another version of fluidcc; give a "
            "result of simulate() as "
            "it was returned, or run the first part again"
        )
    start = len(_MARK) + 8
    place = start + int.from_bytes(data[len(_MARK) : start], "little")
    arrays = {}
    for name, kind, shape in json.loads(data[start:place]):
        arrays[name] = np.ndarray(shape, kind, data, place).copy()
        place += arrays[name].nbytes
    return arrays


def state_places(groups: list[Group], count: int) -> list[list[int]]:
    """Where the states of each flow, or those that each link has beside its backlog, stand in
    `State.y`.
    """
    rows: list[list[int]] = [[] for _ in range(count)]
    for g in groups:
        for n, i in enumerate(g.members):
            rows[i] = [g.states + j * g.size + n for j in range(len(g.own))]
    return rows


def _flows(space: Workspace) -> dict[str, Array]:
    at, y, nf = space.at, space.state.y, len(space.at.flows)
    return {
        "flow": np.array([f.name for f in at.flows]),
        "flow_law": np.array([digest(f.law) for f in at.flows]),
        "flow_delays": np.array(
            [(f.access_delay, at.net.return_delay(f.name), f.packet) for f in at.flows]
        ),
        "flow_on": space.state.flow_on[:nf].copy(),
        **_ragged("flow_route", [at.route(i) for i in range(nf)], int),
        **_ragged("flow_states", [y[of] for of in state_places(at.groups, nf)], float),
        **_ragged(
            "flow_params", [[float(v) for v in f.law.params.values()] for f in at.flows], float
        ),
        **_ragged(
            "flow_past",
            [chain.from_iterable(past(f, float(space.state.t))) for f in at.flows],
            float,
        ),
    }


def past(flow: FlowSpec, time: float) -> list[tuple[float, float]]:
    """When a flow was on before `time`."""
    return [(begin, min(end, time)) for begin, end in flow.intervals if begin < time]


def _links(space: Workspace) -> dict[str, Array]:
    at, y, nl = space.at, space.state.y, len(space.at.links)
    return {
        "link": np.array([link.name for link in at.links]),
        "link_law": np.array([digest(link.law) for link in at.links]),
        "link_delay": np.array([link.delay for link in at.links]),
        "link_mode": space.state.mode[:nl].copy(),
        "link_totals": space.state.totals[: 2 * nl].reshape(2, nl).copy(),
        "link_backlog": y[at.backlog : at.backlog + nl].copy(),
        **_ragged("link_states", [y[where] for where in state_places(at.link_groups, nl)], float),
        **_ragged(
            "link_capacity", [chain((0.0, k.capacity), *k.schedule) for k in at.links], float
        ),
    }


def record_parts(at: Layout, records: Array) -> dict[str, Array]:
    """The parts of some records: what they have of links, routes, own rates and acting links."""
    count, routes = len(records), len(at.aggregates)
    links, own, acting = (at.rate_place(k) for k in (0, routes, routes + at.own_rates))
    return {
        "record_head": records[:, : s.RLINKS],
        "record_links": records[:, s.RLINKS : links].reshape(count, len(at.links), s.LSIZE),
        "record_routes": records[:, links:own].reshape(count, routes, 5),
        "record_own": records[:, own:acting].reshape(count, at.own_rates, 5),
        "record_acting": records[:, acting:].reshape(count, len(at.acting), 5 * s.XSIZE),
    }


def _history(space: Workspace) -> dict[str, Array]:
    at, state = space.at, space.state
    ring = state.ring.reshape(-1, at.record_size)
    records = ring[np.arange(state.oldest, state.n_records) & state.ring_mask]
    own = [i for i, slot in enumerate(at.own_rate) if slot >= 0]
    return {
        **record_parts(at, records),
        "own": np.array(own, dtype=np.int64),
        "acting": np.array(at.acting, dtype=np.int64),
        **_ragged("route", at.aggregates, int),
    }


def _landings(space: Workspace) -> dict[str, Array]:
    """Breaking points under way; those to a class of flows are addressed to one flow of it."""
    state, count = space.state, int(space.state.n_landings)
    entries = state.landing[: 3 * count].reshape(count, 3).copy()
    first: dict[int, int] = {}
    for i, c in enumerate(space.at.flow_class):
        first.setdefault(c, i)
    for row in entries:
        if row[0] == s.AT_CLASS:
            row[1] = first[int(row[1])]
    return {"landing_time": state.landing_time[:count].copy(), "landing": entries}


CLOCKS = ("rule_time", "rule_base", "rule_period", "rule_last", "rule_gap")
COUNTS = (s.HCOUNT, s.HREPEAT)


def event_table(space: Workspace) -> NDArray[np.int64]:
    """The rows of jumps and ticks in the workspace, as they are now; changing it changes them."""
    count = int(space.state.n_rules)
    return space.state.rule[: count * s.HSIZE].reshape(count, s.HSIZE)


def event_keys(space: Workspace) -> list[str]:
    """Whose each jump or tick is, and its number in the law."""
    events = ((event_of(space.at, row), row[s.HWANT]) for row in space.event_rows)
    return [f"{event.owner} {event.name} {number}" for event, number in events]


def _events(space: Workspace) -> dict[str, Array]:
    """When ticks are next due and refractory times end."""
    count = int(space.state.n_rules)
    return {
        "event": np.array(event_keys(space), dtype=str),
        "event_clocks": np.array([getattr(space.state, name)[:count] for name in CLOCKS]),
        "event_counts": event_table(space)[:, COUNTS].copy(),
    }


# --- going on from it: does it fit, and what goes where -------------------------------------------


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
        time, step = (float(v) for v in arrays["clock"])
        return cls(time, step, about, arrays)

    def row(self, name: str, i: int) -> Array:
        """Row `i` of a ragged array."""
        starts = self.arrays[f"{name}_starts"]
        return self.arrays[name][starts[i] : starts[i + 1]]

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
        old_links = {str(name): k for k, name in enumerate(self.arrays["link"])}
        old_flows = {str(name): k for k, name in enumerate(self.arrays["flow"])}
        for kind, olds, news in (("link", old_links, net.links), ("flow", old_flows, net.flows)):
            for name in olds:
                if name not in news:
                    hint = "" if kind == "link" else f" with stop={self.time:g}"
                    raise InvalidInput(
                        f"restart has a {kind} {name!r}, which the network lacks; keep it "
                        f"there{hint}"
                    )
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
            raise InvalidInput(
                f"the law of {of} is not that of the run in restart; only its parameters may change"
            )
        if link.delay != self.arrays["link_delay"][k]:
            raise InvalidInput(
                f"the delay of {of} is {link.delay:g} s, in restart "
                f"{self.arrays['link_delay'][k]:g} s; "
                "data under way cannot change its delay, so keep it"
            )
        backlog = float(self.arrays["link_backlog"][k])
        if backlog > link.buffer * (1 + 1e-12):
            raise InvalidInput(
                f"the buffer of {of} is {link.buffer:g} bit, and {backlog:g} bit are queued at the "
                "restart; "
                "give a buffer that holds them"
            )
        changes = [
            (float(t), float(c))
            for t, c in self.row("link_capacity", k).reshape(-1, 2)
            if t < self.time
        ]
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
            ("access_delay", "return_delay", "packet"),
            now,
            self.arrays["flow_delays"][k],
            strict=True,
        ):
            if value != was:
                raise InvalidInput(f"the {what} of {of} is {value:g}, in restart {was:g}; {advice}")
        before = [tuple(row) for row in self.row("flow_past", k).reshape(-1, 2)]
        if past(begun(flow), self.time) != before:
            raise InvalidInput(
                f"start and stop of {of} differ from the run in restart before its end at "
                f"{self.time:g} s; "
                "change only what comes after"
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
        oldest = float(self.arrays["record_head"][0, s.RT0])
        if oldest > 0.0 and self.time - reach < oldest:
            raise InvalidInput(
                f"{of} hears of what was sent {reach:g} s ago, and restart keeps "
                f"{self.time - oldest:g} s; "
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
                wait += float(
                    np.max(np.sum(np.abs(block[:, :5]), axis=1) / block[:, s.LC], initial=0.0)
                )
        return net.base_rtt(flow.name) + wait

    # --- filling a workspace ----------------------------------------------------------------------

    def place(self, space: Workspace) -> list[tuple[float, int, Array]]:
        """Fill the workspace of the next run.

        Returns
        -------
        list of (time, flow, parameters)
            Where a flow's parameters have changed: when that is felt at its first queue, and the
            new values. Until then the old ones are in the workspace.
        """
        at, state = space.at, space.state
        here = {f.name: i for i, f in enumerate(at.flows)}
        flows = [here[str(name)] for name in self.arrays["flow"]]
        where = {link.name: l for l, link in enumerate(at.links)}
        links = [where[str(name)] for name in self.arrays["link"]]
        nl = len(at.links)
        places = state_places(at.groups, len(at.flows))
        for k, i in enumerate(flows):
            state.y[places[i]] = self.row("flow_states", k)
            state.flow_on[i] = self.arrays["flow_on"][k]
        places = state_places(at.link_groups, nl)
        totals = state.totals[: 2 * nl].reshape(2, nl)
        for k, l in enumerate(links):
            state.y[at.backlog + l] = self.arrays["link_backlog"][k]
            state.y[places[l]] = self.row("link_states", k)
            state.mode[l] = self.arrays["link_mode"][k]
            totals[:, l] = self.arrays["link_totals"][:, k]
        self._place_history(space, flows, links)
        self._place_landings(space, flows, links)
        self._place_events(space)
        return self._place_parameters(space, flows)

    def _place_history(self, space: Workspace, flows: list[int], links: list[int]) -> None:
        at, head = space.at, self.arrays["record_head"]
        count = len(head)
        while int(space.state.ring_mask) < count + 2 and space.grow_ring():
            pass
        parts = record_parts(at, space.state.ring.reshape(-1, at.record_size)[:count])
        parts["record_head"][:] = head
        blocks = parts["record_links"]
        for l, link in enumerate(at.links):  # of a new link: empty, and nothing comes
            blocks[:, l, s.LCH] = link.capacity * head[:, s.RH]
            blocks[:, l, s.LS0] = link.capacity * head[:, s.RT0]
            blocks[:, l, s.LC] = link.capacity
            blocks[:, l, s.LMODE] = s.EMPTY
        blocks[:, links] = self.arrays["record_links"]
        known = {route: g for g, route in enumerate(at.aggregates)}
        for k in range(len(self.arrays["route_starts"]) - 1):
            g = known[tuple(links[l] for l in self.row("route", k))]
            parts["record_routes"][:, g] = self.arrays["record_routes"][:, k]
        for k, i in enumerate(self.arrays["own"]):
            own = self.arrays["record_own"][:, k]
            parts["record_own"][:, at.own_rate[flows[i]]] = own
        for k, l in enumerate(self.arrays["acting"]):
            acting = self.arrays["record_acting"][:, k]
            parts["record_acting"][:, at.acting.index(links[l])] = acting
        space.state.n_records = count
        space.state.cursor_start[: len(at.nodes)] = count - 1

    def _place_landings(self, space: Workspace, flows: list[int], links: list[int]) -> None:
        rows = zip(
            self.arrays["landing_time"].tolist(), self.arrays["landing"].tolist(), strict=True
        )
        for time, (kind, index, generation) in rows:
            while int(space.state.n_landings) >= int(space.state.heap_size) // 2:
                space.grow_heap()
            to = links[index] if kind == s.AT_LINK else space.at.flow_class[flows[index]]
            push(space.state, time, kind, to, generation)

    def _place_events(self, space: Workspace) -> None:
        here = {key: k for k, key in enumerate(event_keys(space))}
        rows = [here[str(key)] for key in self.arrays["event"]]
        for name, values in zip(CLOCKS, self.arrays["event_clocks"], strict=True):
            getattr(space.state, name)[np.array(rows, dtype=np.int64)] = values
        event_table(space)[np.ix_(rows, COUNTS)] = self.arrays["event_counts"]

    def _place_parameters(
        self, space: Workspace, flows: list[int]
    ) -> list[tuple[float, int, Array]]:
        changes = []
        for k, i in enumerate(flows):
            before, set_now = self.row("flow_params", k), space.flow_parameters(i)
            now = set_now.copy()
            if not np.array_equal(before, now):
                set_now[:] = before
                changes.append((self.time + space.at.flows[i].access_delay, i, now))
        return sorted(changes, key=lambda change: change[:2])


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
