"""The cut between inputs and outputs against transfer matrices with random numbers, and against
all smaller sets.
"""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluidcc.numerics.linear.pencil import separator


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_as_many_unknowns_as_the_rank(seed: int) -> None:
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

    def past(without: tuple[int, ...]) -> float:
        """What gets from the inputs to the outputs without these unknowns."""
        first = [i for i in range(size) if i not in without]
        inner = np.linalg.inv(value[np.ix_(first, first)])
        return float(
            np.abs(value[size:, first] @ inner @ value[np.ix_(first, range(size, size + m))]).max(
                initial=0
            )
        )

    if cut:
        assert rank <= len(cut) < m
        assert past(tuple(cut)) < 1e-12
    for smaller in combinations(range(size), len(cut) - 1 if cut else min(m - 1, 2)):
        assert past(smaller) > 1e-12 or rank == 0


def test_a_direct_way_cannot_be_cut() -> None:
    pattern = np.eye(5, dtype=bool)
    pattern[0, 3] = pattern[0, 4] = pattern[3, 0] = pattern[4, 0] = True
    pattern[3:, 3:] = False
    assert separator(pattern, 3) == [0]
    pattern[4, 4] = True
    assert separator(pattern, 3) == []


@pytest.mark.parametrize("m", [0, 1])
def test_one_port_needs_no_cut(m: int) -> None:
    assert separator(np.ones((3 + m, 3 + m), bool), 3) == []
