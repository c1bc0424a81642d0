"""Laws at rest: which have a rest at all, which go together, where they stand still, states that
follow from others there, and states that only keep account, which an equilibrium leaves
undetermined.

An account is of the round trip, or of what is in flight. A state z with z' = a edot/(1 + edot) + b
(rate - x_tau/(1 + edot)) is a first integral away: edot/(1 + edot) is the round trip's rate of
change as the source sees it, and the second bracket that of the data under way, so that z - a RTT -
b (data under way) never changes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sympy import (
    Expr,
    Integer,
    Mul,
    N,
    Ne,
    Rational,
    Symbol,
    cancel,
    factor,
    false,
    fraction,
    nan,
    together,
    true,
    zoo,
)
from sympy.core.relational import Relational

from fluidcc.base.errors import Unsupported
from fluidcc.laws.algebra import binding, by_squares
from fluidcc.laws.asked import exact, oriented
from fluidcc.laws.law import L, Law, Source
from fluidcc.laws.parts import Steady, Structure, per_structure
from fluidcc.laws.steps import spend
from fluidcc.laws.switches import undecided
from fluidcc.symbols import (
    OF_FLOWS,
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
    delay = cancel(together(share))
    return None if delay.free_symbols & (signals | {*states}) else Account(delay, data)


def _vanishes(f: Expr) -> bool:
    """Return whether an expression is zero at some points, to forty digits."""
    symbols = sorted(f.free_symbols, key=str)
    points = (
        {s: Rational(17 + 7 * k + 5 * n, 11 + k) for n, s in enumerate(symbols)} for k in range(3)
    )
    return all(abs(N(f.subs(point), 40)) < 1e-30 for point in points)


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
    """Return the law at rest, without the states that follow from others there."""
    if not isinstance(law, Source) or not law.steady:
        return law
    put = {z: unfold(f) for z, f in law.steady.items() if z != "rate"}
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
    if {*REPORTING} & {*law.out}:
        return "tells sources something past the data"
    if used & {*SOURCE_INPUTS[SOURCE_INPUTS.index(offer_max) :], *OF_FLOWS}:
        return "knows more than data carry"
    return ""


# --- Where a law can stand still, exactly, for claims about its equilibria -----------------------


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
    return {z: f.subs(known) for z, f in law.switched().flow.items()}


def _known(law: Law, given: Mapping[Symbol, Any]) -> dict[Symbol, Any]:
    known: dict[Symbol, Any] = {}
    if law.kind == "source":
        known = {edot: Integer(0), x_tau: law.switched().out["rate"]}
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
        If a factor of a flow is linear in no symbol; name one with ``Steady(eliminate=)`` or state
        the claim as an equation.
    """
    law = settled(law)
    held = law.switched()
    known = _known(law, claim.given)
    switches = {m: exact(s.subs(known)) for m, s in zip(held.modes, held.switches, strict=True)}
    flows = [(z, exact(f)) for z, f in steady_flow(law, claim.given).items()]
    given = tuple(r.func(*(exact(unfold(f)).subs(known) for f in r.args)) for r in where)
    out = [f.subs(known) for f in held.out.values()] if outputs else [*known.values()]
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
        above = factor(above)
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
            parts = (p.as_base_exp()[0] for p in Mul.make_args(factor(slope)))
            found.append((s, slope, rest, all(p.is_nonzero or {p, -p} & apart for p in parts)))
    if not found:
        raise Unsupported(
            f"{law.name}: the flow of {plain(z)} is linear in none of "
            f"{', '.join(map(plain, candidates))}, "
            f"so its equilibrium is not expressed by one; state the claim as an equation instead"
        )
    return next((one for one in found if one[3]), found[0])


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
