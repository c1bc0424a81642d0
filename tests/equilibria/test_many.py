"""Equilibria at many points: those of each point's own network, with the same reasons."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.base.errors import FluidccError, InvalidInput, NoEquilibrium, Unsupported
from fluidcc.equilibria.many import equilibria
from fluidcc.network.parameters import Parameters
from fluidcc.sweeps.axes import changed, find_target

ARRAYS = (
    "rate", "one_way_delay", "rtt", "loss", "queueing_delay", "price", "saturated", "full",
    "arrival_rate",
)  # fmt: skip
SPANS = {
    "a.beta": (0.05, 0.3), "w": (1e4, 4e4), "l.capacity": (1e6, 4e6), "m.capacity": (5e5, 4e6),
    "delay": (1e-3, 0.1), "b.access_delay": (0.0, 0.1), "u.rate": (0.0, 6e5),
    "packet": (4e3, 12e3), "initial.x": (-2e4, 1e6), "d.return_delay": (0.0, 0.2),
}  # fmt: skip


def network() -> fc.Network:
    net = fc.Network().link("l", fc.DropTail, capacity="3 Mbit/s", delay="20 ms", buffer="0.5 s")
    net.link("m", fc.DropTail, capacity="2 Mbit/s", delay="5 ms")
    net.flow("a", fc.LDCC, route=["l", "m"]).flow(
        "b", fc.StaticReno, route=["l"], access_delay=0.01
    )
    return net.flow("u", fc.CBR, route=["m"]).flow("d", fc.LDCC, route=["m"])


def both(net: fc.Network, values: dict[str, Any]) -> Any:
    """Many at once, and the networks of the points one by one."""
    targets = {axis: find_target(net, axis) for axis in values}
    count = len(next(iter(values.values())))
    many = equilibria(Parameters.of(net, targets, values))
    for i in range(count):
        point = {axis: float(column[i]) for axis, column in values.items()}
        try:
            one = fc.equilibrium(changed(net, targets, point))
        except FluidccError as error:
            assert not many.found[i]
            with pytest.raises(type(error), match=f"{re.escape(str(error))}$"):
                many.point(i)
            continue
        assert many.found[i], many.errors[i]
        for name in ARRAYS:
            found = getattr(many, name)[i]
            np.testing.assert_allclose(found, one.array(name), rtol=1e-12, atol=1e-300)
        for name, states in one.states.items():
            for z, value in states.items():
                assert many.states[name][z][i] == pytest.approx(value, rel=1e-12)
        np.testing.assert_array_equal(many.point(i).array("rate"), many.rate[i])
    return many


def test_every_point_is_that_of_its_network() -> None:
    rng = np.random.default_rng(0)
    many = both(network(), {axis: rng.uniform(*span, 40) for axis, span in SPANS.items()})
    assert 0 < len(many.errors) < 15
    kinds = {type(error) for error in many.errors.values()}
    # A negative start, and flows that cannot slow down enough.
    assert kinds == {InvalidInput, NoEquilibrium}


def test_round_trips_are_scaled() -> None:
    net = fc.dumbbell([fc.LDCC, fc.LDCC(T=0.2)], {"capacity": 3e6, "delay": 0.01}, rtt=0.06)
    both(net, {"rtt": np.linspace(0.01, 0.5, 6), "T": np.linspace(0.05, 0.3, 6)})


def test_marks_prices_and_sampled_laws() -> None:
    net = fc.Network().link("l", fc.DualLink, capacity=2.5e6, delay=0.01)
    net.link("r", fc.RED, capacity=3e6, delay=0.02).flow("a", fc.PrimalDual, route=["l", "r"])
    net.flow("s", fc.SampledLDCC, route=["r"]).flow("b", fc.StaticReno, route=["r"])
    both(net, {"l.capacity": np.linspace(1e6, 3e6, 4), "r.capacity": np.linspace(2e6, 6e6, 4)})


@pytest.mark.slow
def test_states_that_follow_from_others_are_told() -> None:
    net = fc.Network().link("l", fc.DropTail, capacity="3 Mbit/s", delay="20 ms", buffer="1 s")
    net.flow("a", fc.FAST, route=["l"]).flow("b", fc.LEDBAT, route=["l"], initial={"delta": 0.3})
    net.flow("c", fc.FAST(alpha=30), route=["l"], access_delay="15 ms")
    values = {"a.alpha": [20, 50, 80], "b.return_delay": [0.03, 0.1, 0.2]}
    values["c.packet"] = [8e3, 12e3, 9e3]
    many = both(net, {axis: np.array(column) for axis, column in values.items()})
    assert {"delta", "F"} <= many.states["a"].keys()


def test_what_is_no_number_is_refused() -> None:
    net = network()
    with pytest.raises(Unsupported, match="count changes more than numbers"):
        equilibria(
            Parameters.of(net, {"b.count": find_target(net, "b.count")}, {"b.count": [1, 2]})
        )
    targets = {axis: find_target(net, axis) for axis in ("w", "delay")}
    with pytest.raises(InvalidInput, match="different lengths"):
        equilibria(Parameters.of(net, targets, {"w": [1e4, 2e4], "delay": [0.1]}))


def random_network(rng: np.random.Generator, count: int) -> tuple[fc.Network, dict[str, Any]]:
    """Links with and without limits, LDCC and constant rates; and numbers for `count` points."""
    net, values, links = fc.Network(), {}, int(rng.integers(1, 7))
    for l in range(links):
        finite = rng.random() < 0.4
        net.link(f"l{l}", fc.DropTail, capacity=1e6, delay=0.01, buffer=1e5 if finite else None)
        values[f"l{l}.capacity"] = 10 ** rng.uniform(5.5, 7, count)
        values[f"l{l}.delay"] = rng.uniform(0.001, 0.05, count)
        if finite:
            values[f"l{l}.buffer"] = 10 ** rng.uniform(4, 6.5, count)
    for r in range(int(rng.integers(1, 12))):
        route = [f"l{i}" for i in rng.permutation(links)[: rng.integers(1, links + 1)]]
        net.flow(f"f{r}", fc.CBR if rng.random() < 0.25 else fc.LDCC, route=route)
        values[f"f{r}.access_delay"] = rng.uniform(0, 0.1, count)
        if net.flows[f"f{r}"].law is fc.CBR:
            values[f"f{r}.rate"] = 10 ** rng.uniform(4, 5.5, count)
        else:
            spans = {"T": (0.02, 0.3), "w": (3e3, 3e4), "beta": (0.05, 1)}
            values |= {f"f{r}.{name}": rng.uniform(*span, count) for name, span in spans.items()}
    return net, values


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=18833)  # two queues grow without end, the one much slower than the other
def test_random_networks_rest_or_are_known_not_to(seed: int) -> None:
    """Arrivals are what flows leave, queues are empty or used up; and overload is told."""
    net, values = random_network(np.random.default_rng(seed), 20)
    many = equilibria(Parameters.of(net, {axis: find_target(net, axis) for axis in values}, values))
    assert {type(error) for error in many.errors.values()} <= {NoEquilibrium}
    capacity = np.stack([values[f"{name}.capacity"] for name in net.links], 1)[many.found]
    arrival, queue = many.arrival_rate[many.found], many.queueing_delay[many.found]
    loss = np.where(many.full[many.found], 1 - capacity / np.maximum(arrival, 1e-9), 0.0)
    left = arrival.copy()
    place = list(net.links)
    for r, flow in enumerate(net.flows.values()):
        rate, kept = many.rate[many.found][:, r].copy(), np.ones(len(arrival))
        for name in flow.route:
            left[:, place.index(name)] -= rate
            rate *= 1 - loss[:, place.index(name)]
            kept *= 1 - loss[:, place.index(name)]
        np.testing.assert_allclose(many.loss[many.found][:, r], 1 - kept, atol=1e-9)
    np.testing.assert_allclose(left, 0, atol=1e-9 * capacity.max(initial=1.0))
    used = arrival * (1 - loss) / capacity
    assert np.all(used <= 1 + 1e-9)
    np.testing.assert_allclose(used[queue > 0], 1, rtol=1e-9)
