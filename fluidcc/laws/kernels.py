"""From laws to machine code: SymPy as straight-line Python text, compiled once and kept on disk
(`numerics.compiling`).

This is the only place that turns SymPy into text. The text is scalar arithmetic on names the caller
chooses, with functions of the ``math`` module, and is valid both in plain Python and in numba. No
name that a user gives enters it: symbols are numbered, and laws have no name in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from numba import config
from sympy import (
    Abs,
    Add,
    Expr,
    Function,
    Integer,
    Piecewise,
    Pow,
    Rational,
    Symbol,
    cse,
    numbered_symbols,
    sympify,
)
from sympy.printing.pycode import PythonCodePrinter

from fluidcc.base.errors import LawError
from fluidcc.laws.law import Law, Link
from fluidcc.laws.parts import per_structure
from fluidcc.laws.past import Ago, lags, pasts
from fluidcc.laws.switches import Collector, mode_symbol
from fluidcc.numerics.compiling import load_text
from fluidcc.numerics.fluid import calls
from fluidcc.symbols import (
    OF_FLOWS,
    REPORTING,
    SOURCE_INPUTS,
    c,
    plain,
    q_max,
    t,
    unfold,
    y,
)

_LONGEST_PRODUCT = 6  # x**6 as a product of two squares and more is still exact to a few ulps


def scalar_text(
    roots: Iterable[Any],
    names: dict[Symbol, str],
    prefix: str = "k",
    branches: dict[Piecewise, Symbol] | None = None,
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
    branches : dict, optional
        The branches that have a name already: those of `roots` are added, their text to `names`.
    """
    # a past is a symbol of its own here: what is shared is not looked for in its lag
    past = {s: s.stand_in(k) for k, s in enumerate(s for s in names if isinstance(s, Ago))}
    names |= {symbol: names[s] for s, symbol in past.items()}
    writer = _Writer(names, prefix, {} if branches is None else branches)
    return writer.write([sympify(f).xreplace(past) for f in roots])


class _Writer:
    """Names branches and powers, shares sub-expressions outside of branches, and orders what
    results.
    """

    def __init__(
        self, names: dict[Symbol, str], prefix: str, branches: dict[Piecewise, Symbol]
    ) -> None:
        self.names = names
        self.prefix = prefix
        self.stands_for: dict[Symbol, Expr] = {}
        self.branches = branches

    def fresh(self) -> Symbol:
        # A real symbol of unique name: branch values may be of any sign.
        return Symbol(f"_{self.prefix}_{len(self.stands_for)}", real=True)

    def hide(self, f: Expr, within: bool = False) -> Expr:
        """Return `f` with its branches named, so that nothing is moved out of them; those within
        others where they are arithmetic, which can do no harm where it is not needed.
        """
        if not f.has(Piecewise):
            return f
        if isinstance(f, Piecewise):
            if f not in self.branches:
                if within and not _is_arithmetic(f):
                    return f
                value = Piecewise(*((self.hide(v, True), c) for v, c in f.args), evaluate=False)
                self.branches[f] = symbol = self.fresh()
                self.stands_for[symbol] = value
            return self.branches[f]
        return f.func(*(self.hide(a, within) for a in f.args))

    def write(self, roots: list[Expr]) -> tuple[list[str], list[str]]:
        hidden = [self.hide(f) for f in roots]
        tests = [cond for f in list(self.stands_for.values()) for _, cond in f.args]
        if any(cond.has(Piecewise) for cond in tests):
            raise LawError(
                "a branch is chosen by an expression that itself branches; hold it by a mode first"
            )
        symbols = numbered_symbols(f"_{self.prefix}s_", real=True)
        shared, reduced = cse(hidden, symbols=symbols, order="none", list=True)
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
        for symbol in {*self.branches.values()} & self.stands_for.keys():
            self.stands_for[symbol] = self.stands_for[symbol].xreplace(full)
        reduced = [self.powers(f) for f in reduced]
        for symbol in list(self.stands_for):
            self.stands_for[symbol] = self.powers(self.stands_for[symbol])
        return self._print(reduced)

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
        self.names |= {s: text[s] for s in self.branches.values() if s in text}
        return [f"{text[s]} = {show(self.stands_for[s])}" for s in order], [show(f) for f in roots]


