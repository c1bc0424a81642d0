"""Responses to steps, impulses and given inputs by the method of steps, with Gauss collocation on
every piece.

The pieces end at the times at which a signal may have a kink: the kinks of the input and the sums
of the delays. No such kink lies inside one, so that every signal is smooth there. Channels that
feed through to channels (neutral systems among them) carry jumps; they are met the same way. Kinks
of high order may lie inside pieces: how high is reckoned from how fast derivatives can grow around
the loop. What leaves a channel inside the piece in which it entered is found by iteration.

Where half the fastest time constant is short for the whole response, pieces begin with that after
each kink and grow, as far as the polynomials show that nothing fast is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.base.arguments import numbers, shown
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.base.progress import Progress
from fluidcc.numerics.linear.collocation import gauss, interpolation, legendre
from fluidcc.numerics.linear.pencil import in_own_units
from fluidcc.numerics.linear.wiring import Blocks, block_of, entries_of, spectral_radius

Floats = NDArray[np.float64]


def kink_times(block: Blocks, until: float, most: int, orders: int, drive: Drive) -> Floats:
    """Times before `until` at which a channel hands on a kink of an order up to `orders`; at
    least `most` if more.

    Parameters
    ----------
    block : Blocks
        A, B, C, D and the delays of its channels.
    until : float
        End.
    most : int
        Where to give up looking for more.
    orders : int
        A kink of this order is a jump of this derivative.
    drive : Drive
        The first of its times is a jump, the others are kinks of order one.
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
    if drive.start.any():
        first = np.where((C[p:] @ drive.start != 0).any(axis=1), 0, first)
    waiting = [
        (float(t + block.delays[k]), int(order) + (i > 0), k)
        for k, order in enumerate(first)
        for i, t in enumerate(drive.times)
    ]
    lowest: dict[tuple[int, int], int] = {}  # order, by time and channel
    times: dict[int, float] = {}
    heapify(waiting)
    while waiting and len(times) < most:
        t, order, k = heappop(waiting)
        if t >= until:
            continue
        place = round(t / (1e-13 * until))
        if order >= lowest.get((place, k), orders + 1):
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
MANY = 2000
"""Pieces of half a time constant up to which they are all of this length."""
LARGE = 25
"""States up to which pieces may grow: their equations are solved as they stand."""
ORDERS = 8
"""Orders of kinks that are followed at most: beyond, nothing is left of them on pieces of half a
time constant.
"""
NEGLIGIBLE = 1e-14
"""Of the size of a signal: what a kink that is not followed may leave on a piece."""
ROUNDS, SETTLED = 60, 1e-15
"""Of the iteration on a piece at most, and what may change in the last, of the size of a signal."""
SMOOTH = 1e-13
"""The same of the last coefficients of its polynomial on a piece that has grown."""

_NODE, _WEIGHT, _INTEGRAL = gauss(NODES)
_SLOPE = np.asarray(np.linalg.inv(_INTEGRAL), np.float64)
_LAST = legendre(NODES)[-2:]


class Drive(NamedTuple):
    """What drives a block: inputs with kinks at `times`, the first of which is a jump from rest.

    `inputs` takes times to the inputs, (times, inputs, columns), one column a response; `start` is
    the state at the first, (states, columns).
    """

    times: Floats
    inputs: Callable[[Floats], Floats]
    start: Floats


def unit_steps(block: Blocks) -> Drive:
    """A step in every input, from rest."""
    m, _ = block.ports
    return Drive(np.zeros(1), lambda t: np.eye(m)[None], np.zeros((len(block.A), m)))


