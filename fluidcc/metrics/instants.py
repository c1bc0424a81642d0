"""When laws jumped and ticked in a run, and where it is not smooth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import explained
from fluidcc.base.errors import InvalidInput
from fluidcc.base.packed import unpacked

if TYPE_CHECKING:
    import pandas as pd


@explained
def jumps(result: Any) -> pd.DataFrame:
    """Return every jump of a run: its time, its flow or link, and its number in the law.

    Parameters
    ----------
    result : Dataset of `fluidcc.simulate`
        Also one read back from a file: they are in its attribute ``instants``.

    Returns
    -------
    DataFrame
        A row for each, in order of time, with the columns ``time`` [s], at the clock of the flow or
        link that jumps; ``of``, its name; and ``rule``, the number among its law's jumps, from 0.
        ``result.jump_time`` has the times alone.

    Raises
    ------
    InvalidInput
        If `result` is no run, or has lost its attributes.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.dumbbell([fc.StaticAIMD], {"capacity": "2 Mbit/s", "buffer": "50 ms"}, rtt="60 ms")
    >>> fc.metrics.jumps(fc.simulate(net, 10)).round(2).head(2)
       time     of  rule
    0  1.96  flow1     0
    1  3.19  flow1     0
    """
    return _table(result, "jump")


@explained
def ticks(result: Any) -> pd.DataFrame:
    """Return every tick of a run, as `jumps` returns its jumps.

    Parameters
    ----------
    result : Dataset of `fluidcc.simulate`

    Returns
    -------
    DataFrame
        With the columns ``time`` [s], ``of``, ``rule``.

    Raises
    ------
    InvalidInput
        If `result` is no run, or has lost its attributes.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.dumbbell({"a": fc.NADA8698}, {"capacity": "2 Mbit/s"}, rtt="60 ms")
    >>> fc.metrics.ticks(fc.simulate(net, 0.25)).time.round(6).tolist()
    [0.1, 0.2]
    """
    return _table(result, "tick")


@explained
def breaks(result: Any) -> NDArray[np.float64]:
    """Return when a run is not smooth, where some law jumps or ticks: then, and where it is felt.

    Parameters
    ----------
    result : Dataset of `fluidcc.simulate`

    Returns
    -------
    ndarray
        Times [s], in order.

    Raises
    ------
    InvalidInput
        If `result` is no run, or has lost its attributes.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.dumbbell([fc.LDCC], {"capacity": "2 Mbit/s"}, rtt="60 ms")
    >>> fc.metrics.breaks(fc.simulate(net, 10))
    array([], dtype=float64)
    """
    return _instants(result).get("break_time", np.empty(0))


def _table(result: Any, kind: str) -> pd.DataFrame:
    import pandas as pd

    found = _instants(result)
    nothing = {"time": np.empty(0), "of": np.empty(0, str), "rule": np.empty(0, int)}
    return pd.DataFrame({k: found.get(f"{kind}_{k}", none) for k, none in nothing.items()})


def _instants(result: Any) -> dict[str, NDArray[Any]]:
    try:
        text = result.attrs["instants"]
        return unpacked(text) if text else {}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InvalidInput(
            "the result has no attribute 'instants': give the Dataset that fluidcc.simulate "
            "returns, before anything is computed of it"
        ) from None
