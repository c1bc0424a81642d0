"""The tableaus satisfy the order conditions (Hairer, Norsett & Wanner I, Section II.2 and II.6)."""

import numpy as np
import pytest

from fluidcc.numerics.tableaus import DORMAND_PRINCE, TSIT5, Tableau

PAIRS = pytest.mark.parametrize("pair", [TSIT5, DORMAND_PRINCE], ids=lambda pair: pair.name)


def _conditions(pair: Tableau) -> list[tuple[int, np.ndarray, float]]:
    """(order, stage vector phi, 1/gamma) of the 17 trees up to order five: b @ phi = 1/gamma."""
    a, c = pair.A, pair.C
    one = np.ones(7)
    ac, acc, accc = a @ c, a @ c**2, a @ c**3
    aac, aacc, acac = a @ ac, a @ acc, a @ (c * ac)
    return [
        (1, one, 1), (2, c, 1 / 2), (3, c**2, 1 / 3), (3, ac, 1 / 6),
        (4, c**3, 1 / 4), (4, c * ac, 1 / 8), (4, acc, 1 / 12), (4, aac, 1 / 24),
        (5, c**4, 1 / 5), (5, c**2 * ac, 1 / 10), (5, c * acc, 1 / 15), (5, c * aac, 1 / 30),
        (5, ac**2, 1 / 20), (5, accc, 1 / 20), (5, acac, 1 / 40), (5, aacc, 1 / 60),
        (5, a @ aac, 1 / 120),
    ]  # fmt: skip


@PAIRS
def test_rows_sum_to_the_nodes(pair: Tableau) -> None:
    np.testing.assert_allclose(pair.A.sum(axis=1), pair.C, atol=3e-14)
    np.testing.assert_array_equal(np.triu(pair.A), 0)


@PAIRS
def test_solution_is_of_order_five(pair: Tableau) -> None:
    for _, phi, value in _conditions(pair):
        assert pair.B @ phi == pytest.approx(value, abs=3e-14)


@PAIRS
def test_embedded_solution_is_of_order_four_and_not_five(pair: Tableau) -> None:
    defects = [(order, pair.E @ phi) for order, phi, _ in _conditions(pair)]
    assert max(abs(d) for order, d in defects if order <= 4) < 3e-13
    assert max(abs(d) for order, d in defects if order == 5) > 1e-4


@PAIRS
@pytest.mark.parametrize("u", [0.0, 0.3, 0.5, 0.9, 1.0])
def test_dense_output_is_of_order_four(pair: Tableau, u: float) -> None:
    weights = pair.P @ u ** np.arange(1, 5)
    for order, phi, value in _conditions(pair):
        if order <= 4:
            assert weights @ phi == pytest.approx(value * u**order, abs=1e-13)


@PAIRS
def test_dense_output_joins_smoothly(pair: Tableau) -> None:
    np.testing.assert_allclose(pair.P.sum(axis=1), pair.B, atol=1e-13)
    np.testing.assert_allclose(pair.P @ np.arange(1, 5), np.eye(7)[6], atol=1e-12)
    np.testing.assert_array_equal(pair.P[:, 0], np.eye(7)[0])


def test_tableaus_are_read_only() -> None:
    with pytest.raises(ValueError):
        TSIT5.A[0, 0] = 1.0
