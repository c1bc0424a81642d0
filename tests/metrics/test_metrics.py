"""Figures of merit: exact values and invariants."""

import math
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import fluidcc as fc
from fluidcc import metrics
from fluidcc.base.errors import InvalidInput, UnknownName, Unsupported
from fluidcc.formulas import fast

# none so small that a half of it is 0
RATES = arrays(float, st.integers(1, 20), elements=st.just(0.0) | st.floats(1e-100, 1e9))


def ramp(dims: tuple[str, ...] = ("time", "flow")) -> xr.DataArray:
    """Flow a rises from 0 to 10 in 10 s; flow b is at 4."""
    t = np.linspace(0.0, 10.0, 11)
    data = xr.DataArray(
        np.stack([t, np.full(11, 4.0)], axis=1),
        {"time": t, "flow": ["a", "b"]},
        ("time", "flow"),
        "rate",
        {"units": "bit/s"},
    )
    return data.transpose(*dims)


def test_jain_exact_values() -> None:
    assert metrics.jain([3.0, 3.0, 3.0]) == 1.0
    assert metrics.jain([5.0, 0.0, 0.0, 0.0]) == 0.25
    assert metrics.jain([1.0, 2.0, 3.0]) == pytest.approx(36 / 42, rel=1e-15)
    assert math.isnan(metrics.jain([0.0, 0.0]))


@given(RATES, st.floats(1e-3, 1e3))
def test_jain_lies_between_its_bounds_and_has_no_unit(x: np.ndarray, unit: float) -> None:
    index = metrics.jain(x)
    if np.max(x) == 0:
        assert math.isnan(index)
    else:
        assert 1 / len(x) - 1e-12 <= index <= 1 + 1e-12
        assert metrics.jain(x * unit) == pytest.approx(index, rel=1e-9)


def test_jain_over_time_keeps_its_labels() -> None:
    for dims in (("time", "flow"), ("flow", "time")):
        index = metrics.jain(ramp(dims))
        assert index.dims == ("time",)
        assert index.sel(time=4.0) == 1.0
        assert index.sel(time=0.0) == 0.5
        assert index.attrs["units"] == "1"


def test_one_flow_over_the_others() -> None:
    ratio = metrics.over_others(ramp(), "a")
    assert ratio.values == pytest.approx(np.arange(11) / 4)
    assert metrics.over_others(ramp(), -1).values[1:] == pytest.approx(4 / np.arange(1, 11))
    for flow in ("c", 2):
        with pytest.raises(UnknownName, match="the flows are a, b"):
            metrics.over_others(ramp(), flow)
    with pytest.raises(InvalidInput, match="two at least"):
        metrics.over_others([1.0], 0)


def test_jain_refuses_what_are_no_rates() -> None:
    with pytest.raises(InvalidInput, match="-1"):
        metrics.jain([1.0, -1.0])
    with pytest.raises(InvalidInput, match="one flow"):
        metrics.jain([])
    with pytest.raises(UnknownName, match="'flow'"):
        metrics.jain(ramp().rename(flow="user"))


def test_max_min_of_the_textbook() -> None:
    # Bertsekas and Gallager, Example 6.4's kind: filling stops at 1/3 on the first link, then 2/3
    # on the second.
    R = [[1, 1, 1, 0], [0, 0, 1, 1]]
    rate = metrics.max_min_rates(R, [1.0, 1.0])
    np.testing.assert_allclose(rate, [1 / 3, 1 / 3, 1 / 3, 2 / 3], rtol=1e-15)
    assert metrics.is_max_min_fair(rate, R, [1.0, 1.0])
    assert not metrics.is_max_min_fair(
        [0.5, 0.25, 0.25, 0.75], R, [1.0, 1.0]
    )  # the first takes from the second
    assert not metrics.is_max_min_fair([0.3, 0.3, 0.3, 0.6], R, [1.0, 1.0])  # room to spare
    assert not metrics.is_max_min_fair([0.4, 0.4, 0.4, 0.6], R, [1.0, 1.0])  # too much


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 12))
def test_progressive_filling_is_max_min_fair(seed: int, links: int, flows: int) -> None:
    rng = np.random.default_rng(seed)
    R = (rng.random((links, flows)) < 0.4).astype(float)
    R[rng.integers(0, links, flows), np.arange(flows)] = 1
    c = rng.uniform(1, 10, links)
    rate = metrics.max_min_rates(R, c)
    assert metrics.is_max_min_fair(rate, R, c)
    assert not metrics.is_max_min_fair(rate * 0.99, R, c)
    swapped = rate.copy()
    swapped[0] *= 1.01
    assert not metrics.is_max_min_fair(swapped, R, c)


