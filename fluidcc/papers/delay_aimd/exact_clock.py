"""The exact ack clock, for closed forms: what is acknowledged is sent at once, and nothing after a
backoff until what is in flight fits the window. It is neutral: every kink comes round for ever.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sympy import Heaviside, Integer, Symbol

from fluidcc.laws import Source
from fluidcc.laws.steady import without
from fluidcc.sources.windows import acked, burst, r, regain, s, spread, trickle, u
from fluidcc.symbols import RTT, unfold


def exactly_clocked(law: Source) -> Source:
    """Return a window-based law with the exact clock in place of its own.

    Parameters
    ----------
    law : Source
        One that `fluidcc.window` has made, with ``clock="ack"``.
    """
    put = {s: acked, u: Integer(0), regain: burst}

    def exact(f: Any) -> Any:
        return unfold(f).xreplace(put)

    def halted(z: Symbol, new: Any) -> Any:
        """Nothing is sent where less than all would be."""
        return Heaviside(new - 1, 1) if z == r and new != 1 else exact(new)

    flow = {z: exact(f) for z, f in law.flow.items() if z != u}
    flow[s] = (acked - s) / RTT  # of which nothing is made; its error is that of what comes round
    return without(
        law, [u, regain, spread], flow=flow, where=(),
        out={name: exact(f) for name, f in law.out.items()},
        params={p: v for p, v in law.params.items() if p not in (spread, regain)} | {trickle: 0},
        jumps=tuple(
            replace(j, reset={z: halted(z, new) for z, new in j.reset.items() if z != u})
            for j in law.jumps
        ),
    )  # fmt: skip
