"""Limit cycles of networks whose laws jump or tick: period, extremes, means, utilisation and convergence."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.approach import Approach
from fluidcc.analysis.effort import Effort
from fluidcc.analysis.once_round import OnceRound, once_round
from fluidcc.analysis.returns import MISFIT, Section
from fluidcc.analysis.settle import settled
from fluidcc.base.arguments import explained, flag, number, whole
from fluidcc.base.errors import Unsupported, warn
from fluidcc.base.progress import BARE, Progress
from fluidcc.equilibria.result import MOST_ROWS
from fluidcc.laws import Law
from fluidcc.network.network import Network, require_network
from fluidcc.network.patterns import quantity
from fluidcc.symbols import plain

__all__ = ["LimitCycle", "limit_cycle"]

_LONGEST = 400_000  # round trips of the approach
_UNLIMITED = 10**15  # steps


@dataclass(frozen=True, repr=False)
class LimitCycle(OnceRound):
    """A periodic orbit.

    Attributes
    ----------
    period : float
        [s]
    error : float
        Largest change from one cycle to the next: of the period relative to itself, of the states at the jump where it
        begins relative to their sizes, over what the slowest multiplier makes of all later ones.
    jumps : DataArray over "jump"
        When each jump (or, in networks without jumps, tick) of the cycle happens after the first one [s]; whose it is
        stands in the coordinate ``of``, and which of its law's in ``rule``.
    mean, least, most : Dataset over "flow", "link"
        Time averages and extremes over the cycle, of ``rate``, ``one_way_delay``, ``rtt``, ``backlog``,
        ``queueing_delay``, ``throughput``, ``utilisation`` and each law's states, in the units of `simulate`; one-sided
        limits at jumps count.
    loss : DataArray over "link"
        Bits lost over bits arrived, over the cycle [1].
    orbit : Dataset over "time", "flow", "link"
        One cycle, the time from its first jump [s].
    warnings : tuple of str
        What makes it doubtful, as in the attribute of that name of a run: windows of few packets, a flow that has never
        seen its path empty, a threshold below the smallest queue.
    steps : int
        Newton steps on the return map that were made.
    """

    error: float
    steps: int
    _section: Section = field(repr=False, compare=False)

    @cached_property
    def multipliers(self) -> NDArray[np.complex128]:
        """Multipliers of the return map, the largest first: by what a small disturbance is multiplied in a cycle.

        Those that can be told from what is left of the approach and of rounding, to about a thousandth. They are
        measured: every state that a disturbance moves (see `inputs`) is moved a little both ways, and the map that
        takes what is left after a cycle to what is left after the next is fitted. What only jumps set, or the data
        under way, is a parameter of the cycle.

        With an exact ack clock any pattern of the rate comes round for ever, and a state that only shows it, such as a
        smoothed rate, shows another part of it at each return. The multipliers are then those of the states that go on
        among themselves, which are multipliers of the whole map too, but not all of them: a warning says so, and what
        was left out. Where no such part is found, it says that the numbers are in doubt.
        """
        section = self._section
        found = section.map
        if section.erratic:
            warn(
                f"not all multipliers are given: what {', '.join(section.erratic)} becomes does not follow from what "
                "it was, as it shows a pattern in the data under way, which an exact ack clock takes round for ever; "
                f"those of the other states are given, to about {max(found.misfit, 1e-3):.1g}",
                stacklevel=2,
            )
        if found.misfit > MISFIT:
            warn(
                f"multipliers are in doubt: {100 * found.misfit:.0f} % of what is left of a disturbance after a cycle "
                "do not follow from what was left before, as the data under way keep it; give laws an ack clock with "
                "pace > 0, or follow a disturbance by simulate",
                stacklevel=2,
            )
        return found.multipliers

    def __repr__(self) -> str:
        jumps = f"{len(self.jumps)} jump{'s' * (len(self.jumps) != 1)}"
        head = f"limit cycle of {self.period:.6g} s with {jumps}, known to {self.error:.1e}"
        return "\n\n".join([head, *(_table(self, name) for name in ("rate", "queueing_delay")), *self.warnings])

    @property
    def contraction(self) -> float:
        """Modulus of the largest multiplier: the factor by which the orbit is approached from cycle to cycle."""
        return float(np.abs(self.multipliers).max(initial=0.0))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The states that were disturbed for `multipliers`, as ``flow.state``."""
        net = self._section.net
        found = []
        for kind, name, place in self._section.inputs:
            law = (net.flows if kind == "flow" else net.links)[name].law
            found.append(f"{name}.{plain([z for z in law.states if z != getattr(law, 'queue', None)][place])}")
        return tuple(found)


