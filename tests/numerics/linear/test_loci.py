"""What eigenloci are made of: the assignment of eigenvalues against SciPy's, and singular values
of loops of low rank against those of the whole matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from scipy.optimize import linear_sum_assignment

from fluidcc.numerics.linear.compiled.loci import assign
from fluidcc.numerics.linear.compiled.points import BOTH, Loop, extremes

Complex = np.ndarray[Any, np.dtype[np.complex128]]


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


@njit
def _asked(loop: Any, value: complex, rate: complex) -> Any:
    out = np.empty(4)
    extremes(loop, BOTH, value, rate, out)
    return out


def both(ratio: Complex) -> Any:
    """The least singular value of I + L and the largest of L (I + L)^-1."""
    back = np.eye(len(ratio)) + ratio
    least = np.linalg.svd(back, compute_uv=False)[-1]
    return np.array([least, np.linalg.norm(ratio @ np.linalg.inv(back), 2)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("channels", "rank"),
    [(1, 1), (2, 1), (3, 1), (7, 1), (2, 2), (3, 3), (3, 2), (7, 3), (8, 3), (20, 4)],
)
def test_singular_values_of_a_low_rank_are_those_of_the_whole_matrix(
    channels: int, rank: int
) -> None:
    """In closed form for rank one, else decomposed in the space of the factors."""
    rng = np.random.default_rng(10 * channels + rank)
    u, du = 0.3 * rng.normal(size=(2, channels, rank, 2)) @ np.array([1, 1j])
    v, dv = rng.normal(size=(2, rank, channels, 2)) @ np.array([1, 1j])
    if rank == channels:
        v, dv = np.eye(rank) + 0j, np.zeros((rank, rank)) + 0j
    none = np.zeros((1, 1), complex)
    loop = Loop(np.zeros(1, np.int64), np.zeros(1), none, rank, none, none, u, du, v, dv, u)
    got = _asked(loop, np.trace(v @ u), np.trace(dv @ u + v @ du))

    def exact(step: float) -> Any:  # s moves along the axis
        return both((u + 1j * step * du) @ (v + 1j * step * dv))

    np.testing.assert_allclose(got[::2], exact(0.0), rtol=1e-11)
    slope = (exact(1e-6) - exact(-1e-6)) / 2e-6
    np.testing.assert_allclose(got[1::2], slope, rtol=1e-6, atol=1e-6)
