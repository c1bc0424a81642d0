"""Sensitivities: against closed forms, scales, and whole reports of networks near by."""

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.analysis.change import derivative, moved, parameter
from fluidcc.analysis.report import QUANTITIES
from fluidcc.base.units import dimension
from fluidcc.symbols import plain, positive, price, symbols
from tests.analysis import networks

x, k = symbols("x"), positive("k")


@pytest.mark.parametrize("gain", [0.5, 3.0, 20.0])
def test_an_integrator_over_a_delay(gain: float) -> None:
    """x' = k (1 - (x(t - T)/c)^B) has s = -a exp(-s T) with a = k B/c: all else follows."""
    T, c, B = 0.1, 1e6, 4.0
    law = fc.Source("Integrator", flow={x: k * (1 - price)}, out={"rate": x}, initial={x: 1e6},
                    params={k: gain * c / B}, units={x: "bit/s", k: "bit/s^2"})  # fmt: skip
    net = fc.Network().link("l", fc.PenaltyLink(B=B), capacity=c, delay=T / 2)
    report = fc.stability(net.flow("f", law, route=["l"]))
    s, a = report.rightmost_roots[0], gain
    assert s == pytest.approx(-a * np.exp(-s * T), rel=1e-9)
    by_a, by_T = s / a / (1 + s * T), -(s**2) / (1 + s * T)
    margins = {
        "gain_margin": (-math.pi / (2 * T * a**2), -math.pi / (2 * T**2 * a)),
        "phase_margin": (-math.degrees(T), -math.degrees(a)),
        "delay_margin": (-math.pi / (2 * a**2), -1.0),
    }
    for name, a_moves, trip in (("f.k", B / c, 0), ("l.B", a / B, 0), ("l.capacity", -a / c, 0),
                                ("f.access_delay", 0, 2), ("l.delay", 0, 2)):  # fmt: skip
        found = report.sensitivities.of(name)
        ds = by_a * a_moves + by_T * trip
        assert found["decay_rate"] == pytest.approx(-ds.real, rel=1e-5, abs=1e-12)
        assert found["frequency"] == pytest.approx(ds.imag, rel=1e-5, abs=1e-12)
        for key, (one, other) in margins.items():
            wanted = one * a_moves + other * trip if report.stable else math.nan
            assert found[key] == pytest.approx(wanted, rel=1e-5, nan_ok=True), (name, key)


def test_a_corner_has_no_derivative_and_a_bound_one_side() -> None:
    net = fc.dumbbell([fc.LDCC], {"capacity": "1 Mbit/s"}, rtt="50 ms")
    point = fc.stability(net).point
    eta, access = parameter(point, "eta"), parameter(point, "access_delay")

    def of(at: Any) -> Any:
        value = at.p[0][[plain(p) for p in at.classes[0].spec.law.params].index("eta")]
        return np.array([value**2, abs(value - eta.value)])

    smooth, corner = derivative(point, eta, eta.value, of, of(point))
    assert smooth == pytest.approx(2 * eta.value, rel=1e-9)
    assert np.isnan(corner)
    delay = derivative(point, access, 0.0, lambda at: at.access + at.access**2, point.access)
    assert delay == pytest.approx(1.0, rel=1e-6)


def _quantities(report: Any) -> Any:
    root = report.rightmost_roots[0]
    margins = (report.gain_margin, report.phase_margin, report.delay_margin, report.modulus_margin)
    return np.array([-root.real, abs(root.imag), *margins])


def _identical() -> fc.Network:
    net = fc.dumbbell([fc.LDCC(eta=1.3)] * 3, {"capacity": 3e6, "buffer": "1 s"}, rtt="50 ms")
    return net.flow("other", fc.LDCC, route=["bottleneck"], return_delay=0.05)


