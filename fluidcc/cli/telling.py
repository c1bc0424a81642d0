"""``fluidcc reproduce``, ``fluidcc claims``, ``fluidcc list`` and ``fluidcc dask-config``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

__all__ = ["run_claims", "run_dask_config", "run_list", "run_reproduce"]


def run_reproduce(args: argparse.Namespace) -> None:
    from fluidcc import papers as claims

    print(f"{args.folder / 'claims.md'}: {claims.reproduce(args.folder, force=args.force).summary()}")


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


def _section(title: str, rows: Iterable[tuple[str, str]]) -> None:
    print(f"{title}:")
    for name, about in rows:
        print(f"  {name:<20} {about}".rstrip())
