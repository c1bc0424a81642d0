"""Equilibria over time, and networks that have none."""

import math
from typing import Any

import numpy as np
import pytest
from sympy import Heaviside

import fluidcc as fc
from fluidcc.base.errors import (
    InvalidInput,
    NoEquilibrium,
    SolverError,
    UnknownName,
    Unsupported,
)
from fluidcc.symbols import e, positive
from tests.at_rest import T, bottleneck, with_flows

# --- time, and what is off ------------------------------------------------------------------------


def test_time_chooses_flows_and_capacities() -> None:
    net = fc.Network().link("l", fc.DropTail, capacity=[(0, 2e6), (10, 4e6)], delay=0.025)
    net.flow("a", fc.LDCC, route=["l"]).flow("b", fc.LDCC, route=["l"], start=5, stop=20)
    for at, rates in ((0, [2e6, 0]), (5, [1e6, 1e6]), (10, [2e6, 2e6]), (math.inf, [4e6, 0])):
        np.testing.assert_allclose(fc.equilibrium(net, at=at).rate, rates, rtol=1e-12)
    again = net.copy().flow("c", fc.LDCC, route=["l"], start=[1, 30], stop=[2, None])
    again.flow("udp", fc.CBR, route=["l"], pattern=[(0, 1e6), (3, 5e5)])
    of_c = {0.9: 0, 1: 5e5, 2: 0, 29: 0, 30: 1.75e6, math.inf: 1.75e6}
    udp = {2.9: 1e6, 3: 5e5, math.inf: 5e5}
    for flow, wanted in (("b", {9.9: 7.5e5, 10: 1.75e6, 20: 0}), ("c", of_c), ("udp", udp)):
        for at, rate in wanted.items():
            found = fc.equilibrium(again, at=at).rate.sel(flow=flow).item()
            assert found == pytest.approx(rate, rel=1e-9), (flow, at)
    last = fc.equilibrium(net)
    assert last.one_way_delay.sel(flow="a") == last.one_way_delay.sel(flow="b")


def test_a_window_flow_that_stops_leaves_the_others_as_if_it_had_never_been() -> None:
    net = fc.Network().link("l", fc.RED, capacity="5 Mbit/s", delay="10 ms", buffer="1 Mbit")
    net.flow("stays", fc.StaticReno, route=["l"])
    alone, both = net, net.copy().flow("stops", fc.StaticReno, route=["l"], stop=5)
    eq = fc.equilibrium(both)
    assert eq.rate.sel(flow="stops") == 0
    assert eq.rate.sel(flow="stays") == fc.equilibrium(alone).rate.item()
    assert dict(eq.states["stops"]) == {}
    ours, wanted = (fc.linearize(net)(np.array([0.1j, 1j])) for net in (both, alone))
    np.testing.assert_allclose(ours, wanted, rtol=1e-9)
    early = fc.equilibrium(both, at=1).states
    assert early["stops"]["W"] == early["stays"]["W"]


def test_result_is_labelled_and_shown() -> None:
    eq = fc.equilibrium(with_flows(bottleneck(4e6, buffer=1e7), 14, fc.LDCC))
    units = {"rate": "bit/s", "one_way_delay": "s", "rtt": "s", "loss": "1", "queueing_delay": "s"}
    for name, unit in units.items():
        assert (getattr(eq, name).attrs["units"], getattr(eq, name).name) == (unit, name)
    assert eq.full.dtype == bool
    assert set(eq.states["l"]) == {"q"}
    assert all(text in eq._repr_html_() for text in ("LDCC13", "queueing_delay [ms]"))
    lines = repr(eq).splitlines()
    head = "flow rate [Mbit/s] one_way_delay [ms] rtt [ms] loss [1]"
    assert " ".join(lines[0].split()) == head
    assert "... and 2 more" in lines
    assert lines[-1].split()[0] == "l"
    assert max(map(len, lines)) < 100


# --- there is none --------------------------------------------------------------------------------


def _one(source: fc.Source, /, **link: Any) -> fc.Network:
    return with_flows(bottleneck(**link), 1, source)


