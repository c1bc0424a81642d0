"""Vectors in compiled code against NumPy's arrays, which are what they are without the JIT."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from fluidcc.numerics.fluid.calls import pointer
from fluidcc.numerics.fluid.vectors import (
    all_of,
    beside,
    choose,
    equal_at,
    lanes,
    leading,
    put_vector,
    spread,
    total,
    vector_at,
    worst,
)

FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=64)
COUNTS = (2, 3, 4, 5, 8)


def _compiled(count: int) -> Callable[..., Any]:
    @njit(error_model="numpy")
    def work(F: Any, I: Any, scalar: float) -> tuple[float, float, bool, int]:
        f, i = pointer(F), pointer(I)
        a, b = vector_at(f, 0, count), vector_at(f, count, count)
        on = equal_at(i, 0, count, 1)
        put_vector(f, 2 * count, count, -a * b + scalar - a / b)
        put_vector(f, 3 * count, count, scalar * choose(a > b, abs(a), b - 1.0))
        put_vector(f, 4 * count, count, choose(((a <= scalar) & (b != a)) | (on == False), 1.0, b))  # noqa: E712
        put_vector(f, 5 * count, count, scalar)
        put_vector(f, 6 * count, count, choose(scalar > 0.0, a, b))
        put_vector(f, 7 * count, count, spread(scalar, count) + b)
        first = lanes(a)
        put_vector(f, 8 * count, 2, beside(first[1], first[0]))
        return total(a), worst(scalar, abs(b)), all_of(on), leading(on)

    return work


WORK = {count: _compiled(count) for count in COUNTS}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_vectors_are_arrays(data: st.DataObject) -> None:
    count = data.draw(st.sampled_from(COUNTS))
    a, b = (np.array(data.draw(st.lists(FLOATS, min_size=count, max_size=count))) for _ in range(2))
    on = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    scalar = data.draw(st.floats(-1e3, 1e3))
    F = np.concatenate([a, b, np.full(7 * count, 7.0)])
    told, most, every, first = WORK[count](F, on, scalar)
    with np.errstate(all="ignore"):
        wanted = [
            -a * b + scalar - a / b,
            scalar * np.where(a > b, abs(a), b - 1.0),
            np.where(((a <= scalar) & (b != a)) | (on != 1), 1.0, b),
            np.full(count, scalar),
            a if scalar > 0.0 else b,
            scalar + b,
            [a[1], a[0], *np.full(count - 2, 7.0)],  # what comes after is left alone
        ]
        assert np.array_equal(F[2 * count :].reshape(7, count), wanted, equal_nan=True)
        assert np.array_equal(told, np.add.accumulate(a)[-1], equal_nan=True)
    assert most == (np.inf if np.isnan(b).any() else max(scalar, np.max(abs(b))))
    assert every == bool(np.all(on == 1))
    assert first == next((k for k in range(count) if on[k] != 1), count)


@pytest.mark.parametrize("wrong", [operator.mod, operator.pow])
def test_what_vectors_cannot_do_is_refused(wrong: Callable[..., Any]) -> None:
    @njit
    def work(F: Any) -> None:
        f = pointer(F)
        put_vector(f, 0, 2, wrong(vector_at(f, 0, 2), 2.0))

    with pytest.raises(Exception, match="No implementation of function|No conversion"):
        work(np.ones(4))
