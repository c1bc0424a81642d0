"""The network engine: conservation of flow, and what must not matter."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc as fc
from benchmarks.reference.cases import CASES
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.numerics.fluid import state as s
from fluidcc.numerics.fluid.entry import advance
from fluidcc.simulation.layout import lay_out
from fluidcc.simulation.simulate import simulate
from fluidcc.simulation.workspace import Workspace
from fluidcc.sources import CBR, LDCC
from tests.simulated import MBIT, network


def _conserved(ds: object, link: str) -> np.ndarray:
    at = ds.sel(link=link)  # type: ignore[attr-defined]
    return (at.entered - at.lost - (at.backlog - at.backlog[0])).values


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    capacities=st.lists(st.floats(0.5, 5.0), min_size=2, max_size=4),
    delays=st.lists(st.floats(0.002, 0.05), min_size=4, max_size=4),
    buffers=st.lists(st.one_of(st.none(), st.floats(2e4, 4e5)), min_size=4, max_size=4),
    rates=st.lists(st.floats(0.1, 2.5), min_size=1, max_size=3),
    cross=st.floats(0.05, 1.0),
    stop=st.floats(1.0, 4.0),
)
def test_queues_conserve_flow(
    capacities: Any, delays: Any, buffers: Any, rates: Any, cross: float, stop: float
) -> None:
    """What leaves one link enters the next a propagation delay later, in random chains."""
    net = Network()
    names = [f"l{k}" for k in range(len(capacities))]
    for k, name in enumerate(names):
        net.link(name, DropTail, capacity=capacities[k] * MBIT, delay=delays[k], buffer=buffers[k])
    for k, rate in enumerate(rates):
        when = {"start": 0.1 * k, "return_delay": 0.03 + 0.01 * k}
        net.flow(f"f{k}", LDCC, route=names, initial={"x": rate * MBIT}, **when)
    late = CBR(rate=cross * MBIT)
    net.flow("late", late, route=names[1:], start=0.5, stop=stop, return_delay=0.1)
    t = np.linspace(0, 5, 26)
    eval_at = np.unique(np.concatenate([t, *(t + d for d in delays[: len(names)])]))
    ds = simulate(net, 6, t_eval=eval_at[eval_at <= 6], rtol=1e-7, atol=1e-10)
    for k, (up, down) in enumerate(pairwise(names)):
        left = _conserved(ds, up)
        position = np.searchsorted(ds.time.values, t + delays[k])
        entered = ds.entered.sel(link=down).values[position]
        if k == 0:
            entered = entered - cross * MBIT * np.clip(t + delays[0] - 0.5, 0, stop - 0.5)
        then = left[np.searchsorted(ds.time.values, t)]
        np.testing.assert_allclose(entered, then, atol=2e-5 * MBIT)
    assert float(ds.backlog.min()) >= 0.0
    for k, buffer in enumerate(buffers[: len(names)]):
        assert buffer is None or float(ds.backlog[:, k].max()) <= buffer * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 1e-7, 0.01])
def test_kinks_are_followed_once_round_a_cycle_of_links(delay: float) -> None:
    """Opposite orders pass each kink on for ever; landings may not multiply with it."""
    net = Network()
    for name, capacity in (("a", 2.0), ("b", 2.2), ("c", 2.4)):
        net.link(name, DropTail, capacity=capacity * MBIT, delay=delay)
    routes = {"ab": "ab", "ba": "ba", "bc": "bc", "cb": "cb", "ca": "ca", "ac": "ac", "abc": "abc"}
    for k, (name, route) in enumerate(routes.items()):
        net.flow(name, LDCC, route=list(route), return_delay=0.03 + 0.004 * k, start=0.1 * k)
    rough, fine = simulate(net, 8), simulate(net, 8, rtol=1e-9)
    assert rough.attrs["breaking_points"] < 100_000  # unbounded, they are millions
    assert rough.attrs["untracked_breaking_points"] > 0
    np.testing.assert_allclose(rough.rate[-1], fine.rate[-1], rtol=1e-5)
    np.testing.assert_allclose(rough.queueing_delay[-1], fine.queueing_delay[-1], atol=1e-6)


def test_flows_that_start_one_after_another_do_not_end_a_step_for_each_that_hears_of_it() -> None:
    """A kink of each of 20 starts reaches 20 flows, which would send on 400 of their own."""
    net = Network().link("a", DropTail, capacity=3e6, delay=0.01)
    net.link("b", DropTail, capacity=4e6, delay=0.02)
    for k in range(20):
        net.flow(
            f"f{k}", LDCC, route=["a", "b"][k % 3 == 2 :], access_delay=0.001 * (k + 1) ** 1.1,
            initial={"x": 2e5 + 1e4 * k},
        )  # fmt: skip
    loose, tight = (simulate(net, 3.0, rtol=rtol, atol=1e-3) for rtol in (1e-6, 1e-10))
    assert loose.attrs["breaking_points"] < 3000
    np.testing.assert_allclose(loose.rate, tight.rate, rtol=1e-4)


def test_the_history_is_bounded() -> None:
    """A run ten times as long needs no more memory for its past."""
    case = next(case for case in CASES if case.name == "limit_cycle")
    sizes = []
    for until in (20.0, 200.0):
        layout, times = lay_out(network(case)), np.array([0.0, until])
        space = Workspace(layout, times, until, rtol=1e-6, atol=1e-9, patterns={})
        hops = 1  # the run begins
        while (code := advance(space.F, space.I, 0, hops, 0.0)) != s.DONE:
            assert code in (s.GROW_RING, s.PAUSED)
            space.grow_ring()
            hops = 0
        sizes.append(int(space.state.ring_mask))
    assert sizes[0] == sizes[1] < 4096


@pytest.mark.parametrize("name", ["GCC", "AdaptiveGCC", "DCCP", "TFRC", "LDCC"])
def test_the_way_to_the_first_link_is_full_of_what_was_sent_before(name: str) -> None:
    """Of a rate that is the smaller of two, the right one, also where the other is infinite."""
    far = {"law": getattr(fc, name), "access_delay": "20 ms"}
    net = fc.dumbbell({"far": far}, {"capacity": "1 Gbit/s"})
    run = fc.simulate(net, 0.019, samples=5)
    np.testing.assert_allclose(run.arrival_rate.values[:, 0], float(run.rate[0, 0]), rtol=1e-3)
