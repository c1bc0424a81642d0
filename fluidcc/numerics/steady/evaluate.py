"""The residual of the steady state, and the derivatives of what flows and links tell one
another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import UNCOUNTED
from fluidcc.numerics.tape import run

from ..steady import slots as s

__all__ = ["TOLERANCE", "balanced", "change", "derivatives", "dropped", "evaluate", "rests"]


_jit: Any = njit(**UNCOUNTED)


@_jit
def derivatives(I: Any, link: int) -> int:
    """Where the derivatives of what a link gives begin in D: row by row those of its states,
    mark, price and drop.
    """
    return I[link + s.GIVES] + I[link + s.COUNT] + 2 + I[link + s.DROPS]


@_jit
def dropped(I: Any, D: Any, l: int) -> float:
    """The ratio of its arrivals that link `l` drops."""
    link = I[s.LINK] + l * s.LINK_SIZE
    return D[I[link + s.GIVES] + I[link + s.COUNT] + 2] if I[link + s.DROPS] else 0.0


@_jit
def change(I: Any, D: Any, l: int) -> float:
    """How that ratio changes by the moves of the link's unknowns."""
    link = I[s.LINK] + l * s.LINK_SIZE
    if not I[link + s.DROPS]:
        return 0.0
    F, L, n, move, first = I[s.FLOWS], I[s.LINKS], I[link + s.COUNT], I[s.MOVE], I[link + s.STATES]
    J = derivatives(I, link) + (n + 2) * (n + 2)
    value = D[J] * D[I[s.QUEUE_SLOPE] + l] * D[move + F + l]
    for i in range(n):
        value += D[J + 1 + i] * D[move + first + i]
    return value + (D[J + n + 1] * D[move + F + L + l] if I[link + s.HEARS] else 0.0)


# --- whether a point is an equilibrium ------------------------------------------------------------


TOLERANCE = 1e-8
"""What may be left of an equation, relative to what it balances.

A search ends within 1e-9 of each unknown, and goes on from there only where its equations are not
singular.
"""


@_jit
def balanced(I: Any, P: Any, D: Any, i: int) -> float:
    """The size of what equation `i` balances: how its terms change as the unknowns change by
    their sizes.
    """
    F, L, size = I[s.FLOWS], I[s.LINKS], I[s.SIZE]
    if F <= i < F + L:
        return 1.0 + D[size + L + i] / P[I[s.C] + i - F]
    if F + L <= i < F + 2 * L:
        return D[size + i]
    j = I[I[s.OWNER] + i]
    total = 0.0
    if i < I[s.V_FIRST]:
        flow = I[s.FLOW] + j * s.FLOW_SIZE
        if I[flow + s.LAW] < 0:
            return D[size + j]
        k, first = I[flow + s.COUNT], I[flow + s.STATES]
        J = I[flow + s.GIVES] + (k + 1) + (k if i < F else i - first) * (k + 4)
        for other in range(k):
            total += abs(D[J + other]) * D[size + first + other]
        J += k
        total += abs(D[J]) * D[size + j] + abs(D[J + 1] * D[I[s.E] + j])
        total += abs(D[J + 2] * D[I[s.PI] + j]) + abs(D[J + 3] * D[I[s.PRICE] + j])
        return total + (D[size + j] if i < F else 0.0)
    link = I[s.LINK] + j * s.LINK_SIZE
    k, first = I[link + s.COUNT], I[link + s.STATES]
    J = derivatives(I, link) + (i - first) * (k + 2)
    total += abs(D[J] * D[I[s.QUEUE] + j])
    for other in range(k):
        total += abs(D[J + 1 + other]) * D[size + first + other]
    return total + abs(D[J + k + 1]) * D[size + F + L + j]


@_jit
def rests(I: Any, P: Any, D: Any, u: Any) -> bool:
    """Whether every equation holds at `u`: its residual vanishes, or pushes against a bound.

    `D` has what `evaluate` and `sizes` find there.
    """
    for i in range(I[s.UNKNOWNS]):
        left = D[I[s.G] + i]
        if (left > 0 and u[i] >= P[I[s.UPPER] + i]) or (left < 0 and u[i] <= P[I[s.LOWER] + i]):
            continue
        if not abs(left) <= TOLERANCE * balanced(I, P, D, i):
            return False
    return True


# --- the residual of the steady state -------------------------------------------------------------


@_jit
def _run(I: Any, D: Any, law: int, to: int) -> None:
    """Run a tape whose inputs stand in the registers; put what it gives at `to`."""
    tape, r = I[s.TAPE] + law * s.TAPE_SIZE, I[s.REGISTERS]
    first = r + I[tape + s.INPUTS]
    for i in range(I[tape + s.CONSTANTS], I[tape + s.CONSTANTS_END]):
        D[first] = D[i]
        first += 1
    run(I, I[tape + s.OPS], I[tape + s.OPS_END], D, r)
    for i in range(I[tape + s.OUT], I[tape + s.OUT_END]):
        D[to] = D[r + I[i]]
        to += 1


