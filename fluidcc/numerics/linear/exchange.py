"""Blocks from python-control and for it; it is imported when it is used, as that takes seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.base.arguments import numbers, shown, whole
from fluidcc.base.errors import InvalidInput
from fluidcc.numerics.linear.wiring import Blocks, stack, wire


def from_control(kind: Any, system: Any) -> Any:
    """See `fluidcc.DelayLTI.from_control`; `kind` is that class."""
    import control

    if isinstance(system, control.FrequencyResponseData):
        raise InvalidInput(
            "system is frequency response data, from which no states follow; give the "
            "control.StateSpace or control.TransferFunction behind it"
        )
    if not isinstance(system, control.StateSpace | control.TransferFunction):
        raise InvalidInput(
            f"system is {shown(system)}; give a control.StateSpace or control.TransferFunction"
        )
    if system.isdtime(strict=True):
        raise InvalidInput(
            f"system has samples every {system.dt} s, and a DelayLTI continuous time; give the "
            "system before sampling"
        )
    named = {"inputs": system.input_labels, "outputs": system.output_labels}
    if isinstance(system, control.StateSpace):
        return kind(system.A, system.B, system.C, system.D, states=system.state_labels, **named)
    p, m = system.noutputs, system.ninputs
    first, *others = (
        kind.transfer(system.num[i][j], system.den[i][j]) for i in range(p) for j in range(m)
    )
    enter, leave = np.tile(np.eye(m), (p, 1)), np.kron(np.eye(p), np.ones((1, m)))
    return first.append(*others).connect(np.zeros((p * m, p * m)), enter, leave, **named)


def to_control(system: Any, omega: ArrayLike | None, pade: int | None) -> Any:
    """See `fluidcc.DelayLTI.to_control`."""
    import control

    if omega is not None:
        numbers(omega, "omega", "frequencies in rad/s")
    if pade is not None:
        whole(pade, "pade", least=1, most=50)
    names = {"inputs": list(system.inputs), "outputs": list(system.outputs)}
    if (omega is None) == (pade is None) and (len(system.delays) or omega is not None):
        raise InvalidInput(
            "give the frequencies omega=, or the order pade= of at least 1 for every delay; "
            f"got {'neither' if omega is None else 'both'}"
        )
    if omega is not None:
        grid = np.atleast_1d(np.asarray(omega, float))
        return control.frd(system.frequency_response(grid), grid, smooth=len(grid) > 3, **names)
    if pade is None:
        return control.ss(system.A, system.B, system.C, system.D, **names)
    block = Blocks(system.A, system.B, system.C, system.D, np.empty(0))
    filters = [_pade(float(lag), pade) for lag in system.delays]
    m, p, k = system.n_inputs, system.n_outputs, len(filters)
    joined = stack(block, *filters)
    # (u, v, z of the filters) from (y, z, v of the filters)
    back = np.zeros((m + 2 * k, p + 2 * k))
    back[m : m + k, p + k :] = np.eye(k)
    back[m + k :, p : p + k] = np.eye(k)
    closed = wire(joined, back, np.eye(m + 2 * k)[:, :m], np.eye(p + 2 * k)[:p])
    return control.ss(closed.A, closed.B, closed.C, closed.D, **names)


def _pade(delay: float, order: int) -> Blocks:
    """The diagonal Pade approximant of a delay [s], in a companion form whose time is the delay."""
    from control import pade
    from scipy.signal import tf2ss

    A, B, C, D = tf2ss(*pade(1.0, order))
    return Blocks(A / delay, B / delay, C, D, np.empty(0))
