"""How functions are compiled: those that make arrays, and those that are only handed them.

numba counts who holds an array, by an atomic operation whenever one is passed on or taken out of a
tuple. Where arrays belong to the caller throughout, that is all for nothing; it took a quarter of
the time of searches for equilibria and margins. A function compiled without it cannot make an array
(numba refuses to compile it), and must not return one. What it calls is compiled likewise unless
that says otherwise, so that whatever makes arrays has to say so.
"""

from __future__ import annotations

from typing import Any

__all__ = ["COUNTED", "UNCOUNTED"]

_BOTH: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True}
COUNTED: dict[str, Any] = {**_BOTH, "_nrt": True}
"""Options of ``njit`` for what makes arrays."""
UNCOUNTED: dict[str, Any] = {**_BOTH, "_nrt": False}
"""Options of ``njit`` for what does not."""
