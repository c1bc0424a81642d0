"""Octets against NumPy: eight numbers at a time, with the rules of product and quotient."""

from typing import Any

import numpy as np
import pytest
from numba import njit

from fluidcc.numerics.linear.compiled import lanes
from fluidcc.numerics.linear.compiled.lanes import LANES, TURNED, WIDE


@njit
def _compiled(name: int, work: Any) -> None:
    if name == 0:
        lanes.multiply(work, 3, 1, 2)
    if name == 1:
        lanes.multiply(work, 1, 1, 2)  # in place
    if name == 2:
        lanes.subtract(work, 3, 1, 2)
    if name == 3:
        lanes.invert(work, 3, 1)
    if name == 4:
        lanes.enter(work, 3, 0.3, -1.7, 1, 0.9, 2)
    if name == 5:
        lanes.large(work, 3, 1, 1.1)
    if name == 6:
        lanes.normalise(work, 1, 3)
    if name == 7:
        lanes.delay(work, 3, 1, 2.0)


def _numpy(name: int, octet: Any) -> Any:
    """Values and derivatives of octets 1 and 3 afterwards."""
    (a, da), (b, db), (c, dc) = octet[1], octet[2], octet[3]
    length = np.abs(a.real) + np.abs(a.imag)
    return {
        0: ((a, da), (a * b, da * b + a * db)),
        1: ((a * b, da * b + a * db), (c, dc)),
        2: ((a, da), (c - a * b, dc - da * b - a * db)),
        3: ((a, da), (1 / a, -da / a**2)),
        4: ((a, da), (0.3 - 1.7 * a + 0.9 * b, -1.7 * da + 0.9 * db)),
        5: ((a, da), (c + (length >= 1.1), dc)),
        6: ((a / length, da / length), (c.real * length + 1j * c.imag, dc)),
    }[name]


@pytest.mark.parametrize("name", range(7))
def test_an_operation(name: int) -> None:
    work = np.random.default_rng(name).normal(size=4 * WIDE)
    parts = work.reshape(4, 4, LANES)
    octet = [(part[0] + 1j * part[1], part[2] + 1j * part[3]) for part in parts.copy()]
    _compiled(name, work)
    for place, (value, rate) in zip((1, 3), _numpy(name, octet), strict=True):
        part = work.reshape(4, 4, LANES)[place]
        np.testing.assert_allclose(part[0] + 1j * part[1], value, rtol=1e-13)
        np.testing.assert_allclose(part[2] + 1j * part[3], rate, rtol=1e-12)


def test_what_is_no_number_is_large() -> None:
    work = np.ones(4 * WIDE)
    work[WIDE] = np.nan
    work[WIDE + 1] = np.inf
    _compiled(5, work)
    assert work.reshape(4, 4, LANES)[3, 0].tolist() == [2.0, 2.0] + [2.0] * 6
    work[:] = 0.1
    work[WIDE + 2] = -np.inf
    _compiled(5, work)
    assert (work.reshape(4, 4, LANES)[3, 0] > 1).tolist() == [False, False, True] + [False] * 5


@pytest.mark.parametrize("most", [1e-3, 1.0, 30.0, 1e4, TURNED])
def test_a_delay_turns_numbers_on_the_imaginary_axis(most: float) -> None:
    angles = np.random.default_rng(3).uniform(-most, most, (50, LANES))
    angles[0] = np.round(np.linspace(-1, 1, LANES) * most / (np.pi / 2)) * (
        np.pi / 2
    )  # where both series meet zeros
    for angle in angles:
        work = np.zeros(4 * WIDE)
        work[WIDE + LANES : WIDE + 2 * LANES] = angle / 2
        _compiled(7, work)
        x, y, dx, dy = work.reshape(4, 4, LANES)[3]
        exact = np.cos(angle.astype(np.longdouble)), -np.sin(angle.astype(np.longdouble))
        for part, rate, right in ((x, dx, exact[0]), (y, dy, exact[1])):
            np.testing.assert_allclose(part, right.astype(float), rtol=0, atol=3e-16)
            np.testing.assert_array_equal(rate, -2 * part)
