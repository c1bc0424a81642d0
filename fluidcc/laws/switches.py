"""Kinks made explicit: Max, Min, Abs, Piecewise, ... become branches that mode symbols hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sympy import (
    Abs,
    Add,
    And,
    Expr,
    Ge,
    Gt,
    Heaviside,
    Integer,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Piecewise,
    Pow,
    Symbol,
    acos,
    acosh,
    asin,
    atanh,
    false,
    log,
    sign,
    sympify,
    true,
)
from sympy.codegen.cfunctions import log1p

from fluidcc.base.errors import LawError
from fluidcc.laws.parts import per_structure
from fluidcc.symbols import RATIOS, unfold

_BOUNDED = (log, log1p, acos, acosh, asin, atanh)  # have no value everywhere
_KINKS = (Max, Min, Abs, Heaviside, sign, Piecewise)


class Switched(NamedTuple):
    """A law that is smooth as long as its modes are held.

    Mode k is 1 if and only if ``switches[k] > 0``, else 0. Branches are ``Piecewise((a, mode >
    1/2), (b, True))``, so that the branch not taken may be singular. A switch may depend on modes
    of lower index.
    """

    flow: dict[Symbol, Expr]
    out: dict[str, Expr]
    switches: tuple[Expr, ...]
    modes: tuple[Symbol, ...]
    jumping: frozenset[int] = frozenset()  # of switches at which branches may differ

    @property
    def signs(self) -> tuple[Symbol, ...]:
        """Symbols of what each mode would be by the sign of its switch here and now."""
        return tuple(Symbol(f"{m}_here", integer=True, nonnegative=True) for m in self.modes)

    def guarded(self, f: Expr) -> Expr:
        """Return `f` with kinks decided here and now where the branch not taken may have no value.

        A step that goes too far in the branch a of sqrt(Max(a, 0)) computes the root of a negative
        number, however short it is, and so would never see where the branch changes. Nor would one
        in 1/Max(1 - pi, b), where marks come at once.
        """
        if not f.has(Piecewise):
            return f
        here = dict(zip(self.modes, self.signs, strict=True))
        if _may_fail(f):
            return f.func(f.args[0].xreplace(here), *f.args[1:])
        if isinstance(f, Piecewise):
            fails = any(_may_fail(g) for branch, _ in f.args for g in branch.atoms(Pow, *_BOUNDED))
            return Piecewise(
                *((self.guarded(g), c.xreplace(here) if fails else c) for g, c in f.args)
            )
        return f.func(*(self.guarded(g) for g in f.args))


def _may_fail(f: Expr) -> bool:
    """Return whether an expression is a root or logarithm of what may be negative, another function
    of what may lie outside its domain, or divides by what marks may bring to 0.
    """
    if isinstance(f, _BOUNDED[1:]):
        return True
    if isinstance(f, Pow) and f.exp.is_integer:
        return bool(f.exp.is_negative) and f.base.has(*RATIOS) and not f.base.is_nonzero
    return isinstance(f, (Pow, log)) and not f.args[0].is_nonnegative


def undecided(parts: Iterable[Expr], switches: Mapping[Symbol, Expr]) -> Symbol | None:
    """Return a mode that `parts` depend on, and whose switch depends on none of `switches`."""
    wanted = {m for f in parts for m in f.free_symbols & switches.keys()}
    while wanted:
        mode = next(m for m in switches if m in wanted)
        if not (wanted := switches[mode].free_symbols & switches.keys()):
            return mode
    return None


def mode_symbol(k: int) -> Symbol:
    """Return the symbol of mode k."""
    return Symbol(f"m{k}", integer=True, nonnegative=True)


class Collector:
    """Rewrites expressions, one after the other, and keeps the switches they need."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.switches: list[Expr] = []
        self.jumping: set[int] = set()

    @property
    def modes(self) -> tuple[Symbol, ...]:
        """One symbol a switch."""
        return tuple(mode_symbol(k) for k in range(len(self.switches)))

    def above(self, switch: Expr, jumps: bool = True) -> Any:
        """Return the condition that `switch` > 0, as a mode, at which something may jump."""
        if switch.is_number:
            return sympify(bool(switch > 0))
        if switch not in self.switches:
            self.switches.append(switch)
        number = self.switches.index(switch)
        if jumps:
            self.jumping.add(number)
        return mode_symbol(number) > 0.5

    def choose(self, switch: Expr, yes: Any, no: Any, jumps: bool = True) -> Expr:
        return Piecewise((yes, self.above(switch, jumps)), (no, True))

    def meet(self, switch: Expr, yes: Any, no: Any) -> Expr:
        """Do as `choose` does, where both sides agree at switch = 0, so that the opposite switch
        serves as well.
        """
        if -switch in self.switches and switch not in self.switches:
            return self.choose(-switch, no, yes, jumps=False)
        return self.choose(switch, yes, no, jumps=False)

    def condition(self, cond: Any) -> Any:
        """Return a boolean of relations, in terms of modes; exact also where the two sides are
        equal.
        """
        if cond in (true, false):
            return cond
        if isinstance(cond, (And, Or, Not)):
            return cond.func(*(self.condition(a) for a in cond.args))
        if isinstance(cond, (Gt, Ge, Lt, Le)):
            left, right = (self.rewrite(a) for a in cond.args)
            if isinstance(cond, Gt):
                return self.above(left - right)
            if isinstance(cond, Lt):
                return self.above(right - left)
            return Not(self.above(right - left if isinstance(cond, Ge) else left - right))
        raise LawError(
            f"{self.name}: a Piecewise condition must compare with <, <=, > or >=, not {cond}"
        )

    def rewrite(self, f: Expr) -> Expr:
        """Return `f` (without Lets) with every kink held by a mode."""
        if not f.has(*_KINKS):
            return f
        if isinstance(f, Piecewise):
            return Piecewise(*((self.rewrite(a), self.condition(cond)) for a, cond in f.args))
        args = [self.rewrite(a) for a in f.args]
        if isinstance(f, (Max, Min)):
            # Numbers first, so that Max(0, a) switches on a and not on -a.
            value, *rest = [a for a in args if a.is_number] + [
                a for a in reversed(args) if not a.is_number
            ]
            for a in rest:
                value = self.meet(a - value if isinstance(f, Max) else value - a, a, value)
            return value
        if isinstance(f, Abs):
            return self.meet(args[0], args[0], -args[0])
        if isinstance(f, sign):
            return self.choose(args[0], Integer(1), Integer(-1))
        if isinstance(f, Heaviside):
            return self.choose(args[0], Integer(1), Integer(0))
        return f.func(*args)


