"""``fluidcc simulate`` and ``fluidcc sweep``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fluidcc.base.files import PICTURES, check_new, writing
from fluidcc.base.version import __version__
from fluidcc.cli.changes import assignment, number

if TYPE_CHECKING:
    import xarray as xr

    from fluidcc.network.scenarios import Scenario

__all__ = ["run_simulate", "run_sweep"]


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
    shown += [name for name in ("loss", "price") if name in result and float(result[name].max()) > 0]
    axes = timeseries(result, shown)
    axes[0].set_title(scenario.title or scenario.name, fontsize="medium")
    with writing(figure):
        axes[0].figure.savefig(figure, dpi=150)
    plt.close(axes[0].figure)


def run_sweep(args: argparse.Namespace) -> None:
    from fluidcc.sweeps.files import run_file

    run_file(args)
