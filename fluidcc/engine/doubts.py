"""What makes a result of a run doubtful, though the solver has nothing to complain of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fluidcc.engine.layout import Layout
from fluidcc.symbols import offer_min, plain, reports, unfold

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["FEW", "doubts", "unheard"]

FEW = 3.0  # packets: with windows as small as that, single packets and timeouts rule, which a fluid does not have


def unheard(at: Layout) -> list[str]:
    """Flows whose law waits for a router, and on whose route none speaks."""
    found: list[str] = []
    for group in at.groups:
        used = {symbol for _, f in group.law.expressions() for symbol in unfold(f).free_symbols}
        if used & {offer_min, *reports}:
            found += [at.flows[i].name for i in group.members if not at.told[at.flow_class[i]]]
    if not found:
        return []
    some = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    return [f"no router on the route of {some} reports or offers anything: it goes on at the rate it has without one"]


def doubts(at: Layout, result: xr.Dataset) -> list[str]:
    """Sentences on what to doubt, of which the result's attribute ``warnings`` consists.

    Parameters
    ----------
    at : Layout
    result : xarray.Dataset
        Of the run.
    """
    return [*unheard(at), *_small_windows(at, result)]


def _small_windows(at: Layout, result: xr.Dataset) -> list[str]:
    """Windows that are on average below `FEW` packets in the later half of the run."""
    small: dict[str, float] = {}
    late = slice(len(result.time) // 2, None)
    for group in at.groups:
        windows = [z for z in group.law.states if group.law.units[z] == "packet" and plain(z) in ("W", "w")]
        for z in windows:
            values = result[f"{group.law.name}_{plain(z)}"]
            for i in group.members:
                name = at.flows[i].name
                rows = values.sel(flow=name).values[late][result.rate.sel(flow=name).values[late] > 0]
                if len(rows) and np.mean(rows) < FEW:
                    small[name] = float(np.mean(rows))
    if not small:
        return []
    least = min(small, key=lambda name: small[name])
    many = f"the windows of {len(small)} flows are" if len(small) > 1 else f"the window of flow {least!r} is"
    return [
        f"{many} below {FEW:g} packets, {small[least]:.2g} on average at the least: timeouts and single packets then "
        "rule, which a fluid does not have"
    ]
