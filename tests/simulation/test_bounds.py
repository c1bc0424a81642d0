"""A projected state at its bound is at its bound exactly, and so is all that comes of it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from sympy import cos, symbols

import fluidcc as fc
from fluidcc.laws import Jump, Link, Source
from fluidcc.links import DropTail
from fluidcc.symbols import t, x_tau
from tests.scan.stepped import Flow
from tests.scan.stepped import Link as Steps
from tests.scan.stepped import run as stepped

z, x = symbols("z x", nonnegative=True)
low, high, f, g, P, wait = symbols("low high f g P wait", positive=True)
LOW, HIGH, F = 0.3, 0.7, 0.7  # no binary fractions
STEP = 0.05  # [s] at most, since nothing else changes in these networks while all states are held


def swinging(**more: Any) -> Source:
    """z' = cos(f t) within [0.3, 0.7]: it is at one bound or the other for most of the time."""
    params = {low: LOW, high: HIGH, f: F, g: 1, P: 1e6, wait: 0.01}
    return Source(
        "Swing", flow={z: g * cos(f * t), x: 0}, out={"rate": P * z}, params=params,
        units={**dict.fromkeys((z, x, low, high), "1"), f: "1/s", g: "1/s", P: "bit/s", wait: "s"},
        lower={z: low}, upper={z: high}, initial={z: 0.5, x: 0}, **more,
    )  # fmt: skip


def over(link: Link, *laws: Source, **more: Any) -> fc.Network:
    flows = {f"f{k}": {"law": law, "return_delay": 0.03} for k, law in enumerate(laws)}
    return fc.dumbbell(flows, {"law": link, "capacity": 5e6, "delay": 0.01, **more})


#: fire beyond the bounds, which is never
TRIGGERS = tuple(Jump(when, {x: x + 1}, refractory=wait) for when in (z - high, low - z))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "engine", "jumps"),
    [(1, "array", ()), (70, "array", ()), (1, "array", TRIGGERS), (1, "fused", TRIGGERS)],
)
def test_a_state_is_at_its_bounds_exactly_and_for_as_long_as_its_equation_says(
    count: int, engine: str, jumps: Any
) -> None:
    """Of seventy flows no switch is located: the rest of a step until all are there exactly."""
    net = over(DropTail, *[swinging(jumps=jumps)] * count)
    run = fc.simulate(net, 20.0, max_step=STEP, samples=20_001, engine=engine)
    values, rate = run.Swing_z.values, run.rate.values
    assert run.attrs["jumps"] == 0
    if count == 1:
        assert values.min() == LOW
        assert values.max() == HIGH
    # It leaves a bound where cos(f t) changes sign, for the other by 0.4 f = 1 - cos(f dt).
    turns = [(n + 0.5) * np.pi / F for n in range(4)]
    begins = [np.arcsin(0.2 * F) / F, *(turn + np.arccos(1 - 0.4 * F) / F for turn in turns)]
    ends = [*turns, 20.0]
    time, near = run.time.values, 1e-3 if count == 1 else STEP
    for n, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        there = (time > begin + near) & (time < end - near)
        assert np.count_nonzero(there) > 200
        assert np.all(values[there] == (LOW if n % 2 else HIGH))
        assert np.all(rate[there] == 1e6 * (LOW if n % 2 else HIGH))


