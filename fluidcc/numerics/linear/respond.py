"""Step and impulse responses by the method of steps, with Gauss collocation on every piece.

The pieces end at the times at which a signal may have a kink: the sums of the delays. No piece is longer than the
shortest delay, so that what leaves a channel is known, and no kink lies inside one, so that every signal is smooth
there. Channels that feed through to channels (neutral systems among them) carry jumps; they are met the same way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.arguments import numbers
from fluidcc.errors import InvalidInput, Unsupported
from fluidcc.numerics.linear.kinks import different, kink_times
from fluidcc.numerics.linear.wiring import Blocks

__all__ = ["respond"]

Floats = NDArray[np.float64]

NODES = 12
PIECES = 200_000

_X, _W = np.polynomial.legendre.leggauss(NODES)
_X = 0.5 * (_X + 1)
_BARY = np.array([1 / np.prod([x - y for y in _X if y != x]) for x in _X])
_P = np.polynomial.legendre.legvander(2 * _X - 1, NODES)  # Legendre polynomials at the nodes
_INTEGRAL = (
    0.25
    * (  # of the interpolant from 0 to each node: the coefficients by quadrature, each integrated exactly
        (_P[:, :1] + _P[:, 1:2]) @ _P[:, :1].T + (_P[:, 2:] - _P[:, :-2])[:, : NODES - 1] @ _P[:, 1:NODES].T
    )
    * _W
)
_FULL = 0.5 * _W


def respond(block: Blocks, t: ArrayLike, impulse: bool = False) -> Floats:
    """The response of every output to a unit step in every input, from rest; shape (outputs, inputs, len(t)).

    Parameters
    ----------
    t : array_like
        Times [s], none negative, in any order.
    impulse : bool
        Its derivative instead: the impulse response without the Dirac masses that come straight through.

    Notes
    -----
    At a jump the value is that after it.
    """
    times = np.atleast_1d(numbers(t, "t", "times in seconds", finite=False))
    if times.ndim != 1 or not np.isfinite(times).all() or (times < 0).any():
        raise InvalidInput("the times of a response must be a list of finite numbers, none negative")
    m, p = block.ports
    out = np.empty((p, m, len(times)))
    if not len(times):
        return out
    order = np.argsort(times, kind="stable")
    run = _Run(block, float(times.max()))
    done = 0
    while done < len(times):
        run.piece()
        stop = int(np.searchsorted(times[order], run.end, side="left")) if run.more() else len(times)
        part = order[done:stop]
        if len(part):
            out[:, :, part] = run.outputs(times[part], impulse)
        done = stop
    return out


class _Run:
    """Pieces computed so far, each with the values of the channel inputs and of their derivatives at its nodes."""

    def __init__(self, block: Blocks, until: float) -> None:
        self.block = block
        self.ports = block.ports
        m = self.ports[0]
        self.mesh = _mesh(block, until)
        k = len(block.delays)
        count = len(self.mesh) - 1
        self.z, self.z_rate = np.zeros((count, NODES, k, m)), np.zeros((count, NODES, k, m))
        self.x = np.zeros((len(block.A), m))
        self.index = -1
        self.begin = self.end = 0.0
        self.input = np.eye(m)

    def more(self) -> bool:
        return self.index + 2 < len(self.mesh)

    def piece(self) -> None:
        """Advance by one piece."""
        self.index += 1
        b, (m, p) = self.block, self.ports
        self.begin, self.end = self.mesh[self.index], self.mesh[self.index + 1]
        h = self.end - self.begin
        v, v_rate = self._late(self.begin + h * _X)
        drive = b.B[:, :m] @ self.input + np.einsum("nk,jkm->jnm", b.B[:, m:], v)
        x = np.broadcast_to(self.x, (NODES, *self.x.shape))
        for _ in range(40):
            slope = b.A @ x + drive
            fresh = self.x + h * np.einsum("jl,lnm->jnm", _INTEGRAL, slope)
            moved = np.abs(fresh - x).max(initial=0.0)
            x = fresh
            if moved <= 1e-16 * np.abs(x).max(initial=1e-300):
                break
        slope = b.A @ x + drive
        self.nodes = (x, slope, v, v_rate)
        self.z[self.index] = b.C[p:] @ x + b.D[p:, :m] @ self.input + b.D[p:, m:] @ v
        self.z_rate[self.index] = b.C[p:] @ slope + b.D[p:, m:] @ v_rate
        self.x = self.x + h * np.einsum("l,lnm->nm", _FULL, slope)

    def outputs(self, t: Floats, impulse: bool) -> Floats:
        """The outputs, or their derivatives, at times in the present piece."""
        b, (m, p) = self.block, self.ports
        x, slope, v, v_rate = self.nodes
        if impulse:
            y = b.C[:p] @ slope + b.D[:p, m:] @ v_rate
        else:
            y = b.C[:p] @ x + b.D[:p, :m] @ self.input + b.D[:p, m:] @ v
        weight = _interpolation((t - self.begin) / (self.end - self.begin))
        return np.einsum("tj,jpm->pmt", weight, y)

    def _late(self, t: Floats) -> tuple[Floats, Floats]:
        """Channel outputs and their derivatives at the nodes of the present piece."""
        delays, m = self.block.delays, self.ports[0]
        v = np.zeros((NODES, len(delays), m))
        rate = np.zeros_like(v)
        for k, lag in enumerate(delays):
            past = t - lag
            piece = np.searchsorted(self.mesh, past, side="right") - 1
            for i in np.unique(piece[past > 0]):
                at = np.flatnonzero((piece == i) & (past > 0))
                weight = _interpolation((past[at] - self.mesh[i]) / (self.mesh[i + 1] - self.mesh[i]))
                v[at, k] = weight @ self.z[i, :, k]
                rate[at, k] = weight @ self.z_rate[i, :, k]
        return v, rate


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
    longest = min(until, 0.5 / size if size else until, float(delays.min()) if len(delays) else until)
    kinks = np.append(0.0, kink_times(block, until, PIECES))
    kinks = different(np.append(kinks, until), 1e-13 * until)
    if until - kinks[-1] > 0:
        kinks[-1] = until
    parts = np.ceil(np.diff(kinks) / (longest * (1 - 1e-9))).astype(int)
    if parts.sum() > PIECES:
        raise Unsupported(
            f"a response up to {until:g} s takes {parts.sum()} pieces, as the shortest delay or time constant is "
            f"{longest:g} s; ask for a shorter one, or use solve_dde"
        )
    pieces = [a + (b - a) * np.arange(n) / n for a, b, n in zip(kinks[:-1], kinks[1:], parts, strict=True)]
    return np.concatenate([*pieces, [until]])
