"""The figures of the LDCC paper that a fluid can have, and some that it should have had."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import lambdify

from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.metrics import jain
from fluidcc.network.scenarios import scenarios
from fluidcc.papers.ldcc import figures_boundaries as figures_ldcc_boundaries
from fluidcc.papers.ldcc import figures_coexistence as figures_ldcc_coexistence
from fluidcc.papers.ldcc import figures_stability as figures_ldcc_stability
from fluidcc.papers.ldcc.common import FAIR_DELAYS, W_OVER_BETA, T, beta, run
from fluidcc.papers.ldcc.fairness import CAPACITIES, fair_rates
from fluidcc.papers.ldcc.law import V
from fluidcc.plotting import timeseries
from fluidcc.symbols import e, e_b

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "draw"]

# When each scenario has settled, and to what: dotted in its figure.
_SETTLED = {
    "ldcc_fig5": ((60.0, 100.0), (200.0, 260.0), (310.0, 350.0)),
    "ldcc_fig6": ((60.0, 100.0), (200.0, 260.0), (310.0, 350.0)),
    "ldcc_fig10": ((60.0, 100.0), (200.0, 260.0), (310.0, 350.0)),
    "ldcc_fig11": ((60.0, 100.0), (200.0, 260.0), (310.0, 350.0)),
}


def _figure(rows: int, columns: int = 1, **sharing: Any) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * columns + 3.6 * (columns == 1), 2.7 * rows + 0.6), layout="constrained")
    return figure, figure.subplots(rows, columns, **sharing)


def _over_time(name: str, variables: tuple[str, ...]) -> Figure:
    """Rates and delays of a ready scenario, with the equilibria that `fluidcc.equilibrium` finds dotted."""
    r, net = run(name), scenarios[name].net
    figure, axes = _figure(len(variables), sharex=True)
    flows = [f for f in net.flow_names if f != "udp"]
    on = r.rate > 0  # a flow that is off has no delay and no loss
    r = r.assign({v: r[v].where(on).assign_attrs(r[v].attrs) for v in variables if v != "rate"})
    timeseries(r, variables, flows=flows, ax=axes)
    for start, stop in _SETTLED[name]:
        eq = equilibrium(net, at=0.5 * (start + stop))
        sending = [f for f in flows if float(eq.rate.sel(flow=f)) > 0]
        for variable, ax in zip(variables, axes, strict=True):
            data, scale = {"rate": (eq.rate, 1e6), "one_way_delay": (eq.one_way_delay, 1e-3), "loss": (eq.loss, 1)}[
                variable
            ]
            for level in {round(float(data.sel(flow=f)) / scale, 9) for f in sending}:
                ax.plot([start, stop], [level, level], color="black", linestyle=":", linewidth=1.6, zorder=5)
    axes[0].set_title(scenarios[name].title + " (dotted: equilibria)", fontsize="medium")
    for ax in axes[:-1]:
        ax.set_xlabel("")
    for ax in axes[1:]:
        if ax.get_legend() is not None:
            ax.get_legend().remove()
    return figure


def fig2() -> Figure:
    """The delay penalty over the one-way delay."""
    figure, ax = _figure(1)
    v, delay = lambdify((e, e_b, T, beta), V, "numpy"), np.linspace(0, 1.0, 1001)
    for p in (0.025, 0.05, 0.1):
        seen = delay[delay >= p]
        ax.plot(seen * 1e3, v(seen, p, 0.1, 0.1), label=f"p = {p * 1e3:g} ms")
    ax.axhline(0.1, color="black", linestyle="--", linewidth=0.8)
    ax.text(995, 0.0985, r"$\beta$", ha="right", va="top")
    ax.axvline(100, color="0.6", linestyle=":", linewidth=1)
    ax.text(106, 0.094, "T", color="0.4")
    ax.set(xlabel="one-way delay e [ms]", ylabel="delay penalty v(e)", xlim=(0, 1000), ylim=(0, 0.105),
           title=r"LDCC, Fig. 2: penalty (17) with $e_b$ = p, T = 100 ms, $\beta$ = 0.1")  # fmt: skip
    ax.grid(alpha=0.3)
    ax.legend(loc="lower right", frameon=False)
    return figure


def fig5() -> Figure:
    """Three flows on a long buffer."""
    return _over_time("ldcc_fig5", ("rate", "one_way_delay"))


def fig6() -> Figure:
    """Three flows on a short buffer."""
    return _over_time("ldcc_fig6", ("rate", "one_way_delay", "loss"))


def fig10() -> Figure:
    """The parking lot with long buffers."""
    return _over_time("ldcc_fig10", ("rate", "one_way_delay"))


def fig11() -> Figure:
    """The parking lot with short buffers."""
    return _over_time("ldcc_fig11", ("rate", "one_way_delay", "loss"))


def fig7() -> Figure:
    """Jain's index over the capacity a flow, at two scales."""
    figure, (ax, close) = _figure(1, 2)
    share = np.array(CAPACITIES) / 4e6
    for name in FAIR_DELAYS:
        index = jain(fair_rates(name))
        ax.plot(share, index, marker=".", label=name)
        close.plot(share, index, marker=".")
    close.axvline(2 * W_OVER_BETA / 1e6, color="0.5", linestyle=":")
    close.text(2 * W_OVER_BETA / 1e6 + 0.006, 0.9961, r"$2w/\beta$, where q = 2T", color="0.4", fontsize="small")
    ax.set(ylabel="Jain's index", title="LDCC, Fig. 7 (propagation delays chosen)")
    close.set(xlim=(0.24, 0.55), ylim=(0.996, 1.0002), title="the same near 1: not monotone")
    ax.legend(frameon=False, fontsize="small", loc="lower left")
    for one in (ax, close):
        one.set_xlabel("normalised capacity c/4 [Mbit/s]")
        one.grid(alpha=0.3)
    return figure


