"""Text of what happens at once: conditions of jumps, and kernels of what a jump or tick makes of the states.

Kinks are decided here and now, by the sign of their switch, since nothing is integrated across them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Symbol

from fluidcc.laws.kernel_text import scalar_text
from fluidcc.laws.law import Law
from fluidcc.laws.switches import Collector, mode_symbol
from fluidcc.symbols import unfold

__all__ = ["decided_text", "event_kernel_text"]


def decided_text(
    expressions: Sequence[Any], names: dict[Symbol, str], prefix: str, owner: str
) -> tuple[list[str], list[str]]:
    """Assignments, and one text for each expression, kinks included.

    Parameters
    ----------
    names : dict of Symbol to str
        Text for every free symbol.
    prefix : str
        Of all temporary names.
    owner : str
        Whose expressions they are, for messages.
    """
    collect = Collector(owner)
    smooth = [collect.rewrite(unfold(f)) for f in expressions]
    named, lines = dict(names), []
    for k, switch in enumerate(collect.switches):
        more, (value,) = scalar_text([switch], named, f"{prefix}s{k}_")
        lines += [*more, f"{prefix}m{k} = 1.0 if {value} > 0.0 else 0.0"]
        named[mode_symbol(k)] = f"{prefix}m{k}"
    more, texts = scalar_text(smooth, named, f"{prefix}t")
    return [*lines, *more], texts


def event_kernel_text(law: Law, own: tuple[Symbol, ...], names: dict[Symbol, str]) -> str:
    """Text of ``kernel(n, su, z, u, p, m, dz, o, g, want)``: the states after event `want` of one flow or link.

    Events are the law's jumps, then its ticks. `n` and `su` are the strides of states and parameters, and of signals;
    ``dz`` takes the new states, ``o[0]`` the refractory time or the period, ``o[1]`` the phase of a tick.

    Parameters
    ----------
    own : tuple of Symbol
        The states, in the order of the kernel.
    names : dict of Symbol to str
        ``z0``, ``u0``, ``p0`` and so on for states, signals and parameters.
    """
    text = "def kernel(n, su, z, u, p, m, dz, o, g, want):\n"
    values = {"z": "n", "u": "su", "p": "n"}
    for name in sorted(set(names.values()), key=lambda v: (v[0], int(v[1:]))):
        text += f"    {name} = {name[0]}[{name[1:]}*{values[name[0]]}]\n"
    blocks = [_event(law, own, names, j.reset, old=(j.refractory, 0)) for j in law.jumps]
    blocks += [_event(law, own, names, k.update, old=(0, k.phase), new=k.every) for k in law.ticks]
    for number, block in enumerate(blocks):
        text += f"    if want == {number}:\n" + "".join(f"        {line}\n" for line in block)
    return text


def _event(
    law: Law, own: tuple[Symbol, ...], names: dict[Symbol, str], change: Any, old: tuple[Any, Any], new: Any = None
) -> list[str]:
    """New states within their bounds, and two times from the old states, or the first of them from the new ones."""
    lines, texts = decided_text([*change.values(), *old], names, "k", law.name)
    after = dict(names)
    for z, value in zip(change, texts, strict=False):
        after[z] = f"n{own.index(z)}"
        lines.append(f"{after[z]} = {value}")
    for side, word in ((law.lower, "max"), (law.upper, "min")):
        for z in (z for z in change if z in side):
            more, (bound,) = decided_text([side[z]], after, f"{word}{own.index(z)}_", law.name)
            lines += [*more, f"{after[z]} = {word}({after[z]}, {bound})"]
    times = texts[-2:]
    if new is not None:
        more, (times[0],) = decided_text([new], after, "e", law.name)
        lines += more
    lines += [f"dz[{k}*n] = {after[z]}" for k, z in enumerate(own)]
    return [*lines, f"o[0] = {times[0]}", f"o[1] = {times[1]}"]
