"""The residual of the steady state, and the derivatives of what flows and links tell one
another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.tape import run

from ..layout import NO_OFFER, Floats, at, copy
from .state import UNION, SearchState

_jit: Any = njit(counted=False)


@_jit
def slopes(w: SearchState, o: int, i: int) -> Floats:
    """The derivatives of what an owner's law gives as number i."""
    return at(w.told, w.slopes[o] + i * w.width[o])


@_jit
def finite(values: Floats, count: int) -> bool:
    """Whether so many numbers are."""
    for i in range(count):  # noqa: SIM110 - numba has no generators
        if not np.isfinite(values[i]):
            return False
    return True


# --- whether a point is an equilibrium ------------------------------------------------------------


TOLERANCE = 1e-8
"""What may be left of an equation, relative to what it balances.

A search ends within 1e-9 of each unknown, and goes on from there only where its equations are not
singular.
"""


@_jit
def balanced(w: SearchState, i: int) -> float:
    """The size of what equation `i` balances: how its terms change as the unknowns change by
    their sizes.
    """
    F, L, o = w.n_flows, w.n_links, w.owner[i]
    if F <= i < F + L:
        return 1.0 + w.size[i + L] / w.c[i - F]
    if F + L <= i < F + 2 * L or w.law[o] < 0:
        return w.size[i]
    n, sizes = w.count[o], at(w.size, w.first[o])
    by = slopes(w, o, n if i < F else i - w.first[o])
    if o < F:
        total = abs(by[n]) * w.size[o] + abs(by[n + 1] * w.e[o])
        total += abs(by[n + 2] * w.pi[o]) + abs(by[n + 3] * w.price[o])
        total += abs(by[n + 4] * w.offer[o])
        if w.heard[o] > UNION:
            total += abs(by[n + 5] * w.lost[o]) + abs(by[n + 6] * w.marked[o])
        total += w.size[o] if i < F else 0.0
    else:
        total = abs(by[0] * w.queue[o - F]) + abs(by[n + 1]) * w.size[o + L]
        by = at(by, 1)
    for j in range(n):
        if w.reference[w.first[o] + j] > 0:
            total += abs(by[j]) * sizes[j]
    return total


@_jit
def rests(w: SearchState) -> bool:
    """Whether every equation holds: its residual vanishes, or pushes against a bound.

    It is for `u`, where `evaluate` and the sizes of unknowns have been found.
    """
    for i in range(w.n_unknowns):
        left = w.residual[i]
        if (left > 0 and w.u[i] >= w.upper[i]) or (left < 0 and w.u[i] <= w.lower[i]):
            continue
        if not abs(left) <= TOLERANCE * balanced(w, i):
            return False
    return True


# --- the residual of the steady state -------------------------------------------------------------


@_jit
def _run(w: SearchState, u: Floats, o: int, states: int, parameters: int) -> Floats:
    """Run an owner's law, whose signals are in the registers, and return what it gives.

    Its states and parameters are put into the registers from the given ones on.
    """
    law, r, n, told = w.law[o], w.registers, w.count[o], at(w.told, w.gives[o])
    copy(at(r, states), at(u, w.first[o]), n)
    start = w.par_start[o]
    copy(at(r, parameters), at(w.par, start), w.par_start[o + 1] - start)
    start = w.constant_start[law]
    copy(at(r, w.inputs[law]), at(w.constant, start), w.constant_start[law + 1] - start)
    run(w.instruction, w.instruction_start[law], w.instruction_start[law + 1], r, 0, w.shake)
    start = w.output_start[law]
    for i in range(w.output_start[law + 1] - start):
        told[i] = r[w.output[start + i]]
    copy(at(w.residual, w.first[o]), told, n)
    return told


