"""Figures 12 to 14 of the LDCC paper: beside TCP, and compared with NADA and GCC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.papers.ldcc import coexistence as beside
from fluidcc.papers.ldcc import comparison as alone
from fluidcc.papers.ldcc.common import W_OVER_BETA
from fluidcc.sources import GCC, LDCC, NADA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["fig12", "fig13", "fig14"]

_LAWS = {"LDCC": LDCC, "NADA": NADA(R_max=alone.R_MAX), "GCC": GCC}


def _figure(rows: int, columns: int, **sharing: Any) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.8, 2.7 * rows + 0.6), layout="constrained")
    return figure, figure.subplots(rows, columns, **sharing)


def fig12() -> Figure:
    """Mean rates of LDCC and TCP over the buffer, on the limit cycle and at the static equilibrium."""
    figure, (moving, still) = _figure(1, 2, sharey=True)
    fine = sorted({*beside.BUFFERS, 35, 40, 45, 50, 75})
    found = np.array([beside.sawtooth(n).mean.rate.values[:2] for n in fine]) / 1e6
    rests = np.array([beside.static(n)[:2] for n in fine]) / 1e6
    for ax, rates in ((moving, found), (still, rests)):
        for k, (name, marker) in enumerate((("LDCC", "o"), ("TCP", "s"))):
            ax.plot(fine, rates[:, k], marker=marker, markersize=4, color=f"C{k}", label=name)
        ax.axhline(W_OVER_BETA / 1e6, color="0.5", linestyle=":", linewidth=1.2)
        ax.text(182, W_OVER_BETA / 1e6 - 0.02, r"$w/\beta$", ha="right", va="top", color="0.4")
        ax.set(xlabel="buffer [packets of 1 KB]", ylim=(0, 1.9))
        ax.grid(alpha=0.3)
    moving.axvline(beside.crossing(), color="0.6", linestyle="--", linewidth=0.9)
    moving.text(beside.crossing() + 2, 1.78, f"{beside.crossing():.1f}", color="0.4", fontsize="small")
    moving.set(ylabel="mean rate [Mbit/s]", title="LDCC, Fig. 12: TCP as a sawtooth")
    still.set_title("TCP as its static square-root law")
    moving.legend(frameon=False, loc="center right")
    return figure


def fig13() -> Figure:
    """Mean one-way delay over the capacity, with what lies between the least and the largest."""
    figure, ax = _figure(1, 1)
    fine = np.linspace(alone.CAPACITIES[0], alone.CAPACITIES[-1], 101)
    for k, (name, delay) in enumerate((("LDCC", alone.ldcc_delay), ("NADA", alone.nada_delay))):
        ax.plot(fine / 1e6, [1e3 * delay(c) for c in fine], color=f"C{k}", label=f"{name}, at rest")
        run = [float(alone.settled(_LAWS[name], c).one_way_delay.mean()) * 1e3 for c in alone.CAPACITIES]
        ax.plot(np.array(alone.CAPACITIES) / 1e6, run, "o", color=f"C{k}", markersize=4)
    mean, most = (1e3 * (alone.DELAY + v) for v in (alone.closed().queue_mean, alone.closed().queue_max))
    ax.plot(fine / 1e6, np.full(len(fine), mean), color="C2", label="GCC, mean of its limit cycle")
    ax.fill_between(fine / 1e6, 1e3 * alone.DELAY, most, color="C2", alpha=0.2, linewidth=0, label="GCC, all of it")
    run = [1e3 * float(alone.cycle(c).mean.one_way_delay[0]) for c in alone.CAPACITIES]
    ax.plot(np.array(alone.CAPACITIES) / 1e6, run, "o", color="C2", markersize=4)
    ax.set(xlabel="capacity [Mbit/s]", ylabel="one-way delay [ms]", ylim=(0, None))
    ax.set(title=f"LDCC, Fig. 13 (NADA with R_MAX = {alone.R_MAX / 1e6:g} Mbit/s; dots: runs)")
    ax.margins(x=0)
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    return figure


def fig14() -> Figure:
    """Rate and one-way delay over time at 1.5 Mbit/s."""
    figure, (top, below) = _figure(2, 1, sharex=True)
    for k, (name, law) in enumerate(_LAWS.items()):
        run = alone.settled(law, 1.5e6)
        shown = run.isel(flow=0).sel(time=slice(180.0, 200.0))
        t = shown.time.values - 180.0
        top.plot(t, shown.rate.values / 1e6, color=f"C{k}", label=name, linestyle="--" if name == "NADA" else "-")
        below.plot(t, shown.one_way_delay.values * 1e3, color=f"C{k}")
    top.set(ylabel="rate [Mbit/s]", title="LDCC, Fig. 14: alone on 1.5 Mbit/s, settled")
    below.set(ylabel="one-way delay [ms]", xlabel="time [s]", ylim=(0, None))
    top.set_ylim(1.24, 1.68)
    top.legend(frameon=False, ncols=3, loc="upper right")
    for ax in (top, below):
        ax.grid(alpha=0.3)
        ax.margins(x=0)
    return figure
