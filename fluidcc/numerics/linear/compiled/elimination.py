"""Sparse elimination of one matrix pattern at many frequencies, and the pencils that it is for.
Compiled.

A pencil of a network is sparse, and its pattern does not depend on the frequency. So the order of
the pivots and every multiply-and-subtract of the elimination are written down once (`plan`), and
replayed at each frequency (`replay`). Pivots are chosen for one sample matrix; where the same order
meets a small pivot, the point is flagged and the caller solves it with pivoting.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.compiling import njit

Index = NDArray[np.int64]

SLOTS, ENTRIES, ROWS, COLUMNS, PARITY = range(5)
WHERE, LAG_OF, DENSE, PIVOT, AT, BORDER, MULTIPLIER, TO, TARGET, SOURCE, CORNER, END = range(5, 17)
"""What stands at the head of a plan: sizes, and where each of its parts starts.

Entry e stands in slot ``where[e]``, which is place ``dense[e]`` of the bordered matrix, and is
``constant + lead s + lagged exp(-s delays[lag_of[e]])``; slots from `ENTRIES` on are filled by the
elimination. Step k has the pivot ``pivot[k]`` and the multipliers ``multiplier[at[k] : at[k +
1]]``, from ``border[k]`` on those of rows that are no pivots; multiplier q subtracts from
``target[to[q] : to[q + 1]]`` its multiple of ``source``. ``corner`` are the slots of the Schur
complement, -1 where it has none.
"""


THRESHOLD = 0.1  # a pivot beside the diagonal is taken where that is below this fraction of it


def plan(
    sample: NDArray[np.complex128],
    pattern: NDArray[np.bool_],
    size: int,
    row: Index,
    column: Index,
    lag_of: Index,
) -> Index:
    """The plan for eliminating the first `size` rows and columns of a matrix of that pattern.

    Parameters
    ----------
    sample : array of complex
        The matrix at a typical frequency.
    pattern : array of bool
        Entries that are not zero at every frequency.
    size : int
        How many leading rows and columns are eliminated; the rest becomes the Schur complement.
    row, column, lag_of : array of int
        Of each entry, in the order of the floats: its place, and the number of its delay or -1.
    """
    chosen = _order(sample[:size, :size])
    slot, entries = np.full(pattern.shape, -1), int(pattern.sum())
    slot[pattern] = np.arange(entries)
    steps = _steps(slot, chosen)
    order = chosen[0][np.argsort(chosen[1])]
    parity = (-1) ** int(np.triu(order[:, None] > order, 1).sum())
    dense = row * pattern.shape[1] + column
    parts = [slot[row, column], lag_of, dense, slot[*chosen], *steps, slot[size:, size:].ravel()]
    head = [int(slot.max(initial=-1)) + 1, entries, *pattern.shape, parity]
    starts = np.cumsum([END + 1, *(len(part) for part in parts)])
    return np.concatenate([head, starts, *parts])


def _order(matrix: NDArray[np.complex128]) -> Any:
    """Rows and columns of the pivots, those first that fill least."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    diagonal = np.tile(np.arange(len(matrix)), (2, 1))
    if not len(matrix):
        return diagonal
    how: Any = {"diag_pivot_thresh": THRESHOLD, "options": {"SymmetricMode": True}}
    try:
        factors = splu(csc_array(matrix), "MMD_AT_PLUS_A", **how)
    except RuntimeError:  # singular
        return diagonal
    return np.argsort([factors.perm_r, factors.perm_c])


def _steps(slot: Index, chosen: Index) -> list[Any]:
    """The elimination written down: `AT`, `BORDER`, `MULTIPLIER`, `TO`, `TARGET`, `SOURCE`; new
    entries get their slots.
    """
    open_row, open_column = (np.ones(n, bool) for n in slot.shape)
    filled, none = int(slot.max(initial=-1)) + 1, np.empty(0, np.int64)
    at, border, multiplier, lengths, target, source = [0], [], [none], [none], [none], [none]
    for i, j in chosen.T:
        open_row[i] = open_column[j] = False
        rows = np.flatnonzero(open_row & (slot[:, j] >= 0))
        columns = np.flatnonzero(open_column & (slot[i] >= 0))
        places = slot[np.ix_(rows, columns)]
        fresh = places < 0
        places[fresh] = np.arange(filled, filled + fresh.sum())
        slot[np.ix_(rows, columns)], filled = places, filled + int(fresh.sum())
        border.append(at[-1] + int((rows < len(chosen.T)).sum()))
        at.append(at[-1] + len(rows))
        multiplier.append(slot[rows, j])
        lengths.append(np.full(len(rows), len(columns)))
        target.append(places.ravel())
        source.append(np.tile(slot[i, columns], len(rows)))
    to = np.append(0, np.cumsum(np.concatenate(lengths)))
    multiplied, into, of = (np.concatenate(part) for part in (multiplier, target, source))
    return [np.array(at), np.array(border, np.int64), multiplied, to, into, of]


