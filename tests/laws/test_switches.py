"""A switched law equals the law itself once its modes are the signs of its switches."""

from typing import Any

import pytest
from sympy import Abs, Eq, Expr, Heaviside, Max, Min, Piecewise, Rational, Symbol, sign, symbols

from benchmarks.networks import as_network, delays
from benchmarks.reference.cases import P1
from fluidcc.base.errors import LawError
from fluidcc.laws import Source
from fluidcc.laws.switches import Collector
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import LDCC
from fluidcc.symbols import RTT, e

p, q, r = symbols("p q r", real=True)

KINKS: dict[str, tuple[Expr, int]] = {
    "max": (Max(p, q), 1),
    "max of three": (Max(p, q, r), 2),
    "min": (Min(p, 2 * q, r) + 1, 2),
    "threshold": (Max(p - q, 0) * r, 1),
    "absolute value": (Abs(p - q), 1),
    "sign": (sign(p) * q, 1),
    "step": (Heaviside(p - r) * q, 1),
    "nested": (Max(0, Min(1, p) - q) * Abs(r), 3),
    "conditions": (Piecewise((p, (q > 0) & (r <= 1)), (q, p >= r), (r, True)), 3),
    "either": (Piecewise((p, (q < 0) | ~(r < p)), (q, True)), 2),
    "kink in a condition": (Piecewise((p, Max(p, q) > r), (q, True)), 2),
    "the same twice": (Max(p, q) + Heaviside(p - q), 1),
    "its opposite": (Max(p, q) - Abs(q - p) + Min(p, q), 1),
}
POINTS = [
    (a, b, c)
    for a in (-2, Rational(1, 2), 3)
    for b in (-1, Rational(3, 4), 2)
    for c in (-3, Rational(1, 3), 4)
]


@pytest.mark.parametrize(("f", "count"), KINKS.values(), ids=KINKS)
def test_branches_are_those_the_switches_choose(f: Expr, count: int) -> None:
    collect = Collector("test")
    held = collect.rewrite(f)
    assert len(collect.switches) == count
    assert not held.has(Max, Min, Abs, sign, Heaviside)
    for point in POINTS:
        values: dict[Symbol, Any] = dict(zip((p, q, r), point, strict=True))
        for mode, switch in zip(collect.modes, collect.switches, strict=True):
            values[mode] = int(bool(switch.subs(values) > 0))  # which may depend on earlier modes
        assert held.subs(values) == f.subs(values)


@pytest.mark.parametrize("condition", [q >= r, q <= r, q > r, q < r])
def test_conditions_are_exact_at_equality(condition: Any) -> None:
    f = Piecewise((p, condition), (0, True))
    collect = Collector("test")
    held = collect.rewrite(f)
    values = {p: 1, q: 2, r: 2}
    modes = {
        m: int(bool(s.subs(values) > 0))
        for m, s in zip(collect.modes, collect.switches, strict=True)
    }
    assert held.subs(values | modes) == f.subs(values)


def test_an_equation_is_no_condition() -> None:
    with pytest.raises(LawError, match="test: a Piecewise condition must compare"):
        Collector("test").rewrite(Piecewise((p, Eq(q, r)), (0, True)))


def test_a_pole_that_cancels_at_rate_zero_is_cancelled() -> None:
    (x,), (w, _, _, eta) = LDCC.states, LDCC.params
    held = LDCC.switched()
    assert held.flow[x].subs(x, 0) == eta * w / (e + Symbol("e_b", nonnegative=True))


def test_a_pole_that_stays_is_left_alone() -> None:
    x, g = symbols("x g", positive=True)
    units = {x: "bit/s", g: "bit/s"}
    law = Source("Pole", {x: g * (g / x - 1) / RTT}, {"rate": x}, {g: 1.0}, units)
    wanted = g * (g / x - 1) / (e + Symbol("e_b", nonnegative=True))
    assert (law.switched().flow[x] - wanted).simplify() == 0


def test_the_place_of_a_switch_takes_few_evaluations() -> None:
    """P1 has one, which leaves what counts as 0 suddenly; the rest are right-hand limits."""
    how: Any = {"delays": delays(P1), "rtol": 5e-8, "atol": 5e-10, "engine": "array"}
    attrs = simulate(as_network(P1), P1.until, **how).attrs
    passes = attrs["steps"] + attrs["rejections"] + attrs["extra_passes"]
    assert attrs["events"] == 2
    assert attrs["nfev"] - 6 * passes < 60
