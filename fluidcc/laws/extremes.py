"""Windowed extremes: the largest and the least that an expression has been in the last so many
seconds or round trips, kept by blocks, as protocols keep them.

A law that holds such terms is made one of states and ticks, and jumps: of each block the extreme is
a state, and a tick at its end hands that on. Within a block the extreme is exact: the expression
counts as it is now, and a jump keeps what it was where it turned back, as the law's flow tells its
derivative, or where a jump or tick of the law changed it. With `every` a tick samples it instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

from sympy import (
    Abs,
    Basic,
    Expr,
    Float,
    Heaviside,
    Integer,
    Max,
    Min,
    Piecewise,
    Rational,
    Symbol,
    ceiling,
    diff,
    floor,
    sign,
)
from sympy.core.symbol import Str

from fluidcc.base.arguments import explained, shown, whole
from fluidcc.base.errors import LawError
from fluidcc.laws.checks import Dim, base_unit, dimensions, explain, measure, same
from fluidcc.laws.parts import Frozen, Jump, Tick
from fluidcc.laws.past import agos
from fluidcc.symbols import (
    RTT,
    Let,
    change,
    e,
    e_b,
    expression,
    packet,
    plain,
    symbols_of,
    t,
    unfold,
)

__all__ = ["highest", "lowest", "rounds", "written_out"]

_NONE = Float("1e30")  # what a block has before its first value: beyond any
# So that rounding sets nothing anew, and a ripple nothing without end: of the value, of a block.
_NEARLY, _SOON = Float("1e-12"), Rational(1, 100_000)
_STEPS = Heaviside, Piecewise, sign, floor, ceiling
_TIME = "seconds, a parameter, or fluidcc.rounds(n)"


class Extreme(Expr):
    """An extreme of an expression, until a law is made of it: of what, over which time, of how many
    blocks, sampled how often (0: not), and the name of its state.
    """

    pick: ClassVar[Any]
    side: ClassVar[int]  # that of what is beyond
    word: ClassVar[str]

    def __new__(cls, of: Expr, over: Expr, blocks: Any, every: Expr, name: Any) -> Extreme:
        made: Extreme = Expr.__new__(cls, of, over, Integer(blocks), every, Str(str(name)))
        return made

    def _eval_is_positive(self) -> Any:
        return self.args[0].is_positive

    def _eval_is_nonnegative(self) -> Any:
        return self.args[0].is_nonnegative

    def _eval_is_extended_real(self) -> bool:
        return True


class Highest(Extreme):
    """The largest value."""

    pick, side, word = Max, 1, "largest"


class Lowest(Extreme):
    """The least value."""

    pick, side, word = Min, -1, "least"


@explained
def rounds(n: Any) -> Expr:
    """Return the time of n round trips, for windows of `fluidcc.highest` and `fluidcc.lowest`.

    Parameters
    ----------
    n : number or Expr
        Positive.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.rounds(10)
    10*\\mathrm{RTT}
    """
    return _positive(n, "n of rounds", "a positive number") * RTT


@explained
def highest(of: Any, over: Any, blocks: int = 4, *, every: Any = None, name: str = "") -> Expr:
    """Return the largest value that an expression of a law has had in the last `over` seconds.

    Parameters
    ----------
    of : Expr
        Of states, parameters and the round trip; with `every` of any signals.
    over : number or Expr
        Length of the window [s]: a number, a parameter, or ``fluidcc.rounds(n)``.
    blocks : int
        Of how many blocks it is, 2 to 100: the window is up to one of them shorter than `over`.
    every : number or Expr, optional
        Time [s] between samples: what the expression is in between is overlooked. Without it the
        extreme is exact. A sample at the period of a tick of the law is taken by that tick, of what
        was known before it.
    name : str, optional
        Of the state that the present block has; those before have ``name_1``, ``name_2``, ... By
        default ``highest``, ``highest2``, ...

    Returns
    -------
    Expr
        For flow, outputs, jumps and ticks of `fluidcc.Source`, `fluidcc.window` or `fluidcc.Link`,
        which make states and ticks of it, and jumps. At rest it is the expression itself; a law
        with ticks is simulated, and has neither equilibria nor margins.

    Raises
    ------
    LawError
        If an argument is none of these; and where a law is made, if the window is no time, or if
        the expression can change at once and is not sampled.
    InvalidInput
        If `blocks` is not a whole number from 2 to 100.

    Examples
    --------
    A window that grows until the largest round trip of the last ten is 5 ms above the present one:

    >>> import fluidcc as fc
    >>> from sympy import Symbol
    >>> from fluidcc.sources.windows import acked, w
    >>> from fluidcc.symbols import RTT
    >>> swing = Symbol("swing", positive=True)
    >>> most = fc.highest(RTT, over=fc.rounds(10), blocks=2, name="most")
    >>> law = fc.window("Shy", acked / w * (1 - (most - RTT) / swing), params={swing: 0.005},
    ...                 units={swing: "s"})
    >>> [str(z) for z in law.states if "most" in str(z)]
    ['most', 'most_1']
    """
    return _extreme(Highest, of, over, blocks, every, name)


@explained
def lowest(of: Any, over: Any, blocks: int = 4, *, every: Any = None, name: str = "") -> Expr:
    """Return the least value that an expression of a law has had in the last `over` seconds.

    Parameters
    ----------
    of, over, blocks, every, name
        As of `fluidcc.highest`, which says what becomes of it.

    Examples
    --------
    A window that aims at 5 ms above the least round trip of 10 s:

    >>> import fluidcc as fc
    >>> from sympy import Symbol
    >>> from fluidcc.sources.windows import acked, w
    >>> from fluidcc.symbols import RTT
    >>> target = Symbol("target", positive=True)
    >>> queued = RTT - fc.lowest(RTT, over=10)
    >>> law = fc.window("Shy", acked / w * (1 - queued / target), params={target: 0.005},
    ...                 units={target: "s"})
    >>> net = fc.dumbbell([law], {"capacity": "10 Mbit/s"}, rtt="50 ms")
    >>> run = fc.simulate(net, 9)
    >>> round(float(run.queueing_delay[-1, 0]), 4)
    0.005
    """
    return _extreme(Lowest, of, over, blocks, every, name)


def _extreme(kind: Any, of: Any, over: Any, blocks: int, every: Any, name: Any) -> Expr:
    what = kind.__name__.lower()
    given = expression(of, f"what {what} is of")
    window = _positive(over, f"over of {what}", _TIME)
    whole(blocks, f"blocks of {what}", least=2, most=100)
    between = Integer(0) if every is None else _positive(every, f"every of {what}", _TIME)
    if not isinstance(name, str) or (name and not name.isidentifier()):
        raise LawError(f"the name of {what} is {shown(name)}; give that of a state, such as 'R'")
    made: Expr = kind(given, window, blocks, between, name)
    return made


def _positive(given: Any, what: str, right: str) -> Expr:
    found = None if isinstance(given, str | bytes | bool) else expression(given, what)
    if not isinstance(found, Expr) or not found.is_finite or found.is_positive is False:
        raise LawError(f"{what} is {shown(given)}; give {right}")
    return found


@lru_cache(maxsize=4096)
def _within(f: Basic) -> tuple[Extreme, ...]:
    """The extremes in an expression, to the bottom of each `Let`, after those within them."""
    parts = (f.definition,) if isinstance(f, Let) else f.args
    inner = tuple(one for part in parts for one in _within(part))
    return (*inner, f) if isinstance(f, Extreme) else inner


def _put(f: Any, one: Extreme, value: Expr) -> Any:
    """The expression with an extreme's value in its place, and each `Let` under its name."""
    if not _within(f):
        return f
    if f == one:
        return value
    if isinstance(f, Let):
        return Let(f.name, _put(f.definition, one, value))
    return f.func(*(_put(part, one, value) for part in f.args))


