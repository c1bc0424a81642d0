"""A network's orbit from jump to jump: returns to one kind of jump, and what small disturbances
become there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sympy import Symbol

from fluidcc.base.errors import SolverError, gathered
from fluidcc.base.progress import Progress
from fluidcc.laws import Law
from fluidcc.laws.steady import trackers
from fluidcc.metrics import breaks, jumps, ticks
from fluidcc.network import Network
from fluidcc.network.wired import own_states
from fluidcc.numerics.periodic import ReturnMap, return_map, smooth_pieces
from fluidcc.simulation.restart import counted_anew, nudged
from fluidcc.simulation.simulate import simulate
from fluidcc.symbols import plain, unfold

if TYPE_CHECKING:
    import xarray as xr

# steps grow with this power of the accuracy: by a method of order 5, and by what kinks add
_FINER = 0.15


@dataclass
class Effort:
    """Steps that are allowed, and taken: the same on every machine and under any load, as seconds
    would not be.

    Attributes
    ----------
    most, used : int
    bar : Progress, optional
        Shows `used`.
    density : dict
        Steps a second of the last run at each accuracy.
    """

    most: int
    bar: Progress | None = None
    used: int = 0
    density: dict[float, float] = field(default_factory=dict)

    @property
    def left(self) -> int:
        return self.most - self.used

    def ahead(self, seconds: float, rtol: float) -> float:
        """Steps that a run of so many seconds will take, by those before it; 0 before any."""
        known = min((one for one in self.density if one >= rtol), default=None)
        return 0.0 if known is None else self.density[known] * (known / rtol) ** _FINER * seconds

    def go(
        self,
        net: Network,
        until: float,
        rtol: float,
        restart: xr.Dataset | None = None,
        t_eval: Any = None,
    ) -> xr.Dataset:
        """`simulate`, counted, its end in the attribute ``end``; what the run warns of, the cycle
        that is found says once.
        """
        at = [until] if t_eval is None else t_eval
        with gathered():
            run = simulate(
                net, until, t_eval=at, rtol=rtol, atol=1e-3 * rtol, restart=restart, progress=False
            )
        run.attrs["end"] = until
        steps, began = (
            int(run.attrs["steps"]),
            0.0 if restart is None else float(restart.attrs["end"]),
        )
        self.used += steps
        self.density[rtol] = steps / (until - began)
        if self.bar is not None:
            self.bar.reach(float(min(self.used, self.most)))
        return run


# --- A network's orbit from jump to jump ----------------------------------------------------------


Array = NDArray[np.float64]
Label = tuple[str, int]  # whose jump or tick it is, and which one of its law
Input = tuple[str, str, Symbol]  # kind and name of a flow or link, and a state of its law


def events(run: xr.Dataset, kind: str | None = None) -> tuple[Array, list[Label]]:
    """What marks a cycle: the jumps, or where there are none the ticks; when, and whose and
    which.
    """
    kind = kind or mark_kind(run)
    found = {"jump": jumps, "tick": ticks}[kind](run)
    labels = zip(found["of"].tolist(), found["rule"].tolist(), strict=True)
    return found["time"].to_numpy(), list(labels)


def times_of(run: xr.Dataset, label: Label) -> Array:
    """When the events with that label happen."""
    times, labels = events(run)
    return times[np.array([one == label for one in labels], dtype=bool)]


def mark_kind(run: xr.Dataset) -> str:
    """Whether jumps or ticks mark its cycles."""
    return "jump" if run.attrs["jumps"] or not run.attrs["ticks"] else "tick"


def state_names(run: xr.Dataset) -> list[str]:
    """Variables that must return: backlogs, and each law's own states."""
    own = [
        name for name, v in run.items() if str(v.attrs.get("long_name", "")).startswith("state of ")
    ]
    return ["backlog", *map(str, own)]


def states_at(run: xr.Dataset) -> tuple[Array, list[str]]:
    """All states (time, n) of a result, and the name of each."""
    parts, labels = [], []
    for name in state_names(run):
        values = run[name].values
        there = ~np.all(np.isnan(values), axis=0)
        parts.append(values[:, there])
        labels += [f"{name} of {owner}" for owner in run[name][run[name].dims[1]].values[there]]
    return np.concatenate(parts, axis=1), labels


def natural_sizes(run: xr.Dataset, net: Network) -> Array:
    """What counts as little of a state (n,): a thousandth of a packet, of a round trip, of a
    capacity, or of one.
    """
    trip = max(net.base_rtt(name) for name in net.flows)
    length = max(f.packet for f in net.flows.values())
    rate = max(link.capacity for link in net.links.values())
    size = {"s": trip, "bit": length, "bit/s": rate, "packet/s": rate / length}
    found = []
    for name in state_names(run):
        there = ~np.all(np.isnan(run[name].values), axis=0)
        found += [1e-3 * size.get(str(run[name].attrs["units"]), 1.0)] * int(there.sum())
    return np.array(found)


