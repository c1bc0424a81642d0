"""Delay equations of any order in SymPy, read and made a system of first order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sympy import (
    Derivative,
    DiracDelta,
    Dummy,
    Eq,
    Expr,
    I,
    Integral,
    Mod,
    Piecewise,
    Subs,
    Symbol,
    expand,
    sympify,
)
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.function import AppliedUndef

from fluidcc.base.arguments import shown
from fluidcc.base.errors import InvalidInput, UnknownName, Unsupported

Occurrence = tuple[Any, int, Expr]  # function, order of its derivative, and at which time
_HOPELESS = {
    Integral: "is a distributed delay; make it a state of its own, as z' = x(t) - x(t - T) for the "
    "integral of x over the last T, or a chain of states for a smooth kernel",
    DiracDelta: "is an impulse; give it as jumps=[(time, lambda t, y, *args: new state)]",
    ExprWithLimits: "has a variable of its own; write it out, as by .doit()",
}


_BROKEN = (Piecewise, Mod)  # SymPy's derivatives of these forget the jumps


class System:
    """Delay equations as a system of first order.

    Attributes
    ----------
    t : Symbol
        The time.
    orders : dict of function to int
        The highest derivative of each function, which the equations tell.
    states : list of (function, int)
        What the states are: the functions as given, then their lower derivatives.
    in_order : bool
        Whether the equations tell an order of the functions: implicit ones do not.
    now, then : list of Symbol, dict of Symbol to str
        What stands for each state, and for delayed states, these with their text.
    lags : list of Expr
    rates : list of Expr
        The derivative of each state.
    """

    def __init__(self, given: Any) -> None:
        if isinstance(given, Mapping):
            given = given.items()
        pairs = [_pair(one) for one in ([given] if isinstance(given, Eq) else given)]
        if not pairs:
            raise InvalidInput("fun holds no equations; give {x(t): right-hand side, ...}")
        self.t = _time(pairs)
        self.orders = self._orders(pairs)
        lower = [(f, p) for f, order in self.orders.items() for p in range(1, order)]
        self.states = [*((f, 0) for f in self.orders), *lower]
        self.now = [Symbol(f"_y_{k}", real=True) for k in range(len(self.states))]
        self.then: dict[Symbol, str] = {}
        self.lags: list[Expr] = []
        self._highest = {f: Symbol(f"_d_{k}", real=True) for k, f in enumerate(self.orders)}
        self._solved: dict[Symbol, Expr] = {}
        rates = self._solve(pairs)
        of: dict[Any, Expr] = dict(zip(self.states, self.now, strict=True))
        of |= {(f, n): rates[self._highest[f]] for f, n in self.orders.items()}
        self.rates = [of[f, p + 1] for f, p in self.states]

    @property
    def rows(self) -> dict[str, int]:
        """The number of each state by every text it is known by: x, x(t), x', Derivative(...)."""
        found = {}
        for k, (f, p) in enumerate(self.states):
            found[_primed(f, p)] = k
            found[str(Derivative(f(self.t), (self.t, p)) if p else f(self.t))] = k
        return found

    @property
    def names(self) -> list[str]:
        """The states as people write them: x, x'."""
        return [_primed(f, p) for f, p in self.states]

    def plain(self, f: Any) -> Expr:
        """An expression in which symbols stand for the states, now and delayed."""
        f = _expanded(sympify(f))
        if f.has(I):
            raise Unsupported(
                f"{shown(f)} is complex: give equations of its real and imaginary parts"
            )
        return self._walk(f).xreplace(self._solved)

    def _walk(self, f: Any) -> Any:
        if (found := _occurrence(f, self.t)) is not None:
            return self._symbol(f, *found)
        if not f.has(AppliedUndef):
            if f.has(*_HOPELESS):
                next(_occurrences(f, self.t))  # which says why
            return f
        return f.func(*(self._walk(a) for a in f.args))

    def _symbol(self, what: Any, f: Any, p: int, at: Expr) -> Symbol:
        if f not in self.orders:
            raise UnknownName(
                f"there is no equation of {what}; there are those of "
                f"{', '.join(map(str, self.orders))}"
            )
        lag = expand(self.t - at)
        if p >= self.orders[f]:
            if lag == 0 and p == self.orders[f]:
                return self._highest[f]
            raise Unsupported(
                f"the equations are neutral: {_primed(f, p)}({at}) is a delayed derivative of "
                f"order {p}, and the equation of {f} is of order {self.orders[f]}; only lower ones "
                f"may be delayed (the roots of linear neutral equations: fc.DelayLTI)"
            )
        k = self.states.index((f, p))
        return self.now[k] if lag == 0 else self._delayed(k, lag)

    def _delayed(self, k: int, lag: Expr) -> Symbol:
        given, lag = lag, self.plain(lag)
        if lag.free_symbols & set(self.then):
            raise Unsupported(
                f"the lag {given} depends on a delayed state; let a state follow it, as by "
                f"Eq(lag({self.t}).diff({self.t}), ({given} - lag({self.t}))/T) with a short T"
            )
        if lag.free_symbols & {*self._highest.values()}:
            raise Unsupported(
                f"the lag {given} depends on a highest derivative; put its equation in its place"
            )
        if lag not in self.lags:
            self.lags.append(lag)
        j = self.lags.index(lag)
        symbol = Symbol(f"_z_{k}_{j}", real=True)
        self.then[symbol] = f"Z[{k}, {j}]"
        return symbol

    def _orders(self, pairs: list[tuple[Any, Any]]) -> dict[Any, int]:
        """The order of each function: that of its derivative on the left, or the highest."""
        told: dict[Any, int] = {}
        for left, _ in pairs:
            found = _occurrence(left, self.t)
            if found is None or found[1] == 0:
                continue
            f, p, at = found
            if at != self.t:
                raise InvalidInput(f"{left} is no state: give each as a function of {self.t} alone")
            if f in told:
                raise InvalidInput(f"{f} has two equations; give one")
            told[f] = p
        highest: dict[Any, int] = {}
        for pair in pairs:
            for f, p, at in [o for side in pair for o in _occurrences(side, self.t)]:
                if at == self.t and p:
                    highest[f] = max(p, highest.get(f, 0))
        for f, p in told.items():
            if highest.get(f, p) > p:
                raise InvalidInput(
                    f"the equation of {f} tells its derivative of order {p}, but that of order "
                    f"{highest[f]} occurs; write it for the highest"
                )
        self.in_order = len(told) == len(pairs) or len(highest) == 1
        orders = told | {f: highest[f] for f in sorted(highest, key=str) if f not in told}
        if len(orders) != len(pairs):
            raise InvalidInput(
                f"fun has {len(pairs)} equation{'s'[: len(pairs) > 1]}, and derivatives of "
                f"{', '.join(map(str, orders))}; give one for each, as "
                f"Eq(x(t).diff(t), right-hand side)"
            )
        return orders

    def _solve(self, pairs: list[tuple[Any, Any]]) -> dict[Symbol, Expr]:
        """Each highest derivative by states alone; equations that are linear in them are solved."""
        rows = []
        for left, right in pairs:
            lhs, rhs = self.plain(left), self.plain(right)
            rows.append((lhs not in self._highest.values(), lhs, rhs, left))
        known = self._solved
        for _, lhs, rhs, left in sorted(rows, key=lambda row: row[0]):
            unknown = [d for d in self._highest.values() if d not in known]
            if lhs in unknown and not rhs.xreplace(known).has(lhs):
                d, value = lhs, rhs.xreplace(known)
            else:
                d, value = _linear((lhs - rhs).xreplace(known), unknown, left)
            for other, f in known.items():
                known[other] = f.xreplace({d: value})
            known[d] = value
        return known


