"""Dimension check by rescaling: change the unit of time, or of data, and see by what power an expression changes.

It needs no rules for Max, Piecewise or symbolic exponents. Packets are a count, as in 'one loss for every lost packet':
they carry no dimension of their own, and ``bit/packet`` is the dimension of a length in bits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sympy import Add, Expr, Max, Min, Piecewise, Pow, Symbol, lambdify

from fluidcc.base.units import dimension, to_si
from fluidcc.laws.handwritten import Handwritten

__all__ = ["Dim", "base_unit", "dim_of_text", "explain", "measure", "same"]

_POINTS = 48
_FACTORS = (7.3, 0.31)
_TOLERANCE = 1e-7


class Dim(NamedTuple):
    """Powers of bit and second; numbers need not be whole."""

    bit: float = 0.0
    s: float = 0.0

    def __str__(self) -> str:
        return base_unit(self)


def base_unit(dim: Dim) -> str:
    """Text of a dimension: ``bit/s``, ``1/s^2``, ``1``."""

    def power(name: str, n: float) -> str:
        return name if abs(n - 1) < 1e-6 else f"{name}^{round(n, 3):g}"

    above = [power(name, n) for name, n in zip(("bit", "s"), dim, strict=True) if n > 1e-6]
    below = [power(name, -n) for name, n in zip(("bit", "s"), dim, strict=True) if n < -1e-6]
    text = "*".join(above) or "1"
    return f"{text}/{'/'.join(below)}" if below else text


@lru_cache(maxsize=256)
def dim_of_text(text: str) -> Dim:
    """Dimension of a declared unit; raises `UnitsError` if it is none, or not one of s, bit, packet (no prefixes)."""
    from fluidcc.base.errors import UnitsError

    found = dimension(text)
    base = f"bit^{found.bit}*s^{found.s}*packet^{found.packet}"
    if to_si(f"1 {text}", base) != 1:
        raise UnitsError(f"{text!r} is not made of s, bit and packet alone; laws hold SI values, declare the base unit")
    return Dim(found.bit, found.s)


def same(a: Dim, b: Dim) -> bool:
    """Whether two dimensions agree."""
    return all(abs(p - q) < 1e-6 for p, q in zip(a, b, strict=True))


def _points(symbols: Sequence[Symbol]) -> dict[Symbol, Any]:
    """Random values, the same in every run, that respect the sign assumptions."""
    rng = np.random.default_rng(20)
    values = {}
    for s in symbols:
        v = 10.0 ** rng.uniform(-1, 1, _POINTS)
        if not s.is_nonnegative:
            v = -v if s.is_nonpositive else v * rng.choice([-1.0, 1.0], _POINTS)
        values[s] = v
    return values


def _function(symbols: Sequence[Symbol], expr: Expr) -> Callable[..., Any]:
    # Left to itself the printer writes a step as a Piecewise and simplifies its condition, which takes long.
    return lambdify(symbols, expr, modules=[{"Heaviside": np.heaviside}, "numpy"], cse=False)


def measure(expr: Expr, dims: Mapping[Symbol, Dim]) -> Dim | str | None:
    """Dimension of an expression without Lets.

    Returns
    -------
    Dim, None or "any"
        None if it is not homogeneous, "any" if it is zero (or defined nowhere among the points tried).
    """
    symbols = sorted(expr.free_symbols, key=str)
    if not symbols:
        return "any" if expr == 0 or not expr.is_finite else Dim()
    f, values = _function(symbols, expr), _points(symbols)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = np.broadcast_to(np.asarray(f(*values.values()), dtype=float), (_POINTS,))
        powers, zero = [], True
        for base in range(2):
            found = []
            for factor in _FACTORS:
                scaled = [v * factor ** dims[s][base] for s, v in values.items()]
                image = np.broadcast_to(np.asarray(f(*scaled), dtype=float), (_POINTS,))
                defined = np.isfinite(plain) & np.isfinite(image)
                if np.any(defined & ((plain == 0) != (image == 0))):
                    return None
                live = defined & (plain != 0)
                zero = zero and not np.any(live)
                if np.any(image[live] / plain[live] <= 0):
                    return None
                found.append(np.log(image[live] / plain[live]) / np.log(factor))
            every = np.concatenate(found)
            if every.size and np.ptp(every) > _TOLERANCE:
                return None
            powers.append(round(float(np.median(every)), 9) if every.size else 0.0)
    return "any" if zero else Dim(*powers)


def explain(expr: Expr, dims: Mapping[Symbol, Dim]) -> str:
    """Why an expression is not homogeneous: the innermost place where units meet that do not go together."""
    for arg in _operands(expr):
        if measure(arg, dims) is None:
            return explain(arg, dims)
    parts = [(arg, measure(arg, dims)) for arg in _operands(expr)]
    if isinstance(expr, Pow):
        (_, base), (exponent, of_exponent) = parts
        if isinstance(of_exponent, Dim) and not same(of_exponent, Dim()):
            return f"the exponent {exponent} has unit {of_exponent}, and must be a number"
        return f"{expr} raises a unit, {base}, to a power that varies"
    if isinstance(expr, Handwritten):
        return f"{expr} does not change by a power of the unit; what it holds besides numbers must be a parameter"
    if isinstance(expr, (Add, Max, Min, Piecewise)):
        seen: dict[str, Expr] = {}
        for arg, dim in parts:
            if isinstance(dim, Dim):
                seen.setdefault(str(dim), arg)
        terms = " and ".join(f"{arg} [{unit}]" for unit, arg in seen.items())
        verb = "adds" if isinstance(expr, Add) else "compares" if isinstance(expr, (Max, Min)) else "chooses between"
        return f"it {verb} {terms}"
    wrong = [f"{arg} [{dim}]" for arg, dim in parts if isinstance(dim, Dim) and not same(dim, Dim())]
    return f"{type(expr).__name__} needs a number, not {' and '.join(wrong)}" if wrong else f"{expr} mixes units"


def _operands(expr: Expr) -> list[Expr]:
    if isinstance(expr, Piecewise):
        return [a for a, _ in expr.args]
    return [a for a in expr.args if isinstance(a, Expr)]
