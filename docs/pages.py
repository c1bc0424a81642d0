"""Write the pages that the library itself knows best: one a law, one a paper, and the API.

Sphinx runs `write` before it reads the sources (see conf.py). The pages lie in ``docs/made`` and
are not kept.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import textwrap
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sympy import latex
from tqdm import tqdm

import fluidcc as fc
from fluidcc import links, sources
from fluidcc.laws import Link, Source

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
    "Claims": "claims.table claims.figure claims.reproduce",
    "Errors and warnings": "errors",
}


def write() -> None:
    """Write all pages anew."""
    shutil.rmtree(MADE, ignore_errors=True)
    for folder in ("models", "papers", "notebooks", "api"):
        (MADE / folder).mkdir(parents=True)
    models()
    vocabulary()
    papers()
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
        )
    names = [f"papers/{name}" for name in PAPERS]
    page(
        "papers",
        "# Papers and their claims",
        counts,
        listing(*names),
        "## Notebooks",
        listing(*(f"notebooks/{p.stem}" for p in sorted((ROOT / "notebooks").glob("*.ipynb")))),
    )


def claims(section: str) -> str:
    """Return the claims of a paper as a table for a page."""
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in section.strip().splitlines()[2:]
        if line.startswith("|")
    ]
    return table(
        ("statement", "published", "computed", "verdict", "why"),
        (
            (f"{place} {says} [{name.split('.')[1]}]{{.claim}}", printed, ours, verdict, why)
            for name, place, says, printed, ours, verdict, why in rows
        ),
    )


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
