"""DelayLTI as objects of python-control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.base.arguments import numbers, whole
from fluidcc.base.errors import InvalidInput
from fluidcc.numerics.linear.wiring import Blocks, stack, wire

if TYPE_CHECKING:
    from fluidcc.numerics.linear.dlti import DelayLTI

__all__ = ["pade_block", "to_control"]


def to_control(system: DelayLTI, omega: ArrayLike | None, pade: int | None) -> Any:
    """Frequency response data at `omega`, or a state space with every delay as a Pade approximant of order `pade`."""
    import control

    if omega is not None:
        numbers(omega, "omega", "frequencies in rad/s")
    if pade is not None:
        whole(pade, "pade", least=1, most=50)
    names = {"inputs": list(system.inputs), "outputs": list(system.outputs)}
    if omega is not None and pade is None:
        grid = np.atleast_1d(np.asarray(omega, float))
        return control.frd(system.frequency_response(grid), grid, smooth=len(grid) > 3, **names)
    if pade is None and not len(system.delays):
        return control.ss(system.A, system.B, system.C, system.D, **names)
    if omega is not None or pade is None:
        got = "both" if omega is not None else "neither"
        raise InvalidInput(f"give the frequencies omega=, or the order pade= of at least 1 for every delay; got {got}")
    block = Blocks(system.A, system.B, system.C, system.D, np.empty(0))
    filters = [pade_block(float(lag), pade) for lag in system.delays]
    m, p, k = system.n_inputs, system.n_outputs, len(filters)
    joined = stack(block, *filters)
    # (u, v, z of the filters) from (y, z, v of the filters)
    back = np.zeros((m + 2 * k, p + 2 * k))
    back[m : m + k, p + k :] = np.eye(k)
    back[m + k :, p : p + k] = np.eye(k)
    closed = wire(joined, back, np.eye(m + 2 * k)[:, :m], np.eye(p + 2 * k)[:p])
    return control.ss(closed.A, closed.B, closed.C, closed.D, **names)


def pade_block(delay: float, order: int) -> Blocks:
    """The diagonal Pade approximant of a delay [s], in a companion form whose time is the delay."""
    from math import factorial as f

    from scipy.signal import tf2ss

    k = np.arange(order, -1, -1)
    below = np.array([f(2 * order - int(i)) / (f(int(i)) * f(order - int(i))) for i in k], float)
    A, B, C, D = tf2ss(below * (-1.0) ** k, below)
    return Blocks(A / delay, B / delay, C, D, np.empty(0))
