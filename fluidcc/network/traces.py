"""Measured capacities of links, from files: two columns of numbers, or mahimahi's traces."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import InvalidInput
from fluidcc.base.units import to_si
from fluidcc.network.patterns import Pairs, quantity

MAHIMAHI = 1500 * 8.0  # [bit] a packet of its traces
SAME = 1e-9  # relative difference that is rounding
Floats = NDArray[np.floating]


@explained
def read_trace(path: str | Path, bin: Any = "100 ms", *, unit: str = "bit/s") -> Pairs:
    """Return the capacity that a file gives over time, for the argument `capacity` of
    `Network.link`.

    A capacity of 0 is an outage, in which a link keeps a ten-thousandth of its largest capacity:
    see `Network.link`. The last capacity holds after the end of the file.

    Parameters
    ----------
    path : str or Path
        A trace of mahimahi, in which each line is the millisecond of an opportunity to deliver a
        packet of 1500 bytes; or two columns, apart by commas, semicolons or blanks: a time [s], and
        the capacity from then on. Lines that begin with ``#``, and a first line of headings, are
        passed over. The first row stands at time 0, whatever its time is.
    bin : float or str
        Capacities are means over this time [s].
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
    size = to_si(f"1 {unit}", "bit/s", "unit")
    rows = _rows(path)
    times, rates = _packets(rows[:, 0]) if rows.shape[1] == 1 else (rows - [rows[0, 0], 0]).T
    steps = np.diff(times, append=times[-1] + (times[-1] - times[-2] if len(times) > 1 else width))
    ends = np.append(0.0, np.cumsum(steps))
    done = np.append(0.0, np.cumsum(size * rates * steps))
    whole = max(int(ends[-1] / width * (1 + SAME)), 1)
    edges = np.append(width * np.arange(whole), ends[-1])  # what is left over joins the last bin
    means = np.diff(np.interp(edges, ends, done)) / np.diff(edges)
    means[means < SAME * means.max()] = 0.0
    pairs: list[tuple[float, float]] = []
    for time, mean in zip(edges[:-1].tolist(), means.tolist(), strict=True):
        value = float(f"{mean:.9g}")
        if not pairs or value != pairs[-1][1]:
            pairs.append((time, value))
    return tuple(pairs)


def _packets(due: Floats) -> tuple[Floats, Floats]:
    """Return times and capacities of a trace of mahimahi: what is due at a millisecond is served
    in the one before it.
    """
    counts = np.bincount(np.maximum(due, 1).astype(int))[1:]
    return np.arange(len(counts)) / 1e3, MAHIMAHI * 1e3 * counts


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
    if before and (row[0] < before[-1][0] or (columns == 2 and row[0] == before[-1][0])):
        raise InvalidInput(f"{what}, and comes after {before[-1][0]:g}; sort the lines by time")
