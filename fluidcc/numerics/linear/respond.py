"""Step and impulse responses by the method of steps, with Gauss collocation on every piece.

The pieces end at the times at which a signal may have a kink: the sums of the delays. No piece is
longer than the shortest delay, so that what leaves a channel is known, and no kink lies inside one,
so that every signal is smooth there. Channels that feed through to channels (neutral systems among
them) carry jumps; they are met the same way. Kinks of high order may lie inside pieces: how high is
reckoned from how fast derivatives can grow around the loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.base.arguments import numbers
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.numerics.linear.wiring import Blocks

Floats = NDArray[np.float64]


def kink_times(block: Blocks, until: float, most: int, orders: int) -> Floats:
    """Times before `until` [s] at which a channel hands on a kink of an order up to `orders`; at
    least `most` if more.

    Parameters
    ----------
    block : Blocks
        A, B, C, D and the delays of its channels [s].
    until : float
        End [s].
    most : int
        Where to give up looking for more.
    orders : int
        A kink of this order is a jump of this derivative.
    """
    m, p = block.ports
    A, B, C, D = (part != 0 for part in block[:4])
    reach = np.eye(len(A), dtype=bool) | A
    for _ in range(int(np.ceil(np.log2(max(len(A), 2))))):
        reach = reach @ reach
    # the orders that a kink gains on its way from an input or a channel into a channel: none if it
    # passes straight through, one through the states
    gained = np.where(D[p:], 0, np.where(C[p:] @ reach @ B, 1, orders + 1))
    first, between = gained[:, :m].min(axis=1, initial=orders + 1), gained[:, m:]
    waiting = [(float(block.delays[k]), int(order), k) for k, order in enumerate(first)]
    lowest: dict[tuple[int, int], int] = {}  # order, by time and channel
    times: dict[int, float] = {}
    heapify(waiting)
    while waiting and len(times) < most:
        t, order, k = heappop(waiting)
        place = round(t / (1e-13 * until))
        if t >= until or order >= lowest.get((place, k), orders + 1):
            continue
        lowest[place, k], times[place] = order, t
        for i in np.flatnonzero(order + between[:, k] <= orders).tolist():
            heappush(waiting, (t + float(block.delays[i]), order + int(between[i, k]), i))
    return different(np.array([*times.values()]), 1e-13 * until)


def different(values: Floats, apart: float) -> Floats:
    """The values in order, without those nearer than that to the one before."""
    values = np.sort(values)
    return values[np.r_[True, np.diff(values) > apart]] if len(values) else values


# --- step and impulse responses by the method of steps --------------------------------------------


NODES = 12
PIECES = 200_000
ORDERS = 8
"""Orders of kinks that are followed at most: beyond, nothing is left of them on pieces of half a
time constant.
"""
NEGLIGIBLE = 1e-14
"""Of the size of a signal: what a kink that is not followed may leave on a piece."""

_X, _W = np.polynomial.legendre.leggauss(NODES)
_X = 0.5 * (_X + 1)
_BARY = np.array([1 / np.prod([x - y for y in _X if y != x]) for x in _X])
_P = np.polynomial.legendre.legvander(2 * _X - 1, NODES)  # Legendre polynomials at the nodes
# of the interpolant from 0 to each node: the coefficients by quadrature, each integrated exactly
_INTEGRAL = (_P[:, :1] + _P[:, 1:2]) @ _P[:, :1].T
_INTEGRAL += (_P[:, 2:] - _P[:, :-2])[:, : NODES - 1] @ _P[:, 1:NODES].T
_INTEGRAL *= 0.25 * _W
_FULL = 0.5 * _W


def respond(
    block: Blocks,
    t: ArrayLike,
    impulse: bool = False,
    seen: Callable[[float], None] = lambda t: None,
) -> Floats:
    """The response of every output to a unit step in every input, from rest; shape (outputs,
    inputs, len(t)).

    Parameters
    ----------
    t : array_like
        Times [s], none negative, in any order.
    impulse : bool
        Its derivative instead: the impulse response without the Dirac masses that come straight
        through.
    seen : callable
        Told from piece to piece how far it has come [s].

    Notes
    -----
    At a jump the value is that after it.
    """
    times = np.atleast_1d(numbers(t, "t", "times in seconds", finite=False))
    if times.ndim != 1 or not np.isfinite(times).all() or (times < 0).any():
        raise InvalidInput(
            "the times of a response must be a list of finite numbers, none negative"
        )
    m, p = block.ports
    out = np.empty((p, m, len(times)))
    if not len(times):
        return out
    order = np.argsort(times, kind="stable")
    run = _Run(block, float(times.max()), impulse)
    done = 0
    while done < len(times):
        run.piece()
        seen(run.end)
        stop = (
            int(np.searchsorted(times[order], run.end, side="left")) if run.more() else len(times)
        )
        part = order[done:stop]
        if len(part):
            out[:, :, part] = run.outputs(times[part])
        done = stop
    return out


class _Run:
    """Pieces computed so far, each with the values of the channel inputs at its nodes, and their
    derivatives if asked.

    Arrays have the nodes before the states or channels, and the inputs last: once, or with
    derivatives twice.
    """

    def __init__(self, block: Blocks, until: float, impulse: bool) -> None:
        self.block = block
        self.ports = block.ports
        m = self.ports[0]
        self.mesh = _mesh(block, until)
        self.channels = np.arange(len(block.delays))[:, None]
        self.z = np.zeros((len(self.mesh) - 1, len(block.delays), NODES, m * (1 + impulse)))
        self.x = np.zeros((len(block.A), m))
        self.index = -1
        self.begin = self.end = 0.0
        self.impulse = impulse

    def more(self) -> bool:
        return self.index + 2 < len(self.mesh)

    def piece(self) -> None:
        """Advance by one piece."""
        self.index += 1
        b, (m, p) = self.block, self.ports
        self.begin, self.end = self.mesh[self.index], self.mesh[self.index + 1]
        h = self.end - self.begin
        late = self._late(self.begin + h * _X)
        v = late[..., :m]
        drive = b.B[:, :m] + b.B[:, m:] @ v
        x, step = np.broadcast_to(self.x, (NODES, *self.x.shape)), h * _INTEGRAL
        for _ in range(40):
            slope = b.A @ x + drive
            fresh = self.x + (step @ slope.reshape(NODES, -1)).reshape(slope.shape)
            moved = np.abs(fresh - x).max(initial=0.0)
            x = fresh
            if moved <= 1e-16 * np.abs(x).max(initial=1e-300):
                break
        slope = b.A @ x + drive
        self.nodes = (x, slope, late)
        z = b.C[p:] @ x + b.D[p:, :m] + b.D[p:, m:] @ v
        self.z[self.index, :, :, :m] = z.transpose(1, 0, 2)
        if self.impulse:
            self.z[self.index, :, :, m:] = (
                b.C[p:] @ slope + b.D[p:, m:] @ late[..., m:]
            ).transpose(1, 0, 2)
        self.x = self.x + h * (_FULL @ slope.reshape(NODES, -1)).reshape(self.x.shape)

    def outputs(self, t: Floats) -> Floats:
        """The outputs, or their derivatives, at times in the present piece."""
        b, (m, p) = self.block, self.ports
        x, slope, late = self.nodes
        if self.impulse:
            y = b.C[:p] @ slope + b.D[:p, m:] @ late[..., m:]
        else:
            y = b.C[:p] @ x + b.D[:p, :m] + b.D[:p, m:] @ late
        weight = _interpolation((t - self.begin) / (self.end - self.begin))
        return np.einsum("tj,jpm->pmt", weight, y)

    def _late(self, t: Floats) -> Floats:
        """Channel outputs, and their derivatives, at the nodes of the present piece: (nodes,
        channels, inputs).
        """
        past = t - self.block.delays[:, None]
        piece = np.maximum(np.searchsorted(self.mesh, past, side="right") - 1, 0)
        begin = self.mesh[piece]
        inside = np.where(past > 0, (past - begin) / (self.mesh[piece + 1] - begin), 0.0)
        weight = _interpolation(inside.ravel())
        weight[past.ravel() <= 0] = 0.0
        found = weight.reshape(*past.shape, 1, NODES) @ self.z[piece, self.channels]
        return np.asarray(found[:, :, 0].transpose(1, 0, 2))


def _interpolation(x: Floats) -> Floats:
    """Weights of the node values at x in [0, 1]."""
    gap = x[:, None] - _X
    hit = gap == 0
    weight = _BARY / np.where(hit, 1.0, gap)
    weight = np.where(hit.any(axis=1, keepdims=True), hit.astype(float), weight)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _mesh(block: Blocks, until: float) -> Floats:
    """Ends of the pieces: kinks, and enough points in between."""
    until = max(until, 1e-300)
    delays = np.unique(block.delays)
    size = float(np.abs(block.A).sum(axis=1).max(initial=0.0))
    longest = min(
        until, 0.5 / size if size else until, float(delays.min()) if len(delays) else until
    )
    kinks = np.append(0.0, kink_times(block, until, PIECES, _orders(block, longest)))
    kinks = different(np.append(kinks, until), 1e-13 * until)
    if until - kinks[-1] > 0:
        kinks[-1] = until
    parts = np.ceil(np.diff(kinks) / (longest * (1 - 1e-9))).astype(int)
    if parts.sum() > PIECES:
        raise Unsupported(
            f"a response up to {until:g} s takes {parts.sum()} pieces, as the shortest delay or "
            f"time constant is "
            f"{longest:g} s; ask for a shorter one, or use solve_dde"
        )
    pieces = [
        a + (b - a) * np.arange(n) / n for a, b, n in zip(kinks[:-1], kinks[1:], parts, strict=True)
    ]
    return np.concatenate([*pieces, [until]])


def _orders(block: Blocks, longest: float) -> int:
    """Orders of kinks that have to be followed on pieces of at most this length.

    The polynomial through n nodes misses a kink of order k by (h/2n)^k of its jump. Jumps of the
    k-th derivative are bounded by the k-th power of abs(A) + abs(B2) (I - abs(D22))^-1 abs(C2), all
    paths between the states together.
    """
    m, p = block.ports
    A, B, C, D = (np.abs(part) for part in (block.A, block.B[:, m:], block.C[p:], block.D[p:, m:]))
    if len(D) and np.abs(np.linalg.eigvals(D)).max() > 0.99:  # jumps go on for ever
        return ORDERS
    around = A + B @ np.linalg.solve(np.eye(len(D)) - D, C) if len(D) else A
    shrinks = float(np.abs(np.linalg.eigvals(around)).max(initial=0.0)) * longest / (2 * NODES)
    if shrinks >= 1:
        return ORDERS
    return min(ORDERS, math.ceil(math.log(NEGLIGIBLE) / math.log(max(shrinks, NEGLIGIBLE))) - 1)
