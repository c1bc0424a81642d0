"""The field's vocabulary, once: what a path tells a source, what the flows tell a link.

Symbols are identified by name *and* assumptions, so every law takes its signals from here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from sympy import (
    Abs,
    Expr,
    Float,
    Heaviside,
    Max,
    Min,
    Piecewise,
    Rational,
    Symbol,
    SympifyError,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceiling,
    cos,
    cosh,
    exp,
    floor,
    lambdify,
    log,
    sign,
    sin,
    sinh,
    symbols,
    sympify,
    tan,
    tanh,
)
from sympy.codegen.cfunctions import expm1, log1p
from sympy.logic.boolalg import Boolean
from sympy.printing.numpy import NumPyPrinter

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import LawError

__all__ = [
    "FUNCTIONS", "LINK_INPUTS", "LINK_OUTPUTS", "OF_FLOWS", "OUTPUT_MEANING", "OUTPUT_UNITS",
    "RATIOS", "REPORTING", "RTT", "SIGNAL_MEANING", "SIGNAL_UNITS", "SOURCE_INPUTS",
    "SOURCE_OUTPUTS", "SUDDEN", "Let", "c", "change", "crossing", "e", "e_b", "edot", "expression",
    "factors", "imported", "loss", "mark", "no_ecn", "noise", "nonnegative", "numpy_function",
    "offer_max", "offer_min", "packet", "pi", "plain", "positive", "price", "q_max", "raises",
    "reports", "symbols_of", "t", "trip_max", "trip_mean", "unfold", "x_tau", "y",
]  # fmt: skip

positive = partial(symbols, positive=True)
"""Return the symbol of this name, or those of these names, that stand for positive numbers."""
nonnegative = partial(symbols, nonnegative=True)
"""The same for numbers that may be 0."""

t = Symbol("t", real=True)  # time [s]

# What a source knows at time t: values stamped at theta, when the datum acknowledged now left.
e = nonnegative("e")  # one-way delay of the path [s]
edot = Symbol(r"\dot{e}", real=True)  # its derivative with respect to theta [1]
# What the path loses of the data, what it marks of the rest, and the union of both: the share that
# does not come through unmarked, pi = 1 - (1 - loss)(1 - mark) [1].
loss, mark, pi = RATIOS = nonnegative(r"\mathrm{loss} \mathrm{mark} \pi")
price = nonnegative(r"\lambda")  # sum of the link prices on the path [1]
x_tau = nonnegative(r"x_{\tau}")  # own rate one feedback loop ago [bit/s]
e_b = nonnegative("e_b")  # return delay, a constant of the flow [s]
packet = positive(r"\ell")  # packet length, a constant of the flow [bit a packet]

# What routers on the path say, each straight back to the source: no queue delays it. An offer is a
# rate that a link would grant; of those on the path a source knows the least (1e30 without one) and
# the largest (0 without one).
offer_min = nonnegative("offer_min")  # [bit/s]
offer_max = nonnegative("offer_max")  # [bit/s]
# The k-th router on the route that reports: multiply your rate by a factor and raise it by so much;
# its reports so far.
factors = tuple(nonnegative(f"factor_{k}") for k in (1, 2, 3))  # [1]
raises = tuple(nonnegative(f"raise_{k}") for k in (1, 2, 3))  # [bit/s]
reports = tuple(nonnegative(f"reports_{k}") for k in (1, 2, 3))  # a count
noise = Symbol(
    "noise", real=True
)  # of mean 0 and variance 1, drawn anew from time to time by the run's seed [1]

# What a link knows.
y = nonnegative("y")  # arrival rate [bit/s]
c = positive("c")  # capacity [bit/s]
q_max = positive(r"q_{\max}")  # buffer / capacity, the longest queueing delay [s]
# And of the flows that are on and cross it: how many there are, the longest and the mean round
# trip between it and their sources, without queues [s], and the share of what arrives that is of
# flows without ECN [1].
crossing, trip_max, trip_mean, no_ecn = OF_FLOWS = nonnegative("crossing trip_max trip_mean no_ecn")

SOURCE_INPUTS = (
    e,
    edot,
    *RATIOS,
    price,
    x_tau,
    e_b,
    packet,
    t,
    offer_min,
    offer_max,
    *factors,
    *raises,
    *reports,
    noise,
)
SUDDEN = (
    edot,
    *RATIOS,
    price,
    x_tau,
)  # of them those that data bring, and that may jump where the rates of sources do
SOURCE_OUTPUTS = ("rate",)
LINK_INPUTS = (y, c, q_max, t, *OF_FLOWS)
REPORTING = ("factor", "raise", "reports")
LINK_OUTPUTS = ("loss", "mark", "price", "drop", "offer", *REPORTING)

SIGNAL_UNITS = {
    t: "s",
    e: "s",
    edot: "1",
    **dict.fromkeys(RATIOS, "1"),
    price: "1",
    x_tau: "bit/s",
    e_b: "s",
    packet: "bit/packet",
    y: "bit/s",
    c: "bit/s",
    q_max: "s",
    offer_min: "bit/s",
    offer_max: "bit/s",
    **dict.fromkeys((*factors, *reports, noise, crossing, no_ecn), "1"),
    **dict.fromkeys(raises, "bit/s"),
    **dict.fromkeys((trip_max, trip_mean), "s"),
}

SIGNAL_MEANING = {
    t: "time",
    e: "one-way delay of the path",
    edot: "rate at which the one-way delay grows",
    loss: "share that the path loses",
    mark: "share that it marks, of what is not lost",
    pi: "share that it loses or marks",
    price: "sum of the link prices on the path",
    x_tau: "own rate one feedback loop ago",
    e_b: "return delay of the flow",
    packet: "length of a packet",
    y: "arrival rate",
    c: "capacity",
    q_max: "queueing delay of a full buffer",
    offer_min: "smallest rate that a router on the path offers",
    offer_max: "largest rate that a router on the path offers",
    crossing: "number of flows that cross the link",
    trip_max: "longest round trip to a source of these flows, without queues",
    trip_mean: "mean round trip to the sources of these flows, without queues",
    no_ecn: "share of what arrives that cannot be marked",
    noise: "random number of mean 0 and variance 1",
    **dict.fromkeys(factors, "factor that a router asks for"),
    **dict.fromkeys(raises, "amount that a router adds to the rate"),
    **dict.fromkeys(reports, "reports of a router so far"),
}

OUTPUT_UNITS = {"rate": "bit/s", "offer": "bit/s", "raise": "bit/s"}  # of the others 1

OUTPUT_MEANING = {
    "rate": "sending rate",
    "loss": "share that a full buffer loses",
    "mark": "share that is marked",
    "price": "price of the link",
    "drop": "share that is dropped before the queue",
    "offer": "rate that a router offers, straight back to the sources",
    "factor": "factor that a router asks for, straight back to the sources",
    "raise": "amount that a router adds to the rate, straight back to the sources",
    "reports": "reports of a router so far",
}

FUNCTIONS = (
    Abs, Heaviside, Max, Min, Piecewise, acos, acosh, asin, asinh, atan, atanh, ceiling, cos, cosh,
    exp, expm1, floor,
    log, log1p, sign, sin, sinh, tan, tanh,
)  # fmt: skip
"""What laws may use, beside powers: kernels, equilibria and linearisations all have them."""


def expression(value: Any, what: str) -> Any:
    """Return `value` as SymPy has it; text is none, as its symbols would not be those of the
    vocabulary.
    """
    if isinstance(value, Expr) and not value.is_Matrix:
        return value
    try:
        found = None if isinstance(value, str | bytes | bool) else sympify(value)
    except (SympifyError, TypeError, ValueError):
        found = None
    vast = isinstance(found, Rational) and found.is_finite and abs(found) > sys.float_info.max
    if not isinstance(found, Expr | Boolean) or found.is_Matrix or vast:
        raise LawError(
            f"{what} is {shown(value)}; give an expression of SymPy symbols, or a number"
        )
    return found


def _as_defined(name: str) -> Callable[..., Any]:
    """A method of a `Let` that is its definition's."""
    return lambda self, *arguments: getattr(self.definition, name)(*arguments)


