"""Identical flows: found by value, worked out once, and told each by itself."""

import pickle
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import NoEquilibrium
from fluidcc.network.network import identical
from fluidcc.network.parameters import Parameters
from fluidcc.network.wired import Wired
from fluidcc.numerics.steady.follow import Search
from fluidcc.symbols import c, e_b, packet, plain, q_max

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
        patch.setattr(Wired, "_kinds", lambda table: tuple((name,) for name in table.net.flows))
        return act()


def test_kinds_are_found_by_value() -> None:
    net = fc.Network().link("l", fc.DropTail, capacity=1e7, delay=0.01)
    given: list[dict[str, Any]] = [
        {}, {"access_delay": "0 ms"}, {"law": fc.LDCC(beta="0.1")}, {"packet": 8000.0},  # the same
        {"law": fc.LDCC(beta=0.2)}, {"access_delay": 0.01}, {"return_delay": 0.02},
        {"packet": 4000}, {"start": 1}, {"initial": {"x": 5e5}}, {"law": fc.StaticReno},
    ]  # fmt: skip
    for i, what in enumerate(given):
        net.flow(f"f{i}", **{"law": fc.LDCC, "route": ["l"], **what})
    assert identical(net) == (("f0", "f1", "f2", "f3"), *((f"f{i}",) for i in range(4, 11)))


def test_one_stands_for_all_of_its_kind() -> None:
    few = Wired.of(_crowd(n=3))
    pairs, every = few.in_pairs(), few.apart()
    assert ([f.name for f in few.flows], few.many) == (["a0", "b0"], (3, 3))
    assert few.row.tolist() == [0, 1, 0, 1, 0, 1]
    assert ([f.name for f in pairs.flows], pairs.many) == (["a0", "a1", "b0", "b1"], (1, 2, 1, 2))
    assert pairs.row.tolist() == [0, 2, 1, 3, 1, 3]
    assert every.many == (1,) * 6
    assert (few.routes, every.routes[:3]) == (((0, 1), (0,)), ((0, 1), (0,), (0, 1)))


def test_what_is_set_of_some_parts_them() -> None:
    given = Parameters(_crowd(n=3), 2)
    beta = np.array([0.1, 0.2])
    for name in ("a0", "a1"):
        given.set["flow", name, "parameter", "beta"] = beta.copy()
    given.set["link", "l", "argument", "capacity"] = 5e6
    wired = Wired(given)
    assert wired.kinds == (("a0", "a1"), ("b0", "b1", "b2"), ("a2",))
    known, link = wired.flow(0, fc.LDCC), wired.link(0)
    assert next(v for s, v in known.items() if plain(s) == "beta").tolist() == [0.1, 0.2]
    assert (known[e_b], known[packet]) == (pytest.approx(0.03), 8000.0)
    assert (link[c], link[q_max]) == (5e6, 8e5 / 5e6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the equilibrium is one of a continuum")
@pytest.mark.parametrize(
    ("law", "link"),
    [
        *((law, fc.DropTail) for law in (fc.LDCC, fc.FAST, fc.NADA)),
        *((law, fc.RED) for law in (fc.StaticReno, fc.StaticFAST)),
        (fc.PrimalDual, fc.DualLink),
    ],
    ids=lambda law: law.name,
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
    for name in ("rate", "rtt", "loss", "queueing_delay", "price", "admitted_rate"):
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


def test_the_number_of_identical_flows_makes_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    given = Search.__init__

    def counted(self: Search, shape: Any) -> None:
        sizes.append((shape.flows, shape.unknowns))
        given(self, shape)

    monkeypatch.setattr(Search, "__init__", counted)
    work, systems = [], []
    for n in (3, 300):
        net = _crowd(n=n, capacity=2e6 * n, buffer=None).with_link("m", capacity=3e6 * n)
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
    for i, share in ((1, 1.001), (3, 0.999)):
        rates[i] *= share
        states[f"flow{i + 1}"]["x"] = rates[i]
    classes = fc.linearize(net, at=rest.changed(states=states, rate=rates)).classes
    assert list(classes.values()) == [("flow1", "flow3"), ("flow2",), ("flow4",)]


def test_flows_of_one_law_that_start_apart_are_one_class() -> None:
    """They are searched by themselves, as where they end may depend on where they start."""
    flows = {f"f{i}": {"law": fc.LDCC, "initial": {"x": (1 + i) * 1e5}} for i in range(3)}
    net = fc.dumbbell(flows, {**LINK, "delay": 0.025})
    assert len(identical(net)) == 3
    assert list(fc.linearize(net).classes.values()) == [("f0", "f1", "f2")]