@_jit
def _link(I: Any, P: Any, D: Any, u: Any, l: int) -> None:
    """What a link does: delay, loss, mark, price and drop, and the flows of its states."""
    F, L, link, G = I[s.FLOWS], I[s.LINKS], I[s.LINK] + l * s.LINK_SIZE, I[s.G]
    y, c, q_max = u[F + L + l], P[I[s.C] + l], P[I[s.Q_MAX] + l]
    beyond = I[I[s.BEYOND] + l] == 1
    over = u[F + l] if beyond else u[F + l] - q_max
    queue = q_max if over > 0 else (u[F + l] + q_max if beyond else u[F + l])
    loss = over / (1.0 + over) if over > 0 else 0.0
    # At the kink: on into loss, or back into delay, by whether more arrives than leaves.
    filling = q_max > 0 and (over < 0 or (over == 0 and not y > c))
    D[I[s.QUEUE] + l], D[I[s.LOSS] + l] = queue, loss
    D[I[s.QUEUE_SLOPE] + l] = 1.0 if filling else 0.0
    D[I[s.LOSS_SLOPE] + l] = 0.0 if filling else (1.0 - loss) ** 2
    n, first, r, to = I[link + s.COUNT], I[link + s.STATES], I[s.REGISTERS], I[link + s.GIVES]
    D[r] = queue
    for i in range(n):
        D[r + 1 + i] = u[first + i]
    D[r + 1 + n] = y
    r += n + 2
    for i in range(I[link + s.PAR], I[link + s.PAR_END]):
        D[r] = P[i]
        r += 1
    _run(I, D, I[link + s.LAW], to)
    for i in range(n):
        D[G + first + i] = D[to + i]
    D[G + F + l] = y * (1.0 - dropped(I, D, l)) * (1.0 - loss) / c - 1.0
    D[G + F + L + l] = -y


@_jit
def _path(I: Any, P: Any, D: Any, u: Any, f: int, flow: int) -> None:
    """The signals of a flow's path, and what it sends through each link."""
    F, L = I[s.FLOWS], I[s.LINKS]
    e, price, share, lost = P[I[s.BASE] + f], 0.0, float(I[flow + s.MANY]), 0.0
    for h in range(I[flow + s.HOPS], I[flow + s.HOPS_END]):
        l = I[I[s.HOP] + h]
        link = I[s.LINK] + l * s.LINK_SIZE
        D[I[s.PASSING] + h] = share
        D[I[s.G] + F + L + l] += u[f] * share
        drop = dropped(I, D, l)
        through = (1.0 - D[I[s.LOSS] + l]) * (1.0 - drop)
        # At rest this throttle is 1; before, it keeps the queue at the first of several equal links
        # in series.
        busy = (
            min(1.0, P[I[s.C] + l] / max(u[F + L + l] * through, 1e-300))
            if D[I[s.QUEUE] + l] > 0
            else 1.0
        )
        share *= through * busy
        told = I[link + s.GIVES] + I[link + s.COUNT]
        e += D[I[s.QUEUE] + l]
        lost += (1.0 - lost) * D[
            I[s.LOSS] + l
        ]  # not 1 - survival, which loses the digits of small losses
        lost += (1.0 - lost) * D[told]
        lost += (1.0 - lost) * drop
        price += D[told + 1]
    D[I[s.E] + f], D[I[s.PI] + f], D[I[s.PRICE] + f] = e, lost, price


@_jit
def _flow(I: Any, P: Any, D: Any, u: Any, f: int) -> None:
    """What a flow does: its path's signals, the flows of its states, and its rate."""
    flow, G = I[s.FLOW] + f * s.FLOW_SIZE, I[s.G]
    _path(I, P, D, u, f, flow)
    if I[flow + s.LAW] < 0:
        D[G + f] = P[I[s.RATE] + f] - u[f]
        return
    k, first, r, to = I[flow + s.COUNT], I[flow + s.STATES], I[s.REGISTERS], I[flow + s.GIVES]
    for i in range(k):
        D[r + i] = u[first + i]
    r += k
    D[r], D[r + 1], D[r + 2], D[r + 3] = D[I[s.E] + f], D[I[s.PI] + f], D[I[s.PRICE] + f], u[f]
    r += 4
    for i in range(I[flow + s.PAR], I[flow + s.PAR_END]):
        D[r] = P[i]
        r += 1
    _run(I, D, I[flow + s.LAW], to)
    for i in range(k):
        D[G + first + i] = D[to + i]
    D[G + f] = D[to + k] - u[f]


@_jit
def evaluate(I: Any, P: Any, D: Any, u: Any) -> bool:
    """Put the residual at `u` and the derivatives of all laws into `D`; whether all of it is
    finite.
    """
    for l in range(I[s.LINKS]):
        _link(I, P, D, u, l)
    for f in range(I[s.FLOWS]):
        _flow(I, P, D, u, f)
    for i in range(I[s.G], I[s.G] + I[s.UNKNOWNS]):
        if not np.isfinite(D[i]):
            return False
    for i in range(I[s.TOLD], I[s.TOLD_END]):  # noqa: SIM110 - numba has no generators
        if not np.isfinite(D[i]):
            return False
    return True
