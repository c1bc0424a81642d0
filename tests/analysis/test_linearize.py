"""`linearize`: against the nonlinear network, formulas by hand, and what it refuses."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Heaviside, Max, symbols

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, NoEquilibrium, Unsupported
from fluidcc.symbols import RTT, e, edot
from tests.analysis import networks

x, base, count = symbols("x base count", positive=True)

TIMES = np.array([1.0, 2.0, 3.0, 5.0])
PATH = {"capacity": 3e6, "delay": 0.025}
SAMPLED = " is sampled, so it has no Jacobian in continuous time: take fluidcc.sampled_stability"


def _pushed(system: Any, net: fc.Network) -> int:
    push = net.flows["push"]
    places = [(f.spec.route, f.spec.access_delay) for f in system.point.classes]
    return places.index((push.route, push.access_delay))


@pytest.mark.slow
@pytest.mark.parametrize("delays", ["fifo", "frozen"])
@pytest.mark.parametrize("make", networks.ALL, ids=lambda make: make.__name__)
def test_response_is_that_of_the_nonlinear_network(make: Any, delays: str) -> None:
    net = make()
    if make is networks.full_buffers and delays == "frozen":
        with pytest.raises(Unsupported, match="'l1' loses packets before the end of a route"):
            fc.linearize(net, delays=delays)
        return
    system: Any = fc.linearize(net, delays=delays)
    k = _pushed(system, net)
    want = networks.inverse_laplace(lambda s: system(s)[:, k] / s, TIMES)
    got = networks.push_response(net, TIMES, delays, 20.0 if make is networks.full_buffers else 1.0)
    for j, f in enumerate(system.point.classes):
        # The push is not part of the rate of the flow beside it.
        np.testing.assert_allclose(got[f.label], want[:, j] - (j == k), atol=1e-5)
    np.testing.assert_allclose(system.step(TIMES[:2])[:, k].T, want[:2], atol=1e-7)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_identical_flows_factor(count: int) -> None:
    """(s + a)^(N-1) [s^2 + a s + k rho (s + v') e^(-s RTT)], worked out by hand from (15)."""
    w, beta, T, eta, capacity = 20e3, 0.1, 0.1, 0.4, 3e6
    net = fc.dumbbell([fc.LDCC] * count, {"capacity": capacity}, rtt="50 ms")
    system = fc.linearize(net)
    x = capacity / count
    r = w / (beta * x)
    e = (0.025 * r + T) / (1 - r)  # (19)
    k, rho = eta / (e + 0.025), 1.0
    a, slope = k * w / x, beta * (T + 0.025) / (e + 0.025) ** 2
    s = np.array([0.3 + 0.2j, -1 + 3j, 2 - 5j, 12j])
    by_hand = s**2 + a * s + k * rho * (s + slope) * np.exp(-s * (e + 0.025))
    np.testing.assert_allclose(system.characteristic(s), by_hand, rtol=1e-9)
    alone = system.deviations()
    assert list(system.classes.values()) == [tuple(f"flow{i + 1}" for i in range(count))]
    assert len(alone) == (count > 1)
    for one in alone.values():
        np.testing.assert_allclose(one.characteristic(s), s + a, rtol=1e-9)


def _eigenloci(system: Any, s: Any) -> Any:
    found = np.linalg.eigvals(np.moveaxis(system(s), -1, 0))
    return np.sort_complex(np.where(np.abs(found) < 1e-9 * np.abs(found).max(), 0, found))


CASES = [(make, delays) for make in networks.ALL for delays in ("fifo", "frozen")]
CASES.remove((networks.full_buffers, "frozen"))


@pytest.mark.parametrize(("make", "delays"), CASES)
def test_breaking_the_loop_at_links_or_at_flows_is_one(make: Any, delays: str) -> None:
    """K (I - T)^-1 R and (I - T)^-1 R K share their eigenvalues, zeros aside."""
    net = make()
    flows, links, closed = (fc.linearize(net, loop, delays) for loop in ("open", "links", "closed"))
    answer = tuple(n for n in net.link_names if (make, n) != (networks.trunk, "l1"))
    assert links.inputs == links.outputs == answer
    s = np.array([0.3 + 0.2j, 1 + 3j, 2 - 5j, 9j])
    of_flows, of_links = (
        np.linalg.det(np.eye(g.n_inputs) + np.moveaxis(g(s), -1, 0)) for g in (flows, links)
    )
    if make is not networks.full_buffers:  # there one of the laws hears its own past
        np.testing.assert_allclose(of_links, of_flows, rtol=1e-9)
        n = min(flows.n_inputs, links.n_inputs)
        for a, b in zip(_eigenloci(flows, s), _eigenloci(links, s), strict=True):
            most = [v[np.argsort(-np.abs(v))][:n] for v in (a, b)]
            np.testing.assert_allclose(most[0], most[1], rtol=1e-7)
    np.testing.assert_allclose(
        closed.characteristic(s), links.characteristic(s) * of_links, rtol=1e-8
    )


def test_the_loop_at_links_of_one_queue_is_the_papers() -> None:
    """(34) for one flow on one link: C^-1 R_f s^-1 (s - K x U'')^-1 K x (v' + s) R_b."""
    w, beta, T, eta, c = 20e3, 0.1, 0.1, 0.4, 3e6
    loop = fc.linearize(fc.dumbbell([fc.LDCC], {"capacity": c}, rtt="50 ms"), "links")
    r = w / (beta * c)
    trip = (0.025 * r + T) / (1 - r) + 0.025
    slope = beta * (T + 0.025) / trip**2
    s = np.array([0.3 + 0.2j, 1 + 3j, 2 - 5j])
    by_hand = eta / trip * c * (slope + s) / (c * s * (s + eta / trip * w / c)) * np.exp(-s * trip)
    np.testing.assert_allclose(loop(s)[0, 0], by_hand, rtol=1e-9)


@pytest.mark.parametrize(
    ("net", "loop", "says"),
    [
        (fc.dumbbell([fc.LDCC], {"capacity": 9e6, "delay": 0.3}), "links",
         "no link answers the flows, so there is no loop to break at the links"),
        (networks.one_link(), "marks",
         "no link on a route sends a mark, a price, an offer or a loss, so there is no loop"),
        (fc.dumbbell([fc.CBR], {"capacity": 3e6}), "closed", "no flow of the network listens"),
        (networks.one_link(), "half", "loop is 'half'; give 'closed', 'open', 'links' or 'marks'"),
        (fc.dumbbell([fc.StaticAIMD], PATH), "closed",
            r"flow 'flow1' \(StaticAIMD\) has jumps.*averaged"),
        (fc.dumbbell([fc.StaticReno], PATH), "closed", "raises its rate without limit"),
        (fc.dumbbell([fc.SampledLDCC], PATH), "closed", r"'flow1' \(SampledLDCC\)" + SAMPLED),
        (fc.dumbbell([fc.StaticReno], {"law": fc.AdaptiveRED, **PATH}), "closed",
         r"link 'bottleneck' \(AdaptiveRED\)" + SAMPLED),
    ],
)  # fmt: skip
def test_what_has_no_loop_or_no_jacobian_is_refused(net: fc.Network, loop: str, says: str) -> None:
    with pytest.raises((InvalidInput, Unsupported, NoEquilibrium), match=says):
        fc.linearize(net, loop)


def test_a_tracker_is_a_parameter_and_reported() -> None:
    a = symbols("a", positive=True)
    falls = -Max(base - e, 0) / RTT
    law = fc.Source(
        "Tracking",
        {x: (a - x * (e - base)) / RTT**2 - x * edot / RTT, base: falls, count: x},
        {"rate": x}, {a: 60e3}, {x: "bit/s", a: "bit", base: "s", count: "bit"},
        lower={x: 0}, initial={x: 1e6, base: 0.05, count: 1},
    )  # fmt: skip
    net = fc.dumbbell({"f": law}, {"name": "l", "capacity": 3e6, "delay": 0.05})
    system = fc.linearize(net, at=_rest_without_counters(net, 3e6, 60e3 / 3e6))
    assert system.trackers == ("f.base", "f.count")
    assert system.states == ("f.x", "l.q")


def test_a_slope_that_vanishes_at_the_point_makes_no_tracker() -> None:
    """x' = -k (x - a)^3 has a root at zero and no continuum: that is marginal, not a parameter."""
    k, a = symbols("k a", positive=True)
    law = fc.Source(
        "Cubic", {x: -k * (x - a) ** 3}, {"rate": x}, {k: 1e-12, a: 1e6},
        {x: "bit/s", k: "s/bit^2", a: "bit/s"}, lower={x: 0}, initial={x: 5e5},
    )  # fmt: skip
    net = fc.dumbbell({"f": law, "g": fc.LDCC}, {"name": "l", "capacity": 3e6, "delay": 0.05})
    system, report = fc.linearize(net), fc.stability(net)
    assert system.trackers == ()
    assert system.states == ("f.x", "g.x", "l.q")
    assert (report.verdict, report.free) == ("marginal", ())
    assert abs(report.rightmost_roots[0]) < 1e-12


def _rest_without_counters(net: fc.Network, rate: float, queue: float) -> Any:
    """An equilibrium given by hand: with a counter that counts on, a search finds none."""
    like = fc.equilibrium(net.with_flow("f", law=fc.LDCC, initial=None))
    given = {"f": {"x": rate, "base": 0.05, "count": 1.0}, "l": {"q": queue}}
    delay = 0.05 + queue
    return like.changed(
        given, rate=rate, queueing_delay=queue, one_way_delay=delay, rtt=delay + 0.05
    )


@pytest.mark.parametrize("law", [fc.PenaltyLink(B=2.5), fc.DualLink, fc.DropTail, fc.RED, fc.PIE])
def test_a_link_that_nobody_crosses_changes_nothing(law: fc.Link) -> None:
    for make in (networks.penalty_prices, networks.one_link):
        with_idle = make().link("idle", law, capacity=1e6, delay=0.01)
        found, alone = fc.stability(with_idle), fc.stability(make())
        assert found.rightmost_roots[0] == pytest.approx(alone.rightmost_roots[0], rel=1e-9)
        assert found.gain_margin == pytest.approx(alone.gain_margin, rel=1e-9)


def test_surfaces_are_named() -> None:
    """In series, and of a law that, unlike LDCC, comes to rest at e = T."""
    links = [networks.in_row(name, 3e6, 0.02) for name in ("one", "two")]
    T, g = symbols("T g", positive=True)
    law = fc.Source(
        "Kinked", {x: g * x * (T - e - Max(e - T, 0) - T * edot)}, {"rate": x}, {T: 0.1, g: 1.0},
        {x: "bit/s", T: "s", g: "1/s^2"}, lower={x: 0}, initial={x: 1e6},
    )  # fmt: skip
    turning = replace(law, name="Turning", flow={x: g * x * (T - e) * (1 + Heaviside(edot, 0))})
    for net, says in (
        (
            fc.parking_lot([fc.LDCC], [[], []], links),
            "link 'two'.*: its queue is empty.*a queue above 0",
        ),
        (fc.dumbbell([law], PATH), r"flow 'flow1': Kinked.*, -?T? ?[-+] ?e"),
        (fc.dumbbell([turning], PATH), r"Turning.*, .* so make the step a smooth one"),
        (fc.dumbbell([fc.NADA], PATH), r"NADA.*: its R is at .* move that bound \(R_max\)"),
    ):
        with pytest.raises(
            InvalidInput, match=says.replace(".*", " stands on a switching surface", 1)
        ):
            fc.linearize(net)


def test_where_capacities_change_the_time_says_which_network_is_meant() -> None:
    law = fc.LDCC(eta=1.3)
    flows = {"a": {"law": law, "stop": 20}, "b": {"law": law, "start": 5}}
    net = fc.dumbbell(flows, {"capacity": [(0, 3e6), (10, 1e6)], "delay": 0.025})
    found = []
    for at, capacity, count in ((0, 3e6, 1), ("12 s", 1e6, 2), (math.inf, 1e6, 1)):
        alone = fc.dumbbell([law] * count, {"capacity": capacity, "delay": 0.025})
        wanted = fc.stability(alone).rightmost_roots
        for given in (at, fc.equilibrium(net, at)):
            assert fc.stability(net, at=given).rightmost_roots == pytest.approx(wanted, rel=1e-9)
        found.append(wanted[0])
    assert len({complex(np.round(s, 6)) for s in found}) == 3
    with pytest.raises(
        InvalidInput, match="the equilibrium given as at= knows no LDCC 'a'; give one of"
    ):
        fc.linearize(net, at=fc.equilibrium(networks.penalty_prices().without_flow("a")))


def _apart(links: int, flows: int) -> fc.Network:
    """Links whose flows have nothing to do with one another, all of them different."""
    rng = np.random.default_rng(0)
    net = fc.Network()
    for l in range(links):
        net.link(f"l{l}", fc.DropTail, capacity=1e6 * flows, delay=float(rng.uniform(5e-3, 0.03)))
        for i in range(flows):
            law = fc.LDCC(beta=float(rng.uniform(0.08, 0.15)))
            net.flow(f"f{l}.{i}", law, route=[f"l{l}"], access_delay=float(rng.uniform(1e-3, 0.03)))
    return net


def test_links_with_nothing_in_common_are_judged_by_themselves() -> None:
    net = _apart(4, 9)
    report = fc.stability(net, roots=6)
    alone = []
    for l in range(4):
        own = fc.Network().link(f"l{l}", fc.DropTail, capacity=9e6, delay=net.links[f"l{l}"].delay)
        for name in net.flows:
            if name.startswith(f"f{l}."):
                flow = net.flows[name]
                own.flow(name, flow.law, route=flow.route, access_delay=flow.access_delay)
        alone.append(fc.stability(own, roots=6))
    roots = np.concatenate([r.rightmost_roots for r in alone])
    roots = roots[np.argsort(-roots.real, kind="stable")]
    np.testing.assert_allclose(report.rightmost_roots[:6].real, roots[:6].real, rtol=1e-9)
    assert report.stable == all(r.stable for r in alone)
    for margin in ("gain", "phase", "delay", "modulus"):  # their loci run side by side
        least = min(getattr(r.margins, margin) for r in alone)
        assert getattr(report.margins, margin) == pytest.approx(least, rel=1e-9), margin
