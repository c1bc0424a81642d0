"""SCReAM 2 (draft-ietf-ccwg-rfc8298bis-screamv2-01): its cuts, and what it gets of a link."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.links import RampMark
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.model import Found, differs_if, refuted_if, reproduced_if
from fluidcc.sources import Prague, SCReAM
from fluidcc.sources.scream import w_i
from fluidcc.sources.windows import w
from fluidcc.symbols import e, e_b, edot, loss, mark, packet, unfold, x_tau

LONG, SHORT = 0.1, (0.003, 0.006, 0.012, 0.024)  # round trips above and below 25 ms [s]
# It marks from 0.475 ms on, and all beyond twice that, as the native queue of DualPI2.
LINK = {
    "law": RampMark(K_min="0.475 ms", K_max="0.95 ms", p_max=1), "capacity": 100e6,
    "buffer": "50 ms",
}  # fmt: skip


def _a_round_trip(state: Any, before: float, marked: float) -> float:
    """Change in a long round trip in which a window of 100 packets is sent, without a queue."""
    known = {**SCReAM.params, **dict.fromkeys(SCReAM.states, 0)}
    known |= {w: 100, w_i: before, mark: marked}
    known |= {x_tau: 100 / LONG, packet: 1, e: LONG, e_b: 0, edot: 0, loss: 0}
    return LONG * float(unfold(SCReAM.flow[state]).subs(known))


def _resting(laws: tuple[Any, ...], trips: Any) -> tuple[Any, Any]:
    """Rates [bit/s], and packets of each flow that are marked in its round trip."""
    rest = equilibrium(dumbbell(list(laws), LINK, rtt=trips))
    rates, trip = rest.rate.values, np.array(trips) + float(rest.queueing_delay[0])
    return rates, rates / 8000 * trip * float(rest.mark[0])


def scream_once_a_round_trip() -> Found:
    cuts = _a_round_trip(w_i, 90, marked=1) / 10
    return refuted_if(cuts > 1, cuts=cuts)


def scream_slowest_growth() -> Found:
    grown = _a_round_trip(w, 100, marked=0)
    return differs_if(abs(grown / 0.1 - 1) > 0.05, grown=grown)


def scream_two_marks() -> Found:
    few, many = (_resting((SCReAM,), trip)[1][0] for trip in ([SHORT[-2]], [LONG]))
    prague = _resting((Prague,), [LONG])[1][0]
    return differs_if(many < 1.6, few=few, many=many, prague=prague)


def scream_round_trips() -> Found:
    ratio, prague = (
        (rates := _resting((law,) * 4, SHORT)[0]).max() / rates.min() for law in (SCReAM, Prague)
    )
    return differs_if(ratio > 1.5, ratio=ratio, prague=prague)


def scream_beside_prague() -> Found:
    rates = [_resting((SCReAM, Prague), trip)[0] for trip in (SHORT[-2], SHORT[-1], LONG)]
    shares = [x / (x + y) for x, y in rates]
    return reproduced_if(max(shares) < 0.5, least=min(shares), most=max(shares))
