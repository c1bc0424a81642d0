"""Links without a propagation delay: what enters one is at the next at that instant."""

from typing import Any

import numpy as np
import pytest

import fluidcc as fc


def _two(
    first: Any, capacities: Any, law: Any = fc.StaticAIMD, flows: Any = 1, buffer: Any = 2e5
) -> Any:
    net = fc.Network()
    for k, (delay, capacity) in enumerate(zip((first, 0.005), capacities, strict=True)):
        net.link(f"l{k}", fc.DropTail, capacity=capacity, delay=delay, buffer=buffer)
    for k in range(flows):
        net.flow(f"f{k}", law, route=["l0", "l1"], return_delay=0.06, start=float(k))
    return net


def _one(law: Any, capacity: Any, delay: Any = 0.005, back: Any = 0.06) -> Any:
    link = {"name": "l1", "capacity": capacity, "delay": delay, "buffer": 2e5}
    return fc.dumbbell({"f0": {"law": law, "return_delay": back}}, link)


def test_a_link_without_delay_that_is_never_full_changes_nothing() -> None:
    """A jump at the source reaches the second, full link at once."""
    both = fc.simulate(_two(0.0, (4.2e6, 1.85e6)), 15, engine="array", rtol=1e-9, atol=1e-12)
    alone = fc.simulate(_one(fc.StaticAIMD, 1.85e6), 15, engine="array", rtol=1e-9, atol=1e-12)
    assert both.attrs["jumps"] == alone.attrs["jumps"] >= 4
    times = [fc.metrics.jumps(run).time.values for run in (both, alone)]
    assert times[0] == pytest.approx(times[1], abs=1e-7)
    for name in ("rate", "rtt"):
        assert both[name].values == pytest.approx(alone[name].values, rel=1e-6)
    for name in ("backlog", "entered", "lost"):
        found, wanted = (run[name].sel(link="l1").values for run in (both, alone))
        assert found == pytest.approx(wanted, rel=1e-6, abs=1)


@pytest.mark.parametrize("delays", ["fifo", "frozen"])
@pytest.mark.parametrize("capacities", [(4e6, 3e6), (3e6, 4e6)])
@pytest.mark.parametrize("law", ["StaticAIMD", "GCC", "LDCC"])
def test_what_leaves_a_link_without_delay_enters_the_next(
    law: Any, capacities: Any, delays: Any
) -> None:
    """Steps of no length have totals too. (With frozen delays no queue thins what passes it.)"""
    net = _two(0.0, capacities, getattr(fc, law), 2, None)
    run = fc.simulate(net, 10, delays=delays, engine="array")
    first, second = run.isel(link=0), run.isel(link=1)
    kept = first.backlog if delays == "fifo" else 0.0
    assert second.entered.values == pytest.approx((first.entered - kept).values, rel=1e-5)
    sent = run.rate.sum("flow").cumulative_integrate("time")
    assert first.entered.values == pytest.approx(sent.values, rel=0.01, abs=1e4)


@pytest.mark.parametrize("capacities", [(1.85e6, 4.2e6), (3e6, 2.9e6)])
def test_no_delay_is_the_limit_of_small_ones(capacities: Any) -> None:
    nets = [_two(delay, capacities, flows=2) for delay in (0.0, 1e-7)]
    runs = [fc.simulate(net, 15, rtol=1e-8, engine="array") for net in nets]
    totals = [np.append(run.entered.values[-1], run.lost.values[-1]) for run in runs]
    assert runs[0].attrs["jumps"] == runs[1].attrs["jumps"] >= 4
    assert totals[0] == pytest.approx(totals[1], abs=100)


def test_a_parameter_changed_by_a_restart_is_felt_behind_a_link_without_delay_at_once() -> None:
    first = fc.simulate(_two(0.0, (4.2e6, 1.85e6), fc.LDCC), 5, engine="array")
    net = _two(0.0, (4.2e6, 1.85e6), fc.LDCC(eta=0.8))
    run = fc.simulate(net, 10, restart=first, engine="array")
    assert run.entered.values[:, 1] == pytest.approx(run.entered.values[:, 0], rel=1e-6)


def _no_way(law: Any, delay: Any = 0.0) -> Any:
    return _one(law, 3e6, 0.0, delay)


def test_a_source_that_hears_nothing_needs_no_delay() -> None:
    """4 Mbit/s into 3 Mbit/s fill 200 kbit in 0.2 s; then a quarter is lost."""
    run = fc.simulate(_no_way(fc.CBR(rate=4e6)), 10, engine="array").isel(time=-1)
    assert float(run.entered[0]) == pytest.approx(4e7)
    assert float(run.lost[0]) == pytest.approx(1e6 * 9.8)
    assert float(run.loss[0]) == pytest.approx(0.25)
    assert float(run.rtt[0]) == pytest.approx(2e5 / 3e6)


@pytest.mark.parametrize("law", ["Kelly", "PrimalPenalty", "RateAIMD"])
def test_a_source_that_hears_through_states_needs_no_delay(law: Any) -> None:
    """It is the limit of small delays."""
    nets = [_no_way(getattr(fc, law), delay) for delay in (0.0, 1e-7)]
    runs = [fc.simulate(net, 10, rtol=1e-8, engine="array") for net in nets]
    assert runs[0].attrs["jumps"] == runs[1].attrs["jumps"]
    for name in ("rate", "entered", "lost"):
        assert runs[0][name].values[-1] == pytest.approx(runs[1][name].values[-1], rel=1e-6, abs=1)


@pytest.mark.parametrize("law", ["StaticReno", "LDCC", "FAST"])
def test_a_source_that_hears_itself_at_once_or_divides_by_the_round_trip_is_refused(
    law: Any,
) -> None:
    says = f"{law} hears itself at once or divides by that"
    with pytest.raises(fc.errors.InvalidInput, match=says):
        fc.simulate(_no_way(getattr(fc, law)), 10)
