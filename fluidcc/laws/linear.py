"""The linearisation of a law on one branch of its kinks: A, B, C, D, exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sympy import (
    Derivative,
    Expr,
    Function,
    Integer,
    Matrix,
    Pow,
    Subs,
    Symbol,
    ceiling,
    floor,
    sign,
)

from fluidcc.base.errors import InvalidInput
from fluidcc.laws.law import Law
from fluidcc.laws.parts import per_structure
from fluidcc.laws.past import at_rest, pasts, running
from fluidcc.symbols import edot, numpy_function, plain


class Jacobians(NamedTuple):
    """Derivatives of flow and outputs (rows) by states and inputs (columns), in the law's orders.

    A is (states, states), B (states, inputs), C (outputs, states), D (outputs, inputs); outputs as
    in ``law.out``. After the inputs stand the law's `pasts`.
    """

    A: Any
    B: Any
    C: Any
    D: Any


class Branch(NamedTuple):
    """Flows (states, ...) and outputs (outputs, ...) on one branch of the kinks, and their
    `Jacobians`.
    """

    flow: Any
    out: Any
    jacobians: Jacobians


class _Power(Function):
    """base**exponent, derived as exponent base**(exponent - 1)."""

    def fdiff(self, argindex: int = 1) -> Expr:
        base, exponent = self.args
        return exponent * _Power(base, exponent - 1)


def flat_steps(f: Expr) -> Expr:
    """Set the derivatives of floor, ceiling and sign, which SymPy may leave open, to 0."""
    if not f.has(floor, ceiling, sign):
        return f
    return f.replace(lambda a: isinstance(a, Subs | Derivative), lambda a: Integer(0))


def slope(f: Expr, s: Symbol) -> Expr:
    """Return the derivative of `f` by `s`, finite where a base is zero: SymPy has B (y/c)**B / y
    for (y/c)**B.
    """
    powers = {
        p: _Power(*p.args)
        for p in f.atoms(Pow)
        if not p.exp.is_number and not p.exp.has(s) and p.base.has(s)
    }
    derived = flat_steps(f.xreplace(powers).diff(s))
    return derived.replace(lambda a: isinstance(a, _Power), lambda a: Pow(*a.args))


@per_structure
def symbolic_jacobians(law: Law) -> Jacobians:
    """Return A, B, C, D of a law as SymPy matrices that hold its mode symbols.

    What it was some time ago has columns of its own, and moves with the lag where it runs on.
    """
    held, past = law.switched(), pasts(law)
    rest = at_rest(law, held.flow)
    drifting = [one for one in past if one.of in running(law)]

    def by(f: Expr, s: Symbol) -> Expr:
        found = slope(f, s)
        for one in drifting if s not in past else ():
            found -= slope(f, one) * held.flow[one.of] * slope(one.lag, s)
        return found.xreplace(rest)

    columns = (law.states, (*law.inputs, *past))
    rows = ([*held.flow.values()], [*held.out.values()])
    return Jacobians(
        *(Matrix(len(f), len(v), [by(g, s) for g in f for s in v]) for f in rows for v in columns)
    )


def active_modes(
    law: Law,
    z: Any,
    u: Any,
    p: Any,
    *,
    relative: float = 0.0,
    of: str | Sequence[str] = "",
) -> NDArray[Any]:
    """Return the modes in force at a point, one row a switch.

    Parameters
    ----------
    law : Source or Link
    z, u, p : array_like (n_states, ...), (n_inputs, ...), (n_params, ...)
        In the orders of ``law.states``, ``law.inputs`` and ``law.params``.
    relative : float
        A switch whose sign a relative change of the arguments by this much can turn counts as zero.
    of : str or sequence of str
        Whose law it is, for the message; one for each along the last axis.

    Raises
    ------
    InvalidInput
        If a switch is zero: the law has no derivative there.
    """
    modes, near = modes_at(law, z, u, p, relative=relative)
    for place in np.argwhere(near)[:1]:
        raise on_surface(law, place[0], of if isinstance(of, str) else of[place[-1]])
    return modes


def on_surface(law: Law, k: int, of: str) -> InvalidInput:
    """Return why a law has no derivative where its switch `k` is zero; `of` says whose it is."""
    switch = law.switches[k]
    own = sorted(map(plain, switch.free_symbols & law.params.keys()))
    remedy = (
        f"change {', '.join(own) or 'a parameter'} of {law.name}, a capacity or a delay a little; "
        "where it stands there all the same"
    )
    if switch.free_symbols <= {edot}:
        remedy = (
            "every equilibrium does, so make the step a smooth one, such as "
            "(1 + tanh(edot/0.001))/2 for Heaviside(edot), or"
        )
    return InvalidInput(
        f"{of}{law.name} stands on a switching surface, {switch} = 0, where it has no derivative; "
        f"{remedy} see fluidcc.simulate"
    )


def modes_at(
    law: Law, z: Any, u: Any, p: Any, *, relative: float
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the modes as in `active_modes`, and where a switch counts as zero (same shape)."""
    arguments, shape = _flat(z, u, p)
    switches = _switches(law)
    modes = np.zeros((len(switches), *shape))
    close = np.zeros(modes.shape, bool)
    for k, switch in enumerate(switches):
        value = np.asarray(switch.function(*arguments, *modes[:k]), dtype=float)
        near: Any = 0.0
        for i in switch.reads:
            moved = [a * (1 + relative) if j == i else a for j, a in enumerate(arguments)]
            near = near + np.abs(switch.function(*moved, *modes[:k]) - value)
        modes[k], close[k] = value > 0, np.abs(value) <= near
    return modes, close


