"""What a law must satisfy before it exists: every refusal names the law, the culprit and the
remedy.
"""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sympy import (
    Add,
    Derivative,
    Expr,
    Function,
    I,
    Integral,
    Max,
    Min,
    Piecewise,
    Pow,
    Symbol,
    diff,
    lambdify,
    nan,
    oo,
    simplify,
    zoo,
)
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from fluidcc.base.arguments import shown
from fluidcc.base.errors import LawError, UnitsError
from fluidcc.base.units import dimension, to_si
from fluidcc.laws.handwritten import Handwritten
from fluidcc.symbols import FUNCTIONS, REPORTING, SIGNAL_UNITS, Let, plain, unfold

__all__ = [
    "Dim", "base_unit", "check_law", "dim_of_text", "explain", "measure", "parameter_values",
    "same",
]  # fmt: skip


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
    """Dimension of a declared unit; raises `UnitsError` if it is none, or not one of s, bit,
    packet (no prefixes).
    """
    from fluidcc.base.errors import UnitsError

    found = dimension(text)
    base = f"bit^{found.bit}*s^{found.s}*packet^{found.packet}"
    if to_si(f"1 {text}", base) != 1:
        raise UnitsError(
            f"{text!r} is not made of s, bit and packet alone; laws hold SI values, declare the "
            f"base unit"
        )
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
    # Left to itself the printer writes a step as a Piecewise and simplifies its condition, which
    # takes long.
    return lambdify(symbols, expr, modules=[{"Heaviside": np.heaviside}, "numpy"], cse=False)


