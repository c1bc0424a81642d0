"""Laws at rest: which have a rest at all, which go together, and the bounds of their states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from sympy import Expr, Integer, Symbol, false, fraction, together
from sympy.core.relational import Relational

from fluidcc.base.errors import Unsupported
from fluidcc.laws.law import Law, Steady
from fluidcc.laws.parts import Structure, per_structure
from fluidcc.symbols import (
    REPORTING,
    SOURCE_INPUTS,
    crossing,
    edot,
    offer_min,
    plain,
    symbols_of,
    t,
    unfold,
    x_tau,
)

__all__ = [
    "FEW", "Standstill", "few_packets", "grouped", "refuse_unsteady", "standstills",
    "steady_flow", "window_name",
]  # fmt: skip


def grouped(laws: Sequence[Law]) -> list[list[int]]:
    """Return the numbers of the laws that have the same structure, structure by structure."""
    members: dict[Structure, list[int]] = {}
    for i, law in enumerate(laws):
        members.setdefault(law.structure, []).append(i)
    return list(members.values())


def refuse_unsteady(law: Law, of: str) -> None:
    """Refuse a law that has no equilibrium by nature; `of` names whose law it is."""
    if spoken := _past_the_data(law):
        raise Unsupported(
            f"{of} ({law.name}) {spoken}, of which neither equilibria nor linearisations are made: "
            "simulate it; the fair rates are those of fluidcc.metrics.max_min_rates, and the loop "
            "that of fluidcc.sampled_stability"
        )
    if law.jumps or law.ticks:
        what = "jumps" if law.jumps else "ticks"
        raise Unsupported(
            f"{of} ({law.name}) has {what}, so it cycles and has no equilibrium: use the averaged "
            "law (law.averaged, such as Reno for AIMD), simulate it, or look for its limit cycle"
        )
    if _depends_on_time(law):
        raise Unsupported(
            f"{of} ({law.name}) depends on time, so it has no equilibrium: simulate it"
        )


@per_structure
def _depends_on_time(law: Law) -> bool:
    return any(t in symbols_of(f) for _, f in law.expressions())


@per_structure
def _past_the_data(law: Law) -> str:
    """Return what a law does beside what data carry, or nothing."""
    used = {s for _, f in law.expressions() for s in symbols_of(f)}
    if {"offer", *REPORTING} & {*law.out}:
        return "tells sources something past the data"
    if used & {*SOURCE_INPUTS[SOURCE_INPUTS.index(offer_min) :], crossing}:
        return "knows more than data carry"
    return ""


# --- Where a law can stand still, exactly, for claims about its equilibria -----------------------


class Standstill(NamedTuple):
    """One branch on which a law can stand still: put in `values`, then it does, as long as
    `conditions` hold.

    `modes` are those of ``law.switches`` on that branch.
    """

    values: dict[Symbol, Expr]
    conditions: tuple[Relational, ...]
    modes: tuple[int, ...] = ()


def steady_flow(law: Law, given: Mapping[Symbol, Any] | None = None) -> dict[Symbol, Expr]:
    """Return the flows where nothing changes: edot = 0, and the rate one loop ago is the rate now.

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
    """Yield every branch on which the law can stand still under what the claim gives.

    Raises
    ------
    Unsupported
        If a flow is linear in no symbol; name one with ``Steady(eliminate=)`` or state the claim as
        an equation.
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


def _on_branch(
    law: Law, claim: Steady, flows: list[Expr], conditions: list[Any]
) -> Standstill | None:
    """Return what the flows of one branch determine, or None if one of them cannot vanish."""
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
    """Return a symbol in which the flow `f` is linear, and its value where `f` = 0."""
    above = fraction(together(f))[0].expand()
    candidates = [wanted] if wanted is not None else [*law.params, *law.inputs, *law.states]
    for s in candidates:
        slope, rest = above.coeff(s, 1), above.coeff(s, 0)
        if (
            rest == 0 and s.is_nonzero
        ):  # a positive gain never vanishes: something else makes the flow stand
            continue
        if (
            slope != 0
            and not slope.has(s)
            and not rest.has(s)
            and (above - slope * s - rest).expand() == 0
        ):
            return s, -rest / slope
    raise Unsupported(
        f"{law.name}: the flow of {plain(z)} is linear in none of "
        f"{', '.join(map(plain, candidates))}, "
        f"so its equilibrium is not expressed by one; state the claim as an equation instead"
    )


# --- Windows so small that a fluid says little of them: one sentence, for runs and for equilibria


FEW = 3.0
"""Packets. With windows as small as that, single packets and timeouts rule, which a fluid does
not have.
"""


def window_name(law: Any) -> str:
    """Return the name of the state that is the congestion window of a law, or ""."""
    window = (law.window or law.static_window) if law.kind == "source" else None
    return plain(window or "")


def few_packets(windows: Mapping[str, float], how: str = "") -> list[str]:
    """Return what to say of the windows of flows, by flow name [packet]: nothing, or one sentence.

    Parameters
    ----------
    how : str
        What kind of value they are, such as "on average ".
    """
    small = {name: w for name, w in windows.items() if w < FEW}
    if not small:
        return []
    least = min(small, key=lambda name: small[name])
    many = (
        f"the windows of {len(small)} flows are"
        if len(small) > 1
        else f"the window of flow {least!r} is"
    )
    return [
        f"{many} below {FEW:g} packets, {small[least]:.2g} {how}at the least: timeouts and single "
        "packets then rule, which a fluid does not have"
    ]
