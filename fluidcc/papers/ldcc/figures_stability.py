"""Charts of Section IV of the LDCC paper: critical gains against the conditions, and the sampled law."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.analysis.local import local_loop
from fluidcc.analysis.operating_point import operating_point
from fluidcc.analysis.sampled import sampled_stability
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.ldcc.hull import allowed, counterexample
from fluidcc.papers.stability_chart import chart
from fluidcc.sources import LDCC

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["conditions", "each_user", "sampled"]


def _figure(columns: int, width: float = 4.3) -> tuple[Figure, list[Any]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, 3.9), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(1, columns)))


def conditions() -> Figure:
    """Critical gains of 400 parking lots, exact and by each condition."""
    from matplotlib.ticker import FixedLocator, NullLocator

    found = chart()
    figure, axes = _figure(3)
    for ax, (label, ratio) in zip(axes, allowed(found).items(), strict=True):
        for i, hops in enumerate(found.hops):
            exact = found.exact[i].ravel()
            ax.plot(exact, ratio[i].ravel() * exact, ".", markersize=4, label=f"M = {hops}")
        both = [0.05, 4.5]
        ax.plot(both, both, color="0.4", linewidth=0.8)
        ax.set(
            xscale="log",
            yscale="log",
            xlim=(0.3, 4.5),
            ylim=both,
            title=label,
            xlabel=r"exact critical gain $\eta$, frozen delays [1]",
            ylabel=r"gain $\eta$ that the condition allows [1]",
        )
        for axis, ticks in ((ax.xaxis, (0.5, 1, 2, 4)), (ax.yaxis, (0.1, 0.2, 0.5, 1, 2, 4))):
            axis.set_major_locator(FixedLocator(ticks))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(NullLocator())
        ax.grid(alpha=0.3)
    axes[0].legend(frameon=False, loc="upper left")
    about = "w = 20 kbit/s, $\\beta$ = 0.1, 0.25 to 25 Mbit/s a flow, RTT ratios 1 to 100"
    figure.suptitle(f"LDCC, {found.size} parking lots: {about}", fontsize="medium")
    return figure


def each_user() -> Figure:
    """Nyquist curves of two users that each pass -1, and of the network that does not."""
    net, _ = counterexample()
    loop = local_loop(operating_point(net))
    omega = np.geomspace(2.0, 400, 20000)
    G, F = loop.user(1j * omega), loop.eigenloci(omega)[:, 0]
    figure, (ax,) = _figure(1, 6.4)
    for curve, label, style in zip(G, ("G, RTT 50 ms", "G, RTT 250 ms"), ("-", "--"), strict=True):
        ax.plot(curve.real, curve.imag, style, label=label)
    ax.plot(F.real, F.imag, color="black", linewidth=1.2, label="eigenvalue of F")
    ax.plot([-1], [0], "+", color="tab:red", markersize=12, markeredgewidth=2)
    ax.set(
        xlim=(-2.2, 0.6),
        ylim=(-1.6, 1.0),
        xlabel="real part [1]",
        ylabel="imaginary part [1]",
        title="Every user passes -1, their network does not",
    )
    ax.axhline(0, color="0.7", linewidth=0.8, zorder=0)
    ax.legend(frameon=False, loc="lower right")
    ax.grid(alpha=0.3)
    return figure


def sampled() -> Figure:
    """Largest multiplier over a round trip of the sampled law, over T_s/RTT."""
    figure, (ax,) = _figure(1, 6.4)
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
        xlabel="update interval over round-trip time, T_s/RTT [1]",
        ylabel="largest multiplier over one RTT [1]",
        title="LDCC, law (25): one flow on 3 Mbit/s, stable below 1",
    )
    ax.grid(alpha=0.3, which="both")
    ax.legend(frameon=False)
    return figure
