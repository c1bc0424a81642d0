"""Dumbbell and parking lot: the round-trip times that were asked for, on the right links."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.base.errors import InvalidInput

LINK = {"capacity": "3 Mbit/s", "buffer": "100 packets"}


@given(st.lists(st.floats(1e-3, 2), min_size=1, max_size=8))
def test_dumbbell_has_the_round_trip_times(rtt: list[float]) -> None:
    net = fc.dumbbell([fc.LDCC] * len(rtt), LINK, rtt=rtt)
    assert [net.base_rtt(f) for f in net.flow_names] == pytest.approx(rtt)
    assert net.links["bottleneck"].delay == pytest.approx(min(rtt) / 2)
    for f in net.flow_names:
        assert net.return_delay(f) == pytest.approx(net.propagation_delay(f))


def test_dumbbell_with_names_laws_and_arguments() -> None:
    flows = {"a": fc.LDCC, "udp": {"law": fc.CBR(rate=5e5), "start": 2, "return_delay": "10 ms"}}
    link = {**LINK, "name": "core", "delay": "20 ms"}
    net = fc.dumbbell(flows, link, rtt={"udp": "50 ms", "a": "40 ms"})
    assert net.links["core"].law == fc.DropTail
    assert net.flows["udp"].intervals[0][0] == 2
    assert net.return_delay("udp") == pytest.approx(0.01)
    assert net.propagation_delay("udp") == pytest.approx(0.04)
    assert net.base_rtt("a") == pytest.approx(0.04)


def test_dumbbell_without_rtt_is_the_network_by_hand() -> None:
    net = fc.dumbbell({"a": {"law": fc.LDCC, "access_delay": "5 ms"}}, {**LINK, "delay": "25 ms"})
    hand = fc.Network().link("bottleneck", fc.DropTail, capacity=3e6, buffer=8e5, delay=0.025)
    assert net == hand.flow("a", fc.LDCC, route=["bottleneck"], access_delay=0.005)


@pytest.mark.parametrize(
    ("flows", "link", "rtt", "message"),
    [
        ([fc.LDCC], {**LINK, "delay": 0.1}, 0.1,
         "rtt of flow 'flow1' is 0.1 s, shorter than .* of 0.05 s and the link's .* 0.1 s"),
        ([fc.LDCC], LINK, [0.1, 0.2], "rtt has 2 entries for 1 flows"),
        ([fc.LDCC], LINK, {"a": 0.1}, "rtt is given for a; give one for each of flow1"),
        ([fc.LDCC], LINK, "25 kbit",
         "rtt of flow 'flow1' is '25 kbit', an amount of data; give a time"),
        ([{"law": fc.LDCC, "access_delay": 0.1}], LINK, 0.1,
         "access_delay of flow 'flow1' follows from rtt"),
        (["LDCC"], LINK, 0.1, "flow 'flow1' is 'LDCC'; give a source law"),
        (3, LINK, 0.1, "flows is 3; give laws in a list"),
        ([fc.LDCC], {"capcity": 1}, 0.1, "link 'bottleneck' has no argument 'capcity'; did you"),
        ([fc.LDCC], {}, 0.1, "link 'bottleneck' lacks its capacity"),
        ([fc.LDCC], "3 Mbit/s", 0.1, "link is '3 Mbit/s'; give arguments such as"),
    ],
)  # fmt: skip
def test_dumbbell_refuses(flows: Any, link: Any, rtt: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        fc.dumbbell(flows, link, rtt=rtt)


def test_parking_lot_routes() -> None:
    each: list[dict[str, Any]] = [
        {"capacity": 2.5e6, "delay": 0.025},
        {"capacity": 2e6, "delay": 0.01, "name": "second"},
        {"capacity": 1e6},
    ]
    last = {"x": fc.CBR, "y": {"law": fc.LDCC, "start": 3}}
    net = fc.parking_lot({"long": fc.LDCC}, [fc.LDCC, [], last], each)
    routes = {name: " ".join(flow.route) for name, flow in net.flows.items()}
    long = "link1 second link3"
    assert routes == {"long": long, "cross1": "link1", "x": "link3", "y": "link3"}
    assert net.flows["y"].intervals[0][0] == 3
    assert net.links["second"].capacity == 2e6


def test_parking_lot_refuses() -> None:
    with pytest.raises(InvalidInput, match="link has 1 entries and cross 2"):
        fc.parking_lot([fc.LDCC], [fc.LDCC, fc.LDCC], [LINK])
    with pytest.raises(InvalidInput, match=r"cross is \[\]; give a sequence"):
        fc.parking_lot([fc.LDCC], [], LINK)


def test_two_queues_share_by_the_flows_that_are_on() -> None:
    """From the instant of a start to that of a stop; a queue of none has next to nothing."""
    udp = {"law": fc.CBR, "start": 10, "stop": 20}
    net = fc.two_queues(
        [udp], [fc.StaticReno, {"law": fc.StaticReno, "start": 10}], {"capacity": 3e7}, {}
    )
    shares = {name: [link.capacity, *link.schedule] for name, link in net.links.items()}
    assert shares["udp"] == [30.0, (10.0, pytest.approx(1e7)), (20.0, 30.0)]
    assert shares["tcp"] == [3e7, (10.0, pytest.approx(2e7)), (20.0, 3e7)]