def measure(expr: Expr, dims: Mapping[Symbol, Dim]) -> Dim | str | None:
    """Dimension of an expression without Lets.

    Returns
    -------
    Dim, None or "any"
        None if it is not homogeneous, "any" if it is zero (or defined nowhere among the points
        tried).
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
    """Why an expression is not homogeneous: the innermost place where units meet that do not go
    together.
    """
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
        return (
            f"{expr} does not change by a power of the unit; what it holds besides numbers "
            f"must be a parameter"
        )
    if isinstance(expr, (Add, Max, Min, Piecewise)):
        seen: dict[str, Expr] = {}
        for arg, dim in parts:
            if isinstance(dim, Dim):
                seen.setdefault(str(dim), arg)
        terms = " and ".join(f"{arg} [{unit}]" for unit, arg in seen.items())
        verb = (
            "adds"
            if isinstance(expr, Add)
            else "compares"
            if isinstance(expr, (Max, Min))
            else "chooses between"
        )
        return f"it {verb} {terms}"
    wrong = [
        f"{arg} [{dim}]" for arg, dim in parts if isinstance(dim, Dim) and not same(dim, Dim())
    ]
    return (
        f"{type(expr).__name__} needs a number, not {' and '.join(wrong)}"
        if wrong
        else f"{expr} mixes units"
    )


def _operands(expr: Expr) -> list[Expr]:
    if isinstance(expr, Piecewise):
        return [a for a, _ in expr.args]
    return [a for a in expr.args if isinstance(a, Expr)]


# --- what a law must satisfy before it exists -----------------------------------------------------


_OUTPUT_UNITS = {
    "rate": "bit/s", "loss": "1", "mark": "1", "price": "1", "drop": "1", "offer": "bit/s",
    "factor": "1",
    "raise": "bit/s", "reports": "1",
}  # fmt: skip
_PASSED: set[Any] = set()
MOST_PASSED = 1000  # structures that are remembered as checked


def parameter_values(law: Any) -> dict[Symbol, float]:
    """The parameters of `law` as floats in SI units; text is read in the declared unit."""
    values: dict[Symbol, float] = {}
    for s, most in law.limits.items():
        if s not in law.params or not isinstance(most, int | float):
            raise LawError(
                f"{law.name}: limits has {shown(s)}: {shown(most)}; give the largest value of a "
                f"parameter"
            )
    for s, value in law.params.items():
        if not isinstance(s, Symbol):
            raise LawError(
                f"{law.name}: params has {shown(s)}: {shown(value)}; give parameters by SymPy "
                f"symbol"
            )
        _unit_of(law, s, law.units.get(s, "1"))
        number = _number(law, s, value)
        limit = "positive" if s.is_positive else "nonnegative" if s.is_nonnegative else ""
        if (s.is_positive and number <= 0) or (s.is_nonnegative and number < 0):
            raise LawError(f"{law.name}: parameter {plain(s)} is {number:g}, but must be {limit}")
        if s.is_nonzero and number == 0:
            raise LawError(f"{law.name}: parameter {plain(s)} is 0, but must not be")
        if number > law.limits.get(s, math.inf):
            raise LawError(
                f"{law.name}: parameter {plain(s)} is {number:g}, but must be at most "
                f"{law.limits[s]:g}"
            )
        values[s] = number
    _check_relations(law, values)
    return values


def _check_relations(law: Any, values: dict[Symbol, float]) -> None:
    """Refuse values that do not fit one another, or a bound that may not be reached."""
    for relation in law.where:
        if not isinstance(relation, Relational) or not relation.free_symbols <= {*values}:
            known = ", ".join(map(plain, values)) or "none"
            raise LawError(
                f"{law.name}: where holds {shown(relation)}; give relations between parameters, "
                f"which are {known}"
            )
        if not relation.subs(values):
            own = sorted(relation.free_symbols, key=list(values).index)
            given = " and ".join(f"{plain(s)} is {values[s]:g}" for s in own)
            raise LawError(
                f"{law.name}: {relation} must hold, but {given}; change "
                f"{'one of them' if own[1:] else 'it'}"
            )


def _number(law: Any, s: Symbol, value: Any) -> float:
    from fluidcc.base.units import to_si

    what = f"{law.name}: parameter {plain(s)}"
    try:
        if isinstance(value, Expr):
            value = float(value)
        return to_si(value, law.units.get(s, "1"), what)
    except (UnitsError, TypeError) as error:
        said = (
            str(error)
            if isinstance(error, UnitsError)
            else f"{what} is {shown(value)}; give a number"
        )
        raise LawError(said) from None


def check_law(law: Any) -> None:
    """Refuse a law that is not well formed.

    Raises
    ------
    LawError
        Naming the law, the culprit and the remedy.
    """
    structure = (law.structure, getattr(law, "queue", None), type(law), law.where)
    if structure not in _PASSED:
        _check_names(law)
        _check_places(law)
        _check_symbols(law)
        _check_kind(law)
    if getattr(law, "utility", None) is not None:
        _check_utility(law)
    if structure not in _PASSED:
        _check_units(law)
        if len(_PASSED) >= MOST_PASSED:
            _PASSED.clear()  # they are only checked again
        _PASSED.add(structure)


# --- names and places -----------------------------------------------------------------------------


def _check_names(law: Any) -> None:
    for z in law.flow:
        if not isinstance(z, Symbol) or isinstance(z, Let):
            raise LawError(
                f"{law.name}: {shown(z)} cannot be a state; states are symbols, as in flow={{x: "
                f"...}}"
            )
    for role, names in (("state", law.flow), ("parameter", law.params)):
        for s in names:
            if s in law.inputs:
                raise LawError(
                    f"{law.name}: {plain(s)} is a signal that the network gives; it cannot be a "
                    f"{role}"
                )
    for s in law.params:
        if s in law.flow:
            raise LawError(f"{law.name}: {plain(s)} is both a state and a parameter; drop one")
    seen: dict[str, Symbol] = {}
    for s in (*law.flow, *law.params, *law.inputs):
        if seen.setdefault(plain(s), s) != s:
            raise LawError(
                f"{law.name}: two different symbols are called {plain(s)}; rename one (symbols "
                f"differ when "
                f"their assumptions do)"
            )


def _check_places(law: Any) -> None:
    """States are states wherever they are named, and outputs are outputs."""
    allowed = {"lower": law.lower, "upper": law.upper, "initial": law.initial}
    allowed |= {f"jump {i}": j.reset for i, j in enumerate(law.jumps)}
    allowed |= {f"tick {i}": k.update for i, k in enumerate(law.ticks)}
    for place, mapping in allowed.items():
        if place.startswith(("jump", "tick")) and not mapping:
            raise LawError(
                f"{law.name}: {place} changes no state; name one in its {{state: new value}}"
            )
        for z in mapping:
            if place.startswith(("jump", "tick")) and z == getattr(law, "queue", None):
                raise LawError(
                    f"{law.name}: {place} changes the queue {z}, which only what enters and "
                    f"leaves can do"
                )
            if z not in law.flow:
                raise LawError(
                    f"{law.name}: {place} names {z}, which is no state; the states are "
                    f"{', '.join(map(plain, law.flow)) or 'none'} (a state without a flow has "
                    f"flow 0)"
                )
    for i, j in enumerate(law.jumps):
        if j.when.is_number:
            raise LawError(
                f"{law.name}: the condition of jump {i} is {shown(j.when)}, which never changes; "
                f"give one of states"
            )
    for i, tick in enumerate(law.ticks):
        if tick.every.is_number and not tick.every.is_positive:
            raise LawError(
                f"{law.name}: the period of tick {i} is {tick.every}; give a positive time in "
                f"seconds"
            )
    for name in law.out:
        if name not in law.outputs:
            raise LawError(
                f"{law.name}: {shown(name)} is no output of a {law.kind}; use "
                f"{' or '.join(law.outputs)}"
            )


# --- symbols --------------------------------------------------------------------------------------


def _check_symbols(law: Any) -> None:
    known = {*law.flow, *law.params, *law.inputs}
    for place, f in law.expressions():
        _check_expression(law, place, f, known, "neither a state, a parameter nor a signal")
    for z, f in law.initial.items():
        _check_expression(
            law,
            f"the initial value of {plain(z)}",
            f,
            {*law.params, *law.constants},
            f"neither a parameter nor a constant ({', '.join(map(plain, law.constants))})",
        )


def _check_expression(law: Any, place: str, f: Any, known: set[Symbol], roles: str) -> None:
    if not isinstance(f, Expr):
        raise LawError(
            f"{law.name}: {place} is {f}, which is no expression; use Piecewise or Heaviside for "
            f"conditions"
        )
    f = unfold(f)
    if f.has(nan, zoo, oo, -oo, I):
        raise LawError(f"{law.name}: {place} is {f}, which is no finite real number; correct it")
    for kind, what in (
        (Derivative, "a derivative"),
        (Integral, "an integral"),
        (AppliedUndef, "an unknown function"),
    ):
        if found := f.atoms(kind):
            raise LawError(
                f"{law.name}: {place} holds {what}, {found.pop()}; write out its value, or make "
                f"it a state"
            )
    for g in sorted(f.atoms(Function), key=str):
        if not isinstance(g, (*FUNCTIONS, Handwritten)):
            few = ", ".join(one.__name__ for one in FUNCTIONS)
            raise LawError(
                f"{law.name}: {place} holds {shown(g)}, but laws have no {g.func}; write it by "
                f"{few}"
            )
    for s in sorted(f.free_symbols - known, key=str):
        name = plain(s)
        twin = next((k for k in known if plain(k) == name), None)
        if twin is not None:
            remedy = "use the same symbol: there is one of that name with other assumptions"
        elif close := difflib.get_close_matches(name, list(map(plain, known)), n=1, cutoff=0.6):
            remedy = f"did you mean {close[0]}? Else declare it in params and units"
        else:
            remedy = "declare it in params and units"
        raise LawError(f"{law.name}: {name} in {place} is {roles}; {remedy}")


# --- units ----------------------------------------------------------------------------------------


def _declared(law: Any) -> dict[Symbol, Dim]:
    dims = {s: dim_of_text(SIGNAL_UNITS[s]) for s in law.inputs}
    for role, names in (("state", law.flow), ("parameter", law.params)):
        for s in names:
            if s not in law.units:
                raise LawError(
                    f"{law.name}: {role} {plain(s)} has no unit; add it to units, as in "
                    f"units={{{plain(s)}: 'bit/s'}}"
                )
    for s, text in law.units.items():
        if s not in law.flow and s not in law.params:
            raise LawError(
                f"{law.name}: units names {shown(s)}, which is neither a state nor a parameter; "
                f"drop it"
            )
        dims[s] = _unit_of(law, s, text)
    return dims


def _unit_of(law: Any, s: Symbol, text: Any) -> Dim:
    if not isinstance(text, str):
        raise LawError(
            f"{law.name}: the unit of {plain(s)} is {shown(text)}; give text, such as 'bit/s' or "
            f"'1'"
        )
    try:
        return dim_of_text(text)
    except UnitsError as error:
        raise LawError(
            f"{law.name}: the unit of {plain(s)} is given as {text!r}: {error}"
        ) from None


def _wanted(law: Any, dims: dict[Symbol, Dim]) -> Iterator[tuple[str, Expr, Dim | None]]:
    """Every equation with the dimension it must have; None where any will do."""
    second = dim_of_text("s")
    for z, f in law.flow.items():
        yield f"the flow of {plain(z)}", f, Dim(dims[z].bit, dims[z].s - 1)
    for name, f in law.out.items():
        yield f"output {name!r}", f, dim_of_text(_OUTPUT_UNITS[name])
    for side in ("lower", "upper", "initial"):
        for z, f in getattr(law, side).items():
            if not f.is_number:  # a number is in the unit of its state, like a parameter's value
                yield (
                    f"the {side} {'value' if side == 'initial' else 'bound'} of {plain(z)}",
                    f,
                    dims[z],
                )
    for i, j in enumerate(law.jumps):
        yield f"the condition of jump {i}", j.when, None
        yield f"the refractory time of jump {i}", j.refractory, second
        for z, f in j.reset.items():
            yield f"the reset of {plain(z)} in jump {i}", f, dims[z]
    for i, tick in enumerate(law.ticks):
        yield f"the period of tick {i}", tick.every, second
        if tick.phase != 0:
            yield f"the phase of tick {i}", tick.phase, second
        for z, f in tick.update.items():
            yield f"the update of {plain(z)} in tick {i}", f, dims[z]


def _check_units(law: Any) -> None:
    dims = _declared(law)
    for relation in law.where:
        gap = relation.lhs - relation.rhs
        if measure(gap, dims) is None:
            raise LawError(
                f"{law.name}: where compares {relation}: {explain(gap, dims)}; correct it, or units"
            )
    for place, f, wanted in _wanted(law, dims):
        f = unfold(f)
        for relation in f.atoms(Relational):
            gap = relation.lhs - relation.rhs
            if measure(gap, dims) is None:
                raise LawError(
                    f"{law.name}: {place} compares {relation}: {explain(gap, dims)}; correct it, "
                    f"or units"
                )
        got = measure(f, dims)
        if got is None:
            raise LawError(
                f"{law.name}: {place} mixes units: {explain(f, dims)}; correct it, or a unit in "
                f"units"
            )
        if isinstance(got, Dim) and wanted is not None and not same(got, wanted):
            raise LawError(
                f"{law.name}: {place} has unit {got}, wanted {wanted}; correct it, or a unit in "
                f"units"
            )


# --- what each kind of law needs ------------------------------------------------------------------


def _check_kind(law: Any) -> None:
    if law.kind == "source":
        if "rate" not in law.out:
            raise LawError(
                f"{law.name}: a source needs its sending rate; give out={{'rate': ...}} [bit/s]"
            )
        return
    given, lacking = (
        [name for name in REPORTING if (name in law.out) is there] for there in (True, False)
    )
    if given and lacking:
        raise LawError(
            f"{law.name}: it reports {given[0]!r} without {lacking[0]!r}; give "
            f"{', '.join(REPORTING)}"
        )
    if law.queue is None:
        if "drop" in law.out:
            raise LawError(
                f"{law.name}: 'drop' is what does not enter the queue; name the queue=, or use "
                f"'mark'"
            )
        if "loss" in law.out:
            raise LawError(
                f"{law.name}: 'loss' is what a full buffer loses; name the queue=, or use 'mark'"
            )
        if not law.out:
            raise LawError(
                f"{law.name}: a link needs a queue= or an output: {', '.join(law.outputs)}"
            )
        return
    from fluidcc.symbols import c, y

    if law.queue not in law.flow:
        raise LawError(
            f"{law.name}: queue={law.queue} is no state; the states are "
            f"{', '.join(map(plain, law.flow))}"
        )
    if not same(dim_of_text(law.units[law.queue]), dim_of_text("s")):
        raise LawError(
            f"{law.name}: the queue is a delay; its unit is {law.units[law.queue]}, wanted s"
        )
    if simplify(unfold(law.flow[law.queue]) - (y - c) / c) != 0:
        raise LawError(
            f"{law.name}: the flow of the queue is {law.flow[law.queue]}, wanted (y - c)/c: what "
            "enters less what leaves"
        )


@lru_cache(maxsize=256)
def _slopes(U: Expr, x: Symbol) -> tuple[Expr, Expr]:
    return diff(U, x), diff(U, x, 2)


def _check_utility(law: Any) -> None:
    """U increasing and concave at the parameters in use, over ten decades of rate."""
    x, U = law.out["rate"], unfold(law.utility)
    if x not in law.flow:
        raise LawError(
            f"{law.name}: a utility is one of the rate, so the rate must be a state, not {shown(x)}"
        )
    _check_expression(
        law,
        "the utility",
        law.utility,
        {x, *law.params},
        f"neither a parameter nor the rate {plain(x)}",
    )
    slopes = _slopes(U, x)
    if slopes[0].is_positive and slopes[1].is_negative:
        return
    rates = np.logspace(-1, 9, 41)
    with np.errstate(all="ignore"):
        for slope, sign, word in zip(
            slopes, (1, -1), ("increasing", "strictly concave"), strict=True
        ):
            f = lambdify([x, *law.params], slope, modules="numpy")
            values = sign * np.broadcast_to(
                np.asarray(f(rates, *law.params.values()), dtype=float), rates.shape
            )
            for rate, value in zip(rates, values, strict=True):
                if not value > 0 or math.isinf(value):
                    raise LawError(
                        f"{law.name}: the utility {shown(U)} is not {word} at {plain(x)} = "
                        f"{rate:.3g}; give one "
                        f"that is increasing and concave at every positive rate"
                    )
