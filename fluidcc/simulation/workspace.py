"""Filling the solver's flat arrays from a layout; growing them when a run needs more room."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.laws.kernels import count_kinks, count_switches, kernel_address
from fluidcc.network.network import FlowSpec, LinkSpec
from fluidcc.numerics.fluid import slots as s
from fluidcc.numerics.fluid.fixed_point import memory
from fluidcc.simulation.layout import Group, Layout, base_delay, parameters
from fluidcc.simulation.tables import (
    Arrays,
    add_capacities,
    add_changes,
    add_maps,
    add_nodes,
    collect_changes,
    event_rows,
    hops_at_once,
    jump_switches,
    state_sizes,
    work_sizes,
)
from fluidcc.symbols import plain

__all__ = ["Workspace", "sample_rows"]

RING, HEAP = 64, 1024  # records and landings at first; both grow
MOST_RECORDS, MOST_NUMBERS = (
    2**19,
    2**29,
)  # that a ring may have: beyond them a run would fill the memory
LOG = 4096  # jumps, ticks and breaking points between two visits of Python


class Workspace(Arrays):
    """The arrays `F` and `I` of one run (see `fluidcc.numerics.fluid.slots`), and their growth."""

    F: NDArray[np.float64]
    I: NDArray[np.int64]

    def __init__(
        self,
        at: Layout,
        times: NDArray[np.float64],
        until: float,
        *,
        rtol: float,
        atol: float,
        patterns: dict[str, Any],
        max_step: float = math.inf,
        since: float = 0.0,
    ) -> None:
        super().__init__()
        self.at = at
        self.log: list[NDArray[np.float64]] = []  # rows of time and number of a jump or tick, or -1
        self.since, self.until = since, until
        self._scalars(times, until, rtol, max_step)
        work = work_sizes(at)
        self._numbers(times, work)
        self._groups()
        self._constants(atol, work)
        self._events()
        add_nodes(self, at)
        add_maps(self, at)
        add_capacities(self, at, since)
        changes, self.rates_before = collect_changes(at, patterns, since)
        add_changes(self, at, changes)
        self._pools(times)
        self.F, self.I = self.joined()
        self._place_initial()

    # --- building ---------------------------------------------------------------------------------

    def _scalars(
        self, times: NDArray[np.float64], until: float, rtol: float, max_step: float
    ) -> None:
        F = self.scalars
        F[s.TEND] = until + max((f.access_delay for f in self.at.flows), default=0.0)
        # a hair more, so that samples at the end show what is after a jump there, as all others do
        if self.at.hybrid:
            F[s.TEND] += 1e-9 * F[s.TEND]
        F[s.TSTOP] = F[s.TEND]
        F[s.RTOL] = rtol
        F[s.TOLT] = 1e-11
        F[s.ERRPREV] = 1e-4
        F[s.TFLIP] = -1.0
        F[s.HMAX] = max_step
        F[s.HPASS] = math.inf
        loops = (
            sum(self.at.links[l].delay for l in route) + out + back
            for route, out, back in self.at.classes
        )
        F[s.BRIEF] = 0.003 * min(loops)
        F[s.HYNEXT] = math.inf

    def _numbers(self, times: NDArray[np.float64], work: list[float]) -> None:
        at, head = self.at, self.head
        outs = {name for g in at.link_groups for name in g.law.out}
        counts = {
            s.NF: len(at.flows), s.NL: len(at.links), s.NG: len(at.groups),
            s.NGL: len(at.link_groups),
            s.NS: at.n_states, s.NN: len(at.nodes), s.NC: len(at.classes), s.NSTR: len(at.streams),
            s.NX: len(at.aggregates), s.NT: sum(k >= 0 for k in at.own_rate),
            s.FROZEN: at.frozen is not None,
            s.ECHO: at.echo, s.NODES: at.refit, s.MARKS: bool({"mark", "drop"} & outs),
            s.PRICES: "price" in outs,
            s.LOSSY: "drop" in outs or any(math.isfinite(link.buffer) for link in at.links),
            s.LOCATE: at.locate,
            s.TRACK: len(at.classes) <= 64, s.PASSES: 12, s.GMAX: 3, s.DEGREE: 4, s.BUDGET: 1 << 60,
            s.NACT: len(at.acting), s.COUNTED: at.counted, s.NSAMP: len(times), s.OB: at.backlog,
            s.ATONCE: hops_at_once(at),
        }  # fmt: skip
        for slot, value in counts.items():
            head[slot] = int(value)
        head[s.STRIDE] = (
            s.RLINKS + s.LSIZE * head[s.NL] + 5 * (head[s.NX] + head[s.NT] + s.XSIZE * head[s.NACT])
        )
        self._passes(work)

    def _passes(self, work: list[float]) -> None:
        """The quartics of a record, with natural sizes of those that are compared; and the memory
        of the passes.

        What the rest is made of shows in the states. `work` is what each link does in a base RTT.
        """
        head, links = self.head, self.at.links
        kinds = [s.LB, s.LY, *([s.LMARK] if head[s.MARKS] else [])]
        first = [s.RLINKS + l * s.LSIZE for l in range(len(links))]
        end = s.RLINKS + s.LSIZE * len(links)
        compared = [b + k for b in first for k in kinds] + [
            end + 5 * g for g in range(len(self.at.aggregates))
        ]
        natural = [
            {s.LB: bits, s.LY: l.capacity, s.LMARK: 1.0}
            for bits, l in zip(work, links, strict=True)
        ]
        sizes = [size[k] for size in natural for k in kinds] + [
            links[r[0]].capacity for r in self.at.aggregates
        ]
        prices = [b + s.LPRICE for b in first] if head[s.PRICES] else []
        quartics = [
            *compared,
            *prices,
            *range(end + 5 * len(self.at.aggregates), head[s.STRIDE], 5),
        ]
        self.ints(s.JQ, quartics)
        self.floats(s.OWEIGHT, [1.0 / size for size in sizes])
        head[s.NQ], head[s.NQL] = len(quartics), len(compared)
        head[s.NMIX] = 0 if head[s.NODES] or head[s.NQ] > len(compared) else head[s.NS]
        for slot, size in memory(head[s.NQ], len(compared), head[s.NMIX]).items():
            self.room(slot, size)

    def _groups(self) -> None:
        at = self.at
        owners: list[int] = []
        kinks: list[int] = []
        rows: dict[int, list[int]] = {s.JGRP: [], s.JGRL: []}
        values: list[float] = []
        filled = self.sizes[0]
        members = 0
        for slot, groups, specs in (
            (s.JGRP, at.groups, at.flows),
            (s.JGRL, at.link_groups, at.links),
        ):
            for g in groups:
                table = parameters(g, specs)
                number = count_switches(g.law)
                g.switches = len(owners)
                g.first = first = g.members[0] if slot == s.JGRP else members
                g.parameters = filled
                members += g.size if slot == s.JGRL else 0
                rows[slot] += [
                    kernel_address(g.law),
                    first,
                    g.size,
                    g.states,
                    len(g.own),
                    filled,
                    g.switches,
                    number,
                ]
                values += table
                filled += len(table)
                owners += [
                    m if slot == s.JGRP else -1 - m for _ in range(number) for m in g.members
                ]
                of_kinks = count_kinks(g.law) * g.size
                kinks += [1] * of_kinks + [0] * (number * g.size - of_kinks)
        # of each further offer: whether it is less than all before it, and whether it is more
        self.ints(
            s.JRIVALS,
            [len(owners) + 2 * sum(at.rivals[:i]) if n else -1 for i, n in enumerate(at.rivals)],
        )
        owners += [i for i, n in enumerate(at.rivals) for _ in range(2 * n)]
        at.n_switches = len(owners)
        self.floats(s.OPAR, values)
        self.ints(s.JGRP, rows[s.JGRP])
        self.ints(s.JGRL, rows[s.JGRL])
        self.ints(s.JLMEM, [m for g in at.link_groups for m in g.members])
        self.ints(s.JSWOWN, owners)
        self.ints(s.JKINK, kinks + [0] * (len(owners) - len(kinks)))
        self.int_room(s.JTOGETHER, len(owners))
        self.int_room(s.JPEND, len(owners))
        self.head[s.NSW] = len(owners)
        self.room(s.OSW, len(owners), 2.0 if at.locate else -1.0)
        self.room(s.OGS, len(owners))
        self.room(s.OSWITCHED, 3 * len(owners))
        self.int_room(s.JCROSSED, len(owners))

    def _constants(self, atol: float, work: list[float]) -> None:
        at = self.at
        nf, nl = len(at.flows), len(at.links)
        signals = [[0.0] * nf for _ in range(s.USIZE)]
        signals[s.UOFFERMIN] = [s.NO_OFFER] * nf
        signals[s.UEB] = [at.classes[k][2] for k in at.flow_class]
        signals[s.UPACKET] = [f.packet for f in at.flows]
        self.floats(s.OU, [*chain.from_iterable(signals)])
        self.floats(s.OACC, [f.access_delay for f in at.flows])
        self.floats(s.OEB, [back for _, _, back in at.classes])
        self.floats(s.OCLAG, [access + back for _, access, back in at.classes])
        self.floats(s.OCPROP, [base_delay(at, k) for k in range(len(at.classes))])
        self.floats(s.OPROP, [link.delay for link in at.links])
        self.floats(s.OBUF, [link.buffer for link in at.links])
        self.floats(s.OATOL, [atol * size for size in state_sizes(at, work)])
        states = (s.OZ, s.OZP, s.OSCRATCH, s.OY1)
        zeros = dict.fromkeys(states, at.n_states) | {s.OK: 7 * at.n_states}
        zeros |= dict.fromkeys((s.OARR, s.OMARK, s.OPRICE, s.OS0), nl)
        zeros |= dict.fromkeys((s.OAN, s.OMN, s.OPN), 5 * nl)
        zeros |= {
            s.ORATE: nf,
            s.ORN: 5 * nf,
            s.OPAT: nf,
            s.OAK: 7 * nl,
            s.OLO: 7 * nl,
            s.OINT: 2 * nl,
            s.OANP: 2 * nl,
        }
        size = s.XSIZE * len(at.acting)
        zeros |= {s.OUL: 6 * nl, s.OCROSS: nl, s.OACT: size, s.OACTN: 5 * size}
        for slot, size in zeros.items():
            self.room(slot, size)

    def _events(self) -> None:
        """Jumps and ticks."""
        rows = event_rows(self.at, self.head)
        self.event_rows = rows
        n = len(rows)
        self.ints(s.JHY, [*chain.from_iterable(rows)])
        self.ints(s.JHSW, jump_switches(self.at, rows))
        for slot, value in (
            (s.OHTIME, math.inf),
            (s.OHBASE, 0.0),
            (s.OHPER, 0.0),
            (s.OHLAST, -math.inf),
            (s.OHG, 0.0),
        ):
            self.room(slot, n, value)
        self.room(s.OHNEW, 2)
        self.head[s.NHY] = n
        self.head[s.LOGCAP] = LOG + 32 * n if n else 0
        self.room(s.OLOG, 2 * self.head[s.LOGCAP])

    def _pools(self, times: NDArray[np.float64]) -> None:
        """What is read and written while running; the heap and the ring stand last, since they
        grow.
        """
        at = self.at
        self.floats(s.OTS, times)
        self.room(s.OOUT, sample_rows(at) * len(times), math.nan)
        self.room(s.OINIT, at.n_states)
        self.room(s.OY, at.n_states)
        size = HEAP + (16 * len(at.classes) if at.hybrid else 0)
        self.head[s.HEAPCAP] = size
        self.room(s.OHEAP, size)
        self.int_room(s.JHEAP, 3 * size)
        self.head[s.MASK] = RING - 1
        self.room(s.OHIST, RING * self.head[s.STRIDE])

    def _place_initial(self) -> None:
        at = self.at
        states = self.F[self.I[s.OINIT] :][: at.n_states]
        for group in at.groups:
            _fill(states, group, at.flows)
        for group in at.link_groups:
            _fill(states, group, at.links)
        for l, link in enumerate(at.links):
            states[at.backlog + l] = initial_backlog(link)
        self.F[self.I[s.OY] :][: at.n_states] = states
        for i, rate in self.rates_before.items():
            self.F[self.I[s.OPAT] + i] = rate
            self.F[self.I[s.OU] + s.UNOISE * len(at.flows) + i] = rate
        on = self.I[self.I[s.JON] :][: len(at.flows)]
        for i, f in enumerate(at.flows):
            if f.intervals and f.intervals[0][0] < 0.0:
                on[i] = s.HOLDING if f.access_delay > 0.0 else s.ON

    def parameter_places(self, i: int) -> NDArray[np.int64]:
        """Where the parameters of flow `i` stand in `F`."""
        for n, g in enumerate(self.at.groups):
            if i in range(g.members[0], g.members[0] + g.size):
                first = int(self.I[int(self.I[s.JGRP]) + 8 * n + 5])
                return first + i - g.members[0] + g.size * np.arange(len(g.law.params))
        raise IndexError(i)

    def places(self, owner: str, name: str, what: str, key: str) -> list[int]:
        """Return where a number of a flow or link stands in `F`; nothing where its law has none.

        Parameters
        ----------
        owner : str
            ``"flow"`` or ``"link"``.
        name : str
        what : str
            ``"parameter"`` of its law, or ``"initial"`` value of a state.
        key : str
            Name of the parameter or state.
        """
        at = self.at
        groups = at.groups if owner == "flow" else at.link_groups
        names = [spec.name for spec in (at.flows if owner == "flow" else at.links)]
        i = names.index(name)
        for g in groups:
            own = [plain(z) for z in (g.law.params if what == "parameter" else g.own)]
            if i in g.members and key in own:
                n = own.index(key) * g.size + g.members.index(i)
                states = [int(self.I[slot]) + g.states for slot in (s.OINIT, s.OY)]
                return [start + n for start in ([g.parameters] if what == "parameter" else states)]
        return []

    # --- use --------------------------------------------------------------------------------------

    def rows(self, first: int, count: int) -> NDArray[np.float64]:
        """`count` rows of the samples from number `first`, each as long as the sample times."""
        size = int(self.I[s.NSAMP])
        start = int(self.I[s.OOUT]) + first * size
        return self.F[start : start + count * size].reshape(count, size)

    def link_rows(self, row: int) -> NDArray[np.float64]:
        """Samples of all links, of one of the slots SBACKLOG to SLPRICE."""
        nl = len(self.at.links)
        return self.rows(len(self.at.flows) + s.SCLASSROWS * len(self.at.classes) + row * nl, nl)

    def state_rows(self, first: int, count: int) -> NDArray[np.float64]:
        """Samples of `count` states; those of backlogs are not taken, since links have them."""
        links = len(self.at.flows) + s.SCLASSROWS * len(self.at.classes)
        return self.rows(links + s.SLINKROWS * len(self.at.links) + first, count)

    def drain_log(self) -> None:
        """Take over what has been logged, so that there is room for more."""
        start, count = int(self.I[s.OLOG]), int(self.I[s.NLOG])
        self.log.append(self.F[start : start + 2 * count].reshape(count, 2).copy())
        self.I[s.NLOG] = 0

    def grow_ring(self) -> bool:
        """Double the ring; False if it would be larger than any run needs that gets on."""
        stride, mask, offset = (int(self.I[k]) for k in (s.STRIDE, s.MASK, s.OHIST))
        if 2 * (mask + 1) > MOST_RECORDS or 2 * (mask + 1) * stride > MOST_NUMBERS:
            return False
        old = self.F[offset:].reshape(mask + 1, stride)
        new = np.zeros((2 * (mask + 1), stride))
        for k in range(int(self.I[s.FIRST]), int(self.I[s.NREC]) + 1):
            new[k & (2 * mask + 1)] = old[k & mask]
        self.F = np.concatenate([self.F[:offset], new.ravel()])
        self.I[s.MASK] = 2 * mask + 1
        return True

    def grow_heap(self) -> None:
        """Move the heap to a place twice as large: the end of `I` and, in `F`, before the ring."""
        cap, at, ring = (int(self.I[k]) for k in (s.HEAPCAP, s.OHEAP, s.OHIST))
        times = np.concatenate([self.F[at : at + cap], np.zeros(cap)])
        self.F = np.concatenate([self.F[:ring], times, self.F[ring:]])
        self.I[s.OHEAP], self.I[s.OHIST] = ring, ring + 2 * cap
        entries = self.I[int(self.I[s.JHEAP]) :][: 3 * cap]
        where = len(self.I)
        self.I = np.concatenate([self.I, entries, np.zeros(3 * cap, dtype=np.int64)])
        self.I[s.JHEAP], self.I[s.HEAPCAP] = where, 2 * cap


def sample_rows(at: Layout) -> int:
    """How many variables are sampled."""
    return (
        len(at.flows) + s.SCLASSROWS * len(at.classes) + s.SLINKROWS * len(at.links) + at.n_states
    )


def initial_backlog(link: LinkSpec) -> float:
    """Bits in the queue at time 0."""
    return (
        link.initial[plain(link.law.queue)] * link.capacity if link.law.queue is not None else 0.0
    )


def _fill(states: NDArray[np.float64], group: Group, specs: Sequence[FlowSpec | LinkSpec]) -> None:
    for j, z in enumerate(group.own):
        for n, i in enumerate(group.members):
            states[group.states + j * group.size + n] = specs[i].initial[plain(z)]
