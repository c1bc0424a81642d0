"""Sampled-data loops with delays: the exact map over one sampling period and its eigenvalues.

Between samples the plant is continuous, and what the controllers send is held::

    x'(t) = A x(t) + sum_j B_j r_j(t - input_delays[j]),       r(t) = r_k  for  k h <= t < (k + 1) h
    m_k,i = C_i x(k h - output_delays[i]),   or its mean over the period before that time where averaged[i]
    r_k = H xi_k + J m_k,                    xi_(k+1) = F xi_k + G m_k

A discrete rate law (a state that is updated every period by measured delays, with rectangular averaging) has xi as its
states; an AQM that samples its queue is the same with the queue in x. No delay need be a multiple of h: the input
changes within a period at k h + d, and matrix exponentials take the plant exactly from one change to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fluidcc.errors import InvalidInput

__all__ = ["SampledLoop"]

Matrix = NDArray[np.float64]
Past = dict[tuple[str, int], Matrix]  # ("x" or "r", periods back) -> the matrix that multiplies it


@dataclass(frozen=True)
class SampledLoop:
    """A sampled-data loop, see the module for the equations.

    Parameters
    ----------
    period : float
        h [s], positive.
    A, B, C : array_like
        The plant: shapes (n, n), (n, m), (p, n).
    F, G, H, J : array_like
        The controllers: shapes (c, c), (c, p), (m, c), (m, p).
    input_delays, output_delays : sequence of float
        m and p delays [s], none negative.
    averaged : sequence of bool, optional
        Which measurements are means over one period; none by default.

    Raises
    ------
    InvalidInput
        Shapes that do not fit, a period that is not positive, a negative delay.
    """

    period: float
    A: ArrayLike
    B: ArrayLike
    C: ArrayLike
    F: ArrayLike
    G: ArrayLike
    H: ArrayLike
    J: ArrayLike
    input_delays: Sequence[float]
    output_delays: Sequence[float]
    averaged: Sequence[bool] = ()
    _shape: tuple[int, int, int, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n, m = np.shape(np.atleast_2d(np.asarray(self.B, float)))
        p, c = len(np.atleast_2d(np.asarray(self.C, float))), np.atleast_2d(np.asarray(self.F, float)).shape[0]
        if np.size(self.F) == 0:
            c = 0
        wanted = {"A": (n, n), "B": (n, m), "C": (p, n), "F": (c, c), "G": (c, p), "H": (m, c), "J": (m, p)}
        for name, shape in wanted.items():
            value = np.asarray(getattr(self, name), float)
            if value.size != shape[0] * shape[1] or not np.isfinite(value).all():
                raise InvalidInput(f"{name} must be finite and of shape {shape}, got shape {value.shape}")
            object.__setattr__(self, name, value.reshape(shape))
        averaged = tuple(bool(a) for a in self.averaged) or (False,) * p
        delays = (*self.input_delays, *self.output_delays)
        if (len(self.input_delays), len(self.output_delays), len(averaged)) != (m, p, p):
            raise InvalidInput(f"{m} input delays, {p} output delays and {p} flags of averaging are needed")
        if not self.period > 0 or not all(d >= 0 and np.isfinite(d) for d in delays):
            raise InvalidInput(f"the period {self.period} must be positive and no delay negative, got {delays}")
        object.__setattr__(self, "averaged", averaged)
        object.__setattr__(self, "_shape", (n, m, p, c))

    @cached_property
    def monodromy(self) -> Matrix:
        """The map over one period of (x_k, x_(k-1), ..., xi_k, r_(k-1), r_(k-2), ...), square."""
        n, m, p, c = self._shape
        measured = [self._measurement(i) for i in range(p)]
        advance = self._at(self.period, 0)  # x_(k+1); may use r_k
        back = {kind: max([-j for q in (*measured, advance) for (k, j) in q if k == kind] or [0]) for kind in "xr"}
        size = (back["x"] + 1) * n + c + back["r"] * m
        xi = (back["x"] + 1) * n

        def place(kind: str, shift: int) -> slice:
            if kind == "x":
                return slice(-shift * n, (-shift + 1) * n)
            return slice(xi + c + (-shift - 1) * m, xi + c - shift * m)

        M = np.zeros((p, size))
        for i, parts in enumerate(measured):
            for (kind, shift), row in parts.items():
                M[i : i + 1, place(kind, shift)] += row
        R = np.asarray(self.J) @ M
        R[:, xi : xi + c] += np.asarray(self.H)
        out = np.zeros((size, size))
        for (kind, shift), part in advance.items():
            if (kind, shift) == ("r", 0):
                out[:n] += part @ R
            else:
                out[:n, place(kind, shift)] += part
        out[n:xi, : xi - n] = np.eye(xi - n)
        out[xi : xi + c] = np.asarray(self.G) @ M
        out[xi : xi + c, xi : xi + c] += np.asarray(self.F)
        if back["r"]:
            out[xi + c : xi + c + m] = R
            out[xi + c + m :, xi + c : size - m] = np.eye(size - xi - c - m)
        return out

    @cached_property
    def multipliers(self) -> NDArray[np.complex128]:
        """Eigenvalues of the monodromy matrix by falling modulus."""
        values = np.linalg.eigvals(self.monodromy).astype(complex)
        return values[np.argsort(-np.abs(values), kind="stable")]

    @property
    def spectral_radius(self) -> float:
        """Below one the loop is stable."""
        return float(np.abs(self.multipliers).max(initial=0.0))

    @property
    def stable(self) -> bool:
        """Whether all multipliers lie inside the unit circle, by more than rounding."""
        return self.spectral_radius < 1 - 1e-12

    @property
    def decay_rate(self) -> float:
        """The rate of the slowest mode [1/s], positive if it decays; comparable to minus a rightmost root."""
        return float(-np.log(max(self.spectral_radius, np.finfo(float).tiny)) / self.period)

    def _flow(self, span: float) -> tuple[Matrix, Matrix, Matrix]:
        """exp(A span), its integral from 0, and the integral of that."""
        from scipy.linalg import expm

        n = self._shape[0]
        big = np.zeros((3 * n, 3 * n))
        big[:n, :n] = np.asarray(self.A)
        big[:n, n : 2 * n] = big[n : 2 * n, 2 * n :] = np.eye(n)
        whole = expm(big * span)
        return whole[:n, :n], whole[:n, n : 2 * n], whole[:n, 2 * n :]

    def _at(self, sigma: float, shift: int, integral: bool = False) -> Past:
        """x (or its integral since the period's start) at `sigma` into period k + shift, by what it depends on."""
        m = self._shape[1]
        B, h = np.asarray(self.B), self.period
        free = self._flow(sigma)
        kind = 1 if integral else 0
        out: Past = {("x", shift): free[kind]}
        for j, delay in enumerate(self.input_delays):
            whole, rest = _split(delay, h)
            late = self._flow(max(sigma - rest, 0.0))[kind + 1] if sigma > rest else np.zeros_like(free[0])
            for back, gain in ((whole + 1, free[kind + 1] - late), (whole, late)):
                column = np.zeros((len(B), m))
                column[:, j] = gain @ B[:, j]
                if column.any():
                    key = ("r", shift - back)
                    out[key] = out[key] + column if key in out else column
        return out

    def _measurement(self, i: int) -> Past:
        h = self.period
        C = np.asarray(self.C)[i : i + 1]
        whole, rest = _split(float(self.output_delays[i]), h)
        if not self.averaged[i]:
            return _scaled(self._at(h - rest, -whole - 1) if rest > 0 else self._at(0.0, -whole), C)
        parts = [(self._at(h - rest, -whole - 1, True), 1.0)]
        if rest > 0:
            parts += [(self._at(h, -whole - 2, True), 1.0), (self._at(h - rest, -whole - 2, True), -1.0)]
        total: Past = {}
        for part, sign in parts:
            for key, value in _scaled(part, sign / h * C).items():
                total[key] = total[key] + value if key in total else value
        return total


def _scaled(parts: Past, gain: Matrix) -> Past:
    return {key: gain @ value for key, value in parts.items()}


def _split(delay: float, period: float) -> tuple[int, float]:
    """Whole periods and the rest; a rest of rounding is none."""
    whole = int(np.floor(delay / period + 1e-9))
    rest = delay - whole * period
    return whole, rest if rest > 1e-9 * period else 0.0
