"""The method of lanes, and statistics of what it leaves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fluidcc.numerics.fluid.many import FINAL, MAX, MEAN, MIN, STD, statistic
from fluidcc.numerics.lanes.pair import A, B, C, E, hermite
from fluidcc.numerics.lanes.samples import statistics

WIDTH, ROWS, STEP, END = 8, 3, 0.125, 20


def exact(numbers: tuple[float, ...]) -> list[Fraction]:
    return [Fraction(number).limit_denominator(24) for number in numbers]


def test_the_rule_has_order_four_and_what_is_embedded_order_three() -> None:
    """All order conditions of Hairer, Norsett and Wanner, Table II.2.2; the stage at the new point is the fifth."""
    a = [[*exact(row), *[Fraction(0)] * (5 - len(row))] for row in (*A, B)]
    b, c = [*exact(B), Fraction(0)], [sum(row, Fraction(0)) for row in a]
    assert c == [*exact(C), 1]
    embedded = [weight - off for weight, off in zip(b, exact(E), strict=True)]

    def total(weights: list[Fraction], values: list[Fraction]) -> Fraction:
        return sum((w * v for w, v in zip(weights, values, strict=True)), Fraction(0))

    ac = [total(row, c) for row in a]
    ac2, aac = [total(row, [v * v for v in c]) for row in a], [total(row, ac) for row in a]
    for weights in (b, embedded):
        assert sum(weights) == 1
        assert total(weights, c) == Fraction(1, 2)
        assert total(weights, [v**2 for v in c]) == Fraction(1, 3)
        assert total(weights, ac) == Fraction(1, 6)
    assert total(b, [v**3 for v in c]) == Fraction(1, 4)
    assert total(b, [v * w for v, w in zip(c, ac, strict=True)]) == Fraction(1, 8)
    assert total(b, ac2) == Fraction(1, 12)
    assert total(b, aac) == Fraction(1, 24)
    assert total(embedded, [v**3 for v in c]) != Fraction(1, 4), "or it would see no error where time drives"


def test_cubics_are_met_exactly() -> None:
    u = np.linspace(0, 1, 11)
    ends = np.array([2.0, -3.0, 2.0 - 3.0 + 5.0 - 7.0, -3.0 + 10.0 - 21.0])
    np.testing.assert_allclose(hermite(u) @ ends, 2 - 3 * u + 5 * u**2 - 7 * u**3, atol=1e-14)


@pytest.mark.parametrize("alike", [True, False], ids=["steps alike", "steps of their own"])
def test_statistics_are_those_of_single_runs(alike: bool) -> None:
    """Of cubics in time, one for each row and lane, which the nodes give exactly; some of a second ago."""
    random = np.random.default_rng(2)
    steps = np.full(WIDTH, STEP) if alike else STEP * random.uniform(0.9, 1.1, WIDTH)
    ends = np.ceil(2.0 / steps).astype(np.int64)
    cubics = [np.polynomial.Polynomial(random.normal(size=4)) for _ in range(ROWS * WIDTH)]
    H = np.full((END + 4, 3 * ROWS * WIDTH), np.nan)
    for column, cubic in enumerate(cubics):
        times = steps[column % WIDTH] * np.arange(END + 3)
        H[1:, column] = cubic(times)
        for part in (1, 2):
            H[1:, part * ROWS * WIDTH + column] = steps[column % WIDTH] * cubic.deriv()(times)
    times, kinds = np.linspace(0.0, 2.0, 33), np.array([MEAN, STD, MIN, MAX, FINAL])
    rows, which = np.array([0, 1, 2, 1, 2]), np.array([0, 1, 0, 1, 1])
    ages = np.repeat([[0.0, 0.3]], WIDTH, axis=0)
    factor, term = random.uniform(0.5, 2.0, (WIDTH, 5)), random.normal(size=(WIDTH, 5))
    out = np.empty((WIDTH - 1, 5))  # the last lane only fills the block
    statistics(H, steps, ends, ages, times, which, kinds, rows, factor, term, out)
    for lane in range(len(out)):
        for k, kind in enumerate(kinds):
            cubic = cubics[rows[k] * WIDTH + lane]
            samples = factor[lane, k] * cubic(np.maximum(times - ages[lane, which[k]], 0.0)) + term[lane, k]
            wanted = statistic(kind, np.concatenate([samples, times]), 0, len(times), len(times))
            assert out[lane, k] == pytest.approx(wanted, rel=1e-10, abs=1e-10)
