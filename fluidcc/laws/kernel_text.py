"""From a law to numbers: NumPy reference functions, and straight-line Python for compiled kernels.

This is the only place that turns SymPy into text. The text is scalar arithmetic on names the caller
chooses, with functions of the ``math`` module, and is valid both in plain Python and in numba.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Float, Integer, Piecewise, Pow, Rational, Symbol, cse, lambdify, sympify
from sympy.printing.pycode import PythonCodePrinter

from fluidcc.base.errors import LawError
from fluidcc.laws.handwritten import Handwritten
from fluidcc.laws.law import Law
from fluidcc.laws.switches import Collector, mode_symbol
from fluidcc.symbols import plain, unfold

__all__ = [
    "KernelText", "assignments", "decided_text", "event_kernel_text", "law_reference",
    "scalar_text",
]  # fmt: skip


_LONGEST_PRODUCT = 6  # x**6 as a product of two squares and more is still exact to a few ulps


@dataclass(frozen=True)
class KernelText:
    """What a kernel computes, as text.

    Attributes
    ----------
    lines : list of str
        Assignments to temporary names, in order, without indentation.
    flow : list of str
        The derivative of each state, in the law's order: a name or a short expression.
    out : dict of str
        Each output.
    switches : list of str
        The expressions whose signs decide the modes: mode k is 1 if and only if ``switches[k] >
        0``.
    extra : dict of str
        The further expressions asked for.
    """

    lines: list[str]
    flow: list[str]
    out: dict[str, str]
    switches: list[str]
    extra: dict[str, str] = field(default_factory=dict)


def law_reference(law: Law) -> Callable[..., tuple[NDArray[Any], NDArray[Any]]]:
    """The law as a plain NumPy function, against which compiled kernels are tested.

    Parameters
    ----------
    law : Source or Link

    Returns
    -------
    callable
        ``f(z, u, p)`` with `z` (n_states, ...) in the order of ``law.states``, `u` (n_inputs, ...)
        in the order of ``law.inputs`` and `p` (n_params, ...) in the order of ``law.params``; it
        returns the flow (n_states, ...) and the outputs (n_out, ...) in the order of ``law.out``.
        Max, Piecewise and so on are taken as they are.
    """
    arguments = [*law.states, *law.inputs, *law.params]
    F, H = law.system
    function = lambdify(arguments, [*F, *H], modules="numpy", cse=False)
    n = len(law.states)

    def reference(z: Any, u: Any, p: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        values = [*z, *u, *p]
        shape = np.broadcast_shapes(*(np.shape(v) for v in values))
        kind = np.result_type(float, *(np.asarray(v).dtype for v in values))
        rows = [np.broadcast_to(np.asarray(v, dtype=kind), shape) for v in function(*values)]
        return np.array(rows[:n]).reshape(n, *shape), np.array(rows[n:]).reshape(
            len(rows) - n, *shape
        )

    return reference


def assignments(
    law: Law,
    names: Mapping[Symbol, str],
    modes: Sequence[str],
    prefix: str = "k",
    extra: Mapping[str, Any] | None = None,
) -> KernelText:
    """Text that computes flow, outputs and switches of a law once its branches are chosen by modes.

    Common sub-expressions are computed once; both sides of a branch are evaluated inside a
    conditional expression, so that the side not taken may be singular.

    Parameters
    ----------
    law : Source or Link
    names : mapping of Symbol to str
        Text for every state, input and parameter that occurs, such as ``{x: "z[0, i]"}``; text of a
        number is fine.
    modes : sequence of str
        Text for each mode (a float, 1 or 0), as many as ``law.switches``.
    prefix : str
        Temporary names are this followed by a number.
    extra : mapping of str to Expr, optional
        Further smooth expressions of the same symbols (bounds, resets, initial values).

    Raises
    ------
    LawError
        If a symbol has no name, or there are too few modes.
    """
    held = law.switched()
    if len(modes) < len(held.switches):
        raise LawError(
            f"{law.name} has {len(held.switches)} switches; {len(modes)} mode names were given"
        )
    named = {**names, **{mode_symbol(k): text for k, text in enumerate(modes)}}
    further = {k: unfold(f) for k, f in (extra or {}).items()}
    roots = [*held.flow.values(), *held.out.values(), *held.switches, *further.values()]
    missing = sorted(plain(s) for f in roots for s in f.free_symbols if s not in named)
    if missing:
        raise LawError(f"{law.name}: no name was given for {', '.join(missing)}")
    lines, texts = scalar_text(roots, named, prefix)
    rest = iter(texts)
    return KernelText(
        lines,
        [next(rest) for _ in held.flow],
        {k: next(rest) for k in held.out},
        [next(rest) for _ in held.switches],
        {k: next(rest) for k in further},
    )


def scalar_text(
    roots: Iterable[Any], names: Mapping[Symbol, str], prefix: str = "k"
) -> tuple[list[str], list[str]]:
    """Assignments, and one text for each of `roots`, as straight-line scalar Python.

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
        """`f` with its outermost branches named, so that nothing is moved out of them."""
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
    """Assignments, and one text for each expression, kinks included.

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
    """Text of ``kernel(n, su, z, u, p, m, dz, o, g, want)``: the states after event `want` of one
    flow or link.

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
    """New states within their bounds, and two times from the old states, or the first of them
    from the new ones.
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
