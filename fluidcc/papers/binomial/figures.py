"""Figures of the binomial paper: phase planes, efficiency, growth of losses and a study."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.formulas import binomial
from fluidcc.network.scenarios import scenarios
from fluidcc.papers.binomial.cycles import BETA, FAIRNESS_SCHEMES, corners, errors, powers_of_fig4
from fluidcc.papers.binomial.runs import (
    FLOWS,
    ISCC_FLOWS,
    NETWORK_FLOWS,
    PRINTED,
    S_100,
    T1,
    TABLE,
    N,
    fig5,
    iscc_losses,
    network_losses,
    table_losses,
)
from fluidcc.papers.drawing import Figures, plain_ticks
from fluidcc.plotting import convergence_plane

FIGURES = Figures()


@FIGURES.panels(
    "binomial_fig2",
    1,
    4,
    size=(13, 3.9),
    sharey=True,
    title="Binomial paper, Fig. 2: rates of two flows, 40 cycles of the fluid from (20, 80)",
)
def fig2(axes: Any) -> None:
    """Two flows from (20, 80) to fairness, by four schemes."""
    for ax, scheme in zip(axes, FAIRNESS_SCHEMES, strict=True):
        convergence_plane(corners(scheme, 40), 100.0, label="cycles", ax=ax)
        ax.set_title(scheme)
        ax.set(xlabel="rate $x$ [C/100]", ylabel="rate $y$ [C/100]" if ax is axes[0] else "")
        if ax is not axes[-1]:
            ax.get_legend().remove()


@FIGURES.panels("binomial_fig3", 1, 2, title="Binomial paper, Fig. 3")
def fig3(axes: Any) -> None:
    """A cycle that loses fairness and then wins more, and the sawtooth of the steady state."""
    plane, time = axes
    path = corners("IIAD", 1)
    convergence_plane(path, 100.0, label="IIAD, one cycle", ax=plane)
    for name, point, shift in zip("ABC", path, ((5, 4), (-12, -11), (7, 3)), strict=True):
        plane.annotate(name, point, xytext=shift, textcoords="offset points")
    fairness = path.min(axis=1) / path.max(axis=1)
    seen = ", ".join(f"{v:.3f} in {name}" for name, v in zip("ABC", fairness, strict=True))
    plane.set(title=f"(a) fairness {seen}", xlabel="rate $x$ [C/100]", ylabel="rate $y$ [C/100]")
    plane.set(xlim=(10, 30), ylim=(70, 90), xticks=range(10, 31, 5), yticks=range(70, 91, 5))
    plane.get_legend().remove()
    U, low = 100.0, 50.0
    for k, l in ((0, 1), (1, 0), (0.5, 0.5), (-1.5, 2)):
        sigma = (U - low) / U**l
        share = np.linspace(0, 1, 200)
        x = (low ** (k + 1) + share * (U ** (k + 1) - low ** (k + 1))) ** (1 / (k + 1))
        e = binomial.efficiency(k, l, sigma, U)
        cycles = np.concatenate([share, 1 + share])
        time.plot(cycles, np.tile(x, 2), label=f"$k$ = {k:g}, $e$ = {e:.3f}")
    time.set(xlabel="time [cycles]", ylabel="rate [U/100]", ylim=(0, 105))
    time.set_title("(b) steady state with L = U/2")
    time.legend(loc="lower right")


def _efficiency(axes: Any, flows: tuple[int, ...], worst: int) -> None:
    above, below = axes
    l = powers_of_fig4()
    for m in flows:
        above.plot(l, 100 * errors(m)[0], label=f"exact (28), $n$ = {m}")
    _, one, two = errors(worst)
    below.plot(l, 100 * one, "C2", label=f"one term (31), $n$ = {worst}")
    below.plot(l, 100 * two, "C3", label=f"two terms (32), $n$ = {worst}")
    aimd = 100 * binomial.efficiency(0, 1, BETA, 1.0)
    above.plot(l, np.full(len(l), aimd), "k-.", linewidth=0.8, label="AIMD, $k$ = 0, $l$ = 1")
    above.set(ylabel="efficiency [%]", xlim=(l[0], l[-1]))
    below.set(xlabel="power $l$", ylabel="error of approximation [%]", ylim=(0, None))
    for ax in axes:
        ax.legend()


@FIGURES.panels(
    "binomial_fig4a",
    2,
    sharex=True,
    title=rf"Binomial paper, Fig. 4(a): $k$ = 1/2, $W$ = 100, $\beta$ = {BETA:g}",
)
def fig4a(axes: Any) -> None:
    """Efficiency and the errors of its approximations for one flow."""
    _efficiency(axes, (1,), 1)


@FIGURES.panels(
    "binomial_fig4b", 2, sharex=True, title="Binomial paper, Fig. 4(b): $k$ = 1/2, $W$ = 100"
)
def fig4b(axes: Any) -> None:
    """The same for 50 and 150 flows."""
    _efficiency(axes, (50, 150), 150)


@FIGURES.panels("binomial_fig5", 1, 2, title="Binomial paper, Fig. 5: interval model, T1 link")
def fig5_growth(axes: Any) -> None:
    """Growth of the loss with the number of flows, on the periodic orbits."""
    growth, ratio = axes
    for k, (name, printed) in enumerate(S_100.items()):
        p = fig5(name)
        growth.semilogy(N, p / p[0], color=f"C{k}", linewidth=1.0, label=name)
        growth.plot(FLOWS, printed, "x", color=f"C{k}", markersize=8, zorder=5)
        ratio.semilogy(N, 100 * p, color=f"C{k}", linewidth=1.0, label=name)
    growth.plot([], [], "x", color="0.4", label="printed $s_{100}$")
    for power, label in ((2, "$n^2$, $n^3$"), (3, None)):
        growth.plot(N, N**power, color="0.5", linewidth=0.8, linestyle=":", label=label)
    growth.set_ylabel("loss over that of one flow, $s_n$")
    ratio.set_ylabel("loss $p_n$ [%]")
    even = T1 / (np.arange(2, 14, 2) * 5e3)
    low = np.full(len(even), 2e-3)
    ratio.plot(even, low, "C0|", markersize=10, label=r"$C = 2 N \lambda n$ (AIMD1)")
    for ax in axes:
        ax.set(xlabel="flows $n$", xlim=(0, 102))
        ax.legend(loc="lower right")


@FIGURES.panels(
    "binomial_fig8",
    1,
    2,
    sharey=True,
    size=(12.5, 4.4),
    title="Binomial paper, Fig. 8 and Table I: a qualitative study, no testbed",
)
def fig8(axes: Any) -> None:
    """Losses on a link with a queue, and in the interval model, beside the testbed's."""
    queue, late = axes
    for ax, losses, names in ((queue, network_losses, PRINTED), (late, table_losses, TABLE)):
        for k, (name, printed) in enumerate(PRINTED.items()):
            if name in names:
                found = losses(name)
                lost = [100 * p for p in found.values()]
                ax.loglog(list(found), lost, f"C{k}.-", label=name)
            ax.plot((2, 50), printed, f"C{k}x", markersize=8)
        ax.set_xlabel("flows $n$")
        ax.margins(x=0.08)
        plain_ticks(ax, NETWORK_FLOWS)
    queue.plot([], [], "x", color="0.4", label="testbed (Table I)")
    queue.set(ylabel="loss $p_n$ [%]", title="automata on a drop-tail queue, 100 ms")
    late.set(title="interval model, feedback two intervals late")
    queue.figure.legend(*queue.get_legend_handles_labels(), loc="outside right upper")


