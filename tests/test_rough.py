"""Rates that no state smooths: kinks come round for ever, and errors still are of the size of the tolerance."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.simulate import simulate
from fluidcc.sources import FAST, HTCP, LEDBAT, ScalableTCP, SlowStartAIMD, Vegas

TIGHT = 1e-7


def three_links() -> Network:
    net = Network().link("k", DropTail, capacity=8.3e6, delay=0.0037, buffer=36e3)
    net.link("l", DropTail, capacity=7.9e6, delay=0.031, buffer=196e3)
    net.link("m", DropTail, capacity=17.7e6, delay=0.0012, buffer=78e3)
    return net.flow("a", HTCP, route=["k", "l", "m"], start=0).flow("b", FAST, route=["m"], start=0.3)


def exact_clocks() -> Network:
    net = Network().link("l", DropTail, capacity=7e6, delay=0.005, buffer=24e3)
    net.flow("a", LEDBAT(pace=0), route=["l"], start=0, access_delay=0.0055)
    net.flow("b", Vegas, route=["l"], start=0.33)
    return net.flow("c", Vegas(pace=0), route=["l"], start=0.2, access_delay=0.0025)


def run(net: Network, until: float, rtol: float, engine: str = "array") -> xr.Dataset:
    return simulate(net, until, samples=41, rtol=rtol, engine=engine)


@pytest.mark.parametrize(("net", "until"), [(three_links(), 1.5), (exact_clocks(), 0.9)])
def test_errors_are_of_the_size_of_the_tolerance(net: Network, until: float) -> None:
    best = run(net, until, TIGHT)
    for rtol in (1e-4, 1e-5):
        found = run(net, until, rtol)
        for name in ("entered", "lost"):
            atol = 8 * rtol * best[name].values.max()  # 9 and 18 where kinks are followed three generations only
            np.testing.assert_allclose(found[name], best[name], rtol=0, atol=atol, err_msg=f"{name} at {rtol}")


def test_a_kink_that_comes_round_does_not_swing() -> None:
    """A burst of a thousandth of a round trip: at this tolerance it is hardly more than one step."""
    net = Network().link("l", DropTail, capacity=10e6, delay=0.0213, buffer=60e3)
    net.flow("a", ScalableTCP, route=["l"], start=0).flow("b", SlowStartAIMD, route=["l"], start=0.137)
    loose, best = run(net, 1.5, 1e-4), run(net, 1.5, 1e-6)
    assert loose.rate.values.max() < 1.2 * best.rate.values.max()
    np.testing.assert_allclose(loose.entered, best.entered, rtol=0, atol=1e-3 * best.entered.values.max())


def test_the_fused_step_follows_kinks_as_the_array_step_does() -> None:
    net = Network().link("l", DropTail, capacity=7e6, delay=0.01, buffer=24e3)
    net.flow("a", FAST(pace=0), route=["l"], start=0)
    plain, fused = run(net, 0.9, 1e-5), run(net, 0.9, 1e-5, "fused")
    assert plain.attrs["breaking_points"] > 100  # three generations of each kink would be fewer
    assert fused.attrs["breaking_points"] == pytest.approx(plain.attrs["breaking_points"], rel=0.05)
    np.testing.assert_allclose(fused.entered, plain.entered, rtol=0, atol=1e-5 * plain.entered.values.max())