@_jit
def _link(w: SearchState, u: Floats, l: int) -> None:
    """What a link does: delay, loss, mark, price, drop and offer, and the flows of its states."""
    o = w.n_flows + l
    y, c, q_max, beyond, n = u[o + w.n_links], w.c[l], w.q_max[l], w.beyond[l] == 1, w.count[o]
    over = u[o] if beyond else u[o] - q_max
    queue = q_max if over > 0 else (u[o] + q_max if beyond else u[o])
    loss = over / (1.0 + over) if over > 0 else 0.0
    # At the kink: on into loss, or back into delay, by whether more arrives than leaves.
    filling = q_max > 0 and (over < 0 or (over == 0 and not y > c))
    w.queue[l], w.loss[l] = queue, loss
    w.queue_slope[l] = 1.0 if filling else 0.0
    w.loss_slope[l] = 0.0 if filling else (1.0 - loss) ** 2
    w.registers[0], w.registers[n + 1] = queue, y
    told = _run(w, u, o, 1, n + 2)
    w.mark[l], w.link_price[l] = told[n], told[n + 1]
    w.drop[l] = told[n + 2] if w.drops[l] else 0.0
    w.link_offer[l] = told[n + 2 + w.drops[l]] if w.offers[l] else NO_OFFER
    w.residual[o] = y * (1.0 - w.drop[l]) * (1.0 - loss) / c - 1.0
    w.residual[o + w.n_links] = -y


@_jit
def _path(w: SearchState, u: Floats, f: int) -> None:
    """The signals of a flow's path, and what it sends through each link."""
    e, price, share = w.base[f], 0.0, float(w.many[f])
    lost, marked, either = 0.0, 0.0, 0.0
    w.offer[f], w.least[f] = NO_OFFER, -1
    for h in range(w.hop_start[f], w.hop_start[f + 1]):
        l, spared = w.hop[h], w.spared[h] == 1
        arrival = w.n_flows + w.n_links + l
        if spared:
            share *= 1.0 - w.mark[l]
            lost += (1.0 - lost) * w.mark[l]
        else:
            marked += (1.0 - marked) * w.mark[l]
        w.passing[h] = share
        w.residual[arrival] += u[f] * share
        # At rest this throttle is 1; before, it keeps the queue at the first of several equal links
        # in series.
        busy, through = 1.0, (1.0 - w.loss[l]) * (1.0 - w.drop[l])
        if w.queue[l] > 0:
            busy = min(1.0, w.c[l] / max(u[arrival] * through, 1e-300))
        share *= through * busy
        e += w.queue[l]
        # not 1 - survival, which loses the digits of small losses
        for part in (w.loss[l], w.mark[l], w.drop[l]):
            either += (1.0 - either) * part
        for part in (w.loss[l], w.drop[l]):
            lost += (1.0 - lost) * part
        price += w.link_price[l]
        if w.link_offer[l] < w.offer[f]:
            w.offer[f], w.least[f] = w.link_offer[l], l
    w.e[f], w.pi[f], w.price[f] = e, either, price
    w.lost[f], w.marked[f] = lost, marked


@_jit
def _flow(w: SearchState, u: Floats, f: int) -> None:
    """What a flow does: its path's signals, the flows of its states, and its rate."""
    _path(w, u, f)
    if w.law[f] < 0:
        w.residual[f] = w.rate[f] - u[f]
        return
    n, m = w.count[f], w.heard[f]
    r = at(w.registers, n)
    r[0], r[1], r[2], r[3] = w.e[f], w.pi[f], w.price[f], w.offer[f]
    if m > UNION:
        r[4], r[5] = w.lost[f], w.marked[f]
    r[m] = u[f]
    w.residual[f] = _run(w, u, f, 0, n + m + 1)[n] - u[f]


@njit(entry=True)
def evaluate(w: SearchState, ahead: bool) -> bool:
    """Find the residual at `u`, or `ahead` at `end`, and the derivatives of all laws; whether all
    of it is finite.
    """
    u = w.end if ahead else w.u
    for l in range(w.n_links):
        _link(w, u, l)
    for f in range(w.n_flows):
        _flow(w, u, f)
    return finite(w.residual, w.n_unknowns) and finite(w.told, w.n_told)
