"""Stability charts: boundaries of stability over two parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base.arguments import explained, shown
from fluidcc.base.colours import BLACK, GREY, colour
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.base.packed import axes_of
from fluidcc.network.patterns import near
from fluidcc.plotting.common import axes_for, finish, in_symbols, scaled, several, words

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

LEVELS = 12
DASHES = ("--", ":", "-.")


@explained
def filled_chart(
    data: xr.Dataset, *, verdict: str = "stable", value: str | None = None,
    over: Sequence[str] | Mapping[str, xr.DataArray] = (), ax: Any = None,
    figsize: Any = None, title: str | None = None, legend: bool | str = True,
) -> Axes:  # fmt: skip
    """Draw a sweep over two axes.

    Parameters
    ----------
    data : Dataset of `fluidcc.sweep`
        Over two numeric axes; the first is drawn across, the second up. Of a sweep over more, fix
        the others first: ``data.sel(w=2e4)``.
    verdict : str
        The yes-or-no variable; its boundary is a solid line, and what is outside is hatched. It is
        drawn half-way between points of unlike verdicts; that of ``"stable"``, if the sweep has
        measured ``"critical_gain"``, ``"gain_margin"`` or ``"decay_rate"`` too, where these say
        that a root is on the axis: to the second order in the distance of the points.
    value : str, optional
        A variable that is drawn as filled contours, such as ``"gain_margin"``; by default the only
        one that is neither the verdict nor in `over`, if there is one.
    over : sequence of str, or mapping of str to DataArray
        Further yes-or-no variables, such as sufficient conditions; their boundaries are broken
        lines. A mapping may bring them from another sweep over the same two axes, with values of
        its own along them. Of a variable with other values than yes and no, such as a margin, the
        line is where it is 1.
    ax, figsize, title, legend
        As for `stability_chart`.

    Returns
    -------
    Axes

    Raises
    ------
    InvalidInput
        If the sweep is not over two numeric axes.
    UnknownName
        If it has no such variable.
    """
    axes = axes_of(data)
    if len(axes) != 2 or any(data[a].dtype.kind not in "if" or data[a].size < 2 for a in axes):
        sizes = ", ".join(f"{name} with {data[name].size}" for name in axes)
        raise InvalidInput(
            "a chart is of a sweep over two axes, each with two numbers or more; this one is over "
            f"{sizes or 'none'}: fix the others by .sel, or add values"
        )
    over = over if isinstance(over, Mapping) else several(over, "over")
    inside = () if isinstance(over, Mapping) else over
    for name in (verdict, *inside, *([] if value is None else [value])):
        if name not in data.data_vars:
            raise UnknownName(
                f"the sweep has no variable {name!r}; {near(name, map(str, data.data_vars))}"
            )
    if value is None:
        known = (verdict, *inside, "measured", "error")
        numbers = [
            str(n)
            for n, v in data.data_vars.items()
            if v.dims == tuple(axes) and v.dtype.kind == "f"
        ]
        rest = [name for name in numbers if name not in known]
        value = rest[0] if len(rest) == 1 else None
    (one,) = axes_for(ax, 1, (6.8, 4.8), figsize)
    (x, x_label), (y, y_label) = (_scaled(data[name]) for name in axes)
    if value is not None:
        _fill(one, x, y, data[value].transpose(*axes), data[verdict].transpose(*axes))
    signed = _signed(data, verdict, axes)
    one.contourf(x, y, signed, [-np.inf, 0.0], colors=["white"], hatches=["////"])
    _line(one, x, y, signed, 0.0, f"{words(verdict)}: boundary", BLACK, "-")
    for k, (name, more) in enumerate(_more(data, over, axes).items()):
        here, there = (_scaled(more[axis].assign_attrs(data[axis].attrs))[0] for axis in axes)
        yes = np.asarray(more.transpose(*axes).values, dtype=float).T
        level = 0.5 if np.isin(yes[np.isfinite(yes)], (0.0, 1.0)).all() else 1.0
        _line(one, here, there, yes, level, name, colour(k + 1), DASHES[k % len(DASHES)])
    one.set(xlabel=x_label, ylabel=y_label)
    for axis, places in (("x", x), ("y", y)):
        if places.min() > 0 and not np.allclose(np.diff(places), places[1] - places[0]):
            _logarithmic(one, axis, places)
    below: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13), "ncols": 3}
    finish(one, title, legend, **below)
    return one


def _logarithmic(one: Any, axis: str, places: Any) -> None:
    """Make an axis logarithmic; over a few decades with ticks as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    getattr(one, f"set_{axis}scale")("log")
    if places.max() < 3000 * places.min():
        along = getattr(one, f"{axis}axis")
        along.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        along.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        along.set_minor_formatter(NullFormatter())


