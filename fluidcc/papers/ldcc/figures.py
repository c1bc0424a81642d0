"""The figures of the LDCC paper that a fluid can have, and some that it should have had."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sympy import lambdify

from fluidcc.analysis.operating import operating_point
from fluidcc.analysis.sampled import sampled_stability
from fluidcc.base.colours import RED
from fluidcc.conditions.local import local_loop
from fluidcc.conditions.sufficient import sufficient_conditions
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.links import DropTail
from fluidcc.metrics import jain
from fluidcc.network import Network
from fluidcc.network.scenarios import scenarios
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.drawing import Figures, plain_ticks
from fluidcc.papers.ldcc import coexistence as beside
from fluidcc.papers.ldcc.common import FAIR_DELAYS, W_OVER_BETA, T, beta, run, unstable
from fluidcc.papers.ldcc.law import V, burst
from fluidcc.papers.ldcc.runs import CAPACITIES, fair_rates
from fluidcc.papers.ldcc.stability import (
    CONDITIONS,
    HOPS,
    ParkingLots,
    chart,
    counterexample,
    critical_gains,
    parking_lot_network,
)
from fluidcc.plotting import compare, timeseries
from fluidcc.plotting.common import legend
from fluidcc.sources import LDCC
from fluidcc.symbols import e, e_b

FIGURES = Figures()

RATE, RATIO = 2e6, 3.0  # where the other one is drawn across
FIXED = f"RTT ratio {RATIO:g}", f"{RATE / 1e6:g} Mbit/s a flow"
GAINS = np.geomspace(0.2, 6.0, 70)
POINTS, CONSERVING = 60, 7  # across; of them with queues that conserve flow
LEVELS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
STYLES = {
    "exact, frozen delays": "k-",
    "-1/M rule": "C1-",
    "convex hull, exact radius": "C3-.",
    r"$\eta$ divided by M": "C5:",
}


@FIGURES.panels(
    "ldcc_boundaries",
    2,
    len(HOPS),
    sharey=True,
    sharex="row",
    size=(11.6, 6.6),
    title="LDCC, w = 20 kbit/s, $\\beta$ = 0.1: parking lots of M links, stable below the line",
)
def delay_driven(rows: Any) -> None:
    """Gain margins of parking lots over gain and rate, or RTT ratio, with the boundary of each
    condition."""
    rates, ratios = np.geomspace(0.25e6, 25e6, POINTS), np.geomspace(1, 30, POINTS)
    across = (
        (rates / 1e6, rates, np.full(POINTS, RATIO)),
        (ratios, np.full(POINTS, RATE), ratios),
    )
    labels = "rate of each flow [Mbit/s]", "RTT ratio, long to short"
    for row, label, held, lots in zip(rows, labels, FIXED, across, strict=True):
        for ax, hops in zip(row, HOPS, strict=True):
            filled = _panel(ax, hops, *lots)
            ax.set(xlabel=label, title=f"M = {hops}")
        row[0].set_ylabel(rf"gain $\eta$ ({held})")
    figure, named = rows[0, -1].figure, rows[0, -1].get_legend_handles_labels()
    label = "exact gain margin, frozen delays"
    figure.colorbar(filled, ax=rows, label=label, shrink=0.7, ticks=LEVELS)
    figure.legend(*named, loc="outside lower center", ncols=6)


def critical_gain(network: Callable[[float], Network]) -> float:
    """The gain at which a network loses stability, with queues that conserve flow, to half a
    percent."""
    low, high = 0.2, 10.0
    rest = equilibrium(network(low))  # does not depend on the gain
    while high > 1.005 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if unstable(network(middle), at=rest) else (middle, high)
    return low


def _panel(ax: Any, hops: int, x: Any, rate: Any, ratio: Any) -> Any:
    """One M, over x: a rate and a ratio at each."""
    M = np.full(len(x), hops)
    lots = ParkingLots(M, rate, ratio)
    reach = np.array([lots.exact(np.full(len(x), gain)) for gain in GAINS])
    margin = 1 / np.maximum(reach, 1e-9)
    filled = ax.contourf(x, GAINS, margin, LEVELS, cmap="viridis", extend="max")
    curves = critical_gains(M, rate, ratio)
    for (name, style), values in zip(STYLES.items(), curves, strict=True):
        ax.plot(x, values, style, linewidth=1.7, label=name)
    some = np.linspace(0, len(x) - 1, CONSERVING).round().astype(int)
    kept = [critical_gain(partial(parking_lot_network, hops, rate[i], ratio[i])) for i in some]
    hollow = {"color": "k", "markerfacecolor": "none", "markersize": 5}
    ax.plot(x[some], kept, "o", label="exact, queues conserve flow", **hollow)
    ax.axhline(0.4, color="k", linestyle="--", linewidth=0.9, label=r"$\eta$ = 0.4 of Section V")
    ax.set(xscale="log", yscale="log", ylim=(GAINS[0], GAINS[-1]))
    ax.grid(visible=False)
    ax.set_facecolor("0.93")
    plain_ticks(ax, (0.3, 1, 3, 10, 30), (0.2, 0.4, 1, 2, 4))
    return filled


def losing(rate: float, ratio: float, gain: float) -> Network:
    """Two flows that fill a buffer, with delays below T, so that losses alone drive them; RTTs of
    0.1 s and `ratio`."""
    room = f"{0.03 * 2 * rate} bit"
    net = Network().link("l", DropTail, capacity=2 * rate, delay=0.02, buffer=room)
    for name, trip in (("near", 0.1), ("far", 0.1 * ratio)):
        net.flow(name, LDCC(eta=gain), route=["l"], access_delay=0.01, return_delay=trip - 0.06)
    return net


@FIGURES.panels("ldcc_boundaries_losses", 1, 2, sharey=True, size=(8.6, 3.9))
def loss_driven(axes: Any) -> None:
    """Critical gains of two flows that losses drive, exact and by the conditions of pi/2."""
    rates, ratios = np.geomspace(0.1e6, 10e6, POINTS // 3), np.geomspace(1, 30, POINTS // 3)
    by_rate, by_ratio = [(float(r), RATIO) for r in rates], [(RATE, float(r)) for r in ratios]
    labels = "rate of each flow [Mbit/s]", "RTT of one flow over the other's"
    cases = zip(axes, (rates / 1e6, ratios), (by_rate, by_ratio), labels, FIXED, strict=True)
    # they nearly coincide: the wide lines are under the narrow ones
    conditions = {"Vinnicombe": ("C4", 6.0), "Johari-Tan": ("C1", 3.5), "convex hull": ("C3", 1.3)}
    for ax, x, lots, label, held in cases:
        found = [sufficient_conditions(losing(*lot, 0.4)) for lot in lots]
        exact = [critical_gain(partial(losing, *lot)) for lot in lots]
        ax.plot(x, exact, "k", label="exact")
        for name, (shade, width) in conditions.items():
            allowed = [0.4 * v[name].margin for v in found]
            ax.plot(x, allowed, color=shade, linewidth=width, label=name)
        ax.axhline(0.4, color="0.7", linewidth=0.9, label=r"$\eta$ = 0.4 of Section V")
        ax.set(xscale="log", yscale="log", xlabel=label, title=f"losses only, {held}")
        plain_ticks(ax, (0.1, 0.3, 1, 3, 10, 30), (0.2, 0.4, 1, 2, 4))
    axes[0].set_ylabel(r"critical gain $\eta$")
    axes[0].legend(loc="center", bbox_to_anchor=(0.5, 0.27))


# --- Figs. 12 to 14: beside TCP, NADA and GCC


@FIGURES.panels("ldcc_fig12", 1, 2, sharey=True)
def fig12(axes: Any) -> None:
    """Mean rates of LDCC and TCP over the buffer, on the limit cycle and at the static
    equilibrium."""
    fine, floor = sorted({*beside.BUFFERS, 35, 40, 45, 50, 75}), W_OVER_BETA / 1e6
    cycles = [beside.sawtooth(n).mean.rate.values[:2] for n in fine]
    rests = [beside.static(n)[:2] for n in fine]
    for ax, rates in zip(axes, np.array([cycles, rests]) / 1e6, strict=True):
        for style, name, rate in zip(("C0o-", "C1s-"), ("LDCC", "TCP"), rates.T, strict=True):
            ax.plot(fine, rate, style, markersize=4, label=name)
        ax.axhline(floor, color="0.5", linestyle=":", linewidth=1.2)
        ax.text(182, floor - 0.02, r"$w/\beta$", ha="right", va="top", color="0.4")
        ax.set(xlabel="buffer [packets of 1 KB]", ylim=(0, 1.9))
    (moving, still), at = axes, beside.crossing()
    moving.axvline(at, color="0.6", linestyle="--", linewidth=0.9)
    moving.text(at + 2, 1.78, f"{at:.1f}", color="0.4", fontsize="small")
    moving.set(ylabel="mean rate [Mbit/s]", title="LDCC, Fig. 12: TCP as a sawtooth")
    still.set_title("TCP as its static square-root law")
    moving.legend(loc="center right")


@FIGURES.panels("ldcc_fig13", size=(8.8, 4.2))
def fig13(ax: Any) -> None:
    """Mean one-way delay over the capacity, with what lies between the least and the largest."""
    dots = np.array(beside.CAPACITIES)
    fine, exact = np.linspace(dots[0], dots[-1], 101), beside.closed()
    mean, most = (1e3 * (beside.DELAY + v) for v in (exact.queue_mean, exact.queue_max))
    lines = {
        f"{name}, at rest": [1e3 * delay(c) for c in fine] for name, delay in beside.DELAYS.items()
    } | {"GCC, mean of its limit cycle": np.full(len(fine), mean)}
    runs = [
        [beside.settled(beside.LAWS[name], c).one_way_delay.mean() for c in beside.CAPACITIES]
        for name in beside.DELAYS
    ]
    runs.append([beside.cycle(c).mean.one_way_delay[0] for c in beside.CAPACITIES])
    for k, ((label, line), found) in enumerate(zip(lines.items(), runs, strict=True)):
        ax.plot(fine / 1e6, line, color=f"C{k}", label=label)
        ax.plot(dots / 1e6, 1e3 * np.array(found), "o", color=f"C{k}", markersize=4)
    filled = {"color": "C2", "alpha": 0.2, "linewidth": 0, "label": "GCC, least to largest"}
    ax.fill_between(fine / 1e6, 1e3 * beside.DELAY, most, **filled)
    ax.set(
        xlabel="capacity [Mbit/s]",
        ylabel="one-way delay [ms]",
        xlim=(0.45, 3.05),
        ylim=(0, None),
        title=rf"LDCC, Fig. 13 (NADA with $R_{{MAX}}$ = {beside.R_MAX / 1e6:g} Mbit/s; dots: runs)",
    )
    ax.legend()


@FIGURES.panels("ldcc_fig14", 2, size=(8.8, 6.0), sharex=True)
def fig14(axes: Any) -> None:
    """Rate and one-way delay over time at 1.5 Mbit/s."""
    top, below = axes
    for name, law in beside.LAWS.items():
        shown = beside.settled(law, 1.5e6).isel(flow=0).sel(time=slice(180.0, 200.0))
        t = shown.time - 180.0
        top.plot(t, shown.rate / 1e6, "--" if name == "NADA" else "-", label=name)
        below.plot(t, shown.one_way_delay * 1e3)
    title = "LDCC, Fig. 14: alone on 1.5 Mbit/s, settled"
    top.set(ylabel="rate [Mbit/s]", ylim=(1.24, 1.68), title=title)
    below.set(ylabel="one-way delay [ms]", xlabel="time [s]", ylim=(0, None))
    top.legend(ncols=3, loc="upper right")
    for ax in axes:
        ax.margins(x=0)


# --- Charts of Section IV


@FIGURES.panels(
    "ldcc_conditions",
    1,
    3,
    size=(12.9, 3.9),
    title="LDCC, 400 parking lots: $w$ = 20 kbit/s, $\\beta$ = 0.1, 0.25 to 25 Mbit/s a flow, RTT "
    "ratios 1 to 100",
)
def conditions(axes: Any) -> None:
    """Critical gains of 400 parking lots, exact and by each condition."""
    found = chart()
    for ax, (name, label) in zip(axes, CONDITIONS.items(), strict=True):
        for hops, exact, allowed in zip(HOPS, found["exact"], found[name], strict=True):
            ax.plot(exact.ravel(), allowed.ravel(), ".", markersize=4, label=f"M = {hops}")
        both = [0.15, 4.5]
        ax.plot(both, both, color="0.4", linewidth=0.8, label="as exact")
        ax.set(
            xscale="log",
            yscale="log",
            xlim=(0.3, 4.5),
            ylim=both,
            title=label,
            xlabel=r"exact critical gain $\eta$, frozen delays",
            ylabel=r"gain $\eta$ that the condition allows",
        )
        plain_ticks(ax, (0.5, 1, 2, 4), (0.2, 0.5, 1, 2, 4))
    axes[0].legend(loc="upper left")


@FIGURES.panels(
    "ldcc_each_user", size=(6.4, 3.9), title="Each loop alone is stable, the network is not"
)
def each_user(ax: Any) -> None:
    """Nyquist curves of two users that each pass -1, and of the network that does not."""
    net, _ = counterexample()
    loop = local_loop(operating_point(net))
    omega = np.geomspace(2.0, 400, 20000)
    G, F = loop.user(1j * omega), loop.eigenloci(omega)[:, 0]
    for curve, trip, style in zip(G, (50, 250), ("-", "--"), strict=True):
        label = f"$G_r$ of a user with RTT {trip} ms: passes -1 on the right"
        ax.plot(curve.real, curve.imag, style, label=label)
    label = "eigenvalue of the network: encircles -1"
    ax.plot(F.real, F.imag, color="black", linewidth=1.2, label=label)
    ax.plot([-1], [0], "+", color=RED, markersize=12, markeredgewidth=2, label="-1")
    ax.set(xlim=(-1.6, 0.4), ylim=(-0.75, 0.45), xlabel="real part", ylabel="imaginary part")
    ax.axhline(0, color="0.7", linewidth=0.8, zorder=0)
    ax.legend(loc="lower right")


@FIGURES.panels(
    "ldcc_sampled", size=(6.4, 3.9), title="LDCC, law (25): one flow on 3 Mbit/s, stable below 1"
)
def sampled(ax: Any) -> None:
    """Largest multiplier over a round trip of the sampled law, over T_s/RTT."""
    ratios = np.geomspace(0.05, 10, 60)
    for gain in (0.2, 0.4, 0.8, 1.2):
        net = dumbbell([LDCC(eta=gain)], {"capacity": 3e6}, rtt=0.05)
        rest = equilibrium(net)
        trip = float(rest.rtt.values[0])
        radius = [sampled_stability(net, r * trip, rest).radius ** (1 / r) for r in ratios]
        ax.plot(ratios, radius, label=rf"$\eta$ = {gain}")
    ax.axhline(1, color="0.4", linewidth=0.8)
    ax.axvline(1, color="0.6", linewidth=0.8, linestyle=":")
    ax.set(
        xscale="log",
        ylim=(0.6, 1.15),
        xlabel="update interval over round-trip time, $T_s$/RTT",
        ylabel="largest multiplier over one RTT",
    )
    ax.legend()


# --- The other figures of the paper

# When flows of a scenario have settled, and to what: dotted in its figure.
_TWINS = ("ldcc_fig5", "ldcc_fig6")
_SETTLED = ((60.0, 100.0), (200.0, 260.0), (310.0, 350.0))


def _over_time(name: str, variables: tuple[str, ...], axes: Any) -> None:
    """Rates and delays of a ready scenario, with the equilibria that `fluidcc.equilibrium` finds
    dotted."""
    r, net = run(name), scenarios[name].net
    flows = [f for f in net.flow_names if f != "udp"]
    on = r.rate > 0  # a flow that is off has no delay and no loss
    r = r.assign({v: r[v].where(on).assign_attrs(r[v].attrs) for v in variables if v != "rate"})
    timeseries(r, "rate", ax=axes[0])
    timeseries(r, variables[1:], flows=flows, ax=axes[1:])
    if name in _TWINS:  # the first two have the same course
        for ax in axes:
            (line,) = (one for one in ax.get_lines() if one.get_label() == "flow2")
            line.set_linestyle((0, (4, 4)))
        legend(axes[0])
    for start, stop in _SETTLED:
        eq = equilibrium(net, at=0.5 * (start + stop))
        sending = [f for f in flows if float(eq.rate.sel(flow=f)) > 0]
        for variable, ax in zip(variables, axes, strict=True):
            scale = {"rate": 1e6, "one_way_delay": 1e-3, "loss": 1}[variable]
            values = getattr(eq, variable).sel(flow=sending).values / scale
            for level in set(values.round(9)):
                ax.plot([start, stop], [level, level], "k:", linewidth=1.6, zorder=5)
    axes[0].set_title(scenarios[name].title + " (dotted: equilibria)")
    for ax in axes[:-1]:
        ax.set_xlabel("")
    for ax in axes[1:]:
        if ax.get_legend() is not None:
            ax.get_legend().remove()


# Three flows on a long and on a short buffer, and the parking lot with long and short buffers.
_SHOWN = ("rate", "one_way_delay", "loss")
fig5, fig6, fig10, fig11 = (
    FIGURES.panels(name, count, sharex=True)(partial(_over_time, name, _SHOWN[:count]))
    for name, count in (("ldcc_fig5", 2), ("ldcc_fig6", 3), ("ldcc_fig10", 2), ("ldcc_fig11", 3))
)


@FIGURES.panels(
    "ldcc_fig2", title=r"LDCC, Fig. 2: penalty (17) with $e_b = p$, $T$ = 100 ms, $\beta$ = 0.1"
)
def fig2(ax: Any) -> None:
    """The delay penalty over the one-way delay."""
    v, delay = lambdify((e, e_b, T, beta), V, "numpy"), np.linspace(0, 1.0, 1001)
    for p in (0.025, 0.05, 0.1):
        seen = delay[delay >= p]
        ax.plot(seen * 1e3, v(seen, p, 0.1, 0.1), label=f"$p$ = {p * 1e3:g} ms")
    ax.axhline(0.1, color="black", linestyle="--", linewidth=0.8)
    ax.text(995, 0.0985, r"$\beta$", ha="right", va="top")
    ax.axvline(100, color="0.6", linestyle=":", linewidth=1)
    ax.text(106, 0.094, "$T$", color="0.4")
    ax.set(xlabel="one-way delay $e$ [ms]", ylabel="delay penalty $v(e)$")
    ax.set(xlim=(0, 1000), ylim=(0, 0.105))
    ax.legend(loc="lower right")


@FIGURES.panels("ldcc_fig7", 1, 2)
def fig7(axes: Any) -> None:
    """Jain's index over the capacity a flow, at two scales."""
    ax, close = axes
    share, equal = np.array(CAPACITIES) / 4e6, 2 * W_OVER_BETA / 1e6
    for one in axes:
        for name in FAIR_DELAYS:
            one.plot(share, jain(fair_rates(name)), marker=".", label=name)
        one.set_xlabel("normalised capacity c/4 [Mbit/s]")
    ax.set(ylabel="Jain's index", title="LDCC, Fig. 7 (propagation delays chosen)")
    ax.legend(loc="lower left")
    close.axvline(equal, color="0.5", linestyle=":")
    close.text(equal + 0.006, 0.9961, r"$2w/\beta$, where q = 2T", color="0.4", fontsize="small")
    close.set(
        xlim=(0.24, 0.55), ylim=(0.996, 1.0002), title="the same from 0.996 to 1: not monotone"
    )


