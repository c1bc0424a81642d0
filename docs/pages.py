"""Write the pages that the library itself knows best: one a law, one a paper, the table of what the
papers have, that of passivity, and the API.

Sphinx runs `write` before it reads the sources (see conf.py). The pages lie in ``docs/made`` and
are not kept.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shutil
import textwrap
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sympy import latex
from tqdm import tqdm

import fluidcc as fc
from fluidcc import links, sources
from fluidcc.laws import Link, Source
from fluidcc.papers.model import claims_of

ROOT = Path(__file__).parents[1]
MADE = Path(__file__).parent / "made"
PAPERS = {
    "ldcc": ("LDCC: low-delay congestion control", "1_ldcc"),
    "binomial": ("Binomial congestion control: AIMD, IIAD, SQRT, ISCC", "3_binomial"),
    "fast": ("FAST and Vegas under persistent congestion", "4_fast"),
    "delay_aimd": ("Delay-based AIMD and H-TCP", "5_delay_aimd"),
    "ecf": ("P-AQM with explicit congestion feedback", "6_ecf"),
}
API = {
    "Networks": "Network dumbbell parking_lot two_queues read_trace Scenario count_packets",
    "Runs in time": "simulate compile synchronized solve_dde",
    "Equilibria": "equilibrium hold_trackers num.solve",
    "Stability": "stability linearize stability_boundary limit_cycle sampled_stability published "
    "undelayed DelayLTI",
    "Sweeps": "sweep",
    "Laws": "Source Link Law Jump Tick Let Steady prove with_estimator with_pause "
    "with_windowed_minimum marked_by_bytes",
    "Pictures": "plot",
    "Figures of merit": "metrics",
    "Closed forms": "formulas",
    "Claims": "claims.table claims.figure claims.data claims.reproduce",
    "Errors and warnings": "errors",
}


def write() -> None:
    """Write all pages anew."""
    shutil.rmtree(MADE, ignore_errors=True)
    for folder in ("models", "papers", "notebooks", "api"):
        (MADE / folder).mkdir(parents=True)
    models()
    vocabulary()
    passivity()
    papers()
    items()
    api()


def page(path: str, *parts: str) -> None:
    """Write a page from its parts, a blank line between them."""
    (MADE / f"{path}.md").write_text("\n\n".join(part for part in parts if part) + "\n", "utf-8")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    lines = [list(head), ["---"] * len(list(head)), *map(list, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def listing(*names: str, depth: int = 1) -> str:
    """Return a list of pages that Sphinx follows."""
    return f"```{{toctree}}\n:maxdepth: {depth}\n\n" + "\n".join(names) + "\n```"


# ---- models -------------------------------------------------------------------------------------


def models() -> None:
    """Write a page for each law, and the list of them."""
    parts = ["# Models: controllers and queue disciplines", MODELS]
    for title, room in (("Controllers", sources), ("Queue disciplines and prices", links)):
        names = sorted(room.__all__, key=str.lower)
        rows = [(f"[{n}](models/{n})", getattr(room, n).about) for n in names]
        parts += [f"## {title}", table(("law", "what it does"), rows)]
        for name in tqdm(names, desc=title):
            one_model(name, family(room, name))
    parts.append(
        "```{toctree}\n:hidden:\n\n"
        + "\n".join(
            f"models/{n}" for r in (sources, links) for n in sorted(r.__all__, key=str.lower)
        )
        + "\n```"
    )
    page("models", *parts)


MODELS = """Each page is made from the law itself: the equation that is solved is the equation that
is printed. A law is a name of the package (`fc.LDCC`); calling it with parameters gives another one
(`fc.LDCC(eta=0.2)`)."""


def family(room: Any, name: str) -> str:
    """Return the docstring of the module in which a law is defined."""
    for info in Path(room.__path__[0]).glob("*.py"):
        module = importlib.import_module(f"{room.__name__}.{info.stem}")
        if info.stem != "__init__" and name in getattr(module, "__all__", ()):
            return inspect.cleandoc(module.__doc__ or "")
    raise LookupError(f"no module of {room.__name__} exports {name}")


def one_model(name: str, about: str) -> None:
    """Write the page of a law."""
    law = getattr(fc, name)
    mathematics = law._repr_latex_().strip().removeprefix("$$").removesuffix("$$").strip()
    page(
        f"models/{name}",
        f"# {name}",
        law.about,
        about,
        "## Equations",
        f"```{{math}}\n{mathematics}\n```",
        "## Signals, states and parameters",
        signals(law),
        quantities(law),
        happenings(law),
        *at_work(law),
        f"## Reference\n\n{law.ref}" if law.ref else "",
    )


def signals(law: Any) -> str:
    """Return the table of the signals that a law uses."""
    used = set().union(*(f.free_symbols for _, f in law.expressions()))
    units, meaning = fc.symbols.SIGNAL_UNITS, fc.symbols.SIGNAL_MEANING
    rows = [(f"${latex(s)}$", meaning[s], unit(units[s])) for s in law.inputs if s in used]
    kind = "flow" if isinstance(law, Source) else "link"
    return (
        table(("signal", f"what the {kind} hears", "unit"), rows)
        if rows
        else (f"The {kind} hears nothing.")
    )


def quantities(law: Any) -> str:
    """Return the table of states and parameters with their values and units."""
    rows = [
        (
            f"${latex(s)}$",
            f"state: {law.meaning[s]}",
            f"${latex(law.initial.get(s, 0))}$ at first",
            unit(law.units[s]),
        )
        for s in law.states
    ] + [
        (f"${latex(p)}$", f"`{p}`: {law.meaning[p]}", f"{float(value):g}", unit(law.units[p]))
        for p, value in law.params.items()
    ]
    return table(("symbol", "what it is", "value", "unit"), rows) if rows else ""


def unit(text: str) -> str:
    """Return a unit as it is printed: nothing for plain numbers."""
    return "" if text == "1" else text


def happenings(law: Any) -> str:
    """Return what a law does at once: jumps and ticks."""
    said = [
        f"- When ${latex(jump.when)}$ rises through zero: "
        + ", ".join(f"${latex(z)} \\to {latex(f)}$" for z, f in jump.reset.items())
        for jump in law.jumps
    ] + [
        f"- Every ${latex(tick.every)}$ seconds: "
        + ", ".join(f"${latex(z)} \\to {latex(f)}$" for z, f in tick.update.items())
        for tick in law.ticks
    ]
    return "\n".join(said)


def at_work(law: Any) -> list[str]:
    """Return the equilibrium, the stability and a run of a law, in words and a figure."""
    net, code = small_network(law)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rest, verdict = attempt(lambda: fc.equilibrium(net)), attempt(lambda: fc.stability(net))
        figure = drawn(law, net)
    return [
        "## At work",
        f"```python\n{code}\n```",
        figure,
        "Equilibrium (`fc.equilibrium(net)`):",
        f"```text\n{rest}\n```",
        "Stability (`fc.stability(net)`):",
        f"```text\n{textwrap.fill(verdict, 78)}\n```",
    ]


def attempt(task: Any) -> str:
    """Return what a call gives, or the sentence with which it refuses."""
    try:
        return str(task())
    except fc.errors.FluidccError as error:
        return textwrap.fill(str(error), 96)


def small_network(law: Any) -> tuple[fc.Network, str]:
    """Return two flows on one link with a law at work, and the code that makes it."""
    if isinstance(law, Link):
        kind = "Kelly" if "price" in law.out else "ECF" if "factor" in law.out else "Reno"
        flows, link = f"[fc.{kind}] * 2", f'"law": fc.{law.name}, '
    else:
        price = fc.symbols.price in set().union(*(f.free_symbols for _, f in law.expressions()))
        reports = any(
            s.name.startswith("factor") for _, f in law.expressions() for s in f.free_symbols
        )
        on = "fc.DualLink" if price else "fc.PAQMECF" if reports else "fc.DropTail"
        flows, link = f"[fc.{law.name}] * 2", f'"law": {on}, '
    buffer = "" if "DualLink" in link or "PenaltyLink" in link else ', "buffer": "100 packets"'
    code = f"""net = fc.dumbbell(
    {flows},
    {{{link}"capacity": "4 Mbit/s"{buffer}}},
    rtt="50 ms",
)"""
    return eval(code.removeprefix("net = "), {"fc": fc}), code


def drawn(law: Any, net: fc.Network) -> str:
    """Draw a run of a network into a file, and return the text that shows it."""
    try:
        run = fc.simulate(net, "30 s")
    except fc.errors.FluidccError as error:
        return textwrap.fill(str(error), 96)
    figure = np.ravel(fc.plot.timeseries(run))[0].figure
    figure.savefig(MADE / "models" / f"{law.name}.svg", bbox_inches="tight")
    plt.close(figure)
    return f"```{{image}} {law.name}.svg\n:alt: rates and delays of two flows with {law.name}\n```"


# ---- signals ------------------------------------------------------------------------------------


def vocabulary() -> None:
    """Write the table of all that laws hear and say."""
    v = fc.symbols
    parts = ["# Signals and outputs", SIGNALS]
    for kind, inputs, outputs in (
        ("source", v.SOURCE_INPUTS, v.SOURCE_OUTPUTS), ("link", v.LINK_INPUTS, v.LINK_OUTPUTS),
    ):  # fmt: skip
        rows = [
            (f"${latex(s)}$", f"`{v.imported(s)}`", v.SIGNAL_MEANING[s], v.SIGNAL_UNITS[s])
            for s in inputs
        ]
        if kind == "source":
            trip = f"${latex(v.RTT)} = e + e_b$", f"`{v.imported(v.RTT)}`", "round-trip time", "s"
            rows.append(trip)
        parts += [f"## What a {kind} hears", table(("signal", "import", "meaning", "unit"), rows)]
        rows = [(f'`"{o}"`', v.OUTPUT_MEANING[o], v.OUTPUT_UNITS.get(o, "1")) for o in outputs]
        parts += [f"## What a {kind} says", table(("output", "meaning", "unit"), rows)]
    page("signals", *parts)


SIGNALS = """Laws are written in these symbols of `fluidcc.symbols`, and give the outputs by name,
as in `out={"rate": x}`. A signal of a source is that of the datum whose news comes now: its delay,
and the losses, marks and prices that it met. What routers say is as old as the way from them."""


# ---- passivity ----------------------------------------------------------------------------------


def passivity() -> None:
    """Write the table of what passivity says about each controller."""
    rows = []
    for name in tqdm(sorted(sources.__all__, key=str.lower), desc="Passivity"):
        net, _ = small_network(getattr(fc, name))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nearby = attempt(lambda net=net: fc.stability(net).passivity.verdict)
            rows.append((f"[{name}](models/{name})", *map(one_line, (nearby, storages(net)))))
    page("passivity", "# Passivity of each controller", PASSIVITY,
         table(("law", "near the equilibrium", "at all states"), rows))  # fmt: skip


PASSIVITY = """Two flows on the small network of each law's page, without communication delays.
*Near the equilibrium* is `fc.stability(net).passivity`: whether each user is strictly positive
real. *At all states* are the storage functions that are ready, and what `fc.undelayed(net).check`
finds: `repaired_storage()` for laws with a delay penalty, as LDCC's (`paper_storage()` is that of
its paper, which grows somewhere), and `price_storage()` for the primal, dual and primal-dual laws,
(12) to (14) of the LDCC paper. That no counterexample is found is evidence, not a proof; for
`price_storage()` what its proof assumes of a law is proved."""


def storages(net: fc.Network) -> str:
    """Return what becomes of each storage function that is ready for a network."""
    try:
        system = fc.undelayed(net)
    except fc.errors.FluidccError as error:
        return str(error)
    found, reasons = [], []
    for kind in ("paper_storage", "repaired_storage", "price_storage"):
        try:
            candidate = getattr(system, kind)()
        except fc.errors.Unsupported as error:
            reasons.append(str(error))
        else:
            found.append(f"`{kind}`: {system.check(candidate, samples=128).why}")
    return "; ".join(found) or f"no storage is ready: {reasons[-1]}"


def one_line(text: str) -> str:
    """Return a sentence as it can stand in a table."""
    return " ".join(text.split()).replace("|", "\\|")


# ---- papers -------------------------------------------------------------------------------------


def papers() -> None:
    """Write a page for each paper: its claims, and its notebook beside it."""
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        shutil.copy(notebook, MADE / "notebooks")
    text = (ROOT / "figures" / "claims.md").read_text("utf-8")
    counts = text.split("\n\n")[1]
    sections = dict(
        zip(
            re.findall(r"^## (\w+)$", text, re.M),
            re.split(r"^## \w+$", text, flags=re.M)[1:],
            strict=True,
        )
    )
    for name, (title, notebook) in PAPERS.items():
        page(
            f"papers/{name}",
            f"# {title}",
            f"Equations and figures: notebook [{notebook}](../notebooks/{notebook}).",
            "Every statement of the paper that can be proved or computed, with its verdict. "
            "*Differs* and *refuted* list the errata, each with the reason; results that the "
            "library has found itself are printed as *not in the paper*.",
            '```{raw} html\n<div class="verdicts"></div>\n```',
            claims(sections[name]),
            "## Networks of its figures",
            "`fc.scenarios[name]`; those with parameters are called with their values.",
            scenarios(name),
        )
    names = [f"papers/{name}" for name in PAPERS]
    page(
        "papers",
        "# Papers and their claims",
        counts,
        "[Every equation, figure, table and section](items): what to call, its rows, its notebook.",
        listing("items", *names),
        "## Notebooks",
        listing(*(f"notebooks/{p.stem}" for p in sorted((ROOT / "notebooks").glob("*.ipynb")))),
    )


def split(line: str) -> list[str]:
    """Return the cells of a line of a table."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def scenarios(paper: str) -> str:
    """Return the networks of a paper's figures, with their parameters, as a table."""
    some = {name: s for name, s in fc.scenarios.items() if name.startswith(f"{paper}_")}
    rows = [
        (f"`{name}`", s.title, ", ".join(f"`{k}={v!r}`" for k, v in s.parameters.items()))
        for name, s in some.items()
    ]
    return table(("name", "what it is", "parameters"), rows)


