"""Sufficient conditions: theorems on random networks, exact cases, and networks to which they do
not apply.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.analysis.linearize import linearize
from fluidcc.analysis.local import local_loop
from fluidcc.analysis.operating_point import operating_point
from fluidcc.analysis.sufficient import (
    Condition,
    Conditions,
    exact_margin,
    lag_gains,
    own_and_gain,
    passes,
    sufficient_conditions,
)
from fluidcc.base.errors import UnknownName, Unsupported
from fluidcc.sources import DelayedPrimal, ScalableSource


def _frozen(net: fc.Network) -> Conditions:
    """Compared with the loop that the theorems are about."""
    return sufficient_conditions(net, exact=exact_margin(linearize(net, "open", delays="frozen")))


def _random(seed: int) -> fc.Network:
    rng = np.random.default_rng(seed)
    hops = int(rng.integers(1, 4))
    eta = 10 ** rng.uniform(-0.6, 0.5)
    delay = rng.uniform(0.005, 0.08, hops)
    links = [
        {"capacity": c, "delay": d}
        for c, d in zip(rng.uniform(1.5e6, 6e6, hops), delay, strict=True)
    ]
    law = fc.LDCC(eta=eta, T=0.25)
    cross = [
        [{"law": law, "access_delay": rng.uniform(0, 0.1)} for _ in range(2)] for _ in range(hops)
    ]
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
    for name in ("-1/M rule", "convex hull", "eta divided by M"):
        assert found[name].conservatism == pytest.approx(1, rel=1e-7)
    unstable = linearize(net, "open").feedback().count_unstable().unstable
    assert found["-1/M rule"].holds == (unstable == 0)


def test_the_return_ratio_has_the_eigenvalues_of_the_linearised_network() -> None:
    omega = np.geomspace(0.01, 100, 9)
    for net in (_random(1), _random(4), fc.scenarios["ldcc_fig6"].net, _prices()):
        loop = local_loop(operating_point(net))
        F = linearize(net, "open", delays="frozen").frequency_response(omega)
        wanted = np.linalg.det(np.eye(len(F)) + F.transpose(2, 0, 1))
        np.testing.assert_allclose(np.prod(1 + loop.eigenloci(omega), axis=1), wanted, rtol=1e-9)
        at_links = (
            linearize(net, "links", delays="frozen").frequency_response(omega).transpose(2, 0, 1)
        )
        own = np.sort_complex(np.linalg.eigvals(at_links))
        np.testing.assert_allclose(own, np.sort_complex(loop.eigenloci(omega)), rtol=1e-7)


def _prices() -> fc.Network:
    net = fc.Network().link("l", fc.PenaltyLink, capacity=2e6, delay=0.02)
    return net.flow("f", fc.PrimalPenalty, route=["l"]).flow(
        "g", fc.PrimalPenalty(alpha=3e6), route=["l"]
    )


def _kelly(
    sharpness: tuple[float, ...], delays: tuple[float, ...], gain: float = 1.0
) -> fc.Network:
    net = fc.Network()
    for i, B in enumerate(sharpness):
        net.link(f"l{i}", fc.PenaltyLink(B=B), capacity=1e6, delay=0.01)
    for i, d in enumerate(delays):
        net.flow(
            f"f{i}",
            DelayedPrimal(kappa=gain),
            route=list(net.link_names)[i % len(sharpness) :],
            access_delay=d,
        )
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
    """Each user on a link of its own, at round trips of one and of `ratio` steps: the first to
    fail decides.
    """
    net = fc.Network()
    for name, trip in (("a", 0.1), ("b", 0.1 * ratio)):
        net.link(name, fc.PenaltyLink(B=4), capacity=1e6, delay=0.01)
        net.flow(
            name,
            DelayedPrimal(kappa=5.0),
            route=[name],
            access_delay=0.01,
            return_delay=trip - 0.02,
        )
    found = _frozen(net)
    discrete, continuous = found["Johari-Tan, discrete"], found["Johari-Tan"]
    assert discrete.applies
    assert discrete.margin < continuous.margin
    gain = (
        math.pi / 2 / continuous.margin / (0.1 * ratio)
    )  # of the longer one, [1/s]; both have the same
    k = gain * 0.1 * discrete.margin
    radii = [_stepped(k * scale, D) for D in (1, ratio) for scale in (0.999, 1.001)]
    assert max(radii[0], radii[2]) < 1 < max(radii[1], radii[3])


def _steps_apart(seed: int) -> tuple[fc.Network, float]:
    """Random users and links, delays whole steps, and the step [s]: the first user has a round
    trip of one.
    """
    rng, step = np.random.default_rng(seed), 0.1
    net = fc.Network()
    for l in range(int(rng.integers(1, 4))):
        net.link(
            f"l{l}",
            fc.PenaltyLink(B=rng.uniform(1, 8)),
            capacity=10 ** rng.uniform(5.5, 6.5),
            delay=0.0,
        )
    for k in range(int(rng.integers(2, 6))):
        steps = 1 if k == 0 else int(rng.choice([1, 2, 3, 5, 9]))
        ahead = int(rng.integers(1, steps + 1))
        first = int(rng.integers(len(net.links)))
        net.flow(f"f{k}", DelayedPrimal(kappa=10 ** rng.uniform(0, 2), w=10 ** rng.uniform(4, 5.5)),
                 route=list(net.link_names)[first:], access_delay=ahead * step,
                 return_delay=(steps - ahead) * step)  # fmt: skip
    return net, step


def _radius(loop: Any, step: float, own: Any, gain: Any) -> float:
    """Spectral radius of x[n+1] = x - own x[n-D] - gain R^T gamma R x, each term at its own
    delay.
    """
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
    """Several delays: the users' gains are each put at 0.999 of the bound, which is the worst
    case of the theorem.
    """
    nearest = 0.0
    for seed in range(60):
        net, step = _steps_apart(seed)
        loop = local_loop(operating_point(net))
        own, gain = own_and_gain(loop, True)
        rate = own + gain * (loop.route.T @ loop.load)
        bound = 2 * np.sin(np.pi / (4 * np.rint(loop.trip / step) + 2))
        margin = (
            math.pi
            / 2
            / next(value for name, _, value, _ in lag_gains(loop) if name == "Johari-Tan, discrete")
        )
        assert margin == pytest.approx(float(np.min(bound / (rate * step))), rel=1e-9)
        assert _radius(loop, step, own * margin * 0.999, gain * margin * 0.999) < 1
        each = 0.999 * bound / (rate * step)
        nearest = max(nearest, _radius(loop, step, own * each, gain * each))
    assert 0.99 < nearest < 1


def test_the_half_plane_behind_the_discrete_condition() -> None:
    """With m = 2 D + 1 and h half the angle, a user's curve is -(sin(pi/2m)/sin h)(sin mh + j cos
    mh).

    All curves are on one side of a line through -1, so their hull with 0 leaves out -1, whatever
    the delays are.
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
    for i in range(3):
        many.flow(
            f"f{i}",
            ScalableSource(alpha=1.0, M=2),
            route=["a", "b"][: 1 + i % 2],
            access_delay=0.03 * i,
        )
    many.flow("g", ScalableSource(alpha=1.0, M=2), route=["b"])
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
    net = fc.Network().link("l1", fc.DropTail, capacity=2.5e6, delay=0.025, buffer="5 packets")
    net.link("l2", fc.DropTail, capacity=1.5e6, delay=0.015, buffer="5 packets")
    fast = fc.LDCC(w=80e3, beta=0.2)
    return (
        net.flow("a", fast, route=["l1", "l2"])
        .flow("b", fast, route=["l1"])
        .flow("c", fast, route=["l2"])
    )


