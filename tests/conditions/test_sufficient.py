"""Sufficient conditions: theorems on random networks, exact cases, and where none applies."""

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.analysis.linearize import linearize
from fluidcc.analysis.operating import operating_point
from fluidcc.base.errors import UnknownName, Unsupported
from fluidcc.conditions.local import local_loop
from fluidcc.conditions.sufficient import (
    Conditions,
    exact_margin,
    lag_gains,
    own_and_gain,
    passes,
    sufficient_conditions,
)
from fluidcc.sources import DelayedPrimal, ScalableSource
from tests.analysis import networks


def _frozen(net: fc.Network) -> Conditions:
    """Compared with the loop that the theorems are about."""
    return sufficient_conditions(net, exact=exact_margin(linearize(net, "open", delays="frozen")))


def _random(seed: int) -> fc.Network:
    rng = np.random.default_rng(seed)
    hops = int(rng.integers(1, 4))
    eta = 10 ** rng.uniform(-0.6, 0.5)
    delay = rng.uniform(0.005, 0.08, hops)
    capacity = rng.uniform(1.5e6, 6e6, hops)
    links = [{"capacity": c, "delay": d} for c, d in zip(capacity, delay, strict=True)]
    law = fc.LDCC(eta=eta, T=0.25)
    away = rng.uniform(0, 0.1, (hops, 2))
    cross = [[{"law": law, "access_delay": d} for d in row] for row in away]
    return fc.parking_lot([law], cross, links)


@pytest.mark.parametrize("seed", range(6))
def test_the_convex_hull_never_promises_too_much(seed: int) -> None:
    hull = _frozen(_random(seed))["convex hull"]
    assert hull.applies
    assert hull.conservatism >= 1 - 1e-6
    assert hull.holds == (hull.margin > 1)


@pytest.mark.parametrize("eta", [0.3, 1.2, 3.0])
def test_for_identical_flows_on_one_link_rule_and_hull_are_exact(eta: float) -> None:
    net = fc.dumbbell([fc.LDCC(eta=eta)] * 3, {"capacity": 3e6}, rtt=0.08)
    found = _frozen(net)
    unstable = linearize(net, "open").feedback().count_unstable().unstable
    for name in ("-1/M rule", "convex hull", "eta divided by M"):
        assert found[name].conservatism == pytest.approx(1, rel=1e-7)
        assert found[name].holds == (unstable == 0)


def test_the_return_ratio_has_the_eigenvalues_of_the_linearised_network() -> None:
    omega = np.geomspace(0.01, 100, 9)
    for net in (_random(1), _random(4), fc.scenarios["ldcc_fig6"].net, _prices()):
        loop = local_loop(operating_point(net))
        F = linearize(net, "open", delays="frozen").frequency_response(omega)
        wanted = np.linalg.det(np.eye(len(F)) + F.transpose(2, 0, 1))
        np.testing.assert_allclose(np.prod(1 + loop.eigenloci(omega), axis=1), wanted, rtol=1e-9)
        _has_the_loci_at_links(net, loop, omega)
    own_past = _kelly((4.0, 3.0), (0.02, 0.1), gain=5.0)  # a loop of each user, closed in both
    _has_the_loci_at_links(own_past, local_loop(operating_point(own_past)), omega)


def _has_the_loci_at_links(net: fc.Network, loop: Any, omega: Any) -> None:
    at_links = linearize(net, "links", delays="frozen").frequency_response(omega)
    own = np.sort_complex(np.linalg.eigvals(at_links.transpose(2, 0, 1)))
    np.testing.assert_allclose(own, np.sort_complex(loop.eigenloci(omega)), rtol=1e-7)


def _prices() -> fc.Network:
    laws = [fc.PrimalPenalty, fc.PrimalPenalty(alpha=3e6)]
    return fc.dumbbell(laws, {"law": fc.PenaltyLink, "capacity": 2e6, "delay": 0.02})


def _kelly(
    sharpness: tuple[float, ...], delays: tuple[float, ...], gain: float = 1.0
) -> fc.Network:
    net = fc.Network()
    for i, B in enumerate(sharpness):
        net.link(f"l{i}", fc.PenaltyLink(B=B), capacity=1e6, delay=0.01)
    for i, d in enumerate(delays):
        route = net.link_names[i % len(sharpness) :]
        net.flow(f"f{i}", DelayedPrimal(kappa=gain), route=route, access_delay=d)
    return net


@pytest.mark.parametrize("delay", [0.02, 0.3])
def test_johari_tan_and_vinnicombe_are_exact_for_one_user(delay: float) -> None:
    found = _frozen(_kelly((4.0,), (delay,), gain=5.0))
    for name in ("Johari-Tan", "Vinnicombe"):
        assert found[name].conservatism == pytest.approx(1, rel=1e-6)
    assert not found["Paganini"].applies
    assert "own past" in found["convex hull"].why


def _stepped(k: float, D: int) -> float:
    """Largest root of z^(D+1) - z^D + k, that is of x[n+1] = x[n] - k x[n-D]."""
    return float(np.abs(np.roots([1, -1, *[0] * (D - 1), k])).max())


