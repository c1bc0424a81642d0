"""Samples at given times, taken inside the step, so that no polynomial of a single flow is ever stored.

A sample belongs to the step that begins at or before it: at a jump it shows the value after. Flows are integrated
at the clock of their first queue, so that a flow's sample at t is taken at t + access delay. Samples are taken
eight at a time: see `lanes`. Fused steps take their samples of the same parts, with all sizes known.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiling import njit
from ..fluid import slots as s
from .feedback import drops
from .lanes import LANES, places, put, quartic_lanes, state_quartic
from .sample_links import link_lanes
from .sample_paths import sample_path
from .vectors import choose, spread

__all__ = ["rate_lanes", "sample_step", "until"]

_CFG = {"cache": True, "error_model": "numpy", "nogil": True, "fastmath": {"arcp", "contract"}}
_INLINE = {**_CFG, "forceinline": True}


@njit(**_INLINE)
def _straight(F: Any, o: int, stride: int, k: int, u: Any) -> Any:
    """The straight line from node `k` to the next."""
    return F[o + k * stride] + (4.0 * u - k) * (F[o + (k + 1) * stride] - F[o + k * stride])


@njit(**_CFG)
def rate_lanes(F: Any, I: Any, i: int, u: Any) -> Any:
    """Rates of flow `i`, which are none of its states, at some places.

    Lagrange interpolation through values at u = 0, 1/4, 1/2, 3/4, 1, less the first, so that what is constant stays so
    to the last bit; straight lines where that falls below 0: no value is, so that only what the quartic misses between
    them makes it negative.
    """
    o, stride = I[s.ORN] + i, I[s.NF]
    if not I[s.NODES]:
        return spread(F[o], LANES)
    a, b, c, d, e, first = u, u - 0.25, u - 0.5, u - 0.75, u - 1.0, F[o]
    v = first - (F[o + stride] - first) * a * c * d * e * (128.0 / 3.0)
    v = v + (F[o + 2 * stride] - first) * a * b * d * e * 64.0
    v = v - (F[o + 3 * stride] - first) * a * b * c * e * (128.0 / 3.0)
    v = v + (F[o + 4 * stride] - first) * a * b * c * d * (32.0 / 3.0)
    early = choose(u < 0.25, _straight(F, o, stride, 0, u), _straight(F, o, stride, 1, u))
    late = choose(u < 0.75, _straight(F, o, stride, 2, u), _straight(F, o, stride, 3, u))
    return choose(v >= 0.0, v, choose(u < 0.5, early, late))


@njit(**_CFG)
def _fill(F: Any, I: Any, quartic: int, target: int, first: int, end: int, shift: float) -> None:
    """Samples number `first` to `end` of a quartic of the step, into the row at `target`."""
    start, inverse, ts = F[s.T] - shift, 1.0 / F[s.H], I[s.OTS]
    for j in range(first, end, LANES):
        put(F, target + j, quartic_lanes(F, quartic, 1, places(F, ts + j, start, inverse)))


@njit(**_CFG)
def _flow_samples(F: Any, I: Any, i: int, first: int, end: int, shift: float) -> None:
    """States and rate of a flow."""
    nf, out, size = I[s.NF], I[s.OOUT], I[s.NSAMP] + s.PAD
    states = out + (nf + s.SCLASSROWS * I[s.NC] + s.SLINKROWS * I[s.NL]) * size
    off, step, rate = I[I[s.JFSTATE] + i], I[I[s.JFSTRIDE] + i], I[I[s.JRATE] + i]
    target, on = out + i * size, I[I[s.JON] + i] != s.OFF
    for n in range(off, off + I[I[s.JFN] + i] * step, step):
        quartic = state_quartic(F, I, n)
        _fill(F, I, quartic, states + n * size, first, end, shift)
        if n == rate and on:
            _fill(F, I, quartic, target, first, end, shift)
    if on and rate >= 0:
        return
    start, inverse, ts = F[s.T] - shift, 1.0 / F[s.H], I[s.OTS]
    for j in range(first, end, LANES):
        put(F, target + j, choose(on, rate_lanes(F, I, i, places(F, ts + j, start, inverse)), 0.0))


@njit(**_CFG)
def _class_samples(F: Any, I: Any, k: int, first: int, end: int, shift: float) -> None:
    """Samples number `first` to `end` of every flow of class `k`, and of what they share."""
    sample_path(F, I, k, first, end, shift)
    for m in range(I[I[s.JCFLOW] + k], I[I[s.JCFLOW] + k + 1]):
        _flow_samples(F, I, I[I[s.JCFLOWV] + m], first, end, shift)


@njit(**_CFG)
def _link_samples(F: Any, I: Any, first: int, end: int) -> None:
    """Samples number `first` to `end` of all links."""
    size, nl, ts, start, inverse = I[s.NSAMP] + s.PAD, I[s.NL], I[s.OTS], F[s.T], 1.0 / F[s.H]
    rows = I[s.OOUT] + (I[s.NF] + s.SCLASSROWS * I[s.NC]) * size
    states = rows + s.SLINKROWS * nl * size
    blocks = I[s.OHIST] + (I[s.NREC] & I[s.MASK]) * I[s.STRIDE] + s.RLINKS
    for link in range(nl):
        scheduled, dropping = I[I[s.JSEG] + link + 1] - I[I[s.JSEG] + link] > 1, drops(I, link)
        prices, lossy = I[s.PRICES] > 0, I[s.LOSSY] > 0
        for j in range(first, end, LANES):
            at, o, block = places(F, ts + j, start, inverse), rows + link * size + j, blocks + link * s.LSIZE
            link_lanes(F, I, link, block, o, nl * size, at, min(LANES, end - j), scheduled, prices, lossy, dropping)
    for n in range(I[s.OB] + nl, I[s.NS]):
        _fill(F, I, state_quartic(F, I, n), states + n * size, first, end, 0.0)


@njit(**_CFG)
def until(F: Any, I: Any, first: int, end: float) -> int:
    """Number of the first sample at or after `end`."""
    size, ts, j = I[s.NSAMP], I[s.OTS], first
    while j < size and F[ts + j] < end:
        j += 1
    return j


@njit(**_CFG)
def sample_step(F: Any, I: Any, final: bool) -> None:
    """Take every sample inside the accepted step; `final` includes its end."""
    end = np.inf if final else F[s.T] + F[s.H]
    for k in range(I[s.NC]):
        shift, first = F[I[s.OACC] + I[I[s.JCFLOWV] + I[I[s.JCFLOW] + k]]], I[I[s.JCSAMP] + k]
        j = until(F, I, first, end - shift)
        if j > first:
            _class_samples(F, I, k, first, j, shift)
            I[I[s.JCSAMP] + k] = j
    first = I[I[s.JLSAMP]]
    j = until(F, I, first, end)
    if j > first:
        _link_samples(F, I, first, j)
        I[I[s.JLSAMP]] = j