def claims(section: str) -> str:
    """Return the claims of a paper as a table for a page."""
    rows = [split(line) for line in section.strip().splitlines()[2:] if line.startswith("|")]
    return table(
        ("statement", "published", "computed", "verdict", "why"),
        (
            (f"{place} {says} [{name.split('.')[1]}]{{.claim}}", printed, ours, verdict, why)
            for name, place, says, printed, ours, verdict, why in rows
        ),
    )


def items() -> None:
    """Write the table of every equation, figure, table and section of the papers."""
    verdicts = {
        name.replace("\\_", "_"): verdict
        for line in (ROOT / "figures" / "claims.md").read_text("utf-8").splitlines()
        if line.count("|") > 7
        for name, *_, verdict, _ in [split(line)]
    }
    parts = ["# Every equation, figure, table and section", ITEMS]
    for paper, (title, _) in PAPERS.items():
        rows: dict[str, list[Any]] = {}
        for claim in claims_of(paper):
            for item in claim.items:
                rows.setdefault(item, []).append(claim)
        lines = []
        for item in sorted(rows, key=in_order):
            ids = [claim.id for claim in rows[item]]
            said = (f"{name.split('.')[1]} ({verdicts.get(name, 'new')})" for name in ids)
            names = ", ".join(said).replace("_", "\\_")
            lines.append((item, calls(paper, item, ids[0]), names, books(paper, item)))
        parts += [f"## {title}", table(("item", "call", "rows of its claims", "notebook"), lines)]
    page("items", *parts)


