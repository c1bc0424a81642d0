"""Elimination of a pencil at one point, with its derivative. Compiled.

A pencil of a network falls into small parts once the few unknowns that join them, such as the
arrivals and queues of links, are set aside (`parted`). Each part is eliminated by itself, pivoted
and dense, and leaves its Schur complement with those that join; these, the *hubs*, are eliminated
last. So a determinant of N different flows takes a time in proportion to N. Where a part is nearly
singular by itself, a small pencil is eliminated whole.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.compiling import njit

Index = NDArray[np.int64]

# --- the plan of an elimination -------------------------------------------------------------------

WHOLE, LAG_OF, ENTRIES, SECOND, CUT, INPUTS, OUTPUTS, HEAD = range(8)
"""What stands at the head of a plan: where the plan of the pencil as one part begins, where the
numbers of the delays, the number of entries, where the first plan begins, unknowns that are left
beside the ports, and ports.
"""
PARTS, HUBS, INSIDE, ROWS, COLUMNS, ORDER, PLACE, FIRST = range(8)
PIVOTS, TALL, WIDE, DOWN, RIGHT, INTO_ROW, INTO_COLUMN, END = range(8, 16)
"""What stands at the head of each of the two: numbers of parts and of hubs, whether the columns of
inputs are eliminated with the hubs, the most rows and columns of a part; then where its lists
start.

