"""From SymPy to straight-line Python, for compiled kernels.

This is the only place that turns SymPy into text. The text is scalar arithmetic on names the caller
chooses, with functions of the ``math`` module, and is valid both in plain Python and in numba.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sympy import Expr, Float, Integer, Piecewise, Pow, Rational, Symbol, cse, sympify
from sympy.printing.pycode import PythonCodePrinter

from fluidcc.base.errors import LawError
from fluidcc.laws.handwritten import Handwritten
from fluidcc.laws.law import Law
from fluidcc.laws.switches import Collector, mode_symbol
from fluidcc.symbols import unfold

__all__ = ["decided_text", "event_kernel_text", "scalar_text"]


_LONGEST_PRODUCT = 6  # x**6 as a product of two squares and more is still exact to a few ulps


def scalar_text(
    roots: Iterable[Any], names: Mapping[Symbol, str], prefix: str = "k"
) -> tuple[list[str], list[str]]:
    """Return the assignments, and one text for each of `roots`, as straight-line scalar Python.

    Parameters
    ----------
    roots : iterable of Expr
        Without Lets.
    names : mapping of Symbol to str
        Text for every free symbol.
    prefix : str
        Temporary names are this followed by a number.
    """
    return _Writer(names, prefix).write([sympify(f) for f in roots])


class _Writer:
    """Names branches and powers, shares sub-expressions outside of branches, and orders what
    results.
    """

    def __init__(self, names: Mapping[Symbol, str], prefix: str) -> None:
        self.names = names
        self.prefix = prefix
        self.stands_for: dict[Symbol, Expr] = {}
        self.branches: dict[Piecewise, Symbol] = {}

    def fresh(self) -> Symbol:
        # A real symbol of unique name: branch values may be of any sign.
        return Symbol(f"_{self.prefix}_{len(self.stands_for)}", real=True)

    def hide(self, f: Expr) -> Expr:
        """Return `f` with its outermost branches named, so that nothing is moved out of them."""
        if not f.has(Piecewise):
            return f
        if isinstance(f, Piecewise):
            if f not in self.branches:
                self.branches[f] = symbol = self.fresh()
                self.stands_for[symbol] = f
            return self.branches[f]
        return f.func(*(self.hide(a) for a in f.args))

    def write(self, roots: list[Expr]) -> tuple[list[str], list[str]]:
        hidden = [self.hide(f) for f in roots]
        tests = [cond for f in list(self.stands_for.values()) for _, cond in f.args]
        if any(cond.has(Piecewise) for cond in tests):
            raise LawError(
                "a branch is chosen by an expression that itself branches; hold it by a mode first"
            )
        shared, reduced = cse(hidden, symbols=iter(self._symbols()), order="none", list=True)
        full: dict[Expr, Symbol] = {}
        for symbol, f in shared:
            self.stands_for[symbol] = f
            full[f.xreplace({s: g for g, s in full.items()})] = symbol
        for f, g in zip(
            hidden, reduced, strict=True
        ):  # a root that is a branch's value needs no second computation
            if not g.is_Atom and f not in full:
                full[f] = symbol = self.fresh()
                self.stands_for[symbol] = g
        reduced = [full.get(f, g) for f, g in zip(hidden, reduced, strict=True)]
        for symbol in self.branches.values():
            self.stands_for[symbol] = self.stands_for[symbol].xreplace(full)
        reduced = [self.powers(f) for f in reduced]
        for symbol in list(self.stands_for):
            self.stands_for[symbol] = self.powers(self.stands_for[symbol])
        return self._print(reduced)

    def _symbols(self) -> Iterable[Symbol]:
        k = 0
        while True:
            yield Symbol(f"_{self.prefix}s_{k}", real=True)
            k += 1

    def powers(self, f: Expr) -> Expr:
        """Name the base of every whole power outside of branches, so that it can be printed as a
        product.
        """
        if isinstance(f, Piecewise) or f.is_Atom:
            return f
        f = f.func(*(self.powers(a) for a in f.args))
        if isinstance(f, Pow) and f.exp.is_Float and float(2 * f.exp).is_integer():
            f = Pow(f.base, Rational(int(2 * f.exp), 2))
        if (
            isinstance(f, Pow)
            and f.exp.is_Integer
            and 2 <= abs(f.exp) <= _LONGEST_PRODUCT
            and not f.base.is_Atom
        ):
            symbol = self.fresh()
            self.stands_for[symbol] = f.base
            return Pow(symbol, f.exp, evaluate=False)
        return f

    def _print(self, roots: list[Expr]) -> tuple[list[str], list[str]]:
        order: list[Symbol] = []

        def visit(f: Expr) -> None:
            for s in sorted(f.free_symbols, key=str):
                if s in self.stands_for and s not in order:
                    visit(self.stands_for[s])
                    order.append(s)

        for f in roots:
            visit(f)
        text = dict(self.names) | {s: f"{self.prefix}{k}" for k, s in enumerate(order)}
        show = _Printer(text).doprint
        return [f"{text[s]} = {show(self.stands_for[s])}" for s in order], [show(f) for f in roots]


class _Printer(PythonCodePrinter):
    """Scalar Python: floats for numbers, products for whole powers, lazy conditional
    expressions.
    """

    def __init__(self, names: Mapping[Symbol, str]) -> None:
        super().__init__({"fully_qualified_modules": True})
        self.names = names

    def _print_Symbol(self, expr: Symbol) -> str:
        return self.names[expr]

    def _print_Integer(self, expr: Integer) -> str:
        return repr(float(expr))

    def _print_Float(self, expr: Float) -> str:
        return repr(float(expr))

    def _print_Rational(self, expr: Rational) -> str:
        return repr(float(expr))

    def _print_Handwritten(self, expr: Handwritten) -> str:
        return expr.call([self._print(a) for a in expr.args[2:]])

    def _print_Piecewise(self, expr: Piecewise) -> str:
        text, last = "", False
        for value, cond in expr.args:
            if cond == True:  # noqa: E712  SymPy's own true
                text, last = text + self._print(value), True
                break
            text += f"{self._print(value)} if {self._print(cond)} else "
        return f"({text})" if last else f"({text}math.nan)"

    def _print_Pow(self, expr: Pow, rational: bool = False, sqrt: str = "math.sqrt") -> str:
        base, exponent = expr.base, expr.exp
        if exponent.is_Integer and 1 < abs(exponent) <= _LONGEST_PRODUCT and base.is_Atom:
            product = "*".join([self._print(base)] * abs(int(exponent)))
            return f"({product})" if exponent > 0 else f"(1.0/({product}))"
        if exponent == -1:
            return f"(1.0/{self.parenthesize(base, 100)})"
        if exponent in (Rational(1, 2), Rational(-1, 2)):
            root = f"math.sqrt({self._print(base)})"
            return root if exponent > 0 else f"(1.0/{root})"
        return f"({self.parenthesize(base, 100)}**{self.parenthesize(exponent, 100)})"


# --- text of what happens at once -----------------------------------------------------------------


def decided_text(
    expressions: Sequence[Any], names: dict[Symbol, str], prefix: str, owner: str
) -> tuple[list[str], list[str]]:
    """Return the assignments, and one text for each expression, kinks included.

    Parameters
    ----------
    names : dict of Symbol to str
        Text for every free symbol.
    prefix : str
        Of all temporary names.
    owner : str
        Whose expressions they are, for messages.
    """
    collect = Collector(owner)
    smooth = [collect.rewrite(unfold(f)) for f in expressions]
    named, lines = dict(names), []
    for k, switch in enumerate(collect.switches):
        more, (value,) = scalar_text([switch], named, f"{prefix}s{k}_")
        lines += [*more, f"{prefix}m{k} = 1.0 if {value} > 0.0 else 0.0"]
        named[mode_symbol(k)] = f"{prefix}m{k}"
    more, texts = scalar_text(smooth, named, f"{prefix}t")
    return [*lines, *more], texts


def event_kernel_text(law: Law, own: tuple[Symbol, ...], names: dict[Symbol, str]) -> str:
    """Return the text of ``kernel(n, su, z, u, p, m, dz, o, g, want)``: the states after event
    `want` of one flow or link.

    Events are the law's jumps, then its ticks. `n` and `su` are the strides of states and
    parameters, and of signals; ``dz`` takes the new states, ``o[0]`` the refractory time or the
    period, ``o[1]`` the phase of a tick.

    Parameters
    ----------
    own : tuple of Symbol
        The states, in the order of the kernel.
    names : dict of Symbol to str
        ``z0``, ``u0``, ``p0`` and so on for states, signals and parameters.
    """
    text = "def kernel(n, su, z, u, p, m, dz, o, g, want):\n"
    values = {"z": "n", "u": "su", "p": "n"}
    for name in sorted(set(names.values()), key=lambda v: (v[0], int(v[1:]))):
        text += f"    {name} = {name[0]}[{name[1:]}*{values[name[0]]}]\n"
    blocks = [_event(law, own, names, j.reset, old=(j.refractory, 0)) for j in law.jumps]
    blocks += [_event(law, own, names, k.update, old=(0, k.phase), new=k.every) for k in law.ticks]
    for number, block in enumerate(blocks):
        text += f"    if want == {number}:\n" + "".join(f"        {line}\n" for line in block)
    return text


def _event(
    law: Law,
    own: tuple[Symbol, ...],
    names: dict[Symbol, str],
    change: Any,
    old: tuple[Any, Any],
    new: Any = None,
) -> list[str]:
    """Return the new states within their bounds, and two times from the old states, or the first of
    them from the new ones.
    """
    lines, texts = decided_text([*change.values(), *old], names, "k", law.name)
    after = dict(names)
    for z, value in zip(change, texts, strict=False):
        after[z] = f"n{own.index(z)}"
        lines.append(f"{after[z]} = {value}")
    for side, word in ((law.lower, "max"), (law.upper, "min")):
        for z in (z for z in change if z in side):
            more, (bound,) = decided_text([side[z]], after, f"{word}{own.index(z)}_", law.name)
            lines += [*more, f"{after[z]} = {word}({after[z]}, {bound})"]
    times = texts[-2:]
    if new is not None:
        more, (times[0],) = decided_text([new], after, "e", law.name)
        lines += more
    lines += [f"dz[{k}*n] = {after[z]}" for k, z in enumerate(own)]
    return [*lines, f"o[0] = {times[0]}", f"o[1] = {times[1]}"]