ITEMS = """Made from the claims. A call gives what the item is about: a formula, a law, a figure
drawn anew; where there is none, the row itself. What needs packets, or is no question of a fluid,
has a row that says so. The verdict of a row in *new* stands in `fc.claims.table`."""


def in_order(item: str) -> tuple[int, int, str]:
    """Equations first, then figures, tables, algorithms and sections, each by its number."""
    kinds = ("(", "Fig.", "Table", "Algorithm", "Section", "Appendix")
    number = re.search(r"\d+", item)
    kind = next(i for i, start in enumerate(kinds) if item.startswith(start))
    return kind, int(number[0]) if number and kind < 2 else 0, item


_BY = {
    "ldcc": r"^LDCC, equation", "binomial": "Loguinov", "fast": "Rodriguez-Perez",
    "delay_aimd": "^Delay-based AIMD", "ecf": "^the ECF paper",
}  # fmt: skip


def calls(paper: str, item: str, row: str) -> str:
    """Return the formulas, laws and figures of an item, or else its first row."""
    called = {"binomial": [fc.synchronized, fc.formulas.binomial.monotonic_convergence]}
    found = [
        f"fc.{'formulas.binomial.' if 'formulas' in one.__module__ else ''}{one.__name__}"
        for one in called.get(paper, ())
        if item in mentioned(inspect.getdoc(one) or "")
    ]
    for room in (getattr(fc.formulas, paper, None), sources, links):
        for name in getattr(room, "__all__", ()):
            thing = getattr(room, name)
            ref = getattr(thing, "ref", "")
            if room in (sources, links) and not re.search(_BY[paper], ref):
                continue
            if item in mentioned(ref):
                place = f"formulas.{paper}." if room not in (sources, links) else ""
                found.append(f"fc.{place}{name}")
    if item.startswith("Fig. "):
        figures = importlib.import_module(f"fluidcc.papers.{paper}.figures").FIGURES
        number = item.removeprefix("Fig. ")
        found += [
            f'fc.claims.figure("{name}")'
            for name in figures
            if re.fullmatch(rf"{paper}_fig{number}[a-z]?", name)
        ]
    return ", ".join(f"`{one}`" for one in found or [f'fc.claims.table("{paper}", only="{row}")'])


