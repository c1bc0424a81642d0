"""Mistakes a new user makes, each answered by one sentence: what is wrong, its value, and what
would be right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from sympy import symbols

import fluidcc as fc
from fluidcc.base import errors

x, g, z = symbols("x g z", positive=True)


def link(**changes: Any) -> fc.Network:
    return fc.Network().link(
        "bottleneck", fc.DropTail, **{"capacity": "3 Mbit/s", "delay": "25 ms", **changes}
    )


def net(**changes: Any) -> fc.Network:
    return link().flow("a", fc.LDCC, **{"route": ["bottleneck"], **changes})


def law(**changes: Any) -> fc.Source:
    given = {
        "flow": {x: g * x},
        "out": {"rate": x},
        "params": {g: 1},
        "units": {x: "bit/s", g: "1/s"},
    }
    return fc.Source(name="Mine", **{**given, **changes})


SCENARIO = (
    'until = "9 s"\n[links.l]\ncapacity = "3 Mbit/s"\n[flows.a]\nlaw = "LDCC"\nroute = ["l"]\n'
)

# mistake: what is done, the class of the error, then the object, the value and the remedy as the
# sentence has them
MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str, str, str]] = {
    "a route over a link that is not there": (
        lambda: net(route=["botleneck"]),
        errors.UnknownName, "route of flow 'a'", "'botleneck'", "did you mean 'bottleneck'"),
    "a network that is not one": (
        lambda: fc.compile(None),  # type: ignore[arg-type]
        errors.InvalidInput, "the network is NoneType", "'None'", "give a Network"),
    "no flows to rest": (
        lambda: fc.equilibrium(link()),
        errors.InvalidInput, "the network", "has no flows", "add one with .flow(name, law, "
                                                            "route=[...])"),
    "a time of an equilibrium in words": (
        lambda: fc.equilibrium(net(), at="late"),
        errors.InvalidInput, "at is", "'late'", "give a time in s, such as"),
    "sample times in words": (
        lambda: fc.simulate(net(), 1.0, t_eval="often"),
        errors.InvalidInput, "t_eval is", "'often'", "give a list of times in seconds"),
    "frozen delays as a list": (
        lambda: fc.simulate(net(), 1.0, delays="frozen", frozen_at=[0.1]),  # type: ignore[arg-type]
        errors.InvalidInput, "frozen_at is", "[0.1]", "give the queueing delay of each link by "
                                                      "name"),
    "a negative first step": (
        lambda: fc.simulate(net(), 1.0, first_step=-1.0),
        errors.InvalidInput, "first_step is", "-1.0", "give a positive time in seconds"),
    "a run to restart by its file's name": (
        lambda: fc.simulate(net(), 1.0, restart="run.nc"),  # type: ignore[arg-type]
        errors.InvalidInput, "restart is str", "without the variable final_state",
        "give a result of simulate()"),
    "a scenario that is a number": (
        lambda: fc.Scenario.load(3),  # type: ignore[arg-type]
        errors.ScenarioError, "the scenario is", "3", "give the path of a TOML file"),
    "a route that is one name": (
        lambda: net(route="bottleneck"),
        errors.InvalidInput, "route of flow 'a'", "'bottleneck'", "give the links in order, such "
            "as ['bottleneck']"),
    "a negative capacity": (
        lambda: link(capacity="-3 Mbit/s"),
        errors.InvalidInput, "capacity of link 'bottleneck'", "'-3 Mbit/s'",
        "give a positive number"),
    "a delay that is not a number": (
        lambda: link(delay=math.nan),
        errors.InvalidInput, "delay of link 'bottleneck'", "nan", "give a finite number: a time "
            "in s, such as '25 ms'"),
    "a unit of something else": (
        lambda: link(capacity="25 ms"),
        errors.UnitsError, "capacity of link 'bottleneck'", "'25 ms', a time",
        "give a rate in bit/s, such as"),
    "a unit that is none": (
        lambda: link(capacity="3 mbps"),
        errors.UnitsError, "capacity of link 'bottleneck'", "'3 mbps', where 'mbps' is no unit",
        "give a rate in"),
    "a parameter that the law has not": (
        lambda: fc.LDCC(bta=0.2),
        errors.LawError, "LDCC", "no parameter 'bta'", "did you mean beta or eta"),
    "a parameter of the wrong sign": (
        lambda: fc.LDCC(beta=-0.2),
        errors.LawError, "LDCC: parameter beta", "-0.2", "must be positive"),
    "a parameter in the wrong unit": (
        lambda: fc.LDCC(T="100 Mbit"),
        errors.LawError, "LDCC: parameter T", "'100 Mbit', an amount of data",
        "give a time in s, such as '25 ms'"),
    "a key that a scenario has not": (
        lambda: fc.Scenario.loads(SCENARIO.replace("capacity", "capcity"), "mine.toml"),
        errors.ScenarioError, "mine.toml", "links.l.capcity", "did you mean 'capacity'"),
    "a law that is not there": (
        lambda: fc.Scenario.loads(SCENARIO.replace("LDCC", "LDC"), "mine.toml"),
        errors.ScenarioError, "mine.toml, flows.a.law", "'LDC'", "did you mean 'LDCC'"),
    "no flows": (
        lambda: fc.simulate(link(), until=9),
        errors.InvalidInput, "the network", "has no flows", "add one with .flow(name, law, "
                                                            "route=[...])"),
    "a tolerance of zero": (
        lambda: fc.simulate(net(), until=9, rtol=0),
        errors.InvalidInput, "rtol", "is 0", "give a number between 1e-13 and 0.1"),
    "a tolerance as text": (
        lambda: fc.simulate(net(), until=9, rtol="1e-6"),  # type: ignore[arg-type]
        errors.InvalidInput, "rtol", "is '1e-6'", "give a number"),
    "a scenario for a network": (
        lambda: fc.simulate(fc.scenarios["p1"], until=9),  # type: ignore[arg-type]
        errors.InvalidInput, "the network", "is Scenario", "give a Network, its .net"),
    "nothing for a network": (
        lambda: fc.equilibrium(None),  # type: ignore[arg-type]
        errors.InvalidInput, "the network", "is NoneType", "give a Network, such as "
                                                           "fluidcc.Network()"),
    "an end in an unknown unit": (
        lambda: fc.simulate(net(), until="9 m"),
        errors.UnitsError, "until", "'9 m', where 'm' is no unit", "give a time in s"),
    "an end before the start": (
        lambda: net(start=10, stop="5 s"),
        errors.InvalidInput, "stop of flow 'a'", "'5 s'", "it must be after its start, 10 s"),
    "no delay anywhere": (
        lambda: fc.simulate(link(delay=0).flow("a", fc.LDCC, route=["bottleneck"]), until=9),
        errors.InvalidInput, "flow 'a'", "no propagation delay", "give a link delay, access_delay "
            "or return_delay"),
    "a state that the law has not": (
        lambda: net(initial={"rate": 1e6}),
        errors.UnknownName, "initial of flow 'a'", "'rate', which LDCC does not have",
        "did you mean 'x'"),
    "a link's law for a flow": (
        lambda: link().flow("a", fc.DropTail, route=["bottleneck"]),  # type: ignore[arg-type]
        errors.InvalidInput, "law of flow 'a'", "link DropTail()", "give a source law, such as "
            "fluidcc.LDCC"),
    "the same name twice": (
        lambda: net().flow("a", fc.LDCC, route=["bottleneck"]),
        errors.InvalidInput, "name of flow 'a'", "taken", "give another, or change that flow by "
                                                          "with_flow()"),
    "a symbol that nothing declares": (
        lambda: law(flow={x: g * x - z}),
        errors.LawError, "Mine", "z in the flow of x", "declare it in params and units"),
    "a flow of the wrong dimension": (
        lambda: law(units={x: "bit/s", g: "s"}),
        errors.LawError, "Mine: the flow of x", "has unit bit, wanted bit/s^2",
        "correct it, or a unit in units"),
    "a source without a rate": (
        lambda: law(out={}),
        errors.LawError, "Mine", "needs its sending rate", "give out={'rate': ...}"),
    "no equilibrium": (
        lambda: fc.equilibrium(net().with_link("bottleneck", capacity="0.15 Mbit/s")),
        errors.NoEquilibrium, "link 'bottleneck'", "'a' never falls below w/beta = 200000 bit/s",
        "give it a finite buffer, more capacity or fewer flows"),
    "no room for the elastic flows": (
        lambda: fc.num.solve(net().flow("udp", fc.CBR(rate="4 Mbit/s"), route=["bottleneck"])),
        errors.Infeasible, "link 'bottleneck'", "send 4e+06 bit/s", "lower their rates or raise "
            "the capacity"),
    "a picture of a variable that is not there": (
        lambda: fc.plot.timeseries(fc.simulate(net(), until=1), "delay"),
        errors.UnknownName, "the result", "no variable 'delay'",
        "it has rate, one_way_delay, loss"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_sentence_with_object_value_and_remedy(mistake: str) -> None:
    do, kind, *parts = MISTAKES[mistake]
    with pytest.raises(kind) as caught:
        do()
    text = str(caught.value)
    assert isinstance(caught.value, errors.FluidccError)
    assert isinstance(caught.value, ValueError | ArithmeticError)
    for part in parts:
        assert part in text
    assert "\n" not in text
    assert not re.search(r"[.!] [A-Z]", text)  # one sentence
    assert len(text) < 320
