"""Signs and zeros that follow from assumptions and conditions, by algebra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import comb, lcm, prod

from sympy import (
    Add,
    Dummy,
    Expr,
    Mul,
    Poly,
    Pow,
    Rational,
    Symbol,
    asin,
    asinh,
    atan,
    atanh,
    cancel,
    cos,
    cosh,
    exp,
    expand,
    expand_log,
    factor,
    fraction,
    log,
    powsimp,
    preorder_traversal,
    simplify,
    sin,
    sinh,
    tan,
    tanh,
    together,
)

from fluidcc.proofs.steps import spend

Condition = tuple[str, Expr]
"""An expression and how it stands to zero: ">", ">=", "==" or "!="."""

# What the negative of an expression must not be for it to stand so.
OPPOSITE = {">": ">=", ">=": ">"}
LARGE, _LONG = 1200, 250  # operations of what may be multiplied out, and of what may be simplified
_MANY = 10**40
_TERMS, STEPS = 3000, 40  # of what may be multiplied out, and for each operation
_SMOOTH = (Add, Mul, Pow, exp, log, sinh, cosh, tanh, asinh, atan, sin, cos)
_IN_PARTS = (tan, asin, atanh)  # these too, but not everywhere


def short(f: Expr) -> tuple[Expr, dict[Expr, Expr]]:
    """Return `f` with symbols of the same sign for exponentials, powers, sines and so on with
    large numbers in their exponents, and what they stand for: algebra would write them out.
    """
    back: dict[Expr, Expr] = {}
    for g in f.atoms(exp, Pow, sinh, cosh, tanh, sin, cos, tan):
        if any(map(_is_large, _numbers(g.args[-1]))):
            known = {k: True for k in ("positive", "nonnegative", "real") if getattr(g, f"is_{k}")}
            back[Dummy("g", **known)] = g
    return f.xreplace({g: d for d, g in back.items()}) if back else f, back


def _is_large(number: Expr) -> bool:
    return bool(abs(number) > 60 or number.q > 60)


def _numbers(f: Expr) -> list[Expr]:
    return [g for g in preorder_traversal(f) if g.is_Rational]


def _forms(f: Expr, size: int) -> Iterator[Expr]:
    """Yield `f` in ever more simplified forms, the cheap ones first."""
    yield f
    g = together(f)
    yield g
    yield cancel(g)
    yield expand(fraction(g)[0])
    if size <= _LONG and not f.is_rational_function():
        yield powsimp(expand_log(expand(f)))
        yield simplified(f)


def simplified(f: Expr) -> Expr:
    """Return what `simplify` makes of `f`, where numbers before logarithms do not become powers
    with as many digits.
    """
    large = {
        g: Mul(*(Dummy("n", positive=v > 0, negative=v < 0) if v in long else v for v in g.args))
        for g in f.atoms(Mul)
        if g.has(log) and (long := {v for v in g.args if v.is_Rational and _is_large(v)})
    }
    return simplify(f.xreplace(large))


def factored(f: Expr) -> Expr:
    """Return the factors of `f`, whose numbers of very many digits are not taken apart."""
    large = {
        v: Dummy("n", positive=v.is_positive, negative=v.is_negative)
        for v in f.atoms(Rational)
        if max(abs(v.p), v.q) > _MANY
    }
    return factor(f.xreplace(large)).xreplace({d: v for v, d in large.items()})


def settled(kind: str, f: Expr) -> bool:
    """Return whether `f` (= left - right), where defined, provably stands as `kind` to zero."""
    spend(STEPS * (1 + f.count_ops()))
    return _settled(kind, f)


@lru_cache(maxsize=4096)
def _settled(kind: str, f: Expr) -> bool:
    if f.is_number:  # 4e8 log 2 simplified is the logarithm of a number of 1e8 digits
        known = {">": "is_positive", ">=": "is_nonnegative", "!=": "is_nonzero", "==": "is_zero"}
        if (value := getattr(f, known[kind])) is not None:
            return bool(value)
    f, _ = short(_without_roots(f))
    size = f.count_ops()
    if size > (LARGE if kind == "==" else _LONG) or max(_terms(together(f))) > _TERMS:
        return False
    if kind == "==":
        return any(g == 0 for g in _forms(f, size))
    return any(_has_sign(kind, *fraction(together(g))) for g in _signed_forms(f))


def _signed_forms(f: Expr) -> Iterator[Expr]:
    yield f
    yield cancel(together(f))
    if not f.is_rational_function():
        yield simplified(f)


def _terms(f: Expr) -> tuple[int, int]:
    """Return how many terms the numerator and the denominator of `f` may have, multiplied out."""
    if isinstance(f, Pow) and f.exp.is_Integer:
        found = [min(comb(of + abs(int(f.exp)) - 1, of - 1), _MANY) for of in _terms(f.base)]
        return (found[0], found[1]) if f.exp > 0 else (found[1], found[0])
    if not isinstance(f, (Add, Mul)):
        return 1, 1
    parts = [_terms(g) for g in f.args]
    below = prod(of for _, of in parts)
    if isinstance(f, Mul):
        return prod(of for of, _ in parts), below
    return sum(of * below // under for of, under in parts), below


_ROOTS = 60  # of a symbol: exponents that are floats have denominators of sixteen digits


def _in_roots(f: Expr) -> tuple[Expr, dict[Symbol, Expr]]:
    """Return `f` with a power of another symbol for each one that is not negative and of which
    there are roots, and what those symbols are: it has the same values and no such root.
    """
    back = {}
    for s in sorted(f.free_symbols, key=str):
        if s.is_nonnegative and not s.is_integer:
            powers = [g.exp.q for g in f.atoms(Pow) if g.base == s and g.exp.is_Rational]
            if 1 < (degree := lcm(*map(int, powers))) <= _ROOTS:
                root = Symbol(s.name, nonnegative=True, nonzero=s.is_nonzero)
                f = f.subs(s, root**degree)
                back[root] = s ** Rational(1, degree)
    return f, back


def factors(f: Expr) -> Expr:
    """Return `f` as the product of what it factors into, roots of symbols among it."""
    f, back = _in_roots(f)
    return factor(f).subs(back)


def _without_roots(f: Expr) -> Expr:
    """Return `f` with the square of another symbol for each positive one of which there are roots,
    and so on, and with squares taken out of what then stands under roots: it has the same values.
    """
    f, _ = _in_roots(f)
    roots = (g for g in f.atoms(Pow) if g.exp.is_Rational and g.exp.q > 1)
    few = (g for g in roots if g.count_ops() <= _LONG and not any(map(_is_large, _numbers(g))))
    return f.xreplace({g: factored(g.base) ** g.exp for g in few})


def _has_sign(kind: str, above: Expr, below: Expr) -> bool:
    """Return whether above/below, with a denominator that is not zero where it counts, has the sign
    wanted.
    """
    if kind == "!=":
        known = "is_nonzero"
    else:
        below = factored(below)
        if below.is_nonpositive:
            above = -above
        elif not below.is_nonnegative:
            return False
        known = "is_positive" if kind == ">" else "is_nonnegative"
    return any(getattr(form(above), known) for form in (_as_it_is, expand, factored))


def _as_it_is(f: Expr) -> Expr:
    return f


def smooth(f: Expr, defined: bool = False) -> bool:
    """Return whether `f` has derivatives wherever all of its parts have values, and, if asked,
    whether that is provably everywhere that its symbols can be.
    """
    return all(
        g.is_Atom
        or (isinstance(g, _SMOOTH) and (not defined or g.func not in (log, Pow) or _has_value(g)))
        or (isinstance(g, _IN_PARTS) and not defined)
        for g in preorder_traversal(f)
    )


def _has_value(g: Expr) -> bool:
    base, power = (g.args[0], log) if isinstance(g, log) else g.args
    if power is log or not power.is_integer:
        return bool(base.is_positive)
    return bool(power.is_nonnegative or base.is_nonzero)


def by_squares(kind: str, f: Expr, depth: int = 3) -> bool:
    """Return whether `f`, of second degree in a real symbol, is as wanted where it is least."""
    above, below = fraction(together(f))
    if not below.is_positive:
        return False
    for s in sorted(above.free_symbols, key=str):
        if not (s.is_real and above.is_polynomial(s)):
            continue
        parts = Poly(above, s).all_coeffs()
        if len(parts) == 3 and settled(">", parts[0]):
            least = expand(4 * parts[0] * parts[2] - parts[1] ** 2)
            if settled(kind, least) or (depth > 1 and by_squares(kind, least, depth - 1)):
                return True
    return False


def _impossible(kind: str, f: Expr) -> bool:
    if kind in OPPOSITE:
        return settled(OPPOSITE[kind], -f)
    return settled("!=" if kind == "==" else "==", f)


def binding(conditions: Iterable[Condition]) -> list[Condition] | None:
    """Return the conditions but those that others imply plainly; None if they plainly exclude one
    another: one cannot hold by the assumptions, or two are bounds of the same expression, beside a
    number, that do not meet.
    """
    kept: list[Condition] = []
    above: dict[Expr, tuple[Expr, bool, Condition]] = {}  # the bound, whether it is excluded
    for kind, f in conditions:
        if f.is_zero if kind == "!=" else f.is_negative or (kind == ">" and f.is_nonpositive):
            return None
        number, rest = f.as_coeff_Add()
        size, rest = rest.as_coeff_Mul()
        key, bound = (rest if size > 0 else -rest), -number / abs(size)
        if kind not in OPPOSITE:
            kept.append((kind, f))
        elif key not in above or (bound, kind == ">") > above[key][:2]:
            above[key] = bound, kind == ">", (kind, f)
        low, high = above.get(key), above.get(-key)
        if low and high and (low[0] > -high[0] or (low[0] == -high[0] and (low[1] or high[1]))):
            return None
    return kept + [condition for _, _, condition in above.values()]


Assumed = tuple[Expr, list[Condition], dict[Symbol, Expr]]
"""An expression, the conditions that remain, and what was put for symbols."""


def with_conditions(f: Expr, conditions: list[Condition]) -> Iterator[Expr | None]:
    """Yield `f`, then `f` with conditions made into assumptions: s > g becomes s = g + (a positive
    number).

    None means that the conditions contradict one another.
    """
    if any(_impossible(kind, g) for kind, g in conditions):
        yield None
        return
    yield f
    exact = [("==" if kind == ">=" and settled(">=", -g) else kind, g) for kind, g in conditions]
    for g, rest, _ in substituted(f, exact, {}):
        yield from with_conditions(g, rest)


def substituted(
    f: Expr, conditions: list[Condition], values: dict[Symbol, Expr]
) -> Iterator[Assumed]:
    """Yield `f` with one of the conditions made into assumptions, in each way that there is."""
    for k, (kind, condition) in enumerate(conditions):
        for s in sorted(condition.free_symbols, key=str):
            value = None if kind == "!=" else _bounded(s, kind, condition)
            if value is not None:
                rest = [
                    (other, g.subs(s, value)) for i, (other, g) in enumerate(conditions) if i != k
                ]
                if s.is_positive and not value.is_positive:
                    rest.append((">", value))
                elif s.is_nonnegative and not value.is_nonnegative:
                    rest.append((">=", value))
                put = {z: g.subs(s, value) for z, g in values.items()} | {s: value}
                yield f.subs(s, value), rest, put


def _bounded(s: Symbol, kind: str, condition: Expr) -> Expr | None:
    """Return the general value of `s` for which `condition`, linear in it, is as `kind` to zero;
    None if it is not linear.
    """
    spend(STEPS // 5 * (1 + condition.count_ops()))
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
    bound = -rest / slope
    if direction.is_negative and s.is_positive and bound.is_positive:
        return bound / (1 + _excess(kind))
    excess = _excess(kind)
    return -rest / slope + (excess if direction.is_positive else -excess)


def _excess(kind: str) -> Symbol:
    return Dummy("d", positive=True) if kind == ">" else Dummy("d", nonnegative=True)
