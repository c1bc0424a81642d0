"""Right-hand limits: what holds just after a breaking point, a change of mode, a jump or a tick."""

from __future__ import annotations

from typing import Any

from ..compiling import njit
from . import slots as s
from .modes import settle_links
from .reads import work
from .records import keep_node, linear_record
from .rhs import evaluate
from .told import count_crossing

__all__ = ["start"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}


@njit(**_CFG)
def start(F: Any, I: Any, flipped: int) -> None:
    """Right-hand limits at F[T] after a breaking point: arrivals, modes, then the first stage.

    `flipped` is the link whose mode has just changed at an event, or -1.
    """
    for j in range(I[s.NN]):
        I[I[s.JNCUR] + j] = I[I[s.JNCUR0] + j]
    for link in range(I[s.NL]):
        F[I[s.OS0] + link] = work(F, I, link, F[s.T])[0]
    if I[s.COUNTED]:
        count_crossing(F, I)
    last = I[s.NREC] - 1
    hops = I[s.ATONCE]
    for sweep in range(3 + 3 * hops):
        evaluate(F, I, F[s.T], I[s.OY], I[s.OK], 0, 1, last, 1)
        changed = settle_links(F, I, flipped)
        for k in range(I[s.NSW]):
            if F[I[s.OSW] + k] == 2.0:
                F[I[s.OSW] + k] = 1.0 if F[I[s.OGS] + k] > 0.0 else 0.0
                changed += 1
        if not changed and sweep >= hops:
            break
        if hops:  # what enters one link is at the next at once: look into the step to come, by the new modes
            keep_node(F, I, 0)
            linear_record(F, I, 1.0)
            last = I[s.NREC]
    keep_node(F, I, 0)
    for j in range(I[s.NN]):
        I[I[s.JNCUR0] + j] = I[I[s.JNCUR] + j]
    I[s.FRESH] = 1
