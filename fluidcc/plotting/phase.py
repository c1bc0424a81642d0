"""One rate against another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base.arguments import explained, number, numbers
from fluidcc.base.errors import InvalidInput
from fluidcc.plotting.common import GREY, axes_for, chosen, legend, require_result

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

__all__ = ["convergence_plane", "phase_plane"]


@explained
def phase_plane(ds: xr.Dataset, flows: Sequence[str] | None = None, *, ax: Any = None) -> Axes:
    """Draw the rate of one flow against that of another: fairness is the diagonal, full use the falling line.

    Parameters
    ----------
    ds : Dataset of `fluidcc.simulate`
    flows : two names, optional
        By default the first two.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        With the curve, its start (circle) and end (square), the line of equal rates, and on a network of one link the
        line on which the two use what the others leave of the capacity at the end.

    Raises
    ------
    UnknownName
        If the result has no such flow.
    InvalidInput
        If `flows` are not two.
    """
    require_result(ds)
    pair = chosen(ds, "flow", flows)[: None if flows is not None else 2]
    if len(pair) != 2:
        raise InvalidInput(f"a phase plane is drawn of two flows, not of {len(pair)}: give flows=('a', 'b')")
    (one,) = axes_for(ax, 1, (6.0, 4.5))
    a, b = (ds["rate"].sel(flow=name).values / 1e6 for name in pair)
    one.plot(a, b, color="C0", linewidth=1.0, label="rates")
    one.plot(a[:1], b[:1], "o", color="C0", label=f"at {ds.time.values[0]:g} s")
    one.plot(a[-1:], b[-1:], "s", color="C3", label=f"at {ds.time.values[-1]:g} s")
    top = 1.05 * max(float(np.max(a)), float(np.max(b)))
    one.plot([0, top], [0, top], color=GREY, linestyle=":", linewidth=0.9, label="equal rates")
    if ds.sizes["link"] == 1:
        last = ds.isel(time=-1)
        room = (last["capacity"].item() - last["rate"].sum().item()) / 1e6 + a[-1] + b[-1]
        one.plot([0, room], [room, 0], color="black", linestyle="--", linewidth=0.8, label="link fully used")
    one.set(xlim=(0, top), ylim=(0, top), xlabel=f"rate of {pair[0]} [Mbit/s]", ylabel=f"rate of {pair[1]} [Mbit/s]")
    one.set_aspect("equal")
    legend(one)
    return one


@explained
def convergence_plane(rates: Any, capacity: float, *, label: str = "", unit: str = "", ax: Any = None) -> Axes:
    """Draw how two rates move between the efficiency line and the fairness line, step by step.

    Parameters
    ----------
    rates : array_like, shape (steps, 2)
        One point a step, such as `fluidcc.Synchronized.rates` or the corners of a fluid's cycles.
    capacity : float
        Of the link, in the same unit.
    label : str
        Name of the path in the legend.
    unit : str
        Of the rates, for the labels; they are drawn as they are.
    ax : Axes, optional
        Where to draw, more than once for several paths; by default a new figure.

    Returns
    -------
    Axes
        With the path, its start (circle) and end (square), the fairness line y = x, the efficiency line x + y = C, and
        the equi-fairness line through the start.

    Raises
    ------
    InvalidInput
        If `rates` are not finite pairs, or the capacity is not positive.
    """
    path = numbers(rates, "rates", "finite pairs, one a step")
    if path.ndim != 2 or path.shape[1] != 2 or len(path) == 0:
        raise InvalidInput(f"rates has shape {path.shape}; give finite pairs, one a step")
    capacity = number(capacity, "the capacity", "a positive number, in the unit of the rates", above=0.0)
    (one,) = axes_for(ax, 1, (6.0, 4.5))
    (line,) = one.plot(path[:, 0], path[:, 1], linewidth=1.0, marker=".", markersize=3, label=label or "rates")
    one.plot(*path[0], "o", color=line.get_color())
    one.plot(*path[-1], "s", color=line.get_color())
    top = 1.02 * max(capacity, float(path.max()))
    one.plot([0, top], [0, top], color=GREY, linestyle=":", linewidth=0.9, label="fairness line")
    one.plot([0, capacity], [capacity, 0], color="black", linestyle="--", linewidth=0.8, label="efficiency line")
    reach = top / max(path[0])
    one.plot([0, reach * path[0, 0]], [0, reach * path[0, 1]], color=GREY, linewidth=0.6, label="equi-fairness line")
    text = f" [{unit}]" if unit else ""
    one.set(xlim=(0, top), ylim=(0, top), xlabel=f"rate x{text}", ylabel=f"rate y{text}")
    one.set_aspect("equal")
    legend(one)
    return one
