"""What a law must satisfy before it exists: every refusal names the law, the culprit and the
remedy.
"""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import sympy
from sympy import (
    Add,
    Derivative,
    Expr,
    Function,
    Heaviside,
    I,
    Integer,
    Integral,
    Max,
    Min,
    NumberSymbol,
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
from fluidcc.laws.parts import per_structure
from fluidcc.laws.past import agos, pasts
from fluidcc.symbols import (
    FUNCTIONS,
    LINK_INPUTS,
    REPORTING,
    RTT,
    SIGNAL_UNITS,
    SOURCE_INPUTS,
    Let,
    c,
    imported,
    numpy_function,
    plain,
    symbols_of,
    unfold,
    y,
)

# --- dimensions: an expression has one if it rescales by a power of the units --------------------


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
    """Return the text of a dimension: ``bit/s``, ``1/s^2``, ``1``."""

    def powers(sign: float) -> list[str]:
        named = [(name, sign * n) for name, n in zip(("bit", "s"), dim, strict=True)]
        one = 1 + 1e-6
        return [name if n < one else f"{name}^{round(n, 3):g}" for name, n in named if n > 1e-6]

    return "/".join(["*".join(powers(1)) or "1", *powers(-1)])


@lru_cache(maxsize=256)
def dim_of_text(text: str) -> Dim:
    """Return the dimension of a declared unit, which is made of s, bit and packet (no prefixes).

    Raises
    ------
    UnitsError
        If it is none of these.
    """
    found = dimension(text)
    base = f"bit^{found.bit}*s^{found.s}*packet^{found.packet}"
    if to_si(f"1 {text}", base) != 1:
        raise UnitsError(
            f"{text!r} is not made of s, bit and packet alone; laws hold SI values, declare the "
            f"base unit"
        )
    return Dim(found.bit, found.s)


def same(a: Dim, b: Dim) -> bool:
    """Return whether two dimensions agree."""
    return all(abs(p - q) < 1e-6 for p, q in zip(a, b, strict=True))


def _points(symbols: Sequence[Any]) -> dict[Any, Any]:
    """Return random values, the same in every run, that respect the sign assumptions."""
    rng = np.random.default_rng(20)
    values = {}
    for s in symbols:
        v = 10.0 ** rng.uniform(-1, 1, _POINTS)
        if not (s.is_nonnegative or isinstance(s, Heaviside)):
            v = -v if s.is_nonpositive else v * rng.choice([-1.0, 1.0], _POINTS)
        values[s] = v
    return values


def measure(expr: Expr, dims: Mapping[Symbol, Dim]) -> Dim | str | None:
    """Return the dimension of an expression without Lets.

    Returns
    -------
    Dim, None or "any"
        None if it is not homogeneous, "any" if it is zero (or defined nowhere among the points
        tried).
    """
    # What a step hides at every point tried has a unit too: any numbers in place of the steps.
    steps = sorted(expr.atoms(Heaviside), key=str)
    if not steps:
        return _measured(expr, dims)
    seen = _measured(expr, dims)
    bare = _measured(expr, {**dims, **dict.fromkeys(steps, Dim())}, steps)
    if isinstance(seen, Dim) and isinstance(bare, Dim):
        return seen if same(seen, bare) else None
    return None if None in (seen, bare) else bare if seen == "any" else seen


def _measured(expr: Expr, dims: Mapping[Any, Dim], free: Sequence[Expr] = ()) -> Dim | str | None:
    """`measure`, where steps are as they are, but those that are `free` any positive numbers."""
    symbols = [*sorted(expr.free_symbols, key=str), *free]
    if not symbols:
        return "any" if expr == 0 or not expr.is_finite else Dim()
    # Left to itself the printer writes a step as a Piecewise and simplifies its condition, which
    # takes long.
    function = numpy_function(symbols, expr, {"Heaviside": np.heaviside})
    values = _points(symbols)

    def at(points: Sequence[Any]) -> Any:
        return np.broadcast_to(np.asarray(function(*points), dtype=float), (_POINTS,))

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = at([*values.values()])
        powers, zero = [], True
        for base in range(2):
            found = []
            for factor in _FACTORS:
                image = at([v * factor ** dims[s][base] for s, v in values.items()])
                defined = np.isfinite(here) & np.isfinite(image)
                live = defined & (here != 0)
                ratio = image[live] / here[live]
                if np.any(defined & ((here == 0) != (image == 0))) or np.any(ratio <= 0):
                    return None
                zero = zero and not np.any(live)
                found.append(np.log(ratio) / np.log(factor))
            every = np.concatenate(found)
            if every.size and np.ptp(every) > _TOLERANCE:
                return None
            powers.append(round(float(np.median(every)), 9) if every.size else 0.0)
    return "any" if zero else Dim(*powers)


def explain(expr: Expr, dims: Mapping[Symbol, Dim]) -> str:
    """Say why an expression is not homogeneous: the innermost place where units meet that do not
    go together.
    """
    operands = [a for a, _ in expr.args] if isinstance(expr, Piecewise) else list(expr.args)
    parts = [(a, measure(a, dims)) for a in operands if isinstance(a, Expr)]
    for arg, dim in parts:
        if dim is None:
            return explain(arg, dims)
    if isinstance(expr, Pow):
        (_, base), (exponent, of_exponent) = parts
        if isinstance(of_exponent, Dim) and not same(of_exponent, Dim()):
            return f"the exponent {exponent} has unit {of_exponent}, and must be a number"
        return f"{expr} raises a unit, {base}, to a power that varies"
    known = [(arg, dim) for arg, dim in parts if isinstance(dim, Dim)]
    for kind, verb in ((Add, "adds"), ((Max, Min), "compares"), (Piecewise, "chooses between")):
        if isinstance(expr, kind):
            first: dict[str, tuple[Expr, Dim]] = {}
            for arg, dim in known:
                first.setdefault(str(dim), (arg, dim))
            said = " and ".join(f"{arg} [{unit}]" for unit, (arg, _) in first.items())
            return f"it {verb} {said}{_constant(list(first.values()))}"
    wrong = [(arg, dim) for arg, dim in known if not same(dim, Dim())]
    if wrong:
        said = " and ".join(f"{arg} [{dim}]" for arg, dim in wrong)
        hint = _constant([wrong[0], (Integer(1), Dim())])
        return f"{type(expr).__name__} needs a number, not {said}{hint}"
    return f"{expr} mixes units"


def _constant(terms: Sequence[tuple[Expr, Dim]]) -> str:
    """Return which plain number, in terms that do not go together, may lack which unit."""
    for arg, dim in terms:
        number = next((f for f in (arg, *arg.args) if f.is_number and abs(f) != 1), None)
        other = next((wanted for _, wanted in terms if not same(wanted, dim)), None)
        if number is not None and other is not None and not isinstance(arg, Pow):
            lacks = Dim(*(p - q for p, q in zip(other, dim, strict=True)))
            value = f"{float(abs(number)):.10g}"
            return (
                f" (numbers in a formula have no unit: if {value} is in {lacks}, make it a "
                f"parameter, params={{k: {value}}}, units={{k: '{lacks}'}})"
            )
    return ""


# --- parameters -----------------------------------------------------------------------------------


def parameter_values(law: Any) -> dict[Symbol, float]:
    """Return the parameters of `law` as floats in SI units; text is read in the declared unit."""
    for s, most in law.limits.items():
        if s not in law.params or not isinstance(most, int | float) or most != most:
            raise LawError(
                f"{law.name}: limits has {shown(s)}: {shown(most)}; give the largest value of a "
                f"parameter"
            )
    for s, text in law.units.items():
        _dim_of(law, s, text)
    values: dict[Symbol, float] = {}
    for s, value in law.params.items():
        if not isinstance(s, Symbol):
            raise LawError(
                f"{law.name}: params has {shown(s)}: {shown(value)}; give parameters by SymPy "
                f"symbol"
            )
        what = f"{law.name}: parameter {plain(s)}"
        try:
            number = float(value) if isinstance(value, Expr) else value
            number = to_si(number, law.units.get(s, "1"), what)
        except UnitsError as error:
            raise LawError(str(error)) from None
        except TypeError:
            raise LawError(f"{what} is {shown(value)}; give a number") from None
        limit = "positive" if s.is_positive else "nonnegative" if s.is_nonnegative else ""
        if (s.is_positive and number <= 0) or (s.is_nonnegative and number < 0):
            raise LawError(f"{what} is {number:g}, but must be {limit}")
        if s.is_nonzero and number == 0:
            raise LawError(f"{what} is 0, but must not be")
        if number > law.limits.get(s, math.inf):
            raise LawError(f"{what} is {number:g}, but must be at most {law.limits[s]:g}")
        values[s] = number
    _check_relations(law, values)
    return values


def _check_relations(law: Any, values: dict[Symbol, float]) -> None:
    """Refuse values that do not fit one another, or a bound that may not be reached."""
    for relation in law.where:
        if not isinstance(relation, Relational) or not relation.free_symbols <= {*values}:
            raise LawError(
                f"{law.name}: where holds {shown(relation)}; give relations between parameters, "
                f"which are {_names(values)}"
            )
        if not relation.subs(values):
            own = sorted(relation.free_symbols, key=list(values).index)
            given = " and ".join(f"{plain(s)} is {values[s]:g}" for s in own)
            which = "one of them" if own[1:] else "it"
            raise LawError(f"{law.name}: {relation} must hold, but {given}; change {which}")


def _names(symbols: Any) -> str:
    return ", ".join(map(plain, symbols)) or "none"


# --- names, places and symbols --------------------------------------------------------------------


def check_law(law: Any) -> None:
    """Refuse a law that is not well formed.

    Raises
    ------
    LawError
        Naming the law, the culprit and the remedy.
    """
    _check_structure(law)
    for what, f, right in _signs(law):
        value = float(f.subs(law.params))
        if not math.isfinite(value) or value < 0 or (value == 0 and "positive" in right):
            raise LawError(f"{law.name}: {what} is {value:g}; give {right}")
    if getattr(law, "utility", None) is not None:
        _check_utility(law)


@per_structure
def _signs(law: Any) -> list[tuple[str, Expr, str]]:
    """What parameters alone determine, and may not be negative, or zero where it says so."""
    time = "a time in seconds that is not negative"
    found = [(f"the refractory time of jump {i}", j.refractory, time)
             for i, j in enumerate(law.jumps)]  # fmt: skip
    for i, tick in enumerate(law.ticks):
        found.append((f"the period of tick {i}", tick.every, "a positive time in seconds"))
        found.append((f"the phase of tick {i}", tick.phase, time))
    for z in law.lower.keys() & law.upper.keys():
        what = f"the upper bound of {plain(z)} less the lower one"
        found.append((what, law.upper[z] - law.lower[z], "a lower bound that is not above"))
    found = [(what, unfold(f), right) for what, f, right in found]
    return [one for one in found if one[1].free_symbols <= {*law.params}]


@per_structure
def _check_structure(law: Any) -> None:
    _check_names(law)
    _check_places(law)
    _check_symbols(law)
    if law.kind == "link":
        _check_link(law)
    elif "rate" not in law.out:
        raise LawError(
            f"{law.name}: a source needs its sending rate; give out={{'rate': ...}} [bit/s]"
        )
    _check_units(law)


def _check_names(law: Any) -> None:
    for z in law.flow:
        if not isinstance(z, Symbol) or isinstance(z, Let):
            raise LawError(
                f"{law.name}: {shown(z)} cannot be a state; states are symbols, as in "
                "flow={x: ...}"
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
            signal = f"; the signal is `{imported(s)}`" if s in law.inputs else ""
            raise LawError(
                f"{law.name}: two different symbols are called {plain(s)}; rename one (symbols "
                f"differ when their assumptions do){signal}"
            )


def _check_places(law: Any) -> None:
    """Refuse what names other states than the law's, events of nothing, and unknown outputs."""
    events = {f"jump {i}": j.reset for i, j in enumerate(law.jumps)}
    events |= {f"tick {i}": k.update for i, k in enumerate(law.ticks)}
    notes = {f"jump {i}" for i, j in enumerate(law.jumps) if j.once}  # which may change nothing
    for place, changes in events.items():
        if not changes and place not in notes:
            noted = ", or give once=True to note its instants" * place.startswith("jump")
            raise LawError(
                f"{law.name}: {place} changes no state; name one in its {{state: new value}}{noted}"
            )
        if (queue := getattr(law, "queue", None)) in changes:
            raise LawError(
                f"{law.name}: {place} changes the queue {queue}, which only what enters and "
                f"leaves can do"
            )
    bounds = {"lower": law.lower, "upper": law.upper, "initial": law.initial}
    steady = getattr(law, "steady", {})
    for place, named in {**bounds, **events, "steady": steady}.items():
        for z in named:
            if z not in law.flow and (place, z) != ("steady", "rate"):
                raise LawError(
                    f"{law.name}: {place} names {z}, which is no state; the states are "
                    f"{_names(law.flow)} (a state without a flow has flow 0)"
                )
    for i, j in enumerate(law.jumps):
        if j.when.is_number:
            raise LawError(
                f"{law.name}: the condition of jump {i} is {shown(j.when)}, which never changes; "
                f"give one of states"
            )
    for name in law.out:
        if name not in law.outputs:
            raise LawError(
                f"{law.name}: {shown(name)} is no output of a {law.kind}; use "
                f"{' or '.join(law.outputs)}"
            )


_SMALLEST = (
    ". What is above the smallest delay seen is a state of its own, flow={d: edot / (1 + edot)}, "
    "lower={d: 0}, initial={d: 0}, units={d: 's'}; the smallest one-way delay is then e - d"
)


_BEFORE_A_RUN = ("the lower bound", "the upper bound")  # which are not computed anew


def _check_pasts(law: Any) -> None:
    """Refuse a past where none is known, of what none is known, or so long ago as nobody knows."""
    for place, f in law.expressions():
        for one in sorted(agos([f]), key=str):
            if law.kind == "link" or place.startswith(_BEFORE_A_RUN):
                who = "links" if law.kind == "link" else "bounds and initial values"
                raise LawError(
                    f"{law.name}: {place} has the past {plain(one)}, but {who} know of none; ago "
                    "is for flows, outputs, jumps and ticks of sources: let a state follow it there"
                )
            if one.of not in law.flow and one.of not in law.inputs:
                raise LawError(
                    f"{law.name}: {place} has the past of {plain(one.of)}, which is neither a "
                    "state, a parameter nor a signal; declare it in flow, or in params and units"
                )
            lag = one.lag
            known = {*law.flow, *law.params, *law.constants, *symbols_of(RTT)}
            for s in sorted(lag.free_symbols & {*law.inputs} - known, key=str):
                raise LawError(
                    f"{law.name}: the lag in {place} depends on {plain(s)}; make it of parameters, "
                    "states and the round trip"
                )
            roles = "neither a state, a parameter nor the round trip, of which a lag is made"
            _check_expression(law, f"the lag in {place}", lag, known, roles)


def _check_symbols(law: Any) -> None:
    _check_pasts(law)
    known = {*law.flow, *law.params, *law.inputs, *pasts(law)}
    for place, f in law.expressions():
        _check_expression(law, place, f, known, "neither a state, a parameter nor a signal")
    steady = getattr(law, "steady", {})
    for z, f in steady.items():
        roles = "neither a parameter, a signal nor a state that is left at an equilibrium"
        _check_expression(law, f"steady {plain(z)}", f, known - steady.keys(), roles)
    at_first = {*law.params, *law.constants}
    roles = f"neither a parameter, a constant ({_names(law.constants)}) nor an earlier state"
    before: set[Symbol] = set()
    for z in law.flow:
        if z in law.initial:
            place = f"the initial value of {plain(z)}"
            _check_expression(law, place, law.initial[z], at_first | before, roles)
        before.add(z)
    for side in ("lower", "upper"):
        for z, f in getattr(law, side).items():
            if moving := sorted(symbols_of(f) - at_first, key=str):
                raise LawError(
                    f"{law.name}: the {side} bound of {plain(z)} moves with {plain(moving[0])}; "
                    f"bounds are made of parameters and constants ({_names(law.constants)})"
                    f"{_SMALLEST if law.kind == 'source' else ''}"
                )


_MEANT = {
    sympy.pi: "the loss or mark ratio is `from fluidcc.symbols import pi`; ",
    sympy.E: "the one-way delay is `from fluidcc.symbols import e`; ",
}


def _check_expression(law: Any, place: str, f: Any, known: set[Symbol], roles: str) -> None:
    if not isinstance(f, Expr):
        raise LawError(
            f"{law.name}: {place} is {f}, which is no expression; use Piecewise or Heaviside for "
            f"conditions"
        )
    f = unfold(f)
    for number in sorted(f.atoms(NumberSymbol), key=str):
        raise LawError(
            f"{law.name}: {place} has sympy.{number}, the number {float(number):.10g}; "
            f"{_MEANT.get(number, '')}write {float(number)!r} if the number is meant"
        )
    if f.has(I):
        raise LawError(f"{law.name}: {place} has sympy.I, the root of -1; laws are of real numbers")
    if f.has(nan, zoo, oo, -oo):
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
        if not isinstance(g, FUNCTIONS):
            few = ", ".join(one.__name__ for one in FUNCTIONS)
            raise LawError(
                f"{law.name}: {place} holds {shown(g)}, but laws have no {g.func}; write it by "
                f"{few}"
            )
    for s in sorted(f.free_symbols - known, key=str):
        name, names = plain(s), list(map(plain, known))
        remedy = "declare it in params and units"
        other = LINK_INPUTS if law.kind == "source" else SOURCE_INPUTS
        signals = {plain(one): one for one in (*law.inputs, RTT)}
        if s in other:
            kind = "links" if law.kind == "source" else "sources"
            remedy = f"it is a signal of {kind}; take one of {law.kind}s, or a parameter"
        elif name in signals:
            remedy = f"the signal of that name has other assumptions: `{imported(signals[name])}`"
        elif name in names:
            remedy = "use the same symbol: there is one of that name with other assumptions"
        elif close := difflib.get_close_matches(name, names, n=1, cutoff=0.6):
            remedy = f"did you mean {close[0]}? Else {remedy}"
        raise LawError(f"{law.name}: {name} in {place} is {roles}; {remedy}")


# --- units ----------------------------------------------------------------------------------------


def _dim_of(law: Any, s: Any, text: Any) -> Dim:
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


def dimensions(law: Any, units: Mapping[Symbol, str], past: Iterable[Any]) -> dict[Symbol, Dim]:
    """Return those of what a law is made of: its signals, what has these units, and some pasts."""
    units = {**{s: SIGNAL_UNITS[s] for s in law.inputs}, **units}
    units |= {one: units[one.of] for one in past if one.of in units}
    return {s: dim_of_text(text) for s, text in units.items()}


def _check_units(law: Any) -> None:
    for role, names in (("state", law.flow), ("parameter", law.params)):
        for s in names:
            if s not in law.units:
                raise LawError(
                    f"{law.name}: {role} {plain(s)} has no unit; add it to units, as in "
                    f"units={{{plain(s)}: 'bit/s'}}"
                )
    for s in law.units:
        if s not in law.flow and s not in law.params:
            raise LawError(
                f"{law.name}: units names {shown(s)}, which is neither a state nor a parameter; "
                f"drop it"
            )
    dims = dimensions(law, law.units, pasts(law))
    for relation in law.where:
        _check_comparison(law, "where", relation, dims)
    initial = ((f"the initial value of {plain(z)}", f, (z,)) for z, f in law.initial.items())
    steady = (
        (f"steady {plain(z)}", f, ("bit/s" if z == "rate" else z,))
        for z, f in getattr(law, "steady", {}).items()
    )
    lags = ((f"the lag of {plain(one)}", one.lag, ("s",)) for one in pasts(law))
    for place, f, unit in (*law.equations(), *initial, *steady, *lags):
        f = unfold(f)
        for relation in f.atoms(Relational):
            _check_comparison(law, place, relation, dims)
        got = measure(f, dims)
        if got is None:
            raise LawError(
                f"{law.name}: {place} mixes units: {explain(f, dims)}; correct it, or a unit in "
                f"units"
            )
        if f.is_number:  # one that stands alone is in the unit of its place
            continue
        if isinstance(got, Dim) and unit is not None:
            parts = [dims[one] if isinstance(one, Symbol) else dim_of_text(one) for one in unit]
            wanted = Dim(*map(sum, zip(*parts, strict=True)))
            if not same(got, wanted):
                raise LawError(
                    f"{law.name}: {place} has unit {got}, wanted {wanted}"
                    f"{_constant([(f, got), (Integer(1), wanted)])}; correct it, or a unit in units"
                )


def _check_comparison(law: Any, place: str, relation: Any, dims: Mapping[Symbol, Dim]) -> None:
    gap = relation.lhs - relation.rhs
    if measure(gap, dims) is None:
        raise LawError(
            f"{law.name}: {place} compares {relation}: {explain(gap, dims)}; correct it, or units"
        )


# --- what links and utilities need ----------------------------------------------------------------


def _check_link(law: Any) -> None:
    given = [name for name in REPORTING if name in law.out]
    lacking = [name for name in REPORTING if name not in law.out]
    if given and lacking:
        raise LawError(
            f"{law.name}: it reports {given[0]!r} without {lacking[0]!r}; give "
            f"{', '.join(REPORTING)}"
        )
    q = law.queue
    if q is None:
        for name, what in (
            ("drop", "does not enter the queue"),
            ("loss", "a full buffer loses"),
        ):
            if name in law.out:
                raise LawError(
                    f"{law.name}: {name!r} is what {what}; name the queue=, or use 'mark'"
                )
        if not law.out:
            raise LawError(
                f"{law.name}: a link needs a queue= or an output: {', '.join(law.outputs)}"
            )
        return
    if q not in law.flow:
        raise LawError(
            f"{law.name}: queue={q} is no state; the states are {', '.join(map(plain, law.flow))}"
        )
    if not same(_dim_of(law, q, law.units.get(q, "s")), Dim(s=1)):
        raise LawError(f"{law.name}: the queue is a delay; its unit is {law.units[q]}, wanted s")
    if simplify(unfold(law.flow[q]) - (y - c) / c) != 0:
        raise LawError(
            f"{law.name}: the flow of the queue is {law.flow[q]}, wanted (y - c)/c: what "
            "enters less what leaves"
        )


@lru_cache(maxsize=256)
def _slopes(U: Expr, x: Symbol) -> tuple[Expr, Expr]:
    return diff(U, x), diff(U, x, 2)


def _check_utility(law: Any) -> None:
    """Refuse a U that is not increasing and concave at the parameters in use, over ten decades of
    rate.
    """
    x, U = law.out["rate"], unfold(law.utility)
    if x not in law.flow:
        raise LawError(
            f"{law.name}: a utility is one of the rate, so the rate must be a state, not {shown(x)}"
        )
    roles = f"neither a parameter nor the rate {plain(x)}"
    _check_expression(law, "the utility", law.utility, {x, *law.params}, roles)
    slopes = _slopes(U, x)
    if slopes[0].is_positive and slopes[1].is_negative:
        return
    rates = np.logspace(-1, 9, 41)
    for slope, sign, word in zip(slopes, (1, -1), ("increasing", "strictly concave"), strict=True):
        f = lambdify([x, *law.params], slope, modules="numpy")
        with np.errstate(all="ignore"):
            values = sign * np.broadcast_to(f(rates, *law.params.values()), rates.shape)
        wrong = rates[~((values > 0) & np.isfinite(values))]
        if wrong.size:
            raise LawError(
                f"{law.name}: the utility {shown(U)} is not {word} at {plain(x)} = {wrong[0]:.3g}; "
                f"give one that is increasing and concave at every positive rate"
            )
