"""Variables of a result over time."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base.arguments import explained, number, numbers, shown
from fluidcc.base.colours import BLACK, GREY, colour
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.network.patterns import near
from fluidcc.plotting.common import (
    MOST,
    axes_for,
    chosen,
    finish,
    in_symbols,
    require_result,
    scaled,
    several,
    whole,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

STYLES = ("-", "--", ":", "-.")  # of runs that are compared
FEW = 6  # courses that are all drawn, though some may be the same


@explained
def timeseries(
    ds: xr.Dataset,
    variables: str | Sequence[str] = ("rate", "queueing_delay"),
    *,
    flows: str | Sequence[str] | None = None,
    links: str | Sequence[str] | None = None,
    ax: Any = None,
    figsize: Any = None,
    title: str | None = None,
    legend: bool | str = True,
) -> Any:
    """Draw variables of a result over time, one below the other.

    Parameters
    ----------
    ds : Dataset of `fluidcc.simulate`
        Also one read back from a file.
    variables : str or sequence of str
        Names in `ds`. With ``"rate"`` on a network of one link, or with ``"throughput"`` and
        ``"arrival_rate"``, the capacity is drawn too, dashed, unless every rate is far below it; so
        is the sum of all rates, as a thin line.
    flows, links : str or sequence of str, optional
        Those to draw; by default all.
    ax : Axes, or one for each variable, optional
        Where to draw; by default a new figure.
    figsize : (float, float), optional
        Width and height of a new figure [in]; by default ``rcParams["figure.figsize"]`` where that
        was changed, half as high again for each further axes.
    title : str, optional
        Above the axes; by default none.
    legend : bool or str
        False for none, or its place as matplotlib names it, such as ``"upper right"``; by default
        beside the axes.

    Returns
    -------
    Axes, or array of Axes
        One for each variable; the axes itself if `variables` is one name.

    Raises
    ------
    InvalidInput
        If `ds` is no result; `UnknownName` if it has no such variable, flow or link.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.dumbbell([fc.LDCC] * 2, {"capacity": "3 Mbit/s"}, rtt="50 ms")
    >>> run = fc.simulate(net, until="30 s")
    >>> axes = fc.plot.timeseries(run, ["rate", "queueing_delay"])
    """
    require_result(ds)
    ds = whole(ds)
    names = several(variables, "variables")
    if not names:
        raise InvalidInput("variables is empty; name what to draw, such as 'rate'")
    for name in names:
        _require_variable(ds, name)
    axes = axes_for(ax, len(names), figsize=figsize)
    for name, one in zip(names, axes, strict=True):
        _series(ds, name, chosen(ds, "flow", flows), chosen(ds, "link", links), one)
        finish(one, title if one is axes[0] else None, legend)
    if ax is None:
        _tidy(axes)
    return axes[0] if isinstance(variables, str) else np.array(axes, dtype=object)


@explained
def compare(
    *runs: xr.Dataset,
    variable: str = "rate",
    labels: Sequence[str] | None = None,
    flows: str | Sequence[str] | None = None,
    links: str | Sequence[str] | None = None,
    ax: Any = None,
    figsize: Any = None,
    title: str | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw one variable of several runs into one axes: colours tell flows or links apart, styles of
    lines the runs.

    Parameters
    ----------
    *runs : Datasets of `fluidcc.simulate`
        Two to four.
    variable : str
        Name in each of them.
    labels : sequence of str, optional
        One for each run; by default "run 1", "run 2", ...
    flows, links : str or sequence of str, optional
        Those to draw; by default all that each run has.
    ax : Axes, optional
        Where to draw; by default a new figure.
    figsize : (float, float), optional
        Width and height of a new figure [in]; by default ``rcParams["figure.figsize"]`` where that
        was changed, half as high again for each further axes.
    title : str, optional
        Above the axes; by default none.
    legend : bool or str
        False for none, or its place as matplotlib names it, such as ``"upper right"``; by default
        beside the axes.

    Returns
    -------
    Axes

    Raises
    ------
    InvalidInput
        If there are not two to four runs, or as many labels.
    UnknownName
        If a run has no such variable, flow or link.

    Examples
    --------
    >>> import fluidcc as fc
    >>> nets = [fc.dumbbell([fc.LDCC(w=w)], {"capacity": 3e6}, rtt=0.05) for w in (10e3, 20e3)]
    >>> runs = [fc.simulate(net, until=5) for net in nets]
    >>> ax = fc.plot.compare(*runs, variable="queueing_delay", labels=["10 kbit/s", "20 kbit/s"])
    """
    names = [f"run {k + 1}" for k in range(len(runs))]
    if labels is not None:
        names = several(labels, "labels")
    if not 2 <= len(runs) <= len(STYLES) or len(names) != len(runs):
        raise InvalidInput(
            f"compare takes 2 to {len(STYLES)} runs and as many labels; it got "
            f"{len(runs)} and {len(names)}"
        )
    for run in runs:
        require_result(run)
        _require_variable(run, variable)
    runs = tuple(map(whole, runs))
    (one,) = axes_for(ax, 1, (8.0, 3.8), figsize)
    for run, label, style in zip(runs, names, STYLES, strict=False):
        few, some = chosen(run, "flow", flows), chosen(run, "link", links)
        _series(run, variable, few, some, one, style=style, of=f", {label}")
    finish(one, title, legend)
    return one


