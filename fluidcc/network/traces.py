"""Measured capacities of links, from files: two columns of numbers, or mahimahi's traces."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import InvalidInput, UnitsError
from fluidcc.base.units import Dimension, dimension_of, to_si
from fluidcc.network.patterns import Pairs, ask_for_units, quantity

MAHIMAHI = 1500 * 8.0  # [bit] a packet of its traces
SAME = 1e-9  # relative difference that is rounding
MOST = 1e6  # bins
_RATE = Dimension(bit=1, s=-1)
Floats = NDArray[np.floating]


@explained
def read_trace(path: str | Path, bin: Any = "100 ms", *, unit: str = "bit/s") -> Pairs:
    """Return the capacity that a file gives over time, for the argument `capacity` of
    `Network.link`.

    A capacity of 0 is an outage, in which a link keeps a ten-thousandth of its largest capacity:
    see `Network.link`.

    Parameters
    ----------
    path : str or Path
        A trace of mahimahi, in which each line is the millisecond of an opportunity to deliver a
        packet of 1500 bytes; or two columns, apart by commas, semicolons or blanks: a time [s], and
        the capacity from then on. Lines that begin with ``#``, and a first line of headings, are
        passed over. In two columns the first row counts as time 0, whatever its time is; of rows
        of one time the last counts; the last row holds for ever.
    bin : float or str
        Capacities are means over this time [s], in bins that begin at time 0. What a trace of
        mahimahi has beyond its last whole bin gets the mean over this time before its end, which
        then holds for ever.
    unit : str
        Unit of the second column, such as ``"Mbit/s"``.

    Returns
    -------
    tuple of (float, float)
        Times [s], the first of them 0, and the capacity from then on [bit/s]; a bin whose capacity
        is that of the one before is left out.

    Raises
    ------
    InvalidInput
        If the file cannot be read; the message names the line.

    Examples
    --------
    >>> import tempfile
    >>> import fluidcc as fc
    >>> file = Path(tempfile.mkdtemp(), "lte.csv")
    >>> _ = file.write_text("time,capacity\\n0,6\\n1,0\\n1.5,4\\n2.5,4\\n")
    >>> fc.read_trace(file, unit="Mbit/s")
    ((0.0, 6000000.0), (1.0, 0.0), (1.5, 4000000.0))
    """
    width = quantity(bin, "s", "bin", positive=True)
    ask_for_units({"bin": bin})
    size = _size(unit)
    rows = _rows(path)
    if rows.shape[1] == 1:
        times, rates, end = _packets(rows[:, 0])
    else:
        times, rates = (rows - [rows[0, 0], 0]).T
        end = times[-1]
    count = end / width * (1 - SAME)
    if count > MOST:
        raise InvalidInput(
            f"bin is {shown(bin)}, of which trace {path} has {count:.0e}; give a longer time"
        )
    edges = width * np.arange(int(np.ceil(count)) + 1)
    done = np.append(0.0, np.cumsum(size * rates[:-1] * np.diff(times)))

    def until(at: Any) -> Any:
        """What can be delivered up to some times [bit]."""
        late = np.maximum(np.asarray(at) - times[-1], 0.0)
        return np.interp(at, times, done) + size * rates[-1] * late

    means = np.diff(until(edges)) / width
    if rows.shape[1] == 2:
        means = np.append(means, size * rates[-1])
    elif end < edges[-1] * (1 - SAME):
        means[-1] = (until(end) - until(max(end - width, 0.0))) / min(width, end)
    means[means < SAME * means.max()] = 0.0
    pairs: list[tuple[float, float]] = []
    for time, mean in zip(edges.tolist(), means.tolist(), strict=False):
        value = float(f"{mean:.9g}")
        if not pairs or value != pairs[-1][1]:
            pairs.append((time, value))
    return tuple(pairs)


def _size(unit: Any) -> float:
    """Return how many bits a second a unit is."""
    try:
        if not isinstance(unit, str) or not unit.strip() or dimension_of(f"1 {unit}") != _RATE:
            raise UnitsError
        return to_si(f"1 {unit}", "bit/s")
    except UnitsError:
        raise UnitsError(
            f"unit is {shown(unit)}; give that of the second column, such as 'Mbit/s'"
        ) from None


def _packets(due: Floats) -> tuple[Floats, Floats, float]:
    """Return times and capacities of a trace of mahimahi, and its end: what is due at a
    millisecond is served in the one before it.
    """
    last, many = np.unique(np.maximum(due, 1), return_counts=True)
    times = np.append(0.0, np.column_stack([last - 1, last]).ravel() / 1e3)
    rates = np.append(0.0, np.column_stack([MAHIMAHI * 1e3 * many, 0 * many]).ravel())
    return times, rates, float(times[-1])


def _rows(path: str | Path) -> Floats:
    """Return the numbers of a file, a row a line."""
    if not isinstance(path, str | Path):
        raise InvalidInput(f"the trace is {shown(path)}; give the path of a file")
    try:
        lines = Path(path).read_text("utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        why = str(getattr(error, "strerror", None) or "it is no text").lower()
        raise InvalidInput(f"trace {path}: {why}; give a file of text") from None
    rows: list[list[float]] = []
    heading = True
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            row = [float(cell) for cell in re.split(r"[,;\s]+", line.strip())]
        except ValueError:
            row = []
        if row or not heading:
            _check(row, rows, f"trace {path}, line {number} is {shown(line)}")
            rows.append(row)
        heading = False
    if not rows:
        raise InvalidInput(f"trace {path} holds no numbers; give a file with some")
    return np.array(rows)


def _check(row: list[float], before: list[list[float]], what: str) -> None:
    columns = len(before[0]) if before else len(row)
    if len(row) != columns or columns not in (1, 2) or not np.isfinite(row).all():
        raise InvalidInput(f"{what}; give a time and a capacity, or a millisecond, in each line")
    if columns == 1 and row[0] % 1:
        raise InvalidInput(f"{what}; give whole milliseconds, or a capacity after each time")
    if row[-1] < 0:
        raise InvalidInput(f"{what}; give no negative numbers")
    if before and row[0] < before[-1][0]:
        raise InvalidInput(f"{what}, and comes after {before[-1][0]:g}; sort the lines by time")
