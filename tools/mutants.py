"""Apply small mutations to the package, one at a time, and see whether its tests notice.

    python tools/mutants.py [-j 2] [-k TEXT] [--table FILE] [--no-base]

``tests/mutants.toml`` is the table. A row has the `room` that is mutated (a folder of
``fluidcc/``), the text to `find` there, which must occur once (spaces and line ends do not count),
what to `replace` it with, the `tests` that are to notice, and `why` it matters; a mutation that
changes nothing observable has the reason as `survives`. A row whose text is not found, or not once,
is an error: the table is to be maintained. MUTANTS names another table.

mutmut and cosmic-ray are not used: they mutate in place by line, know nothing of the code that
numba keeps on disk, and would run for weeks over compiled rooms. Here a mutation recompiles only
its file and the files that import it.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import multiprocessing as mp
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(os.environ.get("MUTANTS", ROOT / "tests" / "mutants.toml"))
LEFT_OUT = {".git", ".venv", ".cachehome", ".mypy_cache", ".pytest_cache", ".ruff_cache", "figures"}
LIMIT = 300.0  # seconds for the tests of a row, on a machine that is busy with other things
FIELDS = {"room", "find", "replace", "tests", "why", "survives"}
HEAVY = ["numba", "scipy.optimize", "sympy", "xarray", "pytest"]  # loaded once


def main() -> int:
    """Run the table; 1 if a row is wrong or a mutation survives without a reason."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-j", type=int, default=1, help="how many at a time")
    parser.add_argument("-k", default="", help="only rows in which this text stands")
    parser.add_argument("--table", type=Path, help="where to write the outcome, as Markdown")
    parser.add_argument("--no-base", action="store_true", help="without the run of intact code")
    given = parser.parse_args()
    rows = [row for row in read() if given.k in " ".join(map(str, row.values()))]
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(HEAVY)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        work = Path(folder)
        os.environ["FLUIDCC_CACHE_DIR"] = str(work / "cache")
        with contextlib.suppress(FileNotFoundError):
            shutil.copytree(_cache(), work / "cache")
        if not given.no_base:
            every = sorted({test for row in rows for test in row["tests"]})
            if (state := run(context, work, {"tests": every}, 0)[0]) != "survived":
                print(f"the tests fail on the intact package ({state}); see {work}")
                return 2
        with ThreadPoolExecutor(given.j) as pool:
            jobs = [pool.submit(run, context, work, row, k) for k, row in enumerate(rows, 1)]
            outcomes = []
            for k, (row, job) in enumerate(zip(rows, jobs, strict=True), 1):
                state, seconds, by = job.result()
                if state == "survived" and "survives" in row:
                    state = "equivalent"
                outcomes.append((row, state, seconds, by))
                said = f"{row['room']}: {row['find']!r} -> {row['replace']!r}"
                print(f"{k:3}/{len(rows)} {state:15} {seconds:5.0f} s  {said}  {by}", flush=True)
    text = report(outcomes)
    print(text)
    if given.table:
        given.table.write_text(text + "\n", "utf-8")
    return int(any(state not in ("killed", "equivalent") for _, state, _, _ in outcomes))


def read() -> list[dict[str, Any]]:
    """The rows of the table, each with the fields that it must have."""
    rows: list[dict[str, Any]] = tomllib.loads(TABLE.read_text("utf-8"))["mutant"]
    for row in rows:
        if not set(row) >= FIELDS - {"survives"} or not set(row) <= FIELDS:
            raise SystemExit(f"a row has the fields {sorted(row)}; it needs {sorted(FIELDS)}")
        if missing := [t for t in row["tests"] if not (ROOT / t.partition("::")[0]).exists()]:
            raise SystemExit(f"there are no tests {', '.join(missing)}")
    return rows


def run(context: Any, work: Path, row: dict[str, Any], number: int) -> tuple[str, float, str]:
    """Mutate a copy of the package, and run the tests of a row on it.

    Returns
    -------
    tuple
        "killed", "survived", "undecided", "no longer found" or "not unique"; the seconds that it
        took; and the test that noticed.
    """
    began = perf_counter()
    copy, changed = work / str(number), ""
    copy.mkdir()
    here = [str(path) for path in ROOT.iterdir() if path.name not in LEFT_OUT]
    subprocess.run(["cp", "-al", *here, copy], check=True)  # links: what is changed is written anew
    if "find" in row:
        found = places(copy / "fluidcc" / row["room"], row["find"])
        if len(found) != 1:
            return ("not unique" if found else "no longer found"), 0.0, ""
        path, start, end = found[0]
        text = path.read_text("utf-8")
        path.unlink()
        path.write_text(text[:start] + row["replace"] + text[end:], "utf-8")
        changed = str(path)
    log = copy / "log"
    child = context.Process(target=test, args=(copy, changed, row["tests"], log))
    child.start()
    child.join(LIMIT if changed else None)
    if late := child.is_alive():
        child.kill()
        child.join()
    said = re.findall(r"^(?:FAILED|ERROR) (\S+)", log.read_text("utf-8", "replace"), re.MULTILINE)
    state = "killed" if said else "undecided"  # a crash beside the tests is none of their doing
    if late or child.exitcode == 0:
        state = "undecided" if late else "survived"
    if number:
        shutil.rmtree(copy, ignore_errors=True)
    elif state != "survived":
        print(log.read_text("utf-8", "replace")[-6000:])
    return state, perf_counter() - began, said[0] if said else ""