class Let(Symbol):
    r"""A named sub-expression: printed by its name, derived by its definition.

    Two Lets are equal when both name and definition are; its assumptions (positive, real, ...) are
    those of its definition. Differentiating or substituting goes through to the definition, so a
    Let is never mistaken for an independent variable. Units follow from the definition as well;
    none are declared.

    Parameters
    ----------
    name : str
        How the expression is printed, as LaTeX.
    definition : Expr or number
        What it stands for; it may contain further Lets.

    Examples
    --------
    >>> from fluidcc.symbols import RTT, e
    >>> (1 / RTT).diff(e)
    -1/\mathrm{RTT}**2
    """

    definition: Expr

    @explained
    def __new__(cls, name: str, definition: Any) -> Let:
        if not isinstance(name, str) or not name:
            raise LawError(f"the name of a Let is {shown(name)}; give text, such as 'v'")
        definition = expression(definition, f"the definition of Let {name!r}")
        known = {
            k: True
            for k in ("positive", "negative", "nonnegative", "nonpositive", "real")
            if getattr(definition, f"is_{k}")
        }
        self = Symbol.__xnew__(cls, name, **known)
        self.definition = definition
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str, Expr], dict[str, Any]]:
        return (self.name, self.definition), {}

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.definition)

    @property
    def free_symbols(self) -> set[Any]:
        return self.definition.free_symbols

    def _eval_derivative(self, s: Any) -> Expr:
        return self.definition.diff(s)

    def _eval_derivative_n_times(self, s: Any, n: Any) -> Expr:
        return self.definition.diff((s, n))

    # What kind of function of other symbols it is, SymPy asks to find signs: a Symbol is a
    # polynomial of itself.

    _eval_is_polynomial = _as_defined("_eval_is_polynomial")
    _eval_is_rational_function = _as_defined("_eval_is_rational_function")
    _eval_is_algebraic_expr = _as_defined("_eval_is_algebraic_expr")
    _eval_is_meromorphic = _as_defined("_eval_is_meromorphic")

    def _eval_subs(self, old: Any, new: Any) -> Expr | None:
        changed = self.definition._subs(old, new)
        return None if changed == self.definition else changed

    def _xreplace(self, rule: Any) -> tuple[Expr, bool]:
        if self in rule:
            return rule[self], True
        value, changed = self.definition._xreplace(rule)
        return (value, True) if changed else (self, False)