def _table(cycle: OnceRound, name: str) -> str:
    """Mean and extremes of a variable, and of links what they carry and lose."""
    shown = {f"{how} {name}": getattr(cycle, how)[name] for how in ("mean", "least", "most")}
    if name == "queueing_delay":
        shown |= {"mean utilisation": cycle.mean.utilisation, "loss": cycle.loss}
    named = {f"{label} [{values.units}]": values.to_series() for label, values in shown.items()}
    frame = next(iter(named.values())).to_frame().assign(**named)[list(named)]
    return str(frame.rename_axis(None).to_string(max_rows=MOST_ROWS, float_format="{:.6g}".format))


@explained
def limit_cycle(
    net: Network,
    *,
    tol: float = 1e-9,
    rtol: float = 1e-9,
    until: float | str | None = None,
    max_steps: int = 5_000_000,
    progress: bool | None = None,
) -> LimitCycle:
    """Find the attracting limit cycle of a network whose laws jump or tick.

    The network is run until one of its jumps comes back at the same intervals with the same states, about. From there
    on the orbit is approached by itself where that takes fewer steps, else by Newton's method on the return map; then
    one cycle is integrated by Gauss-Lobatto quadrature between all points where anything is not smooth.

    The run until then is of lesser accuracy, 1e-6. What an ack clock loses of the data in flight in such a run it would
    never find again, so they are counted anew, from the history, wherever the search goes on from. Not those of flows
    that were on before: beside data of their past, what is their own is not known, and with an ack clock the period may
    be off by 1e-6 of itself, which ``error`` does not show. Give such a flow its last start alone.

    Parameters
    ----------
    net : Network
        Capacities and the set of flows must come to rest; the cycle is that at the end.
    tol : float
        Largest ``error``: what is still to come of relative changes of the period and of any state.
    rtol : float
        Accuracy of the integration over a cycle; steps are controlled to a tenth of it.
    until : float or str, optional
        How long to run at most before the orbit is near [s]; by default up to 400000 of the longest base round trips.
    max_steps : int
        Steps of the solver at most, over all runs that look for the cycle: a million of them take about half a minute
        with a few flows.
    progress : bool, optional
        As for `fluidcc.simulate`; the bar shows the part of `max_steps` that is taken.

    Returns
    -------
    LimitCycle

    Warns
    -----
    FluidccWarning
        If `rtol` or `max_steps` does not allow `tol`: ``error`` is larger then.

    Raises
    ------
    Unsupported
        If no law jumps or ticks: then use `simulate`, and `stability` for what grows from an equilibrium.
    SolverError
        If the jumps do not repeat within `until` and `max_steps`, or there are none. Flows of unequal round trips may
        never repeat; the message names what came nearest to a cycle.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.Network().link("l", fc.DropTail, capacity="10 Mbit/s", delay="25 ms", buffer="300 kbit")
    >>> cycle = fc.limit_cycle(net.flow("f", fc.AIMD, route=["l"]))
    >>> round(cycle.period, 4), round(float(cycle.mean.utilisation[0]), 4)
    (3.1238, 0.9794)
    """
    require_network(net)
    laws: list[Law] = [*(f.law for f in net.flows.values()), *(k.law for k in net.links.values())]
    if not any(law.jumps or law.ticks for law in laws):
        raise Unsupported("no law of the network jumps or ticks: simulate it, and ask stability() why it oscillates")
    for name, value in (("tol", tol), ("rtol", rtol)):
        number(value, name, "a number between 1e-12 and 0.01", least=1e-12, most=1e-2)
    flag(progress, "progress", unset=True)
    trip = max(net.base_rtt(name) for name in net.flows)
    if trip <= 0.0:
        raise Unsupported("no flow of the network has a propagation delay, the measure of its cycles; simulate it")
    longest = _LONGEST * trip if until is None else quantity(until, "s", "until", positive=True)
    most = whole(max_steps, "max_steps", least=1000, most=10**12)
    with Progress(float(most), progress, about="limit cycle, of max_steps", form=BARE, unit="steps") as bar:
        found = settled(Approach(net, Effort(most, bar), max(0.1 * rtol, 1e-12), longest), tol)
    if found.error > tol:
        warn(
            f"the limit cycle is known to {found.error:.1e}, and tol is {tol:g}: what changes from cycle to cycle "
            "falls no more, or not within max_steps; a smaller rtol, or a larger max_steps, may show more of it",
            stacklevel=3,
        )
    section = replace(found.section, effort=Effort(_UNLIMITED))
    return LimitCycle(**vars(once_round(section)), error=found.error, steps=found.steps, _section=section)
