"""Sparse factors of a pencil against full ones: determinant, response and their slopes."""

import numpy as np
import pytest

from fluidcc.numerics.linear import pencil


@pytest.mark.parametrize("seed", range(4))
def test_without_zeros_it_is_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    k, ports = 30, 3
    pattern = rng.random((k + ports, k + ports)) < 0.15
    value, rate = (rng.normal(size=(2, 5, k + ports, k + ports, 2)) @ np.array([1, 1j])) * pattern
    value[:, range(k), (np.arange(k) + 3) % k] += (
        4.0  # far from the diagonal, so that rows are exchanged
    )
    dense = pencil.pivoted(value, rate, k, True)
    monkeypatch.setattr(pencil, "SPARSE", 10)
    for one, other in zip(pencil.pivoted(value, rate, k, True), dense, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("limit", [10, 100])
def test_a_singular_one_is_infinite(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pencil, "SPARSE", limit)
    value = np.array([np.eye(22), np.eye(22)], complex)
    value[1, 4, 4] = 0.0
    phase, log, total, block, block_rate = pencil.pivoted(value, value, 20, True)
    assert (phase == [1, 0]).all()
    assert log.tolist() == [0.0, -np.inf]
    assert total[0] == 20
    assert np.isinf(total[1])
    assert np.isinf(block[1]).all()
    assert np.isinf(block_rate[1]).all()
    assert (block[0] == np.eye(2)).all()
