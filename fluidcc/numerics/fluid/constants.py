"""Numbers of the method that stand in every workspace, for fused steps.

A number in the text of a function costs an instruction that loads its address, and ten bytes for that; what stands near
the start of `F` is part of the instruction that uses it.
"""

from __future__ import annotations

import numpy as np

from ..tableaus import TSIT5

__all__ = ["CONSTANTS", "NODE_WEIGHTS"]

#: what the stages contribute to the dense output at the inner nodes of a step: (3 nodes, 7 stages)
NODE_WEIGHTS = np.array([TSIT5.P @ [u, u**2, u**3, u**4] for u in (0.25, 0.5, 0.75)])
_ALL = (TSIT5.A, TSIT5.P, TSIT5.E, TSIT5.C, NODE_WEIGHTS)
CONSTANTS = tuple(sorted({float(v) for part in _ALL for v in part.ravel()} - {0.0, 1.0, 0.25, 0.5, 0.75}))
