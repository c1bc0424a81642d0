"""Laws at rest: which have a rest at all, which go together, states that follow from others there,
and states that only keep account, which an equilibrium leaves undetermined.

An account is of the round trip, or of what is in flight. A state z with z' = a edot/(1 + edot) + b
(rate - x_tau/(1 + edot)) is a first integral away: edot/(1 + edot) is the round trip's rate of
change as the source sees it, and the second bracket that of the data under way, so that z - a RTT -
b (data under way) never changes.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sympy import (
    Expr,
    Integer,
    Symbol,
    cancel,
    together,
)

from fluidcc.base.errors import Unsupported
from fluidcc.laws.law import L, Law, Source
from fluidcc.laws.parts import Structure, per_structure, used
from fluidcc.laws.past import at_rest, pasts, running, vanishes
from fluidcc.symbols import (
    OF_FLOWS,
    RATIOS,
    REPORTING,
    SOURCE_INPUTS,
    e,
    edot,
    offer_max,
    packet,
    plain,
    symbols_of,
    t,
    unfold,
    x_tau,
)


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
    """Return the states of a source that keep account, on the branch on which all of its modes but
    bounds hold.

    Parameters
    ----------
    law : Source or Link
        Links have none.
    """
    return _trackers(law) if law.kind == "source" else {}


@per_structure
def _trackers(law: Law) -> dict[Symbol, Account]:
    held = law.switched()
    running = dict.fromkeys(held.modes, Integer(1))
    rate = held.out["rate"]
    found = {}
    for z, flow in held.flow.items():
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
        if not vanishes(gap + back / packet - (gap + back / packet).subs(x_tau, 1)):
            return None
        data, flow = 1 / packet, (gap + back / packet).subs(x_tau, 1)
    flow = flow.subs(running)
    if vanishes(flow):
        return Account(Integer(0), data) if data != 0 else None
    share = flow * (1 + edot) / edot
    if any(
        not vanishes(share - share.subs(s, 1)) for s in share.free_symbols & (signals | {*states})
    ):
        return None  # at once: to bring it into a plain form takes ten times as long
    delay = cancel(together(share))
    return None if delay.free_symbols & (signals | {*states}) else Account(delay, data)


def levels(law: Law) -> dict[Level, Symbol]:
    """Return the parameters of a law that stand for trackers, and the state that each stood for."""
    return {p: p.state for p in law.params if isinstance(p, Level)}


def with_levels(law: Source, propagation: float, initial: Any) -> Source:
    """Return the law with each tracker of the round trip as a parameter, its level.

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


def settled(law: L) -> L:
    """Return the law at rest, without the states that follow from others there, or run on; what
    was is what is.
    """
    if not isinstance(law, Source) or not (law.steady or pasts(law)):
        return law
    put = {z: unfold(f) for z, f in law.steady.items() if z != "rate"}
    put |= dict.fromkeys(running(law), Integer(0))
    put |= {one: f.xreplace(put) for one, f in at_rest(law).items()}
    rate = law.steady.get("rate")
    return _without(law, put, {} if rate is None else {"rate": unfold(rate)})


def _without(
    law: L, put: dict[Symbol, Expr], rest: Mapping[str, Expr] | None = None, **more: Any
) -> L:
    """Return the law with some states put in, which is done once for all laws of its structure;
    `rest` has outputs that are known.
    """
    known, key = law.structure.known, (_without, *put.items())
    if key not in known:
        flow = {z: unfold(f).xreplace(put) for z, f in law.flow.items() if z not in put}
        known[key] = flow, {name: unfold(f).xreplace(put) for name, f in law.out.items()}
    flow, out = known[key]
    return without(law, put, flow=flow, out={**out, **(rest or {})}, utility=None, **more)


def without(law: L, states: Container[Symbol], **more: Any) -> L:
    """Return the law with neither bounds, initial values nor units of some states, nor claims.

    `more` is what else is changed.
    """
    kept: dict[str, Any] = {
        k: {z: f for z, f in getattr(law, k).items() if z not in states}
        for k in ("units", "lower", "upper", "initial", "steady")
        if hasattr(law, k)
    }
    return replace(law, claims={}, **(kept | more))


# --- which have a rest at all, and which go together ----------------------------------------------


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
        smooth = "fluidcc.Reno" if isinstance(law, Source) else "fluidcc.RED"
        instead = f"a law without, such as {smooth}"
        # the mean of jumps at losses is one over packets
        if len(law.reasons) == 1 and (ratio := next(iter(law.reasons))) in RATIOS:
            instead = (
                "its mean, such as fluidcc.Reno of AIMD and fluidcc.CUBICFluid of CUBIC, or "
                f"law.averaged(intensity=x_tau * {plain(ratio)} / packet) of fluidcc.symbols"
            )
        raise Unsupported(
            f"{of} ({law.name}) has {what}, so it cycles and has no equilibrium: take {instead}, "
            "simulate it, or look for its limit cycle by fluidcc.limit_cycle"
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
    if {*REPORTING} & {*law.out}:
        return "tells sources something past the data"
    if used(law) & {*SOURCE_INPUTS[SOURCE_INPUTS.index(offer_max) :], *OF_FLOWS}:
        return "knows more than data carry"
    return ""


# --- Windows so small that a fluid says little of them: one sentence, for runs and for equilibria


FEW = 3.0
"""Packets. With windows as small as that, single packets and timeouts rule, which a fluid does
not have.
"""


def window(law: Any) -> Symbol | None:
    """Return the state that is the congestion window of a law, if it has one."""
    found: Symbol | None = (law.window or law.static_window) if law.kind == "source" else None
    return found


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
        "packets then rule, which a fluid does not have: take fewer flows or more capacity, or "
        "compare with packets"
    ]


def mean_at_full(flow: str, law: Source, link: str, more: int) -> str:
    """Return what to say of a flow whose law is a mean over losses, at a buffer that is full.

    Parameters
    ----------
    more : int
        Of how many other flows it is true.
    """
    others = f" (and so with {more} more)" if more else ""
    return (
        f"flow {flow!r} ({law.name}) is a mean over losses at random, but those of link {link!r} "
        f"are of a full buffer, which all flows hear at once{others}: take "
        f"{law.mean_of or 'a law that jumps at them'}, or a link that marks or drops before its "
        "buffer is full"
    )
