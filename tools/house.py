"""Measure the structure of the package: what must be known to change one thing, rooms, floors,
circles of imports, copies of a network, and journeys of one parameter.

    python tools/house.py            print the table, and draw the rooms into figures/rooms.png
    python tools/house.py --limits   and fail where more is found than there may be

Tokens are those of Python's tokenize without comments, line ends and indentation. What must be
known is the tokens of the rooms that one has to understand to change a thing; each is a row of
`KNOWN`. A room is an entry of ``fluidcc/``. All imports count, those inside functions and under
TYPE_CHECKING too. Floors are the rooms on the longest chain of imports, a circle of rooms counting
as one. A circle is a set of files, or of rooms, that import one another, directly or not; the
package's own ``__init__``, which hands all names on, is in none. A journey is the number of the
package's files in which a warm call runs a function; copies of Network are those that a warm call
makes.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "fluidcc"
IGNORED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
# To change a thing one must know these rooms, or files, without those after the bar.
KNOWN = {
    "a verdict": "numerics/linear analysis | numerics/linear/ticking.py analysis/sampled.py",
    "multipliers of ticks": "numerics/linear/ticking.py analysis/sampled.py laws/sampled.py",
    "a limit cycle": "cycles numerics/periodic.py",
    "a certificate": "numerics/certify.py",
    "a condition": "conditions",
    "a run": "numerics/fluid simulation",
    "a law": "laws symbols.py sources links | laws/delay_equations.py laws/delay_system.py",
    "a proof": "proofs",
    "an equilibrium": "numerics/steady equilibria",
    "a sweep": "sweeps",
    "a network": "network",
    "solve_dde": "numerics/dde laws/delay_equations.py laws/delay_system.py",
    "everything": ".",
}
# Each number's name: what is wanted, and what there may be, which is lowered whenever something
# shrinks.
LIMITS = {
    "a verdict": (70_000, 77_270), "a limit cycle": (6_000, 9_260), "a condition": (7_000, 7_500),
    "multipliers of ticks": (8_600, 8_490),
    "a certificate": (2_250, 2_240), "a run": (48_000, 59_090), "a law": (40_000, 61_060),
    "a proof": (20_000, 20_600),
    "an equilibrium": (21_000, 27_700), "a sweep": (17_000, 20_370), "a network": (17_000, 16_820),
    "solve_dde": (21_000, 25_800), "everything": (355_000, 506_300),
    "lines over 100 columns": (0, 0), "rooms": (20, 20), "floors": (11, 11),
    "circles of files": (0, 0), "circles of rooms": (0, 0), "names of two classes": (0, 0),
    "copies: stability": (1, 1), "copies: equilibrium": (1, 1),
    "copies: a sweep of margins": (1, 1), "copies: a boundary of 22 steps": (22, 1),
    "files of simulate": (17, 18), "files of stability": (23, 25),
    "files of a sweep of margins": (28, 32), "lines of tests": (18_000, 31_800),
}  # fmt: skip
Graph = Mapping[str, set[str]]


def main() -> int:
    """Print the table; how many numbers are above what they may be, if that is asked."""
    found = {**known(PACKAGE), **structure(PACKAGE), **journeys()}
    code = [line for path in sorted(PACKAGE.rglob("*.py")) for line in lines(path)]
    found["lines over 100 columns"] = sum(len(line) > 100 for line in code)
    found["names of two classes"] = len(shared_names(PACKAGE))
    found["lines of tests"] = sum(len(lines(path)) for path in (ROOT / "tests").rglob("*.py"))
    print(f"| {'':30} | {'now':>8} | {'wanted':>8} | {'at most':>8} |")
    print(f"|{'-' * 32}|{'-' * 9}:|{'-' * 9}:|{'-' * 9}:|")
    for name, (wanted, most) in LIMITS.items():
        print(f"| {name:30} | {found[name]:8,} | {wanted:8,} | {most:8,} |")
    draw(rooms_of(PACKAGE)[1], ROOT / "figures" / "rooms.png")
    over = sum(found[name] > most for name, (_, most) in LIMITS.items())
    return over if "--limits" in sys.argv[1:] else 0


@cache
def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def known(package: Path) -> dict[str, int]:
    """Tokens that must be known to change each thing of `KNOWN`."""
    found = {}
    for name, text in KNOWN.items():
        some, _, others = text.partition("|")
        files = files_in(package, some.split()) - files_in(package, others.split())
        found[name] = sum(map(tokens, files))
    return found


def files_in(package: Path, places: Iterable[str]) -> set[Path]:
    """Files of Python at these places of a package, each a folder or a file."""
    found: set[Path] = set()
    for place in places:
        path = package / place
        found |= {path} if path.is_file() else {*path.rglob("*.py")}
    return found


@cache
def tokens(path: Path) -> int:
    """Tokens of a file without comments, line ends and indentation."""
    with tokenize.open(path) as file:
        return sum(token.type not in IGNORED for token in tokenize.generate_tokens(file.readline))


# --- imports --------------------------------------------------------------------------------------


def rooms_of(package: Path) -> tuple[Graph, Graph]:
    """Return what each file imports, and what each room does."""
    modules = {name_of(path, package): path for path in sorted(package.rglob("*.py"))}
    graph = {name: imports(name, path, modules) for name, path in modules.items()}
    rooms: dict[str, set[str]] = {}
    for name, others in graph.items():
        rooms.setdefault(room(name), set()).update(room(other) for other in others)
    own = package.name
    return {name: others - {own} for name, others in graph.items() if name != own}, rooms


def structure(package: Path) -> dict[str, int]:
    """Return the numbers of rooms, floors and circles of a package."""
    files, rooms = rooms_of(package)
    return {
        "rooms": len(below(rooms)),
        "floors": floors(rooms),
        "circles of files": sum(len(group) > 1 for group in groups(files)),
        "circles of rooms": sum(len(group) > 1 for group in groups(below(rooms))),
    }


def shared_names(package: Path) -> dict[str, list[str]]:
    """Names that classes of several files bear, with these files: a name stands for one thing."""
    borne: dict[str, list[str]] = {}
    for path in sorted(package.rglob("*.py")):
        for name in re.findall(r"^class (\w+)", path.read_text(), flags=re.MULTILINE):
            borne.setdefault(name, []).append(str(path.relative_to(package)))
    return {name: files for name, files in borne.items() if len(files) > 1}


def below(rooms: Graph) -> Graph:
    """Rooms without the package's own files, and what each imports, inside functions too."""
    own = {name: others - {name, "", "__main__"} for name, others in rooms.items()}
    return {name: others for name, others in own.items() if name not in ("", "__main__")}


