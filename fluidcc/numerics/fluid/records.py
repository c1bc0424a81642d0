"""Records of the history: quartics of what each link did in a step, from the step's stages and
nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.numerics.layout import at, copy

from ..compiling import njit
from ..fluid import state as s
from ..tableaus import TSIT5
from .past import keep_signals, past_of
from .reads import acted_of, link_of, rate_of, record_of

_INLINE: dict[str, Any] = {"fastmath": {"arcp", "contract"}, "forceinline": True}
Stages = tuple[float, float, float, float, float, float, float]
Quartic = tuple[float, float, float, float, float]  # coefficients of 1, u, ..., u^4
#: what each stage contributes to u, u^2, u^3, u^4 of the dense output
_P = tuple(tuple(map(float, row)) for row in TSIT5.P)
#: rows: the coefficients of u, u^2, u^3, u^4 of the quartic through values at u = 0, 1/4, 1/2, 3/4,
#: 1, by the last four less the first, so that what is constant stays so to the last bit
_FIT = tuple(
    tuple(map(float, row))
    for row in np.linalg.inv(np.vander(np.linspace(0.0, 1.0, 5), 5, increasing=True))[1:, 1:]
)

#: what the stages contribute to the dense output at the inner nodes of a step: (3 nodes, 7 stages)
NODE_WEIGHTS = np.array([TSIT5.P @ [u, u**2, u**3, u**4] for u in (0.25, 0.5, 0.75)])


# --- quartics -------------------------------------------------------------------------------------


@njit(**_INLINE)
def _power(j: int, k: Stages) -> float:
    """The part of the dense output by u^(j + 1)."""
    early = _P[0][j] * k[0] + _P[1][j] * k[1] + _P[2][j] * k[2]
    return early + (_P[3][j] * k[3] + _P[4][j] * k[4] + _P[5][j] * k[5] + _P[6][j] * k[6])


@njit(**_INLINE)
def dense(base: float, h: float, k: Stages) -> Quartic:
    """The dense output of a step of size `h` that begins at `base`, from its seven stages."""
    return base, h * _power(0, k), h * _power(1, k), h * _power(2, k), h * _power(3, k)


@njit(**_INLINE)
def _dense_of(base: float, h: float, k: s.Floats, n: int) -> Quartic:
    """The same for stages that stand `n` apart, from `k` on."""
    return dense(base, h, (k[0], k[n], k[2 * n], k[3 * n], k[4 * n], k[5 * n], k[6 * n]))


@njit()
def state_quartic(run: s.State, n: int) -> Quartic:
    """Return the coefficients of the dense output of state `n` in the step."""
    return _dense_of(run.y[n], run.h, at(run.slopes, n), run.n_states)


@njit(**_INLINE)
def _row(j: int, b: float, c: float, d: float, e: float) -> float:
    return _FIT[j][0] * b + _FIT[j][1] * c + _FIT[j][2] * d + _FIT[j][3] * e


@njit(**_INLINE)
def fitted(a: float, b: float, c: float, d: float, e: float) -> Quartic:
    """The quartic through five values at equal distances."""
    b, c, d, e = b - a, c - a, d - a, e - a
    return a, _row(0, b, c, d, e), _row(1, b, c, d, e), _row(2, b, c, d, e), _row(3, b, c, d, e)


@njit(**_INLINE)
def fitted_of(o: s.Floats, n: int) -> Quartic:
    """The same for values that stand `n` apart, from `o` on."""
    return fitted(o[0], o[n], o[2 * n], o[3 * n], o[4 * n])


@njit(**_INLINE)
def put(target: s.Floats, five: Quartic) -> None:
    """Write a quartic down."""
    target[0], target[1], target[2], target[3], target[4] = five


@njit(**_INLINE)
def _add(target: s.Floats, five: Quartic) -> None:
    for j in range(5):
        target[j] += five[j]


# --- records --------------------------------------------------------------------------------------


@njit()
def keep_node(run: s.State, node: int) -> None:
    """Remember rates, arrivals, marks and prices at one of the five nodes."""
    nf, nl = run.n_flows, run.n_links
    acting = s.XSIZE * run.n_acting
    copy(at(run.node_rate, node * nf), run.rate, nf)
    copy(at(run.node_arrival, node * nl), run.arrival, nl)
    copy(at(run.node_mark, node * nl), run.mark, nl)
    copy(at(run.node_price, node * nl), run.price, nl)
    copy(at(run.node_acted, node * acting), run.acted, acting)
    keep_signals(run, node)


@njit(forceinline=True)
def _head(run: s.State, r: s.Floats, h: float, nl: int) -> None:
    """All but the quartics, of `nl` links."""
    r[s.RT0] = run.t
    r[s.RH] = h
    r[s.RINVH] = 1.0 / h
    for l in range(nl):
        b = link_of(r, l)
        b[s.LCH] = run.capacity[l] * h
        b[s.LS0] = run.work_done[l]
        b[s.LC] = run.capacity[l]
        b[s.LMODE] = run.mode[l]


@njit()
def linear_record(run: s.State, h: float) -> None:
    """The record at the ring's next place, from the first stage only."""
    r = record_of(run, run.n_records)
    _head(run, r, h, run.n_links)
    for q in range(run.n_quartics):
        put(at(r, run.quartic_place[q]), (0.0, 0.0, 0.0, 0.0, 0.0))
    for l in range(run.n_links):
        b, state = link_of(r, l), run.first_backlog + l
        b[0] = run.y[state]
        b[1] = h * run.slopes[state]
        b[s.LY] = run.node_arrival[l]
        b[s.LMARK] = run.node_mark[l]
        b[s.LPRICE] = run.node_price[l]
    acted = acted_of(run, r, 0)
    for k in range(s.XSIZE * run.n_acting):
        acted[5 * k] = run.node_acted[k]
    for i in range(run.n_flows):
        g, own = run.feeds[i], run.own_rate[i]
        if g >= 0:
            rate_of(run, r, g)[0] += run.node_rate[i]
        if own >= 0:
            rate_of(run, r, run.n_aggregates + own)[0] += run.node_rate[i]
    for slot in range(run.n_pasts):
        o, source = past_of(run, r, slot), run.past_source[slot]
        if source >= 0:
            o[0], o[1] = run.y[source], h * run.slopes[source]
        else:
            o[0] = run.node_past[slot]


