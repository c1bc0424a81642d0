"""The part of a block that decides its roots: what lies on no cycle only passes signals on."""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.linear.wiring import Blocks

__all__ = ["core_of"]


def core_of(block: Blocks) -> Blocks:
    """The autonomous block without the channels that lie on no cycle, and without couplings between its cycles.

    The pencil is block triangular in the strongly connected parts of (x, z), so that its determinant is theirs.
    """
    m, p = block.ports
    n, k = len(block.A), len(block.delays)
    inner = np.block([[block.A, block.B[:, m:]], [block.C[p:], block.D[p:, m:]]])
    if k:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        count, label = connected_components(csr_array(inner != 0), directed=True, connection="strong")
        inner = np.where(label[:, None] == label, inner, 0.0)
        sizes = np.bincount(label, minlength=count)
        keep = (sizes[label] > 1) | (np.arange(n + k) < n) | (np.diag(inner) != 0)
        inner = inner[np.ix_(keep, keep)]
        delays = block.delays[keep[n:]]
    else:
        delays = block.delays
    return Blocks(inner[:n, :n], inner[:n, n:], inner[n:, :n], inner[n:, n:], delays)
