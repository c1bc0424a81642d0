"""What the command ``fluidcc`` understands."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from fluidcc.base.files import PICTURES
from fluidcc.base.version import __version__
from fluidcc.cli.commands import (
    run_claims,
    run_completion,
    run_dask_config,
    run_doctor,
    run_equilibrium,
    run_explore,
    run_help,
    run_list,
    run_reproduce,
    run_simulate,
    run_stability,
    run_sweep,
    run_warm,
)


class _Parser(argparse.ArgumentParser):
    """A parser that answers a mistyped word with the nearest one."""

    def error(self, message: str) -> NoReturn:
        from fluidcc.network.patterns import near

        wrong = re.match(r"argument .*: invalid choice: '(.*)' \(choose from (.*)\)", message)
        if wrong is not None:
            known = re.findall(r"[\w-]+", wrong[2])
            message = f"there is no {wrong[1]!r} here; {near(wrong[1], known)}"
        odd = re.match(r"unrecognized arguments: (--[\w-]+)", message)
        if odd is not None:
            message = f"there is no option {odd[1]!r} here; " + near(
                odd[1], [name for name in self._option_string_actions if name.startswith("--")]
            )
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse them all: a command knows best what it would have taken."""
        known, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return known, rest


EXIT_CODES = """exit codes: 0 done; 2 a mistake in what was given, said in one line on standard
error; 130 Ctrl-C; 1 a defect of fluidcc itself, with a traceback"""
JSON = "print JSON: numbers as the functions return them, null for what is infinite or not defined"


def make_parser() -> argparse.ArgumentParser:
    top = _Parser(
        "fluidcc",
        description="Fluid models of congestion control.",
        epilog=f"Examples of a command: fluidcc COMMAND --help\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"fluidcc {__version__}")
    commands = top.add_subparsers(title="commands", metavar="command", required=True)
    for add in (_runs, _steady, _library, _installation):
        add(commands)
    top.set_defaults(top=top)
    return top


def commands_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the commands of the parser by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _command(commands: Any, name: str, run: Callable[..., Any], about: str, *examples: str) -> Any:
    """Return the parser of a new command."""
    one = commands.add_parser(
        name,
        help=about,
        description=f"{about[0].upper()}{about[1:]}.",
        epilog="examples:\n" + "\n".join(f"  fluidcc {name} {e}".rstrip() for e in examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    one.add_argument("--json", action="store_true", help=JSON)
    one.set_defaults(run=run)
    return one


def _runs(commands: Any) -> None:
    one = _command(
        commands, "simulate", run_simulate,
        "run a scenario; write its result (NetCDF or CSV) and a figure",
        "ldcc_fig5",
        'mine.toml --until "90 s" --set flows.a.params.beta=0.2 -o mine.nc --figure mine.pdf',
        "ldcc_fig5 --json > run.json",
    )  # fmt: skip
    _add_scenario(one)
    one.add_argument("--until", metavar="TIME", help='end of the run, such as "90 s"')
    one.add_argument("--rtol", type=float, help="relative tolerance (default: 1e-6)")
    one.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="the result, .nc or .csv (default: the scenario's name, as .nc)",
    )
    one.add_argument(
        "--figure",
        metavar="FILE.png",
        type=Path,
        help=f"the figure, {', '.join(PICTURES)} (default: as the output)",
    )
    _add_set(one)
    _add_progress(one, "runs")
    _add_force(one)

    grid = _command(
        commands, "sweep", run_sweep, "measure a scenario over a grid, from a TOML file",
        "file.toml --output sweep.parquet",
        "file.toml --store sweep.zarr --scheduler tcp://HOST:8786",
    )  # fmt: skip
    grid.add_argument("file", help="a TOML file with a scenario, a measure and a grid")
    grid.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="the results: .nc, .zarr, .parquet or .csv (default: FILE.nc)",
    )
    grid.add_argument(
        "--store", metavar="FOLDER", help="keep finished chunks there: a killed sweep resumes"
    )
    grid.add_argument(
        "--scheduler", metavar="tcp://HOST:PORT", help="a Dask scheduler, whose workers do the work"
    )
    grid.add_argument(
        "--executor", choices=("threads", "processes", "serial"), help="how this machine does it"
    )
    grid.add_argument("--workers", type=int, help="number of workers (default: all cores)")
    _add_progress(grid, "sweeps")
    _add_force(grid)

    seen = _command(
        commands, "explore", run_explore, "change a network by sliders, in a browser",
        "ldcc_fig5", "mine.toml --port 5006 --no-browser",
    )  # fmt: skip
    _add_scenario(seen, nargs="?")
    seen.add_argument("--port", type=int, default=0, help="of the page (default: any that is free)")
    seen.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default: that of this machine alone); whoever reaches another "
        "one can use the page",
    )
    seen.add_argument("--no-browser", action="store_true", help="only print the page's address")


