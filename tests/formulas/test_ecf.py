"""Closed forms of P-AQM and ECF against recursions of the laws, and exact sampled loops."""

import numpy as np
import pytest
from scipy.optimize import brentq
from sympy import Symbol

from fluidcc.formulas import ecf
from fluidcc.papers.ecf.common import outer_loop, outer_map
from fluidcc.symbols import c


@pytest.mark.parametrize("gain", [0.05, 0.2, 0.25, 0.3, 0.5, 0.9])
def test_inner_radii_are_those_of_the_recursions(gain: float) -> None:
    assert ecf.inner_radius_late(gain) == pytest.approx(
        np.abs(np.roots([1, -1, gain])).max(), rel=1e-7
    )
    assert ecf.inner_radius(gain) == pytest.approx(1 - gain)


@pytest.mark.parametrize("version", [1, 2])
def test_outer_radii_are_those_of_the_exact_sampled_loop(version: int) -> None:
    radius = (ecf.v1_radius, ecf.v2_radius)[version - 1]
    for R in (0.01, 0.05, 0.09, 0.14):
        assert outer_loop(version, 0.16, R).radius == pytest.approx(radius(0.16, R), rel=1e-9)


@pytest.mark.parametrize(("version", "limit"), [(1, 1.0), (2, 0.5)])
def test_the_sampled_loop_is_stable_iff_the_period_is_long_enough(
    version: int, limit: float
) -> None:
    for share in (0.3, 0.9, 0.99, 1.01, 1.3, 1.7):
        assert outer_loop(version, 1.0, share * limit).stable == (share < 1)


def test_eigenvalues_from_the_law() -> None:
    """The map of (q, r) over a period, derived from the law's own r'."""
    T, R = 0.16, 0.05
    for version, radius in ((1, ecf.v1_radius), (2, ecf.v2_radius)):
        at = {Symbol(name, positive=True): value for name, value in (("T", T), ("R", R))}
        values = [complex(v) for v in outer_map(version).subs({**at, c: 1}).eigenvals()]
        assert max(map(abs, values)) == pytest.approx(radius(T, R))


def test_the_hold_form_is_within_its_bound() -> None:
    """Of V1 it finds the critical round trip 14 % too long, where its error is some 8 %."""
    x = np.linspace(0.01, 3, 50)
    assert np.all(ecf.hold_error(x, 1) <= x**2 / 12)
    cross = brentq(lambda v: 2 * np.sin(v / 2) - v**2, 0.5, 1.5)
    assert (np.pi / 2 - cross / 2) / cross == pytest.approx(1.14, abs=0.01)
    assert ecf.hold_error(cross, 1) == pytest.approx(0.075, abs=0.005)
    k = np.arange(-4000, 4001)
    aliases = (1 / (cross + 2 * np.pi * k) ** 2).sum() * cross**2
    assert ecf.hold_error(cross, 1) == pytest.approx(1 - 1 / aliases, rel=1e-3)


def test_printed_numbers() -> None:
    assert ecf.set_point(70, 12000, 30e6) == pytest.approx(0.028)
    assert ecf.set_point(100, 12000, 30e6) == pytest.approx(0.04)
    assert round(ecf.overhead(5, 0.16) / 1e3) == 14
    assert round(ecf.overhead(100, 0.52) / 1e3) == 86
    assert ecf.overhead(100, ecf.overhead_period(100, 30e6)) == pytest.approx(0.05 * 30e6)
    assert ecf.period(0.02, 0.14, 0.02) == pytest.approx(0.16)
    assert ecf.period("20 ms", "131 ms", "20 ms") == pytest.approx(0.16)
    np.testing.assert_allclose(
        ecf.fair_share(np.arange(1, 6), 30e6, 20e6), [20e6, 15e6, 10e6, 7.5e6, 6e6]
    )
