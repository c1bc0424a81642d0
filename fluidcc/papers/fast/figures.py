"""Figures 2 and 3 of the paper on FAST's persistent congestion, and where it is stable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fluidcc.analysis.boundary import BoundaryCurve, stability_boundary
from fluidcc.base.colours import colour
from fluidcc.formulas import fast
from fluidcc.papers.drawing import Figures
from fluidcc.papers.fast.common import FLOWS, RTTS, arrivals, ratios
from fluidcc.papers.fast.runs import PEAKS, SEEDS, TAU, alone, edge, growth, shares
from fluidcc.papers.zoo.fast import ALPHA, GAP, METHODS, PACKET, RTT, RTT_2, C
from fluidcc.plotting import timeseries
from fluidcc.sources import FAST, StaticFAST

FIGURES = Figures()

_SET = f"100 Mbit/s, RTT {1e3 * RTT_2:g} ms"
_MARKS = dict(zip(METHODS, "osD", strict=True))


def _levels(ax: Any, values: Iterable[Any]) -> None:
    """Dot the level, or the levels, that the flows settle at before each arrival."""
    for i, row in enumerate(values):
        span = [GAP * i + 0.3 * GAP, GAP * (i + 1)]
        for level in np.atleast_1d(row):
            ax.plot(span, [level, level], color="black", linestyle=":", linewidth=1.6, zorder=5)


@FIGURES.panels(
    "fast_fig2a", title=f"FAST, Fig. 2(a): five arrivals, {_SET} (dotted: recursion of (2))"
)
def fig2a(ax: Any) -> None:
    """Rates of five FAST flows, and the recursion."""
    timeseries(arrivals("FAST"), ("rate",), ax=ax)
    wanted = fast.arrival_recursion(5, C, ALPHA).rate * PACKET / 1e6
    _levels(ax, [rates[rates > 0] for rates in wanted])


@FIGURES.panels(
    "fast_fig2b",
    title=f"FAST, Fig. 2(b): with the estimator at the age of {GAP / 2:g} s, {_SET} (dotted: C/n)",
)
def fig2b(ax: Any) -> None:
    """The same with the estimator."""
    run = arrivals("estimator")
    bins = (run.rate / 1e6).groupby_bins("time", np.arange(0, 5 * GAP + 0.5, 0.5), right=False)
    low, mean, high = bins.min(), bins.mean(), bins.max()
    t = [span.mid for span in mean.time_bins.values]
    for k, flow in enumerate(run.flow.values):
        about = f"{flow}, mean of half a second"
        ax.plot(t, mean.sel(flow=flow), color=colour(k), label=about)
        ax.fill_between(t, low.sel(flow=flow), high.sel(flow=flow), color=colour(k), alpha=0.2,
                        linewidth=0, label="least to largest" if k == 0 else None)  # fmt: skip
    ax.set(xlabel="time [s]", ylabel="rate [Mbit/s]", xlim=(0, 5 * GAP), ylim=(0, 120))
    _levels(ax, C / np.arange(1, 6) * PACKET / 1e6)
    ax.legend(ncols=2)


@FIGURES.panels(
    "fast_fig2c", title=r"FAST, Fig. 2(c): queue (dotted: recursion, and $\alpha$ packets a flow)"
)
def fig2c(ax: Any) -> None:
    """The queue, with and without."""
    for method in ("FAST", "estimator"):
        r = arrivals(method)
        ax.plot(r.time, r.backlog.values[:, 0] / PACKET, label=method)
    _levels(ax, fast.arrival_recursion(5, C, ALPHA).backlog)
    _levels(ax, ALPHA * np.arange(1, 6))
    ax.set(xlabel="time [s]", ylabel="queue [packets]", xlim=(0, 5 * GAP), ylim=(0, None))
    ax.legend()


def _ratios(ax: Any, across: Any, over: str, label: str) -> None:
    """The newcomer's rate over the others' mean, by each method."""
    for method, mark in _MARKS.items():
        ax.plot(across, ratios(method, over), marker=mark, label=method)
    ax.set(xlabel=label, ylabel="newcomer's rate over the others' mean")


@FIGURES.panels(
    "fast_fig3a", title="FAST, Fig. 3(a): eight flows and a newcomer, 100 Mbit/s, 1000 bytes"
)
def fig3a(ax: Any) -> None:
    """The newcomer's rate over the others' mean, by round-trip time."""
    _ratios(ax, 1e3 * np.array(RTTS), "rtt", "round-trip propagation delay [ms]")
    threshold = 1e3 * fast.rate_reduction_threshold(8, C, ALPHA)
    ax.axhline(
        fast.unfairness(8), color="black", linestyle=":", label="FAST in closed form, (3) over (4)"
    )
    label = "from here on rate reduction works, (7)"
    ax.axvline(threshold, color="0.5", linestyle="--", label=label)
    ax.set_ylim(0, None)
    ax.legend()


@FIGURES.panels(
    "fast_fig3b", title=f"FAST, Fig. 3(b): RTT {1e3 * RTT:g} ms, 100 Mbit/s, 1000 bytes"
)
def fig3b(ax: Any) -> None:
    """The newcomer's rate over the others' mean, by their number."""
    _ratios(ax, FLOWS, "n", "existing flows $n$")
    n = np.linspace(FLOWS[0], FLOWS[-1], 200)
    ax.plot(n, fast.unfairness(n), "k:", label="FAST in closed form, (3) over (4)")
    ax.set_ylim(0, None)
    ax.legend()


@FIGURES.panels(
    "fast_fig3c", title=f"FAST, Fig. 3(c): bottlenecks of 50 and 100 Mbit/s, {len(SEEDS)} seeds"
)
def fig3c(ax: Any) -> None:
    """The newcomer's rate over two bottlenecks, by the peak rate of a Pareto flow beside it."""
    for k, (method, mark) in enumerate(_MARKS.items()):
        found = shares(method)
        mean = found.mean(axis=1)
        at = np.array(PEAKS) / 1e6 + 0.4 * (k - 1)
        (line,) = ax.plot(at, mean, marker=mark, label=method)
        label = "least to largest of the seeds" if k == 0 else None
        ends = found.min(axis=1), found.max(axis=1)
        ax.vlines(at, *ends, color=line.get_color(), alpha=0.5, linewidth=3, label=label)
    ax.axhline(1, color="0.5", linestyle=":")
    ax.set(
        xlabel="peak rate of the background [Mbit/s]",
        ylabel="newcomer's rate over that of one that knows",
        ylim=(0, 2.1),
    )
    ax.legend(loc="upper center", ncols=2)


