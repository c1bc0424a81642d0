"""An equilibrium that is one of a continuum says so, and one that stands alone does not."""

import warnings
from typing import Any

import numpy as np
import pytest
from sympy import symbols

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning
from fluidcc.symbols import price
from tests.analysis import networks

x, k, a = symbols("x k a", positive=True)


def _source(flow: Any, **params: float) -> fc.Source:
    values = {s: params[s.name] for s in (k, a) if s.name in params}
    units = {x: "bit/s", k: "s/bit^2" if a in values else "1/s", a: "bit/s"}
    return fc.Source(
        "Own", {x: flow}, {"rate": x}, values, {s: units[s] for s in (x, *values)},
        lower={x: 0}, initial={x: 5e5},
    )  # fmt: skip


def _series(law: Any, flow: Any, count: int = 2) -> fc.Network:
    net = fc.Network()
    for l in range(count):
        net.link(f"l{l}", law, capacity=3e6, delay=0.01)
    return net.flow("f", flow, route=list(net.link_names))


CONTINUA = {
    "prices in series": (
        _series(fc.DualLink(nu=1e-9), fc.PrimalDual(alpha=3e7)), {"l0.lambda", "l1.lambda"}
    ),
    "queues in series": (_series(fc.DropTail, fc.LDCC, 3), {"l0.q", "l1.q", "l2.q"}),
    "an increase and a decrease in proportion": (
        fc.dumbbell(
            {name: _source(k * x * (0.01 - price), k=gain) for name, gain in (("f", 1), ("g", 2))},
            {"law": fc.PenaltyLink, "capacity": 3e6, "delay": 0.01},
        ),
        {"f.x", "g.x"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTINUA)
def test_a_continuum_is_told(name: str) -> None:
    net, free = CONTINUA[name]
    with pytest.warns(FluidccWarning, match=r"one of a continuum: nothing determines \w+\.\w+"):
        found = fc.equilibrium(net)
    assert found.free is not None
    assert set(found.free) == free
    assert all("one of a continuum, along " in text for text in (found._repr_html_(), repr(found)))


def test_each_end_of_a_continuum_is_an_equilibrium() -> None:
    """Runs that start with the queue in either link end differently, and each stays."""
    net = _series(fc.DropTail, fc.LDCC)
    with pytest.warns(FluidccWarning, match="one of a continuum"):
        rest = fc.equilibrium(net)
    q, ends = float(rest.queueing_delay.sum()), []
    for share in (1.0, 0.4):
        start = net.with_flow("f", initial=rest.states["f"])
        start = start.with_link("l0", initial={"q": share * q})
        start = start.with_link("l1", initial={"q": (1 - share) * q})
        run = fc.simulate(start, 20.0, samples=3, progress=False)
        ends.append(run.queueing_delay.values[-1])
        assert ends[-1].sum() == pytest.approx(q, rel=1e-6)
    assert np.abs(ends[0] - ends[1]).max() > 0.5 * q


@pytest.mark.parametrize("make", networks.ALL, ids=lambda make: make.__name__)
def test_an_equilibrium_that_stands_alone_is_not_suspected(make: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fc.equilibrium(make()).free == ()


def test_a_degenerate_equilibrium_stands_alone() -> None:
    """A triple zero has no slope and yet no others beside it."""
    cubic = _source(-k * (x - a) ** 3, k=1e-12, a=1e6)
    net = fc.dumbbell([cubic, fc.LDCC], {"capacity": 3e6, "delay": 0.01})
    assert fc.equilibrium(net).free == ()


def test_two_links_that_just_saturate_by_chance_stand_alone() -> None:
    """The second link is full to the last bit, but the capacities decide the rates."""
    net = fc.Network().link("l0", fc.DropTail, capacity=3e6, delay=0.01)
    both = fc.dumbbell([fc.LDCC, fc.LDCC(beta=0.2)], {"capacity": 3e6, "delay": 0.01})
    rate = float(fc.equilibrium(both).rate[0])
    net.link("l1", fc.DropTail, capacity=rate, delay=0.0)
    net.flow("f", fc.LDCC, route=["l0", "l1"]).flow("g", fc.LDCC(beta=0.2), route=["l0"])
    assert fc.equilibrium(net).free == ()
