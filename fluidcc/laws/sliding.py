"""Which switches of a law may slide, and the kernel that keeps one at 0, by Filippov's mean.

A switch may slide if its value follows from states of the law itself, constants and the time, of
which the change is known, so that the branches decide at once which way it goes.
One that compares delayed signals alone changes a round trip later: that is a relay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sympy import Expr, diff

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
from fluidcc.symbols import c, e_b, packet, q_max, t

_SIDES = (("a", "1.0"), ("b", "0.0"))  # with the switch on, and off


@per_structure
def sliding_switches(law: Law) -> tuple[int, ...]:
    """Return the numbers of the kernel's switches that may slide."""
    held, used, own = law.switched(), used_switches(law), {*own_states(law)}
    known = {*own, *law.params, *held.modes, c, e_b, packet, q_max, t}
    return tuple(
        n
        for n, k in enumerate(used)
        if (free := held.switches[k].free_symbols) & own
        and free <= known
        and k in held.jumping
        and not any(held.switches[j].has(held.modes[k]) for j in used)
        and any(held.flow[z].has(held.modes[k]) for z in own)
    )


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
    lines, (*slopes, alone) = scalar_text([diff(value, z) for z in (*own, t)], named, "s")
    return lines, [
        " + ".join([alone, *(f"({d})*{flow[k]}" for d, k in zip(slopes, places, strict=True))])
        for flow in flows
    ]
