"""Rests that are found, or known not to be, by the length of a queue."""

from dataclasses import replace
from typing import Any

import pytest
from sympy import Gt, Heaviside, Piecewise, Symbol, symbols

import fluidcc as fc
from fluidcc.base.errors import FluidccError, NoEquilibrium
from fluidcc.equilibria.many import equilibria
from fluidcc.network.parameters import Parameters
from fluidcc.sweeps.axes import find_target
from fluidcc.symbols import RTT, c, y
from tests.at_rest import check

x, k = symbols("x k", positive=True)


def over(source: Any, capacity: Any, delay: Any = "10 ms", /, **link: Any) -> Any:
    """The flow a over the link l."""
    path = {"name": "l", "capacity": capacity, "delay": delay}
    return fc.dumbbell({"a": source}, {**path, **link})


def growing(least: float) -> Any:
    units: dict[Symbol, str] = {x: "bit/s", k: "1/s"}
    return fc.Source(
        "Growing", {x: k * x}, {"rate": x}, {k: 1}, units, lower={x: least}, initial={x: 2e6}
    )


@pytest.mark.parametrize("gain", [0.1, 10.0])
@pytest.mark.parametrize("least", [1.0, 1e6])
@pytest.mark.parametrize("buffer", [None, 1e5])
def test_a_rate_that_grows_away_from_its_least_value_does_not_rest_there(
    gain: float, least: float, buffer: float | None
) -> None:
    net = over(growing(least)(k=gain), "5 Mbit/s", buffer=buffer)
    says = r"flow 'a' \(Growing\) raises its rate without limit"
    with pytest.raises(NoEquilibrium, match=says):
        fc.equilibrium(net)
    many = equilibria(Parameters.of(net, {"k": find_target(net, "k")}, {"k": [gain, 2 * gain]}))
    assert not many.found.any()
    assert all(says.replace("\\", "") in str(error) for error in many.errors.values())


@pytest.mark.parametrize("capacity", [1e9, 1e10])
@pytest.mark.parametrize("flows", [1, 10])
def test_the_original_timely_rests_nowhere(capacity: float, flows: int) -> None:
    """Where the queue stands still g = 0, and rates rise up to T_high and fall beyond it."""
    net = fc.dumbbell([fc.TIMELY] * flows, {"capacity": capacity, "delay": 5e-6}, rtt=20e-6)
    with pytest.raises(NoEquilibrium, match="switch where its queueing delay is 0.0005 s"):
        fc.equilibrium(net)


@pytest.mark.parametrize("capacity", [1e10, 1e13])
def test_ldcc_shares_any_capacity_as_18_says(capacity: float) -> None:
    """The near flow takes nearly all, at e = T; (18) then gives the rate of the far one."""
    net = fc.Network().link("l", fc.DropTail, capacity=capacity)
    net.flow("near", fc.LDCC, route=["l"], access_delay="25 ms")
    net.flow("far", fc.LDCC, route=["l"], access_delay="50 ms")
    eq = fc.equilibrium(net)
    near, far = eq.rate.values
    e, rtt = eq.one_way_delay.values[1], eq.rtt.values[1]
    assert near + far == pytest.approx(capacity, rel=1e-12)
    assert far == pytest.approx(20e3 / 0.1 * rtt / (e - 0.1), rel=1e-9)
    # e of the near one is T + h with h = w RTT/(beta x); that of the far one is longer by 25 ms.
    h = 20e3 / 0.1 * 0.125 / capacity
    assert far == pytest.approx(2e5 * (0.175 + h) / (0.025 + h), rel=1e-4)
    check(net, eq)


def test_nada_without_a_queue_rests_at_its_largest_rate() -> None:
    eq = fc.equilibrium(over(fc.NADA8698, "3 Mbit/s"))
    assert eq.rate.item() == 1.5e6
    assert eq.states["a"]["calm"] == 0.5  # it counts to LOGWIN, and no further


@pytest.mark.slow
@pytest.mark.parametrize(
    "law", [fc.FAST, fc.LEDBAT, fc.Vegas, fc.NADA, fc.NADA8698], ids=lambda law: law.name
)
@pytest.mark.parametrize("axis", ["l.delay", "a.access_delay"])
def test_many_points_know_the_path_of_each(law: Any, axis: str) -> None:
    """What follows the round trip counts from the empty path of its own point."""
    net = over(law, "1 Mbit/s", buffer="1 Mbit")
    delays = [0.005, 0.02, 0.05]
    many = equilibria(Parameters.of(net, {axis: find_target(net, axis)}, {axis: delays}))
    for i, d in enumerate(delays):
        here = axis == "l.delay"
        one = net.with_link("l", delay=d) if here else net.with_flow("a", access_delay=d)
        wanted = fc.equilibrium(one).queueing_delay.item()
        assert many.queueing_delay[i, 0] == pytest.approx(wanted, rel=1e-9)


