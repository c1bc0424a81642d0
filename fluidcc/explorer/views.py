"""Figures of the explorer, updated in place from a scene."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, LinearColorMapper, VSpan
from bokeh.plotting import figure

from fluidcc.base.colours import GREY, RED, colour
from fluidcc.explorer.scene import Chart, Scene
from fluidcc.plotting.common import scaled
from fluidcc.plotting.loops import SMOOTH, TURN, margin_points, modulus_circle

REACH = 2.0  # half the width of a Nyquist plot
TITLE = " "  # of a figure that will have one: the browser makes no room for it later
LINES = ("xs", "ys", "name", "color", "dash")  # columns of lines that change, and of points
POINTS = ("x", "y", "what", "color", "marker")


def _columns(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """Return rows as Bokeh takes them: a list for each column."""
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}


def _figure(title: str, x: str, y: str, **options: Any) -> Any:
    options = {"sizing_mode": "stretch_width", **options}
    one = figure(
        title=title, x_axis_label=x, y_axis_label=y, tools="pan,wheel_zoom,box_zoom,reset,save",
        **options,
    )  # fmt: skip
    one.toolbar.logo = None
    return one


def _lines(one: Any) -> ColumnDataSource:
    """Add lines that change; the legend names them."""
    source = ColumnDataSource(_columns(LINES, []))
    one.multi_line(
        "xs", "ys", source=source, color="color", line_dash="dash", line_width=2,
        legend_field="name",
    )  # fmt: skip
    return source


def _points(one: Any) -> ColumnDataSource:
    source = ColumnDataSource(_columns(POINTS, []))
    one.scatter(
        "x", "y", source=source, color="color", marker="marker", size=9, fill_alpha=0.3,
        line_width=2, legend_field="what",
    )  # fmt: skip
    return source


def _place_legend(one: Any, where: str = "above") -> None:
    one.add_layout(one.legend[0], where)
    one.legend.orientation = "horizontal" if where == "above" else "vertical"
    one.legend.margin = one.legend.padding = 2
    one.legend.border_line_alpha = 0


class Series:
    """Variables over time, those of pinned runs dashed."""

    HEIGHT = 230

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.figures: list[Any] = []
        self.sources: list[ColumnDataSource] = []
        for name in names:
            shared = {"x_range": self.figures[0].x_range} if self.figures else {}
            one = _figure("", "time [s]", name, height=self.HEIGHT, **shared)
            self.sources.append(_lines(one))
            _place_legend(one)
            self.figures.append(one)

    def draw(self, runs: list[tuple[str, Any]]) -> None:
        """Show runs, the last one as it is now."""
        for name, one, source in zip(self.names, self.figures, self.sources, strict=True):
            rows: list[tuple[Any, ...]] = []
            for pin, run in runs:
                if name not in run:
                    continue
                values = run[name]
                label, size = scaled(name, values.attrs.get("units", "1"))
                one.yaxis.axis_label = label
                (owner,) = (dim for dim in values.dims if dim != "time")
                for k, who in enumerate(values[owner].values):
                    told, dash = (f"{who}, {pin}", "dashed") if pin else (str(who), "solid")
                    course = values.sel({owner: who}).values / size
                    rows.append((run["time"].values, course, told, colour(k), dash))
            source.data = _columns(LINES, rows)


class Loci:
    """The Nyquist plot, with the unit circle and the margins."""

    def __init__(self) -> None:
        self.figure = _figure(
            TITLE, "real part of \u03bb(L)", "imaginary part of \u03bb(L)", sizing_mode=None,
            frame_width=420, frame_height=420, x_range=(-REACH, REACH), y_range=(-REACH, REACH),
        )  # fmt: skip
        self.figure.line(TURN.real, TURN.imag, color=GREY, line_dash="dashed")
        self.figure.scatter([-1], [0], marker="cross", size=14, color=RED, line_width=2)
        self.lines, self.points = _lines(self.figure), _points(self.figure)
        _place_legend(self.figure, "right")

    def draw(self, scene: Scene) -> None:
        """Show the loci of a scene's return ratio."""
        report, rows = scene.report, list[tuple[Any, ...]]()
        for k, locus in enumerate(report.eigenloci(points=SMOOTH).value):
            near = np.where(np.abs(locus) < 20 * REACH, locus, np.nan)
            for sign, dash, name in ((1, "solid", "\u03c9 > 0"), (-1, "dotted", "\u03c9 < 0")):
                told = f"eigenlocus {k + 1}, {name}"
                rows.append((near.real, sign * near.imag, told, colour(k), dash))
        if circle := modulus_circle(report.margins):
            rows.append((circle[1].real, circle[1].imag, circle[0], RED, "solid"))
        shapes = {"o": "circle", "s": "square"}
        points = [
            (at.real, at.imag, label, RED, shapes[marker])
            for marker, label, at in margin_points(report.margins)
        ]
        self.lines.data, self.points.data = _columns(LINES, rows), _columns(POINTS, points)
        self.figure.title.text = report.verdict


