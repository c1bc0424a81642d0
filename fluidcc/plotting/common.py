"""What every picture shares: axes, units, names and legends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base.arguments import choice, numbers, shown
from fluidcc.base.colours import COLOURS
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.base.tables import READ_IN
from fluidcc.network.patterns import near

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

# Of every figure that is made here; `rc_context` takes it.
STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.prop_cycle": f"cycler('color', {list(COLOURS)})",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "figure.titlesize": "medium",
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "legend.fontsize": "small",
    "legend.frameon": False,
    "lines.linewidth": 1.3,
}

# For a column of a paper; legends are above the axes of figures as narrow as this.
PAPER: dict[Any, Any] = {
    **STYLE,
    "axes.linewidth": 0.6,
    "figure.figsize": (3.5, 2.4),
    "font.size": 8,
    "pdf.fonttype": 42,  # letters that publishers' checks can read
    "savefig.dpi": 300,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}

MOST = 12  # lines named in a legend
TALL = 8  # of them in a column beside one of several axes
SIZE = "width and height in inches, such as (6, 4)"
NARROW = 5.0  # [in] of a figure without room beside its axes


def axes_for(
    ax: Any,
    count: int,
    size: tuple[float, float] | None = None,
    figsize: Any = None,
    square: bool = False,
) -> list[Axes]:
    """The axes given, or new ones below one another, in a figure of `figsize`, of the size that
    ``rcParams`` have been set to, for each further axes half as high again, or of the usual `size`.
    A narrow figure, whose legend is above, is as high as wide where its axes are `square`.
    """
    if ax is None:
        import matplotlib.pyplot as plt

        own = plt.rcParams["figure.figsize"]
        if own == plt.rcParamsDefault["figure.figsize"]:
            own = size or (8.0, 1.0 + 2.2 * count)
        else:
            own = own[0], own[1] * (1 + count) / 2
            own = own[0], max(own) if square and own[0] < NARROW else own[1]
        wanted = numbers(own if figsize is None else figsize, "figsize", SIZE)
        if wanted.shape != (2,) or not (wanted > 0).all():
            raise InvalidInput(f"figsize is {shown(figsize)}; give {SIZE}")
        figure = plt.figure(figsize=wanted, layout="constrained")  # may choose a backend, for good
        with plt.rc_context(STYLE):
            new = figure.subplots(count, 1, sharex=True, squeeze=False)
        figure.align_ylabels()
        return list(new[:, 0])
    if figsize is not None:
        raise InvalidInput("figsize is of a new figure; leave it out where ax is given")
    given = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(given) != count:
        raise InvalidInput(f"ax holds {len(given)} axes for {count} variables; give one for each")
    for one in given:
        if not hasattr(one, "transData"):
            raise InvalidInput(f"ax is {shown(one)}; give matplotlib axes")
    return given


def require_result(ds: Any) -> None:
    """Raise `InvalidInput` unless `ds` is the Dataset of a run."""
    if not hasattr(ds, "data_vars") or not ds.sizes.get("time"):
        raise InvalidInput(
            f"the result is {shown(ds)}; give the Dataset that fluidcc.simulate returns"
        )


def whole(ds: xr.Dataset) -> xr.Dataset:
    """Return a result with its axis of flows or of links, where it was cut down to one of these by
    name or number; without both axes nobody knows which of its variables were over which.
    """
    cut = [d for d in ("flow", "link") if d in ds.coords and d not in ds.dims]
    if len(cut) != 1:
        return ds
    full, other = ds.expand_dims(cut), "link" if cut == ["flow"] else "flow"
    of_others = {n: v.isel({cut[0]: 0}) for n, v in full.data_vars.items() if other in v.dims}
    return full.assign({n: v.drop_vars(cut) for n, v in of_others.items()})


def chosen(ds: xr.Dataset, dim: str, names: str | Sequence[str] | None) -> list[str]:
    known = [str(n) for n in ds[dim].values] if dim in ds.dims else []
    if names is None:
        return known
    wanted = several(names, f"{dim}s")
    for name in wanted:
        if name not in known:
            raise UnknownName(f"the result has no {dim} {name!r}; {near(name, known)}")
    return wanted


def several(names: Any, what: str) -> list[str]:
    """Return one or more names as a list."""
    wanted = [names] if isinstance(names, str) else names
    if not isinstance(wanted, Iterable) or not all(isinstance(name, str) for name in wanted):
        raise InvalidInput(f"{what} is {shown(names)}; give a name, or a list of names")
    return list(wanted)


def scaled(name: str, unit: str) -> tuple[str, float]:
    """Return the label of a quantity with the unit drawn, and the size of that unit in SI units."""
    text, size = READ_IN.get(unit, (unit, 1.0))
    return words(name) + (f" [{text}]" if text != "1" else ""), size


def words(name: str) -> str:
    return name.replace("one_way", "one-way").replace("_", " ")


def in_symbols(label: str, name: str) -> str:
    """Return a label of `scaled` with the symbols of "near.eta" or "LDCC_x" in LaTeX.

    A symbol is a letter or the name of a Greek one, with or without an index.
    """
    from sympy import Symbol, latex

    owner, dot, last = name.rpartition(".")
    if not dot and (state := re.fullmatch(r"([A-Z]\w+?)_(.+)", name)):
        owner, last = state.groups()
    stem = re.match(r"[A-Za-z]*", last)[0]  # type: ignore[index]
    if len(stem) != 1 and not latex(Symbol(stem)).startswith("\\"):
        return label
    symbol = f"${latex(Symbol(last))}$" + (f" of {owner}" if owner else "")
    return label.replace(words(name), symbol)


def finish(ax: Axes, title: str | None, legend: bool | str, usual: str = "", **place: Any) -> None:
    """Add the legend and the title, or the usual one where none is given."""
    rows = _legend(ax, legend, place)
    text = usual if title is None else title
    if text:
        letters = float(ax.xaxis.label.get_fontsize())
        ax.set_title(text, fontsize="medium", pad=letters * (0.8 + 1.45 * rows) if rows else None)


def legend(ax: Axes) -> None:
    """Add a legend to the right of the axes, so that it hides no data; of many lines, the first."""
    _legend(ax, True, {})


def _legend(ax: Axes, legend: bool | str, place: dict[str, Any]) -> int:
    """Add a legend: at its usual place, or where matplotlib's name of a place says. Return how many
    of its rows are above the axes.
    """
    handles, labels = ax.get_legend_handles_labels()
    unique = dict(reversed(list(zip(labels, handles, strict=True))))  # the first of equal labels
    pairs = [(label, unique[label]) for label in dict.fromkeys(labels)]
    options: dict[str, Any] = {"frameon": False, "fontsize": "small"}
    if len(pairs) > MOST:
        options["title"] = f"{MOST} of {len(pairs)}"
        pairs = [*pairs[: MOST - 2], *pairs[-2:]]
    if not pairs or legend is False:
        return 0
    rows = 0
    if isinstance(legend, str):
        from matplotlib.legend import Legend

        options["loc"] = choice(legend, "legend", Legend.codes)
    elif place:
        options |= place
    elif ax.figure.bbox.width < NARROW * ax.figure.dpi:
        letters = float(ax.xaxis.label.get_fontsize())
        widest = letters * (0.5 * max(len(label) for label, _ in pairs) + 4)
        columns = int(np.clip(ax.figure.bbox.width / ax.figure.dpi * 72 / widest, 1, len(pairs)))
        rows = -(-len(pairs) // columns)
        options |= {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": columns}
    elif len(pairs) == len(ax.figure.axes) == 1:  # a column for one name is a waste
        options["loc"] = "best"
    else:
        # Taller than its axes, it would push the figure's others apart and their labels out.
        columns = 2 if len(pairs) > TALL and len(ax.figure.axes) > 1 else 1
        options |= {"loc": "upper left", "bbox_to_anchor": (1.01, 1.02), "ncols": columns}
    ax.legend([h for _, h in pairs], [n for n, _ in pairs], **options)
    return rows
