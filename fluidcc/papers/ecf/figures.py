"""Figures of the ECF paper: transients, delay, jitter and fairness; and the loops' radii."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fluidcc.formulas import ecf
from fluidcc.papers.drawing import Figures, plain_ticks
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

FIGURES = Figures()


def _throughput(ax: Any, r: Any) -> None:
    """Rates in bins of half a second, as the paper counts bytes."""
    bins = r.rate.groupby_bins(
        "time", np.arange(0, float(r.time[-1]) + 0.5, 0.5), right=False
    ).mean()
    t, end = [b.mid for b in bins.time_bins.values], r.time[-1].item()
    for i, rate in enumerate(bins.values.T, 1):
        ax.plot(t, rate / 1e6, linewidth=1, label=f"source {i}")
    for share in SHARES:
        label = "fair shares" if share == SHARES[0] else None
        ax.axhline(share / 1e6, color="black", linestyle=":", linewidth=0.9, label=label)
    ax.grid(visible=False)
    ax.set(ylabel="rate [Mbit/s]", xlim=(0, end))


def _transients(axes: Any, kinds: dict[str, str]) -> None:
    """Each kind of sources as they start and as they stop, one by one."""
    for row, (kind, name) in zip(axes, kinds.items(), strict=True):
        for ax, run, what in zip(row, (starting, stopping), ("started", "stopped"), strict=True):
            _throughput(ax, run(kind))
            ax.set_title(f"{name}, {what} one by one")
    for ax in axes[-1]:
        ax.set_xlabel("time [s]")
    named = axes[0, 0].get_legend_handles_labels()
    axes[0, 0].figure.legend(*named, loc="outside lower center", ncols=6)


@FIGURES.panels("ecf_fig6", 2, 2, size=(10, 6), sharey=True, title="ECF, Fig. 6: five sources")
def fig6(axes: Any) -> None:
    """ECF with CBR and with Poisson sources."""
    _transients(axes, {"CBR": "ECF, CBR", "Poisson": "ECF, Poisson (seeded)"})


@FIGURES.panels("ecf_fig7", 2, 2, size=(10, 6), sharey=True, title="ECF, Fig. 7: five sources")
def fig7(axes: Any) -> None:
    """DCCP TCP-like and TFRC over adaptive RED."""
    _transients(axes, {"DCCP": "DCCP TCP-like over RED", "TFRC": "TFRC over RED"})


@FIGURES.panels("ecf_fig8", 1, 3, size=(12.0, 4.6), title="ECF, Fig. 8: ECF and DCCP")
def fig8(axes: Any) -> None:
    """Delay and jitter over the number of sources, and the shares of 30 sources."""
    delay, _, shares = axes
    kinds: dict[str, Any] = {
        "ECF": ("o-", COUNTS, partial(steady, "CBR", "V1")),
        "DCCP (10 and 30 sources)": ("s--", COUNTS[:2], dccp),
        "DCCP, random marks": ("^:", COUNTS, partial(mean_field, "TCP-like", "RED")),
    }
    labels = {"delay": "mean", "jitter": "standard deviation"}
    for ax, (what, label) in zip(axes, labels.items(), strict=False):
        for k, rtt in enumerate(RTTS):
            for mark, counts, run in kinds.values():
                seen = [1e3 * averages(run(n, rtt))[what] for n in counts]
                ax.semilogx(counts, seen, f"C{k}{mark}", markersize=4)
        ax.set(xlabel="number of sources", ylim=(0, None), title=what)
        ax.set_ylabel(f"queueing delay, {label} [ms]")
        plain_ticks(ax, COUNTS)
    for k, rtt in enumerate(RTTS):
        delay.plot([], [], f"C{k}", linewidth=4, label=f"RTT {1e3 * rtt:.0f} ms")
    for name, (mark, _, _) in kinds.items():
        delay.plot([], [], mark, color="0.4", markersize=4, label=name)
    delay.axhline(28, color="black", linewidth=0.8, label="set point, 28 ms")
    delay.figure.legend(*delay.get_legend_handles_labels(), loc="outside lower center", ncols=7)
    for kind in ("CBR", "Poisson"):
        share = steady(kind, "V1", 30, 0.06).rate.mean("time") * 30 / C
        shares.plot(np.arange(1, 31), share, ".-", label=f"ECF, {kind}")
    shares.axhspan(0.98, 1.02, color="0.9", label="0.98 to 1.02")
    shares.set(xlabel="source, by its start", ylabel="rate / fair share")
    shares.set_title("fairness: 30 sources, RTT 60 ms")
    shares.legend()


@FIGURES.panels("ecf_loops", 1, 2, size=(10.0, 4.0))
def loops(axes: Any) -> None:
    """Radii of the inner loop over K and of the outer loop over R: closed forms and multipliers."""
    inner, outer = axes
    gains = np.linspace(0.01, 1.1, 300)
    inner.plot(gains, ecf.inner_radius(gains), label="without computing delay")
    inner.plot(gains, ecf.inner_radius_late(gains), label="with one period of it")
    inner.axvspan(0.2, 0.5, color="0.9", label="recommended")
    inner.set(xlabel="gain $K$", ylabel="factor of an error in a period $dT$", ylim=(0, 1.1))
    share, exact = np.linspace(0.01, 0.99, 99), np.linspace(0.05, 0.95, 19)
    outer.plot(share, ecf.v1_radius(1.0, share), label="V1, closed form")
    outer.plot(share, ecf.v2_radius(1.0, share), label="V2, closed form")
    for version, some in ((1, exact), (2, exact[exact < 0.65])):
        outer.plot(some, [outer_loop(version, 1.0, s).radius for s in some], "k.", markersize=4)
    outer.plot([], [], "k.", markersize=4, label="sampled loop")
    outer.axhline(1, color="black", linewidth=0.8)
    outer.set(xlabel=r"round trip over $T_{ECF}$", ylim=(0, 1.5))
    outer.set_ylabel(r"factor of an error in a period $T_{ECF}$")
    for ax, name in ((inner, "inner"), (outer, "outer")):
        ax.set_title(f"{name} loop: stable below 1")
        ax.legend()
