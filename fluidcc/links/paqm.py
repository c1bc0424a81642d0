"""P-AQM, the inner loop of the ECF paper, equations (1) to (3): a sampled controller that marks, or
drops.

Every dT the router knows the bits that came, filters their rate and computes the share of packets
that go unmarked,

    u = c/r + K (q0 - q) c/(dT r) if r > c, else c/r,   held within [0, 1],   r <- (1 - a) r + a
    bits/dT.

The formulas of the paper are rebuilt from its prose; K, a and dT of its runs are not printed. The
queue is a delay here, so that q c is what the paper calls q. `PAQM` is the paper's queue for TCP,
which marks, so that only a full buffer drops; `PAQMDrop` is that for UDP: what it does not let in
at the ratio u is lost before the queue.
"""

from __future__ import annotations

from sympy import Heaviside, Max, symbols

from fluidcc.laws import Link, Tick
from fluidcc.links.droptail import DropTail
from fluidcc.links.red import dropping
from fluidcc.symbols import Let, c, y

__all__ = ["PAQM", "PAQMDrop"]

(q,) = DropTail.states
u = symbols("u", nonnegative=True)  # share that goes unmarked [1]
r = symbols("r", nonnegative=True)  # filtered arrival rate [bit/s]
came = symbols("B", nonnegative=True)  # what came since the last tick [bit]
K, a, dT, q0 = symbols("K a dT q_0", positive=True)

_rate = Let("r'", (1 - a) * r + a * came / dT)  # (3)
_buffer = Heaviside(_rate - c, 0) * K * (q0 - q) * c / dT

PAQM = Link(
    name="PAQM",
    flow={**DropTail.flow, u: 0, r: 0, came: y},
    out={**DropTail.out, "mark": 1 - u},
    params={K: 0.3, a: 0.5, dT: 0.02, q0: 0.04},
    units={**DropTail.units, u: "1", r: "bit/s", came: "bit", K: "1", a: "1", dT: "s", q0: "s"},
    lower={**DropTail.lower, u: 0},
    upper={**DropTail.upper, u: 1},
    initial={**DropTail.initial, u: 1, r: 0, came: 0},
    queue=q,
    # (1), and (2) by the bounds; where r < c the share is 1 anyway, also without traffic.
    ticks=(Tick(every=dT, update={r: _rate, u: (c + _buffer) / Max(_rate, c), came: 0}),),
    ref="the ECF paper, equations (1) to (3)",
)

PAQMDrop = dropping(PAQM, "PAQMDrop")