def _is_arithmetic(f: Expr) -> bool:
    """Whether a formula can be worked out anywhere: a quotient may come to infinity there."""
    return not f.atoms(Function) - f.atoms(Piecewise, Abs) and all(
        power.exp.is_Integer for power in f.atoms(Pow)
    )


class _Printer(PythonCodePrinter):
    """Scalar Python: floats for numbers, products for whole powers, lazy conditional
    expressions.
    """

    def __init__(self, names: Mapping[Symbol, str]) -> None:
        super().__init__({"fully_qualified_modules": True})
        self.names = names

    def _print_Symbol(self, expr: Symbol) -> str:
        return self.names[expr]

    def _print_Integer(self, expr: Any) -> str:
        return repr(float(expr))

    _print_Float = _print_Rational = _print_Integer

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
    branches: dict[Piecewise, Symbol] = {}
    for k, switch in enumerate(collect.switches):
        more, (value,) = scalar_text([switch], named, f"{prefix}s{k}_", branches)
        lines += [*more, f"{prefix}m{k} = 1.0 if {value} > 0.0 else 0.0"]
        named[mode_symbol(k)] = f"{prefix}m{k}"
    more, texts = scalar_text(smooth, named, f"{prefix}t", branches)
    return [*lines, *more], texts


def event_kernel_text(law: Law) -> str:
    """Return the text of ``kernel(n, su, z, u, p, m, dz, o, g, want)``: the states after event
    `want` of one flow or link.

    Events are the law's jumps, then its ticks. `n` and `su` are the strides of states and
    parameters, and of signals; ``dz`` takes the new states, ``o[0]`` the refractory time or the
    period, ``o[1]`` the phase of a tick.
    """
    _, own, names = numbered(law)
    text = head_of_one(names)
    text += "".join(f"    dz[{k}*n] = {names[z]}\n" for k, z in enumerate(own))
    blocks = [_event(law, own, names, j.reset, old=(j.refractory, 0)) for j in law.jumps]
    blocks += [_event(law, own, names, k.update, old=(0, k.phase), new=k.every) for k in law.ticks]
    for number, block in enumerate(blocks):
        text += f"    if want == {number}:\n" + "".join(f"        {line}\n" for line in block)
    return text


def head_of_one(names: Mapping[Symbol, str]) -> str:
    """Return the first lines of a kernel of one flow or link, which take its variables."""
    text = "def kernel(n, su, z, u, p, m, dz, o, g, want):\n"
    strides = {"z": "n", "u": "su", "p": "n"}
    for name in sorted(set(names.values()), key=lambda v: (v[0], int(v[1:]))):
        text += f"    {name} = {name[0]}[{name[1:]}*{strides[name[0]]}]\n"
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
    lines += [f"dz[{k}*n] = {after[z]}" for k, z in enumerate(own) if z in change]
    return [*lines, f"o[0] = {times[0]}", f"o[1] = {times[1]}"]


# --- machine code ---------------------------------------------------------------------------------


#: order of a source's signals in the workspace, and of a link's
SOURCE_ROWS = tuple(plain(signal) for signal in SOURCE_INPUTS)
LINK_ROWS = ("y", "c", "q", "q_max", "t", *map(plain, OF_FLOWS))
LINK_OUT = ("mark", "price", "drop", "offer", *REPORTING)

#: a switch this near to 0, relative to its terms, is a tie, and keeps its mode: rounding must not
#: toggle it
TIE = 1e-11

_addresses = itertools.count(1)


