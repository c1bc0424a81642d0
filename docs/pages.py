"""Write the pages that the library itself knows best: one a law, one a paper, the table of what the
papers have, that of passivity, and the API.

Sphinx runs `write` before it reads the sources (see conf.py). The pages lie in ``docs/made`` and
are not kept.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import model_pages
import references
from examples import example_of, groups
from model_pages import law_page, notebook_text, notebooks
from sympy import latex
from tqdm import tqdm

import fluidcc as fc
from fluidcc import links, sources
from fluidcc.analysis import boundary, linearize, modes, report, sampled
from fluidcc.conditions import passivity as passivity_of
from fluidcc.conditions import sufficient
from fluidcc.cycles import orbit
from fluidcc.equilibria import num, result
from fluidcc.formulas import _formula, fast
from fluidcc.numerics import certify
from fluidcc.numerics.dde import result as dde
from fluidcc.numerics.linear import count, margins
from fluidcc.papers import published, tables
from fluidcc.papers.binomial import synchronized
from fluidcc.papers.ldcc import undelayed_system
from fluidcc.papers.model import claims_of
from fluidcc.proofs import prove
from fluidcc.simulation.results import STATISTICS, VARIABLES
from fluidcc.sweeps import measures

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
    "Results": "",
    "Laws": "Source window Link Law Jump Tick Let ago Steady highest lowest rounds prove "
    "with_estimator with_pause with_slow_start with_windowed_minimum marked_by_bytes",
    "Pictures": "plot",
    "Figures of merit": "metrics",
    "Closed forms": "formulas",
    "Claims": "claims.table claims.figure claims.data claims.reproduce",
    "Errors and warnings": "errors",
}
# What calls return, by the call.
RESULTS = {
    "report = fc.stability(net)": report.StabilityReport,
    "report.margins": margins.Margins,
    "report.sensitivities": report.Sensitivities,
    "report.modes": modes.Mode,
    "report.sufficient": sufficient.Conditions,
    "report.sufficient[0]": sufficient.Condition,
    "report.passivity": passivity_of.PassivityReport,
    "report.eigenloci()": margins.EigenLoci,
    "report.certificates": certify.Certificate,
    "linear = fc.linearize(net)": linearize.LinearNetwork,
    "linear.count_unstable()": count.RootCount,
    "edge = fc.stability_boundary(...)": boundary.Boundary,
    "fc.stability_boundary(..., along=)": boundary.BoundaryCurve,
    "edge.onset()": boundary.Onset,
    "fc.limit_cycle(net)": orbit.LimitCycle,
    "fc.sampled_stability(net)": sampled.SampledStability,
    "fc.equilibrium(net)": result.Equilibrium,
    "fc.num.solve(net)": num.NumSolution,
    "fc.solve_dde(...)": dde.DdeResult,
    "fc.synchronized(...)": synchronized.Synchronized,
    "fc.published[name]": published.PublishedLoop,
    "fc.prove(law)": prove.Proof,
    "fc.prove(statement)": prove.Verdict,
    "fc.undelayed(net)": undelayed_system.UndelayedSystem,
    "fc.formulas.fast.arrival_recursion(...)": fast.Arrivals,
    "fc.formulas.ldcc.user_loop(...)": _formula.Values,
    "rows = fc.claims.table(paper)": tables.Table,
    "rows[0]": tables.Row,
}


def write() -> None:
    """Write all pages anew."""
    shutil.rmtree(MADE, ignore_errors=True)
    kernel = MADE / "ipython" / "profile_default"
    for folder in ("models", "papers", "notebooks", "api", kernel):
        (MADE / folder).mkdir(parents=True)
    svg = 'c.InlineBackend.figure_formats = {"svg"}\n'
    (kernel / "ipython_kernel_config.py").write_text(svg, "utf-8")
    models()
    vocabulary()
    passivity()
    papers()
    items()
    errata()
    bibliography()
    api()


def counts() -> dict[str, str]:
    """Return the numbers that pages say, such as ``{{ laws }}``, as they are now."""
    claims = (ROOT / "figures" / "claims.md").read_text("utf-8")
    return {
        "laws": str(len({*sources.__all__, *links.__all__})),
        "papers": str(len(PAPERS)),
        "claims": found[1] if (found := re.search(r"(\d+) claims", claims)) else "",
        "refuted": found[1] if (found := re.search(r"(\d+) refuted", claims)) else "",
    }


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
    """Write a page for each law, and the list of them, by kind."""
    parts = ["# Models: controllers and queue disciplines", model_pages.ABOUT]
    for title, names in groups().items():
        rows = [(f"[{n}](models/{n})", getattr(fc, n).about) for n in names]
        parts += [f"## {title}", table(("law", "what it does"), rows)]
        parts.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n"
                     + "\n".join(f"models/{n}" for n in names) + "\n```")  # fmt: skip
        for name in tqdm(names, desc=title):
            page(f"models/{name}", *law_page(name, MADE / "models"))
    page("models", *parts)


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
        parts += [
            f"## What a {kind} measures",
            table(("signal", "import", "meaning", "unit"), rows),
        ]
        rows = [(f'`"{o}"`', v.OUTPUT_MEANING[o], v.OUTPUT_UNITS.get(o, "1")) for o in outputs]
        parts += [f"## What a {kind} gives", table(("output", "meaning", "unit"), rows)]
    page("signals", *parts)
    told = inspect.cleandoc(measures.__doc__ or "")
    page("measures", "# Measures of sweeps", MEASURES, f"```{{eval-rst}}\n{told}\n```")


MEASURES = """```{index} ! measures of a sweep
```

