"""How fair rates are: Jain's index, and max-min fairness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base.arguments import explained, number, shown
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.metrics.averages import Array, axis_of, reduced, values_of

if TYPE_CHECKING:
    from fluidcc.network import Network


@explained
def jain(rate: Any, *, dim: str = "flow") -> Any:
    """Return Jain's fairness index, (sum x)^2 / (N sum x^2): equation (44) of the LDCC paper.

    Parameters
    ----------
    rate : DataArray or array
        Rates in any unit; of an array, the last axis is over flows.
    dim : str
        The dimension over flows.

    Returns
    -------
    DataArray or float or array
        Between 1/N (one flow takes all) and 1 (equal rates) [1]; NaN where every rate is 0.

    References
    ----------
    Jain, Chiu and Hawe, "A quantitative measure of fairness", DEC-TR-301, 1984.

    Examples
    --------
    >>> jain([1.0, 1.0, 0.0, 0.0])
    0.5
    """
    labelled = hasattr(rate, "dims")
    x = values_of(rate, "rate")
    axis = axis_of(rate, dim) if labelled else -1
    if x.ndim == 0 or x.shape[axis] == 0:
        raise InvalidInput(
            "Jain's index needs the rate of one flow at least: give an array over flows"
        )
    if np.any(x < 0):
        raise InvalidInput(f"Jain's index is for rates of 0 and more, and one is {np.min(x):g}")
    top = np.max(x, axis=axis, keepdims=True)
    with np.errstate(invalid="ignore"):
        x = x / top  # so that squares neither overflow nor underflow
        index = np.sum(x, axis=axis) ** 2 / (x.shape[axis] * np.sum(x * x, axis=axis))
    return reduced(rate if labelled else None, index, dim, "jain_index", "1")


@explained
def over_others(rate: Any, flow: str | int, *, dim: str = "flow") -> Any:
    """Return the rate of one flow over the mean of the others': n x_0/sum x_f of Section V of the
    paper on FAST's persistent congestion.

    Parameters
    ----------
    rate : DataArray or array
        Rates in any unit; of an array, the last axis is over flows.
    flow : str or int
        Which flow: its name, or its position.
    dim : str
        The dimension over flows.

    Returns
    -------
    DataArray or float or array
        1 where the flow has as much as the others have in the mean [1]; NaN where none sends.

    Raises
    ------
    UnknownName
        If there is no such flow.

    Examples
    --------
    >>> over_others([1.0, 1.0, 3.0], 2)
    3.0
    """
    labelled = hasattr(rate, "dims")
    x = values_of(rate, "rate")
    axis = axis_of(rate, dim) if labelled else -1
    if x.ndim == 0 or x.shape[axis] < 2:
        raise InvalidInput("over_others compares flows: give the rates of two at least")
    known = list(rate[dim].values) if labelled else []
    try:
        if isinstance(flow, bool):
            raise TypeError
        at = known.index(flow) if isinstance(flow, str) else range(x.shape[axis])[flow]
    except (ValueError, IndexError, TypeError):
        names = ", ".join(map(str, known)) or f"0 to {x.shape[axis] - 1}"
        raise UnknownName(f"there is no flow {shown(flow)}; the flows are {names}") from None
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = x.take(at, axis) / np.delete(x, at, axis).mean(axis)
    return reduced(rate if labelled else None, ratio, dim, "over_others", "1")


def _as_problem(net: Any, capacity: Any) -> tuple[Array, Array]:
    """Return the routing matrix and capacities from a Network, or from arrays."""
    if capacity is None:
        if not hasattr(net, "routing_matrix"):
            raise InvalidInput(
                f"the network is {shown(net)}; give a Network, or a routing matrix with its "
                f"capacity="
            )
        return net.routing_matrix(), np.array([link.capacity for link in net.links.values()])
    routing = np.atleast_2d(values_of(net, "the routing matrix", finite=True))
    c = np.atleast_1d(values_of(capacity, "capacity"))
    if not np.all(c > 0):
        raise InvalidInput(
            f"capacity is {shown(capacity)}; give positive numbers, one for each link"
        )
    if len(c) != len(routing):
        raise InvalidInput(
            f"the routing matrix has {len(routing)} links and there are {len(c)} capacities: "
            "its rows are links, its columns flows"
        )
    return routing, c


@explained
def max_min_rates(net: Network | Any, capacity: Any = None) -> Array:
    """Return the max-min fair rates, by progressive filling.

    Parameters
    ----------
    net : Network or array, shape (links, flows)
        A network (with its capacities at time 0), or a routing matrix.
    capacity : array, shape (links,), optional
        Capacities [bit/s], with a routing matrix.

    Returns
    -------
    array, shape (flows,)
        [bit/s]; infinite for a flow that crosses no link.

    Examples
    --------
    >>> max_min_rates([[1, 1, 0], [1, 0, 1]], [2.0, 10.0]).tolist()
    [1.0, 1.0, 9.0]
    """
    routing, c = _as_problem(net, capacity)
    used, room = routing > 0, c.astype(float).copy()
    rate = np.full(routing.shape[1], np.inf)
    free = used.any(axis=0)
    while np.any(free):
        count = used[:, free].sum(axis=1)
        share = np.where(count > 0, room / np.maximum(count, 1), np.inf)
        level = np.min(share)
        fixed = free & used[share <= level * (1 + 1e-12)].any(axis=0)
        rate[fixed] = level
        room = np.maximum(room - used[:, fixed].sum(axis=1) * level, 0.0)
        free &= ~fixed
    return rate


@explained
def is_max_min_fair(
    rate: Any, net: Network | Any, capacity: Any = None, *, rtol: float = 1e-6
) -> bool:
    """Return whether rates are max-min fair: no rate can rise without lowering one that is not
    larger.

    Parameters
    ----------
    rate : DataArray or array over flows
        [bit/s]
    net, capacity
        As in `max_min_rates`.
    rtol : float
        Relative tolerance.

    Notes
    -----
    The test is the bottleneck condition: every flow crosses a saturated link on which no flow has a
    larger rate (Bertsekas and Gallager, Data Networks, Section 6.5.2).

    Examples
    --------
    Two flows share the first link, and one of them the second, narrow one:

    >>> import fluidcc as fc
    >>> routing, capacity = [[1, 1], [0, 1]], [10e6, 2e6]
    >>> fc.metrics.is_max_min_fair([8e6, 2e6], routing, capacity)
    True
    >>> fc.metrics.is_max_min_fair([5e6, 2e6], routing, capacity)
    False
    """
    routing, c = _as_problem(net, capacity)
    x, used = values_of(rate, "rate", finite=True), routing > 0
    rtol = number(rtol, "rtol", "a number from 0 to below 1", least=0.0, below=1.0)
    if x.shape != (routing.shape[1],):
        raise InvalidInput(
            f"rate has shape {x.shape}, but there are {routing.shape[1]} flows: give one rate each"
        )
    load = used @ x
    if np.any(load > c * (1 + rtol)):
        return False
    largest = np.max(np.where(used, x, -np.inf), axis=1, initial=-np.inf)
    bottleneck = (load >= c * (1 - rtol))[:, None] & used & (x >= largest[:, None] * (1 - rtol))
    return bool(np.all(bottleneck.any(axis=0) | ~used.any(axis=0)))
