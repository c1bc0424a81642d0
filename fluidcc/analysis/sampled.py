"""`sampled_stability`: networks whose laws tick, near their rest.

Each law is lifted (`fluidcc.laws.sampled`): its ticks stand beside its flows, so that the network
is linearised once, with all signals and delays, at the equilibrium of the laws that stand still. A
state that integrates between ticks and is set anew at each is taken along that orbit: nobody sees
it between ticks, so that its deviations obey constant coefficients there. The multipliers are those
of `fluidcc.numerics.linear.ticking`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.linearize import Counts
from fluidcc.analysis.modes import resting_point
from fluidcc.analysis.operating import operating_point
from fluidcc.analysis.point import BUSY, OperatingPoint, flows_of, links_of
from fluidcc.analysis.wiring import Matrices, all_states, deviations, sources, wire
from fluidcc.base.arguments import choice, explained
from fluidcc.base.errors import InvalidInput, Undecided, Unsupported, gathered
from fluidcc.base.tables import InTable
from fluidcc.base.units import to_si
from fluidcc.laws.linear import lag_function
from fluidcc.laws.past import pasts
from fluidcc.laws.sampled import Lifted, lifted, standing, updated
from fluidcc.laws.steady import levels, refuse_unsteady, trackers
from fluidcc.network.network import require_network
from fluidcc.network.parameters import evaluated
from fluidcc.network.wired import constant_rate, is_on
from fluidcc.numerics.linear.ticking import (
    ONE,
    Ticking,
    Update,
    common_period,
    multipliers,
    struck,
)
from fluidcc.numerics.linear.wiring import block_of, close_channels
from fluidcc.symbols import e, plain, symbols_of

if TYPE_CHECKING:
    from sympy import Symbol

    from fluidcc.equilibria.result import Equilibrium
    from fluidcc.laws import Law
    from fluidcc.network.network import Network
    from fluidcc.network.specs import FlowSpec, LinkSpec

SEEN = 1e-6
"""Multipliers below this are not told apart from 0."""


Key = tuple[str, str]
"""Of a flow or a link: its kind and name."""


class Times(NamedTuple):
    """When a law ticks: its period, and an instant [s]."""

    period: float
    first: float


@dataclass(frozen=True, repr=False)
class SampledStability(InTable):
    """Multipliers of a sampled network over one period.

    Attributes
    ----------
    period : float
        T_s [s]; of several periods the least common multiple.
    multipliers : ndarray of complex
        The leading eigenvalues of the map over it, by falling modulus, as far as they are known to
        1e-8 and above 1e-6; N - 1 times those of the differences among N identical flows.
    undetermined : int
        How many multipliers of 1 are left out: states that nothing moves near there, such as shares
        of sources that no router determines.
    error : float
        Largest error of the leading multipliers, by the last two resolutions; 0 of exact maps.
    """

    period: float
    multipliers: NDArray[np.complex128]
    undetermined: int = 0
    error: float = 0.0

    @property
    def radius(self) -> float:
        """Largest modulus."""
        return float(abs(self.multipliers[0]))

    @property
    def stable(self) -> bool:
        """Whether every multiplier is inside the unit circle.

        Raises
        ------
        Undecided
            If the largest is so near to it that its error decides.
        """
        if abs(self.radius - 1) < self.error:
            raise Undecided(
                f"the largest multiplier has the modulus {self.radius:.14g}, and an error of "
                f"{self.error:.2g}, so that either may be; change a parameter a little"
            )
        return self.radius < 1

    @property
    def decay_rate(self) -> float:
        """Rate at which small deviations vanish [1/s]: -log(radius)/period; infinite where none is
        left after some periods.
        """
        return -math.log(self.radius) / self.period if self.radius else math.inf

    _shown = ("stable", "period [s]", "radius", "decay_rate [1/s]", "multipliers", "undetermined")


LOOPS: list[Callable[[Network, Any, Any], SampledStability | None]] = []
"""Loops of other kinds than the general one, such as of routers that report: asked first, each
answers for its own networks alone.
"""


@explained
def sampled_stability(
    net: Network,
    period: Any = None,
    at: float | str | Equilibrium = math.inf,
    delays: str = "fifo",
) -> SampledStability:
    """Find the multipliers of a network whose laws are updated at intervals, by `Tick`.

    Between ticks the network is that of `fluidcc.linearize`, with every delay; at each the states
    jump by the derivatives of the update. Over the common multiple of all periods that is a linear
    map of the states and of the past of the signals. It is solved by collocation, with twice as
    many nodes until the leading multipliers agree to 1e-8. Continuous laws may be among them.

    The equilibrium is that of `fluidcc.equilibrium`: what is held stays as it is from tick to tick,
    and what integrates in between, as averages do, comes back. Flows and links tick from their
    starts on; where a period depends on states or signals, as one of a round trip does, it is that
    at rest, counted from 0, since to first order a tick that changes nothing may come at any time.

    Routers of `fluidcc.PAQMECF` and `fluidcc.PAQMECF2` with sources of `fluidcc.ECF` have a loop of
    their own, taken where rates are max-min fair and each filled queue is at its aim: that of rate
    decreases, applied fully; the stall rule is left out because it has no equilibrium.

    Parameters
    ----------
    net : Network
        At least one law ticks, or a period is given.
    period : float or str, optional
        T_s [s] of all flows, whose states are then updated by T_s times the flow of their law, with
        means over the last period in place of what they hear, as (25) of the LDCC paper has it.
        Sampled laws have it as their own period. By default that of each law; links keep theirs.
    at : float, str or Equilibrium
        As in `fluidcc.linearize`.
    delays : {"fifo", "frozen"}
        As in `fluidcc.linearize`.

    Raises
    ------
    InvalidInput
        If the period is not positive, nothing ticks and none is given, and as `fluidcc.linearize`.
    Unsupported
        If a law has jumps or no standstill, as where a state that grows between ticks is seen there
        (see `fluidcc.limit_cycle`), or periods have no common multiple.
    Undecided
        If the largest multiplier is not known to 1e-8.

    Examples
    --------
    RED whose largest mark ratio adapts twice a second; near rest its average is where it leaves it:

    >>> import fluidcc as fc
    >>> link = {"law": fc.AdaptiveRED(min_th=0.01, max_th=0.05), "capacity": "40 Mbit/s"}
    >>> found = fc.sampled_stability(fc.dumbbell([fc.StaticReno] * 8, link, rtt="50 ms"))
    >>> found.period, found.stable, found.undetermined
    (0.5, True, 1)
    """
    require_network(net)
    choice(delays, "delays", ("fifo", "frozen"))
    for loop in LOOPS:
        if (found := loop(net, period, at)) is not None:
            return found
    net = _ticking(net, period, at)
    lifts = {key: lifted(s.law, _who(key)) for key, s in _specs(net) if s.law.ticks}
    still = {key: standing(s.law, _who(key)) for key, s in _specs(net) if s.law.ticks}
    rest = resting_point(_with_laws(net, still), at, delays, alone=True)
    known = {key: _known(net, key, rest, lifts[key]) for key in _present(rest) if key in lifts}
    times = {
        key: _times(spec, key, known[key], rest.at) for key, spec in _specs(net) if key in known
    }
    point = _lifted_point(net, lifts, rest, known, times)
    return _together(point, lifts, times, rest)


def _ticking(net: Network, period: Any, at: Any) -> Network:
    """The network with the period of all flows set, where one is given."""
    if period is None:
        if not any(s.law.ticks for _, s in _specs(net)):
            first = next(iter(net.flows.values()), None)
            who = f", and flow {first.name!r} ({first.law.name}) is not sampled" if first else ""
            raise InvalidInput(
                f"no period is given{who}; give one, such as '100 ms', or take a law that ticks, "
                "such as fluidcc.SampledLDCC"
            )
        return net
    h = to_si(period, "s", "period")
    if not 0 < h < math.inf:
        raise InvalidInput(f"the period is {period!r}; give a positive time, such as '100 ms'")
    when = getattr(at, "at", at)
    time = to_si(when, "s", "at") if isinstance(when, str) else when
    laws: dict[tuple[str, str], Any] = {}
    for name, f in net.flows.items():
        if is_on(f, time) and constant_rate(f, time) is None:
            if f.law.jumps:
                refuse_unsteady(f.law, f"flow {name!r}")
            laws["flow", name] = updated(f.law, h, f"flow {name!r}")
    return _with_laws(net, laws)


def _specs(net: Network) -> list[tuple[Key, FlowSpec | LinkSpec]]:
    """All links and flows, by kind and name."""
    links = [(("link", name), link) for name, link in net.links.items()]
    return [*links, *((("flow", name), flow) for name, flow in net.flows.items())]


def _who(key: Key) -> str:
    return f"{key[0]} {key[1]!r}"


def _with_laws(net: Network, laws: Mapping[Key, Law]) -> Network:
    """The network with other laws, whose new states start at 0."""
    new = net.copy()
    for (kind, name), law in laws.items():
        of: Any = new._flows if kind == "flow" else new._links
        start = {plain(z): of[name].initial.get(plain(z), 0.0) for z in law.states}
        of[name] = replace(of[name], law=law, initial=start)
    return new


# --- the point ------------------------------------------------------------------------------------


def _present(rest: OperatingPoint) -> list[Key]:
    """The links, and the flows that listen."""
    flows = (("flow", name) for f in rest.classes for name in f.names)
    return [*(("link", link.name) for link in rest.links), *flows]


def _known(net: Network, key: Key, rest: OperatingPoint, lift: Lifted) -> dict[Symbol, Any]:
    """What a sampled law knows at rest just before a tick: its states, parameters and signals."""
    kind, name = key
    if kind == "flow":
        side, law = flows_of(rest), cast("Law", net.flows[name].law)
        i = next(k for k, f in enumerate(rest.classes) if name in f.names)
    else:
        side, law = links_of(rest), net.links[name].law
        i = side.names.index(name)
    held = side.laws[i]
    known: dict[Symbol, Any] = {}
    for symbols, values in (
        (held.states, side.z[i]), (held.params, side.p[i]), (held.inputs, side.u[:, i])
    ):  # fmt: skip
        known |= dict(zip(symbols, map(float, values), strict=True))
    for level, z in levels(held).items():
        slope = trackers(standing(law, _who(key)))[z].delay
        known[z] = float(evaluated(slope, known)) * known[e] + known[level]
    known |= {one: known[one.of] for one in pasts(law)}
    return known | {z: float(evaluated(f, known)) for z, f in lift.sums.items()}


def _times(spec: Any, key: Key, known: Mapping[Symbol, float], at: float) -> list[Times]:
    """When a law ticks, for each of its ticks.

    Raises
    ------
    Unsupported
        If what it integrates between ticks that are not evenly spaced moves at rest.
    """
    law, found = spec.law, []
    even = {*law.params, *law.constants}
    started = [a for a, _ in spec.intervals if 0 < a <= at] if key[0] == "flow" else []
    start = max(started, default=0.0)
    for tick in law.ticks:
        T = float(evaluated(tick.every, known))
        constant = symbols_of(tick.every) | symbols_of(tick.phase) <= even
        for z in () if constant else tick.update:
            if abs(evaluated(law.flow[z], known)) * T > 1e-9 * max(abs(known[z]), 1e-12):
                raise Unsupported(
                    f"{_who(key)} ({law.name}) integrates {plain(z)} between ticks whose period "
                    f"depends on {', '.join(sorted(map(plain, symbols_of(tick.every) - even)))}: "
                    "its rest is an orbit whose length varies; see fluidcc.limit_cycle"
                )
        first = start + float(evaluated(tick.phase, known)) if constant else 0.0
        found.append(Times(T, first % T if constant else 0.0))
    return found


def _lifted_point(
    net: Network,
    lifts: Mapping[Key, Lifted],
    rest: OperatingPoint,
    known: Mapping[Key, Mapping[Symbol, float]],
    times: Mapping[Key, list[Times]],
) -> OperatingPoint:
    """The operating point of the lifted laws, from that of those that stand still.

    The states that ticks give new values, which nobody reads, show when these are within a period:
    so flows are of one class only if they tick together.
    """
    states = {name: dict(own) for name, own in rest.rest.states.items()}
    for (kind, name), own in known.items():
        lift = lifts[kind, name]
        states[name] |= {plain(z): own.get(z, 0.0) for z in lift.law.states}
        for new, when in zip(lift.after, times[kind, name], strict=True):
            states[name] |= {plain(z): round(when.first / when.period, 6) % 1 for z in new.values()}
    new_net = _with_laws(net, {key: one.law for key, one in lifts.items()})
    at = replace(rest.rest, states=states, _net=new_net)
    return operating_point(new_net, at, rest.delays, alone=True)


# --- its parts ------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A linear system with ticks, its name as in `Counts`, and how often it is there."""

    label: str
    system: Ticking
    times: int


