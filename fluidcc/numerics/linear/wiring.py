"""Linear blocks with delays: their arrays and names, their interconnection (every diagram is one
stack of blocks and three gain matrices), and the parts that decide their roots.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.base.arguments import number, numbers, shown
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.base.units import to_si

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
    from scipy.linalg import block_diag

    A, B, C, D = (block_diag(*(part[i] for part in parts)) for i in range(4))
    ports = np.array([part.ports for part in parts])
    channels = np.array([len(part.delays) for part in parts])
    # externals of all stand before the channels of all
    columns, rows = (
        np.argsort(np.repeat(np.tile((0, 1), len(parts)), np.stack((own, channels), 1).ravel()),
                   kind="stable")
        for own in ports.T
    )  # fmt: skip
    delays = np.concatenate([b.delays for b in parts])
    return Blocks(A, B[:, columns], C[rows], D[np.ix_(rows, columns)], delays)


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
    """The inverse of I less a loop, unless rounding of that loop decides whether there is one."""
    one = np.eye(len(matrix))
    inverse, most = conditioned(matrix, one + np.abs(one - matrix))
    if not most <= 1 / SINGULAR:
        raise InvalidInput(
            f"{problem} (to {1 / most:.1e} of its entries); put a delay or a lag into it"
        )
    return inverse


def conditioned(matrix: Matrix, size: Matrix) -> tuple[Matrix, float]:
    """The inverse of a matrix, and how much of itself a small part of entries of that size changes
    it by: infinite where there is none.

    That does not depend on the units of what they join (Bauer's condition).
    """
    with suppress(np.linalg.LinAlgError):
        inverse = np.asarray(np.linalg.inv(matrix), np.float64)
        condition = np.abs(inverse) @ size
        most = float(condition.sum(axis=1).max(initial=0.0))
        # as it is never but where units are far apart
        return inverse, most if most <= 1 / SINGULAR else spectral_radius(condition)
    return matrix, np.inf


def spectral_radius(matrix: Matrix) -> float:
    """The largest modulus of a matrix's eigenvalues."""
    return float(np.abs(np.linalg.eigvals(matrix)).max(initial=0.0))


def alike(table: Matrix | NDArray[np.generic]) -> list[NDArray[np.int64]]:
    """Numbers of the rows by what is in them, in the order in which that comes first."""
    found: dict[bytes, list[int]] = {}
    for i, row in enumerate(np.ascontiguousarray(table)):
        found.setdefault(row.tobytes(), []).append(i)
    return [np.array(rows) for rows in found.values()]


# --- the part of a block that decides its roots ---------------------------------------------------


ALIKE = 1e-12
"""Part of the longest delay up to which a sum of delays is none."""


SMALL = 48
"""Unknowns up to which paths are found by squaring a matrix, which starts sooner than a graph
library.
"""


class Entries(NamedTuple):
    """A block, or many of one pattern, by the entries of ``[[A, B2, B1], [C2, D22, D21], [C1, D12,
    D11]]``: states and channels before ports.

    Rows rise. The delay of a channel may be zero.
    """

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: Matrix  # (systems, entries)
    delays: Matrix  # (systems, channels)
    n: int  # states
    m: int  # inputs
    p: int  # outputs

    @property
    def k(self) -> int:
        """Channels."""
        return self.delays.shape[1]

    @property
    def acyclic(self) -> bool:
        """Whether an autonomous block has no cycle, not even of one unknown."""
        label = _strongly_connected(self)
        return len(np.unique(label)) == len(label) and bool((self.row != self.column).all())

    def without_ports(self) -> Entries:
        """The autonomous block."""
        size = self.n + self.k
        return self.of((self.row < size) & (self.column < size))._replace(m=0, p=0)

    def closed(self) -> Entries:
        """The loop ``u = -y``, where inputs become channels without delay: that from what is added
        to each input to the sum.
        """
        size, m = self.n + self.k, self.m
        own, port = size + np.arange(m), size + m + np.arange(m)
        row, column = (
            np.concatenate((self.row, own, port)),
            np.concatenate((self.column, port, own)),
        )
        turned = np.where(self.row < size, 1.0, -1.0) * self.value
        value = np.concatenate((turned, np.ones((len(turned), 2 * m))), axis=1)
        delays = np.concatenate((self.delays, np.zeros((len(turned), m))), axis=1)
        return Entries(row, column, value, delays, self.n, m, m).in_order()

    def in_order(self) -> Entries:
        """With rows that rise, and columns in each."""
        order = np.lexsort((self.column, self.row))
        return self._replace(
            row=self.row[order], column=self.column[order], value=self.value[:, order]
        )

    def of(self, kept: NDArray[np.bool_]) -> Entries:
        """With some of the entries."""
        return self._replace(
            row=self.row[kept], column=self.column[kept], value=self.value[:, kept]
        )

    def part(self, kept: NDArray[np.bool_]) -> Entries:
        """Some of the unknowns of an autonomous block, with the entries among them."""
        place = np.cumsum(kept) - 1
        left = self.of(kept[self.row] & kept[self.column])
        return left._replace(
            row=place[left.row], column=place[left.column], delays=self.delays[:, kept[self.n :]],
            n=int(kept[: self.n].sum()),
        )  # fmt: skip


def entries_of(block: Blocks) -> Entries:
    """The entries of a block, or of a stack."""
    A, B, C, D, delays = block if block.A.ndim == 3 else (part[None] for part in block)
    (m, p), n = block.ports, A.shape[-1]
    whole = np.block([
        [A, B[..., m:], B[..., :m]],
        [C[..., p:, :], D[..., p:, m:], D[..., p:, :m]],
        [C[..., :p, :], D[..., :p, m:], D[..., :p, :m]],
    ])  # fmt: skip
    row, column = np.nonzero((whole != 0).any(axis=0))
    return Entries(row, column, whole[:, row, column], np.asarray(delays, float), n, m, p)


def block_of(of: Entries) -> Blocks:
    """The first system of these entries."""
    n, size = of.n, of.n + of.k
    whole = np.zeros((size + of.p, size + of.m))
    whole[of.row, of.column] = of.value[0]
    rows = np.r_[:n, size : size + of.p, n:size]
    columns = np.r_[:n, size : size + of.m, n:size]
    whole = whole[rows[:, None], columns]
    parts = whole[:n, :n], whole[:n, n:], whole[n:, :n], whole[n:, n:], of.delays[0]
    return Blocks(*map(np.ascontiguousarray, parts))


def beside(parts: Sequence[Entries]) -> Entries:
    """Systems side by side, unconnected, each with as many outputs as inputs."""
    sizes = np.array([(one.n, one.k, one.m) for one in parts])
    n, k, m = sizes.sum(axis=0)
    shift = np.cumsum(sizes, axis=0) - sizes + (0, n, n + k)  # of each part among its kind
    place = [
        np.concatenate([first + np.arange(count) for first, count in zip(to, size, strict=True)])
        for to, size in zip(shift, sizes, strict=True)
    ]
    row, column = (
        np.concatenate([at[getattr(one, of)] for at, one in zip(place, parts, strict=True)])
        for of in ("row", "column")
    )
    value, delays = (
        np.concatenate([getattr(one, of) for one in parts], axis=1) for of in ("value", "delays")
    )
    return Entries(row, column, value, delays, int(n), int(m), int(m)).in_order()


def core_of(of: Entries) -> Entries:
    """The autonomous block without the channels that lie on no cycle, and without couplings between
    its cycles.

    The pencil is block triangular in the strongly connected parts of (x, z), so that its
    determinant is theirs. From a stack goes what lies on no cycle of any of its systems.
    """
    of = of.without_ports()
    label = _strongly_connected(of)
    kept = np.bincount(label)[label] > 1
    kept[: of.n] = True
    kept[of.row[of.row == of.column]] = True
    return of.of(label[of.row] == label[of.column]).part(kept)


def in_own_time(of: Entries) -> Entries:
    """One core with the clock of each of its places set back, so that as few channels as can be
    have a delay, and those that have become alike are one.

    What is at a place is shifted in time, so that all roots stay. Of flows through one link a round
    trip each is left, in place of the way to the link, the way back and the round trip.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, size, lags = of.n, of.n + of.k, of.delays[0]
    # places: of states and what goes into channels, and of what comes out of them
    still = np.flatnonzero(lags == 0)
    row = np.append(of.row, n + still)
    column = np.append(of.column + of.k * (of.column >= n), size + still)
    arrows = coo_array((np.ones(len(row)), (row, column)), shape=(size + of.k,) * 2)
    place = connected_components(arrows, directed=False)[1]
    tail, head = place[n:size], place[size:]
    back, moved = np.full(len(place), np.inf), tail != head
    back[np.bincount(np.append(tail[moved], head[moved]), minlength=1).argmax()] = 0.0
    for _ in place:
        np.minimum.at(back, head, back[tail] + lags)
    if not (moved.any() and np.isfinite(back[place]).all()):
        return of
    parts = (lags + back[tail] - back[head]) / lags.max()
    parts[parts < ALIKE] = 0.0
    first: dict[tuple[float, bytes, bytes], int] = {}
    edges, into = np.searchsorted(of.row, np.arange(n, size + 1)), np.arange(size)
    for j, part in enumerate(np.round(parts, 12).tolist()):
        own = slice(*edges[j : j + 2])
        key = part, of.column[own].tobytes(), of.value[0, own].tobytes()
        into[n + j] = first.setdefault(key, n + j)
    at, which = np.unique(of.row * size + into[of.column], return_inverse=True)
    value: Any = np.bincount(which, of.value[0], len(at))[None]
    found = Entries(at // size, at % size, value, parts[None] * lags.max(), n, 0, 0)
    return found.part(into == np.arange(size))


def independent(of: Entries) -> list[Entries]:
    """Blocks without inputs and outputs whose characteristic roots together are those of a core:
    its strongly connected parts.

    Where some loop has no state at all, the block is left whole.
    """
    label = _strongly_connected(of)
    if label.max(initial=0) == 0:
        return [of]
    if not np.isin(label, label[: of.n]).all():
        return [of]
    first = label[np.sort(np.unique(label[: of.n], return_index=True)[1])]
    return [of.part(label == number) for number in first.tolist()]


def _strongly_connected(of: Entries) -> NDArray[np.int64]:
    """The number of the strongly connected part of each unknown."""
    size = of.n + of.k
    if size > SMALL:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        arrow = csr_array((np.ones(len(of.row)), (of.row, of.column)), shape=(size, size))
        return np.asarray(connected_components(arrow, connection="strong")[1], np.int64)
    reach = np.eye(size)
    reach[of.row, of.column] = 1.0
    for _ in range(max(1, size - 1).bit_length()):
        reach = np.minimum(reach @ reach, 1.0)
    together = (reach > 0) & (reach.T > 0)
    return together.argmax(axis=1) if size else np.zeros(0, np.int64)


# --- arrays that fit, and names -------------------------------------------------------------------


Pick = str | int | Sequence[str | int] | None


def checked(A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, delays: ArrayLike) -> Blocks:
    """New arrays of floats whose shapes fit, without channels of zero delay."""
    a, b, c, d = (matrix(M, name) for M, name in zip((A, B, C, D), "ABCD", strict=True))
    d = np.atleast_2d(d)
    lags = np.atleast_1d(matrix(delays, "delays"))
    a = a.reshape(0, 0) if not a.size else np.atleast_2d(a)
    n, (rows, columns) = len(a), d.shape
    try:
        b, c = b.reshape(n, columns), c.reshape(rows, n)
    except ValueError as problem:
        raise InvalidInput(
            f"with A of shape {a.shape} and D of shape {d.shape}, B must have shape "
            f"{(n, columns)} and C {(rows, n)}; "
            f"got {np.shape(B)} and {np.shape(C)}"
        ) from problem
    if a.shape != (n, n) or lags.ndim != 1 or len(lags) > min(rows, columns):
        raise InvalidInput(
            f"A of shape {a.shape} and {lags.size} delays do not fit D of shape {d.shape}"
        )
    if (lags < 0).any():
        raise InvalidInput(f"a delay of {lags.min():g} s is negative; only causal blocks exist")
    return close_channels(Blocks(a, b, c, d, lags))


def matrix(value: ArrayLike, what: str) -> NDArray[np.float64]:
    """A new array of finite floats."""
    return numbers(value, what, "an array of finite numbers")


def time(value: Any, what: str) -> float:
    """A time [s], not negative, of a number or text with a unit."""
    right = "a time in seconds, not negative"
    return number(to_si(value, "s", what), what, right, least=0.0)


def names(kind: str, given: Sequence[str], count: int, letter: str) -> tuple[str, ...]:
    """`given`, or a letter with numbers; as many as `count` and all different."""
    if (
        isinstance(given, str)
        or not isinstance(given, Sequence)
        or not all(isinstance(n, str) for n in given)
    ):
        raise InvalidInput(f"{kind} is {shown(given)}; give names in a list")
    found = tuple(given) or tuple(f"{letter}{i}" for i in range(count))
    if len(found) != count or len(set(found)) != count:
        raise InvalidInput(f"{kind} must be {count} different names, got {list(found)}")
    return found


def merged(parts: Iterable[Sequence[str]]) -> list[str]:
    """The names of several blocks; with the number of their block where a name stands twice."""
    groups = [list(part) for part in parts]
    flat = [name for group in groups for name in group]
    if len(set(flat)) == len(flat):
        return flat
    return [f"{name}_{i}" for i, group in enumerate(groups) for name in group]


def indices(pick: Pick, known: Sequence[str], kind: str) -> list[int]:
    """Positions of the picked names or numbers."""
    if pick is None:
        return list(range(len(known)))
    wanted = list(pick) if isinstance(pick, Sequence) and not isinstance(pick, str) else [pick]
    found = []
    for one in wanted:
        if isinstance(one, str) and one in known:
            found.append(list(known).index(one))
        elif (
            isinstance(one, Integral)
            and not isinstance(one, bool)
            and -len(known) <= one < len(known)
        ):
            found.append(int(one) % len(known))
        else:
            raise UnknownName(f"there is no {kind} {shown(one)}; there are {', '.join(known)}")
    return found


# --- transfer functions, and equations with delayed terms -----------------------------------------


EQUAL = 4 * np.finfo(float).eps
"""Relative difference up to which two numbers are one."""


def rational(num: ArrayLike, den: ArrayLike) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """A, B, C, D of a scalar transfer function in controllable form, coefficients by falling
    powers.
    """
    given = {"num": np.atleast_1d(matrix(num, "num")), "den": np.atleast_1d(matrix(den, "den"))}
    for name, part in given.items():
        if part.ndim != 1 or not part.size or (name == "den" and not part.any()):
            raise InvalidInput(
                f"{name} is {shown(part.tolist())}; give coefficients by falling powers, as [1, 2]"
            )
    top, below = (np.trim_zeros(part, "f") for part in given.values())
    n = len(below) - 1
    if len(top) > n + 1:
        raise InvalidInput(
            f"num of degree {len(top) - 1} over den of degree {n} is no proper transfer function"
        )
    top, below = np.r_[np.zeros(n + 1 - len(top)), top] / below[0], below / below[0]
    # in a unit of time in which the poles that are not zero are about one, a power of two
    last = int(np.flatnonzero(below)[-1])
    pace = np.exp2(np.round(np.log2(np.abs(below[last])) / last)) if last else 1.0
    fall = pace ** -np.arange(n)
    A = np.zeros((n, n))
    if n:
        A[0] = -below[1:] * fall
        A[range(1, n), range(n - 1)] = pace
    return (
        A,
        np.eye(n)[:, :1],
        np.array([top[1:] - top[0] * below[1:]]) * fall,
        np.array([[top[0]]]),
    )


def delayed_terms(
    A0: ArrayLike, terms: Sequence[tuple[ArrayLike, float]], B: ArrayLike, C: ArrayLike
) -> tuple[Matrix, Matrix, Matrix, Matrix, Matrix]:
    """A, B, C, D and delays of ``x' = A0 x + sum A_k x(t - tau_k) + B u``; for the channels see
    `_factored`.
    """
    A = np.atleast_2d(matrix(A0, "A0"))
    n = len(A)
    lefts, rights, delays = [], [], []
    for term in terms:
        if not isinstance(term, tuple | list) or len(term) != 2:
            raise InvalidInput(f"a term of the equation is {shown(term)}; give a pair (A_k, delay)")
        part, delay = (
            np.atleast_2d(matrix(term[0], "A_k")),
            time(term[1], "the delay of A_k"),
        )
        if A.shape != (n, n) or part.shape != (n, n):
            raise InvalidInput(
                f"A0 has shape {A.shape} and an A_k {part.shape}; give square ones of one size"
            )
        left, right = _factored(part)
        lefts.append(left)
        rights.append(right)
        delays += [delay] * len(right)
    B1, C1 = matrix(B, "B"), matrix(C, "C")
    B1 = B1.reshape(n, -1) if B1.size else np.eye(n)
    C1 = C1.reshape(-1, n) if C1.size else np.eye(n)
    k = len(delays)
    D = np.zeros((len(C1) + k, B1.shape[1] + k))
    return A, np.hstack([B1, *lefts]), np.vstack([C1, *rights]), D, np.array(delays)


def _factored(part: Matrix) -> tuple[Matrix, Matrix]:
    """Factors of a matrix that give back each of its entries to rounding, so that none is lost
    beside a larger one.

    Rows that are multiples of one another share a channel, or columns do, whichever takes fewer.
    """
    (left, right), (below, above) = _by_rows(part), _by_rows(part.T)
    return (left, right) if len(right) <= len(above) else (above.T, below.T)


def _by_rows(part: Matrix) -> tuple[Matrix, Matrix]:
    """Which multiple of which of the different rows each row is, and these."""
    different: list[int] = []
    left = np.zeros(part.shape)
    for i in np.flatnonzero(part.any(axis=1)):
        first, k = int(np.argmax(part[i] != 0)), len(different)
        for j, known in enumerate(part[different]):
            factor = part[i, first] / known[first] if known[first] else 0.0
            if (np.abs(factor * known - part[i]) <= EQUAL * np.abs(part[i])).all():
                left[i, j] = factor
                break
        else:
            left[i, k] = 1.0
            different.append(int(i))
    return left[:, : len(different)], part[different]
