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
def test_below_the_target_nothing_is_marked(law: fc.Link) -> None:
    ds = fc.simulate(overload(law), 8, samples=801)
    t, queue = ds.time.values, ds.queueing_delay.values[:, 0]
    marks = (ds.link_mark if law is fc.CoDel else ds.link_drop).values[:, 0]
    end = t[np.argmax((t > 3) & (queue < 0.005))]
    assert 3 < end < 8
    assert marks[(t > 2) & (t < end)].min() > 0
    assert marks[t > end].max() == 0


def counts(times: np.ndarray, queue: np.ndarray, interval: float = 0.1) -> np.ndarray:
    """The count of RFC 8289, section 5.4, packet by packet over a queue that does not heed drops;
    0 where it does not drop.
    """
    found = np.zeros(len(times))
    first_above, following, count, last, dropping = math.inf, 0.0, 0, 0, False
    for k, (now, delay) in enumerate(zip(times, queue, strict=True)):
        first_above = math.inf if delay < 0.005 else min(first_above, now + interval)
        if now < first_above:
            dropping = False
        elif not dropping:
            delta, dropping = count - last, True
            count = last = delta if delta > 1 and now - following < 16 * interval else 1
            following = now + interval / math.sqrt(count)
        while dropping and now >= following:
            count += 1
            following += interval / math.sqrt(count)
        found[k] = count if dropping else 0
    return found


def test_a_spell_of_marks_goes_on_from_the_last_within_16_intervals() -> None:
    """Four spells, of which the second and third follow soon, and the last does not."""
    times = np.linspace(0, 14, 140_001)
    pattern = [(0, 12e6), (3, 2e6), (4.5, 12e6), (6, 2e6), (7, 12e6), (8, 2e6), (12, 12e6)]
    net = fc.Network().link("l", fc.CoDel, capacity=10e6, delay=0.01, buffer=40e6)
    ds = fc.simulate(net.flow("f", fc.CBR, route=["l"], pattern=pattern), 14, t_eval=times)
    exact = counts(times, ds.queueing_delay.values[:, 0])
    dropping = exact > 0
    starts = np.flatnonzero(np.diff(dropping.astype(int)) == 1) + 1
    assert list(exact[starts] > 5) == [False, True, True, False]
    inside = dropping & np.roll(dropping, 10)  # for a millisecond from each start on
    difference = (ds.CoDel_count.values[:, 0] - exact)[inside]
    assert np.abs(difference).max() < 1.5  # half a packet, and as much each time that it goes on
    assert np.mean(difference) == pytest.approx(0, abs=0.4)


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