@pytest.mark.parametrize("ratio", [1, 3, 7])
def test_the_discrete_condition_is_exact_where_users_do_not_meet(ratio: int) -> None:
    """At round trips of one and of `ratio` steps: the first user to fail decides."""
    net = fc.Network()
    for name, trip in (("a", 0.1), ("b", 0.1 * ratio)):
        net.link(name, fc.PenaltyLink(B=4), capacity=1e6, delay=0.01)
        path: Any = {"access_delay": 0.01, "return_delay": trip - 0.02}
        net.flow(name, DelayedPrimal(kappa=5.0), route=[name], **path)
    found = _frozen(net)
    discrete, continuous = found["Johari-Tan, discrete"], found["Johari-Tan"]
    assert discrete.applies
    assert discrete.margin < continuous.margin
    gain = math.pi / 2 / continuous.margin / (0.1 * ratio)  # of both [1/s]
    k = gain * 0.1 * discrete.margin
    radii = [_stepped(k * scale, D) for D in (1, ratio) for scale in (0.999, 1.001)]
    assert max(radii[0], radii[2]) < 1 < max(radii[1], radii[3])


def _steps_apart(seed: int) -> tuple[fc.Network, float]:
    """Random users and links, delays whole steps of so many s: the first has a trip of one."""
    rng, step = np.random.default_rng(seed), 0.1
    net = fc.Network()
    for l in range(int(rng.integers(1, 4))):
        law = fc.PenaltyLink(B=rng.uniform(1, 8))
        net.link(f"l{l}", law, capacity=10 ** rng.uniform(5.5, 6.5), delay=0.0)
    for k in range(int(rng.integers(2, 6))):
        steps = 1 if k == 0 else int(rng.choice([1, 2, 3, 5, 9]))
        ahead = int(rng.integers(1, steps + 1))
        first = int(rng.integers(len(net.links)))
        source = DelayedPrimal(kappa=10 ** rng.uniform(0, 2), w=10 ** rng.uniform(4, 5.5))
        path: Any = {"access_delay": ahead * step, "return_delay": (steps - ahead) * step}
        net.flow(f"f{k}", source, route=net.link_names[first:], **path)
    return net, step


def _radius(loop: Any, step: float, own: Any, gain: Any) -> float:
    """Spectral radius of x[n+1] = x - own x[n-D] - gain R^T gamma R x, each at its own delay."""
    D = np.rint(loop.trip / step).astype(int)
    ahead = np.rint(loop.forward / step).astype(int)
    K, most = len(D), 2 * D.max() + 1
    past = np.zeros((most, K, K))
    past[0] = np.eye(K)
    for r in range(K):
        past[D[r], r, r] -= step * own[r]
        for l in np.flatnonzero(loop.route[:, r]):
            for s in np.flatnonzero(loop.route[l]):
                lag = ahead[l, s] + D[r] - ahead[l, r]
                past[lag, r, s] -= step * gain[r] * loop.gamma[l] * loop.count[s] * loop.x[s]
    companion = np.eye(K * most, k=-K)
    companion[:K] = past.transpose(1, 0, 2).reshape(K, -1)
    return float(np.abs(np.linalg.eigvals(companion)).max())


def test_no_random_network_contradicts_johari_and_tan_in_steps() -> None:
    """The worst case of the theorem: the users' gains are each at 0.999 of the bound."""
    nearest = 0.0
    for seed in range(60):
        net, step = _steps_apart(seed)
        loop = local_loop(operating_point(net))
        own, gain = own_and_gain(loop, True)
        rate = own + gain * (loop.route.T @ loop.load)
        bound = 2 * np.sin(np.pi / (4 * np.rint(loop.trip / step) + 2))
        gains = {name: value for name, _, value, _ in lag_gains(loop)}
        margin = math.pi / 2 / gains["Johari-Tan, discrete"]
        assert margin == pytest.approx(float(np.min(bound / (rate * step))), rel=1e-9)
        assert _radius(loop, step, own * margin * 0.999, gain * margin * 0.999) < 1
        each = 0.999 * bound / (rate * step)
        nearest = max(nearest, _radius(loop, step, own * each, gain * each))
    assert 0.99 < nearest < 1


def test_the_half_plane_behind_the_discrete_condition() -> None:
    """m = 2 D + 1, h half the angle: a user's curve is -(sin(pi/2m)/sin h)(sin mh + j cos mh).

    All are on one side of a line through -1: whatever the delays, their hull with 0 leaves it out.
    """
    for h in np.concatenate([np.geomspace(1e-4, 0.1, 200), np.linspace(0.1, math.pi / 2, 400)]):
        m = np.arange(1, int(100 / h) + 9, 2)
        z = -np.sin(np.pi / (2 * m)) / np.sin(h) * (np.sin(m * h) + 1j * np.cos(m * h))
        assert np.all(z.real - 2 * h / np.pi / np.tan(h) * z.imag >= -1 - 1e-12)


