"""Pictures of results in a notebook's page.

A result says what it holds, and `image` what it looks like, without importing the plots, which are
in a subpackage above all results (`fluidcc.base.above`).
"""

from __future__ import annotations

import base64
import io
from importlib import import_module
from typing import Any

from fluidcc.base import above


def image(of: Any, plot: str) -> str:
    """Return a plot of a result as HTML; made without pyplot, so that no figure is left open."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    plots = import_module(above.DRAWN_BY)
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    with rc_context(plots.STYLE):
        getattr(plots, plot)(of, ax=figure.subplots())
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    data = base64.b64encode(file.getvalue()).decode()
    return f"<img alt='{plot} plot' src='data:image/png;base64,{data}'/>"
