"""When laws that jump at losses or marks (`fluidcc.Jump` with ``on=``) hear of one.

A fluid loses a share of every packet. Of whole packets a flow hears that one is lost where those of
which it has been told add up to a threshold, theta:

    lost' = told ratio  from pause = 0 on,   pause' = 1
    at lost = theta:  the jump;  lost = 0, pause = -(its refractory time)

with `told` for the packets a second of which it hears. With theta = 1 each flow counts its own
lost packets. Where each packet is lost at random with the chance `ratio`, they are a Poisson
process of that intensity: each time theta is drawn anew, from the exponential distribution of mean
1. Of many flows at a full buffer some are then spared, as packets do it.

Draws are those of Park and Miller's generator (1988), whose products below 2^46 are exact in
floating point: the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sympy import Expr, Heaviside, Integer, Symbol, floor, log

from fluidcc.base.errors import InvalidInput, LawError
from fluidcc.laws import Jump, Source, extended
from fluidcc.network import Network
from fluidcc.network.specs import random_stream
from fluidcc.sources.clocks import told
from fluidcc.sources.windows import cuts
from fluidcc.symbols import nonnegative, plain, positive

_FACTOR, _MODULUS = 16807, 2**31 - 1
_DRAW = "draw"  # what states begin with that hold a number drawn


def with_losses(net: Network, losses: str, seed: int) -> Network:
    """Return the network with laws that hear of losses and marks otherwise than by their ratio.

    Raises
    ------
    InvalidInput
        If none of them jumps at losses or marks.
    LawError
        If the mean of one cannot be had.
    """
    changes: dict[str, dict[str, Any]] = {}
    for name, flow in net.flows.items():
        law = _heard(flow.law, losses)
        if law is not flow.law:
            drawn = [plain(z) for z in law.states if plain(z).startswith(_DRAW)]
            first = random_stream(name, seed).integers(1, _MODULUS, len(drawn)).tolist()
            changes[name] = {
                "law": law,
                "initial": {**flow.initial, **dict(zip(drawn, first, strict=True))},
            }
    if not changes:
        raise InvalidInput(
            f"losses is {losses!r}, and no law of the network jumps at losses or marks; leave it "
            "out, or take such a law: fluidcc.AIMD for fluidcc.Reno, fluidcc.CUBIC for "
            "fluidcc.CUBICFluid, or one of your own with fluidcc.Jump(on=...)"
        )
    return net.with_flows(changes)


@lru_cache(maxsize=512)
def _heard(law: Source, losses: str) -> Source:
    """Return the law as it hears of losses and marks; itself if it jumps at none."""
    at = [j for j in law.jumps if j.on is not None]
    if not at:
        return law
    if losses == "mean":
        return law.averaged(cuts(at[0].on, at[0].refractory))
    states: dict[Symbol, Any] = {}
    units: dict[Symbol, str] = {}
    jumps = {j: _counted(j, str(k or ""), losses, states, units) for k, j in enumerate(at)}
    if taken := states.keys() & {*law.states, *law.params}:
        raise LawError(
            f"{law.name} has a {sorted(map(plain, taken))[0]!r} of its own, with which losses="
            f"{losses!r} counts; give it another name there"
        )
    return extended(
        law,
        law.name,
        claims=law.claims,
        flow=states,
        initial={z: 1 if units[z] == "1" else 0 for z in states},
        units=units,
        jumps=tuple(jumps.get(j, j) for j in law.jumps),
    )


def _counted(
    jump: Jump, k: str, losses: str, states: dict[Symbol, Any], units: dict[Symbol, str]
) -> Jump:
    """Return a jump that happens at whole packets, and add the states that count them."""
    lost, pause = nonnegative(f"lost{k}"), Symbol(f"pause{k}", real=True)
    states |= {lost: told * jump.on * Heaviside(pause, 1), pause: Integer(1)}
    units |= {lost: "packet", pause: "s"}
    reset: Mapping[Symbol, Any] = {**jump.reset, lost: 0, pause: -jump.refractory}
    theta: Expr = Integer(1)
    if losses == "random":
        draw = positive(f"{_DRAW}{k}")
        next_draw = _FACTOR * draw - _MODULUS * floor(_FACTOR * draw / _MODULUS)
        theta, reset = -log(draw / _MODULUS), {**reset, draw: next_draw}
        states[draw], units[draw] = Integer(0), "1"
    return Jump(when=lost - theta, reset=reset, refractory=jump.refractory)
