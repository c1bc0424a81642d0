"""Links that drop before their queue: equilibria and linearisations against the run."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import symbols

import fluidcc as fc
from fluidcc.analysis.report import sensitivities
from fluidcc.base.errors import Unsupported
from fluidcc.symbols import c, y
from tests.analysis import networks

PACKET, C = 12000.0, 30e6
steep, T = symbols("steep T", positive=True)
smoothed = symbols("smoothed", nonnegative=True)

ByRate = replace(
    fc.DropTail, name="ByRate", out={**fc.DropTail.out, "drop": steep * y / c}, claims={},
    params={steep: 0.01}, units={**fc.DropTail.units, steep: "1"},
)  # fmt: skip
BySmoothRate = replace(
    ByRate, name="BySmoothRate", flow={**fc.DropTail.flow, smoothed: (y - smoothed) / T},
    out={**fc.DropTail.out, "drop": steep * smoothed / c}, params={steep: 0.02, T: 0.1},
    units={**ByRate.units, smoothed: "bit/s", T: "s"}, initial={**fc.DropTail.initial, smoothed: 0},
)  # fmt: skip
RED = fc.REDDrop(min_th=0.02, max_th=0.06, p_max=0.1, T=0.5)


def network(first: fc.Link) -> fc.Network:
    """Twenty flows over a link that drops, and one that goes on over a busy, narrower one."""
    net = fc.Network().link("a", first, capacity=C, delay=0.02, buffer=400 * PACKET)
    net.link("b", fc.DropTail, capacity=0.15 * C, delay=0.01)
    path: Any = {"access_delay": 0.01, "return_delay": 0.03, "packet": PACKET}
    net.flow("near", fc.StaticReno(a=20, b=0.5 / 20), route=["a"], **path)
    net.flow("far", fc.LDCC(w=0.2e6), route=["a", "b"], **path)
    return net.flow("push", fc.CBR(rate=1e6), route=["a", "b"], access_delay=0.01)


@pytest.mark.parametrize("law", [RED, ByRate, BySmoothRate], ids=lambda law: law.name)
def test_the_run_rests_at_the_equilibrium(law: fc.Link) -> None:
    rest = fc.equilibrium(network(law))
    ds = fc.simulate(network(law), 200, samples=3, rtol=1e-9, engine="array").isel(time=-1)
    for name in ("rate", "loss", "rtt", "queueing_delay", "arrival_rate"):
        np.testing.assert_allclose(
            getattr(rest, name), ds[name], rtol=2e-6, atol=1e-9, err_msg=name
        )
    np.testing.assert_allclose(rest.admitted_rate, ds.throughput, rtol=2e-6)
    assert float(rest.arrival_rate[0]) > 1.005 * float(rest.admitted_rate[0])
    assert bool(rest.saturated[1])


@pytest.mark.parametrize("law", [RED, ByRate, BySmoothRate], ids=lambda law: law.name)
def test_a_small_push_goes_as_the_linear_system_says(law: fc.Link) -> None:
    """A step beside a constant flow: the run, and the inverse Laplace transform."""
    net = network(law)
    system: Any = fc.linearize(net)
    # Flow far has the route and the delays of the push.
    k = [f.label for f in system.point.classes].index("far")
    times = np.array([0.7, 1.0, 1.5])
    want = networks.inverse_laplace(lambda s: system(s)[:, k] / s, times, 40)
    got = networks.push_response(net, times, begin=40.0)
    np.testing.assert_allclose(got["near"], want[:, 1 - k], atol=1e-5)
    np.testing.assert_allclose(got["far"], want[:, k] - 1, atol=1e-5)
    assert np.abs(want[:, 1 - k]).max() > 0.02


@pytest.mark.parametrize("below", [fc.DropTail, RED], ids=lambda law: law.name)
@pytest.mark.parametrize("law", [RED, BySmoothRate], ids=lambda law: law.name)
def test_breaking_the_loop_at_links_or_at_flows_is_one(law: fc.Link, below: fc.Link) -> None:
    """Also where the second link drops too, and the third has the losses of both before it."""
    net = network(law).with_link("b", law=below, buffer=400 * PACKET)
    net.link("last", fc.DropTail, capacity=0.1 * C, delay=0.01, buffer=5 * PACKET)
    net.flow("on", fc.LDCC(w=0.1e6), route=["a", "b", "last"], access_delay=0.02, packet=PACKET)
    flows, links = (fc.linearize(net, loop) for loop in ("open", "links"))
    s = np.array([0.3 + 0.2j, 1 + 3j, 2 - 5j, 9j])
    det = [
        np.linalg.det(np.eye(g.n_inputs) + np.moveaxis(g(s), -1, 0)) * g.characteristic(s)
        for g in (flows, links)
    ]
    np.testing.assert_allclose(det[0], det[1], rtol=1e-9)


def test_drops_and_marks_differ_by_what_they_let_in() -> None:
    """Dropped packets do not load the link: c/(1 - p) is sent where RED drops, c where it marks."""
    for law in (RED, fc.RED(min_th=0.02, max_th=0.06, p_max=0.1, T=0.5)):
        flow = fc.StaticReno(a=30, b=0.5 / 30)
        rest = fc.equilibrium(fc.dumbbell([flow], {"law": law, "capacity": C, "delay": 0.02}))
        p = float((rest.loss if law is RED else rest.mark)[0])
        sent = C / (1 - p) if law is RED else C
        assert float(rest.rate[0]) == pytest.approx(sent, rel=1e-9)
        assert 0.1 / 0.04 * (float(rest.queueing_delay[0]) - 0.02) == pytest.approx(p, rel=1e-9)


def test_how_the_equilibrium_moves_is_its_difference() -> None:
    """The exact sensitivities of `margins` go through the drop as well."""
    found = sensitivities(fc.stability(network(BySmoothRate))).of("a.steep")
    h = 1e-5
    decay = [fc.stability(network(BySmoothRate(steep=0.02 * (1 + d)))).decay_rate for d in (h, -h)]
    assert found["decay_rate"] == pytest.approx((decay[0] - decay[1]) / (0.04 * h), rel=1e-4)


@pytest.mark.parametrize(
    ("law", "what"),
    [
        (fc.ECF, "knows more than data carry"),
        (fc.StaticReno, "tells sources something past the data"),
    ],
)
def test_routers_that_report_say_what_to_do_instead(law: fc.Source, what: str) -> None:
    link = {"law": fc.PAQMECF, "capacity": C, "delay": 0.02}
    remedy = "simulate it; .*max_min_rates, .*sampled_stability"
    with pytest.raises(Unsupported, match=f"{what}, .*{remedy}"):
        fc.equilibrium(fc.dumbbell([law], link, rtt=0.06))
