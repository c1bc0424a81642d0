"""What a window-based source takes for the propagation delay of its path: the smallest round trip
of the last so many seconds, kept as protocols keep it, by the smallest of each period; and, for a
newcomer, rate reduction and the estimator of Section IV of the persistent-congestion paper.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sympy import Heaviside, Max, Min, Symbol, symbols

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import InvalidInput, LawError
from fluidcc.laws import Jump, Source, Tick
from fluidcc.sources._windows import F, delta, low, w
from fluidcc.sources.dca import alpha
from fluidcc.symbols import RTT, Let, packet

__all__ = ["with_estimator", "with_pause", "with_windowed_minimum"]


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
            "FAST, Vegas, LEDBAT, HTCP and DelayAIMD do"
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


# --- a newcomer's plan by its age, the time since it started: outside of it the law is its own ----


age = symbols("age", nonnegative=True)  # time since the start [s]
wait, pause, depth, rounds = symbols("wait pause depth rounds", positive=True)
theta = symbols("theta", real=True, nonzero=True)
# Just before the probe: round trip [s], rate [packet/s], and what is taken for the propagation
# delay [s].
r0, x0, d_hat = symbols("r_0 x_0 d_hat", nonnegative=True)

_EVER = 1e9 * RTT  # once in a life


def _planned(law: Source, name: str, rate: Any, asleep: Any, **more: Any) -> Source:
    """Return the law with another rate, and with its window held while `asleep` is 1."""
    if delta not in law.flow or w not in law.flow:
        raise LawError(
            f"{law.name} has no window that follows the queueing delay it sees; FAST, Vegas and "
            f"LEDBAT have"
        )
    flow = {**law.flow, w: law.flow[w] * (1 - asleep), age: 1, **more.pop("flow", {})}
    if F in flow:
        flow[F] = law.flow[F] + (rate - law.out["rate"]) / packet
    given: dict[str, Any] = {
        k: {**getattr(law, k), **more.pop(k, {})}
        for k in ("params", "units", "initial", "lower", "limits")
    }
    given["units"][age], given["initial"][age] = "s", 0
    given["where"] = (*law.where, *more.pop("where", ()))
    return replace(law, name=name, flow=flow, out={"rate": rate}, jumps=(*law.jumps,
    *more.pop("jumps", ())),
                   utility=None, claims={}, **given)  # fmt: skip


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
    paused = Heaviside(age - wait, 0) * Heaviside(wait + pause - age, 0)
    asleep = Heaviside(age - wait, 0) * Heaviside(wait + pause + RTT - age, 0)
    # Not a part of the law's own rate: with little in flight that would try to fill the window
    # again.
    rate = law.out["rate"] * (1 - paused) + packet * (1 - depth) * w / RTT * paused
    return _planned(
        law, name or f"{law.name}Pause", rate, asleep,
        params={wait: 5, pause: 0.1, depth: 0.99}, units={wait: "s", pause: "s", depth: "1"},
        where=(depth < 1,),
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
    probing = Heaviside(age - wait, 0) * Heaviside(wait + length - age, 0)
    asleep = Heaviside(age - wait, 0) * Heaviside(wait + length + RTT - age, 0)
    share = Let("a", theta * length / (r0 - RTT))  # capacity over own rate, from (8)
    return _planned(
        law, name or f"{law.name}Estimator",
        law.out["rate"] * (1 - probing) + packet * (1 - theta) * x0 * probing, asleep,
        flow={r0: 0, x0: 0, d_hat: 0}, initial={r0: 0, x0: 0, d_hat: 0}, params={wait: 5,
        theta: -0.5, rounds: 1},
        units={wait: "s", theta: "1", rounds: "1", r0: "s", x0: "packet/s", d_hat: "s"},
        where=(theta < 1,),
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
