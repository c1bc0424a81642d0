"""The interval map of binary feedback, compiled: all flows go up a step, or down one if the link
was over its capacity.

Flows are kept in blocks of equal exponents, so that the loops over them hold no branches and no
general powers where the exponents are simple. Steps that are no powers are tapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import numbers, shown
from fluidcc.base.errors import InvalidInput
from fluidcc.numerics.compiling import njit
from fluidcc.numerics.tape import Tape, run
from fluidcc.papers.binomial.rational import as_fraction


def columns_of(
    steps: Mapping[str, Any], n: Any, initial: Any, floor: Any, capacity: Any, exact: bool
) -> dict[str, NDArray[Any]]:
    """One array a parameter, one value a class of flows; with `exact` also those of Fractions.

    What `steps` has is k, l, lam and sigma, or the number of the tapes of its "steps".
    """
    given = {**steps, "n": n, "floor": floor}
    if initial is not None:
        given["initial"] = initial
    read = {
        name: floats(v, name) if exact else numbers(v, name, "finite numbers")
        for name, v in given.items()
    }
    try:
        _, *spread = np.broadcast_arrays(np.zeros(1), *read.values())
    except ValueError:
        raise InvalidInput(
            f"{', '.join(steps)}, n, initial and floor have lengths that do not fit together"
        ) from None
    shape = spread[0].shape
    if len(shape) != 1 or shape == (0,):
        raise InvalidInput(
            f"the parameters have shape {shape}; give numbers, or one value a class of flows"
        )
    columns = {name: v.astype(float) for name, v in zip(read, spread, strict=True)}
    if not np.all((columns["n"] >= 1) & (columns["n"] % 1 == 0)):
        raise InvalidInput(f"n is {shown(n)}; give whole numbers of at least 1")
    if initial is None:
        limit = as_fraction(capacity, "the capacity") if exact else float(capacity)
        given["initial"] = share = limit / int(columns["n"].sum())
        columns["initial"] = np.full(shape, float(share))
    _check_columns(columns, floats(capacity))
    if exact:
        for name in ("lam", "sigma", "initial"):
            fractions = np.frompyfunc(partial(as_fraction, what=name), 1, 1)
            flat = np.broadcast_to(np.asarray(given[name], dtype=object), shape)
            columns[f"exact {name}"] = fractions(flat)
    return columns


def floats(value: Any, what: str = "a parameter") -> Any:
    """Numbers for texts and Fractions."""
    try:
        return np.vectorize(lambda v: float(as_fraction(v, what)), otypes=[float])(
            np.asarray(value, dtype=object)
        )
    except OverflowError:
        raise InvalidInput(f"{what} is {shown(value)}; give numbers") from None


def _check_columns(columns: dict[str, NDArray[Any]], capacity: Any) -> None:
    if not (np.isfinite(capacity) and capacity > 0):
        raise InvalidInput(f"the capacity is {capacity}, but must be positive")
    for name, v in columns.items():
        wrong = ~np.isfinite(v)
        if name in ("lam", "sigma", "initial"):
            wrong |= v <= 0
        if np.any(wrong):
            raise InvalidInput(
                f"{name} is {v[wrong][0]:g}, but must be finite"
                + ("" if name in "kl" else ", positive")
            )


# --- all flows go up a step, or down one if the link was over its capacity ------------------------


FELL = -1
"""What `advance` returns if a rate fell to zero or below, or is no finite number."""

_jit: Any = njit(entry=True)


@_jit
def move(x: Any, by: Any, sign: float, p: float) -> None:  # pragma: no cover - compiled
    """Add sign*by*x**p to x, in one pass, and without a general power where there is a simpler
    one.
    """
    m = len(x)
    if p == 0.0:
        for i in range(m):
            x[i] += sign * by[i]
    elif p == 1.0:
        for i in range(m):
            x[i] += sign * by[i] * x[i]
    elif p == -1.0:
        for i in range(m):
            x[i] += sign * by[i] / x[i]
    elif p == 0.5:
        for i in range(m):
            x[i] += sign * by[i] * np.sqrt(x[i])
    elif p == -0.5:
        for i in range(m):
            x[i] += sign * by[i] / np.sqrt(x[i])
    else:
        for i in range(m):
            x[i] += sign * by[i] * x[i] ** p


class Flows(NamedTuple):
    """What does not change: ends of the blocks of equal exponents, of each class its parameters,
    and the capacity.

    Without exponents a class has the number of a rule, and each rule two places, of its steps up
    and down: where the tape begins and ends in the code, its first register, and its result's.
    """

    blocks: Any
    k: Any
    l: Any
    lam: Any
    sigma: Any
    count: Any
    floor: Any
    capacity: float
    rule: Any
    places: Any
    code: Any
    registers: Any


def flows_of(columns: Mapping[str, NDArray[Any]], capacity: float, tapes: Sequence[Tape]) -> Flows:
    """The map's constants; the tapes are those of each rule's steps up and down."""
    count, none = columns["n"], np.zeros(len(columns["n"]))
    k, l, lam, sigma = (columns.get(name, none) for name in ("k", "l", "lam", "sigma"))
    powers = np.stack([k, l], axis=1)
    cuts = np.flatnonzero(np.any(powers[1:] != powers[:-1], axis=1)) + 1
    blocks = np.array([0, *cuts, len(count)], dtype=np.int64)
    places, code, registers = [], [np.empty(0, np.int64)], [np.empty(0)]
    for tape in tapes:
        first, start = sum(map(len, code)), sum(map(len, registers))
        code.append(tape.instructions.ravel())
        room = np.zeros(1 + len(tape.constants) + len(tape.instructions))
        room[1 : 1 + len(tape.constants)] = tape.constants
        registers.append(room)
        places.append((first, first + len(code[-1]), start, start + int(tape.outputs[0])))
    return Flows(
        blocks, k, l, lam, sigma, count, columns["floor"], capacity,
        columns.get("steps", none).astype(np.int64), np.array(places, np.int64).reshape(-1, 4),
        np.concatenate(code), np.concatenate(registers),
    )  # fmt: skip


@_jit
def _total(x: Any, count: Any) -> float:  # pragma: no cover - compiled
    """Sum of count*x, in four parts that do not wait for one another."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = len(x) - len(x) % 4
    for i in range(0, whole, 4):
        a += count[i] * x[i]
        b += count[i + 1] * x[i + 1]
        c += count[i + 2] * x[i + 2]
        d += count[i + 3] * x[i + 3]
    for i in range(whole, len(x)):
        a += count[i] * x[i]
    return (a + b) + (c + d)


