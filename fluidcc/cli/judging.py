"""``fluidcc stability``."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluidcc.base.files import PICTURES, check_new, writing
from fluidcc.cli.changes import assignment, number

if TYPE_CHECKING:
    from fluidcc.network.scenarios import Scenario

__all__ = ["run_stability"]


def run_stability(args: argparse.Namespace) -> None:
    from fluidcc.analysis.show import rows_of
    from fluidcc.analysis.stability import stability
    from fluidcc.base.units import to_si
    from fluidcc.network.scenarios import Scenario

    scenario = Scenario.load(args.scenario, dict(assignment(text) for text in args.changes))
    if args.figure is not None:
        check_new(args.figure, "--figure", PICTURES, force=args.force, keep={"the scenario": Path(args.scenario)})
    time = math.inf if args.at is None else to_si(number(args.at), "s", "--at")
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

    from fluidcc.plotting import nyquist

    drawn, ax = plt.subplots(figsize=(7.6, 5.0), layout="constrained")
    nyquist(report, ax=ax)
    ax.set_title(f"{scenario.title or scenario.name}: {report.verdict}", fontsize="medium")
    with writing(figure):
        drawn.savefig(figure, dpi=150)
    plt.close(drawn)