@pytest.mark.parametrize(
    ("make", "regime"),
    [
        (_identical, "delay-driven"),
        (lambda: networks.at_random(13, "all"), "loss-driven"),
        (lambda: networks.at_random(8, "some"), "mixed"),
        (lambda: networks.at_random(23, "red"), "mark-driven"),
    ],
)
def test_verdicts_near_by(make: Any, regime: str) -> None:
    net = make()
    report = fc.stability(net)
    assert report.regime == regime
    every = [p for p in report.sensitivities.parameters if p.value > 0]
    _agree_with_differences(net, report, every[:: 1 + len(every) // 3])


def _agree_with_differences(net: fc.Network, report: Any, chosen: Any) -> None:
    """Against central differences of whole reports."""
    for p in chosen:
        step = 1e-4 * p.value
        nets = (moved(report.point, [(p, p.value + h)]).network() for h in (step, -step))
        more, less = (_quantities(fc.stability(net)) for net in nets)
        change = (more - less) / (2 * step)
        scale = np.abs(_quantities(report)) / p.value
        got = np.array(list(report.sensitivities.of(p.name).values()))
        for name, one, other, size in zip(QUANTITIES, got, change, scale, strict=True):
            near = pytest.approx(other, rel=1e-4, abs=1e-5 * size, nan_ok=True)
            assert one == near, (p.name, name)


@pytest.mark.parametrize("what", ["bit", "s"])
def test_other_units(what: str) -> None:
    """With every amount of data 1 % larger no root or margin moves; with every time, they scale."""
    table = fc.stability(_identical()).sensitivities
    power = np.array([getattr(dimension(p.units), what) for p in table.parameters])
    size = np.abs(power[:, None] * table.per_relative).sum(axis=0)
    expected = table.value * [-1, -1, 0, 0, 1, 0] if what == "s" else np.zeros(len(QUANTITIES))
    assert np.all(np.abs(power @ table.per_relative - expected) <= 1e-6 * size)


def test_table() -> None:
    table = fc.stability(networks.one_link()).sensitivities
    ds = table.to_xarray()
    assert ds.derivative.dims == ("parameter", "quantity")
    by_name = ds.derivative.sel(parameter="a.eta", quantity="decay_rate").item()
    assert by_name == table.of("a.eta")["decay_rate"]
    head, now, *rows = repr(table).splitlines()
    assert head.split("  ")[0] == "1 % more of"
    assert now.startswith("now")
    assert sorted(row.split()[0] for row in rows) == sorted(p.name for p in table.parameters)


@pytest.mark.parametrize("capacity", [16 * 8000.0, 14 * 8000.0])
def test_a_coefficient_that_is_zero_here_may_move(capacity: float) -> None:
    """At these windows a Jacobian of scalable TCP is exactly zero, and its channel is gone."""
    law = fc.ScalableTCP(a=0.02, b=0.125)
    net = fc.Network().link("l", fc.PenaltyLink(B=50), capacity=capacity, delay=0.05)
    net.flow("f", law, route=["l"], return_delay=0.05)
    report = fc.stability(net)
    some = [p for p in report.sensitivities.parameters if p.name in ("f.a", "l.B")]
    _agree_with_differences(net, report, some)
    edge: Any = fc.stability_boundary(net, "a")
    sides = [fc.stability(edge.network(edge.value * f)) for f in (0.999, 1.001)]
    assert [side.stable for side in sides] == [True, False]
    with pytest.warns(fc.errors.FluidccWarning, match="there is no loop"):
        rest = fc.stability(net.with_link("l", capacity=8e4))
    with pytest.raises(
        fc.errors.SolverError, match="there is none: the linearisation has no state"
    ):
        _ = rest.sensitivities


def test_what_is_below_the_accuracy_prints_as_0() -> None:
    """The threshold of a single LDCC flow moves the delay margin alone: RTT/T stays as it is."""
    net = fc.dumbbell([fc.LDCC], {"capacity": "1 Mbit/s"}, rtt="50 ms")
    head, _, *rows = fc.stability(net).sensitivities._rows()
    (cells,) = (dict(zip(head, row, strict=True)) for row in rows if row[0] == "flow1.T")
    zero = {name for name, text in cells.items() if text == "0"}
    assert {"gain_margin [1]", "phase_margin [deg]", "modulus_margin [1]"} <= zero
    assert float(cells["delay_margin [s]"]) > 0
