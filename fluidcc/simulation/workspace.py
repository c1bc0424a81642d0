"""The arrays of a run, filled from a layout; and their growth where it needs more room."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Symbol

from fluidcc.laws.kernels import count_kinks, count_switches, kernel_address
from fluidcc.laws.sliding import compares_delay, slide_kernel_address, sliding_switches
from fluidcc.numerics.fluid import state as s
from fluidcc.numerics.layout import NO_OFFER
from fluidcc.simulation.layout import Group, Layout, base_delay, compared_quartics
from fluidcc.simulation.tables import (
    Tables,
    accounts,
    capacities,
    collect_changes,
    event_rows,
    hops_at_once,
    jump_switches,
    maps,
    natural_time,
    nodes,
    own_pasts,
    scheduled,
    state_sizes,
    work_sizes,
)
from fluidcc.symbols import plain

RING, LANDINGS = 64, 1024  # records and landings at first; both grow
# that a ring may have: beyond them a run would fill the memory
MOST_RECORDS, MOST_NUMBERS = 2**19, 2**29
LOG = 4096  # jumps, ticks and breaking points between two visits of Python


class Workspace:
    """The arrays `F` and `I` of one run (see `fluidcc.numerics.fluid.state`), and their growth."""

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
        self.at = at
        self.log: list[NDArray[np.float64]] = []  # rows of time and number of a jump or tick, or -1
        self.since, self.until = since, until
        self.event_rows = event_rows(at)
        work = work_sizes(at)
        changes, rates_before = collect_changes(at, patterns, since)
        state = s.State.of({
            **self._scalars(times, until, rtol, max_step),
            **self._passes(work),
            **self._groups(),
            **self._constants(atol, work),
            **self._events(),
            **self._rooms(),
            **nodes(at),
            **maps(at),
            **accounts(at),
            **own_pasts(at),
            **capacities(at, since),
            **scheduled(changes),
            **self._pools(times),
        })  # fmt: skip
        self.F, self.I = state.F, state.I
        self.rows(0, sample_rows(at) - 1)[:] = math.nan
        self._place_initial(rates_before)

    # --- building ---------------------------------------------------------------------------------

    @property
    def state(self) -> s.State:
        """Both arrays, by name."""
        return s.State(self.F, self.I)

    def _scalars(
        self, times: NDArray[np.float64], until: float, rtol: float, max_step: float
    ) -> Tables:
        at, links = self.at, self.at.links
        end = until + max((f.access_delay for f in at.flows), default=0.0)
        # a hair more, so that samples at the end show what is after a jump there, as all others do
        end += 1e-9 * end if at.hybrid else 0.0
        loops = (sum(links[l].delay for l in route) + out + back for route, out, back in at.classes)
        return {
            "n_flows": len(at.flows),
            "n_links": len(links),
            "n_groups": len(at.groups),
            "n_link_groups": len(at.link_groups),
            "n_states": at.n_states,
            "first_backlog": at.backlog,
            "n_nodes": len(at.nodes),
            "n_classes": len(at.classes),
            "n_streams": len(at.streams),
            "n_aggregates": len(at.aggregates),
            "n_own_rates": at.own_rates,
            "n_acting": len(at.acting),
            "n_samples": len(times),
            "n_switches": len(at.switch_owner),
            "frozen": at.frozen is not None,
            "echo": at.echo,
            "refit": at.refit,
            "marking": at.marking,
            "apart": at.apart,
            "pricing": at.pricing,
            "lossy": at.lossy,
            "locate": at.locate,
            "track": len(at.classes) <= 64,
            "counted": at.counted,
            "mixed": at.mixed,
            "most_passes": 12,
            "most_generations": 3,
            "budget": 1 << 60,
            "hops_at_once": hops_at_once(at),
            "t_end": end,
            "t_stop": end,
            "rtol": rtol,
            "time_tol": 1e-11,
            "natural": natural_time(at),
            "error_before": 1e-4,
            "t_flip": -1.0,
            "h_max": max_step,
            "h_passes": math.inf,
            "brief": 0.003 * min(loops),
            "next_rule": math.inf,
            "slide": s.GSIZE * len(at.switch_owner),
            "flip_time": [-math.inf] * len(at.switch_owner),
            "record_size": at.record_size,
        }

    def _passes(self, work: list[float]) -> Tables:
        """The quartics of a record, with natural sizes of those that are compared; and the memory
        of the passes.

        What the rest is made of shows in the states. `work` is what each link does in a base RTT.
        """
        at = self.at
        compared, others = compared_quartics(at)
        sizes = [
            size
            for bits, link in zip(work, at.links, strict=True)
            for size in (bits, link.capacity, *([1.0] if at.marking else []))
        ]
        sizes += [at.links[route[0]].capacity for route in at.aggregates]
        return {
            "quartic_place": [*compared, *others],
            "quartic_weight": [1.0 / size for size in sizes],
            "n_quartics": len(compared) + len(others),
            "n_compared": len(compared),
            "looked": 4 * len(compared),
        }

    def _groups(self) -> Tables:
        at, count = self.at, len(self.at.switch_owner)
        rows: dict[str, list[int]] = {"flow": [], "link": []}
        values: list[float] = []
        kinks, slides = [0] * count, [s.NO_SLIDE] * count
        for g in at.every_group:
            rows[g.kind] += [
                kernel_address(g.law), g.first, g.size, g.states, len(g.own), g.parameters,
                g.switches, count_switches(g.law),
            ]  # fmt: skip
            values += [float(spec.law.params[p]) for p in g.law.params for spec in g.specs]
            of_kinks = count_kinks(g.law) * g.size
            kinks[g.switches : g.switches + of_kinks] = [1] * of_kinks
            for n in sliding_switches(g.law):
                if at.frozen is not None and compares_delay(g.law, n):
                    continue
                first = g.switches + n * g.size
                slides[first : first + g.size] = [s.NOT_ASKED] * g.size
        return {
            "group": rows["flow"],
            "link_group": rows["link"],
            "link_member": [l for g in at.link_groups for l in g.members],
            "parameters": values,
            "switch_owner": at.switch_owner,
            "is_kink": kinks,
            "slide_of": slides,
            "rivals": at.rivals,
            "switch": [s.UNDECIDED if at.locate else -1.0] * count,
        }

    def _constants(self, atol: float, work: list[float]) -> Tables:
        at = self.at
        nf = len(at.flows)
        signals = [[0.0] * nf for _ in range(at.signals)]
        signals[s.UOFFERMIN] = [NO_OFFER] * nf
        signals[s.UEB] = [at.classes[k][2] for k in at.flow_class]
        signals[s.UPACKET] = [f.packet for f in at.flows]
        return {
            "signals": [*chain.from_iterable(signals)],
            "rate_state": at.rate_state,
            "access_delay": [f.access_delay for f in at.flows],
            "return_delay": [back for _, _, back in at.classes],
            "class_lag": [access + back for _, access, back in at.classes],
            "class_delay": [base_delay(at, k) for k in range(len(at.classes))],
            "link_delay": [link.delay for link in at.links],
            "buffer": [link.buffer for link in at.links],
            "atol": [atol * size for size in state_sizes(at, work)],
        }

    def _events(self) -> Tables:
        """Jumps and ticks."""
        rows = self.event_rows
        n = len(rows)
        size = LOG + 32 * n if n else 0
        return {
            "n_rules": n,
            "rule": [*chain.from_iterable(rows)],
            "switch_rule": jump_switches(self.at, rows),
            "rule_time": [math.inf] * n,
            "rule_last": [-math.inf] * n,
            "log_size": size,
            "log": 2 * size,
        }

    def _rooms(self) -> Tables:
        """What is 0 at first, by how many numbers there are."""
        at = self.at
        nf, nl, ns, nc = len(at.flows), len(at.links), at.n_states, len(at.classes)
        acted, switches, rules = (
            s.XSIZE * len(at.acting), len(at.switch_owner), len(self.event_rows),
        )  # fmt: skip
        sizes = (
            (ns, "stage end_before scratch y_end"), (7 * ns, "slopes"),
            (nf, "rate pattern_rate flow_on"), (5 * nf, "node_rate"),
            (nl, "arrival unmarkable mark price work_done"), (2 * nl, "totals arrival_before"),
            (3 * nl, "crossing"),
            (5 * nl, "node_arrival node_mark node_price"), (9 * nl, "link_inputs"),
            (7 * nl, "arrival_slopes link_outputs"), (acted, "acted"), (5 * acted, "node_acted"),
            (len(at.nodes), "cursor cursor_start entry_time entry_place path_stretch path_kept"),
            (len(at.nodes), "path_unmarked path_passed path_price path_wait"),
            (nc, "class_sample"), (nl + nc + len(at.lags), "landed"),
            (switches, "switch_value together pending crossed_switch hasty"),
            (3 * switches, "switched"), (9 * switches, "within"),
            (rules, "rule_base rule_period rule_gap"), (3, "rule_result"),
        )  # fmt: skip
        return {name: size for size, names in sizes for name in names.split()}

    def _pools(self, times: NDArray[np.float64]) -> Tables:
        """What is read and written while running; the landings and the ring stand last, as they
        grow.
        """
        at = self.at
        size = LANDINGS + (16 * len(at.classes) if at.hybrid else 0)
        return {
            "sample_time": times,
            "samples": sample_rows(at) * len(times),
            "initial": at.n_states,
            "y": at.n_states,
            "landing_room": size,
            "ring_mask": RING - 1,
            "landing_time": size,
            "landing": 3 * size,
            "ring": RING * at.record_size,
        }

    def _place_initial(self, rates_before: dict[int, float]) -> None:
        at, state = self.at, self.state
        initial = state.initial[: at.n_states]
        for g in at.every_group:
            for j, z in enumerate(g.own):
                first = g.states + j * g.size
                for n, spec in enumerate(g.specs, first):
                    initial[n] = spec.initial[plain(z)]
        for l, link in enumerate(at.links, at.backlog):
            if link.law.queue is not None:
                initial[l] = link.initial[plain(link.law.queue)] * link.capacity
        state.y[: at.n_states] = initial
        for i, rate in rates_before.items():
            state.pattern_rate[i] = state.signals[s.UNOISE * len(at.flows) + i] = rate
        for i, f in enumerate(at.flows):
            if f.intervals and f.intervals[0][0] < 0.0:
                state.flow_on[i] = s.HOLDING if f.access_delay > 0.0 else s.ON

    def let_slide(self, switch: int) -> None:
        """Give a switch that may slide the kernel by which it does."""
        at, state = self.at, self.state
        g = next(g for g in reversed(at.every_group) if g.switches <= switch)
        number, member = divmod(switch - g.switches, g.size)
        r, source = int(state.n_slides), g.kind == "flow"
        state.slide[s.GSIZE * r :][: s.GSIZE] = (
            slide_kernel_address(g.law), number, switch, source, count_switches(g.law),
            g.states + member, g.size, g.first + member,
            len(at.flows) if source else len(at.links), g.parameters + member,
            g.switches + member, g.first + member,
        )  # fmt: skip
        state.slide_of[switch] = r
        state.n_slides = r + 1

    def flow_parameters(self, i: int) -> NDArray[np.float64]:
        """The parameters of flow `i`, which may be set."""
        g = next(g for g in self.at.groups if i in g.members)
        table = self.state.parameters[g.parameters :][: len(g.law.params) * g.size]
        return table[g.members.index(i) :: g.size]

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
        for g in (g for g in self.at.every_group if g.kind == owner):
            of = [spec.name for spec in g.specs]
            own = [plain(z) for z in (g.law.params if what == "parameter" else g.own)]
            if name in of and key in own:
                n = own.index(key) * g.size + of.index(name)
                if what == "parameter":
                    return [self.state.start("parameters") + g.parameters + n]
                return [self.state.start(array) + g.states + n for array in ("initial", "y")]
        return []

    # --- use --------------------------------------------------------------------------------------

    def rows(self, first: int, count: int) -> NDArray[np.float64]:
        """`count` rows of the samples from number `first`, each as long as the sample times."""
        size = int(self.state.n_samples)
        return self.state.samples[first * size : (first + count) * size].reshape(count, size)

    def link_rows(self, row: int) -> NDArray[np.float64]:
        """Samples of all links, of one of the slots SBACKLOG to SLPRICE."""
        nl = len(self.at.links)
        return self.rows(len(self.at.flows) + s.SCLASSROWS * len(self.at.classes) + row * nl, nl)

    def state_rows(self, first: int, count: int) -> NDArray[np.float64]:
        """Samples of `count` states; those of backlogs are not taken, since links have them."""
        links = len(self.at.flows) + s.SCLASSROWS * len(self.at.classes)
        return self.rows(links + s.SLINKROWS * len(self.at.links) + first, count)

    def states_of(self, group: Group, z: Symbol, of: Any = slice(None)) -> NDArray[np.float64]:
        """Samples of a state of the members of a group (members, times), or of some of them."""
        rows = self.state_rows(group.states + group.own.index(z) * group.size, group.size)[of]
        # A state held at 0 leaves it along a polynomial, which rounding may start below.
        return np.maximum(rows, 0.0) if group.law.lower.get(z) == 0 else rows

    def known(self, group: Group, n: int, k: int) -> dict[Symbol, float]:
        """Parameters of member `n` of a group of flows, and its states at sample `k`."""
        values = self.flow_parameters(group.members[n]).tolist()
        states = {z: float(self.states_of(group, z, n)[k]) for z in group.own}
        return dict(zip(group.law.params, values, strict=True)) | states

    def rate(self, i: int) -> NDArray[np.float64]:
        """Samples of the sending rate of flow `i` [bit/s]."""
        return self.rows(i, 1)[0]

    def round_trip(self, i: int) -> NDArray[np.float64]:
        """Samples of the round-trip time that flow `i` knows of [s]."""
        at, k = self.at, self.at.flow_class[i]
        row = len(at.flows) + s.SDELAY * len(at.classes) + k
        return self.rows(row, 1)[0] + self.state.return_delay[k]

    def finite(self) -> bool:
        """Whether all samples of what flows and links show are finite."""
        at = self.at  # prices, the last of them, are not sampled where there are none
        rest = at.n_states + 1 + (0 if at.pricing else len(at.links))
        return bool(np.isfinite(self.rows(0, sample_rows(at) - rest)).all())

    def drain_log(self) -> None:
        """Take over what has been logged, so that there is room for more."""
        state, count = self.state, int(self.state.n_logged)
        self.log.append(state.log[: 2 * count].reshape(count, 2).copy())
        state.n_logged = 0

    def grow_ring(self) -> bool:
        """Double the ring; False if it would be larger than any run needs that gets on."""
        state, offset = self.state, self.state.start("ring")
        stride, size = int(state.record_size), int(state.ring_mask) + 1
        if 2 * size > MOST_RECORDS or 2 * size * stride > MOST_NUMBERS:
            return False
        old, new = state.ring.reshape(size, stride), np.zeros((2 * size, stride))
        for k in range(int(state.oldest), int(state.n_records) + 1):
            new[k & (2 * size - 1)] = old[k & (size - 1)]
        self.F = np.concatenate([self.F[:offset], new.ravel()])
        state.ring_mask = 2 * size - 1
        return True

    def grow_landings(self) -> None:
        """Move the landings to a place twice as large: the end of `I`, and before the ring."""
        state, size, ring = self.state, int(self.state.landing_room), self.state.start("ring")
        times = np.concatenate([state.landing_time[:size], np.zeros(size)])
        entries = [state.landing[: 3 * size], np.zeros(3 * size, dtype=np.int64)]
        self.F = np.concatenate([self.F[:ring], times, self.F[ring:]])
        where = len(self.I)
        self.I = np.concatenate([self.I, *entries])
        for name, start in (("landing_time", ring), ("ring", ring + 2 * size), ("landing", where)):
            self.I[s.PLACES[name][1]] = start
        self.state.landing_room = 2 * size


def sample_rows(at: Layout) -> int:
    """How many variables are sampled: the last one is 0 throughout, for those that are nothing."""
    of_classes, of_links = s.SCLASSROWS * len(at.classes), s.SLINKROWS * len(at.links)
    return len(at.flows) + of_classes + of_links + at.n_states + 1