# --- what a law becomes ---------------------------------------------------------------------------

Parts = dict[str, Any]
_NOT_IN = "lower", "upper", "initial", "claims", "doubts"


def written_out(law: Any) -> Parts:
    """Return what of a law is otherwise where its extremes are states, ticks and jumps: nothing
    where it has none.

    Raises
    ------
    LawError
        If one has no place there: see `highest`.
    """
    names = ("flow", "out", "jumps", "ticks", "units", "initial", "meaning", "steady")
    parts: Parts = {name: getattr(law, name) for name in names if hasattr(law, name)}
    changed: Parts = {}
    while found := next((one for f in _expressions(parts) for one in _within(f)), None):
        changed = _made(law, parts, found)
        parts |= changed
    others = [
        (place, getattr(f, "relation", f))
        for name in _NOT_IN
        for place, f in getattr(law, name, {}).items()
    ]
    others += [
        (f"tick {k}", f) for k, tick in enumerate(law.ticks) for f in (tick.every, tick.phase)
    ]
    others += [(name, getattr(law, name, None)) for name in ("threshold", "utility")]
    for place, f in others:
        if isinstance(f, Basic) and (found := next(iter(_within(f)), None)):
            raise LawError(
                f"{law.name}: {type(found).__name__.lower()} cannot stand where {place} is told; "
                "in flow, outputs, jumps and new values of ticks it can"
            )
    return changed