def places(room: Path, wanted: str) -> list[tuple[Path, int, int]]:
    """Every file of a room in which a text stands, and from where to where."""
    words = re.findall(r"\w+|[^\w\s]", wanted)
    pattern = re.compile(r"(?<!\w)" + r"\s*".join(map(re.escape, words)) + r"(?!\w)" if
                         re.match(r"\w", wanted) and re.search(r"\w$", wanted) else
                         r"\s*".join(map(re.escape, words)))  # fmt: skip
    paths = [room] if room.suffix == ".py" else sorted(room.rglob("*.py"))
    return [
        (path, *match.span())
        for path in paths
        for match in pattern.finditer(path.read_text("utf-8"))
    ]


def test(copy: Path, changed: str, tests: list[str], log: Path) -> None:
    """Run tests on a copy of the package, in a process of their own."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.chdir(copy)
    os.nice(2)
    sys.path = [str(copy), *(path for path in sys.path if Path(path) not in (ROOT, ROOT / "tools"))]
    os.environ["PYTHONPATH"] = str(copy)
    keep_compiled(copy, changed)
    import pytest

    sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--no-header", *tests]))


def keep_compiled(copy: Path, changed: str) -> None:
    """Let numba take what it has compiled of the intact package, apart from a file and its callers.

    By itself the package compiles a room anew when any of its files changes.
    """
    from fluidcc.numerics import compiling

    assert Path(compiling.__file__).is_relative_to(copy)
    inner, whole = compiling._cache_of, compiling.source_hash.__wrapped__
    after = callers(copy, Path(changed)) if changed else set()
    intact, hashes = ROOT / "fluidcc" / "numerics", {}

    def intact_hash(room: str) -> str:
        if room not in hashes:
            compiling._PACKAGE, before = intact, compiling._PACKAGE
            hashes[room] = whole(room)
            compiling._PACKAGE = before
        return hashes[room]

    def cache_of(function: Any) -> Any:
        mark = "mutated " if Path(function.__code__.co_filename) in after else ""
        kept = compiling.source_hash
        compiling.source_hash = lambda room="": mark + intact_hash(room)
        try:
            return inner(function)
        finally:
            compiling.source_hash = kept

    compiling._cache_of = cache_of


def callers(copy: Path, changed: Path) -> set[Path]:
    """A file, and those that import it, directly or not."""
    imports: dict[Path, set[str]] = {}
    for path in (copy / "fluidcc" / "numerics").rglob("*.py"):
        own = path.relative_to(copy).with_suffix("").parts
        imports[path] = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                above = own[: -node.level] if node.level else ()
                module = ".".join([*above, *([node.module] if node.module else [])])
                imports[path] |= {module, *(f"{module}.{a.name}" for a in node.names)}
    found, new = {changed}, {changed}
    while new:
        names = {".".join(p.relative_to(copy).with_suffix("").parts) for p in new}
        new = {path for path, used in imports.items() if used & names} - found
        found |= new
    return found


def report(outcomes: list[tuple[dict[str, Any], str, float, str]]) -> str:
    """Counts by room, and every row that is neither killed nor equivalent."""
    states = ["killed", "equivalent", "survived", "undecided", "no longer found", "not unique"]
    rooms = sorted({row["room"].partition("/")[0] for row, *_ in outcomes})
    lines = [f"| room | {' | '.join(states)} |", f"|---|{'--:|' * len(states)}"]
    total: Counter[str] = Counter()
    for room in rooms:
        count = Counter(s for row, s, *_ in outcomes if row["room"].partition("/")[0] == room)
        total += count
        lines.append(f"| {room} | {' | '.join(str(count[state]) for state in states)} |")
    lines.append(f"| all | {' | '.join(str(total[state]) for state in states)} |")
    for row, state, _, by in outcomes:
        if state not in ("killed", "equivalent"):
            lines.append(f"- {state} {row['room']}: `{row['find']}` -> `{row['replace']}` {by}")
    decided = max(sum(total.values()) - total["equivalent"], 1)
    return "\n".join([*lines, f"{100 * total['killed'] / decided:.1f} % killed"])


def _cache() -> Path:
    """Folder of the laws' compiled kernels: that of the tests."""
    return ROOT / ".pytest_cache" / "compiled"


if __name__ == "__main__":
    sys.exit(main())
