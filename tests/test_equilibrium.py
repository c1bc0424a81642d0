"""Equilibria: closed forms, hand calculations, the conditions themselves on random networks, and refusals."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sympy import lambdify

import fluidcc as fc
from fluidcc import symbols as sy
from fluidcc.errors import FluidccWarning, InvalidInput, NoEquilibrium, UnknownName, Unsupported

W, BETA, T = 20e3, 0.1, 0.1  # LDCC's defaults, of Section V


def bottleneck(capacity: float = 2e6, **link: Any) -> fc.Network:
    return fc.Network().link("l", fc.DropTail, capacity=capacity, delay=0.025, **link)


def with_flows(net: fc.Network, n: int, law: Any, route: tuple[str, ...] = ("l",), **place: Any) -> fc.Network:
    for k in range(n):
        net.flow(f"{law.name}{k}", law, route=list(route), **place)
    return net


@lru_cache
def drift_functions(law: Any, symbols: Any) -> Any:
    """A law's flows, and the terms s df/ds that they balance, by symbol."""
    flows = list(law.system[0])
    return lambdify(symbols, flows), lambdify(symbols, [[f.diff(s) * s for s in symbols] for f in flows])


def relative_drift(net: fc.Network, eq: Any, name: str) -> np.ndarray:
    """The law's flows at the result, over the sum of the sizes of what they balance."""
    spec = net.flows[name]
    law = spec.law
    values = {
        sy.e: eq.one_way_delay.sel(flow=name),
        sy.edot: 0.0,
        sy.pi: eq.loss.sel(flow=name),
        sy.price: sum(float(eq.price.sel(link=l)) for l in spec.route),
        sy.x_tau: eq.rate.sel(flow=name),
        sy.e_b: net.return_delay(name),
        sy.packet: spec.packet,
        sy.t: 0.0,
        **law.params,
    }
    values |= {z: eq.states[name][sy.plain(z)] for z in law.states}
    flows, terms = drift_functions(law, tuple(values))
    point = [float(v) for v in values.values()]
    sizes = [sum(map(abs, row)) for row in terms(*point)]
    return np.array(flows(*point)) / sizes


def check(net: fc.Network, eq: Any, tolerance: float = 1e-9) -> None:
    """Every condition of an equilibrium, evaluated link by link and flow by flow."""
    passed = {f: float(eq.rate.sel(flow=f)) for f in net.flows}
    arrivals = dict.fromkeys(net.links, 0.0)
    kept = dict.fromkeys(net.flows, 1.0)
    loss = {}
    for name, link in net.links.items():
        q, y, c = float(eq.queueing_delay.sel(link=name)), float(eq.arrival_rate.sel(link=name)), link.capacity
        longest = link.buffer / c
        loss[name] = 1 - c / y if bool(eq.full.sel(link=name)) else 0.0
        assert 0 <= q <= longest
        assert loss[name] >= -tolerance
        assert (q == longest) == bool(eq.full.sel(link=name))
        assert y * (1 - loss[name]) <= c * (1 + tolerance)
        if q > 0:
            assert y * (1 - loss[name]) == pytest.approx(c, rel=tolerance)
            assert bool(eq.saturated.sel(link=name))
    for f, flow in net.flows.items():
        for name in flow.route:
            arrivals[name] += passed[f]
            passed[f] *= 1 - loss[name]
            kept[f] *= 1 - loss[name]
        delay = flow.access_delay + sum(net.links[l].delay + float(eq.queueing_delay.sel(link=l)) for l in flow.route)
        assert float(eq.one_way_delay.sel(flow=f)) == pytest.approx(delay, rel=1e-12)
        assert float(eq.rtt.sel(flow=f)) == pytest.approx(delay + net.return_delay(f), rel=1e-12)
        assert float(eq.loss.sel(flow=f)) == pytest.approx(1 - kept[f], rel=1e-6, abs=tolerance)
        for z, drift in zip(flow.law.states, relative_drift(net, eq, f), strict=True):
            at_bound = z in flow.law.lower and eq.states[f][sy.plain(z)] == float(flow.law.lower[z])
            assert drift <= 1e-12 if at_bound else abs(drift) <= 1e-12
    for name, y in arrivals.items():
        assert float(eq.arrival_rate.sel(link=name)) == pytest.approx(y, rel=tolerance, abs=tolerance)


