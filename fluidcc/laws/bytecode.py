"""Laws at rest as formulas on registers: flows, outputs and their exact derivatives.

SymPy expressions become a `fluidcc.numerics.tape.Tape` here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from sympy import (
    Add,
    And,
    DiracDelta,
    Dummy,
    Eq,
    Expr,
    Ge,
    Gt,
    Heaviside,
    Le,
    Lt,
    Mul,
    Ne,
    Not,
    Or,
    Piecewise,
    Pow,
    Rational,
    Symbol,
    ceiling,
    cse,
    sympify,
)
from sympy.logic.boolalg import BooleanFalse, BooleanTrue

from fluidcc.base.errors import Unsupported
from fluidcc.laws.linear import flat_steps, slope
from fluidcc.laws.parts import per_structure, told_apart
from fluidcc.numerics.tape import Op, Tape
from fluidcc.symbols import (
    FUNCTIONS,
    c,
    e,
    e_b,
    edot,
    loss,
    mark,
    offer_min,
    packet,
    pi,
    plain,
    price,
    q_max,
    unfold,
    x_tau,
    y,
)

# Of the functions that laws may use, and of conditions.
_NAMED = {f: Op.__members__.get(f.__name__.upper()) for f in (*FUNCTIONS, And, Or, Not)}
_NAMED[Heaviside] = Op.STEP
_MANY = (Op.MAX, Op.MIN, Op.AND, Op.OR)
_COMPARED = {
    Gt: (Op.GREATER, 0),
    Lt: (Op.GREATER, 1),
    Ge: (Op.NOT_LESS, 0),
    Le: (Op.NOT_LESS, 1),
    Eq: (Op.EQUAL, 0),
}
LARGEST_PRODUCT = 16  # whole powers up to this one by products


@per_structure
def source_tape(law: Any) -> Tape:
    """Return the flows, the rate, and their derivatives, of a source.

    It takes the states; what it hears: e, pi, price, least offer, and loss and mark if it hears
    either; own rate, edot, e_b, packet; the parameters. It gives F and H, then row by row the
    derivatives of F and H by the states, own rate and what it hears.
    """
    values = [unfold(f) for f in (*law.flow.values(), law.out["rate"])]
    heard = (e, pi, price, offer_min, *((loss, mark) if told_apart(law) else ()))
    by = [*law.states, x_tau, *heard]
    inputs = [*law.states, *heard, x_tau, edot, e_b, packet, *law.params]
    return tape(inputs, [*values, *(slope(f, v) for f in values for v in by)])


@per_structure
def link_tape(law: Any) -> Tape:
    """Return the flows of a link's states other than its queue, its mark and price, what it drops
    and offers, and their derivatives.

    It takes the queueing delay, the other states, the arrival rate; c, q_max; the parameters. It
    gives the values, then row by row their derivatives by queueing delay, other states and arrival
    rate.
    """
    by = [law.queue or Dummy("q"), *(z for z in law.states if z != law.queue), y]
    values = _without_queue(law)
    return tape([*by, c, q_max, *law.params], [*values, *(slope(f, v) for f in values for v in by)])


@per_structure
def hears_rate(law: Any) -> bool:
    """Return whether anything that a link's law computes, other than its queue, depends on the
    arrival rate.
    """
    return any(y in f.free_symbols for f in _without_queue(law))


def _without_queue(law: Any) -> list[Expr]:
    """Return the flows of a link's states other than its queue, then all that it tells."""
    others = [f for z, f in law.flow.items() if z != law.queue]
    some = [law.out[name] for name in ("drop", "offer") if name in law.out]
    return [unfold(f) for f in (*others, law.out.get("mark", 0), law.out.get("price", 0), *some)]


def tape(inputs: Sequence[Symbol], expressions: Sequence[Any]) -> Tape:
    """Write expressions as instructions; what they share is computed once.

    Parameters
    ----------
    inputs : sequence of Symbol
        The arguments, in order.
    expressions : sequence of Expr
        The values, in order; of kinks the derivatives are those of the sides (delta functions are
        0).

    Raises
    ------
    Unsupported
        If an expression holds a function that no instruction computes.
    """
    shared, reduced = cse([flat_steps(unfold(f)) for f in expressions], list=True)
    writer = _BytecodeWriter(inputs)
    for symbol, f in shared:
        writer.known[symbol] = writer.register(f)
    outputs = [writer.register(f) for f in reduced]
    return writer.finished(outputs)


