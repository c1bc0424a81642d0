"""Where LDCC loses stability over gain, rate, round-trip times and hops: exactly, and by every condition."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.sufficient import sufficient_conditions
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.papers.ldcc.networks import unstable
from fluidcc.papers.stability_chart import ParkingLots, critical_gains, parking_lot_network
from fluidcc.sources import LDCC

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["delay_driven", "loss_driven"]

HOPS = (1, 2, 3, 5)
RATE, RATIO = 2e6, 3.0  # where the other one is drawn across
GAINS = np.geomspace(0.2, 6.0, 70)
POINTS, CONSERVING = 60, 7  # across; of them with queues that conserve flow
LEVELS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
STYLES = {
    "exact, frozen delays": ("k", "-"),
    "-1/M rule": ("C1", "-"),
    "convex hull, exact radius": ("C3", "-."),
    "eta divided by M": ("white", ":"),
}


def delay_driven() -> Figure:
    """Gain margins of parking lots over gain and rate, or RTT ratio, with the boundary of each condition."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * 3.4, 7.2), layout="constrained")
    rows = figure.subplots(2, len(HOPS), sharey=True, sharex="row")
    across = {
        "rate of each flow [Mbit/s]": (np.geomspace(0.25e6, 25e6, POINTS), None),
        "RTT of the long flow over the others' [1]": (None, np.geomspace(1, 30, POINTS)),
    }
    for row, (label, (rates, ratios)) in zip(rows, across.items(), strict=True):
        for ax, hops in zip(row, HOPS, strict=True):
            filled = _panel(ax, hops, rates, ratios)
            ax.set_xlabel(label)
            held = f"RTT ratio {RATIO:g}" if rates is not None else f"{RATE / 1e6:g} Mbit/s a flow"
            ax.set_title(f"M = {hops}, {held}", fontsize="medium")
        row[0].set_ylabel(r"gain $\eta$ [1]")
    figure.colorbar(filled, ax=rows, label="exact gain margin, frozen delays [1]", shrink=0.7, ticks=LEVELS)
    handles, names = rows[0, -1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=6, frameon=True, facecolor="0.75")
    figure.suptitle(
        "LDCC, w = 20 kbit/s, $\\beta$ = 0.1: parking lots of M links, stable below the line", fontsize="medium"
    )
    return figure


def critical_gain(network: Callable[[float], Network], low: float = 0.2, high: float = 10.0) -> float:
    """The gain at which a network loses stability, with queues that conserve flow, to half a percent."""
    rest = equilibrium(network(low))  # does not depend on the gain
    while high > 1.005 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if unstable(network(middle), at=rest) else (middle, high)
    return low


def _panel(ax: Any, hops: int, rates: Any, ratios: Any) -> Any:
    """One M, over rates or over ratios, whichever is not None."""
    given = rates if rates is not None else ratios
    rate, ratio = (np.full(len(given), fixed) if v is None else v for v, fixed in ((rates, RATE), (ratios, RATIO)))
    x = given / 1e6 if rates is not None else given
    M = np.full(len(given), hops)
    lots = ParkingLots(M, rate, ratio)
    reach = np.array([lots.exact(np.full(len(given), gain)) for gain in GAINS])
    filled = ax.contourf(x, GAINS, 1 / np.maximum(reach, 1e-9), LEVELS, cmap="viridis", extend="max")
    for (name, (color, style)), values in zip(STYLES.items(), critical_gains(M, rate, ratio), strict=True):
        ax.plot(x, values, color=color, linestyle=style, linewidth=1.7, label=name)
    some = np.linspace(0, len(given) - 1, CONSERVING).round().astype(int)
    kept = [critical_gain(partial(parking_lot_network, hops, float(rate[i]), float(ratio[i]))) for i in some]
    ax.plot(x[some], kept, "o", color="k", markerfacecolor="none", markersize=5, label="exact, queues conserve flow")
    ax.axhline(0.4, color="0.85", linewidth=0.9, label=r"$\eta$ = 0.4 of Section V")
    ax.set(xscale="log", yscale="log", ylim=(GAINS[0], GAINS[-1]))
    ax.set_facecolor("0.93")
    _ticks(ax, (0.3, 1, 3, 10, 30))
    return filled


def _ticks(ax: Any, across: tuple[float, ...]) -> None:
    """A few plain numbers on two logarithmic axes; those up are gains."""
    from matplotlib.ticker import FixedLocator, NullLocator

    for axis, ticks in ((ax.yaxis, (0.2, 0.4, 1, 2, 4)), (ax.xaxis, across)):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())


def losing(rate: float, ratio: float, gain: float) -> Network:
    """Two flows that fill a buffer, with delays below T, so that losses alone drive them; RTTs of 0.1 s and `ratio`."""
    net = Network().link("l", DropTail, capacity=2 * rate, delay=0.02, buffer=0.03 * 2 * rate)
    for name, trip in (("near", 0.1), ("far", 0.1 * ratio)):
        net.flow(name, LDCC(eta=gain), route=["l"], access_delay=0.01, return_delay=trip - 0.06)
    return net


def loss_driven() -> Figure:
    """Critical gains of two flows that losses drive, exact and by the conditions of pi/2."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 3.9), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    rates, ratios = np.geomspace(0.1e6, 10e6, POINTS // 3), np.geomspace(1, 30, POINTS // 3)
    cases = (
        (rates / 1e6, [(float(r), RATIO) for r in rates], "rate of each flow [Mbit/s]", f"RTT ratio {RATIO:g}"),
        (
            ratios,
            [(RATE, float(r)) for r in ratios],
            "RTT of one flow over the other's [1]",
            f"{RATE / 1e6:g} Mbit/s a flow",
        ),
    )
    for ax, (x, lots, label, held) in zip(axes, cases, strict=True):
        found = [sufficient_conditions(losing(*lot, 0.4)) for lot in lots]
        exact = [critical_gain(partial(losing, *lot)) for lot in lots]
        ax.plot(x, exact, "k", label="exact")
        for name, color, style in (("Vinnicombe", "C0", "--"), ("Johari-Tan", "C1", ":"), ("convex hull", "C3", "-.")):
            ax.plot(x, [0.4 * v[name].margin for v in found], color=color, linestyle=style, label=name)
        ax.axhline(0.4, color="0.7", linewidth=0.9, label=r"$\eta$ = 0.4 of Section V")
        ax.set(xscale="log", yscale="log", xlabel=label, title=f"losses only, {held}")
        _ticks(ax, (0.1, 0.3, 1, 3, 10, 30))
        ax.grid(alpha=0.3)
    axes[0].set_ylabel(r"critical gain $\eta$ [1]")
    axes[0].legend(frameon=False, fontsize="small", loc="center", bbox_to_anchor=(0.5, 0.27))
    return figure
