"""Samples of what a link does, and how much has entered and been lost so far."""

from __future__ import annotations

from typing import Any

from ..compiling import njit
from ..fluid import slots as s
from .breaks import finish
from .feedback import drop_place, drops
from .lanes import LANES, put, quartic_lanes
from .pieces import quartic, share
from .vectors import choose, lanes

__all__ = ["add_totals", "link_lanes"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True, "fastmath": {"arcp", "contract"}}
_INLINE = {**_CFG, "forceinline": True}


@njit(**_INLINE)
def link_lanes(
    F: Any, I: Any, link: int, block: int, o: int, step: int, at: Any, count: int, scheduled: bool, prices: bool,
    lossy: bool, dropping: bool,
) -> None:  # fmt: skip
    """Backlog, delay and rates of a link, at eight places of the step just taken, of which the first `count` matter.

    `block` is the link's in the record. The first sample's place in the first row is `o`, and the next kind's row
    begins `step` later.
    """
    c, mode = F[block + s.LC], F[block + s.LMODE]
    backlog = quartic_lanes(F, block, 1, at)
    backlog = choose(backlog > 0.0, backlog, 0.0)
    put(F, o, backlog)
    if scheduled:
        _waits(F, I, link, block, o, step, lanes(at), count)
    else:
        put(F, o + s.SQDELAY * step, backlog * (1.0 / c))
    arrived = quartic_lanes(F, block + s.LY, 1, at)
    put(F, o + s.SARRIVAL * step, arrived)
    put(F, o + s.SDEPART * step, choose(mode == s.EMPTY, arrived, c))
    if prices:
        put(F, o + s.SLPRICE * step, quartic_lanes(F, block + s.LPRICE, 1, at))
    put(F, o + s.SENTERED * step, F[I[s.OINT] + link] + F[s.H] * _area(F, block + s.LY, at))
    if lossy:
        _loss_lanes(F, I, link, block, lanes(at), o, step)
    if dropping:
        _drop_lanes(F, I, link, lanes(at), o, step)


@njit(**_CFG)
def _waits(F: Any, I: Any, link: int, block: int, o: int, step: int, at: tuple[float, ...], count: int) -> None:
    """Delays of what stands in the queue, where the capacity changes."""
    for i in range(count):
        b, t = F[o + i], F[s.T] + at[i] * F[s.H]
        done = F[block + s.LS0] + at[i] * F[block + s.LCH]
        F[o + s.SQDELAY * step + i] = finish(F, I, link, done + b) - t if b > 0.0 else 0.0


@njit(**_CFG)
def _loss_lanes(F: Any, I: Any, link: int, block: int, at: tuple[float, ...], o: int, step: int) -> None:
    c, before, entered = F[block + s.LC], F[I[s.OINT] + I[s.NL] + link], F[I[s.OINT] + link]
    full, h = F[block + s.LMODE] == s.FULL, F[s.H]
    for i in range(LANES):
        y, new = F[o + s.SARRIVAL * step + i], F[o + s.SENTERED * step + i] - entered
        F[o + s.SLLOSS * step + i] = 1.0 - c / y if full and y > c else 0.0
        F[o + s.SLOST * step + i] = before + (new - at[i] * h * c if full else 0.0)


@njit(**_CFG)
def _drop_lanes(F: Any, I: Any, link: int, at: tuple[float, ...], o: int, step: int) -> None:
    """Add what was dropped before the queue to what arrived and what was lost."""
    place, h = drop_place(I, link), F[s.H]
    for i in range(LANES):
        rate, total = quartic(F, place, at[i]), h * _area(F, place, at[i])
        let_in = F[o + s.SARRIVAL * step + i]
        kept = share(let_in, rate)
        F[o + s.SARRIVAL * step + i] += rate
        F[o + s.SENTERED * step + i] += total
        F[o + s.SLLOSS * step + i] = 1.0 - kept * (1.0 - F[o + s.SLLOSS * step + i])
        F[o + s.SLOST * step + i] += total


@njit(**_INLINE)
def _area(F: Any, o: int, u: Any) -> Any:
    """Integral from 0 to `u` of the quartic whose coefficients stand at `o`."""
    c, d, e = F[o + 2] * (1.0 / 3.0), F[o + 3] * 0.25, F[o + 4] * 0.2
    return u * (F[o] + u * (F[o + 1] * 0.5 + u * (c + u * (d + u * e))))


@njit(**_INLINE)
def add_totals(F: Any, I: Any, nl: int, dropping: bool) -> None:
    """Add the accepted step to what each of the `nl` links has taken in and lost; `dropping` if any drops."""
    record, h = I[s.OHIST] + (I[s.NREC] & I[s.MASK]) * I[s.STRIDE] + s.RLINKS, F[s.H]
    for link in range(nl):
        block = record + link * s.LSIZE
        entered = h * _area(F, block + s.LY, 1.0)
        F[I[s.OINT] + link] += entered
        if F[block + s.LMODE] == s.FULL:
            F[I[s.OINT] + nl + link] += entered - F[block + s.LCH]
        if dropping and drops(I, link):
            dropped = h * _area(F, drop_place(I, link), 1.0)
            F[I[s.OINT] + link] += dropped
            F[I[s.OINT] + nl + link] += dropped
