"""The pictures of the explorer: each redraws what a scene holds into figures that stay."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, LinearColorMapper, VSpan
from bokeh.plotting import figure

from fluidcc.base.colours import GREY, RED, colour
from fluidcc.explorer.scene import Chart, Scene
from fluidcc.plotting.common import scaled
from fluidcc.plotting.loops import SMOOTH, TURN, margin_points, modulus_circle

__all__ = ["Loci", "Map", "Plane", "Series"]

REACH = 2.0  # half the width of a Nyquist plot
TITLE = " "  # of a figure that will have one: the browser makes no room for it later
LINES: dict[str, list[Any]] = {"xs": [], "ys": [], "name": [], "color": [], "dash": []}
POINTS: dict[str, list[Any]] = {"x": [], "y": [], "what": [], "color": [], "marker": []}


def _empty(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: [] for name in columns}


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
    source = ColumnDataSource(LINES)
    one.multi_line(
        "xs", "ys", source=source, color="color", line_dash="dash", line_width=2,
        legend_field="name",
    )  # fmt: skip
    return source


def _points(one: Any, size: int = 9) -> ColumnDataSource:
    source = ColumnDataSource(POINTS)
    one.scatter(
        "x", "y", source=source, color="color", marker="marker", size=size, fill_alpha=0.3,
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
            data = _empty(LINES)
            for pin, run in runs:
                if name not in run:
                    continue
                values = run[name]
                label, size = scaled(name, values.attrs.get("units", "1"))
                one.yaxis.axis_label = label
                (owner,) = (dim for dim in values.dims if dim != "time")
                for k, who in enumerate(values[owner].values):
                    data["xs"].append(run["time"].values)
                    data["ys"].append(values.sel({owner: who}).values / size)
                    data["name"].append(f"{who}, {pin}" if pin else str(who))
                    data["color"].append(colour(k))
                    data["dash"].append("dashed" if pin else "solid")
            source.data = data


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
        report, data = scene.report, _empty(LINES)
        for k, locus in enumerate(report.eigenloci(points=SMOOTH).value):
            near = np.where(np.abs(locus) < 20 * REACH, locus, np.nan)
            for sign, dash, name in ((1, "solid", "\u03c9 > 0"), (-1, "dotted", "\u03c9 < 0")):
                data["xs"].append(near.real)
                data["ys"].append(sign * near.imag)
                data["name"].append(f"eigenlocus {k + 1}, {name}")
                data["color"].append(colour(k))
                data["dash"].append(dash)
        points = _empty(POINTS)
        for marker, label, at in margin_points(report.margins):
            points["x"].append(at.real)
            points["y"].append(at.imag)
            points["what"].append(label)
            points["color"].append(RED)
            points["marker"].append({"o": "circle", "s": "square"}[marker])
        if circle := modulus_circle(report.margins):
            data["xs"].append(circle[1].real)
            data["ys"].append(circle[1].imag)
            data["name"].append(circle[0])
            data["color"].append(RED)
            data["dash"].append("solid")
        self.lines.data, self.points.data = data, points
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
        closed, points = scene.report.closed, _empty(POINTS)
        systems = {"closed loop": closed, **{
            f"differences in {name}": one for name, one in closed.deviations().items()
        }}  # fmt: skip
        for k, (name, system) in enumerate(systems.items()):
            s = system.roots(count=2 if k else self.COUNT)
            points["x"] += list(s.real)
            points["y"] += list(s.imag)
            points["what"] += [name] * len(s)
            points["color"] += [colour(k)] * len(s)
            points["marker"] += ["circle" if k else "x"] * len(s)
        self.points.data = points
        for shown, key in ((self.figure.x_range, "x"), (self.figure.y_range, "y")):
            low, high = min(0.0, *points[key]), max(0.0, *points[key])
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
        self.cells, self.curve = ColumnDataSource(), ColumnDataSource({"x": [], "y": []})
        self.cells.data = {"x": [], "y": [], "w": [], "h": [], "stable": []}
        shades = LinearColorMapper(
            palette=["#F4C7B5", "#BFE3D6"], low=0, high=1, nan_color="#DDDDDD"
        )
        self.figure.quad(
            left="x", right="w", bottom="y", top="h", source=self.cells, line_color=None,
            fill_color={"field": "stable", "transform": shades},
        )  # fmt: skip
        self.figure.line("x", "y", source=self.curve, color="#222222", line_width=2)
        self.here = ColumnDataSource({"x": [], "y": []})
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

    def mark(self, x: Any, y: Any) -> None:
        """Show where the knobs are now."""
        self.here.data = {"x": [x.value / x.size], "y": [y.value / y.size]}
