"""How many steps of the solver a search may take, and a bar that shows how many it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fluidcc.base.progress import Progress
from fluidcc.network import Network
from fluidcc.simulation.simulate import simulate

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Effort"]

_FINER = 0.15  # steps grow with this power of the accuracy: by a method of order 5, and by what kinks add


@dataclass
class Effort:
    """Steps that are allowed, and taken: the same on every machine and under any load, as seconds would not be.

    Attributes
    ----------
    most, used : int
    bar : Progress, optional
        Shows `used`.
    density : dict
        Steps a second of the last run at each accuracy.
    """

    most: int
    bar: Progress | None = None
    used: int = 0
    density: dict[float, float] = field(default_factory=dict)

    @property
    def left(self) -> int:
        return self.most - self.used

    def ahead(self, seconds: float, rtol: float) -> float:
        """Steps that a run of so many seconds will take, by those before it; 0 before any."""
        known = min((one for one in self.density if one >= rtol), default=None)
        return 0.0 if known is None else self.density[known] * (known / rtol) ** _FINER * seconds

    def go(
        self, net: Network, until: float, rtol: float, restart: xr.Dataset | None = None, t_eval: Any = None
    ) -> xr.Dataset:
        """`simulate`, counted; when it ends stands in the attribute ``end``."""
        at = [until] if t_eval is None else t_eval
        run = simulate(net, until, t_eval=at, rtol=rtol, atol=1e-3 * rtol, restart=restart, progress=False)
        run.attrs["end"] = until
        steps, began = int(run.attrs["steps"]), 0.0 if restart is None else float(restart.attrs["end"])
        self.used += steps
        self.density[rtol] = steps / (until - began)
        if self.bar is not None:
            self.bar.reach(float(min(self.used, self.most)))
        return run