NONE: dict[str, tuple[fc.Network, str]] = {
    "(20)": (
        with_flows(bottleneck(3e5), 2, fc.LDCC),
        r"link 'l' has 300000 bit/s .*400000 bit/s .*'LDCC0' 200000.*w/beta = 200000 bit/s, \(20\)",
    ),
    "constant": (
        _one(fc.CBR(rate=5e5), capacity=3e5),
        r"link 'l' has 300000 bit/s .* send 500000 bit/s \('CBR0' 500000\); give",
    ),
    "no buffer": (
        _one(fc.StaticReno),
        r"flow 'StaticReno0' .* uses losses, but no buffer on l is finite",
    ),
    "deaf": (_one(fc.PrimalDual), r"'PrimalDual0' .* without limit.*give l .*law with a signal"),
    "deaf, full": (_one(fc.PrimalDual, buffer=1e5), r"without limit.*give l .*law with a signal"),
    # No buffer is asked of a link without a queue.
    "no queue": (_one(fc.StaticReno, law=fc.DualLink, capacity=6e6), "give l .*law with a signal"),
}


@pytest.mark.parametrize("name", NONE)
def test_the_reason_is_given(name: str) -> None:
    net, says = NONE[name]
    with pytest.raises(NoEquilibrium, match=says):
        fc.equilibrium(net)


def test_a_relay_is_named_where_no_rest_is_found() -> None:
    """Above the delay d for g/(g + h) of the time a flow would rest: another share for either."""
    x, g, h, d = positive("x g h d")
    relay = fc.Source(
        "Relay", {x: g - (g + h) * Heaviside(e - d, 0)}, {"rate": x}, {g: 1e6, h: 1e6, d: 0.05},
        {x: "bit/s", g: "bit/s^2", h: "bit/s^2", d: "s"}, lower={x: 0}, initial={x: 1e6},
    )  # fmt: skip
    says = r"flow 'Relay0' \(Relay\) switches where -d \+ e = 0, .*fluidcc.simulate.*limit_cycle"
    with pytest.raises(SolverError, match=says):
        fc.equilibrium(_one(relay, buffer=1e6).flow("b", relay(h=2e6), route=["l"]))


def test_round_trips_without_delay() -> None:
    net = fc.Network().link("l", fc.DualLink, capacity=1e6).flow("a", fc.LDCC, route=["l"])
    with pytest.raises(InvalidInput, match=r"flow 'a' \(LDCC\) has no finite rate of change"):
        fc.equilibrium(net)
    net = fc.Network().link("l", fc.DropTail, capacity=1e6).flow("a", fc.LDCC, route=["l"])
    # (19) with e_b = 0
    assert fc.equilibrium(net).queueing_delay.item() == pytest.approx(T / 0.8, rel=1e-12)


def test_laws_without_rest_are_refused() -> None:
    with pytest.raises(Unsupported, match=r"flow 'StaticAIMD0' \(StaticAIMD\) has jumps.*Reno"):
        fc.equilibrium(with_flows(bottleneck(), 1, fc.StaticAIMD))
    with pytest.raises(Unsupported, match="'OnOff0' sends at random"):
        fc.equilibrium(with_flows(bottleneck(), 1, fc.OnOff))


@pytest.mark.parametrize("rtt", [0.002, 0.05, 1.0])
@pytest.mark.parametrize("udp", [0.0, 0.5, 0.8, 0.9])
def test_a_queue_that_outruns_the_gain_on_the_way_still_finds_its_end(
    udp: float, rtt: float
) -> None:
    """(19) with what constant traffic leaves: LDCC's gain falls with the delay."""
    capacity = 3e6
    flows = {"a": fc.LDCC, "b": fc.LDCC, **({"udp": fc.CBR(rate=udp * capacity)} if udp else {})}
    net = fc.dumbbell(flows, {"capacity": capacity}, rtt=rtt)
    ratio = 20e3 / (0.1 * (1 - udp) * capacity / 2)
    if ratio >= 1:
        with pytest.raises(fc.errors.NoEquilibrium, match="never falls? below"):
            fc.equilibrium(net)
        return
    wanted = max((rtt / 2 * ratio + 0.1) / (1 - ratio), rtt / 2)  # a long path is delay enough
    np.testing.assert_allclose(fc.equilibrium(net).one_way_delay, wanted, rtol=1e-9)


def test_a_copy_with_other_values_keeps_the_rest() -> None:
    eq = fc.equilibrium(fc.dumbbell([fc.LDCC] * 2, {"capacity": "3 Mbit/s"}, rtt="50 ms"))
    new = eq.changed(rate=[1e6, 2e6])
    np.testing.assert_array_equal(new.rate.values, [1e6, 2e6])
    assert new.rtt.identical(eq.rtt)
    assert new.states is eq.states
    with pytest.raises(UnknownName, match="no array 'rates'"):
        eq.changed(rates=1.0)
