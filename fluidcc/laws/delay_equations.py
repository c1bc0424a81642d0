"""`fluidcc.solve_dde`, of functions or of SymPy equations, which are compiled for it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Derivative, Eq, Expr, Symbol, expand, lambdify, sympify
from sympy.core.function import AppliedUndef

from fluidcc.base.arguments import numbers, shown
from fluidcc.base.errors import InvalidInput, UnknownName, Unsupported
from fluidcc.laws.kernels import decided_text, scalar_text
from fluidcc.laws.switches import Collector, Switched
from fluidcc.numerics.compiling import load_text
from fluidcc.numerics.dde import solve as numeric

_HEAD = """import math
import numpy as np
from fluidcc.numerics.compiling import njit
"""


@functools.wraps(numeric.solve_dde)
def solve_dde(*arguments: Any, **options: Any) -> Any:
    # its docstring is that of the numeric one
    fun = arguments[0] if arguments else options.get("fun")
    if callable(fun) or not isinstance(fun, Mapping | list | tuple | Eq):
        return numeric.solve_dde(*arguments, **options)
    try:
        given = inspect.signature(numeric.solve_dde).bind_partial(*arguments, **options).arguments
    except TypeError:
        return numeric.solve_dde(*arguments, **options)  # which says what does not fit
    return numeric.solve_dde(**compiled_equations(given))


def compiled_equations(given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments of `solve_dde` with functions compiled from the equations in ``fun``.

    Raises
    ------
    InvalidInput
        If they are no equations, or lack a history or parameter; each message names what.
    UnknownName
        If a state has no equation, or a parameter of `args` does not occur.
    Unsupported
        If a lag depends on a delayed state.
    """
    equations = _Equations(given["fun"])
    for name, where in (("lags", "x(t - tau)"), ("switches", "Max, Abs, Piecewise")):
        if given.get(name) is not None:
            raise InvalidInput(
                f"{name} are told by the equations, as in {where}; leave out the argument {name}"
            )
    return equations.compiled(dict(given))


