"""Equations (1) to (7), Algorithm 1 and Table I of the delay-based AIMD paper."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sympy import Eq, Max, Min, symbols

from fluidcc.formulas import delay_aimd
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.delay_aimd.common import (
    C2,
    PACKET,
    T2,
    TAU2,
    backoffs,
    fig2,
    flow,
    last_cycle,
    ms,
    of_fig2,
)
from fluidcc.papers.model import (
    NOT_GIVEN,
    Outcome,
    claim,
    differs_if,
    from_proofs,
    proof,
    refuted_if,
    reproduced_if,
)
from fluidcc.papers.printed import agrees, named, numbers, percent
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import PlainDelayAIMD

C, q, w, x = symbols("C q w x", positive=True)


@claim("(1)", "tau0 = 20 ms, 400 packets")
def delay_backoff() -> Outcome:
    """A flow backs off when the queueing delay reaches tau0, before the queue is full."""
    run = fig2()
    top, full = float(run.queueing_delay.sel(time=slice(10.0, None)).max()), 400 * PACKET / C2
    return reproduced_if(
        float(run.lost.max()) == 0.0 and TAU2 < top < full,
        f"{len(backoffs(run))} backoffs in 40 s, the queueing delay at most {ms(top)} of "
        f"{ms(full)} after 10 s, nothing lost",
        "Above tau0 by what the window grows in the round trip before the news comes.",
        {"top": top, "full": full},
    )


@claim("(2)", "min", erratum=True)
def increase_minimum() -> Outcome:
    """alpha = min[1, 1 + 10 (Delta - 1) + 0.5 (Delta - 1)^2]."""
    printed = 1 + 10 * x + x**2 / 2  # x = Delta - 1 > 0
    never = proof(Eq(Min(1, printed), 1))
    Delta = delay_aimd.increase.arguments[0]
    ours = delay_aimd.increase.form.subs(delay_aimd.increase.defaults).subs(Delta, 1 + x)
    meant = proof(Eq(Max(1, printed), ours))
    at = np.linspace(0.0, 1.0, 11)
    below = 1 + 10 * (at - 1) + 0.5 * (at - 1) ** 2
    early = float(np.minimum(1, below)[0])
    same = np.allclose(np.maximum(1, below), delay_aimd.increase(at))
    return refuted_if(
        never and meant and same,
        "the minimum is 1 for all Delta > 1, proved; the maximum is the library's increase, for "
        "all Delta",
        f"As printed the increase would never be more than one packet, and {early:g} just after a "
        "backoff: the window would shrink. The maximum is meant.",
        {"at Delta = 0": early},
    )


@claim("(3)", "R+ = R-")
def busy_link() -> Outcome:
    """If n flows back off together by beta = RTT_min/RTT and the round trip is RTT_min then, R+ =
    R- = B."""
    windows, trips, smallest = (symbols(f"{name}1:5", positive=True) for name in ("w", "R", "m"))
    before = sum(a / b for a, b in zip(windows, trips, strict=True))
    factor = delay_aimd.backoff_factor
    after = sum(
        factor.form.subs(dict(zip(factor.arguments, (m, r, 1), strict=True))) * a / m
        for a, r, m in zip(windows, trips, smallest, strict=True)
    )
    return from_proofs(
        *factor.claims.values(),
        Eq(after, before),
        computed="flow by flow, so for any number, any round trips and any links",
        reason="Whether it holds where they do not, the rows below show.",
    )


@claim("(3)", "100 %")
def busy_with_two_round_trips() -> Outcome:
    """Flows of different round trips keep the link busy."""
    link = {"capacity": C2, "delay": T2 / 4, "buffer": 400 * PACKET}
    near, far = flow(PlainDelayAIMD, 200), flow(PlainDelayAIMD, 400, access_delay=T2 / 4)
    net = dumbbell([near, far], link)
    late = simulate(net, 60.0, samples=6001, rtol=1e-6).sel(time=slice(20.0, None))
    used, least = float(late.utilisation.mean()), float(late.utilisation.min())
    short = float((late.utilisation < 0.99).mean())
    rates = late.rate.mean("time").values
    return reproduced_if(
        agrees("100", 100 * used),
        f"mean utilisation {percent(used)}, below 99 % in {percent(short, 2)} of the time, "
        f"smallest {percent(least, 2)}, with 60 and 120 ms",
        f"The near flow has {rates[0] / rates[1]:.2f} times the rate of the far one, as loss-based "
        "flows would favour it. "
        + (
            "The link idles a little after each backoff: where the near flow was silent, its "
            "acknowledgements are missing a round trip later, when the queue has just gone."
            if agrees("100", 100 * used)
            else "The link idles, since the flows do not back off together."
        ),
        {"utilisation": used, "short": short, "least": least, "ratio": rates[0] / rates[1]},
    )


@claim("(4)", "delta RTT_min")
def ratchet_form() -> Outcome:
    """If all flows have the same RTT_min, delta < 1 lowers it at each backoff until it is the
    propagation delay."""
    form = delay_aimd.ratchet
    k, start, T, delta = form.arguments
    return from_proofs(
        *form.claims.values(),
        Eq(form.form.subs({start: T * delta ** (-k)}), T),
        computed="max(T, delta^k RTT_min) after k backoffs, whatever round trip triggers them",
        reason="It is T after ln(T/RTT_min)/ln(delta) backoffs.",
    )


@claim("(5)", "(5)")
def threshold_between() -> Outcome:
    """tau0 lies between tau0_bar and RTT_max - RTT_min; gamma = 0 is the plain algorithm."""
    form = delay_aimd.threshold
    base, gamma, high, low = form.arguments
    part, span = symbols("p s", positive=True)
    at = form.form.subs({high: low + span, gamma: part})
    return from_proofs(
        Eq(form.form.subs(gamma, 0), base),
        Eq(form.form.subs(gamma, 1), high - low),
        Eq(at - base, part * (span - base)),
        Eq(span - at, (1 - part) * (span - base)),
        computed="a convex combination, tau0_bar at gamma = 0",
    )


@claim("(7)", "(7)", erratum=True)
def slow_start_threshold() -> Outcome:
    """max_ssthresh is what is in the queue for tau0: C tau0."""
    cwnd, tau0, high, low = delay_aimd.max_ssthresh.arguments
    # A round of w packets is acknowledged at rate C; two packets leave for each. When q more than
    # C's share were sent
    # the queue is q. News of it comes 2 q acknowledgements into the next round, when the window is
    # 2 w + 2 q.
    found = delay_aimd.max_ssthresh.form.subs({high: low + q / C, cwnd: 2 * w + 2 * q})
    last = proof(Eq(found.subs(q, w), C * tau0))
    above = proof(Eq(found / (C * tau0), (w + q) / (2 * q)))
    return differs_if(
        last and above,
        "C tau0 at the last acknowledgement of a round, proved; before it (w + q)/(2 q) as much",
        "cwnd(t - RTT)/2 is the queue only when the whole round of w packets has been sent. When "
        "RTT first rises above RTT_max the queue is q < w, and (7) gives too much: twice C tau0 at "
        "q = w/3.",
        {"q = w/3": ((w + q) / (2 * q)).subs(q, w / 3)},
    )


@claim("Section IV", "O(RTT/tau0)")
def slow_start_length() -> Outcome:
    """At max_ssthresh/2 = C tau0/2 packets a round trip slow start takes O(RTT/tau0) round
    trips."""
    rtt, tau0 = delay_aimd.slow_start_rounds.arguments
    return from_proofs(
        *delay_aimd.slow_start_rounds.claims.values(),
        Eq(delay_aimd.slow_start_rounds.form, 2 * rtt / tau0),
        computed="2 RTT/tau0, whatever the link rate",
        values={"Fig. 2": delay_aimd.slow_start_rounds(T2, TAU2)},
    )


@claim("Algorithm 1, line 19", "2 (1 - beta)", erratum=True)
def algorithm_increase() -> Outcome:
    """The increase is 2 (1 - beta) alpha."""
    beta = delay_aimd.backoff_factor(T2, T2 + TAU2)
    factor = 2 * (1 - beta)
    # What (2) must add up to in an epoch: with one packet a round trip all along it would last so
    # many seconds.
    needed = delay_aimd.cycle(1.0, TAU2, T2, C2 / PACKET, beta).period
    closed = [delay_aimd.epoch_duration(2 * needed / a, 1.0) for a in (1.0, factor)]
    epochs = [_epoch(a) for a in (1.0, factor)]
    longer = {"longer": epochs[1] / epochs[0], "by (2)": closed[1] / closed[0]}
    return differs_if(
        abs(longer["longer"] - 1) > 0.01,
        f"at the beta of Fig. 2, {beta:.3f}, the factor is {factor:.3f}, and an epoch lasts "
        f"{epochs[1]:.2f} s instead of {epochs[0]:.2f} s, {longer['longer']:.2f} times as long "
        f"({longer['by (2)']:.2f} by (2) with prompt feedback)",
        "(1), (2) and (6) have no such factor, and the library has none. It is 1 only for beta = "
        f"1/2. With a constant increase an epoch would be {1 / factor:.2f} times as long; that of "
        "(2) makes up for most of it. H-TCP has the factor to keep the mean rate of a flow free of "
        "beta.",
        {"factor": factor, **longer},
    )


@cache
def _epoch(factor: float) -> float:
    """An epoch of Fig. 2 with that factor in the increase [s]."""
    return last_cycle(of_fig2(PlainDelayAIMD(alpha=factor), 40.0))[0]


@claim("Algorithm 1, line 22", "tau0_bar", erratum=True)
def algorithm_threshold() -> Outcome:
    """A flow backs off when tau is above tau0_bar."""
    form = delay_aimd.threshold
    base, gamma, high, low = form.arguments
    part, more = symbols("p d", positive=True)
    gap = proof(Eq(form.form.subs({high: low + base + more, gamma: part}) - base, part * more))
    example = delay_aimd.threshold(0.02, 0.5, 0.18, 0.1)
    return differs_if(
        gap,
        f"(5) is above tau0_bar by gamma (RTT_max - RTT_min - tau0_bar), proved: {ms(example)} "
        "against 20 ms when the queue has been 80 ms and gamma = 1/2",
        "(6) compares with tau0. By line 22 a flow among loss-based ones would back off at "
        "tau0_bar and grow up to tau0 at the same time, and gamma would not protect it.",
        {"tau0": example},
    )


@claim("Algorithm 1, line 5", "0.9", erratum=True)
def algorithm_cap() -> Outcome:
    """beta is at most 0.9."""
    cap = PlainDelayAIMD.parameter("cap")
    bound = cap / (1 - cap)  # T/tau0 at which (3) is cap
    free = delay_aimd.backoff_factor(0.25, 0.25 + TAU2)
    used = delay_aimd.cycle(1, TAU2, 0.25, C2 / PACKET, min(free, cap)).utilisation
    return differs_if(
        used < 1 - 1e-12,
        f"the cap cuts deeper than (3) where the propagation delay is above {bound:g} tau0: "
        f"{percent(used, 4)} utilisation at 250 ms and 20 ms, where (3) is {free:.3f}",
        "The text has no cap, and with it the link idles a little. The paper's experiments stay "
        "below it.",
        {"bound": bound, "utilisation": used},
    )


@claim("Algorithm 1", "lines 1 to 26", erratum=True)
def algorithm_loss_branch() -> Outcome:
    """The pseudo-code is the complete algorithm."""
    run = of_fig2(PlainDelayAIMD, 20.0, packets=100)
    lost, top = float(run.lost.max()) / PACKET, float(run.queueing_delay.max())
    return Outcome(
        NOT_GIVEN,
        f"with 100 packets of buffer the delay stays at {ms(top)} < tau0: {len(backoffs(run))} "
        f"backoffs by losses, {lost:.0f} packets lost in 20 s",
        "Algorithm 1 has no branch for a loss, which (1) and (6) have, and without one it would "
        "never back off here. Line 7 repeats line 6, line 8 compares with a T_max that is never "
        "set, and line 12 adds a segment in bytes to a window in packets. (6) was taken.",
        {"lost": lost, "top": top},
    )


# --- Table I --------------------------------------------------------------------------------------

# Table I: windows [packet] and epochs [s]
TABLE = ((100, 1000, 2000, 5000, 10000, 20000, 50000), (1.1, 3.1, 4.3, 6.6, 9.2, 12.8, 19.4))


class Convention(NamedTuple):
    """One reading of Table I: of what its windows and times are."""

    coefficient: float
    offset: float  # [s]
    rounds: bool  # whether whole round trips are counted
    rtt: float  # [s]
    beta: float
    queue: float  # beyond the window of the table, at the backoff [packet]

    def __str__(self) -> str:
        count = "whole rounds" if self.rounds else "a fluid"
        above = f", {self.queue:g} packets of queue" if self.queue else ""
        return (
            f"coefficient {self.coefficient:g}, offset {self.offset:g} s, {count}, RTT "
            f"{ms(self.rtt)}, beta {self.beta:g}{above}"
        )


QUEUE = 40.0  # Packets beyond the bandwidth-delay product with which Table I can be had


@cache
def conventions() -> dict[Convention, NDArray[np.float64]]:
    """Epochs [s] of Table I by every convention that was tried."""
    trips = (0.05, 0.1, 0.12, 0.15, 0.2, 0.25)
    tried = (
        Convention(*v)
        for v in product((0.5, 0.25), (0.0, 1.0), (False, True), trips, (0.5, 0.8), (0.0, QUEUE))
    )
    return {
        c: delay_aimd.epoch_duration(np.array(TABLE[0], dtype=float), **c._asdict()) for c in tried
    }


def equal(found: NDArray[np.float64]) -> int:
    """How many entries of Table I are the printed ones."""
    return int(np.sum(np.round(found, 1) == np.array(TABLE[1])))


@claim("Table I", "1.1, 3.1, 4.3, 6.6, 9.2, 12.8, 19.4 s", erratum=True)
def table_one() -> Outcome:
    """An epoch lasts 1.1 s for a window of 100 packets, ..., 19.4 s for 50000."""
    printed, tried = np.array(TABLE[1]), conventions()
    without = {c: v for c, v in tried.items() if not c.queue}
    most, plain = (
        max(some.items(), key=lambda one: (equal(one[1]), -np.abs(one[1] - printed).max()))[0]
        for some in (tried, without)
    )
    whole = [c for c, v in tried.items() if equal(v) == len(printed)]
    as_printed = tried[Convention(0.5, 1.0, False, 0.1, 0.5, 0.0)]
    values = named("W = {}", TABLE[0], tried[plain])
    values |= {
        "equal": equal(tried[plain]),
        "with a queue": equal(tried[most]),
        "as printed": equal(as_printed),
    }
    return differs_if(
        equal(as_printed) != len(printed),
        f"all {equal(tried[most])} entries with {most}; {equal(tried[plain])} with {plain}: "
        f"{numbers(tried[plain], '.1f')} s, the others off by at most "
        f"{np.abs(tried[plain] - printed).max():.1f} s",
        f"(2) as printed, a fluid with 1 s at 100 ms, gives {numbers(as_printed, '.1f')} s. Of "
        f"{len(tried)} conventions {len(whole)} give all: all with coefficient 0.25, no offset, (1 "
        f"- beta) RTT = 50 ms and, where beta is 1/2, windows that grow {QUEUE / 2:g} packets more "
        f"than half of the table's, as with {QUEUE:g} packets in the queue at the backoff, for "
        "Table I is of bandwidth-delay products. The paper prints neither such a queue nor the "
        "round trip nor beta.",
        values,
    )


@claim("(2)", "0.5", erratum=True)
def coefficient() -> Outcome:
    """The coefficient of (Delta - 1)^2 is 0.5."""
    fluid = {a: max(most_entries(a, offset) for offset in (0.0, 1.0)) for a in (0.5, 0.25)}
    rounds = {a: _by_rounds(a) for a in fluid}
    values = {f"with {a:g}": v for a, v in fluid.items()} | {
        f"with {a:g}, rounds": v for a, v in rounds.items()
    }
    text = (
        f"of Table I at most {fluid[0.5]} entries can be had with 0.5 and {fluid[0.25]} with 0.25, "
        "whatever the round trip, beta and the queue at the backoff; in whole round trips of 10 to "
        f"300 ms, with 0 or {QUEUE:g} packets of queue, {rounds[0.5]} and {rounds[0.25]}"
    )
    return differs_if(
        fluid[0.5] < fluid[0.25] and rounds[0.5] < rounds[0.25],
        text,
        "The H-TCP draft, from which Table I is taken, has (Delta - 1)^2/4. 0.5 is kept as the "
        "default because it is printed.",
        values,
    )


def most_entries(coefficient: float, offset: float) -> int:
    """How many entries of Table I a fluid can have, whatever the round trip, beta and queue.

    An epoch lasts t if s (W + q) is `epoch_growth` of t over one second, with s = (1 - beta) RTT.
    So each entry allows a strip in the plane of s and s q >= 0, and where most strips meet they
    meet in a corner.
    """
    windows, printed = np.array(TABLE, dtype=float)
    low, high = (
        delay_aimd.epoch_growth(printed + d, 1.0, coefficient, offset) for d in (-0.05, 0.05)
    )
    # The edges s W + s q = v, and s q = 0.
    edges = [(w, 1.0, v) for some in (low, high) for w, v in zip(windows, some, strict=True)] + [
        (0.0, 1.0, 0.0)
    ]
    most = 0
    for (a, b, u), (c, d, v) in combinations(edges, 2):
        if (det := a * d - b * c) == 0:
            continue
        s, sq = (u * d - b * v) / det, (a * v - u * c) / det
        at, slack = s * windows + sq, 1e-9 * high
        if s > 0 and sq >= -1e-9:
            most = max(most, int(np.sum((low - slack <= at) & (at <= high + slack))))
    return most


def _by_rounds(coefficient: float) -> int:
    """The same in whole round trips of 10 to 300 ms, beta = 1/2, without or with `QUEUE`."""
    windows = np.array(TABLE[0], dtype=float)
    return max(
        equal(
            delay_aimd.epoch_duration(
                windows, rtt, coefficient=coefficient, offset=offset, rounds=True, queue=queue
            )
        )
        for rtt, offset, queue in product(np.arange(10, 301) / 1000, (0.0, 1.0), (0.0, QUEUE))
    )
