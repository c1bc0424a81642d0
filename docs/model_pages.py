"""The page of each law: its equations, what it hears, an example at work, where it is used."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import equations
import examples
import matplotlib.pyplot as plt
import numpy as np
import references

import fluidcc as fc
from fluidcc import links, sources
from fluidcc.base.tables import in_html, in_units
from fluidcc.laws import Source
from fluidcc.laws.written import formula

ROOT = Path(__file__).parents[1]
ABOUT = """Each page is made from the law itself: the equation that is solved is the equation that
is printed. A law is a name of the package (`fc.LDCC`); calling it with parameters gives another one
(`fc.LDCC(eta=0.2)`). Each page shows two flows that differ, and asks what fits the law: of a smooth
one the verdict, of one that jumps the limit cycle, of a sampled one the multipliers. Which of
several forms of TCP to take: {doc}`../which_function`."""

WIDE = "---\nhtml_theme.sidebar_secondary.remove: true\n---"  # equations take the whole width

OBJECT = """```{{eval-rst}}
.. py:data:: fluidcc.{name}
   :type: {kind}

   {about}
```"""


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def law_page(name: str, folder: Path) -> list[str]:
    """Return the parts of the page of a law, whose picture goes into a folder."""
    law = getattr(fc, name)
    rows = " \\\\\n".join(equations.fitted(law))
    held = "$[\\ldots > 0]$ is 1 where that holds, and else 0." if "\\left[" in rows else ""
    return [
        WIDE,
        f"# {name}",
        index(name, law.about),
        OBJECT.format(name=name, kind=type(law).__name__, about=law.about),
        family(sources if isinstance(law, Source) else links, name),
        "## Equations",
        f"```{{math}}\n\\begin{{aligned}}\n{rows}\n\\end{{aligned}}\n```",
        held,
        "## Signals, states and parameters",
        signals(law),
        quantities(law),
        *at_work(law, folder),
        "## Used in",
        used_in(law),
        *(reference(law) if law.ref else []),
    ]


def index(name: str, about: str) -> str:
    """Return what a search finds a law's page by first: its name, and the name in words if any."""
    words, _, rest = about.partition(": ")
    names = dict.fromkeys([name, words] if rest and "," not in words else [name])
    return f"```{{index}} {', '.join(f'! {one}' for one in names)}\n```"


def family(room: Any, name: str) -> str:
    """Return the docstring of the module in which a law is defined."""
    for info in Path(room.__path__[0]).glob("*.py"):
        module = importlib.import_module(f"{room.__name__}.{info.stem}")
        if info.stem != "__init__" and name in getattr(module, "__all__", ()):
            return inspect.cleandoc(module.__doc__ or "")
    raise LookupError(f"no module of {room.__name__} exports {name}")


def signals(law: Any) -> str:
    """Return the table of the signals that a law uses."""
    units, meaning = fc.symbols.SIGNAL_UNITS, fc.symbols.SIGNAL_MEANING
    used = examples.signals_of(law)
    rows = [(f"${formula(s)}$", meaning[s], unit(units[s])) for s in law.inputs if s in used]
    kind = "flow" if isinstance(law, Source) else "link"
    return (
        table(("signal", f"what the {kind} measures", "unit"), rows)
        if rows
        else f"The {kind} measures nothing."
    )


def quantities(law: Any) -> str:
    """Return the table of states and parameters with their values and units."""
    rows = [
        (
            f"${formula(s)}$",
            f"state: {law.meaning[s]}",
            f"${formula(law.initial.get(s, 0))}$ at first",
            unit(law.units[s]),
        )
        for s in law.states
    ] + [
        (f"${formula(p)}$", f"`{p}`: {law.meaning[p]}", f"{float(value):g}", unit(law.units[p]))
        for p, value in law.params.items()
    ]
    return table(("symbol", "what it is", "value", "unit"), rows) if rows else ""


def unit(text: str) -> str:
    """Return a unit as it is printed: nothing for plain numbers."""
    return "" if text == "1" else text


# ---- at work ------------------------------------------------------------------------------------