def _steady(commands: Any) -> None:
    judged = _command(
        commands, "stability", run_stability,
        "judge a scenario near its equilibrium: verdict, margins, roots",
        'ldcc_fig5 --at "50 s" -o loop.png',
        "mine.toml --certify --set flows.a.params.eta=0.8",
    )  # fmt: skip
    _add_scenario(judged)
    judged.add_argument("-o", "--figure", metavar="FILE.png", type=Path, help="a Nyquist plot too")
    _add_at(judged)
    judged.add_argument(
        "--delays", choices=("fifo", "frozen"), default="fifo", help="frozen: as the papers have it"
    )
    judged.add_argument("--certify", action="store_true", help="prove the number of unstable roots")
    _add_set(judged)
    _add_force(judged)

    rest = _command(
        commands, "equilibrium", run_equilibrium, "where rates, queues and losses settle",
        "ldcc_fig5", 'ldcc_fig5 --at "150 s" --json',
    )  # fmt: skip
    _add_scenario(rest)
    _add_at(rest)
    _add_set(rest)


def _library(commands: Any) -> None:
    again = _command(
        commands, "reproduce", run_reproduce, "recompute every scenario, figure and claim",
        "", "--folder elsewhere",
    )  # fmt: skip
    again.add_argument(
        "--folder", type=Path, default=Path("figures"), help="where to (default: figures)"
    )
    _add_force(again)

    said = _command(
        commands, "claims", run_claims, "what the papers say, and what is computed",
        "", "ldcc", "ldcc --format md",
    )  # fmt: skip
    said.add_argument("paper", nargs="?", help="one paper (default: all)")
    said.add_argument(
        "--format",
        choices=("md", "text"),
        default="text",
        help="Markdown or plain text (the default)",
    )
    _command(
        commands, "list", run_list, "the laws, scenarios and papers there are, a line each",
        "", "--json",
    )  # fmt: skip


def _installation(commands: Any) -> None:
    here = _command(
        commands, "doctor", run_doctor,
        "cache, versions, cores and a test run of this installation",
        "", "--clean",
    )  # fmt: skip
    here.add_argument("--clean", action="store_true", help="delete all compiled code")
    _command(
        commands, "warm", run_warm, "compile all there is ahead, once (minutes)", "",
    )  # fmt: skip
    shell = _command(
        commands, "completion", run_completion, "the script by which a shell completes with Tab",
        "bash > ~/.local/share/bash-completion/completions/fluidcc",
        "zsh >> ~/.zshrc",
        "fish > ~/.config/fish/completions/fluidcc.fish",
    )  # fmt: skip
    shell.add_argument("shell", choices=("bash", "zsh", "fish"))
    shell.set_defaults(commands=commands.choices)
    asked = _command(
        commands, "help", run_help, "what the command or one of its commands understands",
        "", "simulate",
    )  # fmt: skip
    asked.add_argument("about", metavar="command", nargs="?", help="one of them (default: all)")
    asked.set_defaults(commands=commands.choices)
    _command(
        commands, "dask-config", run_dask_config,
        "the file with settings of Dask for sweeps on a cluster", "",
    )  # fmt: skip


# --- options of several commands ------------------------------------------------------------------


def _add_scenario(command: argparse.ArgumentParser, **more: Any) -> None:
    command.add_argument(
        "scenario", help="a TOML file, or the name of a ready scenario (see: fluidcc list)", **more
    )


def _add_at(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--at",
        metavar="TIME",
        help="when: capacities and flows as they are then (default: in the end)",
    )


def _add_set(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="changes",
        help='replace a value of the file, such as flows.a.params.beta=0.2 or "until=90 s"; may '
             'be repeated',
    )  # fmt: skip


def _add_progress(command: argparse.ArgumentParser, long: str) -> None:
    command.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help=f"a progress bar (default: on long {long})",
    )


def _add_force(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--force", action="store_true", help="replace files that are there already"
    )