`fc.sweep(net, axes, measures)` takes one of these names, a list of them, or a function of a
point, as `lambda point: point.equilibrium.rtt.item()`."""
SIGNALS = """Laws are written in these symbols of `fluidcc.symbols`, and give the outputs by name,
as in `out={"rate": x}`. A signal of a source is that of the datum whose news comes now: its delay,
and the losses, marks and prices that it met. What routers say is as old as the way from them."""


# ---- passivity ----------------------------------------------------------------------------------


def passivity() -> None:
    """Write the table of what passivity says about each controller of queues."""
    rows = []
    for name in tqdm(sorted(sources.__all__, key=str.lower), desc="Passivity"):
        _, net, _, asks = example_of(getattr(fc, name))
        if "stability" in asks:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows.append(
                    (f"[{name}](models/{name})", *map(one_line, (near(net), storages(net))))
                )
    page(
        "passivity",
        "# Passivity of each controller",
        PASSIVITY,
        table(("law", "near the equilibrium", "at all states"), rows),
    )


PASSIVITY = """Of the smooth laws: the two flows of each law's page, without communication delays.
*Near the equilibrium* is `fc.stability(net).passivity`: whether each user is strictly positive
real. *At all states* are the storage functions that are ready, and what `fc.undelayed(net).check`
finds: `repaired_storage()` for laws with a delay penalty, as LDCC's (`paper_storage()` is that of
its paper, which grows somewhere), and `price_storage()` for the primal, dual and primal-dual laws,
(12) to (14) of the LDCC paper. That no counterexample is found is evidence, not a proof; for
`price_storage()` what its proof assumes of a law is proved."""


def near(net: fc.Network) -> str:
    """Return what passivity says near the equilibrium, or why it has nothing to say."""
    try:
        return str(fc.stability(net).passivity.verdict)
    except fc.errors.Unsupported as error:
        return f"not a question here: {error}"


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
    for notebook in notebooks():
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
            f"{references.PAPERS[name]}.",
            f"Equations and figures: notebook [{notebook}](../notebooks/{notebook}).",
            "Every statement of the paper that can be proved or computed, with its verdict. "
            "*Differs* and *refuted* say what does not hold as printed, each with the reason; "
            "misprints and ambiguities are in the table of [errata](../errata), too. Results that "
            "the library has found itself are printed as *not in the paper*.",
            '```{raw} html\n<div class="verdicts"></div>\n```',
            claims(sections[name]),
            "## Networks of its figures",
            "`fc.scenarios[name]`; those with parameters are called with their values.",
            scenarios(name),
        )
    page(
        "papers/internet",
        "# TCP and its queues as they run today",
        INTERNET,
        '```{raw} html\n<div class="verdicts"></div>\n```',
        claims(sections["internet"]),
    )
    names = [f"papers/{name}" for name in (*PAPERS, "internet")]
    rows = [
        (
            f"[{title}](papers/{name})",
            str(references.YEARS[name]),
            laws_of(name),
            by_verdict(sections[name]),
            f"[{notebook}](notebooks/{notebook})",
        )
        for name, (title, notebook) in PAPERS.items()
    ]
    page(
        "papers",
        "# Papers and their claims",
        counts,
        table(("paper", "year", "laws", "claims", "notebook"), rows),
        "[Every equation, figure, table and section](items): what to call, its rows, its notebook. "
        "[Errata](errata): misprints and ambiguities.",
        listing("items", "errata", *names),
        "## Notebooks",
        listing(*(f"notebooks/{p.stem}" for p in notebooks())),
    )


INTERNET = """What RFCs and drafts, and the papers behind DCTCP, DCQCN, TIMELY, BBR, Copa and the
ack clock, say of the laws that are here: response functions of Reno, CUBIC and HighSpeed TCP, the
constants of PI2, PIE and CoDel, and what the others are held to do. Where a text was not to be had
its place says "as cited".
`fc.claims.table("internet")` computes it anew."""


def laws_of(paper: str) -> str:
    """Return links to the laws that cite a paper."""
    names = [n for r in (sources, links) for n in sorted(r.__all__)]
    full = references.PAPERS[paper]
    cite = [n for n in names if full in references.cited(getattr(fc, n).ref)]
    return ", ".join(f"[{n}](models/{n})" for n in cite)


def by_verdict(section: str) -> str:
    """Return how many claims of a paper there are of each verdict."""
    lines = [split(line) for line in section.strip().splitlines()[2:] if line.startswith("|")]
    counts = Counter(verdict for *_, verdict, _ in lines)
    return ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common())


def errata() -> None:
    """Write the table of misprints and ambiguities of the papers."""
    parts = ["# Errata of five papers", ERRATA]
    for paper, (title, _) in PAPERS.items():
        rows = [
            (claim.place, one_line(claim.statement), claim.id.split(".")[1].replace("_", "\\_"))
            for claim in claims_of(paper)
            if claim.erratum
        ]
        parts += [f"## {title}", table(("place", "statement", "row"), rows)]
    page("errata", *parts)


ERRATA = """Misprints and ambiguities: what cannot be taken, or computed, as it is printed. What
is plain but does not hold is *refuted*, or *differs*, on the page of its paper. There the row of
each erratum is too, with what is right; `fc.claims.table(paper, only="ROW")` computes it anew."""


def bibliography() -> None:
    """Write the page of all references, and how to cite."""
    five = [f"- [{PAPERS[n][0]}](papers/{n}): {full}" for n, full in references.PAPERS.items()]
    page(
        "references",
        "# References, and how to cite",
        HOW_TO_CITE,
        "## The five papers",
        "\n".join(five),
        "## All references",
        "\n".join(f"- {one}" for one in references.every()),
    )


HOW_TO_CITE = """Cite the software with the version that `fluidcc.__version__` prints, and beside
it the paper of each law that you use: it stands at the end of the page of the law. In a clone,
`CITATION.cff` says the same to programs.