# --- a planned elimination replayed at one frequency, with its derivative -------------------------


LIMIT = 1e4  # a multiplier above this flags the point
TINY = 1e250  # and so does the inverse of a pivot above this


@njit()
def room(whole, real):  # type: ignore[no-untyped-def]
    """Where `eliminate` puts its numbers, each with its derivative: the slots, then the factors
    of the lags.
    """
    lags = len(real) - 3 * (whole[LAG_OF] - whole[WHERE])
    return np.zeros((whole[SLOTS] + lags, 2), np.complex128)


@njit(counted=False, fastmath={"contract"})
def _enter(s, whole, real, work):  # type: ignore[no-untyped-def]
    """The factors of the lags, and all entries."""
    slots, where, lag_of = whole[SLOTS], whole[WHERE], whole[LAG_OF]
    entries = lag_of - where
    for k in range(len(real) - 3 * entries):
        lag = real[3 * entries + k]
        size = np.exp(-lag * s.real) if s.real != 0 else 1.0
        late = complex(size * np.cos(lag * s.imag), -size * np.sin(lag * s.imag))
        work[slots + k, 0], work[slots + k, 1] = late, -lag * late
    for k in range(whole[ENTRIES], slots):
        work[k, 0] = work[k, 1] = 0j
    for e in range(entries):
        slot, lag, lead = whole[where + e], whole[lag_of + e], real[entries + e]
        value, rate = real[e] + lead * s, complex(lead, 0.0)
        if lag >= 0:
            lagged = real[2 * entries + e]
            value += lagged * work[slots + lag, 0]
            rate += lagged * work[slots + lag, 1]
        work[slot, 0], work[slot, 1] = value, rate


@njit(counted=False, fastmath={"contract"})
def eliminate(s, whole, real, work):  # type: ignore[no-untyped-def]
    """Eliminate one system at s, `real` its floats; whether a multiplier is large, so that the
    point has to be solved with pivoting.

    What is left of the entries stands in `work`.
    """
    pivot, at, border = whole[PIVOT], whole[AT], whole[BORDER]
    multiplier, to, target, source = whole[MULTIPLIER], whole[TO], whole[TARGET], whole[SOURCE]
    _enter(s, whole, real, work)
    poor = False
    for k in range(at - pivot):
        inverse, turn = inverted(work[whole[pivot + k], 0], work[whole[pivot + k], 1])
        poor = poor or not _length(inverse) < TINY
        for q in range(whole[at + k], whole[at + k + 1]):
            place = whole[multiplier + q]
            factor = work[place, 0] * inverse
            rate = work[place, 1] * inverse + work[place, 0] * turn
            if q < whole[border + k]:  # rows of outputs are of any size, which spoils nothing
                poor = poor or not _length(factor) < LIMIT
            for o in range(whole[to + q], whole[to + q + 1]):
                into, of = whole[target + o], whole[source + o]
                work[into, 1] -= rate * work[of, 0] + factor * work[of, 1]
                work[into, 0] -= factor * work[of, 0]
    return poor


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


@njit(counted=False)
def determinant(whole, work):  # type: ignore[no-untyped-def]
    """Phase and logarithm of the product of the pivots, and its logarithmic derivative, after
    `eliminate`.
    """
    product, log, slope = complex(whole[PARITY], 0.0), 0.0, 0j
    for k in range(whole[PIVOT], whole[AT]):
        value, rate = work[whole[k], 0], work[whole[k], 1]
        slope += rate * inverted(value, rate)[0]
        product *= value
        length = _length(product)
        if not 1e-50 < length < 1e50:
            log += np.log(length)
            product *= 1 / length
    length = abs(product)
    return product * (1 / length), log + np.log(length), slope


