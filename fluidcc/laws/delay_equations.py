"""`fluidcc.solve_dde`, of functions or of SymPy equations, which are compiled for it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from typing import Any

import numpy as np
from sympy import Eq, Expr, Symbol, lambdify

from fluidcc.base.arguments import numbers, shown
from fluidcc.base.errors import InvalidInput, UnknownName, Unsupported
from fluidcc.laws.delay_system import System, history_of
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
    equations = Equations(given["fun"])
    result = numeric.solve_dde(**equations.compiled(given))
    for run in result if isinstance(result, list) else [result]:
        run.rows = equations.rows
    return result


class Equations(System):
    """Delay equations in SymPy, as functions to compile; kinks are held by modes.

    Raises
    ------
    InvalidInput
        If they are no equations, or lack a history or parameter; each message names what.
    UnknownName
        If a state has no equation, or a parameter of `args` does not occur.
    Unsupported
        If a lag depends on a delayed state, or the equations are neutral, have distributed delays,
        impulses, partial derivatives or complex numbers.
    """

    def __init__(self, given: Any) -> None:
        super().__init__(given)
        collect = Collector("the equations")
        flow = {y: collect.rewrite(f) for y, f in zip(self.now, self.rates, strict=True)}
        self.held = Switched(flow, {}, tuple(collect.switches), collect.modes)

    def compiled(self, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments of the numeric `solve_dde`: functions, constants and tables."""
        for name, where in (("lags", "x(t - tau)"), ("switches", "Max, Abs, Piecewise")):
            if given.get(name) is not None:
                raise InvalidInput(
                    f"{name} are told by the equations, as in {where}; leave out the argument "
                    f"{name}"
                )
        given, watched = self._with_watched(given)
        history = self._given_history(given)
        past = history_of(self, history) if isinstance(history, Mapping) else []
        values = self._parameters(given.get("args", ()), [*(g for g, _ in watched), *past])
        names: dict[Symbol, str] = {self.t: "t", **self.then}
        names |= {p: f"p{k}" for k, p in enumerate(values)}
        names |= {y: f"y[{i}]" for i, y in enumerate(self.now)}
        with _printable():
            module = load_text(self._text(names, watched, past, values), "delay_equations")
        given |= {"fun": module.fun, "args": _table(values)}
        moving = hasattr(module, "lags")
        given["lags"] = module.lags if moving else _constants(self.lags, values)
        if past:
            rolling = hasattr(module, "history")
            given["history"] = module.history if rolling else _constants(past, values)
        elif "history" in given:
            given["history"] = history
        given["switches"] = [getattr(module, f"switch{k}") for k in range(len(self.held.modes))]
        for k, (g, options) in enumerate(watched):
            event = getattr(module, f"event{k}")
            event.delayed = self._late(g)
            event.direction = options.get("direction", 0)
            event.terminal = options.get("terminal")
            place, i = options["place"]
            given[place][i] = event if place == "events" else (event, given[place][i][1])
        return given

    def _text(
        self, names: dict[Symbol, str], watched: list[Any], past: list[Expr], values: Any
    ) -> str:
        """The module of the functions."""
        rest = "".join(f", p{k}" for k in range(len(values)))
        modes = ", modes" if self.held.modes else ""
        text = _HEAD + _function("fun", f"t, y, Z{modes}{rest}", self._rates(names))
        for k in range(len(self.held.modes)):
            text += _function(f"switch{k}", f"t, y, Z{rest}", self._switch(k, names))
        for k, (g, _) in enumerate(watched):
            past_states = ", Z" if self._late(g) else ""
            body = decided_text([g], names, "k", "events")
            text += _function(f"event{k}", f"t, y{past_states}{rest}", body)
        if _any(self.lags, {self.t, *self.now}):
            text += _function("lags", f"t, y{rest}", decided_text(self.lags, names, "k", "lags"))
        if _any(past, {self.t}):
            body = decided_text(_fixed(past, values), names, "k", "history")
            text += _function("history", "t", body)
        return text

    def _with_watched(self, given: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """The arguments with lists of events and jumps, and of those that are expressions the
        expression, with what is asked of its zeros and where it belongs.
        """
        given, found = dict(given), []
        for place in ("events", "jumps"):
            if given.get(place) is None:
                continue
            listed = given[place]
            if isinstance(listed, Expr | Eq) or _with_options(listed):
                listed = [listed]
            given[place] = listed = list(numeric.listed(place, listed))
            for i, one in enumerate(listed):
                if place == "jumps" and isinstance(one, tuple | list) and len(one) == 2:
                    one = one[0]
                g, options = one if _with_options(one) else (one, {})
                if wrong := set(options) - {"direction", "terminal"}:
                    raise InvalidInput(
                        f"{place}[{i}] has the option {shown(min(wrong, key=str))}; give direction "
                        f"and terminal"
                    )
                if isinstance(g, Eq):
                    g = g.lhs - g.rhs
                if isinstance(g, Expr) and not g.is_number:
                    found.append((self.plain(g), {**options, "place": (place, i)}))
                elif options:
                    raise InvalidInput(
                        f"{place}[{i}] is {shown(g)} with options; give them with an expression, "
                        f"and as attributes of a function"
                    )
        return given, found

    def _given_history(self, given: dict[str, Any]) -> Any:
        """The history: by name if it holds expressions, else with as many numbers as states."""
        history: Any = given.get("history")
        names = self.names
        if isinstance(history, Expr) and not history.is_number:
            history = [history]
        if isinstance(history, Mapping) or "history" not in given:
            return history
        few, what = len(self.orders), history
        if not self.in_order:
            raise InvalidInput(
                f"history is {shown(history)}, and equations that are solved for derivatives have "
                f"no order; give it by name: {{{', '.join(f'{x}: ...' for x in names[:few])}}}"
            )
        if callable(history):
            try:
                what = history(float(given["t_span"][0]))
            except (KeyError, TypeError, ValueError, IndexError):
                return history  # the solver says what is wrong
        size = np.shape(what)[-1] if np.ndim(what) else 1
        if size not in (len(names), few) or (size < len(names) and callable(history)):
            raise InvalidInput(
                f"history gives {size} number{'s'[: size != 1]}, and the states are "
                f"{', '.join(names)}; give {len(names)}, in this order, or "
                f"{{{', '.join(f'{x}: expression in {self.t}' for x in names[:few])}}}, whose "
                f"derivatives are taken"
            )
        if isinstance(history, Sequence) and any(isinstance(f, Expr) for f in history):
            return dict(zip(names, history, strict=False))
        if callable(history) or size == len(names) or np.asarray(history).dtype.kind not in "iuf":
            return history
        still = np.zeros((*np.shape(history)[:-1], len(names) - few))  # constants do not change
        return np.concatenate([np.atleast_1d(history), still], axis=-1)

    def _late(self, g: Expr) -> bool:
        return not g.free_symbols.isdisjoint(self.then)

    def _parameters(self, args: Any, more: list[Expr]) -> dict[Symbol, Any]:
        """The value of each parameter of the equations, in order of name."""
        every = [*self.held.flow.values(), *self.held.switches, *self.lags, *more]
        free = set().union(*(f.free_symbols for f in every))
        symbols = free - {self.t, *self.now, *self.then, *self.held.modes}
        if not isinstance(args, Mapping):
            if args is not None and (not isinstance(args, Sized) or len(args) > 0):
                raise InvalidInput("args must name parameters of equations: {beta: 0.2, ...}")
            args = {}
        named = {str(p): value for p, value in args.items()}
        known = {str(p): p for p in symbols}
        if len(known) < len(symbols):
            raise InvalidInput(
                f"two parameters of the equations have one name, with other assumptions; they are "
                f"{', '.join(sorted(map(str, symbols)))}; use one symbol for each name"
            )
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
    sizes = {str(p): np.size(v) for p, v in values.items() if np.ndim(v)}
    deep = [str(p) for p, v in values.items() if np.ndim(v) > 1]
    if deep or len({*sizes.values()} - {1}) > 1:
        told = ", ".join(f"{p} {size} values" for p, size in sizes.items())
        raise InvalidInput(
            f"args has {told}; give each parameter one number, or all lists of one length, a "
            f"value for each run"
        )
    shape = np.broadcast_shapes(*(np.shape(v) for v in values.values()))
    columns = [np.broadcast_to(v, shape) for v in values.values()]
    return np.stack(columns, axis=-1) if shape else tuple(float(v) for v in columns)


def _with_options(one: Any) -> bool:
    return isinstance(one, tuple) and len(one) == 2 and isinstance(one[1], Mapping)


@contextmanager
def _printable() -> Iterator[None]:
    """Say what SymPy has no Python for."""
    try:
        yield
    except NotImplementedError as error:
        what = str(error).split("\n")[0].replace("'>", "").split(".")[-1].split(": ")[-1]
        raise Unsupported(
            f"the equations use {what}, which cannot be computed by Python's math; write it out, "
            f"or give fun as a function fun(t, y, Z)"
        ) from error


def _constants(expressions: list[Expr], values: dict[Symbol, Any]) -> Any:
    """Values of expressions of the parameters: a vector, or rows where they differ by run."""
    evaluate = lambdify(list(values), expressions, "numpy")
    found = [np.asarray(v, dtype=float) for v in evaluate(*values.values())]
    shape = np.broadcast_shapes(*(v.shape for v in found))
    return np.stack([np.broadcast_to(v, shape) for v in found], axis=-1) if found else np.zeros(0)
