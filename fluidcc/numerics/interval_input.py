"""The arguments of the interval model as columns, checked: one value a class of flows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import numbers, shown
from fluidcc.base.errors import InvalidInput
from fluidcc.numerics.rational import as_fraction

__all__ = ["columns_of", "floats"]


def columns_of(
    k: Any,
    l: Any,
    lam: Any,
    sigma: Any,
    n: Any,
    initial: Any,
    floor: Any,
    capacity: Any,
    exact: bool,
) -> dict[str, NDArray[Any]]:
    """One array a parameter, one value a class of flows; with `exact` also those of Fractions."""
    named = {"k": k, "l": l, "lam": lam, "sigma": sigma, "n": n, "floor": floor}
    for name, value in {**named, "initial": initial}.items():
        if not exact and not (value is None and name == "initial"):
            numbers(value, name, "finite numbers")
    try:
        shape = np.broadcast_shapes(
            (1,), *(np.shape(v) for v in (*named.values(), 0 if initial is None else initial))
        )
    except ValueError:
        raise InvalidInput(
            "k, l, lam, sigma, n, initial and floor have lengths that do not fit together"
        ) from None
    if len(shape) != 1 or shape == (0,):
        raise InvalidInput(
            f"the parameters have shape {shape}; give numbers, or one value a class of flows"
        )
    columns = {}
    for name, value in named.items():
        try:
            columns[name] = np.broadcast_to(
                np.asarray(value if not exact else floats(value), dtype=float), shape
            ).copy()
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput(f"{name} is {shown(value)}; give numbers") from None
    if not np.all((columns["n"] >= 1) & (columns["n"] % 1 == 0)):
        raise InvalidInput(f"n is {shown(n)}; give whole numbers of at least 1")
    share = (
        Fraction(1) / int(columns["n"].sum()) * as_fraction(capacity, "the capacity")
        if exact
        else None
    )
    first = (
        initial if initial is not None else share if exact else float(capacity) / columns["n"].sum()
    )
    columns["initial"] = np.broadcast_to(np.asarray(floats(first), dtype=float), shape).copy()
    _check_columns(columns, floats(capacity))
    if exact:
        for name, value in {"lam": lam, "sigma": sigma, "initial": first}.items():
            flat = np.broadcast_to(np.asarray(value, dtype=object), shape)
            columns[f"exact {name}"] = np.array(
                [as_fraction(v, name) for v in flat] + [None], dtype=object
            )[:-1]
    return columns


def floats(value: Any) -> Any:
    """Numbers for texts and Fractions."""
    return np.vectorize(lambda v: float(as_fraction(v, "a parameter")), otypes=[float])(
        np.asarray(value, dtype=object)
    )


def _check_columns(columns: dict[str, NDArray[Any]], capacity: Any) -> None:
    if not (np.isfinite(capacity) and capacity > 0):
        raise InvalidInput(f"the capacity is {capacity}, but must be positive")
    for name, v in columns.items():
        wrong = ~np.isfinite(v)
        if name in ("lam", "sigma", "initial"):
            wrong |= v <= 0
        if np.any(wrong):
            raise InvalidInput(
                f"{name} is {v[wrong][0]:g}, but must be finite"
                + ("" if name in "kl" else ", positive")
            )
