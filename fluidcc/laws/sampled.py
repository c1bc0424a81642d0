"""Sampled laws, those with ticks: where they stand still, what their ticks do to first order, and
continuous laws as they are programmed, with updates at intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sympy import Expr, Max, Min, Symbol

from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.laws.law import L, Law, Source
from fluidcc.laws.parts import Tick
from fluidcc.laws.past import pasts, running
from fluidcc.laws.steady import trackers, without
from fluidcc.symbols import (
    SIGNAL_UNITS,
    SOURCE_INPUTS,
    e_b,
    nonnegative,
    packet,
    plain,
    positive,
    t,
    unfold,
)


def standing(law: L, of: str) -> L:
    """Return a law without ticks whose equilibria are the standstills of a sampled law.

    A state that is held between ticks gets the flow (update - state)/period. A state that
    integrates between ticks and is set to a fixed value at each, as one that takes averages does,
    is put in with its value just before a tick.

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
    update, period, own = _updates(law, of)
    flow = {z: unfold(f) for z, f in law.flow.items()}
    sums = _sums(law, of)
    kept = [z for z in flow if z not in sums]
    held = {z: (update[z].xreplace(sums) - z) / period[z] if z in update else flow[z] for z in kept}
    units = {z: unit for z, unit in law.units.items() if z not in sums} | dict.fromkeys(own, "s")
    params = {**law.params, **own}
    return without(law, sums, flow=held, ticks=(), params=params, units=units)


def _updates(
    law: Law, of: str
) -> tuple[dict[Symbol, Expr], dict[Symbol, Expr], Mapping[Symbol, Expr]]:
    """Of each state that ticks change its new value and its period; and periods that are numbers
    as parameters: these have a unit.
    """
    update: dict[Symbol, Expr] = {}
    period: dict[Symbol, Expr] = {}
    own: dict[Symbol, Expr] = {}
    for k, tick in enumerate(law.ticks):
        every = unfold(tick.every)
        if every.is_number:
            symbol = positive(f"every_{k}")
            own[symbol], every = every, symbol
        for z, f in tick.update.items():
            if z in update:
                raise Unsupported(
                    f"{of} ({law.name}) has two ticks that change {plain(z)}: simulate it instead"
                )
            update[z], period[z] = unfold(f), every
    return update, period, own


def _sums(law: Law, of: str) -> dict[Symbol, Expr]:
    """The states that integrate between ticks, with their values just before a tick at rest."""
    update, period, _ = _updates(law, of)
    flow = {z: unfold(f) for z, f in law.flow.items()}
    sums = {z: update[z] + period[z] * flow[z] for z in update if flow[z] != 0}
    for z, total in sums.items():
        seen = [f for key, f in flow.items() if key != z] + [unfold(f) for f in law.out.values()]
        seen += [*period.values(), *(one for one in pasts(law) if one.of == z)]
        if total.free_symbols & {*sums} or any(z in f.free_symbols for f in seen):
            raise Unsupported(
                f"{of} ({law.name}): {plain(z)} moves between ticks and is seen there, so nothing "
                "stands still: simulate it, or look for its limit cycle"
            )
    return sums


# --- to first order -------------------------------------------------------------------------------


ONCE, STILL = nonnegative("tick_once tick_still")
"""Parameters of a lifted law, 1 and 0 [1/s]."""


class Lifted(NamedTuple):
    """A sampled law as one without ticks, in which nobody reads what they set.

    Attributes
    ----------
    law : Source or Link
        Its flows are those between ticks. To its states there comes for each tick and state that
        this changes one whose flow is the new value, times `ONCE`; so their derivatives are those
        of the tick, on the same branches of the kinks, and the signals are the same.
    after : tuple of dict of Symbol to Symbol
        For each tick the state that has the new value, by the state that is changed.
    sums : dict of Symbol to Expr
        Of states that integrate between ticks their values just before one, at rest.
    """

    law: Law
    after: tuple[Mapping[Symbol, Symbol], ...]
    sums: Mapping[Symbol, Expr]


def lifted(law: Law, of: str) -> Lifted:
    """Return a sampled law with its ticks as flows; `of` says whose it is.

    Raises
    ------
    Unsupported
        As `standing`.
    """
    if own := running(law):
        raise Unsupported(
            f"{of} ({law.name}) ticks, and {', '.join(map(plain, own))} runs on for ever at rest: "
            "simulate it"
        )
    sums = _sums(law, of)
    changed = {z for tick in law.ticks for z in tick.update}
    # 0 times a state, so that none of these is taken for an account of the round trip
    flow = {z: f + STILL * z if z in changed else f for z, f in law.flow.items()}
    units = {**law.units, ONCE: "1/s", STILL: "1/s"}
    after = []
    for k, tick in enumerate(law.ticks):
        new = {z: Symbol(f"{plain(z)}_at_{k}", real=True) for z in tick.update}
        for z, f in tick.update.items():
            f = Max(f, law.lower[z]) if z in law.lower else f
            f = Min(f, law.upper[z]) if z in law.upper else f
            flow[new[z]], units[new[z]] = ONCE * f + STILL * new[z], law.units[z]
        after.append(new)
    fresh = [z for z in flow if z not in law.flow]
    made = without(
        law, changed, flow=flow, ticks=(), params={**law.params, ONCE: 1, STILL: 0}, units=units,
        initial={**law.initial, **dict.fromkeys(fresh, 0)},
    )  # fmt: skip
    return Lifted(made, tuple(after), sums)


def updated(law: Source, period: float, of: str) -> Source:
    """Return a law as it is programmed: its states are updated at intervals, by the interval times
    what their flows are with means over it in place of what is heard.

    States that follow the round trip alone do so all the time; of a law that is sampled already its
    own interval is set.

    Raises
    ------
    InvalidInput
        If it is sampled already, and the interval is not one of its parameters.
    """
    if law.ticks:
        (every, *others) = {unfold(tick.every) for tick in law.ticks}
        if others or every not in law.params:
            raise InvalidInput(
                f"{of} ({law.name}) ticks at a period that is none of its parameters, so that "
                f"period={period:g} cannot set it; leave period out"
            )
        return law(**{plain(every): period})
    if pasts(law):
        raise InvalidInput(
            f"{of} ({law.name}) remembers what was, so that period={period:g} does not say how it "
            "is programmed; write it with fluidcc.Tick"
        )
    T = positive("T_update")
    moving = {z: unfold(f) for z, f in law.flow.items() if z not in trackers(law)}
    known = sorted({*SOURCE_INPUTS} - {e_b, packet, t}, key=str)
    heard = [s for s in known if any(s in f.free_symbols for f in moving.values())]
    total = {s: Symbol(f"sum_of_{k}", real=True) for k, s in enumerate(heard)}
    mean = {s: z / T for s, z in total.items()}
    step = {z: z + T * f.xreplace(mean) for z, f in moving.items()}
    return without(
        law, (), flow={**law.flow, **dict.fromkeys(moving, 0), **{z: s for s, z in total.items()}},
        ticks=(Tick(T, {**step, **dict.fromkeys(total.values(), 0)}),),
        params={**law.params, T: period}, utility=None,
        units={**law.units, T: "s", **{z: f"{SIGNAL_UNITS[s]} s" for s, z in total.items()}},
        initial={**law.initial, **dict.fromkeys(total.values(), 0)},
    )  # fmt: skip
