"""Parts of a block that have no loop in common: its characteristic function is the product of theirs."""

from __future__ import annotations

import numpy as np

from fluidcc.numerics.linear.wiring import Blocks

__all__ = ["independent"]


def independent(block: Blocks) -> list[Blocks]:
    """Blocks without inputs and outputs whose characteristic roots together are those of `block`.

    States and channels are the vertices of a graph, what each hears its edges. Sorted by strongly connected parts, the
    pencil is block triangular. Channels that are in no loop have no roots; where some loop has no state at all, the
    block is left whole.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n, (m, p) = len(block.A), block.ports
    A, B, C, D = block.A, block.B[:, m:], block.C[p:], block.D[p:, m:]
    hears = np.block([[A, B], [C, D]]) != 0
    count, part = connected_components(csr_array(hears), connection="strong")
    found = []
    for i in range(count):
        own = np.flatnonzero(part == i)
        z, v = own[own < n], own[own >= n] - n
        if len(z):
            found.append(Blocks(A[np.ix_(z, z)], B[np.ix_(z, v)], C[np.ix_(v, z)], D[np.ix_(v, v)], block.delays[v]))
        elif D[np.ix_(v, v)].any():
            return [block]
    return found
