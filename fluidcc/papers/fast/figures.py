"""Figures 2 and 3 of the paper on FAST's persistent congestion, and where it is stable."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.boundary import BoundaryCurve, stability_boundary
from fluidcc.formulas import fast
from fluidcc.papers.fast.common import (
    ALPHA,
    FLOWS,
    GAP,
    METHODS,
    PACKET,
    RTT,
    RTT_2,
    RTTS,
    C,
    arrivals,
    ratios,
)
from fluidcc.papers.fast.runs import PEAKS, SEEDS, TAU, alone, edge, growth, shares
from fluidcc.plotting import timeseries
from fluidcc.sources import FAST, StaticFAST

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SET = f"100 Mbit/s, RTT {1e3 * RTT_2:g} ms"
_MARKS = dict(zip(METHODS, "osD", strict=True))


def _figure(title: str, **axes: Any) -> tuple[Figure, Any]:
    """A figure with one plot of that title."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.2), layout="constrained")
    ax = figure.subplots()
    ax.set_title(title, fontsize="medium")
    ax.set(**axes)
    return figure, ax


def _levels(ax: Any, values: np.ndarray) -> None:
    """Dot the level, or the levels, that the flows settle at before each arrival."""
    for i, row in enumerate(values):
        span = [GAP * i + 0.3 * GAP, GAP * (i + 1)]
        for level in np.atleast_1d(row):
            ax.plot(span, [level, level], color="black", linestyle=":", linewidth=1.6, zorder=5)


def _rates(method: str, title: str, levels: np.ndarray) -> Figure:
    figure, ax = _figure(title)
    timeseries(arrivals(method), ("rate",), ax=ax)
    _levels(ax, levels)
    return figure


def fig2a() -> Figure:
    """Rates of five FAST flows, and the recursion."""
    wanted = fast.arrival_recursion(5, C, ALPHA).rate * PACKET / 1e6
    levels = np.where(wanted > 0, wanted, np.nan)
    return _rates(
        "FAST", f"FAST, Fig. 2(a): five arrivals, {_SET} (dotted: recursion of (2))", levels
    )


def fig2b() -> Figure:
    """The same with the estimator."""
    fair = C / np.arange(1, 6) * PACKET / 1e6
    title = f"FAST, Fig. 2(b): with the estimator at the age of {GAP / 2:g} s, {_SET} (dotted: C/n)"
    return _rates("estimator", title, fair)


def fig2c() -> Figure:
    """The queue, with and without."""
    figure, ax = _figure(r"FAST, Fig. 2(c): queue (dotted: recursion, and $\alpha$ packets a flow)")
    for method in ("FAST", "estimator"):
        r = arrivals(method)
        ax.plot(r.time, r.backlog.values[:, 0] / PACKET, label=method)
    _levels(ax, fast.arrival_recursion(5, C, ALPHA).backlog)
    _levels(ax, ALPHA * np.arange(1, 6))
    ax.set(xlabel="time [s]", ylabel="queue [packets]", xlim=(0, 5 * GAP), ylim=(0, None))
    ax.legend()
    return figure


def fig3a() -> Figure:
    """The newcomer's rate over the others' mean, by round-trip time."""
    figure, ax = _figure("FAST, Fig. 3(a): eight flows and a newcomer, 100 Mbit/s, 1000 bytes")
    for method in METHODS:
        ax.plot(1e3 * np.array(RTTS), ratios(method, "rtt"), marker=_MARKS[method], label=method)
    ax.axhline(float(fast.unfairness(8)), color="black", linestyle=":", label="(3) over (4)")
    ax.axvline(
        1e3 * float(fast.rate_reduction_threshold(8, C, ALPHA)),
        color="0.5",
        linestyle="--",
        label="(7)",
    )
    ax.set(
        xlabel="round-trip propagation delay [ms]",
        ylabel="newcomer's rate over the others' mean [1]",
    )
    ax.set_ylim(0, None)
    ax.legend()
    return figure


def fig3b() -> Figure:
    """The newcomer's rate over the others' mean, by their number."""
    figure, ax = _figure(f"FAST, Fig. 3(b): RTT {1e3 * RTT:g} ms, 100 Mbit/s, 1000 bytes")
    for method in METHODS:
        ax.plot(FLOWS, ratios(method, "n"), marker=_MARKS[method], linestyle="-", label=method)
    n = np.linspace(FLOWS[0], FLOWS[-1], 200)
    ax.plot(n, fast.unfairness(n), color="black", linestyle=":", label="(3) over (4)")
    ax.set(
        xlabel="existing flows n [1]",
        ylabel="newcomer's rate over the others' mean [1]",
        ylim=(0, None),
    )
    ax.legend()
    return figure


def fig3c() -> Figure:
    """The newcomer's rate over two bottlenecks, by the peak rate of a Pareto flow beside it."""
    figure, ax = _figure(f"FAST, Fig. 3(c): bottlenecks of 50 and 100 Mbit/s, {len(SEEDS)} seeds")
    for k, (method, mark) in enumerate(_MARKS.items()):
        found = shares(method)
        mean = found.mean(axis=1)
        at = np.array(PEAKS) / 1e6 + 0.4 * (k - 1)
        (line,) = ax.plot(at, mean, marker=mark, label=method)
        ax.vlines(at, found.min(axis=1), found.max(axis=1), color=line.get_color())
    ax.axhline(1, color="0.5", linestyle=":")
    ax.set(
        xlabel="peak rate of the background [Mbit/s]",
        ylabel="newcomer's rate over that of one that knows [1]",
    )
    ax.set_ylim(0, None)
    ax.legend(loc="upper center")
    return figure


def stability() -> Figure:
    """Where rates stabilize, with x = w/r and with the ack clock."""
    figure, ax = _figure("FAST: one flow is stable below; 100 Mbit/s, 1000 bytes, 50 packets")
    for law, label in ((StaticFAST, "x = w/r"), (FAST, "ack clock")):
        curve = stability_boundary(
            alone(law, 0.1), "gamma", along="f0.return_delay", along_bounds=(0.005, 0.2)
        )
        assert isinstance(curve, BoundaryCurve)
        r = 0.05 + curve.x
        ax.plot(1e3 * r, curve.y * r / TAU, label=f"{label}, by continuation")
        for side in (0.95, 1.05):
            found, _ = growth(law(gamma=side * edge(law, 0.1) * TAU / 0.1), 0.1)
            kind = ("o", "decays") if found < 0 else ("x", "grows")
            named = f"simulation: {kind[1]}" if law is FAST else None
            color = "C0" if law is StaticFAST else "C1"
            ax.plot(
                100,
                side * edge(law, 0.1),
                marker=kind[0],
                color=color,
                linestyle="",
                markersize=7,
                label=named,
            )
    ax.set(xlabel="round-trip propagation delay r [ms]", ylabel=r"$\gamma r/\tau$ [1]", ylim=(0, 2))
    ax.legend(fontsize="small", loc="center right")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "fast_fig2a": fig2a,
    "fast_fig2b": fig2b,
    "fast_fig2c": fig2c,
    "fast_fig3a": fig3a,
    "fast_fig3b": fig3b,
    "fast_fig3c": fig3c,
    "fast_stability": stability,
}
