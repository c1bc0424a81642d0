"""The smallest round trip of the last so many seconds, kept as protocols keep it: by the
smallest of each period.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sympy import Max, Min, Symbol, symbols

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import InvalidInput, LawError
from fluidcc.laws import Jump, Source, Tick
from fluidcc.sources._windows import delta, low
from fluidcc.symbols import RTT

__all__ = ["with_windowed_minimum"]

bucket = symbols("bucket", positive=True)  # length of a period [s]


@explained
def with_windowed_minimum(law: Source, buckets: int = 10, *, name: str | None = None) -> Source:
    """Return the law with the smallest round trip of a window, in place of the smallest of all
    times.

    The window is the present period, of ``bucket`` seconds, and the ``buckets - 1`` before it: RFC
    6817 has ten of a minute. The smallest round trip of each is kept, so that the minimum over the
    window is exact.

    Parameters
    ----------
    law : Source
        A window-based law that compares its round trip with the smallest one seen, such as
        `LEDBAT`, `FAST`, `Vegas`, `HTCP` or `DelayAIMD`.
    buckets : int
        How many periods the window has, at least 2.
    name : str, optional
        Name of the result.

    Returns
    -------
    Source
        With the parameter ``bucket`` [s], 60 by default, and the states ``low_1``, ``low_2``, ...
        [s], the smallest round trips of the last whole period, the one before, ...: 1e6 where there
        was none. The law's own state is that of the present period.

    Raises
    ------
    InvalidInput
        If `buckets` is not a whole number of at least 2.
    LawError
        If the law keeps no smallest round trip, or does more with it than to compare.

    Notes
    -----
    A window that slides on with every instant would need every round trip below all later ones, a
    list that grows and shrinks; with periods the window is up to one period longer than ``buckets -
    1`` of them.

    Examples
    --------
    >>> import fluidcc as fc
    >>> law = fc.with_windowed_minimum(fc.LEDBAT, buckets=2)(bucket=30)
    >>> [str(z) for z in law.states]
    ['w', 'delta', 'paced', 'F', 'low_1']
    """
    if not isinstance(law, Source) or not {low, delta} & set(law.flow):
        raise LawError(
            f"{law.name if isinstance(law, Source) else shown(law)} keeps no smallest round trip; "
            f"FAST, Vegas, LEDBAT, "
            "HTCP and DelayAIMD do"
        )
    if isinstance(buckets, bool) or not isinstance(buckets, int) or buckets < 2:
        raise InvalidInput(
            f"buckets is {shown(buckets)}; give a whole number of periods, at least 2"
        )
    older = symbols(f"low_1:{buckets}", positive=True)
    if older[0] in law.flow:
        raise LawError(f"{law.name} has a window already")
    own, now, fresh, of_window = _own(law, older)
    put = {own: of_window}
    flow = {z: f if z == own else f.subs(put) for z, f in law.flow.items()} | dict.fromkeys(
        older, 0
    )
    update = {own: fresh, older[0]: now, **dict(zip(older[1:], older, strict=False))}
    return replace(
        law,
        name=name or f"Windowed{law.name}",
        flow=flow,
        out={k: f.subs(put) for k, f in law.out.items()},
        jumps=tuple(_jump(j, own, put) for j in law.jumps),
        ticks=(*law.ticks, Tick(every=bucket, update=update)),
        params={**law.params, bucket: 60},
        units={**law.units, bucket: "s", **dict.fromkeys(older, "s")},
        initial={**law.initial, **dict.fromkeys(older, 1e6)},
        claims={},
        utility=None,
    )  # fmt: skip


def _own(law: Source, older: tuple[Symbol, ...]) -> tuple[Symbol, Any, Any, Any]:
    """Return the law's own state; the smallest round trip that it stands for, its value anew, and
    what it is over a window.
    """
    if low in law.flow:
        return low, low, RTT, Min(low, *older)
    if any(delta in jump.reset for jump in law.jumps):
        raise LawError(
            f"{law.name} corrects its propagation delay, which a window of round trips seen would "
            f"not keep"
        )
    return delta, RTT - delta, 0, Max(delta, *(RTT - z for z in older))


def _jump(jump: Jump, own: Symbol, put: dict[Symbol, Any]) -> Jump:
    """Return the jump by what the window knows; one that sets the present period's minimum stays as
    it is.
    """
    if own in jump.reset:
        return jump
    return replace(
        jump, when=jump.when.subs(put), reset={z: f.subs(put) for z, f in jump.reset.items()}
    )
