"""How many steps of the solver a search may take, and a bar that shows how many it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fluidcc.network import Network
from fluidcc.progress import Progress
from fluidcc.simulate import simulate

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Effort"]


@dataclass
class Effort:
    """Steps that are allowed, and taken: the same on every machine and under any load, as seconds would not be.

    Attributes
    ----------
    most, used : int
    bar : Progress, optional
        Shows `used`.
    """

    most: int
    bar: Progress | None = None
    used: int = 0

    @property
    def left(self) -> int:
        return self.most - self.used

    def go(
        self, net: Network, until: float, rtol: float, restart: xr.Dataset | None = None, t_eval: Any = None
    ) -> xr.Dataset:
        """`simulate`, counted; when it ends stands in the attribute ``end``."""
        at = [until] if t_eval is None else t_eval
        run = simulate(net, until, t_eval=at, rtol=rtol, atol=1e-3 * rtol, restart=restart, progress=False)
        run.attrs["end"] = until
        self.used += int(run.attrs["steps"])
        if self.bar is not None:
            self.bar.reach(float(min(self.used, self.most)))
        return run