@FIGURES.panels(
    "binomial_testbed",
    3,
    size=(8.0, 6.4),
    sharex=True,
    title="Binomial paper, Fig. 8: ten AIMD(0.19, 1/2) flows on a T1 link with a queue of 50 ms",
)
def testbed(axes: Any) -> None:
    """The first seconds of the ready scenario: rates that become equal, their sum, the queue."""
    run = scenarios["binomial_testbed"](until=8.0, samples=1601).simulate()
    each, total, queue = axes
    each.plot(run.time, run.rate / 1e3, "C0", linewidth=0.8)
    each.set_title("each flow")
    total.plot(run.time, run.rate.sum("flow") / 1e6, "C1")
    total.axhline(T1 / 1e6, color="k", linestyle="--", linewidth=0.8, label="capacity")
    total.set_title("their sum")
    total.legend(loc="lower right")
    queue.plot(run.time, 1e3 * run.queueing_delay, "C2")
    each.set(ylabel="rate [kbit/s]", ylim=(0, None))
    total.set(ylabel="rate [Mbit/s]", ylim=(0, 2.4))
    queue.set(xlabel="time [s]", ylabel="queueing delay [ms]", xlim=(0, 8), ylim=(0, None))
    queue.figure.align_ylabels()


@FIGURES.panels(
    "binomial_iscc", title="ISCC, $m_I$ = 20: constant and decaying losses, Section VI-A"
)
def iscc_scaling(ax: Any) -> None:
    """Losses of ideally scalable schemes in the interval model beside the formula."""
    for i, (k, l) in enumerate(((-1.2, 2.0), (-1.5, 2.0), (-2.0, 3.0))):
        # the orbit of 200 flows with l = 3 is very long
        n = np.array(ISCC_FLOWS if l < 3 else ISCC_FLOWS[:-1])
        seen, closed = iscc_losses(k, l, len(n)), binomial.iscc_loss(k, l, 20, max(2.0, l), n)
        ax.loglog(n, 100 * seen, f"C{i}o-")
        ax.plot(n, 100 * closed, f"C{i}:")
        ax.plot([], [], f"C{i}", linewidth=4, label=f"$k$ = {k:g}, $l$ = {l:g}")
    ax.plot([], [], "o-", color="0.4", label="interval model")
    ax.plot([], [], ":", color="0.4", label="closed form (34) with (39), (41)")
    ax.set(xlabel="flows $n$", ylabel="loss $p_n$ [%]")
    plain_ticks(ax, ISCC_FLOWS, (0.02, 0.1, 0.5, 2, 10))
    ax.legend()
