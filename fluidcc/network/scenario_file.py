"""The scenario file: its keys, and what is said when one is wrong: file, key, value and what would be right."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np

from fluidcc.base.arguments import brief, shown
from fluidcc.base.errors import ScenarioError
from fluidcc.network.patterns import near
from fluidcc.network.specs import PACKET

__all__ = ["FlowTable", "LinkTable", "ScenarioTable", "read", "toml"]

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
    "capacity": "a rate, such as '3.5 Mbit/s', or pairs, such as [[0, '3 Mbit/s'], [10, '2 Mbit/s']]",
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
    """The tables of a scenario file, in which `changes` by dotted key replace what it says.

    Raises
    ------
    ScenarioError
        If it is not TOML, has an unknown key, lacks one, or a value has the wrong type.
    """
    if not isinstance(text, str | bytes):
        raise ScenarioError(f"the text of {file} is {shown(text)}; give TOML")
    data = toml(text, file)
    if not isinstance(changes, Mapping | None) or not all(isinstance(key, str) for key in changes or {}):
        raise ScenarioError(f"changes is {shown(changes)}; give values by dotted key, such as {{'flows.a.start': 2}}")
    for key, value in (changes or {}).items():
        if isinstance(value, np.ndarray):
            raise ScenarioError(f"{file}, {key} is {shown(value)}; give what TOML has: text, numbers, lists, tables")
        _put(data, key, value, file)
    whole = _convert(data, ScenarioTable, file, [])
    links = {name: _convert(table, LinkTable, file, ["links", name]) for name, table in whole.links.items()}
    flows = {name: _convert(table, FlowTable, file, ["flows", name]) for name, table in whole.flows.items()}
    return whole, links, flows


def toml(text: str | bytes, file: str) -> dict[str, Any]:
    """What TOML text says; `file` names it in messages.

    Raises
    ------
    ScenarioError
        If it is not TOML, or nested deeper, or with longer integers, than Python reads.
    """
    try:
        return tomllib.loads(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise ScenarioError(f"{file} cannot be read: its values are nested too deeply; give tables in tables") from None
    except ValueError as error:  # no TOML, no UTF-8, or an integer of thousands of digits
        if not isinstance(error, tomllib.TOMLDecodeError | UnicodeDecodeError):
            raise ScenarioError(f"{file} cannot be read: an integer has thousands of digits; give 1e9, say") from None
        raise ScenarioError(f"{file} is not TOML: {brief(str(error))}") from None


def _put(data: dict[str, Any], key: str, value: Any, file: str) -> None:
    """Set ``flows.a.params.beta``: tables that are missing are made, but no link or flow."""
    *tables, last = names = [part.strip('"') for part in re.findall(r'"[^"]*"|[^.]+', key)] or [""]
    for depth, name in enumerate(tables):
        below = data.setdefault(name, {}) if depth != 1 or names[0] not in ("links", "flows") else data.get(name)
        if below is None:
            known = ", ".join(data)
            raise ScenarioError(f"{file}, {key}: there is no {names[0][:-1]} {name!r} to change; it has {known}")
        if not isinstance(below, dict):
            raise ScenarioError(f"{file}, {key}: {'.'.join(names[: depth + 1])} is {shown(below)}, which has no parts")
        data = below
    data[last] = value


def _convert(data: Any, kind: type[T], file: str, place: list[str]) -> T:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{file}, {_explain(str(error), data, kind, place)}") from None


def _explain(message: str, data: Any, kind: type, place: list[str]) -> str:
    """A sentence from msgspec's message, such as 'Expected `str`, got `int` - at `$.route[0]`'."""
    text, _, path = message.partition(" - at `")
    keys, value = _walk(path.strip("`$"), data)
    where = brief(".".join([*place, *keys]))
    if unknown := re.search(r"unknown field `(.*)`", text):
        fields = [f.name for f in msgspec.structs.fields(kind)]
        return f"{brief('.'.join([*place, unknown[1]]))}: there is no such key here; {near(unknown[1], fields)}"
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
    """Keys of msgspec's path and the value there; for [...], some key of a table, the first that is no quantity."""
    keys: list[str] = []
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]", path):
        if index == "...":
            name = next(k for k, v in data.items() if isinstance(v, bool) or not isinstance(v, int | float | str))
        keys.append(name or index)
        data = data[name] if name else data[int(index)]
    return keys, data
