"""Where a law can stand still, branch by branch, and its linearisation there in symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sympy import (
    Expr,
    Integer,
    Matrix,
    Mul,
    Ne,
    Symbol,
    eye,
    factor,
    false,
    fraction,
    nan,
    together,
    true,
    zoo,
)
from sympy.core.relational import Relational

from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.laws.law import Law, Link
from fluidcc.laws.linear import symbolic_jacobians
from fluidcc.laws.parts import Steady, told_apart
from fluidcc.laws.steady import settled
from fluidcc.laws.switches import undecided
from fluidcc.proofs.algebra import binding, by_squares, factors
from fluidcc.proofs.asked import exact, oriented
from fluidcc.proofs.steps import spend
from fluidcc.symbols import e, edot, loss, mark, pi, plain, unfold, x_tau, y

_ENTERED = Symbol("y_in", positive=True)  # what a link that drops lets into its queue [bit/s]
_NODE = 20  # steps of a place in the search, and for each operation of a flow that is solved


class Standstill(NamedTuple):
    """One branch on which a law can stand still: put in `values`, then it does, as long as
    `conditions` hold.

    `modes` are those of ``law.switches`` that count on that branch.
    """

    values: dict[Symbol, Expr]
    conditions: tuple[Relational, ...]
    modes: dict[Symbol, Expr]


def steady_flow(law: Law, given: Mapping[Symbol, Any] | None = None) -> dict[Symbol, Expr]:
    """Return the flows where nothing changes: edot = 0, and the rate one loop ago is the rate now.

    Parameters
    ----------
    law : Source or Link
    given : mapping of Symbol to Expr
        What else is known, such as ``{pi: 0}``.
    """
    known = _known(law, given or {})
    own = law.queue if isinstance(law, Link) else None  # it hears of what enters, others of all
    entered = known | ({y: _ENTERED} if y in known else {})
    flow = law.switched().flow.items()
    return {z: f.subs(entered if z == own else known) for z, f in flow}


def _known(law: Law, given: Mapping[Symbol, Any]) -> dict[Symbol, Any]:
    known: dict[Symbol, Any] = {}
    if law.kind == "source":
        union = {pi: 1 - (1 - loss) * (1 - mark)} if told_apart(law) else {}
        known = {edot: Integer(0), **union, x_tau: law.switched().out["rate"].subs(union)}
        if given.get(pi) == 0:
            known |= {loss: Integer(0), mark: Integer(0)}
    elif isinstance(law, Link) and law.queue and "drop" in law.out:
        known = {y: _ENTERED / (1 - law.switched().out["drop"])}
    return known | {s: unfold(v) for s, v in given.items()}


def standstills(
    law: Law, claim: Steady, where: Sequence[Any] = (), outputs: bool = False
) -> Iterator[Standstill]:
    """Yield every branch on which the law can stand still under what the claim gives: on each,
    every flow is zero because one of its factors is.

    Parameters
    ----------
    law : Source or Link
    claim : Steady
    where : sequence of relational
        Conditions without which no branch counts.
    outputs : bool
        Whether branches that differ in what the law puts out alone are apart.

    Raises
    ------
    Unsupported
        If a factor of a flow is linear in no symbol; name one with ``Steady(eliminate=)``, or give
        the law a parameter in which it is. If the law jumps at losses or marks, or ticks.
    """
    if law.ticks or any(jump.on is not None for jump in law.jumps):
        raise Unsupported(
            f"{law.name} {'ticks' if law.ticks else 'jumps'}, and so does not rest there; state "
            "the claim of a law without, such as its mean by `averaged`"
        )
    law = settled(replace(law, jumps=()) if law.jumps else law)
    held = law.switched()
    known = _known(law, claim.given)
    switches = {m: exact(s.subs(known)) for m, s in zip(held.modes, held.switches, strict=True)}
    flows = [(z, exact(f)) for z, f in steady_flow(law, claim.given).items()]
    given = tuple(r.func(*(exact(unfold(f)).subs(known) for f in r.args)) for r in where)
    out = [f.subs(known) for f in held.out.values()] if outputs else [*known.values()]
    if y in known and not any(f.has(y) for f in (claim.relation, *given)):
        out = [f for f in out if f is not known[y]]  # of no interest to the claim
    rest = _Rest(law, claim.eliminate, flows, switches, {}, {}, given, out)
    for values, met, branch in rest.ways():
        yield Standstill({s: v.subs(branch) for s, v in known.items()} | values, met, branch)


class _Rest(NamedTuple):
    """What is left of a search for standstills, with what was found already put in."""

    law: Law
    wanted: Symbol | None
    flows: list[tuple[Symbol, Expr]]  # that are to be zero, by state
    switches: dict[Symbol, Expr]  # of the modes that are not decided
    branch: dict[Symbol, Expr]  # those that are
    values: dict[Symbol, Expr]
    met: tuple[Any, ...]  # conditions
    out: list[Expr]

    def ways(self) -> Iterator[tuple[dict[Symbol, Expr], tuple[Any, ...], dict[Symbol, Expr]]]:
        """Yield values for which all flows are zero, the conditions for it, and modes: flows that
        no open mode touches are solved first, for modes need not be decided of what vanishes then.
        """
        spend(_NODE)
        if false in self.met:
            return
        relations = {oriented(cond): cond for cond in self.met if cond is not true}
        if (rest := binding(relations)) is None:
            return
        met = tuple(relations[cond] for cond in rest)
        here = self._replace(met=met)
        flows = (k for k, (_, f) in enumerate(here.flows) if not f.free_symbols & {*here.switches})
        if (k := next(flows, None)) is not None:
            yield from here._solved(k)
        elif mode := undecided([*(f for _, f in here.flows), *here.out], here.switches):
            for value in (1, 0):
                yield from here._held(mode, Integer(value)).ways()
        else:
            yield here.values, met, here.branch

    def _held(self, mode: Symbol, value: Expr) -> _Rest:
        switch = self.switches[mode]
        defined = not switch.has(nan, zoo)  # what has no value there is no equilibrium
        return self._put({mode: value})._replace(
            switches={m: s.subs(mode, value) for m, s in self.switches.items() if m != mode},
            branch=self.branch | {mode: value},
            met=(*self.met, (switch > 0 if value else switch <= 0) if defined else false),
        )

    def _put(self, put: dict[Symbol, Expr]) -> _Rest:
        return self._replace(
            flows=[(z, f.subs(put)) for z, f in self.flows],
            switches={m: s.subs(put) for m, s in self.switches.items()},
            met=tuple(cond.subs(put) for cond in self.met),
            out=[f.subs(put) for f in self.out],
        )

    def _solved(self, k: int) -> Iterator[tuple[Any, ...]]:
        """Yield what `ways` does where one factor or another of a flow is zero."""
        z, flow = self.flows[k]
        rest = self._replace(flows=[*self.flows[:k], *self.flows[k + 1 :]])
        if flow.has(nan, zoo):
            return
        spend(_NODE * (1 + flow.count_ops()))
        above, below = fraction(together(flow))
        if above.is_nonzero or above.expand().is_nonzero:
            return
        above = factors(above)
        if above == 0:
            yield from rest.ways()
            return
        apart = {p.as_base_exp()[0] for p in Mul.make_args(factor(below))}  # zero nowhere
        for part in dict.fromkeys(p.as_base_exp()[0] for p in Mul.make_args(above)):
            if part.is_nonzero or {part, -part} & apart:
                continue
            if by_squares(">", part) or by_squares(">", -part):
                continue
            symbol, slope, free, certain = _linear(self.law, z, part, self.wanted, apart)
            value = -free / slope
            met = [value > 0] if symbol.is_positive else [value >= 0] * bool(symbol.is_nonnegative)
            put = rest._put({symbol: value})
            values = {s: v.subs(symbol, value) for s, v in self.values.items()} | {symbol: value}
            put = put._replace(values=values, met=(*put.met, *met))
            if certain:
                yield from put.ways()
            else:
                yield from put._replace(met=(*put.met, Ne(slope, 0))).ways()
                yield from rest._replace(flows=[(z, slope), (z, free), *rest.flows]).ways()


def _linear(
    law: Law, z: Symbol, f: Expr, wanted: Symbol | None, apart: set[Expr]
) -> tuple[Symbol, Expr, Expr, bool]:
    """Return a symbol in which `f`, a factor of the flow of `z`, is linear, its slope and the rest,
    and whether that slope cannot be zero where `apart` is not: such a symbol, if there is one.
    """
    above = f.expand()
    known = [*law.params, *law.inputs, *law.states]
    candidates = [wanted] if wanted in above.free_symbols else known
    candidates = [s for s in candidates if s in above.free_symbols]
    found = []
    for s in candidates:
        slope, rest = above.coeff(s, 1), above.coeff(s, 0)
        if slope != 0 and not slope.has(s) and (above - slope * s - rest).expand() == 0:
            parts = (p.as_base_exp()[0] for p in Mul.make_args(factors(slope)))
            certain = all(p.is_nonzero or {p, -p} & apart for p in parts)
            found.append((s, slope, rest, certain or slope.expand().is_nonzero))
    if not found:
        raise Unsupported(
            f"{law.name}: the flow of {plain(z)} is linear in none of "
            f"{', '.join(map(plain, candidates))}, "
            f"so its equilibrium is not expressed by one; give values by Steady(given=...), or "
            f"the law a parameter in which it is, such as the gain of its growth"
        )
    return next((one for one in found if one[3]), found[0])


# --- how a law at rest answers small signals ------------------------------------------------------


@dataclass(frozen=True)
class AtRest:
    """A law linearised where it stands still, on one branch of its kinks.

    Attributes
    ----------
    law : Source or Link
        The law.
    A, B, C, D : Matrix
        Derivatives of flow and outputs (rows) by states and inputs (columns), in the law's orders.
    values : dict of Symbol to Expr
        What standing still determines; already put into the matrices.
    conditions : tuple of relational
        Under which it can stand still on this branch.
    """

    law: Law
    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    values: dict[Symbol, Expr]
    conditions: tuple[Relational, ...]

    def put(self, expr: Any) -> Expr:
        """Return `expr` at this equilibrium, without Lets."""
        return unfold(expr).subs(self.values)

    def transfer(self, output: str, signal: Symbol, s: Symbol) -> Expr:
        """Return the transfer function C (sI - A)^{-1} B + D from one input to one output.

        For the one-way delay `fluidcc.symbols.e` of a source, its derivative e' is taken along as s
        e.

        Raises
        ------
        InvalidInput
            If the law has no such output or input.
        """
        outputs, inputs = list(self.law.out), list(self.law.inputs)
        if output not in outputs or signal not in inputs:
            raise InvalidInput(
                f"{self.law.name} has no output {output!r} or no input {plain(signal)!r}; it has "
                f"{', '.join(outputs)} and {', '.join(map(plain, inputs))}"
            )
        row, column = outputs.index(output), inputs.index(signal)
        b, d = self.B[:, column], self.D[row, column]
        if signal == e and edot in inputs:
            slope = inputs.index(edot)
            b, d = b + s * self.B[:, slope], d + s * self.D[row, slope]
        n = self.A.rows
        if n == 0:
            return d
        return (self.C[row, :] * (s * eye(n) - self.A).inv() * b)[0] + d


def at_rest(
    law: Law, *, given: Mapping[Symbol, Any] | None = None, eliminate: Symbol | None = None
) -> AtRest:
    """Linearise a law where it stands still.

    Parameters
    ----------
    law : Source or Link
    given : mapping of Symbol to Expr
        What else is known there, such as ``{pi: 0}`` for 'without loss'.
    eliminate : Symbol, optional
        The symbol that standing still determines, in which the flow is linear; found if not given.

    Returns
    -------
    AtRest

    Raises
    ------
    Unsupported
        If there is no branch, or more than one, on which it can.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from fluidcc.symbols import e, pi
    >>> at_rest(fc.LDCC, given={pi: 0}, eliminate=e).A.shape
    (1, 1)
    """
    claim = Steady(true, given=given or {}, eliminate=eliminate)
    found = list(standstills(law, claim, outputs=True))
    if len(found) != 1:
        number = "no branch" if not found else f"{len(found)} branches"
        raise Unsupported(
            f"{law.name} can stand still on {number} of its kinks under what is given; give "
            f"{'more' if found else 'less'} of it"
        )
    (still,) = found
    A, B, C, D = (
        M.applyfunc(lambda f: unfold(f.subs(still.modes)).subs(still.values))
        for M in symbolic_jacobians(law)
    )
    return AtRest(law, A, B, C, D, values=still.values, conditions=still.conditions)