# --- delay-driven -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 4, 50])
@pytest.mark.parametrize("capacity", [11e6, 20e6])
def test_identical_flows_follow_18_and_19(n: int, capacity: float) -> None:
    net = with_flows(bottleneck(capacity), n, fc.LDCC)
    eq = fc.equilibrium(net)
    r = W / (BETA * capacity / n)
    np.testing.assert_allclose(eq.rate, capacity / n, rtol=1e-13)
    np.testing.assert_allclose(eq.one_way_delay, (0.025 * r + T) / (1 - r), rtol=1e-12)  # (19)
    np.testing.assert_allclose(eq.one_way_delay, eq.rtt * W / (BETA * eq.rate) + T, rtol=1e-12)  # (18)
    assert eq.saturated.all()
    assert not eq.full.any()
    check(net, eq)


def test_heterogeneous_flows_satisfy_18() -> None:
    net = bottleneck(3e6).flow("a", fc.LDCC, route=["l"]).flow("b", fc.LDCC, route=["l"], access_delay=0.05)
    net.flow("c", fc.LDCC(T=0.15, beta=0.2), route=["l"], return_delay=0.2).flow("udp", fc.CBR(rate=5e5), route=["l"])
    eq = fc.equilibrium(net)
    adaptive = eq.rate.sel(flow=["a", "b", "c"])
    w_over = np.array([W / 0.1, W / 0.1, W / 0.2]) / adaptive
    expected = eq.rtt.sel(flow=["a", "b", "c"]) * w_over + np.array([0.1, 0.1, 0.15])
    np.testing.assert_allclose(eq.one_way_delay.sel(flow=["a", "b", "c"]), expected, rtol=1e-12)
    assert float(eq.rate.sum()) == pytest.approx(3e6, rel=1e-13)
    check(net, eq)


def lot(**second: Any) -> fc.Network:
    net = fc.Network().link("l1", fc.DropTail, capacity=2.5e6, delay=0.02, buffer=second.pop("first_buffer", None))
    net.link("l2", fc.DropTail, capacity=2.5e6, delay=0.02, **second)
    net.flow("long", fc.LDCC, route=["l1", "l2"])
    return net.flow("s1", fc.LDCC, route=["l1"]).flow("s2", fc.LDCC, route=["l2"])


def test_parking_lot() -> None:
    eq = fc.equilibrium(lot())
    check(lot(), eq)
    assert eq.saturated.all()
    # By symmetry one equation remains, q(x) of the short flows from (18), into (18) of the long one.
    x = float(eq.rate.sel(flow="long"))
    r = W / (BETA * (2.5e6 - x))
    q = (0.02 * r + T - 0.02 + 0.02 * r) / (1 - r)
    e = 0.04 + 2 * q
    assert (e + 0.04) * W / (BETA * x) + T == pytest.approx(e, rel=1e-12)


def test_unsaturated_link_has_no_queue() -> None:
    net = lot().with_link("l2", capacity=1e9).with_flow("s2", law=fc.CBR(rate=1e6))
    eq = fc.equilibrium(net)
    assert eq.queueing_delay.sel(link="l2") == 0
    assert eq.saturated.values.tolist() == [True, False]
    check(net, eq)


def test_equal_links_in_series_queue_at_the_first() -> None:
    net = fc.Network().link("l1", fc.DropTail, capacity=2e6).link("l2", fc.DropTail, capacity=2e6)
    with pytest.warns(FluidccWarning, match="nothing determines l1.q, l2.q"):
        eq = fc.equilibrium(net.flow("a", fc.LDCC, route=["l1", "l2"]))
    np.testing.assert_allclose(eq.queueing_delay, [T / (1 - W / (BETA * 2e6)), 0], atol=1e-12)
    assert eq.saturated.all()


