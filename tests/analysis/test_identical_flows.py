"""Identical flows are one class: answers are those of flows that differ by next to nothing."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import lambertw
from sympy import symbols

import fluidcc as fc
from fluidcc.base.errors import Unsupported
from fluidcc.symbols import e, edot, x_tau

NEXT_TO_NOTHING = 1e-9
SCALARS = (
    "stable", "marginal", "unstable", "encirclements", "open_unstable", "gain_margin",
    "critical_gain", "phase_margin",
    "delay_margin", "modulus_margin", "sensitivity_peak", "complementary_peak", "decay_rate",
)  # fmt: skip


def _hears_itself(loop: float, slope: float) -> fc.Source:
    """x' = w - loop x(t - RTT) - ..., of which links hide as much from all together as `slope`."""
    x = symbols("x", positive=True)
    w, a, b, c, T = symbols("w a b c T", positive=True)
    return fc.Source(
        "Echo", {x: w - a * x_tau - b * (e - T) + c * edot}, {"rate": x}, lower={x: 0},
        params={w: 1.2e6 * loop, a: loop, b: 3.33e6 * loop, c: slope * loop * 1e6, T: 0.01},
        units={x: "bit/s", w: "bit/s/s", a: "1/s", b: "bit/s/s/s", c: "bit/s/s", T: "s"},
        initial={x: 1e6},
    )  # fmt: skip


def _runs_away() -> fc.Source:
    """x' = r x - b (e - T) - c e': unstable; the links hold all flows together, and none alone."""
    x = symbols("x", positive=True)
    r, b, c, T = symbols("r b c T", positive=True)
    return fc.Source(
        "Runaway", {x: r * x - b * (e - T) - c * edot}, {"rate": x}, lower={x: 0},
        params={r: 0.5, b: 8e6, c: 3e6, T: 0.01}, initial={x: 1e6},
        units={x: "bit/s", r: "1/s", b: "bit/s/s/s", c: "bit/s/s", T: "s"},
    )  # fmt: skip


def _net(*groups: tuple[Any, int, float], apart: float, link: Any = fc.DropTail) -> fc.Network:
    net = fc.Network().link("l", link, capacity=3e6, delay=0.01, buffer=3e7)
    for g, (law, count, access) in enumerate(groups):
        for i in range(count):
            far = access * (1 + i * apart)
            net.flow(f"f{g}{i}", law, route=["l"], access_delay=far, return_delay=0.03)
    return net


GROUPS: dict[str, Any] = {
    "alike": [(fc.LDCC, 3, 0.01)],
    "oscillating": [(fc.LDCC(eta=3), 3, 0.1)],
    "beside another law": [(fc.LDCC, 5, 0.01), (fc.NADA, 1, 0.02)],
    "near and far": [(fc.LDCC, 5, 0.01), (fc.LDCC, 1, 0.04)],
    "windows over marks": [(fc.StaticReno, 3, 0.01), (fc.StaticReno, 2, 0.04)],
    "hearing themselves": [(_hears_itself(15.0, 0.3), 3, 0.01)],
    "unstable together": [(_hears_itself(15.0, 0.9), 3, 0.01)],
    "unstable among themselves": [(_hears_itself(20.0, 0.9), 4, 0.01)],
    "running away": [(_runs_away(), 4, 0.01)],
}


def _named(which: str, apart: float) -> fc.Network:
    link = fc.RED if which == "windows over marks" else fc.DropTail
    return _net(*GROUPS[which], apart=apart, link=link)


def _both(which: str, **how: Any) -> list[Any]:
    return [fc.stability(_named(which, apart), **how) for apart in (0.0, NEXT_TO_NOTHING)]