@FIGURES.panels(
    "fast_stability",
    title="FAST: one flow is stable below its line; 100 Mbit/s, 1000 bytes, 50 packets",
)
def stability(ax: Any) -> None:
    """Where rates stabilize, with x = w/r and with the ack clock."""
    for color, law, label in (("C0", StaticFAST, "$x = w/r$"), ("C1", FAST, "an ack clock")):
        curve = stability_boundary(
            alone(law, 0.1), "gamma", along="f0.return_delay", along_bounds=(0.005, 0.2)
        )
        assert isinstance(curve, BoundaryCurve)
        r = 0.05 + curve.x
        ax.plot(1e3 * r, curve.y * r / TAU, color=color, label=f"boundary with {label}")
        for side in (0.95, 1.05):
            found, _ = growth(law(gamma=side * edge(law, 0.1) * TAU / 0.1), 0.1)
            mark = "o" if found < 0 else "x"
            ax.plot(100, side * edge(law, 0.1), mark, color=color, markersize=7)
    for mark, does in (("o", "dies out"), ("x", "grows")):
        ax.plot([], [], mark, color="0.4", label=f"simulated: a swing {does}")
    ax.set(xlabel="round-trip propagation delay $r$ [ms]", ylim=(0, 2))
    ax.set_ylabel(r"gain a round trip, $\gamma r/\tau$")
    ax.legend(loc="center right")
