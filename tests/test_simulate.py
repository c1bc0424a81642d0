"""The network engine against independent solutions, exact ones, and invariants."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.reference.cases import CASES
from benchmarks.reference.problem import Case
from fluidcc.errors import InvalidInput, NegativeRate, NotFinite
from fluidcc.law import Source
from fluidcc.links import DropTail, DualLink
from fluidcc.network import Network
from fluidcc.simulate import simulate
from fluidcc.sources import CBR, LDCC, OnOff, PrimalDual, Reno

DATA = Path(__file__).parent / "data"
MBIT = 1e6


def network(case: Case) -> Network:
    net = Network()
    for k, link in enumerate(case.links):
        buffer = None if math.isinf(link.q_max) else link.q_max * link.capacity
        net.link(f"l{k}", DropTail, capacity=link.capacity, delay=link.delay, buffer=buffer)
    law = LDCC(w=case.w, beta=case.beta, T=case.T, eta=case.eta)
    for k, f in enumerate(case.flows):
        net.flow(f"f{k}", law, route=[f"l{i}" for i in f.route], return_delay=f.return_delay, initial={"x": f.rate})
    return net


def one_link(capacity: object = 3e6, delay: float = 0.025, buffer: object = None, **initial: float) -> Network:
    return Network().link("l", DropTail, capacity=capacity, delay=delay, buffer=buffer, initial=initial or None)


# --- independent solutions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("rtol", [1e-5, 1e-7, 1e-9])
def test_an_independent_solver_agrees(case: Case, rtol: float) -> None:
    """Queues that empty and fill hundreds of times, full buffers, two hops: errors stay near the tolerance."""
    known = np.load(DATA / f"reference_{case.name}.npz")
    delays = "fifo" if case.fifo else "frozen"
    ds = simulate(network(case), case.until, t_eval=known["time"], rtol=rtol, atol=rtol * 1e-3, delays=delays)
    cycles = 1 + ds.attrs["events"] / 4
    allowed = 10 * rtol * cycles  # each kink adds an error of the tolerance's size
    assert np.max(np.abs(ds.rate.values.T - known["rate"])) / 3e6 < allowed
    assert np.max(np.abs(ds.queueing_delay.values.T - known["queue"])) < allowed


@pytest.mark.parametrize("name", ["full_cycle", "limit_cycle", "parking_cycle"])
def test_no_event_is_missed_or_met_twice(name: str) -> None:
    """As many changes of mode as the independent solver located: queues empty, busy, full."""
    case = next(case for case in CASES if case.name == name)
    known = np.load(DATA / f"reference_{name}.npz")["event_what"]
    assert simulate(network(case), case.until, rtol=1e-9, atol=1e-12).attrs["events"] == len(known)


def test_a_long_limit_cycle_keeps_its_accuracy() -> None:
    case = next(case for case in CASES if case.name == "limit_cycle")
    coarse = simulate(network(case), 60, rtol=1e-6, atol=1e-9)
    fine = simulate(network(case), 60, rtol=1e-8, atol=1e-11)
    assert coarse.attrs["events"] > 200
    assert float(np.abs(coarse.rate - fine.rate).max()) / 3e6 < 1e-4
    assert float(np.abs(coarse.queueing_delay - fine.queueing_delay).max()) < 1e-5


# --- exact solutions -------------------------------------------------------------------------------------------------


def test_constant_rates_fill_and_drain_a_queue_exactly() -> None:
    net = one_link(capacity="1 Mbit/s", buffer=400e3)
    net.flow("a", CBR(rate=0.8 * MBIT), route=["l"]).flow("b", CBR(rate=0.7 * MBIT), route=["l"], start=1, stop=3)
    ds = simulate(net, 6, t_eval=np.linspace(0, 6, 61))
    t = ds.time.values
    bits = np.interp(t, [0, 1, 1.8, 3, 5], [0, 0, 400e3, 400e3, 0])  # +0.5 Mbit/s, full at 1.8 s, then -0.2 Mbit/s
    np.testing.assert_allclose(ds.backlog.values[:, 0], bits, atol=1e-3)
    np.testing.assert_allclose(ds.queueing_delay.values[:, 0], bits / MBIT, atol=1e-9)
    full = (t > 1.8) & (t < 3)
    np.testing.assert_allclose(ds.link_loss.values[full, 0], 1 - 1 / 1.5, rtol=1e-12)
    np.testing.assert_allclose(ds.lost.values[-1, 0], 0.5 * MBIT * 1.2, rtol=1e-12)


def test_a_source_knows_the_delay_of_what_it_sent() -> None:
    """theta + queue + propagation + return = t, for a queue that grows at a constant rate from time 0."""
    net = one_link(capacity=1 * MBIT, delay=0.02)
    net.flow("a", CBR(rate=1.5 * MBIT), route=["l"], start=0, access_delay=0.01, return_delay=0.04)
    ds = simulate(net, 2, t_eval=np.linspace(0.2, 2, 19))
    t = ds.time.values
    sent = (t - 0.04 - 0.02 - 0.01) / 1.5  # sent at theta, it waits theta/2
    np.testing.assert_allclose(ds.one_way_delay.values[:, 0], 0.01 + 0.02 + 0.5 * sent, rtol=1e-10)
    np.testing.assert_allclose(ds.rtt.values[:, 0], ds.one_way_delay.values[:, 0] + 0.04, rtol=1e-12)


def test_frozen_delays_look_back_by_constants() -> None:
    net = one_link(capacity=1 * MBIT, delay=0.02)
    net.flow("a", CBR(rate=1.5 * MBIT), route=["l"], start=0, return_delay=0.04)
    ds = simulate(net, 2, t_eval=np.linspace(0.2, 2, 19), delays="frozen")
    np.testing.assert_allclose(ds.one_way_delay.values[:, 0], 0.02 + 0.5 * (ds.time.values - 0.06), rtol=1e-10)


def test_a_busy_queue_shares_its_capacity_by_what_entered() -> None:
    """Two constant rates through a busy first link: the second sees each share of the capacity, a delay later."""
    net = Network().link("a", DropTail, capacity=1 * MBIT, delay=0.1).link("b", DropTail, capacity=0.2 * MBIT)
    net.flow("through", CBR(rate=0.5 * MBIT), route=["a", "b"], start=0, return_delay=0.1)
    net.flow("cross", CBR(rate=1.5 * MBIT), route=["a"], start=0)
    ds = simulate(net, 4, t_eval=[0.05, 0.0999, 0.1001, 1, 3.9])
    np.testing.assert_allclose(ds.arrival_rate.sel(link="b").values, np.array([0, 0, 0.25, 0.25, 0.25]) * MBIT)
    np.testing.assert_allclose(ds.backlog.sel(link="b").values[-1], 0.05 * MBIT * 3.8, rtol=1e-9)


def test_an_initial_backlog_leaves_in_shares_of_the_initial_rates() -> None:
    net = Network().link("a", DropTail, capacity=1 * MBIT, delay=0.1, initial={"q": 0.5})
    net.link("b", DropTail, capacity=10 * MBIT)
    net.flow("through", CBR(rate=0.3 * MBIT), route=["a", "b"]).flow("cross", CBR(rate=0.1 * MBIT), route=["a"])
    ds = simulate(net, 3, t_eval=[0.2, 0.5, 2.5])
    np.testing.assert_allclose(ds.arrival_rate.sel(link="b").values, [0.75 * MBIT, 0.75 * MBIT, 0.3 * MBIT], rtol=1e-9)


def test_a_capacity_change_keeps_the_backlog_and_changes_the_delay() -> None:
    net = one_link(capacity=[(0, 1 * MBIT), (1, 0.5 * MBIT), (2, 2 * MBIT)])
    net.flow("a", CBR(rate=1.2 * MBIT), route=["l"], start=0)
    ds = simulate(net, 3, t_eval=[0.5, 0.999, 1.5, 1.999, 2.5])
    bits = np.array([0.1, 0.1998, 0.55, 0.8993, 0.5]) * MBIT
    np.testing.assert_allclose(ds.backlog.values[:, 0], bits, rtol=1e-9)
    # What arrives at 0.999 s waits for 0.001 Mbit at 1 Mbit/s, then for the rest at 0.5 Mbit/s.
    np.testing.assert_allclose(ds.queueing_delay.values[1, 0], 0.001 + (0.1998 - 0.001) / 0.5, rtol=1e-9)


def test_one_flow_below_its_threshold_grows_linearly() -> None:
    """With e < T and an empty queue, (15) is x' = k w."""
    law = LDCC(w=20e3, eta=0.4)
    net = one_link(capacity=100 * MBIT).flow("a", law, route=["l"], initial={"x": 1e5})
    ds = simulate(net, 5, rtol=1e-9)
    np.testing.assert_allclose(ds.rate.values[:, 0], 1e5 + 0.4 / 0.05 * 20e3 * ds.time.values, rtol=1e-9)


