"""The right-hand side of a network: signals to the sources, rates to the links, backlogs.

Some links act on their own: they drop before their queue, and tell sources something straight back.
What a link drops never enters its queue: all that speaks of arrivals elsewhere, of modes and of
delays, means what is let in. What it tells is looked up at a constant delay, that of the way from
its queue back to the source; no queue is on it. So the reads of one class are nodes whose parent is
`slots.TOLD`.
"""

from __future__ import annotations

from typing import Any

from ..compiling import njit
from ..fluid import slots as s
from .calls import call_kernel
from .reads import act_place, lost, quartic, read_nodes

__all__ = ["add_by_first_link", "count_crossing", "drop_place", "drops", "evaluate"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}


@njit(**_CFG)
def _signals(F: Any, I: Any, now: float, want: int) -> None:
    """What each source knows at `now`: its class's path, plus its own access delay."""
    nf = I[s.NF]
    cls = I[s.JCLS]
    u = I[s.OU]
    th, ce, cs, cp, cq = I[s.OTH], I[s.OCE], I[s.OCS], I[s.OCP], I[s.OCQ]
    acc = I[s.OACC]
    frozen, lossy, prices = I[s.FROZEN], I[s.LOSSY] or I[s.MARKS], I[s.PRICES]
    for i in range(nf):
        k = I[cls + i]
        leaf = I[I[s.JLEAF] + k]
        a = F[acc + i]
        if frozen:
            F[u + i] = a + F[I[s.OCPROP] + k] + F[cq + leaf]
            F[u + nf + i] = F[ce + leaf]
        else:
            F[u + i] = a + (now - F[I[s.OCLAG] + k]) - F[th + leaf]
            F[u + nf + i] = F[ce + leaf] - 1.0
        if lossy:
            F[u + 2 * nf + i] = lost(F[cs + leaf])
        if prices:
            F[u + 3 * nf + i] = F[cp + leaf]
        F[u + 7 * nf + i] = now - a
    if I[s.NT]:
        _own_past(F, I)
    if I[s.NACT]:
        tell(F, I, want)


@njit(**_CFG)
def _own_past(F: Any, I: Any) -> None:
    """The rate that a source had when it sent what is now reported."""
    nf = I[s.NF]
    own = I[s.OHIST] + s.RLINKS + I[s.NL] * s.LSIZE + 5 * I[s.NX]
    for i in range(nf):
        slot = I[I[s.JXT] + i]
        if slot >= 0:
            leaf = I[I[s.JLEAF] + I[I[s.JCLS] + i]]
            o = own + (I[I[s.JNCUR] + leaf] & I[s.MASK]) * I[s.STRIDE] + 5 * slot
            F[I[s.OU] + 4 * nf + i] = quartic(F, o, F[I[s.OUN] + leaf])


@njit(**_CFG)
def group_switches(F: Any, I: Any, oz: int, od: int, want: int) -> None:
    """Every group of sources: derivatives, rates and, when wanted, the values of the switches."""
    nf = I[s.NF]
    for g in range(I[s.NG]):
        j = I[s.JGRP] + 8 * g
        first, n, off = I[j + 1], I[j + 2], I[j + 3]
        call_kernel(
            I[j], n, nf, F, oz + off, I[s.OU] + first, I[j + 5], I[s.OSW] + I[j + 6], od + off,
            I[s.ORATE] + first, I[s.OGS] + I[j + 6], want,
        )  # fmt: skip
    for i in range(nf):
        on = I[I[s.JON] + i]
        if on != s.ON:
            if on == s.OFF:
                F[I[s.ORATE] + i] = 0.0
            elif F[I[s.OU] + 7 * nf + i] > 0.0:  # released without a breaking point of its own
                continue
            for k in range(I[I[s.JFN] + i]):
                F[od + I[I[s.JFSTATE] + i] + k * I[I[s.JFSTRIDE] + i]] = 0.0
        if on and I[I[s.JRATE] + i] == -2:
            F[I[s.ORATE] + i] = F[I[s.OPAT] + i]


@njit(**_CFG)
def add_by_first_link(F: Any, I: Any, values: int, index: int, target: int) -> None:
    """Add up values of flows by their first link: F[values + i], or F[values + I[index + i]] where
    that is not < 0.

    Neighbours mostly share their link, so that the sum is kept in a register until the link
    changes.
    """
    nf, first = I[s.NF], I[s.JFIRST]
    for l in range(I[s.NL]):
        F[target + l] = 0.0
    link, total = I[first], 0.0
    for i in range(nf):
        if I[first + i] != link:
            F[target + link] += total
            link, total = I[first + i], 0.0
        if index < 0:
            total += F[values + i]
        elif I[index + i] >= 0:
            total += F[values + I[index + i]]
    F[target + link] += total