def _together(
    point: OperatingPoint,
    lifts: Mapping[Key, Lifted],
    times: Mapping[Key, list[Times]],
    rest: OperatingPoint,
) -> SampledStability:
    """The multipliers of the network and of the differences among identical flows, without those
    of 1 that a continuum of equilibria means.
    """
    laws = [every if ("flow", f.name) in lifts else moving
            for f, every, moving in zip(point.classes, all_states(point), sources(point),
                                        strict=True)]  # fmt: skip
    whole, flows = wire(point, laws=laws), sum(len(law.names) for law in laws)
    places: Places = {("link", k.name): _places(whole, k.name, flows) for k in point.links}
    places |= {("flow", f.name): _places(whole, f.label, 0, flows) for f in point.classes}
    parts = [_part("", whole, 1, places, lifts, times)]
    for label, apart in deviations(point, laws=laws).items():
        f = next(f for f in point.classes if f.label == label)
        places = {("flow", f.name): _places(apart, f"differences in {label}", 0)}
        parts.append(_part(label, apart, f.count - 1, places, lifts, times))
    period = common_period([one.period for part in parts for one in part.system.updates])
    for part in parts:
        _refuse_struck(point, part.system, period)
    found, undetermined, error = [], 0, 0.0
    for part in parts:
        system, still = _moving(part.system)
        if len(system.A):
            values, gap = multipliers(system, period)
            ones = np.abs(values - 1) <= ONE
            if ones.any():
                with gathered():  # `undetermined` tells of a continuum
                    gone = Counts.of(rest).gone.get(part.label, 0) - still
                ones &= np.cumsum(ones) <= gone
                values, still = values[~ones], still + int(ones.sum())
            found.append(np.repeat(values, part.times))
            error = max(error, gap)
        undetermined += still * part.times
    every = np.concatenate(found)
    every = every[np.argsort(-np.abs(every), kind="stable")]
    every = every[: max(1, int(np.sum(np.abs(every) > SEEN)))]
    return SampledStability(period, every, undetermined, error)