def _primed(f: Any, p: int) -> str:
    """The name of a derivative, as x'."""
    return str(f) + "'" * p


def _linear(f: Expr, unknown: list[Symbol], left: Any) -> tuple[Symbol, Expr]:
    """The first unknown in f = 0, which must be linear in it, and its value."""
    for d in unknown:
        slope = f.diff(d)
        if slope == 0 or slope.equals(0):
            continue
        if slope.has(d, Derivative, Subs):
            break
        return d, -f.xreplace({d: sympify(0)}) / slope
    raise Unsupported(
        f"the equation of {shown(left)} does not tell a highest derivative (it must be linear in "
        f"one that no other equation tells); solve it for that: Eq(x(t).diff(t), right-hand side)"
    )


def _pair(one: Any) -> tuple[Any, Any]:
    """The two sides of an equation; the left one of x(t): f is the derivative of x."""
    wrong = InvalidInput(
        f"fun holds {shown(one)}, which is no equation; give {{x(t): right-hand side}}, or "
        "Eq(x(t).diff(t), right-hand side)"
    )
    if isinstance(one, Eq):
        if not one.has(Derivative):
            raise wrong
        return _expanded(one.lhs), _expanded(one.rhs)
    if not isinstance(one, tuple) or len(one) != 2:
        raise wrong
    left, right = one
    if isinstance(left, AppliedUndef):
        if len(left.args) > 1:
            _occurrence(left, None)  # which says why
        if not isinstance(left.args[0], Symbol):
            raise InvalidInput(f"{left} is no state: give each as a function of time alone")
        left = Derivative(left, left.args[0])
    try:
        right = sympify(right)
    except (TypeError, ValueError, SyntaxError, AttributeError):
        raise wrong from None
    if not isinstance(left, Derivative) or not isinstance(right, Expr) or right.is_Matrix:
        raise wrong
    return _expanded(left), _expanded(right)