def at_work(law: Any, folder: Path) -> list[str]:
    """Return the example of a law: its code, a run, and what is asked of it, as tables."""
    code, net, until, asks = examples.example_of(law)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = fc.simulate(net, until)
        figure = np.ravel(fc.plot.timeseries(run))[0].figure
        answers = [(ask, answer(ask, net, run)) for ask in asks]
    figure.savefig(folder / f"{law.name}.svg", bbox_inches="tight")
    plt.close(figure)
    parts = [
        "## At work",
        f'```python\n{code}\nrun = fc.simulate(net, "{until}")\nfc.plot.timeseries(run)\n```',
        f"```{{image}} {law.name}.svg\n:alt: rates and delays of two flows with {law.name}\n```",
    ]
    for ask, html in answers:
        call, title = examples.QUESTIONS[ask]
        start = float(run.time[-1]) / 2
        call = MEANS.format(start=f"{start:g}") if ask == "means" else call
        html = f"<div style='overflow-x:auto'>{html}</div>"
        parts += [f"### {title}", f"```python\n{call}\n```", f"```{{raw}} html\n{html}\n```"]
    return parts


MEANS = """fc.metrics.mean(run.rate, {start}), fc.metrics.loss(run, {start})
fc.metrics.mean(run.queueing_delay, {start}), fc.metrics.utilisation(run, {start})"""


def answer(ask: str, net: fc.Network, run: Any) -> str:
    """Return what a question gives, as HTML without a picture."""
    if ask == "means":
        return means(run, float(run.time[-1]) / 2)
    result = eval(examples.QUESTIONS[ask][0], {"fc": fc, "net": net})
    return re.sub(r"<img [^>]*>", "", result._repr_html_())


def means(run: Any, start: float) -> str:
    """Return the means over the later half of a run as two tables."""
    tables = []
    for dim, columns in (
        ("flow", {"mean rate": fc.metrics.mean(run.rate, start),
                  "loss": fc.metrics.loss(run, start)}),
        ("link", {"mean queueing delay": fc.metrics.mean(run.queueing_delay, start),
                  "utilisation": fc.metrics.utilisation(run, start)}),
    ):  # fmt: skip
        cells, head = [run[dim].values.tolist()], [dim]
        for name, values in columns.items():
            text, numbers = in_units(values.values, values.attrs.get("units", "1"), 1.0)
            head.append(name if text == "1" else f"{name} [{text}]")
            cells.append([f"{float(x):.4g}" for x in numbers])
        tables.append(in_html(list(zip(*cells, strict=True)), head))
    return "".join(tables)


# ---- where it is used ---------------------------------------------------------------------------


def notebooks() -> list[Path]:
    """Return the notebooks by their numbers."""
    return sorted((ROOT / "notebooks").glob("*.ipynb"), key=lambda p: int(p.stem.split("_")[0]))


def used_in(law: Any) -> str:
    """Return links to notebooks, papers and questions in which a law is used."""
    call = re.compile(rf"\bfc\.{law.name}\b")
    books = [
        f"[{p.stem}](../notebooks/{p.stem})"
        for p in notebooks()
        if call.search(notebook_text(p.stem))
    ]
    pages = [
        f"[{first_heading(p)}](../../questions/{p.stem})"
        for p in sorted((ROOT / "docs" / "questions").glob("*.md"))
        if call.search(p.read_text("utf-8"))
    ]
    networks = [f"`{name}`" for name, laws in laws_of_scenarios().items() if law.name in laws]
    papers = [
        f"[{paper}](../papers/{paper})"
        for paper, full in references.PAPERS.items()
        if full in references.cited(law.ref)
    ]
    said = {"Notebooks": books, "Questions": pages, "Claims of": papers, "Ready networks": networks}
    lines = [f"- {what}: {', '.join(found)}" for what, found in said.items() if found]
    return "\n".join(lines) or "Nowhere but here so far."


def first_heading(path: Path) -> str:
    """Return the title of a page."""
    return re.search(r"^# (.*)$", path.read_text("utf-8"), re.M)[1]  # type: ignore[index]


@cache
def laws_of_scenarios() -> dict[str, set[str]]:
    """Return the names of the laws in each ready network."""
    return {
        name: {spec.law.name for spec in (*s.net.flows.values(), *s.net.links.values())}
        for name, s in fc.scenarios.items()
    }


@cache
def notebook_text(name: str) -> str:
    """Return a notebook's words and code."""
    cells = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells)


def reference(law: Any) -> list[str]:
    """Return what a law says of its source, and the full references."""
    full = [f"- {one}" for one in references.cited(f"{law.ref} {law.about}")]
    return ["## Reference", f"{law.ref}.", "\n".join(full)]
