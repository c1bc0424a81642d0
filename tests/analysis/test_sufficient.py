"""Sufficient conditions: theorems on random networks, exact cases, and networks to which they do not apply."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.analysis.linearize import linearize
from fluidcc.analysis.local import local_loop
from fluidcc.analysis.nyquist import passes
from fluidcc.analysis.point import operating_point
from fluidcc.analysis.published import DelayedPrimal, ScalableSource
from fluidcc.analysis.sufficient import Condition, Conditions, sufficient_conditions
from fluidcc.errors import InvalidInput, Unsupported


def _frozen(net: fc.Network) -> Conditions:
    """Compared with the loop that the theorems are about."""
    return sufficient_conditions(net, linearize(net, "open", delays="frozen"))


def _random(seed: int) -> fc.Network:
    rng = np.random.default_rng(seed)
    hops = int(rng.integers(1, 4))
    eta = 10 ** rng.uniform(-0.6, 0.5)
    delay = rng.uniform(0.005, 0.08, hops)
    links = [{"capacity": c, "delay": d} for c, d in zip(rng.uniform(1.5e6, 6e6, hops), delay, strict=True)]
    law = fc.LDCC(eta=eta, T=0.25)
    cross = [[{"law": law, "access_delay": rng.uniform(0, 0.1)} for _ in range(2)] for _ in range(hops)]
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


def _prices() -> fc.Network:
    net = fc.Network().link("l", fc.PenaltyLink, capacity=2e6, delay=0.02)
    return net.flow("f", fc.PrimalPenalty, route=["l"]).flow("g", fc.PrimalPenalty(alpha=3e6), route=["l"])


def _kelly(sharpness: tuple[float, ...], delays: tuple[float, ...], gain: float = 1.0) -> fc.Network:
    net = fc.Network()
    for i, B in enumerate(sharpness):
        net.link(f"l{i}", fc.PenaltyLink(B=B), capacity=1e6, delay=0.01)
    for i, d in enumerate(delays):
        net.flow(f"f{i}", DelayedPrimal(kappa=gain), route=list(net.link_names)[i % len(sharpness) :], access_delay=d)
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
    """Each user on a link of its own, at round trips of one and of `ratio` steps: the first to fail decides."""
    net = fc.Network()
    for name, trip in (("a", 0.1), ("b", 0.1 * ratio)):
        net.link(name, fc.PenaltyLink(B=4), capacity=1e6, delay=0.01)
        net.flow(name, DelayedPrimal(kappa=5.0), route=[name], access_delay=0.01, return_delay=trip - 0.02)
    found = _frozen(net)
    discrete, continuous = found["Johari-Tan, discrete"], found["Johari-Tan"]
    assert discrete.applies
    assert discrete.margin < continuous.margin
    gain = math.pi / 2 / continuous.margin / (0.1 * ratio)  # of the longer one, [1/s]; both have the same
    k = gain * 0.1 * discrete.margin
    radii = [_stepped(k * scale, D) for D in (1, ratio) for scale in (0.999, 1.001)]
    assert max(radii[0], radii[2]) < 1 < max(radii[1], radii[3])


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
        many.flow(f"f{i}", ScalableSource(alpha=1.0, M=2), route=["a", "b"][: 1 + i % 2], access_delay=0.03 * i)
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


def test_what_does_not_apply_says_why() -> None:
    mixed = fc.Network().link("a", fc.DropTail, capacity=1e6, delay=0.02, buffer="5 packets")
    mixed.link("b", fc.DropTail, capacity=9e5, delay=0.02).flow("f", fc.LDCC, route=["a"])
    mixed.flow("g", fc.LDCC(T=0.05), route=["b"])
    found = sufficient_conditions(mixed)
    assert not any(v.applies for v in found)
    assert "answer differently" in found[0].why
    with pytest.raises(Unsupported, match="no link answers"):
        local_loop(_point_without_links())
    with pytest.raises(InvalidInput, match="there is no condition 'Kelly'"):
        found["Kelly"]


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
