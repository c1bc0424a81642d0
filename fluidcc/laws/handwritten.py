"""Laws too irregular for SymPy, from a function of numbers written by hand: see
`fluidcc.Source.from_kernel`.

The function enters a law's equations as `Handwritten`, whose derivative nobody knows. It is kept as
text, so that such a law hashes, pickles and compiles like any other.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import inspect
import math
import textwrap
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Expr, Function, Integer, Symbol
from sympy.core.symbol import Str

from fluidcc.base.arguments import shown
from fluidcc.base.errors import LawError, Unsupported
from fluidcc.symbols import SOURCE_INPUTS, plain

_KNOWN = ("math", "np", "numpy")


class Handwritten(Function):
    """Value number k of a function written by hand, at given arguments: ``Handwritten(text, k,
    *arguments)``.
    """

    @property
    def text(self) -> str:
        """The function, as Python."""
        return str(self.args[0])

    @property
    def label(self) -> str:
        """Its name, the same for the same text only."""
        return f"hand_{hashlib.sha256(self.text.encode()).hexdigest()[:12]}"

    @property
    def given(self) -> str:
        """The name it was written under."""
        return str(_head(self.text).name)

    def call(self, arguments: Sequence[str]) -> str:
        """Return the text of its value, in a scope where `definition` stands."""
        return f"{self.label}({', '.join(arguments)})[{int(self.args[1])}]"

    @property
    def definition(self) -> str:
        """Text that defines it under its label."""
        head = _head(self.text)
        head.name = self.label
        return ast.unparse(head) + "\n"

    def _eval_derivative(self, s: Any) -> Expr:
        if s not in self.free_symbols:
            return Integer(0)
        raise Unsupported(
            f"the kernel {self.given}() is written by hand, so it has no derivative by {plain(s)}: "
            "what needs equations (equilibria, linearisation, stability, proofs) cannot use it; "
            "simulate it, or write the law in symbols"
        )

    def _eval_is_finite(self) -> None:
        return None

    def _numpycode(self, printer: Any) -> str:
        numbers = [printer._print(a) for a in self.args[2:]]
        return f"Handwritten({self.text!r}, {int(self.args[1])}, {', '.join(numbers)})"

    def _sympystr(self, printer: Any) -> str:
        return f"{self.given}({', '.join(plain(a) for a in self.args[2:])})[{int(self.args[1])}]"

    def _latex(self, printer: Any, exp: Any = None) -> str:
        inside = ", ".join(printer._print(a) for a in self.args[2:])
        name = self.given.replace("_", " ")
        shown = rf"\mathrm{{{name}}}_{{{int(self.args[1])}}}\left({inside}\right)"
        return shown if exp is None else rf"\left({shown}\right)^{{{exp}}}"

    @staticmethod
    def _imp_(text: str, k: int, *arguments: Any) -> Any:
        """Return the value; `lambdify` calls this."""
        values = np.vectorize(lambda *numbers: _function(text)(*numbers)[k], otypes=[float])
        return values(*arguments)


def _head(text: str) -> Any:
    """The function that a text defines."""
    return ast.parse(text).body[0]


@lru_cache(maxsize=64)
def _function(text: str) -> Callable[..., Any]:
    scope: dict[str, Any] = {"math": math, "np": np, "numpy": np}
    name = _head(text).name
    exec(compile(text, f"<kernel {name}>", "exec"), scope)
    found: Callable[..., Any] = scope[name]
    return found


def _source_text(kernel: Any, law: str) -> str:
    """Return the function alone: without decorators, comments and type hints."""
    function = getattr(kernel, "py_func", kernel)  # of a numba function
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        raise LawError(
            f"{law}: the source of its kernel {shown(kernel)} cannot be read; write it with def, "
            "in a file or notebook cell"
        ) from None
    if not (tree.body and isinstance(tree.body[0], ast.FunctionDef)):
        raise LawError(
            f"{law}: its kernel is not a function made by def; write it so, and not as a lambda"
        )
    head = tree.body[0]
    a = head.args
    if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs or a.defaults:
        raise LawError(
            f"{law}: its kernel {head.name} must name every argument, without * or default values"
        )
    head.decorator_list, head.returns = [], None
    for argument in a.args:
        argument.annotation = None
    if ast.get_docstring(head):
        head.body = head.body[1:]
    _refuse_outside(function, head.name, law)
    return ast.unparse(ast.fix_missing_locations(tree))


def _refuse_outside(function: Any, name: str, law: str) -> None:
    inside = inspect.getclosurevars(function)
    allowed = {k: v for k, v in inside.globals.items() if k in _KNOWN}
    names = {*inside.nonlocals, *inside.globals, *inside.unbound} - {*allowed, *dir(builtins)}
    names -= set(dir(math)) | set(dir(np))  # attributes, which Python lists among the unbound names
    if outside := sorted({*inside.nonlocals, *inside.globals} - {*allowed} | names):
        raise LawError(
            f"{law}: its kernel {name} uses {outside[0]} from outside; define it inside the "
            "kernel, or make it a parameter (math and numpy, as np, are there)"
        )


def handwritten_parts(
    law: str, kernel: Any, states: Sequence[Symbol], params: Sequence[Symbol], rate: Any
) -> tuple[dict[Symbol, Expr], Any]:
    """Return the flow of each state, and the rate, of a law whose equations are a function written
    by hand.

    Raises
    ------
    LawError
        If the function cannot be used: the message says why, and what would be right.
    """
    if not isinstance(states, Sequence) or not all(isinstance(z, Symbol) for z in states):
        raise LawError(
            f"{law}: states is {shown(states)}; give the symbols of the states in a list"
        )
    text = _source_text(kernel, law)
    name = str(_head(text).name)
    known = {plain(s): s for s in (*SOURCE_INPUTS, *params, *states)}
    arguments = [a.arg for a in _head(text).args.args]
    if odd := [a for a in arguments if a not in known]:
        raise LawError(
            f"{law}: argument {odd[0]} of its kernel {name} is neither a state "
            f"({', '.join(map(plain, states))}), a "
            f"parameter ({', '.join(map(plain, params)) or 'none'}) nor a signal "
            f"({', '.join(map(plain, SOURCE_INPUTS))}); rename it, or declare it"
        )
    wanted = len(states) + (rate is None)
    _try_out(law, name, text, len(arguments), wanted, rate is None)
    values = [
        Handwritten(Str(text), Integer(k), *(known[a] for a in arguments)) for k in range(wanted)
    ]
    return dict(zip(states, values, strict=False)), values[-1] if rate is None else rate


def _try_out(law: str, name: str, text: str, count: int, wanted: int, rate: bool) -> None:
    try:
        with np.errstate(all="ignore"):
            got = _function(text)(*np.linspace(0.7, 1.3, count))
    except Exception as error:
        raise LawError(
            f"{law}: its kernel {name} raises {type(error).__name__} ({error}) where every "
            "argument is about 1; it must return numbers for every value"
        ) from error
    numbers = isinstance(got, tuple) and all(isinstance(v, int | float | np.floating) for v in got)
    if not numbers or len(got) != wanted:
        what = "the derivative of each state" + (", then the rate" if rate else "")
        raise LawError(
            f"{law}: its kernel {name} returns {got!r}; return a tuple of {wanted}: {what}"
        )