@pytest.mark.parametrize("gain", [2.0, 30.0])
def test_the_lag_conditions_never_promise_too_much(gain: float) -> None:
    found = _frozen(_kelly((3.0, 6.0), (0.01, 0.05, 0.2), gain))
    johari, vinnicombe = found["Johari-Tan"], found["Vinnicombe"]
    assert 1 - 1e-6 <= vinnicombe.conservatism <= johari.conservatism


def test_paganini_is_exact_for_one_static_user_and_safe_for_many() -> None:
    one = fc.Network().link("l", fc.DualLink(nu=1e-6), capacity=1e6, delay=0.05)
    one.flow("f", ScalableSource(alpha=1.2), route=["l"])
    assert _frozen(one)["Paganini"].conservatism == pytest.approx(1, rel=1e-7)
    assert _frozen(one)["Paganini"].margin == pytest.approx(math.pi / 2 / 1.2, rel=1e-9)
    many = fc.Network().link("a", fc.DualLink(nu=1e-6), capacity=1e6, delay=0.05)
    many.link("b", fc.DualLink(nu=1 / 7e5), capacity=7e5, delay=0.02)
    for i, route in enumerate(("a", "ab", "a", "b")):
        away = 0.03 * i if i < 3 else 0.0
        many.flow(f"f{i}", ScalableSource(alpha=1.0, M=2), route=list(route), access_delay=away)
    found = _frozen(many)["Paganini"]
    assert found.applies
    assert found.conservatism >= 1 - 1e-6


def test_losses_of_full_buffers_have_the_lag_conditions() -> None:
    found = sufficient_conditions(fc.scenarios["ldcc_fig6"].net)
    assert found["Vinnicombe"].holds
    assert "a pole of its own, and no integral" in found["Johari-Tan, discrete"].why
    assert not found["-1/M rule"].applies
    assert "loss" in found["-1/M rule"].why


def _cascade() -> fc.Network:
    """A flow that loses packets at both of its links, and one more at each."""
    fast = fc.LDCC(w=80e3, beta=0.2)
    links = [("l1", 2.5e6, 0.025), ("l2", 1.5e6, 0.015)]
    rows = [networks.in_row(*link, buffer="5 packets") for link in links]
    return fc.parking_lot({"a": fast}, [{"b": fast}, {"c": fast}], rows)


def test_where_packets_are_lost_upstream_the_loop_has_no_symmetry_to_rest_on() -> None:
    """Symmetric up to scales of its links at s = 0, R G R^T would have F12 F21 > 0."""
    net = _cascade()
    found = sufficient_conditions(net)
    assert not any(v.applies for v in found)
    assert "'a' loses packets at link 'l1' before link 'l2' answers" in found["convex hull"].why
    lossy = linearize(net, "links")(0.0)
    plain = net.with_link("l1", buffer=None).with_link("l2", buffer=None)
    queues = linearize(plain, "links", "frozen")(1e-9)
    assert queues[0, 1].real * 1.5e6 == pytest.approx(queues[1, 0].real * 2.5e6, rel=1e-6)
    assert sufficient_conditions(plain)["convex hull"].applies
    # What flow c makes l2 lose is heard by flow a, and by l1; the other way the sign turns.
    assert lossy[0, 1].real * lossy[1, 0].real < 0


def test_losses_at_a_link_where_a_route_ends_change_nothing() -> None:
    """Upstream of a lossy link that does not answer further on, the conditions apply."""
    net = fc.Network().link("l1", fc.DropTail, capacity=1.5e6, delay=0.025, buffer="5 packets")
    net.link("far", fc.DropTail, capacity=9e6, delay=0.01)
    net.flow("a", fc.LDCC(w=80e3, beta=0.2), route=["l1", "far"])
    found = sufficient_conditions(net)
    assert found["convex hull"].applies
    assert found["convex hull"].conservatism == pytest.approx(1, rel=1e-6)  # one flow, one link


def test_what_does_not_apply_says_why() -> None:
    mixed = fc.Network().link("a", fc.DropTail, capacity=1e6, delay=0.02, buffer="5 packets")
    mixed.link("b", fc.DropTail, capacity=9e5, delay=0.02).flow("f", fc.LDCC, route=["a"])
    mixed.flow("g", fc.LDCC(T=0.05), route=["b"])
    found = sufficient_conditions(mixed)
    assert not any(v.applies for v in found)
    assert "answer differently" in found[0].why
    point = operating_point(fc.dumbbell([fc.LDCC], {"capacity": 3e6}, rtt=0.08))
    with pytest.raises(Unsupported, match="no link answers"):
        local_loop(point.changed(mode=point.mode * 0))
    with pytest.raises(UnknownName, match="no condition 'hull'; did you mean .*'convex hull'"):
        found["hull"]


def test_encirclements_are_counted_with_their_direction() -> None:
    assert passes([(0.5, 1)], 1)
    assert not passes([(1.5, 1)], 1)
    assert passes([(3.0, 1), (1.5, -1), (0.5, 1)], 1)  # conditionally stable
    assert not passes([(3.0, 1), (0.7, -1), (0.5, 1)], 1)