def test_where_packets_are_lost_upstream_the_loop_has_no_symmetry_to_rest_on() -> None:
    """R G R^T is at s = 0 symmetric up to scales of its links: F12 F21 > 0, and F12/F21 is the
    ratio of gains.
    """
    net = _cascade()
    found = sufficient_conditions(net)
    assert not any(v.applies for v in found)
    assert (
        "flow 'a' loses packets at link 'l1' before link 'l2' answers it"
        in found["convex hull"].why
    )
    lossy = linearize(net, "links")(0.0)
    plain = net.with_link("l1", buffer=None).with_link("l2", buffer=None)
    queues = linearize(plain, "links", "frozen")(1e-9)
    assert queues[0, 1].real * 1.5e6 == pytest.approx(queues[1, 0].real * 2.5e6, rel=1e-6)
    assert sufficient_conditions(plain)["convex hull"].applies
    # Here what flow c makes l2 lose is heard by flow a, and l1 hears of it; the other way the sign
    # turns.
    assert lossy[0, 1].real * lossy[1, 0].real < 0


def test_losses_at_a_link_where_a_route_ends_change_nothing() -> None:
    """Upstream of a lossy link that does not answer further on, the conditions apply."""
    net = fc.Network().link("l1", fc.DropTail, capacity=1.5e6, delay=0.025, buffer="5 packets")
    net.link("far", fc.DropTail, capacity=9e6, delay=0.01)
    net.flow("a", fc.LDCC(w=80e3, beta=0.2), route=["l1", "far"])
    found = sufficient_conditions(net)
    assert found["convex hull"].applies
    assert found["convex hull"].conservatism == pytest.approx(
        1, rel=1e-6
    )  # one flow, one link that answers


def test_what_does_not_apply_says_why() -> None:
    mixed = fc.Network().link("a", fc.DropTail, capacity=1e6, delay=0.02, buffer="5 packets")
    mixed.link("b", fc.DropTail, capacity=9e5, delay=0.02).flow("f", fc.LDCC, route=["a"])
    mixed.flow("g", fc.LDCC(T=0.05), route=["b"])
    found = sufficient_conditions(mixed)
    assert not any(v.applies for v in found)
    assert "answer differently" in found[0].why
    with pytest.raises(Unsupported, match="no link answers"):
        local_loop(_point_without_links())
    with pytest.raises(
        UnknownName, match="there is no condition 'hull'; did you mean .*'convex hull'"
    ):
        found["hull"]


def _point_without_links() -> Any:
    point = operating_point(fc.dumbbell([fc.LDCC], {"capacity": 3e6}, rtt=0.08))
    return point.changed(mode=point.mode * 0)


def test_encirclements_are_counted_with_their_direction() -> None:
    assert passes([(0.5, 1)], 1)
    assert not passes([(1.5, 1)], 1)
    assert passes([(3.0, 1), (1.5, -1), (0.5, 1)], 1)  # conditionally stable
    assert not passes([(3.0, 1), (0.7, -1), (0.5, 1)], 1)


def test_the_table_is_readable() -> None:
    found = sufficient_conditions(fc.dumbbell([fc.LDCC], {"capacity": 3e6}, rtt=0.08))
    assert "holds" in repr(found)
    assert "<table>" in found._repr_html_()
    assert all(isinstance(v, Condition) for v in found[:2])
