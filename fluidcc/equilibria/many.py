"""Equilibria of a network at many points at once: the same links, flows and laws, with other
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base.errors import FluidccError
from fluidcc.equilibria.equilibrium import least_windows, solved
from fluidcc.equilibria.result import COLUMNS, Equilibrium
from fluidcc.laws.steady import FEW, few_packets
from fluidcc.network.parameters import Parameters, Target

if TYPE_CHECKING:
    from fluidcc.network import Network


@dataclass(frozen=True, eq=False)
class Equilibria:
    """Equilibria at N points, as arrays whose first axis is the point; NaN (or False) where there
    is none.

    Attributes
    ----------
    rate, one_way_delay, rtt, loss, mark : array (N, flows)
        [bit/s], [s], [s], [1], [1], as in `Equilibrium`.
    queueing_delay, price, arrival_rate, admitted_rate : array (N, links)
        [s], [1], [bit/s].
    link_loss, link_drop, link_mark : array (N, links)
        [1], as in `Equilibrium`.
    saturated, full : bool array (N, links)
        Where the admitted rate equals the capacity; where the buffer is full.
    states : dict
        Every law's own states (N,), by flow or link name and state name.
    error : array (N,)
        Bounds of relative errors [1], as in `Equilibrium`.
    found : bool array (N,)
        Where there is an equilibrium.
    errors : dict of int to FluidccError
        Why there is none, by point: what `fluidcc.equilibrium` of that point's network raises.
    warnings : dict of int to tuple of str
        What makes an equilibrium doubtful, by point, as `Equilibrium` has it; no entry where
        nothing does.
    flow_names, link_names : tuple of str
        What the second axes are.
    at : float
        Time [s] whose capacities and flows they have.
    """

    rate: Any
    one_way_delay: Any
    rtt: Any
    loss: Any
    mark: Any
    queueing_delay: Any
    link_loss: Any
    link_drop: Any
    link_mark: Any
    price: Any
    saturated: Any
    full: Any
    arrival_rate: Any
    admitted_rate: Any
    states: Mapping[str, Mapping[str, Any]]
    error: Any
    found: Any
    errors: Mapping[int, FluidccError]
    warnings: Mapping[int, tuple[str, ...]]
    flow_names: tuple[str, ...]
    link_names: tuple[str, ...]
    at: float

    def __len__(self) -> int:
        return len(self.found)

    def array(self, name: str) -> Any:
        """One of the attributes over flows or links."""
        return getattr(self, name)

    def point(self, i: int) -> Equilibrium:
        """The equilibrium at one point, as `fluidcc.equilibrium` gives it.

        Raises
        ------
        FluidccError
            Why there is none, such as `NoEquilibrium`.
        """
        if i in self.errors:
            raise self.errors[i]
        names = {"flow": list(self.flow_names), "link": list(self.link_names)}
        own = {
            name: {z: float(column[i]) for z, column in of.items()}
            for name, of in self.states.items()
        }
        values, doubts = {k: getattr(self, k)[i] for k in COLUMNS}, self.warnings.get(i, ())
        return Equilibrium(names, values, own, float(self.error[i]), self.at, warnings=doubts)


def equilibria(
    net: Network,
    targets: Mapping[str, Target],
    values: Mapping[str, Any],
    at: float | str = math.inf,
) -> Equilibria:
    """Find the equilibria of a network at many points.

    Each point is searched from its own start, one after the other in one compiled loop without the
    GIL: a result depends on no other point, nor on which points are asked for together.

    Parameters
    ----------
    net : Network
        What all points have in common.
    targets : mapping of str to Target
        What is changed, by axis: each has ``kind``, ``key``, ``flows`` and ``links`` as those of a
        sweep do (`fluidcc.sweeps.targets.find_target`). Kind "parameter" sets the parameter `key`
        of the laws of these flows or links; "initial" the initial state "initial.<key>"; "argument"
        the capacity, delay or buffer of links, or the access_delay, return_delay or packet of
        flows; "rtt" scales all delays as `fluidcc.sweep` does; "option" changes nothing here.
    values : mapping of str to array (N,)
        The values by axis, in SI units.
    at : float or str
        Time [s] at which capacities and the set of flows that are on are taken, as in
        `fluidcc.equilibrium`.

    Returns
    -------
    Equilibria
        Arrays; points without an equilibrium have their reason in ``errors``.

    Raises
    ------
    Unsupported
        If a target changes more than numbers (another law, number of flows, start or stop): build
        these networks one by one. Or if no point can have an equilibrium, as in
        `fluidcc.equilibrium`.
    InvalidInput
        If the values of the axes are not of one length.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from fluidcc.equilibria.many import equilibria
    >>> from fluidcc.sweeps.targets import find_target
    >>> net = fc.dumbbell([fc.LDCC, fc.LDCC], dict(capacity="3 Mbit/s"), rtt="50 ms")
    >>> many = equilibria(net, {"beta": find_target(net, "beta")}, {"beta": [0.01, 0.1, 0.2]})
    >>> many.found, many.queueing_delay[1:, 0].round(6)
    (array([False,  True,  True]), array([0.094231, 0.083929]))
    >>> type(many.errors[0]).__name__
    'NoEquilibrium'
    """
    return equilibria_of(Parameters.of(net, targets, values), at)


def equilibria_of(given: Parameters, at: float | str = math.inf) -> Equilibria:
    """Find the equilibria of a network with numbers set otherwise, as `equilibria`."""
    net, found = given.net, solved(given, at)
    good = np.ones(len(found.found.status), bool)
    good[list(found.errors)] = False
    return Equilibria(
        **found.values, states=found.states, error=np.where(good, found.found.error, np.nan),
        found=good, errors=dict(sorted(found.errors.items())),
        warnings=_doubts(net, found.states, found.values["rate"]), flow_names=net.flow_names,
        link_names=net.link_names, at=found.system.at,
    )  # fmt: skip


def _doubts(
    net: Network, states: Mapping[str, Mapping[str, Any]], rates: Any
) -> dict[int, tuple[str, ...]]:
    """What makes equilibria doubtful, by point."""
    with np.errstate(invalid="ignore"):
        windows = least_windows(net, states, rates)
    some = np.flatnonzero(windows.min(axis=1, initial=math.inf) < FEW).tolist()
    return {
        i: tuple(few_packets(dict(zip(net.flow_names, windows[i].tolist(), strict=True))))
        for i in some
    }
