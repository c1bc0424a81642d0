"""Section V of the LDCC paper: its settings, and Figs. 5, 6, 10 and 11."""

from __future__ import annotations

import numpy as np

from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.metrics import jain, settling_time
from fluidcc.network.scenarios import scenarios
from fluidcc.papers.ldcc.common import at_time, bound, delay_by_19, eta_of, kbit, mbit, ms, near, percent, run
from fluidcc.papers.model import DIFFERS, NOT_GIVEN, OUT_OF_REACH, REPRODUCED, Outcome, claim
from fluidcc.papers.printed import compared
from fluidcc.sources import LDCC


def _verdict(good: bool, why: str) -> tuple[str, str]:
    return (REPRODUCED, "") if good else (DIFFERS, why)


@claim("ldcc", "V-A", "k = 1/(2.5 RTT), beta = 0.1, w = 20 kbit/s.", "eta = 0.4")
def settings() -> Outcome:
    taken = {name: LDCC.parameter(name) for name in ("w", "beta", "T", "eta")}
    same = taken == {"w": 20e3, "beta": 0.1, "T": 0.1, "eta": 1 / 2.5} and np.all(eta_of("ldcc_fig5") == 0.4)
    verdict, reason = _verdict(bool(same), "the library's defaults are others")
    return Outcome(
        verdict, "the library's defaults: w = 20 kbit/s, beta = 0.1, eta = k RTT = 0.4, T = 100 ms", reason, taken
    )


@claim("ldcc", "V-B", "130 packets are a maximum queueing delay of 300 ms at 3.5 Mbit/s.", "300 ms")
def buffer_130() -> Outcome:
    link = scenarios["ldcc_fig5"].net.links["bottleneck"]
    q = link.buffer / link.capacity
    return compared(
        [("300", 1e3 * q)],
        ms(q),
        "With 1000 bytes a packet; 1024 bytes make it 304 ms, see the row on them.",
        {"q_max": q},
    )


@claim("ldcc", "V-B", "25 packets are a maximum one-way delay smaller than 100 ms.", "< 100 ms")
def buffer_25() -> Outcome:
    link = scenarios["ldcc_fig6"].net.links["bottleneck"]
    delay = link.delay + link.buffer / link.capacity
    return compared(
        [("< 100", 1e3 * delay)],
        f"25 ms + {ms(link.buffer / link.capacity)} = {ms(delay)}",
        values={"e_max": delay},
    )


@claim("ldcc", "V", "The curves are of an NS-3 simulation with packets.", "ripple of packets and sampled feedback")
def packets() -> Outcome:
    return Outcome(
        OUT_OF_REACH,
        "smooth curves of the same means",
        "A fluid has no packets: the ripple of interarrival times, of averages over a window and of one update a "
        "round trip is not in it. The equilibria and the slow transients are.",
    )


@claim("ldcc", "Figs. 5, 6, 10, 11", "The initial rates of the flows and the end of the time axis.", "not printed")
def initial_rates() -> Outcome:
    rate = 5 * LDCC.parameter("w")
    return Outcome(
        NOT_GIVEN,
        f"{kbit(rate)} and 350 s",
        "Chosen: 5 w, a rate at which (15) with an empty queue grows by w k a "
        "second whatever it is; the equilibria do not depend on it.",
        {"x0": rate},
    )


# --- Fig. 5 -------------------------------------------------------------------------------------------------------


def _no_loss(name: str) -> Outcome:
    """Nothing is lost, and the longest queue beside the shortest buffer."""
    r, net = run(name), scenarios[name].net
    most, lost = float(r.queueing_delay.max()), float(r.lost.max())
    room = min(link.buffer / link.capacity for link in net.links.values())
    verdict, reason = _verdict(lost == 0, "losses occur")
    return Outcome(
        verdict, f"nothing lost; the longest queue is {ms(most)} of {ms(room, 3)}", reason, {"q": most, "lost": lost}
    )


@claim("ldcc", "Fig. 5", "The flows never fill the buffer and no loss is experienced.", "no loss")
def fig5_no_loss() -> Outcome:
    return _no_loss("ldcc_fig5")


