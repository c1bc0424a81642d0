"""``--set KEY=VALUE``: values of a scenario's file, replaced."""

from __future__ import annotations

import argparse
import json
import math
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluidcc.base.errors import InvalidInput
from fluidcc.base.files import PICTURES, check_new, writing
from fluidcc.base.version import __version__

if TYPE_CHECKING:
    import xarray as xr

    from fluidcc.network.scenarios import Scenario

__all__ = [
    "assignment", "number", "run_claims", "run_dask_config", "run_doctor", "run_equilibrium",
    "run_explore", "run_list", "run_reproduce", "run_simulate", "run_stability", "run_sweep",
    "run_warm",
]  # fmt: skip


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


def _print(rows: Sequence[tuple[str, str]]) -> None:
    """Names and texts in two columns."""
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        print(f"{name:<{width}}  {text}")


# --- ``fluidcc stability`` -----------------------------------------------------------------------


def run_stability(args: argparse.Namespace) -> None:
    from fluidcc.analysis.report import rows_of
    from fluidcc.analysis.stability import stability
    from fluidcc.network.scenarios import Scenario

    scenario = Scenario.load(args.scenario, dict(assignment(text) for text in args.changes))
    if args.figure is not None:
        check_new(
            args.figure,
            "--figure",
            PICTURES,
            force=args.force,
            keep={"the scenario": Path(args.scenario)},
        )
    report = stability(scenario.net, delays=args.delays, at=_time(args.at), certify=args.certify)
    _print(rows_of(report))
    if args.figure is not None:
        _draw_loop(scenario, report, args.figure)
        print(args.figure)


def _draw_loop(scenario: Scenario, report: Any, figure: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from fluidcc.plotting import nyquist

    drawn, ax = plt.subplots(figsize=(7.6, 5.0), layout="constrained")
    nyquist(report, ax=ax)
    ax.set_title(f"{scenario.title or scenario.name}: {report.verdict}", fontsize="medium")
    with writing(figure):
        drawn.savefig(figure, dpi=150)
    plt.close(drawn)


# --- ``fluidcc equilibrium`` ---------------------------------------------------------------------


def run_equilibrium(args: argparse.Namespace) -> None:
    from fluidcc.equilibria.equilibrium import equilibrium
    from fluidcc.network.scenarios import Scenario

    scenario = Scenario.load(args.scenario, dict(assignment(text) for text in args.changes))
    print(equilibrium(scenario.net, at=_time(args.at)))


# --- ``fluidcc doctor`` --------------------------------------------------------------------------


def run_doctor(args: argparse.Namespace) -> None:
    from fluidcc.cli.doctor import clean, examine

    if args.clean:
        print(clean())
        return
    rows = examine()
    if args.json:
        print(json.dumps(dict(rows), indent=2))
    else:
        _print(rows)


# --- ``fluidcc explore`` -------------------------------------------------------------------------


def run_explore(args: argparse.Namespace) -> None:
    from fluidcc.explorer.app import serve
    from fluidcc.network.scenarios import Scenario

    source = None if args.scenario is None else Scenario.load(args.scenario)
    serve(source, args.port, show=not args.no_browser)


# --- ``fluidcc simulate`` and ``fluidcc sweep`` --------------------------------------------------


def run_simulate(args: argparse.Namespace) -> None:
    from fluidcc.network.scenarios import Scenario

    changes = dict(assignment(text) for text in args.changes)
    if args.until is not None:
        changes["until"] = number(args.until)
    scenario = Scenario.load(args.scenario, changes)
    output = args.output or Path(f"{scenario.name}.nc")
    figure = args.figure or output.with_suffix(".png")
    read = {"the scenario": Path(args.scenario)}
    check_new(output, "--output", (".nc",), force=args.force, keep=read)
    check_new(figure, "--figure", PICTURES, force=args.force, keep={**read, "the output": output})
    tolerance = {} if args.rtol is None else {"rtol": args.rtol}
    result = scenario.simulate(progress=args.progress, **tolerance)
    result.attrs.update(scenario=scenario.name, title=scenario.title, fluidcc=__version__)
    with writing(output):
        result.to_netcdf(output, engine="h5netcdf")
    _draw(scenario, result, figure)
    print(f"{output}\n{figure}")


def _draw(scenario: Scenario, result: xr.Dataset, figure: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from fluidcc.plotting import timeseries

    shown = ["rate", "one_way_delay", "queueing_delay"]
    shown += [
        name for name in ("loss", "price") if name in result and float(result[name].max()) > 0
    ]
    axes = timeseries(result, shown)
    axes[0].set_title(scenario.title or scenario.name, fontsize="medium")
    with writing(figure):
        axes[0].figure.savefig(figure, dpi=150)
    plt.close(axes[0].figure)


def run_sweep(args: argparse.Namespace) -> None:
    from fluidcc.sweeps.files import run_file

    run_file(args)


# --- ``fluidcc reproduce``, ``fluidcc claims``, ``fluidcc list`` and ``fluidcc dask-config`` -----


def run_reproduce(args: argparse.Namespace) -> None:
    from fluidcc import papers as claims

    print(
        f"{args.folder / 'claims.md'}: {claims.reproduce(args.folder, force=args.force).summary()}"
    )


def run_claims(args: argparse.Namespace) -> None:
    from fluidcc import papers as claims

    table = claims.table(args.paper)
    print(table.to_markdown().rstrip() if args.format == "md" else table)


def run_list(args: argparse.Namespace) -> None:
    from fluidcc import links, sources
    from fluidcc import papers as claims
    from fluidcc.network.scenarios import scenarios

    _section("sources", ((name, getattr(sources, name).ref) for name in sources.__all__))
    _section("links", ((name, getattr(links, name).ref) for name in links.__all__))
    _section("scenarios", ((name, s.title) for name, s in scenarios.items()))
    _section("papers", ((name, "") for name in claims.papers()))


def run_dask_config(args: argparse.Namespace) -> None:
    from fluidcc.sweeps.execute import DASK_CONFIG

    print(DASK_CONFIG)


def run_warm(_: argparse.Namespace) -> None:
    from fluidcc.cli.warm import main

    main()


def _section(title: str, rows: Iterable[tuple[str, str]]) -> None:
    print(f"{title}:")
    for name, about in rows:
        print(f"  {name:<20} {about}".rstrip())