def _more(data: Any, over: Any, axes: list[str]) -> dict[str, Any]:
    """Return the variables to draw on top, by their labels."""
    if not isinstance(over, Mapping):
        return {words(name): data[name] for name in over}
    for name, found in over.items():
        if set(getattr(found, "dims", ())) != set(axes):
            raise InvalidInput(
                f"over[{name!r}] must be a DataArray over {' and '.join(axes)}, as the chart is"
            )
    return dict(over)


def _scaled(axis: Any) -> tuple[Any, str]:
    label, size = scaled(str(axis.name), str(axis.attrs.get("units", "1")))
    return axis.values / size, in_symbols(label, str(axis.name))


def _fill(one: Any, x: Any, y: Any, values: Any, yes: Any) -> None:
    """Filled contours through what was measured where the verdict is yes: elsewhere a margin is
    to another boundary.
    """
    import pandas as pd
    from matplotlib.ticker import MaxNLocator

    found = values.values
    inside = np.asarray(yes.values, dtype=float) == 1.0
    known = np.isfinite(found) & inside
    label, size = scaled(str(values.name), str(values.attrs.get("units", "1")))
    if known.sum() < 4:
        return
    table = pd.DataFrame(np.where(known, found, np.nan), x, y)
    # rows of the coarse grid; the others know the boundary alone
    rich = table.columns[table.count() >= max(2, table.count().max() // 2)]
    table[rich] = table[rich].interpolate("index", limit_area="inside")
    table = table.T.interpolate("index", limit_area="inside").T.where(inside)
    # up to the boundary, which is between this point and the next
    for axis in (0, 1):
        table = table.ffill(axis=axis, limit=1).bfill(axis=axis, limit=1)
    whole = table.to_numpy()
    if min(np.isfinite(whole).any(axis=1).sum(), np.isfinite(whole).any(axis=0).sum()) < 2:
        return  # all on one line
    low, high = np.percentile(found[known] / size, [2, 98])  # a margin may be huge at a corner
    levels: Any = [low - 0.5, low + 0.5]
    if high > low:
        ticks = MaxNLocator(LEVELS).tick_values(low, high)
        levels = ticks[(ticks >= low) & (ticks <= high)]  # what is beyond them has its own colours
    shown = np.ma.masked_invalid(whole.T / size)
    drawn = one.contourf(x, y, shown, levels, extend="both", cmap="viridis")
    one.figure.colorbar(drawn, ax=one, label=label)


def _signed(data: Any, verdict: str, axes: list[str]) -> Any:
    """Return a number at each point: positive where the verdict is yes, negative elsewhere.

    Of stability it is the logarithm of the gain that brings a root to the axis, or the real part of
    the rightmost root. This is the root that crosses only where the network is unstable: a slow
    mode that hardly moves may be right of it elsewhere, so that it is extrapolated across.
    """
    yes = np.asarray(data[verdict].transpose(*axes).values, dtype=float).T == 1.0
    known = {
        name: np.asarray(data[name].transpose(*axes).values, dtype=float).T
        for name in ("critical_gain", "gain_margin", "decay_rate")
        if verdict == "stable" and name in data.data_vars
    }
    places = [np.asarray(data[name].values, dtype=float) for name in axes[::-1]]
    with np.errstate(divide="ignore", invalid="ignore"):
        if "critical_gain" in known:
            size = np.abs(np.log(known["critical_gain"]))
        elif "gain_margin" in known and not (known["gain_margin"][yes] < 1).any():
            size = _across(np.log(known["gain_margin"]), yes, places)
        elif "decay_rate" in known:
            size = np.abs(known["decay_rate"])
            size = np.fmax(_across(np.where(yes, np.nan, size), ~yes, places), size)
        else:
            size = np.ones(yes.shape)
    finite = np.isfinite(size)
    size = np.where(finite, size, size[finite].max(initial=1e-300))
    return np.where(yes, size, -size)


def _across(size: Any, inside: Any, places: list[Any]) -> Any:
    """Extrapolate a quantity that vanishes at the boundary, known `inside`, to the first points
    beyond: along the lines through the last two points inside, on either axis.
    """
    total, number = np.zeros(size.shape), np.zeros(size.shape)
    for axis, at in enumerate(places):
        for step in (1, -1):
            near, far = (np.roll(size, k * step, axis) for k in (1, 2))
            is_near, is_far = (np.roll(inside, k * step, axis) for k in (1, 2))
            x, x_near, x_far = (np.roll(at, k * step) for k in (0, 1, 2))
            part = ((x - x_near) / (x_near - x_far)).reshape((-1, 1) if axis == 0 else (1, -1))
            beyond = -(near + part * (near - far))
            good = ~inside & is_near & is_far & (part > 0) & np.isfinite(beyond) & (beyond > 0)
            total, number = total + np.where(good, beyond, 0.0), number + good
    found = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return np.where(inside, size, found)


def _line(
    one: Any, x: Any, y: Any, values: Any, level: float, label: str, shade: str, style: str
) -> None:
    """Draw the contour at a level; in the legend also where there is none."""
    if np.nanmin(values) < level < np.nanmax(values):
        line: dict[str, Any] = {"colors": [shade], "linestyles": [style], "linewidths": 1.6}
        one.contour(x, y, np.ma.masked_invalid(values), [level], **line)
    one.plot([], [], color=shade, linestyle=style, label=label)


def _parameters(curve: Any) -> tuple[str, str]:
    if not hasattr(curve, "along"):
        raise InvalidInput(
            f"{shown(curve)} is no curve; give the result of fluidcc.stability_boundary(net, "
            f"name, along=...)"
        )
    return curve.along, curve.name


# --- Stability charts: boundaries of stability over two parameters -------------------------------


@explained
def stability_chart(
    curves: Any,
    *,
    labels: Sequence[str] | None = None,
    ax: Any = None,
    figsize: Any = None,
    title: str | None = None,
    legend: bool | str = True,
    **of_a_sweep: Any,
) -> Axes:
    """Draw boundary curves of `fluidcc.stability_boundary` with ``along=``, or a sweep over two
    axes.

    Parameters
    ----------
    curves : BoundaryCurve or sequence of them, or Dataset of `fluidcc.sweep`
        Over the same two parameters. Of a sweep the margins are filled, with the boundary of
        stability and those of sufficient conditions on top: see
        `fluidcc.plotting.chart.filled_chart` for `verdict`, `value` and `over`.
    labels : sequence of str, optional
        One for each.
    ax : Axes, optional
        Where to draw; by default a new figure.
    figsize : (float, float), optional
        Width and height of a new figure [in]; by default ``rcParams["figure.figsize"]`` where that
        was changed, half as high again for each further axes.
    title : str, optional
        Above the axes; by default none.
    legend : bool or str
        False for none, or its place as matplotlib names it, such as ``"upper right"``; by default
        beside the axes, of a sweep below.

    Returns
    -------
    Axes
        Solid where the curve bounds the region of stability, dotted where another root is unstable
        already.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.dumbbell([fc.LDCC], {"capacity": "1 Mbit/s"}, rtt="50 ms")
    >>> ax = fc.plot.stability_chart(fc.stability_boundary(net, "eta", along="beta"))
    """
    if hasattr(curves, "data_vars"):
        if labels is not None:
            raise InvalidInput("labels are for curves; leave them out for the Dataset of a sweep")
        look = {"ax": ax, "figsize": figsize, "title": title, "legend": legend}
        return filled_chart(curves, **look, **of_a_sweep)
    if of_a_sweep:
        raise InvalidInput(
            f"{', '.join(of_a_sweep)} are for the Dataset of a sweep; leave them out for curves"
        )
    given = list(curves) if isinstance(curves, Sequence) else [curves]
    if len({_parameters(curve) for curve in given}) != 1:
        raise InvalidInput("a chart needs one or more curves over the same two parameters")
    names = several(labels, "labels") if labels is not None else ["boundary"] * len(given)
    if len(names) != len(given):
        raise InvalidInput(
            f"labels has {len(names)} entries for {len(given)} curves; give one for each"
        )
    (one,) = axes_for(ax, 1, (6.4, 4.6), figsize)
    first = given[0]
    x_name, x_size = scaled(first.along, first.along_units)
    y_name, y_size = scaled(first.name, first.units)
    for k, (curve, name) in enumerate(zip(given, names, strict=True)):
        x, y, color = curve.x / x_size, curve.y / y_size, colour(k)
        bounds, other = np.where([curve.outermost, ~curve.outermost], y, np.nan)
        one.plot(x, bounds, color=color, linewidth=1.4, label=name)
        if not curve.outermost.all():
            of_another = f"{name}: of another root"
            one.plot(x, other, color=color, linewidth=1.0, linestyle=":", label=of_another)
    for axis in ("x", "y"):
        places = np.concatenate([getattr(curve, axis) for curve in given])
        if places.min() > 0 and places.max() / places.min() > 8:
            _logarithmic(one, axis, places)
    one.set(xlabel=in_symbols(x_name, first.along), ylabel=in_symbols(y_name, first.name))
    one.grid(color=GREY, alpha=0.25, linewidth=0.5)
    finish(one, title, legend)
    return one
