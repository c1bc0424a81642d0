"""Roots of many systems of one shape, each found by itself, in compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.linear.bounds import nilpotent
from fluidcc.numerics.linear.compiled.zeros import LEVEL, rightmost_of_all
from fluidcc.numerics.linear.core import core_of
from fluidcc.numerics.linear.pencil import pencils
from fluidcc.numerics.linear.wiring import Blocks, of_one_pattern

__all__ = ["right_of_axis", "rightmost_of_stack"]


def rightmost_of_stack(block: Blocks) -> tuple[NDArray[np.complex128], NDArray[np.int64]]:
    """The rightmost root of each system [1/s] and its number of roots right of the axis, counted and found.

    The number is -1 where these do not agree at once, or a root lies on the axis to the resolution, or the system may
    be neutral: then `DelayLTI.count_unstable` has to say.
    """
    root, count = np.full(len(block.A), np.nan + 0j), np.full(len(block.A), -1)
    for rows, core in _cores(block):
        if len(core.delays[0]) and not nilpotent(np.abs(core.D).max(axis=0)):
            continue
        for part, pencil in pencils(core):
            found, right = rightmost_of_all(pencil.whole, pencil.table, *pencil.scaled)
            root[rows[part]], count[rows[part]] = found / pencil.times, right
    return root, count


def right_of_axis(block: Blocks) -> NDArray[np.int64]:
    """How many roots each system has right of the axis, where its roots are those of single states; -1 elsewhere."""
    count = np.full(len(block.A), -1)
    for rows, core in _cores(block):
        diagonal = np.diagonal(core.A, axis1=1, axis2=2)
        if len(core.delays[0]) or np.count_nonzero(core.A) > np.count_nonzero(diagonal):
            continue
        unit = block.delays[rows].max(axis=1, initial=0.0)[:, None]
        unit = np.where(unit > 0, unit, 1.0)
        count[rows] = (diagonal * unit > LEVEL * (1 + np.abs(diagonal) * unit)).sum(axis=1)
    return count


def _cores(block: Blocks) -> Any:
    """What decides the roots, by pattern."""
    for rows in of_one_pattern(block):
        yield rows, core_of(Blocks(*(part[rows] for part in block)))
