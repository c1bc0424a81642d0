"""States that only keep account: of the round trip, or of what is in flight. An equilibrium leaves
them undetermined.

A state z with z' = a edot/(1 + edot) + b (rate - x_tau/(1 + edot)) is a first integral away:
edot/(1 + edot) is the round trip's rate of change as the source sees it, and the second bracket
that of the data under way, so that z - a RTT - b (data under way) never changes. At rest a rate x
has x RTT under way.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from sympy import Expr, Integer, N, Rational, Symbol, cancel, together

from fluidcc.laws.handwritten import Handwritten
from fluidcc.laws.law import Law, Source
from fluidcc.laws.steady import Structure
from fluidcc.symbols import RTT, e, edot, packet, plain, unfold, x_tau

__all__ = [
    "Account", "Level", "levels", "settled", "trackers", "with_levels",
]  # fmt: skip


class Level(Symbol):
    """The parameter that stands for a tracker of the round trip: z = a e + level."""

    state: Symbol

    def __new__(cls, state: Symbol) -> Level:
        self: Level = Symbol.__xnew__(cls, f"{state.name}_0", real=True)
        self.state = state
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[Symbol], dict[str, Any]]:
        return (self.state,), {}


class Account(NamedTuple):
    """z - `delay` RTT - `data` (bits under way) is constant."""

    delay: Expr
    data: Expr


def trackers(law: Law) -> dict[Symbol, Account]:
    """The states of a source that keep account, on the branch on which all of its modes but bounds
    hold.

    Parameters
    ----------
    law : Source or Link
        Links have none.
    """
    return _trackers(Structure.of(law)) if law.kind == "source" else {}


@lru_cache(maxsize=256)
def _trackers(structure: Structure) -> dict[Symbol, Account]:
    held = structure.law.switched()
    running = dict.fromkeys(held.modes, Integer(1))
    rate = held.out["rate"]
    found = {}
    for z, flow in held.flow.items():
        if flow.has(Handwritten):  # what it keeps cannot be read off
            continue
        if flow.free_symbols & {edot, x_tau} and (
            account := _account(flow, rate, running, held.flow.keys())
        ):
            found[z] = account
    return found


def _account(flow: Expr, rate: Expr, running: dict[Any, Any], states: Any) -> Account | None:
    signals = {e, edot, x_tau}
    data: Expr = Integer(0)
    if x_tau in flow.free_symbols:
        gap, back = (flow - rate / packet).subs(running), x_tau / (1 + edot)
        if not _vanishes(gap + back / packet - (gap + back / packet).subs(x_tau, 1)):
            return None
        data, flow = 1 / packet, (gap + back / packet).subs(x_tau, 1)
    flow = flow.subs(running)
    if _vanishes(flow):
        return Account(Integer(0), data) if data != 0 else None
    share = flow * (1 + edot) / edot
    if any(
        not _vanishes(share - share.subs(s, 1)) for s in share.free_symbols & (signals | {*states})
    ):
        return None  # at once: to bring it into a plain form takes ten times as long
    delay = _plain(share)
    return None if delay.free_symbols & (signals | {*states}) else Account(delay, data)


def _vanishes(f: Expr) -> bool:
    """Whether an expression is zero at some points, to forty digits."""
    symbols = sorted(f.free_symbols, key=str)
    points = (
        {s: Rational(17 + 7 * k + 5 * n, 11 + k) for n, s in enumerate(symbols)} for k in range(3)
    )
    return all(abs(N(f.subs(point), 40)) < 1e-30 for point in points)


def _plain(f: Expr) -> Expr:
    return cancel(together(f))


def levels(law: Law) -> dict[Level, Symbol]:
    """The parameters of a law that stand for trackers, and the state that each stood for."""
    return {p: p.state for p in law.params if isinstance(p, Level)}


def with_levels(law: Source, propagation: float, initial: Any) -> Source:
    """The law with each tracker of the round trip as a parameter, its level.

    Parameters
    ----------
    law : Source
    propagation : float
        One-way delay of the path with empty queues [s].
    initial : mapping of str to float
        What trackers show there, by state name.
    """
    found = {z: account for z, account in trackers(law).items() if account.data == 0}
    if not found or law.jumps or law.ticks:
        return law
    put, params, units = {}, dict(law.params), dict(law.units)
    for z, account in found.items():
        level, slope = Level(z), account.delay
        put[z] = slope * e + level
        params[level] = (
            float(initial[plain(z)]) - float(slope.xreplace(dict(law.params))) * propagation
        )
        units[level] = units.pop(z)
    return _without(law, put, params=params, units=units)


def settled(law: Source) -> Source:
    """The law at rest, where a rate x has x RTT under way."""
    put = {
        z: account.data * x_tau * RTT for z, account in trackers(law).items() if account.delay == 0
    }
    return _without(law, put) if put and not law.jumps else law


def _without(law: Source, put: dict[Symbol, Expr], **more: Any) -> Source:
    """The law with some states put in."""
    flow = {z: unfold(f).xreplace(put) for z, f in law.flow.items() if z not in put}
    out = {name: unfold(f).xreplace(put) for name, f in law.out.items()}
    maps: dict[str, Any] = {
        k: {z: f for z, f in getattr(law, k).items() if z not in put}
        for k in ("lower", "upper", "initial")
    }
    units = {z: u for z, u in more.pop("units", law.units).items() if z not in put}
    return replace(law, flow=flow, out=out, units=units, claims={}, utility=None, **maps, **more)
