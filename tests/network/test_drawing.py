"""The picture of a network: what it shows, as data."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import fluidcc as fc

SVG = "{http://www.w3.org/2000/svg}"


def drawn(net: fc.Network) -> ET.Element:
    return ET.fromstring(net._repr_html_())


def test_every_link_and_flow_is_drawn() -> None:
    link = {"capacity": "2.5 Mbit/s", "delay": "25 ms", "buffer": "100 packets"}
    net = fc.parking_lot(
        [fc.LDCC], [fc.LDCC, {"late": {"law": fc.LDCC, "start": 100, "stop": 260}}], link
    )
    svg = drawn(net)
    texts = [t.text for t in svg.iter(f"{SVG}text")]
    assert {
        "link1",
        "link2",
        "2.5 Mbit/s, 25 ms, buffer 800 kbit",
        "late: LDCC (from 100 to 260 s)",
    } <= {*texts}
    columns = [
        float(r.attrib["x"]) + 14 for r in svg.iter(f"{SVG}rect") if r.get("class") == "link"
    ]
    dots = [float(c.attrib["cx"]) for c in svg.iter(f"{SVG}circle")]
    assert dots == [
        *columns,
        columns[0],
        columns[1],
    ]  # the long flow crosses both, the others one each
    assert len([*svg.iter(f"{SVG}polyline")]) == 3


def test_names_are_escaped_and_many_flows_counted() -> None:
    net = fc.Network().link("<l> & co", fc.DropTail, capacity=1e6)
    for i in range(30):
        net.flow(f"<{i}>", fc.CBR, route=["<l> & co"])
    texts = [t.text for t in drawn(net).iter(f"{SVG}text")]
    assert "<l> & co" in texts
    assert "<3>: CBR" in texts
    assert "and 6 more flows" in texts


def test_an_empty_network_and_a_route_that_turns_back() -> None:
    assert drawn(fc.Network()).tag == f"{SVG}svg"
    net = fc.Network().link("a", fc.DropTail, capacity=1e6).link("b", fc.DropTail, capacity=1e6)
    line = next(drawn(net.flow("f", fc.CBR, route=["b", "a"])).iter(f"{SVG}polyline"))
    assert len(line.attrib["points"].split()) == 8
