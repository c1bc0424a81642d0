"""Stability charts: boundaries of stability over two parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import InvalidInput
from fluidcc.plotting.common import GREY, axes_for, legend, scaled, several
from fluidcc.plotting.filled import filled_chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["stability_chart"]


@explained
def stability_chart(curves: Any, *, labels: Sequence[str] | None = None, ax: Any = None, **of_a_sweep: Any) -> Axes:
    """Draw boundary curves of `fluidcc.stability_boundary` with ``along=``, or a sweep over two axes.

    Parameters
    ----------
    curves : BoundaryCurve or sequence of them, or Dataset of `fluidcc.sweep`
        Over the same two parameters. Of a sweep the margins are filled, with the boundary of stability and those of
        sufficient conditions on top: see `fluidcc.plotting.filled.filled_chart` for `verdict`, `value` and `over`.
    labels : sequence of str, optional
        One for each.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        Solid where the curve bounds the region of stability, dotted where another root is unstable already.
    """
    if hasattr(curves, "data_vars"):
        return filled_chart(curves, ax=ax, **of_a_sweep)
    if of_a_sweep:
        raise InvalidInput(f"{', '.join(of_a_sweep)} are for the Dataset of a sweep; leave them out for curves")
    given = list(curves) if isinstance(curves, Sequence) else [curves]
    for curve in given:
        if not hasattr(curve, "along"):
            raise InvalidInput(
                f"{shown(curve)} is no curve; give the result of fluidcc.stability_boundary(net, name, along=...)"
            )
    if not given or any({(c.along, c.name)} != {(given[0].along, given[0].name)} for c in given):
        raise InvalidInput("a chart needs one or more curves over the same two parameters")
    names = several(labels, "labels") if labels is not None else ["boundary"] * len(given)
    if len(names) != len(given):
        raise InvalidInput(f"labels has {len(names)} entries for {len(given)} curves; give one for each")
    (one,) = axes_for(ax, 1, (6.4, 4.6))
    (x_name, x_size), (y_name, y_size) = (
        scaled(given[0].along, given[0].along_units), scaled(given[0].name, given[0].units),
    )  # fmt: skip
    for k, (curve, name) in enumerate(zip(given, names, strict=True)):
        x, y = curve.x / x_size, curve.y / y_size
        one.plot(x, np.where(curve.outermost, y, np.nan), color=f"C{k % 10}", linewidth=1.4, label=name)
        if not curve.outermost.all():
            one.plot(x, np.where(curve.outermost, np.nan, y), color=f"C{k % 10}", linewidth=1.0, linestyle=":",
                     label=f"{name}: of another root")  # fmt: skip
    every = np.concatenate([c.x for c in given])
    if every.min() > 0 and every.max() / every.min() > 8:
        one.set_xscale("log")
    values = np.concatenate([c.y for c in given])
    if values.min() > 0 and values.max() / values.min() > 8:
        one.set_yscale("log")
    one.set(xlabel=x_name, ylabel=y_name)
    one.grid(color=GREY, alpha=0.25, linewidth=0.5)
    legend(one)
    return one
