"""How a newcomer can learn the true propagation delay of its path: rate reduction, and the
estimator of Section IV.

Both take a law whose window follows the queueing delay `delta` that it sees, and give it a plan by
its age: the time since it started. They are wrappers: what the law does outside its plan is its
own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sympy import Heaviside, Max, symbols

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import InvalidInput, LawError
from fluidcc.laws import Jump, Source
from fluidcc.sources._windows import F, delta, w
from fluidcc.sources.dca import alpha
from fluidcc.symbols import RTT, Let, packet

__all__ = ["with_estimator", "with_pause"]

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
