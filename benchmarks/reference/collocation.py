"""LDCC networks by a spectral method of steps: slow, accurate to about 1e-12, sharing no code with
`fluidcc`.

Every delay of an LDCC network is positive, so on a step no longer than the shortest delay each
delayed signal is known, and the rate equation ``x' = k (w - (v + e' + pi) x)`` is *linear* in x
with known coefficients. It is solved by Gauss collocation of order 2N. The mesh contains every
kink: queue events and crossings of ``e = T`` are roots of the step's own polynomials, and each is
propagated through every delay for a number of generations (a kink is smoothed by one derivative a
loop). The errors left are those of N, of the longest step and of the number of generations, all
three of which a run varies to measure them.

Time is that of the first queue of each flow (no access delay): a bit of flow r sent at theta leaves
link l at ``theta + q_l(theta)`` and reaches the next hop ``p_l`` later.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from benchmarks.reference.problem import Case, Event, LinkCase, Solution

__all__ = ["solve"]

Array = NDArray[np.float64]
SAME = 1e-12  # [s] kinks nearer than this are one


@dataclass
class _Link:
    case: LinkCase
    mode: str = "empty"
    clock: list[float] = field(
        default_factory=list
    )  # theta + q(theta) + p at the starts of the pieces


class _Run:
    """The state of one integration: pieces of Legendre coefficients, one row a signal."""

    def __init__(self, case: Case, nodes: int, h_max: float, generations: int) -> None:
        self.case, self.generations = case, generations
        self.R, self.L = len(case.flows), len(case.links)
        self.links = [_Link(link) for link in case.links]
        self.hops = [(r, j) for r, flow in enumerate(case.flows) for j in range(1, len(flow.route))]
        # rows: rates, queues, queue slopes, link arrivals, losses, shares, arrivals of flow r at
        # its hop j >= 1
        self.row_q, self.row_qdot = self.R, self.R + self.L
        self.row_y, self.row_pi = self.R + 2 * self.L, self.R + 3 * self.L
        self.row_share = (
            self.R + 4 * self.L
        )  # what leaves of a flow over what entered of it: c/y while there is a queue
        self.row_hop = {hop: self.R + 5 * self.L + i for i, hop in enumerate(self.hops)}
        # the first look-up back is one propagation delay away, whatever the queues
        self.h_max = min([h_max, *(link.delay for link in case.links)])
        self.xi, weights = legendre.leggauss(nodes)
        vander = legendre.legvander(self.xi, nodes - 1)
        self.fit = (vander * weights[:, None]).T * (np.arange(nodes) + 0.5)[
            :, None
        ]  # values -> coefficients
        integral = legendre.legint(np.eye(nodes), lbnd=-1, axis=0)
        self.integrate = integral @ self.fit  # slopes at the nodes -> coefficients of the integral
        self.A = legendre.legvander(self.xi, nodes) @ self.integrate
        self.grid = np.linspace(-1, 1, 4 * nodes + 1)
        self.starts: list[float] = []
        self.lengths: list[float] = []
        self.coefs: list[Array] = []
        self.events: list[Event] = []
        self.heap: list[
            tuple[float, int, int, int]
        ] = []  # time, generation, flow, hop (len(route): the source)
        x0 = np.array([flow.rate for flow in case.flows])
        past = np.zeros((self.R + 5 * self.L + len(self.hops), nodes + 1))
        past[: self.R, 0] = x0
        past[self.row_share : self.row_share + self.L, 0] = 1.0
        for r, flow in enumerate(case.flows):
            for j, l in enumerate(flow.route):
                past[self.row_y + l, 0] += x0[r]
                if j:
                    past[self.row_hop[r, j], 0] = x0[r]
        if any(past[self.row_y + l, 0] >= link.capacity for l, link in enumerate(case.links)):
            raise ValueError(
                f"{case.name}: the rates before t = 0 exceed a capacity, so its queue is not empty"
            )
        self.append(-60.0, 60.0, past)
        self.ends = past[:, 0].copy()
        for l in range(self.L):
            self.kink_at_link(0.0, 0, l)

    # -- history
    def append(self, a: float, h: float, coefs: Array) -> None:
        self.starts.append(a)
        self.lengths.append(h)
        self.coefs.append(coefs)
        for l, link in enumerate(self.links):
            q = legendre.legval(-1.0, coefs[self.row_q + l])
            link.clock.append(a + self.wait(q) + link.case.delay)

    def wait(self, q: float) -> float:
        return q if self.case.fifo else 0.0

    def look(self, row: int, times: Array) -> Array:
        """Signal `row` at `times` (all inside the history)."""
        out = np.empty_like(times)
        which = np.array([bisect_right(self.starts, s) - 1 for s in times])
        for i in np.unique(which):
            u = 2 * (times[which == i] - self.starts[i]) / self.lengths[i] - 1
            out[which == i] = legendre.legval(u, self.coefs[i][row])
        return out

    def entered(self, l: int, times: Array) -> Array:
        """When did that enter link `l` which reaches the next hop at `times`: theta + q(theta) +
        p = t.
        """
        link = self.links[l]
        if not self.case.fifo:
            return times - link.case.delay
        theta = np.empty_like(times)
        which = np.array([bisect_right(link.clock, s) - 1 for s in times])
        for i in np.unique(which):
            a, h, s = self.starts[i], self.lengths[i], times[which == i]
            q, slope = self.coefs[i][self.row_q + l], self.coefs[i][self.row_qdot + l]
            u = np.zeros_like(s)
            for _ in range(20):
                residual = a + h * (u + 1) / 2 + legendre.legval(u, q) + link.case.delay - s
                step = residual / (h / 2 * (1 + legendre.legval(u, slope)))
                u = u - step
                if np.max(np.abs(step)) * h < 4e-16 * max(1.0, float(s[-1])):
                    break
            if np.max(np.abs(u)) > 1 + 1e-6 + 1e-13 / h:
                raise ArithmeticError(
                    f"{self.case.name}: no inverse of the clock of link {l} at t = {s}"
                )
            theta[which == i] = a + h * (u + 1) / 2
        return theta

    # -- kinks
    def kink_at_link(self, t: float, generation: int, l: int) -> None:
        """A kink of link `l`'s queue at the latest time t: it lands at each flow's next hop."""
        if generation > self.generations:
            return
        for r, flow in enumerate(self.case.flows):
            if l in flow.route:
                self.pass_on(t, generation, r, flow.route.index(l))

    def pass_on(self, t: float, generation: int, r: int, j: int) -> None:
        flow, link = self.case.flows[r], self.links[self.case.flows[r].route[j]]
        q = self.ends[self.row_q + flow.route[j]]
        lands = (
            t
            + self.wait(q)
            + link.case.delay
            + (flow.return_delay if j + 1 == len(flow.route) else 0.0)
        )
        heapq.heappush(self.heap, (lands, generation, r, j + 1))

    def forward_kinks(self, t: float) -> None:
        """Kinks that land at t, each once, smoothed by one derivative where a source has
        integrated it.
        """
        seen: dict[int, int] = {}
        while self.heap and self.heap[0][0] <= t + SAME:
            _, generation, r, j = heapq.heappop(self.heap)
            route = self.case.flows[r].route
            source = j == len(route)
            l = route[0] if source else route[j]
            g = generation + source
            seen[l] = min(g, seen.get(l, g))
        for l, g in seen.items():
            self.kink_at_link(t, g, l)

    # -- a step
    def feedback(self, r: int, times: Array) -> tuple[Array, Array, Array]:
        """What source r knows at `times`: (e, e', pi), all stamped when the bits entered the
        queues.
        """
        flow = self.case.flows[r]
        at = times - flow.return_delay
        e, stretch, passed = np.zeros_like(times), np.ones_like(times), np.ones_like(times)
        for l in reversed(flow.route):
            at = self.entered(l, at)
            e += self.links[l].case.delay + self.look(self.row_q + l, at)
            stretch *= 1 + self.look(self.row_qdot + l, at)
            passed *= 1 - self.look(self.row_pi + l, at)
        return e, stretch - 1, 1 - passed

    def hop(self, r: int, j: int, times: Array) -> Array:
        """Arrival rate of flow r at its hop j >= 1: FIFO hands out the capacity in the
        proportions that entered.
        """
        l = self.case.flows[r].route[j - 1]
        at = self.entered(l, times)
        return self.look(r if j == 1 else self.row_hop[r, j - 1], at) * self.look(
            self.row_share + l, at
        )

    def step(self, a: float, b: float, state: Array) -> tuple[Array, list[tuple[float, str, int]]]:
        """Coefficients of all signals on [a, b] in the present modes, and the events (position,
        what, where).
        """
        case, h = self.case, b - a
        times = a + h * (self.xi + 1) / 2
        nodes = len(times)
        coefs = np.zeros((self.R + 5 * self.L + len(self.hops), nodes + 1))
        events: list[tuple[float, str, int]] = []
        y = np.zeros((self.L, nodes))
        for r, flow in enumerate(case.flows):
            e, edot, pi = self.feedback(r, times)
            excess = np.append(self.fit @ (e - case.T), 0.0)
            above = self.starts_above(excess, noise=1e-15)
            crossing = self.first_root(excess, -1 if above else 1, 1e-15)
            if crossing is not None:
                events.append((crossing, "e below T" if above else "e above T", r))
            rtt = e + flow.return_delay
            v = case.beta * (e - case.T) / rtt if above else 0.0
            k = case.eta / rtt
            decay = k * (v + edot + pi)
            x = np.linalg.solve(
                np.eye(nodes) + h / 2 * self.A * decay, state[r] + h / 2 * self.A @ (k * case.w)
            )
            coefs[r] = h / 2 * self.integrate @ (k * case.w - decay * x)
            coefs[r, 0] += state[r]
            y[flow.route[0]] += x
            for j in range(1, len(flow.route)):
                arriving = self.hop(r, j, times)
                coefs[self.row_hop[r, j], :-1] = self.fit @ arriving
                y[flow.route[j]] += arriving
        for l, link in enumerate(self.links):
            coefs[self.row_y + l, :-1] = self.fit @ y[l]
            self.queue(l, link, y[l], h, state[self.row_q + l], coefs)
            crossing, what = self.queue_event(l, link, coefs)
            if crossing is not None:
                events.append((crossing, what, l))
        return coefs, events

    def queue(self, l: int, link: _Link, y: Array, h: float, q: float, coefs: Array) -> None:
        coefs[self.row_share + l, 0] = 1.0
        if link.mode != "empty":
            coefs[self.row_share + l, :-1] = self.fit @ (link.case.capacity / y)
        if link.mode == "busy":
            slope = y / link.case.capacity - 1
            coefs[self.row_qdot + l, :-1] = self.fit @ slope
            coefs[self.row_q + l] = h / 2 * self.integrate @ slope
            coefs[self.row_q + l, 0] += q
        elif link.mode == "full":
            coefs[self.row_q + l, 0] = link.case.q_max
            coefs[self.row_pi + l, :-1] = self.fit @ (1 - link.case.capacity / y)

    def starts_above(self, f: Array, noise: float) -> bool:
        values = legendre.legval(self.grid, f)
        clear = np.flatnonzero(np.abs(values) > noise)
        return bool(len(clear) and values[clear[0]] > 0)

    def queue_event(self, l: int, link: _Link, coefs: Array) -> tuple[float | None, str]:
        excess, q = coefs[self.row_y + l].copy(), coefs[self.row_q + l].copy()
        excess[0] -= link.case.capacity
        noise = 1e-14 * link.case.capacity
        if link.mode == "empty":
            return self.first_root(excess, +1, noise), "busy"
        if link.mode == "full":
            return self.first_root(excess, -1, noise), "below full"
        emptied = self.first_root(q, -1, 1e-16)
        q[0] -= min(link.case.q_max, 1e9)
        filled = self.first_root(q, +1, 1e-16)
        if emptied is not None and (filled is None or emptied < filled):
            return emptied, "empty"
        return filled, "full"

    def first_root(self, f: Array, sign: int, noise: float) -> float | None:
        """First u in [-1, 1] from which the polynomial has this sign (-1.0: it has it from the
        start).
        """
        new = sign * legendre.legval(self.grid, f) > noise
        if not new.any():
            return None
        i = int(np.argmax(new))
        if i == 0:
            return -1.0
        lo, hi = float(self.grid[i - 1]), float(self.grid[i])
        for _ in range(60):
            mid = (lo + hi) / 2
            lo, hi = (lo, mid) if sign * legendre.legval(mid, f) > 0 else (mid, hi)
        return hi

    # -- the march
    def march(self) -> None:
        t, until = 0.0, self.case.until
        while t < until - SAME:
            self.forward_kinks(t)
            b = min(t + self.h_max, until, self.heap[0][0] if self.heap else until)
            while True:
                coefs, events = self.step(t, b, self.ends)
                inside = [event for event in events if event[0] < 1 - 1e-9]
                if not inside:
                    events = []
                    break
                u = min(event[0] for event in inside)
                happening = [event for event in inside if event[0] <= u + 1e-12]
                b = t + (b - t) * (u + 1) / 2
                if b - t < SAME:
                    break
                coefs, still = self.step(t, b, self.ends)
                if not [event for event in still if event[0] < 1 - 1e-6]:
                    events = happening
                    break
            if b - t >= SAME:
                self.append(t, b - t, coefs)
                self.ends = np.array([legendre.legval(1.0, row) for row in coefs])
                t = b
            else:
                events = happening
            for _, what, where in events:
                self.happen(t, what, where)

    def happen(self, t: float, what: str, where: int) -> None:
        self.events.append(Event(t, what, where))
        if what.startswith("e "):
            self.kink_at_link(t, 1, self.case.flows[where].route[0])
            return
        link = self.links[where]
        link.mode = {"below full": "busy"}.get(what, what)
        if what in ("empty", "full"):
            self.ends[self.row_q + where] = 0.0 if what == "empty" else link.case.q_max
        self.kink_at_link(t, 0, where)


def solve(case: Case, *, nodes: int = 14, h_max: float = 0.025, generations: int = 10) -> Solution:
    """Integrate `case` with `nodes` Gauss points a step, steps of at most `h_max` [s]."""
    run = _Run(case, nodes, h_max, generations)
    run.march()
    time = np.linspace(0.0, case.until, case.samples)
    inside = np.clip(time, 0.0, case.until * (1 - 1e-15))

    def rows(first: int, count: int) -> Array:
        return np.array([run.look(first + i, inside) for i in range(count)])

    return Solution(
        time,
        rows(0, run.R),
        rows(run.row_q, run.L),
        rows(run.row_y, run.L),
        run.events,
        len(run.coefs),
    )
