"""Links that act on their own: they drop before their queue, and tell sources something straight back.

What a link drops never enters its queue: all that speaks of arrivals elsewhere, of modes and of delays, means what is
let in. What it tells is looked up at a constant delay, that of the way from its queue back to the source; no queue is
on it. So the reads of one class are nodes whose parent is `slots.TOLD`.
"""

from __future__ import annotations

from typing import Any

from ..compiling import njit
from ..fluid import slots as s
from .reads import act_place, quartic

__all__ = ["act", "count_crossing", "drop_place", "dropped_then", "drops", "j_acts", "tell"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}


@njit(**_CFG)
def act(F: Any, I: Any, link: int, out: int, slope: int) -> None:
    """Let in what is not dropped; keep what the link tells. Its outputs stand at F[out], NL apart, `drop` first."""
    nl, x = I[s.NL], I[s.OACT] + s.XSIZE * I[I[s.JACT] + link]
    drop, arrivals = F[out], F[I[s.OARR] + link]
    F[x] = drop * arrivals
    for k in range(1, s.XSIZE):
        F[x + k] = F[out + k * nl]
    if I[I[s.JACTS] + link] & s.DROPS:
        F[I[s.OARR] + link] = arrivals - F[x]
        F[I[s.OMARK] + link] = 1.0 - (1.0 - F[I[s.OMARK] + link]) * (1.0 - drop)
        if I[I[s.JMODE] + link] == s.BUSY:
            F[slope] = F[I[s.OARR] + link] - F[I[s.OCAP] + link]


@njit(**_CFG)
def _then(F: Any, I: Any, node: int, place: int) -> float:
    """The quartic at `place` of the record that a node looks at, where it looks."""
    o = I[s.OHIST] + (I[I[s.JNCUR] + node] & I[s.MASK]) * I[s.STRIDE] + place
    return quartic(F, o, F[I[s.OUN] + node])


@njit(**_CFG)
def j_acts(I: Any, aggregate: int) -> bool:
    """Whether a stream is a trunk behind a link that acts."""
    return I[s.NACT] > 0 and aggregate < 0 and I[I[s.JACT] - 1 - aggregate] >= 0


@njit(**_CFG)
def dropped_then(F: Any, I: Any, node: int, link: int) -> float:
    """What `link` dropped where the node looks [bit/s]."""
    return _then(F, I, node, act_place(I, I[I[s.JACT] + link]))


@njit(**_CFG)
def drops(I: Any, link: int) -> bool:
    """Whether a link drops before its queue."""
    return I[s.NACT] > 0 and I[I[s.JACTS] + link] & s.DROPS != 0


@njit(**_CFG)
def drop_place(I: Any, link: int) -> int:
    """Where the newest record has what `link` drops."""
    return I[s.OHIST] + (I[s.NREC] & I[s.MASK]) * I[s.STRIDE] + act_place(I, I[I[s.JACT] + link])


@njit(**_CFG)
def tell(F: Any, I: Any, want: int) -> None:
    """What each source hears of the routers on its route; when wanted, where one offer passes another."""
    nf, u = I[s.NF], I[s.OU]
    for i in range(nf):
        k = I[I[s.JCLS] + i]
        least, most, count = s.NO_OFFER, 0.0, 0
        rival = I[I[s.JRIVALS] + i] if want else -1
        for m in range(I[I[s.JTOLD] + k], I[I[s.JTOLD] + k + 1]):
            node = I[I[s.JTOLDV] + m]
            link = I[I[s.JNLINK] + node]
            place = act_place(I, I[I[s.JACT] + link])
            if I[I[s.JACTS] + link] & s.OFFERS:
                offer = _then(F, I, node, place + 5 * s.XOFFER)
                if rival >= 0 and least < s.NO_OFFER:
                    F[I[s.OGS] + rival] = least - offer
                    F[I[s.OGS] + rival + 1] = offer - most
                    rival += 2
                least, most = min(least, offer), max(most, offer)
            if I[I[s.JACTS] + link] & s.REPORTS:
                F[u + (s.UFACTOR + count) * nf + i] = _then(F, I, node, place + 5 * s.XFACTOR)
                F[u + (s.URAISE + count) * nf + i] = _then(F, I, node, place + 5 * s.XRAISE)
                F[u + (s.UREPORTS + count) * nf + i] = _then(F, I, node, place + 5 * s.XREPORTS)
                count += 1
        F[u + s.UOFFERMIN * nf + i] = least
        F[u + s.UOFFERMAX * nf + i] = most


@njit(**_CFG)
def count_crossing(F: Any, I: Any) -> None:
    """How many flows that are on cross each link."""
    cross = I[s.OCROSS]
    for link in range(I[s.NL]):
        F[cross + link] = 0.0
    for i in range(I[s.NF]):
        if I[I[s.JON] + i] != s.OFF:
            k = I[I[s.JCLS] + i]
            for m in range(I[I[s.JPATH] + k], I[I[s.JPATH] + k + 1]):
                F[cross + I[I[s.JNLINK] + I[I[s.JPATHV] + m]]] += 1.0