def name_of(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def imports(name: str, path: Path, modules: Mapping[str, Path]) -> set[str]:
    """Modules of the package that a file imports, anywhere in it."""
    found = set()
    here = name.split(".")[: None if path.name == "__init__.py" else -1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                found.add(whole if whole in modules else base)
    return (found & modules.keys()) - {name}


def groups(graph: Graph) -> list[set[str]]:
    """Sets of nodes each of which leads to all others of its set."""
    reach = {node: reached(graph, node) for node in graph}
    found: list[set[str]] = []
    for node in graph:
        if not any(node in group for group in found):
            found.append(
                {node} | {other for other in reach[node] if node in reach.get(other, set())}
            )
    return found


def reached(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    todo = [start]
    while todo:
        new = graph.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def heights(graph: Graph) -> dict[str, int]:
    """Return the floor of each node: the longest chain below it, a set of `groups` as one."""
    sets = groups(graph)
    which = {node: i for i, group in enumerate(sets) for node in group}

    @cache
    def height(i: int) -> int:
        below = {which[other] for node in sets[i] for other in graph[node] if other in which} - {i}
        return 1 + max(map(height, below), default=0)

    return {node: height(i) for node, i in which.items()}


def floors(graph: Graph) -> int:
    return max(heights(graph).values())


def draw(rooms: Graph, path: Path) -> None:
    """Draw the rooms, each on its floor, with a line to every room that it imports."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    inside = {name: others for name, others in rooms.items() if name not in ("", "__main__")}
    levels: dict[int, list[str]] = {}
    for name, level in sorted(heights(inside).items()):
        levels.setdefault(level, []).append(name)
    at = {
        name: (4.0 * (k - (len(names) - 1) / 2), 1.3 * level)
        for level, names in levels.items()
        for k, name in enumerate(names)
    }
    figure, ax = plt.subplots(figsize=(7.5, 8))
    for name, others in inside.items():
        for other in others & inside.keys() - {name}:
            (x, y), (u, v) = at[name], at[other]
            near = abs(y - v) < 2
            bend = 0.0 if near else 0.22 if x >= u else -0.22
            line = {"arrowstyle": "-", "connectionstyle": f"arc3,rad={bend}"}
            line |= {"color": "0.35", "lw": 0.8} if near else {"color": "0.8", "lw": 0.6}
            ax.annotate("", (u, v), (x, y), arrowprops=line, zorder=1)
    for name, (x, y) in at.items():
        size = sum(
            len(lines(p)) for p in [*PACKAGE.glob(f"{name}/**/*.py"), *PACKAGE.glob(f"{name}.py")]
        )
        box = {"boxstyle": "round,pad=0.45", "fc": "white", "ec": "#1f4e79"}
        ax.text(x, y, f"{name}  {size / 1000:.1f}k", ha="center", va="center", bbox=box, zorder=2)
    ax.set(xlim=(-7, 7), ylim=(0.4, 1.3 * max(levels) + 0.9))
    ax.axis("off")
    figure.savefig(path, dpi=110, bbox_inches="tight")


# --- journeys -------------------------------------------------------------------------------------


def journeys() -> dict[str, int]:
    """Files that warm calls pass through, and copies of a network that they make."""
    sys.path.insert(0, str(ROOT))
    import fluidcc as fc

    net = fc.dumbbell([fc.LDCC] * 2, {"capacity": "3 Mbit/s"}, rtt="50 ms")
    grid, margins = {"eta": [0.1, 0.2]}, ["gain_margin", "phase_margin"]
    calls: dict[str, Callable[[], Any]] = {
        "simulate": lambda: fc.simulate(net, until=1),
        "stability": lambda: fc.stability(net),
        "equilibrium": lambda: fc.equilibrium(net),
        "a sweep of margins": lambda: fc.sweep(net, grid, margins, progress=False),
        "a boundary of 22 steps": lambda: fc.stability_boundary(net, "eta"),
    }
    files = {f"files of {name}": files_of(call) for name, call in calls.items()}
    return files | {f"copies: {name}": copies_in(call) for name, call in calls.items()}


def copies_in(call: Callable[[], Any]) -> int:
    """Networks that are made during a call, once what can be kept is."""
    from fluidcc.network.network import Network

    made, start = [], Network.__init__

    def noted(self: Network) -> None:
        made.append(self)
        start(self)

    call()
    Network.__init__ = noted  # type: ignore[method-assign]
    try:
        call()
    finally:
        Network.__init__ = start  # type: ignore[method-assign]
    return len(made)


def files_of(call: Callable[[], Any]) -> int:
    """Files of the package in which a function runs during a call, in any thread, once all is
    compiled and cached.
    """
    import threading

    call()
    seen: set[str] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return count_inside(seen, PACKAGE)


def count_inside(paths: Iterable[str], folder: Path) -> int:
    return sum(Path(path).is_relative_to(folder) for path in paths)


if __name__ == "__main__":
    raise SystemExit(main())
