"""Text with units, read at the border: inside, everything is in seconds, bits and packets.

Prefixes are decimal: 1 kbit is 1000 bit, 1 KB is 1000 bytes (8000 bit), as the papers' "packets of
1 KB" are read here; 1 KiB is 1024 bytes. ``b`` is a bit and ``B`` a byte. A capital ``K`` is
accepted for kilo; ``m`` is milli and therefore no prefix of bits, so that "3 mbps" is refused
instead of read as 3 bits in a thousand seconds.
"""

from __future__ import annotations

import math
import re
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, NamedTuple

from fluidcc.base.arguments import LONGEST, shown
from fluidcc.base.errors import UnitsError


class Dimension(NamedTuple):
    """Exponents of the three base units."""

    bit: int = 0
    s: int = 0
    packet: int = 0


_BIT, _S, _PACKET = Dimension(bit=1), Dimension(s=1), Dimension(packet=1)
_PACKET_SIZE = Dimension(bit=1, packet=-1)
_DECIMAL = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
_SMALL = {"m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9}
_LARGE = _DECIMAL | _BINARY
_PREFIXES = {  # as written, from the largest down
    "bit": {**{p: _DECIMAL[p] for p in "TGMk"}, "": 1.0},
    "s": {"": 1.0, "m": 1e-3, "µ": 1e-6, "n": 1e-9},
}


def _table() -> dict[str, tuple[float, Dimension]]:
    """Return every unit that can be written, with its size in base units."""
    bases: list[tuple[tuple[str, ...], float, Dimension, dict[str, float]]] = [
        (("bit", "bits", "b"), 1.0, _BIT, _LARGE),
        (("B", "byte", "bytes"), 8.0, _BIT, _LARGE),
        (("bps",), 1.0, Dimension(bit=1, s=-1), _LARGE),
        (("Bps",), 8.0, Dimension(bit=1, s=-1), _LARGE),
        (("packet", "packets", "pkt", "pkts"), 1.0, _PACKET, _DECIMAL),
        (("s", "sec"), 1.0, _S, _SMALL),
        (("second", "seconds"), 1.0, _S, {}),
        (("min", "minute", "minutes"), 60.0, _S, {}),
        (("h", "hour", "hours"), 3600.0, _S, {}),
        (("Hz",), 1.0, Dimension(s=-1), _DECIMAL),
        (("1",), 1.0, Dimension(), {}),
        (("%",), 0.01, Dimension(), {}),
    ]
    return {
        prefix + name: (scale * size, dim)
        for names, size, dim, prefixes in bases
        for prefix, scale in {"": 1.0, **prefixes}.items()
        for name in names
    }


_UNITS = _table()
_NUMBER = re.compile(
    r"\s*([+-]?(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|[+-]?inf(?:inity)?\b|[+-]?nan\b)"
    r"\s*(.*?)\s*$"
)
_EXAMPLES = {
    Dimension(bit=1, s=-1): ("a rate", "3.5 Mbit/s"),
    Dimension(s=1): ("a time", "25 ms"),
    Dimension(bit=1): ("an amount of data", "20 KB"),
    Dimension(packet=1): ("a number of packets", "130 packets"),
    Dimension(bit=1, packet=-1): ("a packet size", "1 KB"),
    Dimension(packet=1, s=-1): ("a packet rate", "100 packets/s"),
    Dimension(s=-1): ("a frequency", "2 Hz"),
    Dimension(): ("a plain number", "0.1"),
}


def dimension(unit: str) -> Dimension:
    """Return the exponents of bit, second and packet in a unit.

    Parameters
    ----------
    unit : str
        Such as ``"bit/s"``, ``"s^-1"``, ``"bit/(packet*s)"`` or ``"1"``.

    Raises
    ------
    UnitsError
        If the text is no unit.

    Examples
    --------
    >>> dimension("Mbit/s")
    Dimension(bit=1, s=-1, packet=0)
    """
    return _parse(unit)[1]


def dimension_of(text: str) -> Dimension | None:
    """Return the dimension of a quantity written as text; None without a unit, or where the text
    cannot be read.

    For arguments that may be given in more than one way, such as a buffer in packets or in seconds.
    """
    match = _NUMBER.match(text)
    try:
        return dimension(match[2]) if match and match[2] else None
    except UnitsError:
        return None


@lru_cache(maxsize=256)
def _parse(unit: str) -> tuple[float, Dimension]:
    """Return the size in base units and dimension of a product of powers; what follows ``/``
    divides, in brackets or alone.
    """
    size, exponents = 1.0, [0, 0, 0]
    group, sign, inside, awaited = (
        1,
        1,
        False,
        True,
    )  # sign of a bracket and in it; whether a factor must come
    tokens = re.findall(r"[*/()]|[^\s*/()]+", unit.replace("**", "^").replace("·", "*"))
    for token in tokens:
        if token in ("*", "/"):
            if awaited:
                raise UnitsError(f"{shown(unit)} is no unit")
            sign, awaited = 1 if token == "*" else -1, True
        elif token in ("(", ")"):
            if inside != (token == ")") or (inside and awaited):
                raise UnitsError(f"{shown(unit)} is no unit")
            inside = not inside
            group, sign, awaited = sign if inside else 1, 1, inside
        else:
            factor = re.fullmatch(r"([^^]+)(?:\^([+-]?[0-9]))?", token)
            if factor is None or factor[1] not in _UNITS:
                near = get_close_matches(token.partition("^")[0][:LONGEST], _UNITS, n=2, cutoff=0.6)
                raise UnitsError(
                    f"{shown(token)} is no unit" + (f" (near: {', '.join(near)})" if near else "")
                )
            n = group * sign * int(factor[2] or 1)
            size *= _UNITS[factor[1]][0] ** n
            exponents = [a + n * b for a, b in zip(exponents, _UNITS[factor[1]][1], strict=True)]
            sign, awaited = 1, False
    if inside or (awaited and tokens) or not 0 < size < math.inf:
        raise UnitsError(f"{shown(unit)} is no unit")
    return size, Dimension(*exponents)


def to_si(
    value: Any,
    unit: str,
    what: str = "value",
    *,
    packet: float | None = None,
    allow_inf: bool = False,
) -> float:
    """Return a number, or text with a unit, as a float in SI units (bit, s, packet).

    Parameters
    ----------
    value : float or str
        A number is taken to be in `unit` already; text needs a unit, but for a plain number.
    unit : str
        The wanted unit, made of bit, s and packet: ``"bit/s"``, ``"s"``, ``"bit"``, ``"packet"``,
        ``"1"``, ...
    what : str
        Names the quantity in messages, such as ``"capacity of link 'a'"``.
    packet : float, optional
        Packet size [bit], where packets may be given for bits (a buffer of "130 packets").
    allow_inf : bool
        Whether infinity is a possible value.

    Raises
    ------
    UnitsError
        If the text cannot be read, has another dimension, or the value is NaN or infinite.

    Examples
    --------
    >>> to_si("3.5 Mbit/s", "bit/s"), to_si("25 ms", "s"), to_si("130 packets", "bit", packet=8000)
    (3500000.0, 0.025, 1040000.0)
    >>> to_si("25 ms", "bit/s", "capacity of link 'a'")
    Traceback (most recent call last):
    ...
    fluidcc.base.errors.UnitsError: capacity of link 'a' is '25 ms', a time; give a rate in bit/s,
    such as '3.5 Mbit/s'
    """
    if type(value) is float and math.isfinite(value):  # as most are, and in a sweep nearly all
        return value
    if isinstance(value, str):
        number, size = _read(value, unit, what, packet)
        result = float(number) * size
        allow_inf = allow_inf and "inf" in number  # not one of too many digits
    else:
        try:
            if (
                isinstance(value, bytes)
                or getattr(value, "shape", ()) != ()
                or "bool" in type(value).__name__
            ):
                raise TypeError
            result = float(value)
        except (TypeError, ValueError, OverflowError):
            raise UnitsError(f"{what} is {shown(value)}; give {_right(unit)}") from None
    if math.isnan(result) or (math.isinf(result) and not allow_inf):
        raise UnitsError(f"{what} is {shown(value)}; give a finite number: {_right(unit)}")
    return result


def _right(unit: str) -> str:
    """Return what would be right, for messages."""
    kind, example = _EXAMPLES.get(dimension(unit), ("a number", f"2 {unit}"))
    return (
        f"{kind}, such as {example!r}" if unit == "1" else f"{kind} in {unit}, such as {example!r}"
    )


def _read(text: str, unit: str, what: str, packet: float | None) -> tuple[str, float]:
    """Return the number in a text, and what one of its units is in `unit`."""
    match = _NUMBER.match(text)
    if match is None:
        raise UnitsError(
            f"{what} is {shown(text)}, which starts with no number; give {_right(unit)}"
        )
    number, given = match.groups()
    if not given:
        if dimension(unit) != Dimension():
            raise UnitsError(f"{what} is {shown(text)}, text without a unit; give {_right(unit)}")
        return number, 1.0
    try:
        size, dim = _parse(given)
    except UnitsError as error:
        raise UnitsError(f"{what} is {shown(text)}, where {error}; give {_right(unit)}") from None
    wanted = dimension(unit)
    if dim == wanted or (
        wanted == _PACKET_SIZE and dim == _BIT
    ):  # "1 KB" says a packet size well enough
        return number, size
    swapped = dim.packet - wanted.packet
    if dim.s == wanted.s and dim.bit + swapped == wanted.bit:
        if packet is None:
            raise UnitsError(
                f"{what} is {shown(text)}, and no packet size is known here; give {_right(unit)}"
            )
        return number, size * packet**swapped
    kind, _ = _EXAMPLES.get(dim, (f"a quantity in {shown(given)[1:-1]}", ""))
    data = wanted == _S and dim in (_BIT, _PACKET)  # a threshold of a queue, say
    drained = " (a queue of n bits takes n/capacity)" if data else ""
    raise UnitsError(f"{what} is {shown(text)}, {kind}; give {_right(unit)}{drained}")


def format_si(value: float, unit: str, digits: int = 4) -> str:
    """Return a value in SI units as text for messages and axes.

    Parameters
    ----------
    value : float
        In `unit`.
    unit : str
        The first factor takes the prefix if it is bit (k, M, G, T) or s (m, µ, n).
    digits : int
        Significant digits.

    Examples
    --------
    >>> format_si(3.5e6, "bit/s"), format_si(0.025, "s"), format_si(0.1, "1")
    ('3.5 Mbit/s', '25 ms', '0.1')
    """
    if unit == "1":
        return f"{value:.{digits}g}"
    first = "" if "^" in unit else re.split(r"[*/\s]", unit)[0]
    scales = _PREFIXES.get(first, {"": 1.0})
    rounded, prefix = abs(float(f"{value:.{digits - 1}e}")), ""
    if 0 < rounded < math.inf:
        prefix = next((p for p, scale in scales.items() if scale <= rounded), [*scales][-1])
    return f"{value / scales[prefix]:.{digits}g} {prefix}{unit}"
