"""Scenarios: a network with the time to run it, from a TOML file with units as text, or from the
ready ones.

Each error is one sentence with the file, the key, the value and what would be right.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from importlib import import_module, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NoReturn

from fluidcc import links as link_laws
from fluidcc import sources as source_laws
from fluidcc.base import above
from fluidcc.base.arguments import brief, choice, explained, explained_class, shown, whole
from fluidcc.base.errors import FluidccError, InvalidCall, InvalidInput, ScenarioError, UnknownName
from fluidcc.base.files import present
from fluidcc.laws.parts import HEARD
from fluidcc.network.network import Network, copy_name, require_network
from fluidcc.network.patterns import NotThere, Pairs, near, quantity
from fluidcc.network.traces import read_trace

RUN_FIELDS = ("seed", "delays", "losses")  # what a scenario says of a run, besides times
MOST_FLOWS = 10**5  # copies of a flow
_NEEDED = {  # what has to be there, and what would be right
    "links": "tables, such as [links.bottleneck]",
    "flows": "tables, such as [flows.a]",
    "until": "a time, such as '60 s'",
    "capacity": "a rate, such as '3.5 Mbit/s', or pairs, such as [[0, '3 Mbit/s'], [10, '2 "
    "Mbit/s']]",
    "law": "the name of a law, such as 'LDCC'",
    "route": "a list of links, such as ['bottleneck']",
}


def toml(text: str | bytes, file: str) -> dict[str, Any]:
    """Return what TOML text says; `file` names it in messages.

    Raises
    ------
    ScenarioError
        If it is not TOML, or nested deeper, or with longer integers, than Python reads.
    """
    try:
        text = text if isinstance(text, str) else text.decode()
        return tomllib.loads(text.removeprefix("\ufeff"))  # a byte order mark, as of Notepad
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


def check_table(
    table: Any, known: Iterable[str], needed: Mapping[str, str], file: str, *place: str
) -> None:
    """Raise `InvalidInput` unless a value is a TOML table with these keys; `needed` says what
    would be right.

    Raises
    ------
    ScenarioError
        Naming the file and the key.
    """
    where = brief(".".join(place))
    if not isinstance(table, dict):
        raise ScenarioError(
            f"{file}, {where} is {shown(table)}; give a table, such as [{where}] with its keys "
            "below"
        )
    for key in table:
        if key not in known:
            raise ScenarioError(
                f"{file}, {brief('.'.join([*place, key]))}: there is no such key here; "
                f"{near(key, known)}"
            )
    for key, right in needed.items():
        if key not in table:
            raise ScenarioError(f"{file}, {'.'.join([*place, key])} is missing; give {right}")


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
        Seed of random traffic and of random losses.
    delays : {"fifo", "frozen"}
        As in `fluidcc.simulate`.
    samples : int
        Number of times in the result.
    losses : {"ratio", "mean", "packets", "random"}
        As in `fluidcc.simulate`: when laws that jump at losses or marks hear of one.
    make : function, optional
        What makes it of its parameters, by name: see `fluidcc.papers.ready`.

    Examples
    --------
    >>> import fluidcc as fc
    >>> s = fc.scenarios["ldcc_fig5"]
    >>> s.until, s.net.flows["flow3"].intervals
    (350.0, ((100.0, 260.0),))

    Scenarios with parameters are called with their values; fields of a run may be among them:

    >>> s = fc.scenarios["ecf_fig7"](rtt="100 ms", until="20 s")
    >>> round(s.net.base_rtt("s1"), 3), s.until
    (0.1, 20.0)
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
    losses: str = HEARD[0]
    make: Callable[..., Scenario] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        require_network(self.net)
        self.until = quantity(self.until, "s", "until", positive=True)
        for what in ("name", "title", "ref", "notes"):
            if not isinstance(text := getattr(self, what), str):
                raise InvalidInput(f"{what} is {shown(text)}; give text")
        whole(self.seed, "seed")
        choice(self.delays, "delays", ("fifo", "frozen"))
        choice(self.losses, "losses", HEARD)
        whole(self.samples, "samples", least=2)

    @property
    def parameters(self) -> dict[str, Any]:
        """Its parameters by name, with their defaults; none where it is of a file."""
        if self.make is None:
            return {}
        return {k: v.default for k, v in inspect.signature(self.make).parameters.items()}

    def __call__(self, **values: Any) -> Scenario:
        """Return the scenario with other values of its parameters, and of `until`, `samples`,
        `seed`, `delays` and `losses`.

        Raises
        ------
        InvalidInput
            If it has no such parameter, or it cannot have that value.
        """
        if self.make is None:
            raise InvalidInput(
                f"scenario {self.name!r} has no parameters; fluidcc.Scenario.load(file, changes) "
                "changes what its file says"
            )
        return self.make(**values)

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
            "90 s"}``; of a ready scenario without a file, its parameters.

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
            if str(path) not in scenarios.files:
                with located(str(path), ""):
                    return scenarios[str(path)](**dict(changes or {}))
            file = scenarios.files[str(path)]
        data = read(file.read_bytes(), file.name, changes)
        return _build(data, file.name, file.parent if isinstance(file, Path) else Path())

    @classmethod
    @explained
    def loads(
        cls,
        text: str | bytes,
        name: str = "scenario.toml",
        changes: Mapping[str, Any] | None = None,
    ) -> Scenario:
        """Read a scenario from TOML text; `name` is that of its file, for messages.

        Traces that it names lie in the working folder; those of a file lie beside it.
        """
        if not isinstance(name, str):
            raise InvalidInput(f"name is {shown(name)}; give that of a file, for messages")
        return _build(read(text, name, changes), name, Path())

    def simulate(self, **changes: Any) -> Any:
        """Return `fluidcc.simulate` of this scenario; `changes` are arguments of it that win over
        the scenario's.
        """
        given = {key: getattr(self, key) for key in ("until", *RUN_FIELDS)}
        if "t_eval" not in changes:
            given["samples"] = self.samples
        return import_module(above.RUN_BY).simulate(self.net, **{**given, **changes})

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


def read(text: str | bytes, file: str, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what a scenario file says, in which `changes` by dotted key replace values.

    Raises
    ------
    ScenarioError
        If it is not TOML, or there is no place for a change.
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
        _put(data, key, value, file)
    return data


def _build(data: dict[str, Any], file: str, folder: Path) -> Scenario:
    about = [f.name for f in fields(Scenario) if f.name not in ("name", "net", "make")]
    check_table(data, (*about, "links", "flows"), _needed("until", "links", "flows"), file)
    net = Network()
    for kind, room, add, needed in (
        ("links", link_laws, net.link, _needed("capacity")),
        ("flows", source_laws, net.flow, _needed("law", "route")),
    ):
        known = ("params", *[*inspect.signature(add).parameters][1:])
        known += ("count",) if kind == "flows" else ()
        if not isinstance(data[kind], dict) or not data[kind]:
            raise ScenarioError(f"{file}, {kind} is {shown(data[kind])}; give {_NEEDED[kind]}")
        for name, table in data[kind].items():
            place = f"{kind}.{name}"
            check_table(table, known, needed, file, kind, name)
            law = _law({"law": "DropTail", **table}, room, kind[:-1], name, file)
            given = {k: v for k, v in table.items() if k not in ("law", "params", "count")}
            for key in {"capacity", "pattern"} & {*given}:
                if isinstance(given[key], dict) and "trace" in given[key]:
                    given[key] = _traced(given[key], folder, file, kind, name, key)
            with located(file, place):
                count = whole(table.get("count", 1), f"count of flow {name!r}", most=MOST_FLOWS)
                for k in range(1, count + 1):
                    add(copy_name(name, k, net.flows), law, **given)
    if not net.flows:
        raise ScenarioError(f"{file}, flows have all a count of 0; give some flow at least 1")
    with located(file, ""):
        own = {k: data[k] for k in about if k in data}
        return Scenario(file.removesuffix(".toml"), net, **own)


def _traced(
    table: dict[str, Any], folder: Path, file: str, kind: str, name: str, key: str
) -> Pairs:
    """Return the rates of ``{ trace = "lte.csv", bin = "100 ms", unit = "Mbit/s" }``."""
    check_table(table, ("trace", "bin", "unit"), {}, file, kind, name, key)
    path, options = table["trace"], {k: v for k, v in table.items() if k != "trace"}
    with located(file, f"{kind}.{name}.{key}"):
        return read_trace(folder / path if isinstance(path, str) else path, **options)


def _needed(*keys: str) -> dict[str, str]:
    return {key: _NEEDED[key] for key in keys}


def _law(table: dict[str, Any], room: Any, kind: str, name: str, file: str) -> Any:
    """Return the law of a table with its parameters put in."""
    law, params = table["law"], table.get("params", {})
    with located(file, f"{kind}s.{name}"):
        if law not in room.__all__:
            raise UnknownName(
                f"law of {kind} {name!r} is {shown(law)}; {near(str(law), room.__all__)}"
            )
        if not isinstance(params, Mapping):
            raise InvalidInput(
                f"params of {kind} {name!r} is {shown(params)}; give a table of parameters, such "
                "as { beta = 0.1 }"
            )
    with located(file, f"{kind}s.{name}.params"):
        return getattr(room, law)(**params)


@contextmanager
def located(file: str, key: str) -> Iterator[None]:
    """Add the file and the key to what the library says of a value."""
    try:
        yield
    except FluidccError as error:
        # The messages of fluidcc.network.network start with the argument: "capacity of link 'a' is
        # ...".
        argument = re.match(r"(\w+) of (?:link|flow) ", str(error))
        place = f"{key}.{argument[1]}" if argument and key else key
        where = f"{place}: " if place and not str(error).startswith(f"{place} is ") else ""
        raise ScenarioError(f"{file}, {where}{error}") from error


# --- the ready ones -------------------------------------------------------------------------------


class _Zoo(Mapping[str, Scenario]):
    """The ready scenarios by name, read when asked for: networks can be changed, so each time
    anew.
    """

    def __init__(self) -> None:
        def by_number(file: Traversable) -> list[str | int]:
            return [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", file.name)]

        found = sorted((resources.files("fluidcc") / "papers" / "zoo").iterdir(), key=by_number)
        self.files = {f.name.removesuffix(".toml"): f for f in found if f.name.endswith(".toml")}
        # Those with parameters, by the modules that make them: none is imported before it is asked.
        self.made = {
            name: f"fluidcc.papers.zoo.{f.name.removesuffix('.py')}"
            for f in found
            if f.name.endswith(".py")
            for name in re.findall(r"^@ready.*\ndef (\w+)", f.read_text("utf-8"), re.M)
        }

    def __getitem__(self, name: str) -> Scenario:
        if not isinstance(name, str) or name not in {*self}:
            raise NotThere(f"there is no ready scenario {shown(name)}; {near(str(name), self)}")
        if name in self.made:
            scenario: Scenario = getattr(import_module(self.made[name]), name)()
            return scenario
        return Scenario.loads(self.files[name].read_bytes(), self.files[name].name)

    def __iter__(self) -> Iterator[str]:
        yield from self.files
        yield from self.made

    def __len__(self) -> int:
        return len(self.files) + len(self.made)

    def __getattr__(self, name: str) -> Scenario:
        known = () if "files" not in self.__dict__ or name.startswith("_") else tuple(self)
        if name not in known:
            raise AttributeError(f"there is no ready scenario {name!r}; {near(name, known)}")
        return self[name]

    def __call__(self, *_: Any, **values: Any) -> NoReturn:
        raise InvalidCall("fluidcc.scenarios is no function; give fluidcc.scenarios['p1']")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        return f"ready scenarios: {', '.join(self)}"


scenarios = _Zoo()
