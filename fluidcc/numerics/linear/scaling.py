"""Blocks in their own unit of time with balanced unknowns, and the pencils of these."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.compiled.replay import evened
from fluidcc.numerics.linear.wiring import Blocks

__all__ = ["balanced", "bordered", "units"]

Floats = NDArray[np.float64]


def bordered(sc: Blocks) -> Floats:
    """The bordered pencils but for s and the ones, with in the columns of the channels the factors of the lags."""
    m, p = sc.ports
    states = np.concatenate((sc.A, sc.B[..., m:], sc.B[..., :m]), axis=2)
    channels = np.concatenate((sc.C[:, p:], sc.D[:, p:, m:], sc.D[:, p:, :m]), axis=2)
    border = np.concatenate((sc.C[:, :p], sc.D[:, :p, m:], sc.D[:, :p, :m]), axis=2)
    return np.concatenate((-states, -channels, border), axis=1)


def units(block: Blocks) -> Floats:
    if block.delays.shape[-1]:
        return np.asarray(block.delays.max(axis=-1))
    size = np.sqrt(np.abs(block.A @ block.A).sum(axis=-1).max(axis=-1, initial=0.0))
    return np.where(size > 0, 1 / np.where(size > 0, size, 1), 1.0)


def balanced(block: Blocks, times: Floats) -> tuple[Blocks, Floats]:
    """Time in units of `times`, and a diagonal similarity on (x, z) that evens out rows and columns.

    Also the factors by which the balanced states are multiplied to give the states, powers of two.
    """
    m, p = block.ports
    n = block.A.shape[-1]
    unit = times[:, None, None]
    A, B = block.A * unit, block.B * unit
    inner = np.concatenate(
        (
            np.concatenate((A, B[..., m:]), axis=2),
            np.concatenate((block.C[:, p:], block.D[:, p:, m:]), axis=2),
        ),
        axis=1,
    )
    inner = np.ascontiguousarray(inner)  # for another order it would be compiled again
    scale = evened(inner)
    x, z = scale[:, :n], scale[:, n:]
    D = block.D.copy()
    D[:, :p, m:] *= z[:, None, :]
    D[:, p:, :m] /= z[:, :, None]
    D[:, p:, m:] = inner[:, n:, n:]
    parts = (
        inner[:, :n, :n],
        np.concatenate((B[..., :m] / x[:, :, None], inner[:, :n, n:]), axis=2),
        np.concatenate((block.C[:, :p] * x[:, None, :], inner[:, n:, :n]), axis=1),
        D,
        block.delays / times[:, None],
    )
    return Blocks(*map(np.ascontiguousarray, parts)), x
