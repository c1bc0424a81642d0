"""Congestion control of RDMA: DCQCN and TIMELY ('ECN or Delay', CoNEXT 2016), with their
defaults.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import brentq
from sympy import Eq, Le, Lt

from fluidcc.analysis.stability import stability
from fluidcc.base.errors import NoEquilibrium
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.links import RampMark
from fluidcc.network.network import Network
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.model import (
    Found,
    differs_if,
    law_proof,
    proof,
    proved,
    refuted_if,
    reproduced_if,
)
from fluidcc.papers.printed import named, rising
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import DCQCN, TIMELY, PatchedTIMELY, dcqcn, timely
from fluidcc.symbols import mark, numpy_function, packet, unfold, x_tau

RATE, BITS = 40e9, 8000  # of the link [bit/s]; a packet
_SIDES = dcqcn.a**2 * dcqcn.heard / ((dcqcn.b + dcqcn.d) * (dcqcn.c + dcqcn.e))
_SIDES /= dcqcn.tau**2 * dcqcn.R_AI / packet * dcqcn.sent
_balance = numpy_function([mark, x_tau], unfold(_SIDES).subs({**DCQCN.params, packet: BITS}))


def _resting(flows: float, capacity: float = RATE) -> float:
    """The mark ratio at which flows of one rate rest."""
    near = _formula(flows, capacity)
    return float(brentq(lambda p: _balance(p, capacity / flows) - 1, near / 3, near, xtol=1e-16))


def _formula(flows: float, capacity: float = RATE) -> float:
    grown, B, T, tau = (DCQCN.parameter(name) for name in ("R_AI", "B", "T", "tau_alpha"))
    rate = capacity / BITS
    few = grown / BITS * flows**2 / (tau * rate**2)
    return float(np.cbrt(few * (1 / B + flows / (T * rate)) ** 2))


def fixed_point() -> Found:
    ratios, rates = np.geomspace(1e-6, 0.1, 300), np.geomspace(1e6, 1e13, 700)
    one = all(rising(_balance(ratios, RATE / n)) for n in (2, 10, 64, 100))
    falls = (np.diff(_balance(p, rates)) < 0 for p in np.geomspace(1e-4, 0.01, 20))
    turn = min(rates[np.argmax(some)] for some in falls if some.any())
    return reproduced_if(one and turn > 1e12, turn=turn / 1e12)


def fixed_point_formula() -> Found:
    excess, small = _formula(10) / _resting(10) - 1, _formula(1, 4e12) / _resting(1, 4e12) - 1
    edge = float(brentq(lambda n: _resting(n) - 0.01, 2, 60))
    return differs_if(excess > 0.05 > small, excess=excess, small=small, edge=edge)


def _loop(flows: int, queued: bool) -> Network:
    law = RampMark(K_min=1e-6, K_max=3.901e-3, p_max=1)
    if not queued:
        law = replace(law, name="Egress", queue=None, out={"mark": law.out["mark"]})
    return dumbbell([DCQCN] * flows, {"law": law, "capacity": RATE}, rtt=85e-6)


def few_and_many() -> Found:
    two, ten, many = (stability(_loop(n, queued=False)) for n in (2, 10, 64))
    late = [stability(_loop(n, queued=True)).stable for n in (2, 10, 64)]
    return reproduced_if(
        two.stable and many.stable and not (ten.stable or any(late)),
        two=two.margins.gain, many=many.margins.gain,
    )  # fmt: skip


# --- TIMELY ---------------------------------------------------------------------------------------

SLOW, LOOP = 1e10, 1e-4  # a link [bit/s]; a round trip without a queue [s]


def timely_rests_nowhere() -> Found:
    where = []
    for flows in (2, 10):
        try:
            equilibrium(dumbbell([TIMELY] * flows, {"capacity": SLOW}, rtt=LOOP))
        except NoEquilibrium:
            where.append(flows)
    return reproduced_if(where == [2, 10])


def timely_rests_anywhere() -> Found:
    """What it does between its thresholds if it does not grow in a queue that stands still."""
    (tick,) = TIMELY.ticks
    R, still = timely.R, {timely.g: 0, timely.d: 0, timely.q: 2 * TIMELY.params[timely.T_low]}
    printed = unfold(tick.update[R]).subs(TIMELY.params).subs(still)
    below = unfold(tick.update[R]).replace(Le, Lt).subs(TIMELY.params).subs(still)
    grows, stays = (proof(Eq(new, old)) for new, old in (
        (printed, R + TIMELY.params[timely.delta]), (below, R)
    ))  # fmt: skip
    return proved(grows, stays)


def patched_rest() -> Found:
    return proved(law_proof(PatchedTIMELY, "it rests at T_low (1 + delta/(beta R))"))


def patched_converges() -> Found:
    flows = (2, 3, 10, 19, 20)
    printed, coded = ([_left(n, slope) for n in flows] for slope in (2, 0.5))
    stays = [n for n, left in zip(flows, printed, strict=True) if left > 0.9]
    left = named("{}", flows, printed)
    return refuted_if(stays == [2, 20] and coded[0] > 1, left=left, coded=coded[0])


def _left(flows: int, slope: float) -> float:
    """What is left of a small deviation of all rates after 200 segments."""
    law = PatchedTIMELY(slope=slope)
    rest = equilibrium(dumbbell([law] * flows, {"capacity": SLOW}, rtt=LOOP)).queueing_delay.item()
    link = {"capacity": SLOW, "initial": {"q": rest}}
    first = {"initial": {"R": SLOW / flows * (1 + 1e-4), "q": rest}}
    net = dumbbell([{"law": law, **first}] * flows, link, rtt=LOOP)
    segment = max(law.parameter("Seg") * flows / SLOW, law.parameter("D_min"))
    run = simulate(net, 400 * segment, rtol=1e-9, t_eval=(np.arange(400) + 0.5) * segment)
    off = abs(run.rate.values[:, 0] * flows / SLOW - 1)
    return float(off[300:].max() / off[50:150].max())
