"""Networks as tables: what is shown is what was given, in every form in which it can be had."""

from typing import Any

import pytest
from sympy import symbols

import fluidcc as fc
from fluidcc.base.errors import FluidccError, UnknownName
from fluidcc.explorer.board import Board

TWO = fc.dumbbell([fc.LDCC] * 2, {"capacity": "3 Mbit/s", "buffer": "0.5 s"}, rtt="50 ms")


@pytest.mark.parametrize("name", list(fc.scenarios.files))
def test_a_board_its_file_and_its_code_are_the_network_it_was_made_of(name: str) -> None:
    board, scenario = Board.of(name), fc.scenarios[name]
    assert board.network() == scenario.net
    assert board.until == scenario.until
    assert board.table["delays"] == scenario.delays
    again = fc.Scenario.loads(board.toml())
    assert (again.net, again.until, again.delays) == (
        board.network(), board.until, board.table["delays"]
    )  # fmt: skip
    code = board.python().split("result =")[0]
    made: dict[str, Any] = {}
    exec(code, made)
    assert made["net"] == board.network()


def test_what_else_a_scenario_says_of_its_run_is_kept() -> None:
    net = fc.dumbbell([fc.AIMD] * 2, {"capacity": "3 Mbit/s", "buffer": "0.1 s"}, rtt="50 ms")
    board = Board.of(fc.Scenario("own", net, 3.0, seed=5, losses="random"))
    again = fc.Scenario.loads(board.toml())
    assert (again.net, again.seed, again.losses) == (net, 5, "random")
    assert "fc.simulate(net, 3.0, seed=5, losses='random')" in board.python()
    assert "fc.simulate(net, 30.0)" in Board.of(net).python()


def test_what_a_slider_sets_is_in_the_network_and_in_its_file() -> None:
    board = Board.of(TWO)
    knobs = {knob.place: knob for knob in board.knobs("flows", "flow1")}
    knobs |= {knob.place: knob for knob in board.knobs("links", "bottleneck")}
    for place, value in (
        (("flows", "flow1", "params", "w"), 0.03),
        (("flows", "flow1", "params", "beta"), 0.25),
        (("flows", "flow1", "return_delay"), 40),
        (("links", "bottleneck", "capacity"), 4),
        (("links", "bottleneck", "buffer"), 300),
    ):
        board.put(place, board.written(knobs[place], value))
    net = board.network()
    law = {s.name: v for s, v in net.flows["flow1"].law.params.items()}
    assert (law["w"], law["beta"]) == (30e3, 0.25)
    assert net.return_delay("flow1") == pytest.approx(0.04)
    assert net.links["bottleneck"].capacity == 4e6
    assert net.links["bottleneck"].buffer == pytest.approx(0.3 * 4e6)
    assert fc.Scenario.loads(board.toml()).net == net


@pytest.mark.parametrize("kind", ["links", "flows"])
def test_every_law_has_its_parameters_as_sliders(kind: str) -> None:
    board = Board.of(TWO)
    (name, *_) = board.table[kind]
    for law in board.laws(kind):
        board.put_law(kind, name, law)
        knobs = {k.place[-1]: k for k in board.knobs(kind, name) if k.place[2] == "params"}
        params = {s.name: v for s, v in board.law(kind, name).params.items()}
        assert {key: knob.value for key, knob in knobs.items()} == params
        for knob in knobs.values():
            low, high = knob.range
            assert low <= knob.value / knob.size <= high
            assert low < high
        assert board.network()


def test_flows_come_and_go() -> None:
    board = Board.of(TWO)
    assert board.add_flow() == "flow3"
    assert board.network().flow_names == ("flow1", "flow2", "flow3")
    for _ in range(5):
        board.drop_flow()
    assert board.network().flow_names == ("flow1",)


def test_flows_that_are_alike_are_one_card_with_their_number() -> None:
    text = """until = 5
    [links.bottleneck]
    capacity = "30 Mbit/s"
    buffer = "100 packets"
    law = "PI2"
    [flows.tcp]
    law = "Reno"
    route = ["bottleneck"]
    count = 3
    """
    scenario = fc.Scenario.loads(text)
    board = Board.of(scenario)
    assert [*board.table["flows"]] == ["tcp"]
    assert board.copies == ["tcp_2", "tcp_3"]
    for count in (3, 5, 1):
        board.put(("flows", "tcp", "count"), count)
        net, code = board.network(), dict[str, Any]()
        assert len(net.flows) == count
        assert fc.Scenario.loads(board.toml()).net == net
        exec(board.python().split("result =")[0], code)
        assert code["net"] == net
    board.put(("flows", "tcp", "count"), 4)
    # An axis of a chart moves all of them, or there is none.
    axes = {knob.place[-1]: knob.axis for knob in board.knobs("flows", "tcp")}
    assert axes["access_delay"] == "flows.access_delay"
    assert (
        fc.sweep(board.network(), {axes["access_delay"]: [0.01, 0.02]}, "stable").stable.size == 2
    )
    assert board.add_flow() == "flow2"
    assert len(board.network().flows) == 5
    assert {knob.axis for knob in board.knobs("flows", "tcp")} == {""}
    board.put(("flows", "tcp_2"), board.table["flows"].pop("flow2"))
    with pytest.raises(FluidccError, match="tcp_2' is taken"):
        board.network()


def test_a_law_of_ones_own_can_be_explored() -> None:
    x, w, k = symbols("x w k", positive=True)
    own = fc.Source(
        "Own", flow={x: k * (w - x)}, out={"rate": x}, params={w: 2e6, k: 1.0}, initial={x: 1e5},
        units={x: "bit/s", w: "bit/s", k: "1/s"}, lower={x: 0},
    )  # fmt: skip
    net = fc.dumbbell({"a": own, "b": fc.LDCC(beta=0.3)}, {"capacity": "3 Mbit/s"}, rtt="50 ms")
    board = Board.of(net)
    assert board.network() == net
    assert board.table["flows"]["b"]["params"] == {"beta": 0.3}
    assert "Own" in board.laws("flows")
    assert "Own" not in board.laws("links")
    assert "# Own: laws of your own" in board.python()


def test_what_cannot_be_meant_is_said() -> None:
    board = Board.of(TWO)
    with pytest.raises(UnknownName, match="LDC"):
        board.put_law("flows", "flow1", "LDC")
    board.put(("until",), -1.0)
    with pytest.raises(FluidccError, match="until is -1 s"):
        _ = board.until
    with pytest.raises(FluidccError, match="no_such_scenario"):
        Board.of("no_such_scenario")