def _require_variable(ds: xr.Dataset, name: str) -> None:
    if not isinstance(name, str):
        raise InvalidInput(f"variable is {shown(name)}; give a name, such as 'rate'")
    if name in ds.data_vars:
        return
    known = [str(n) for n in ds.data_vars]
    hint = (
        near(name, known)
        if get_close_matches(name, known)
        else f"it has {', '.join(known) or 'none'}"
    )
    raise UnknownName(f"the result has no variable {name!r}; {hint}")


def _tidy(axes: list[Axes]) -> None:
    """Label the time on the last of several axes only, and name each line once."""
    named: set[str] = set()
    for one in axes:
        legend = one.get_legend()
        labels = {text.get_text() for text in legend.get_texts()} if legend else set()
        if legend and labels <= named:
            legend.remove()
        named |= labels
        if one is not axes[-1]:
            one.set_xlabel("")


def _series(
    ds: xr.Dataset, name: str, flows: list[str], links: list[str], ax: Axes, *,
    style: str = "-", of: str = "",
) -> None:  # fmt: skip
    """Draw one variable into one axes; `of` names its run, where there are several."""
    data = ds[name]
    dim = next((str(d) for d in data.dims if d != "time"), "")
    known = chosen(ds, dim, None) if dim else []
    picked = {"flow": flows, "link": links}.get(dim, known)
    label, size = scaled(name, str(data.attrs.get("units") or "1"))
    t = ds["time"].values
    if not dim:
        ax.plot(t, data.values / size, style, label=f"{name}{of}")
    courses = {one: data.sel({dim: one}).values / size for one in picked}
    for one, alike in _alike(courses):
        y = courses[one]
        if np.any(np.isfinite(y)):  # a flow without this state has none
            shade, width = colour(known.index(one)), 1.3 if len(picked) <= MOST else 0.5
            told = f"{one} and {alike} alike" if alike else one
            ax.plot(t, y, style, label=f"{told}{of}", color=shade, linewidth=width)
    if name in ("rate", "throughput", "arrival_rate"):
        _limits(ds, name, picked == known and not of, links, ax)
    ax.set_xlabel("time [s]")
    ax.set_ylabel(in_symbols(label, name))
    ax.margins(x=0)
    if np.nanmin(data.values, initial=0.0) >= 0:
        ax.set_ylim(bottom=0, auto=None)  # what is drawn later may still be higher
    ax.grid(alpha=0.3)


def _alike(courses: dict[str, Any]) -> list[tuple[str, int]]:
    """Return which of many courses are drawn, and how many others are under each."""
    if len(courses) <= FEW:
        return [(one, 0) for one in courses]
    same: dict[bytes, list[str]] = {}
    for one, y in courses.items():
        same.setdefault(y.tobytes(), []).append(one)
    return [(some[0], len(some) - 1) for some in same.values()]


def _limits(ds: xr.Dataset, name: str, all_drawn: bool, links: list[str], ax: Axes) -> None:
    """Draw the capacity, where it limits the rates drawn, and the sum of all rates, where they
    share one link.
    """
    # Of several links none bounds the rates; of many flows each is far below the capacity.
    if "capacity" not in ds or (
        name == "rate"
        and (ds.sizes.get("link", 0) > 1 or ds["rate"].max() < 0.1 * ds["capacity"].min())
    ):
        return
    t = ds["time"].values
    if name == "rate" and all_drawn and ds.sizes.get("flow", 0) > 1:
        total = ds["rate"].sum("flow").values / 1e6
        ax.plot(t, total, color=GREY, linewidth=0.7, label="sum", zorder=1.5)
    drawn = set()
    for link in chosen(ds, "link", None) if name == "rate" else links:
        c = ds["capacity"].sel(link=link).values / 1e6
        if c.tobytes() not in drawn:
            drawn.add(c.tobytes())
            style: dict[str, Any] = {"color": BLACK, "linestyle": "--", "linewidth": 0.8}
            ax.step(t, c, where="post", label="capacity", zorder=1.6, **style)


# --- One rate against another --------------------------------------------------------------------