@claim("ldcc", "Fig. 5", "The flows share the link fairly, without penalising early or late starters.", "equal rates")
def fig5_fair() -> Outcome:
    rates = at_time("ldcc_fig5", 259.0).rate.values[:3]
    two = at_time("ldcc_fig5", 99.0).rate.values[:2]
    index = {"three": jain(rates), "two": jain(two)}
    exact = equilibrium(scenarios["ldcc_fig5"].net, at=200.0).rate.values[:3]
    verdict, reason = _verdict(min(index.values()) > 0.999 and near(exact, exact[0], 1e-9), "the rates differ")
    return Outcome(
        verdict,
        f"at 259 s {', '.join(mbit(v) for v in rates)} (Jain's index {index['three']:.6f}); at equilibrium "
        "exactly equal, 1 Mbit/s",
        reason,
        {**index, "rate": float(exact[0])},
    )


@claim("ldcc", "Fig. 5", "Rates and delays that the flows settle at.", "curves; values not printed")
def fig5_values() -> Outcome:
    eq = {n: equilibrium(scenarios["ldcc_fig5"].net, at=t) for n, t in ((2, 50.0), (3, 200.0))}
    late = {2: at_time("ldcc_fig5", 99.0), 3: at_time("ldcc_fig5", 259.0)}
    delay = {n: float(eq[n].one_way_delay.values[0]) for n in eq}
    by_hand = {n: float(delay_by_19(3e6 / n, 0.025)) for n in eq}
    error = max(abs(float(late[n].one_way_delay.values[0]) / by_hand[n] - 1) for n in eq)
    verdict, reason = _verdict(error < 1e-3 and near(list(delay.values()), list(by_hand.values()), 1e-9), "off (19)")
    return Outcome(
        verdict,
        f"two flows 1.5 Mbit/s, {ms(delay[2], 5)}; three 1 Mbit/s, {ms(delay[3], 5)}; the run within {bound(error)}",
        reason or "Compared with (19), as the curves are lost.",
        {"two": delay[2], "three": delay[3], "error": error},
    )


@claim("ldcc", "Fig. 5", "How long the flows take to share the link.", "not printed in the text")
def fig5_settling() -> Outcome:
    r = run("ldcc_fig5").sel(time=slice(0, 259))
    last = settling_time(r.rate.sel(flow="flow3"), 1e6, tolerance=0.05, start=100.0)
    seconds = float(np.asarray(last)) - 100.0 if float(np.asarray(last)) > 100 else float(np.asarray(last))
    slow = 0.4 * 20e3 / 1e6 / (0.13125 + 0.025)
    return Outcome(
        NOT_GIVEN,
        f"flow 3 is within 5 % of its share {seconds:.3g} s after it starts",
        f"The slow mode decays at k w/x = {slow:.3g}/s, at which initial differences between flows fade.",
        {"seconds": seconds, "mode": slow},
    )


# --- Fig. 6 -------------------------------------------------------------------------------------------------------


@claim(
    "ldcc",
    "Fig. 6",
    "With 25 packets of buffer the flows are driven by losses and each gets the same rate.",
    "equal rates, losses",
)
def fig6_fair() -> Outcome:
    late = at_time("ldcc_fig6", 259.0)
    rates, loss, delay = late.rate.values[:3], float(late.loss.values[0]), float(late.one_way_delay.values[0])
    # w/x = pi with three flows: 3 x^2 - (c - u + 3 w) x - w u = 0.
    b = 3.5e6 - 0.5e6 + 3 * 20e3
    exact = (b + (b * b + 12 * 20e3 * 0.5e6) ** 0.5) / 6
    error = float(np.max(np.abs(rates / exact - 1)))
    verdict, reason = _verdict(
        jain(rates) > 0.9999 and error < 5e-3 and loss > 0 and delay < 0.1, "off the equilibrium"
    )
    return Outcome(
        verdict,
        f"at 259 s {', '.join(mbit(v) for v in rates)} ({mbit(exact)} by hand), loss {percent(loss)}, "
        f"delay {ms(delay)}",
        reason,
        {"error": error, "loss": loss, "exact": exact},
    )


# --- Figs. 10 and 11 ----------------------------------------------------------------------------------------------


@claim("ldcc", "Fig. 10", "With buffers of 100 packets no losses are experienced.", "no loss")
def fig10_no_loss() -> Outcome:
    return _no_loss("ldcc_fig10")