def _expanded(f: Any) -> Any:
    """The expression with every derivative carried out that is not one of a function itself."""

    def carried(d: Any) -> Any:
        if d.expr.has(*_BROKEN):
            raise Unsupported(
                f"{shown(d)} may have impulses where its function jumps; write the derivative out, "
                f"and give an impulse as jumps=[(time, lambda t, y, *args: new state)]"
            )
        return d.doit()

    def open_(d: Any) -> bool:
        own = isinstance(d, Derivative) and isinstance(d.expr, AppliedUndef)
        return isinstance(d, Derivative) and not (own and all(a.is_Symbol for a in d.expr.args))

    return f.replace(open_, carried)


def _time(pairs: list[tuple[Any, Any]]) -> Symbol:
    """The variable of the first derivative that is one at the present."""
    for pair in pairs:
        for side in pair:
            for d in [side, *side.atoms(Derivative)]:
                if isinstance(d, Derivative) and not isinstance(d.variables[0], Dummy):
                    _occurrence(d, d.expr.args[0])
                    t: Symbol = d.variables[0]
                    return t
    raise InvalidInput(
        "the equations have no derivative at time itself; give Eq(x(t).diff(t), right-hand side), "
        "with what is delayed on the right"
    )


def _occurrences(f: Any, t: Symbol) -> Iterator[Occurrence]:
    """Every function of time in an expression, those in the times of others too."""
    found = _occurrence(f, t)
    if found is not None:
        yield found
    for part in f.args if found is None else found[2:]:
        yield from _occurrences(part, t)


def _occurrence(f: Any, t: Any) -> Occurrence | None:
    """Which derivative of a function, at which time, an expression is; None if it is none.

    Raises
    ------
    Unsupported
        For what is no term of a delay equation, or another derivative than one of time.
    """
    for kind, text in _HOPELESS.items():
        if isinstance(f, kind):
            raise Unsupported(f"{shown(f)} {text}")
    if isinstance(f, AppliedUndef):
        if len(f.args) != 1:
            raise Unsupported(
                f"{f} is a function of {len(f.args)} variables: partial differential equations are "
                f"not solved; give one function of time for each place, as by the method of lines"
            )
        return f.func, 0, f.args[0]
    if isinstance(f, Subs) and isinstance(f.expr, Derivative) and len(f.point) == 1:
        inner = f.expr.expr
        if isinstance(inner, AppliedUndef) and inner.args == f.variables:
            return inner.func, f.expr.derivative_count, f.point[0]
    if isinstance(f, Derivative) and len(f.expr.args) > 1:
        return _occurrence(f.expr, t)  # which says why
    if isinstance(f, Derivative) and set(f.variables) != {t}:
        raise Unsupported(
            f"{f} is a derivative with respect to {', '.join(map(str, f.variables))}, and time is "
            f"{t}; differentiate by {t}"
        )
    if isinstance(f, Derivative) and f.expr.args == (t,):
        return f.expr.func, f.derivative_count, t
    if isinstance(f, Derivative | Subs):
        raise Unsupported(f"{shown(f)} is no derivative of a function of {t}; write it out")
    return None


def history_of(system: System, history: Mapping[Any, Any]) -> list[Expr]:
    """The history of each state, in order; that of a lower derivative follows from its function.

    Raises
    ------
    InvalidInput
        If there is none of a function, or it cannot be differentiated.
    """
    rows, t = system.rows, Dummy("t", real=True)
    if unknown := [key for key in history if str(key) not in rows]:
        raise InvalidInput(
            f"history has {', '.join(map(str, unknown))}; give it for each of "
            f"{', '.join(str(f(system.t)) for f in system.orders)}: {{x(t): expression in t}}"
        )
    given = {rows[str(key)]: sympify(f) for key, f in history.items()}
    past: list[Expr] = []
    for k, (f, p) in enumerate(system.states):
        if k in given:
            past.append(given[k])
            continue
        if p == 0:
            raise InvalidInput(f"history has nothing of {f(system.t)}; give {{{f(system.t)}: ...}}")
        before = past[system.states.index((f, p - 1))]
        slope = before.xreplace({system.t: t}).diff(t).xreplace({t: system.t})
        if slope.has(DiracDelta, Derivative, Subs) or before.has(*_BROKEN):
            raise InvalidInput(
                f"history of {f} is {shown(before)}, whose derivative is not known; give it too: "
                f"{{{Derivative(f(system.t), (system.t, p))}: ...}}"
            )
        past.append(slope)
    return past