Places = dict[Key, dict[str, int]]
"""Of laws, in the order in which they tick: where each state is among those of a system."""


def _places(m: Matrices, who: str, start: int, end: int | None = None) -> dict[str, int]:
    own = enumerate(m.states[start:end], start)
    return {z.removeprefix(f"{who}."): i for i, z in own if z.startswith(f"{who}.")}


def _part(label: str, m: Matrices, often: int, places: Places, lifts: Any, times: Any) -> _Part:
    """One system of the network with the ticks of its laws."""
    block = close_channels(block_of(m.entries))
    inputs, outputs = block.ports
    A, B, C, D = block.A, block.B[:, inputs:], block.C[outputs:], block.D[outputs:, inputs:]
    kept, found = np.ones(len(A), bool), []
    for key, place in places.items():
        for new, when in zip(
            lifts[key].after if key in lifts else (), times.get(key, ()), strict=True
        ):
            to = {
                place[plain(z)]: place[plain(after)]
                for z, after in new.items()
                if plain(z) in place
            }
            kept[[place[plain(after)] for after in new.values()]] = False
            G, H = np.eye(len(A)), np.zeros_like(B)
            G[[*to]], H[[*to]] = A[[*to.values()]], B[[*to.values()]]
            found.append((when, G, H))
    pick = np.ix_(kept, kept)
    updates = [Update(when.period, when.first, G[pick], H[kept]) for when, G, H in found]
    return _Part(label, Ticking(A[pick], B[kept], C[:, kept], D, block.delays, updates), often)


