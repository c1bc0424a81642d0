"""Figures of the delay-based AIMD paper: sawtooths, the ratchet, the knee and convergence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.formulas import delay_aimd
from fluidcc.papers.delay_aimd.common import (
    C2,
    FLOWS,
    PACKET,
    T2,
    T7,
    TAU2,
    TAU7,
    coexistence,
    fig1,
    fig2,
    fig5,
    fig7,
    fig8,
    ratchet_run,
    smallest_rtt,
)
from fluidcc.papers.delay_aimd.runs import NEAR, RATIOS, unfairness
from fluidcc.sources import HTCP, PlainDelayAIMD, Vegas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _figure(title: str, rows: int, columns: int = 1, **sharing: Any) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(
        figsize=(4.6 * columns + 3.0 * (columns == 1), 2.4 * rows + 0.8), layout="constrained"
    )
    axes = figure.subplots(rows, columns, **sharing)
    for ax in np.ravel(axes):
        ax.grid(alpha=0.3)
        ax.margins(x=0)
    if title:
        figure.suptitle(title, fontsize="medium")
    return figure, axes


def fig1_vegas() -> Figure:
    """The queue of Vegas, by the number of flows."""
    figure, ax = _figure("Delay-based AIMD, Fig. 1: the queue of TCP Vegas, 5 Mbit/s, 30 ms", 1)
    target = Vegas.parameter("alpha")
    for n in (2, 8, 16):
        run = fig1(n)
        ax.plot(run.time.values, run.backlog.values[:, 0] / PACKET, label=f"{n} flows")
        ax.axhline(
            n * target,
            color="0.5",
            linestyle=":",
            linewidth=1,
            label=r"$n\alpha$" if n == 16 else None,
        )
    ax.set(xlabel="time [s]", ylabel="queue [packets]", xlim=(0, 5), ylim=(0, 40))
    ax.legend(frameon=False, fontsize="small", loc="center right")
    return figure


def fig2_backoff() -> Figure:
    """Window and queue with a backoff of half and with the adaptive one."""
    figure, axes = _figure(
        "Delay-based AIMD, Fig. 2: 50 Mbit/s, 120 ms, 400 packets", 2, 2, sharex=True, sharey="row"
    )
    names = {False: "backoff to 1/2", True: r"backoff (3), $\mathrm{RTT}_{\min}/\mathrm{RTT}$"}
    for (adaptive, title), (top, low) in zip(names.items(), axes.T, strict=True):
        run = fig2(adaptive)
        t = run.time.values
        top.plot(t, run.PlainDelayAIMD_w.values[:, 0], label="window")
        top.axhline(
            C2 * T2 / PACKET, color="0.5", linestyle=":", label="capacity times propagation delay"
        )
        low.plot(t, 1e3 * run.queueing_delay.values[:, 0], color="C1", label="queueing delay")
        low.axhline(1e3 * TAU2, color="0.5", linestyle="--", label=r"$\tau_0$")
        top.set_title(title, fontsize="medium")
        low.set(xlabel="time [s]", xlim=(0, 30), ylim=(0, 66))
    axes[0, 0].set(ylabel="window [packets]", ylim=(350, 1080))
    axes[1, 0].set_ylabel("queueing delay [ms]")
    axes[0, 0].legend(frameon=False, fontsize="small", loc="upper right")
    axes[1, 0].legend(frameon=False, fontsize="small", loc="upper right")
    return figure


def _ratchet(flows: int, deltas: tuple[float, ...], title: str) -> Figure:
    figure, axes = _figure(
        f"Delay-based AIMD, {title} behind a standing queue", len(deltas), sharex=True, sharey=True
    )
    for delta, ax in zip(deltas, np.ravel(axes), strict=True):
        run = ratchet_run(flows, delta)
        t, seen = run.time.values, 1e3 * smallest_rtt(run)
        ax.plot(t, 1e3 * run.rtt.values[:, 0], color="0.7", linewidth=0.8, label="round trip")
        for k in range(flows):
            ax.plot(t, seen[:, k], color=f"C{k % 10}", label="smallest seen" if k == 0 else None)
        ax.axhline(1e3 * T2, color="black", linestyle=":", linewidth=1, label="propagation delay")
        ax.set_title(rf"$\delta$ = {delta:g}", fontsize="medium")
        ax.set(ylabel="round trip [ms]", ylim=(110, 300))
    ax.set(xlabel="time [s]", xlim=(0, 25))
    np.ravel(axes)[0].legend(frameon=False, fontsize="small", ncols=3, loc="upper right")
    return figure


def fig3_ratchet() -> Figure:
    """The smallest round trip seen by one flow, by what is left of it at a backoff."""
    return _ratchet(1, (0.75, 0.9, 1.0), "Fig. 3: the ratchet of one flow")


def fig4_ratchet() -> Figure:
    """The smallest round trips seen by ten flows."""
    return _ratchet(10, (0.75, 1.0), "Fig. 4: the ratchet of ten flows")


def fig5_flat() -> Figure:
    """Window and queueing delay with a least time between backoffs."""
    figure, axes = _figure("", 2, sharex=True)
    run = fig5(8.0)
    t, law = run.time.values, "DelayAIMD"
    axes[0].plot(t, run[f"{law}_w"].values[:, 0])
    axes[1].plot(t, 1e3 * run.queueing_delay.values[:, 0], color="C1")
    axes[1].axhline(1e3 * TAU2, color="0.5", linestyle="--", label=r"$\tau_0$")
    axes[0].set(ylabel="window [packets]", ylim=(700, 920))
    axes[1].set(xlabel="time [s]", ylabel="queueing delay [ms]", xlim=(20, 60), ylim=(0, 30))
    axes[1].legend(frameon=False, fontsize="small", loc="upper right")
    axes[0].set_title(
        r"Delay-based AIMD, Fig. 5: (6) with $\Delta_0$ = 8 s, on the link of Fig. 2",
        fontsize="medium",
    )
    return figure


def fig6_share() -> Figure:
    """The windows of one delay-based flow and of one of three loss-based flows."""
    figure, axes = _figure(
        "Delay-based AIMD, Fig. 6: one flow against three, parameters chosen",
        3,
        sharex=True,
        sharey=True,
    )
    for (gamma, idle), ax in zip(((0.0, 0.0), (0.9, 0.0), (0.9, 2.0)), axes, strict=True):
        run = coexistence(gamma, idle)
        t = run.time.values
        for law, flow, color, name in (
            ("HTCP", "loss1", "0.6", "loss-based (H-TCP)"),
            ("DelayAIMD", "delay", "C0", "delay-based"),
        ):
            ax.plot(
                t, run[f"{law}_w"].sel(flow=flow).values, color=color, linewidth=1.2, label=name
            )
        ax.set_title(rf"$\gamma$ = {gamma:g}, $\Delta_0$ = {idle:g} s", fontsize="medium")
        ax.set(ylabel="window [packets]", ylim=(0, 100))
    axes[-1].set(xlabel="time [s]", xlim=(40, 70))
    axes[0].legend(frameon=False, fontsize="small", ncols=3, loc="upper right")
    return figure


def drained() -> Figure:
    """The queue when loss-based flows leave."""
    figure, ax = _figure("Delay-based AIMD, Section II-D: who drains the queue of others", 1)
    for gamma in (0.5, 0.9):
        run = coexistence(gamma, 0.0, leave=60.0)
        ax.plot(
            run.time.values,
            1e3 * run.queueing_delay.values[:, 0],
            linewidth=1,
            label=rf"$\gamma$ = {gamma:g}",
        )
    ax.axhline(1e3 * TAU2, color="0.5", linestyle="--", label=r"$\bar\tau_0$")
    ax.axvline(60, color="black", linestyle=":", linewidth=1, label="the loss-based flows leave")
    ax.set(xlabel="time [s]", ylabel="queueing delay [ms]", xlim=(50, 110), ylim=(0, 100))
    ax.legend(frameon=False, fontsize="small", ncols=2, loc="upper right")
    return figure


def fig7_knee() -> Figure:
    """Utilisation and queueing delay over the number of flows, and those of loss-based H-TCP."""
    figure, (left, right) = _figure(
        r"Delay-based AIMD, Fig. 7: 500 Mbit/s, 250 ms, $\tau_0$ = 50 ms", 1, 2
    )
    found, loss = (np.array([fig7(n, law) for n in FLOWS]) for law in (None, HTCP))
    left.semilogx(FLOWS, 100 * loss[:, 0], marker="s", color="0.6", label="loss-based H-TCP")
    left.semilogx(FLOWS, 100 * found[:, 0], marker="o", label="delay-based")
    left.legend(frameon=False, fontsize="small")
    left.set(ylabel="utilisation [%]", ylim=(0, 105), xlabel="flows n [1]")
    right.semilogx(FLOWS, 1e3 * found[:, 2], marker="^", label="largest")
    right.semilogx(FLOWS, 1e3 * found[:, 1], marker="o", label="mean")
    right.semilogx(
        FLOWS, 1e3 * loss[:, 1], marker="s", color="0.6", label="mean of loss-based H-TCP"
    )
    closed = delay_aimd.mean_queueing_delay(TAU7, T7, delay_aimd.backoff_factor(T7, T7 + TAU7))
    right.axhline(
        1e3 * closed,
        color="black",
        linestyle=":",
        label="mean, constant increase and prompt feedback",
    )
    right.axhline(30, color="C3", linestyle="--", label="what the paper's means stay below")
    right.set(ylabel="queueing delay [ms]", xlabel="flows n [1]", ylim=(0, 180))
    right.legend(frameon=False, fontsize="small")
    for ax in (left, right):
        ax.set_xticks(FLOWS, [str(n) for n in FLOWS])
        ax.set_xticks([], minor=True)
        ax.margins(x=0.05)
    figure.set_size_inches(10, 3.8)
    return figure


def fig8_convergence() -> Figure:
    """The windows of two flows, of which the second starts at 100 s."""
    figure, axes = _figure(
        "Delay-based AIMD, Fig. 8: a second flow starts at 100 s, 500 Mbit/s, 250 ms",
        2,
        sharex=True,
        sharey=True,
    )
    for delta, ax in zip((0.9, 1.0), axes, strict=True):
        run, before = fig8(delta)
        for k, name in enumerate(("first flow", "second flow")):
            on = run.time.values >= (0, 100)[k]
            ax.plot(run.time.values[on], run.PlainDelayAIMD_w.values[on, k] / 1e3, label=name)
        gap = before[:, 0] - before[:, 1]
        ax.set_title(
            rf"$\delta$ = {delta:g}: the difference shrinks to "
            f"{(gap[6] / gap[0]) ** (1 / 6):.2f} an epoch",
            fontsize="medium",
        )
        ax.set(ylabel="window [1000 packets]", ylim=(0, 21))
    axes[1].set(xlabel="time [s]", xlim=(50, 300))
    axes[0].legend(frameon=False, fontsize="small")
    return figure


def rtt_unfairness() -> Figure:
    """Rates of two flows over the ratio of their round trips."""
    figure, ax = _figure(
        r"Delay-based AIMD, Section VI-C: RTT unfairness, 50 Mbit/s, $\tau_0$ = 20 ms", 1
    )
    tau0 = PlainDelayAIMD.parameter("tau0")
    k = np.linspace(1, RATIOS[-1], 100)
    for name, cap, color in (("standard TCP", None, "C3"), ("delay-based, (3)", 1.0, "C0")):
        ax.loglog(RATIOS, [unfairness(r, cap) for r in RATIOS], marker="o", color=color, label=name)
    beyond = [r for r in RATIOS if r * NEAR > 9 * tau0]
    ax.loglog(
        beyond,
        [unfairness(r, 0.9) for r in beyond],
        "s",
        color="C1",
        label=r"the same, $\beta \leq 0.9$",
    )
    ax.loglog(k, delay_aimd.rtt_unfairness(NEAR, k * NEAR, tau0), color="black", linestyle="--",
              label=r"$\ln(1 + \tau_0/T_1)/\ln(1 + \tau_0/T_2)$")  # fmt: skip
    for power, style in ((1, ":"), (2, "-.")):
        ax.loglog(k, k**power, color="0.6", linestyle=style, label=f"power {power} of the ratio")
    ticks = (1, 1.5, 2, 3, 4, 6, 8)
    ax.set_xticks(ticks, [f"{v:g}" for v in ticks])
    ax.set_yticks((1, 2, 5, 10, 20, 50), ["1", "2", "5", "10", "20", "50"])
    ax.set_xticks([], minor=True)
    ax.set_yticks([], minor=True)
    ax.margins(x=0.03)
    ax.set(xlabel=f"round trip of the far flow over the near one's, {1e3 * NEAR:g} ms [1]",
           ylabel="rate of the near flow over the far one's [1]")  # fmt: skip
    ax.legend(frameon=False, fontsize="small")
    figure.set_size_inches(7.6, 4.4)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "delay_aimd_fig1": fig1_vegas,
    "delay_aimd_fig2": fig2_backoff,
    "delay_aimd_fig3": fig3_ratchet,
    "delay_aimd_fig4": fig4_ratchet,
    "delay_aimd_fig5": fig5_flat,
    "delay_aimd_fig6": fig6_share,
    "delay_aimd_drained": drained,
    "delay_aimd_fig7": fig7_knee,
    "delay_aimd_fig8": fig8_convergence,
    "delay_aimd_rtt": rtt_unfairness,
}
