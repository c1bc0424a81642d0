"""Equilibria: closed forms, hand calculations, and the conditions themselves on random networks."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sympy import symbols

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning
from fluidcc.symbols import c, e, y
from tests.at_rest import BETA, T, W, bottleneck, check, with_flows

# --- delay-driven ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 50])
@pytest.mark.parametrize("capacity", [11e6, 20e6])
def test_identical_flows_follow_18_and_19(n: int, capacity: float) -> None:
    net = with_flows(bottleneck(capacity), n, fc.LDCC)
    eq = fc.equilibrium(net)
    r = W / (BETA * capacity / n)
    np.testing.assert_allclose(eq.rate, capacity / n, rtol=1e-13)
    np.testing.assert_allclose(eq.one_way_delay, (0.025 * r + T) / (1 - r), rtol=1e-12)  # (19)
    by_18 = eq.rtt * W / (BETA * eq.rate) + T
    np.testing.assert_allclose(eq.one_way_delay, by_18, rtol=1e-12)
    assert eq.saturated.all()
    assert not eq.full.any()
    check(net, eq)


def test_equal_links_in_series_queue_at_the_first() -> None:
    net = fc.Network().link("l1", fc.DropTail, capacity=2e6).link("l2", fc.DropTail, capacity=2e6)
    with pytest.warns(FluidccWarning, match="nothing determines l1.q, l2.q"):
        eq = fc.equilibrium(net.flow("a", fc.LDCC, route=["l1", "l2"]))
    np.testing.assert_allclose(eq.queueing_delay, [T / (1 - W / (BETA * 2e6)), 0], atol=1e-12)
    assert eq.saturated.all()


def test_flows_that_only_integrate_rest_where_the_queue_holds_them() -> None:
    """Their own equations alone are singular in a Newton step; with the queue they are not."""
    w, gain, wanted = symbols("w gain wanted", positive=True)
    law = fc.Source(
        "Integrator", {w: gain * (wanted - e)}, {"rate": w}, {gain: 1e4, wanted: 0.3},
        units={w: "bit/s", gain: "bit/s^3", wanted: "s"}, lower={w: 0}, initial={w: 1e5},
    )  # fmt: skip
    net = fc.dumbbell({"a": law, "b": fc.LDCC}, {"capacity": 3e6}, rtt=0.05)
    eq = fc.equilibrium(net)
    np.testing.assert_allclose(eq.one_way_delay, 0.3, rtol=1e-12)
    by_18 = 20e3 * 0.325 / (0.1 * 0.2)
    np.testing.assert_allclose(eq.rate.sel(flow="b"), by_18, rtol=1e-12)
    assert float(eq.rate.sum()) == pytest.approx(3e6, rel=1e-12)


# --- loss-driven and mixed ------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3])
def test_full_buffer_by_hand(n: int) -> None:
    # w/x = v + pi with pi = 1 - c/(n x) gives x = (w + c/n)/(1 + v).
    c, longest = 1e5 * n, 0.5
    net = with_flows(bottleneck(c, buffer=c * longest), n, fc.LDCC)
    eq = fc.equilibrium(net)
    e = 0.025 + longest
    v = BETA * (e - T) / (e + 0.025)
    x = (W + c / n) / (1 + v)
    np.testing.assert_allclose(eq.rate, x, rtol=1e-13)
    np.testing.assert_allclose(eq.loss, 1 - c / (n * x), rtol=1e-12)
    assert eq.full.all()
    check(net, eq)


@pytest.mark.parametrize("n", [1, 5])
def test_reno_follows_the_square_root_law(n: int) -> None:
    # a/RTT = b W x pi/packet and x = packet W/RTT: W = sqrt(a/(b pi)).
    net = with_flows(bottleneck(5e6, buffer="50 packets"), n, fc.StaticReno)
    eq = fc.equilibrium(net)
    window = eq.rate * eq.rtt / 8000
    np.testing.assert_allclose(window**2 * 0.5 * eq.loss, 1, rtol=1e-10)
    np.testing.assert_allclose(eq.loss, 1 - 5e6 / (n * eq.rate), rtol=1e-9)
    np.testing.assert_allclose(eq.rtt, 0.05 + 50 * 8000 / 5e6, rtol=1e-13)
    check(net, eq)


def test_windows_at_their_floor() -> None:
    # W = sqrt(a/(b pi)) would be less than 1: one packet a round trip overloads the link.
    net = with_flows(bottleneck(1e5, buffer="1 packet"), 20, fc.StaticReno(a=0.1))
    eq = fc.equilibrium(net)
    assert all(eq.states[f]["W"] == 1 for f in net.flows)
    np.testing.assert_allclose(eq.rate, 8000 / (0.05 + 0.08), rtol=1e-12)
    check(net, eq)


@pytest.mark.slow
@example(seed=11068)  # a loss of 2e-5 behind a buffer of 3 s
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_networks_meet_every_condition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net, links = fc.Network(), int(rng.integers(1, 5))
    for l in range(links):
        path: Any = {"capacity": 10 ** rng.uniform(5.5, 7), "delay": rng.uniform(0.001, 0.05)}
        net.link(f"l{l}", fc.DropTail, buffer=10 ** rng.uniform(4, 6.5), **path)
    for r in range(int(rng.integers(1, 8))):
        T, w = rng.uniform(0.02, 0.3), 10 ** rng.uniform(3.5, 4.5)
        ldcc = fc.LDCC(T=T, w=w, beta=rng.uniform(0.05, 1))
        law = [ldcc, fc.StaticReno, fc.CBR(rate=10 ** rng.uniform(4, 5.5)), fc.LDCC][
            rng.integers(0, 4)
        ]
        route = [f"l{i}" for i in rng.permutation(links)[: rng.integers(1, links + 1)]]
        net.flow(f"f{r}", law, route=route, access_delay=rng.uniform(0, 0.1))
    check(net, fc.equilibrium(net))


# --- ideal prices ---------------------------------------------------------------------------------


def test_dual_links_settle_at_the_optimum() -> None:
    net = fc.Network().link("l1", fc.DualLink, capacity=2.5e6).link("l2", fc.DualLink, capacity=2e6)
    net.link("idle", fc.DualLink, capacity=1e9)
    net.flow("long", fc.PrimalDual, route=["l1", "l2", "idle"])
    net.flow("s1", fc.PrimalDual(w=5e4), route=["l1"])
    net.flow("s2", fc.AlphaFairPrimalDual, route=["l2"])
    eq, best = fc.equilibrium(net), fc.num.solve(net)
    np.testing.assert_allclose(eq.rate, best.rate, rtol=1e-10)
    np.testing.assert_allclose(eq.price, best.price, rtol=1e-10)
    assert eq.saturated.values.tolist() == [True, True, False]
    assert eq.error < 1e-12  # no queue, and nothing that is doubtful for that
    assert not eq.warnings


def test_penalty_links_balance_marginal_utility() -> None:
    links: list[Any] = [{"law": fc.PenaltyLink, "capacity": 2.5e6}]
    links.append({"law": fc.PenaltyLink(B=3), "capacity": 2e6})
    net = fc.parking_lot([fc.PrimalPenalty], [fc.PrimalPenalty, []], links)
    eq = fc.equilibrium(net)
    x0, x1 = eq.rate.values
    price = ((x0 + x1) / 2.5e6) ** 8, (x0 / 2e6) ** 3
    np.testing.assert_allclose([W / x0, W / x1], [sum(price), price[0]], rtol=1e-12)
    np.testing.assert_allclose(eq.price, price, rtol=1e-12)


def test_a_price_without_an_end_at_a_full_link() -> None:
    """The barrier a y/(c - y) of interior-point methods: a y^2 = w (c - y), and x = w/price."""
    a = symbols("a", positive=True)
    barrier = fc.Link("Barrier", out={"price": a * y / (c - y)}, params={a: 0.1}, units={a: "1"})
    flows = {"one": fc.PrimalPenalty(w=1e6), "three": fc.PrimalPenalty(w=3e6)}
    rate = fc.equilibrium(fc.dumbbell(flows, {"law": barrier, "capacity": 1e7}, rtt=0.04)).rate
    total = (-4e6 + np.sqrt(4e6**2 + 4 * 0.1 * 4e6 * 1e7)) / 0.2
    np.testing.assert_allclose(rate, [total / 4, 3 * total / 4], rtol=1e-12)


@pytest.mark.parametrize("law", [fc.RED, fc.PI, fc.REDDrop, fc.DropTail])
def test_a_mean_over_losses_is_doubted_at_a_full_buffer(law: fc.Link) -> None:
    """A buffer of 40 ms ends where RED begins to mark, and below the set point of PI."""
    only = law is fc.DropTail
    link = {"law": law, "capacity": "20 Mbit/s", "buffer": "100 packets"}
    net = fc.dumbbell([fc.Reno] * 10, link, rtt="60 ms")
    (said,) = fc.equilibrium(net).warnings
    assert ("take fluidcc.AIMD" if only else "rests on its full buffer, 40 ms") in said
    assert bool(fc.equilibrium(net.with_link("bottleneck", buffer="1 s")).warnings) == only
    assert not fc.equilibrium(fc.dumbbell([fc.LDCC] * 10, link, rtt="60 ms")).warnings or not only