def test_rates_that_stay_at_any_value_are_not_said_to_switch() -> None:
    """x' = 0 between two delays: what arrives there is what arrived before."""
    a, low, high = symbols("a low high", positive=True)
    flow = Piecewise((a, Gt(low, RTT)), (-a, Gt(RTT, high)), (0, True))
    law = fc.Source(
        "Still", flow={x: flow}, out={"rate": x}, lower={x: 1},
        params={a: 1e6, low: 0.03, high: 0.04},
        units={x: "bit/s", a: "bit/s^2", low: "s", high: "s"},
        initial={x: 1e5},
    )  # fmt: skip
    net = fc.dumbbell([law], {"capacity": 1e6, "delay": 0.01}, rtt=0.02)
    rest = fc.equilibrium(net)
    assert rest.rate.item() == pytest.approx(1e6, rel=1e-9)
    assert 0.03 * (1 - 1e-12) <= rest.rtt.item() <= 0.04 * (1 + 1e-12)


def test_a_price_that_nobody_hears_grows_without_limit() -> None:
    """NADA hears no price, so that 12 Mbit/s come to a link of 6 for ever."""
    net = fc.Network().link("l", fc.DualLink, capacity=6e6, delay=0.02)
    for i in range(8):
        net.flow(f"f{i}", fc.NADA, route=["l"])
    with pytest.raises(NoEquilibrium, match=r"lambda of link 'l' \(DualLink\) grows without limit"):
        fc.equilibrium(net)


def test_a_round_trip_without_delay_is_only_blamed_where_there_is_one() -> None:
    a = symbols("a", positive=True)
    law = fc.Source(
        "Odd", flow={x: k * x * a**2 / (x - a) / (2 * x - a)}, out={"rate": x},
        params={k: 1, a: 5e5},
        units={x: "bit/s", k: "1/s", a: "bit/s"}, initial={x: 1e6},
    )  # fmt: skip
    says = r"flow 'a' \(Odd\) has no finite rate of change at its start: give other"
    with pytest.raises(FluidccError, match=says):
        fc.equilibrium(over(law, 5e5, 0.02, law=fc.DualLink))


# --- links that switch ----------------------------------------------------------------------------


def over_aqm(link: fc.Link, flows: int = 30) -> fc.Network:
    net = fc.Network().link("aqm", link, capacity="30 Mbit/s", delay="20 ms", buffer="400 packets")
    law = fc.StaticReno(a=flows, b=0.5 / flows)
    return net.flow("tcp", law, route=["aqm"], access_delay="10 ms", packet="1500 B")


@pytest.mark.parametrize("flows", [1, 10, 30])
def test_a_queue_that_marks_above_its_capacity_only_has_no_rest(flows: int) -> None:
    """TCP needs marks at rest, where no more comes than leaves: on the switch alone."""
    says = "'aqm' .PAQM. switches where .* on the switch, .* see fluidcc.limit_cycle"
    with pytest.raises(NoEquilibrium, match=says):
        fc.equilibrium(over_aqm(fc.PAQM, flows))
    rest = fc.equilibrium(over_aqm(fc.PAQMDrop, flows))  # what is dropped comes, above the capacity
    assert float(rest.arrival_rate[0]) > 30e6
    assert float(rest.queueing_delay[0]) == pytest.approx(0.04)


@pytest.mark.parametrize(("share", "marks"), [(0.9, 0.001), (0.5, 0.002), (1.1, 0.0)])
def test_a_switch_that_holds_on_one_side_has_the_rest_of_that_side(
    share: float, marks: float
) -> None:
    """Above a share of the capacity a link marks 0.001 more: the square-root law."""
    w = (1 / (0.5 * 0.001)) ** 0.5  # window of one flow at a ratio of 0.001
    rate = 12e3 * w / 0.06
    on = Heaviside(y - share * c, 0)
    out = {**fc.DropTail.out, "mark": 0.001 + 0.001 * on}
    law = replace(fc.DropTail, name="Step", out=out, claims={})
    net = over_aqm(law, 1).with_link("aqm", capacity=1.05 * rate)
    if marks == 0.002:  # it sends 0.707 of that, which is still above half of the capacity
        rate *= 0.5**0.5
    if share == 0.9:  # off it sends 0.95 c and switches on; on it sends 0.67 c and switches off
        says = "rests on neither side.*beyond the switch.*beyond the switch"
        with pytest.raises(NoEquilibrium, match=says):
            fc.equilibrium(net)
        return
    assert float(fc.equilibrium(net).rate[0]) == pytest.approx(rate, rel=1e-6)