# --- loss-driven and mixed ----------------------------------------------------------------------------------------


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


def test_short_buffer_makes_ldcc_loss_driven() -> None:
    # e_max < T: the delay penalty is zero, and w/x = 1 - c/x gives x = w + c (Section III-A).
    net = with_flows(bottleneck(1e6, buffer=1e6 * 0.05), 1, fc.LDCC)
    eq = fc.equilibrium(net)
    assert eq.rate.item() == pytest.approx(1e6 + W, rel=1e-13)
    check(net, eq)


@pytest.mark.parametrize("n", [1, 5])
def test_reno_follows_the_square_root_law(n: int) -> None:
    # a/RTT = b W x pi/packet and x = packet W/RTT: W = sqrt(a/(b pi)).
    net = with_flows(bottleneck(5e6, buffer="50 packets"), n, fc.Reno)
    eq = fc.equilibrium(net)
    window = eq.rate * eq.rtt / 8000
    np.testing.assert_allclose(window**2 * 0.5 * eq.loss, 1, rtol=1e-10)
    np.testing.assert_allclose(eq.loss, 1 - 5e6 / (n * eq.rate), rtol=1e-9)
    np.testing.assert_allclose(eq.rtt, 0.05 + 50 * 8000 / 5e6, rtol=1e-13)
    check(net, eq)


def test_reno_and_ldcc_share_a_full_buffer() -> None:
    net = with_flows(with_flows(bottleneck(2.5e6, buffer="60 packets"), 2, fc.LDCC), 1, fc.Reno)
    eq = fc.equilibrium(net)
    assert eq.full.all()
    check(net, eq)


def test_one_link_full_and_the_other_queueing() -> None:
    net = lot(first_buffer=8000).with_link("l2", capacity=2e6)
    eq = fc.equilibrium(net)
    assert eq.full.values.tolist() == [True, False]
    assert eq.saturated.all()
    survives = 1 - float(eq.loss.sel(flow="s1"))
    thinned = float(eq.rate.sel(flow="long")) * survives + float(eq.rate.sel(flow="s2"))
    assert thinned == pytest.approx(2e6, rel=1e-12)
    check(net, eq)


def test_windows_at_their_floor() -> None:
    # W = sqrt(a/(b pi)) would be less than 1: 20 flows at one packet a round trip overload the link.
    net = with_flows(bottleneck(1e5, buffer="1 packet"), 20, fc.Reno(a=0.1))
    eq = fc.equilibrium(net)
    assert all(eq.states[f]["W"] == 1 for f in net.flows)
    np.testing.assert_allclose(eq.rate, 8000 / (0.05 + 0.08), rtol=1e-12)
    check(net, eq)


def test_constant_rate_overloads_a_finite_buffer() -> None:
    eq = fc.equilibrium(bottleneck(3e5, buffer=6e5).flow("udp", fc.CBR(rate=5e5), route=["l"]))
    assert eq.loss.item() == pytest.approx(0.4, rel=1e-14)
    assert eq.queueing_delay.item() == 2.0
    assert eq.full.item()


@example(seed=11068)  # a loss of 2e-5 behind a buffer of 3 s
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_networks_meet_every_condition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net, links = fc.Network(), int(rng.integers(1, 5))
    for l in range(links):
        net.link(
            f"l{l}",
            fc.DropTail,
            capacity=10 ** rng.uniform(5.5, 7),
            delay=rng.uniform(0.001, 0.05),
            buffer=10 ** rng.uniform(4, 6.5),
        )
    for r in range(int(rng.integers(1, 8))):
        ldcc = fc.LDCC(T=rng.uniform(0.02, 0.3), w=10 ** rng.uniform(3.5, 4.5), beta=rng.uniform(0.05, 1))
        law = [ldcc, fc.Reno, fc.CBR(rate=10 ** rng.uniform(4, 5.5)), fc.LDCC][rng.integers(0, 4)]
        route = [f"l{i}" for i in rng.permutation(links)[: rng.integers(1, links + 1)]]
        net.flow(f"f{r}", law, route=route, access_delay=rng.uniform(0, 0.1))
    check(net, fc.equilibrium(net))