def movable(law: Law) -> list[Symbol]:
    """States that a small disturbance moves for a while.

    Not those that only jumps set, such as a flag or the smallest round trip: they are parameters of
    a cycle. Nor what the data under way determine (a flow of rate - x_tau/(1 + edot)), or the
    delay: nothing brings that back.
    """
    ticked = {z for tick in law.ticks for z in tick.update}
    return [
        z for z in own_states(law)
        if z not in trackers(law) and (z in ticked or unfold(law.flow[z]) != 0)
    ]  # fmt: skip


class Lost(SolverError):
    """An orbit has left the cycle that it was thought to be near."""


@dataclass(frozen=True)
class Section:
    """Where an orbit is looked at: every `count`-th event with the label, just after it.

    Attributes
    ----------
    base : Dataset
        A run that ended near the orbit, between two marks.
    size : ndarray
        Of each state, over the cycle.
    step : float
        Of disturbances, relative to the size of the state.
    """

    net: Network
    label: Label
    count: int
    period: float
    base: xr.Dataset
    size: Array
    rtol: float
    effort: Effort
    step: float = 1e-4

    @property
    def start(self) -> float:
        """When the base run ended [s]."""
        return float(self.base.attrs["end"])

    def run(self, base: xr.Dataset, until: float, t_eval: Any = None) -> xr.Dataset:
        """Go on from `base`."""
        return self.effort.go(self.net, until, self.rtol, base, t_eval)

    def walk(self, base: xr.Dataset, cycles: int) -> tuple[Array, Array]:
        """Times (cycles + 1,) of the next returns, and what is seen there (cycles + 1, n + 1): the
        states, over their sizes, and how long it took, over the period (twice the second).
        """
        until = self.start + (cycles + 1) * self.period
        marks = self._marks(base, until, cycles * self.count + 1)
        marks = marks[:: self.count][: cycles + 1]
        there = self.run(base, until, marks)
        took = np.diff(marks) / self.period
        took = np.concatenate([took[:1], took])[:, None]
        return marks, np.hstack([states_at(there)[0] / self.size, took])

    def _marks(self, base: xr.Dataset, until: float, least: int) -> Array:
        """When the event happens until then, on the way that goes on from `base`: so often at
        least.
        """
        marks = times_of(self.run(base, until), self.label)
        if len(marks) < least:
            raise Lost(
                f"the cycle near {float(base.attrs['end']):.6g} s is lost: {self.label[0]!r} does "
                "not jump as often any more"
            )
        return marks

    @property
    def _specs(self) -> dict[str, Mapping[str, Any]]:
        return {"flow": self.net.flows, "link": self.net.links}

    def moved(self, changes: dict[Input, float]) -> xr.Dataset:
        """The base with some states moved."""
        table: dict[tuple[str, str], dict[int, float]] = {}
        for (kind, name, z), step in changes.items():
            # by the number among those that the engine keeps with the law
            number = own_states(self._specs[kind][name].law).index(z)
            table.setdefault((kind, name), {})[number] = step
        return nudged(self.base, table)

    @cached_property
    def inputs(self) -> dict[Input, float]:
        """The states that are disturbed, with the size of each."""
        place = {name: k for k, name in enumerate(states_at(self.base)[1])}
        return {
            (kind, name, z): float(self.size[place[f"{spec.law.name}_{plain(z)} of {name}"]])
            for kind, specs in self._specs.items()
            for name, spec in specs.items() if _is_on(self.base, kind, name)
            for z in movable(spec.law)
        }  # fmt: skip

    @property
    def depth(self) -> int:
        """Returns that are seen together: what is under way at one shows at those within a round
        trip.
        """
        return 1 + math.ceil(self._trip / self.period * (1 - 1e-9))

    @property
    def _trip(self) -> float:
        return float(np.nanmax(self.base["rtt"].values))

    @property
    def _followed(self) -> int:
        """Returns that a disturbance is followed: two more than the map needs, so that they bear
        out what it says.
        """
        return 2 * self.depth + 2

    @cached_property
    def responses(self) -> Array:
        """What a disturbance of each input becomes at the next returns: (returns, states,
        inputs), over sizes.
        """
        columns = []
        for key, size in self.inputs.items():
            ends = [
                self.walk(self.moved({key: sign * self.step * size}), self._followed)[1][1:]
                for sign in (1.0, -1.0)
            ]
            columns.append((ends[0] - ends[1]) / (2 * self.step))
        return np.stack(columns, axis=2)

    @cached_property
    def map(self) -> ReturnMap:
        """The return map; `depth` returns in a row are seen together, so that data under way
        count too.
        """
        both = _in_a_row(self.responses, self.depth)
        # What is no response at all has entries of up to rtol/step, 100 times that where the times
        # of jumps are found and not given as those of ticks are, and singular values so many times
        # as large.
        entries = np.sqrt(both.shape[1]) + np.sqrt(both.shape[2] * (len(both) - 1))
        found = 100 if mark_kind(self.base) == "jump" else 1
        return return_map(both, found * self.rtol / self.step * float(entries))

    @property
    def cost_of_newton(self) -> int:
        """Cycles that are run through for one step of Newton's method."""
        return 2 * len(self.inputs) * 2 * (self._followed + 1) + 12

    def finer(self, rtol: float) -> Section:
        """The section at another accuracy, when all that is under way is of it."""
        return replace(self, rtol=rtol).later(math.ceil(1.5 * self._trip / self.period))

    def later(self, cycles: int) -> Section:
        """The section some cycles on."""
        return self._from(self.run(self.base, self.start + cycles * self.period))

    def _from(self, base: xr.Dataset) -> Section:
        """The section between the next two marks, on the way that goes on from `base`."""
        marks = self._marks(base, float(base.attrs["end"]) + 2.1 * self.period, 2)
        at = float(marks[0] + 0.37 * (marks[1] - marks[0]))
        return replace(self, base=counted_anew(self.net, self.run(base, at)))

    def corrected(self) -> Section:
        """The section nearer to the orbit: one step of Newton's method on the return map."""
        _, states = self.walk(self.base, self.depth + 1)
        seen = _in_a_row(states, self.depth)
        ahead = self.map.error(seen[2] - seen[1])
        push = self.map.basis.T @ _in_a_row(self.responses, self.depth)[1]
        steps = -np.linalg.lstsq(push, ahead, rcond=1e-6)[0]
        base = self.moved(
            {
                key: float(d) * size
                for (key, size), d in zip(self.inputs.items(), steps, strict=True)
            }
        )
        return self._from(self.run(base, self.start + 3 * self.period))