@explained
def phase_plane(
    ds: xr.Dataset,
    flows: Sequence[str] | None = None,
    *,
    ax: Any = None,
    figsize: Any = None,
    title: str | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw the rate of one flow against that of another: fairness is the diagonal, full use the
    falling line.

    Parameters
    ----------
    ds : Dataset of `fluidcc.simulate`
    flows : two names, optional
        By default the first two.
    ax : Axes, optional
        Where to draw; by default a new figure.
    figsize : (float, float), optional
        Width and height of a new figure [in]; by default ``rcParams["figure.figsize"]`` where that
        was changed, half as high again for each further axes.
    title : str, optional
        Above the axes; by default none.
    legend : bool or str
        False for none, or its place as matplotlib names it, such as ``"upper right"``; by default
        beside the axes.

    Returns
    -------
    Axes
        With the curve, its start (circle) and end (square), the line of equal rates, and on a
        network of one link the line on which the two use what the others leave of the capacity at
        the end.

    Raises
    ------
    UnknownName
        If the result has no such flow.
    InvalidInput
        If `flows` are not two.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.dumbbell([fc.LDCC] * 2, {"capacity": "3 Mbit/s"}, rtt="50 ms")
    >>> run = fc.simulate(net, until="30 s")
    >>> ax = fc.plot.phase_plane(run)
    """
    require_result(ds)
    ds = whole(ds)
    known = chosen(ds, "flow", None)
    pair = chosen(ds, "flow", flows)[: None if flows is not None else 2]
    if len({*pair}) != 2 or len(pair) > 2:
        remedy = f"give flows={(*known[:2],)}" if len(known) > 1 else "simulate two"
        raise InvalidInput(f"a phase plane is drawn of two flows, not of {shown(pair)}: {remedy}")
    (one,) = axes_for(ax, 1, (6.0, 4.5), figsize, square=True)
    a, b = (ds["rate"].sel(flow=name).values / 1e6 for name in pair)
    one.plot(a, b, color=colour(0), linewidth=1.0, label="rates")
    one.plot(a[:1], b[:1], "o", color=colour(0), label=f"at {ds.time.values[0]:g} s")
    one.plot(a[-1:], b[-1:], "s", color=colour(3), label=f"at {ds.time.values[-1]:g} s")
    room = None
    if ds.sizes.get("link", 0) == 1:
        last = ds.isel(time=-1)
        room = (last["capacity"].item() - last["rate"].sum().item()) / 1e6 + a[-1] + b[-1]
    top = 1.05 * max(float(np.max(a)), float(np.max(b)))
    _plane(one, top, room, ("equal rates", "link fully used"),
           [f"rate of {name} [Mbit/s]" for name in pair])  # fmt: skip
    finish(one, title, legend)
    return one


def _plane(
    one: Axes, top: float, room: float | None, lines: tuple[str, str], axes: list[str]
) -> None:
    """Draw the line of equal rates and that on which two rates fill `room`; set the labels."""
    equal, full = lines
    one.plot([0, top], [0, top], color=GREY, linestyle=":", linewidth=0.9, label=equal)
    if room is not None:
        one.plot([0, room], [room, 0], color=BLACK, linestyle="--", linewidth=0.8, label=full)
    one.set(xlim=(0, top), ylim=(0, top), xlabel=axes[0], ylabel=axes[1])
    one.set_aspect("equal")


@explained
def convergence_plane(
    rates: Any,
    capacity: float,
    *,
    label: str = "",
    unit: str = "",
    ax: Any = None,
    figsize: Any = None,
    title: str | None = None,
    legend: bool | str = True,
) -> Axes:
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
    figsize : (float, float), optional
        Width and height of a new figure [in]; by default ``rcParams["figure.figsize"]`` where that
        was changed, half as high again for each further axes.
    title : str, optional
        Above the axes; by default none.
    legend : bool or str
        False for none, or its place as matplotlib names it, such as ``"upper right"``; by default
        beside the axes.

    Returns
    -------
    Axes
        With the path, its start (circle) and end (square), the fairness line y = x, the efficiency
        line x + y = C, and the equi-fairness line through the start.

    Raises
    ------
    InvalidInput
        If `rates` are not finite pairs, or the capacity is not positive.

    Examples
    --------
    >>> import fluidcc as fc
    >>> rates = [[8e5, 1e5], [9e5, 2e5], [4.5e5, 1e5]]  # grow by as much, then halve
    >>> ax = fc.plot.convergence_plane(rates, 1e6, label="AIMD")
    """
    path = numbers(rates, "rates", "finite pairs, one a step")
    if path.ndim != 2 or path.shape[1] != 2 or len(path) == 0:
        raise InvalidInput(f"rates has shape {path.shape}; give finite pairs, one a step")
    capacity = number(
        capacity, "the capacity", "a positive number, in the unit of the rates", above=0.0
    )
    (one,) = axes_for(ax, 1, (6.0, 4.5), figsize, square=True)
    (line,) = one.plot(
        path[:, 0], path[:, 1], linewidth=1.0, marker=".", markersize=3, label=label or "rates"
    )
    one.plot(*path[0], "o", color=line.get_color())
    one.plot(*path[-1], "s", color=line.get_color())
    top = 1.02 * max(capacity, float(path.max()))
    (x, y), reach = path[0], top / max(path[0])
    one.plot([0, reach * x], [0, reach * y], color=GREY, linewidth=0.6, label="equi-fairness line")
    text = f" [{unit}]" if unit else ""
    _plane(one, top, capacity, ("fairness line", "efficiency line"),
           [f"rate {axis}{text}" for axis in "xy"])  # fmt: skip
    finish(one, title, legend)
    return one