Part i has the entries ``order[first[i] : first[i + 1]]``, the hubs those of number `PARTS`, each at
`place` of a dense matrix of ``tall[i]`` rows and ``wide[i]`` columns, whose first ``pivots[i]`` are
its own; the others stand for the rows ``into_row[down[i] : down[i + 1]]`` and columns of the hubs
and ports.
"""

OVERHEAD = 60  # multiplications that a part costs beside its elimination


@njit(entry=True)
def parted(row, column, size):  # type: ignore[no-untyped-def]
    """The number of the part of each unknown, -1 for hubs: the unknowns with most neighbours, as
    many as make the elimination cheapest.
    """
    degree, best, label = np.zeros(size, np.int64), float(size) ** 3, np.full(size, -1)
    for e in range(len(row)):
        if row[e] != column[e] and row[e] < size and column[e] < size:
            degree[row[e]] += 1
            degree[column[e]] += 1
    limit = degree.max() if size else 0
    while limit > 1:
        limit = min(limit - 1, int(0.8 * limit))
        root, count = np.arange(size), np.zeros(size, np.int64)
        for e in range(len(row)):
            i, j = row[e], column[e]
            if i < size and j < size and degree[i] <= limit and degree[j] <= limit:
                i, j = _root(root, i), _root(root, j)
                root[max(i, j)] = min(i, j)
        for i in range(size):
            if degree[i] <= limit:
                root[i] = _root(root, i)
                count[root[i]] += 1
        cost = float((degree > limit).sum()) ** 3
        for number in count:
            cost += (float(number) ** 3 + OVERHEAD) if number else 0.0
        if cost < best:
            best, parts, number = cost, np.full(size, -1), 0
            for i in range(size):
                label[i] = -1
                if degree[i] <= limit:
                    if root[i] == i:
                        parts[i], number = number, number + 1
                    label[i] = parts[root[i]]
    return label


@njit(counted=False)
def _root(root, i):  # type: ignore[no-untyped-def]
    while root[i] != i:
        root[i] = root[root[i]]
        i = root[i]
    return i


def planned(
    row: Index, column: Index, lag_of: Index, ports: tuple[int, int], label: Index, cut: Index
) -> Index:
    """The plan for eliminating a bordered pencil of that pattern.

    Parameters
    ----------
    row, column, lag_of : array of int
        Of each entry: its place, unknowns before ports, and the number of its delay or -1.
    ports : tuple of int
        Inputs and outputs.
    label : array of int
        The part of each unknown, -1 for hubs.
    cut : array of int
        Hubs that are left beside the ports: all from which inputs come in, or none.
    """
    size, (m, p) = len(label), ports
    first = _plan(row, column, size, m, label, cut, inside=not len(cut))
    second = np.empty(0, np.int64)
    if label.max(initial=-1) >= 0 and size <= SMALL:
        second = _plan(row, column, size, m, np.full(size, -1), cut, inside=True)
    at = HEAD + len(lag_of)
    head = [at + len(first) if len(second) else 0, HEAD, len(row), at, len(cut), m, p]
    return np.concatenate([head, lag_of, first, second])


def _plan(
    row: Index, column: Index, size: int, m: int, label: Index, cut: Index, inside: bool
) -> Index:
    parts, last = int(label.max(initial=-1)) + 1, np.isin(np.arange(size), cut)
    hubs = np.concatenate([np.flatnonzero((label < 0) & ~last), cut]).astype(np.int64)
    own = np.bincount(label[label >= 0], minlength=parts)
    begin = np.append(0, np.cumsum(own))
    # where an unknown stands in its part, or among the hubs and ports
    place = np.empty(size, np.int64)
    inner = np.argsort(label, kind="stable")[len(hubs) :]
    place[inner] = np.arange(len(inner)) - begin[label[inner]]
    place[hubs] = np.arange(len(hubs))
    owner = [np.append(label, -1)[np.minimum(at, size)] for at in (row, column)]
    part = np.where(owner[0] >= 0, owner[0], np.where(owner[1] >= 0, owner[1], parts))
    local, into, starts, counts = [], [], [], []
    for at, of in zip((row, column), owner, strict=True):
        where = np.where(at < size, place[np.minimum(at, size - 1)] if size else 0,
                         at - size + len(hubs))  # fmt: skip
        outside = (of < 0) & (part < parts)
        most = int(where.max(initial=0)) + 1
        known, which = np.unique((part * most + where)[outside], return_inverse=True)
        start = np.searchsorted(known, np.arange(parts + 1) * most)
        where[outside] = own[part[outside]] + which - start[part[outside]]
        local.append(where)
        into.append(known % most)
        starts.append(start)
        counts.append(own + np.diff(start))
    wide = np.append(counts[1], len(hubs) + (m if inside else 0))
    order = np.argsort(part, kind="stable")
    across = (part == parts) & (local[1] >= len(hubs))
    spot = local[0] * wide[part] + local[1]
    if not inside:  # straight from a port into a hub that is left
        spot[across] = -1 - (local[0] * m + local[1] - len(hubs))[across]
    lists = [order, spot, np.searchsorted(part[order], np.arange(parts + 2)), own, counts[0], wide,
             *starts, *into]  # fmt: skip
    sizes = [parts, len(hubs), inside, *(int(count.max(initial=0)) for count in counts)]
    at = np.cumsum([END, *(len(one) for one in lists[:-1])])
    return np.concatenate([sizes, at, *lists]).astype(np.int64)


SMALL = 100  # unknowns up to which a pencil is eliminated whole where a part is nearly singular


# --- the elimination ------------------------------------------------------------------------------


LIMIT = 1e4  # a multiplier of a hub's row above this makes a part nearly singular
PREFERRED = 0.1  # of the largest, from which on the diagonal is the pivot


class Work(NamedTuple):
    """Room for an elimination, each array beside that of its derivatives.

    `down` and `across` are what is left of the columns of the cut and of the inputs; without a cut
    `across` is the transfer matrix.
    """

    late: Any  # (2, lags)
    part: Any  # (2, rows, columns)
    hubs: Any
    weight: Any
    filled: Any
    down: Any  # (2, cut + outputs, cut)
    across: Any  # (2, cut or outputs, inputs)


@njit()
def room(whole, real):  # type: ignore[no-untyped-def]
    """Room for a plan and its floats."""
    cut, m, p = whole[CUT], whole[INPUTS], whole[OUTPUTS]
    base, hubs, wide, rows, columns = whole[SECOND], 0, 0, 0, 0
    while base:
        hubs = max(hubs, whole[base + HUBS])
        wide = max(wide, whole[base + HUBS] + (m if whole[base + INSIDE] else 0))
        rows, columns = max(rows, whole[base + ROWS]), max(columns, whole[base + COLUMNS])
        base = whole[WHOLE] if base != whole[WHOLE] else 0
    tall = hubs + p
    return Work(
        np.empty((2, len(real) - 3 * whole[ENTRIES]), np.complex128),
        np.zeros((2, rows, columns), np.complex128),
        np.zeros((2, tall, wide), np.complex128),
        np.empty(max(rows, tall)), np.empty(max(columns, wide), np.int64),
        np.zeros((2, cut + p, cut), np.complex128),
        np.zeros((2, cut if cut else p, m), np.complex128),
    )  # fmt: skip


@njit(counted=False)
def eliminate(s, whole, real, work):  # type: ignore[no-untyped-def]
    """Phase, logarithm and logarithmic derivative of the determinant at s, and whether it is
    singular; what is left is in `work`, infinite where it is.

    With a cut the determinant is that of the unknowns before it.
    """
    for k in range(work.late.shape[1]):
        lag = real[len(real) - work.late.shape[1] + k]
        size = np.exp(-lag * s.real) if s.real != 0 else 1.0
        late = complex(size * np.cos(lag * s.imag), -size * np.sin(lag * s.imag))
        work.late[0, k], work.late[1, k] = late, -lag * late
    turn, log, slope, poor, singular = _eliminated(whole[SECOND], s, whole, real, work)
    if (poor or singular) and whole[WHOLE]:
        turn, log, slope, poor, singular = _eliminated(whole[WHOLE], s, whole, real, work)
    if singular:
        work.down[:], work.across[:] = np.inf, np.inf
        return 0j, -np.inf, complex(np.inf, 0.0), True
    return turn, log, slope, False


@njit(counted=False)
def _eliminated(base, s, whole, real, work):  # type: ignore[no-untyped-def]
    """The same by one of the plans."""
    parts, hubs, cut = whole[base + PARTS], whole[base + HUBS], whole[CUT]
    m, p, inside = whole[INPUTS], whole[OUTPUTS], whole[base + INSIDE] == 1
    width, across, rest = hubs + (m if inside else 0), work.across, hubs - cut
    tall, wide, pivots = (
        base + whole[base + TALL],
        base + whole[base + WIDE],
        base + whole[base + PIVOTS],
    )
    down, right = base + whole[base + DOWN], base + whole[base + RIGHT]
    into_row, into_column = base + whole[base + INTO_ROW], base + whole[base + INTO_COLUMN]
    _clear(work.hubs, hubs + p, width)
    if not inside:
        _clear(across, cut, m)
    turn, log, slope, poor = 1.0 + 0j, 0.0, 0j, False
    for i in range(parts):
        rows, columns, own = whole[tall + i], whole[wide + i], whole[pivots + i]
        _clear(work.part, rows, columns)
        _enter(base, i, columns, s, whole, real, work, work.part)
        bounded = own  # rows of hubs: those of outputs are of any size, which spoils nothing
        for k in range(rows - own):
            bounded += whole[into_row + whole[down + i] + k] < hubs
        a, b, c, steep, none = _pivots(work.part, own, rows, columns, bounded, work)
        if none:
            return 0j, -np.inf, 0j, True, True
        turn, log, slope, poor = turn * a, log + b, slope + c, poor or steep
        for k in range(rows - own):
            to = whole[into_row + whole[down + i] + k]
            for l in range(columns - own):
                at = whole[into_column + whole[right + i] + l]
                for d in range(2):
                    value = work.part[d, own + k, own + l]
                    if at < width:
                        work.hubs[d, to, at] += value
                    elif to >= rest and to < hubs:
                        across[d, to - rest, at - hubs] += value
    _enter(base, parts, width, s, whole, real, work, work.hubs)
    a, b, c, _, none = _pivots(work.hubs, rest, hubs + p, width, 0, work)
    for d in range(2):
        for i in range(cut + p):
            for j in range(cut):
                work.down[d, i, j] = work.hubs[d, rest + i, rest + j]
        if inside:
            for i in range(across.shape[1]):
                for j in range(m):
                    across[d, i, j] = work.hubs[d, rest + i, hubs + j]
    return turn * a, log + b, slope + c, poor, none


@njit(counted=False)
def _clear(matrix, rows, columns):  # type: ignore[no-untyped-def]
    for d in range(2):
        for i in range(rows):
            for j in range(columns):
                matrix[d, i, j] = 0j


@njit(counted=False)
def _enter(base, i, columns, s, whole, real, work, matrix):  # type: ignore[no-untyped-def]
    """Add the entries of a part to its matrix."""
    order, place = base + whole[base + ORDER], base + whole[base + PLACE]
    first, entries = base + whole[base + FIRST] + i, whole[ENTRIES]
    for q in range(whole[first], whole[first + 1]):
        e = whole[order + q]
        at, lag, lead = whole[place + e], whole[whole[LAG_OF] + e], real[entries + e]
        value, rate = real[e] + lead * s, complex(lead, 0.0)
        if lag >= 0:
            lagged = real[2 * entries + e]
            value += lagged * work.late[0, lag]
            rate += lagged * work.late[1, lag]
        if at < 0:
            k, l = (-1 - at) // whole[INPUTS], (-1 - at) % whole[INPUTS]
            k -= whole[base + HUBS] - whole[CUT]
            work.across[0, k, l] += value
            work.across[1, k, l] += rate
        else:
            matrix[0, at // columns, at % columns] += value
            matrix[1, at // columns, at % columns] += rate


@njit(counted=False, fastmath={"contract"})
def _pivots(matrix, size, rows, columns, bounded, work):  # type: ignore[no-untyped-def]
    """Eliminate the first rows and columns with partial pivoting: phase, logarithm and slope of
    the product of the pivots, whether a multiplier of the rows up to `bounded` is large, and
    whether a pivot is zero.

    Entries are compared in units of the largest of their row: far to the left rows of lagged terms
    are huge, and as pivots they would leave nothing of the others.
    """
    V, D, weight, filled = matrix[0], matrix[1], work.weight, work.filled
    product, log, slope, poor = 1.0 + 0j, 0.0, 0j, False
    for i in range(size if size > 1 else 0):
        most = 0.0
        for j in range(size):
            most = max(most, _length(V[i, j]))
        weight[i] = 1 / most if most > 0 else 0.0
    for k in range(size):
        best = k
        if size > 1:
            largest = _length(V[k, k]) * weight[k] / PREFERRED
            for i in range(k + 1, size):
                if V[i, k] != 0 and _length(V[i, k]) * weight[i] > largest:
                    best, largest = i, _length(V[i, k]) * weight[i]
        if best != k:
            product = -product
            weight[k], weight[best] = weight[best], weight[k]
            for j in range(k, columns):
                V[k, j], V[best, j] = V[best, j], V[k, j]
                D[k, j], D[best, j] = D[best, j], D[k, j]
        pivot = V[k, k]
        if pivot == 0:
            return 0j, -np.inf, 0j, True, True
        inverse, turn = inverted(pivot, D[k, k])
        poor = poor or not _length(inverse) < TINY
        slope += D[k, k] * inverse
        product *= pivot
        length = _length(product)
        if not 1e-50 < length < 1e50:
            log += np.log(length)
            product *= 1 / length
        count = 0  # of the columns in which the pivot's row is not empty
        for j in range(k + 1, columns):
            if V[k, j] != 0 or D[k, j] != 0:
                filled[count] = j
                count += 1
        for i in range(k + 1, rows):
            if V[i, k] == 0 and D[i, k] == 0:
                continue
            f = V[i, k] * inverse
            df = D[i, k] * inverse + V[i, k] * turn
            poor = poor or (size <= i < bounded and not _length(f) < LIMIT)
            for q in range(count):
                j = filled[q]
                V[i, j] -= f * V[k, j]
                D[i, j] -= f * D[k, j] + df * V[k, j]
    length = abs(product)
    return product * (1 / length), log + np.log(length), slope, poor, False


TINY = 1e250  # an inverse of a pivot above this is none


@njit(counted=False, fastmath={"contract"})
def inverted(value, rate):  # type: ignore[no-untyped-def]
    """One over a number, and its derivative."""
    size = 1 / (value.real * value.real + value.imag * value.imag)
    inverse = complex(value.real * size, -value.imag * size)
    return inverse, -(inverse * inverse) * rate


@njit(counted=False)
def _length(z):  # type: ignore[no-untyped-def]
    """Sum of the sizes of both parts."""
    return abs(z.real) + abs(z.imag)


@njit(entry=True)
def evaluated(s, whole, real):  # type: ignore[no-untyped-def]
    """At every s phase, logarithm and slope of the determinant, the transfer matrix and its
    derivative.
    """
    points, work = len(s), room(whole, real)
    phase, log = np.empty(points, np.complex128), np.empty(points)
    slope = np.empty(points, np.complex128)
    found = np.empty((2, points, whole[OUTPUTS], whole[INPUTS]), np.complex128)
    for i in range(points):
        phase[i], log[i], slope[i], _ = eliminate(s[i], whole, real, work)
        found[:, i] = work.across
    return phase, log, slope, found[0], found[1]


# --- balanced unknowns, and where to look ---------------------------------------------------------


SWEEPS = 100  # of the balancing at most; as a rule a few are enough
FAR = 100.0  # times the fastest that is in a loop, beyond which no crossing is looked for


@njit(entry=True)
def evened(row, column, value, size):  # type: ignore[no-untyped-def]
    """The factors, powers of two, by which balanced unknowns are multiplied to give the unknowns,
    of each system of a stack: rows and columns of the first `size` even out (Osborne's iteration).
    """
    scale = np.zeros((len(value), size))
    order = np.argsort(column, kind="mergesort")
    begin, end = (
        np.searchsorted(row, np.arange(size + 1)),
        np.searchsorted(column[order], np.arange(size + 1)),
    )
    for system in range(len(value)):
        own, power = np.abs(value[system]), scale[system]
        for _ in range(SWEEPS):
            still = True
            for i in range(size):
                across = along = 0.0
                for e in range(begin[i], begin[i + 1]):
                    if column[e] != i and column[e] < size:
                        across += own[e] * np.exp2(power[column[e]])
                for q in range(end[i], end[i + 1]):
                    e = order[q]
                    if row[e] != i and row[e] < size:
                        along += own[e] * np.exp2(-power[row[e]])
                if across > 0 and along > 0:
                    across, along = across * np.exp2(-power[i]), along * np.exp2(power[i])
                    step = np.round(0.5 * np.log2(across / along))
                    power[i] += step
                    still &= step == 0
            if still:
                break
    return np.exp2(scale)


@njit()
def balanced(matrix):  # type: ignore[no-untyped-def]
    """A square matrix evened out, without entries of rows that no other hears or that hear no
    other; and the factors of its unknowns.

    These are in no cycle, so that they make no eigenvalue, and no scaling would even them out.
    """
    size = len(matrix)
    matrix = matrix.copy()
    for _ in range(size):
        for i in range(size):
            hears = told = False
            for j in range(size):
                hears |= j != i and matrix[i, j] != 0
                told |= j != i and matrix[j, i] != 0
            if hears != told:
                own = matrix[i, i]
                matrix[i], matrix[:, i] = 0, 0
                matrix[i, i] = own
    row, column = np.nonzero(matrix)
    value = np.empty((1, len(row)))
    for e in range(len(row)):
        value[0, e] = abs(matrix[row[e], column[e]])
    scale = evened(row, column, value, size)[0]
    return matrix * scale / scale.reshape((size, 1)), scale


class Outlook(NamedTuple):
    """Frequencies between which loci have to be followed, and the modulus far out."""

    low: Any
    high: Any  # at least up to here
    most: Any  # at most up to here, if the loop does not become weak before
    far: Any  # up to here for a gain margin of a weak loop
    swings: Any  # where poles may make peaks, however narrow, and half way down these
    modulus: Any  # one of a strictly proper loop; nothing is claimed otherwise


@njit()
def outlook(poles, proper, whole, real):  # type: ignore[no-untyped-def]
    """Where to look, by the poles of A, in the unit of time; `real` are floats of the pencil."""
    fast = np.abs(poles).max() if len(poles) else 1.0
    slow, lag = fast, np.inf
    for pole in poles:
        slow = min(slow, abs(pole)) if abs(pole) > 1e-9 * fast else slow
    for k in range(3 * whole[ENTRIES], len(real)):
        lag = min(lag, real[k]) if real[k] > 0 else lag
    lag = lag if np.isfinite(lag) else 1.0
    low, high = 3e-3 * min(1.0, slow if slow > 0 else 1.0), max(12.0, 2 * fast)
    swings, count = np.empty(3 * len(poles)), 0
    for pole in poles:
        for side in (-1, 0, 1):
            if pole.imag > low and (
                side == 0 or 1e-9 * pole.imag < abs(pole.real) < 0.1 * pole.imag
            ):
                swings[count] = pole.imag + side * abs(pole.real)
                count += 1
    swings = swings[:count]
    if proper:
        return Outlook(low, high, 1e8 * high, FAR * max(12 / lag, 2 * fast), swings, 1.0)
    return Outlook(low, high, FAR * high, FAR * high, swings, np.inf)
