"""Links that drop before their queue, and routers that tell sources something past the data."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Max, Min, symbols

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, InvalidInput, LawError
from fluidcc.laws import extended
from fluidcc.symbols import noise, offer_max, offer_min, q_max, t, y

(q,) = fc.DropTail.states
p, slope = symbols("p slope", positive=True)
ThirdDropped = replace(
    fc.DropTail, name="ThirdDropped", out={**fc.DropTail.out, "drop": p}, params={p: 1 / 3},
    units={**fc.DropTail.units, p: "1"}, claims={},
)  # fmt: skip


def over(link: fc.Link, *flows: Any, **path: Any) -> fc.Network:
    """Flows over one link, each a law or all that a flow is given."""
    return fc.dumbbell(flows, {"name": "l", "law": link, "delay": 0.01, **path})


@pytest.mark.parametrize("engine", ["array", "fused"])
def test_a_link_hears_its_buffer_in_seconds_and_tells_price_and_mark_apart(engine: str) -> None:
    """1.2 Mbit/s fill a fifth of a second at 1 Mbit/s in one second."""
    out = {"price": q / q_max, "mark": q_max / (2 * q_max + 2 * q)}
    law = extended(fc.DropTail, "Filling", out=out)
    net = over(law, fc.CBR(rate=1.2e6), capacity=1e6, buffer=0.2e6)
    ds = fc.simulate(net, 2, t_eval=[0.25, 0.5, 1.5], engine=engine)
    np.testing.assert_allclose(ds.link_price[:, 0], [0.25, 0.5, 1], rtol=1e-9)
    full = 1 - (1 - 0.2 / 1.2) * (1 - 1 / 4)
    assert float(ds.loss[-1, 0]) == pytest.approx(full, rel=1e-9)


# --- early drops ----------------------------------------------------------------------------------


def test_a_constant_share_is_dropped_before_the_queue() -> None:
    """3 Mbit/s come, 2 are let in, 1.5 leave: a third of a second of queue a second, until full."""
    net = over(ThirdDropped, fc.CBR(rate=3e6), capacity=1.5e6, buffer=1.5e6)
    ds = fc.simulate(net, 4, t_eval=[1, 2.9, 3.5, 4], engine="array")
    np.testing.assert_allclose(ds.queueing_delay[:, 0], [1 / 3, 2.9 / 3, 1, 1], rtol=1e-9)
    np.testing.assert_allclose(ds.arrival_rate[:, 0], 3e6, rtol=1e-12)
    np.testing.assert_allclose(ds.link_loss[:, 0], [1 / 3, 1 / 3, 0.5, 0.5], rtol=1e-9)
    np.testing.assert_allclose(ds.entered[:, 0], 3e6 * ds.time, rtol=1e-9)
    np.testing.assert_allclose(ds.lost[:, 0], [1e6, 2.9e6, 3e6 + 0.75e6, 3e6 + 1.5e6], rtol=1e-9)
    assert float(ds.loss[0, 0]) == pytest.approx(1 / 3)


def test_marks_are_of_what_is_not_dropped() -> None:
    both = replace(ThirdDropped, name="Both", out={**ThirdDropped.out, "mark": p})
    ds = fc.simulate(over(both, fc.CBR(rate=3e6), capacity=9e6), 1, t_eval=[1], engine="array")
    assert float(ds.loss[-1, 0]) == pytest.approx(5 / 9, rel=1e-12)
    assert float(ds.link_loss[-1, 0]) == pytest.approx(1 / 3, rel=1e-12)


def branching(
    law: fc.Link, rates: list[float], capacity: float, buffer: float | None = None
) -> fc.Network:
    """Two flows over a link that drops, each then on its own way: thinned by itself."""
    net = fc.Network().link("a", law, capacity=capacity, delay=0.02, buffer=buffer)
    pattern = [(0.5 * k, rate) for k, rate in enumerate(rates)]
    for name, after, shift in (("f", "b", 0.0), ("g", "c", 0.013)):
        net.link(after, fc.DropTail, capacity=2e6, delay=0.01)
        net.flow(name, fc.CBR, route=["a", after], access_delay=shift, start=0, pattern=pattern)
    return net


LAWS = [fc.REDDrop(T=0.3, min_th=0.02, max_th=0.2), fc.PAQMDrop(dT=0.05), ThirdDropped]


@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    st.sampled_from(LAWS),
    st.lists(st.floats(0, 2e6), min_size=2, max_size=6),
    st.floats(0.3e6, 3e6),
    st.booleans(),
)
def test_what_comes_leaves_waits_or_is_lost(
    law: fc.Link, rates: list[float], capacity: float, full: bool
) -> None:
    net = branching(law, rates, capacity, 0.2 * capacity if full else None)
    ds = fc.simulate(net, 3, t_eval=[0.98, 1.0, 1.98, 2.0, 2.98, 3.0], rtol=1e-8, engine="array")
    served = (ds.entered - ds.lost - ds.backlog).sel(link="a").values[::2]
    arrived = ds.entered.sel(link=["b", "c"]).sum("link").values[1::2]
    np.testing.assert_allclose(arrived, served, rtol=1e-8, atol=1e-3)


def test_what_waits_while_all_is_dropped_leaves_at_the_capacity() -> None:
    """A queue in which RED lets nothing in is served on; what is let in again leaves at once."""
    net = branching(LAWS[0], [0.66e6, 1.58e6, 0.61e6, 0.91e6, 0.27e6, 0.81e6], 0.85e6)
    times = np.arange(0.4, 3, 0.02)
    ds = fc.simulate(net, 3, t_eval=times, rtol=1e-8, engine="array")
    loss, queue = (ds[name].sel(link="a").values for name in ("link_loss", "queueing_delay"))
    assert np.any((loss == 1) & (queue > 0.1))
    assert queue.min() > 0
    arrived = ds.arrival_rate.sel(link=["b", "c"]).sum("link")
    np.testing.assert_allclose(arrived[1:], 0.85e6, rtol=1e-9)


def test_a_run_goes_on_from_where_it_stopped() -> None:
    net = branching(LAWS[0], [1e6, 0.2e6, 1.4e6], 0.9e6)
    first = fc.simulate(net, 0.97, rtol=1e-9, samples=2, engine="array")
    second = fc.simulate(net, 3, rtol=1e-9, samples=2, restart=first, engine="array")
    whole = fc.simulate(net, 3, rtol=1e-9, samples=2, engine="array")
    for name in ("entered", "lost", "backlog"):
        np.testing.assert_allclose(second[name][-1], whole[name][-1], rtol=1e-7, atol=1e-3)


# --- offers ---------------------------------------------------------------------------------------

start = symbols("start", positive=True)
Ramp = replace(
    fc.DropTail, name="Ramp", out={**fc.DropTail.out, "offer": start + slope * t}, claims={},
    params={start: 1e6, slope: 1e5}, units={**fc.DropTail.units, start: "bit/s", slope: "bit/s^2"},
)  # fmt: skip
most = symbols("most", positive=True)
Least, Largest = (
    fc.Source(name, out={"rate": told}, params={most: bound}, units={most: "bit/s"})
    for name, told, bound in (
        ("Least", Min(offer_min, most), 9e6),
        ("Largest", Max(offer_max, most), 1),
    )
)


def test_the_least_and_the_largest_offer_arrive_after_the_way_straight_back() -> None:
    """The second router is behind the first one's link, and no queue is on the way."""
    net = fc.Network().link("one", Ramp, capacity=1e5, delay=0.03)
    net.link("none", fc.DropTail, capacity=1e9, delay=0.04)
    net.link("two", Ramp(start=2e6, slope=3e4), capacity=1e9, delay=0.01)
    for name, law in (("least", Least), ("largest", Largest)):
        net.flow(name, law, route=["one", "none", "two"], access_delay=0.02)
    times = np.array([5.0, 12, 16, 20])
    ds = fc.simulate(net, 20, t_eval=times)
    heard = np.array([1e6 + 1e5 * (times - 0.02), 2e6 + 3e4 * (times - 0.09)])
    np.testing.assert_allclose(ds.rate.sel(flow="least"), heard.min(0), rtol=1e-9)
    np.testing.assert_allclose(ds.rate.sel(flow="largest"), heard.max(0), rtol=1e-9)
    assert float(ds.queueing_delay[-1, 0]) > 1


