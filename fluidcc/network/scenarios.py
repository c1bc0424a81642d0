"""Scenarios: a network with the time to run it, from a TOML file with units as text, or from the ready ones.

Each error is one sentence with the file, the key, the value and what would be right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec

from fluidcc import links as link_laws
from fluidcc import sources as source_laws
from fluidcc.base.arguments import brief, explained, explained_class, shown
from fluidcc.base.errors import FluidccError, ScenarioError, UnknownName
from fluidcc.network.network import Network, require_network
from fluidcc.network.patterns import near, quantity
from fluidcc.network.scenario_file import FlowTable, LinkTable, ScenarioTable, read

__all__ = ["Scenario", "scenarios"]


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
            What replaces values of the file, by dotted key: ``{"flows.a.params.beta": 0.2, "until": "90 s"}``.

        Raises
        ------
        ScenarioError
            If there is no such file, or something in it or in `changes` is wrong.
        """
        if not isinstance(path, str | Path):
            raise ScenarioError(
                f"the scenario is {shown(path)}; give the path of a TOML file, or a name of fluidcc.scenarios"
            )
        file: Path | Traversable = Path(path)
        try:
            there = file.is_file()
        except OSError as error:  # a name too long, or a folder that must not be read
            raise ScenarioError(f"{brief(str(path))}: {str(error.strerror).lower()}; give a TOML file") from None
        if not there:
            if file.is_dir():
                raise ScenarioError(f"{path} is a folder; give a TOML file in it, or a ready scenario")
            if str(path) not in scenarios:
                said = str(path) if str(path).isprintable() else shown(str(path))
                close = get_close_matches(Path(path).stem, scenarios, n=3)
                ready = (
                    f"did you mean the ready {' or '.join(close)}" if close else "give a TOML file or a ready scenario"
                )
                raise ScenarioError(f"{said}: no such file; {ready}{'?' if close else ''}")
            file = scenarios.files[str(path)]
        return cls.loads(file.read_bytes(), file.name, changes)

    @classmethod
    @explained
    def loads(
        cls, text: str | bytes, name: str = "scenario.toml", changes: Mapping[str, Any] | None = None
    ) -> Scenario:
        """Read a scenario from TOML text; `name` is that of its file, for messages."""
        return _build(*read(text, name, changes), name)

    def simulate(self, **changes: Any) -> Any:
        """`fluidcc.simulate` of this scenario; `changes` are arguments of it that win over the scenario's."""
        from fluidcc.simulation.simulate import simulate

        given = {"until": self.until, "seed": self.seed, "delays": self.delays}
        if "t_eval" not in changes:
            given["samples"] = self.samples
        return simulate(self.net, **{**given, **changes})

    def _repr_html_(self) -> str:
        from html import escape

        about = "".join(f"<p>{escape(text)}</p>" for text in (self.ref, self.notes) if text)
        return f"<h4>{escape(self.title or self.name)}</h4>{about}{self.net._repr_html_()}"


# --- from the file to the network -------------------------------------------------------------------------------------


def _build(file: ScenarioTable, links: dict[str, LinkTable], flows: dict[str, FlowTable], name: str) -> Scenario:
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


def _law(table: LinkTable | FlowTable, room: Any, kind: str, key: str, file: str) -> tuple[Any, dict[str, Any]]:
    """The law of a table with its parameters put in, and the other arguments."""
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
            # The messages of fluidcc.network.network start with the argument: "capacity of link 'a' is ...".
            argument = re.match(r"(\w+) of (?:link|flow) ", str(error))
            key = f"{self.key}.{argument[1]}" if argument else self.key
            where = "" if str(error).startswith(f"{key} is ") else f"{key}: "
            raise ScenarioError(f"{self.file}, {where}{error}") from error


# --- the ready ones ---------------------------------------------------------------------------------------------------


class NoScenario(UnknownName, KeyError):
    """There is no ready scenario of that name."""

    __str__ = UnknownName.__str__


@dataclass
class _Zoo(Mapping[str, Scenario]):
    """The ready scenarios by name, read when asked for: networks can be changed, so each time anew."""

    files: dict[str, Traversable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        folder = resources.files("fluidcc.network") / "zoo"
        found = [f for f in folder.iterdir() if f.name.endswith(".toml")]
        self.files = {
            f.name.removesuffix(".toml"): f
            for f in sorted(found, key=lambda f: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", f.name)])
        }

    def __getitem__(self, name: str) -> Scenario:
        if not isinstance(name, str) or name not in self.files:
            raise NoScenario(f"there is no ready scenario {shown(name)}; {near(str(name), self.files)}")
        return Scenario.loads(self.files[name].read_bytes(), self.files[name].name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __repr__(self) -> str:
        return f"ready scenarios: {', '.join(self)}"


scenarios = _Zoo()
