"""Routers that sample, near rest: the loops of P-AQM and of explicit feedback, from the laws' own updates."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Symbol, lambdify

from fluidcc.assembly import capacity_at, constant_rate, is_on, moment
from fluidcc.errors import Unsupported
from fluidcc.links.ecf import PAQMECF, PAQMECF2, T_ECF, V1, V2, R, measured, q
from fluidcc.links.paqm import PAQM, PAQMDrop
from fluidcc.numerics.linear.sampled import SampledLoop
from fluidcc.sources.ecf import ECF
from fluidcc.symbols import c, unfold

if TYPE_CHECKING:
    from fluidcc.law import Link
    from fluidcc.network import Network

__all__ = ["inner_loop", "outer_loop", "router_loop"]

ROUTERS = (PAQM.name, PAQMDrop.name, PAQMECF.name, PAQMECF2.name)


def router_loop(net: Network, at: Any) -> SampledLoop | None:
    """The sampled loop of a network whose routers are P-AQM; None if it has no such router.

    Raises
    ------
    Unsupported
        If it has one, but not the form of `outer_loop` or of `inner_loop`.
    """
    routers = [link for link in net.links.values() if link.law.name in ROUTERS]
    if not routers:
        return None
    time = moment(at)
    flows = [f for f in net.flows.values() if is_on(f, time)]
    (link, *more) = routers
    name = f"link {link.name!r} ({link.law.name})"
    if more or len(net.links) > 1:
        raise Unsupported(
            f"{name} is not the only link; the multipliers of a sampled router are those of one: simulate it"
        )
    if link.law.name in (PAQMECF.name, PAQMECF2.name) and flows and all(f.law.flow == ECF.flow for f in flows):
        delays = {f.access_delay for f in flows}
        if len(delays) > 1:
            raise Unsupported(
                f"the sources of {name} are at several distances; give them one access_delay, or simulate it"
            )
        return outer_loop(link.law, 2 * delays.pop())
    rates = [constant_rate(f, time) for f in flows]
    capacity = capacity_at(link, time)
    total = sum(x for x in rates if x is not None)
    if link.law.name != PAQMDrop.name or None in rates or total <= capacity:
        raise Unsupported(
            f"{name} has multipliers of its own as fluidcc.PAQMDrop under constant rates above its capacity, or as "
            "fluidcc.PAQMECF with sources of fluidcc.ECF: change it to one of these, or simulate it"
        )
    return inner_loop(link.law, total / capacity)


@lru_cache(maxsize=2)
def _wish(old_rate: bool) -> Any:
    """Derivatives of the rate wanted next by the queue [s] and by the rate measured, for c = 1."""
    rate = Symbol("x", positive=True)
    new = (V2 if old_rate else V1).xreplace({measured: rate})
    return lambdify([T_ECF, R], [new.diff(z).subs(c, 1) for z in (q, rate)])


def outer_loop(law: Link, delay: float) -> SampledLoop:
    """Explicit feedback: a queue that integrates rates, held for T_ECF and felt `delay` after each report.

    Decreases are carried out in full, which is the stronger of the two branches at rest; rates are those of all
    sources together, over the capacity.

    Parameters
    ----------
    law : Link
        `PAQMECF` or `PAQMECF2`.
    delay : float
        The round trip between router and sources [s].
    """
    T, old_rate = law.parameter("T_ECF"), law.name == PAQMECF2.name
    gain, state = (float(v) * np.ones((1, 1)) for v in _wish(old_rate)(T, law.parameter("R") if old_rate else 0.0))
    A, one = np.zeros((1, 1)), np.ones((1, 1))
    return SampledLoop(T, A, one, one, state, gain, state, gain, [delay], [0.0])


@lru_cache(maxsize=1)
def _update() -> Any:
    """Derivatives of the filtered rate by itself, and of the share let in by that rate and by the queue, for c = 1."""
    (tick,) = PAQMDrop.ticks
    queue, share, rate, came = PAQMDrop.states
    dT, q0 = (next(p for p in PAQMDrop.params if str(p) == name) for name in ("dT", "q_0"))
    load = Symbol("rho", positive=True)
    new = {z: unfold(f) for z, f in tick.update.items()}
    at = {came: load * dT, queue: q0, rate: load, c: 1}
    slopes = (new[rate].diff(rate), new[share].diff(rate), new[share].diff(queue))
    return lambdify([load, *PAQMDrop.params], [f.subs(at) for f in slopes])


def inner_loop(law: Link, load: float) -> SampledLoop:
    """P-AQM that drops from a constant rate, `load` times the capacity: its queue, filtered rate and share let in."""
    by_rate, share_by_rate, share_by_queue = _update()(load, *(float(v) for v in law.params.values()))
    one = np.ones((1, 1))
    return SampledLoop(
        law.parameter("dT"), 0 * one, load * one, one, by_rate * one, 0 * one, share_by_rate * one,
        share_by_queue * one, [0.0], [0.0],
    )  # fmt: skip