def _expressions(parts: Parts) -> Iterator[Expr]:
    """The expressions of a law in which an extreme may stand."""
    for name in ("flow", "out", "steady"):
        yield from parts.get(name, {}).values()
    for jump in parts["jumps"]:
        yield from (jump.when, jump.refractory, *jump.reset.values())
    for tick in parts["ticks"]:
        yield from tick.update.values()


def _made(law: Any, parts: Parts, one: Extreme) -> Parts:
    """The parts of a law of which one extreme is made states, and what keeps these."""
    of, over, blocks, every, _ = one.args
    unit = _unit(law, parts, one)
    states, block = _states(law, parts, one), over / blocks
    value = one.pick(of, *states)
    flow, out = ({k: _put(f, one, value) for k, f in parts[at].items()} for at in ("flow", "out"))
    jumps = [j.rewritten(lambda f: _put(f, one, value)) for j in parts["jumps"]]
    ticks = [tick.rewritten(lambda f: _put(f, one, value)) for tick in parts["ticks"]]
    handed = dict(zip(states, (of, *states), strict=False))
    if every == 0:
        # What it was before the law's own jumps and ticks, and where it turns back.
        kept = {states[0]: one.pick(of, states[0])}
        moving = symbols_of(of)
        jumps = [replace(j, reset=kept | j.reset) if moving & {*j.reset} else j for j in jumps]
        ticks = [replace(k, update=kept | k.update) if moving & {*k.update} else k for k in ticks]
        jumps += _turns(one, states[0], _slope(law, flow, one), block)
    elif every != block:
        _add(ticks, every, {states[0]: one.pick(of, states[0])})
    _add(ticks, block, handed)
    first = 0 if of.is_nonnegative and one.side > 0 else -one.side * _NONE
    which = ("this block", "the block before", *(f"the block {k} back" for k in range(2, 100)))
    said = f"{one.word} {plain(of) if isinstance(of, Symbol) else 'value'} of "
    meant = {z: said + at for z, at in zip(states, which, strict=False)}
    made = {
        "flow": {**flow, **dict.fromkeys(states, Integer(0))},
        "out": out,
        "units": {**parts["units"], **dict.fromkeys(states, unit)},
        "initial": {**parts["initial"], **dict.fromkeys(states, Float(first))},
        "meaning": {**meant, **parts["meaning"]},
    }
    if "steady" in parts:
        made["steady"] = {z: _put(f, one, of) for z, f in parts["steady"].items()}
    return {k: Frozen(v) for k, v in made.items()} | {"jumps": tuple(jumps), "ticks": tuple(ticks)}


