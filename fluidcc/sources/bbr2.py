"""BBR, version 2 (tcp_bbr2.c of google/bbr, v2alpha): version 3, `fluidcc.sources.bbr3`, with other
gains and another end of its probes.

Its states, phases and ticks are those of version 3. It goes up until `enough` B R_min are in flight
and R_min is over, where version 3 looks for three round trips without growth; or until too much is
lost, or, after a probe with such a loss, H is in flight. In startup its gain is 2.885, in drain 1
over that, in down 0.75; and no more than twice what fits is in flight as it goes up, too (version
3: 2.25). Both wait for 2 to 3 s or 63 round trips, pause at 5 s, take 2 % for too much, keep 0.7
and leave 0.15 free.

What version 3 leaves out is left out here. Three round trips without growth end a probe here, too:
tcp_bbr2.c waits on where so much is never in flight. Its startup ends for losses at the eighth gap
of a round trip alone, and may have 2.885 of what fits in flight, not 2. Its ECN is off by default:
this is deaf to marks.

Beside one CUBIC on 100 Mbit/s and 40 ms it gets 0.71, 0.61 and 0.34 of the link over buffers of
0.5, 1 and 4 bandwidth-delay products; version 1 has 0.90, 0.85 and 0.29. Over a deep buffer two
whose probes alternate keep such a product in the queue: each finds more than its part when it
probes, cruises at that, and comes to what may be in flight.
"""

from __future__ import annotations

from sympy import Min, Rational

from fluidcc.laws import Jump, extended
from fluidcc.sources.bbr1 import T_n, few, high, phase
from fluidcc.sources.bbr3 import (
    DOWN,
    UP,
    B,
    BBRv3,
    G,
    R_min,
    T,
    V,
    b,
    cap_up,
    down,
    drain,
    k,
    m,
)  # fmt: skip
from fluidcc.sources.windows import F
from fluidcc.symbols import positive

__all__ = ["BBRv2"]

enough = positive("enough")
_goes_up = Rational(1, 2) - abs(phase - UP)

BBRv2 = extended(
    BBRv3,
    "BBRv2",
    params={high: 2.885, drain: 1 / 2.885, down: 0.75, cap_up: 2, enough: 1.25},
    units={enough: "1"},
    jumps=(
        *BBRv3.jumps,
        Jump(
            when=Min(_goes_up, (F - enough * B * R_min) / few, (T + T_n) / R_min - 1),
            reset={phase: DOWN, T: -T_n, k: 0, V: down * Min(B, b), G: 0, m: 0},
        ),
    ),
    about="BBR version 2: heeds losses, and stops a probe at 1.25 of what fits.",
    meaning={enough: "part of what fits that is in flight where it stops looking for more"},
    ref="tcp_bbr2.c of google/bbr, v2alpha",
)
