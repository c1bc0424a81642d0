"""What a window-based source takes for the propagation delay of its path: the smallest round trip
of the last so many seconds, kept as protocols keep it, by the smallest of each period; and, for a
newcomer, rate reduction and the estimator of Section IV of the persistent-congestion paper.
"""

from __future__ import annotations

from typing import Any

from sympy import Heaviside, Max, Min, Symbol, symbols

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import InvalidInput, LawError
from fluidcc.laws import Jump, Source, Tick, extended
from fluidcc.sources._windows import F, delta, low, w
from fluidcc.sources.dca import alpha
from fluidcc.symbols import RTT, Let, nonnegative, packet, positive

__all__ = ["with_estimator", "with_pause", "with_windowed_minimum"]


bucket = positive("bucket")  # length of a period [s]


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
            "FAST, Vegas, LEDBAT, HTCP and DelayAIMD do"
        )
    if isinstance(buckets, bool) or not isinstance(buckets, int) or buckets < 2:
        raise InvalidInput(
            f"buckets is {shown(buckets)}; give a whole number of periods, at least 2"
        )
    older = positive(f"low_1:{buckets}")
    if older[0] in law.flow:
        raise LawError(f"{law.name} has a window already")
    own, now, fresh, of_window = _own(law, older)
    put = {own: of_window}
    flow = {z: f.subs(put) for z, f in law.flow.items() if z != own}
    update = {own: fresh, older[0]: now, **dict(zip(older[1:], older, strict=False))}
    return extended(
        law,
        name or f"Windowed{law.name}",
        flow={**flow, **dict.fromkeys(older, 0)},
        out={k: f.subs(put) for k, f in law.out.items()},
        # What sets the present period's minimum stays as it is.
        jumps=tuple(j if own in j.reset else j.rewritten(lambda f: f.subs(put)) for j in law.jumps),
        ticks=(*law.ticks, Tick(every=bucket, update=update)),
        params={bucket: 60},
        units=dict.fromkeys((bucket, *older), "s"),
        initial=dict.fromkeys(older, 1e6),
        utility=None,
    )


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


# --- a newcomer's plan by its age, the time since it started: outside of it the law is its own ----


age = nonnegative("age")  # time since the start [s]
wait, pause, depth, rounds = positive("wait pause depth rounds")
theta = symbols("theta", real=True, nonzero=True)
# Just before the probe: round trip [s], rate [packet/s], and what is taken for the propagation
# delay [s].
r0, x0, d_hat = nonnegative("r_0 x_0 d_hat")

_EVER = 1e9 * RTT  # once in a life


def _planned(
    law: Source, name: str, rate: Any, asleep: Any, units: dict[Symbol, str],
    flow: dict[Symbol, Any], jumps: tuple[Jump, ...] = (), **more: Any,
) -> Source:  # fmt: skip
    """Return the law with another rate, and with its window held while `asleep` is 1."""
    if delta not in law.flow or w not in law.flow:
        raise LawError(
            f"{law.name} has no window that follows the queueing delay it sees; FAST, Vegas and "
            f"LEDBAT have"
        )
    held = {w: law.flow[w] * (1 - asleep), age: 1, **flow}
    if F in law.flow:
        held[F] = law.flow[F] + (rate - law.out["rate"]) / packet
    return extended(
        law, name, flow=held, out={"rate": rate}, units={age: "s", **units},
        initial=dict.fromkeys((age, *flow), 0), jumps=(*law.jumps, *jumps), utility=None, **more,
    )  # fmt: skip


def _for(time: Any) -> Any:
    """1 from the age `wait` on, for so long."""
    return Heaviside(age - wait, 0) * Heaviside(wait + time - age, 0)


def _source(law: Source) -> Source:
    if not isinstance(law, Source):
        raise InvalidInput(f"law is {shown(law)}; give a source law, such as fluidcc.FAST")
    return law


