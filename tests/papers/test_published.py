"""Loops of the literature give the numbers that their papers print."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc
from fluidcc import scenarios
from fluidcc.base.errors import UnknownName, Unsupported
from fluidcc.papers.published import PublishedLoop, changed_path, published, tcp_loops
from tests.analysis import networks


def test_hollot_misra_towsley_gong() -> None:
    red, pi = published["tcp_red"], published["tcp_pi"]
    facts = {"window": 15, "mark": 0.008, "window pole": 0.53, "queue pole": 4.1}
    for name, printed in facts.items():
        assert red.facts[name] == printed
        assert red.computed[name] == pytest.approx(printed, rel=0.06)
    assert pi.computed["phase margin"] == pytest.approx(75, abs=0.5)
    assert pi.computed["crossover"] == pytest.approx(0.53, abs=0.01)
    as_printed, exact = pi.margins()
    assert as_printed.phase == pytest.approx(pi.computed["phase margin"])
    assert exact.phase > as_printed.phase + 5
    assert exact.gain < 0.5 * as_printed.gain


def test_the_library_s_own_tcp_and_pi_is_misra_s_model_with_a_queue_that_is_heard_of() -> None:
    """As by hand, and unlike the paper's in when the sender knows the queue."""
    net = scenarios["tcp_pi"].net
    rest = fc.equilibrium(net)
    back = float(net.return_delay("tcp") + net.links["bottleneck"].delay + rest.queueing_delay[0])
    s = 1j * np.array([0.05, 0.5, 1.0, 5.0])
    control = 9.64e-6 * (s / 0.53 + 1) / s
    exact = published["tcp_pi"].exact
    by_hand = networks.tcp_plant(s, 0.246, back, 60, 3750) * control
    np.testing.assert_allclose(exact(s)[0, 0], by_hand, rtol=1e-4)
    # As Misra's equations are read, the queue is known at once.
    R, N, C = 0.246, 60, 3750
    trip = np.exp(-s * R)
    own, integral = s + N / (R**2 * C) * (1 + trip), s + 1 / R
    at_once = C**2 / (2 * N) * trip / (own * integral + (1 - trip) / (R**2 * C) * (N / R))
    printed = published["tcp_pi"].published
    np.testing.assert_allclose(printed(s[:3])[0, 0], at_once[:3] * control[:3], rtol=0.06)
    assert np.all(np.abs(exact(s)[0, 0] / printed(s)[0, 0] - 1)[1:] > 0.1)


@pytest.mark.parametrize("name", ["tcp_red", "tcp_pi", "low_paganini", "paganini"])
def test_the_exact_loop_closes_to_the_network(name: str) -> None:
    """Broken at marks, links or flow: the same characteristic roots when it is closed."""
    net = scenarios[name].net
    roots = fc.linearize(net).roots(count=4)
    for broken in ("marks", "links", "open"):
        found = fc.linearize(net, broken).feedback().roots(count=4)
        np.testing.assert_allclose(found, roots, rtol=1e-7)


def _unstable(flows: float, capacity: float, trip: float) -> list[int]:
    """Unstable roots as published and exact, with other flows, capacity [packet/s], path [s]."""
    net = changed_path(scenarios["low_paganini"].net, flows, capacity, trip)
    return [loop.feedback().count_unstable().unstable for loop in tcp_loops(net)[:2]]


def test_the_longest_path_shrinks_with_capacity_and_grows_with_flows() -> None:
    found = published["low_paganini"].computed
    for k, how in enumerate(("as published", "exact")):
        usual, faster, more = (v for name, v in found.items() if f", {how}," in name)
        assert faster < usual < more
        assert _unstable(60, 3750, 0.999 * usual)[k] == 0
        assert _unstable(60, 3750, 1.001 * usual)[k] == 2


def test_a_path_of_many_flows_is_one_of_a_flow_as_aggressive_as_all() -> None:
    net = scenarios["low_paganini"].net
    one = changed_path(net, 4.0, 3750.0, 0.2)
    ((name, flow),), many = one.flows.items(), changed_path(net, 1.0, 3750.0, 0.2)
    for k in range(3):
        many.flow(f"more{k}", many.flows[name].law, route=flow.route, packet=flow.packet,
                  return_delay=flow.return_delay)  # fmt: skip
    rates = [float(fc.equilibrium(net).rate.sel(flow=name)) for net in (one, many)]
    assert rates[0] == pytest.approx(4 * rates[1])
    found, of_many = fc.linearize(one).roots(count=3), fc.linearize(many).roots(count=9)
    assert np.abs(found[:, None] - of_many).min(axis=1) == pytest.approx(0.0, abs=1e-7)


def test_another_network_has_no_published_loop() -> None:
    with pytest.raises(Unsupported, match=r"of RED or PI, here 'user' \(DelayedPrimal\) on 'link'"):
        tcp_loops(scenarios["johari_tan"].net)


def test_conditions_of_half_pi_are_exact() -> None:
    for name in ("johari_tan", "paganini"):
        loop = published[name]
        (printed,), (found,) = loop.facts.values(), loop.computed.values()
        assert printed == math.pi / 2
        assert found == pytest.approx(math.pi / 2, rel=1e-9)
        s = 1j * np.geomspace(0.1, 100, 7)
        np.testing.assert_allclose(loop.published(s), loop.exact(s), rtol=1e-6)


def test_scalable_tcp_is_stable_beyond_its_bound() -> None:
    loop = published["scalable_tcp"]
    (found,) = loop.computed.values()
    assert found > math.pi / 2 > 1
    # At the boundary s R = -a (1 - p) - u e^{-sR}, u = a B times the gain: theta = u sin theta.
    growth, B = 0.05, 4.0
    own = growth * (1 - _loss_at_rest(growth, 0.125, B))
    angle = brentq(lambda v: v * math.cos(v) + own * math.sin(v), math.pi / 2, math.pi)
    assert found == pytest.approx(angle / math.sin(angle), rel=1e-8)


def _loss_at_rest(growth: float, cut: float, sharpness: float) -> float:
    def gap(p: float) -> float:
        return growth * (1 - p) - cut * p * (1e6 * p ** (1 / sharpness)) * 0.1 / 8000

    return float(brentq(gap, 1e-9, 1, xtol=1e-15))


def test_the_zoo_is_a_mapping_with_sources() -> None:
    names = {"tcp_red", "tcp_pi", "low_paganini", "johari_tan", "paganini", "scalable_tcp"}
    assert set(published) == names
    for name in published:
        loop, scenario = published[name], scenarios[name]
        assert isinstance(loop, PublishedLoop)
        assert loop.ref == scenario.ref != ""
        assert loop.net == scenario.net
        assert "exact" in loop._repr_html_()
    with pytest.raises(UnknownName, match="no published loop 'tcp_p1'.*tcp_pi"):
        published["tcp_p1"]
