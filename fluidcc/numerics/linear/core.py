"""The part of a block that decides its roots: what lies on no cycle only passes signals on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.wiring import Blocks

__all__ = ["core_of"]

SMALL = 48
"""Unknowns up to which paths are found by squaring a matrix, which starts sooner than a graph library."""


def core_of(block: Blocks) -> Blocks:
    """The autonomous block without the channels that lie on no cycle, and without couplings between its cycles.

    The pencil is block triangular in the strongly connected parts of (x, z), so that its determinant is theirs.
    """
    m, p = block.ports
    n, k = len(block.A), len(block.delays)
    inner = np.block([[block.A, block.B[:, m:]], [block.C[p:], block.D[p:, m:]]])
    if k:
        together = _strongly_connected(inner != 0)
        inner = np.where(together, inner, 0.0)
        keep = (together.sum(axis=1) > 1) | (np.arange(n + k) < n) | (np.diag(inner) != 0)
        inner = inner[np.ix_(keep, keep)]
        delays = block.delays[keep[n:]]
    else:
        delays = block.delays
    return Blocks(inner[:n, :n], inner[:n, n:], inner[n:, :n], inner[n:, n:], delays)


def _strongly_connected(arrow: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which pairs lie on a common cycle, and each with itself."""
    size = len(arrow)
    if size > SMALL:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        _, label = connected_components(csr_array(arrow), directed=True, connection="strong")
        return np.asarray(label[:, None] == label)
    reach = arrow + np.eye(size)
    for _ in range(max(1, size - 1).bit_length()):
        reach = np.minimum(reach @ reach, 1.0)
    return np.asarray((reach > 0) & (reach.T > 0))
