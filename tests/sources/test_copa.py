"""Copa against packets typed by hand, and against what its authors say of it."""

from collections import deque

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc

C, TRIP, ALPHA = 5000, 0.04003, 2  # packets/s; no whole number of packets fits into the path
BDP = C * TRIP


def packets(flows: int, until: float) -> np.ndarray:
    """Copa acknowledgement by acknowledgement: time, packets found in the queue, flow, window."""
    w, in_flight, starts = np.full(flows, 10.0), [0] * flows, [True] * flows
    began, before, change = [0.0] * flows, w.copy(), [0.0] * flows
    same, v = [0] * flows, [1.0] * flows
    seen: list[deque[tuple[float, float]]] = [deque() for _ in w]
    way: deque[tuple[float, float, int]] = deque()
    t, free, told = 0.0, 0.0, []
    for i in [*range(flows)] * 10:
        free, in_flight[i] = free + 1 / C, in_flight[i] + 1
        way.append((free + TRIP, free - 1 / C, i))
    while t < until:
        t, q, i = way.popleft()
        in_flight[i] -= 1
        told.append((t, q * C, i, w[i]))
        seen[i].append((t, q))
        while seen[i][0][0] < t - (TRIP + q) / 2:
            seen[i].popleft()
        least = min(q for _, q in seen[i])
        fast = w[i] * least > ALPHA * (TRIP + 1 / C + least)
        starts[i] = starts[i] and not fast
        if not starts[i] and t - began[i] >= TRIP + 1 / C + q:
            same[i] = same[i] + 1 if change[i] * (w[i] - before[i]) > 0 else 0
            v[i] = 1 if same[i] == 0 else v[i] if same[i] < 3 else min(2 * v[i], w[i] / ALPHA)
            began[i], change[i], before[i] = t, w[i] - before[i], w[i]
        w[i] += 1 if starts[i] else (-v[i] if fast else v[i]) * ALPHA / w[i]
        w[i] = max(w[i], 2)
        while in_flight[i] + 1 <= w[i]:
            free, in_flight[i] = max(free, t) + 1 / C, in_flight[i] + 1
            way.append((free + TRIP, free - 1 / C - t, i))
    return np.array(told)


def beside(
    flows: list, until: float, buffer: float = 20, capacity: float = C, initial: dict | None = None
) -> xr.Dataset:
    link = {"capacity": capacity * 8000, "buffer": f"{buffer * BDP:.0f} packets"}
    each = [{"law": law, "start": 0.3 * i, "initial": initial or {}} for i, law in enumerate(flows)]
    net = fc.dumbbell(each, link, rtt=TRIP)
    return fc.simulate(net, until, samples=int(1000 * until) + 1)


def period(t: np.ndarray, w: np.ndarray) -> float:
    """Mean time between ways up through the mean, of those a round trip apart [round trips]."""
    up = t[1:][(w[1:] > w.mean()) & (w[:-1] <= w.mean())]
    return np.diff(up[np.append(True, np.diff(up) > TRIP)]).mean() / TRIP


@pytest.mark.parametrize("flows", [1, 2, 4])
def test_queue_and_windows_are_those_of_packets(flows: int) -> None:
    """And the authors': from 0 to 2.5/delta packets a flow and back in five round trips."""
    t, found, flow, w = packets(flows, 20).T
    late = t > 15
    run = beside([fc.Copa] * flows, 20).sel(time=slice(15, None))
    q = run.queueing_delay.values[:, 0] * C
    assert q.min() == 0
    assert q.max() == pytest.approx(2.5 * ALPHA * flows, rel=0.04)
    assert q.max() == pytest.approx(found[late].max(), rel=0.12)
    assert q.mean() == pytest.approx(found[late].mean(), abs=0.6)
    np.testing.assert_allclose(run.w.mean("time"), (BDP + q.mean()) / flows, rtol=0.01)
    first = late & (flow == 0)
    assert period(run.time.values, run.w.values[:, 0]) == pytest.approx(5, rel=0.04)
    assert period(t[first], w[first]) == pytest.approx(5, rel=0.08)
    assert run.a.max() == ALPHA  # never takes its like for others that fill the queue


def test_velocity_doubles_from_the_third_round_trip_on() -> None:
    """On an idle path: a window that has not turned for v = 1, 1, 1, 1, 2, 4, ... round trips."""
    run = beside([fc.Copa], 11.01 * TRIP, capacity=1e6, initial={"w": 400, "starts": 0})
    w = np.interp((np.arange(8) + 4) * TRIP, run.time, run.w.values[:, 0])
    np.testing.assert_allclose(np.diff(w), ALPHA * 2.0 ** np.arange(7), rtol=0.1)


def test_it_competes_with_what_fills_the_queue() -> None:
    """1/delta grows by a packet a round trip, and halves. Deaf to that it has next to nothing."""
    run, meek = (beside([law, fc.AIMD], 60, buffer=1) for law in (fc.Copa, fc.Copa(part=1)))
    a = run.Copa_a.values[30_000:, 0]
    old, new = np.stack([a[:-1], a[1:]])[:, np.diff(a) != 0]
    assert np.all((new == old + 1) | (new == np.maximum(old / 2, ALPHA)) | (new == ALPHA))
    shares = [r.rate.sel(time=slice(30, None)).mean("time").values / C / 8000 for r in (run, meek)]
    assert 0.3 < shares[0][0] < 0.6
    assert shares[1][0] < 0.05
    assert "(Copa) is a mean" not in run.attrs["warnings"]
