"""A network at one time: who is on, how fast the links are, which flows have a constant rate."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import Unsupported
from fluidcc.equilibria.assembly import assemble, capacity_at, constant_rate, is_on


def net() -> fc.Network:
    out = fc.Network().link(
        "l", fc.DropTail, capacity=[(0, 4e6), (10, 2e6)], delay=0.02, buffer=1e6
    )
    out.link("m", fc.DropTail, capacity=9e6)
    out.flow("a", fc.LDCC, route=["l", "m"], start=[1, 5], stop=[2, None])
    return out.flow("b", fc.CBR, route=["l"], pattern=[(0, 1e6), (3, 2e6)]).flow(
        "c", fc.Reno, route=["m"], stop=7
    )


@pytest.mark.parametrize(
    ("at", "on"), [(0, False), (1, True), (2, False), (5, True), (math.inf, True)]
)
def test_periods_include_their_start(at: float, on: bool) -> None:
    assert is_on(net().flows["a"], at) == on


def test_flows_that_stop_are_off_in_the_end() -> None:
    assert is_on(net().flows["c"], 0)
    assert not is_on(net().flows["c"], math.inf)


@pytest.mark.parametrize(("at", "capacity"), [(0, 4e6), (9.9, 4e6), (10, 2e6), (math.inf, 2e6)])
def test_capacity_changes_at_its_time(at: float, capacity: float) -> None:
    assert capacity_at(net().links["l"], at) == capacity


def test_constant_rates() -> None:
    flows = net().flows
    assert [constant_rate(flows["b"], at) for at in (0, 3, math.inf)] == [1e6, 2e6, 2e6]
    assert constant_rate(flows["a"], 0) is None
    with pytest.raises(Unsupported, match="flow 'd' sends at random"):
        constant_rate(net().flow("d", fc.OnOff, route=["l"]).flows["d"], 0)


def test_assembly() -> None:
    system = assemble(net(), 0.0)
    assert system.shape.routes == ((0, 1), (0,), (1,))
    assert system.shape.law[:2] == (-1, -1)  # a is off at 0, b has a constant rate
    np.testing.assert_array_equal(system.numbers.base, [[0.02, 0.02, 0]])
    np.testing.assert_array_equal(system.numbers.q_max, [[0.25, np.inf]])
    np.testing.assert_array_equal(system.numbers.rate, [[0, 1e6, 0]])
    np.testing.assert_array_equal(
        system.numbers.lower[0, system.states[0][2]], [1, -np.inf][: len(system.states[0][2])]
    )
