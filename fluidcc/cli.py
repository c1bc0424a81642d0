"""The command ``fluidcc``: the same from a shell. Errors of fluidcc are one line on standard error, and exit code 2."""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from errno import EIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluidcc import __version__
from fluidcc.errors import FluidccError, InvalidInput

if TYPE_CHECKING:
    import xarray as xr

    from fluidcc.scenarios import Scenario

__all__ = ["main"]

_PICTURES = (".pdf", ".png", ".svg")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        The exit code: 0, or 2 after an error of fluidcc or of the file system, or 130 after Ctrl-C.
    """
    args = _parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.showwarning = _warn  # type: ignore[assignment]  # the rest of its arguments says where in the code
        try:
            args.run(args)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (FluidccError, OSError) as error:
            said = str(error) if isinstance(error, FluidccError) else _of_the_system(error)
            print(f"fluidcc: {' '.join(said.split())}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("fluidcc: stopped", file=sys.stderr)
            return 130
    return 0


def _of_the_system(error: OSError) -> str:
    """What the file system refused; HDF5 says the same at length, and without the file's name."""
    if error.errno is None:
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{os.strerror(error.errno).lower()}; make room there, or give another place"


def _warn(message: Warning | str, *_: Any) -> None:
    print(f"fluidcc: warning: {' '.join(str(message).split())}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser("fluidcc", description="Fluid models of congestion control.")
    top.add_argument("--version", action="version", version=f"fluidcc {__version__}")
    commands = top.add_subparsers(title="commands", metavar="command", required=True)

    one = commands.add_parser("simulate", help="run a scenario; write its result (NetCDF) and a figure")
    one.add_argument("scenario", help="a TOML file, or the name of a ready scenario (see: fluidcc list)")
    one.add_argument("--until", metavar="TIME", help='end of the run, such as "90 s"')
    one.add_argument("--rtol", type=float, help="relative tolerance (default: 1e-6)")
    one.add_argument("--output", metavar="FILE.nc", type=Path, help="the result (default: the scenario's name)")
    one.add_argument(
        "--figure", metavar="FILE.png", type=Path, help=f"the figure, {', '.join(_PICTURES)} (default: as the output)"
    )
    _add_set(one)
    one.add_argument(
        "--progress", action=argparse.BooleanOptionalAction, default=None, help="a progress bar (default: on long runs)"
    )
    one.set_defaults(run=_simulate)

    _add_sweep(commands)

    judged = commands.add_parser("stability", help="judge a scenario near its equilibrium: verdict, margins, roots")
    judged.add_argument("scenario", help="a TOML file, or the name of a ready scenario (see: fluidcc list)")
    judged.add_argument("-o", "--figure", metavar="FILE.png", type=Path, help="a Nyquist plot too")
    judged.add_argument(
        "--at", metavar="TIME", help="when: capacities and flows as they are then (default: in the end)"
    )
    judged.add_argument("--delays", choices=("fifo", "frozen"), default="fifo", help="frozen: as the papers have it")
    judged.add_argument("--certify", action="store_true", help="prove the number of unstable roots")
    _add_set(judged)
    judged.set_defaults(run=_stability)

    again = commands.add_parser("reproduce", help="recompute every scenario, figure and claim")
    again.add_argument("--folder", type=Path, default=Path("figures"), help="where to (default: figures)")
    again.set_defaults(run=_reproduce)

    said = commands.add_parser("claims", help="what the papers say, and what is computed")
    said.add_argument("paper", nargs="?", help="one paper (default: all)")
    said.add_argument("--format", choices=("md", "text"), default="text", help="Markdown or plain text (the default)")
    said.set_defaults(run=_claims)

    shown = commands.add_parser("list", help="the laws, scenarios and papers there are")
    shown.set_defaults(run=_list)
    return top


def _add_sweep(commands: Any) -> None:
    grid = commands.add_parser("sweep", help="measure a scenario over a grid, from a TOML file")
    grid.add_argument("file", help="a TOML file with a scenario, a measure and a grid")
    grid.add_argument(
        "--output", metavar="FILE", type=Path, help="the results: .nc, .zarr, .parquet or .csv (default: FILE.nc)"
    )
    grid.add_argument("--store", metavar="FOLDER", help="keep finished chunks there, and go on where it was")
    grid.add_argument("--scheduler", metavar="tcp://HOST:PORT", help="a Dask scheduler, whose workers do the work")
    grid.add_argument("--executor", choices=("threads", "processes", "serial"), help="how this machine does it")
    grid.add_argument("--workers", type=int, help="number of workers (default: all cores)")
    grid.add_argument(
        "--progress", action=argparse.BooleanOptionalAction, default=None,
        help="a progress bar (default: on long sweeps)",
    )  # fmt: skip
    grid.set_defaults(run=_sweep)


def _sweep(args: argparse.Namespace) -> None:
    from fluidcc.sweep.command import run_file

    run_file(args)


def _add_set(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="changes",
        help='replace a value of the file, such as flows.a.params.beta=0.2 or "until=90 s"; may be repeated',
    )  # fmt: skip


# --- simulate ---------------------------------------------------------------------------------------------------------


def _simulate(args: argparse.Namespace) -> None:
    from fluidcc.scenarios import Scenario

    changes = dict(_assignment(text) for text in args.changes)
    if args.until is not None:
        changes["until"] = _number(args.until)
    scenario = Scenario.load(args.scenario, changes)
    output = args.output or Path(f"{scenario.name}.nc")
    figure = args.figure or output.with_suffix(".png")
    _check_places(output, figure)
    tolerance = {} if args.rtol is None else {"rtol": args.rtol}
    result = scenario.simulate(progress=args.progress, **tolerance)
    result.attrs.update(scenario=scenario.name, title=scenario.title, fluidcc=__version__)
    with _writing(output):
        result.to_netcdf(output, engine="h5netcdf")
    _draw(scenario, result, figure)
    print(f"{output}\n{figure}")


def _assignment(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise InvalidInput(f"--set {text}: give KEY=VALUE, such as flows.a.params.beta=0.2")
    return key.strip(), _number(value.strip())


def _number(text: str) -> Any:
    """A value as TOML writes it (a number, a list, quoted text), or else the text itself: 90 s."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _check_places(output: Path, figure: Path) -> None:
    """Before a long run rather than after it."""
    _check_picture("--figure", figure)
    if output.resolve() == figure.resolve():
        raise InvalidInput(f"--output and --figure are both {output}; give two names")
    for file in (output, figure):
        _check_folder(file)


def _check_picture(option: str, figure: Path) -> None:
    if figure.suffix.lower() not in _PICTURES:
        raise InvalidInput(f"{option} {figure}: its name must end in {', '.join(_PICTURES[:-1])} or {_PICTURES[-1]}")


@contextmanager
def _writing(file: Path) -> Iterator[None]:
    """Name the file in what the file system says."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno or EIO, "", str(file)) from error


def _check_folder(file: Path) -> None:
    if file.is_dir():
        raise InvalidInput(f"{file} is a folder; give the name of a file")
    if not file.parent.is_dir():
        raise InvalidInput(f"{file}: there is no folder {file.parent}; make it, or write elsewhere")


def _draw(scenario: Scenario, result: xr.Dataset, figure: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from fluidcc.plot import timeseries

    shown = ["rate", "one_way_delay", "queueing_delay"]
    shown += [name for name in ("loss", "price") if name in result and float(result[name].max()) > 0]
    axes = timeseries(result, shown)
    axes[0].set_title(scenario.title or scenario.name, fontsize="medium")
    axes[0].figure.savefig(figure, dpi=150)
    plt.close(axes[0].figure)


# --- stability --------------------------------------------------------------------------------------------------------


def _stability(args: argparse.Namespace) -> None:
    import math

    from fluidcc.analysis.show import rows_of
    from fluidcc.analysis.stability import stability
    from fluidcc.scenarios import Scenario
    from fluidcc.units import to_si

    scenario = Scenario.load(args.scenario, dict(_assignment(text) for text in args.changes))
    if args.figure is not None:
        _check_picture("-o", args.figure)
        _check_folder(args.figure)
    time = math.inf if args.at is None else to_si(_number(args.at), "s", "--at")
    report = stability(scenario.net, delays=args.delays, at=time, certify=args.certify)
    rows = rows_of(report)
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
    if args.figure is not None:
        _draw_loop(scenario, report, args.figure)
        print(args.figure)


def _draw_loop(scenario: Scenario, report: Any, figure: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from fluidcc.plot import nyquist

    drawn, ax = plt.subplots(figsize=(7.6, 5.0), layout="constrained")
    nyquist(report, ax=ax)
    ax.set_title(f"{scenario.title or scenario.name}: {report.verdict}", fontsize="medium")
    drawn.savefig(figure, dpi=150)
    plt.close(drawn)


# --- claims and lists -------------------------------------------------------------------------------------------------


def _reproduce(args: argparse.Namespace) -> None:
    from fluidcc import claims

    print(f"{args.folder / 'claims.md'}: {claims.reproduce(args.folder).summary()}")


def _claims(args: argparse.Namespace) -> None:
    from fluidcc import claims

    table = claims.table(args.paper)
    print(table.to_markdown().rstrip() if args.format == "md" else table)


def _list(args: argparse.Namespace) -> None:
    from fluidcc import claims, links, sources
    from fluidcc.scenarios import scenarios

    _section("sources", ((name, getattr(sources, name).ref) for name in sources.__all__))
    _section("links", ((name, getattr(links, name).ref) for name in links.__all__))
    _section("scenarios", ((name, s.title) for name, s in scenarios.items()))
    _section("papers", ((name, "") for name in claims.papers()))


def _section(title: str, rows: Iterable[tuple[str, str]]) -> None:
    print(f"{title}:")
    for name, about in rows:
        print(f"  {name:<20} {about}".rstrip())
