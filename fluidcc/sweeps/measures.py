"""What is measured at each point: by name, or a function of one's own.

========================================  ====================================================================
``equilibrium_rate``, ...                 a field of `fluidcc.equilibrium`: rate, one_way_delay, rtt, loss,
                                          queueing_delay, price, saturated, full, arrival_rate
``mean_rate``, ``final_backlog``, ...     mean, std, min, max or final, of a variable of `fluidcc.simulate`:
                                          rate, one_way_delay, rtt, loss, queueing_delay, backlog, arrival_rate,
                                          throughput, utilisation, link_loss
``stable``, ``gain_margin``, ...          a scalar of `fluidcc.stability`: stable, marginal, encirclements,
                                          gain_margin, phase_margin, delay_margin, modulus_margin, crossover
``rightmost_root``, ``decay_rate``        the first of its characteristic roots (complex), and minus its real part
``critical_gain``                         factor on the gains of all flows, the nearest to one, above or below, that
                                          brings a root to the axis; the equilibrium stays as it is
``critical_eta``, ``critical_a.w``, ...   value of a parameter at which stability is won or lost, the nearest to its
                                          present one, by `fluidcc.stability_boundary`
``limit_cycle_period``                    period of `fluidcc.limit_cycle` [s]
========================================  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidcc.base.arguments import shown
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.network import Network
from fluidcc.network.patterns import near
from fluidcc.sweeps.grid_point import Point

__all__ = [
    "EQUILIBRIUM",
    "KINDS",
    "STABILITY",
    "TOLD",
    "VARIABLES",
    "Measure",
    "Value",
    "as_values",
    "find_measures",
    "refuse_taken",
]

EQUILIBRIUM = {
    "rate": "flow", "one_way_delay": "flow", "rtt": "flow", "loss": "flow", "queueing_delay": "link", "price": "link",
    "saturated": "link", "full": "link", "arrival_rate": "link",
}  # fmt: skip
KINDS = ("mean", "std", "min", "max", "final")
VARIABLES = {
    "rate": "flow", "one_way_delay": "flow", "rtt": "flow", "loss": "flow",
    "queueing_delay": "link", "backlog": "link", "arrival_rate": "link", "throughput": "link",
    "utilisation": "link", "link_loss": "link",
}  # fmt: skip
STABILITY = {
    "stable": "", "marginal": "", "encirclements": "1", "gain_margin": "1", "phase_margin": "deg",
    "delay_margin": "s", "modulus_margin": "1", "crossover": "rad/s", "decay_rate": "1/s", "critical_gain": "1",
    "rightmost_root": "1/s",
}  # fmt: skip
TOLD = ("error", "warning")  # variables of results that say why points failed, and why they are doubtful
_SCALARS: dict[str, Any] = {"stable": True, "marginal": True, "rightmost_root": 0j}


@dataclass
class Value:
    """One measured value: its dimensions, coordinates and attributes."""

    values: Any
    dims: tuple[str, ...] = ()
    coords: dict[str, tuple[str, ...]] = field(default_factory=dict)
    attrs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Measure:
    """A measure: its name, and what computes it.

    The kind is equilibrium, trajectory, stability, critical, cycle or own.
    """

    name: str
    kind: str
    key: str = ""
    function: Callable[[Point], Any] | None = None

    def of(self, point: Point) -> dict[str, Value]:
        """Its values at a point, by name of the variable."""
        if self.kind == "own":
            assert self.function is not None
            return as_values(self.function(point), self.name)
        return {self.name: _READ[self.kind](self.key, point)}

    def form(self, net: Network) -> Value | None:
        """A value as it would look for this network, where that is known without measuring."""
        if self.kind == "own":
            return None
        if self.kind in ("equilibrium", "trajectory"):
            name = self.key if self.kind == "equilibrium" else self.key.partition("_")[2]
            dim = (EQUILIBRIUM if self.kind == "equilibrium" else VARIABLES)[name]
            labels = tuple(net.flows if dim == "flow" else net.links)
            return Value(np.full(len(labels), name in ("saturated", "full")), (dim,), {dim: labels})
        return Value(_SCALARS.get(self.key, 0.0))


def find_measures(given: Any) -> tuple[Measure, ...]:
    """The measures meant by a name, a function, a list of these, or a mapping from names to these.

    Raises
    ------
    UnknownName
        If there is no measure of that name.
    InvalidInput
        If it is none of these, or two have the same name.
    """
    if isinstance(given, str) or callable(given):
        given = [given]
    if isinstance(given, Mapping):
        pairs = [(str(label), what) for label, what in given.items()]
    elif isinstance(given, Sequence):
        pairs = [("", what) for what in given]
    else:
        pairs = []
    if not pairs:
        raise InvalidInput(
            f"measure is {shown(given)}; give a name such as 'mean_rate', a function of a point, or a list"
        )
    found = tuple(_measure(label, what) for label, what in pairs)
    names = [m.name for m in found]
    refuse_taken(names)
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(
                f"two measures are named {shown(name)}; give them names of their own: {{'name': measure}}"
            )
    return found


def refuse_taken(names: Iterable[str]) -> None:
    """Refuse names that results use themselves.

    Raises
    ------
    InvalidInput
        If one of them is such a name.
    """
    for name in names:
        if name in TOLD:
            raise InvalidInput(
                f"a measure is named {name!r}, as results name what they say of points; name it otherwise"
            )


def known_measures() -> list[str]:
    """Names of all measures."""
    return [
        *(f"equilibrium_{name}" for name in EQUILIBRIUM),
        *(f"{kind}_{name}" for kind in KINDS for name in VARIABLES),
        *STABILITY,
        "critical_eta",
        "limit_cycle_period",
    ]


def _measure(label: str, what: Any) -> Measure:
    if callable(what):
        name = getattr(what, "__name__", "")
        return Measure(label or (name if name.isidentifier() else "value"), "own", function=what)
    if not isinstance(what, str):
        raise InvalidInput(f"measure {shown(label or what)} is {shown(what)}; give a name or a function of a point")
    kind, _, key = what.partition("_")
    if what in STABILITY:
        return Measure(label or what, "stability", what)
    if what == "limit_cycle_period":
        return Measure(label or what, "cycle", what)
    if kind == "critical" and key:
        return Measure(label or what, "critical", key)
    if kind == "equilibrium" and key in EQUILIBRIUM:
        return Measure(label or what, "equilibrium", key)
    if kind in KINDS and key in VARIABLES:
        return Measure(label or what, "trajectory", what)
    hint = near(what, known_measures())
    more = "give one of fluidcc.sweeps.measures, or a function of a point"
    raise UnknownName(f"there is no measure {shown(what)}; {hint if hint[-1] == '?' else more}")


# --- values by name ---------------------------------------------------------------------------------------------------


def _equilibrium(key: str, point: Point) -> Value:
    return _labelled(getattr(point.equilibrium, key))


def _stability(key: str, point: Point) -> Value:
    report = point.stability
    found: Any
    if key == "rightmost_root":
        found = complex(np.asarray(report.rightmost_roots).ravel()[0])
    else:
        found = getattr(report, key)
    return Value(found, attrs={"units": STABILITY[key]} if STABILITY[key] else {})


def _critical(key: str, point: Point) -> Value:
    from fluidcc.analysis.boundary import stability_boundary

    found: Any = stability_boundary(point.net, key)
    return Value(float(found.value), attrs={"units": found.units})


def _cycle(key: str, point: Point) -> Value:
    return Value(float(point.limit_cycle.period), attrs={"units": "s"})


def _trajectory(key: str, point: Point) -> Value:
    from fluidcc.sweeps.trajectory import statistic

    return statistic(key, point)


_READ = {
    "equilibrium": _equilibrium, "trajectory": _trajectory, "stability": _stability, "critical": _critical,
    "cycle": _cycle,
}  # fmt: skip


def as_values(result: Any, name: str) -> dict[str, Value]:
    """What a user's function returned: a number, a mapping from names to numbers, an array, or an xarray object.

    Raises
    ------
    InvalidInput
        If it is none of these.
    """
    if hasattr(result, "data_vars"):
        return {str(key): _labelled(array) for key, array in result.data_vars.items()}
    if isinstance(result, Mapping) and not result:
        raise InvalidInput(f"measure {shown(name)} returned {{}}; return at least one number")
    if isinstance(result, Mapping):
        return {str(key): value for k, v in result.items() for key, value in as_values(v, str(k)).items()}
    if hasattr(result, "dims") and hasattr(result, "coords"):
        return {name: _labelled(result)}
    array = np.asarray(result)
    if array.dtype.kind not in "biufc":
        raise InvalidInput(
            f"measure {shown(name)} returned {shown(result)}; return a number, an array or a mapping of these"
        )
    dims = tuple(f"{name}_{k}" for k in range(array.ndim))
    return {name: Value(array, dims)}


def _labelled(array: Any) -> Value:
    if np.asarray(array.values).dtype.kind not in "biufc":
        raise InvalidInput(f"measure {array.name!r} is {array.dtype}; return numbers")
    coords = {str(d): tuple(array[d].values.tolist()) for d in array.dims if d in array.coords}
    return Value(np.asarray(array.values), tuple(map(str, array.dims)), coords, dict(array.attrs))
