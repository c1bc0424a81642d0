"""Blocks from python-control and for it; it is imported when it is used, as that takes seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import matrix_balance

from fluidcc.base.arguments import numbers, shown, whole
from fluidcc.base.errors import InvalidInput


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
    ports = {"inputs": system.inputs, "outputs": system.outputs}
    names = {k: [port.replace(".", "_") for port in v] for k, v in ports.items()}  # no dots there
    if (omega is None) == (pade is None) and (len(system.delays) or omega is not None):
        raise InvalidInput(
            "give the frequencies omega=, or the order pade= of at least 1 for every delay; "
            f"got {'neither' if omega is None else 'both'}"
        )
    if omega is not None:
        grid = np.atleast_1d(np.asarray(omega, float))
        return control.frd(system.frequency_response(grid), grid, smooth=len(grid) > 3, **names)
    A, B, C, D = (np.array(getattr(system, name)) for name in "ABCD")
    if pade is None or not len(system.delays):
        return control.ss(A, B, C, D, **names)
    # bit/s stand beside ratios: in units of their own the delayed signals close a loop in which
    # `lft` can tell a zero
    n = len(system.delays)
    with np.errstate(invalid="ignore"):  # of a permutation that there is none of
        _, (units, _) = matrix_balance(D[-n:, -n:], permute=False, separate=True)
    for into in (B, D):
        into[:, -n:] *= units
    for out in (C, D):
        out[-n:] /= units[:, None]
    block = control.ss(A, B, C, D)
    filters = control.append(*(_pade(float(lag), pade) for lag in system.delays))
    return control.ss(block.lft(filters), **names)


def _pade(delay: float, order: int) -> Any:
    """The diagonal Pade approximant of a delay [s], in a companion form whose time is the delay."""
    import control

    A, B, C, D = control.ssdata(control.tf(*control.pade(1.0, order)))
    return control.ss(A / delay, B / delay, C, D)