class Plane:
    """The rightmost characteristic roots."""

    COUNT = 12

    def __init__(self) -> None:
        self.figure = _figure(TITLE, "real part [1/s]", "imaginary part [rad/s]", height=460,
                              x_range=(-1.0, 1.0), y_range=(-1.0, 1.0))  # fmt: skip
        self.figure.add_glyph(VSpan(x=0, line_color=GREY))
        self.points = _points(self.figure)
        _place_legend(self.figure)

    def draw(self, scene: Scene) -> None:
        """Show the roots of a scene's closed loop."""
        closed, rows = scene.report.closed, list[tuple[Any, ...]]()
        systems = {"closed loop": closed, **{
            f"differences in {name}": one for name, one in closed.deviations().items()
        }}  # fmt: skip
        for k, (name, system) in enumerate(systems.items()):
            marker = "circle" if k else "x"
            for s in system.roots(count=2 if k else self.COUNT):
                rows.append((s.real, s.imag, name, colour(k), marker))
        self.points.data = points = _columns(POINTS, rows)
        for shown, key in ((self.figure.x_range, "x"), (self.figure.y_range, "y")):
            low, high = min([0.0, *points[key]]), max([0.0, *points[key]])
            room = 0.05 * (high - low) or 1.0
            shown.start, shown.end = low - room, high + room
        self.figure.title.text = f"{scene.report.verdict}, decay rate " + (
            f"{scene.report.decay_rate:.3g} 1/s"
        )


class Map:
    """Where over two parameters the network is stable, and where it is now."""

    def __init__(self) -> None:
        self.figure = _figure(TITLE, "", "", height=460, x_axis_type="log", y_axis_type="log",
                              x_range=(0.1, 1.0), y_range=(0.1, 1.0))  # fmt: skip
        self.cells = ColumnDataSource(_columns(("x", "y", "w", "h", "stable"), []))
        self.curve, self.here = (ColumnDataSource({"x": [], "y": []}) for _ in range(2))
        shades = LinearColorMapper(
            palette=["#F4C7B5", "#BFE3D6"], low=0, high=1, nan_color="#DDDDDD"
        )
        self.figure.quad(
            left="x", right="w", bottom="y", top="h", source=self.cells, line_color=None,
            fill_color={"field": "stable", "transform": shades},
        )  # fmt: skip
        self.figure.line("x", "y", source=self.curve, color="#222222", line_width=2)
        self.figure.scatter("x", "y", source=self.here, size=12, color=RED, marker="x",
                            line_width=3)  # fmt: skip

    def draw(self, chart: Chart, x: Any, y: Any) -> None:
        """Show a chart over two knobs."""
        ends = []
        for values, knob in ((chart.x, x), (chart.y, y)):
            step = np.sqrt(values[1] / values[0])
            ends.append(np.append(values / step, values[-1] * step) / knob.size)
        wide, tall = (len(e) - 1 for e in ends)
        for shown, e in zip((self.figure.x_range, self.figure.y_range), ends, strict=True):
            shown.start, shown.end = e[0], e[-1]
        self.cells.data = {
            "x": np.tile(ends[0][:-1], tall), "w": np.tile(ends[0][1:], tall),
            "y": np.repeat(ends[1][:-1], wide), "h": np.repeat(ends[1][1:], wide),
            "stable": chart.stable.ravel(),
        }  # fmt: skip
        self.curve.data = {"x": chart.curve[0] / x.size, "y": chart.curve[1] / y.size}
        self.figure.xaxis.axis_label, self.figure.yaxis.axis_label = (
            f"{knob.place[1]}: {knob.label}" for knob in (x, y)
        )
        self.figure.title.text = "green: stable; red: unstable; grey: no verdict"

    def clear(self) -> None:
        """Show nothing: there is no chart of this network yet."""
        self.cells.data = _columns(("x", "y", "w", "h", "stable"), [])
        self.curve.data = self.here.data = {"x": [], "y": []}
        self.figure.title.text = TITLE

    def mark(self, x: Any, y: Any) -> None:
        """Show where the knobs are now."""
        self.here.data = {"x": [x.value / x.size], "y": [y.value / y.size]}
