"""A pencil whose common sums are unknowns of their own has the determinant and the response of
the one without.
"""

import numpy as np
import pytest

from fluidcc.numerics.linear.compiled.framing import framed
from fluidcc.numerics.linear.pencil import Pencil, pencils, with_sums
from fluidcc.numerics.linear.wiring import Blocks


def crowd(flows: int, links: int, late: bool, seed: int) -> Blocks:
    """Queues that hear sums of rates, and flows that hear a queue and what arrives there."""
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.5, 2, (links, flows)) * (rng.random((links, flows)) < 0.7)
    n, forth = links + flows, flows if late else 0
    k = forth + flows
    A = np.diag(-rng.uniform(0.5, 2, n))
    B, C, D = np.zeros((n, flows + k)), np.zeros((flows + k, n)), np.zeros((flows + k, flows + k))
    enter = slice(flows, flows + forth) if late else slice(0, flows)
    if late:
        D[flows : flows + forth, :flows] = np.eye(flows)
        C[flows : flows + forth, links:] = np.eye(flows)
    else:
        A[:links, links:] = share
    B[:links, enter] = share
    for i in range(flows):
        l, row, (a, b) = i % links, flows + forth + i, rng.normal(size=2)
        C[row, l] = a
        D[row, enter] = b * share[l]
        B[links + i, row] = 1.0
        C[i, links + i] = 1.0
    return Blocks(A, B, C, D, rng.uniform(0.1, 1, k))


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_determinant_and_response_stay(
    late: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = crowd(30, 3, late, seed)
    named = Pencil(block)
    monkeypatch.setattr("fluidcc.numerics.linear.pencil.with_sums", lambda full, late: full)
    plain = Pencil(block)
    assert named.size == plain.size + 3
    assert named.table.shape[1] < 0.75 * plain.table.shape[1]
    s = np.array([0.1 + 0.3j, 2j, -0.5 + 7j, 1.0, 0])
    one, other = named.values(s), plain.values(s)
    np.testing.assert_allclose(one.phase, other.phase, rtol=1e-10)
    np.testing.assert_allclose(one.log, other.log, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(one.slope, other.slope, rtol=1e-9)
    np.testing.assert_allclose(one.response, other.response, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(one.response_slope, other.response_slope, rtol=1e-8, atol=1e-10)


def test_nothing_is_named_where_nothing_is_alike() -> None:
    rng = np.random.default_rng(0)
    A, B, C, D = (rng.normal(size=(1, *shape)) for shape in ((4, 4), (4, 9), (8, 4), (8, 9)))
    full, _ = framed(A, B, C, D, np.ones((1, 5)), np.zeros(1))
    assert with_sums(full, slice(4, 9)) is full


def test_one_sum_and_its_multiples() -> None:
    full = np.zeros((1, 12, 10))
    full[0, :8, 2:8] = np.outer(np.arange(1.0, 9.0), [1.0, -2, 3, 0.5, 1, 7])
    full[0, 3, 4] += 1e-6  # this one is no multiple there, so the sum has one term less
    out = with_sums(full, slice(2, 8))
    assert out.shape == (1, 13, 11)
    back = out[0] - np.outer(out[0][:, 8], out[0][8])  # the sum put in again
    np.testing.assert_allclose(np.delete(np.delete(back, 8, 0), 8, 1), full[0], rtol=1e-15)
    assert np.count_nonzero(out[0][8]) == 5


def test_systems_with_other_sums_are_evaluated_apart() -> None:
    blocks = [crowd(6, 1, True, 0) for _ in range(4)]
    heard = np.flatnonzero(blocks[2].D[14])
    blocks[2].D[14, heard[0]] *= 1.5  # one flow hears more of another than its share
    stack = Blocks(*(np.stack(part) for part in zip(*blocks, strict=True)))
    found = {tuple(rows.tolist()): pencil.size for rows, pencil in pencils(stack)}
    assert sorted(found) == [(0, 1, 3), (2,)]