def own_states(law: Law) -> tuple[Symbol, ...]:
    return tuple(z for z in law.states if not (isinstance(law, Link) and z == law.queue))


@per_structure
def count_switches(law: Law) -> int:
    """Return how many switches the law's kernel has: its kinks, then its bounded states, then the
    conditions of its jumps.
    """
    return count_kinks(law) + len(_bounds(law)) + len(law.jumps)


@per_structure
def count_kinks(law: Law) -> int:
    """Return how many of the first switches of the law's kernel choose branches."""
    return len(used_switches(law))


@per_structure
def used_switches(law: Law) -> tuple[int, ...]:
    """Return the numbers of the switches that the kernel needs; a link's loss is the engine's, so
    its kinks are not.
    """
    held, wanted = law.switched(), _roots(law)
    found: set[int] = set()
    while True:
        more = {k for k, m in enumerate(held.modes) if any(f.has(m) for f in wanted)} - found
        if not more:
            return tuple(sorted(found))
        found |= more
        wanted = [held.switches[k] for k in more]


def _roots(law: Law) -> list[Expr]:
    """Return the flows of the own states, then the outputs in the order of the kernel."""
    held, outputs = law.switched(), LINK_OUT if isinstance(law, Link) else ("rate",)
    flows = [held.flow[z] for z in own_states(law)]
    return flows + [held.out.get(name, Integer(0)) for name in outputs]


def law_names(
    law: Law, states: list[str], signals: list[str], params: list[str]
) -> dict[Symbol, str]:
    """Return the text of each symbol of a law: its states, its signals in the order of the rows
    and after them its pasts, its parameters.
    """
    rows = (y, c, law.queue, q_max, t, *OF_FLOWS) if isinstance(law, Link) else SOURCE_INPUTS
    rows = (*rows, *pasts(law))
    symbols, texts = (*own_states(law), *law.params, *rows), [*states, *params, *signals]
    return {s: text for s, text in zip(symbols, texts, strict=True) if s is not None}


