"""What is measured at each point: by name, or a function of one's own.

====================================  ==========================================================
``equilibrium_rate``, ...             a field of `fluidcc.equilibrium`: rate, one_way_delay, rtt,
                                      loss, mark, queueing_delay, link_loss, link_drop,
                                      link_mark, price, saturated, full, arrival_rate,
                                      admitted_rate
``mean_rate``, ``max_backlog``, ...   mean, std, min, max or final, of a variable of
                                      `fluidcc.simulate`: rate, one_way_delay, rtt, loss, mark,
                                      queueing_delay, backlog, arrival_rate, throughput,
                                      utilisation, link_loss, link_drop, link_mark
``loss_ratio``, ``mark_ratio``        share of what each flow sent that was lost, of the data of
                                      which it hears (`fluidcc.metrics.loss`), and of the rest that
                                      was marked
``share``                             mean rate of each flow over the sum of those of all flows, as
                                      papers on fairness have it: 1/n is an equal one
``stable``, ``gain_margin``, ...      a scalar of `fluidcc.stability`: stable, marginal,
                                      encirclements, crossover, and of stable points alone,
                                      else NaN, gain_margin, phase_margin, delay_margin,
                                      modulus_margin
``rightmost_root``, ``decay_rate``    the first of its characteristic roots (complex), and minus
                                      its real part
``critical_gain``                     factor on the gains of all flows, the nearest to one, that
                                      brings a root to the axis, stable or not; the equilibrium
                                      stays as it is
``critical_eta``, ``critical_a.w``    value of a parameter at which stability is won or lost, the
                                      nearest to its present one: `fluidcc.stability_boundary`
``limit_cycle_period``,               period of `fluidcc.limit_cycle` [s], and half of the way from
``limit_cycle_amplitude``             the least to the largest queueing delay of each link [s]
====================================  ==========================================================
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.boundary import stability_boundary
from fluidcc.analysis.report import MARGINS
from fluidcc.analysis.stability import stability
from fluidcc.base.arguments import shown
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.cycles.orbit import limit_cycle
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.equilibria.result import COLUMNS
from fluidcc.metrics.averages import heard
from fluidcc.network import Network
from fluidcc.network.patterns import near
from fluidcc.simulation.results import VARIABLES as SAMPLED
from fluidcc.simulation.simulate import simulate

KINDS = ("mean", "std", "min", "max", "final")
VARIABLES = {  # of a run: its dimension and its unit
    name: (dim, unit) for name, (dim, _, unit, _) in SAMPLED.items()
    if name not in ("price", "entered", "lost", "link_price", "capacity")
}  # fmt: skip
TRAJECTORIES = {  # the same of each measure of a run
    **{f"{kind}_{name}": about for kind in KINDS for name, about in VARIABLES.items()},
    **dict.fromkeys(("share", "loss_ratio", "mark_ratio"), ("flow", "1")),
}  # fmt: skip
STABILITY = {  # of a verdict: its unit, what finds it, and a value of its type
    "stable": ("", "", True), "marginal": ("", "", True), "encirclements": ("1", "", 0.0),
    "decay_rate": ("1/s", "roots", 0.0),
    "rightmost_root": ("1/s", "roots", 0j),
    **{name: (unit, "margins", 0.0) for name, (_, unit) in MARGINS.items()},
}  # fmt: skip
MEASURES = {  # the kind and the key of every name but "critical_<parameter>"
    **{f"equilibrium_{name}": ("equilibrium", name) for name in COLUMNS},
    **{name: ("trajectory", name) for name in TRAJECTORIES},
    **{name: ("stability", name) for name in STABILITY},
    "limit_cycle_period": ("cycle", "period"),
    "limit_cycle_amplitude": ("cycle", "amplitude"),
}
# options of `simulate` that a sweep hands on, and what they are by default
OF_RUNS = {
    n: p.default for n, p in inspect.signature(simulate).parameters.items()
    if n not in ("net", "until", "progress", "t_eval")
}  # fmt: skip
# variables of results that are texts: what they say of a point
TOLD = {
    "error": "why the point could not be measured",
    "warning": "what makes its results doubtful",
}


# --- points ---------------------------------------------------------------------------------------


def sample_times(options: Mapping[str, Any]) -> NDArray[np.float64]:
    """Where trajectories are sampled for their statistics: evenly over the window."""
    first, last = options.get("window") or (0.0, float(options["until"]))
    return np.linspace(first, last, int(options.get("samples") or OF_RUNS["samples"]))


class Point(Mapping[str, Any]):
    """The values of a point by axis, with its network and results.

    Attributes
    ----------
    net : Network
        The network with the values put in.
    run : xarray.Dataset
        Its simulation, made when first asked for, with the sweep's `until` and options.
    equilibrium : Equilibrium
    stability : StabilityReport
    limit_cycle : LimitCycle
        The same.
    doubts : list of str
        What makes those of these doubtful that were asked for, as they say it themselves.

    Examples
    --------
    A measure of one's own is a function of a point:

    >>> import fluidcc as fc
    >>> net = fc.dumbbell([fc.LDCC], dict(capacity="2 Mbit/s"), rtt="50 ms")
    >>> ratio = lambda p: p.equilibrium.rtt.item() / p["beta"]
    >>> fc.sweep(net, {"beta": [0.1, 0.2]}, ratio).sizes["beta"]
    2
    """

    def __init__(
        self, values: Mapping[str, Any], net: Network | None, options: Mapping[str, Any]
    ) -> None:
        self._values = dict(values)
        self._net = net
        self.options = dict(options)

    def __getitem__(self, axis: str) -> Any:
        return self._values[axis]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Point({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"

    @property
    def net(self) -> Network:
        if self._net is None:
            raise InvalidInput(
                "the point has no network: the swept function returns results, so leave measure out"
            )
        return self._net

    @property
    def until(self) -> float:
        """End of the runs [s]."""
        if self.options.get("until") is None:
            raise InvalidInput(
                "trajectories are measured, but their end is not known; give until=, such as '60 s'"
            )
        return float(self.options["until"])

    @cached_property
    def run(self) -> Any:
        return self._simulated()

    @cached_property
    def sampled(self) -> Any:
        """The same, sampled for the statistics of its window."""
        return self._simulated(t_eval=sample_times({**self.options, "until": self.until}))

    def _simulated(self, **more: Any) -> Any:
        used = ("until", "window", *(("samples",) if "t_eval" in more else ()))
        given = {k: v for k, v in self.options.items() if k not in used and v is not None}
        return simulate(self.net, self.until, progress=False, **given, **more)

    @cached_property
    def equilibrium(self) -> Any:
        return equilibrium(self.net)

    @cached_property
    def stability(self) -> Any:
        return stability(self.net)

    @cached_property
    def limit_cycle(self) -> Any:
        return limit_cycle(self.net)

    @property
    def doubts(self) -> list[str]:
        made = vars(self)  # where cached properties are kept
        runs = [made[k].attrs["warnings"].split("; ") for k in ("sampled", "run") if k in made]
        others = [
            made[k].warnings for k in ("equilibrium", "stability", "limit_cycle") if k in made
        ]
        return [text for texts in (*runs, *others) for text in texts if text]


# --- measures -------------------------------------------------------------------------------------


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
        """Return the form of its values for this network, where that is known beforehand."""
        if self.kind == "own":
            return None
        if self.kind == "stability":
            unit, _, like = STABILITY[self.key]
            return Value(like, attrs={"units": unit} if unit else {})
        if self.kind == "critical":
            return Value(0.0)
        if self.key == "period":
            return Value(0.0, attrs={"units": "s"})
        found: dict[str, Any] = {
            "equilibrium": COLUMNS,
            "trajectory": TRAJECTORIES,
            "cycle": {"amplitude": ("link", "s")},
        }
        dim, of = found[self.kind][self.key]
        labels = net.flow_names if dim == "flow" else net.link_names
        empty = np.full(len(labels), False if of is None else np.nan)
        return Value(empty, (dim,), {dim: labels}, {"units": of} if of else {})


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
            f"measure is {shown(given)}; give a name such as 'mean_rate', a function of a point, "
            "or a list"
        )
    found = tuple(_measure(label, what) for label, what in pairs)
    names = [m.name for m in found]
    refuse_taken(names)
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(
                f"two measures are named {shown(name)}; give them names of their own: "
                f"{{'name': measure}}"
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
                f"a measure is named {name!r}, as results name what they say of points; name it "
                "otherwise"
            )


def known_measures() -> list[str]:
    """Return the names of all measures."""
    return [*MEASURES, "critical_eta"]


def _measure(label: str, what: Any) -> Measure:
    if callable(what):
        name = getattr(what, "__name__", "")
        return Measure(label or (name if name.isidentifier() else "value"), "own", function=what)
    if not isinstance(what, str):
        raise InvalidInput(
            f"measure {shown(label or what)} is {shown(what)}; give a name or a function of a point"
        )
    kind, key = MEASURES.get(what, ("critical", what.removeprefix("critical_")))
    if kind == "critical" and (key == what or not key):
        mean = f"mean_{what}"  # of a variable of runs; by its letters std_ and min_ are as near
        hint = f"did you mean {mean}?" if mean in MEASURES else near(what, known_measures())
        hint = f"{hint} Else " if hint[-1] == "?" else ""
        more = "give one of fluidcc.sweeps.measures, or a function of a point"
        raise UnknownName(f"there is no measure {shown(what)}; {hint}{more}")
    return Measure(label or what, kind, key)


# --- values by name -------------------------------------------------------------------------------


def _equilibrium(key: str, point: Point) -> Value:
    return _labelled(getattr(point.equilibrium, key))


def _stability(key: str, point: Point) -> Value:
    if key == "rightmost_root":
        found: Any = complex(np.asarray(point.stability.rightmost_roots).ravel()[0])
    else:
        found = getattr(point.stability, key)
    unit = STABILITY[key][0]
    return Value(found, attrs={"units": unit} if unit else {})


def _critical(key: str, point: Point) -> Value:
    found: Any = stability_boundary(point.net, key)
    return Value(float(found.value), attrs={"units": found.units})


def _cycle(key: str, point: Point) -> Value:
    cycle = point.limit_cycle
    if key == "period":
        return Value(float(cycle.period), attrs={"units": "s"})
    swing = cycle.most.queueing_delay - cycle.least.queueing_delay
    return _labelled(0.5 * swing.assign_attrs(units="s"))


def _trajectory(key: str, point: Point) -> Value:
    run, (dim, unit) = point.sampled, TRAJECTORIES[key]
    values = of_run(key, run.time.values, lambda name: run[name].transpose(..., "time").values)
    return Value(values, (dim,), {dim: tuple(run[dim].values.tolist())}, {"units": unit})


def of_run(
    key: str, times: NDArray[np.float64], samples: Callable[[str], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """A measure of a run, of the piecewise-linear curves through the samples of its variables
    (owners, times).
    """
    if key != "share" and not key.endswith("_ratio"):
        kind, _, variable = key.partition("_")
        return statistic(kind, samples(variable), times)
    rate, loss = samples("rate"), samples("loss")

    def ratio(values: NDArray[np.float64]) -> NDArray[np.float64]:
        flows = zip(rate, samples("rtt"), values, strict=True)
        return np.array([heard(times, *one, times[0], times[-1]) for one in flows])

    with np.errstate(invalid="ignore"):  # where nothing is sent, or all is lost
        if key == "share":
            mean = statistic("mean", rate, times)
            return mean / mean.sum()
        if key == "loss_ratio":
            return ratio(loss)
        return ratio((1 - loss) * samples("mark")) / (1 - ratio(loss))


def statistic(
    kind: str, values: NDArray[np.float64], times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A statistic of the piecewise-linear curves through samples (curves, times)."""
    values = np.ascontiguousarray(values)  # so that the last bits are the same however they come
    if kind == "final":
        return values[:, -1]
    if kind in ("min", "max"):
        return np.min(values, axis=1) if kind == "min" else np.max(values, axis=1)
    gaps = (times[1:] - times[:-1]) / (times[-1] - times[0])
    weights = np.zeros(len(times))
    weights[:-1] = 0.5 * gaps
    weights[1:] += 0.5 * gaps
    mean = values @ weights
    if kind == "mean":
        return mean
    off = values - mean[:, None]  # the square of a line from a to b is (a^2 + ab + b^2)/3 long
    ends = np.einsum("ij,ij,j->i", off, off, weights)
    return np.sqrt((2 * ends + np.einsum("ij,ij,j->i", off[:, :-1], off[:, 1:], gaps)) / 3)


