"""Which switches of a law may slide, and the kernel that keeps one at 0, by Filippov's mean; the
law with that mean in place of a switch, for its equilibria.

A switch may slide if its value follows from states of the law itself, the delay, constants and the
time, of which the change is known, so that the branches decide at once which way it goes.
One that compares delayed signals alone changes a round trip later: that is a relay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from sympy import Expr, Ge, Gt, Heaviside, Integer, NumberSymbol, Symbol, diff, sign, sympify
from sympy.core.relational import Relational

from fluidcc.base.errors import LawError
from fluidcc.laws.checks import Dim, base_unit, dim_of_text, measure
from fluidcc.laws.kernels import (
    build,
    count_switches,
    head_of_one,
    law_lines,
    numbered,
    own_states,
    scalar_text,
    used_switches,
)
from fluidcc.laws.law import Law, Link
from fluidcc.laws.parts import per_structure
from fluidcc.symbols import SIGNAL_UNITS, c, e, e_b, edot, packet, q_max, t, unfold

_SIDES = (("a", "1.0"), ("b", "0.0"))  # with the switch on, and off


@per_structure
def sliding_switches(law: Law) -> tuple[int, ...]:
    """Return the numbers of the kernel's switches that may slide: of those that compare the delay
    see `compares_delay`.
    """
    held, used, own = law.switched(), used_switches(law), {*own_states(law)}
    known = {*own, *law.params, *held.modes, c, e, e_b, packet, q_max, t}
    return tuple(
        n
        for n, k in enumerate(used)
        if (free := held.switches[k].free_symbols) & own
        and free <= known
        and k in held.jumping
        and not any(held.switches[j].has(held.modes[k]) for j in used)
        and any(held.flow[z].has(held.modes[k]) for z in own)
    )


def compares_delay(law: Law, n: int) -> bool:
    """Return whether a switch of the kernel compares the delay, which is heard to change by
    e'/(1 + e'): as queues that conserve flow have it, and not where delays are frozen.
    """
    return bool(law.switched().switches[used_switches(law)[n]].has(e))


@per_structure
def slide_kernel_address(law: Law) -> int:
    """Return the address of the kernel of a law's switches that may slide."""
    return build(slide_kernel_text(law), law)


def slide_kernel_text(law: Law) -> str:
    """Return the text of ``kernel(n, su, z, u, p, m, dz, o, g, want)`` for one flow or link.

    `want` is the number of a switch, plus a multiple of the number of all: 0 for the mean flow and
    outputs, 1 for these and the values of all switches, 2 to put the states where the switch is 0
    (``o[2]``: whether they were not), 3 for how fast the value of the switch changes with it off,
    in ``o[0]``, and with it on, in ``o[1]``.
    """
    _, _, names = numbered(law)
    text = head_of_one(names)
    for number in sliding_switches(law):
        text += f"    if want % {count_switches(law)} == {number}:\n"
        text += "".join(f"        {line}\n" for line in _mean(law, number, names))
    return text


def _mean(law: Law, number: int, names: dict[Any, str]) -> Iterator[str]:
    """Yield the lines of one switch."""
    every = count_switches(law)
    sides = []
    for prefix, mode in _SIDES:
        lines, *side = law_lines(law, names, _modes(number, mode), prefix, automatic=False)
        yield from lines
        sides.append(side)
    (flow, out, switches), (flow_off, out_off, switches_off) = sides
    lines, slopes = _slopes(law, number, names, (flow, flow_off))
    yield from lines
    yield from (f"{name} = {f}" for name, f in zip(("on", "off"), slopes, strict=True))
    yield "gap = off - on"
    yield "share = off/gap if gap > 0.0 else 0.5"
    yield "within = share*(1.0 - share) if gap > 0.0 else -1.0"
    stride = "su" if isinstance(law, Link) else "n"

    def mean(target: str, step: str, on: list[str], off: list[str]) -> Iterator[str]:
        for k, (a, b) in enumerate(zip(on, off, strict=True)):
            yield f"    {target}[{k}*{step}] = {b} + share*({a} - {b})"

    yield f"if want < {2 * every}:"
    yield from mean("dz", "n", flow, flow_off)
    yield from mean("o", stride, out, out_off)
    yield f"    if want >= {every}:"
    yield from (f"    {line}" for line in mean("g", "n", switches, switches_off))
    yield f"        g[{number}*n] = within"
    yield f"elif want < {3 * every}:"
    yield f"    away = ag{number}"  # to the last bit, without the ties
    yield "    o[2] = away"
    for k, (a, b) in enumerate(zip(flow, flow_off, strict=True)):
        yield f"    z[{k}*n] = z[{k}*n] + (away/gap*({a} - {b}) if gap > 0.0 else 0.0)"
    yield "else:"
    yield "    o[0] = off"
    yield "    o[1] = on"


def _modes(number: int, mode: str) -> Callable[[int], str]:
    """Return the texts of the modes, that of one switch given."""
    return lambda k: mode if k == number else f"m[{k}*n]"


def _slopes(
    law: Law, number: int, names: dict[Any, str], flows: tuple[list[str], list[str]]
) -> tuple[list[str], list[str]]:
    """Return lines, and texts of how fast the value of a switch changes on either side."""
    held, used = law.switched(), used_switches(law)
    value: Expr = held.guarded(held.switches[used[number]])
    named = dict(names)
    for n, k in enumerate(used[:number]):
        named[held.modes[k]] = f"am{n}"
        named[held.signs[k]] = f"(1.0 if ag{n} > 0.0 else 0.0)"
    own = [z for z in own_states(law) if value.has(z)]
    places = [own_states(law).index(z) for z in own]
    by = [diff(value, z) for z in (*own, t, e)]
    lines, (*slopes, alone, heard) = scalar_text(by, named, "s")
    if value.has(e):  # it changes with what is sent at theta, which passes by 1/(1 + e')
        alone = f"{alone} + ({heard})*({named[edot]}/max(1.0 + {named[edot]}, 1e-5))"
    return lines, [
        " + ".join([alone, *(f"({d})*{flow[k]}" for d, k in zip(slopes, places, strict=True))])
        for flow in flows
    ]


