"""Utilisation of links and losses of flows over a span of a run."""

from __future__ import annotations

from typing import Any

from fluidcc.base.arguments import explained
from fluidcc.base.errors import InvalidInput
from fluidcc.metrics.averages import mean

__all__ = ["loss", "utilisation", "variable"]


@explained
def utilisation(result: Any, start: float | str | None = None, stop: float | str | None = None) -> Any:
    """Mean utilisation of each link: what it carried over what it could have carried.

    Parameters
    ----------
    result : Dataset of `fluidcc.simulate`
        With ``utilisation(time, link)``.
    start, stop : float or str, optional
        The span [s]; by default all there is.

    Returns
    -------
    DataArray over "link"
        Between 0 and 1 [1].
    """
    return mean(variable(result, "utilisation"), start, stop)


@explained
def loss(result: Any, start: float | str | None = None, stop: float | str | None = None) -> Any:
    """Share of what each flow sent that was lost or marked: the loss ratio of its path, weighted by its rate.

    Parameters
    ----------
    result : Dataset of `fluidcc.simulate`
        With ``rate(time, flow)`` and ``loss(time, flow)``.
    start, stop : float or str, optional
        The span [s]; by default all there is.

    Returns
    -------
    DataArray over "flow"
        [1]; NaN for a flow that sent nothing.

    Notes
    -----
    The loss ratio at a time is what the source knows then, about data that left one feedback loop ago; the weight is
    the rate at the same time. Over spans much longer than a round trip the difference vanishes.
    """
    rate, ratio = variable(result, "rate"), variable(result, "loss")
    product = (rate * ratio).fillna(0.0).transpose(*rate.dims).assign_attrs(units="bit/s")
    sent, lost = mean(rate.fillna(0.0), start, stop), mean(product, start, stop)
    out = (lost / sent.where(sent > 0)).rename("loss_ratio")
    out.attrs["units"] = "1"
    return out


def variable(result: Any, name: str) -> Any:
    """A variable of a result, by name."""
    if not hasattr(result, "data_vars") or name not in result.data_vars:
        raise InvalidInput(f"the result has no variable {name!r}: give the Dataset that fluidcc.simulate returns")
    return result[name]