def fig8() -> Figure:
    """Lowest and highest rate over the capacity a flow."""
    figure, ax = _figure(1)
    share = np.array(CAPACITIES) / 4e6
    for k, name in enumerate(list(FAIR_DELAYS)[1:]):
        rates = fair_rates(name) / 1e6
        ax.plot(share, rates.max(axis=1), color=f"C{k + 1}", marker="^", markersize=4, label=name)
        ax.plot(share, rates.min(axis=1), color=f"C{k + 1}", marker="v", markersize=4)
    ax.plot(share, share, color="black", linewidth=0.8, linestyle="--", label="full fairness")
    ax.plot(share, share / 2, color="0.5", linewidth=0.8, linestyle=":", label="half of it")
    ax.set(xlabel="normalised capacity c/4 [Mbit/s]", ylabel="highest and lowest rate [Mbit/s]",
           title="LDCC, Fig. 8 (propagation delays chosen)", xlim=(share[0], share[-1]), ylim=(0, None))  # fmt: skip
    ax.grid(alpha=0.3)
    ax.legend(frameon=False, fontsize="small")
    return figure


def fifo_against_frozen() -> Figure:
    """The parking lot when flow 3 starts and stops, with queues that conserve flow and with (8) as printed."""
    fifo, frozen = run("ldcc_fig10"), run("ldcc_fig10", "frozen")
    figure, axes = _figure(2, 2, sharex="col")
    for column, (start, stop) in enumerate(((98.0, 125.0), (258.0, 275.0))):
        t = fifo.time.values
        shown = (t >= start) & (t <= stop)
        for k, flow in enumerate(("flow1", "flow2", "flow3")):
            a, b = (r.rate.sel(flow=flow).values[shown] / 1e6 for r in (fifo, frozen))
            axes[0, column].plot(t[shown], a, color=f"C{k}", label=f"{flow}")
            axes[0, column].plot(t[shown], b, color=f"C{k}", linestyle="--")
            axes[1, column].plot(t[shown], (b - a) * 1e3, color=f"C{k}", label=flow)
        axes[1, column].set_xlabel("time [s]")
    axes[0, 0].set_ylabel("rate [Mbit/s]")
    axes[1, 0].set_ylabel("frozen - fifo [kbit/s]")
    axes[0, 0].set_title("Fig. 10 with delays='fifo' (solid), 'frozen' (dashed)", fontsize="medium")
    axes[0, 1].set_title("flow 3 stops at 260 s", fontsize="medium")
    axes[0, 0].legend(frameon=False, fontsize="small")
    for ax in axes.flat:
        ax.grid(alpha=0.3)
        ax.margins(x=0)
    return figure


def starvation() -> Figure:
    """A burst on an endless buffer: the penalty alone keeps the rate above w/beta, its derivative term does not."""
    from fluidcc.papers.ldcc.penalty import burst

    r = burst()
    figure, axes = _figure(2, sharex=True)
    timeseries(r, ("rate", "queueing_delay"), flows=["ldcc"], ax=axes)
    axes[0].axhline(W_OVER_BETA / 1e6, color="black", linestyle=":", linewidth=1.2, label=r"$w/\beta$")
    axes[0].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1.02), fontsize="small")
    axes[0].set_title("LDCC below w/beta without losses: a burst of 3 c from 40 to 42 s", fontsize="medium")
    axes[0].set_xlabel("")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "ldcc_fig2": fig2,
    "ldcc_fig5": fig5,
    "ldcc_fig6": fig6,
    "ldcc_fig7": fig7,
    "ldcc_fig8": fig8,
    "ldcc_fig10": fig10,
    "ldcc_fig11": fig11,
    "ldcc_fig12": figures_ldcc_coexistence.fig12,
    "ldcc_fig13": figures_ldcc_coexistence.fig13,
    "ldcc_fig14": figures_ldcc_coexistence.fig14,
    "ldcc_fifo_frozen": fifo_against_frozen,
    "ldcc_starvation": starvation,
    "ldcc_conditions": figures_ldcc_stability.conditions,
    "ldcc_boundaries": figures_ldcc_boundaries.delay_driven,
    "ldcc_boundaries_losses": figures_ldcc_boundaries.loss_driven,
    "ldcc_each_user": figures_ldcc_stability.each_user,
    "ldcc_sampled": figures_ldcc_stability.sampled,
}
"""Each figure by the name of its file."""


def draw(name: str) -> Figure:
    """Draw the figure of that name, anew."""
    return FIGURES[name]()
