"""Response functions of Reno, HighSpeed TCP and CUBIC, with the cells of RFC 9438's tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.formulas.response import cubic_window, highspeed_window, square_root_window
from fluidcc.papers.drawing import Figures
from fluidcc.papers.internet.windows import GAINS, RATIOS, printed

FIGURES = Figures()


@FIGURES.panels(
    "internet_response",
    title="Mean windows of Reno, HighSpeed TCP and CUBIC (dots: RFC 9438, Tables 1 and 2)",
)
def response(ax: Any) -> None:
    """Mean window over the loss ratio."""
    ratios = np.geomspace(1e-8, 1e-2, 200)
    ax.loglog(ratios, square_root_window(ratios), color="black", label="Reno")
    ax.loglog(ratios, highspeed_window(ratios), color="black", ls="--", label="HighSpeed TCP")
    for k, (rtt, table) in enumerate(printed().items()):
        ax.loglog(
            ratios, cubic_window(ratios, rtt), color=f"C{k}", label=f"CUBIC, {1e3 * rtt:g} ms"
        )
        ax.loglog(RATIOS, table[GAINS.index(0.4)], "o", color=f"C{k}")
    ax.set(xlabel="loss ratio", ylabel="mean window [packets]")
    ax.legend()
