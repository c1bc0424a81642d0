"""``fluidcc doctor``: where compiled code lies, what is installed, and whether a run works."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from re import match
from time import perf_counter, process_time

from fluidcc.base.errors import InvalidInput
from fluidcc.base.extras import command
from fluidcc.base.progress import patiently
from fluidcc.base.version import __version__
from fluidcc.numerics.compiling import cache_folder
from fluidcc.sweeps.execute import cores

Rows = list[tuple[str, str]]
PACKAGE = Path(__file__).parents[1]
EXTRAS = ("certify", "store", "cluster", "explore")  # the others are for who changes fluidcc
COMPILED = ("*.nbi", "*.nbc")  # numba's index and data files


def examine() -> Rows:
    """Return what there is to know of this installation, as pairs of a name and a text."""
    return [
        ("fluidcc", f"{__version__} in {PACKAGE}"),
        ("Python", f"{platform.python_version()} on {platform.platform()}"),
        ("cores", str(cores())),
        *_packages(),
        ("cache folder", _folder(cache_folder())),
        ("compiled beside the package", _size(_compiled(PACKAGE))),
        ("a test run", _run()),
    ]  # fmt: skip


def clean() -> str:
    """Empty the cache folder, remove compiled files beside the package, and print their size.

    Raises
    ------
    InvalidInput
        If the cache folder holds something that fluidcc did not write.
    """
    folder = cache_folder()
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    strange = [path for path in files if not _ours(path)]
    if strange:
        raise InvalidInput(
            f"{folder} holds {strange[0].name}, which fluidcc did not write; move it away, or "
            "delete the folder yourself"
        )
    compiled = [*files, *_compiled(PACKAGE)]
    said = _size(compiled)
    for path in compiled:
        path.unlink(missing_ok=True)
    if folder.is_dir():
        shutil.rmtree(folder)
    return f"{said} deleted; the next run compiles anew"


def _packages() -> Iterator[tuple[str, str]]:
    """What fluidcc needs and what each extra adds: the version, or how to install it."""
    missing: dict[str, list[str]] = {}
    for text in requires("fluidcc") or ():
        name = match(r"[\w.-]+", text)
        extra = match(r".*extra == ['\"](\w+)", text)
        if name is None or (extra and extra[1] not in EXTRAS):
            continue
        try:
            found = version(name[0])
        except PackageNotFoundError:
            missing.setdefault(extra[1] if extra else "", []).append(name[0])
            continue
        yield name[0], found
    for one, names in missing.items():
        what = f"fluidcc[{one}]" if one else "fluidcc"
        yield what, f"without {', '.join(names)}: {command(one)}"


def _folder(folder: Path) -> str:
    if not folder.exists():
        return f"{folder}, not made yet"
    writable = "" if os.access(folder, os.W_OK) else ", which cannot be written"
    return f"{folder}{writable}: {_size([p for p in folder.rglob('*') if p.is_file()])}"


def _compiled(folder: Path) -> list[Path]:
    return [path for kind in COMPILED for path in folder.rglob(kind)]


def _ours(path: Path) -> bool:
    """Whether a file of the cache folder is one that fluidcc or numba writes there."""
    kinds = (".nbi", ".nbc", ".py", ".pyc", ".done", ".lock")
    return path.suffix in kinds or path.suffix.startswith(".tmp")


def _size(files: list[Path]) -> str:
    size = sum(path.stat().st_size for path in files)
    return f"{len(files)} files, {size / 1e6:.1f} MB"


def _run() -> str:
    """Run one flow on one link against its exact solution, and say how long it took."""
    began, used = perf_counter(), process_time()
    from fluidcc.links import DropTail
    from fluidcc.network import Network
    from fluidcc.simulation.simulate import simulate
    from fluidcc.sources import CBR

    net = Network().link("l", DropTail, capacity=1e6, delay=0.01)
    net.flow("a", CBR(rate=1.5e6), route=["l"], return_delay=0.01)
    with patiently("a test run, which compiles the solver the first time"):
        queue = float(simulate(net, 2.0, samples=3).queueing_delay[-1, 0])
    right = abs(queue - 1.0) < 1e-6  # 0.5 Mbit/s too much for 2 s at 1 Mbit/s
    verdict = "right" if right else f"WRONG: a queue of {queue:.6g} s where 1 s is right"
    return f"{verdict}, in {perf_counter() - began:.1f} s ({process_time() - used:.1f} s of a core)"
