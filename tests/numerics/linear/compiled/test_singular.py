"""Singular values of loops of rank one in closed form, against a decomposition of the whole matrix."""

import numpy as np
import pytest

from fluidcc.numerics.linear.compiled.singular import singular, singular_of_one


@pytest.mark.parametrize("channels", [2, 3, 7])
@pytest.mark.parametrize("largest", [False, True])
def test_rank_one_is_that_of_the_decomposition(channels: int, largest: bool) -> None:
    rng = np.random.default_rng(channels)
    u, v, du, dv = rng.normal(size=(4, 40, channels, 2)) @ np.array([1, 1j])

    def exact(step: float) -> np.ndarray:
        ratio = np.einsum("pi,pj->pij", u + 1j * step * du, v + 1j * step * dv)  # s moves along the axis
        back = np.eye(channels) + ratio
        if largest:
            return np.linalg.svd(ratio @ np.linalg.inv(back), compute_uv=False)[:, 0]
        return np.linalg.svd(back, compute_uv=False)[:, -1]

    ratio = np.einsum("pi,pj->pij", u, v)
    slope = np.einsum("pi,pj->pij", du, v) + np.einsum("pi,pj->pij", u, dv)
    got = np.array([singular_of_one(L, dL, largest) for L, dL in zip(ratio, slope, strict=True)])
    np.testing.assert_allclose(got[:, 0], exact(0.0), rtol=1e-12)
    np.testing.assert_allclose(got[:, 1], (exact(1e-6) - exact(-1e-6)) / 2e-6, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("channels", "rank"), [(2, 2), (3, 3), (3, 2), (7, 3), (8, 3), (20, 4)])
@pytest.mark.parametrize("largest", [False, True])
def test_a_low_rank_is_decomposed_in_its_own_space(channels: int, rank: int, largest: bool) -> None:
    rng = np.random.default_rng(10 * channels + rank)
    u, du = 0.3 * rng.normal(size=(2, channels, rank, 2)) @ np.array([1, 1j])
    v, dv = rng.normal(size=(2, rank, channels, 2)) @ np.array([1, 1j])

    def exact(step: float) -> float:
        ratio = (u + 1j * step * du) @ (v + 1j * step * dv)
        back = np.eye(channels) + ratio
        if largest:
            return float(np.linalg.norm(ratio @ np.linalg.inv(back), 2))
        return float(np.linalg.svd(back, compute_uv=False)[-1])

    basis = rng.normal(size=(channels, rank)) + 0j
    value, rise = singular(u @ v, du @ v + u @ dv, basis, largest)
    np.testing.assert_allclose(value, exact(0.0), rtol=1e-11)
    np.testing.assert_allclose(rise, (exact(1e-6) - exact(-1e-6)) / 2e-6, rtol=1e-6, atol=1e-6)
