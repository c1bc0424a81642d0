"""What routers offer (RCP): equilibria, linearisations and verdicts, as of a price."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Min, symbols

import fluidcc as fc
from fluidcc.analysis.report import sensitivities
from fluidcc.base.errors import FluidccWarning, InvalidInput, NoEquilibrium, Unsupported
from fluidcc.conditions.passivity import passivity
from fluidcc.symbols import c, offer_min, price, y

R, a, g, d, k, b = symbols("R a g d k b", positive=True)
q = symbols("q", nonnegative=True)
Obey = fc.Source("Obey", out={"rate": offer_min})
Pay = fc.Source("Pay", out={"rate": k * price}, params={k: 1e6}, units={k: "bit/s"})
RCP = fc.Link(
    "RCP", {R: a * R * (g * c - y) / (g * c * d)}, {"offer": R, "price": R / k},
    params={a: 0.5, g: 0.9, d: 0.1, k: 1e6}, units={R: "bit/s", a: "1", g: "1", d: "s", k: "bit/s"},
    lower={R: c / 1e6}, upper={R: c}, initial={R: c / 10},
)  # fmt: skip
Queued = fc.Link(
    "Queued", {q: (y - c) / c, R: a * R * (g * c - y - b * q * c / d) / (c * d)}, {"offer": R},
    params={a: 0.1, g: 1.02, d: 0.1, b: 0.04}, queue=q, lower={q: 0, R: 1}, upper={R: c},
    units={q: "s", R: "bit/s", a: "1", g: "1", d: "s", b: "1"}, initial={q: 0, R: c / 10},
)  # fmt: skip


LOT = (1e7, 2e7, 1.3e7)


def lot(capacities: Any, routes: Any, law: Any = RCP) -> fc.Network:
    net = fc.Network()
    for l, capacity in enumerate(capacities):
        net.link(f"l{l}", law, capacity=float(capacity), delay=0.01 + 0.007 * l)
    for f, route in enumerate(routes):
        net.flow(f"f{f}", Obey, route=[f"l{l}" for l in route], access_delay=0.01 * (f + 1))
    return net


@pytest.mark.filterwarnings("ignore::fluidcc.base.errors.FluidccWarning")
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_an_offer_is_as_a_price_that_comes_back_at_once(unit: float) -> None:
    """The public case: three flows share 0.9 of the capacity; time is in any unit."""
    law = RCP(d=0.1 * unit, k=1e6 / unit)
    nets = []
    for source in (Obey, Pay(k=1e6 / unit)):
        net = fc.Network().link("l", law, capacity=1e7 / unit, delay=0.04 * unit)
        for f in ("f", "g", "h"):  # a price has the link's delay and the way back, 0.05 s
            net.flow(f, source, route=["l"], access_delay=0.05 * unit, return_delay=0.01 * unit)
        nets.append(net)
    offered, priced = map(fc.equilibrium, nets)
    assert offered.rate.values * unit == pytest.approx(3e6, rel=1e-12)
    assert offered.rate.values == pytest.approx(priced.rate.values, rel=1e-12)
    for loop in ("closed", "open", "links"):
        mine, other = (fc.linearize(net, loop) for net in nets)
        at = 1j * np.logspace(-1, 2, 5) / unit
        np.testing.assert_allclose(mine(at), other(at), rtol=1e-12)
    told, paid = map(fc.stability, nets)
    assert (told.stable, told.regime) == (True, "offer-driven")
    assert told.margins.phase == pytest.approx(paid.margins.phase, rel=1e-9)
    np.testing.assert_allclose(told.rightmost_roots, paid.rightmost_roots, rtol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_least_offer_makes_rates_max_min_fair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    capacity = rng.uniform(1e6, 1e8, 5)
    ends = np.sort(rng.integers(0, 5, (8, 2)), axis=1)
    routes = [range(5), *(range(first, last + 1) for first, last in ends)]
    crosses = [[l in route for route in routes] for l in range(5)]
    net = lot(capacity, routes)
    fair = fc.metrics.max_min_rates(np.array(crosses, float), 0.9 * capacity)
    np.testing.assert_allclose(fc.equilibrium(net).rate, fair, rtol=1e-12)
    assert fc.stability(net).stable
    many = fc.sweep(net, {"l0.capacity": capacity[0] * np.array([0.6, 0.9, 1.1])}, "decay_rate")
    alone = [fc.stability(net.with_link("l0", capacity=v)).decay_rate for v in many["l0.capacity"]]
    np.testing.assert_allclose(many.decay_rate, alone, rtol=1e-9)


def test_a_run_decays_as_its_roots_say_with_offers_that_pass_the_queues() -> None:
    routes = [(0, 1, 2), (0,), (1,), (2,), (1, 2)]
    net = lot(LOT, routes, Queued)
    rest, report = fc.equilibrium(net), fc.stability(net)
    assert (rest.queueing_delay > 0.04).all()
    for l in net.link_names:
        near = {"q": rest.states[l]["q"], "R": 1.001 * rest.states[l]["R"]}
        net = net.with_link(l, initial=near)
    run = fc.simulate(net, 70, rtol=1e-11, t_eval=np.arange(50, 70, 0.5))
    w = run.rate.values[:, 0] - rest.rate.values[0]
    step = np.linalg.lstsq(np.array([w[1:-1], w[:-2]]).T, w[2:], rcond=None)[0]
    root = np.log(np.roots([1, *-step]).astype(complex)) / 0.5
    assert root.real == pytest.approx(report.rightmost_roots[0].real, rel=1e-3)
    assert abs(root.imag) == pytest.approx(abs(report.rightmost_roots[0].imag), rel=1e-3)
    faster, slower = (lot(LOT, routes, Queued(b=v)) for v in (0.0401, 0.0399))
    change = fc.stability(faster).decay_rate - fc.stability(slower).decay_rate
    found = sum(sensitivities(report).of(f"{l}.b")["decay_rate"] for l in net.link_names)
    assert found * 2e-4 == pytest.approx(change, rel=1e-4)


Free = replace(RCP, name="Free", upper={})


@pytest.mark.parametrize(
    ("net", "error", "says"),
    [
        (lot([1e7, 1e7], [(0, 1), (0,), (1,)]), InvalidInput, "links 'l0' and 'l1' offer it the"),
        (lot([1e7, 2e7], [(0, 1)], Free), NoEquilibrium, r"R of link 'l1' .* bound it \(upper=\)"),
        (lot([1e7], [(0,)], fc.DropTail), NoEquilibrium, "price or offer"),
    ],
)  # fmt: skip
def test_what_has_no_rest_or_no_derivative_says_so(net: fc.Network, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        fc.stability(net)


def test_links_that_offer_the_same_are_no_surface_for_who_does_not_listen() -> None:
    """Both offers are at their upper bounds, and each flow sends less than these."""
    most: Any = {"params": {k: 1e6}, "units": {k: "bit/s"}}
    capped = fc.Source("Capped", out={"rate": Min(offer_min, k)}, **most)
    net = lot([1e7, 1e7], [(0, 1)]).with_flow("f0", law=capped)
    with pytest.warns(FluidccWarning, match="there is no loop"):
        assert fc.stability(net).stable
    for refused in (fc.undelayed, passivity):
        with pytest.raises(Unsupported, match="offer"):
            refused(lot([1e7], [(0,)]))