# --- ideal prices -------------------------------------------------------------------------------------------------


def test_dual_links_settle_at_the_optimum() -> None:
    net = fc.Network().link("l1", fc.DualLink, capacity=2.5e6).link("l2", fc.DualLink, capacity=2e6)
    net.link("idle", fc.DualLink, capacity=1e9)
    net.flow("long", fc.PrimalDual, route=["l1", "l2", "idle"]).flow("s1", fc.PrimalDual(w=5e4), route=["l1"])
    net.flow("s2", fc.AlphaFairPrimalDual, route=["l2"])
    eq, best = fc.equilibrium(net), fc.num.solve(net)
    np.testing.assert_allclose(eq.rate, best.rate, rtol=1e-10)
    np.testing.assert_allclose(eq.price, best.price, rtol=1e-10)
    assert eq.saturated.values.tolist() == [True, True, False]


def test_penalty_links_balance_marginal_utility() -> None:
    net = fc.Network().link("l1", fc.PenaltyLink, capacity=2.5e6).link("l2", fc.PenaltyLink(B=3), capacity=2e6)
    net.flow("long", fc.PrimalPenalty, route=["l1", "l2"]).flow("s1", fc.PrimalPenalty, route=["l1"])
    eq = fc.equilibrium(net)
    x0, x1 = eq.rate.values
    price = ((x0 + x1) / 2.5e6) ** 8, (x0 / 2e6) ** 3
    np.testing.assert_allclose([W / x0, W / x1], [sum(price), price[0]], rtol=1e-12)
    np.testing.assert_allclose(eq.price, price, rtol=1e-12)


# --- time, and what is off ----------------------------------------------------------------------------------------


def test_time_chooses_flows_and_capacities() -> None:
    net = fc.Network().link("l", fc.DropTail, capacity=[(0, 2e6), (10, 4e6)], delay=0.025)
    net.flow("a", fc.LDCC, route=["l"]).flow("b", fc.LDCC, route=["l"], start=5, stop=20)
    np.testing.assert_allclose(fc.equilibrium(net, at=0).rate, [2e6, 0], rtol=1e-12)
    np.testing.assert_allclose(fc.equilibrium(net, at=5).rate, [1e6, 1e6], rtol=1e-12)
    np.testing.assert_allclose(fc.equilibrium(net, at=10).rate, [2e6, 2e6], rtol=1e-12)
    last = fc.equilibrium(net)
    np.testing.assert_allclose(last.rate, [4e6, 0], rtol=1e-12)
    assert last.one_way_delay.sel(flow="a") == last.one_way_delay.sel(flow="b")


def test_result_is_labelled_and_shown() -> None:
    eq = fc.equilibrium(with_flows(bottleneck(buffer=1e5), 2, fc.LDCC))
    for name, units in {"rate": "bit/s", "one_way_delay": "s", "rtt": "s", "loss": "1", "queueing_delay": "s"}.items():
        assert getattr(eq, name).attrs["units"] == units
        assert getattr(eq, name).name == name
    assert eq.full.dtype == bool
    html = eq._repr_html_()
    assert "LDCC0" in html
    assert "queueing_delay [s]" in html
    assert set(eq.states["l"]) == {"q"}


# --- there is none ------------------------------------------------------------------------------------------------


def test_20_is_given_as_the_reason() -> None:
    net = with_flows(bottleneck(3e5), 2, fc.LDCC)
    with pytest.raises(NoEquilibrium) as caught:
        fc.equilibrium(net)
    for text in ("link 'l' has 300000 bit/s", "400000 bit/s", "'LDCC0' 200000", "w/beta = 200000 bit/s, (20)"):
        assert text in str(caught.value)


