"""Rates that change in time: given pairs, and random traffic that is drawn when a simulation's
seed is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from fluidcc.base.arguments import shown
from fluidcc.base.errors import InvalidInput, UnknownName, warn
from fluidcc.base.units import to_si
from fluidcc.laws.law import Source
from fluidcc.laws.parts import per_structure
from fluidcc.symbols import noise, symbols_of

Pairs = tuple[tuple[float, float], ...]
FEW = 24  # names that are all listed where none is near
LONG = 5.0  # [s] more than a path takes
SLOW = 1e3  # [bit/s] less than a link carries
SMALL = 2400.0  # [bit] less than a packet has; these are packets of bytes too
JUMBO = (8960.0, 9000.0, 9216.0)
# Of arguments that may be given in another unit than theirs: theirs, its name, and the other.
_UNITS = {
    "capacity": ("bit/s", "bits per second", "Mbit/s"),
    "buffer": ("bit", "bits", "packets"),
    "packet": ("bit", "bits", "bytes"),
}


_KINDS = {
    "on_off_pareto": {"peak": "bit/s", "mean_on": "s", "mean_off": "s", "shape": "1"},
    "poisson": {"mean_rate": "bit/s", "interval": "s"},
    "noise": {"interval": "s"},  # standard normal numbers for laws that use `fluidcc.symbols.noise`
}


@dataclass(frozen=True)
class Modulated:
    """Random piecewise-constant traffic, drawn when a simulation's seed is known."""

    kind: str
    parameters: tuple[tuple[str, float], ...]


class NotThere(UnknownName, KeyError):
    """A mapping has nothing of that name."""

    __str__ = UnknownName.__str__


def near(name: str, names: Iterable[str]) -> str:
    """Return a hint at the name meant: up to three near names, the nearest first, or else what
    there is, if few.
    """
    known = list(names)
    if close := get_close_matches(name, known, cutoff=0.5 if len(name) < 8 else 0.6):
        return f"did you mean {' or '.join(map(repr, close))}?"
    return f"it may be {', '.join(known)}" if 0 < len(known) <= FEW else "there is none like it"


def quantity(
    value: Any,
    unit: str,
    what: str,
    *,
    positive: bool = False,
    infinite: bool = False,
    packet: float | None = None,
) -> float:
    """Return a number in SI units, nonnegative or positive."""
    number = to_si(value, unit, what, packet=packet, allow_inf=infinite)
    if number < 0 or (positive and number == 0):
        raise InvalidInput(
            f"{what} is {shown(value)}; give a {'positive' if positive else 'nonnegative'} number"
        )
    return number


def ask_for_units(
    given: Mapping[str, Any], of: str = "", packet: float = 0.0, stacklevel: int = 4
) -> None:
    """Warn, once, of numbers without a unit that hardly mean the unit they are read in.

    Parameters
    ----------
    given : mapping of str to Any
        Arguments by name, which have been found to be good: delays, a capacity, a buffer, a packet.
    of : str
        What they are of, such as ``"link 'l'"``.
    packet : float
        Packet size [bit]; less than one is no buffer.
    stacklevel : int
        Leads to the line of whoever called an `explained` function that calls this one.
    """
    texts = []
    for key, value in given.items():
        number = without_unit(value)
        unit, name, other = _UNITS.get(key, ("s", "seconds", "ms"))
        odd = {
            "capacity": lambda x: 0 < x < SLOW,
            "buffer": lambda x: 0 < x < packet,
            "packet": lambda x: 0 < x < SMALL or x in JUMBO,
        }.get(key, lambda x: x >= LONG)
        if number is not None and odd(number):
            n = f"{number:g}"
            texts.append(
                f"{key}{f' of {of}' if of else ''} is {n}, which is {n} {unit}; for {n} {other} "
                f"write '{n} {other}', or '{n} {unit}' if {name} are meant"
            )
    if texts:
        warn("; and ".join(texts), stacklevel)