def test_max_min_takes_networks() -> None:
    net = fc.Network().link("l", fc.DropTail, capacity=3e6)
    for name in "abc":
        net.flow(name, fc.LDCC, route=["l"])
    np.testing.assert_allclose(metrics.max_min_rates(net), 1e6)
    assert metrics.is_max_min_fair([1e6, 1e6, 1e6], net)
    with pytest.raises(InvalidInput, match="3 flows"):
        metrics.is_max_min_fair([1e6], net)
    with pytest.raises(InvalidInput, match="rows are links"):
        metrics.max_min_rates([[1, 1]], [1.0, 2.0])


def test_mean_integrates_the_samples_exactly() -> None:
    for dims in (("time", "flow"), ("flow", "time")):
        np.testing.assert_allclose(metrics.mean(ramp(dims)), [5.0, 4.0], rtol=1e-15)
        np.testing.assert_allclose(metrics.mean(ramp(dims), 2.5, 3.5), [3.0, 4.0], rtol=1e-15)
    assert metrics.mean(ramp()).attrs["units"] == "bit/s"
    assert metrics.mean([0.0, 1.0], time=[3.0, 7.0]) == 0.5


def test_a_mean_of_what_still_climbs_says_so() -> None:
    t = np.linspace(0.0, 100.0, 2001)
    curves = {"rising": 1 - np.exp(-t / 60), "sawtooth": t % 25, "risen": 1 - np.exp(-t / 5)}
    for name, curve in curves.items():
        x = xr.DataArray(curve, {"time": t}, ["time"], name)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            late = metrics.mean(x, 20.0)
            assert metrics.mean(x, 20.0, 100.0) == late
        assert len(seen) == (name == "rising")
        assert all("the rising has not settled: from 20 to 100 s" in str(w.message) for w in seen)


@pytest.mark.parametrize(("start", "stop"), [(-1, 5), (5, 5), (6, 5), (0, 11)])
def test_mean_refuses_spans_without_samples(start: float, stop: float) -> None:
    with pytest.raises(InvalidInput, match="not within the samples, 0 to 10 s"):
        metrics.mean(ramp(), start, stop)


def test_arrays_need_times() -> None:
    with pytest.raises(InvalidInput, match="time="):
        metrics.mean([1.0, 2.0])
    with pytest.raises(InvalidInput, match="one time for each"):
        metrics.mean([1.0, 2.0], time=[0.0])
    with pytest.raises(InvalidInput, match="increase"):
        metrics.mean([1.0, 2.0], time=[1.0, 0.0])


def test_windowed_mean() -> None:
    delay = ramp().rename("rtt")
    out = metrics.windowed_mean(delay, 2.5)
    np.testing.assert_allclose(out["time"], [2.5, 5, 7.5, 10])
    np.testing.assert_allclose(out.sel(flow="a"), [1.25, 3.75, 6.25, 8.75], rtol=1e-14)
    assert metrics.windowed_mean(ramp(("flow", "time")).rename("rtt"), 4.0).dims == ("flow", "time")
    times, means = metrics.windowed_mean([0.0, 2.0, 4.0], 1.0, time=[0.0, 1.0, 2.0])
    assert times.tolist() == [1.0, 2.0]
    assert means.tolist() == [1.0, 3.0]
    for window in (0.0, 11.0):
        with pytest.raises(InvalidInput, match="shorter"):
            metrics.windowed_mean(delay, window)
    with pytest.warns(fc.errors.FluidccWarning, match=r"hold 2.5 samples of the rate"):
        metrics.windowed_mean(ramp(), 2.5)


