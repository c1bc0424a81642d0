"""The network without communication delays: by hand, and at its equilibrium."""

from __future__ import annotations

import numpy as np
import pytest
from sympy import lambdify

import fluidcc as fc
from fluidcc.analysis.undelayed import undelayed
from fluidcc.base.errors import Unsupported
from fluidcc.symbols import plain


def _pair(**given: float) -> fc.Network:
    return fc.dumbbell([fc.LDCC, fc.LDCC(eta=0.7)], {"capacity": 3e6}, rtt=[0.05, 0.08], **given)


def test_the_point_is_an_equilibrium_to_fifty_digits() -> None:
    system = undelayed(_pair())
    for f in system.flow.values():
        assert abs(f.subs(dict(system.point))) < 1e-38
    rest = fc.equilibrium(_pair())
    point = {plain(z): float(v) for z, v in system.point.items()}
    assert point["x_flow1"] == pytest.approx(float(rest.rate.sel(flow="flow1")), rel=1e-9)
    assert point["q_bottleneck"] == pytest.approx(float(rest.queueing_delay[0]), rel=1e-9)


def test_the_flow_is_the_law_by_hand() -> None:
    system = undelayed(_pair())
    x1, x2, q = 1.3e6, 2.1e6, 0.11
    state = dict(zip(system.states, (x1, x2, q), strict=True))
    found = [float(f.subs(state)) for f in system.flow.values()]
    slope = (x1 + x2 - 3e6) / 3e6
    for value, x, eta, p in ((found[0], x1, 0.4, 0.025), (found[1], x2, 0.7, 0.04)):
        trip = q + 2 * p
        wanted = eta / trip * x * (20e3 / x - 0.1 * (q + p - 0.1) / trip - slope)
        assert value == pytest.approx(wanted, rel=1e-12)
    assert found[2] == pytest.approx(slope, rel=1e-12)


def test_held_gains_keep_their_value_of_the_equilibrium() -> None:
    free, held = undelayed(_pair()), undelayed(_pair(), held=("k",))
    state = dict(zip(free.states, (1.3e6, 2.1e6, 0.4), strict=True))
    ratio = [float(held.flow[z].subs(state) / free.flow[z].subs(state)) for z in free.states[:2]]
    rest = fc.equilibrium(_pair())
    for r, trip, p in zip(ratio, rest.rtt.values, (0.025, 0.04), strict=True):
        assert r == pytest.approx((0.4 + 2 * p) / trip, rel=1e-9)


def test_an_empty_queue_is_projected_and_two_hops_add_up() -> None:
    net = fc.Network().link("a", fc.DropTail, capacity=2e6, delay=0.025)
    net.link("b", fc.DropTail, capacity=3e6).flow("f", fc.LDCC, route=["a", "b"])
    system = undelayed(net.flow("udp", fc.CBR(rate=5e5), route=["b"]))
    f = lambdify(system.states, list(system.flow.values()), "numpy")
    names = [plain(z) for z in system.states]
    assert names == ["x_f", "q_a", "q_b"]
    x, qa, qb = f(1.5e6, 0.0, 0.0)
    assert (qa, qb) == (0, 0)
    assert f(1.5e6, 0.1, 0.0)[1] == pytest.approx(-0.25)
    assert f(2.7e6, 0.0, 0.0)[2] == pytest.approx(0.2 / 3)
    state = dict(zip(system.states, (1, 0.1, 0.2), strict=True))
    assert float(system.delay["f"].subs(state)) == pytest.approx(0.325)
    assert np.isfinite(x)


def test_a_full_buffer_is_refused() -> None:
    with pytest.raises(Unsupported, match="buffer of link 'bottleneck' is full"):
        undelayed(fc.scenarios["ldcc_fig6"].net, at=200.0)
