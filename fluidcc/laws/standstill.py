"""Where a law can stand still, exactly, for claims about its equilibria.

Stationarity is used, not solved: each flow is linear in some parameter or signal, which it then determines, and no
branch of a solution has to be picked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from sympy import Expr, Integer, Symbol, false, fraction, together
from sympy.core.relational import Relational

from fluidcc.base.errors import Unsupported
from fluidcc.laws.law import Law, Steady
from fluidcc.symbols import edot, plain, unfold, x_tau

__all__ = ["Standstill", "standstills", "steady_flow"]


class Standstill(NamedTuple):
    """One branch on which a law can stand still: put in `values`, then it does, as long as `conditions` hold.

    `modes` are those of ``law.switches`` on that branch.
    """

    values: dict[Symbol, Expr]
    conditions: tuple[Relational, ...]
    modes: tuple[int, ...] = ()


def steady_flow(law: Law, given: Mapping[Symbol, Any] | None = None) -> dict[Symbol, Expr]:
    """The flows where nothing changes: edot = 0, and the rate one loop ago is the rate now.

    Parameters
    ----------
    law : Source or Link
    given : mapping of Symbol to Expr
        What else is known, such as ``{pi: 0}``.
    """
    known = _known(law, given or {})
    return {z: f.subs(known) for z, f in law.switched().flow.items()}


def _known(law: Law, given: Mapping[Symbol, Any]) -> dict[Symbol, Any]:
    known: dict[Symbol, Any] = {}
    if law.kind == "source":
        known = {edot: Integer(0), x_tau: law.switched().out["rate"]}
    return known | {s: unfold(v) for s, v in given.items()}


def standstills(law: Law, claim: Steady) -> Iterator[Standstill]:
    """Every branch on which the law can stand still under what the claim gives.

    Raises
    ------
    Unsupported
        If a flow is linear in no symbol; name one with ``Steady(eliminate=)`` or state the claim as an equation.
    """
    held = law.switched()
    known = _known(law, claim.given)
    flows = steady_flow(law, claim.given)
    for modes in product((1, 0), repeat=len(held.modes)):
        branch = {m: Integer(v) for m, v in zip(held.modes, modes, strict=True)}
        switches = [s.subs(known).subs(branch) for s in held.switches]
        conditions = [s > 0 if v else s <= 0 for s, v in zip(switches, modes, strict=True)]
        if false in conditions:
            continue
        found = _on_branch(law, claim, [f.subs(branch) for f in flows.values()], conditions)
        if found is not None:
            yield Standstill(known | found.values, found.conditions, modes)


def _on_branch(law: Law, claim: Steady, flows: list[Expr], conditions: list[Any]) -> Standstill | None:
    """What the flows of one branch determine, or None if one of them cannot vanish."""
    values: dict[Symbol, Expr] = {}
    for z, flow in zip(law.states, flows, strict=True):
        f = flow.subs(values)
        if f == 0:
            continue
        if fraction(together(f))[0].is_nonzero:
            return None
        symbol, value = _determined(law, z, f, claim.eliminate)
        values = {s: v.subs(symbol, value) for s, v in values.items()} | {symbol: value}
        conditions = [cond.subs(symbol, value) for cond in conditions]
        if symbol.is_positive:
            conditions.append(value > 0)
    return Standstill(values, tuple(cond for cond in conditions if isinstance(cond, Relational)))


def _determined(law: Law, z: Symbol, f: Expr, wanted: Symbol | None) -> tuple[Symbol, Expr]:
    """A symbol in which the flow `f` is linear, and its value where `f` = 0."""
    above = fraction(together(f))[0].expand()
    candidates = [wanted] if wanted is not None else [*law.params, *law.inputs, *law.states]
    for s in candidates:
        slope, rest = above.coeff(s, 1), above.coeff(s, 0)
        if rest == 0 and s.is_nonzero:  # a positive gain never vanishes: something else makes the flow stand
            continue
        if slope != 0 and not slope.has(s) and not rest.has(s) and (above - slope * s - rest).expand() == 0:
            return s, -rest / slope
    raise Unsupported(
        f"{law.name}: the flow of {plain(z)} is linear in none of {', '.join(map(plain, candidates))}, "
        f"so its equilibrium is not expressed by one; state the claim as an equation instead"
    )
