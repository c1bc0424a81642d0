"""What the command ``fluidcc`` understands."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, NoReturn

from fluidcc.base.files import PICTURES
from fluidcc.base.version import __version__
from fluidcc.cli.commands import (
    run_claims,
    run_dask_config,
    run_doctor,
    run_equilibrium,
    run_explore,
    run_list,
    run_reproduce,
    run_simulate,
    run_stability,
    run_sweep,
    run_warm,
)

__all__ = ["make_parser"]


class _Parser(argparse.ArgumentParser):
    """A parser that answers a mistyped word with the nearest one."""

    def error(self, message: str) -> NoReturn:
        from fluidcc.network.patterns import near

        wrong = re.match(r"argument .*: invalid choice: '(.*)' \(choose from (.*)\)", message)
        if wrong is not None:
            known = re.findall(r"[\w-]+", wrong[2])
            message = f"there is no {wrong[1]!r} here; {near(wrong[1], known)}"
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


EXIT_CODES = "exit codes: 0 done; 2 a mistake in what was given, said in one line; 130 Ctrl-C"


def make_parser() -> argparse.ArgumentParser:
    top = _Parser("fluidcc", description="Fluid models of congestion control.", epilog=EXIT_CODES)
    top.add_argument("--version", action="version", version=f"fluidcc {__version__}")
    commands = top.add_subparsers(title="commands", metavar="command", required=True)

    one = commands.add_parser(
        "simulate", help="run a scenario; write its result (NetCDF) and a figure"
    )
    one.add_argument(
        "scenario", help="a TOML file, or the name of a ready scenario (see: fluidcc list)"
    )
    one.add_argument("--until", metavar="TIME", help='end of the run, such as "90 s"')
    one.add_argument("--rtol", type=float, help="relative tolerance (default: 1e-6)")
    one.add_argument(
        "-o",
        "--output",
        metavar="FILE.nc",
        type=Path,
        help="the result (default: the scenario's name)",
    )
    one.add_argument(
        "--figure",
        metavar="FILE.png",
        type=Path,
        help=f"the figure, {', '.join(PICTURES)} (default: as the output)",
    )
    _add_set(one)
    one.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="a progress bar (default: on long runs)",
    )
    _add_force(one)
    one.set_defaults(run=run_simulate)

    _add_sweep(commands)

    judged = commands.add_parser(
        "stability", help="judge a scenario near its equilibrium: verdict, margins, roots"
    )
    judged.add_argument(
        "scenario", help="a TOML file, or the name of a ready scenario (see: fluidcc list)"
    )
    judged.add_argument("-o", "--figure", metavar="FILE.png", type=Path, help="a Nyquist plot too")
    judged.add_argument(
        "--at",
        metavar="TIME",
        help="when: capacities and flows as they are then (default: in the end)",
    )
    judged.add_argument(
        "--delays", choices=("fifo", "frozen"), default="fifo", help="frozen: as the papers have it"
    )
    judged.add_argument("--certify", action="store_true", help="prove the number of unstable roots")
    _add_set(judged)
    _add_force(judged)
    judged.set_defaults(run=run_stability)

    rest = commands.add_parser("equilibrium", help="where rates, queues and losses settle")
    rest.add_argument(
        "scenario", help="a TOML file, or the name of a ready scenario (see: fluidcc list)"
    )
    rest.add_argument("--at", metavar="TIME", help="when: capacities and flows as they are then")
    _add_set(rest)
    rest.set_defaults(run=run_equilibrium)

    seen = commands.add_parser("explore", help="change a network by sliders, in a browser")
    seen.add_argument("scenario", nargs="?", help="a TOML file, or the name of a ready scenario")
    seen.add_argument("--port", type=int, default=0, help="of the page (default: any that is free)")
    seen.add_argument("--no-browser", action="store_true", help="only print the page's address")
    seen.set_defaults(run=run_explore)

    again = commands.add_parser("reproduce", help="recompute every scenario, figure and claim")
    again.add_argument(
        "--folder", type=Path, default=Path("figures"), help="where to (default: figures)"
    )
    _add_force(again)
    again.set_defaults(run=run_reproduce)

    said = commands.add_parser("claims", help="what the papers say, and what is computed")
    said.add_argument("paper", nargs="?", help="one paper (default: all)")
    said.add_argument(
        "--format",
        choices=("md", "text"),
        default="text",
        help="Markdown or plain text (the default)",
    )
    said.set_defaults(run=run_claims)

    shown = commands.add_parser("list", help="the laws, scenarios and papers there are")
    shown.set_defaults(run=run_list)

    here = commands.add_parser(
        "doctor", help="cache, versions, cores and a test run of this installation"
    )
    here.add_argument("--clean", action="store_true", help="delete all compiled code")
    here.add_argument("--json", action="store_true", help="as JSON")
    here.set_defaults(run=run_doctor)

    ahead = commands.add_parser("warm", help="compile all there is ahead, once (minutes)")
    ahead.set_defaults(run=run_warm)

    settings = commands.add_parser(
        "dask-config", help="the file with settings of Dask for sweeps on a cluster"
    )
    settings.set_defaults(run=run_dask_config)
    return top


def _add_sweep(commands: Any) -> None:
    grid = commands.add_parser("sweep", help="measure a scenario over a grid, from a TOML file")
    grid.add_argument("file", help="a TOML file with a scenario, a measure and a grid")
    grid.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="the results: .nc, .zarr, .parquet or .csv (default: FILE.nc)",
    )
    grid.add_argument(
        "--store", metavar="FOLDER", help="keep finished chunks there, and go on where it was"
    )
    grid.add_argument(
        "--scheduler", metavar="tcp://HOST:PORT", help="a Dask scheduler, whose workers do the work"
    )
    grid.add_argument(
        "--executor", choices=("threads", "processes", "serial"), help="how this machine does it"
    )
    grid.add_argument("--workers", type=int, help="number of workers (default: all cores)")
    grid.add_argument(
        "--progress", action=argparse.BooleanOptionalAction, default=None,
        help="a progress bar (default: on long sweeps)",
    )  # fmt: skip
    _add_force(grid)
    grid.set_defaults(run=run_sweep)


def _add_set(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="changes",
        help='replace a value of the file, such as flows.a.params.beta=0.2 or "until=90 s"; may '
             'be repeated',
    )  # fmt: skip


def _add_force(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--force", action="store_true", help="replace files that are there already"
    )
