"""Identical flows: found by value, worked out once, and told as if each had been worked out by
itself.
"""

from __future__ import annotations

import importlib
import pickle
from typing import Any

import numpy as np
import pytest
from sympy import symbols

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, NoEquilibrium
from fluidcc.network.network import apart, collapsed, identical, in_pairs
from fluidcc.numerics.steady.follow import Search
from fluidcc.symbols import e

LINK: dict[str, Any] = {"capacity": "6 Mbit/s", "buffer": "100 packets"}


def _crowd(law: Any = fc.LDCC, /, n: int = 3, **link: Any) -> fc.Network:
    """Flows of two kinds by turns."""
    net = fc.Network().link("l", link.pop("law", fc.DropTail), **{**LINK, "delay": 0.02, **link})
    net.link("m", fc.DropTail, capacity="9 Mbit/s", delay=0.01)
    for i in range(n):
        net.flow(f"a{i}", law, route=["l", "m"]).flow(f"b{i}", law, route=["l"], access_delay=0.03)
    return net


def _one_by_one(monkeypatch: pytest.MonkeyPatch, act: Any) -> Any:
    """What comes of it where no flow stands for another."""
    with monkeypatch.context() as patch:
        patch.setattr(importlib.import_module("fluidcc.equilibria.equilibrium"), "collapsed", apart)
        return act()


def test_kinds_are_found_by_value() -> None:
    net = fc.Network().link("l", fc.DropTail, capacity=1e7, delay=0.01)
    same: list[dict[str, Any]] = [
        {},
        {"access_delay": "0 ms"},
        {"law": fc.LDCC(beta="0.1")},
        {"packet": 8000.0},
    ]
    others: list[dict[str, Any]] = [
        {"law": fc.LDCC(beta=0.2)}, {"access_delay": 0.01}, {"return_delay": 0.02},
        {"packet": 4000}, {"start": 1}, {"initial": {"x": 5e5}}, {"law": fc.Reno},
    ]  # fmt: skip
    for i, given in enumerate([*same, *others]):
        net.flow(f"f{i}", **{"law": fc.LDCC, "route": ["l"], **given})
    assert identical(net) == (
        ("f0", "f1", "f2", "f3"),
        *((f"f{4 + i}",) for i in range(len(others))),
    )


def test_one_stands_for_all_of_its_kind() -> None:
    net = _crowd(n=3)
    few, pairs = collapsed(net), in_pairs(net)
    assert (few.net.flow_names, few.many, few.where.tolist()) == (
        ("a0", "b0"),
        (3, 3),
        [0, 1, 0, 1, 0, 1],
    )
    assert (pairs.net.flow_names, pairs.many) == (("a0", "a1", "b0", "b1"), (1, 2, 1, 2))
    assert pairs.where.tolist() == [0, 2, 1, 3, 1, 3]
    alone = _crowd(n=1)
    assert collapsed(alone).net is alone


