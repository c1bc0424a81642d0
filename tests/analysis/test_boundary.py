"""Boundaries of stability: by hand, verdicts on both sides, and simulations."""

import pickle
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import fsolve
from sympy import symbols

import fluidcc as fc
from fluidcc.analysis.boundary import onset
from fluidcc.analysis.change import abscissa
from fluidcc.analysis.operating import operating_point
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.symbols import x_tau
from tests.analysis import networks


def _one(capacity: float = 1e6) -> fc.Network:
    return fc.dumbbell([fc.LDCC], {"capacity": capacity}, rtt="50 ms")


@cache
def _edge(delays: str = "fifo") -> Any:
    """Where one flow on 1 Mbit/s begins to oscillate."""
    return fc.stability_boundary(_one(), "eta", delays=delays)


def _by_hand(capacity: float, guess: tuple[float, float]) -> tuple[float, float]:
    """eta and omega at which s^2 + a s + k (s + v') e^(-s RTT) = 0 at j omega, of (15) to (19)."""
    w, beta, T = 20e3, 0.1, 0.1
    r = w / (beta * capacity)
    e = (0.025 * r + T) / (1 - r)
    trip = e + 0.025
    slope = beta * (T + 0.025) / trip**2

    def conditions(u: np.ndarray) -> list[float]:
        k, s = u[0] / trip, 1j * u[1]
        value = s**2 + k * w / capacity * s + k * (s + slope) * np.exp(-s * trip)
        return [value.real, value.imag]

    found = fsolve(conditions, guess, xtol=1e-12)
    return float(found[0]), float(found[1])


@pytest.mark.parametrize("capacity", [1e6, 3e6])
def test_hopf_point_of_one_flow(capacity: float) -> None:
    edge: Any = fc.stability_boundary(_one(capacity), "eta")
    eta, omega = _by_hand(capacity, (1.5, 9.0))
    assert edge.value == pytest.approx(eta, rel=1e-9)
    assert edge.frequency == pytest.approx(omega, rel=1e-9)
    assert edge.period == pytest.approx(2 * np.pi / omega, rel=1e-9)
    assert (edge.kind, edge.stable_below, edge.mode) == ("hopf", True, "loop")
    assert edge.slope.real > 0
    for factor, sign in ((0.999, -1), (1.001, 1)):
        there = operating_point(edge.network(edge.value * factor))
        assert np.sign(abscissa(there)[0].real) == sign


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.eta", "beta", "bottleneck.capacity"])
def test_the_root_is_on_the_axis_and_its_slope_is_right(name: str) -> None:
    net = fc.dumbbell([fc.LDCC(eta=1.53)], {"capacity": "1.3 Mbit/s"}, rtt="50 ms")
    if not name.startswith("bottleneck"):
        net = networks.parking_lot().with_flow("a", law=fc.LDCC(eta=1.4))
        net = net.with_flow("b", law=fc.LDCC(eta=1.4, beta=0.12))
    edge: Any = fc.stability_boundary(net, name)
    step = 1e-5 * edge.value
    roots = [abscissa(operating_point(edge.network(edge.value + h)))[0] for h in (0.0, step, -step)]
    assert abs(roots[0].real) < 1e-8
    assert roots[0].imag == pytest.approx(edge.frequency, rel=1e-6)
    change = (roots[1] - roots[2]) / (2 * step)
    assert abs(change - edge.slope) < 1e-4 * abs(edge.slope)


@pytest.mark.parametrize(
    ("net", "given", "error", "says"),
    [
        (_one(), ["eta", (0.01, 0.1)], InvalidInput,
         "the network is stable at every eta looked at between 0.01 and 0.1"),
        (_one(), ["flow1.count"], UnknownName, r"fc.sweep\(net, {'count': range\(1, 31\)}"),
        (_one(), ["etta"], UnknownName, "no parameter 'etta'; did you mean"),
        (_one(), ["K"], UnknownName, "no parameter 'K'; it may be .*eta.*, capacity"),
        (fc.dumbbell([fc.LDCC] * 2, {"capacity": 3e6}, rtt="50 ms"), ["flow2.eta"], InvalidInput,
         "one of 2 identical flows"),
        (_one(), ["eta", None, "capacity", ("2 Mbit/s", "3 Mbit/s")], InvalidInput,
         r"along_bounds of capacity are 2e\+06 to 3e\+06 bit/s, but it is 1e\+06 bit/s"),
        (_one(), ["eta", (2, 1)], InvalidInput, r"bounds of eta are \(2, 1\)"),
        (_one(), ["eta", None, "flow1.eta"], InvalidInput,
         "along is 'flow1.eta', but 'eta' varies flow1.eta already"),
    ],
)  # fmt: skip
def test_bounds_and_names(net: fc.Network, given: Any, error: Any, says: str) -> None:
    name, bounds, along, along_bounds = [*given, None, None, None][:4]
    with pytest.raises(error, match=says):
        fc.stability_boundary(net, name, bounds, along=along, along_bounds=along_bounds)