def without_unit(value: Any) -> float | None:
    """Return the number in a value that has no unit, the largest of several rates; else None."""
    if value is None:
        return None
    if is_list(value):  # pairs of time and rate
        rates = [without_unit(rate) for _, rate in value]
        return None if None in rates else max(filter(None, rates), default=0.0)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return float(value)


def in_seconds(value: float) -> float | str:
    """Return seconds that were worked out, of which `ask_for_units` does not warn."""
    return value if value < LONG else f"{float(value)!r} s"


def series(value: Any, what: str, positive: bool, packet: float | None = None) -> Pairs:
    """Return ((time, rate), ...) from pairs: strictly increasing times, the first of them 0."""
    try:
        rows = [(t, r) for t, r in value]
    except (TypeError, ValueError):
        raise InvalidInput(
            f"{what} is {shown(value)}; give pairs of time and rate, such as "
            "[(0, '3 Mbit/s'), (10, '2 Mbit/s')]"
        ) from None
    pairs = tuple(
        (
            quantity(t, "s", f"{what}, a time in a pair,"),
            quantity(r, "bit/s", what, positive=positive, packet=packet),
        )
        for t, r in rows
    )
    times = [t for t, _ in pairs]
    if not pairs or times[0] != 0:
        raise InvalidInput(
            f"{what} starts at {times[0] if times else 'no'} s; its first pair must be at time 0"
        )
    for a, b in pairwise(times):
        if b <= a:
            raise InvalidInput(
                f"{what} has {b:g} s after {a:g} s; sort its pairs by time, one for each time"
            )
    return pairs


def is_list(value: Any) -> bool:
    """Return whether a value is several: a list, tuple or array, but not text."""
    return (isinstance(value, Sequence) and not isinstance(value, str | bytes)) or getattr(
        value, "ndim", 0
    ) > 0


def parse_pattern(pattern: Any, law: Source, of: str) -> Pairs | Modulated | None:
    """Return the pattern of a flow from the argument of `Network.flow`: pairs, or a mapping with
    the kind and its values.
    """
    what = f"pattern of {of}"
    if _hears_noise(law):
        if pattern is not None and not isinstance(pattern, Modulated):
            raise InvalidInput(
                f"{what} is given, but {law.name} sets its own rate; its noise follows from the "
                f"seed"
            )
        return Modulated("noise", (("interval", law.parameter("interval")),))
    if pattern is None:  # a law of random traffic carries its own
        if not law.traffic:
            return None
        values = {k: law.parameter(k) for k in _KINDS.get(law.traffic, ())}
        pattern = {"kind": law.traffic, **values}
    if law.states:
        raise InvalidInput(
            f"{what} is given, but {law.name} sets its own rate; patterns are for flows of CBR"
        )
    if not isinstance(pattern, Mapping):
        return pattern if isinstance(pattern, Modulated) else series(pattern, what, positive=False)
    kind, values = pattern.get("kind"), {k: v for k, v in pattern.items() if k != "kind"}
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UnknownName(
            f"{what} is of kind {shown(kind)}; "
            f"{near(kind if isinstance(kind, str) else '', _KINDS)}"
        )
    if odd := {*values} ^ {*_KINDS[kind]}:
        verb = "has no" if min(odd) in values else "lacks its"
        raise UnknownName(f"{what}: {kind} {verb} {min(odd)!r}; it takes {', '.join(_KINDS[kind])}")
    numbers = {
        k: quantity(values[k], unit, f"{what}: {k}", positive=True)
        for k, unit in _KINDS[kind].items()
    }
    if numbers.get("shape", 2.0) <= 1:
        raise InvalidInput(
            f"{what}: shape is {values['shape']!r}; give more than 1, else periods have no mean"
        )
    return Modulated(kind, tuple(numbers.items()))


@per_structure
def _hears_noise(law: Any) -> bool:
    return any(noise in symbols_of(f) for _, f in law.expressions())
