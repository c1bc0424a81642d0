"""What moves at a root: rates by class of flows, and whether they rise together or shift from
one to the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.wiring import Matrices, deviations, whole, wire
from fluidcc.base.errors import SolverError
from fluidcc.base.tables import InTable

if TYPE_CHECKING:
    from fluidcc.analysis.point import Point

Complex = NDArray[np.complex128]


def _weighted(m: Matrices, s: complex) -> Any:
    """All matrices in one, where its ports begin and end, and the factors of its rows in P(s): -1
    of states, 1 of ports, -exp(-s tau) of channels.
    """
    M, n, K = whole(m)
    return M, n, K, np.concatenate((-np.ones(n), np.ones(K - n), -np.exp(-s * m.delays)))


def _pencil(m: Matrices, s: complex) -> tuple[Complex, Complex]:
    """P(s) on states, ports and what the channels deliver, and its derivative by s.

    Its rows are (s - A, -B) of states, (C, D) of ports, (0, 1) - exp(-s tau) (C, D) of channels.
    """
    M, n, K, factor = _weighted(m, s)
    own, by_s, change = np.zeros((3, len(M)), complex)
    own[:n], own[K:], by_s[:n] = s, 1.0, 1.0
    change[K:] = -factor[K:] * m.delays
    return np.diag(own) + factor[:, None] * M, np.diag(by_s) + change[:, None] * M


def _places(m: Matrices) -> tuple[Any, Any]:
    """Where in the pencil the states and channels are, and where the ports."""
    n, p = len(m.states), len(m.inputs)
    return np.r_[:n, n + p : n + p + len(m.delays)], np.arange(n, n + p)


class Form:
    """The bilinear form left' P(s) right of two vectors that stand still, and how it changes.

    Attributes
    ----------
    by_s : complex
        Its derivative by s.
    """

    def __init__(self, m: Matrices, s: complex, left: Complex, right: Complex) -> None:
        M, n, K, factor = _weighted(m, s)
        self._left, self._right, self._s = left * factor, right, s
        self._late = -self._left[K:] * (M[K:] @ right)
        self.by_s = left[:n] @ right[:n] + self._late @ m.delays

    def by(self, d: Matrices) -> complex:
        """Its derivative where the matrices change by `d`."""
        return complex(self._left @ (whole(d)[0] @ self._right) + self._s * self._late @ d.delays)

    def root_by(self, d: Matrices) -> complex:
        """How a root moves with `d`, if this is the form of its null vectors, which stays 0."""
        return complex(-self.by(d) / self.by_s)


def _scaled(P: Complex) -> tuple[Complex, Any, Any]:
    """The pencil with rows and columns of similar size: rates are millions, queues hundredths."""
    row, column = np.ones(len(P)), np.ones(len(P))
    for _ in range(3):
        M = np.abs(P) * row[:, None] * column
        row = row / np.sqrt(_sizes(M, 1))
        M = np.abs(P) * row[:, None] * column
        column = column / np.sqrt(_sizes(M, 0))
    return P * row[:, None] * column, row, column


def _sizes(M: Any, axis: int) -> Any:
    most = M.max(axis=axis)
    return np.where(most > 0, most, 1.0)


def null_vectors(m: Matrices, s: complex) -> tuple[Complex, Complex]:
    """Left and right null vectors of P at a root."""
    rest, _ = _places(m)
    with np.errstate(all="ignore"):
        P, row, column = _scaled(_pencil(m, s)[0][np.ix_(rest, rest)])
    if not np.all(np.isfinite(P)):
        raise SolverError(f"the characteristic equation has no finite value at s = {s:.6g} 1/s")
    left, _, right = np.linalg.svd(P)
    return row * left[:, -1].conj(), column * right[-1].conj()


def newton_step(m: Matrices, s: complex) -> complex:
    """Newton's step towards a root, on the logarithm of det P: about the distance to it; 0 at
    one.
    """
    with np.errstate(all="ignore"):
        inner = np.ix_(*[_places(m)[0]] * 2)
        value, slope = _pencil(m, s)
        P, row, column = _scaled(value[inner])
        try:
            moved = np.linalg.solve(P, slope[inner] * row[:, None] * column)
            return complex(-1 / np.trace(moved))
        except np.linalg.LinAlgError:  # exactly singular: there it is
            return 0j


def polish(m: Matrices, s: complex, tolerance: float = 1e-14) -> complex:
    """The simple root next to `s`."""
    step, longest = complex(np.inf), float(m.delays.max(initial=0.0))
    unit = 1 / longest if longest > 0 else 0.0
    for _ in range(50):
        step = newton_step(m, s)
        if not np.isfinite(step):
            break
        most = 0.5 * (abs(s) + unit) if longest > 0 else np.inf
        s += step * min(1.0, most / max(abs(step), 1e-300))
        if abs(step) <= tolerance * max(1e-4 * unit, abs(s)):
            return s
    if abs(step) <= 1e-9 * max(1e-4 * unit, abs(s)):  # as near as rounding lets it
        return s
    raise SolverError(f"the root near {s:.6g} 1/s is not simple, or could not be followed")


def root_form(m: Matrices, s: complex) -> Form:
    """The form of the null vectors of P at a simple root."""
    rest, ports = _places(m)
    both = np.zeros((2, len(rest) + len(ports)), complex)
    both[:, rest] = null_vectors(m, s)
    return Form(m, s, *both)


def response(m: Matrices, s: complex) -> tuple[Complex, Complex, Complex]:
    """The transfer matrix at s, and the matrices left and right for which it is left P(s) right.

    To first order it changes as that does with both held.
    """
    rest, ports = _places(m)
    P = _pencil(m, s)[0]
    inner, row, column = _scaled(P[np.ix_(rest, rest)])
    left, right = np.zeros((2, len(ports), len(P)), complex)
    left[:, ports] = right[:, ports] = np.eye(len(ports))
    left[:, rest] = -row * np.linalg.solve(inner.T, column[:, None] * P[np.ix_(ports, rest)].T).T
    right[:, rest] = -column * np.linalg.solve(inner, row[:, None] * P[np.ix_(rest, ports)]).T
    return left @ P @ right.T, left, right.T


# --- what moves at a root -------------------------------------------------------------------------


SHIFT = 0.5
"""A mode shifts rates if their sum, over the sum of their sizes, is at most this on every link
they use.
"""


@dataclass(frozen=True)
class Mode(InTable):
    """A root and what moves with it.

    Attributes
    ----------
    root : complex
        [1/s]
    multiplicity : int
        How often it occurs: N - 1 times for the differences among N identical flows.
    rates : dict of str to complex
        Relative amplitudes of the rates by class of flows; of a class whose own flows differ, 0 on
        average.
    shifts : bool
        Rates shift from flow to flow and the links see little of it: such a mode decides how fast
        flows become fair.
    among : str
        The class of identical flows among which it shifts, or "".
    """

    root: complex
    multiplicity: int
    rates: dict[str, complex]
    shifts: bool
    among: str = ""

    _shown = ("root [1/s]", "half_life [s]", "multiplicity", "shifts", "among")

    @property
    def half_life(self) -> float:
        """Time in which it halves [s]; infinite if it does not decay."""
        return math.log(2.0) / -self.root.real if self.root.real < 0 else math.inf


def modes_of(point: Point, roots: NDArray[np.complex128]) -> tuple[Mode, ...]:
    """A mode for each of the roots, one of each conjugate pair."""
    loop = wire(point)
    alone = deviations(point)
    counts = {f.label: f.count for f in point.classes}
    found: list[Mode] = []
    for root in roots:
        if root.imag < 0 or any(abs(root - m.root) <= 1e-9 * (1 + abs(root)) for m in found):
            continue
        away = {
            name: abs(newton_step(m, complex(root)))
            for name, m in {"": loop, **alone}.items()
            if m.states
        }
        among = min(away, key=lambda name: away[name])
        if among:
            repeated = int(np.sum(np.abs(roots - root) <= 1e-9 * (1 + abs(root))))
            times = max(repeated, counts[among] - 1)
            found.append(Mode(complex(root), times, dict.fromkeys(counts, 0j), True, among))
        else:
            rates = [complex(v) for v in _rates(loop, complex(root))]
            found.append(
                Mode(complex(root), 1, dict(zip(counts, rates, strict=True)), _shifts(point, rates))
            )
    return tuple(found)


def fairness_mode(modes: Sequence[Mode]) -> Mode | None:
    """The slowest mode that shifts rates."""
    return max((m for m in modes if m.shifts), key=lambda m: m.root.real, default=None)


def _rates(m: Matrices, s: complex) -> Any:
    """Amplitudes of the rates, the largest 1."""
    rest, ports = _places(m)
    rates = _pencil(m, s)[0][np.ix_(ports, rest)] @ null_vectors(m, s)[1]
    most = rates[np.argmax(np.abs(rates))]
    return rates / most if most != 0 else rates


def _shifts(point: Point, rates: Any) -> bool:
    weight = point.count * rates
    if len(rates) < 2:
        return False
    for l in sorted({l for f in point.classes for l in f.route}):
        inside = np.array([l in f.route for f in point.classes])
        size = np.abs(weight[inside]).sum()
        if size > 0.1 * np.abs(weight).sum() and abs(weight[inside].sum()) > SHIFT * size:
            return False
    return True