# --- at rest --------------------------------------------------------------------------------------


MOST = 4
"""So many switches of a law are looked at: each doubles what is to be computed."""


class Share(Symbol):
    """The state that stands for a switch at rest: the weight [1] of the branch with it on."""

    number: int

    def __new__(cls, number: int) -> Share:
        self: Share = Symbol.__xnew__(cls, f"_share_{number}", nonnegative=True)
        self.number = number
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, Any]]:
        return (self.number,), {}

    @property
    def gauge(self) -> Symbol:
        """The parameter by which the switch is divided, to be a change of the share [1/s]."""
        return Symbol(f"_gauge_{self.number}", positive=True)


class Shared(NamedTuple):
    """A law with shares in place of switches: its flows and outputs that are others, and the value
    of each switch.
    """

    flow: Mapping[Symbol, Expr]
    out: Mapping[str, Expr]
    switches: Mapping[Share, Expr]


def slides_in_runs(law: Law, number: int) -> bool:
    """Return whether runs keep that switch of `law.switched()` at 0, by the mean."""
    used, switches = used_switches(law), law.switched().switches
    twice = -switches[number] in switches  # two that change together, of which no mean is known
    return number in [used[n] for n in sliding_switches(law)] and not twice


@per_structure
def shared(law: Law) -> Shared:
    """Return the law with shares in place of the switches that can be 0 at rest.

    With a share of 0 or 1 it is one branch, so that a share is at rest as complementarity says: at
    0 where the switch is below 0, at 1 where it is above, between where it is 0. What it sends
    must not switch unless runs have the mean of that too: elsewhere it is heard as it is, at once
    or later, and the mean of what is made of it is not what is made of its mean.
    """
    held = law.switched()
    moving = {*law.states, *law.inputs} - {edot, t, *law.constants}
    some: list[int] = []
    for k in sorted(held.jumping):
        switch, mode = held.switches[k], held.modes[k]
        if (
            not switch.free_symbols & {*held.modes}
            and switch.xreplace({edot: Integer(0)}).free_symbols & moving
            and any(f.has(mode) for f in held.flow.values())
            and not any(f.has(mode) for f in held.switches)
            and (not any(f.has(mode) for f in held.out.values()) or slides_in_runs(law, k))
            and -switch not in [held.switches[j] for j in some]
        ):
            some.append(k)
    if not 0 < len(some) <= MOST:
        return Shared({}, {}, {})

    def mean(f: Expr) -> Expr:
        for k in some:
            on, off = (_decided(f, held.switches[k], side) for side in (1, 0))
            f = off + Share(k) * (on - off)
        return f.xreplace({s: s.evalf() for s in f.atoms(NumberSymbol)})  # such as exp(1)

    flow = {z: mean(unfold(f)) for z, f in law.flow.items()}
    out = {name: mean(unfold(f)) for name, f in law.out.items()}
    return Shared(
        {z: f for z, f in flow.items() if f.atoms(Share)},
        {name: f for name, f in out.items() if f.atoms(Share)},
        {Share(k): held.switches[k] for k in some if any(f.has(Share(k)) for f in flow.values())},
    )


def _decided(f: Expr, switch: Expr, on: int) -> Expr:
    """Return an expression with what one switch decides, on or off, written as it is or turned
    about.
    """
    rule: dict[Any, Any] = {}
    for a in f.atoms(Heaviside, sign, Relational):
        above = a.lhs - a.rhs if isinstance(a, Relational) else a.args[0]
        if above not in (switch, -switch):
            continue
        up = on if above == switch else 1 - on
        if isinstance(a, Relational):
            rule[a] = sympify(bool(up) == isinstance(a, (Gt, Ge)))
        else:
            rule[a] = Integer(up if isinstance(a, Heaviside) else 2 * up - 1)
    return f.xreplace(rule)


@lru_cache(maxsize=256)
def with_shares(law: Any) -> Any:
    """Return the law with shares as states, or itself where it has none."""
    found = shared(law)
    units = {**{s: SIGNAL_UNITS[s] for s in law.inputs}, **law.units}
    dims = {s: dim_of_text(text) for s, text in units.items()}
    gauges = {}
    for z, switch in found.switches.items():
        unit = measure(unfold(switch), dims)
        bit, s = unit if isinstance(unit, Dim) else Dim()
        gauges[z.gauge] = base_unit(Dim(bit, s + 1))
    if not gauges:
        return law
    shares = dict.fromkeys(found.switches, Integer(0))
    own = {"utility": None} if law.kind == "source" else {}
    changed = dict(
        flow={**law.flow, **found.flow, **{z: f / z.gauge for z, f in found.switches.items()}},
        out={**law.out, **found.out},
        params={**law.params, **dict.fromkeys(gauges, 1.0)},
        units={**law.units, **gauges, **dict.fromkeys(shares, "1")},
        lower={**law.lower, **shares},
        upper={**law.upper, **dict.fromkeys(shares, Integer(1))},
        initial={**law.initial, **dict.fromkeys(shares, Integer(1) / 2)},
        claims={},
        **own,
    )
    try:
        return replace(law, **changed)
    except LawError:  # no unit, or a number that laws may not have
        return law
