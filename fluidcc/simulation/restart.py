"""The final state of a run, and going on from it in another one as if it had never stopped.

A final state is arrays as they stand in the workspace at the end, the history over the largest
delay among them, and what of the network they belong to, by name. They stand as text in the
attribute ``final_state`` of the dataset, so that it survives NetCDF, Zarr and pickling.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput
from fluidcc.base.packed import packed, unpacked
from fluidcc.laws import Law
from fluidcc.laws.parts import per_structure
from fluidcc.laws.steady import trackers
from fluidcc.network.network import Network
from fluidcc.network.specs import FlowSpec, LinkSpec
from fluidcc.numerics.fluid import state as s
from fluidcc.numerics.fluid.accounts import sent
from fluidcc.numerics.fluid.entry import resume
from fluidcc.simulation.layout import Layout, begun, lay_out
from fluidcc.simulation.workspace import Workspace
from fluidcc.symbols import packet, plain, unfold

if TYPE_CHECKING:
    import xarray as xr

_VERSION = 12  # of what is written down
_CLOCKS = ("rule_time", "rule_base", "rule_period", "rule_last", "rule_gap")
Array = NDArray[Any]


# --- writing it down ------------------------------------------------------------------------------


def snapshot(space: Workspace) -> str:
    """Return the final state of a run whose clock stands at its end, as text."""
    at, state = space.at, space.state
    time = float(state.t)
    ring = state.ring.reshape(-1, at.record_size)
    about = {
        "frozen": None if at.frozen is None else dict(at.frozen),
        "time": time,
        "step": float(state.h_next),
        "flows": {f.name: _flow(f, at.net, time) for f in at.flows},
        "links": {name: _link(link) for name, link in at.net.links.items()},
        "places": _places(at),
    }
    records = ring[np.arange(state.oldest, state.n_records) & state.ring_mask]
    return FinalState(about, {**_arrays(space), "records": records}).text()


def _arrays(space: Workspace) -> dict[str, Array]:
    """What a run goes on from besides its history: views of the workspace."""
    at, state = space.at, space.state
    nf, nl, n, under_way = len(at.flows), len(at.links), int(state.n_rules), int(state.n_landings)
    table = state.rule[: n * s.HSIZE].reshape(n, s.HSIZE)
    return {
        "y": state.y[: at.n_states],
        "flow_on": state.flow_on[:nf],
        "flow_begun": state.flow_begun[:nf],
        "past_first": state.past_first[: int(state.n_pasts)],
        "mode": state.mode[:nl],
        "totals": state.totals[: 2 * nl],
        **{name: getattr(state, name)[:n] for name in _CLOCKS},
        "counts": table[:, s.HCOUNT],
        "repeats": table[:, s.HREPEAT],
        "landing_time": state.landing_time[:under_way],
        "landing": state.landing[: 3 * under_way],
    }


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
        for number, step in moves.items():
            before.arrays["y"][before.about["places"][kind][name][number]] += step
    return run.assign_attrs(final_state=before.text())


@per_structure
def _digest(law: Law) -> str:
    """The law apart from its parameter values."""
    parts = [law.kind, law.name, *map(plain, law.states), "|", *map(plain, law.params), "|"]
    parts += [f"{what}={unfold(f)}" for what, f in law.expressions()]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def _places(at: Layout) -> dict[str, dict[str, list[int]]]:
    """Where the states of each flow, or those that each link has beside its backlog, stand in
    `State.y`.
    """
    found: dict[str, dict[str, list[int]]] = {
        "flow": {flow.name: [] for flow in at.flows},
        "link": {link.name: [] for link in at.links},
    }
    for g in at.every_group:
        for n, spec in enumerate(g.specs):
            found[g.kind][spec.name] = [g.states + j * g.size + n for j in range(len(g.own))]
    return found


def _flow(flow: FlowSpec, net: Network, time: float) -> dict[str, Any]:
    """What of a flow data under way cannot change, when it was on before `time`, and the parameters
    of its law.
    """
    return {
        "law": _digest(flow.law),
        "route": list(flow.route),
        "access_delay": flow.access_delay,
        "return_delay": net.return_delay(flow.name),
        "packet": flow.packet,
        "ecn": flow.ecn,
        "start or stop so far": [
            [begin, min(end, time)] for begin, end in begun(flow).intervals if begin < time
        ],
        "parameters": [float(value) for value in flow.law.params.values()],
    }


def _link(link: LinkSpec) -> dict[str, Any]:
    return {
        "law": _digest(link.law),
        "delay": link.delay,
        "stamp": link.stamp,
        "capacity": [(0.0, link.capacity), *link.schedule],
    }


# --- going on from it -----------------------------------------------------------------------------


@dataclass
class FinalState:
    """A final state, read back.

    Attributes
    ----------
    about : dict
        What the arrays belong to.
    arrays : dict of str to array
        See `_arrays`; and the ``records`` (records, numbers) of the history, oldest first.
    """

    about: dict[str, Any]
    arrays: dict[str, Array]

    def text(self) -> str:
        """Both as text."""
        table = json.dumps({"version": _VERSION, **self.about}).encode()
        flat = {name: array.ravel() for name, array in self.arrays.items()}
        return packed({"about": np.frombuffer(table, np.uint8), **flat})

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
        try:
            arrays = {name: of.copy() for name, of in unpacked(values["final_state"]).items()}
            about = json.loads(arrays.pop("about").tobytes())
            intact = about.pop("version") == _VERSION
        except (ValueError, TypeError, KeyError):
            intact = False
        if not intact:
            raise InvalidInput(
                "the final_state of restart is damaged, or of another version of fluidcc; give a "
                "result of simulate() as it was returned, or run the first part again"
            )
        found = cls(about, arrays)
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

    def states(self, kind: str, name: str) -> Array:
        """The states of a flow, or those that a link has beside its backlog."""
        return self.arrays["y"][self.about["places"][kind][name]]

    def continued(self, net: Network, frozen: Mapping[str, float] | None) -> Network:
        """The network with its past: capacities as they were.

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
        for kind, news in (("link", net.links), ("flow", net.flows)):
            olds = self.about[f"{kind}s"]
            if lacking := [name for name in olds if name not in news]:
                raise InvalidInput(
                    f"restart has a {kind} {lacking[0]!r}, which the network lacks; keep it there"
                )
            if fresh := [name for name in news if name not in olds]:
                raise InvalidInput(
                    f"{kind} {fresh[0]!r} is not in the run of restart; put it in the first run"
                    + (f", with start={self.time:g}" if kind == "flow" else "")
                )
        for name, link in net.links.items():
            new._links[name] = self._old_link(link)
        for name, flow in net.flows.items():
            now, was = _flow(flow, net, self.time), self.about["flows"][name]
            for what, value in now.items():
                if what != "parameters" and value != was[what]:
                    told = "is not that of the run in restart, or losses= is another"
                    if isinstance(value, float):
                        told = f"is {value:g}, in restart {was[what]:g}"
                    raise InvalidInput(
                        f"the {what} of flow {name!r} {told}; keep it, and put a flow of another "
                        f"name, with start={self.time:g}, in the first run"
                    )
        return new

    def _old_link(self, link: LinkSpec) -> LinkSpec:
        of, was = f"link {link.name!r}", self.about["links"][link.name]
        if _digest(link.law) != was["law"]:
            raise InvalidInput(
                f"the law of {of} is not that of the run in restart; only its parameters may change"
            )
        if link.delay != was["delay"]:
            raise InvalidInput(
                f"the delay of {of} is {link.delay:g} s, in restart {was['delay']:g} s; "
                "data under way cannot change its delay, so keep it"
            )
        if link.stamp != was["stamp"]:
            raise InvalidInput(
                f"the stamp of {of} is {link.stamp!r}, in restart {was['stamp']!r}; keep it"
            )
        changes = [(t, c) for t, c in was["capacity"] if t < self.time]
        wanted = [(0.0, link.capacity), *link.schedule]
        now = [c for t, c in wanted if t <= self.time][-1]
        if changes[-1][1] != now:
            changes.append((self.time, now))
        changes += [(t, c) for t, c in wanted if t > self.time]
        return replace(link, capacity=changes[0][1], schedule=tuple(changes[1:]))

    def place(self, space: Workspace) -> list[tuple[float, int, Array]]:
        """Fill the workspace of the next run.

        Returns
        -------
        list of (time, flow, parameters)
            Where a flow's parameters have changed: when that is felt at its first queue, and the
            new values. Until then the old ones are in the workspace.

        Raises
        ------
        InvalidInput
            If the flows or links are in another order, or a buffer does not hold what is queued.
        """
        at = space.at
        for kind, specs in (("flows", at.flows), ("links", at.links)):
            if [spec.name for spec in specs] != (order := list(self.about[kind])):
                raise InvalidInput(
                    f"the {kind} are in another order than in the run of restart; give them as "
                    f"there: {', '.join(order)}"
                )
        while int(space.state.landing_room) < 2 * len(self.arrays["landing_time"]):
            space.grow_landings()
        records = self.arrays["records"].reshape(-1, at.record_size)
        count = len(records)
        while int(space.state.ring_mask) < count + 2 and space.grow_ring():
            pass
        state = space.state
        state.n_landings = len(self.arrays["landing_time"])
        for name, to in _arrays(space).items():
            to[:] = self.arrays[name]
        state.ring.reshape(-1, at.record_size)[:count] = records
        state.n_records = count
        state.cursor_start[: len(at.nodes)] = count - 1
        for link, bits in zip(at.links, state.y[at.backlog :].tolist(), strict=False):
            if bits > link.buffer * (1 + 1e-12):
                raise InvalidInput(
                    f"the buffer of link {link.name!r} is {link.buffer:g} bit, and {bits:g} bit "
                    "are queued at the restart; give a buffer that holds them"
                )
        changes = []
        for i, f in enumerate(at.flows):
            set_now, was = space.flow_parameters(i), self.about["flows"][f.name]["parameters"]
            if set_now.tolist() != was:
                changes.append((self.time + f.access_delay, i, set_now.copy()))
                set_now[:] = was
        return sorted(changes, key=lambda change: change[:2])


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
    at = lay_out(before.continued(net, None), None)
    flown = _in_flight(at, before)
    changes = {}
    for i, flow in enumerate(at.flows):
        if flow.name in mine and before.arrays["flow_on"][i] == s.ON:
            states = before.states("flow", flow.name)
            changes["flow", flow.name] = {
                j: first + share * flown[flow.name] - states[j]
                for j, (first, share) in mine[flow.name].items()
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


def _in_flight(at: Layout, before: FinalState) -> dict[str, float]:
    """Bits that each flow whose law looks back at its own rate has sent and not heard of."""
    now = np.array([before.time])
    space = Workspace(
        at, now, before.time, rtol=1e-6, atol=1e-9, patterns={}, since=before.time
    )  # fmt: skip
    before.place(space)
    resume(space.state, before.time, before.about["step"])
    state, last = space.state, len(before.arrays["records"]) // at.record_size - 1
    heard = state.entry_time[state.leaf[: len(at.classes)]]  # when that was sent which is heard now
    return {
        f.name: sent(state, slot, last, float(heard[k]), before.time)
        for f, slot, k in zip(at.flows, at.own_rate, at.flow_class, strict=True)
        if slot >= 0
    }