def test_a_short_pulse_of_what_is_heard_frees_a_state_that_has_been_held_for_long() -> None:
    """z' = b(t - 5 s) - 0.2 from 0, with a pulse b = k t exp(-k t) above 0.2 for 23 ms."""
    a, b = symbols("a b", nonnegative=True)
    k, level = symbols("k level", positive=True)
    law = Source(
        "Pulse", flow={a: -k * a, b: k * (a - b), z: g * (x_tau / P - 1 - level)},
        out={"rate": P * (1 + b)}, params={k: 100, g: 1, P: 1e6, level: 0.2},
        units={a: "1", b: "1", z: "1", k: "1/s", g: "1/s", P: "bit/s", level: "1"},
        lower={z: 0}, initial={a: 1, b: 0, z: 0},
    )  # fmt: skip
    net = over(DropTail, law).with_flow("f0", return_delay="5 s")
    run = fc.simulate(net, 7.5, samples=100_001, engine="array")

    def flow(s: float) -> float:
        return float(100 * s * np.exp(-100 * s) - 0.2)

    freed, held = brentq(flow, 0.0, 0.01), brentq(flow, 0.01, 0.1)
    risen = np.maximum.accumulate(run.Pulse_z.values[:, 0])
    assert risen[-1] == pytest.approx(quad(flow, freed, held)[0], rel=1e-5)
    assert run.time.values[np.argmax(risen > 0.0)] == pytest.approx(5.01 + freed, abs=2e-4)


def test_what_a_router_says_at_a_bound_is_the_same_number_wherever_it_is_looked_up() -> None:
    """The mark ratio rises to 0.7 and stays; what flows hear of it is between two floats of 0.7."""
    mark = symbols("mark", nonnegative=True)
    law = replace(
        DropTail, name="Rising", flow={**DropTail.flow, mark: f}, params={f: 0.3, high: HIGH},
        out={**DropTail.out, "mark": mark}, upper={**DropTail.upper, mark: high}, claims={},
        units={**DropTail.units, mark: "1", f: "1/s", high: "1"},
        initial={**DropTail.initial, mark: 0},
    )  # fmt: skip
    net = over(law, fc.LDCC, fc.CBR(rate=1e5))
    late = fc.simulate(net, 20.0, samples=5001, engine="array").isel(time=slice(1000, None))
    assert np.all(late.Rising_mark.values == HIGH)
    heard = np.array([late.mark.values[:, 0], late.loss.values[:, 1]])  # of CBR it would be lost
    assert len(np.unique(heard)) == 1
    assert abs(heard[0, 0] - HIGH) < 2e-16


# The automaton over PI is what both solvers are asked for.
@pytest.mark.filterwarnings("ignore:.* jumps once a round trip")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("laws", "step", "until", "jumps"),
    [
        (("RateAIMD", "LDCC"), 1e-4, 20.0, 15),
        (("RateBinomial", "Vegas"), 2.5e-5, 20.0, 31),
        (("HTCP",), 2.5e-5, 6.0, None),
    ],
)
def test_no_rounding_of_marks_makes_a_source_behind_pi_back_off(
    laws: tuple[str, ...], step: float, until: float, jumps: int | None
) -> None:
    """As by Euler's method, where the mark ratio is cut off at 0; most have a loss of none."""
    net = over(fc.PI, *(getattr(fc, law) for law in laws), buffer=8e5)
    flows = [Flow(law, (0,), 0.0, 0.03, 0.0) for law in laws]
    sent, cuts = stepped([Steps("PI", 5e6, 0.01, 8e5)], flows, until, step)
    for rtol in (1e-6, 1e-12):
        run = fc.simulate(net, until, rtol=rtol, samples=40_001, engine="array")
        assert run.PI_p.values.min() == 0.0
        if "LDCC" in laws:  # a path without loss or marks has of both exactly none
            assert run.loss.values.max() == run.mark.values.min() == 0.0
            assert np.count_nonzero(run.mark.values == 0.0) > 0.5 * run.mark.size
        mean = np.trapezoid(run.rate.values, run.time.values, axis=0) / until
        np.testing.assert_allclose(mean, sent[:, -1] / until, rtol=1e-3)
        if jumps is not None:
            assert run.attrs["jumps"] == jumps
            assert abs(cuts.sum() - jumps) <= 1  # of which the scheme sees one more at some steps
        assert laws != ("RateAIMD", "LDCC") or abs(mean[0] / 1e6 - 2.0778) < 3e-4
