"""Sources whose packets are marked by their length: what a router in byte mode does to packets
of different sizes.
"""

from __future__ import annotations

from typing import Any

from sympy import Expr, Min

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import InvalidInput, LawError
from fluidcc.base.units import to_si
from fluidcc.laws import Source, extended
from fluidcc.laws.parts import hears_ratios
from fluidcc.symbols import RATIOS, Let, packet, positive

__all__ = ["marked_by_bytes"]

mean_size = positive("mean_size")  # [bit/packet]


@explained
def marked_by_bytes(law: Source, mean: Any = "1500 B") -> Source:
    r"""Return a source whose packets are marked in proportion to their length, instead of all
    alike.

    A router marks a packet with a probability. In packet mode that is the same for all packets,
    which is how laws here read the ratio of their path. In byte mode every byte has the same
    chance: a packet of length l is marked at the ratio p l/mean, where p is that of a packet of
    mean length. So long packets of few are marked as often as short ones of many, and TCP flows of
    different packet sizes come closer to each other: by the square-root law their rates go as the
    square root of the length, instead of as the length.

    Parameters
    ----------
    law : Source
        A law that hears losses or marks.
    mean : float or str
        The mean packet length by which the router scales its ratio, such as "1500 B" or a number of
        bits.

    Returns
    -------
    Source
        With the parameter ``mean_size`` [bit/packet].

    Raises
    ------
    InvalidInput
        If `law` is no source law, or `mean` is no number of bits above 0.
    LawError
        If the law hears neither losses nor marks.

    Notes
    -----
    Exact where routers mark. Where they drop, a link still thins all its flows alike, by the ratio
    of a packet of mean length; a run over such a link carries a warning.

    References
    ----------
    The ECF paper, Section 2.2; RFC 7141, Section 2, on byte and packet modes.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.marked_by_bytes(fc.Reno, "1 KB").parameter("mean_size")
    8000.0
    """
    if not isinstance(law, Source):
        raise InvalidInput(f"law is {shown(law)}; give a source law, such as fluidcc.Reno")
    if not hears_ratios(law):
        raise LawError(
            f"{law.name} hears neither losses nor marks, so that nothing can be dealt out by bytes"
        )
    own = {s: Let(rf"{s}_\ell", Min(s * packet / mean_size, 1)) for s in RATIOS}

    def marked(f: Any) -> Expr:
        return f.subs(own)

    return extended(
        law,
        f"{law.name}ByBytes",
        flow={z: marked(g) for z, g in law.flow.items()},
        out={name: marked(g) for name, g in law.out.items()},
        jumps=tuple(j.rewritten(marked) for j in law.jumps),
        ticks=tuple(t.rewritten(marked) for t in law.ticks),
        params={mean_size: to_si(mean, "bit", "mean")},
        units={mean_size: "bit/packet"},
        ref=f"{law.ref}; marked by bytes",
    )
