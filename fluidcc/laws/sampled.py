"""Sampled laws at a standstill: as laws without ticks that stand still where the sampled ones do."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from sympy import Expr, Symbol

from fluidcc.base.errors import Unsupported
from fluidcc.laws.law import Law
from fluidcc.symbols import plain, unfold

__all__ = ["standing"]

L = TypeVar("L", bound=Law)


def standing(law: L, of: str) -> L:
    """A law without ticks whose equilibria are the standstills of a sampled law.

    A state that is held between ticks gets the flow (update - state)/period. A state that integrates between ticks and
    is set to a fixed value at each, as one that takes averages does, is put in with its value just before a tick.

    Parameters
    ----------
    law : Source or Link
        Laws without ticks are returned as they are.
    of : str
        Whose law it is, for messages.

    Raises
    ------
    Unsupported
        If the law has states that move between ticks and are changed by them in another way.
    """
    if not law.ticks:
        return law
    update: dict[Symbol, Expr] = {}
    period: dict[Symbol, Expr] = {}
    for tick in law.ticks:
        for z, f in tick.update.items():
            if z in update:
                raise Unsupported(f"{of} ({law.name}) has two ticks that change {plain(z)}: simulate it instead")
            update[z], period[z] = unfold(f), unfold(tick.every)
    flow = {z: unfold(f) for z, f in law.flow.items()}
    sums = {z: update[z] + period[z] * flow[z] for z in update if flow[z] != 0}
    for z, total in sums.items():
        seen = [f for key, f in flow.items() if key != z] + [unfold(f) for f in law.out.values()]
        if total.free_symbols & {*sums} or any(f.has(z) for f in (*seen, *period.values())):
            raise Unsupported(
                f"{of} ({law.name}): {plain(z)} moves between ticks and is seen there, so nothing stands still: "
                "simulate it, or look for its limit cycle"
            )
    kept = [z for z in flow if z not in sums]
    units, lower, upper, initial = (  # of the states that are kept, and of the parameters
        {z: f for z, f in mapping.items() if z not in sums}
        for mapping in (law.units, law.lower, law.upper, law.initial)
    )
    held = {z: (update[z].xreplace(sums) - z) / period[z] if z in update else flow[z] for z in kept}
    return replace(law, flow=held, ticks=(), claims={}, units=units, lower=lower, upper=upper, initial=initial)
