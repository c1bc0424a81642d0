"""What a window-based source takes for the propagation delay of its path: the smallest round trip
of the last so many seconds, kept as protocols keep it, by the smallest of each period; and, for a
newcomer, rate reduction and the estimator of Section IV of the persistent-congestion paper.
"""

from __future__ import annotations

from typing import Any

from sympy import Abs, Heaviside, Max, Min, Piecewise, Rational, Symbol, symbols

from fluidcc.base.arguments import explained, shown, whole
from fluidcc.base.errors import InvalidInput, LawError
from fluidcc.laws import Jump, Source, Tick, extended
from fluidcc.sources.dca import alpha
from fluidcc.sources.windows import F, acked, delta, low, w
from fluidcc.symbols import RTT, Let, nonnegative, packet, pi, positive

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
    1`` of them. In a law that is written anew `fluidcc.lowest` keeps it so. Here the law's own
    state is handed on, which knows nothing before its first acknowledgement.

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
    whole(buckets, "buckets", least=2, most=100)
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

# When to probe. The round trip moves when it leaves a band, in parts of the queueing delay seen,
# around what it was when it last moved. Then, and at the beginning of the probe:
r_s, still, began = nonnegative("r_s still began")  # the round trip [s]; the age [s], of both
phase = nonnegative("phase")  # one of these three
_WAITS, _PROBES, _KNOWS = 0, 1, 2
trial = symbols("trial", real=True)  # theta, halved after each probe that met a loss
lost = nonnegative("lost")  # of what it sent in the probe [packet]
rested = nonnegative("rested")  # how long the round trip had not moved, in round trips
calm = nonnegative("calm")
_BAND, _CALM = 0.03, 10
_EMPTY = 3  # round trips after which a path without a queue is known to be one
_QUEUED = 0.5  # part of alpha that it has in the queue, at least
_SMALLEST = 0.01  # of theta: then no smaller probes are tried
_EARLY = "probed before the queue was at rest: give it a longer wait, or calm=10"


def _planned(
    law: Source, name: str, rate: Any, asleep: Any, units: dict[Symbol, str],
    flow: dict[Symbol, Any], jumps: tuple[Jump, ...] = (),
    initial: dict[Symbol, Any] | None = None, **more: Any,
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
        initial={**dict.fromkeys((age, *flow), 0), **(initial or {})},
        jumps=(*law.jumps, *jumps), utility=None, **more,
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


def _while(*phases: int) -> Any:
    """1 in these phases, else 0."""
    return sum(Heaviside(Rational(1, 2) - Abs(phase - k), 0) for k in phases)


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
        With the parameters ``wait`` [s], the least age at which it probes, ``calm``, for how many
        round trips the queue must have been at rest by then [1], ``theta`` [1], below 1 and
        negative by default so that the queue cannot empty, and ``rounds``, t_eps in round trips
        [1]. When the round trip of what it sent last in the probe is known, its queueing delay is
        corrected. Its window stands still from the beginning of the probe to then.

    Raises
    ------
    InvalidInput
        If it is no source law.
    LawError
        If the law has no such window, or no alpha.

    Notes
    -----
    A flow that has seen its path empty, a round trip that stands still at its least, knows its
    delay and never probes. Any other probes once the round trip has stayed for `calm` round trips
    within 3 % of the queueing delay seen, and half of alpha is in the queue. If a packet of the
    probe is lost it is in vain, and half as strong a one follows after another rest. With `calm` 0
    the queue need not be at rest; a run warns of probes before it was for 5 round trips.

    The paper's (9) has a newcomer at rest, where x0 (r - d^) = alpha. A queue at rest is enough: of
    flows of the same gain that know their delays the windows' changes then add up to 0, and so does
    the sum of alpha - x q over all: n alpha/C is C (r - d^)/x0 - alpha/x0, which is the
    paper's alpha n^/C^ at rest. Where the others' round trips are shorter than the probe it
    corrects by too much.

    Examples
    --------
    >>> import fluidcc as fc
    >>> [str(z) for z in fc.with_estimator(fc.FAST).states][:8]
    ['w', 'delta', 'paced', 'F', 'age', 'r_0', 'x_0', 'd_hat']
    """
    if alpha not in _source(law).params:
        raise LawError(
            f"{law.name} has no alpha, the packets that each flow keeps in the queue; FAST and "
            f"Vegas have"
        )
    waits, asleep, length = _while(_WAITS), _while(_PROBES), rounds * r0
    probing = asleep * Heaviside(began + length - age, 0)
    at_rest, own = (age - still) / RTT, w / RTT * delta / alpha
    again = waits * Heaviside(Abs(trial) - _SMALLEST * Abs(theta), 0)
    share = Let("a", trial * length / (r0 - RTT))  # capacity over own rate, from (8)
    # It is the estimate before the probe that this corrects: with theta > 0 shorter round trips may
    # have been seen since. Those count too.
    met = Max(share * (r0 - d_hat) - alpha / x0, 0)
    corrected = Max(delta, RTT - d_hat + met)
    parts = {wait: "s", theta: "1", rounds: "1", calm: "1", r0: "s", x0: "packet/s", d_hat: "s"}
    return _planned(
        law, name or f"{law.name}Estimator",
        law.out["rate"] * (1 - probing) + packet * (1 - trial) * x0 * probing, asleep,
        parts | {r_s: "s", still: "s", began: "s", phase: "1", trial: "1", lost: "packet",
                 rested: "1"},
        {**dict.fromkeys((r0, x0, d_hat, r_s, still, began, phase, trial, rested), 0),
         lost: asleep * acked * pi},
        initial={trial: theta}, params={wait: 5, theta: -0.5, rounds: 1, calm: _CALM},
        where=(*law.where, theta < 1),
        doubts={_EARLY: Min(phase - Rational(1, 2), began, _CALM / 2 - rested)},
        jumps=(
            Jump(when=waits * (Abs(RTT - r_s) - _BAND * delta - RTT / 10000),
                 reset={r_s: RTT, still: age}),
            Jump(when=waits * Heaviside(RTT / 10000 - delta, 0) * (at_rest - _EMPTY),
                 reset={phase: _KNOWS}),
            Jump(when=again * Min(age / wait - 1, at_rest - calm, own - _QUEUED),
                 reset={r0: RTT, x0: w / RTT, d_hat: RTT - delta, phase: _PROBES, began: age,
                        lost: 0, rested: at_rest}),
            Jump(when=asleep * (age - RTT - began - length), reset={
                delta: Piecewise((delta, lost >= 1), (corrected, True)),
                phase: Piecewise((_WAITS, lost >= 1), (_KNOWS, True)),
                trial: Piecewise((trial / 2, lost >= 1), (trial, True)),
                still: age,
            }),
        ),
    )  # fmt: skip
