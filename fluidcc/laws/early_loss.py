"""Links that lose packets before their queue: at random, or in place of marks."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from sympy import Expr, Heaviside, Symbol

from fluidcc.base.errors import LawError, Unsupported
from fluidcc.laws.law import Link, extended
from fluidcc.symbols import c, no_ecn, nonnegative, plain, symbols_of, unfold, y

loss = nonnegative("loss")


def dropping(law: Link, name: str) -> Link:
    """Return the same law for packets that cannot be marked: what it would mark is dropped before
    the queue, so that a controller that hears of the queue's change hears of what is left.
    """
    out = {"drop" if key == "mark" else key: f for key, f in law.out.items()}
    flow = _left(law, law.out["mark"])
    return replace(
        law, name=name, flow=flow, out=out, about=f"{law.name} that drops in place of marking."
    )


@lru_cache(maxsize=256)
def sparing(law: Link, some: bool, of: str) -> Link:
    """Return a marking law for packets of which none can be marked, or `some`, which it marks as
    before; `of` names whose law it is.

    Raises
    ------
    Unsupported
        If it has no queue, drops as well, or marks by a step of its queue.
    """
    steps = unfold(law.out["mark"]).atoms(Heaviside)
    why = {
        "has no queue": law.queue is None,
        "marks and drops": "drop" in law.out,
        "steps by its queue": any(law.queue in step.free_symbols for step in steps),
    }
    for what in (what for what, holds in why.items() if holds):
        raise Unsupported(
            f"{of} ({law.name}) {what}, so it takes no flows with ecn=False: take a law such as "
            "fluidcc.RED, and for random loss one of fluidcc.DropTail before it"
        )
    if not some:
        return dropping(law, law.name)
    lost = no_ecn * law.out["mark"]
    return replace(law, flow=_left(law, lost), out={**law.out, "drop": lost}, claims={})


def refuse_arrivals(law: Link, of: str) -> None:
    """Refuse a marking law of which some flows cannot be marked, where it could not rest on what is
    left of these: if it goes by what arrives, other than by its excess over the capacity.
    """
    sparing(law, True, of)
    told = [f for z, f in law.flow.items() if z != law.queue] + [law.out["mark"]]
    if any(y in symbols_of(f.xreplace({y - c: 0})) for f in told):
        raise Unsupported(
            f"{of} ({law.name}) marks data of some flows and drops of those with ecn=False, and "
            "goes by what arrives in all, of which neither equilibria nor linearisations are made: "
            "simulate it, or give all its flows ecn=False"
        )


def _left(law: Link, lost: Expr) -> dict[Symbol, Expr]:
    """The flow of a law whose own states hear of what is left when a share is lost."""
    left = {y - c: y * (1 - lost) - c}
    return {z: f if z == law.queue else f.xreplace(left) for z, f in law.flow.items()}


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
