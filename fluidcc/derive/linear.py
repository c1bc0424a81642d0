"""The linearisation of a law on one branch of its kinks: A, B, C, D, exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sympy import Integer, Matrix, lambdify

from fluidcc.errors import InvalidInput
from fluidcc.law import Law
from fluidcc.symbols import plain

__all__ = ["Jacobians", "active_modes", "jacobian_function", "linearize_law"]


class Jacobians(NamedTuple):
    """Derivatives of flow and outputs (rows) by states and inputs (columns), in the law's orders.

    A is (states, states), B (states, inputs), C (outputs, states), D (outputs, inputs); outputs as in ``law.out``.
    """

    A: Any
    B: Any
    C: Any
    D: Any


@lru_cache(maxsize=256)
def _symbolic(law: Law) -> Jacobians:
    held = law.switched()
    columns = (law.states, law.inputs)
    rows = (list(held.flow.values()), list(held.out.values()))
    return Jacobians(*(Matrix(len(f), len(v), [g.diff(s) for g in f for s in v]) for f in rows for v in columns))


def linearize_law(law: Law, modes: Sequence[int] | None = None) -> Jacobians:
    """A, B, C, D of a law as SymPy matrices.

    Parameters
    ----------
    law : Source or Link
    modes : sequence of 0 or 1, optional
        The branch: mode k is 1 where ``law.switches[k]`` > 0. By default the matrices keep the mode symbols.

    Raises
    ------
    InvalidInput
        If there are not as many modes as switches.
    """
    held, full = law.switched(), _symbolic(law)
    if modes is None:
        return full
    if len(modes) != len(held.modes):
        raise InvalidInput(f"{law.name} has {len(held.modes)} switches; {len(modes)} modes were given")
    branch = {m: Integer(int(v)) for m, v in zip(held.modes, modes, strict=True)}
    return Jacobians(*(M.subs(branch) for M in full))


def active_modes(law: Law, z: Any, u: Any, p: Any, *, tolerance: float = 0.0) -> NDArray[Any]:
    """The modes in force at a point, one row a switch.

    Parameters
    ----------
    law : Source or Link
    z, u, p : array_like (n_states, ...), (n_inputs, ...), (n_params, ...)
        In the orders of ``law.states``, ``law.inputs`` and ``law.params``.
    tolerance : float
        A switch within this of zero counts as zero.

    Raises
    ------
    InvalidInput
        If a switch is zero: the law has no derivative there.
    """
    modes: list[Any] = []
    arguments = [*z, *u, *p]
    shape = np.broadcast_shapes(*(np.shape(v) for v in arguments))
    for k, function in enumerate(_switch_functions(law)):
        value = np.broadcast_to(np.asarray(function(*arguments, *modes), dtype=float), shape)
        if np.any(np.abs(value) <= tolerance):
            raise InvalidInput(
                f"{law.name} stands on a switching surface, {law.switches[k]} = 0, where it has no "
                f"derivative; move {', '.join(sorted(map(plain, law.switches[k].free_symbols)))} off it"
            )
        modes.append((value > 0).astype(float))
    return np.array(modes).reshape(len(modes), *shape)


@lru_cache(maxsize=256)
def _switch_functions(law: Law) -> tuple[Callable[..., Any], ...]:
    held = law.switched()
    symbols = [*law.states, *law.inputs, *law.params]
    return tuple(lambdify([*symbols, *held.modes[:k]], f, modules="numpy") for k, f in enumerate(held.switches))


@lru_cache(maxsize=256)
def jacobian_function(law: Law) -> Callable[..., Jacobians]:
    """The Jacobians of a law as a NumPy function.

    Returns
    -------
    callable
        ``f(z, u, p, modes=None)`` with arrays as in `active_modes`, which gives the modes by default; it returns
        `Jacobians` of arrays (rows, columns, ...).
    """
    held = law.switched()
    symbols = [*law.states, *law.inputs, *law.params, *held.modes]
    matrices = _symbolic(law)
    functions = [lambdify(symbols, list(M), modules="numpy", cse=True) for M in matrices]

    def jacobians(z: Any, u: Any, p: Any, modes: Any = None) -> Jacobians:
        held_at = active_modes(law, z, u, p) if modes is None else np.asarray(modes, dtype=float)
        values = [*z, *u, *p, *held_at]
        shape = np.broadcast_shapes(*(np.shape(v) for v in values))
        return Jacobians(
            *(
                np.array([np.broadcast_to(np.asarray(v, dtype=float), shape) for v in f(*values)]).reshape(
                    *M.shape, *shape
                )
                for f, M in zip(functions, matrices, strict=True)
            )
        )

    return jacobians
