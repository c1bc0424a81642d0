"""Pictures of results. Each function draws into `ax` or a new figure, and returns the axes.

Rates are in Mbit/s, delays in ms; labels carry the unit. Matplotlib is imported when a picture is
first drawn. `STYLE` holds its settings for new figures; figures of one's own look alike after
``plt.rcParams.update(fc.plot.STYLE)``. `PAPER` is a style for a column of a paper, 3.5 inches wide
with letters of 8 points: ``with plt.rc_context(fc.plot.PAPER): fc.plot.timeseries(run)``.
"""

from __future__ import annotations

from fluidcc.plotting.chart import stability_chart
from fluidcc.plotting.common import PAPER, STYLE
from fluidcc.plotting.loops import bode, nyquist, root_map
from fluidcc.plotting.series import compare, convergence_plane, phase_plane, timeseries
from fluidcc.plotting.verdicts import claims

__all__ = [
    "PAPER", "STYLE", "bode", "claims", "compare", "convergence_plane", "nyquist", "phase_plane",
    "root_map", "stability_chart", "timeseries",
]  # fmt: skip
