"""Networks: what is built, what is refused in one sentence, and what a copy keeps."""

import copy
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import symbols

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, UnitsError, UnknownName
from fluidcc.symbols import e_b

z, g = symbols("z g", positive=True)


def two_links() -> fc.Network:
    link: Any = {"capacity": "3 Mbit/s", "delay": "25 ms", "buffer": "100 packets"}
    net = fc.Network().link("l1", fc.DropTail, **link)
    return net.link("l2", fc.DropTail, capacity=2e6, delay=0.01)


def test_text_and_numbers_say_the_same() -> None:
    texts, numbers = fc.Network(), fc.Network()
    link: dict[str, Any] = {"capacity": "3 Mbit/s", "delay": "25 ms", "buffer": "100 packets"}
    texts.link("l", fc.DropTail, **link, initial={"q": "5 ms"})
    link = {"capacity": 3e6, "delay": 0.025, "buffer": 8e5}
    numbers.link("l", fc.DropTail, **link, initial={"backlog": "15 kbit"})
    flow: dict[str, Any] = {"start": "2 s", "stop": "4 s", "access_delay": "1 ms"}
    texts.flow("f", fc.LDCC, route=["l"], **flow, initial={"x": "0.2 Mbit/s"})
    flow = {"start": [2], "stop": [4.0], "access_delay": 1e-3, "packet": "1 KB"}
    numbers.flow("f", fc.LDCC, route=("l",), **flow, initial={"x": 2e5})
    assert texts == numbers
    assert texts.links["l"].initial == {"q": pytest.approx(0.005)}


def test_defaults() -> None:
    net = two_links().flow("f", fc.LDCC, route=["l1", "l2"], access_delay="5 ms")
    flow, link = net.flows["f"], net.links["l2"]
    assert flow.intervals == ((-math.inf, math.inf),)
    assert flow.packet == 8000
    assert flow.pattern is None
    assert link.buffer == math.inf
    assert link.initial == {"q": 0.0}
    assert flow.initial["x"] > 0  # the law's own
    assert net.propagation_delay("f") == net.return_delay("f") == pytest.approx(0.04)
    assert net.base_rtt("f") == pytest.approx(0.08)
    assert net.with_flow("f", return_delay="30 ms").base_rtt("f") == pytest.approx(0.07)


def test_capacity_that_changes() -> None:
    capacity = [(0, "3 Mbit/s"), ("10 s", 2e6)]
    net = fc.Network().link("l", fc.DropTail, capacity=capacity, buffer="0.5 s")
    assert net.links["l"].capacity == 3e6
    assert net.links["l"].schedule == ((10.0, 2e6),)
    assert net.links["l"].buffer == 1.5e6
    array = fc.Network().link("l", fc.DropTail, capacity=np.array([[0, 3e6], [10, 2e6]]))
    assert array.links["l"].schedule == ((10, 2e6),)


def test_flow_may_start_and_stop_more_than_once() -> None:
    net = two_links().flow("f", fc.LDCC, route=["l1"], start=[None, "5 s", 9], stop=[2, 7, None])
    assert net.flows["f"].intervals == ((-math.inf, 2.0), (5.0, 7.0), (9.0, math.inf))


def test_what_was_found_of_a_network_is_found_again_when_it_grows() -> None:
    net = fc.dumbbell([fc.LDCC] * 2, {"capacity": 3e6}, rtt=0.05)
    np.testing.assert_allclose(fc.equilibrium(net).rate, 1.5e6)
    net.flow("more", fc.LDCC, route=net.link_names, access_delay=0.005)
    np.testing.assert_allclose(fc.equilibrium(net).rate.sum(), 3e6)
    assert fc.equilibrium(net).rate.sizes["flow"] == 3
    np.testing.assert_array_equal(fc.equilibrium(net).rate, fc.equilibrium(net.copy()).rate)