def test_a_curve_is_the_boundary_at_each_of_its_points() -> None:
    net = _one()
    curve: Any = fc.stability_boundary(
        net, "eta", along="capacity", along_bounds=("0.6 Mbit/s", "2 Mbit/s")
    )
    assert curve.ends == ("the bounds", "the bounds")
    assert str(curve).endswith(f"along capacity [bit/s] from 6e+05 to 2e+06: {len(curve)} points")
    np.testing.assert_allclose(curve.x[[0, -1]], [6e5, 2e6], rtol=1e-14)
    assert curve.outermost.all()
    assert np.all(np.diff(curve.x) > 0)
    for i in [*range(0, len(curve), 3), len(curve) - 1]:
        eta, omega = _by_hand(curve.x[i], (curve.y[i] * 1.02, curve.frequency[i] * 0.99))
        assert curve.y[i] == pytest.approx(eta, rel=1e-9)
        assert curve.frequency[i] == pytest.approx(omega, rel=1e-8)


@pytest.mark.slow
def test_a_curve_is_followed_round_its_fold() -> None:
    """PI has two limits of a below its largest b: L = -1 at j omega gives a + b/s by hand."""
    net = fc.scenarios["tcp_pi"].net
    net = net.with_link("bottleneck", law=net.links["bottleneck"].law(a=0.15, b=0.5))
    curve: Any = fc.stability_boundary(
        net, "bottleneck.a", along="bottleneck.b", along_bounds=(0.45, 2.0)
    )
    turns = np.flatnonzero(np.diff(np.sign(np.diff(curve.x))) != 0)
    assert len(turns) == 1
    np.testing.assert_allclose(curve.x[[0, -1]], 0.45, rtol=1e-14)
    assert abs(curve.y[0] - curve.y[-1]) > 0.15
    rest, link = fc.equilibrium(net), net.links["bottleneck"]
    R = float(rest.rtt[0])
    lag = float(rest.queueing_delay[0]) + link.delay + net.return_delay("tcp")
    s = 1j * curve.frequency
    gains = -3750 / networks.tcp_plant(s, R, lag, 60, 3750)
    np.testing.assert_allclose(curve.y, gains.real, rtol=1e-8)
    np.testing.assert_allclose(curve.x, -gains.imag * s.imag, rtol=1e-8)


@pytest.mark.slow
def test_a_curve_ends_at_the_bounds_of_either_parameter_on_the_boundary() -> None:
    """Where it leaves through bounds of its own parameter, and where it starts at the bounds."""
    capacity = _one().links["bottleneck"].capacity
    low = 0.99 * _edge().value
    for along_bounds, bounds in (((0.3e6, 4e6), (low, 10.0)), ((capacity, 1.3e6), (0.1, 10.0))):
        curve: Any = fc.stability_boundary(
            _one(), "eta", bounds, along="capacity", along_bounds=along_bounds
        )
        assert curve.ends[1] == "the bounds"
        for i in (0, len(curve) - 1):
            eta, omega = _by_hand(curve.x[i], (curve.y[i] * 1.001, curve.frequency[i] * 0.999))
            assert (curve.y[i], curve.frequency[i]) == pytest.approx((eta, omega), rel=1e-9)
        if bounds[0] == low:
            assert curve.y[-1] == pytest.approx(low, rel=1e-14)
            assert curve.x[-1] < 4e6
        else:
            np.testing.assert_allclose(curve.x[[0, -1]], along_bounds, rtol=1e-14)
            assert np.all(np.diff(curve.x) > 0)


@pytest.mark.slow
def test_the_end_of_a_curve_says_what_happens_there() -> None:
    net = fc.dumbbell([fc.LDCC(eta=1.2)], {"capacity": 1e6}, rtt="50 ms")
    curve: Any = fc.stability_boundary(net, "eta", along="delay", along_bounds=("20 ms", "2 s"))
    assert "the queue of link 'bottleneck' is no longer busy" in curve.ends[1]


def _stiff(h: float) -> fc.Network:
    """x' = -k (u(t - 1) + h u(t - 1)^3), u = x/a - 1, on an idle link: h decides beyond pi/2."""
    x, k, a = symbols("x k a", positive=True)
    stiff = symbols("h", real=True)
    u = x_tau / a - 1
    law = fc.Source(
        "Stiff", {x: -k * a * (u + stiff * u**3)}, {"rate": x}, {k: 1.0, a: 1e6, stiff: h},
        {x: "bit/s", k: "1/s", a: "bit/s", stiff: "1"},
        lower={x: 0}, upper={x: 2 * a}, initial={x: a},
    )  # fmt: skip
    return fc.dumbbell([law], {"capacity": 1e8, "delay": 0.5})