_READ = {
    "equilibrium": _equilibrium, "trajectory": _trajectory, "stability": _stability,
    "critical": _critical, "cycle": _cycle,
}  # fmt: skip


def as_values(result: Any, name: str) -> dict[str, Value]:
    """What a user's function returned: a number, a mapping from names to numbers, an array, or an
    xarray object.

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
        return {
            str(key): value
            for k, v in result.items()
            for key, value in as_values(v, str(k)).items()
        }
    if hasattr(result, "dims") and hasattr(result, "coords"):
        return {name: _labelled(result)}
    array = np.asarray(result)
    if array.dtype.kind not in "biufc":
        raise InvalidInput(
            f"measure {shown(name)} returned {shown(result)}; return a number, an array or a "
            "mapping of these"
        )
    dims = tuple(f"{name}_{k}" for k in range(array.ndim))
    return {name: Value(array, dims)}


def _labelled(array: Any) -> Value:
    if np.asarray(array.values).dtype.kind not in "biufc":
        raise InvalidInput(f"measure {array.name!r} is {array.dtype}; return numbers")
    coords = {str(d): tuple(array[d].values.tolist()) for d in array.dims if d in array.coords}
    return Value(np.asarray(array.values), tuple(map(str, array.dims)), coords, dict(array.attrs))
