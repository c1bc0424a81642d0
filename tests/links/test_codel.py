"""CoDel in the mean, against the times at which RFC 8289 drops one packet after the other."""

import math

import numpy as np
import pytest

import fluidcc as fc


def overload(law: fc.Link) -> fc.Network:
    """12 Mbit/s into 10 Mbit/s for 3 s, and then 2 Mbit/s."""
    net = fc.Network().link("l", law, capacity=10e6, delay=0.01, buffer=40e6)
    return net.flow("f", fc.CBR, route=["l"], pattern=[(0, 12e6), (3, 2e6)])


def test_marks_come_ever_more_often() -> None:
    """The queue is at the target after 25 ms; an interval later marks begin, n of them within the
    sum of interval/sqrt(k): the mean's count is in the middle of the steps.
    """
    times = np.linspace(0, 3, 3001) + 0.0
    ds = fc.simulate(overload(fc.CoDel), 3, t_eval=times, rtol=1e-8)
    count, mark = ds.CoDel_count.values[:, 0], ds.link_mark.values[:, 0]
    began = 0.125
    assert times[np.argmax(mark > 0)] == pytest.approx(began, abs=2e-3)
    drops = began + np.concatenate([[0], np.cumsum(0.1 / np.sqrt(np.arange(1, 400)))])
    late = times > began + 0.1
    exact = np.searchsorted(drops, times[late], side="right")
    assert np.abs(count[late] - exact).max() < 0.6
    assert np.mean(count[late] - exact) == pytest.approx(0, abs=0.03)
    wanted = np.sqrt(count[late]) / 0.1 * 12000 / 12e6
    np.testing.assert_allclose(mark[late][:-1], wanted[:-1], rtol=1e-5)  # at the end less comes


@pytest.mark.parametrize("law", [fc.CoDel, fc.CoDelDrop], ids=lambda law: law.name)
def test_below_the_target_all_is_forgotten(law: fc.Link) -> None:
    ds = fc.simulate(overload(law), 8, samples=801)
    t, queue = ds.time.values, ds.queueing_delay.values[:, 0]
    marks = (ds.link_mark if law is fc.CoDel else ds.link_drop).values[:, 0]
    end = t[np.argmax((t > 3) & (queue < 0.005))]
    assert 3 < end < 8
    assert marks[(t > 2) & (t < end)].min() > 0
    assert marks[t > end].max() == 0
    assert ds[f"{law.name}_count"].values[t > end].max() < 0.54


def test_a_queue_that_stays_above_the_target_is_marked_until_it_does_not() -> None:
    """Flows that halve the mean rate of loss: a cycle about the target, and no equilibrium."""
    net = fc.dumbbell([fc.Reno] * 4, {"law": fc.CoDel, "capacity": 20e6, "buffer": 8e6}, rtt=0.08)
    ds = fc.simulate(net, 60, samples=6001)
    late = ds.queueing_delay.values[3000:, 0]
    assert 1e-3 < late.mean() < 0.02
    assert float(ds.throughput[3000:].mean()) > 0.9 * 20e6
    assert math.isfinite(late.max())
    with pytest.raises(fc.errors.FluidccError):
        fc.equilibrium(net)
