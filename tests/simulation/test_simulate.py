"""The network engine against independent solutions and exact ones."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

from benchmarks.networks import delays
from benchmarks.reference.cases import CASES
from benchmarks.reference.problem import Case
from fluidcc.equilibria.num import solve
from fluidcc.links import DropTail, DualLink
from fluidcc.network import Network
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, LDCC, PrimalDual
from tests.simulated import DATA, MBIT, network, one_link

# --- independent solutions ------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("rtol", [1e-5, 1e-9])
def test_an_independent_solver_agrees(case: Case, rtol: float) -> None:
    """Queues that empty and fill hundreds of times, full buffers, two hops: no event is missed or
    met twice, and where a step looks into itself, three to four passes a step are enough.
    """
    known = np.load(DATA / f"reference_{case.name}.npz")
    how: Any = {"rtol": rtol, "atol": rtol * 1e-3, "delays": delays(case)}
    ds = simulate(network(case), case.until, t_eval=known["time"], engine="array", **how)
    cycles = 1 + ds.attrs["events"] / 4
    allowed = 4 * rtol * cycles  # each kink adds an error of the tolerance's size
    assert np.max(np.abs(ds.rate.values.T - known["rate"])) / 3e6 < allowed
    assert np.max(np.abs(ds.queueing_delay.values.T - known["queue"])) < allowed
    assert ds.attrs["extra_passes"] < 3 * ds.attrs["steps"]
    if rtol == 1e-9 and case.name.endswith("cycle"):
        assert ds.attrs["events"] == len(known["event_what"])


# --- exact solutions ------------------------------------------------------------------------------


def test_constant_rates_fill_and_drain_a_queue_exactly() -> None:
    net = one_link(capacity="1 Mbit/s", buffer=400e3)
    net.flow("a", CBR(rate=0.8 * MBIT), route=["l"])
    net.flow("b", CBR(rate=0.7 * MBIT), route=["l"], start=1, stop=3)
    ds = simulate(net, 6, t_eval=np.linspace(0, 6, 61))
    t = ds.time.values
    # +0.5 Mbit/s, full at 1.8 s, then -0.2 Mbit/s
    bits = np.interp(t, [0, 1, 1.8, 3, 5], [0, 0, 400e3, 400e3, 0])
    np.testing.assert_allclose(ds.backlog.values[:, 0], bits, atol=1e-3)
    np.testing.assert_allclose(ds.queueing_delay.values[:, 0], bits / MBIT, atol=1e-9)
    full = (t > 1.8) & (t < 3)
    np.testing.assert_allclose(ds.link_loss.values[full, 0], 1 - 1 / 1.5, rtol=1e-12)
    np.testing.assert_allclose(ds.lost.values[-1, 0], 0.5 * MBIT * 1.2, rtol=1e-12)


@pytest.mark.parametrize(("given", "stretch"), [("fifo", 1.5), ("frozen", 1.0)])
def test_a_source_knows_the_delay_of_what_it_sent(given: str, stretch: float) -> None:
    """theta + queue + propagation + return = t; frozen delays look back by constants."""
    net = one_link(capacity=1 * MBIT, delay=0.02)
    net.flow("a", CBR(rate=1.5 * MBIT), route=["l"], start=0, access_delay=0.01, return_delay=0.04)
    ds = simulate(net, 2, t_eval=np.linspace(0.2, 2, 19), delays=given)
    sent = (ds.time.values - 0.04 - 0.02 - 0.01) / stretch  # sent at theta, it waits theta/2
    delay = ds.one_way_delay.values[:, 0]
    np.testing.assert_allclose(delay, 0.01 + 0.02 + 0.5 * sent, rtol=1e-10)
    np.testing.assert_allclose(ds.rtt.values[:, 0], delay + 0.04, rtol=1e-12)


def test_a_busy_queue_shares_its_capacity_by_what_entered() -> None:
    """The second link sees each share of the capacity of the first, a delay later."""
    net = Network().link("a", DropTail, capacity=1 * MBIT, delay=0.1)
    net.link("b", DropTail, capacity=0.2 * MBIT)
    net.flow("through", CBR(rate=0.5 * MBIT), route=["a", "b"], start=0, return_delay=0.1)
    net.flow("cross", CBR(rate=1.5 * MBIT), route=["a"], start=0)
    ds = simulate(net, 4, t_eval=[0.05, 0.0999, 0.1001, 1, 3.9])
    arrived = ds.arrival_rate.sel(link="b") / MBIT
    np.testing.assert_allclose(arrived, [0, 0, 0.25, 0.25, 0.25])
    np.testing.assert_allclose(ds.backlog.sel(link="b").values[-1], 0.05 * MBIT * 3.8, rtol=1e-9)


def test_an_initial_backlog_leaves_in_shares_of_the_initial_rates() -> None:
    net = Network().link("a", DropTail, capacity=1 * MBIT, delay=0.1, initial={"q": 0.5})
    net.link("b", DropTail, capacity=10 * MBIT)
    net.flow("through", CBR(rate=0.3 * MBIT), route=["a", "b"])
    net.flow("cross", CBR(rate=0.1 * MBIT), route=["a"])
    ds = simulate(net, 3, t_eval=[0.2, 0.5, 2.5])
    arrived = ds.arrival_rate.sel(link="b") / MBIT
    np.testing.assert_allclose(arrived, [0.75, 0.75, 0.3], rtol=1e-9)


def test_a_capacity_change_keeps_the_backlog_and_changes_the_delay() -> None:
    net = one_link(capacity=[(0, 1 * MBIT), (1, 0.5 * MBIT), (2, 2 * MBIT)])
    net.flow("a", CBR(rate=1.2 * MBIT), route=["l"], start=0)
    ds = simulate(net, 3, t_eval=[0.5, 0.999, 1.5, 1.999, 2.5])
    bits = np.array([0.1, 0.1998, 0.55, 0.8993, 0.5]) * MBIT
    np.testing.assert_allclose(ds.backlog.values[:, 0], bits, rtol=1e-9)
    # What arrives at 0.999 s waits for 0.001 Mbit at 1 Mbit/s, then for the rest at 0.5 Mbit/s.
    waited = 0.001 + (0.1998 - 0.001) / 0.5
    np.testing.assert_allclose(ds.queueing_delay.values[1, 0], waited, rtol=1e-9)


def test_one_flow_below_its_threshold_grows_linearly() -> None:
    """With e < T and an empty queue, (15) is x' = k w: a line, of which no step makes an error."""
    law = LDCC(w=20e3, eta=0.4)
    net = one_link(capacity=100 * MBIT).flow("a", law, route=["l"], initial={"x": 1e5})
    ds = simulate(net, 5, rtol=1e-3)
    assert ds.attrs["steps"] < 9
    np.testing.assert_allclose(ds.rate[:, 0], 1e5 + 0.4 / 0.05 * 20e3 * ds.time, rtol=1e-9)