def test_constant_rate_overloads_an_infinite_buffer() -> None:
    with pytest.raises(NoEquilibrium, match=r"link 'l' has 300000 bit/s .* send 500000 bit/s \('udp' 500000\); give"):
        fc.equilibrium(bottleneck(3e5).flow("udp", fc.CBR(rate=5e5), route=["l"]))


def test_reno_needs_a_finite_buffer() -> None:
    with pytest.raises(NoEquilibrium, match=r"flow 'Reno0' .* hears losses, but no buffer on l is finite"):
        fc.equilibrium(with_flows(bottleneck(), 1, fc.Reno))


@pytest.mark.parametrize("buffer", [None, 1e5])
def test_deaf_flows_grow_without_limit(buffer: float | None) -> None:
    with pytest.raises(NoEquilibrium, match=r"flow 'PrimalDual0' .* without limit.*give l a law whose signal"):
        fc.equilibrium(with_flows(bottleneck(buffer=buffer), 1, fc.PrimalDual))


def test_round_trips_without_delay() -> None:
    net = fc.Network().link("l", fc.DualLink, capacity=1e6).flow("a", fc.LDCC, route=["l"])
    with pytest.raises(InvalidInput, match=r"flow 'a' \(LDCC\) has no finite rate of change"):
        fc.equilibrium(net)
    net = fc.Network().link("l", fc.DropTail, capacity=1e6).flow("a", fc.LDCC, route=["l"])
    assert fc.equilibrium(net).queueing_delay.item() == pytest.approx(T / 0.8, rel=1e-12)  # (19) with e_b = 0


def test_laws_without_rest_are_refused() -> None:
    with pytest.raises(Unsupported, match=r"flow 'AIMD0' \(AIMD\) has jumps.*Reno"):
        fc.equilibrium(with_flows(bottleneck(), 1, fc.AIMD))
    with pytest.raises(Unsupported, match="'OnOff0' sends at random"):
        fc.equilibrium(with_flows(bottleneck(), 1, fc.OnOff))


def test_it_prints_as_a_short_table() -> None:
    text = repr(fc.equilibrium(with_flows(bottleneck(4e6), 14, fc.LDCC)))
    lines = text.splitlines()
    assert lines[0].split() == ["flow", "rate", "[bit/s]", "one_way_delay", "[s]", "rtt", "[s]", "loss", "[1]"]
    assert "... and 2 more" in lines
    assert lines[-1].split()[0] == "l"
    assert max(map(len, lines)) < 100


@pytest.mark.parametrize("rtt", [0.002, 0.05, 1.0])
@pytest.mark.parametrize("udp", [0.0, 0.5, 0.8, 0.9])
def test_a_queue_that_outruns_the_gain_on_the_way_still_finds_its_end(udp: float, rtt: float) -> None:
    """(19) with what constant traffic leaves: LDCC's gain falls with the delay, so that a search can lose itself."""
    capacity = 3e6
    flows = {"a": fc.LDCC, "b": fc.LDCC, **({"udp": fc.CBR(rate=udp * capacity)} if udp else {})}
    net = fc.dumbbell(flows, {"capacity": capacity}, rtt=rtt)
    ratio = 20e3 / (0.1 * (1 - udp) * capacity / 2)
    if ratio >= 1:
        with pytest.raises(fc.errors.NoEquilibrium, match="never falls? below"):
            fc.equilibrium(net)
        return
    wanted = max((rtt / 2 * ratio + 0.1) / (1 - ratio), rtt / 2)  # a long path is delay enough
    np.testing.assert_allclose(fc.equilibrium(net).one_way_delay, wanted, rtol=1e-9)


def test_a_copy_with_other_values_keeps_the_rest() -> None:
    eq = fc.equilibrium(fc.dumbbell([fc.LDCC] * 2, {"capacity": "3 Mbit/s"}, rtt="50 ms"))
    new = eq.changed(rate=[1e6, 2e6])
    np.testing.assert_array_equal(new.rate.values, [1e6, 2e6])
    assert new.rtt.identical(eq.rtt)
    assert new.states is eq.states
    with pytest.raises(UnknownName, match="no array 'rates'"):
        eq.changed(rates=1.0)