@njit(entry=True)
def pivoted(s, whole, real, ratio, rate):  # type: ignore[no-untyped-def]
    """The same with partial pivoting: phase, logarithm and slope of the determinant, and whether it
    is singular.

    Entries are compared in units of the largest of their row: far to the left rows of lagged terms
    are huge, and as pivots they would leave nothing of the others. The Schur complement and its
    derivative come in `ratio` and `rate`, infinite where it is.
    """
    turn, log, total = 1.0 + 0j, 0.0, 0j
    rows, columns = whole[ROWS], whole[COLUMNS]
    size, entries = whole[AT] - whole[PIVOT], whole[LAG_OF] - whole[WHERE]
    V = np.zeros((rows, columns), np.complex128)
    D = np.zeros((rows, columns), np.complex128)
    weight, filled = np.zeros(rows), np.empty(columns, np.int64)
    for e in range(entries):
        place, lag_of = whole[whole[DENSE] + e], whole[whole[LAG_OF] + e]
        i, j = place // columns, place % columns
        V[i, j] = real[e] + real[entries + e] * s
        D[i, j] = real[entries + e]
        if lag_of >= 0:
            lag = real[3 * entries + lag_of]
            late = real[2 * entries + e] * np.exp(-s * lag)
            V[i, j] += late
            D[i, j] -= lag * late
        if j < size:
            weight[i] = max(weight[i], abs(V[i, j]))
    for i in range(size):
        weight[i] = 1 / weight[i] if weight[i] > 0 else 0.0
    for k in range(size):
        best, largest = k, abs(V[k, k]) * weight[k]
        for i in range(k + 1, size):
            if V[i, k] != 0 and abs(V[i, k]) * weight[i] > largest:
                best, largest = i, abs(V[i, k]) * weight[i]
        if V[best, k] == 0:
            ratio[:] = rate[:] = complex(np.inf, np.inf)
            return 0j, -np.inf, complex(np.inf, 0.0), True
        if best != k:
            turn = -turn
            weight[k], weight[best] = weight[best], weight[k]
            for j in range(columns):
                V[k, j], V[best, j] = V[best, j], V[k, j]
                D[k, j], D[best, j] = D[best, j], D[k, j]
        turn *= V[k, k] / abs(V[k, k])
        log += np.log(abs(V[k, k]))
        total += D[k, k] / V[k, k]
        count = 0  # of the columns in which the pivot's row is not empty
        for j in range(k + 1, columns):
            if V[k, j] != 0 or D[k, j] != 0:
                filled[count] = j
                count += 1
        for i in range(k + 1, rows):
            if V[i, k] == 0 and D[i, k] == 0:
                continue
            f = V[i, k] / V[k, k]
            df = (D[i, k] - f * D[k, k]) / V[k, k]
            for j in filled[:count]:
                V[i, j] -= f * V[k, j]
                D[i, j] -= f * D[k, j] + df * V[k, j]
    for i in range(rows - size):
        for j in range(columns - size):
            ratio[i, j], rate[i, j] = V[size + i, size + j], D[size + i, size + j]
    return turn, log, total, False


@njit(entry=True)
def replay(s, whole, real):  # type: ignore[no-untyped-def]
    """Eliminate one system at every s.

    Returns phase and logarithm of the product of the pivots, its logarithmic derivative, the
    entries of the Schur complement and their derivatives, and a flag where a multiplier between
    pivots was large.
    """
    points, corner = len(s), whole[whole[CORNER] : whole[END]]
    phase, size_log = np.empty(points, np.complex128), np.empty(points)
    rate, poor = np.empty(points, np.complex128), np.empty(points, np.bool_)
    block = np.zeros((points, len(corner)), np.complex128)
    block_rate = np.zeros((points, len(corner)), np.complex128)
    work = room(whole, real)
    for i in range(points):
        poor[i] = eliminate(s[i], whole, real, work)
        phase[i], size_log[i], rate[i] = determinant(whole, work)
        for e in range(len(corner)):
            if corner[e] >= 0:
                block[i, e], block_rate[i, e] = work[corner[e], 0], work[corner[e], 1]
    return phase, size_log, rate, block, block_rate, poor


# --- bordered pencils in their own unit of time, balanced, and where to look ----------------------


POLES = 24  # states up to which the poles of A tell where the loci have to be followed
SWEEPS = 100  # of the balancing at most; as a rule a few are enough
FAR = 100.0  # times the fastest that is in a loop, beyond which no crossing is looked for


class Outlook(NamedTuple):
    """Frequencies between which loci have to be followed, and the modulus far out."""

    low: Any
    high: Any  # at least up to here
    most: Any  # at most up to here, if the loop does not become weak before
    far: Any  # up to here for a gain margin of a weak loop
    swings: Any  # where poles may make peaks, however narrow, and half way down these
    modulus: Any  # one of a strictly proper loop; nothing is claimed otherwise


