"""Blocks in their own unit of time with balanced unknowns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.wiring import Blocks

__all__ = ["unframed"]

Floats = NDArray[np.float64]


def unframed(frame: Floats, n: int, ports: tuple[int, int], delays: Floats) -> Blocks:
    """The blocks of bordered pencils, as `fluidcc.numerics.linear.compiled.framing.framed` makes them.

    Parameters
    ----------
    frame : array (systems, rows, columns)
    n : int
        States.
    ports : tuple of int
        Inputs and outputs.
    delays : array (systems, channels)
        In the units of these.
    """
    m, p = ports
    inner = frame.shape[2] - m
    order = [*range(inner, inner + m), *range(n, inner)], [*range(inner, inner + p), *range(n, inner)]
    sign = np.where(np.arange(inner + p) < inner, -1.0, 1.0)[:, None]
    whole = frame * sign + 0.0  # no negative zeros
    parts = (whole[:, :n, :n], whole[:, :n][:, :, order[0]], whole[:, order[1], :n],
             whole[:, order[1]][:, :, order[0]], delays)  # fmt: skip
    return Blocks(*map(np.ascontiguousarray, parts))
