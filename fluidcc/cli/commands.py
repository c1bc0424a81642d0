"""What each command does; it returns what it says as text, and as data for ``--json``."""

from __future__ import annotations

import argparse
import json
import math
import tomllib
import webbrowser
from collections.abc import Sequence
from errno import EADDRNOTAVAIL
from importlib import import_module
from pathlib import Path
from socket import gaierror
from typing import TYPE_CHECKING, Any

from fluidcc.base.arguments import whole
from fluidcc.base.errors import InvalidInput
from fluidcc.base.files import PICTURES, check_new, writing
from fluidcc.base.packed import PACKED
from fluidcc.base.version import __version__

if TYPE_CHECKING:
    import xarray as xr

    from fluidcc.network.scenarios import Scenario

Said = tuple[str, Any]  # text, and data
JUDGED = (
    "verdict", "stable", "marginal", "unstable", "certified", "regime", "delays", "gain_margin",
    "critical_gain", "phase_margin", "delay_margin", "modulus_margin", "crossover", "decay_rate",
    "rightmost_roots", "trackers", "warnings",
)  # fmt: skip


# --- arguments given as text ----------------------------------------------------------------------


def assignment(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise InvalidInput(f"--set {text}: give KEY=VALUE, such as flows.a.params.beta=0.2")
    return key.strip(), number(value.strip())


def number(text: str) -> Any:
    """A value as TOML writes it (a number, a list, quoted text), or else the text itself: 90 s."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def _time(text: str | None) -> float:
    """The time that ``--at`` gives [s]; the end without it."""
    from fluidcc.base.units import to_si

    return math.inf if text is None else float(to_si(number(text), "s", "--at"))


def _columns(rows: Sequence[tuple[str, str]]) -> str:
    """Names and texts in two columns."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def _scenario(args: argparse.Namespace, **more: Any) -> Scenario:
    """The scenario that is named, with what ``--set`` changes."""
    from fluidcc.network.scenarios import Scenario

    return Scenario.load(args.scenario, dict(assignment(text) for text in args.changes) | more)


# --- ``fluidcc stability`` -----------------------------------------------------------------------


def run_stability(args: argparse.Namespace) -> Said:
    from fluidcc.analysis.report import rows_of
    from fluidcc.analysis.stability import stability

    scenario = _scenario(args)
    if args.figure is not None:
        check_new(
            args.figure,
            "--figure",
            PICTURES,
            force=args.force,
            keep={"the scenario": Path(args.scenario)},
        )
    report = stability(scenario.net, delays=args.delays, at=_time(args.at), certify=args.certify)
    text, data = _columns(rows_of(report)), {name: getattr(report, name) for name in JUDGED}
    if args.figure is not None:
        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt

        from fluidcc.plotting import nyquist

        _, axes = plt.subplots(figsize=(7.6, 5.0), layout="constrained")
        nyquist(report, ax=axes)
        _save(axes, f"{scenario.title or scenario.name}: {report.verdict}", args.figure)
        text += f"\n{args.figure}"
    return text, {**data, "figure": args.figure}


def _save(axes: Any, title: str, figure: Path) -> None:
    """Write the figure of some axes under a title."""
    import matplotlib.pyplot as plt

    axes.set_title(title, fontsize="medium")
    with writing(figure):
        axes.figure.savefig(figure, dpi=150)
    plt.close(axes.figure)


# --- ``fluidcc equilibrium`` ---------------------------------------------------------------------


def run_equilibrium(args: argparse.Namespace) -> Said:
    from fluidcc.equilibria.equilibrium import equilibrium
    from fluidcc.equilibria.result import COLUMNS

    rest = equilibrium(_scenario(args).net, at=_time(args.at))
    data = {name: getattr(rest, name).to_series().to_dict() for name in COLUMNS}
    about = {"states": rest.states, "at": rest.at, "free": rest.free, "warnings": rest.warnings}
    return str(rest), {**data, **about}


# --- ``fluidcc doctor`` --------------------------------------------------------------------------


def run_doctor(args: argparse.Namespace) -> Said:
    from fluidcc.cli.doctor import clean, examine

    if args.clean:
        said = clean()
        return said, {"cleaned": said}
    rows = examine()
    return _columns(rows), dict(rows)


# --- ``fluidcc explore`` -------------------------------------------------------------------------


def run_explore(args: argparse.Namespace) -> None:
    from fluidcc.explorer.access import url
    from fluidcc.explorer.app import quiet, serve
    from fluidcc.network.scenarios import Scenario

    source = None if args.scenario is None else Scenario.load(args.scenario)
    port = whole(args.port, "--port", least=0, most=65535)
    try:
        server = serve(source, port, args.host)
    except (OSError, UnicodeError) as error:
        if isinstance(error, UnicodeError | gaierror) or error.errno == EADDRNOTAVAIL:
            raise InvalidInput(
                f"--host {args.host} is no address of this machine; leave it out for this machine "
                "alone, or give 0.0.0.0 for all that reach it"
            ) from None
        raise InvalidInput(
            f"--port {port} cannot be used, as another program may use it; give another number, "
            "or leave it out for any that is free"
        ) from None
    address = url(args.host, server.port)
    said = json.dumps({"address": address}) if args.json else f"explorer: {address} until Ctrl-C"
    print(said, flush=True)
    if not args.no_browser:
        webbrowser.open(address)
    quiet()
    server.start()
    server.io_loop.start()


# --- ``fluidcc simulate`` and ``fluidcc sweep`` --------------------------------------------------


def run_simulate(args: argparse.Namespace) -> Said:
    from fluidcc.cli.sweep_files import write_csv

    scenario = _scenario(args, **({} if args.until is None else {"until": number(args.until)}))
    output = args.output or Path(f"{scenario.name}.nc")
    read = {"the scenario": Path(args.scenario)}
    if output.suffix.lower() in PICTURES:
        raise InvalidInput(
            f"--output {output}: results go there, to .nc or .csv; a picture is --figure {output}"
        )
    check_new(output, "--output", (".nc", ".csv"), force=args.force, keep=read)
    figure = args.figure or output.with_suffix(".png")
    check_new(figure, "--figure", PICTURES, force=args.force, keep={**read, "the output": output})
    tolerance = {} if args.rtol is None else {"rtol": args.rtol}
    result = scenario.simulate(progress=args.progress, **tolerance)
    result.attrs.update(scenario=scenario.name, title=scenario.title, fluidcc=__version__)
    with writing(output):
        if output.suffix.lower() == ".csv":
            write_csv(result, output, ["time"])
        else:
            result.to_netcdf(output)
    _draw(scenario, result, figure)
    told = {k: v for k, v in result.attrs.items() if k not in PACKED}
    return f"{output}\n{figure}", {"output": output, "figure": figure, **told}


def _draw(scenario: Scenario, result: xr.Dataset, figure: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from fluidcc.plotting import timeseries

    shown = ["rate", "one_way_delay", "queueing_delay"]
    shown += [n for n in ("loss", "mark", "price") if n in result and float(result[n].max()) > 0]
    _save(timeseries(result, shown)[0], scenario.title or scenario.name, figure)


def run_sweep(args: argparse.Namespace) -> Said:
    from fluidcc.cli.sweep_files import run_file

    return run_file(args)


# --- the others ----------------------------------------------------------------------------------


def run_reproduce(args: argparse.Namespace) -> Said:
    from fluidcc import papers as claims
    from fluidcc.sweeps.execute import cores

    rows = claims.reproduce(args.folder, force=args.force, workers=cores())
    file = args.folder / "claims.md"
    return f"{file}: {rows.summary()}", {"claims": file, "verdicts": rows.counts()}


def run_claims(args: argparse.Namespace) -> Said:
    from fluidcc import papers as claims
    from fluidcc.papers.tables import COLUMNS

    table = claims.table(args.paper)
    data = [
        {name: getattr(row, name) for name in ("id", "paper", *COLUMNS, "values")} for row in table
    ]
    return (table.to_markdown().rstrip() if args.format == "md" else str(table)), data


def run_list(args: argparse.Namespace) -> Said:
    from fluidcc import links, sources
    from fluidcc.network.scenarios import scenarios
    from fluidcc.papers import papers

    data = {
        "sources": {name: getattr(sources, name).about for name in sources.__all__},
        "links": {name: getattr(links, name).about for name in links.__all__},
        "scenarios": {name: s.title for name, s in scenarios.items()},
        "papers": {name: _about(import_module(f"fluidcc.papers.{name}")) for name in papers()},
    }
    sections = [
        "\n".join([f"{title}:", *(f"  {name:<20} {about}" for name, about in rows.items())])
        for title, rows in data.items()
    ]
    return "\n".join(sections), data


def _about(module: Any) -> str:
    """The first line of what a module says of itself."""
    return str(module.__doc__).partition("\n")[0]


def run_help(args: argparse.Namespace) -> Said:
    from fluidcc.network.patterns import near

    parser = args.top if args.about is None else args.commands.get(args.about)
    if parser is None:
        raise InvalidInput(f"there is no command {args.about!r}; {near(args.about, args.commands)}")
    text = parser.format_help().rstrip()
    return text, {"help": text}


def run_completion(args: argparse.Namespace) -> Said:
    from fluidcc.cli.completion import script

    text = script(args.shell, args.commands)
    return text, {"script": text}


def run_dask_config(args: argparse.Namespace) -> Said:
    from fluidcc.sweeps.execute import DASK_CONFIG

    return str(DASK_CONFIG), {"file": DASK_CONFIG}


def run_warm(args: argparse.Namespace) -> Said:
    from fluidcc.cli.warm import main

    parts = main()
    return f"{parts} parts compiled", {"compiled": parts}