@njit(entry=True)
def framed(A, B, C, D, delays, times):  # type: ignore[no-untyped-def]
    """The bordered pencils of a stack but for s and the ones, the factors of the lags in the
    columns of the channels.

    Time is in units of `times`; zeros there are replaced, see `_unit`. A diagonal similarity on (x,
    z) evens out rows and columns. Returns the pencils, and the factors (powers of two) by which
    balanced unknowns are multiplied to give the unknowns.
    """
    systems, n, k = A.shape[0], A.shape[1], delays.shape[1]
    m, p = B.shape[2] - k, C.shape[1] - k
    inner = n + k
    frame, scale = np.empty((systems, inner + p, inner + m)), np.ones((systems, inner))
    for system in range(systems):
        if times[system] == 0:
            times[system] = _unit(A[system], B[system], C[system], delays[system])
        time, out = times[system], frame[system]
        for i in range(inner + p):
            row = i - n if i < inner else i - inner  # of C and D: outputs come first there
            row += p if n <= i < inner else 0
            for j in range(inner + m):
                column = m + j - n if j < inner else j - inner
                if i < n:
                    number = -time * (A[system, i, j] if j < n else B[system, i, column])
                else:
                    number = C[system, row, j] if j < n else D[system, row, column]
                    number = -number if i < inner else number
                out[i, j] = number
        evened(out, inner, scale[system])
    return frame, scale


@njit()
def _unit(A, B, C, delays):  # type: ignore[no-untyped-def]
    """The longest delay; without delays one over the fastest that A, or of integrators alone A
    with its ports closed, can be: the spectral radius in absolute values, which no unit changes.
    """
    if len(delays):
        return delays.max()
    size = np.abs(A).astype(np.complex128)
    fastest = np.abs(np.linalg.eigvals(size)).max() if len(A) else 0.0
    if fastest == 0 and len(A) and B.shape[1] == C.shape[0]:
        for i in range(len(A)):
            for j in range(len(A)):
                for l in range(B.shape[1]):
                    size[i, j] += abs(B[i, l] * C[l, j])
        fastest = np.abs(np.linalg.eigvals(size)).max()
    return 1 / fastest if fastest > 0 else 1.0


@njit(entry=True)
def evened(matrix, size, scale):  # type: ignore[no-untyped-def]
    """Osborne's iteration by powers of two on the first rows and columns; the rest goes along.

    The factors are put into `scale`, which is all ones.
    """
    for _ in range(SWEEPS):
        still = True
        for i in range(size):
            row = column = 0.0
            for j in range(size):
                if j != i:
                    row += abs(matrix[i, j])
                    column += abs(matrix[j, i])
            if not (row > 0 and column > 0):
                continue
            step = np.exp2(np.round(0.5 * np.log2(row / column)))
            if step == 1.0:
                continue
            still = False
            scale[i] *= step
            for j in range(size):
                if j != i:
                    matrix[i, j] /= step
                    matrix[j, i] *= step
        if still:
            break
    for i in range(size):
        for j in range(size, matrix.shape[1]):
            matrix[i, j] /= scale[i]
        for j in range(size, matrix.shape[0]):
            matrix[j, i] *= scale[i]


@njit()
def balanced(matrix, scale):  # type: ignore[no-untyped-def]
    """A square matrix evened out, without entries of rows that no other hears or that hear no
    other.

    These are in no cycle, so that they make no eigenvalue, and no scaling would even them out.
    """
    for _ in range(len(matrix)):
        for i in range(len(matrix)):
            hears = told = False
            for j in range(len(matrix)):
                hears |= j != i and matrix[i, j] != 0
                told |= j != i and matrix[j, i] != 0
            if hears != told:
                own = matrix[i, i]
                matrix[i], matrix[:, i] = 0, 0
                matrix[i, i] = own
    evened(matrix, len(matrix), scale)


@njit()
def outlook(frame, states, m, real):  # type: ignore[no-untyped-def]
    """Where to look, by the poles of A, in the unit of time; `real` are the floats of the
    pencil, delays last.
    """
    inner = frame.shape[1] - m
    poles = _poles(frame, states)
    sizes = np.abs(poles)
    fast = sizes.max() if states else 1.0
    slow = fast
    for size in sizes:
        slow = min(slow, size) if size > 1e-9 * fast else slow
    lag = real[len(real) - (inner - states) :].min() if inner > states else 1.0
    proper = not frame[inner:, inner:].any()
    proper &= not (frame[inner:, states:inner].any() and frame[states:inner, inner:].any())
    low, high = 3e-3 * min(1.0, slow if slow > 0 else 1.0), max(12.0, 2 * fast)
    swings, count = np.empty(3 * states), 0
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


@njit()
def _poles(frame, states):  # type: ignore[no-untyped-def]
    """Eigenvalues of A, which stands with another sign in the first rows and columns; of a large
    one, its diagonal.
    """
    poles, single = np.zeros(states, np.complex128), True
    for i in range(states):
        poles[i] = -frame[i, i]
        for j in range(states):
            single &= i == j or frame[i, j] == 0
    if single or states > POLES:
        return poles
    return np.linalg.eigvals(-frame[:states, :states].astype(np.complex128))
