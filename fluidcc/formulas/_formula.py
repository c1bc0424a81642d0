"""A formula: one SymPy expression, evaluated over arrays, that refuses arguments outside its
domain.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sympy import Eq, Expr, Function, Piecewise, Symbol, Tuple, lambdify, latex, log, sympify
from sympy.core.relational import (
    GreaterThan,
    LessThan,
    Relational,
    StrictGreaterThan,
    StrictLessThan,
)

from fluidcc.base.arguments import numbers
from fluidcc.base.errors import InvalidInput, NotFinite
from fluidcc.base.units import to_si
from fluidcc.symbols import plain

__all__ = [
    "Bound", "Formula", "Values", "argument", "common_shape", "deficit", "numpydoc", "range_of",
]  # fmt: skip


def numpydoc(
    name: str,
    signature: inspect.Signature,
    arguments: Iterable[Symbol],
    units: Mapping[Symbol, str],
    ref: str,
    results: Iterable[str],
    conditions: Mapping[Any, str],
) -> str:
    """Return the docstring of a formula.

    Parameters
    ----------
    results : iterable of str
        Names of its values; none, if it has but one.
    conditions : mapping of relational to str
        What else must hold of the arguments, and why.
    """
    lines = [f"{name}{signature}: {ref}.", "", "Parameters", "----------"]
    for s in arguments:
        lines += [
            f"{plain(s)} : array_like",
            f"    {range_of(s).capitalize()} [{units.get(s, '1')}].",
        ]
    named = tuple(results)
    what = f"The values {', '.join(named)}, by name and by position. " if named else ""
    lines += ["", "Returns", "-------", "Values" if named else "float or ndarray"]
    lines += [f"    {what}Of the shape to which the arguments broadcast; floats for numbers."]
    lines += [
        "",
        "Raises",
        "------",
        "InvalidInput",
        "    If an argument is not in its range, or text of another unit.",
    ]
    lines += [
        f"    If not {condition}{f': {why}' if why else ''}."
        for condition, why in conditions.items()
    ]
    return "\n".join(lines)


# --- arguments of formulas ------------------------------------------------------------------------


def range_of(s: Symbol) -> str:
    """Return what the assumptions on an argument ask of its values."""
    if s.is_positive:
        return "positive"
    if s.is_nonnegative:
        return "at least 0"
    return "finite and not 0" if s.is_nonzero else "finite"


def argument(function: str, s: Symbol, value: Any, unit: str = "1") -> NDArray[np.float64]:
    """Return the value given for an argument, as an array in SI units.

    Parameters
    ----------
    function : str
        Whose argument it is, for messages.
    s : Symbol
        Its name and its range.
    value : array_like or str
        Text is converted into `unit`.

    Raises
    ------
    InvalidInput
        If it is neither, or some of it is out of range.
    """
    if isinstance(value, str):
        value = to_si(value, unit, f"{plain(s)} of {function}")
    found = numbers(
        value, f"{function}: {plain(s)}", "a number or an array of numbers", finite=False
    )
    wrong = ~np.isfinite(found)
    if s.is_positive:
        wrong |= found <= 0
    elif s.is_nonnegative:
        wrong |= found < 0
    elif s.is_nonzero:
        wrong |= found == 0
    if np.any(wrong):
        raise InvalidInput(
            f"{function}: {plain(s)} is {found[wrong].flat[0]:g}, but must be {range_of(s)}"
        )
    return found


def common_shape(function: str, values: dict[str, NDArray[np.float64]]) -> tuple[int, ...]:
    """Return the shape to which arguments broadcast.

    Raises
    ------
    InvalidInput
        If they do not.
    """
    try:
        return np.broadcast_shapes(*(v.shape for v in values.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {v.shape}" for name, v in values.items() if v.shape)
        raise InvalidInput(
            f"{function}: arrays of these shapes do not go together: {shapes}"
        ) from None


# --- A formula ------------------------------------------------------------------------------------


_HOLDS: dict[Any, Callable[..., Any]] = {
    StrictLessThan: np.less,
    LessThan: np.less_equal,
    StrictGreaterThan: np.greater,
    GreaterThan: np.greater_equal,
}


class deficit(Function):
    """(1 - (1 - z)**q)/q, and its limit -log(1 - z) at q = 0; evaluated without cancellation
    near it.
    """

    nargs = 2

    def doit(self, **hints: Any) -> Expr:
        """Return it in elementary functions."""
        q, z = (a.doit(**hints) for a in self.args)
        if q.is_zero:
            return -log(1 - z)
        power = (1 - (1 - z) ** q) / q
        return power if q.is_nonzero else Piecewise((-log(1 - z), Eq(q, 0)), (power, True))

    def _latex(self, printer: Any, **options: Any) -> str:
        q, z = self.args
        return str(printer.doprint((1 - (1 - z) ** q) / q if q != 0 else -log(1 - z)))


def _deficit(q: Any, z: Any) -> Any:
    from scipy.special import exprel

    root = np.log1p(-z)
    return -root * exprel(q * root)


@dataclass(frozen=True)
class Bound:
    """A condition on the arguments, and what to say when it fails.

    Parameters
    ----------
    condition : relational
        Such as ``sigma*U**(l - 1) < 1``.
    remedy : str
        What to change; the value of `bound` is put at its end.
    bound : Expr, optional
        The limit on the argument that the remedy names.
    what : str
        How to call the left side of the condition; by default it is printed.

    Examples
    --------
    >>> from sympy import symbols
    >>> p = symbols("p", positive=True)
    >>> Bound(p < 1, "give a loss ratio", what="the loss").explain({p: 2.0})
    'the loss is 2 at p=2, but must be below 1: give a loss ratio'
    """

    condition: Relational
    remedy: str = ""
    bound: Any = None
    what: str = ""

    def explain(self, arguments: Mapping[Symbol, float]) -> str:
        """Say which value breaks the condition, and the remedy with its bound."""
        left, right = (float(side.doit().subs(arguments)) for side in self.condition.args)
        at = ", ".join(f"{plain(s)}={v:g}" for s, v in arguments.items())
        sign = {
            StrictLessThan: "below",
            LessThan: "at most",
            StrictGreaterThan: "above",
            GreaterThan: "at least",
        }
        what = self.what or self.condition.lhs
        text = f"{what} is {left:.6g} at {at}, but must be {sign[type(self.condition)]} {right:.6g}"
        remedy = self.remedy
        if self.bound is not None:
            value = sympify(self.bound).subs(arguments)
            remedy += f"{value:.6g}" if value.is_finite else "none at all"
        return f"{text}: {remedy}" if remedy else text


class Values(tuple[Any, ...]):
    """The values of several expressions, by position and by name."""

    _names: tuple[str, ...]

    def __new__(cls, named: Mapping[str, Any]) -> Self:
        self = super().__new__(cls, named.values())
        self._names = tuple(named)
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(
                f"there is no value {name!r}; there are "
                f"{', '.join(self.__dict__.get('_names', ()))}"
            )
        return self[self._names.index(name)]

    def __reduce__(self) -> Any:
        return Values, (dict(zip(self._names, self, strict=True)),)

    def __repr__(self) -> str:
        values = zip(self._names, self, strict=True)
        return f"({', '.join(f'{name}={value}' for name, value in values)})"


@dataclass(frozen=True, eq=False, repr=False)
class Formula:
    """A closed form, called like a NumPy function.

    Arguments are numbers or arrays that broadcast against one another, or text with a unit where
    `units` names one. The value is a float for numbers, else an array; `Values` if there are
    several expressions.

    Parameters
    ----------
    name : str
        Its name in messages.
    arguments : tuple of Symbol
        In the order of the call; what their assumptions say (positive, ...) is checked.
    form : Expr or mapping of str to Expr
        The expression, or several by name.
    domain : tuple of Bound
        Further conditions on the arguments.
    defaults : mapping of Symbol to float
        Default values of the last arguments.
    units : mapping of Symbol to str
        Units in which numbers are taken, and into which text is converted.
    ref : str
        Where it is from, and the unit of its value.
    claims : mapping of str to relational
        What `fluidcc.prove` can prove of it.
    infinite : bool
        Whether infinity is a possible value.

    Raises
    ------
    InvalidInput
        At a call, if an argument is outside the domain; the message has the bound.
    NotFinite
        At a call, if a value is too large for a float.

    Examples
    --------
    >>> from sympy import sqrt, symbols
    >>> p = symbols("p", positive=True)
    >>> window = Formula("window", (p,), sqrt(3/(2*p)), domain=(Bound(p < 1),))
    >>> round(window(0.015), 9)
    10.0
    >>> window(2)
    Traceback (most recent call last):
    ...
    fluidcc.base.errors.InvalidInput: window: p is 2 at p=2, but must be below 1
    """

    name: str
    arguments: tuple[Symbol, ...]
    form: Any
    domain: tuple[Bound, ...] = ()
    defaults: Mapping[Symbol, float] = field(default_factory=dict)
    units: Mapping[Symbol, str] = field(default_factory=dict)
    ref: str = ""
    claims: Mapping[str, Any] = field(default_factory=dict)
    infinite: bool = False

    def __post_init__(self) -> None:
        P = inspect.Parameter
        parameters = [
            P(plain(s), P.POSITIONAL_OR_KEYWORD, default=self.defaults.get(s, P.empty))
            for s in self.arguments
        ]
        object.__setattr__(self, "__signature__", inspect.Signature(parameters))
        results = self.form if isinstance(self.form, Mapping) else ()
        conditions = {bound.condition: bound.remedy for bound in self.domain}
        about = (
            self.name,
            self.__signature__,  # type: ignore[attr-defined]
            self.arguments,
            self.units,
            self.ref,
            results,
            conditions,
        )
        object.__setattr__(self, "__doc__", numpydoc(*about))

    def __reduce__(self) -> Any:
        return Formula, tuple(
            getattr(self, f.name) for f in fields(self)
        )  # what was compiled cannot be pickled

    # --- what it is -------------------------------------------------------------------------------

    @property
    def _named(self) -> dict[str, Expr]:
        return (
            dict(self.form) if isinstance(self.form, Mapping) else {self.name: sympify(self.form)}
        )

    @cached_property
    def expr(self) -> Any:
        """The SymPy expression in elementary functions; a Tuple if there are several."""
        found = [f.doit() for f in self._named.values()]
        return Tuple(*found) if isinstance(self.form, Mapping) else found[0]

    @property
    def latex(self) -> str:
        """The equation in LaTeX."""
        return r" \qquad ".join(f"{_upright(name)} = {latex(f)}" for name, f in self._named.items())

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex}$"

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(plain, self.arguments))}) = {self.expr}"

    # --- its value --------------------------------------------------------------------------------

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Evaluate it."""
        values = self._values(args, kwargs)
        shape = common_shape(self.name, dict(zip(map(plain, self.arguments), values, strict=True)))
        self._check(values)
        with np.errstate(all="ignore"):
            found = self._compiled(*values)
        results = [
            self._result(np.broadcast_to(np.asarray(f, dtype=float), shape), values) for f in found
        ]
        if isinstance(self.form, Mapping):
            return Values(dict(zip(self.form, results, strict=True)))
        return results[0]

    def _values(self, args: Any, kwargs: Any) -> list[NDArray[np.float64]]:
        try:
            bound = inspect.signature(self).bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidInput(f"{self.name}{inspect.signature(self)}: {error}") from None
        bound.apply_defaults()
        return [
            argument(self.name, s, bound.arguments[plain(s)], self.units.get(s, "1"))
            for s in self.arguments
        ]

    def _check(self, values: list[NDArray[np.float64]]) -> None:
        for bound, sides in zip(self.domain, self._sides, strict=True):
            with np.errstate(all="ignore"):
                good = _HOLDS[type(bound.condition)](*sides(*values))
            if not np.all(good):
                at = np.broadcast_arrays(good, *values)
                first = np.argmin(at[0])
                point = {
                    s: float(v.flat[first]) for s, v in zip(self.arguments, at[1:], strict=True)
                }
                raise InvalidInput(f"{self.name}: {bound.explain(point)}")

    def _result(self, found: NDArray[np.float64], values: list[NDArray[np.float64]]) -> Any:
        wrong = np.isnan(found) if self.infinite else ~np.isfinite(found)
        if np.any(wrong):
            at = [float(v.flat[np.argmax(wrong)]) for v in np.broadcast_arrays(*values)]
            point = ", ".join(f"{plain(s)}={v:g}" for s, v in zip(self.arguments, at, strict=True))
            raise NotFinite(f"{self.name} is too large or too small for a float at {point}")
        return float(found) if found.ndim == 0 else np.array(found)

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        return self._lambdify(list(self._named.values()))

    @cached_property
    def _sides(self) -> list[Callable[..., Any]]:
        return [self._lambdify(list(b.condition.args)) for b in self.domain]

    def _lambdify(self, forms: list[Expr]) -> Callable[..., Any]:
        made: Callable[..., Any] = lambdify(
            self.arguments, forms, modules=[{"deficit": _deficit}, "scipy", "numpy"], cse=True
        )
        return made


def _upright(name: str) -> str:
    """Return a name in LaTeX: one letter as a symbol, a word upright."""
    return name if len(name) == 1 else "\\mathrm{" + name.replace("_", "\\_") + "}"
