"""A formula: one SymPy expression, evaluated over arrays, that refuses arguments outside its
domain.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sympy import Eq, Expr, Function, Piecewise, Symbol, Tuple, lambdify, latex, log, sympify
from sympy.core.relational import Relational

from fluidcc.base.arguments import numbers
from fluidcc.base.errors import InvalidInput, NotFinite
from fluidcc.base.units import to_si
from fluidcc.symbols import plain

__all__ = ["Bound", "Formula", "Values", "argument", "common_shape", "deficit", "range_of"]

Array = NDArray[np.float64]

# --- arguments of formulas ------------------------------------------------------------------------


def range_of(s: Symbol) -> str:
    """Return what the assumptions on an argument ask of its values."""
    if s.is_positive:
        return "positive"
    if s.is_nonnegative:
        return "at least 0"
    return "finite and not 0" if s.is_nonzero else "finite"


def argument(function: str, s: Symbol, value: Any, unit: str = "1") -> Array:
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


def common_shape(function: str, values: Mapping[Symbol, Array]) -> tuple[int, ...]:
    """Return the shape to which arguments broadcast.

    Raises
    ------
    InvalidInput
        If they do not.
    """
    try:
        return np.broadcast_shapes(*(v.shape for v in values.values()))
    except ValueError:
        shapes = ", ".join(f"{plain(s)} {v.shape}" for s, v in values.items() if v.shape)
        raise InvalidInput(
            f"{function}: arrays of these shapes do not go together: {shapes}"
        ) from None


# --- A formula ------------------------------------------------------------------------------------


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
        signs = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
        text = (
            f"{self.what or self.condition.lhs} is {left:.6g} at {_place(arguments)}, but must be "
            f"{signs[self.condition.rel_op]} {right:.6g}"
        )
        remedy = self.remedy
        if self.bound is not None:
            value = sympify(self.bound).subs(arguments)
            remedy += f"{value:.6g}" if value.is_finite else "none at all"
        return f"{text}: {remedy}" if remedy else text


def _place(arguments: Mapping[Symbol, float]) -> str:
    return ", ".join(f"{plain(s)}={v:g}" for s, v in arguments.items())


class Values(tuple[Any, ...]):
    """The values of several expressions, by position and by name."""

    def __new__(cls, named: Mapping[str, Any]) -> Self:
        self = super().__new__(cls, named.values())
        vars(self).update(named)
        return self

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no value {name!r}; there are {', '.join(vars(self))}")

    def __getnewargs__(self) -> Any:
        return (vars(self),)

    def __repr__(self) -> str:
        return f"({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


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
        object.__setattr__(self, "__doc__", _numpydoc(self))

    def __reduce__(self) -> Any:  # what was compiled cannot be pickled
        return Formula, tuple(getattr(self, f.name) for f in fields(self))

    # --- what it is -------------------------------------------------------------------------------

    @property
    def _forms(self) -> Mapping[str, Any]:
        return self.form if isinstance(self.form, Mapping) else {self.name: sympify(self.form)}

    @cached_property
    def expr(self) -> Any:
        """The SymPy expression in elementary functions; a Tuple if there are several."""
        found = [f.doit() for f in self._forms.values()]
        return Tuple(*found) if isinstance(self.form, Mapping) else found[0]

    @property
    def latex(self) -> str:
        """The equation in LaTeX."""
        return r" \qquad ".join(f"{_upright(name)} = {latex(f)}" for name, f in self._forms.items())

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex}$"

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(plain, self.arguments))}) = {self.expr}"

    # --- its value --------------------------------------------------------------------------------

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Evaluate it."""
        values = self._values(args, kwargs)
        shape = common_shape(self.name, values)
        with np.errstate(all="ignore"):
            kept = self._conditions(*values.values())
            for bound, good in zip(self.domain, kept, strict=True):
                if 0 not in shape and not np.all(good):
                    point = _first(np.logical_not(good), values)
                    raise InvalidInput(f"{self.name}: {bound.explain(point)}")
            found = self._compiled(*values.values())
        results = {
            name: self._result(np.broadcast_to(np.asarray(f, dtype=float), shape), values)
            for name, f in zip(self._forms, found, strict=True)
        }
        return Values(results) if isinstance(self.form, Mapping) else results[self.name]

    def _values(self, args: Any, kwargs: Any) -> dict[Symbol, Array]:
        try:
            bound = inspect.signature(self).bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidInput(f"{self.name}{inspect.signature(self)}: {error}") from None
        bound.apply_defaults()
        return {
            s: argument(self.name, s, bound.arguments[plain(s)], self.units.get(s, "1"))
            for s in self.arguments
        }

    def _result(self, found: Array, values: Mapping[Symbol, Array]) -> Any:
        wrong = np.isnan(found) if self.infinite else ~np.isfinite(found)
        if np.any(wrong):
            point = _place(_first(wrong, values))
            raise NotFinite(f"{self.name} is too large or too small for a float at {point}")
        return float(found) if found.ndim == 0 else np.array(found)

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        return self._lambdify(list(self._forms.values()))

    @cached_property
    def _conditions(self) -> Callable[..., Any]:
        return self._lambdify([bound.condition for bound in self.domain])

    def _lambdify(self, forms: list[Expr]) -> Callable[..., Any]:
        made: Callable[..., Any] = lambdify(
            self.arguments, forms, modules=[{"deficit": _deficit}, "scipy", "numpy"], cse=True
        )
        return made


def _first(wrong: NDArray[np.bool_], values: Mapping[Symbol, Array]) -> dict[Symbol, float]:
    """The arguments where the first value is wrong."""
    at = np.broadcast_arrays(wrong, *values.values())
    first = np.argmax(at[0])
    return {s: float(v.flat[first]) for s, v in zip(values, at[1:], strict=True)}


def _numpydoc(f: Formula) -> str:
    """Return the docstring of a formula."""
    arguments = "\n".join(
        f"{plain(s)} : array_like\n    {range_of(s).capitalize()} [{f.units.get(s, '1')}]."
        for s in f.arguments
    )
    kind, values = "float or ndarray", ""
    if isinstance(f.form, Mapping):
        kind, values = "Values", f"The values {', '.join(f.form)}, by name and by position. "
    conditions = "".join(
        f"\n    If not {b.condition}{f': {b.remedy}' if b.remedy else ''}." for b in f.domain
    )
    return f"""{f.name}{inspect.signature(f)}: {f.ref}.

Parameters
----------
{arguments}

Returns
-------
{kind}
    {values}Of the shape to which the arguments broadcast; floats for numbers.

Raises
------
InvalidInput
    If an argument is not in its range, or text of another unit.{conditions}"""


def _upright(name: str) -> str:
    """Return a name in LaTeX: one letter as a symbol, a word upright."""
    return name if len(name) == 1 else "\\mathrm{" + name.replace("_", "\\_") + "}"
