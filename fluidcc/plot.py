"""Pictures of results. Each function draws into `ax` or a new figure, and returns the axes.

Rates are in Mbit/s, delays in ms; labels carry the unit. Matplotlib is imported when a picture is first drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.errors import InvalidInput, UnknownName
from fluidcc.patterns import near

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

__all__ = ["claims", "phase_plane", "timeseries"]

# What is drawn for each unit: its name in the picture, and how many SI units it is.
_SHOWN = {"bit/s": ("Mbit/s", 1e6), "s": ("ms", 1e-3), "bit": ("kbit", 1e3)}
_MOST = 12  # lines named in a legend
_GREY = "0.45"
# Good to bad; a table may have others, which come last.
_VERDICTS = {
    "proved": "#1a6e2e",
    "reproduced": "#4caf50",
    "checked": "#8bc34a",
    "differs": "#f9a825",
    "refuted": "#c62828",
    "not given": "#9e9e9e",
    "out of a fluid's reach": "#cfcfcf",
}


# --- time series ------------------------------------------------------------------------------------------------------


def timeseries(
    ds: xr.Dataset,
    variables: str | Sequence[str] = ("rate", "queueing_delay"),
    *,
    flows: str | Sequence[str] | None = None,
    links: str | Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Draw variables of a result over time, one below the other.

    Parameters
    ----------
    ds : Dataset of `fluidcc.simulate`
        Also one read back from a file.
    variables : str or sequence of str
        Names in `ds`. With ``"rate"`` on a network of one link, or with ``"throughput"`` and ``"arrival_rate"``, the
        capacity is drawn too, dashed, unless every rate is far below it; so is the sum of all rates, as a thin line.
    flows, links : str or sequence of str, optional
        Those to draw; by default all.
    ax : Axes, or one for each variable, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes, or array of Axes
        One for each variable; the axes itself if `variables` is one name.

    Raises
    ------
    UnknownName
        If the result has no such variable, flow or link.
    """
    names = [variables] if isinstance(variables, str) else list(variables)
    if not names:
        raise InvalidInput("variables is empty; name what to draw, such as 'rate'")
    for name in names:
        if name not in getattr(ds, "data_vars", ()):
            known = [str(n) for n in getattr(ds, "data_vars", ())]
            hint = near(name, known) if get_close_matches(name, known) else f"it has {', '.join(known) or 'none'}"
            raise UnknownName(f"the result has no variable {name!r}; {hint}")
    axes = _axes(ax, len(names))
    for name, one in zip(names, axes, strict=True):
        _series(ds, name, _chosen(ds, "flow", flows), _chosen(ds, "link", links), one)
    if ax is None:
        _tidy(axes)
    return axes[0] if isinstance(variables, str) else np.array(axes, dtype=object)


def _tidy(axes: list[Axes]) -> None:
    """Of axes below one another, only the last says what time is, and each line is named once."""
    named: set[str] = set()
    for one in axes:
        legend = one.get_legend()
        labels = {text.get_text() for text in legend.get_texts()} if legend else set()
        if legend and labels <= named:
            legend.remove()
        named |= labels
        if one is not axes[-1]:
            one.set_xlabel("")


def _axes(ax: Any, count: int, size: tuple[float, float] | None = None) -> list[Axes]:
    """The axes given, or new ones below one another."""
    if ax is None:
        import matplotlib.pyplot as plt

        size = size or (8.0, 1.0 + 2.2 * count)
        figure, new = plt.subplots(count, 1, sharex=True, squeeze=False, figsize=size, layout="constrained")
        figure.align_ylabels()
        return list(new[:, 0])
    given = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(given) != count:
        raise InvalidInput(f"ax holds {len(given)} axes for {count} variables; give one for each")
    return given


def _chosen(ds: xr.Dataset, dim: str, names: str | Sequence[str] | None) -> list[str]:
    known = [str(n) for n in ds[dim].values] if dim in ds.dims else []
    if names is None:
        return known
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in known:
            raise UnknownName(f"the result has no {dim} {name!r}; {near(str(name), known)}")
    return wanted


def _series(ds: xr.Dataset, name: str, flows: list[str], links: list[str], ax: Axes) -> None:
    """One variable into one axes."""
    data = ds[name]
    dim = next((str(d) for d in data.dims if d != "time"), "")
    known = _chosen(ds, dim, None) if dim else []
    chosen = {"flow": flows, "link": links}.get(dim, known)
    unit, size = _shown(data)
    t = ds["time"].values
    for one in chosen:
        y = data.sel({dim: one}).values / size
        if np.any(np.isfinite(y)):  # a flow without this state has none
            ax.plot(t, y, label=one, color=f"C{known.index(one) % 10}", linewidth=1.2 if len(chosen) <= _MOST else 0.5)
    if name in ("rate", "throughput", "arrival_rate"):
        _limits(ds, name, chosen == known, links, ax)
    ax.set_xlabel("time [s]")
    ax.set_ylabel(f"{_words(name)} [{unit}]" if unit else _words(name))
    ax.margins(x=0)
    if np.nanmin(data.values, initial=0.0) >= 0:
        ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    _legend(ax)