def _states(law: Any, parts: Parts, one: Extreme) -> list[Symbol]:
    """The states of an extreme: of the present block, and of those before."""
    given, count = str(one.args[4]), int(one.args[2])
    taken = {plain(s) for s in (*parts["flow"], *law.params, *law.inputs)}
    word = type(one).__name__.lower()
    tries = (given,) if given else (word, *(f"{word}{k}" for k in range(2, 100)))
    for name in tries:
        names = [name, *(f"{name}_{k}" for k in range(1, count))]
        if not taken & {*names}:
            of = one.args[0]
            known = "nonnegative" if of.is_nonnegative else "real"
            return [Symbol(z, **{known: True}) for z in names]
    raise LawError(
        f"{law.name}: {word} is called {given!r}, as a state, parameter or signal of it is; give "
        "it another name"
    )


def _add(ticks: list[Tick], every: Expr, update: dict[Symbol, Expr]) -> None:
    """Add new values to the tick of a period, or a tick."""
    for k, tick in enumerate(ticks):
        if tick.every == every == tick.phase:
            ticks[k] = replace(tick, update={**tick.update, **update})
            return
    ticks.append(Tick(every, update))


def _turns(one: Extreme, state: Symbol, slope: Expr, block: Expr) -> list[Jump]:
    """What keeps a value from which it turns back, if it ever does."""
    of = one.args[0]
    beyond = one.side * (of - state) - _NEARLY * Abs(of)
    when = Heaviside(-one.side * slope, 0) * beyond
    return [Jump(when=when, reset={state: of}, refractory=_SOON * block)] if when != 0 else []


def _slope(law: Any, flow: dict[Symbol, Expr], one: Extreme) -> Expr:
    """The derivative of what an extreme is of, by the flow of the law."""
    of, word = one.args[0], type(one).__name__.lower()
    sample = f"sample it, as in {word}(..., every=" + ("RTT)" if law.kind == "source" else "0.01)")
    f = unfold(of)
    if f.has(*_STEPS):
        raise LawError(f"{law.name}: {word} is of {shown(of)}, which has steps; {sample}")
    if sudden := f.free_symbols - {*flow, *law.params, e, e_b, packet, t}:
        names = ", ".join(sorted(map(plain, sudden)))
        raise LawError(
            f"{law.name}: {word} is of {shown(of)}, and {names} can change at once; {sample}, or "
            "take a state that follows it"
        )
    moving = {**flow, e: change, t: Integer(1)}
    of_it = f.free_symbols & {*moving}
    for z in of_it if len(of_it) > 1 else ():  # while a bound holds one, the others turn it back
        if z in law.lower:
            moving[z] = Piecewise((Max(moving[z], 0), z <= law.lower[z]), (moving[z], True))
        if z in law.upper:
            moving[z] = Piecewise((Min(moving[z], 0), z >= law.upper[z]), (moving[z], True))
    return sum((diff(f, z) * moving[z] for z in of_it), Integer(0))


def _unit(law: Any, parts: Parts, one: Extreme) -> str:
    """The unit of an extreme, where its symbols have one: else the law is refused for these."""
    of, over, _, every, _ = one.args
    dims = dimensions(law, parts["units"], agos([of]))
    word = type(one).__name__.lower()
    for what, f in (("over", over), ("every", every)):
        f = unfold(f)
        if strange := f.free_symbols - {*parts["flow"], *law.params, *law.inputs}:
            names = ", ".join(sorted(map(plain, strange)))
            raise LawError(
                f"{law.name}: {what} of {word} has {names}, which {law.kind} laws have only as a "
                "state or parameter: declare it, or give seconds"
            )
        known = None if f.is_number or f.free_symbols - {*dims} else measure(f, dims)
        if isinstance(known, Dim) and not same(known, Dim(s=1)):
            raise LawError(f"{law.name}: {what} of {word} is {f} [{known}]; give {_TIME}")
    f = unfold(of)
    found = "any" if f.free_symbols - {*dims} else measure(f, dims)
    if found is None:
        raise LawError(f"{law.name}: what {word} is of mixes units: {explain(f, dims)}")
    return base_unit(found) if isinstance(found, Dim) else "1"
