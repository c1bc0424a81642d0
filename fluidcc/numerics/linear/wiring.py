"""Interconnection of linear blocks with delays: every diagram is one stack of blocks and three
gain matrices.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput

__all__ = [
    "Blocks", "alike", "close_channels", "core_of", "independent",
    "of_one_pattern", "stack", "wire",
]  # fmt: skip


Matrix = NDArray[np.float64]

SINGULAR = 1e-12
"""A loop matrix that so small a relative change of its entries makes singular is an algebraic
loop.
"""


class Blocks(NamedTuple):
    """A, B, C, D and the delays of the last columns of B, D and rows of C, D; a leading axis
    makes a stack.
    """

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    delays: Matrix

    @property
    def ports(self) -> tuple[int, int]:
        """Numbers of external inputs and outputs."""
        k = self.delays.shape[-1]
        return self.B.shape[-1] - k, self.C.shape[-2] - k


def stack(*parts: Blocks) -> Blocks:
    """The blocks side by side: externals of all first, then the channels of all."""
    A, B, C, D = (_diagonal([b[i] for b in parts]) for i in range(4))
    columns, rows = (_externals_first([(b.ports[i], len(b.delays)) for b in parts]) for i in (0, 1))
    delays = np.concatenate([b.delays for b in parts])
    return Blocks(A, B[:, columns], C[rows], D[np.ix_(rows, columns)], delays)


def _externals_first(sizes: list[tuple[int, int]]) -> NDArray[np.int64]:
    """The order in which the externals of all blocks stand before the channels of all."""
    channel = np.concatenate([np.repeat((False, True), pair) for pair in sizes])
    return np.argsort(channel, kind="stable")


def _diagonal(parts: list[Matrix]) -> Matrix:
    """The matrix with these on its diagonal."""
    ends = np.cumsum([(0, 0), *(part.shape for part in parts)], axis=0)
    out = np.zeros(ends[-1])
    for part, (i, j) in zip(parts, ends, strict=False):
        out[i : i + len(part), j : j + part.shape[1]] = part
    return out


def wire(
    block: Blocks,
    back: Matrix,
    enter: Matrix,
    leave: Matrix,
    problem: str = "the connection is an algebraic loop: I - K D is singular",
) -> Blocks:
    """Close ``u = back @ y + enter @ w`` on the externals and read ``leave @ y``.

    Raises
    ------
    InvalidInput
        The connection is an algebraic loop: I - back @ D11 is singular.
    """
    m, p = block.ports
    gain = _inverse(np.eye(m) - back @ block.D[:p, :m], problem)
    # u = x_part x + [w, v] parts, all through the inverse of the loop
    from_state = gain @ back @ block.C[:p]
    from_input = np.hstack((gain @ enter, gain @ back @ block.D[:p, m:]))
    pick = np.hstack((np.zeros((len(block.delays), enter.shape[1])), np.eye(len(block.delays))))
    whole = np.vstack((from_input, pick))  # (u, v) from (w, v)
    A = block.A + block.B[:, :m] @ from_state
    B = block.B @ whole
    out_c = block.C + block.D[:, :m] @ from_state
    out_d = block.D @ whole
    C = np.vstack((leave @ out_c[:p], out_c[p:]))
    D = np.vstack((leave @ out_d[:p], out_d[p:]))
    return Blocks(A, B, C, D, block.delays)


def close_channels(block: Blocks) -> Blocks:
    """Remove the channels of zero delay: they are algebraic.

    Raises
    ------
    InvalidInput
        They form a loop without a solution.
    """
    zero = np.flatnonzero(block.delays == 0)
    if not len(zero):
        return block
    (m, p), kept, k = block.ports, np.flatnonzero(block.delays > 0), len(zero)
    columns, rows = (np.r_[0:n, n + zero, n + kept] for n in (m, p))
    ported = Blocks(
        block.A,
        block.B[:, columns],
        block.C[rows],
        block.D[np.ix_(rows, columns)],
        block.delays[kept],
    )
    back = np.zeros((m + k, p + k))
    back[m:, p:] = np.eye(k)
    problem = "the channels of zero delay form an algebraic loop: I - D22 is singular"
    return wire(ported, back, np.eye(m + k)[:, :m], np.eye(p + k)[:p], problem)


def _inverse(matrix: Matrix, problem: str) -> Matrix:
    """The inverse of I less a loop, unless rounding of that loop decides whether there is one.

    How rounding of entries tells on the inverse does not depend on the units of what they join
    (Bauer's condition).
    """
    most, one = np.inf, np.eye(len(matrix))
    with suppress(np.linalg.LinAlgError):
        inverse = np.linalg.inv(matrix)
        told = np.abs(inverse) @ (one + np.abs(one - matrix))
        most = told.sum(axis=1).max(initial=0.0)
        if most > 1 / SINGULAR:  # as it is never but where units are far apart
            most = np.abs(np.linalg.eigvals(told)).max()
    if not most <= 1 / SINGULAR:
        raise InvalidInput(
            f"{problem} (to {1 / most:.1e} of its entries); put a delay or a lag into it"
        )
    return np.asarray(inverse)


def of_one_pattern(block: Blocks) -> list[NDArray[np.int64]]:
    """Numbers of the systems of a stack by which entries they have."""
    return alike(
        np.concatenate(
            [np.packbits(part.reshape(len(part), -1) != 0, axis=1) for part in block[:4]], axis=1
        )
    )


def alike(table: Matrix | NDArray[np.generic]) -> list[NDArray[np.int64]]:
    """Numbers of the rows by what is in them, in the order in which that comes first."""
    if len(table) and np.all(table == table[:1]):  # as a rule, and much faster
        return [np.arange(len(table))]
    found: dict[bytes, list[int]] = {}
    for i, row in enumerate(np.ascontiguousarray(table)):
        found.setdefault(row.tobytes(), []).append(i)
    return [np.array(rows) for rows in found.values()]


# --- the part of a block that decides its roots ---------------------------------------------------


SMALL = 48
"""Unknowns up to which paths are found by squaring a matrix, which starts sooner than a graph
library.
"""


def core_of(block: Blocks) -> Blocks:
    """The autonomous block without the channels that lie on no cycle, and without couplings between
    its cycles.

    The pencil is block triangular in the strongly connected parts of (x, z), so that its
    determinant is theirs. From a stack goes what lies on no cycle of any of its systems.
    """
    m, p = block.ports
    n, k = block.A.shape[-1], block.delays.shape[-1]
    A, B, C, D = block.A, block.B[..., m:], block.C[..., p:, :], block.D[..., p:, m:]
    inner = np.block([[A, B], [C, D]])
    delays = block.delays
    if k:
        arrow = inner != 0 if inner.ndim == 2 else (inner != 0).any(axis=0)
        together = _strongly_connected(arrow)
        inner = np.where(together, inner, 0.0)
        keep = (
            (together.sum(axis=1) > 1)
            | (np.arange(n + k) < n)
            | (np.diag(arrow) & (np.arange(n + k) >= n))
        )
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


# --- parts of a block that have no loop in common -------------------------------------------------


def independent(block: Blocks) -> list[Blocks]:
    """Blocks without inputs and outputs whose characteristic roots together are those of `block`.

    States and channels are the vertices of a graph, what each hears its edges. Sorted by strongly
    connected parts, the pencil is block triangular. Channels that are in no loop have no roots;
    where some loop has no state at all, the block is left whole.
    """
    n, (m, p) = len(block.A), block.ports
    A, B, C, D = block.A, block.B[:, m:], block.C[p:], block.D[p:, m:]
    together = _strongly_connected(np.block([[A, B], [C, D]]) != 0)
    found = []
    for own in map(np.flatnonzero, np.unique(together, axis=0)):
        z, v = own[own < n], own[own >= n] - n
        if len(z):
            found.append(
                Blocks(
                    A[np.ix_(z, z)],
                    B[np.ix_(z, v)],
                    C[np.ix_(v, z)],
                    D[np.ix_(v, v)],
                    block.delays[v],
                )
            )
        elif D[np.ix_(v, v)].any():
            return [block]
    return found