def test_initial_states_follow_the_return_delay() -> None:
    """As given, or else the way there: over two links and an access."""
    law = fc.Source("Late", flow={z: 0}, out={"rate": z * g}, params={g: 1e5}, initial={z: e_b},
                    units={z: "s", g: "bit/s^2"})  # fmt: skip
    net = two_links().flow("f", law, route=["l1", "l2"], access_delay=0.02)
    there = 0.02 + sum(link.delay for link in net.links.values())
    assert net.flows["f"].initial["z"] == pytest.approx(there, rel=1e-15)
    assert net.with_flow("f", return_delay=0.3).flows["f"].initial["z"] == 0.3
    longer = net.with_link("l2", delay=0.5).flows["f"].initial["z"]
    assert longer == pytest.approx(there - net.links["l2"].delay + 0.5, rel=1e-15)


def test_routing_matrix_and_order() -> None:
    net = two_links().flow("a", fc.LDCC, route=["l2", "l1"]).flow("b", fc.CBR, route=["l2"])
    assert net.flows["a"].route == ("l2", "l1")
    assert net.link_names == ("l1", "l2")
    assert net.flow_names == ("a", "b")
    assert net.routing_matrix().tolist() == [[1, 0], [1, 1]]


LINK: dict[str, Any] = {"law": fc.DropTail, "capacity": "3 Mbit/s"}
FLOW: dict[str, Any] = {"law": fc.LDCC, "route": ["l1"]}


# The change to the arguments, the error and its message; @ stands for "of link 'new'" or "of flow
# 'new'".
LINK_CASES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"capacity": 0}, InvalidInput, "capacity @ is 0; give a positive number"),
    ({"capacity": "3 Mbit"}, UnitsError, "capacity @ is '3 Mbit', an amount of data; give a rate"),
    ({"capacity": [(0, 1e6), (0, 2e6)]}, InvalidInput, "capacity @ has 0 s after 0 s; sort"),
    ({"capacity": [(1, 1e6)]}, InvalidInput, "its first pair must be at time 0"),
    ({"capacity": []}, InvalidInput, "its first pair must be at time 0"),
    ({"capacity": [(0, 1e6), 2e6]}, InvalidInput, "give pairs of time and rate"),
    ({"delay": -0.1}, InvalidInput, "delay @ is -0.1; give a nonnegative number"),
    ({"buffer": 0}, InvalidInput, "buffer @ is 0; give a positive number"),
    ({"buffer": "25 pakets"}, UnitsError, "buffer @ is '25 pakets', where 'pakets' is no unit"),
    ({"buffer": "2 Mbit/s"}, UnitsError, "buffer @ is '2 Mbit/s', a rate; give an amount of data"),
    ({"initial": {"q": -1}}, InvalidInput, "initial @: q is -1 s; DropTail keeps it between 0 and"),
    ({"initial": {"q": 1}, "buffer": 1e6}, InvalidInput, "keeps it between 0 and 0.3333"),
    ({"initial": {"q": 1, "backlog": 1}}, InvalidInput, "gives its queue as q and as backlog"),
    ({"initial": {"x": 1}}, UnknownName, "a state 'x', which DropTail does not have; .* may be q"),
    ({"initial": 3}, InvalidInput, "initial @ is 3; give states by name"),
    ({"law": fc.LDCC}, InvalidInput, "law @ is source LDCC.*; give a link law"),
    ({"name": "l1"}, InvalidInput, "name of link 'l1' is taken"),
    ({"name": ""}, InvalidInput, "name of a link is ''; give text"),
]  # fmt: skip