@given(st.integers(2, 30), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_windows_add_up_to_the_mean(samples: int, windows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    t, x = np.cumsum(rng.uniform(0.1, 1, samples)), rng.normal(size=samples)
    _, means = metrics.windowed_mean(x, (t[-1] - t[0]) / windows, time=t)
    assert len(means) == windows
    assert np.mean(means) == pytest.approx(metrics.mean(x, time=t), abs=1e-12)


def test_settling_time() -> None:
    t = np.linspace(0, 10, 1001)
    x = np.exp(-t)[:, None] * [1.0, -1.0] + 1.0
    # |x - 1| = e^-t = 0.05 at t = log 20.
    np.testing.assert_allclose(metrics.settling_time(x, 1.0, time=t), math.log(20), atol=1e-4)
    np.testing.assert_allclose(
        metrics.settling_time(x, 1.0, time=t, start=1.0), math.log(20) - 1, atol=1e-4
    )
    assert metrics.settling_time(np.ones(5), time=np.arange(5.0)) == 0.0
    to_its_last = metrics.settling_time(1 - np.exp(-3 * t), time=t, tolerance=0.05)
    assert to_its_last == pytest.approx(math.log(20) / 3, abs=1e-2)
    assert math.isnan(metrics.settling_time([0.0, 0.0], 1.0, time=[0.0, 1.0]))
    labelled = metrics.settling_time(ramp(), 10.0)
    assert labelled.sel(flow="a") == pytest.approx(9.5, rel=1e-15)
    assert np.isnan(labelled.sel(flow="b"))
    assert labelled.attrs["units"] == "s"


def test_loss_weighs_by_what_was_sent() -> None:
    ratio = xr.zeros_like(ramp()).rename("loss")
    ratio.loc[{"time": slice(5, None)}] = 0.1
    ratio.loc[{"flow": "b"}] = 0.2
    result = xr.Dataset({"rate": ramp(), "loss": ratio, "rtt": xr.full_like(ratio, 0.1)})
    out = metrics.loss(result, 5.0, 10.0)
    np.testing.assert_allclose(out, [0.1, 0.2], rtol=1e-14)
    t = np.arange(0, 10.001, 0.001)  # part of what is heard from 5 to 7 s left at twice the rate
    halves = {"rate": 2.0 - (t > 4), "loss": 0.1 * ((t >= 5) & (t < 7)), "rtt": 2 + 0 * t}
    cut = xr.Dataset({k: (("time", "flow"), v[:, None]) for k, v in halves.items()}, {"time": t})
    np.testing.assert_allclose(metrics.loss(cut, 5, 9), [0.1 * 3 / 5], rtol=2e-3)
    silent = result.assign(rate=0 * result["rate"])
    assert np.all(np.isnan(metrics.loss(silent)))
    with pytest.raises(InvalidInput, match="'rate'"):
        metrics.loss(ramp())


def test_utilisation() -> None:
    result = xr.Dataset({"utilisation": (ramp() / 10).rename(flow="link")})
    np.testing.assert_allclose(metrics.utilisation(result, 0, 5), [0.25, 0.4], rtol=1e-15)


# --- whose data wait in a queue -------------------------------------------------------------------

PACKET = 8000.0


def test_shares_add_up_to_the_backlogs_of_two_links_in_a_row() -> None:
    """Rates that change, access delays, and a queue before the queue."""
    net = fc.Network().link("a", fc.DropTail, capacity="10 Mbit/s", delay="20 ms")
    net.link("b", fc.DropTail, capacity="8 Mbit/s", delay="5 ms")
    net.flow(
        "long", fc.FAST(alpha=20), route=["a", "b"], start=0, packet=PACKET, access_delay="3 ms"
    )
    net.flow("on a", fc.CBR(rate="6 Mbit/s"), route=["a"], start=1, stop=2.5)
    net.flow("on b", fc.CBR(rate="3 Mbit/s"), route=["b"], start=3, stop=5, access_delay="11 ms")
    run = fc.simulate(net, 6, samples=60001, rtol=1e-8)
    shares = fc.metrics.queue_shares(run, net)
    assert shares.dims == ("time", "link", "flow")
    known = shares.sel(time=slice(0.5, None))
    np.testing.assert_allclose(
        known.sum("flow"), run.backlog.sel(time=slice(0.5, None)), atol=0.05 * PACKET
    )
    assert float(known.sel(link="b", flow="on b").max()) > 10 * PACKET
    assert float(abs(known.sel(link="a", flow="on b")).max()) == 0.0
    assert np.all(np.isnan(shares.values[0, 0]) | (shares.values[0, 0] == 0))


def test_at_rest_each_flow_has_alpha_and_the_newcomer_what_5_says() -> None:
    net = fc.Network().link("l", fc.DropTail, capacity="100 Mbit/s", delay="20 ms")
    for k, start in enumerate((0.0, 0.0, 15.0)):
        net.flow(f"f{k}", fc.FAST, route=["l"], start=start, packet=PACKET)
    run = fc.simulate(net, 40.0, samples=8001, rtol=1e-7)
    last = fc.metrics.queue_shares(run, net).isel(time=-1, link=0) / PACKET
    assert float(last[0]) == pytest.approx(50, rel=5e-3)
    assert float(last[2]) == pytest.approx(fast.newcomer_backlog(2, 50), rel=5e-3)


def test_what_it_cannot_tell_is_refused() -> None:
    net = fc.Network().link(
        "l", fc.DropTail, capacity="1 Mbit/s", delay="20 ms", buffer="5 packets"
    )
    net.flow("f", fc.CBR(rate="2 Mbit/s"), route=["l"], start=0)
    run = fc.simulate(net, 1.0, samples=11)
    with pytest.raises(Unsupported, match="data were lost"):
        fc.metrics.queue_shares(run, net)
    with pytest.raises(InvalidInput, match="other flows or links"):
        fc.metrics.queue_shares(run, net.copy().flow("g", fc.CBR, route=["l"]))
