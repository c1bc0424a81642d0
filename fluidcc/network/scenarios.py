"""Scenarios: a network with the time to run it, from a TOML file with units as text, or from the
ready ones.

Each error is one sentence with the file, the key, the value and what would be right.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np

from fluidcc import links as link_laws
from fluidcc import sources as source_laws
from fluidcc.base.arguments import brief, explained, explained_class, shown
from fluidcc.base.errors import FluidccError, ScenarioError, UnknownName
from fluidcc.base.files import present
from fluidcc.network.network import Network, require_network
from fluidcc.network.patterns import NotThere, near, quantity
from fluidcc.network.specs import PACKET

__all__ = ["FlowTable", "LinkTable", "Scenario", "ScenarioTable", "read", "scenarios", "toml"]


Quantity = float | str
T = TypeVar("T")


class LinkTable(msgspec.Struct, forbid_unknown_fields=True):
    """[links.NAME]: arguments of `Network.link`, the law by name, its parameters in `params`."""

    capacity: Quantity | list[tuple[Quantity, Quantity]]
    law: str = "DropTail"
    params: dict[str, Quantity] = {}
    delay: Quantity = 0.0
    buffer: Quantity | None = None
    initial: dict[str, Quantity] | None = None
    packet: Quantity = PACKET


class FlowTable(msgspec.Struct, forbid_unknown_fields=True):
    """[flows.NAME]: arguments of `Network.flow`, the law by name, its parameters in `params`."""

    law: str
    route: list[str]
    params: dict[str, Quantity] = {}
    start: Quantity | list[Quantity] | None = None
    stop: Quantity | list[Quantity] | None = None
    access_delay: Quantity = 0.0
    return_delay: Quantity | None = None
    packet: Quantity = PACKET
    initial: dict[str, Quantity] | None = None
    pattern: list[tuple[Quantity, Quantity]] | dict[str, Quantity] | None = None


class ScenarioTable(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    until: Quantity
    links: Annotated[dict[str, Any], msgspec.Meta(min_length=1)]
    flows: Annotated[dict[str, Any], msgspec.Meta(min_length=1)]
    title: str = ""
    ref: str = ""
    notes: str = ""
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    delays: Literal["fifo", "frozen"] = "fifo"
    samples: Annotated[int, msgspec.Meta(ge=2)] = 601


# What would be right, by key.
_RIGHT = {
    "access_delay": "a time, such as '5 ms'",
    "buffer": "an amount of data, such as '130 packets', or a queueing delay, such as '300 ms'",
    "capacity": "a rate, such as '3.5 Mbit/s', or pairs, such as [[0, '3 Mbit/s'], [10, '2 "
    "Mbit/s']]",
    "delay": "a time, such as '25 ms'",
    "delays": "'fifo' or 'frozen'",
    "flows": "tables, such as [flows.a]",
    "initial": "a table of states, such as { x = '0.1 Mbit/s' }",
    "law": "the name of a law, such as 'LDCC'",
    "links": "tables, such as [links.bottleneck]",
    "notes": "text",
    "packet": "a packet size, such as '1 KB'",
    "params": "a table of parameters, such as { beta = 0.1 }",
    "pattern": "pairs, such as [[0, '1 Mbit/s'], [5, 0]], or a table with its kind",
    "ref": "text",
    "return_delay": "a time, such as '25 ms'",
    "route": "a list of links, such as ['bottleneck']",
    "samples": "a whole number of at least 2",
    "seed": "a whole number from 0 on",
    "start": "a time, such as '2 s', or a list of times",
    "stop": "a time, such as '20 s', or a list of times",
    "title": "text",
    "until": "a time, such as '60 s'",
}


def read(
    text: str | bytes, file: str, changes: Mapping[str, Any] | None = None
) -> tuple[ScenarioTable, dict[str, LinkTable], dict[str, FlowTable]]:
    """Return the tables of a scenario file, in which `changes` by dotted key replace what it says.

    Raises
    ------
    ScenarioError
        If it is not TOML, has an unknown key, lacks one, or a value has the wrong type.
    """
    if not isinstance(text, str | bytes):
        raise ScenarioError(f"the text of {file} is {shown(text)}; give TOML")
    data = toml(text, file)
    if not isinstance(changes, Mapping | None) or not all(
        isinstance(key, str) for key in changes or {}
    ):
        raise ScenarioError(
            f"changes is {shown(changes)}; give values by dotted key, such as {{'flows.a.start': "
            f"2}}"
        )
    for key, value in (changes or {}).items():
        if isinstance(value, np.ndarray):
            raise ScenarioError(
                f"{file}, {key} is {shown(value)}; give what TOML has: text, numbers, lists, tables"
            )
        _put(data, key, value, file)
    whole = _convert(data, ScenarioTable, file, [])
    links = {
        name: _convert(table, LinkTable, file, ["links", name])
        for name, table in whole.links.items()
    }
    flows = {
        name: _convert(table, FlowTable, file, ["flows", name])
        for name, table in whole.flows.items()
    }
    return whole, links, flows


def toml(text: str | bytes, file: str) -> dict[str, Any]:
    """Return what TOML text says; `file` names it in messages.

    Raises
    ------
    ScenarioError
        If it is not TOML, or nested deeper, or with longer integers, than Python reads.
    """
    try:
        return tomllib.loads(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise ScenarioError(
            f"{file} cannot be read: its values are nested too deeply; give tables in tables"
        ) from None
    except ValueError as error:  # no TOML, no UTF-8, or an integer of thousands of digits
        if not isinstance(error, tomllib.TOMLDecodeError | UnicodeDecodeError):
            raise ScenarioError(
                f"{file} cannot be read: an integer has thousands of digits; give 1e9, say"
            ) from None
        raise ScenarioError(f"{file} is not TOML: {brief(str(error))}") from None


def _put(data: dict[str, Any], key: str, value: Any, file: str) -> None:
    """Set ``flows.a.params.beta``: tables that are missing are made, but no link or flow."""
    *tables, last = names = [part.strip('"') for part in re.findall(r'"[^"]*"|[^.]+', key)] or [""]
    for depth, name in enumerate(tables):
        below = (
            data.setdefault(name, {})
            if depth != 1 or names[0] not in ("links", "flows")
            else data.get(name)
        )
        if below is None:
            known = ", ".join(data)
            raise ScenarioError(
                f"{file}, {key}: there is no {names[0][:-1]} {name!r} to change; it has {known}"
            )
        if not isinstance(below, dict):
            raise ScenarioError(
                f"{file}, {key}: {'.'.join(names[: depth + 1])} is {shown(below)}, which has no "
                f"parts"
            )
        data = below
    data[last] = value


def _convert(data: Any, kind: type[T], file: str, place: list[str]) -> T:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{file}, {_explain(str(error), data, kind, place)}") from None


def _explain(message: str, data: Any, kind: type, place: list[str]) -> str:
    """Return a sentence from msgspec's message, such as 'Expected `str`, got `int` - at
    `$.route[0]`'.
    """
    text, _, path = message.partition(" - at `")
    keys, value = _walk(path.strip("`$"), data)
    where = brief(".".join([*place, *keys]))
    if unknown := re.search(r"unknown field `(.*)`", text):
        fields = [f.name for f in msgspec.structs.fields(kind)]
        return (
            f"{brief('.'.join([*place, unknown[1]]))}: there is no such key here; "
            f"{near(unknown[1], fields)}"
        )
    if missing := re.search(r"missing required field `(.*)`", text):
        return f"{'.'.join([*place, missing[1]])} is missing; give {_RIGHT[missing[1]]}"
    what = "a table" if isinstance(value, dict) and value else shown(value)
    return f"{where} is {what}; give {_right(keys, place)}"


def _right(keys: list[str], place: list[str]) -> str:
    if not keys:
        return f"a table, such as [{'.'.join(place)}] with its keys below"
    if len(keys) > 1 and keys[0] in ("params", "initial", "pattern"):
        return "a number, or text with a unit"
    return _RIGHT[keys[0]]


def _walk(path: str, data: Any) -> tuple[list[str], Any]:
    """Return the keys of msgspec's path and the value there; for [...], some key of a table, the
    first that is no quantity.
    """
    keys: list[str] = []
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]", path):
        if index == "...":
            name = next(
                k
                for k, v in data.items()
                if isinstance(v, bool) or not isinstance(v, int | float | str)
            )
        keys.append(name or index)
        data = data[name] if name else data[int(index)]
    return keys, data


# --- scenarios ------------------------------------------------------------------------------------


@explained_class
@dataclass
class Scenario:
    """A network with what a run of it needs.

    Attributes
    ----------
    name : str
        Short name: of the file, without its ending.
    net : Network
        The network.
    until : float
        End of the simulation [s].
    title, ref, notes : str
        For people: what it is, where it is from, what was chosen because the source does not say.
    seed : int
        Seed of random traffic.
    delays : {"fifo", "frozen"}
        As in `fluidcc.simulate`.
    samples : int
        Number of times in the result.

    Examples
    --------
    >>> import fluidcc as fc
    >>> s = fc.scenarios["ldcc_fig5"]
    >>> s.until, s.net.flows["flow3"].intervals
    (350.0, ((100.0, 260.0),))
    """

    name: str
    net: Network
    until: float
    title: str = ""
    ref: str = ""
    notes: str = ""
    seed: int = 0
    delays: str = "fifo"
    samples: int = 601

    def __post_init__(self) -> None:
        require_network(self.net)
        quantity(self.until, "s", "until", positive=True)

    @classmethod
    @explained
    def load(cls, path: str | Path, changes: Mapping[str, Any] | None = None) -> Scenario:
        """Read a scenario file, or the ready scenario of that name.

        Parameters
        ----------
        path : str or Path
            A TOML file; or a name in ``fluidcc.scenarios``.
        changes : mapping, optional
            What replaces values of the file, by dotted key: ``{"flows.a.params.beta": 0.2, "until":
            "90 s"}``.

        Raises
        ------
        ScenarioError
            If there is no such file, or something in it or in `changes` is wrong.
        """
        if not isinstance(path, str | Path):
            raise ScenarioError(
                f"the scenario is {shown(path)}; give the path of a TOML file, or a name of "
                f"fluidcc.scenarios"
            )
        file: Path | Traversable = Path(path)
        try:
            there = present(Path(path)) and file.is_file()
        except OSError as error:  # a name too long, or a folder that must not be read
            raise ScenarioError(
                f"{brief(str(path))}: {str(error.strerror).lower()}; give a TOML file"
            ) from None
        if not there:
            if file.is_dir():
                raise ScenarioError(
                    f"{path} is a folder; give a TOML file in it, or a ready scenario"
                )
            if str(path) not in scenarios:
                said = str(path) if str(path).isprintable() else shown(str(path))
                close = get_close_matches(Path(path).stem, scenarios, n=3)
                ready = (
                    f"did you mean the ready {' or '.join(close)}"
                    if close
                    else "give a TOML file or a ready scenario"
                )
                raise ScenarioError(f"{said}: no such file; {ready}{'?' if close else ''}")
            file = scenarios.files[str(path)]
        return cls.loads(file.read_bytes(), file.name, changes)

    @classmethod
    @explained
    def loads(
        cls,
        text: str | bytes,
        name: str = "scenario.toml",
        changes: Mapping[str, Any] | None = None,
    ) -> Scenario:
        """Read a scenario from TOML text; `name` is that of its file, for messages."""
        return _build(*read(text, name, changes), name)

    def simulate(self, **changes: Any) -> Any:
        """Return `fluidcc.simulate` of this scenario; `changes` are arguments of it that win over
        the scenario's.
        """
        from fluidcc.simulation.simulate import simulate

        given = {"until": self.until, "seed": self.seed, "delays": self.delays}
        if "t_eval" not in changes:
            given["samples"] = self.samples
        return simulate(self.net, **{**given, **changes})

    def _repr_html_(self) -> str:
        from base64 import b64encode
        from html import escape

        about = "".join(f"<p>{escape(text)}</p>" for text in (self.ref, self.notes) if text)
        data, size = self.net._repr_png_()
        image = (
            f'<img alt="{escape(repr(self.net))}" width="{size["width"]}" '
            f'src="data:image/png;base64,{b64encode(data).decode()}"/>'
        )
        return f"<h4>{escape(self.title or self.name)}</h4>{about}{image}"


# --- from the file to the network -----------------------------------------------------------------


def _build(
    file: ScenarioTable, links: dict[str, LinkTable], flows: dict[str, FlowTable], name: str
) -> Scenario:
    net = Network()
    with _located(name, "until"):
        until = quantity(file.until, "s", "until", positive=True)
    for key, link in links.items():
        law, given = _law(link, link_laws, "link", key, name)
        with _located(name, f"links.{key}"):
            net.link(key, law, **given)
    for key, flow in flows.items():
        law, given = _law(flow, source_laws, "flow", key, name)
        with _located(name, f"flows.{key}"):
            net.flow(key, law, **given)
    about = {k: getattr(file, k) for k in ("title", "ref", "notes", "seed", "delays", "samples")}
    return Scenario(name.removesuffix(".toml"), net, until, **about)


def _law(
    table: LinkTable | FlowTable, room: Any, kind: str, key: str, file: str
) -> tuple[Any, dict[str, Any]]:
    """Return the law of a table with its parameters put in, and the other arguments."""
    given = msgspec.structs.asdict(table)
    law, params = given.pop("law"), given.pop("params")
    with _located(file, f"{kind}s.{key}"):
        if law not in room.__all__:
            raise UnknownName(f"law of {kind} {key!r} is {law!r}; {near(law, room.__all__)}")
    with _located(file, f"{kind}s.{key}.params"):
        return getattr(room, law)(**params), given


@dataclass
class _located:
    """Add the file and the key to what the library says of a value."""

    file: str
    key: str

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, FluidccError):
            # The messages of fluidcc.network.network start with the argument: "capacity of link 'a'
            # is ...".
            argument = re.match(r"(\w+) of (?:link|flow) ", str(error))
            key = f"{self.key}.{argument[1]}" if argument else self.key
            where = "" if str(error).startswith(f"{key} is ") else f"{key}: "
            raise ScenarioError(f"{self.file}, {where}{error}") from error


# --- the ready ones -------------------------------------------------------------------------------


@dataclass
class _Zoo(Mapping[str, Scenario]):
    """The ready scenarios by name, read when asked for: networks can be changed, so each time
    anew.
    """

    files: dict[str, Traversable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        folder = resources.files("fluidcc.network") / "zoo"
        found = [f for f in folder.iterdir() if f.name.endswith(".toml")]
        self.files = {
            f.name.removesuffix(".toml"): f
            for f in sorted(
                found,
                key=lambda f: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", f.name)],
            )
        }

    def __getitem__(self, name: str) -> Scenario:
        if not isinstance(name, str) or name not in self.files:
            raise NotThere(
                f"there is no ready scenario {shown(name)}; {near(str(name), self.files)}"
            )
        return Scenario.loads(self.files[name].read_bytes(), self.files[name].name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __getattr__(self, name: str) -> Scenario:
        known = self.__dict__.get("files", ())
        if name not in known:
            raise AttributeError(f"there is no ready scenario {name!r}; {near(name, known)}")
        return self[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        return f"ready scenarios: {', '.join(self)}"


scenarios = _Zoo()
