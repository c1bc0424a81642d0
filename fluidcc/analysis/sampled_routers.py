"""Routers that sample, near rest: the loop of P-AQM alone, and which loop a network of routers is."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Symbol, lambdify

from fluidcc.analysis.explicit_feedback import EXPLICIT, explicit_loop
from fluidcc.base.errors import Unsupported
from fluidcc.equilibria.assembly import capacity_at, constant_rate, is_on, moment
from fluidcc.links.paqm import PAQM, PAQMDrop
from fluidcc.numerics.linear.held import HeldLoop, Measurement, Path
from fluidcc.sources.ecf import ECF
from fluidcc.symbols import c, unfold

if TYPE_CHECKING:
    from fluidcc.laws import Link
    from fluidcc.network.network import LinkSpec, Network

__all__ = ["inner_loop", "router_loop"]

ROUTERS = (PAQM.name, PAQMDrop.name, *EXPLICIT)


def router_loop(net: Network, at: Any) -> tuple[HeldLoop, int] | None:
    """The sampled loop of a network whose routers are P-AQM, and how many differences among identical flows stay for
    ever; None if it has no such router.

    Raises
    ------
    Unsupported
        If it has one, but not the form of `explicit_loop` or of `inner_loop`.
    """
    routers = [link for link in net.links.values() if link.law.name in ROUTERS]
    if not routers:
        return None
    time = moment(at)
    flows = [f for f in net.flows.values() if is_on(f, time)]
    if any(f.law.flow == ECF.flow for f in flows) and any(link.law.name in EXPLICIT for link in routers):
        return explicit_loop(net, flows, time)
    name = f"link {routers[0].name!r} ({routers[0].law.name})"
    for f in flows:
        if constant_rate(f, time) is None:
            raise Unsupported(
                f"{name} has flow {f.name!r} ({f.law.name}), whose rate follows what it {_why(routers[0])}"
            )
    if len(net.links) > 1:
        raise Unsupported(
            f"{name} is not the only link; under constant rates the multipliers of each router are its own: take a "
            "network of that one, with the rates that come to it"
        )
    capacity, total = capacity_at(routers[0], time), sum(constant_rate(f, time) or 0.0 for f in flows)
    if total <= capacity or "drop" not in routers[0].law.out:
        raise Unsupported(
            f"{name} has {total:.6g} bit/s at a constant rate and a capacity of {capacity:.6g} bit/s; multipliers of "
            "its queue there are where it drops, as fluidcc.PAQMDrop does, and more comes than leaves"
        )
    return inner_loop(routers[0].law, total / capacity), 0


def _why(router: LinkSpec) -> str:
    """Why a router has no multipliers with sources that answer it."""
    if "drop" in router.law.out:
        return (
            "drops; multipliers are made of fluidcc.PAQMDrop under constant rates and of fluidcc.PAQMECF with sources "
            "of fluidcc.ECF: simulate it"
        )
    return (
        "marks: as soon as no more comes than leaves it marks nothing, however long the queue, so that the two go back "
        "and forth over a switch, and near it nothing is linear; simulate it, or see fluidcc.limit_cycle"
    )


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


def inner_loop(law: Link, load: float) -> HeldLoop:
    """P-AQM that drops from a constant rate, `load` times the capacity: its queue, share let in and filtered rate."""
    own = [law.parameter(str(p)) for p in PAQMDrop.params]
    by_rate, share_by_rate, share_by_queue = (float(v) for v in _update()(load, *own))
    share, rate = range(2)
    keep = np.zeros((2, 2))
    keep[share, rate], keep[rate, rate] = share_by_rate, by_rate
    return HeldLoop(
        [law.parameter("dT")] * 2, 1, keep, [Path(0, share, load, 0.0)], [Measurement(share, 0, share_by_queue, 0.0)]
    )