def mentioned(ref: str) -> set[str]:
    """Return the equations that a reference names, also those between two of them."""
    found = {f"({k})" for k in re.findall(r"\((\d{1,2})[a-e]?\)", ref)}
    for low, high in re.findall(r"\((\d{1,2})\)(?:-| to )\((\d{1,2})\)", ref):
        found |= {f"({k})" for k in range(int(low), int(high))}
    return found


def books(paper: str, item: str) -> str:
    """Return links to the notebooks of a paper in which an item stands."""
    number = re.escape(item.removeprefix("Section ").removeprefix("Fig. "))
    first = r"Figs?\. (?:\d+, |\d+ and )*" if item.startswith("Fig.") else r"(?<![\w.])"
    stands = re.compile(rf"{first}{number}(?!\w|[.-]\w)")
    names = (PAPERS[paper][1], *(("2_stability", "7_coexistence") if paper == "ldcc" else ()))
    return ", ".join(f"[{n}](notebooks/{n})" for n in names if stands.search(notebook_text(n)))


@cache
def notebook_text(name: str) -> str:
    """Return a notebook's words and code."""
    cells = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells)


# ---- API ----------------------------------------------------------------------------------------


def api() -> None:
    """Write the pages of the public names, by what they are for."""
    pages = []
    for title, names in API.items():
        key = title.lower().replace(" ", "_")
        page(f"api/{key}", f"# {title}", *map(documented, names.split()))
        pages.append(f"api/{key}")
    page(
        "api",
        "# API",
        "All names are used as `fc.NAME` after `import fluidcc as fc`.",
        listing(*pages),
    )


def documented(name: str) -> str:
    """Return the directive that prints the docstrings of a public name."""
    thing: Any = fc
    for part in name.split("."):
        thing = getattr(thing, part)
    if inspect.ismodule(thing):
        members = [f"{name}.{member}" for member in thing.__all__]
        about = f"```{{eval-rst}}\n.. automodule:: {thing.__name__}\n```"
        return "\n\n".join([about, *map(documented, members)])
    if isinstance(thing, dict):
        return ""  # its module says what it is
    if inspect.isclass(thing):
        plain = issubclass(thing, tuple)  # whose fields stand in its docstring
        members = "" if plain else "   :members:\n"
        return f"```{{eval-rst}}\n.. autoclass:: fluidcc.{name}\n{members}```"
    kind = "function" if inspect.isfunction(thing) else "data"
    return f"```{{eval-rst}}\n.. auto{kind}:: fluidcc.{name}\n```"
