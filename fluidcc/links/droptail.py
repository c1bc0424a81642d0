"""Drop-tail FIFO queue, as a queueing delay: equations (2) and (4) of the LDCC paper."""

from __future__ import annotations

from sympy import Eq

from fluidcc.laws import Link
from fluidcc.symbols import c, nonnegative, q_max, y

__all__ = ["DropTail"]

q = nonnegative("q")  # queueing delay [s]

DropTail = Link(
    name="DropTail",
    flow={q: (y - c) / c},  # (2)
    out={"loss": (y - c) / y},  # (4), while the buffer is full and y > c
    units={q: "s"},
    lower={q: 0},
    upper={q: q_max},
    initial={q: 0},
    queue=q,
    claims={"(4) what is let in fills the link": Eq(y * (1 - (y - c) / y), c)},
    ref="LDCC, equations (2) and (4)",
    about="First in, first out; what a full buffer cannot take is lost.",
    meaning={q: "queueing delay"},
)
