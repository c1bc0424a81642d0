"""Networks for the theorem tests, and their answer to a small push from the equilibrium."""

from collections.abc import Callable
from typing import Any

import numpy as np

import fluidcc as fc

STEP = 1e3  # [bit/s] of some 1e6, so that cubic terms are 1e-6


def one_link() -> fc.Network:
    return fc.dumbbell(
        {
            "a": fc.LDCC(eta=1.0),
            "b": {"law": fc.LDCC, "access_delay": 0.01},
            "push": {"law": fc.CBR(rate=0.2e6), "access_delay": 0.01},
        },
        {"name": "l", "capacity": 3e6, "delay": 0.025},
    )


def parking_lot() -> fc.Network:
    long = {"push": fc.CBR(rate=0.4e6), "a": fc.LDCC}
    cross = [{"b": {"law": fc.LDCC(beta=0.12), "access_delay": 0.003}}, {"c": fc.LDCC(eta=0.5)}]
    links = [("l1", 2.5e6, 0.025), ("l2", 2.4e6, 0.015)]
    return fc.parking_lot(long, cross, [in_row(*link) for link in links])


def in_row(name: str, capacity: float, delay: float, **more: Any) -> dict[str, Any]:
    return {"name": name, "capacity": capacity, "delay": delay, **more}


def full_buffers() -> fc.Network:
    fast = fc.LDCC(w=80e3, beta=0.2)
    long = {
        "a": {"law": fc.StaticReno, "access_delay": 0.01},
        "c": fast,
        "push": fc.CBR(rate=0.4e6),
    }
    cross = [{"b": {"law": fast, "access_delay": 0.003}}, {"d": fast(eta=0.2)}]
    first = in_row("l1", 2.5e6, 0.025, buffer="12 packets")
    return fc.parking_lot(long, cross, [first, in_row("l2", 2.4e6, 0.015, buffer="20 packets")])


def trunk() -> fc.Network:
    """All of the first link goes on to the second, which others cross too."""
    long = {
        "a": fc.LDCC,
        "b": {"law": fc.LDCC(beta=0.12), "access_delay": 0.02},
        "push": fc.CBR(rate=0.1e6),
    }
    links = [in_row("l1", 2e6, 0.01), in_row("l2", 3e6, 0.02)]
    return fc.parking_lot(long, [[], {"c": fc.LDCC(eta=0.3)}], links)


def penalty_prices() -> fc.Network:
    net = fc.Network().link("l1", fc.PenaltyLink, capacity=3e6, delay=0.025)
    net.link("l2", fc.PenaltyLink(B=4), capacity=2e6, delay=0.02)
    net.flow("a", fc.PrimalPenalty(alpha=4e6), route=["l1"])
    net.flow("b", fc.PrimalPenalty(alpha=2e6), route=["l1", "l2"], access_delay=0.01)
    return net.flow("push", fc.CBR(rate=0.2e6), route=["l1"])


def dual_prices() -> fc.Network:
    net = fc.Network().link("l", fc.DualLink(nu=1e-9), capacity=3e6, delay=0.025)
    net.flow("a", fc.PrimalDual(alpha=3e7), route=["l"])
    net.flow("b", fc.PrimalDual(alpha=2e7), route=["l"], access_delay=0.01)
    return net.flow("push", fc.CBR(rate=0.2e6), route=["l"])