FLOW_CASES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"route": ["l3"]}, UnknownName, "@ names link 'l3', .*; did you mean 'l[12]' or 'l[12]'"),
    ({"route": []}, InvalidInput, "route @ is empty"),
    ({"route": "l1"}, InvalidInput, r"route @ is 'l1'; give the links in order, such as \['l1'\]"),
    ({"route": ["l1", "l2", "l1"]}, InvalidInput, "route @ passes link 'l1' twice"),
    ({"start": 5, "stop": 5}, InvalidInput, "stop @ is 5; it must be after its start, 5 s"),
    ({"stop": 0}, InvalidInput, "stop @ is 0; it must be after its start"),
    ({"start": -1}, InvalidInput, "start @ is -1; give a time from 0 on, or None"),
    ({"start": [1, 2], "stop": [3]}, InvalidInput, "start @ has 2 and stop 1 times"),
    ({"start": [1, 2], "stop": [3, 4]}, InvalidInput, "start @ is 2; it must be after the stop"),
    ({"start": [1, 5], "stop": [5, 9]}, InvalidInput, "must be after the stop before it"),
    ({"start": [], "stop": []}, InvalidInput, "start @ is empty"),
    ({"start": "2 Mbit"}, UnitsError, "start @ is '2 Mbit', an amount of data; give a time in s"),
    ({"return_delay": "-1 ms"}, InvalidInput, "return_delay @ is '-1 ms'; give a nonnegative"),
    ({"packet": 0}, InvalidInput, "packet @ is 0; give a positive"),
    ({"initial": {"y": 1}}, UnknownName, "a state 'y', which LDCC does not have; .* may be x"),
    ({"initial": {"x": -1}}, InvalidInput, "initial @: x is -1 bit/s; LDCC keeps it between"),
    ({"initial": {"x": 0}}, InvalidInput, "x is 0; LDCC needs a positive value"),
    ({"initial": {"x": "3 ms"}}, UnitsError, "initial @: x is '3 ms', a time; give a rate"),
    ({"law": fc.DropTail}, InvalidInput, "law @ is link DropTail.*; give a source law"),
    ({"law": "LDCC"}, InvalidInput, "law @ is 'LDCC'; give a source law"),
    ({"pattern": [(0, 1e6)]}, InvalidInput, "pattern @ is given, but LDCC sets its own rate"),
    ({"law": fc.CBR, "initial": {"x": 1}}, UnknownName, "CBR does not have; it has none"),
    ({"law": fc.CBR, "pattern": [(0, -1e6)]}, InvalidInput, "@ is -1000000.0; give a nonneg"),
    ({"law": fc.CBR, "pattern": 3}, InvalidInput, "pattern @ is 3; give pairs of time and rate"),
    ({"law": fc.CBR, "pattern": {"kind": "posson"}}, UnknownName, "'posson'; did .*'poisson'"),
    ({"law": fc.CBR, "pattern": {"kind": "poisson", "interval": 1}}, UnknownName,
    "poisson lacks its 'mean_rate'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "change", "error", "message"),
    [
        *(("link", *case) for case in LINK_CASES),
        *(("flow", *case) for case in FLOW_CASES),
    ],
)
def test_wrong_arguments_are_answered_in_one_sentence(
    kind: str, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    net = two_links()
    before = net.copy()
    message = message.replace("@", f"of {kind} 'new'")
    with pytest.raises(error, match=message) as caught:
        getattr(net, kind)(**({"name": "new"} | (LINK if kind == "link" else FLOW) | change))
    assert "\n" not in str(caught.value)
    assert net == before


@pytest.mark.parametrize("buffer", [1.2e6, "1.2 Mbit", "150 KB", "100 packets", "0.4 s", "400 ms"])
def test_a_buffer_in_bits_bytes_packets_or_seconds_is_the_same_buffer(buffer: float | str) -> None:
    """Packets are those of the link, seconds at its capacity. The run loses the same."""
    link = {"capacity": "3 Mbit/s", "delay": "5 ms", "buffer": buffer, "packet": "1500 B"}
    net = fc.dumbbell([{"law": fc.CBR(rate=5e6), "start": 0}], link)
    assert net.links["bottleneck"].buffer == pytest.approx(1.2e6, rel=1e-15)
    run = fc.simulate(net, 1, samples=3)
    assert float(run.lost[-1, 0]) == pytest.approx(5e6 - 3e6 - 1.2e6, rel=1e-9)


def test_a_buffer_needs_a_queue() -> None:
    law = replace(fc.DualLink, name="Price", initial={}, claims={})
    with pytest.raises(InvalidInput, match="buffer of link 'l' is 100, but Price has no queue"):
        fc.Network().link("l", law, capacity=1e6, buffer=100)
    with pytest.raises(InvalidInput, match="link 'l' lacks lambda, for which Price has no default"):
        fc.Network().link("l", law, capacity=1e6)
    given = fc.Network().link("l", law, capacity=1e6, initial={"lambda": 0.5})
    assert given.links["l"].initial == {"lambda": 0.5}


def test_changed_copies() -> None:
    net = two_links().flow("a", fc.LDCC, route=["l1"])
    net.flow("b", fc.LDCC(beta=0.2), route=["l1", "l2"])
    before = net.copy()
    other = net.with_link("l1", capacity="4 Mbit/s")
    other = other.with_flow("a", law=fc.LDCC(w=1e4), initial={"x": 5e4})
    assert net == before != other
    assert other.links["l1"].capacity == 4e6
    assert other.links["l1"].buffer == net.links["l1"].buffer
    assert other.flow_names == net.flow_names
    assert other.flows["a"].initial == {"x": 5e4}
    assert other.flows["b"] == net.flows["b"]
    assert net.without_flow("a").flow_names == ("b",)
    with pytest.raises(UnknownName, match="no link 'l3'"):
        net.with_link("l3", delay=1)
    with pytest.raises(UnknownName, match="capcity of link 'l1' cannot .*did you mean 'capacity'"):
        net.with_link("l1", capcity=1)
    with pytest.raises(InvalidInput, match="positive"):
        net.with_link("l1", capacity=-1)


def test_many_flows_are_changed_at_once() -> None:
    net = two_links().flow("a", fc.LDCC, route=["l1"]).flow("b", fc.LDCC, route=["l2"])
    delays: dict[str, dict[str, Any]] = {"a": {"access_delay": 0.1}, "b": {"start": 3}}
    one_by_one = net
    for name, changes in delays.items():
        one_by_one = one_by_one.with_flow(name, **changes)
    assert net.with_flows(delays) == one_by_one != net
    with pytest.raises(UnknownName, match="no flow 'c'"):
        net.with_flows({"c": {}})
    for wrong in (3, {"a": 3}):
        with pytest.raises(InvalidInput, match="the changes.* is 3; give arguments"):
            net.with_flows(wrong)  # type: ignore[arg-type]


def test_a_changed_delay_reaches_what_depends_on_it() -> None:
    net = fc.Network().link("l", fc.DropTail, capacity=2e6, delay=0.01, buffer="0.5 s")
    net.flow("a", fc.LDCC, route=["l"])
    other = net.with_link("l", delay=0.03, capacity=4e6)
    assert other.return_delay("a") == 0.03
    assert other.links["l"].buffer == 2e6


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda n: pickle.loads(pickle.dumps(n)), fc.Network.copy]
)
def test_copies_are_equal_and_independent(copied: Any) -> None:
    net = two_links().flow("a", fc.LDCC, route=["l1"])
    other = copied(net)
    assert other == net
    other.flow("b", fc.LDCC, route=["l2"])
    assert other != net
    assert net.flow_names == ("a",)
    assert other.with_link("l1", capacity=1e6).links["l1"].capacity == 1e6
    assert net != 3


