"""BBR against its cycle by hand, and against what is published of flows beside one another."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc

C, TRIP = 100e6, 0.04
BDP = C * TRIP / 8000  # packets


def beside(
    flows: list[Any], buffer: float, until: float, rtt: Any = TRIP, law: fc.Link = fc.DropTail,
    samples: int = 100,
) -> xr.Dataset:  # fmt: skip
    """A run over a buffer of so many times what fits into the path."""
    link = {"law": law, "capacity": C, "buffer": f"{buffer * BDP:.0f} packets"}
    return fc.simulate(fc.dumbbell(flows, link, rtt=rtt), until, samples=int(samples * until) + 1)


def means(run: xr.Dataset, after: float) -> Any:
    return run.rate.sel(time=slice(after, None)).mean("time").values


def test_one_flow_has_the_cycle_of_its_gains() -> None:
    """In flight rise to 1.25 of what fits, at 1.25 times 0.99 of the link, and fall to what fits;
    then six round trips at 0.99. A round trip later the acknowledgements come as fast as they can.
    """
    net = fc.dumbbell([fc.BBRv1], {"capacity": C, "buffer": "4000 packets"}, rtt=TRIP)
    run = fc.simulate(net, 9, t_eval=np.arange(2, 9, 1e-4))
    phase, queue = run.BBRv1_phase.values[:, 0], run.queueing_delay.values[:, 0]
    begins = {k: run.time.values[1:][(phase[1:] == k) & (phase[:-1] != k)] for k in (2, 3, 4)}
    up = TRIP * (1 + (1.25 - 0.99 - 0.2475) / 0.2375)
    down = TRIP * 0.25 / (1 - 0.75 * 0.99)
    n = min(map(len, begins.values())) - 1
    assert n > 15
    ends = begins[4][begins[4] > begins[3][0]]
    np.testing.assert_allclose(ends[:n] - begins[3][:n], up, rtol=2e-2)
    rests = begins[2][begins[2] > ends[0]]
    np.testing.assert_allclose(rests[:n] - ends[:n], down, rtol=2e-2)
    again = begins[3][begins[3] > rests[0]]
    np.testing.assert_allclose(again[: n - 1] - rests[: n - 1], 6 * TRIP, rtol=2e-3)
    assert queue.max() == pytest.approx(0.25 * TRIP, rel=1e-2)
    assert queue[(phase == 2) & (run.time.values > 2.5)].max() < 0.01 * TRIP
    used = (6 * 0.99 * TRIP + up + down) / (6 * TRIP + up + down)
    assert float(run.utilisation.mean()) == pytest.approx(used, abs=3e-3)
    np.testing.assert_allclose(run.BBRv1_B[:, 0], C / 8000, rtol=2e-3)


def test_after_ten_seconds_few_packets_are_in_flight_for_a_fifth_of_one() -> None:
    run = beside([fc.BBRv1], 8, 12)
    held = run.time.values[run.BBRv1_phase.values[:, 0] == 6]
    assert np.ptp(held) == pytest.approx(0.2, abs=0.02)
    assert 10 < held[0] < 10.3
    few = run.BBRv1_F.sel(time=slice(held[0] + 0.05, held[-1] - 0.02))
    assert float(few.max()) < 0.03 * BDP


@pytest.mark.parametrize(
    ("source", "law", "most"),
    [(fc.BBRv1, fc.DropTail, 2.885), (fc.BBRv1, fc.StepMark, 2.885), (fc.BBRv3, fc.DropTail, 2)],
)
def test_startup_doubles_in_a_round_trip_and_fills_what_its_window_holds(
    source: fc.Source, law: fc.Link, most: float
) -> None:
    """From 10 packets to what fits in log2(50) round trips and one; then as much as the window
    holds. Version 1 is deaf to marks.
    """
    run = beside([source], 8, 1, law=law, samples=1000)
    in_flight = run[f"{source.name}_F"].values[:, 0]
    filled = run.time.values[in_flight > BDP][0]
    assert filled / TRIP == pytest.approx(np.log2(BDP / 10) + 2, abs=1)
    assert in_flight.max() == pytest.approx(most * BDP, rel=0.05)
    if source is fc.BBRv1:
        assert run.queueing_delay.values[-1, 0] < 0.26 * TRIP


@pytest.mark.slow
def test_several_flows_keep_a_path_full_of_queue() -> None:
    """q = d C (Scherrer et al., IMC 2022): twice what fits is in flight, and B are shares."""
    run = beside([fc.BBRv1(passed=k) for k in (0, 2, 4, 5)], 10, 40)
    queue = run.queueing_delay.sel(time=slice(10, None))
    assert float(queue.median()) == pytest.approx(TRIP, rel=0.1)
    assert means(run, 10).sum() == pytest.approx(C, rel=0.05)


@pytest.mark.slow
def test_a_long_path_leaves_little_to_a_short_one() -> None:
    """Each holds twice its own path in flight."""
    short, long = means(beside([fc.BBRv1] * 2, 20, 60, [0.01, 0.05]), 10)
    assert short / long < 0.1


@pytest.mark.slow
def test_beside_cubic_the_part_does_not_depend_on_how_many_they_are() -> None:
    """Ware et al. (IMC 2019). What is in flight is twice B R_min, and R_min has the queue of CUBIC
    alone: by that each side has a half, less what the pauses cost and CUBIC's cuts leave.
    """
    parts = []
    for n in (1, 4):
        rates = means(beside([fc.BBRv1, *[fc.CUBIC] * n], 8, 150), 50)
        parts.append(rates[0] / rates.sum())
    assert parts[0] == pytest.approx(parts[1], abs=0.05)
    assert parts[0] < 0.5


@pytest.mark.slow
def test_over_a_shallow_buffer_cubic_gets_next_to_nothing() -> None:
    """BBR does not heed losses."""
    run = beside([fc.BBRv1, fc.BBRv1(passed=3), fc.CUBIC], 0.3, 60)
    assert means(run, 10)[2] < 0.05 * C
    assert float(run.link_loss.mean()) > 0.01


def test_time_has_no_unit() -> None:
    runs = []
    for unit in (1, 100):
        law = fc.BBRv1(W_R=10 * unit, hold=0.2 * unit)
        link = {"capacity": C / unit, "buffer": "5000 packets"}
        net = fc.dumbbell([law, law(passed=3)], link, rtt=TRIP * unit)
        runs.append(fc.simulate(net, 12.0 * unit, samples=25).rate.values * unit)
    np.testing.assert_allclose(runs[0], runs[1], atol=1e-6 * C)
