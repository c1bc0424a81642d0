"""Smallest round trips of a window: against the smallest of what a run shows, period by period."""

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, LawError

TRIP, PERIOD = 0.1, 5.0


def visited(law: fc.Source) -> fc.Network:
    """A flow of `law`, and constant-rate flows that come and go."""
    net = fc.Network().link("l", fc.DropTail, capacity="10 Mbit/s", delay=TRIP / 2)
    net.flow("f", law, route=["l"], start=0, packet=8000)
    for k, (start, rate) in enumerate([(3, 4e6), (12, 6e6), (22, 3e6), (31, 5e6)]):
        net.flow(f"other{k}", fc.CBR(rate=rate), route=["l"], start=start, stop=start + 5)
    return net


@pytest.mark.slow
@pytest.mark.parametrize(("base", "buckets"), [(fc.FAST, 3), (fc.PlainDelayAIMD, 3)])
def test_the_minimum_is_that_of_the_last_periods(base: fc.Source, buckets: int) -> None:
    law = fc.with_windowed_minimum(base, buckets)(bucket=PERIOD)
    run = fc.simulate(visited(law), 45.0, samples=9001, rtol=1e-8).sel(flow="f")
    t, trip = run.time.values, run.rtt.values
    own = run[f"{law.name}_{'low' if 'low' in map(str, law.states) else 'delta'}"].values
    present = np.minimum(own, trip) if "low" in map(str, law.states) else trip - own
    older = [run[f"{law.name}_low_{k}"].values for k in range(1, buckets)]
    kept = np.min([present, *older], axis=0)
    for i in range(100, len(t), 50):  # samples on the ends of periods count for both
        since = max((np.floor(t[i] / PERIOD + 1e-9) - buckets + 1) * PERIOD, 0.0)
        sampled = trip[(t >= since - 1e-9) & (t <= t[i])].min()  # or less, between two samples
        assert sampled - 2e-5 < kept[i] < sampled + 1e-7
    # it forgets; who empties the queue has it anew
    assert np.ptp(kept[100:]) > 0 or base is fc.PlainDelayAIMD


@pytest.mark.slow
def test_nothing_is_forgotten_within_the_window() -> None:
    run, plain = (
        fc.simulate(visited(law), 20.0, samples=41, rtol=1e-8)
        for law in (fc.with_windowed_minimum(fc.FAST, 3)(bucket=10), fc.FAST)
    )
    np.testing.assert_allclose(run.rate, plain.rate, rtol=1e-6)
    np.testing.assert_allclose(run.queueing_delay, plain.queueing_delay, atol=1e-8)


@pytest.mark.slow
def test_ledbat_takes_its_own_queue_for_propagation_when_the_window_has_passed() -> None:
    """A flow alone fills its target; when that is all it remembers, it fills another one above."""
    law = fc.with_windowed_minimum(fc.LEDBAT(target=0.02, gain=10), 2)(bucket=20)
    flow = {"law": law, "start": 0, "packet": 8000}
    net = fc.dumbbell([flow], {"capacity": "10 Mbit/s", "delay": TRIP / 2})
    run = fc.simulate(net, 99.0, t_eval=[39.9, 79.9, 98.9], rtol=1e-8)
    queue = run.queueing_delay.values[:, 0]
    assert queue[0] == pytest.approx(0.02, rel=1e-3)
    assert queue[2] > queue[1] + 0.015 > 0.05
    assert "has not lately seen its path empty" in run.attrs["warnings"]


def test_what_has_no_window_is_refused() -> None:
    with pytest.raises(LawError, match="LDCC keeps no smallest round trip; FAST"):
        fc.with_windowed_minimum(fc.LDCC)
    with pytest.raises(InvalidInput, match="buckets is 1; give a whole number from 2 to 100"):
        fc.with_windowed_minimum(fc.FAST, 1)
    with pytest.raises(LawError, match="has a window already"):
        fc.with_windowed_minimum(fc.with_windowed_minimum(fc.FAST))
    with pytest.raises(LawError, match="corrects its propagation delay"):
        fc.with_windowed_minimum(fc.with_estimator(fc.FAST))
