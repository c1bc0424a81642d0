"""The pencil: its factors agree, its sums may be unknowns of their own, its cut is one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluidcc.numerics.linear.compiled.elimination import pivoted
from fluidcc.numerics.linear.pencil import Pencil, pencils, separator, with_sums
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


def full(pencil: Pencil, s: complex) -> tuple[np.ndarray, np.ndarray]:
    """The bordered pencil and its derivative, in scaled time."""
    (m, p), at = pencil.ports, pencil._shape
    value, slope = np.zeros((2, pencil.size + p, pencil.size + m), complex)
    constant, lead, lagged = pencil.table[0, : 3 * len(at.row)].reshape(3, len(at.row))
    lag = np.append(pencil.table[0, 3 * len(at.row) :], 0.0)[at.lag_of]
    value[at.row, at.column] = constant + lead * s + lagged * np.exp(-s * lag)
    slope[at.row, at.column] = lead - lag * lagged * np.exp(-s * lag)
    return value, slope


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_determinant_and_response_stay_when_sums_are_named(
    late: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = crowd(30, 3, late, seed)
    named = Pencil(block)
    monkeypatch.setattr("fluidcc.numerics.linear.pencil.with_sums", lambda full, late: full)
    plain = Pencil(block)
    assert named.size == plain.size + 3
    assert named.table.shape[1] < 0.75 * plain.table.shape[1]
    s = np.array([0.1 + 0.3j, 2j, -0.5 + 7j, 1.0, 0])
    for one, other in zip(named.values(s), plain.values(s), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


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


@pytest.mark.parametrize("seed", range(4))
def test_pivoted_and_planned_factors_are_those_of_numpy(seed: int) -> None:
    block = crowd(8, 2, bool(seed % 2), seed)
    if seed > 1:
        block.A[0] = 0.0  # so that the pencil is singular at the origin unless a loop closes there
        block.B[0] = 0.0
    pencil = Pencil(block)
    s = np.array([0.3 + 1j, -2.0 + 5j, 4.0, 0.0])
    planned = pencil.values(s, scaled=True)
    for i, at in enumerate(s.tolist()):
        dense = np.zeros((2, *planned.response[0].shape), complex)
        one = pivoted(at, pencil.whole, pencil.table[0], *dense)
        assert one[3] == (at == 0 and seed > 1)
        if one[3]:
            assert np.isinf(dense).all()
            assert one[:3] == (0, -np.inf, complex(np.inf))
            continue
        k, (value, rate) = pencil.size, full(pencil, at)
        slope = np.trace(np.linalg.solve(value[:k, :k], rate[:k, :k]))
        wanted = [*np.linalg.slogdet(value[:k, :k]), slope]
        np.testing.assert_allclose(one[:3], wanted, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(one[:3], [part[i] for part in planned[:3]], rtol=1e-9)
        np.testing.assert_allclose(dense[0], planned.response[i], rtol=1e-9, atol=1e-10)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_a_cut_lets_nothing_past_and_bounds_the_rank(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, m = int(rng.integers(2, 14)), int(rng.integers(2, 6))
    pattern = rng.random((size + m, size + m)) < rng.uniform(0.05, 0.4)
    pattern[range(size), range(size)] = True
    pattern[size:, size:] = False
    value = np.where(pattern, rng.normal(size=pattern.shape), 0.0)
    value[range(size), range(size)] += 5.0
    ratio = value[size:, :size] @ np.linalg.inv(value[:size, :size]) @ value[:size, size:]
    rank = np.linalg.matrix_rank(ratio, tol=1e-9 * max(np.abs(ratio).max(), 1e-300))
    cut = separator(pattern, size)
    if cut:
        assert rank <= len(cut) < m
        first = [i for i in range(size) if i not in cut]
        inner = np.linalg.inv(value[np.ix_(first, first)])
        past = value[size:, first] @ inner @ value[np.ix_(first, range(size, size + m))]
        assert np.abs(past).max(initial=0) < 1e-12


def test_a_direct_way_cannot_be_cut_and_one_port_needs_no_cut() -> None:
    pattern = np.eye(5, dtype=bool)
    pattern[0, 3] = pattern[0, 4] = pattern[3, 0] = pattern[4, 0] = True
    pattern[3:, 3:] = False
    assert separator(pattern, 3) == [0]
    pattern[4, 4] = True
    assert separator(pattern, 3) == []
    assert separator(np.ones((4, 4), bool), 3) == []
