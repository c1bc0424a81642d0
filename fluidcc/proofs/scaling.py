"""Changes of scale under which a statement stays what it is: one symbol less to look at."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from sympy import Add, Expr, Rational, Symbol

from fluidcc.base.errors import Unsupported
from fluidcc.proofs.algebra import settled
from fluidcc.proofs.cover import Enclosing

_POINTS, _LONG = 7, 250  # and operations


def weights(parts: Sequence[Expr]) -> dict[Symbol, Rational]:
    """Return exponents, not all zero, such that each part is multiplied by a power of k when each
    symbol s is by k to its exponent, for every k above zero; nothing if there are none.

    They are found at a few points, and proved by Euler's theorem.
    """
    symbols = sorted(set().union(*(f.free_symbols for f in parts)), key=str)
    long = sum(f.count_ops() for f in parts) > _LONG
    if len(symbols) < 2 or long or any(s.is_integer for s in symbols):
        return {}
    points = np.random.default_rng(3).uniform(0.5, 2, (_POINTS, len(symbols)))
    try:
        with np.errstate(all="ignore"):
            inside = Enclosing.on(symbols, points, points)
            slopes = [[inside(g) for g in (f, *(s * f.diff(s) for s in symbols))] for f in parts]
            middles = [[g.lo / 2 + g.hi / 2 for g in found] for found in slopes]
    except Unsupported:
        return {}
    rows = []
    for k, found in enumerate(middles):
        value, *moved = (np.broadcast_to(v, _POINTS) for v in found)
        rows.append(np.c_[np.transpose(moved), -np.outer(value, np.arange(len(parts)) == k)])
    table = np.concatenate(rows)
    if not np.isfinite(table).all():
        return {}
    table /= np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-300)
    sizes, basis = np.linalg.svd(table)[1:]
    free = basis[np.append(sizes, np.zeros(len(basis) - len(sizes))) < 1e-9]
    if not len(free):
        return {}
    even = free.T @ free[:, : len(symbols)].sum(axis=1)
    one = even if np.abs(even).max() > 1e-6 else free[0]
    exact = [
        Rational(*Fraction(v).limit_denominator(60).as_integer_ratio())
        for v in one / np.abs(one[: len(symbols)]).max()
    ]
    powers = dict(zip(symbols, exact, strict=False))
    for f, degree in zip(parts, exact[len(symbols) :], strict=True):
        if not settled("==", Add(*(w * s * f.diff(s) for s, w in powers.items())) - degree * f):
            return {}
    return {s: w for s, w in powers.items() if w != 0}


def unscaled(f: Expr) -> Expr:
    """Return `f` with 1 for each positive symbol that a change of scale can make 1."""
    one = next((s for s in weights([f]) if s.is_positive), None)
    return f if one is None else unscaled(f.subs(one, 1))
