"""Figures of the ECF paper: transients, delay, jitter and fairness; and the loops' radii."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.formulas import ecf
from fluidcc.papers.ecf.common import (
    COUNTS,
    RTTS,
    SHARES,
    C,
    averages,
    dccp,
    mean_field,
    outer_loop,
    starting,
    steady,
    stopping,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _figure(
    rows: int = 1, columns: int = 1, size: tuple[float, float] = (8.0, 4.2)
) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns)


def _throughput(ax: Any, r: Any) -> None:
    """Rates in bins of half a second, as the paper counts bytes."""
    bins = r.rate.groupby_bins(
        "time", np.arange(0, float(r.time[-1]) + 0.5, 0.5), right=False
    ).mean()
    for i in range(5):
        ax.plot(
            [b.mid for b in bins.time_bins.values],
            bins.values[:, i] / 1e6,
            linewidth=1,
            label=f"source {i + 1}",
        )
    for share in SHARES:
        ax.axhline(share / 1e6, color="black", linestyle=":", linewidth=0.7)
    ax.set(ylabel="rate [Mbit/s]", ylim=(0, 21), xlim=(0, float(r.time[-1])))


def _transients(kinds: dict[str, str]) -> Figure:
    figure, axes = _figure(len(kinds), 2, (10.0, 3.0 * len(kinds)))
    for row, (kind, name) in zip(np.atleast_2d(axes), kinds.items(), strict=True):
        for ax, run, what in zip(row, (starting, stopping), ("started", "stopped"), strict=True):
            _throughput(ax, run(kind))
            ax.set_title(f"{name}, {what} one by one (dotted: fair shares)", fontsize="medium")
            ax.set_xlabel("time [s]")
    np.atleast_2d(axes)[0, 1].legend(fontsize="small", loc="upper left")
    return figure


def fig6() -> Figure:
    """ECF with CBR and with Poisson sources."""
    return _transients({"CBR": "ECF, CBR", "Poisson": "ECF, Poisson (seeded)"})


def fig7() -> Figure:
    """DCCP TCP-like and TFRC over adaptive RED."""
    return _transients({"DCCP": "DCCP TCP-like over RED", "TFRC": "TFRC over RED"})


def fig8() -> Figure:
    """Delay and jitter over the number of sources, and the shares of 30 sources."""
    figure, axes = _figure(1, 3, (13.0, 4.0))
    for k, rtt in enumerate(RTTS):
        for kind, mark in (("ECF", "o-"), ("DCCP", "s--"), ("mean", "^:")):
            counts = COUNTS[:2] if kind == "DCCP" else COUNTS
            run = {
                "ECF": lambda n, r: steady("CBR", "V1", n, r),
                "DCCP": dccp,
                "mean": lambda n, r: mean_field("TCP-like", "RED", n, r),
            }[kind]
            found = [averages(run(n, rtt)) for n in counts]
            names = {"ECF": "ECF", "DCCP": "DCCP", "mean": "DCCP, random marks"}
            for ax, what in zip(axes, ("delay", "jitter"), strict=False):
                label = f"{names[kind]}, {1e3 * rtt:.0f} ms"
                ax.semilogx(
                    counts,
                    [1e3 * v[what] for v in found],
                    mark,
                    color=f"C{k}",
                    label=label,
                    markersize=4,
                )
    for ax, what in zip(
        axes, ("mean queueing delay [ms]", "standard deviation of it [ms]"), strict=False
    ):
        ax.set(
            xlabel="sources [1]",
            ylabel=what,
            ylim=(0, None),
            xticks=COUNTS,
            xticklabels=[str(n) for n in COUNTS],
        )
    axes[0].axhline(28, color="black", linestyle=":", linewidth=0.8)
    axes[1].legend(fontsize="x-small", loc="upper left")
    for kind in ("CBR", "Poisson"):
        r = steady(kind, "V1", 30, 0.06)
        axes[2].plot(np.arange(1, 31), r.rate.mean("time") * 30 / C, ".-", label=f"ECF, {kind}")
    axes[2].axhspan(0.98, 1.02, color="0.9")
    axes[2].set(xlabel="source, by its start [1]", ylabel="share over the fair one [1]")
    axes[2].set_title("30 sources, 60 ms (grey: 0.98 to 1.02)", fontsize="medium")
    axes[2].legend(fontsize="small")
    axes[0].set_title("ECF, Fig. 8: delay (dotted: 28 ms)", fontsize="medium")
    return figure


def loops() -> Figure:
    """Radii of the inner loop over K and of the outer loop over R: closed forms and multipliers."""
    figure, (inner, outer) = _figure(1, 2, (10.0, 4.0))
    gains = np.linspace(0.01, 1.1, 300)
    inner.plot(gains, ecf.inner_radius(gains), label="without computing delay")
    inner.plot(gains, ecf.inner_radius_late(gains), label="with one period of it")
    inner.axvspan(0.2, 0.5, color="0.9", label="recommended")
    inner.set(xlabel="gain K [1]", ylabel="factor of an error in a period dT [1]", ylim=(0, 1.1))
    inner.legend(fontsize="small")
    share, exact = np.linspace(0.01, 0.99, 99), np.linspace(0.05, 0.95, 19)
    outer.plot(share, ecf.v1_radius(1.0, share), label="V1")
    outer.plot(share, ecf.v2_radius(1.0, share), label="V2")
    for version in (1, 2):
        some = exact if version == 1 else exact[exact < 0.65]
        outer.plot(some, [outer_loop(version, 1.0, s).radius for s in some], "k.", markersize=4)
    outer.axhline(1, color="black", linewidth=0.8)
    outer.set(
        xlabel=r"round trip over $T_{ECF}$ [1]",
        ylabel=r"factor of an error in a period $T_{ECF}$ [1]",
    )
    outer.set(ylim=(0, 1.5))
    outer.set_title("dots: multipliers of the sampled loop", fontsize="medium")
    outer.legend(fontsize="small")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "ecf_fig6": fig6,
    "ecf_fig7": fig7,
    "ecf_fig8": fig8,
    "ecf_loops": loops,
}
