"""Measures by name mean what they say: closed forms, and one measure against another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.symbols import RTT


def network(eta: float = 0.4) -> fc.Network:
    return fc.dumbbell([fc.LDCC(eta=eta)] * 2, {"capacity": "3 Mbit/s"}, rtt="50 ms")


def test_periods_of_limit_cycles_follow_the_closed_form() -> None:
    """A linear sawtooth: up by `slope` until the full buffer is heard of, then by 1 - b."""
    delay, back, slope, b = 0.025, 0.04, 1e6, 0.5
    law = fc.RateAIMD(m=1e5, R=0.1, beta=b, alpha=1.0)
    law = replace(law, jumps=(replace(law.jumps[0], refractory=RTT),))
    flow, link = {"law": law, "return_delay": back}, {"capacity": 10e6, "delay": delay}
    net = fc.dumbbell([flow], {**link, "buffer": 300e3})
    grid = {"capacity": [8e6, 10e6], "buffer": [2e5, 3e5]}
    ds = fc.sweep(net, grid, "limit_cycle_period", executor="serial")
    loop, over = ds.buffer / ds.capacity + delay + back, np.sqrt(2 * ds.buffer / slope)
    wanted = b * (ds.capacity + slope * (over + loop)) / slope
    wanted = wanted.transpose("capacity", "buffer")
    np.testing.assert_allclose(ds.limit_cycle_period, wanted, rtol=1e-10)
    assert ds.limit_cycle_period.attrs["units"] == "s"


def test_a_critical_value_is_where_the_critical_gain_is_one() -> None:
    grid = {"capacity": ["2 Mbit/s", "6 Mbit/s"]}
    ds = fc.sweep(network(), grid, ["critical_eta", "stable"], executor="serial")
    assert ds.stable.all()
    for c, eta in zip(ds.capacity.values, ds.critical_eta.values, strict=True):
        below, above = 0.98 * eta, 1.02 * eta
        net = network().with_link("bottleneck", capacity=c)
        measures = ["stable", "critical_gain", "gain_margin", "decay_rate", "rightmost_root"]
        both = fc.sweep(net, {"eta": [below, eta, above]}, measures)
        assert both.stable.values[[0, 2]].tolist() == [True, False]
        gains = both.critical_gain.values
        assert gains[0] > 1 > gains[2]
        assert gains[1] == pytest.approx(1, abs=1e-6)
        assert gains[0] == both.gain_margin.values[0]
        np.testing.assert_array_equal(both.decay_rate, -both.rightmost_root.real)
        assert both.decay_rate.values[0] > 0 > both.decay_rate.values[2]


def test_a_measure_that_fails_everywhere_is_told_and_the_others_go_on() -> None:
    measures = {"a": "limit_cycle_period", "b": "critical_etta", "c": "stable"}
    ds = fc.sweep(network(), {"capacity": [2e6, 3e6]}, measures, executor="serial")
    assert ds.c.all()
    assert ds.attrs["failed"] == 2
    assert np.isnan(ds.a).all()
    for says in ("a: Unsupported: no law of the network jumps", "b: UnknownName:", "mean 'eta'"):
        assert says in ds.error.values[1]


@pytest.mark.parametrize("name", ["critical", "critical_", "decay", "limit_cycle"])
def test_names_that_are_nearly_right(name: str) -> None:
    with pytest.raises(UnknownName, match="there is no measure"):
        fc.sweep(network(), {"capacity": [2e6]}, name)


def test_what_a_function_returns_must_be_numbers() -> None:
    def measured(p: Any) -> Any:
        return "three" if p["x"] == 3 else {"a": p["x"], "b": np.ones(2)}

    ds = fc.sweep(measured, {"x": [1, 2, 3]}, executor="serial")
    assert ds.b.dims == ("x", "b_0")
    assert "returned 'three'; return a number, an array or a mapping" in ds.error.values[2]
    with pytest.raises(InvalidInput, match="two measures are named 'stable'"):
        fc.sweep(network(), {"eta": [0.4]}, ["stable", "stable"])