@FIGURES.panels("ldcc_fig8", title="LDCC, Fig. 8 (propagation delays chosen)")
def fig8(ax: Any) -> None:
    """Lowest and highest rate over the capacity a flow."""
    share = np.array(CAPACITIES) / 4e6
    for k, name in enumerate(list(FAIR_DELAYS)[1:]):
        rates = fair_rates(name) / 1e6
        ax.plot(share, rates.max(axis=1), f"C{k + 1}^-", markersize=4, label=name)
        ax.plot(share, rates.min(axis=1), f"C{k + 1}v-", markersize=4)
    ax.plot(share, share, "k--", linewidth=0.8, label="full fairness")
    ax.plot(share, share / 2, color="0.5", linewidth=0.8, linestyle=":", label="half of it")
    ax.set(
        xlabel="normalised capacity c/4 [Mbit/s]",
        ylabel=r"highest ($\blacktriangle$) and lowest ($\blacktriangledown$) rate [Mbit/s]",
        xlim=(share[0], share[-1]),
        ylim=(0, None),
    )
    ax.legend()


@FIGURES.panels("ldcc_fifo_frozen", 2, 2, sharex="col")
def fifo_against_frozen(axes: Any) -> None:
    """The parking lot when flow 3 starts and stops, with queues that conserve flow and with (8) as
    printed."""
    fifo, frozen = (run("ldcc_fig10", delays).rate / 1e6 for delays in ("fifo", "frozen"))
    for (rates, gaps), ends in zip(axes.T, ((98.0, 125.0), (258.0, 275.0)), strict=True):
        for k, flow in enumerate(("flow1", "flow2", "flow3")):
            a, b = (r.sel(flow=flow, time=slice(*ends)) for r in (fifo, frozen))
            rates.plot(a.time, a, f"C{k}", label=flow)
            rates.plot(a.time, b, f"C{k}--")
            gaps.plot(a.time, (b - a) * 1e3, f"C{k}", label=flow)
        gaps.set_xlabel("time [s]")
    title = "Fig. 10 with delays='fifo' (solid), 'frozen' (dashed)"
    axes[0, 0].set(ylabel="rate [Mbit/s]", title=title)
    axes[1, 0].set_ylabel("frozen - fifo [kbit/s]")
    axes[0, 1].set_title("flow 3 stops at 260 s")
    axes[0, 0].legend()
    for ax in axes.flat:
        ax.margins(x=0)


