"""Delay differential equations with known solutions, for tests and benchmarks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ROOT2 = float(np.sqrt(2.0))


@dataclass(frozen=True)
class Problem:
    """An equation, its exact solution, and the times at which that is not smooth."""

    name: str
    fun: Callable[..., Any]
    span: tuple[float, float]
    history: Any
    lags: Any
    exact: Callable[[Array], Array]
    kinks: tuple[float, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def solution(self, t: Array) -> Array:
        """The exact solution, (states, times)."""
        return np.atleast_2d(self.exact(t))


# y' = -y(t - 1), y = 1: a polynomial of degree k + 1 on [k, k + 1], by exact integration


def polynomial_pieces(count: int) -> list[list[Fraction]]:
    """Coefficients in (t - k) of the solution of y' = -y(t - 1), y = 1 up to 0, on [k, k + 1]."""
    pieces, past = [], [Fraction(1)]
    for _ in range(count):
        start = sum(past, Fraction(0))  # where the piece before ended
        past = [start, *(-c / (i + 1) for i, c in enumerate(past))]
        pieces.append(past)
    return pieces


PIECES = polynomial_pieces(10)


def _decay(t: Array) -> Array:
    pieces = [[float(c) for c in piece[::-1]] for piece in PIECES]
    k = np.clip(t.astype(int), 0, 9)
    return np.array([np.polyval(pieces[i], s - i) for i, s in zip(k, t, strict=True)])


# Feldstein & Neves: y' = y(y - sqrt2 + 1) / (2 sqrt t), y = 1 up to t = 1. With w = y - sqrt2 + 1
# the delayed argument: y = sqrt t up to t = 2 (w = 1); then 2 sqrt w = sqrt t + 2 - sqrt2 up to w =
# 2; then separation of variables again.

_B = 1 - 1 / ROOT2
_G = np.sqrt(ROOT2 - 1)
FELDSTEIN_NEVES_KINKS = (2.0, 4 * (ROOT2 - 1 + 1 / ROOT2) ** 2)


def _third(s: Array) -> Array:
    """sqrt(t) up to a constant, on the third piece, as a function of s = sqrt(w)."""
    v = s / 2 + _B
    result: Array = 4 * np.log(v**2 + _G**2) - 8 * _B / _G * np.arctan(v / _G)
    return result


def feldstein_neves(t: Array) -> Array:
    """The exact solution on its first three pieces, up to t = 14.8."""
    s = np.full_like(t, ROOT2)  # Newton's method for s(t) on the third piece
    target = np.sqrt(t) - np.sqrt(FELDSTEIN_NEVES_KINKS[1]) + _third(np.array(ROOT2))
    for _ in range(30):
        s = s - (_third(s) - target) * ((s / 2 + _B) ** 2 + _G**2) / (2 * s)
    before = (np.sqrt(t) / 2 + _B) ** 2 + ROOT2 - 1
    y = np.where(t <= FELDSTEIN_NEVES_KINKS[1], before, s**2 + ROOT2 - 1)
    return np.where(t <= 2, np.sqrt(t), y)


def paul(t: Array) -> Array:
    """Exact solution of y' = y y(ln y - 1) / (t + 1), y = 1 up to 0."""
    e = np.e
    with np.errstate(invalid="ignore"):
        third = (e / (3 - np.log(t + 1))) ** e
    return np.where(t <= e - 1, t + 1, np.where(t <= e * e - 1, np.exp((t + 1) / e), third))


def switching(t: Array) -> Array:
    """Exact solution of y' = -1 - y + 2 [y(t/2) < 0], y(0) = 1, up to 2 ln 66."""
    decay = np.exp(-t)
    return np.where(
        t < 2 * np.log(2), 2 * decay - 1, np.where(t < 2 * np.log(6), 1 - 6 * decay, 66 * decay - 1)
    )  # fmt: skip


def two_lags(t: Array) -> Array:
    """Five equations with the lags 1 and 1/2, up to t = 1 (Willé and Baker, 1992, for DELSOL)."""
    e, root = np.e, np.exp(0.5)
    late = t > 0.5
    after = np.exp(t) + 2 * np.exp(t - 0.5) + (root - 2) * t + 1.5 * root - 3
    second = np.where(late, after, 2 * np.exp(t) + root - 2)
    after = np.exp(t - 0.5) - np.sin(t - 0.5) + e * (t - 0.5) + e - root + np.sin(1.0)
    third = np.where(late, after, np.exp(t + 0.5) + np.sin(1.0) + 1 - root) - np.cos(t)
    first, fourth = np.exp(t) - np.cos(t) + e, np.exp(2 * t) / 2 + e - 0.5
    return np.array([first, second, third, fourth, np.exp(t) + e - 1])