```bibtex
@software{fluidcc,
  title = {fluidcc: fluid models of congestion control},
  author = {{the fluidcc authors}},
  version = {VERSION},
  year = {2026},
}
```""".replace("VERSION", fc.__version__)


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
            first = next((claim.id for claim in rows[item] if not claim.own), ids[0])
            lines.append((item, calls(paper, item, first), names, books(paper, item)))
        parts += [f"## {title}", table(("item", "call", "rows of its claims", "notebook"), lines)]
    page("items", *parts)


ITEMS = """Made from the claims. A call gives what the item is about: a formula, a law, a figure
drawn anew, its network; where there is none, the row itself. What needs packets, or is no question
of a fluid, has a row that says so. The verdict of a row in *new* stands in `fc.claims.table`."""


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
            call.format(name)
            for call, names in (
                ('fc.claims.figure("{}")', figures),
                ('fc.scenarios["{}"]', fc.scenarios),
            )
            for name in names
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


# ---- API ----------------------------------------------------------------------------------------


def api() -> None:
    """Write the pages of the public names, by what they are for."""
    rows, pages = [], []
    for title, names in API.items():
        key = title.lower().replace(" ", "_")
        if names:
            page(f"api/{key}", f"# {title}", *map(documented, names.split()))
        pages.append(f"api/{key}")
        rows += [(f"`fc.{name}`", line, f"[{title}](api/{key})") for name, line in told(names)]
    results()
    page(
        "api",
        "# API",
        "All names are used as `fc.NAME` after `import fluidcc as fc`. Laws have pages of their "
        "own: [models](models). What calls return: [results](api/results).",
        table(("name", "what it does", "page"), rows),
        listing(*pages),
    )


def told(names: str) -> list[tuple[str, str]]:
    """Return the names of a page, those of modules one by one, with the first line of each."""
    found = []
    for name in names.split():
        thing: Any = fc
        for part in name.split("."):
            thing = getattr(thing, part)
        if inspect.ismodule(thing):
            found += told(" ".join(f"{name}.{member}" for member in thing.__all__))
        else:
            found.append((name, first_line(thing)))
    return found


def first_line(thing: Any) -> str:
    """Return the first sentence of a docstring as it can stand in a table."""
    text = (inspect.getdoc(thing) or "").split("\n\n")[0]
    return one_line(text).split(". ")[0].rstrip(".")


def results() -> None:
    """Write the page of what calls return."""
    runs = [(f"`{n}`", f"time, {dim}", u, about) for n, (dim, _, u, about) in VARIABLES.items()]
    calls = [
        (f"`{call}`", f"{{py:class}}`~{path(kind)}`", first_line(kind))
        for call, kind in RESULTS.items()
    ]
    public = {f"fluidcc.{name}" for some in API.values() for name, _ in told(some)}
    classes = [
        f"## {kind.__name__}\n\n```{{eval-rst}}\n.. autoclass:: {path(kind)}\n{members_of(kind)}```"
        for kind in dict.fromkeys(RESULTS.values())
        if path(kind) not in public  # which have their place already
    ]
    page(
        "api/results",
        "# Results",
        RESULTS_ABOUT,
        table(("call", "returns", "what it is"), calls),
        "## A run: the xarray.Dataset of fc.simulate",
        table(("variable", "over", "unit", "what it is"), runs),
        RUN_ABOUT.format(", ".join(f"`{name}`" for name in STATISTICS)),
        *classes,
    )


RESULTS_ABOUT = """Each result prints as a table in a terminal and in Jupyter. Attributes are in SI
units: bit/s, s, rad/s, phase margins in degrees; tables in Mbit/s and ms. What speaks of flows and
links is an `xarray.DataArray` with these as labels, and the unit in `attrs["units"]`."""
RUN_ABOUT = """And each law's own states, `LAW_state`, as `LDCC_x`; without the law's name where one
law alone has it. Attributes: `warnings`, what makes the run doubtful; {}, what the solver did;
`final_state`, all that a later run needs to go on from the end (see `fc.simulate`).
`fc.metrics.jumps(run)` and `fc.metrics.ticks(run)` tell what happened at once, and when."""


def members_of(kind: type) -> str:
    """Return the option that documents members; the fields of a tuple stand in its docstring."""
    return "" if issubclass(kind, tuple) else "   :members:\n"


def path(kind: type) -> str:
    """Return where a class is defined."""
    return f"{kind.__module__}.{kind.__qualname__}"


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
        return f"```{{eval-rst}}\n.. autoclass:: fluidcc.{name}\n{members_of(thing)}```"
    kind = "function" if inspect.isfunction(thing) else "data"
    return f"```{{eval-rst}}\n.. auto{kind}:: fluidcc.{name}\n```"
