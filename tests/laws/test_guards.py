"""Kinks that keep a law away from where it has no value: the branch taken is that of the values
here and now.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from sympy import Abs, Float, Heaviside, Max, Min, Piecewise, Rational, log, sqrt, symbols
from sympy.codegen.cfunctions import log1p

import fluidcc as fc
from fluidcc.symbols import c, pi, t, y

x = symbols("x", positive=True)
w, a, on, off = symbols("w a on off", positive=True)
RATE, FAST = 1e6, 0.5
LAG = 0.02 + 0.03

#: marks everything from 2 to 4 s, and nothing else
Timed = replace(
    fc.DropTail, name="Timed", params={on: 2, off: 4}, claims={},
    units={**fc.DropTail.units, on: "s", off: "s"},
    out={**fc.DropTail.out, "mark": Piecewise((1, (t > on) & (t < off)), (0, True))},
)  # fmt: skip

#: g(pi), and its values at pi = 0 and 1
GUARDS = {
    "log of Min": (log(1 - Min(pi, 1 - Float(1e-9))), 0.0, np.log(1e-9)),
    "log1p of Min": (log1p(-Min(pi, 1 - Float(1e-9))), 0.0, np.log(1e-9)),
    "log1p in a branch": (Piecewise((log1p(-pi), pi < Rational(9, 10)), (-2, True)), 0.0, -2.0),
    "log of Max": (log(Max(1 - pi, Float(1e-6))), 0.0, np.log(1e-6)),
    "log in a branch": (Piecewise((log(1 - pi), pi < Rational(9, 10)), (-2, True)), 0.0, -2.0),
    "quotient": (-1 / Max(1 - pi, Float(1e-3)), -1.0, -1e3),
    "quotient with a step": (-1 / (1 - pi + Heaviside(pi - Rational(1, 2), 0)), -1.0, -1.0),
    "quotient of Abs": (-1 / (Abs(pi - Rational(1, 2)) - Rational(1, 2) + pi + 1), -1.0, -0.5),
    "root": (sqrt(Max(Rational(1, 2) - pi, 0)), np.sqrt(0.5), 0.0),
    "root of a root": (sqrt(Max(1 - sqrt(Max(2 * pi - 1, 0)) - pi, 0)), 1.0, 0.0),
}


def _law(*targets: Any) -> Any:
    """A state for each target; the first is the rate."""
    states = [x, *symbols(f"x1:{len(targets)}", positive=True)]
    flow = {z: a * (w * goal - z) for z, goal in zip(states, targets, strict=True)}
    units = {**dict.fromkeys(states, "bit/s"), w: "bit/s", a: "1/s"}
    return fc.Source(
        "Guarded", flow, {"rate": x}, params={w: RATE, a: FAST}, units=units,
        lower=dict.fromkeys(states, 0), initial=dict.fromkeys(states, RATE),
    )  # fmt: skip


def _run(law: Any, until: Any = 6, **kwargs: Any) -> Any:
    flow = {"law": law, "return_delay": 0.03}
    net = fc.dumbbell([flow], {"law": Timed, "capacity": 1e9, "delay": 0.02})
    return fc.simulate(net, until, **kwargs)


def _exponential(times: Any, edges: Any, targets: Any) -> Any:
    """x' = a (target - x) from RATE on, with one target from each edge on."""
    values, before = np.full(len(times), RATE), RATE
    for begin, end, goal in zip(edges, [*edges[1:], np.inf], targets, strict=True):
        here = (times >= begin) & (times <= end)
        values[here] = goal + (before - goal) * np.exp(-FAST * (times[here] - begin))
        before = goal + (before - goal) * np.exp(-FAST * (end - begin))
    return values


@pytest.mark.slow
@pytest.mark.parametrize(("names", "engine"), [([*GUARDS], "array"), (["log of Min"], "fused")])
def test_guards_hold_when_a_mark_jumps(names: list[str], engine: str) -> None:
    """The exact solutions, through jumps of the mark to 1 and back."""
    law = _law(*(12 + GUARDS[name][0] / 100 for name in names))
    run = _run(law, rtol=1e-9, engine=engine)
    for z, name in zip(law.states, names, strict=True):
        _, low, high = GUARDS[name]
        goals = [RATE * (12 + v / 100) for v in (low, high, low)]
        exact = _exponential(run.time.values, [0.0, 2 + LAG, 4 + LAG], goals)
        found = run[f"Guarded_{z}"].values[:, 0]
        assert found == pytest.approx(exact, rel=1e-7), name


def test_a_root_is_left_where_its_argument_becomes_negative() -> None:
    """x' = a (2 w - x + w s/10), s = sqrt(1 - x/(1.5 w)), until s = 0; then s stays 0.

    With s as the variable, x = 1.5 w (1 - s^2) and dt = -3 w s ds/x', by quadrature.
    """
    rooted = _law(2 + sqrt(Max(1 - x / (w * Rational(3, 2)), 0)) / 10)
    run = _run(rooted, rtol=1e-10, atol=1e-13, engine="array")
    slope = lambda s: FAST * (2 - 1.5 * (1 - s * s) + s / 10)  # noqa: E731  of x/w
    when, _ = quad(lambda s: 3 * s / slope(s), 0.0, np.sqrt(1 / 3), epsabs=1e-13)
    after = run.time.values > when
    exact = RATE * (2 - 0.5 * np.exp(-FAST * (run.time.values[after] - when)))
    assert run.rate.values[after, 0] == pytest.approx(exact, rel=1e-7)
    assert run.attrs["steps"] < 300


def test_a_link_decides_afresh_when_arrivals_jump() -> None:
    """The mark sqrt(Max(y/c - 1, 0))/10 is 1/10 with two flows, and 0 when one has stopped."""
    mark = sqrt(Max(y / c - 1, 0)) / 10
    law = replace(fc.DropTail, name="Rooted", out={**fc.DropTail.out, "mark": mark}, claims={})
    flows = {
        "stays": {"law": fc.CBR(rate=5e5), "return_delay": 0.03},
        "stops": {"law": fc.CBR(rate=1.5e6), "return_delay": 0.03, "stop": 2},
    }
    net = fc.dumbbell(flows, {"law": law, "capacity": 1e6, "delay": 0.02})
    run = fc.simulate(net, 6, engine="array")
    queue = 2.0  # [s] when the second flow stops: c has served half of what came
    heard = run.time.values - LAG
    expected = np.where((heard > 1e-9) & (heard < 2 + queue), 0.1, 0.0)
    inside = np.abs(heard - (2 + queue)) > 1e-6
    found = run.loss.sel(flow="stays").values[inside][10:]
    assert found == pytest.approx(expected[inside][10:], abs=1e-9)


@pytest.mark.slow
def test_a_quotient_holds_where_no_breaking_point_announces_a_mark() -> None:
    """Beside a law whose kinks come round too often for all to be followed, marks come unannounced:
    what LDCC measures is then a quotient by 1 - pi = 0, but for its guard.
    """
    link = {"law": fc.StepMark, "capacity": "5 Mbit/s", "delay": 0.01, "buffer": 8e5}
    flows = [
        {"law": fc.SampledLDCC, "return_delay": 0.03, "start": 0.0},
        {"law": fc.HTCP, "return_delay": 0.05, "start": 0.137},
    ]
    runs = [fc.simulate(fc.dumbbell(flows, link), 10, rtol=rtol) for rtol in (1e-6, 1e-8)]
    assert runs[0].attrs["untracked_breaking_points"] > 100
    coarse, fine = (run.rate.values[-1] for run in runs)
    assert coarse == pytest.approx(fine, rel=1e-3)
