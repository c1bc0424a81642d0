"""Every law there is, for the generic suites."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Symbol

from fluidcc import links, sources
from fluidcc.laws import Law
from fluidcc.symbols import numpy_function, unfold


def all_laws() -> list[Law]:
    return [getattr(room, name) for room in (sources, links) for name in room.__all__]


def random_values(law: Law, n: int, seed: int = 0) -> dict[Symbol, NDArray[Any]]:
    """Values of every state, input and parameter, within a decade of 1 and of the right sign.

    Signs of switches vary from point to point, and no value is near a kink on purpose.
    """
    rng = np.random.default_rng(seed)
    values: dict[Symbol, NDArray[Any]] = {}
    for s in (*law.states, *law.inputs, *law.params):
        v = 10 ** rng.uniform(-0.7, 0.7, n)
        values[s] = v if s.is_nonnegative else v * rng.choice([-1, 1], n)
    return values


def reference(law: Law) -> Callable[..., tuple[NDArray[Any], NDArray[Any]]]:
    """A law as NumPy reads its own expressions: flow and outputs of (states, inputs, parameters).

    Arguments and values are arrays (number, ...), in the law's orders.
    """
    roots = [unfold(f) for f in (*law.flow.values(), *law.out.values())]
    steps = {"ceiling": lambda x: np.ceil(np.real(x))}  # NumPy's own takes no complex number
    function = numpy_function([*law.states, *law.inputs, *law.params], roots, steps)
    n = len(law.states)

    def evaluated(z: Any, u: Any, p: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        rows = np.broadcast_arrays(*function(*z, *u, *p), *z, *u, *p)[: len(roots)]
        shape = rows[0].shape
        flow, out = rows[:n], rows[n:]
        return np.reshape(flow, (n, *shape)), np.reshape(out, (len(out), *shape))

    return evaluated
