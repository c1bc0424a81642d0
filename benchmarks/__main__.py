"""``python -m benchmarks [part ...] [--write FILE]``: the speed tables, measured here; ``--help``
names the parts.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from functools import partial
from importlib import metadata
from pathlib import Path

from benchmarks import cluster, delay, sweep
from benchmarks.binomial import formulas, intervals
from benchmarks.large import boundary, large
from benchmarks.reference.cases import P1, P2
from benchmarks.speed import Row, Skipped, array_step, calls, first_result, ratio, scaling
from benchmarks.stability import stability

PARTS: dict[str, list[Callable[[], Iterator[Row]]]] = {
    "calls": [calls],
    "ratio": [lambda: ratio(P1), lambda: ratio(P2)],
    "array": [array_step],
    "first": [first_result],
    "scaling": [scaling],
    "large": [large],
    "chart": [sweep.chart, boundary],
    "sweep": [sweep.trajectories, sweep.margin_points],
    **{f"cluster-{name}": [partial(cluster.cluster, name)] for name in cluster.CASES},
    "cluster-job": [cluster.job],
    "stability": [stability],
    "delay": [delay.mackey_glass, delay.many_lags, delay.mosquitoes],
    "formulas": [formulas],
    "intervals": [intervals],
}


def versions() -> Iterator[str]:
    """What is measured and what it is compared with, as far as that is here."""
    for name in ("fluidcc", "numpy", "scipy", "numba", "xarray", "jitcdde", "qpmr", "control"):
        with suppress(metadata.PackageNotFoundError):
            yield f"{name} {metadata.version(name)}"
    if octave := shutil.which("octave-cli"):
        told = subprocess.run([octave, "--version"], capture_output=True, text=True).stdout
        yield f"Octave {told.split('version ')[1].split()[0]}"


def circumstances() -> list[str]:
    """When it is measured, on what kind of machine, and with which versions."""
    kind = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return [
        f"{date.today()}, {kind}{load}",
        ", ".join([f"Python {platform.python_version()}", *versions()]),
    ]


def measured(parts: list[str]) -> Iterator[Row]:
    """The rows of parts; one that says why where a part cannot be measured here."""
    for part in parts:
        for rows in PARTS[part]:
            try:
                yield from rows()
            except Skipped as reason:
                yield Row(part, f"skipped: {reason}")


def main() -> None:
    """Print the table, and write it where that is asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all by default"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="a table in Markdown")
    given = parser.parse_args()
    for unknown in set(given.parts) - set(PARTS):
        parser.error(f"there is no part {unknown!r}; there are {', '.join(PARTS)}")
    told = circumstances()
    print(*told, sep="\n")
    told += ["| what | value | wanted | |\n|---|---|---|---|"]
    for row in measured(given.parts or list(PARTS)):
        verdict = "" if row.met is None else "met" if row.met else "MISSED"
        print(f"{row.what:<20} {row.value:<72} {row.wanted:<10} {verdict}".rstrip(), flush=True)
        told[-1] += f"\n| {row.what} | {row.value} | {row.wanted} | {verdict} |"
    if given.write:
        given.write.write_text("\n\n".join(told) + "\n", "utf-8")


if __name__ == "__main__":
    main()
