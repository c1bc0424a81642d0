"""What an oscillation does beyond its onset: settle at a small amplitude, or jump to a large one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base.arguments import number
from fluidcc.base.errors import InvalidInput

if TYPE_CHECKING:
    from fluidcc.analysis.boundary import Boundary

__all__ = ["Onset", "onset"]

SMALL = 0.02
"""Relative size of the push that starts the run on the unstable side."""


@dataclass(frozen=True)
class Onset:
    """How an oscillation sets in.

    Attributes
    ----------
    kind : {"supercritical", "subcritical", "undecided"}
        Supercritical: the large motion of the unstable side dies out on the stable side. Subcritical: it lives on there
        beside the stable equilibrium. Undecided: it did neither in the time given.
    values : tuple of float
        Of the parameter on the unstable and on the stable side.
    amplitude : float
        Of the rates on the unstable side, half of peak to peak over the mean, when the motion has settled.
    left : float
        What was left of it on the stable side at the end.
    expected : float
        What the linear decay alone would have left.
    until : float
        Simulated time [s].
    """

    kind: str
    values: tuple[float, float]
    amplitude: float
    left: float
    expected: float
    until: float


def onset(boundary: Boundary, offset: float = 0.03, lifetimes: float = 6.0) -> Onset:
    """Tell a supercritical Hopf point from a subcritical one by a simulation on each side.

    The first run starts next to the equilibrium of the unstable side and ends on whatever attracts it there; the second
    starts on the stable side as far from its equilibrium as the first one went.

    Parameters
    ----------
    boundary : Boundary
        Of `fluidcc.stability_boundary`.
    offset : float
        Relative distance of the two values from the critical one.
    lifetimes : float
        Length of each run, in 1/abs(growth rate) of the linearised network.

    Raises
    ------
    InvalidInput
        If a real root crosses, so that nothing oscillates, or an argument is not positive.
    """
    offset = number(offset, "offset", "a relative distance between 0 and 1", above=0.0, most=0.9)
    lifetimes = number(lifetimes, "lifetimes", "a positive number", above=0.0)
    if boundary.kind != "hopf":
        raise InvalidInput(f"at {boundary.name} = {boundary.value:.6g} a real root crosses: nothing oscillates there")
    side = 1.0 if boundary.stable_below else -1.0
    unstable, stable = (boundary.value * (1 + s * side * offset) for s in (1, -1))
    rate = abs(boundary.slope.real) * offset * boundary.value
    growth = np.log(1.0 / SMALL) / rate  # to reach size one, were it linear
    first = growth + lifetimes / rate
    amplitude = _amplitude(boundary, unstable, SMALL, first)
    start = min(amplitude, 0.5)
    reached = _amplitude(boundary, stable, start, 0.0)
    left = _amplitude(boundary, stable, start, lifetimes / rate)
    expected = reached * float(np.exp(-lifetimes))
    # Nonlinear decay near a supercritical point is faster than linear; beside a cycle it stops.
    kind = "undecided"
    if left < 10 * expected or left < 0.02 * amplitude:
        kind = "supercritical"
    elif left > 0.5 * amplitude:
        kind = "subcritical"
    return Onset(kind, (unstable, stable), amplitude, left, expected, lifetimes / rate)


def _amplitude(boundary: Boundary, value: float, push: float, until: float) -> float:
    """Half of peak to peak over the mean of the liveliest rate, over the last five periods of a run."""
    from fluidcc.equilibria.equilibrium import one_equilibrium
    from fluidcc.simulation.simulate import simulate

    net = boundary.network(value)
    rest = one_equilibrium(net)
    for i, (name, flow) in enumerate(net.flows.items()):
        if flow.law.states:
            states = dict(rest.states[name])
            first = next(iter(states))
            states[first] *= 1 + push * (1 if i == 0 else 0.5)
            net = net.with_flow(name, initial=states)
    for name in net.links:
        if rest.states[name]:
            net = net.with_link(name, initial=rest.states[name])
    end = until + 5 * boundary.period
    times = np.linspace(until, end, 501)
    still = dict(zip(net.links, rest.array("queueing_delay").tolist(), strict=True))
    how: Any = {"delays": "frozen", "frozen_at": still} if boundary.delays == "frozen" else {}
    ds: Any = simulate(net, end, t_eval=times[1:], rtol=1e-6, **how)
    swing = 0.5 * (ds.rate.max("time") - ds.rate.min("time")) / ds.rate.mean("time").clip(1e-9)
    return float(swing.max())
