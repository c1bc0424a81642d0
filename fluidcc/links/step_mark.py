"""A threshold: every packet that finds more than K in the queue is marked, and no other (DCTCP,
Alizadeh and others, SIGCOMM 2010, Section 3.1; the native queue of DualPI2, RFC 9332).
"""

from __future__ import annotations

from sympy import Heaviside

from fluidcc.laws import extended
from fluidcc.links.droptail import DropTail
from fluidcc.symbols import positive

__all__ = ["StepMark"]

(q,) = DropTail.states
threshold = positive("K")  # queueing delay above which packets are marked [s]

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