class _BytecodeWriter:
    """Registers are numbered as they come: inputs from 0 on, constants from -1 down until all
    are known.
    """

    def __init__(self, inputs: Sequence[Symbol]) -> None:
        self.inputs = len(inputs)
        self.known: dict[Any, int] = {s: i for i, s in enumerate(inputs)}
        self.constants: dict[str, int] = {}
        self.lines: list[tuple[int, ...]] = []

    def constant(self, value: float) -> int:
        return self.constants.setdefault(float(value).hex(), -1 - len(self.constants))

    def put(self, op: Op, *arguments: int) -> int:
        result = self.inputs + len(self.lines)
        padded = (*arguments, arguments[0], arguments[0])[:3]
        self.lines.append((int(op), result, *padded))
        return result

    def all(self, op: Op, terms: Sequence[Any]) -> int:
        """Apply `op` to one term after the other, from the left."""
        return reduce(lambda a, b: self.put(op, a, b), map(self.register, terms))

    def register(self, f: Any) -> int:
        if f not in self.known:
            self.known[f] = self._written(f)
        return self.known[f]

    def _written(self, f: Any) -> int:
        kind = type(f)
        if isinstance(f, BooleanTrue | BooleanFalse):
            return self.constant(1.0 if f else 0.0)
        if f.is_number and not f.is_Boolean:
            return self.constant(float(f))
        if isinstance(f, Add):
            return self._sum(f)
        if isinstance(f, Mul):
            return self._product(f)
        if isinstance(f, Pow):
            return self._power(f.base, f.exp)
        if kind in _COMPARED:
            op, turned = _COMPARED[kind]
            return self.all(op, f.args[::-1] if turned else f.args)
        if kind is Ne:
            return self.put(Op.NOT, self.register(Eq(*f.args)))
        if kind is DiracDelta:  # on either side of a step the slope is that of the side
            return self.constant(0.0)
        if kind is Piecewise:
            return self._branches(f)
        if kind is ceiling:
            return self.put(Op.NEG, self.put(Op.FLOOR, self.put(Op.NEG, self.register(f.args[0]))))
        if known := _NAMED.get(kind):
            one = known not in _MANY
            return self.put(known, self.register(f.args[0])) if one else self.all(known, f.args)
        if isinstance(f, Symbol):
            raise Unsupported(
                f"{plain(f)} has no steady value, so that what depends on it has no rest: "
                f"simulate it"
            )
        raise Unsupported(
            f"{plain(str(f.func))} is no function that equilibria are computed with: write {f} by "
            f"{', '.join(g.__name__ for g in FUNCTIONS)}"
        )

    def _sum(self, f: Expr) -> int:
        """Subtract the terms with a factor of -1 from the others."""
        less = [term for term in f.args if isinstance(term, Mul) and term.args[0] == -1]
        more = [term for term in f.args if term not in less]
        total = self.all(Op.ADD, more) if more else self.constant(0.0)
        for term in less:
            total = self.put(Op.SUB, total, self.register(-term))
        return total

    def _product(self, f: Expr) -> int:
        """Divide by what stands below, so that x/3 is not x times a rounded third."""
        above: list[Any] = []
        below: list[Any] = []
        for g in f.args:
            if isinstance(g, Pow) and g.exp.is_number and g.exp.is_negative:
                below.append(Pow(g.base, -g.exp))
            elif isinstance(g, Rational):
                above += [sympify(g.p)] if g.p != 1 else []
                below += [sympify(g.q)] if g.q != 1 else []
            else:
                above.append(g)
        result = self.all(Op.MUL, above) if above else self.constant(1.0)
        return self.put(Op.DIV, result, self.all(Op.MUL, below)) if below else result

    def _power(self, base: Expr, exponent: Expr) -> int:
        if exponent.is_number and exponent.is_negative:
            return self.put(Op.DIV, self.constant(1.0), self.register(Pow(base, -exponent)))
        a = self.register(base)
        if exponent == Rational(1, 2):
            return self.put(Op.SQRT, a)
        few = exponent.is_number and exponent <= LARGEST_PRODUCT
        whole = few and float(exponent).is_integer()
        return self.put(Op.WHOLE if whole else Op.POW, a, self.register(exponent))

    def _branches(self, f: Piecewise) -> int:
        result = self.constant(float("nan"))
        for value, condition in reversed(f.args):
            here = self.register(value)
            if not isinstance(condition, BooleanTrue):
                here = self.put(Op.SELECT, self.register(condition), here, result)
            result = here
        return result

    def finished(self, outputs: list[int]) -> Tape:
        """Return the tape, with constants between inputs and results."""
        n = len(self.constants)

        def place(i: int) -> int:
            return self.inputs - 1 - i if i < 0 else i + n if i >= self.inputs else i

        lines = [(line[0], *map(place, line[1:])) for line in self.lines]
        return Tape(
            np.array(lines, np.int64).reshape(-1, 5),
            self.inputs,
            np.array([float.fromhex(text) for text in self.constants]),
            np.array([place(i) for i in outputs], np.int64),
        )
