"""What the named expressions of laws are at rest."""

import numpy as np
import pytest
from sympy import symbols

import fluidcc as fc
from fluidcc.base.errors import UnknownName, Unsupported
from fluidcc.equilibria.many import equilibria
from fluidcc.network.parameters import Parameters
from fluidcc.sweeps.axes import find_target
from fluidcc.symbols import Let, e
from tests.at_rest import BETA, T, W, bottleneck


def test_the_penalty_of_ldcc_is_what_it_wants_per_rate() -> None:
    """(17) is v = beta (e - T)/RTT, k = eta/RTT; at rest without loss w/x = v."""
    net = bottleneck(3e6).flow("a", fc.LDCC, route=["l"])
    net.flow("b", fc.LDCC, route=["l"], access_delay=0.05)
    eq = fc.equilibrium(net.flow("off", fc.LDCC, route=["l"], stop=3))
    for name in ("a", "b"):
        x, rtt, delay = (float(one.sel(flow=name)) for one in (eq.rate, eq.rtt, eq.one_way_delay))
        lets = eq.lets(name)
        assert lets["v"] == pytest.approx(W / x, rel=1e-10)
        assert lets["v"] == pytest.approx(BETA * (delay - T) / rtt, rel=1e-12)
        assert (lets["RTT"], lets["k"]) == (pytest.approx(rtt), pytest.approx(0.4 / rtt))
    assert eq.lets("off")["RTT"] == pytest.approx(float(eq.rtt.sel(flow="off")))
    assert eq.lets("l") == {}


@pytest.mark.parametrize("link", [fc.RED, fc.PI, fc.REDDrop], ids=lambda law: law.name)
def test_named_values_of_links_are_finite(link: fc.Link) -> None:
    net = fc.Network().link("l", link, capacity=5e6, delay=0.02, buffer=1e6)
    eq = fc.equilibrium(
        net.flow("a", fc.StaticReno, route=["l"]).flow("b", fc.StaticReno, route=["l"])
    )
    assert np.isfinite([*eq.lets("l").values(), *eq.lets("a").values()]).all()
    assert eq.lets("a") == eq.lets("b")


def test_two_expressions_of_one_name_are_both_told() -> None:
    x, k, a = symbols("x k a", positive=True)
    one, two = Let("g", e * k), Let("g", e * k + 1)
    law = fc.Source(
        "Own", flow={x: k * (a * one + a * two - x)}, out={"rate": x}, params={k: 1, a: 1e5},
        units={x: "bit/s", k: "1/s", a: "bit/s"}, initial={x: 1e5},
    )  # fmt: skip
    lets = fc.equilibrium(bottleneck(3e6).flow("a", law, route=["l"])).lets("a")
    assert sorted(lets.values()) == pytest.approx([0.025, 1.025])
    assert set(lets) == {"g", "g_2"}


def test_unknown_names_and_points_without_a_network_are_refused() -> None:
    net = bottleneck(3e6).flow("a", fc.LDCC, route=["l"])
    with pytest.raises(UnknownName, match="no flow or link 'z'; there are a, l"):
        fc.equilibrium(net).lets("z")
    many = equilibria(Parameters.of(net, {"beta": find_target(net, "beta")}, {"beta": [0.1]}))
    with pytest.raises(Unsupported, match="of many points has no network"):
        many.point(0).lets("a")