@claim("ldcc", "Fig. 10", "Flow 1, whose route is longer, always gets less than the others.", "x1 < x2, x3")
def fig10_long_flow() -> Outcome:
    r = run("ldcc_fig10")
    rate, t = r.rate.values, r.time.values
    late = (t > 5) & (t < 99) | (t > 130) & (t < 259) | (t > 290)
    always = bool(np.all(rate[late, 0] < rate[late, 1])) and bool(
        np.all(rate[(t > 130) & (t < 259), 0] < rate[(t > 130) & (t < 259), 2])
    )
    three, two = (equilibrium(scenarios["ldcc_fig10"].net, at=a).rate.values for a in (200.0, 50.0))
    end = at_time("ldcc_fig10", 259.0).rate.values
    error = float(np.max(np.abs(end[:3] / three[:3] - 1)))
    verdict, reason = _verdict(always and error < 5e-3, "flow 1 is not always the slowest")
    return Outcome(
        verdict,
        f"{', '.join(mbit(v, 3) for v in three[:3])} with three flows, {', '.join(mbit(v, 3) for v in two[:2])} "
        "with two; so in the run once flows have started",
        reason or "Already with two flows, on one bottleneck: the propagation delay of its route is longer.",
        {"x1": three[0], "x2": three[1], "x3": three[2], "two_x1": two[0], "two_x2": two[1], "error": error},
    )


@claim("ldcc", "Fig. 10", "Delays that the flows settle at.", "curves; values not printed")
def fig10_delays() -> Outcome:
    eq = equilibrium(scenarios["ldcc_fig10"].net, at=200.0)
    rate, delay = eq.rate.values[:3], eq.one_way_delay.values[:3]
    by_hand = delay_by_19(rate, np.array([0.05, 0.025, 0.025]))
    error = float(np.max(np.abs(delay / by_hand - 1)))
    verdict, reason = _verdict(error < 1e-9, "off (19)")
    return Outcome(
        verdict,
        f"{', '.join(ms(v) for v in delay)} with three flows, each as (19) says",
        reason or "Compared with (19), as the curves are lost.",
        {f"e{k}": float(v) for k, v in enumerate(delay, 1)},
    )


@claim(
    "ldcc", "Fig. 11", "With 50 ms of buffer flow 1 gets less when it competes against the other two.", "x1 < x2, x3"
)
def fig11_long_flow() -> Outcome:
    net = scenarios["ldcc_fig11"].net
    three, two = (equilibrium(net, at=a).rate.values for a in (200.0, 50.0))
    end = at_time("ldcc_fig11", 259.0).rate.values
    error = float(np.max(np.abs(end[:3] / three[:3] - 1)))
    verdict, reason = _verdict(
        three[0] < min(three[1:3]) and error < 5e-3, "flow 1 is not the slowest, or has not settled"
    )
    return Outcome(
        verdict,
        f"{', '.join(mbit(v, 3) for v in three[:3])} with three flows; {', '.join(mbit(v, 4) for v in two[:2])} "
        "with two",
        reason
        or "With two flows the rates are equal: the longest delay of flow 1 is then 25 + 50 + 25 "
        "ms, exactly T, so that both are driven by the same losses.",
        {"x1": three[0], "x2": three[1], "x3": three[2], "two_x1": two[0], "two_x2": two[1], "error": error},
    )


@claim(
    "ldcc",
    "Fig. 11",
    "Flow 1 works in both loss and delay mode: it loses, and its delay exceeds its threshold.",
    "pi > 0, e > T",
)
def fig11_mixed() -> Outcome:
    eq = equilibrium(scenarios["ldcc_fig11"].net, at=200.0)
    delay, loss, rate = (a.values[:3] for a in (eq.one_way_delay, eq.loss, eq.rate))
    v = 0.1 * np.maximum(delay - 0.1, 0) / eq.rtt.values[:3]
    balance = float(np.max(np.abs(20e3 / rate - v - loss)))
    verdict, reason = _verdict(loss[0] > 0 and delay[0] > 0.1 and delay[1] < 0.1 and balance < 1e-10, "another regime")
    return Outcome(
        verdict,
        f"flow 1: e = {ms(delay[0])} > T, pi = {percent(loss[0])}, v = {v[0]:.4f}; flow 2: e = {ms(delay[1])} "
        "< T, losses alone",
        reason,
        {"e1": delay[0], "loss1": loss[0], "v1": v[0], "balance": balance},
    )