PROBLEMS = {p.name: p for p in (
    Problem("constant", lambda t, y, Z: -Z[:, 0], (0, 10), 1.0, [1.0], _decay, tuple(range(1, 10))),
    Problem(
        "vanishing",  # Neves 1975; DETEST B1: the lag touches zero at t = 1
        lambda t, y, Z: 1 - Z[:, 0], (0.1, 10), np.log,
        lambda t, y: [t - np.exp(1 - 1 / t)], np.log,
    ),
    Problem(
        "vanishing state-dependent",  # Neves 1975; DETEST D1
        lambda t, y, Z: [y[1], -Z[1, 0] * y[1] ** 2 * np.exp(1 - y[1])], (0.1, 5),
        lambda t: [np.log(t), 1 / t], lambda t, y: [t - np.exp(1 - y[1])],
        lambda t: np.array([np.log(t), 1 / t]),
    ),
    Problem(
        "Feldstein-Neves", lambda t, y, Z: Z[:, 0] / (2 * np.sqrt(t)), (1, 14), 1.0,
        lambda t, y: [t - y[0] + ROOT2 - 1], feldstein_neves, FELDSTEIN_NEVES_KINKS,
    ),
    Problem(
        "Paul",  # Applied Numerical Mathematics 9 (1992) 403-414
        lambda t, y, Z: y * Z[:, 0] / (t + 1), (0, 10), 1.0,
        lambda t, y: [t - np.log(y[0]) + 1], paul, (np.e - 1, np.e**2 - 1),
    ),
    Problem(
        "switching", lambda t, y, Z, m: -1 - y + 2 * m[0], (0, 2 * np.log(66)), 1.0,
        lambda t, y: [t / 2], switching, (2 * np.log(2), 2 * np.log(6)),
        {"switches": lambda t, y, Z: -Z[0, 0]},
    ),
    Problem(
        "switching undeclared", lambda t, y, Z: -1 - y + 2 * (Z[:, 0] < 0), (0, 2 * np.log(66)),
        1.0, lambda t, y: [t / 2], switching, (2 * np.log(2), 2 * np.log(6)),
    ),
    Problem(
        "harmonic", lambda t, y, Z: -Z[:, 0], (0, 20), lambda t: np.cos(t), [np.pi / 2], np.cos
    ),
    Problem(
        "pantograph",  # the lag is zero at the start
        lambda t, y, Z: -(Z[:, 0] ** 2), (0, 5), 1.0, lambda t, y: [t / 2], lambda t: np.exp(-t),
    ),
    Problem(
        "Tavernini",  # 1978; DETEST C: the delayed time comes back to the start, and touches it
        lambda t, y, Z: np.cos(t) * Z[:, 0], (0, 50), 1.0,
        lambda t, y: [t - y[0] + 2], lambda t: np.sin(t) + 1,
    ),
    Problem(
        "a lag in time", lambda t, y, Z: -Z[:, 0] * np.exp(-1 - 1 / (1 + t)), (0, 5),
        lambda t: np.exp(-t), lambda t, y: [1 + 1 / (1 + t)], lambda t: np.exp(-t),
    ),
    Problem(
        "two lags",
        lambda t, y, Z: np.array([Z[4, 0] + Z[2, 0], Z[0, 0] + Z[1, 1], Z[2, 0] + Z[0, 1],
                                  Z[4, 0] * Z[3, 0], Z[0, 0]]),
        (0, 1),
        lambda t: np.array([np.exp(t + 1), np.exp(t + 0.5), np.sin(t + 1), np.exp(t + 1),
                            np.exp(t + 1)]),
        [1.0, 0.5], two_lags, (0.5,),
    ),
)}  # fmt: skip


# Waltman, "A threshold model of antigen-stimulated antibody production", Theoretical Immunology 8
# (1978) 437-453. Cells act a threshold after they were met: the integral of y1 y2 + y3 from y5(t)
# to t is what it was at t0, and that of 1e-12 + y2 + y3 from y6(t) to t what it was at t1.

WALTMAN_TIMES = (35.0, 197.0)
WALTMAN_START = np.array([5e-6, 1e-15, 0, 0, 0, 0])


def waltman(t: float, y: Array, Z: Array, on: Any) -> Array:
    """Antigen, cells, complexes, antibodies, delayed times; `on`: whether t0, t1 have passed."""
    r, s, alpha, beta, gamma = 5e4, 1e5, 1.8, 20.0, 0.002
    past, far = Z[:, 0], Z[:, 1]
    met, bound = r * y[0] * y[1], s * y[0] * y[3]
    cells = -met + alpha * r * past[0] * past[1] * on[0]
    antibodies = -bound - gamma * y[3] + beta * r * far[0] * far[1] * on[1]
    first = on[0] * (y[0] * y[1] + y[2]) / (past[0] * past[1] + past[2])
    second = on[1] * (1e-12 + y[1] + y[2]) / (1e-12 + far[1] + far[2])
    return np.array([-met - bound, cells, met, antibodies, first, second])


def waltman_lags(t: float, y: Array) -> list[float]:
    """The times since the cells that act now were met."""
    return [t - y[4], t - y[5]]


def marked(function: Callable[..., Any], **attributes: Any) -> Callable[..., Any]:
    """The function, with what `solve_dde` reads of an event."""
    for name, value in attributes.items():
        setattr(function, name, value)
    return function