def test_where_another_offer_becomes_the_least_is_an_event() -> None:
    """What is sent by the least of three offers that cross, in few steps: its integral."""
    net = fc.Network()
    Falling = replace(Ramp, name="Falling", out={**Ramp.out, "offer": start - slope * t})
    offers = [(Ramp, 1e6, 1e5), (Ramp, 1.7e6, 1e-3), (Falling, 2.9e6, 1.3e5)]
    for k, (law, first, rise) in enumerate(offers):
        net.link(f"l{k}", law(start=first, slope=rise), capacity=1e9, delay=0.03)
    net.flow("f", Least(most=1e8), route=net.link_names, access_delay=0.02, start=1)
    end = 20.0
    ds = fc.simulate(net, end, samples=2, rtol=1e-3)
    slopes = np.array([1e5, 1e-3, -1.3e5])
    told = np.array([1e6, 1.7e6, 2.9e6]) - slopes * (0.02 + 0.03 * np.arange(3))
    crossings = [(told[k] - told[j]) / (slopes[j] - slopes[k]) for j in range(3) for k in range(j)]
    knots = np.sort([1.0, end - 0.02, *(x for x in crossings if 1 < x < end - 0.02)])
    least = (told[:, None] + slopes[:, None] * knots).min(0)
    wanted = np.sum(np.diff(knots) * (least[1:] + least[:-1]) / 2)
    assert float(ds.entered[-1, 0]) == pytest.approx(wanted, rel=1e-11)
    assert ds.attrs["events"] >= 2
    assert ds.attrs["steps"] < 100


