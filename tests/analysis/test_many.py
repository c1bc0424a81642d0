"""Verdicts at many points are those of `stability` at each."""

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.analysis.stability import Verdicts, verdicts_at
from fluidcc.base.errors import NoEquilibrium
from fluidcc.equilibria.many import equilibria
from fluidcc.network.parameters import Parameters
from fluidcc.sweeps.axes import find_target
from tests.analysis import networks

FIELDS = (
    "stable", "marginal", "unstable", "encirclements", "gain_margin", "phase_margin",
    "delay_margin", "modulus_margin", "crossover", "decay_rate",
)  # fmt: skip


def dumbbell() -> fc.Network:
    near_to_far = {"a": (0.01, 0.1), "b": (0.03, 0.12), "c": (0.05, 0.08)}
    flows = {n: {"law": fc.LDCC(beta=b), "access_delay": d} for n, (d, b) in near_to_far.items()}
    return fc.dumbbell(flows, {"name": "l", "capacity": "3 Mbit/s", "delay": "10 ms"})


def tandem() -> fc.Network:
    """Either link may saturate, one buffer may fill, and some traffic does not listen."""
    net = fc.Network()
    net.link("first", fc.DropTail, capacity="4 Mbit/s", delay="5 ms", buffer="60 ms")
    net.link("second", fc.DropTail, capacity="3 Mbit/s", delay="15 ms")
    net.flow("long", fc.LDCC, route=["first", "second"], access_delay="3 ms")
    net.flow("twin", fc.LDCC, route=["first", "second"], access_delay="3 ms")
    net.flow("short", fc.LDCC(beta=0.15), route=["first"], access_delay="8 ms")
    net.flow("noise", fc.CBR(rate="0.4 Mbit/s"), route=["second"])
    return net


def windows() -> fc.Network:
    flows = {
        "f": fc.StaticReno,
        "g": fc.StaticReno,
        "h": {"law": fc.StaticReno, "access_delay": 0.04},
    }
    return fc.dumbbell(flows, {"name": "l", "law": fc.RED, "capacity": 3e6, "delay": 0.01})


CASES: dict[str, tuple[Any, dict[str, tuple[float, float]]]] = {
    "dumbbell": (dumbbell, {"eta": (0.1, 4.0), "capacity": (2e6, 6e6), "b.access_delay": (0, 0.1)}),
    "tandem": (
        tandem,
        {"first.capacity": (1.5e6, 6e6), "short.beta": (0.05, 0.3), "long.eta": (0.2, 1.5)},
    ),
    "full buffers": (
        networks.full_buffers,
        {"b.beta": (0.1, 0.4), "l2.capacity": (1.5e6, 3e6), "push.rate": (0.1e6, 0.6e6)},
    ),
    "prices": (
        networks.dual_prices,
        {"a.alpha": (1e7, 5e7), "l.delay": (0.005, 0.2), "flows.access_delay": (0.0, 0.02)},
    ),
    "windows over marks": (windows, {"l.capacity": (2.5e6, 4e6), "f.access_delay": (0.01, 0.05)}),
    "round trips": (
        lambda: fc.dumbbell([fc.LDCC] * 3, {"capacity": "3 Mbit/s"}, rtt="50 ms"),
        {"rtt": (0.01, 0.3)},
    ),
}


def cases(name: str, count: int) -> tuple[fc.Network, dict[str, Any], dict[str, Any]]:
    make, ranges = CASES[name]
    net, rng = make(), np.random.default_rng(sum(name.encode()))
    values = {axis: rng.uniform(low, high, count) for axis, (low, high) in ranges.items()}
    return net, {axis: find_target(net, axis) for axis in values}, values


def one_by_one(
    net: fc.Network, targets: dict[str, Any], values: dict[str, Any], found: Verdicts
) -> None:
    given = Parameters.of(net, targets, values)
    for i in range(given.points):
        if i in found.errors:
            with pytest.raises(type(found.errors[i])):
                fc.stability(given.network(i))
            assert np.isnan([found.stable[i], found.gain_margin[i]]).all()
            continue
        report = fc.stability(given.network(i))
        got = [getattr(found, name)[i] for name in FIELDS]
        np.testing.assert_allclose(
            got, [float(getattr(report, name)) for name in FIELDS], rtol=1e-9, err_msg=str(i)
        )
        np.testing.assert_allclose(found.rightmost_root[i], report.rightmost_roots[0], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_point_is_judged_as_if_alone(name: str) -> None:
    net, targets, values = cases(name, 12)
    found = verdicts_at(equilibria(Parameters.of(net, targets, values)))
    one_by_one(net, targets, values, found)
    assert len(found.alone) < 3
    assert len(np.unique(found.stable[~np.isnan(found.stable)])) == 2 or name != "dumbbell"


def test_only_what_is_asked_for() -> None:
    rest = equilibria(Parameters.of(*cases("dumbbell", 5)))
    roots, margins = verdicts_at(rest, margins=False), verdicts_at(rest, roots=False)
    assert np.isnan([roots.phase_margin, margins.decay_rate]).all()
    assert not np.isnan([roots.decay_rate, margins.critical_gain]).any()
    np.testing.assert_array_equal(margins.stable, roots.stable)
    np.testing.assert_array_equal(np.isnan(margins.phase_margin), roots.stable == 0)


def test_a_state_that_the_search_leaves_out_has_its_bounds_too() -> None:
    net = fc.Network().link("l", fc.DropTail, capacity="1 Mbit/s", delay="5 ms", buffer="300 ms")
    # At rest one of the states of NADA follows from the others.
    net.flow("a", fc.NADA, route=["l"], return_delay="40 ms")
    targets = {axis: find_target(net, axis) for axis in ("capacity", "kappa")}
    values: Any = {"capacity": [0.6e6, 1.0e6, 1.4e6, 2.0e6], "kappa": [0.3, 0.5, 0.7, 0.5]}
    values = {axis: np.array(row) for axis, row in values.items()}
    found = verdicts_at(equilibria(Parameters.of(net, targets, values)), roots=False)
    assert not found.alone
    assert list(found.errors) == [3]  # where its rate is at its bound, and does not press
    given = Parameters.of(net, targets, values)
    for i in range(3):
        report = fc.stability(given.network(i))
        got = [found.gain_margin[i], found.phase_margin[i]]
        np.testing.assert_allclose(got, [report.gain_margin, report.phase_margin], rtol=1e-9)


def test_points_that_need_more_are_judged_alone_and_failures_are_told() -> None:
    net = fc.dumbbell([fc.LDCC] * 2, {"capacity": "3 Mbit/s"}, rtt="50 ms")
    targets = {"beta": find_target(net, "beta"), "eta": find_target(net, "eta")}
    edge: Any = fc.stability_boundary(net, "eta")
    given = {"beta": np.array([0.1, 0.1, 0.001]), "eta": np.array([0.4, edge.value, 0.4])}
    found = verdicts_at(equilibria(Parameters.of(net, targets, given)))
    assert list(found.alone) == [1]
    assert "axis" in found.alone[1]
    assert isinstance(found.errors[2], NoEquilibrium)
    assert np.isnan(found.stable[2])
    one_by_one(net, targets, given, found)