@FIGURES.panels("ldcc_starvation", 2, sharex=True)
def starvation(axes: Any) -> None:
    """A burst on an endless buffer: the penalty alone keeps the rate above w/beta, its derivative
    term does not."""
    timeseries(burst(), ("rate", "queueing_delay"), ax=axes)
    line = {"color": "black", "linestyle": ":", "linewidth": 1.2, "label": r"$w/\beta$"}
    axes[0].axhline(W_OVER_BETA / 1e6, **line)
    legend(axes[0])
    title = r"LDCC below $w/\beta$ without losses: a burst of 3 c from 40 to 42 s"
    axes[0].set(title=title, xlabel="")


@FIGURES.panels("p2", 2, sharex=True, title="P1 and P2: three LDCC flows on one link")
def frozen_and_fifo(axes: Any) -> None:
    """Rates with constant feedback delays and with feedback through the queue, and by how much
    they differ."""
    runs = [scenarios[name].simulate(progress=False) for name in ("p1", "p2")]
    compare(*runs, labels=["frozen (P1)", "FIFO (P2)"], ax=axes[0])
    gap = (runs[1].rate - runs[0].rate) / 1e3
    axes[1].plot(gap.time, gap)
    axes[0].set_xlabel("")
    axes[1].set(xlabel="time [s]", ylabel="FIFO less frozen [kbit/s]")
