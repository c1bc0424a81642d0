"""Gauss collocation: functions on a piece as polynomials through their values at its nodes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@lru_cache(maxsize=16)
def gauss(nodes: int) -> tuple[Floats, Floats, Floats]:
    """Gauss nodes in (0, 1) and their weights, and the integrals from 0 to each node by the values:
    an implicit Runge-Kutta method.
    """
    node, weight = leggauss(nodes)
    values = legvander(node, nodes)
    integral = np.empty((nodes, nodes))  # of each Legendre polynomial from -1
    integral[:, 0] = node + 1
    integral[:, 1:] = (values[:, 2:] - values[:, :-2]) / (2 * np.arange(1, nodes) + 1)
    return (node + 1) / 2, weight / 2, integral @ legendre(nodes) / 2


@lru_cache(maxsize=16)
def legendre(nodes: int) -> Floats:
    """What gives the Legendre coefficients of a polynomial by its values at the nodes."""
    node, weight = leggauss(nodes)
    return (legvander(node, nodes - 1) * weight[:, None]).T * (np.arange(nodes) + 0.5)[:, None]


def interpolation(at: Floats, nodes: int) -> Floats:
    """The weights of the values at the nodes for that at each place of [0, 1]."""
    return np.asarray(legvander(2 * at - 1, nodes - 1) @ legendre(nodes))