def _in_a_row(returns: Array, depth: int) -> Array:
    """Of each return what is seen there and at the `depth` - 1 next ones, one below the other."""
    return np.concatenate([returns[k : len(returns) - depth + 1 + k] for k in range(depth)], axis=1)


def _is_on(run: xr.Dataset, kind: str, name: str) -> bool:
    return kind == "link" or bool(run.rate.sel(flow=name).values[-1] > 0)


# --- One cycle, integrated between all points where anything is not smooth -----------------------


_VARIABLES = (
    "rate",
    "one_way_delay",
    "rtt",
    "backlog",
    "queueing_delay",
    "arrival_rate",
    "throughput",
    "utilisation",
)

_LOOKS = 1601  # even samples, in which windows and round trips are looked at


@dataclass(frozen=True)
class OnceRound:
    """What `LimitCycle` tells of one cycle; its attributes are explained there."""

    period: float
    jumps: xr.DataArray
    mean: xr.Dataset
    least: xr.Dataset
    most: xr.Dataset
    loss: xr.DataArray
    orbit: xr.Dataset
    warnings: tuple[str, ...]


def once_round(section: Section) -> OnceRound:
    """Means, extremes and jumps of the cycle that begins at the section's next mark."""
    import xarray as xr

    marks, _ = section.walk(section.base, 1)
    start, end = marks
    until = section.start + 4 * float(
        end - start
    )  # what is doubtful is looked for in the later half: two cycles
    ahead = section.run(section.base, until, np.linspace(section.start, until, _LOOKS)[1:])
    pieces = smooth_pieces(start, end, breaks(ahead))
    nodes = pieces.nodes.ravel()
    fine = section.run(section.base, until, nodes)
    names = [*_VARIABLES, *state_names(fine)[1:]]
    mean, least, most = (fine[names].isel(time=0, drop=True).copy(deep=True) for _ in range(3))
    for name in names:
        for k in range(fine[name].shape[1]):
            values = pieces.limits(fine[name].values[:, k].reshape(pieces.nodes.shape))
            mean[name].values[k] = pieces.mean(values)
            least[name].values[k], most[name].values[k] = pieces.extremes(values)
    for name in _VARIABLES:  # none is ever negative, but polynomials through zeros may be
        np.maximum(least[name].values, 0.0, out=least[name].values)
    lost, arrived = (
        [
            pieces.mean(pieces.limits(v.values[:, k].reshape(pieces.nodes.shape)))
            for k in range(v.shape[1])
        ]
        for v in (fine.link_loss * fine.arrival_rate, fine.arrival_rate)
    )
    loss = xr.DataArray(
        np.divide(lost, arrived), {"link": fine.link}, ("link",), "loss", {"units": "1"}
    )
    kind = mark_kind(fine)
    times, labels = events(fine, kind)
    inside = np.flatnonzero(
        (times > start - 1e-9 * (end - start)) & (times < end - 1e-9 * (end - start))
    )
    of = {
        "of": ("jump", [labels[k][0] for k in inside]),
        "rule": ("jump", [labels[k][1] for k in inside]),
    }
    about = {"units": "s", "long_name": f"{kind}s of one cycle"}
    after = times[inside] - start
    jumps = xr.DataArray(
        np.where(after < 1e-12 * (end - start), 0.0, after), of, ("jump",), "jumps", about
    )
    orbit = fine[names].assign_coords(time=("time", nodes - start, {"units": "s"}))
    doubts = tuple(text for text in ahead.attrs["warnings"].split("; ") if text)
    return OnceRound(float(end - start), jumps, mean, least, most, loss, orbit, doubts)
