"""Functions that compiled code alone calls, and those of them that count no references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import config
from numba.core.errors import NumbaError
from numba.core.runtime import rtsys

from fluidcc.numerics.compiling import njit

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")


@njit()
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


def test_it_has_no_machine_code_and_no_file() -> None:
    _handed(np.ones((4, 3)))
    (made,) = _making.overloads.values()
    assert made.fndesc.llvm_func_name in made.library.get_llvm_str()
    assert not made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    assert not _making._cache.cache_path


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