def _refuse_struck(point: OperatingPoint, system: Ticking, period: float) -> None:
    """Refuse ticks that read what a tick changed just a lag ago, where the lag varies: what they
    read is then that before or after, and not to first order.
    """
    flows, varies, fixed = flows_of(point), bool((point.mode == BUSY).any()), []
    for g in flows.groups:
        lags = lag_function(g.law)(*flows.numbers(g.members))
        for one, values in zip(pasts(g.law), lags, strict=True):
            if one.lag.free_symbols <= {*g.law.params}:
                fixed += values.tolist()
            else:
                varies = True
    for lag in system.delays[struck(system, period)] if varies else ():
        if not np.isclose(lag, fixed, rtol=1e-9, atol=0).any():
            raise InvalidInput(
                f"the network stands on a switching surface: a tick reads what another one changed "
                f"{lag:.6g} s before, and that lag varies, so that it reads now the old value and "
                "now the new one; change the period, or a delay, a little"
            )


def _moving(system: Ticking) -> tuple[Ticking, int]:
    """The system without states that nothing moves, and how many they are; and without those that
    nobody reads and that count up.
    """
    still = 0
    while len(system.A):
        n = len(system.A)
        one = np.eye(n)
        changed = [u.G - one for u in system.updates]
        moves = system.A.any(axis=1) | system.B.any(axis=1)
        read = system.A.any(axis=0) | system.C.any(axis=0)
        for u, change in zip(system.updates, changed, strict=True):
            moves |= change.any(axis=1) | u.H.any(axis=1)
            read |= change.any(axis=0)
        keep = moves & read
        if keep.all():
            return system, still
        still += int(np.sum(~moves))
        pick = np.ix_(keep, keep)
        updates = [u._replace(G=u.G[pick], H=u.H[keep]) for u in system.updates]
        A, B, C, D, delays, _ = system
        system = Ticking(A[pick], B[keep], C[:, keep], D, delays, updates)
    return system, still
