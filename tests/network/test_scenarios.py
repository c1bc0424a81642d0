"""Scenario files: the network they stand for, and one sentence for whatever is wrong in one."""

import importlib
import math
import pickle
from pathlib import Path
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, ScenarioError

GOOD = """
title = "A test"
until = "60 s"
seed = 3

[links.l]
capacity = [[0, "3 Mbit/s"], ["10 s", 2e6]]
delay = "25 ms"
buffer = "100 packets"
packet = "500 B"
initial = { q = "5 ms" }

[flows.a]
law = "LDCC"
params = { w = "10 kbit/s", eta = 0.5 }
route = ["l"]
start = [0, "20 s"]
stop = ["10 s", 30]
access_delay = "1 ms"
return_delay = "2 ms"
initial = { x = "0.1 Mbit/s" }

[flows.b]
law = "CBR"
route = ["l"]
pattern = { kind = "poisson", mean_rate = "1 Mbit/s", interval = "10 ms" }
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])  # with a byte order mark
def test_a_file_is_the_network_by_hand(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(GOOD, encoding)
    s = fc.Scenario.load(file)
    capacity: Any = [(0, 3e6), (10, 2e6)]
    hand = fc.Network().link(
        "l", fc.DropTail, capacity=capacity, delay=0.025, buffer=4e5, initial={"q": 0.005}
    )
    times: Any = {"start": [0, 20], "stop": [10, 30], "access_delay": 1e-3, "return_delay": 2e-3}
    hand.flow("a", fc.LDCC(w=1e4, eta=0.5), route=["l"], initial={"x": 1e5}, **times)
    pattern = {"kind": "poisson", "mean_rate": 1e6, "interval": 0.01}
    hand.flow("b", fc.CBR, route=["l"], pattern=pattern)
    assert s.net == hand
    assert (s.name, s.title, s.until) == ("x", "A test", 60.0)
    assert (s.seed, s.delays, s.samples, s.losses) == (3, "fifo", 601, "ratio")
    assert pickle.loads(pickle.dumps(s)) == s
    assert "data:image/png" in s._repr_html_()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('until = "60 s"', "", "until is missing; give a time, such as '60 s'"),
        ("seed = 3", "sed = 3", "sed: there is no such key here; did you mean 'seed'"),
        ("seed = 3", 'losses = "rare"', "losses is 'rare'; give 'ratio', 'mean', 'packets'"),
        ("[links.l]", "[links]",
         "links.capacity is .*; give a table, such as .links.capacity. with its keys below"),
        ("[links.l]", "[link.l]", "link: there is no such key here; did you mean 'links'"),
        ('delay = "25 ms"', "dealy = 1",
         "links.l.dealy: there is no such key here; did you mean .*'delay'"),
        ('q = "5 ms"', "p = 1", "links.l.initial: initial of link 'l' names a state 'p'"),
        ("packet = ", "law = ",
         "links.l.law: law of link 'l' is '500 B'; it may be .*DropTail"),
        ('law = "LDCC"', "", "flows.a.law is missing; give the name of a law"),
        ("eta = 0.5", "eta = [0.5]",
         "flows.a.params: LDCC: parameter eta is .0.5.; give a plain number, such as '0.1'"),
        ('route = ["l"]\nstart', 'route = ["m"]\nstart',
         "flows.a.route: route of flow 'a' names link 'm'.*may be l"),
        ('route = ["l"]\nstart', 'route = "l"\nstart',
         r"flows.a.route: route of flow 'a' is 'l'; give the links in order, such as \['l'\]"),
        ('kind = "poisson"', 'kind = "posson"',
         "flows.b.pattern: pattern of flow 'b' is of kind 'posson'; did you mean"),
    ],
)  # fmt: skip
def test_each_error_names_file_key_value_and_remedy(old: str, new: str, message: str) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(ScenarioError, match=rf"^wrong\.toml,? {message}") as caught:
        fc.Scenario.loads(GOOD.replace(old, new), "wrong.toml")
    assert "\n" not in str(caught.value)


def test_no_such_file() -> None:
    says = "^ldcc_fig_5.toml: no such file; did you mean the ready .*ldcc_fig5"
    with pytest.raises(ScenarioError, match=says):
        fc.Scenario.load("ldcc_fig_5.toml")
    with pytest.raises(ScenarioError, match="give a TOML file or a ready scenario"):
        fc.Scenario.load("zzz")
    assert fc.Scenario.load("p1") == fc.scenarios["p1"]
    with pytest.raises(KeyError, match="no ready scenario 'p3'; did you mean"):
        fc.scenarios["p3"]


# A change of each, and a flow, link or law that shows it.
OF_FIGURES: dict[str, dict[str, Any]] = {
    "fast_fig2a": {"rtt": "100 ms"}, "fast_fig2b": {"alpha": "100 packets"},
    "fast_fig2c": {"flows": 3}, "fast_fig3a": {"rtt": 0.2}, "fast_fig3b": {"n": 16},
    "fast_fig3c": {"peak": "50 Mbit/s"}, "delay_aimd_fig1": {"n": 2},
    "delay_aimd_fig2": {"adaptive": False}, "delay_aimd_fig3": {"delta": 0.9},
    "delay_aimd_fig4": {"flows": 5}, "delay_aimd_fig5": {"Delta0": "4 s"},
    "delay_aimd_fig6": {"leave": "60 s"}, "delay_aimd_fig7": {"law": "H-TCP"},
    "delay_aimd_fig8": {"second": 50}, "ecf_fig6": {"kind": "Poisson"},
    "ecf_fig7": {"rtt": "100 ms"}, "ecf_fig8": {"version": "V2"},
    "ldcc_fig12": {"buffer": "30 packets"}, "ldcc_fig13": {"capacity": "2 Mbit/s"},
    "ldcc_fig14": {"law": "NADA"}, "binomial_testbed": {"scheme": "TFRC"},
}  # fmt: skip


@pytest.mark.parametrize("name", OF_FIGURES)
def test_scenarios_of_figures_take_parameters(name: str) -> None:
    s, changes = fc.scenarios[name], OF_FIGURES[name]
    changed = s(**changes, until="9 s")
    assert s.net != changed.net
    assert (changed.until, changed.name, changed.parameters) == (9.0, name, s.parameters)
    assert fc.Scenario.load(name, changes).net == changed.net
    assert s() == s
    assert pickle.loads(pickle.dumps(changed)) == changed


def test_parameters_of_scenarios_that_there_are_not() -> None:
    fig7 = fc.scenarios["ecf_fig7"]
    assert fig7(rtt="60 ms") == fig7
    assert fig7(rtt="100 ms").net.base_rtt("s1") == pytest.approx(0.1)
    with pytest.raises(InvalidInput, match="'ecf_fig7' has no parameter 'rrt'; did you mean 'rtt'"):
        fig7(rrt=1)
    with pytest.raises(InvalidInput, match="kind is 'TRFC'; did you mean 'TFRC'"):
        fig7(kind="TRFC")
    with pytest.raises(InvalidInput, match="'p1' has no parameters; .*Scenario.load"):
        fc.scenarios["p1"](rtt=1)


def test_there_are_all_the_ready_ones() -> None:
    figures = {f"ldcc_fig{n}" for n in (5, 6, 7, 10, 11)}
    literature = {"tcp_red", "tcp_pi", "low_paganini", "johari_tan", "paganini", "scalable_tcp"}
    assert {*fc.scenarios.files} == figures | literature | {"p1", "p2", "tour"}
    assert {*fc.scenarios} == {*fc.scenarios.files, *OF_FIGURES}
    assert len(fc.scenarios) == 14 + len(OF_FIGURES)
    for name, s in fc.scenarios.items():
        assert s.name == name
        assert s.title
        assert s.ref


def test_ready_scenarios_say_what_the_paper_says() -> None:
    """Section V of the LDCC paper: delays in words follow from what the files give in packets."""
    fig5, fig6, fig7 = (fc.scenarios[f"ldcc_fig{n}"].net for n in (5, 6, 7))
    link = fig5.links["bottleneck"]
    assert link.buffer / link.capacity == pytest.approx(0.3, rel=0.02)  # "equivalent to ... 300 ms"
    short = fig6.links["bottleneck"]
    for name in ("flow1", "flow2", "flow3"):
        longest = fig6.propagation_delay(name) + short.buffer / short.capacity
        assert longest < fig6.flows[name].law.parameter("T") == 0.1  # "smaller than 100 ms"
    assert fig5.flows["flow3"].intervals == ((100.0, 260.0),)
    assert fig5.flows["udp"].intervals == ((-math.inf, math.inf),)
    delays = [fig7.propagation_delay(f) for f in fig7.flow_names]
    assert max(delays) == pytest.approx(3 * min(delays))  # "three times the minimum one"
    for capacity in ("1 Mbit/s", "6 Mbit/s"):
        wide = fig7.with_link("bottleneck", capacity=capacity).links["bottleneck"]
        assert wide.buffer / wide.capacity == pytest.approx(0.5)  # "a max queueing delay of 0.5s"
    fig11 = fc.scenarios["ldcc_fig11"].net
    assert [k.buffer / k.capacity for k in fig11.links.values()] == pytest.approx([0.05, 0.05])
    assert fig11.flows["flow1"].route == ("link1", "link2")


def test_p1_and_p2_differ_in_their_delays_alone() -> None:
    p1, p2 = fc.scenarios["p1"], fc.scenarios["p2"]
    assert p1.net == p2.net
    assert (p1.delays, p2.delays) == ("frozen", "fifo")
    assert p1.net.base_rtt("a") == pytest.approx(0.05)
    assert [f.initial["x"] for f in p1.net.flows.values()] == [1e5, 2e5, 3e5]


def test_simulate_hands_over_what_the_file_says(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []
    room = importlib.import_module("fluidcc.simulation.simulate")
    monkeypatch.setattr(room, "simulate", lambda net, **given: calls.append({"net": net, **given}))
    s = fc.Scenario.loads(GOOD.replace("seed = 3", 'seed = 3\ndelays = "frozen"\nlosses = "mean"'))
    s.simulate()
    s.simulate(until=5, t_eval=[0, 1], rtol=1e-9)
    same = {"net": s.net, "seed": 3, "delays": "frozen", "losses": "mean"}
    assert calls[0] == {**same, "until": 60.0, "samples": 601}
    assert calls[1] == {**same, "until": 5, "t_eval": [0, 1], "rtol": 1e-9}


def test_a_file_says_when_losses_are_heard() -> None:
    text = """
    until = "20 s"
    seed = 2
    losses = "random"
    [links.l]
    capacity = "10 Mbit/s"
    buffer = "50 packets"
    [flows.a]
    law = "AIMD"
    route = ["l"]
    return_delay = "40 ms"
    count = 3
    """
    s = fc.Scenario.loads(text)
    run = s.simulate()
    by_hand = fc.simulate(s.net, 20, losses="random", seed=2)
    assert run.attrs["losses"] == "random"
    assert (run.rate == by_hand.rate).all()
    ratio = fc.Scenario.loads(text, changes={"losses": "ratio"}).simulate()
    assert run.rate.std("flow").max() > 100 * ratio.rate.std("flow").max()  # all are cut at once
    seeds = {"seed": [2, 3]}
    swept = fc.sweep(s, seeds, "mean_rate")
    assert swept.equals(fc.sweep(s.net, seeds, "mean_rate", until=20, losses="random"))
    assert swept.mean_rate[0, 0] != swept.mean_rate[1, 0]


def test_changes_replace_what_the_file_says() -> None:
    changes = {
        "flows.a.params.eta": 0.25,
        "flows.a.initial.x": "0.2 Mbit/s",
        "links.l.buffer": "9 packets",
        "seed": 8,
    }
    s = fc.Scenario.loads(GOOD, changes=changes)
    assert s.net.flows["a"].law == fc.LDCC(w=1e4, eta=0.25)
    assert s.net.flows["a"].initial["x"] == 2e5
    assert s.seed == 8
    assert s.net.links["l"].buffer == 9 * 4000  # its packets are of 500 bytes
    changed = fc.Scenario.load("ldcc_fig5", {"links.bottleneck.initial.q": 0.1})
    assert changed.net.links["bottleneck"].initial["q"] == 0.1
    assert fc.Scenario.load("ldcc_fig5") == fc.scenarios["ldcc_fig5"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"flows.c.start": 3},
         "scenario.toml, flows.c.start: there is no flow 'c' to change; it has a, b"),
        ({"flows.a.law.name": 3}, "flows.a.law.name: flows.a.law is 'LDCC', which has no parts"),
        ({"flows.a.strat": 3}, "flows.a.strat: there is no such key here; did you mean 'start'"),
        ({"until": "soon"}, "until"),
    ],
)  # fmt: skip
def test_changes_that_cannot_be_made(changes: dict[str, object], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        fc.Scenario.loads(GOOD, changes=changes)