class _Equations:
    """Delay equations x'(t) = f in SymPy: states, lags, parameters, and kinks held by modes."""

    def __init__(self, given: Any) -> None:
        pairs = [_pair(one) for one in _items(given)]
        if not pairs:
            raise InvalidInput("fun holds no equations; give {x(t): right-hand side, ...}")
        self.t: Symbol = pairs[0][0].args[0]
        for x, _ in pairs:
            if x.args != (self.t,) or not isinstance(self.t, Symbol):
                raise InvalidInput(f"{x} is no state: give each as a function of {self.t} alone")
        self.states = [x.func for x, _ in pairs]
        self.now = [Symbol(f"y_{i}", real=True) for i in range(len(pairs))]
        self.then: dict[Symbol, str] = {}  # delayed states, with their text
        self.lags: list[Expr] = []
        collect = Collector("the equations")
        rates = [collect.rewrite(self.plain(f)) for _, f in pairs]
        self.held = Switched(
            dict(zip(self.now, rates, strict=True)), {}, tuple(collect.switches), collect.modes
        )

    def plain(self, f: Any) -> Expr:
        """An expression in which symbols stand for the states, now and delayed."""
        f, symbols = sympify(f), {}
        for x in f.atoms(AppliedUndef):
            if x.func not in self.states or len(x.args) != 1:
                raise UnknownName(
                    f"there is no equation of {x}; there are those of "
                    f"{', '.join(map(str, self.states))}"
                )
            i, lag = self.states.index(x.func), expand(self.t - x.args[0])
            symbols[x] = self.now[i] if lag == 0 else self._delayed(i, lag)
        return f.xreplace(symbols)

    def _delayed(self, i: int, lag: Expr) -> Symbol:
        lag = self.plain(lag)
        if lag.free_symbols & set(self.then):
            raise Unsupported(
                f"the lag {lag} depends on a delayed state; make that lag a state of its own"
            )
        if lag not in self.lags:
            self.lags.append(lag)
        j = self.lags.index(lag)
        symbol = Symbol(f"z_{i}_{j}", real=True)
        self.then[symbol] = f"Z[{i}, {j}]"
        return symbol

    def compiled(self, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments of the numeric `solve_dde`: functions, constants and tables."""
        events, history = given.get("events"), given.get("history")
        listed = [events] if callable(events) or isinstance(events, Expr) else list(events or ())
        watched = [g if callable(g) else self.plain(g) for g in listed]
        past = self._past(history) if isinstance(history, Mapping) else []
        asked = {k: g for k, g in enumerate(watched) if isinstance(g, Expr)}
        values = self._parameters(given.get("args", ()), [*asked.values(), *past])
        names: dict[Symbol, str] = {self.t: "t", **self.then}
        names |= {p: f"p{k}" for k, p in enumerate(values)}
        names |= {y: f"y[{i}]" for i, y in enumerate(self.now)}
        rest = "".join(f", p{k}" for k in range(len(values)))
        modes = ", modes" if self.held.modes else ""
        text = _HEAD + _function("fun", f"t, y, Z{modes}{rest}", self._rates(names))
        for k in range(len(self.held.modes)):
            text += _function(f"switch{k}", f"t, y, Z{rest}", self._switch(k, names))
        for k, g in asked.items():
            past_states = ", Z" if self._late(g) else ""
            body = decided_text([g], names, "k", "events")
            text += _function(f"event{k}", f"t, y{past_states}{rest}", body)
        if moving := _any(self.lags, {self.t, *self.now}):
            text += _function("lags", f"t, y{rest}", decided_text(self.lags, names, "k", "lags"))
        if rolling := _any(past, {self.t}):
            body = decided_text(_fixed(past, values), names, "k", "history")
            text += _function("history", "t", body)
        module = load_text(text, "delay_equations")
        given |= {"fun": module.fun, "args": _table(values)}
        given["lags"] = module.lags if moving else _constants(self.lags, values)
        if past:
            given["history"] = module.history if rolling else _constants(past, values)
        given["switches"] = [getattr(module, f"switch{k}") for k in range(len(self.held.modes))]
        if events is not None:
            for k, g in asked.items():
                watched[k] = getattr(module, f"event{k}")
                watched[k].delayed = self._late(g)
            given["events"] = watched
        return given

    def _late(self, g: Expr) -> bool:
        return not g.free_symbols.isdisjoint(self.then)

    def _past(self, history: Mapping[Any, Any]) -> list[Expr]:
        """The history of each state, in order."""
        by_name = {getattr(x, "func", x): f for x, f in history.items()}
        if set(by_name) != set(self.states):
            raise InvalidInput(
                f"history has {', '.join(map(str, by_name))}; give it for each of "
                f"{', '.join(map(str, self.states))}"
            )
        return [sympify(by_name[x]) for x in self.states]

    def _parameters(self, args: Any, more: list[Expr]) -> dict[Symbol, Any]:
        """The value of each parameter of the equations, in order of name."""
        every = [*self.held.flow.values(), *self.held.switches, *self.lags, *more]
        free = set().union(*(f.free_symbols for f in every))
        symbols = free - {self.t, *self.now, *self.then, *self.held.modes}
        if not isinstance(args, Mapping):
            if len(args) > 0:
                raise InvalidInput("args must name parameters of equations: {beta: 0.2, ...}")
            args = {}
        named = {str(p): value for p, value in args.items()}
        known = {str(p): p for p in symbols}
        for name in named.keys() - known.keys():
            raise UnknownName(
                f"args has {name}, no parameter of the equations; they are "
                f"{', '.join(sorted(known)) or 'none'}"
            )
        for name in sorted(known.keys() - named.keys()):
            raise InvalidInput(f"parameter {name} of the equations has no value; give it in args")
        return {
            known[name]: numbers(named[name], name, "a number, or one a run")
            for name in sorted(known)
        }

    def _held_lines(
        self, names: dict[Symbol, str], mode: str
    ) -> tuple[list[str], dict[Symbol, str]]:
        """Lines with the value ``g{k}`` of each switch, and names that hold the modes too."""
        lines, named = [], dict(names)
        for k, (m, here) in enumerate(zip(self.held.modes, self.held.signs, strict=True)):
            more, (value,) = scalar_text(
                [self.held.guarded(self.held.switches[k])], named, f"s{k}_"
            )
            lines += [*more, f"g{k} = {value}"]
            named[here] = f"(1.0 if g{k} > 0.0 else 0.0)"
            named[m] = mode.format(k) or named[here]
        return lines, named

    def _rates(self, names: dict[Symbol, str]) -> tuple[list[str], list[str]]:
        lines, named = self._held_lines(names, "modes[{}]")
        rates = [self.held.guarded(f) for f in self.held.flow.values()]
        more, texts = scalar_text(rates, named)
        return [*lines, *more], texts

    def _switch(self, k: int, names: dict[Symbol, str]) -> tuple[list[str], list[str]]:
        return self._held_lines(names, "")[0], [f"g{k}"]


def _function(name: str, given: str, body: tuple[list[str], list[str]]) -> str:
    """The text of a function that returns the texts of `body` after its lines."""
    lines, texts = body
    returned = f"return np.array([{', '.join(f'float({f})' for f in texts)}])"
    inside = "".join(f"    {line}\n" for line in [*lines, returned])
    return f"\n\n@njit(entry=True)\ndef {name}({given}):\n{inside}"


def _fixed(past: list[Expr], values: dict[Symbol, Any]) -> list[Expr]:
    """A history that depends on time; parameters in it are numbers once for all."""
    if any(np.ndim(v) and _any(past, {p}) for p, v in values.items()):
        raise Unsupported(
            "history depends on time and on parameters of many runs; make it one of time alone"
        )
    return [f.subs({p: float(v) for p, v in values.items() if not np.ndim(v)}) for f in past]


def _any(expressions: Sequence[Expr], symbols: set[Symbol]) -> bool:
    """Whether any of the expressions depends on any of the symbols."""
    return any(not f.free_symbols.isdisjoint(symbols) for f in expressions)


def _table(values: dict[Symbol, Any]) -> Any:
    """The parameters of one run as a tuple, those of many as rows."""
    shape = np.broadcast_shapes(*(np.shape(v) for v in values.values()))
    columns = [np.broadcast_to(v, shape) for v in values.values()]
    return np.stack(columns, axis=-1) if shape else tuple(float(v) for v in columns)


def _constants(expressions: list[Expr], values: dict[Symbol, Any]) -> Any:
    """Values of expressions of the parameters: a vector, or rows where they differ by run."""
    evaluate = lambdify(list(values), expressions, "numpy")
    found = [np.asarray(v, dtype=float) for v in evaluate(*values.values())]
    shape = np.broadcast_shapes(*(v.shape for v in found))
    return np.stack([np.broadcast_to(v, shape) for v in found], axis=-1) if found else np.zeros(0)


def _items(given: Any) -> Iterable[Any]:
    if isinstance(given, Mapping):
        return given.items()
    return [given] if isinstance(given, Eq) else given


def _pair(one: Any) -> tuple[AppliedUndef, Any]:
    """State and right-hand side of an equation."""
    if isinstance(one, Eq) and isinstance(one.lhs, Derivative) and len(one.lhs.args[1:]) == 1:
        one = (one.lhs.expr, one.rhs)
    if isinstance(one, tuple) and isinstance(one[0], AppliedUndef) and len(one[0].args) == 1:
        return one
    raise InvalidInput(
        f"fun holds {shown(one)}, which is no equation; give {{x(t): right-hand side}}, or "
        "Eq(x(t).diff(t), right-hand side)"
    )
