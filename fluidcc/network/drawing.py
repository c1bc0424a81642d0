"""A network as a picture for Jupyter: links are columns, flows are lines through those they cross.

It is a PNG, since JupyterLab takes SVG and styles out of notebooks that it does not trust.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fluidcc.base.colours import GREY, colour
from fluidcc.network.specs import FlowSpec, LinkSpec, describe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 24  # flows drawn; the others are counted
_LEFT, _COLUMN, _ROW, _TOP = 260, 210, 26, 62
_REACH = 60  # of a line before its first link and after its last
_DOTS = 72  # an inch, so that lengths here are points
_SHARP = 2  # dots of the picture for each of them


def topology(links: Mapping[str, LinkSpec], flows: Mapping[str, FlowSpec]) -> Figure:
    """Return the picture.

    Parameters
    ----------
    links, flows : mappings of names to specs
        Links are in the order in which they were added; a line that turns back crosses them in
        another.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    at = {name: _LEFT + _COLUMN * i + 40 for i, name in enumerate(links)}
    drawn = list(flows.values())[:_MOST]
    height = _TOP + _ROW * max(len(drawn), 1) + 24
    width = _LEFT + _COLUMN * max(len(at), 1) + 20
    figure = Figure(figsize=(width / _DOTS, height / _DOTS), dpi=_DOTS)
    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    for (name, spec), x in zip(links.items(), at.values(), strict=True):
        ax.add_patch(
            FancyBboxPatch((x - 14, _TOP - 18), 28, height - _TOP, gid="link", fc="#e8e8e8",
                           ec="#888888", boxstyle="round,pad=0,rounding_size=6")
        )  # fmt: skip
        _write(ax, x, 14, name, ha="center", weight="bold")
        _write(ax, x, 31, describe(spec), ha="center", size=10, color=GREY)
    for row, flow in enumerate(drawn):
        _flow(ax, flow, _TOP + _ROW * row, colour(row), at)
    if rest := len(flows) - len(drawn):
        _write(ax, 8, height - 10, f"and {rest} more flows", color=GREY)
    return figure


def png(figure: Figure) -> tuple[bytes, dict[str, int]]:
    """Return a picture as Jupyter takes it: its bytes, and the size at which it is shown."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=_SHARP * figure.dpi, metadata={"Software": None})
    wide, high = figure.get_size_inches() * figure.dpi
    return file.getvalue(), {"width": round(wide), "height": round(high)}


def _write(ax: Any, x: float, y: float, text: str, **style: Any) -> None:
    # a name is written as it is, also one with dollars in it
    ax.text(x, y, text, **{"size": 12, "va": "center", "parse_math": False, **style})


def _flow(ax: Any, flow: FlowSpec, y: float, shade: str, at: dict[str, int]) -> None:
    xs = [at[name] for name in flow.route]
    path = [(xs[0] - _REACH, y)]
    for before, x in pairwise([xs[0] - _REACH, *xs]):
        if x < before:  # back to the left: below the row, so that it is not taken for a crossing
            path += [(before + 24, y), (before + 24, y + 9), (x - 24, y + 9), (x - 24, y)]
        path.append((x, y))
    path.append((xs[-1] + _REACH, y))
    ax.plot(*zip(*path, strict=True), color=shade, linewidth=1.6, gid="flow", zorder=2)
    ax.plot(xs, [y] * len(xs), "o", color=shade, markersize=8, markeredgewidth=0, zorder=3)
    ax.plot(*path[-1], marker=(3, 0, -90), color=shade, markersize=8, zorder=3)
    _write(ax, 8, y, f"{flow.name}: {flow.law.name}{_when(flow)}", color=shade)


def _when(flow: FlowSpec) -> str:
    if flow.intervals == ((-math.inf, math.inf),):
        return ""
    spans = [
        f"from {max(a, 0.0):g}{'' if b == math.inf else f' to {b:g}'} s"
        for a, b in flow.intervals[:2]
    ]
    return f" ({', '.join(spans)}{', ...' if len(flow.intervals) > 2 else ''})"
