"""What eigenloci are made of: the assignment of eigenvalues against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from scipy.optimize import linear_sum_assignment

from fluidcc.numerics.linear.compiled.loci import assign


@njit
def _assign(foretold: Any, found: Any, order: Any) -> None:
    assign(foretold, found, order)


def assigned(foretold: Any, found: Any) -> Any:
    order = np.full(len(foretold), -1)
    _assign(foretold, found, order)
    assert sorted(order) == list(range(len(order)))
    return order


@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.floats(0.0, 3.0))
def test_no_other_assignment_has_a_smaller_sum(rank: int, seed: int, far: float) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, rank)) + 1j * rng.normal(size=(2, rank))
    b += far
    cost = np.abs(a[:, None] - b) ** 2
    least = cost[linear_sum_assignment(cost)].sum()
    assert cost[np.arange(rank), assigned(a, b)].sum() == pytest.approx(least, rel=1e-12)
    mixed = rng.permutation(rank)
    np.testing.assert_array_equal(assigned(a[mixed], a + far), mixed)  # an error common to all


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e200])
def test_what_is_no_number_is_given_to_some_one(wrong: float) -> None:
    assigned(np.array([0j, 1, 2, 3]), np.array([2.1, wrong, 0.1, 3.1 + 0j]))
    assigned(np.array([0j, 1, wrong, 3]), np.array([2.1, wrong, wrong, 3.1 + 0j]))
