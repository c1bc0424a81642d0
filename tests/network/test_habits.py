"""What people try first: the Tab key, and a delay in milliseconds."""

import copy
import pickle
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.network.patterns import near

LINK = {"capacity": "3 Mbit/s"}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("net.links['", {"bottleneck"}),
        ("net.flows['fl", {"flow1", "flow2"}),
        ("fc.scenarios['ldcc_fig1", {"ldcc_fig10", "ldcc_fig11"}),
        ("fc.published['tcp", {"tcp_red", "tcp_pi"}),
        ("fc.scenarios.johari", {"johari_tan"}),
        ("fc.LDCC(b", {"beta="}),
        ("fc.num.", {"NumSolution", "solve"}),
        ("fc.plot.STY", {"STYLE"}),
    ],
)
def test_jupyter_completes(typed: str, offered: set[str]) -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    from IPython.core.completer import provisionalcompleter

    shell.push({"fc": fc, "net": fc.dumbbell([fc.LDCC] * 2, LINK, rtt="50 ms")})
    with provisionalcompleter():
        found = {c.text for c in shell.Completer.completions(typed, len(typed))}
    assert offered <= found


def test_links_and_flows_are_read_as_they_grow_and_not_written() -> None:
    net = fc.dumbbell([fc.LDCC], LINK, rtt="50 ms")
    flows = net.flows
    net.flow("new", fc.CBR, route=["bottleneck"])
    assert list(flows) == ["flow1", "new"]
    other = pickle.loads(pickle.dumps(net)).flow("one", fc.CBR, route=["bottleneck"])
    assert (len(other.flows), len(net.copy().flows), len(flows)) == (3, 2, 2)
    assert flows.get("third") is None
    assert "third" not in flows
    for wrong in (KeyError, fc.errors.UnknownName):
        with pytest.raises(wrong, match="the network has no flow 'flow2'; did you mean 'flow1'"):
            _ = flows["flow2"]
    with pytest.raises(TypeError):
        flows["third"] = flows["new"]  # type: ignore[index]


def test_ready_scenarios_are_attributes_too() -> None:
    assert fc.scenarios.p1 == fc.scenarios["p1"]
    assert list(copy.deepcopy(fc.scenarios)) == list(fc.scenarios)
    with pytest.raises(AttributeError, match="no ready scenario 'p11'; did you mean 'p1'"):
        _ = fc.scenarios.p11


def place(**given: Any) -> fc.Network:
    net = fc.Network().link("l", fc.DropTail, capacity=1e6, delay=given.pop("delay", 0.01))
    return net.flow("a", fc.LDCC, route=["l"], **given)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fc.dumbbell([fc.LDCC] * 2, LINK, rtt=50), "rtt is 50, which is 50 s; for 50 ms"),
        (lambda: fc.dumbbell([fc.LDCC] * 2, LINK, rtt=[0.1, 80]), "rtt is 80, .* '80 ms'"),
        (lambda: fc.dumbbell([fc.LDCC], {**LINK, "delay": 25}), "delay of link 'bottleneck' is 25"),
        (lambda: place(delay=12.5), "delay of link 'l' is 12.5, .*write '12.5 ms', or '12.5 s'"),
        (lambda: place(access_delay=5), "access_delay of flow 'a' is 5"),
        (lambda: place(return_delay=30), "return_delay of flow 'a' is 30"),
    ],
)
def test_seconds_that_may_be_milliseconds_are_warned_of_once(make: Any, says: str) -> None:
    with pytest.warns(fc.errors.FluidccWarning, match=says) as said:
        make()
    assert len(said) == 1
    within_a_topology = "bottleneck" in says  # whose own line it then is
    assert (said[0].filename == __file__) is not within_a_topology


def test_text_and_short_delays_do_not_warn() -> None:
    net = fc.dumbbell([fc.LDCC] * 2, LINK, rtt="50 s")
    assert net.base_rtt("flow1") == 50.0
    place(delay="30 s", access_delay=4.9, return_delay=None, packet="1500 bytes")
    fc.Network().link("l", fc.DropTail, capacity="3 bit/s", buffer="100 bit", packet=2400)
    fc.Network().link("l", fc.DropTail, capacity=[(0, 0), (1, 1e3)], buffer=8000, packet=8000)
    fc.dumbbell([fc.LDCC], LINK, rtt=4.0).with_flow("flow1", access_delay="60 s")


def test_suggestions_are_few_sorted_and_near() -> None:
    names = ["rate", "rates", "rtt", "bate", "rat", "loss"]
    assert near("rate1", names) == "did you mean 'rate' or 'rates' or 'rat'?"
    assert near("settling_time", ["std_link_mark", *map(str, range(99))]) == "there is none like it"
    assert near("zzz", names) == f"it may be {', '.join(names)}"
    assert near("zzz", map(str, range(99))) == near("x", []) == "there is none like it"