def test_a_queue_that_fills_at_a_multiple_of_the_lag_is_not_missed() -> None:
    """x' = 2 Mbit/s^2 reaches 1 Mbit/s at 0.4 s, eight lags of 50 ms, from rest."""
    law = LDCC(w=0.1 * MBIT, eta=1.0)
    net = one_link(capacity=1 * MBIT).flow("a", law, route=["l"], initial={"x": 0.2 * MBIT})
    ds = simulate(net, 0.45, t_eval=[0.4, 0.41, 0.42, 0.44], rtol=1e-8)
    t = ds.time.values - 0.4
    np.testing.assert_allclose(ds.backlog.values[:, 0], MBIT * t**2, atol=1e-3)


def test_flows_start_and_stop_more_than_once() -> None:
    net = one_link(capacity=10 * MBIT)
    net.flow("a", LDCC, route=["l"], start=[1, 4], stop=[2, 5], initial={"x": 1e5})
    ds = simulate(net, 6, t_eval=[0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 5.5], rtol=1e-9)
    growth = 1e5 + 0.4 / 0.05 * 20e3 * 0.5
    np.testing.assert_allclose(ds.rate.values[:, 0], [0, 1e5, growth, 0, 0, growth, 0], rtol=1e-9)


def test_access_delays_shift_a_flow_as_a_whole() -> None:
    """It meets the queue later and hears of it later; alone, its rate is that of none."""
    same: Any = {"route": ["l"], "start": 0, "initial": {"x": 4e6}}
    near = one_link().flow("a", LDCC, return_delay=0.075, **same)
    late = LDCC(T=0.15)  # the access delay counts in e
    far = one_link().flow("a", late, access_delay=0.05, return_delay=0.025, **same)
    t = np.linspace(0, 10, 101)
    first, second, shifted = (
        simulate(net, 11, t_eval=times, rtol=1e-9, atol=1e-12)
        for net, times in ((near, t), (far, t), (far, t + 0.05))
    )
    np.testing.assert_allclose(second.rate.values, first.rate.values, rtol=1e-7)
    np.testing.assert_allclose(shifted.backlog.values, first.backlog.values, atol=1.0)


# --- laws -----------------------------------------------------------------------------------------


def test_the_dual_prices_converge_to_the_utility_maximum() -> None:
    slow = DualLink(nu=2e-8)  # slow against the delays, so that the loop is well damped
    net = Network().link("a", slow, capacity=2.0 * MBIT, delay=0.01)
    net.link("b", slow, capacity=1.0 * MBIT)
    for name, route in (("long", ["a", "b"]), ("one", ["a"]), ("two", ["b"])):
        net.flow(name, PrimalDual, route=route, return_delay=0.02, initial={"x": 0.4 * MBIT})
    ds = simulate(net, 1500, samples=11, rtol=1e-8)
    np.testing.assert_allclose(ds.rate.values[-1], solve(net).rate.values, rtol=1e-6)


def test_the_dataset_is_what_xarray_makes_of_its_values() -> None:
    net = one_link().flow("near", LDCC, route=["l"])
    ds = simulate(net.flow("far", LDCC, route=["l"], access_delay=0.01), 2)
    of = {name: (v.dims, v.values, v.attrs) for name, v in ds.data_vars.items()}
    time = ("time", ds.time.values, {"units": "s"})
    coords = {"time": time, "flow": ["near", "far"], "link": ["l"]}
    made = xr.Dataset(of, coords=coords, attrs=ds.attrs)
    xr.testing.assert_identical(ds, made)
    for dim in coords:
        assert ds[dim].dtype == made[dim].dtype
        assert ds.indexes[dim].dtype == made.indexes[dim].dtype
    assert ds.sel(flow="far", time=2.0).rate.ndim == 0
