"""One point of a sweep, as measures see it: its values, its network, and what is computed of it when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput
from fluidcc.network import Network

__all__ = ["Point", "sample_times"]


def sample_times(options: Mapping[str, Any]) -> NDArray[np.float64]:
    """Where trajectories are sampled for their statistics: evenly over the window."""
    first, last = options.get("window") or (0.0, float(options["until"]))
    return np.linspace(first, last, int(options.get("samples") or 601))


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
    >>> fc.sweep(net, {"beta": [0.1, 0.2]}, lambda p: p.equilibrium.rtt.item() / p["beta"]).value.shape
    (2,)
    """

    def __init__(self, values: Mapping[str, Any], net: Network | None, options: Mapping[str, Any]) -> None:
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
            raise InvalidInput("the point has no network: the swept function returns results, so leave measure out")
        return self._net

    @property
    def until(self) -> float:
        """End of the runs [s]."""
        if self.options.get("until") is None:
            raise InvalidInput("trajectories are measured, but their end is not known; give until=, such as '60 s'")
        return float(self.options["until"])

    @cached_property
    def run(self) -> Any:
        return self._simulated()

    @cached_property
    def sampled(self) -> Any:
        """The same, sampled for the statistics of its window."""
        return self._simulated(t_eval=sample_times({**self.options, "until": self.until}))

    def _simulated(self, **more: Any) -> Any:
        from fluidcc.simulation.simulate import simulate

        given = {k: v for k, v in self.options.items() if k not in ("until", "window") and v is not None}
        return simulate(self.net, self.until, progress=False, **given, **more)

    @cached_property
    def equilibrium(self) -> Any:
        from fluidcc.equilibria.equilibrium import equilibrium

        return equilibrium(self.net)

    @cached_property
    def stability(self) -> Any:
        from fluidcc.analysis.stability import stability

        return stability(self.net)

    @cached_property
    def limit_cycle(self) -> Any:
        from fluidcc.analysis.orbit import limit_cycle

        return limit_cycle(self.net)

    @property
    def doubts(self) -> list[str]:
        made = vars(self)  # where cached properties are kept
        runs = [made[name].attrs["warnings"] for name in ("sampled", "run") if name in made]
        others = [made[name].warnings for name in ("equilibrium", "stability", "limit_cycle") if name in made]
        return [*(text for told in runs for text in told.split("; ") if text), *(text for of in others for text in of)]
