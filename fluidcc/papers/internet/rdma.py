"""Congestion control of RDMA: DCQCN ('ECN or Delay', CoNEXT 2016), with its defaults."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

from fluidcc.analysis.stability import stability
from fluidcc.links import RampMark
from fluidcc.network.network import Network
from fluidcc.network.topologies import dumbbell
from fluidcc.papers.model import Found, differs_if, reproduced_if
from fluidcc.papers.printed import rising
from fluidcc.sources import DCQCN, dcqcn
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