def test_what_was_found_is_forgotten_when_the_network_grows() -> None:
    net = _crowd(n=2)
    before = fc.equilibrium(net)
    net.flow("a9", fc.LDCC, route=["l", "m"])
    assert identical(net)[0] == ("a0", "a1", "a9")
    after = fc.equilibrium(net)
    assert list(after.rate["flow"].values) == list(net.flows)
    assert float(after.queueing_delay[0]) > float(before.queueing_delay[0])
    assert fc.equilibrium(net.with_flow("a1", access_delay=0.5)).rtt.sel(flow="a1") > 0.5
    assert float(after.rate.sum()) == pytest.approx(6e6, rel=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the equilibrium is one of a continuum")
@pytest.mark.parametrize("link", [fc.DropTail, fc.RED, fc.DualLink], ids=lambda link: link.name)
@pytest.mark.parametrize(
    "law", [fc.LDCC, fc.Reno, fc.StaticFAST, fc.FAST, fc.NADA, fc.PrimalDual], ids=lambda k: k.name
)
def test_equilibria_are_those_of_every_flow_by_itself(
    law: Any, link: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = _crowd(law, n=4, law=link, **({"buffer": None} if link.queue is None else {}))

    def found() -> Any:
        try:
            return fc.equilibrium(net)
        except NoEquilibrium as reason:
            return str(reason)

    ours, theirs = found(), _one_by_one(monkeypatch, found)
    if isinstance(theirs, str):
        assert ours == theirs
        return
    for name in (
        "rate",
        "one_way_delay",
        "rtt",
        "loss",
        "queueing_delay",
        "price",
        "arrival_rate",
        "admitted_rate",
    ):
        np.testing.assert_allclose(ours.array(name), theirs.array(name), rtol=1e-12, atol=1e-15)
    assert (ours.free, list(ours.states)) == (theirs.free, list(theirs.states))
    for name, states in theirs.states.items():
        assert ours.states[name] == pytest.approx(states, rel=1e-12, abs=1e-15)


def test_states_of_identical_flows_are_each_their_own() -> None:
    states: Any = fc.equilibrium(_crowd(n=2)).states
    assert states["a0"] == states["a1"] == dict(states)["a1"]
    assert len(states) == len([*states]) == len(pickle.loads(pickle.dumps(states))) == 6
    states["a0"]["x"] = 0.0
    assert states["a1"]["x"] > 0


def test_verdicts_are_those_of_every_flow_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    net = _crowd(n=3)
    ours, theirs = fc.stability(net), _one_by_one(monkeypatch, lambda: fc.stability(net))
    assert repr(ours) == repr(theirs)
    assert ours.closed.states == theirs.closed.states
    assert (
        ours.closed.classes
        == theirs.closed.classes
        == {"a0 (x3)": ("a0", "a1", "a2"), "b0 (x3)": ("b0", "b1", "b2")}
    )
    np.testing.assert_allclose(ours.rightmost_roots, theirs.rightmost_roots, rtol=1e-9)
    assert ours.of_flow("b2").delay == pytest.approx(theirs.of_flow("b2").delay, rel=1e-9)
    some, each = ours.sensitivities.per_relative, theirs.sensitivities.per_relative
    hair = (
        1e-12 * np.abs(each).max()
    )  # what does not depend on a parameter may do so by its rounding
    np.testing.assert_allclose(some, each, rtol=1e-6, atol=hair)


def test_the_number_of_identical_flows_makes_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    given = Search.__init__

    def counted(self: Search, shape: Any) -> None:
        sizes.append((shape.flows, shape.unknowns))
        given(self, shape)

    monkeypatch.setattr(Search, "__init__", counted)
    work, systems = [], []
    for n in (3, 300):
        net = _crowd(n=n, capacity=f"{2 * n} Mbit/s", buffer=None).with_link(
            "m", capacity=f"{3 * n} Mbit/s"
        )
        report = fc.stability(net)
        fc.equilibrium(net)
        work.append(tuple(sizes))
        systems.append((report.closed.n_states, len(report.point.classes)))
        sizes.clear()
    assert work[0] == work[1] == ((2, 8), (2, 8), (4, 12))
    assert systems[0] == systems[1]


def test_an_equilibrium_that_tells_identical_flows_apart_parts_them() -> None:
    net = fc.dumbbell([fc.LDCC] * 4, LINK, rtt="50 ms")
    rest = fc.equilibrium(net)
    states = {name: dict(of) for name, of in rest.states.items()}
    rates = rest.array("rate").copy()
    for i, share in ((1, 1.2), (3, 0.8)):
        rates[i] *= share
        states[f"flow{i + 1}"]["x"] = rates[i]
    classes = fc.linearize(net, at=rest.changed(states=states, rate=rates)).classes
    assert list(classes.values()) == [("flow1", "flow3"), ("flow2",), ("flow4",)]


def test_flows_of_one_law_that_start_apart_are_one_class() -> None:
    """They are searched by themselves, as where they end may depend on where they start; here it
    does not.
    """
    net = fc.Network().link("l", fc.DropTail, **LINK, delay=0.025)
    for i in range(3):
        net.flow(f"f{i}", fc.LDCC, route=["l"], initial={"x": (1 + i) * 1e5})
    assert len(identical(net)) == 3
    assert list(fc.linearize(net).classes.values()) == [("f0", "f1", "f2")]


def test_what_identical_flows_share_in_any_way_is_free() -> None:
    x, k, T = symbols("x k T", positive=True)
    law = fc.Source(
        "Toward", flow={x: k * x * (T - e)}, out={"rate": x}, params={k: 2.0, T: 0.15},
        units={x: "bit/s", k: "1/s^2", T: "s"}, lower={x: 0}, initial={x: 1e6},
    )  # fmt: skip
    with pytest.warns(
        FluidccWarning, match="continuum: nothing determines flow1.x, flow2.x, flow3.x"
    ):
        rest = fc.equilibrium(fc.dumbbell([law] * 3, {"capacity": 3e6}, rtt="50 ms"))
    assert rest.free == ("flow1.x", "flow2.x", "flow3.x")


def test_a_reason_names_every_flow() -> None:
    with pytest.raises(NoEquilibrium, match="'flow1' .*'flow2' .*'flow3' "):
        fc.equilibrium(
            fc.dumbbell([fc.CBR(rate="2 Mbit/s")] * 3, {"capacity": "3 Mbit/s"}, rtt="50 ms")
        )
