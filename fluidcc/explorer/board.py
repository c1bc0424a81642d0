"""What the explorer's controls change: a network as the table of a scenario file.

A table is what `Network.link` and `Network.flow` take, with laws by name: so every law and every
topology can be explored without a line written for it, and exported as TOML or as Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from fluidcc import links, sources
from fluidcc.base.arguments import shown
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.base.units import format_si, to_si
from fluidcc.laws import Law
from fluidcc.network import Network
from fluidcc.network.network import copy_name
from fluidcc.network.patterns import near
from fluidcc.network.scenarios import RUN_FIELDS, Scenario
from fluidcc.network.specs import PACKET
from fluidcc.network.topologies import dumbbell
from fluidcc.plotting.common import scaled
from fluidcc.sweeps.axes import FLOW, LINK
from fluidcc.symbols import plain

ROOMS = {"links": links, "flows": sources}
ARGUMENTS = {"links": LINK, "flows": {key: FLOW[key] for key in
                                      ("start", "access_delay", "return_delay")}}  # fmt: skip
ABOUT = {
    "capacity": "rate at which the link sends", "delay": "propagation delay of the link",
    "buffer": "longest queue", "start": "when the flow begins",
    "access_delay": "propagation delay from the source to its first link",
    "return_delay": "propagation delay of acknowledgements",
    "count": "how many flows like this one there are",
}  # fmt: skip
LEFT_OUT = {
    "packet": PACKET,
    "delay": 0.0,
    "access_delay": 0.0,
    "count": 1,
    "stamp": "arrival",
}  # what need not be written
NOT_GIVEN = ("law", "params", "count")  # entries of a row that the network's own calls do not take
LONGEST = 1e4  # [s] of a run
IN_SECONDS = 1.0  # [s] from which a time is not in ms


@dataclass(frozen=True)
class Knob:
    """One number of a network that a slider sets.

    Attributes
    ----------
    place : tuple of str
        Its keys in the table, such as ("flows", "flow1", "params", "beta").
    label : str
        Its name, with the unit shown.
    size : float
        How many SI units one of the unit shown is.
    value : float
        In SI units.
    usual : float
        The value that the slider's range is made for, in SI units.
    axis : str
        Its name as an axis of `fluidcc.sweep`; "" if it has none.
    about : str
        What it is.
    """

    place: tuple[str, ...]
    label: str
    size: float
    value: float
    usual: float
    axis: str
    about: str

    @property
    def range(self) -> tuple[float, float]:
        """Ends of its slider, in the unit shown: from 0 to four times the usual value."""
        top = 4 * self.usual / self.size or (100.0 if self.size < 1.0 else 1.0)
        return min(top, 0.0), max(top, 0.0)


class Board:
    """A network that is changed by the keys of its table.

    Attributes
    ----------
    table : dict
        As a scenario file has it: until and what else is of a run, links and flows, numbers in SI
        units.
    own : dict
        Laws that the library does not have, by name.
    """

    def __init__(self, table: dict[str, Any], own: Mapping[str, Law] | None = None) -> None:
        self.table, self.own = table, dict(own or {})
        self._usual: dict[tuple[str, ...], float] = {}

    @classmethod
    def of(cls, source: Any = None, until: float | None = None) -> Board:
        """Return the board of a network, a scenario, its name or file; by default of two flows.

        Raises
        ------
        InvalidInput
            If `source` is none of these.
        """
        if source is None:
            law = sources.Reno(burst=3)  # its first window goes out in three round trips
            flows = {"near": law, "far": {"law": law, "start": "10 s"}}
            router = links.PI(a=0.4, b=0.2)
            link = {"law": router, "capacity": "5 Mbit/s", "buffer": "200 packets"}
            source = dumbbell(flows, link, rtt=["40 ms", "80 ms"])
        if not isinstance(source, Network | Scenario):
            source = Scenario.load(source)
        scenario = Scenario("own", source, 30.0) if isinstance(source, Network) else source
        net, own = scenario.net, {}
        table: dict[str, Any] = {
            "until": until or scenario.until,
            **{key: getattr(scenario, key) for key in RUN_FIELDS}, "links": {}, "flows": {},
        }  # fmt: skip
        for kind, names in (("links", net.link_names), ("flows", net.flow_names)):
            for name in names:
                given = dict(net.given(kind[:-1], name))
                law = given.pop("law")
                known = getattr(ROOMS[kind], law.name, None)
                if not isinstance(known, Law) or known(**_numbers(law)) != law:
                    own[law.name] = known = law
                changed = {k: v for k, v in _numbers(law).items() if v != _numbers(known)[k]}
                table[kind][name] = {
                    "law": law.name, **{k: v for k, v in given.items() if v is not None},
                    "params": changed,
                }  # fmt: skip
        table["flows"] = _alike(table["flows"])
        return cls(table, own)

    def network(self) -> Network:
        """Return the network that the table describes.

        Raises
        ------
        InvalidInput
            If a value of the table is invalid.
        """
        net = Network()
        for kind, add in (("links", net.link), ("flows", net.flow)):
            for name, row in self.table[kind].items():
                given = {k: v for k, v in row.items() if k not in NOT_GIVEN}
                law = self.law(kind, name)(**row["params"])
                for k in range(1, row.get("count", 1) + 1):
                    add(copy_name(name, k, net.flows), law, **given)
        return net

    @property
    def copies(self) -> list[str]:
        """Names of the flows that are like the first one of their card."""
        return [
            copy_name(name, k) for name, row in self.table["flows"].items()
            for k in range(2, row.get("count", 1) + 1)
        ]  # fmt: skip

    @property
    def until(self) -> float:
        """End of the run [s].

        Raises
        ------
        InvalidInput
            If it is not between 0 and some hours.
        """
        until = float(to_si(self.table["until"], "s", "until"))
        if not 0 < until <= LONGEST:
            raise InvalidInput(f"until is {until:g} s; give a time of up to {LONGEST:g} s")
        return until

    def law(self, kind: str, name: str) -> Any:
        """Return the law of a link or flow, with its usual parameters."""
        law = self.table[kind][name]["law"]
        return self.own[law] if law in self.own else getattr(ROOMS[kind], law)

    def laws(self, kind: str) -> list[str]:
        """Return the names of the laws that a link or a flow can have."""
        fitting = type(ROOMS[kind].DropTail if kind == "links" else ROOMS[kind].LDCC)
        own = [name for name, law in self.own.items() if isinstance(law, fitting)]
        return [*own, *(name for name in ROOMS[kind].__all__ if name not in own)]

    # --- changes ----------------------------------------------------------------------------------

    def put(self, place: tuple[str, ...], value: Any) -> None:
        """Set the entry of the table at some keys."""
        *path, key = place
        row = self.table
        for part in path:
            row = row[part]
        row[key] = value

    @staticmethod
    def written(knob: Knob, value: float) -> Any:
        """Return a value in the unit that a knob shows as the table has it, with that unit."""
        return float(value) if knob.size == 1.0 else f"{value:.12g} {knob.label.split()[-1][1:-1]}"

    def put_law(self, kind: str, name: str, law: str) -> None:
        """Give a link or a flow another law, with its usual parameters and initial states."""
        if law not in self.laws(kind):
            raise UnknownName(f"there is no law {shown(law)}; {near(law, self.laws(kind))}")
        row = self.table[kind][name]
        row.update(law=law, params={})
        row.pop("initial", None)
        if kind == "links" and self.law(kind, name).queue is None:
            row.pop("buffer", None)
        self._usual = {place: v for place, v in self._usual.items() if place[:2] != (kind, name)}

    def add_flow(self) -> str:
        """Add a flow like the last one, and return its name."""
        flows = self.table["flows"]
        name = next(n for k in range(len(flows) + 1, 10_000) if (n := f"flow{k}") not in flows)
        flows[name] = deepcopy([*flows.values()][-1]) | {"count": 1}
        return name

    def drop_flow(self) -> None:
        """Take the last flow away, unless it is the only one."""
        if len(self.table["flows"]) > 1:
            self.table["flows"].popitem()

    # --- what sliders are made of -----------------------------------------------------------------

    def knobs(self, kind: str, name: str) -> Iterator[Knob]:
        """Yield what can be changed of a link or a flow: its arguments, then its parameters."""
        row, law = self.table[kind][name], self.law(kind, name)
        # An axis of a chart moves one flow, or all that there are.
        many, alone = row.get("count", 1) > 1, len(self.table["flows"]) == 1
        moved = f"{kind if many else name}." if alone or not many else ""
        packet = float(to_si(row.get("packet", PACKET), "bit/packet", "packet"))
        for key, unit in ARGUMENTS[kind].items():
            value = row.get(key, 0.0 if key in LEFT_OUT else None)
            if value is None or isinstance(value, list | tuple):
                continue  # without an end, or a course of time: no number to be set
            if key == "buffer" and isinstance(value, str):
                value, unit = _buffer(value, row["capacity"], packet)
            value = to_si(value, unit, key, packet=packet) if isinstance(value, str) else value
            axis = f"{moved}{key}" if moved and key != "buffer" else ""
            yield self._knob((kind, name, key), unit, float(value), axis, ABOUT[key])
        units = {plain(s): unit for s, unit in law.units.items()}
        about = {plain(s): text for s, text in law.meaning.items()}
        for key, usual in _numbers(law).items():
            value = float(to_si(row["params"].get(key, usual), units[key], key))
            place = kind, name, "params", key
            axis = f"{moved}{key}" if moved else ""
            yield self._knob(place, units[key], value, axis, about.get(key, ""))

    def _knob(self, place: tuple[str, ...], unit: str, value: float, axis: str, about: str) -> Knob:
        label, size = scaled(place[-1], unit)
        usual = self._usual.setdefault(place, value)
        if unit == "s" and abs(usual) >= IN_SECONDS:
            label, size = label.replace("[ms]", "[s]"), 1.0
        return Knob(place, label, size, value, usual, axis, about)

    # --- as text ----------------------------------------------------------------------------------

    def toml(self) -> str:
        """Return the table as a scenario file; it names laws that the library does not have too."""
        import tomli_w

        table = {key: self.table[key] for key in ("until", *RUN_FIELDS)}
        for kind in ("links", "flows"):
            table[kind] = {
                name: _written(kind, self.law(kind, name), row)
                for name, row in self.table[kind].items()
            }
        return tomli_w.dumps(table)

    def python(self) -> str:
        """Return the Python code that builds the network and draws it."""
        lines = ["import fluidcc as fc", "", "net = fc.Network()"]
        for kind in ("links", "flows"):
            for name, row in self.table[kind].items():
                written = _written(kind, self.law(kind, name), row)
                law, params = written.pop("law"), written.pop("params", {})
                law = law if law in self.own else f"fc.{law}"
                law += f"({', '.join(f'{k}={v!r}' for k, v in params.items())})" if params else ""
                called, count = repr(name), written.pop("count", 1)
                if count > 1:
                    lines.append(f"for k in range(1, {count + 1}):")
                    called = f"{name!r} if k == 1 else f'{name}_{{k}}'"
                rest = "".join(f", {k}={v!r}" for k, v in written.items())
                lines.append(f"{' ' * 4 * (count > 1)}net.{kind[:-1]}({called}, {law}{rest})")
        frozen = "" if self.table["delays"] == "fifo" else f", delays={self.table['delays']!r}"
        usual = {"seed": Scenario.seed, "losses": Scenario.losses}
        heard = "".join(f", {k}={self.table[k]!r}" for k, v in usual.items() if self.table[k] != v)
        lines += [
            "", f"result = fc.simulate(net, {self.until!r}{frozen}{heard})",
            f"report = fc.stability(net{frozen})", "fc.plot.timeseries(result)",
            "fc.plot.nyquist(report)", "report",
        ]  # fmt: skip
        if self.own:
            lines.insert(1, f"# {', '.join(self.own)}: laws of your own")
        return "\n".join(lines) + "\n"


def _alike(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return rows where copies of a flow, by their names, are one row with their number."""
    kept: dict[str, dict[str, Any]] = {}
    for name, row in rows.items():
        first = next(reversed(kept), "")
        count = kept[first].get("count", 1) + 1 if kept else 1
        if kept and row == rows[first] and name == copy_name(first, count):
            kept[first] = row | {"count": count}
        else:
            kept[name] = row
    return kept


def _numbers(law: Law) -> dict[str, float]:
    """Return the parameters of a law by name, in SI units."""
    return {plain(s): float(v) for s, v in law.params.items()}


def _buffer(text: str, capacity: Any, packet: float) -> tuple[float, str]:
    """Return a buffer and its unit: seconds if it was given as a queueing delay."""
    try:
        return float(to_si(text, "s", "buffer")), "s"
    except InvalidInput:
        return float(to_si(text, "bit", "buffer", packet=packet)), "bit"


def _written(kind: str, law: Law, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with units written out, and without what need not be said."""
    units = {plain(s): unit for s, unit in law.units.items()}

    def text(value: Any, unit: str) -> Any:
        plainly = isinstance(value, str | list | tuple) or scaled("", unit)[1] == 1.0
        return value if plainly else format_si(value, unit, 12)

    new: dict[str, Any] = {"law": row["law"]}
    for key, value in row.items():
        if key in ("law", "params") or value in (None, LEFT_OUT.get(key)):
            continue
        new[key] = text(value, ARGUMENTS[kind].get(key, "1"))
    if row["params"]:
        new["params"] = {k: text(v, units[k]) for k, v in row["params"].items()}
    return new
