"""Jumps and ticks of a network as rows of the solver's table, in the order in which simultaneous ones happen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fluidcc.laws import Law, Tick
from fluidcc.laws.kernels import bound_switches, count_switches, event_kernel_address
from fluidcc.numerics.fluid import slots as s
from fluidcc.simulation.layout import Group, Layout
from fluidcc.symbols import REPORTING, symbols_of

__all__ = ["event_of", "event_rows", "jump_switches", "owner_of"]


def event_rows(at: Layout, head: Sequence[int]) -> list[list[int]]:
    """One row of `slots.JHY` for each jump and tick of each flow and link.

    Parameters
    ----------
    head : sequence of int
        The first integers of the workspace, with the offsets of signals filled in.
    """
    rows = [row for g in at.link_groups for row in _rows(at, g, False, head)]
    rows += [row for g in at.groups for row in _rows(at, g, True, head)]

    def order(row: list[int]) -> tuple[int, int, int]:
        owner = row[s.HOWNER]
        of_source = row[s.HKIND] in (s.SOURCE_TICK, s.SOURCE_JUMP)
        return row[s.HKIND], at.order[owner] if of_source else owner, row[s.HWANT]

    return sorted(rows, key=order)


def _rows(at: Layout, g: Group, source: bool, head: Sequence[int]) -> Iterator[list[int]]:
    law, row = g.law, [0] * s.HSIZE
    if not law.jumps and not law.ticks:
        return
    jump_kind, tick_kind = (s.SOURCE_JUMP, s.SOURCE_TICK) if source else (s.LINK_JUMP, s.LINK_TICK)
    row[s.HKERNEL] = event_kernel_address(law)
    row[s.HN], row[s.HNZ], row[s.HCOUNT] = g.size, len(g.own), -1
    row[s.HSU] = len(at.flows) if source else len(at.links)
    first_condition = g.switches + (count_switches(law) - len(law.jumps)) * g.size
    for member, owner in enumerate(g.members):
        row[s.HOWNER] = owner
        row[s.HZ], row[s.HP] = g.states + member, g.parameters + member
        row[s.HU] = head[s.OU if source else s.OUL] + g.first + member
        for want, jump in enumerate(law.jumps):
            row[s.HWANT], row[s.HKIND], row[s.HONCE] = want, jump_kind, jump.once
            row[s.HTELLS] = _tells(law, jump.reset)
            row[s.HSWITCH] = first_condition + want * g.size + member
            yield list(row)
        row[s.HKIND], row[s.HONCE], row[s.HSWITCH] = tick_kind, 0, -1
        for want, tick in enumerate(law.ticks, len(law.jumps)):
            row[s.HWANT], row[s.HCONST], row[s.HTELLS] = want, _constant(law, tick), _tells(law, tick.update)
            yield list(row)
        row[s.HCONST] = 0


def _tells(law: Law, changed: Iterable[Any]) -> bool:
    """Whether what a router says depends on one of the states that change."""
    said = {s for name in ("offer", *REPORTING) if name in law.out for s in symbols_of(law.out[name])}
    return not said.isdisjoint(changed)


def _constant(law: Law, tick: Tick) -> bool:
    return bool(symbols_of(tick.every) <= {*law.params, *law.constants})


def jump_switches(at: Layout, rows: list[list[int]]) -> list[int]:
    """Of each switch, the number of the jump whose condition it is, or what it is else."""
    which = [s.NO_JUMP] * at.n_switches
    for g in (*at.groups, *at.link_groups):
        for n in bound_switches(g.law):
            first = g.switches + n * g.size
            which[first : first + g.size] = [s.OF_BOUND] * g.size
    for k, row in enumerate(rows):
        if row[s.HSWITCH] >= 0:
            which[row[s.HSWITCH]] = k
    return which


def owner_of(row: Any) -> tuple[bool, int]:
    """Whether the owner of a row is a flow, and its number."""
    return row[s.HKIND] in (s.SOURCE_TICK, s.SOURCE_JUMP), int(row[s.HOWNER])


def event_of(at: Layout, row: Any) -> str:
    """What a row is, for messages."""
    source, owner = owner_of(row)
    spec: Any = at.flows[owner] if source else at.links[owner]
    kind = "jump" if row[s.HKIND] > s.SOURCE_TICK else "tick"
    number = int(row[s.HWANT]) - (len(spec.law.jumps) if kind == "tick" else 0)
    return f"{kind} {number} of {'flow' if source else 'link'} {spec.name!r} ({spec.law.name})"
