"""A link that loses packets at random, before its queue and whatever that does."""

from __future__ import annotations

from functools import lru_cache

from sympy import Expr

from fluidcc.base.errors import LawError
from fluidcc.laws.law import Link, extended
from fluidcc.symbols import nonnegative, plain, y

loss = nonnegative("loss")


def with_loss(law: Link, share: float) -> Link:
    """Return the law with a parameter ``loss``, the share of packets that never reach it.

    Raises
    ------
    LawError
        If the law has no queue, or another parameter of that name.
    """
    return (law if loss in law.params else _losing(law))(loss=share)


@lru_cache(maxsize=256)
def _losing(law: Link) -> Link:
    if law.queue is None:
        raise LawError(
            f"{law.name} has no queue, and loses nothing: give the loss to another link, such as "
            "one of fluidcc.DropTail before it"
        )
    if "loss" in map(plain, law.params):
        raise LawError(f"{law.name} has a parameter 'loss' of its own; set that by the law's call")

    def left(f: Expr) -> Expr:
        return f.subs(y, (1 - loss) * y)

    out = {name: f if name == "loss" else left(f) for name, f in law.out.items()}
    return extended(
        law,
        law.name,
        flow={z: f if z == law.queue else left(f) for z, f in law.flow.items()},
        out=out | {"drop": 1 - (1 - loss) * (1 - out.get("drop", 0))},
        jumps=tuple(j.rewritten(left) for j in law.jumps),
        ticks=tuple(t.rewritten(left) for t in law.ticks),
        params={loss: 0},
        units={loss: "1"},
        limits={loss: 0.99},
        meaning={loss: "share that is lost at random before the queue"},
    )
