"""Whether an expression provably has a sign, by SymPy's assumptions, and conditions turned into such assumptions."""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Dummy, Expr, Symbol, cancel, expand, expand_log, factor, fraction, powsimp, simplify, together

__all__ = ["OPPOSITE", "rises", "settled", "with_conditions"]

OPPOSITE = {">": ">=", ">=": ">"}
"""What the negative of an expression must not be for it to stand so."""


def _forms(f: Expr) -> Iterator[Expr]:
    """`f` in ever more simplified forms, the cheap ones first."""
    yield f
    g = together(f)
    yield g
    yield cancel(g)
    yield expand(fraction(g)[0])
    yield powsimp(expand_log(expand(f)))
    yield simplify(f)


def settled(kind: str, f: Expr) -> bool:
    """Whether `f` (= left - right), wherever it is defined, provably stands as `kind` to zero."""
    if kind == "==":
        return any(g == 0 for g in _forms(f))
    return any(
        _has_sign(kind, above, below)
        for g in (f, cancel(together(f)), simplify(f))
        for above, below in [fraction(together(g))]
        for above in (above, expand(above), factor(above))
    )


def _has_sign(kind: str, above: Expr, below: Expr) -> bool:
    """Whether above/below, with a denominator that is not zero where it counts, has the sign wanted."""
    if kind == "!=":
        return bool(above.is_nonzero)
    below = factor(below)
    if below.is_nonnegative:
        return bool(above.is_positive if kind == ">" else above.is_nonnegative)
    if below.is_nonpositive:
        return bool(above.is_negative if kind == ">" else above.is_nonpositive)
    return False


def rises(kind: str, f: Expr, depth: int = 3) -> bool:
    """Whether `f` begins at zero or above as one of its positive symbols does, and then rises."""
    for s in sorted(f.free_symbols, key=str):
        if not s.is_nonnegative:
            continue
        start = f.subs(s, 0)
        if not start.is_finite or not settled(">=", start):
            continue
        slope = f.diff(s)
        # On an interval a slope above zero inside is enough, so strictness needs no more than s > 0.
        strict = kind if s.is_positive else ">="
        if kind == ">" and strict != ">":
            continue
        if settled(strict, slope) or (depth > 1 and rises(strict, slope, depth - 1)):
            return True
    return False


def _impossible(kind: str, f: Expr) -> bool:
    if kind in OPPOSITE:
        return settled(OPPOSITE[kind], -f)
    return bool(factor(together(f)).is_nonzero if kind == "==" else settled("==", f))


def with_conditions(f: Expr, conditions: list[tuple[str, Expr]]) -> Iterator[Expr | None]:
    """`f`, then `f` with conditions made into assumptions: s > g becomes s = g + (a positive number).

    None means that the conditions contradict one another.
    """
    if any(_impossible(kind, g) for kind, g in conditions):
        yield None
        return
    yield f
    for k, (kind, condition) in enumerate(conditions):
        if kind == ">=" and settled(">=", -condition):
            kind = "=="
        for s in sorted(condition.free_symbols, key=str):
            value = None if kind == "!=" else _bounded(s, kind, condition)
            if value is not None:
                rest = [(other, g.subs(s, value)) for i, (other, g) in enumerate(conditions) if i != k]
                if s.is_positive and not value.is_positive:
                    rest.append((">", value))
                elif s.is_nonnegative and not value.is_nonnegative:
                    rest.append((">=", value))
                yield from with_conditions(f.subs(s, value), rest)


def _bounded(s: Symbol, kind: str, condition: Expr) -> Expr | None:
    """The general value of `s` for which `condition`, linear in it, is as `kind` to zero; None if it is not linear."""
    above, below = fraction(together(condition))
    above = expand(above)
    slope, rest = above.coeff(s, 1), above.coeff(s, 0)
    if slope.has(s) or rest.has(s) or below.has(s) or expand(above - slope * s - rest) != 0:
        return None
    if kind == "==":
        return -rest / slope if slope.is_nonzero else None
    direction = slope / below
    if not (direction.is_positive or direction.is_negative):
        return None
    excess = Dummy("d", positive=True) if kind == ">" else Dummy("d", nonnegative=True)
    return -rest / slope + (excess if direction.is_positive else -excess)