@njit(**_CFG)
def _arrivals(F: Any, I: Any, od: int, stage: int) -> None:
    nl, arr = I[s.NL], I[s.OARR]
    add_by_first_link(F, I, I[s.ORATE], -1, arr)
    if not I[s.NODES] and stage >= 0:
        add_by_first_link(F, I, od, I[s.JRATE], I[s.OAK] + stage * nl)
    for n in range(I[s.NSTR]):
        j = I[s.JSTR] + 3 * n
        leaf = I[j]
        record = I[s.OHIST] + (I[I[s.JNCUR] + leaf] & I[s.MASK]) * I[s.STRIDE] + s.RLINKS
        if I[j + 1] >= 0:
            o = record + nl * s.LSIZE + 5 * I[j + 1]
        else:  # a trunk: all that arrived at the link before
            o = record + (-1 - I[j + 1]) * s.LSIZE + s.LY
        x = quartic(F, o, F[I[s.OUN] + leaf])
        if j_acts(I, I[j + 1]):
            x += dropped_then(F, I, leaf, -1 - I[j + 1])
        F[arr + I[j + 2]] += x * F[I[s.OCF] + leaf]


@njit(**_CFG)
def _links(F: Any, I: Any, now: float, oz: int, od: int, want: int) -> None:
    """Backlogs by mode, then the link laws that have states, marks or prices of their own."""
    nl = I[s.NL]
    ob = I[s.OB]
    for l in range(nl):
        y = F[I[s.OARR] + l]
        F[od + ob + l] = y - F[I[s.OCAP] + l] if I[I[s.JMODE] + l] == s.BUSY else 0.0
    if I[s.NGL] == 0:
        return
    ul, lo = I[s.OUL], I[s.OLO]
    members = I[I[s.JGRL] + 8 * (I[s.NGL] - 1) + 1] + I[I[s.JGRL] + 8 * (I[s.NGL] - 1) + 2]
    for m in range(members):
        l = I[I[s.JLMEM] + m]
        c = F[I[s.OCAP] + l]
        F[ul + m] = F[I[s.OARR] + l]
        F[ul + nl + m] = c
        F[ul + 2 * nl + m] = F[oz + ob + l] / c
        F[ul + 3 * nl + m] = F[I[s.OBUF] + l] / c
        F[ul + 4 * nl + m] = now
        F[ul + 5 * nl + m] = F[I[s.OCROSS] + l]
    for g in range(I[s.NGL]):
        j = I[s.JGRL] + 8 * g
        call_kernel(
            I[j], I[j + 2], nl, F, oz + I[j + 3], ul + I[j + 1], I[j + 5], I[s.OSW] + I[j + 6],
            od + I[j + 3],
            lo + I[j + 1], I[s.OGS] + I[j + 6], want,
        )  # fmt: skip
    for m in range(members):
        l = I[I[s.JLMEM] + m]
        F[I[s.OMARK] + l] = F[lo + m]
        F[I[s.OPRICE] + l] = F[lo + nl + m]
        if I[s.NACT] and I[I[s.JACT] + l] >= 0:
            act(F, I, l, lo + 2 * nl + m, od + ob + l)


@njit(**_CFG)
def evaluate(
    F: Any, I: Any, now: float, oz: int, od: int, stage: int, right: int, last: int, want: int
) -> int:
    """Derivatives at `od` of the states at `oz` and time `now`; 1 if the past looked into the step
    in progress.

    `right` takes the right-hand limit at breaking points; `last` is the newest record that may be
    read.
    """
    I[s.NFEV] += 1
    inside = read_nodes(F, I, now, right, last)
    _signals(F, I, now, want)
    group_switches(F, I, oz, od, want)
    _arrivals(F, I, od, stage)
    _links(F, I, now, oz, od, want)
    return inside


# --- links that drop or tell something themselves -------------------------------------------------


@njit(**_CFG)
def act(F: Any, I: Any, link: int, out: int, slope: int) -> None:
    """Let in what is not dropped; keep what the link tells. Its outputs stand at F[out], NL apart,
    `drop` first.
    """
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
    """What each source hears of the routers on its route; when wanted, where one offer passes
    another.
    """
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
