"""Figures of the delay-based AIMD paper: sawtooths, the ratchet, the knee and convergence."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.formulas import delay_aimd
from fluidcc.papers.delay_aimd.knee import FLOWS, T7, TAU7, fig7, fig8, shrinking
from fluidcc.papers.delay_aimd.rules import fig2
from fluidcc.papers.delay_aimd.runs import (
    NEAR,
    RATIOS,
    coexistence,
    fig1,
    fig5,
    ratchet_run,
    smallest_rtt,
    unfairness,
)
from fluidcc.papers.drawing import Figures, plain_ticks
from fluidcc.papers.zoo.delay_aimd import C2, PACKET, T2, TAU2
from fluidcc.sources import HTCP, PlainDelayAIMD, Vegas

FIGURES = Figures(axes_xmargin=0)


@FIGURES.panels(
    "delay_aimd_fig1", title="Delay-based AIMD, Fig. 1: the queue of TCP Vegas, 5 Mbit/s, 30 ms"
)
def fig1_vegas(ax: Any) -> None:
    """The queue of Vegas, by the number of flows."""
    target = Vegas.parameter("alpha")
    for n in (2, 8, 16):
        run = fig1(n)
        ax.plot(run.time.values, run.backlog.values[:, 0] / PACKET, label=f"{n} flows")
        named = r"$n\alpha$" if n == 16 else None
        ax.axhline(n * target, color="0.5", linestyle=":", linewidth=1, label=named)
    ax.set(xlabel="time [s]", ylabel="queue [packets]", xlim=(-0.04, 2), ylim=(-0.5, 40))
    ax.legend(loc="center right", bbox_to_anchor=(1, 0.6))


@FIGURES.panels(
    "delay_aimd_fig2",
    2,
    2,
    sharex=True,
    sharey="row",
    title="Delay-based AIMD, Fig. 2: 50 Mbit/s, 120 ms, 400 packets",
)
def fig2_backoff(axes: Any) -> None:
    """Window and queue with a backoff of half and with the adaptive one."""
    names = {False: "backoff to 1/2", True: r"backoff (3), $\mathrm{RTT}_{\min}/\mathrm{RTT}$"}
    for (adaptive, title), (top, low) in zip(names.items(), axes.T, strict=True):
        run = fig2(adaptive)
        top.plot(run.time, run.PlainDelayAIMD_w[:, 0], label="window")
        top.axhline(
            C2 * T2 / PACKET, color="0.5", linestyle=":", label="capacity times propagation delay"
        )
        _delay(low, run, "queueing delay")
        top.set_title(title)
        low.set(xlabel="time [s]", xlim=(0, 30), ylim=(0, 95))
    axes[0, 0].set(ylabel="window [packets]", ylim=(0, 1250))
    axes[1, 0].set_ylabel("queueing delay [ms]")
    for ax in axes[:, 0]:
        ax.legend(loc="upper right")


def _delay(ax: Any, run: Any, label: str | None = None) -> None:
    """The queueing delay of a run, and the threshold."""
    ax.plot(run.time, 1e3 * run.queueing_delay[:, 0], color="C1", label=label)
    ax.axhline(1e3 * TAU2, color="0.5", linestyle="--", label=r"$\tau_0$")


def _ratchet(axes: Any, flows: int, deltas: tuple[float, ...]) -> None:
    """Round trips and the smallest that flows have seen, by what is left of it at a backoff."""
    for delta, ax in zip(deltas, axes, strict=True):
        run = ratchet_run(flows, delta)
        t, seen = run.time.values, 1e3 * smallest_rtt(run)
        ax.plot(t, 1e3 * run.rtt.values[:, 0], color="0.7", linewidth=0.8, label="round trip")
        for k in range(flows):
            label = "smallest seen" if flows == 1 else "smallest seen by each flow"
            ax.plot(t, seen[:, k], color="C0", linewidth=1, label=label if k == 0 else None)
        ax.axhline(1e3 * T2, color="black", linestyle=":", linewidth=1, label="propagation delay")
        ax.set_title(rf"$\delta$ = {delta:g}")
        ax.set(ylabel="round trip [ms]", ylim=(110, None))
    axes[-1].set(xlabel="time [s]", xlim=(0, 25))
    axes[0].legend(ncols=3, loc="upper right")


@FIGURES.panels(
    "delay_aimd_fig3",
    3,
    sharex=True,
    sharey=True,
    title="Delay-based AIMD, Fig. 3: the ratchet of one flow behind a standing queue",
)
def fig3_ratchet(axes: Any) -> None:
    """The smallest round trip seen by one flow."""
    _ratchet(axes, 1, (0.75, 0.9, 1.0))


@FIGURES.panels(
    "delay_aimd_fig4",
    2,
    sharex=True,
    sharey=True,
    title="Delay-based AIMD, Fig. 4: the ratchet of ten flows behind a standing queue",
)
def fig4_ratchet(axes: Any) -> None:
    """The smallest round trips seen by ten flows."""
    _ratchet(axes, 10, (0.75, 1.0))


@FIGURES.panels(
    "delay_aimd_fig5",
    2,
    sharex=True,
    title=r"Delay-based AIMD, Fig. 5: (6) with $\Delta_0$ = 8 s, on the link of Fig. 2",
)
def fig5_flat(axes: Any) -> None:
    """Window and queueing delay with a least time between backoffs."""
    run, (window, delay) = fig5(8.0), axes
    window.plot(run.time, run.DelayAIMD_w[:, 0])
    window.set(ylabel="window [packets]", ylim=(700, 920))
    _delay(delay, run)
    delay.set(xlabel="time [s]", ylabel="queueing delay [ms]", xlim=(20, 60), ylim=(0, 30))
    delay.legend(loc="upper right")


@FIGURES.panels(
    "delay_aimd_fig6",
    3,
    sharex=True,
    sharey=True,
    title="Delay-based AIMD, Fig. 6: one flow against three, parameters chosen",
)
def fig6_share(axes: Any) -> None:
    """The windows of one delay-based flow and of one of three loss-based flows."""
    for (gamma, idle), ax in zip(((0.0, 0.0), (0.9, 0.0), (0.9, 2.0)), axes, strict=True):
        run = coexistence(gamma, idle)
        for window, color, name in (
            (run.HTCP_w.sel(flow="loss1"), "0.6", "loss-based (H-TCP)"),
            (run.DelayAIMD_w.sel(flow="delay"), "C0", "delay-based"),
        ):
            ax.plot(run.time, window, color=color, linewidth=1.2, label=name)
        ax.set_title(rf"$\gamma$ = {gamma:g}, $\Delta_0$ = {idle:g} s")
        ax.set(ylabel="window [packets]", ylim=(0, 100))
    axes[-1].set(xlabel="time [s]", xlim=(40, 70))
    axes[0].legend(ncols=3, loc="upper right")


@FIGURES.panels(
    "delay_aimd_drained", title="Delay-based AIMD, Section II-D: who drains the queue of others"
)
def drained(ax: Any) -> None:
    """The queue when loss-based flows leave."""
    for gamma in (0.5, 0.9):
        run = coexistence(gamma, 0.0, leave=60.0)
        queue = 1e3 * run.queueing_delay.values[:, 0]
        ax.plot(run.time.values, queue, linewidth=1, label=rf"$\gamma$ = {gamma:g}")
    ax.axhline(1e3 * TAU2, color="0.5", linestyle="--", label=r"$\bar\tau_0$")
    ax.axvline(60, color="black", linestyle=":", linewidth=1, label="the loss-based flows leave")
    ax.set(xlabel="time [s]", ylabel="queueing delay [ms]", xlim=(50, 110), ylim=(0, 100))
    ax.legend(ncols=2, loc="upper right")


@FIGURES.panels(
    "delay_aimd_fig7",
    1,
    2,
    title=r"Delay-based AIMD, Fig. 7: 500 Mbit/s, 250 ms, $\tau_0$ = 50 ms",
    size=(10, 3.8),
)
def fig7_knee(axes: Any) -> None:
    """Utilisation and queueing delay over the number of flows, and those of loss-based H-TCP."""
    left, right = axes
    (used, mean, largest, *_), (loss_used, loss_mean, *_) = (
        np.array([fig7(n, law) for n in FLOWS]).T for law in (None, HTCP)
    )
    grey: Any = {"marker": "s", "color": "0.6"}
    left.semilogx(FLOWS, 100 * loss_used, label="loss-based H-TCP", **grey)
    left.semilogx(FLOWS, 100 * used, "o-", label="delay-based")
    left.set(ylabel="utilisation [%]", ylim=(90, 101))
    right.semilogx(FLOWS, 1e3 * largest, "^-", label="largest")
    right.semilogx(FLOWS, 1e3 * mean, "o-", label="mean")
    right.semilogx(FLOWS, 1e3 * loss_mean, label="mean of loss-based H-TCP", **grey)
    closed = delay_aimd.mean_queueing_delay(TAU7, T7, delay_aimd.backoff_factor(T7, T7 + TAU7))
    named = "mean, constant increase and prompt feedback"
    right.axhline(1e3 * closed, color="black", linestyle=":", label=named)
    right.axhline(30, color="0.5", linestyle="--", label="what the paper's means stay below")
    right.set(ylabel="queueing delay [ms]", ylim=(0, 180))
    for ax in axes:
        ax.set_xlabel("flows $n$")
        ax.legend()
        plain_ticks(ax, FLOWS)
        ax.margins(x=0.05)


@FIGURES.panels(
    "delay_aimd_fig8",
    2,
    sharex=True,
    sharey=True,
    title="Delay-based AIMD, Fig. 8: a second flow starts at 100 s, 500 Mbit/s, 250 ms",
)
def fig8_convergence(axes: Any) -> None:
    """The windows of two flows, of which the second starts at 100 s."""
    for delta, ax in zip((0.9, 1.0), axes, strict=True):
        run, before = fig8(delta)
        windows = run.PlainDelayAIMD_w / 1e3
        for flow, name, start in (("f1", "first flow", 0), ("f2", "second flow", 100)):
            window = windows.sel(flow=flow, time=slice(start, None))
            ax.plot(window.time, window, label=name)
        factor = f"{shrinking(before):.2f}"
        ax.set_title(rf"$\delta$ = {delta:g}: the difference shrinks to {factor} an epoch")
        ax.set(ylabel="window [1000 packets]", ylim=(0, 21))
    axes[1].set(xlabel="time [s]", xlim=(50, 300))
    axes[0].legend()


@FIGURES.panels(
    "delay_aimd_rtt",
    title=r"Delay-based AIMD, Section VI-C: RTT unfairness, 50 Mbit/s, $\tau_0$ = 20 ms",
    size=(7.6, 4.4),
)
def rtt_unfairness(ax: Any) -> None:
    """Rates of two flows over the ratio of their round trips."""
    tau0 = PlainDelayAIMD.parameter("tau0")
    k = np.linspace(1, RATIOS[-1], 100)
    for name, cap, color in (("standard TCP", None, "C3"), ("delay-based, (3)", 1.0, "C0")):
        ax.loglog(RATIOS, [unfairness(r, cap) for r in RATIOS], marker="o", color=color, label=name)
    beyond = [r for r in RATIOS if r * NEAR > 9 * tau0]
    capped = [unfairness(r, 0.9) for r in beyond]
    ax.loglog(beyond, capped, "C1s", label=r"the same, $\beta \leq 0.9$")
    closed = delay_aimd.rtt_unfairness(NEAR, k * NEAR, tau0)
    ax.loglog(k, closed, "k--", label=r"$\ln(1 + \tau_0/T_1)/\ln(1 + \tau_0/T_2)$")
    for power, style in ((1, ":"), (2, "-.")):
        ax.loglog(k, k**power, color="0.6", linestyle=style, label=f"power {power} of the ratio")
    plain_ticks(ax, (1, 1.5, 2, 3, 4, 6, 8), (1, 2, 5, 10, 20, 50))
    ax.margins(x=0.03)
    ax.set_xlabel(f"round trip of the far flow over the near one's, {1e3 * NEAR:g} ms")
    ax.set_ylabel("rate of the near flow over the far one's")
    ax.legend()