@_jit
def _after(x: float, i: int, flows: Flows, down: bool) -> float:  # pragma: no cover - compiled
    """The rate of class `i` after a step up or down from `x`."""
    if len(flows.places) == 0:
        if down:
            return x - flows.sigma[i] * x ** flows.l[i]
        return x + flows.lam[i] * x ** -flows.k[i]
    first, last, start, result = flows.places[2 * flows.rule[i] + down]
    flows.registers[start] = x
    run(flows.code, first, last, flows.registers, start, 0.0)
    return flows.registers[result]


@_jit
def _step(x: Any, flows: Flows, down: bool) -> None:  # pragma: no cover - compiled
    """Every flow a step up, or every flow a step down."""
    if len(flows.places) > 0:
        for i in range(len(x)):
            x[i] = _after(x[i], i, flows, down)
        return
    for j in range(len(flows.blocks) - 1):
        first, last = flows.blocks[j], flows.blocks[j + 1]
        if down:
            move(x[first:last], flows.sigma[first:last], -1.0, flows.l[first])
        else:
            move(x[first:last], flows.lam[first:last], 1.0, -flows.k[first])


@_jit
def _keep_up(x: Any, floor: Any) -> bool:  # pragma: no cover - compiled
    """Hold every rate at its floor or above; whether all are positive numbers then."""
    good = True
    for i in range(len(x)):
        x[i] = max(x[i], floor[i])
        good = good and 0.0 < x[i] < np.inf
    return good


@_jit
def advance(
    x: Any, flows: Flows, pending: Any, steps: int, keep: Any, sums: Any, chance: int,
    missed: float, rng: Any,
) -> int:  # fmt: skip  # pragma: no cover - compiled
    """Take `steps` intervals from the rates `x`, in place.

    `pending` is the feedback on its way, oldest first. `keep` (steps, flows) gets the rates of each
    interval if it has rows. `sums` gets what was sent, lost and carried, the intervals over
    capacity, and the decreases of any flow. `chance` is 0 if all flows hear of an overload, 1 if
    one does, drawn by rates; each then misses it with the probability `missed`. Returns the
    intervals taken, or `FELL`.
    """
    for step in range(steps):
        total = _total(x, flows.count)
        over = total > flows.capacity
        sums[0] += total
        sums[1] += max(total - flows.capacity, 0.0)
        sums[2] += min(total, flows.capacity)
        sums[3] += over
        if len(keep) > 0:
            keep[step, :] = x
        heard = over
        if len(pending) > 0:
            heard = pending[0] > 0
            for i in range(len(pending) - 1):
                pending[i] = pending[i + 1]
            pending[-1] = over
        if not heard or (chance == 0 and missed == 0.0):
            _step(x, flows, heard)
            sums[4] += heard
        else:
            sums[4] += _some(x, flows, total, chance, missed, rng)
        powers = len(flows.places) == 0
        if (heard or not powers) and not _keep_up(x, flows.floor):  # no power falls in an increase
            return FELL
    return steps


@_jit
def _some(
    x: Any, flows: Flows, total: float, chance: int, missed: float, rng: Any
) -> int:  # pragma: no cover - compiled
    """An interval in which some flows hear of the overload and go down, and the others go up;
    how many went down.
    """
    count = flows.count
    left = rng.random() * total if chance == 1 else 0.0
    fell = 0
    for i in range(len(x)):
        hit = chance == 0 or (0.0 <= left < count[i] * x[i])
        left -= count[i] * x[i] if chance == 1 else 0.0
        if hit and missed > 0.0:
            hit = rng.random() >= missed
        x[i] = _after(x[i], i, flows, hit)
        fell += hit
    return fell


@_jit
def find_cycle(
    x: Any, flows: Flows, pending: Any, mark: Any, mark_pending: Any, counts: Any, limit: int,
    rng: Any,
) -> int:  # fmt: skip  # pragma: no cover - compiled
    """Brent's search for the cycle that the map, in floating point, runs into; `x` ends on it.

    It goes on where the call before has left `mark`, `mark_pending` and `counts`: the power of two
    that is tried, the intervals since the mark (at first 1 and 0), and the intervals taken. Returns
    the period; 0 if there was none within `limit` intervals of this call, `FELL` if a rate fell to
    zero or below.
    """
    keep, sums = np.empty((0, len(x))), np.zeros(5)
    for _ in range(limit):
        if counts[1] == counts[0]:
            mark[:], mark_pending[:] = x, pending
            counts[0] *= 2
            counts[1] = 0
        if advance(x, flows, pending, 1, keep, sums, 0, 0.0, rng) == FELL:
            return FELL
        counts[1] += 1
        counts[2] += 1
        if np.array_equal(x, mark) and np.array_equal(pending, mark_pending):
            return int(counts[1])
    return 0