def law_lines(
    law: Law, names: dict[Symbol, str], mode: Callable[[int], str], prefix: str, automatic: bool
) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return the straight-line text of a law: lines, derivative of each own state, outputs,
    switches.

    Parameters
    ----------
    names : dict of Symbol to str
        Text of states, signals and parameters.
    mode : callable
        Text of mode k.
    prefix : str
        Of all temporary names.
    automatic : bool
        Whether a negative mode stands for 'decide by the sign of the switch here and now'.

    Notes
    -----
    A state that is held at a bound is put there first, under its own name: all that follows has it
    there exactly.
    """
    held = law.switched()
    lines = _put_on_bounds(law, names, mode, prefix, automatic)
    switches: list[str] = []
    named = dict(names)
    branches: dict[Piecewise, Symbol] = {}
    for n, k in enumerate(used_switches(law)):
        switch = held.guarded(held.switches[k])
        more, (value,) = scalar_text([switch], named, f"{prefix}s{n}_", branches)
        lines += [*more, f"{prefix}g{n} = {value}"]
        text = f"(1.0 if {prefix}g{n} > 0.0 else 0.0)"
        lines.append(f"{prefix}m{n} = {mode(n)}")
        if automatic:
            lines.append(f"{prefix}m{n} = {prefix}m{n} if {prefix}m{n} >= 0.0 else {text}")
        named[held.modes[k]], named[held.signs[k]] = f"{prefix}m{n}", text
        more, sizes = scalar_text(
            [Abs(held.guarded(f)) for f in Add.make_args(held.switches[k])], named,
            f"{prefix}a{n}_", branches,
        )  # fmt: skip
        lines += more
        switches.append(
            f"({prefix}g{n} if abs({prefix}g{n}) > {TIE}*({' + '.join(sizes)}) else 0.0)"
        )
    own = own_states(law)
    roots = [held.guarded(f) for f in _roots(law)]
    more, texts = scalar_text(roots, named, f"{prefix}t", branches)
    lines += more
    flows = _bounded(law, own, texts, names, prefix, automatic, lines, switches)
    for j, jump in enumerate(law.jumps):
        more, (value,) = decided_text([jump.when], names, f"{prefix}j{j}_", law.name)
        lines += more
        switches.append(f"({value})")
    return lines, flows, texts[len(own) :], switches


def _bounds(law: Law) -> list[tuple[int, Symbol, Any, str]]:
    """Return the switch of each bound of an own state, the state, the bound, and the sign of the
    gap between them.
    """
    kinks, sides = len(used_switches(law)), ((law.lower, ""), (law.upper, "-"))
    found = [(z, bounds[z], sign) for z in own_states(law) for bounds, sign in sides if z in bounds]
    return [(kinks + n, *one) for n, one in enumerate(found)]


@per_structure
def bound_switches(law: Law) -> tuple[int, ...]:
    """Return the numbers of the switches of a law that are those of bounds: 1 where a state is
    free, 0 where it is held.
    """
    return tuple(n for n, *_ in _bounds(law))


def bounded_states(law: Law) -> list[int]:
    """Return the numbers of the own states that have a bound."""
    return [k for k, z in enumerate(own_states(law)) if z in law.lower or z in law.upper]


def _put_on_bounds(
    law: Law, names: dict[Symbol, str], mode: Callable[[int], str], prefix: str, automatic: bool
) -> list[str]:
    """Return what a held state is: its bound, to the last bit, wherever within rounding it was when
    it got there.
    """
    lines = []
    for n, z, bound, sign in _bounds(law):
        more, (value,) = scalar_text([unfold(bound)], names, f"{prefix}b{n}_")
        lines += [*more, f"{prefix}b{n} = {value}", f"{prefix}m{n} = {mode(n)}"]
        held = f"{prefix}m{n} <= 0.5"
        if automatic:  # nothing was located, so that it may stand well beyond its bound
            held += f" and ({prefix}m{n} >= 0.0 or {sign}({names[z]} - {prefix}b{n}) < 0.0)"
        lines.append(f"{names[z]} = {prefix}b{n} if {held} else {names[z]}")
    return lines


def _bounded(
    law: Law, own: tuple[Symbol, ...], texts: list[str], names: dict[Symbol, str], prefix: str,
    automatic: bool,
    lines: list[str], switches: list[str],
) -> list[str]:  # fmt: skip
    """Project the flows onto the bounds, each a mode: free (1), or held at the bound until the flow
    leads away from it.
    """
    flows = [f"{prefix}f{j}" for j in range(len(own))]
    lines += [f"{flow} = {text}" for flow, text in zip(flows, texts, strict=False)]
    for n, z, _, sign in _bounds(law):
        flow, gap = flows[own.index(z)], f"{sign}({names[z]} - {prefix}b{n})"
        if automatic:
            free = f"(1.0 if {gap} > 0.0 or {sign}{flow} > 0.0 else 0.0)"
            lines.append(f"{prefix}m{n} = {prefix}m{n} if {prefix}m{n} >= 0.0 else {free}")
        # A free state that stands a hair beyond its bound and comes back stays free.
        free = f"({gap} if {sign}{flow} <= 0.0 else abs({gap}))"
        lines.append(f"{prefix}g{n} = {free} if {prefix}m{n} > 0.5 else {sign}{flow}")
        lines.append(f"{flow} = {flow} if {prefix}m{n} > 0.5 else 0.0")
        switches.append(f"{prefix}g{n}")
    return flows


_HEAD = '''"""Generated by fluidcc: the kernel of a law."""
import math

from numba import types

from fluidcc.numerics.compiling import cfunc

_P = types.CPointer(types.float64)
_SIGNATURE = types.void(types.int64, types.int64, _P, _P, _P, _P, _P, _P, _P, types.int64)


@cfunc(_SIGNATURE, scalar=True, error_model="numpy")
'''


def numbered(law: Law) -> tuple[tuple[str, ...], tuple[Symbol, ...], dict[Symbol, str]]:
    """Return the signals and own states of a law, and the names ``z0``, ``u0``, ``p0`` ... of all
    its symbols.
    """
    rows = LINK_ROWS if isinstance(law, Link) else (*SOURCE_ROWS, *map(plain, pasts(law)))
    own = own_states(law)
    numbers = (
        [f"{a}{k}" for k in range(n)]
        for a, n in (("z", len(own)), ("u", len(rows)), ("p", len(law.params)))
    )
    return rows, own, law_names(law, *numbers)


def _loads(law: Law, lines: Sequence[str]) -> list[str]:
    """Return the lines that take what some lines use out of the arrays of variables."""
    rows, own, _ = numbered(law)
    used = " ".join(lines)
    arrays = (("z", "n", len(own)), ("u", "su", len(rows)), ("p", "n", len(law.params)))
    return [
        f"{a}{k} = {a}[{k}*{step} + i]"
        for a, step, count in arrays
        for k in range(count)
        if f"{a}{k}" in used
    ]


def lag_kernel_text(law: Law) -> str:
    """Return the text of a kernel as that of `kernel_text`, of which ``o`` takes the lags."""
    _, _, names = numbered(law)
    lines, texts = decided_text(lags(law), names, "k", law.name)
    body = [*_loads(law, [*lines, *texts]), *lines]
    body += [f"o[{k}*n + i] = {text}" for k, text in enumerate(texts)]
    text = "def kernel(n, su, z, u, p, m, dz, o, g, want):\n    for i in range(n):\n"
    return text + "".join(f"        {line}\n" for line in body)


def kernel_text(law: Law) -> str:
    """Return the text of the kernel over arrays: ``kernel(n, su, z, u, p, m, dz, o, g, want)``,
    variable by variable.

    When wanted, it fills the switches in, and puts held states of ``z`` on their bounds.
    """
    _, _, names = numbered(law)
    lines, flows, outputs, switches = law_lines(
        law, names, lambda n: f"m[{n}*n + i]", "k", automatic=True
    )
    load = _loads(law, [*lines, *flows, *outputs, *switches])
    body = [*load, *lines]
    body += [f"dz[{k}*n + i] = {text}" for k, text in enumerate(flows)]
    stride = "su" if isinstance(law, Link) else "n"
    body += [f"o[{k}*{stride} + i] = {text}" for k, text in enumerate(outputs)]
    store = [f"g[{k}*n + i] = {text}" for k, text in enumerate(switches)]
    store += [f"z[{k}*n + i] = z{k}" for k in bounded_states(law)]
    text = "def kernel(n, su, z, u, p, m, dz, o, g, want):\n    for i in range(n):\n"
    text += "".join(f"        {line}\n" for line in body)
    if store:
        text += "        if want:\n" + "".join(f"            {line}\n" for line in store)
    return text


def build(text: str, law: Law) -> int:
    if config.DISABLE_JIT:
        scope: dict[str, Any] = {}
        exec(compile(f"import math\n{text}", f"<kernel of {law.name}>", "exec"), scope)
        address = next(_addresses)
        calls.PYTHON_KERNELS[address] = scope["kernel"]
        return address
    return int(load_text(_HEAD + text, "kernel").kernel.address)


@per_structure
def kernel_address(law: Law) -> int:
    """Return the address of the kernel of a law, compiled once and cached on disk."""
    return build(kernel_text(law), law)


@per_structure
def event_kernel_address(law: Law) -> int:
    """Return the address of the kernel of a law's jumps and ticks."""
    return build(event_kernel_text(law), law)


@per_structure
def lag_kernel_address(law: Law) -> int:
    """Return the address of the kernel of how long ago a law's pasts are."""
    return build(lag_kernel_text(law), law)
