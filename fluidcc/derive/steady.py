"""Laws at rest, as functions of arrays: flows, outputs and their exact derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Dummy, Symbol, lambdify, sympify

from fluidcc.errors import Unsupported
from fluidcc.law import Law
from fluidcc.symbols import (
    REPORTING,
    SOURCE_INPUTS,
    c,
    crossing,
    e,
    e_b,
    edot,
    offer_min,
    packet,
    pi,
    plain,
    price,
    q_max,
    t,
    unfold,
    x_tau,
    y,
)  # fmt: skip

__all__ = ["Structure", "bounds", "grouped", "link_function", "refuse_unsteady", "source_function"]

# On either side of a step the slope is that of the side.
_MODULES = [{"DiracDelta": np.zeros_like}, "numpy"]


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
    if law.jumps or law.ticks:
        what = "jumps" if law.jumps else "ticks"
        raise Unsupported(
            f"{of} ({law.name}) has {what}, so it cycles and has no equilibrium: use the averaged law "
            "(law.averaged, such as Reno for AIMD), simulate it, or look for its limit cycle"
        )
    if spoken := _past_the_data(Structure.of(law)):
        raise Unsupported(
            f"{of} ({law.name}) {spoken}, of which neither equilibria nor linearisations are made: simulate it, or see "
            "fluidcc.formulas for the closed forms of its paper"
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
    if "drop" in law.out:
        return "drops before its queue"
    if {"offer", *REPORTING} & {*law.out}:
        return "tells sources something past the data"
    if used & {*SOURCE_INPUTS[SOURCE_INPUTS.index(offer_min) :], crossing}:
        return "knows more than data carry"
    return ""


@lru_cache(maxsize=256)
def source_function(structure: Structure) -> Callable[..., Any]:
    """The flows, the rate, and their derivatives, of a source.

    Its arguments are the states; e, pi, price and own rate; edot, e_b, packet; the parameters. It returns a list: F, H,
    then row by row the derivatives of F by the states and by the four signals, and those of H.
    """
    law: Any = structure.law
    F, H = law.system
    A, B, C, D = law.jacobians
    pick = [law.inputs.index(s) for s in (e, pi, price, x_tau)]
    r = list(law.out).index("rate")
    entries = [*F, H[r], *A, *B[:, pick], *C[r, :], *D[r, pick]] if F else [H[r], *D[r, pick]]
    return lambdify((*law.states, e, pi, price, x_tau, edot, e_b, packet, *law.params), entries, _MODULES, cse=True)


@lru_cache(maxsize=256)
def link_function(structure: Structure) -> Callable[..., Any]:
    """The flows of a link's states other than its queue, its mark and price, and their derivatives.

    Its arguments are the queueing delay, the other states, the arrival rate; c, q_max; the parameters. It returns a
    list: the values, then row by row their derivatives by queueing delay, other states and arrival rate.
    """
    law: Any = structure.law
    queue = law.queue if law.queue is not None else Dummy("q")
    others = [z for z in law.states if z != law.queue]
    values = [unfold(f) for f in (*(law.flow[z] for z in others), law.out.get("mark", 0), law.out.get("price", 0))]
    by = [queue, *others, y]
    entries = [*values, *(f.diff(v) for f in values for v in by)]
    return lambdify((*by, c, q_max, *law.params), entries, _MODULES, cse=True)


def bounds(laws: Sequence[Law], states: Sequence[Symbol], side: str, constants: Sequence[Mapping[Any, float]]) -> Any:
    """Lower or upper bounds of the states, shape (states, laws); infinite where there is none."""
    empty = -np.inf if side == "lower" else np.inf
    out = np.full((len(states), len(laws)), empty)
    for k, z in enumerate(states):
        for i, law in enumerate(laws):
            if z in getattr(law, side):
                value = sympify(unfold(getattr(law, side)[z]).xreplace({**law.params, **constants[i]}))
                if not value.is_number:
                    raise Unsupported(f"{law.name} bounds {plain(z)} by {value}, which varies: simulate it instead")
                out[k, i] = float(value)
    return out
