"""The picture of a network: what it shows, as data."""

from typing import Any

import fluidcc as fc
from fluidcc.base.colours import colour
from fluidcc.network.drawing import topology


def drawn(net: fc.Network) -> Any:
    return topology(net.links, net.flows).axes[0]


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def lines(ax: Any) -> list[Any]:
    return [line for line in ax.get_lines() if line.get_gid() == "flow"]


def test_every_link_and_flow_is_drawn() -> None:
    link = {"capacity": "2.5 Mbit/s", "delay": "25 ms", "buffer": "100 packets"}
    late = {"late": {"law": fc.LDCC, "start": 100, "stop": 260}}
    ax = drawn(fc.parking_lot([fc.LDCC], [fc.LDCC, late], link))
    said = {"2.5 Mbit/s, 25 ms, buffer 800 kbit", "late: LDCC (from 100 to 260 s)"}
    assert {"link1", "link2", *said} <= {*texts(ax)}
    columns = [box.get_x() + 14 for box in ax.patches if box.get_gid() == "link"]
    dots = [x for line in ax.get_lines() if line.get_marker() == "o" for x in line.get_xdata()]
    # the long flow crosses both, the others one each
    assert dots == [*columns, columns[0], columns[1]]
    assert [line.get_color() for line in lines(ax)] == [colour(k) for k in range(3)]


def test_names_are_written_as_they_are_and_many_flows_counted() -> None:
    net = fc.Network().link("$l$ & co", fc.DropTail, capacity=1e6)
    for i in range(30):
        net.flow(f"<{i}>", fc.CBR, route=["$l$ & co"])
    ax = drawn(net)
    assert {"$l$ & co", "<3>: CBR", "and 6 more flows"} <= {*texts(ax)}
    assert not any(text.get_parse_math() for text in ax.texts)


def test_an_empty_network_and_a_route_that_turns_back() -> None:
    assert lines(drawn(fc.Network())) == []
    net = fc.Network().link("a", fc.DropTail, capacity=1e6).link("b", fc.DropTail, capacity=1e6)
    (line,) = lines(drawn(net.flow("f", fc.CBR, route=["b", "a"])))
    assert len(line.get_xdata()) == 8


def test_jupyter_gets_a_sharp_picture_without_markup() -> None:
    net = fc.dumbbell([fc.LDCC], {"capacity": "1 Mbit/s"}, rtt="50 ms")
    data, size = net._repr_png_()
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20]) == 2 * size["width"]
    assert not hasattr(net, "_repr_html_")  # which JupyterLab would show in place of the picture