@pytest.mark.slow
@pytest.mark.parametrize(("h", "kind"), [(3.0, "subcritical"), (-0.3, "supercritical")])
def test_both_kinds_of_onset(h: float, kind: str) -> None:
    edge: Any = fc.stability_boundary(_stiff(h), "k")
    assert edge.value == pytest.approx(np.pi / 2, rel=1e-12)
    found = onset(edge, offset=0.1)
    assert found.kind == kind
    # On the stable side, either the large motion lives on at its size or nothing is left of it.
    assert (found.left > 0.9 * found.amplitude) == (kind == "subcritical")
    if kind == "supercritical":
        # Growth k u - k (3/4) |h| A^2 k stops where k (1 - 3/4 |h| A^2) = pi/2, to third order.
        assert found.amplitude == pytest.approx(np.sqrt(0.1 / 1.1 * 4 / 3 / 0.3), rel=0.1)


@pytest.mark.parametrize("delays", ["fifo", "frozen"])
def test_where_oscillation_sets_in(delays: str) -> None:
    """LDCC's grows out of the equilibrium; runs have the delays of the boundary."""
    edge = _edge(delays)
    found = edge.onset()
    assert (edge.delays, found.kind) == (delays, "supercritical")
    assert found.values[0] > edge.value > found.values[1]
    assert 0.02 < found.amplitude < 1
    assert found.left < 0.1 * found.amplitude
    with pytest.raises(InvalidInput, match="offset is 0; give a relative distance between 0 and 1"):
        edge.onset(offset=0)
    with pytest.raises(InvalidInput, match="data under way cannot change flow1.return_delay"):
        replace(edge, name="flow1.return_delay").onset()


@pytest.mark.slow
def test_what_sets_in_is_the_cycle_next_to_the_equilibrium() -> None:
    """Beside a larger one on both sides of the boundary, on which runs from empty paths end."""
    net = fc.dumbbell(
        [fc.Reno], {"law": fc.RED(p_max=0.1, T=0.1), "capacity": "5 Mbit/s"}, rtt="50 ms"
    )
    edge: Any = fc.stability_boundary(net, "bottleneck.T")
    found, cycle = edge.onset(), fc.limit_cycle(edge.network(0.97 * edge.value))
    rate = cycle.orbit.rate
    swing = 0.5 * float(rate.max() - rate.min()) / float(cycle.mean.rate[0])
    assert found.kind == "supercritical"
    assert found.amplitude == pytest.approx(swing, rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("flows", [1, 3])
def test_with_an_ack_clock_the_boundary_is_where_the_verdict_changes(flows: int) -> None:
    """What is under way is on account: the roots at zero of accounts stay out."""
    net = fc.Network().link("l", fc.DropTail, capacity="100 Mbit/s", delay="50 ms")
    for i in range(flows):
        net.flow(f"f{i}", fc.FAST, route=["l"], packet=8000)
    edge: Any = fc.stability_boundary(net, "gamma", ("1", "10"))
    h = 1e-5 * edge.value
    below, above = (fc.stability(edge.network(edge.value + s)) for s in (-h, h))
    assert below.stable
    assert not above.stable
    slope = (below.decay_rate - above.decay_rate) / (2 * h)
    assert slope == pytest.approx(edge.slope.real, rel=1e-4)
    assert below.decay_rate == pytest.approx(edge.slope.real * h, rel=1e-3)


@pytest.mark.parametrize("factor", [1.0, 1 - 1e-15, 1 + 1e-12])
def test_a_network_on_its_boundary_has_that_boundary(factor: float) -> None:
    """There the rightmost root is on the axis but for rounding, on either side of it."""
    edge = _edge()
    again: Any = fc.stability_boundary(edge.network(factor * edge.value), "eta")
    assert (again.kind, again.stable_below) == (edge.kind, edge.stable_below)
    assert again.value == pytest.approx(edge.value, rel=1e-9)


@pytest.mark.parametrize(("bounds", "stable"), [((0.1, 0.2), True), ((8.0, 9.0), False)])
def test_no_boundary_has_a_name_of_its_own(bounds: Any, stable: bool) -> None:
    net = fc.dumbbell([fc.LDCC], {"capacity": "1 Mbit/s"}, rtt="50 ms")
    with pytest.raises(fc.errors.NoBoundary, match="at every eta looked at") as caught:
        fc.stability_boundary(net, "eta", bounds)
    assert isinstance(caught.value, InvalidInput)
    assert pickle.loads(pickle.dumps(caught.value)).stable == caught.value.stable == stable