def test_a_queue_that_fills_at_a_multiple_of_the_lag_is_not_missed() -> None:
    """x' = 2 Mbit/s^2 reaches the capacity of 1 Mbit/s at 0.4 s, eight lags of 50 ms, from rest on an empty queue."""
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
    """A flow with an access delay meets the queue later and hears of it later; alone, its rate is that of none."""
    start = {"x": 4e6}
    near = one_link().flow("a", LDCC, route=["l"], return_delay=0.075, start=0, initial=start)
    late = LDCC(T=0.15)  # the access delay counts in e
    far = one_link().flow("a", late, route=["l"], access_delay=0.05, return_delay=0.025, start=0, initial=start)
    t = np.linspace(0, 10, 101)
    first = simulate(near, 11, t_eval=t, rtol=1e-9, atol=1e-12)
    second = simulate(far, 11, t_eval=t, rtol=1e-9, atol=1e-12)
    shifted = simulate(far, 11, t_eval=t + 0.05, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(second.rate.values, first.rate.values, rtol=1e-7)
    np.testing.assert_allclose(shifted.backlog.values, first.backlog.values, atol=1.0)


# --- laws ------------------------------------------------------------------------------------------------------------


def test_reno_settles_at_the_square_root_law() -> None:
    """W^2 pi = 2 on a full buffer, with the loss that the rates cause; windows so small that the loop is stable."""
    net = one_link(capacity=1 * MBIT, buffer=5 * 8000)
    for k in range(6):
        net.flow(f"f{k}", Reno, route=["l"], initial={"W": 2 + 0.1 * k})
    ds = simulate(net, 100, samples=21, rtol=1e-8)
    W, loss = ds.Reno_W.values[-1], ds.loss.values[-1]
    np.testing.assert_allclose(W**2 * loss, 2.0, rtol=1e-6)
    np.testing.assert_allclose(ds.throughput.values[-1, 0], 1 * MBIT)
    np.testing.assert_allclose(ds.rate.values[-1], W * 8000 / ds.rtt.values[-1], rtol=1e-9)


def test_the_dual_prices_converge_to_the_utility_maximum() -> None:
    from fluidcc.num import solve

    slow = DualLink(nu=2e-8)  # slow against the delays, so that the loop is well damped
    net = Network().link("a", slow, capacity=2.0 * MBIT, delay=0.01).link("b", slow, capacity=1.0 * MBIT)
    for name, route in (("long", ["a", "b"]), ("one", ["a"]), ("two", ["b"])):
        net.flow(name, PrimalDual, route=route, return_delay=0.02, initial={"x": 0.4 * MBIT})
    ds = simulate(net, 1500, samples=11, rtol=1e-8)
    np.testing.assert_allclose(ds.rate.values[-1], solve(net).rate.values, rtol=1e-6)


def test_modulated_traffic_follows_its_seed() -> None:
    net = one_link(buffer=80e3).flow("a", OnOff(peak=5e6), route=["l"])
    one, same, other = (simulate(net, 3, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.rate, same.rate)
    assert not np.array_equal(one.rate, other.rate)
    assert set(np.unique(one.rate.values)) == {0.0, 5e6}


# --- invariants ------------------------------------------------------------------------------------------------------


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
    capacities: list[float], delays: list[float], buffers: list[float | None], rates: list[float], cross: float,
    stop: float,
) -> None:  # fmt: skip
    """What leaves one link enters the next a propagation delay later, nothing lost or made, in random chains."""
    net = Network()
    names = [f"l{k}" for k in range(len(capacities))]
    for k, name in enumerate(names):
        net.link(name, DropTail, capacity=capacities[k] * MBIT, delay=delays[k], buffer=buffers[k])
    for k, rate in enumerate(rates):
        net.flow(f"f{k}", LDCC, route=names, start=0.1 * k, return_delay=0.03 + 0.01 * k, initial={"x": rate * MBIT})
    net.flow("late", CBR(rate=cross * MBIT), route=names[1:], start=0.5, stop=stop, return_delay=0.1)
    t = np.linspace(0, 5, 26)
    eval_at = np.unique(np.concatenate([t, *(t + d for d in delays[: len(names)])]))
    ds = simulate(net, 6, t_eval=eval_at[eval_at <= 6], rtol=1e-7, atol=1e-10)
    for k, (up, down) in enumerate(pairwise(names)):
        left = _conserved(ds, up)
        position = np.searchsorted(ds.time.values, t + delays[k])
        entered = ds.entered.sel(link=down).values[position]
        if k == 0:
            entered = entered - cross * MBIT * np.clip(t + delays[0] - 0.5, 0, stop - 0.5)
        np.testing.assert_allclose(entered, left[np.searchsorted(ds.time.values, t)], atol=2e-5 * MBIT)
    assert float(ds.backlog.min()) >= 0.0
    finite = [k for k, b in enumerate(buffers[: len(names)]) if b is not None]
    for k in finite:
        assert float(ds.backlog[:, k].max()) <= buffers[k] * (1 + 1e-9)  # type: ignore[operator]


def test_links_without_delay_see_the_present() -> None:
    """Three links in a row, no propagation delay between them: the narrowest holds the queue, nothing is lost."""
    net = Network()
    for name, capacity in (("a", 3.2), ("b", 3.0), ("c", 1.0)):
        net.link(name, DropTail, capacity=capacity * MBIT)
    net.flow("f", LDCC, route=["a", "b", "c"], start=0, return_delay=0.03, initial={"x": MBIT})
    ds = simulate(net, 6, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(ds.entered.sel(link="c"), _conserved(ds, "a"), atol=1.0)
    np.testing.assert_allclose(ds.entered.sel(link="b"), ds.entered.sel(link="a"), atol=1.0)
    assert float(ds.backlog.sel(link=["a", "b"]).max()) == 0.0


@pytest.mark.parametrize("delay", [0.0, 1e-7, 0.01])
def test_kinks_are_followed_once_round_a_cycle_of_links(delay: float) -> None:
    """Flows that cross two links in opposite order pass each kink on for ever; landings may not multiply with it."""
    net = Network()
    for name, capacity in (("a", 2.0), ("b", 2.2), ("c", 2.4)):
        net.link(name, DropTail, capacity=capacity * MBIT, delay=delay)
    routes = {"ab": "ab", "ba": "ba", "bc": "bc", "cb": "cb", "ca": "ca", "ac": "ac", "abc": "abc"}
    for k, (name, route) in enumerate(routes.items()):
        net.flow(name, LDCC, route=list(route), return_delay=0.03 + 0.004 * k, start=0.1 * k)
    rough, fine = simulate(net, 8), simulate(net, 8, rtol=1e-9)
    assert rough.attrs["breaking_points"] < 100_000  # unbounded, they are millions, and at no delay without end
    assert rough.attrs["untracked_breaking_points"] > 0
    np.testing.assert_allclose(rough.rate[-1], fine.rate[-1], rtol=1e-5)
    np.testing.assert_allclose(rough.queueing_delay[-1], fine.queueing_delay[-1], atol=1e-6)


def test_equal_flows_stay_equal_and_groups_do_not_matter() -> None:
    net = one_link(buffer=200e3)
    for k in range(3):
        net.flow(f"f{k}", LDCC(w=20e3 + 0.0 * k), route=["l"], initial={"x": 3e5})
        net.flow(f"r{k}", Reno, route=["l"], initial={"W": 5})
    ds = simulate(net, 10)
    assert list(ds.flow.values) == list(net.flow_names)
    for name in ("f", "r"):
        same = ds.rate.sel(flow=[f"{name}{k}" for k in range(3)]).values
        np.testing.assert_allclose(same, same[:, :1].repeat(3, axis=1), rtol=1e-12)


def test_the_history_is_bounded() -> None:
    """A run ten times as long needs no more memory for its past."""
    from fluidcc.engine.layout import lay_out
    from fluidcc.engine.workspace import Workspace
    from fluidcc.numerics.fluid import slots as s
    from fluidcc.numerics.fluid.entry import advance

    case = next(case for case in CASES if case.name == "limit_cycle")
    sizes = []
    for until in (20.0, 200.0):
        space = Workspace(lay_out(network(case)), np.array([0.0, until]), until, rtol=1e-6, atol=1e-9, patterns={})
        hops = 1  # the run begins
        while (code := advance(space.F, space.I, 0, hops, 0.0)) != s.DONE:
            assert code in (s.GROW_RING, s.PAUSED)
            space.grow_ring()
            hops = 0
        sizes.append(int(space.I[s.MASK]))
    assert sizes[0] == sizes[1] < 4096


# --- errors for people -----------------------------------------------------------------------------------------------


def test_a_law_that_divides_by_zero_is_named() -> None:
    from sympy import symbols

    x, a, k = symbols("x a k", positive=True)
    units = {x: "bit/s", a: "bit/s", k: "1/s"}
    law = Source("Bad", flow={x: k * a**2 / (x - a)}, out={"rate": x}, params={a: 1.0, k: 1.0}, units=units)
    net = one_link().flow("f", law, route=["l"], initial={"x": 1.0})
    with pytest.raises(NotFinite, match=r"state x of flow 'f'.*0 s"):
        simulate(net, 1)


def test_a_negative_rate_is_refused() -> None:
    from sympy import symbols

    x, a = symbols("x a", real=True)
    law = Source("Down", flow={x: -a}, out={"rate": x}, params={a: 1e6}, units={x: "bit/s", a: "bit/s**2"})
    net = one_link().flow("f", law, route=["l"], initial={"x": 1e6})
    with pytest.raises(NegativeRate, match="flow 'f' became negative.*lower bound"):
        simulate(net, 5)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"until": -1}, "until is -1"),
        ({"rtol": 0.0}, "rtol is 0.0"),
        ({"atol": -1.0}, "atol is -1.0"),
        ({"delays": "slow"}, "delays is 'slow'; give 'fifo' or 'frozen'"),
        ({"frozen_at": {"l": 0.1}}, "frozen_at is given"),
        ({"delays": "frozen", "frozen_at": {"m": 0.1}}, "names link 'm'"),
        ({"t_eval": [0, 2, 1]}, "increase strictly"),
        ({"t_eval": [0, 200]}, "within 0 and until"),
        ({"samples": 1}, "samples is 1"),
        ({"engine": "gpu"}, "engine is 'gpu'"),
    ],
)
def test_wrong_arguments_are_named(kwargs: dict[str, object], message: str) -> None:
    net = one_link().flow("f", LDCC, route=["l"])
    with pytest.raises(InvalidInput, match=message):
        simulate(net, **{"until": 1, **kwargs})  # type: ignore[arg-type]


def test_what_cannot_be_integrated_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no flows"):
        simulate(one_link(), 1)
    with pytest.raises(InvalidInput, match="algebraic loop"):
        simulate(one_link(delay=0.0).flow("f", LDCC, route=["l"]), 1)


def test_delays_are_frozen_at_a_series_as_at_a_dict() -> None:
    """What an equilibrium gives, `queueing_delay.to_series()`, is no Mapping, but has names and values."""
    import fluidcc as fc

    net = fc.dumbbell([fc.LDCC] * 2, {"capacity": "2 Mbit/s"}, rtt="50 ms")
    held = fc.equilibrium(net).queueing_delay.to_series()
    a, b = (fc.simulate(net, 1.0, delays="frozen", frozen_at=at, samples=5) for at in (held, dict(held)))
    assert a.rate.equals(b.rate)
