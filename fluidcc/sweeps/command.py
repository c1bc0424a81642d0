"""``fluidcc sweep file.toml``."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.sweeps.api import sweep
from fluidcc.sweeps.file import is_file, load_sweep
from fluidcc.sweeps.output import check_output, save

__all__ = ["run_file"]

PATIENCE = 10.0  # seconds in which a scheduler must answer


def run_file(args: argparse.Namespace) -> None:
    """Run a sweep file by the arguments of the command line, which win over what the file says."""
    scenario, given, file = load_sweep(args.file)
    output = args.output or Path(file.output or f"{Path(args.file).stem}.nc")
    if args.store is not None:
        given["store"] = args.store
    keep = {"the sweep's file": Path(args.file)}
    beside = Path(args.file).parent / file.scenario
    keep |= {"its scenario": beside} if is_file(beside) else {}
    keep |= {"its store": Path(given["store"])} if given["store"] else {}
    check_output(output, force=args.force, keep=keep)
    if args.workers is not None:
        given["workers"] = args.workers
    if args.executor is not None:
        given["executor"] = args.executor
    with _client(args.scheduler) as client:
        if client is not None:
            given["executor"] = client
        data = sweep(scenario, given.pop("grid"), given.pop("measure"), progress=args.progress, **given)
    data.attrs.update(scenario=scenario.name, title=file.title or scenario.title)
    save(data, output)
    failed = int(data.attrs["failed"])
    warned = f", {data.attrs['warned']} with a warning" if data.attrs["warned"] else ""
    print(f"{output}: {data.attrs['points']} points in {data.attrs['seconds']:.3g} s, {failed} failed{warned}")
    if failed:
        reasons = data["error"].values.ravel()
        first = next(text for text in reasons if text)
        print(f"the first failure: {first}")


def _client(address: str | None) -> AbstractContextManager[Any]:
    if address is None:
        return nullcontext()
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise Unsupported(
            f"--scheduler {address}: a cluster needs the package distributed; install fluidcc[cluster]"
        ) from None
    try:
        get_address_host_port(address)  # a client of what is no address would take 20 s to end, with a traceback
        # Not the process's default: one that cannot connect would leave Dask's scheduler set to a cluster that is not.
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"--scheduler {address}: there is no Dask scheduler ({' '.join(str(error).split())}); start one with "
            "'dask scheduler', and workers with 'dask worker ADDRESS'"
        ) from None
