"""The papers' figures: panels in one style, drawn anew by a function for each figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

from fluidcc.plotting.common import STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Figures(dict[str, Callable[[], "Figure"]]):
    """The figures of a paper, by the names of their files; each is drawn anew when it is called.

    Parameters
    ----------
    **style
        Settings of matplotlib in which they differ from the others, with ``_`` for ``.``.
    """

    def __init__(self, **style: Any) -> None:
        super().__init__()
        self.style: dict[Any, Any] = STYLE | {
            name.replace("_", "."): value for name, value in style.items()
        }

    def panels(
        self,
        name: str,
        rows: int = 1,
        columns: int = 1,
        *,
        size: tuple[float, float] | None = None,
        title: str = "",
        **sharing: Any,
    ) -> Callable[[Callable[[Any], None]], Callable[[], Figure]]:
        """Register the decorated function, which draws on the axes that it is given.

        Parameters
        ----------
        name : str
            Of the figure's file.
        rows, columns : int
            Of panels.
        size : (float, float), optional
            Width and height [inch].
        title : str
            Above the panel, or above all of them.
        **sharing
            Other arguments of matplotlib's ``subplots``.
        """

        def register(draw: Callable[[Any], None]) -> Callable[[], Figure]:
            @wraps(draw)
            def drawn() -> Figure:
                from matplotlib import rc_context
                from matplotlib.colors import to_rgba
                from matplotlib.figure import Figure
                from matplotlib.lines import Line2D

                usual = (
                    4.6 * columns + 3.2 * (columns == 1),
                    2.6 * rows + (1.4 if rows == 1 else 0.6),
                )
                with rc_context(self.style):
                    figure = Figure(figsize=size or usual, layout="constrained")
                    axes = figure.subplots(rows, columns, **sharing)
                    draw(axes)
                    if title:
                        (axes.set_title if rows * columns == 1 else figure.suptitle)(title)
                    for line in figure.findobj(Line2D):  # "C0" is looked up when a line is drawn
                        line.set_color(to_rgba(line.get_color()))
                return figure

            self[name] = drawn
            return drawn

        return register


def plain_ticks(ax: Any, across: Sequence[float], up: Sequence[float] = ()) -> None:
    """Put a few plain numbers on logarithmic axes; on the vertical one if any are given."""
    from matplotlib.ticker import FixedLocator, NullLocator

    for axis, ticks in ((ax.xaxis, across), (ax.yaxis, up)):
        if ticks:
            axis.set_major_locator(FixedLocator(ticks))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(NullLocator())
