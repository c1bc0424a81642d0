"""A network at one time: who is on, how fast the links are, which flows have a constant rate."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import Unsupported
from fluidcc.equilibria.assembly import assemble, capacity_at, constant_rate, is_on


def net() -> fc.Network:
    capacity = [(0, 4e6), (10, 2e6)]
    out = fc.Network().link("l", fc.DropTail, capacity=capacity, delay=0.02, buffer=1e6)
    out.link("m", fc.DropTail, capacity=9e6)
    out.flow("a", fc.LDCC, route=["l", "m"], start=[1, 5], stop=[2, None])
    out.flow("b", fc.CBR, route=["l"], pattern=[(0, 1e6), (3, 2e6)])
    return out.flow("c", fc.Reno, route=["m"], stop=7)


def test_periods_include_their_start_and_capacities_change_at_their_time() -> None:
    flows, link = net().flows, net().links["l"]
    wanted = [False, True, False, True, True]
    assert [is_on(flows["a"], at) for at in (0, 1, 2, 5, math.inf)] == wanted
    assert [is_on(flows["c"], at) for at in (0, math.inf)] == [True, False]
    assert [capacity_at(link, at) for at in (0, 9.9, 10, math.inf)] == [4e6, 4e6, 2e6, 2e6]


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
    windows = system.states[0][2]
    np.testing.assert_array_equal(system.numbers.lower[0, windows], [1, -np.inf][: len(windows)])