@njit(forceinline=True)
def carry_on(run: s.State, before: s.Floats, r: s.Floats, nq: int, nl: int) -> None:
    """The record at `r`, for the step from now: the quartics of that at `before`, beyond its end.

    Their cubes and fourth powers are left out: they magnify what is left of errors.
    """
    _head(run, r, run.h, nl)
    ratio = run.h * before[s.RINVH]
    square = ratio * ratio
    for q in range(nq):
        o = run.quartic_place[q]
        a, b = at(before, o), at(r, o)
        k0, k1, k2, k3, k4 = a[0], a[1], a[2], a[3], a[4]
        b[0] = (k0 + k1) + (k2 + k3) + k4
        b[1] = ratio * ((k1 + 2.0 * k2) + (3.0 * k3 + 4.0 * k4))
        b[2] = square * (k2 + 3.0 * k3 + 6.0 * k4)
        b[3] = b[4] = 0.0


@njit()
def write_record(run: s.State, h: float) -> None:
    """The quartics of the step's record at the ring's next place; the rest stands there from its
    guess.
    """
    nl = run.n_links
    r = record_of(run, run.n_records)
    for l in range(nl):
        b = link_of(r, l)
        put(b, state_quartic(run, run.first_backlog + l))
        if not run.refit:
            slopes = at(run.arrival_slopes, l)
            put(at(b, s.LY), _dense_of(run.node_arrival[l], h, slopes, nl))
            continue
        put(at(b, s.LY), fitted_of(at(run.node_arrival, l), nl))
        if run.marking:
            put(at(b, s.LMARK), fitted_of(at(run.node_mark, l), nl))
        if run.pricing:
            put(at(b, s.LPRICE), fitted_of(at(run.node_price, l), nl))
    size, acted = s.XSIZE * run.n_acting, acted_of(run, r, 0)
    for k in range(size):
        put(at(acted, 5 * k), fitted_of(at(run.node_acted, k), size))
    for slot in range(run.n_aggregates + run.n_own_rates):
        put(rate_of(run, r, slot), (0.0, 0.0, 0.0, 0.0, 0.0))
    for i in range(run.n_flows):
        g, own = run.feeds[i], run.own_rate[i]
        if g >= 0:
            _add(rate_of(run, r, g), _rate_quartic(run, i))
        if own >= 0:
            _add(rate_of(run, r, run.n_aggregates + own), _rate_quartic(run, i))
    for slot in range(run.n_pasts):
        source = run.past_source[slot]
        if source >= 0:
            put(past_of(run, r, slot), state_quartic(run, source))
        else:
            put(past_of(run, r, slot), fitted_of(at(run.node_past, slot), run.n_pasts))


@njit()
def _rate_quartic(run: s.State, i: int) -> Quartic:
    """The rate of a flow in the step."""
    if run.refit:
        return fitted_of(at(run.node_rate, i), run.n_flows)
    if run.flow_on[i] != s.ON or run.rate_state[i] < 0:
        return run.node_rate[i], 0.0, 0.0, 0.0, 0.0
    return state_quartic(run, run.rate_state[i])