def _limits(ds: xr.Dataset, name: str, all_drawn: bool, links: list[str], ax: Axes) -> None:
    """The capacity, where it bounds what is drawn; and the sum of all rates, where they share one link."""
    # Of several links none bounds the rates; of many flows each is far below the capacity.
    if name == "rate" and (ds.sizes["link"] > 1 or ds["rate"].max() < 0.1 * ds["capacity"].min()):
        return
    t = ds["time"].values
    if name == "rate" and all_drawn and ds.sizes["flow"] > 1:
        ax.plot(t, ds["rate"].sum("flow").values / 1e6, color=_GREY, linewidth=0.7, label="sum", zorder=1.5)
    drawn = set()
    for link in _chosen(ds, "link", None) if name == "rate" else links:
        c = ds["capacity"].sel(link=link).values / 1e6
        if c.tobytes() not in drawn:
            drawn.add(c.tobytes())
            ax.step(t, c, where="post", color="black", linestyle="--", linewidth=0.8, label="capacity", zorder=1.6)


def _shown(data: Any) -> tuple[str, float]:
    unit = str(data.attrs.get("units", ""))
    shown, size = _SHOWN.get(unit, (unit, 1.0))
    return ("" if shown == "1" else shown), size


def _words(name: str) -> str:
    return name.replace("one_way", "one-way").replace("_", " ")


def _legend(ax: Axes) -> None:
    """To the right of the axes, so that it hides no data; of many lines, the first."""
    handles, labels = ax.get_legend_handles_labels()
    unique = dict(reversed(list(zip(labels, handles, strict=True))))  # the first of equal labels
    pairs = [(label, unique[label]) for label in dict.fromkeys(labels)]
    title = None
    if len(pairs) > _MOST:
        title = f"{_MOST} of {len(pairs)}"
        pairs = [*pairs[: _MOST - 2], *pairs[-2:]]
    if pairs:
        ax.legend([h for _, h in pairs], [n for n, _ in pairs], loc="upper left", bbox_to_anchor=(1.01, 1.02),
                  frameon=False, fontsize="small", title=title)  # fmt: skip


# --- phase plane ------------------------------------------------------------------------------------------------------


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
    pair = _chosen(ds, "flow", flows)[: None if flows is not None else 2]
    if len(pair) != 2:
        raise InvalidInput(f"a phase plane is drawn of two flows, not of {len(pair)}: give flows=('a', 'b')")
    (one,) = _axes(ax, 1, (6.0, 4.5))
    a, b = (ds["rate"].sel(flow=name).values / 1e6 for name in pair)
    one.plot(a, b, color="C0", linewidth=1.0, label="rates")
    one.plot(a[:1], b[:1], "o", color="C0", label=f"at {ds.time.values[0]:g} s")
    one.plot(a[-1:], b[-1:], "s", color="C3", label=f"at {ds.time.values[-1]:g} s")
    top = 1.05 * max(float(np.max(a)), float(np.max(b)))
    one.plot([0, top], [0, top], color=_GREY, linestyle=":", linewidth=0.9, label="equal rates")
    if ds.sizes["link"] == 1:
        last = ds.isel(time=-1)
        room = (last["capacity"].item() - last["rate"].sum().item()) / 1e6 + a[-1] + b[-1]
        one.plot([0, room], [room, 0], color="black", linestyle="--", linewidth=0.8, label="link fully used")
    one.set(xlim=(0, top), ylim=(0, top), xlabel=f"rate of {pair[0]} [Mbit/s]", ylabel=f"rate of {pair[1]} [Mbit/s]")
    one.set_aspect("equal")
    _legend(one)
    return one


# --- claims -----------------------------------------------------------------------------------------------------------


def claims(table: Iterable[Any], *, ax: Any = None) -> Axes:
    """Draw how many claims have each verdict, as one bar for each.

    Parameters
    ----------
    table : iterable of rows
        `fluidcc.claims.table(...)`; each row has a verdict, as an attribute or a key.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    counts = Counter(_verdict(row) for row in table)
    if not counts:
        raise InvalidInput("the table has no rows; give one such as fluidcc.claims.table('ldcc')")
    order = [v for v in _VERDICTS if v in counts] + sorted(v for v in counts if v not in _VERDICTS)
    (one,) = _axes(ax, 1, (7.0, 1.0 + 0.4 * len(counts)))
    bars = one.barh(order, [counts[v] for v in order], color=[_VERDICTS.get(v, _GREY) for v in order])
    one.bar_label(bars, padding=3)
    one.invert_yaxis()
    one.margins(x=0.1)
    one.set_xlabel("number of claims")
    for side in ("top", "right"):
        one.spines[side].set_visible(False)
    return one


def _verdict(row: Any) -> str:
    return str(row["verdict"] if isinstance(row, Mapping) else row.verdict)
