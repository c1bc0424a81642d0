"""What marks the cycles of a network in which nothing jumps or ticks: a queue, or else a state,
that rises through its mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sympy import Symbol

from fluidcc.base.errors import SolverError
from fluidcc.cycles.returns import Effort, state_names
from fluidcc.laws import Jump
from fluidcc.network import Network
from fluidcc.symbols import plain, positive

if TYPE_CHECKING:
    import xarray as xr

#: of the swing of a state, over its largest value, below which it rests
STILL = 1e-4
_LEVEL, _GAP = Symbol("mark_level", real=True), positive("mark_gap")
_SAMPLES = 4001
_SEE = "see fluidcc.equilibrium and fluidcc.stability"
_SOON = 1e-3  # of a round trip: two marks are farther apart


class Unmarked(SolverError):
    """What marked a network comes no more."""


@dataclass(frozen=True)
class Crossing:
    """A network with a mark on one of its states, as a jump that changes nothing.

    Attributes
    ----------
    state : str
        Variable of a result, with the name of the flow or link: ``"backlog"``, ``"link1"``.
    level : float
        Mean of the state when it was looked at, in the unit of the law.
    why : str
        What the run warned of then, or else where to look: why there may be no cycle.
    seconds : float
        Until when it was looked at [s].
    """

    net: Network
    state: tuple[str, str]
    level: float
    why: str
    seconds: float

    def swing(self, least: xr.Dataset, most: xr.Dataset) -> float:
        """Return the swing of the state over its largest value."""
        name, of = self.state
        return _swing(
            np.array([float(one[name].sel({one[name].dims[0]: of})) for one in (least, most)])
        )

    def at_rest(self, seconds: float) -> Unmarked:
        """Return the error that says that no cycle was found."""
        name, of = self.state
        return Unmarked(
            f"no limit cycle: {name} of {of!r} no longer rises through {self.level:.6g}, its mean "
            f"at first, after {seconds:.6g} s: the network rests, or drifts; {self.why}"
        )


def crossing(net: Network, effort: Effort, rtol: float, seconds: float) -> Crossing:
    """Return the network with a mark where its largest queue, or else its state that swings most,
    rises through its mean over the later half of so many seconds.

    Raises
    ------
    SolverError
        If all states rest.
    """
    trip = max(net.base_rtt(name) for name in net.flows)
    late = np.linspace(0.5, 1.0, _SAMPLES) * seconds
    run = effort.go(net, seconds, rtol, t_eval=late)
    why = run.attrs["warnings"] or _SEE
    queues = {str(name): run.queueing_delay.sel(link=name).values for name in net.links}
    name = max(queues, key=lambda one: float(np.ptp(queues[one])))
    if np.ptp(queues[name]) > STILL * max(trip, float(queues[name].max())):
        law = net.links[name].law
        return _marked(
            net, "link", name, law.queue, ("queueing_delay", name), queues[name], why, seconds
        )
    best: tuple[float, str, str] = (STILL, "", "")
    for variable in state_names(run)[1:]:
        owners = run[variable].dims[1]
        for of in run[owners].values:
            best = max(best, (_swing(run[variable].sel({owners: of}).values), variable, str(of)))
    _, variable, of = best
    if not variable:
        raise SolverError(
            f"no limit cycle: after {seconds / 2:.6g} s no state moves by more than {STILL:g} of "
            f"its size; {why}"
        )
    kind = str(run[variable].dims[1])
    own = (net.flows if kind == "flow" else net.links)[of].law
    (z,) = (z for z in own.flow if variable == f"{own.name}_{plain(z)}")
    return _marked(
        net, kind, of, z, (variable, of), run[variable].sel({kind: of}).values, why, seconds
    )


def _swing(values: NDArray[np.float64]) -> float:
    """Of a state, over its largest value; 0 where there is none."""
    largest = float(np.abs(values).max())
    return float(np.ptp(values)) / largest if largest > 0 else 0.0


def _marked(
    net: Network, kind: str, of: str, z: Symbol, state: tuple[str, str],
    values: NDArray[np.float64], why: str, seconds: float,
) -> Crossing:  # fmt: skip
    spec = (net.flows if kind == "flow" else net.links)[of]
    law, level = spec.law, float(values.mean())
    gap = _SOON * max(net.base_rtt(name) for name in net.flows)
    mark = Jump(when=z - _LEVEL, reset={}, refractory=_GAP, once=True)
    marked = replace(
        law,
        params={**law.params, _LEVEL: level, _GAP: gap},
        units={**law.units, _LEVEL: law.units[z], _GAP: "s"},
        jumps=(*law.jumps, mark),
        claims={},
    )
    put = net.with_flow if kind == "flow" else net.with_link
    return Crossing(put(of, law=marked), state, level, why, seconds)
