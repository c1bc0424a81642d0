"""Taking a step over that has been accepted: its samples and totals, what is learned from it, and its end.

A fused step does the first part itself, of the same pieces, with all sizes known: see `slots.TAKE_OVER`.
"""

from __future__ import annotations

from typing import Any

from ..compiling import njit
from ..fluid import slots as s
from .calls import call_step
from .guess import learn
from .reads import work
from .rough import straighten, unfollowed
from .sample import sample_step
from .sample_links import add_totals

__all__ = ["accept", "hand_over"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}


@njit(**_CFG, forceinline=True)
def accept(F: Any, I: Any, end: float, address: int) -> None:
    """Take the step over. It ends at `end` exactly."""
    final = end >= F[s.TEND]
    swings = unfollowed(F, I)
    if address:
        I[s.TASK] = s.TAKE_OVER_LAST if final else s.TAKE_OVER
        call_step(address, F, I)
        I[s.TASK] = s.STEP
    else:
        sample_step(F, I, final)
        add_totals(F, I, I[s.NL], I[s.NACT] > 0)
        learn(F, I, I[s.NQ], I[s.NQL])
        hand_over(F, I, I[s.NS], I[s.NF], I[s.NL], s.XSIZE * I[s.NACT], I[s.NODES])
    if swings:  # what was sampled is better than what is good to look back at
        straighten(F, I)
    F[s.HPREV] = F[s.H]
    F[s.T] = end
    I[s.NREC] += 1
    I[s.STEPS] += 1
    for link in range(I[s.NL]):
        F[I[s.OS0] + link] = work(F, I, link, end)[0]
    oldest, first, cursors = I[s.NREC], I[s.JNCUR0], I[s.JNCUR]
    for j in range(I[s.NN]):
        I[first + j] = I[cursors + j]
        oldest = min(oldest, I[cursors + j])
    I[s.FIRST] = max(I[s.FIRST], oldest - 1)
    I[s.FRESH] = 0


@njit(**_CFG, forceinline=True)
def hand_over(F: Any, I: Any, ns: int, nf: int, nl: int, acting: int, nodes: int) -> None:
    """What holds at the end of the step just taken holds at the start of the next one."""
    y, y1, k = I[s.OY], I[s.OY1], I[s.OK]
    for i in range(ns):
        F[y + i] = F[y1 + i]
        F[k + i] = F[k + 6 * ns + i]
    rates, arrivals, marks, prices, slopes = I[s.ORN], I[s.OAN], I[s.OMN], I[s.OPN], I[s.OAK]
    for i in range(nf):
        F[rates + i] = F[rates + 4 * nf + i]
    for link in range(nl):
        F[arrivals + link] = F[arrivals + 4 * nl + link]
        F[marks + link] = F[marks + 4 * nl + link]
        F[prices + link] = F[prices + 4 * nl + link]
        if not nodes:
            F[slopes + link] = F[slopes + 6 * nl + link]
    first = I[s.OACTN]
    for i in range(acting):
        F[first + i] = F[first + 4 * acting + i]
