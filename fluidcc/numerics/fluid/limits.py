"""Right-hand limits: what holds just after a breaking point, a change of mode, a jump or a tick."""

from __future__ import annotations

from typing import Any

from ..compiling import njit
from ..fluid import slots as s
from .breaks import bend, forward_class
from .feedback import count_crossing
from .modes import settle_links
from .reads import work
from .records import keep_node, linear_record
from .rhs import evaluate

__all__ = ["start"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}


@njit(**_CFG)
def _decide(F: Any, I: Any, flipped: int, before: int, afresh: bool) -> int:
    """Decide switches: those undecided, and `afresh` also kinks that a jump carries over zero; how many change.

    The values of the switches before the jump stand at F[before]. One that was on the other side already, as at an
    event that is located but for rounding, stays as it is, and so do those that have just `flipped`.
    """
    changed, told = 0, I[s.NL]
    for k in range(I[s.NSW]):
        mode, old, value = F[I[s.OSW] + k], F[before + k], F[I[s.OGS] + k]
        if mode == 2.0:
            F[I[s.OSW] + k] = 1.0 if value > 0.0 else 0.0
            changed += 1
            continue
        on = mode > 0.5
        if not afresh or on == (value > 0.0) or value == 0.0 or (old != 0.0 and on != (old > 0.0)):
            continue
        owner = I[I[s.JSWOWN] + k]
        if not I[I[s.JKINK] + k] or (owner >= 0 and I[I[s.JON] + owner] != s.ON):
            continue
        if flipped >= I[s.NL] and (k == flipped - I[s.NL] or I[I[s.JPEND] + k]):
            continue
        F[I[s.OSW] + k] = 0.0 if on else 1.0
        changed += 1
        link = I[I[s.JFIRST] + owner] if owner >= 0 else -1 - owner
        if link != told:
            forward_class(F, I, link, 1)
            if owner < 0:
                bend(F, I, link)
        told = link
    return changed


@njit(**_CFG)
def start(F: Any, I: Any, flipped: int, jumped: bool) -> None:
    """Right-hand limits at F[T] after a breaking point: arrivals, modes, then the first stage.

    `flipped` is the link whose mode has just changed at an event, or the number of links plus that of the switch, or
    -1. `jumped` says that signals may have jumped from what switches were last computed of.
    """
    for j in range(I[s.NN]):
        I[I[s.JNCUR] + j] = I[I[s.JNCUR0] + j]
    for link in range(I[s.NL]):
        F[I[s.OS0] + link] = work(F, I, link, F[s.T])[0]
    if I[s.COUNTED]:
        count_crossing(F, I)
    last = I[s.NREC] - 1
    hops, before = I[s.ATONCE], I[s.OSWITCHED]
    for sweep in range(3 + 3 * hops):
        for k in range(I[s.NSW]):
            F[before + k] = F[I[s.OGS] + k]
        evaluate(F, I, F[s.T], I[s.OY], I[s.OK], 0, 1, last, 1)
        changed = settle_links(F, I, flipped)
        changed += _decide(F, I, flipped, before, I[s.LOCATE] > 0 and (jumped or sweep > 0))
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
