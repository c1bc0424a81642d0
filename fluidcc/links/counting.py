"""Routers that count packets instead of bits, where packets are not of one size."""

from __future__ import annotations

import math
from typing import Any

from sympy import Expr

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import InvalidInput, LawError
from fluidcc.base.units import to_si
from fluidcc.laws import Link, extended
from fluidcc.symbols import c, positive, unfold, y

__all__ = ["count_packets"]

count = positive("count")  # how much a bit counts [1]


@explained
def count_packets(law: Link, mean: Any, assumed: Any = "1500 B") -> Link:
    r"""Return a router in packet mode: it counts packets, as if each had `assumed` bits, while they
    have `mean`.

    Laws here count bits, which is byte mode. In packet mode thresholds, set points and capacity are
    numbers of packets, and were worked out for packets of one size. Where the packets that come are
    smaller, each of them still counts as one: the queue that the router sees is assumed/mean times
    as long, and so is the rate that it measures. The queue itself holds bits and is served by the
    bit, whatever the router thinks. The mix is taken to be constant.

    Parameters
    ----------
    law : Link
        A router that measures its queue or what comes, such as `fluidcc.RED` or `fluidcc.PAQM`.
    mean : float or str
        Mean size of the packets that come, such as "770 B" or a number of bits.
    assumed : float or str
        Size for which the router's numbers of packets were chosen.

    Returns
    -------
    Link
        With the parameter ``count`` = assumed/mean.

    Raises
    ------
    InvalidInput
        If `law` is no link law, or a size is no number of bits above 0.
    LawError
        If the law measures nothing, or goes by the change of its queue, as `fluidcc.PI` does.

    References
    ----------
    The ECF paper, Section 2.2 ("packets or bytes, depending on the P-AQM is running in byte or
    packet mode").

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.count_packets(fc.RED, mean="750 B").parameter("count")
    2.0
    """
    if not isinstance(law, Link):
        raise InvalidInput(f"law is {shown(law)}; give a link law, such as fluidcc.RED")
    sizes = {
        name: to_si(size, "bit", name) for name, size in (("assumed", assumed), ("mean", mean))
    }
    for name, size in sizes.items():
        if not 0 < size < math.inf:
            raise InvalidInput(f"{name} is {size!r}; give the size of a packet, such as '1500 B'")
    own = [z for z in law.states if z != law.queue]
    if any(law.queue is not None and unfold(law.flow[z]).has(c) for z in own):
        raise LawError(
            f"{law.name} goes by how its queue changes, of which packet mode says nothing; take "
            f"one such as fluidcc.RED"
        )
    seen = {y: count * y} | ({} if law.queue is None else {law.queue: count * law.queue})

    def counted(f: Any) -> Expr:
        return f.subs(seen, simultaneous=True)

    new = extended(
        law,
        f"{law.name}Packets",
        flow={z: counted(f) if z in own else f for z, f in law.flow.items()},
        out={name: f if name == "loss" else counted(f) for name, f in law.out.items()},
        jumps=tuple(j.rewritten(counted) for j in law.jumps),
        ticks=tuple(t.rewritten(counted) for t in law.ticks),
        params={count: sizes["assumed"] / sizes["mean"]},
        units={count: "1"},
        ref=f"{law.ref}; in packet mode",
    )
    if not any(count in unfold(f).free_symbols for _, f in new.expressions()):
        raise LawError(
            f"{law.name} measures neither its queue nor what comes, so that it has no modes; take "
            f"fluidcc.RED"
        )
    return new