def _without_poles(f: Expr, states: Any) -> Expr:
    """Write x (w/x - v) as w - x v, which has a value at x = 0 too."""
    if f.is_Atom or isinstance(f, Piecewise):
        return f
    f = f.func(*(_without_poles(a, states) for a in f.args))
    if not isinstance(f, Mul):
        return f
    for x in states:
        sums = [
            a for a in f.args if isinstance(a, Add) and any(_has_pole(term, x) for term in a.args)
        ]
        if x in f.args and len(sums) == 1:
            inside = sums[0]
            rest = Mul(*(a for a in f.args if a not in (x, inside)))
            poles = [term for term in inside.args if _has_pole(term, x)]
            f = rest * (Add(*(x * term for term in poles)) + x * (inside - Add(*poles)))
            if not isinstance(f, Mul):
                break
    return f


def _has_pole(term: Expr, x: Symbol) -> bool:
    return any(p == 1 / x for p in Mul.make_args(term))


@per_structure
def switched(law: Any) -> Switched:
    """Return flow and outputs of `law` with every kink held by a mode."""
    collect = Collector(law.name)
    flow = {z: _without_poles(collect.rewrite(unfold(f)), law.flow) for z, f in law.flow.items()}
    out = {k: collect.rewrite(unfold(f)) for k, f in law.out.items()}
    jumping = frozenset(collect.jumping)
    return Switched(flow, out, tuple(collect.switches), collect.modes, jumping)