class _Switch(NamedTuple):
    """A switch by states, inputs, parameters and the modes before it, and which of the first
    three it reads.
    """

    function: Callable[..., Any]
    reads: tuple[int, ...]


@per_structure
def _switches(law: Law) -> tuple[_Switch, ...]:
    held, rest = law.switched(), at_rest(law)
    symbols = [*law.states, *law.inputs, *law.params]
    return tuple(
        _Switch(
            numpy_function([*symbols, *held.modes[:k]], f, _NUMPY),
            tuple(i for i, s in enumerate(symbols) if s in f.free_symbols),
        )
        for k, f in enumerate(g.xreplace(rest) for g in held.switches)
    )


def _flat(*groups: Any) -> tuple[list[Any], tuple[int, ...]]:
    """Return the arguments one by one, and the shape that their values have together."""
    arrays = [np.asarray(group) for group in groups]
    return [value for group in arrays for value in group], np.broadcast_shapes(
        *(a.shape[1:] for a in arrays)
    )


def _select(conditions: Sequence[Any], values: Sequence[Any], default: Any = np.nan) -> Any:
    """Do what `numpy.select` does, which checks its arguments for ten times as long as it takes to
    choose among a few numbers.
    """
    chosen = default
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        chosen = value if condition is True else np.where(condition, value, chosen)
    return chosen


_NUMPY = {
    "select": _select,
    "floor": lambda x: np.floor(np.real(x)),  # flat where it is analytic: a complex step stays here
    "ceiling": lambda x: np.ceil(np.real(x)),
}


@per_structure
def branch_function(law: Law) -> Callable[..., Branch]:
    """Return flows, outputs and Jacobians of a law in one NumPy function, shared by all laws of its
    structure.

    Returns
    -------
    callable
        ``f(z, u, p, modes)`` with arrays as in `active_modes`, real or complex: every branch is
        analytic, so that a complex step differentiates it once more to rounding.
    """
    held, matrices = law.switched(), symbolic_jacobians(law)
    rest = at_rest(law, held.flow)
    values = [f.xreplace(rest) for f in (*held.flow.values(), *held.out.values())]
    rows = [*values, *(f for M in matrices for f in M)]
    symbols = [*law.states, *law.inputs, *law.params, *held.modes]
    function = numpy_function(symbols, rows, _NUMPY, cse=True)
    sizes = [len(held.flow), len(held.out), *(len(M) for M in matrices)]
    ends = np.cumsum(sizes)[:-1]

    def branch(z: Any, u: Any, p: Any, modes: Any) -> Branch:
        arguments, shape = _flat(z, u, p, modes)
        values = np.empty((len(rows), *shape), np.result_type(float, *arguments))
        for i, value in enumerate(function(*arguments)):
            values[i] = value
        flow, out, *parts = np.split(values, ends)
        shapes = (M.shape for M in matrices)
        parts = [part.reshape(*of, *shape) for part, of in zip(parts, shapes, strict=True)]
        return Branch(flow, out, Jacobians(*parts))

    return branch


@per_structure
def lag_function(law: Law) -> Callable[..., Any]:
    """Return how long ago each of a law's `pasts` is where it rests (pasts, ...), as a function of
    states, inputs and parameters.
    """
    symbols = [*law.states, *law.inputs, *law.params]
    function = numpy_function(symbols, [one.lag for one in pasts(law)], _NUMPY)

    def found(z: Any, u: Any, p: Any) -> Any:
        arguments, shape = _flat(z, u, p)
        return np.array([np.broadcast_to(v, shape) for v in function(*arguments)])

    return found