@explained
def with_pause(law: Source, name: str | None = None) -> Source:
    """Return the law with rate reduction: `wait` seconds after its start the flow sends only 1 -
    `depth` of its rate, for `pause` seconds.

    Parameters
    ----------
    law : Source
        A window-based law that sees a queueing delay, such as `FAST`.
    name : str, optional
        Name of the result.

    Returns
    -------
    Source
        With the parameters ``wait`` [s], ``pause`` [s] and ``depth`` [1] (below 1, if only a
        little: a flow that sends nothing learns nothing). Its window stands still until news of the
        pause has come back.

    Raises
    ------
    InvalidInput
        If it is no source law.
    LawError
        If the law has no such window.

    Examples
    --------
    >>> import fluidcc as fc
    >>> law = fc.with_pause(fc.FAST)(wait="2 s", pause="1 s", depth=0.9)
    >>> [str(p) for p in law.params][-3:]
    ['wait', 'pause', 'depth']
    """
    _source(law)
    paused, asleep = _for(pause), _for(pause + RTT)
    # Not a part of the law's own rate: with little in flight that would try to fill the window
    # again.
    rate = law.out["rate"] * (1 - paused) + packet * (1 - depth) * w / RTT * paused
    return _planned(
        law, name or f"{law.name}Pause", rate, asleep,
        {wait: "s", pause: "s", depth: "1"}, {}, params={wait: 5, pause: 0.1, depth: 0.99},
        where=(*law.where, depth < 1),
    )  # fmt: skip


@explained
def with_estimator(law: Source, name: str | None = None) -> Source:
    """Return the law with the estimator: for t_eps the flow sends 1 - theta of its rate, and infers
    the queue that others hold.

    Parameters
    ----------
    law : Source
        A window-based law with the parameter alpha that sees a queueing delay: `FAST` or `Vegas`.
    name : str, optional
        Name of the result.

    Returns
    -------
    Source
        With the parameters ``wait`` [s], the age at which it probes, ``theta`` [1], below 1 and
        negative by default so that the queue cannot empty, and ``rounds``, t_eps in round trips
        [1]. When the round trip of what it sent last in the probe is known, its queueing delay is
        corrected by (9). Its window stands still from the beginning of the probe to then.

    Raises
    ------
    InvalidInput
        If it is no source law.
    LawError
        If the law has no such window, or no alpha.

    Examples
    --------
    >>> import fluidcc as fc
    >>> [str(z) for z in fc.with_estimator(fc.FAST).states]
    ['w', 'delta', 'paced', 'F', 'age', 'r_0', 'x_0', 'd_hat']
    """
    if alpha not in _source(law).params:
        raise LawError(
            f"{law.name} has no alpha, the packets that each flow keeps in the queue; FAST and "
            f"Vegas have"
        )
    length = rounds * r0
    probing, asleep = _for(length), _for(length + RTT)
    share = Let("a", theta * length / (r0 - RTT))  # capacity over own rate, from (8)
    return _planned(
        law, name or f"{law.name}Estimator",
        law.out["rate"] * (1 - probing) + packet * (1 - theta) * x0 * probing, asleep,
        {wait: "s", theta: "1", rounds: "1", r0: "s", x0: "packet/s", d_hat: "s"},
        {r0: 0, x0: 0, d_hat: 0}, params={wait: 5, theta: -0.5, rounds: 1},
        where=(*law.where, theta < 1),
        jumps=(
            Jump(when=age - wait, reset={r0: RTT, x0: w / RTT, d_hat: RTT - delta},
            refractory=_EVER),
            # (9): the others hold n alpha = a (a - 1) alpha of the queue, and C = a x0. It is the
            # estimate before the probe that this corrects: with theta > 0 shorter round trips may
            # have been seen since. Those count too.
            Jump(when=age - RTT - wait - length,
                 reset={delta: Max(delta, RTT - d_hat + Max(share - 1, 0) * alpha / x0)},
                 refractory=_EVER),
        ),
    )  # fmt: skip
