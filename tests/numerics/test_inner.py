"""Functions that compiled code alone calls; of these, functions that count no references make no
arrays, and lose none that they are handed or that others make.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import config
from numba.core.errors import NumbaError
from numba.core.runtime import rtsys

from fluidcc.numerics.compiling import njit

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")


@njit(cache=False)
def _making(values: Any) -> Any:
    return (values * values).sum()


@njit(entry=True, counted=False, cache=False)
def _handed(table: Any) -> Any:
    total = 0.0
    for i in range(len(table)):
        row = table[i]
        total += row[1:].reshape(row.size - 1, 1)[0, 0] + _making(row[:2])
    return total


def test_python_is_refused() -> None:
    with pytest.raises(TypeError, match="_making is called by compiled code alone"):
        _making(np.ones(3))


def test_an_array_is_refused() -> None:
    @njit(entry=True, counted=False, cache=False)
    def made(n: int) -> Any:
        return np.zeros(n)[0]

    with pytest.raises(NumbaError):
        made(3)


def test_no_array_is_lost() -> None:
    table = np.arange(12.0).reshape(4, 3)
    held, nrt = table.copy(), pytest.importorskip("numba.core.runtime._nrt_python")
    _handed(held)
    nrt.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    found = _handed(held)
    after = rtsys.get_allocation_stats()
    nrt.memsys_disable_stats()
    assert found == table[:, 1].sum() + (table[:, :2] ** 2).sum()
    assert after.alloc - before.alloc == after.free - before.free > 0
    np.testing.assert_array_equal(held, table)