@pytest.mark.parametrize("which", GROUPS)
def test_verdict_margins_and_roots_are_those_of_flows_that_hardly_differ(which: str) -> None:
    alike, apart = _both(which, roots=6)
    assert len(alike.point.classes) < len(apart.point.classes) == len(apart.point.net.flows)
    for name in SCALARS:
        wanted = pytest.approx(getattr(apart, name), rel=1e-6, nan_ok=True)
        assert getattr(alike, name) == wanted, name
    near = [np.sort_complex(np.round(r.rightmost_roots, 5)) for r in (alike, apart)]
    np.testing.assert_allclose(near[0], near[1], atol=2e-5)
    assert alike.unstable == alike.encirclements + alike.open_unstable


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the equilibrium is one of a continuum")
@pytest.mark.parametrize("law", [fc.FAST, fc.Vegas], ids=lambda law: law.name)
def test_two_flows_with_a_clock_of_acknowledgements_are_judged_at_unequal_delays_too(
    law: Any,
) -> None:
    """1 - 0.475 exp(-h1 s) - 0.475 exp(-h2 s) is strongly stable for all h1 and h2."""
    alike, apart = (
        fc.stability(_net((law, 2, 0.01), apart=step)) for step in (0.0, NEXT_TO_NOTHING)
    )
    for name in SCALARS:
        assert getattr(alike, name) == pytest.approx(getattr(apart, name), rel=1e-5), name
    far = fc.stability(_net((law, 2, 0.01), apart=2.0))
    assert far.stable
    assert far.closed.essential_abscissa < 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "which", ["alike", "near and far", "windows over marks", "hearing themselves"]
)
def test_derivatives_conditions_and_proofs_are_those_of_flows_that_hardly_differ(
    which: str,
) -> None:
    alike, apart = _both(which, certify=True)
    assert alike.certified is True
    times = {f.label: f.count - 1 for f in alike.point.classes}
    proved = sum(times.get(name, 1) * c.unstable for name, c in alike.certificates.items())
    assert proved == sum(c.unstable for c in apart.certificates.values()) == 0
    moved = []
    for report in (alike, apart):
        total: dict[str, Any] = {}
        found = report.sensitivities
        for parameter, row in zip(found.parameters, found.derivative, strict=True):
            kind = parameter.name.rpartition(".")[2]
            total[kind] = total.get(kind, 0) + row * max(1.0, abs(parameter.value))
        moved.append(total)
    scale = np.max(np.abs(list(moved[1].values())), axis=0)
    scale[scale == 0] = 1.0  # the frequency of a real root
    crowded = np.isnan(scale)  # roots of flows that hardly differ
    size = np.where(crowded, 1.0, scale)
    assert not crowded[2:].any() or which == "hearing themselves"
    assert crowded[0] or which != "near and far"
    for kind, row in moved[1].items():
        row = np.where(crowded, moved[0][kind], row)
        np.testing.assert_allclose(moved[0][kind] / size, row / size, atol=1e-5, err_msg=kind)
    for mine, theirs in zip(alike.sufficient, apart.sufficient, strict=True):
        assert (mine.name, mine.applies, mine.holds) == (theirs.name, theirs.applies, theirs.holds)
        assert [mine.margin, mine.conservatism] == pytest.approx(
            [theirs.margin, theirs.conservatism], nan_ok=True
        )
    try:
        assert alike.passivity.verdict.split(",")[0] == apart.passivity.verdict.split(",")[0]
    except Unsupported:
        with pytest.raises(Unsupported):
            _ = apart.passivity


def test_differences_among_flows_that_hear_themselves_have_margins_of_their_own() -> None:
    """Each is s + a exp(-s RTT): gain pi/(2 a RTT), and roots of Lambert's W(-a RTT)/RTT."""
    for loop in (15.0, 20.0):
        report = fc.stability(_net((_hears_itself(loop, 0.9), 3, 0.01), apart=0.0))
        trip = float(report.equilibrium.rtt[0])
        assert report.critical_gain == pytest.approx(math.pi / (2 * loop * trip), rel=1e-9)
        (mode,) = (m for m in report.modes if m.among)
        assert mode.multiplicity == 2
        assert mode.root == pytest.approx(complex(lambertw(-loop * trip)) / trip, rel=1e-9)
        assert report.unstable == 2 + 2 * 2 * (loop * trip > math.pi / 2)


def test_roots_on_the_axis_make_marginal_only_what_is_not_unstable() -> None:
    """Swings of their own, a' = b and b' = -a, beside a flow that is stable or not."""
    x = symbols("x", positive=True)
    a, b = symbols("a b", real=True)
    w, T = symbols("w T", positive=True)
    swings = fc.Source(
        "Swings", {x: (w + a - x) / T, a: b / T, b: -a / T}, {"rate": x}, {w: 1e6, T: 0.1},
        {x: "bit/s", a: "bit/s", b: "bit/s", w: "bit/s", T: "s"}, initial={x: w, a: 0, b: 0},
    )  # fmt: skip
    for eta, unstable in ((0.4, 0), (5.0, 2)):
        net = fc.dumbbell([fc.LDCC(eta=eta)], {"capacity": 3e6}, rtt="200 ms")
        net.link("aside", fc.DropTail, capacity=1e8, delay=0.01)
        for i in range(3):
            net.flow(f"s{i}", swings, route=["aside"])
        report = fc.stability(net)
        assert (report.stable, report.marginal, report.unstable) == (False, not unstable, unstable)
        assert report.encirclements == unstable