def test_a_router_beside_the_source_tells_it_at_once() -> None:
    """An offer is followed as it changes; a report changes the rate at the tick itself."""
    ds = fc.simulate(over(Ramp, Least, capacity=1e9, delay=0.1), 5, t_eval=[0, 1.3, 5])
    np.testing.assert_allclose(ds.rate[:, 0], 1e6 + 1e5 * ds.time, rtol=1e-12)
    at = np.arange(0.05, 4, 0.1)
    flows = ([{"law": fc.ECF, "access_delay": away}] * 2 for away in (0.0, 1e-7))
    nets = (over(fc.PAQMECF(T_ECF=0.16), *pair, capacity=30e6, delay=0.02) for pair in flows)
    close, apart = (fc.simulate(net, 4, t_eval=at, rtol=1e-8) for net in nets)
    np.testing.assert_allclose(close.rate, apart.rate, rtol=1e-4)
    jumps = np.unique(np.round(fc.metrics.jumps(close).time.values / 0.16, 9))
    np.testing.assert_allclose(jumps, np.round(jumps), atol=1e-9)
    assert len(jumps) > 20


def test_without_offers_the_least_is_beyond_all_and_the_largest_nothing() -> None:
    net = over(fc.DropTail, Least, Largest, capacity=1e7)
    with pytest.warns(FluidccWarning, match="route of flow1 reports or offers"):
        ds = fc.simulate(net, 1, samples=3)
    np.testing.assert_allclose(ds.rate, [[9e6, 1]] * 3, rtol=1e-12)


# --- flows that cross, noise ----------------------------------------------------------------------


def test_noise_has_mean_zero_and_variance_one_and_follows_the_seed() -> None:
    interval = symbols("interval", positive=True)
    law = fc.Source("Noisy", out={"rate": most * (10 + noise)}, params={most: 1, interval: 0.01},
                    units={most: "bit/s", interval: "s"})  # fmt: skip
    net, times = over(fc.DropTail, law, law, capacity=1e7), 0.01 * np.arange(2000) + 0.005
    runs = (fc.simulate(net, 20, t_eval=times, seed=seed) for seed in (1, 1, 2))
    one, same, other = (run.rate.values - 10 for run in runs)
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)
    assert abs(one.mean(0)).max() < 4 / np.sqrt(2000)
    assert abs(one.var(0) - 1).max() < 0.2
    assert abs(np.corrcoef(one.T)[0, 1]) < 0.1


# --- refusals -------------------------------------------------------------------------------------


def test_what_cannot_be_is_refused() -> None:
    by_arrivals = replace(
        fc.DropTail, name="Rest", out={**fc.DropTail.out, "offer": y / 2}, claims={}
    )
    far = fc.Network()
    for k in range(4):
        far.link(f"l{k}", fc.PAQMECF, capacity=1e6, delay=0.1)
    far.flow("f", fc.ECF, route=far.link_names, access_delay=0.1)
    late = {"law": Least, "access_delay": 0.1}
    for call, says in (
        (lambda: fc.simulate(over(by_arrivals, Least, capacity=1e6), 1),
         "a loop without any delay; give the flow an access_delay"),
        (lambda: fc.simulate(far, 1),
         "crosses 4 links that report, and a source keeps a rate for 3 .* fluidcc.PAQMDrop"),
        (lambda: fc.compile(over(Ramp, late, capacity=1e6)),
         "Least tells or hears more than data carry"),
        (lambda: replace(ThirdDropped, name="Half", out={**ThirdDropped.out, "factor": 1}),
         "reports 'factor' without 'raise'"),
        (lambda: replace(fc.PenaltyLink, name="Odd", out={"drop": 0.1}, claims={}),
         "'drop' is what does not enter the queue"),
    ):  # fmt: skip
        with pytest.raises((InvalidInput, LawError), match=says):
            call()
