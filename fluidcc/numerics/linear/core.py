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

    The pencil is block triangular in the strongly connected parts of (x, z), so that its determinant is theirs. From a
    stack goes what lies on no cycle of any of its systems.
    """
    m, p = block.ports
    n, k = block.A.shape[-1], block.delays.shape[-1]
    inner = np.concatenate(
        (
            np.concatenate((block.A, block.B[..., m:]), axis=-1),
            np.concatenate((block.C[..., p:, :], block.D[..., p:, m:]), axis=-1),
        ),
        axis=-2,
    )
    delays = block.delays
    if k:
        arrow = inner != 0 if inner.ndim == 2 else (inner != 0).any(axis=0)
        together = _strongly_connected(arrow)
        inner = np.where(together, inner, 0.0)
        keep = (together.sum(axis=1) > 1) | (np.arange(n + k) < n) | (np.diag(arrow) & (np.arange(n + k) >= n))
        inner = inner[..., keep, :][..., keep]
        delays = delays[..., keep[n:]]
    # in C order: compiled functions are compiled again for another
    parts = inner[..., :n, :n], inner[..., :n, n:], inner[..., n:, :n], inner[..., n:, n:], delays
    return Blocks(*map(np.ascontiguousarray, parts))


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
