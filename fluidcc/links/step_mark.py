"""Marks by the queue as it is: beyond a threshold every packet (DCTCP, Alizadeh and others, SIGCOMM
2010, Section 3.1; the native queue of DualPI2, RFC 9332), or RED without an average (DCQCN).
"""

from __future__ import annotations

from sympy import Heaviside, Max, Min

from fluidcc.laws import extended
from fluidcc.links.droptail import DropTail
from fluidcc.symbols import positive

__all__ = ["RampMark", "StepMark"]

(q,) = DropTail.states
threshold = positive("K")  # queueing delay above which packets are marked [s]
K_min, K_max, p_max = positive("K_min K_max p_max")

StepMark = extended(
    DropTail,
    "StepMark",
    out={"mark": Heaviside(q - threshold, 0)},
    params={threshold: 0.001},
    units={threshold: "s"},
    meaning={threshold: "queueing delay above which packets are marked"},
    about="Packets that find more than a threshold in the queue are marked.",
    ref="Alizadeh and others, SIGCOMM 2010, Section 3.1",
)

# The defaults are those of DCQCN, 5 and 200 kB, at 40 Gbit/s.
RampMark = extended(
    DropTail,
    "RampMark",
    out={
        "mark": p_max * Min(Max((q - K_min) / (K_max - K_min), 0), 1)
        + (1 - p_max) * Heaviside(q - K_max, 0)
    },
    params={K_min: 1e-6, K_max: 4e-5, p_max: 0.01},
    units={K_min: "s", K_max: "s", p_max: "1"},
    limits={p_max: 1},
    where=(K_min < K_max,),
    meaning={
        K_min: "queueing delay at which marks begin",
        K_max: "queueing delay above which every packet is marked",
        p_max: "mark ratio at K_max",
    },
    about="RED by the queue as it is, with a ceiling above which all is marked: DCQCN's switch.",
    ref="Zhu and others, SIGCOMM 2015, Section 3.1",
)
