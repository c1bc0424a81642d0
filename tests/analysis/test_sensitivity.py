"""Sensitivities: against central differences of whole reports, each with its own equilibrium."""

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.analysis.change import moved
from fluidcc.analysis.report import QUANTITIES
from tests.analysis import networks


def _quantities(report: Any) -> Any:
    root = report.rightmost_roots[0]
    margins = (report.gain_margin, report.phase_margin, report.delay_margin, report.modulus_margin)
    return np.array([-root.real, abs(root.imag), *margins])


def _identical() -> fc.Network:
    net = fc.dumbbell([fc.LDCC(eta=1.3)] * 3, {"capacity": 3e6, "buffer": "1 s"}, rtt="50 ms")
    return net.flow("other", fc.LDCC, route=["bottleneck"], return_delay=0.05)


NETS = [*networks.ALL[:3], *networks.ALL[4:], _identical]


@pytest.mark.slow
@pytest.mark.parametrize("make", NETS, ids=lambda make: make.__name__)
def test_all_parameters(make: Any) -> None:
    net = make()
    report = fc.stability(net)
    table = report.sensitivities
    assert len(table.parameters) == len(table.derivative)
    every = [p for p in table.parameters if p.value > 0]
    _agree_with_differences(net, report, every[::3] if make is networks.full_buffers else every)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "buffers", "regime"),
    [(0, "", "delay-driven"), (13, "all", "loss-driven"), (8, "some", "mixed"),
     (23, "red", "mark-driven")],
)  # fmt: skip
def test_some_parameters_of_random_networks(seed: int, buffers: str, regime: str) -> None:
    net = networks.at_random(seed, buffers)
    report = fc.stability(net)
    assert report.regime == regime
    every = [p for p in report.sensitivities.parameters if p.value > 0]
    _agree_with_differences(net, report, every[seed % 2 :: 4])


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


def test_in_other_units_of_data_nothing_changes() -> None:
    """Every rate and size by 1 % more, capacities and all: no root or margin moves."""
    table = fc.stability(_identical()).sensitivities
    of_data = [p.units in ("bit", "bit/s") for p in table.parameters]
    moved = table.per_relative[of_data]
    assert np.all(np.abs(moved.sum(axis=0)) <= 1e-9 * np.abs(moved).sum(axis=0))


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
