"""Variables of a result over time."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base.arguments import explained
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.network.patterns import near
from fluidcc.plotting.common import GREY, MOST, axes_for, chosen, legend, require_result, several, shown, words

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

__all__ = ["timeseries"]


@explained
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
    InvalidInput
        If `ds` is no result; `UnknownName` if it has no such variable, flow or link.
    """
    require_result(ds)
    names = several(variables, "variables")
    if not names:
        raise InvalidInput("variables is empty; name what to draw, such as 'rate'")
    for name in names:
        if name not in ds.data_vars:
            known = [str(n) for n in ds.data_vars]
            hint = near(name, known) if get_close_matches(name, known) else f"it has {', '.join(known) or 'none'}"
            raise UnknownName(f"the result has no variable {name!r}; {hint}")
    axes = axes_for(ax, len(names))
    for name, one in zip(names, axes, strict=True):
        _series(ds, name, chosen(ds, "flow", flows), chosen(ds, "link", links), one)
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


def _series(ds: xr.Dataset, name: str, flows: list[str], links: list[str], ax: Axes) -> None:
    """One variable into one axes."""
    data = ds[name]
    dim = next((str(d) for d in data.dims if d != "time"), "")
    known = chosen(ds, dim, None) if dim else []
    picked = {"flow": flows, "link": links}.get(dim, known)
    unit, size = shown(data)
    t = ds["time"].values
    for one in picked:
        y = data.sel({dim: one}).values / size
        if np.any(np.isfinite(y)):  # a flow without this state has none
            ax.plot(t, y, label=one, color=f"C{known.index(one) % 10}", linewidth=1.2 if len(picked) <= MOST else 0.5)
    if name in ("rate", "throughput", "arrival_rate"):
        _limits(ds, name, picked == known, links, ax)
    ax.set_xlabel("time [s]")
    ax.set_ylabel(f"{words(name)} [{unit}]" if unit else words(name))
    ax.margins(x=0)
    if np.nanmin(data.values, initial=0.0) >= 0:
        ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    legend(ax)


def _limits(ds: xr.Dataset, name: str, all_drawn: bool, links: list[str], ax: Axes) -> None:
    """The capacity, where it bounds what is drawn; and the sum of all rates, where they share one link."""
    # Of several links none bounds the rates; of many flows each is far below the capacity.
    if name == "rate" and (ds.sizes["link"] > 1 or ds["rate"].max() < 0.1 * ds["capacity"].min()):
        return
    t = ds["time"].values
    if name == "rate" and all_drawn and ds.sizes["flow"] > 1:
        ax.plot(t, ds["rate"].sum("flow").values / 1e6, color=GREY, linewidth=0.7, label="sum", zorder=1.5)
    drawn = set()
    for link in chosen(ds, "link", None) if name == "rate" else links:
        c = ds["capacity"].sel(link=link).values / 1e6
        if c.tobytes() not in drawn:
            drawn.add(c.tobytes())
            ax.step(t, c, where="post", color="black", linestyle="--", linewidth=0.8, label="capacity", zorder=1.6)
