"""Singular values of loops of low rank, in closed form or in their own space, against those of
the whole matrix.
"""

from typing import Any

import numpy as np
import pytest
from numba import njit

from fluidcc.numerics.linear.compiled.points import Loop
from fluidcc.numerics.linear.compiled.small import BOTH, extremes, extremes_of_one

Complex = np.ndarray[Any, np.dtype[np.complex128]]


@njit
def _asked(loop: Any) -> Any:
    out = np.empty(4)
    extremes(loop, BOTH, 0j, 0j, out)
    return out


def decomposed(left: Complex, left_rate: Complex, right: Complex, right_rate: Complex) -> Any:
    m, inner = left.shape
    none = np.zeros((1, 1), complex)
    a, da, b, db = (
        np.ascontiguousarray(part, complex) for part in (left, left_rate, right, right_rate)
    )
    basis = np.zeros((m, inner), complex)
    return _asked(
        Loop(
            np.zeros(1, np.int64),
            np.zeros(1),
            np.zeros(1),
            inner,
            none,
            none,
            a,
            da,
            b,
            db,
            basis,
            0,
        )
    )


def both(ratio: Complex) -> tuple[float, float]:
    """The least singular value of I + L and the largest of L (I + L)^-1."""
    back = np.eye(len(ratio)) + ratio
    least = np.linalg.svd(back, compute_uv=False)[-1]
    return float(least), float(np.linalg.norm(ratio @ np.linalg.inv(back), 2))


@pytest.mark.parametrize("channels", [2, 3, 7])
def test_rank_one_is_that_of_the_decomposition(channels: int) -> None:
    rng = np.random.default_rng(channels)
    for u, v, du, dv in rng.normal(size=(40, 4, channels, 2)) @ np.array([1, 1j]):

        def exact(
            step: float, u: Complex = u, v: Complex = v, du: Complex = du, dv: Complex = dv
        ) -> Any:
            return np.array(
                both(np.outer(u + 1j * step * du, v + 1j * step * dv))
            )  # s moves along the axis

        tall, wide = np.vdot(u, u).real, np.vdot(v, v).real
        rise = 2 * (np.vdot(u, 1j * du).real * wide + np.vdot(v, 1j * dv).real * tall)
        got = extremes_of_one(v @ u, 1j * (dv @ u + v @ du), tall * wide, rise)
        np.testing.assert_allclose(got[::2], exact(0.0), rtol=1e-12)
        np.testing.assert_allclose(
            got[1::2], (exact(1e-6) - exact(-1e-6)) / 2e-6, rtol=2e-5, atol=1e-5
        )


@pytest.mark.parametrize(("channels", "rank"), [(2, 2), (3, 3), (3, 2), (7, 3), (8, 3), (20, 4)])
def test_a_low_rank_is_decomposed_in_its_own_space(channels: int, rank: int) -> None:
    rng = np.random.default_rng(10 * channels + rank)
    u, du = 0.3 * rng.normal(size=(2, channels, rank, 2)) @ np.array([1, 1j])
    v, dv = rng.normal(size=(2, rank, channels, 2)) @ np.array([1, 1j])
    if rank == channels:
        v, dv = np.eye(rank) + 0j, np.zeros((rank, rank)) + 0j

    def exact(step: float) -> Any:
        return np.array(both((u + 1j * step * du) @ (v + 1j * step * dv)))

    got = decomposed(u, du, v, dv)
    np.testing.assert_allclose(got[::2], exact(0.0), rtol=1e-11)
    np.testing.assert_allclose(got[1::2], (exact(1e-6) - exact(-1e-6)) / 2e-6, rtol=1e-6, atol=1e-6)