def unfold(f: Any) -> Expr:
    """Replace every `Let` in `f` by its definition, to the bottom."""
    return _unfolded(sympify(f))


@lru_cache(maxsize=4096)  # SymPy takes long over each Max and Min that it puts together again
def _unfolded(f: Expr) -> Expr:
    return f.xreplace({v: _unfolded(v.definition) for v in f.atoms(Let)})


class _Places(NumPyPrinter):
    """Writes symbols, and steps that are arguments, by their places among these."""

    def __init__(self, symbols: Sequence[Any], functions: Mapping[str, Any]) -> None:
        known = {name: name for name in functions}
        super().__init__({"fully_qualified_modules": False, "inline": True,
                          "allow_unknown_functions": True, "user_functions": known})  # fmt: skip
        self.names = {s: f"v{k}" for k, s in enumerate(symbols)}

    def _print_Symbol(self, symbol: Symbol) -> str:
        name: str = self.names.get(symbol) or super()._print_Symbol(symbol)
        return name

    _print_Dummy = _print_Symbol

    def _print(self, expr: Any, **options: Any) -> str:
        name = self.names.get(expr) if isinstance(expr, Heaviside) else None
        text: str = name or super()._print(expr, **options)
        return text


def numpy_function(
    symbols: Sequence[Any],
    forms: Any,
    functions: Mapping[str, Any] | None = None,
    **options: Any,
) -> Callable[..., Any]:
    r"""Return what `lambdify` does for NumPy and other `functions`.

    By itself it puts `forms` together anew for each symbol whose name is none in Python, such as
    ``\dot{e}``: of Max and Min that takes long.
    """
    own, names = dict(functions or {}), [f"v{k}" for k in range(len(symbols))]
    made: Callable[..., Any] = lambdify(
        names, forms, [own, "numpy"], _Places(symbols, own), docstring_limit=0, **options
    )
    return made


@lru_cache(maxsize=4096)
def symbols_of(f: Expr) -> frozenset[Symbol]:
    """Return the symbols that `f` depends on, to the bottom of every `Let`."""
    return frozenset(f.free_symbols)  # those of a Let are those of its definition


@lru_cache(maxsize=4096)
def plain(symbol: Symbol | str) -> str:
    r"""Name of a symbol without its LaTeX: ``q_{\max}`` is ``q_max``, ``\dot{e}`` is ``edot``."""
    text = re.sub(r"\\dot\{(.*?)\}", r"\1dot", str(symbol))
    return re.sub(r"[\\{}' ]|mathrm", "", text)


RTT = Let(r"\mathrm{RTT}", e + e_b)
change = Let("r'", edot / Max(1 + edot, Float("1e-5")))  # its derivative, as a source sees it [1]


def imported(symbol: Symbol) -> str:
    """Return how a symbol of the vocabulary is had: ``from fluidcc.symbols import pi``."""
    for name, value in globals().items():
        if value is symbol:
            return f"from fluidcc.symbols import {name}"
        if isinstance(value, tuple) and symbol in value and value in (factors, raises, reports):
            return f"from fluidcc.symbols import {name}; {name}[{value.index(symbol)}]"
    raise KeyError(symbol)