def respond(
    block: Blocks, t: ArrayLike, impulse: bool = False, drive: Drive | None = None
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
    drive : Drive, optional
        Other inputs; then the columns are its own.

    Notes
    -----
    At a jump the value is that after it.
    """
    times = np.atleast_1d(numbers(t, "t", "times in seconds", finite=False))
    if times.ndim != 1 or not np.isfinite(times).all() or (times < 0).any():
        raise InvalidInput(
            f"t is {shown(t)}; give the times of a response, finite and none negative"
        )
    own, unit, scale = in_own_units(entries_of(block), powers=True)  # of which the unit goes back
    own_block = block_of(own)
    block = own_block._replace(A=own_block.A / unit, B=own_block.B / unit, delays=block.delays)
    drive = unit_steps(block) if drive is None else drive
    drive = drive._replace(start=drive.start / scale[0, : own.n, None])
    out = np.empty((block.ports[1], drive.start.shape[1], len(times)))
    order = np.argsort(times, kind="stable")
    run = _Run(block, float(times.max(initial=0.0)), impulse, drive)
    done = 0
    with Progress(run.until, about="response") as bar:
        while done < len(times):
            run.piece()
            bar.reach(run.end)
            stop = len(times)
            if run.end < run.until:
                stop = int(np.searchsorted(times[order], run.end, side="left"))
            part = order[done:stop]
            if len(part):
                out[:, :, part] = run.outputs(times[part])
            done = stop
    return out


class _Run:
    """Pieces computed so far, each with the values of the channel inputs at its nodes, and their
    derivatives if asked.

    Arrays have the nodes before the states or channels, and the responses last: once, or with
    derivatives twice.
    """

    def __init__(self, block: Blocks, until: float, impulse: bool, drive: Drive) -> None:
        self.block, self.drive, self.impulse = block, drive, impulse
        self.until = until = max(until, 1e-280)
        shortest = float(block.delays.min(initial=until))
        self.base = min(until, _longest(block, shortest))
        self.grows = until > MANY * self.base and len(block.A) <= LARGE
        self.longest = until if self.grows else self.base
        orders = ORDERS if self.grows else _orders(block, self.base)
        kinks = kink_times(block, until, PIECES, orders, drive)
        kinks = different(np.concatenate((drive.times, kinks)), 1e-13 * until)
        self.kinks = np.append(kinks[kinks < until * (1 - 1e-13)], until)
        if len(self.kinks) > PIECES or until > PIECES * self.longest:
            self._refuse()
        self.x, self.columns = drive.start, drive.start.shape[1]
        (n, _), k = self.x.shape, len(block.delays)
        self.channels = np.arange(k)[:, None]
        self.mesh, self.z = np.zeros(1), np.zeros((0, k, NODES, self.columns * (1 + impulse)))
        self.size = np.zeros((n + k, self.columns))  # of x and z so far
        self.index, self.kink = -1, 0
        self.begin = self.end = 0.0

    def _refuse(self) -> None:
        raise Unsupported(
            f"a response up to {self.until:g} s takes more than {PIECES} pieces: signals change "
            f"within {self.base:g} s and have {len(self.kinks) - 1} kinks; ask for a shorter one, "
            f"or use solve_dde"
        )

    def piece(self) -> None:
        """Advance by one piece."""
        self.index += 1
        if self.index == PIECES:
            self._refuse()
        if self.index == len(self.z):
            more = max(64, self.index)
            self.z = np.concatenate((self.z, np.zeros((more, *self.z.shape[1:]))))
            self.mesh = np.concatenate((self.mesh, np.zeros(more)))
        last, self.begin = self.end - self.begin, self.end
        if self.begin >= self.kinks[self.kink]:
            self.kink, last = self.kink + 1, 0.0
        length = min(max(self.base, 2 * last), self.longest)
        while not self._meets(length):
            length = 0.5 * (self.end - self.begin)
            if length < 1e-3 * self.base:
                self._refuse()

    def _meets(self, length: float) -> bool:
        """Whether a piece of that length, or shorter so that equal ones end at the next kink, has
        the solution.
        """
        kink, b, c = self.kinks[self.kink], self.block, self.columns
        parts = math.ceil((kink - self.begin) / length * (1 - 1e-9))
        self.end = kink if parts <= 1 else self.begin + (kink - self.begin) / parts
        self.mesh[self.index + 1], self.z[self.index] = self.end, 0.0
        h, m = self.end - self.begin, b.ports[0]
        times, grown = self.begin + h * _NODE, h > self.base * (1 + 1e-6)
        places, u = self._places(times), self.drive.inputs(times)
        inside = bool((times[-1] - b.delays > self.begin).any())
        x, late = np.broadcast_to(self.x, (NODES, *self.x.shape)), self._late(*places)
        for _ in range(ROUNDS):
            forced = b.B[:, :m] @ u + b.B[:, m:] @ late[..., :c]
            fresh = (
                _solved(self.x, h, b.A, forced)
                if grown
                else (self.x + _times(h * _INTEGRAL, b.A @ x + forced))
            )
            # where pieces have grown, without the rounding of what is fast and nearly cancels
            slope = _times(_SLOPE / h, fresh - self.x) if grown else b.A @ fresh + forced
            z = self._keep(fresh, slope, u, late)
            before = late
            if inside:
                late = self._late(*places)
            size = self._sizes(fresh, u, late[..., :c])
            moved = np.concatenate((fresh - x, (late - before)[..., :c]), axis=1)
            x = fresh
            if (grown and not inside) or (np.abs(moved) <= SETTLED * size).all():
                break
        else:
            self.longest = 0.5 * h  # beyond, what comes back inside a piece does not settle
            return False
        for signals in (z, late[..., :c]) if grown else ():
            ends = _times(_LAST, np.concatenate((x, signals), axis=1))
            if (np.abs(ends) > SMOOTH * size).any():
                return False
        self.size, self.nodes = size, (x, slope, u, late)
        self.x = self.x + h * _times(_WEIGHT, slope)
        return True

    def _sizes(self, x: Floats, u: Floats, v: Floats) -> Floats:
        """How large the states have been, and what is summed to what enters the channels."""
        b, (m, p), n = self.block, self.block.ports, len(self.x)
        states, inputs, late = (np.abs(part).max(axis=0, initial=0.0) for part in (x, u, v))
        states, C, D = np.maximum(self.size[:n], states), np.abs(b.C[p:]), np.abs(b.D[p:])
        summed = C @ states + D[:, :m] @ inputs + D[:, m:] @ late
        return np.concatenate((states, np.maximum(self.size[n:], summed)))

    def _keep(self, x: Floats, slope: Floats, u: Floats, late: Floats) -> Floats:
        """Put what enters the channels, and its derivative if asked, beside that of the pieces
        before.
        """
        b, (m, p), c = self.block, self.block.ports, self.columns
        z = b.C[p:] @ x + b.D[p:, :m] @ u + b.D[p:, m:] @ late[..., :c]
        self.z[self.index, :, :, :c] = z.transpose(1, 0, 2)
        if self.impulse:
            rate = b.C[p:] @ slope + b.D[p:, m:] @ late[..., c:]
            self.z[self.index, :, :, c:] = rate.transpose(1, 0, 2)
        return z

    def outputs(self, t: Floats) -> Floats:
        """The outputs, or their derivatives, at times in the present piece."""
        b, (m, p), c = self.block, self.block.ports, self.columns
        x, slope, u, late = self.nodes
        if self.impulse:
            y = b.C[:p] @ slope + b.D[:p, m:] @ late[..., c:]
        else:
            y = b.C[:p] @ x + b.D[:p, :m] @ u + b.D[:p, m:] @ late
        weight = interpolation((t - self.begin) / (self.end - self.begin), NODES)
        return np.einsum("tj,jpm->pmt", weight, y)

    def _places(self, t: Floats) -> tuple[NDArray[np.int64], Floats]:
        """Pieces from which the channels are heard at these times, and weights of their nodes."""
        past = t - self.block.delays[:, None]
        piece = np.searchsorted(self.mesh[: self.index + 2], past, side="right") - 1
        piece = np.clip(piece, 0, self.index)
        begin = self.mesh[piece]
        inside = np.where(past > 0, (past - begin) / (self.mesh[piece + 1] - begin), 0.0)
        weight = np.where((past > 0)[..., None], interpolation(inside, NODES), 0.0)
        return piece, weight[:, :, None]

    def _late(self, piece: NDArray[np.int64], weight: Floats) -> Floats:
        """Channel outputs there, and their derivatives: (nodes, channels, responses)."""
        found = weight @ self.z[piece, self.channels]
        return np.asarray(found[:, :, 0].transpose(1, 0, 2))


def _times(matrix: NDArray[Any], values: Floats) -> Floats:
    """A matrix times values with the nodes before all else."""
    return np.asarray(np.tensordot(matrix, values, axes=1))


def _solved(start: Floats, h: float, A: Floats, forced: Floats) -> Floats:
    """The states at the nodes of a piece on which nothing comes back from the channels."""
    n, c = start.shape
    right = start + _times(h * _INTEGRAL, forced)
    whole = np.eye(NODES * n) - np.kron(h * _INTEGRAL, A)
    return np.asarray(np.linalg.solve(whole, right.reshape(-1, c)).reshape(-1, n, c))


def _rate(block: Blocks) -> float:
    """How fast derivatives grow around the loop, in absolute values; infinite where jumps go on for
    ever.

    Jumps of the k-th derivative are bounded by the k-th power of abs(A) + abs(B2) (I -
    abs(D22))^-1 abs(C2), all paths between the states together. Its spectral radius depends on no
    unit.
    """
    m, p = block.ports
    A, B, C, D = (np.abs(part) for part in (block.A, block.B[:, m:], block.C[p:], block.D[p:, m:]))
    if spectral_radius(D) > 0.99:
        return math.inf
    return spectral_radius(A + B @ np.linalg.solve(np.eye(len(D)) - D, C))


def _longest(block: Blocks, shortest: float) -> float:
    """Length of a piece: half a time constant; no longer than the shortest delay where iteration
    would not settle what comes back inside it.
    """
    rate = _rate(block)
    if math.isinf(rate):
        return min(shortest, 0.5 / max(spectral_radius(np.abs(block.A)), 0.5 / shortest))
    return 0.5 / rate if rate else math.inf


def _orders(block: Blocks, longest: float) -> int:
    """Orders of kinks that have to be followed on pieces of at most this length.

    The polynomial through n nodes misses a kink of order k by (h/2n)^k of its jump.
    """
    shrinks = _rate(block) * longest / (2 * NODES)
    if shrinks >= 1:
        return ORDERS
    return min(ORDERS, math.ceil(math.log(NEGLIGIBLE) / math.log(max(shrinks, NEGLIGIBLE))) - 1)
