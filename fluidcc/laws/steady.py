"""Laws at rest: which have a rest at all, which go together, and the bounds of their states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Symbol, sympify

from fluidcc.base.errors import Unsupported
from fluidcc.laws.law import Law
from fluidcc.symbols import REPORTING, SOURCE_INPUTS, crossing, offer_min, plain, t, unfold

__all__ = ["Structure", "bounds", "grouped", "refuse_unsteady", "state_bounds"]


@dataclass(frozen=True)
class Structure:
    """A law without the values of its parameters: laws of equal structure are evaluated together."""

    key: tuple[Any, ...]
    law: Law = field(compare=False)

    @classmethod
    def of(cls, law: Law) -> Structure:
        maps = (law.flow, law.out, law.lower, law.upper)
        queue = getattr(law, "queue", None)
        return cls((type(law).__name__, *(tuple(m.items()) for m in maps), tuple(law.params), queue), law)


def grouped(laws: Sequence[Law]) -> list[tuple[Structure, list[int]]]:
    """The distinct structures among some laws, and which laws have each."""
    members: dict[Structure, list[int]] = {}
    known: dict[int, Structure] = {}
    for i, law in enumerate(laws):
        structure = known.setdefault(id(law), known.get(id(law)) or Structure.of(law))
        members.setdefault(structure, []).append(i)
    return list(members.items())


def refuse_unsteady(law: Law, of: str) -> None:
    """Refuse a law that has no equilibrium by nature; `of` names whose law it is."""
    if spoken := _past_the_data(Structure.of(law)):
        raise Unsupported(
            f"{of} ({law.name}) {spoken}, of which neither equilibria nor linearisations are made: simulate it; the "
            "fair rates are those of fluidcc.metrics.max_min_rates, and the loop that of fluidcc.sampled_stability"
        )
    if law.jumps or law.ticks:
        what = "jumps" if law.jumps else "ticks"
        raise Unsupported(
            f"{of} ({law.name}) has {what}, so it cycles and has no equilibrium: use the averaged law "
            "(law.averaged, such as Reno for AIMD), simulate it, or look for its limit cycle"
        )
    if _depends_on_time(Structure.of(law)):
        raise Unsupported(f"{of} ({law.name}) depends on time, so it has no equilibrium: simulate it")


@lru_cache(maxsize=256)
def _depends_on_time(structure: Structure) -> bool:
    return any(t in unfold(f).free_symbols for _, f in structure.law.expressions())


@lru_cache(maxsize=256)
def _past_the_data(structure: Structure) -> str:
    """What a law does beside what data carry, or nothing."""
    law = structure.law
    used = {s for _, f in law.expressions() for s in unfold(f).free_symbols}
    if {"offer", *REPORTING} & {*law.out}:
        return "tells sources something past the data"
    if used & {*SOURCE_INPUTS[SOURCE_INPUTS.index(offer_min) :], crossing}:
        return "knows more than data carry"
    return ""


@lru_cache(maxsize=4096)
def state_bounds(
    law: Law, states: tuple[Symbol, ...], side: str, constants: tuple[tuple[Symbol, float], ...]
) -> tuple[float, ...]:
    """Lower or upper bounds of some states; infinite where there is none.

    Raises
    ------
    Unsupported
        If a bound is no number once parameters and `constants` are put in.
    """
    out = []
    for z in states:
        if z not in getattr(law, side):
            out.append(-math.inf if side == "lower" else math.inf)
            continue
        value = sympify(unfold(getattr(law, side)[z]).xreplace({**law.params, **dict(constants)}))
        if not value.is_number:
            raise Unsupported(f"{law.name} bounds {plain(z)} by {value}, which varies: simulate it instead")
        out.append(float(value))
    return tuple(out)


def bounds(laws: Sequence[Law], states: Sequence[Symbol], side: str, constants: Sequence[Mapping[Any, float]]) -> Any:
    """Lower or upper bounds of the states, shape (states, laws); infinite where there is none."""
    given = zip(laws, constants, strict=True)
    columns = [state_bounds(law, tuple(states), side, tuple(known.items())) for law, known in given]
    return np.array(columns, float).T.reshape(len(states), len(laws))