def at_random(seed: int, buffers: str = "") -> fc.Network:
    """Up to three links in a row and three flows; `buffers` "all" full, "some", or RED's marks."""
    rng = np.random.default_rng(seed)
    net, laws = fc.Network(), [fc.StaticReno] if buffers == "red" else []
    for l in range(int(rng.integers(1, 4))):
        short = buffers == "all" or (buffers == "some" and l % 2 == 0)
        law = fc.RED(T=0.3, min_th=0.01, max_th=0.1) if buffers == "red" else fc.DropTail
        path: Any = {"capacity": rng.uniform(1.5e6, 4e6), "delay": rng.uniform(0.005, 0.04)}
        room = f"{rng.integers(5, 30)} packets" if short else None
        net.link(f"l{l}", law, buffer=room, **path)
    for i in range(int(rng.integers(1, 4))):
        first = int(rng.integers(len(net.links)))
        end = int(rng.integers(first, len(net.links))) + 1
        own = fc.LDCC(
            eta=rng.uniform(0.3, 1.2), beta=rng.uniform(0.1, 0.2), w=rng.uniform(2e4, 8e4)
        )
        route = list(net.link_names)[first:end]
        net.flow(f"f{i}", (laws or [own])[0], route=route, access_delay=rng.uniform(0, 0.03))
    return net


QUEUES = [one_link, parking_lot, full_buffers, trunk]
ALL: list[Callable[[], fc.Network]] = [*QUEUES, penalty_prices, dual_prices]


def started(net: fc.Network, rest: Any, push: float, at: float) -> fc.Network:
    """The network at its equilibrium, and from some time on a small flow beside the flow "push"."""
    for name, flow in net.flows.items():
        if flow.law.states:
            net = net.with_flow(name, initial=rest.states[name])
    for name in net.links:
        if rest.states[name]:
            net = net.with_link(name, initial=rest.states[name])
    beside = net.flows["push"]
    net = net.copy()
    return net.flow(
        "more", fc.CBR(rate=push), route=beside.route, access_delay=beside.access_delay, start=at
    )


def push_response(
    net: fc.Network, times: Any, delays: str = "fifo", begin: float = 1.0
) -> dict[str, Any]:
    """Rates by flow at `times` after a unit step beside "push", without their quadratic part.

    A simulation's past knows no losses: networks with several full buffers settle until `begin`.
    """
    rest = fc.equilibrium(net)
    how: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13, "engine": "array", "delays": delays}
    if delays == "frozen":
        how["frozen_at"] = dict(zip(net.link_names, rest.queueing_delay.values, strict=True))
    none, one, two = (
        fc.simulate(
            started(net, rest, n * STEP, begin), begin + times[-1], t_eval=begin + times, **how
        ).rate
        for n in (0, 1, 2)
    )
    slope = (4 * one - two - 3 * none) / (2 * STEP)
    return {name: slope.sel(flow=name).values for name in net.flows}


def tcp_plant(s: Any, R: float, lag: float, N: float, C: float) -> Any:
    """From the mark to minus the queue [packet]: Misra's equations, the queue known `lag` late.

    W' = 1/R - W x(t - R) p/2, q' = N x(t - R + lag) - C with x = W/R, R = q(t - lag)/C + T_p.
    """
    trip, back, ahead = np.exp(-s * R), np.exp(-s * lag), np.exp(-s * (R - lag))
    own = s + N / (R**2 * C) * (1 + trip)
    queue = back * (1 - trip) / (R**2 * C)
    drive = R * C**2 / (2 * N**2) * back
    # own dW + queue dq = -drive dp;  (s + ahead back/R) dq = ahead (N/R) dW.
    integral = s + ahead * back / R
    return drive * ahead * (N / R) / (own * integral + queue * ahead * (N / R))


def inverse_laplace(F: Callable[[Any], Any], times: Any, nodes: int = 32) -> Any:
    """Fixed Talbot contour (Abate and Valko): shares nothing with the library."""
    theta = np.arange(1, nodes) * np.pi / nodes
    r = 2 * nodes / 5
    at = r * theta * (1 / np.tan(theta) + 1j)
    weight = 1 + 1j * theta * (1 + 1 / np.tan(theta) ** 2) - 1j / np.tan(theta)
    out = []
    for t in times:
        first = 0.5 * np.exp(r) * F(np.array([r / t + 0j]))[..., 0]
        out.append(
            r / (nodes * t) * np.real(first + np.sum(np.exp(at) * F(at / t) * weight, axis=-1))
        )
    return np.array(out)