times = st.lists(st.floats(0, 1e4), min_size=2, max_size=12, unique=True).map(sorted)


@given(times)
def test_any_sorted_times_are_intervals_and_no_others(ts: list[float]) -> None:
    pairs = list(zip(ts[::2], ts[1::2], strict=False))
    starts, stops = [a for a, _ in pairs], [b for _, b in pairs]
    net = two_links().flow("f", fc.CBR, route=["l1"], start=starts, stop=stops)
    assert net.flows["f"].intervals == tuple(pairs)
    with pytest.raises(InvalidInput, match="of flow 'f' is"):
        two_links().flow("f", fc.CBR, route=["l1"], start=stops, stop=starts)


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.permutations(range(n)), min_size=1, max_size=5)
    ),
    st.data(),
)
def test_delays_add_along_any_route(orders: list[list[int]], data: st.DataObject) -> None:
    n = len(orders[0])
    delays = data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n))
    net = fc.Network()
    for i, p in enumerate(delays):
        net.link(f"l{i}", fc.DropTail, capacity=1e6, delay=p)
    for j, order in enumerate(orders):
        net.flow(f"f{j}", fc.CBR, route=[f"l{i}" for i in order[: 1 + j % n]], access_delay=0.5)
    R = net.routing_matrix()
    for j, name in enumerate(net.flow_names):
        assert net.propagation_delay(name) == pytest.approx(0.5 + R[:, j] @ np.array(delays))
        assert net.base_rtt(name) == pytest.approx(2 * net.propagation_delay(name))
