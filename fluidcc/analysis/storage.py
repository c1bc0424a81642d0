"""Candidate storage functions of an undelayed network, given by their gradients.

A separable one, V = sum over states of the integral of g_z from the equilibrium, needs no closed form: then V' is the
sum of g_z f_z, and it is positive definite where each g_z has the sign of z less its equilibrium.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Expr, Float, Heaviside, Integer, Symbol, lambdify, sympify

from fluidcc.analysis.undelayed import DIGITS, Undelayed
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.laws import Law
from fluidcc.symbols import Let, e, plain, unfold

__all__ = ["Storage", "evaluated", "paper_storage", "penalty_of", "repaired_storage", "steepest"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)


@dataclass(frozen=True)
class Storage:
    """A candidate V of the states of an undelayed network.

    Attributes
    ----------
    name : str
        For messages.
    gradient : mapping of Symbol to Expr
        dV/dz of each state z on which it depends.
    offset : float
        V at the equilibrium.
    value : Expr, optional
        V itself; without it V is integrated along a straight line from the equilibrium, for which the gradient must
        be one.
    """

    name: str
    gradient: Mapping[Symbol, Expr]
    offset: float = 0.0
    value: Expr | None = None

    @classmethod
    def of(cls, system: Undelayed, value: Any, name: str = "V") -> Storage:
        """The candidate with that formula in the states of the network.

        Raises
        ------
        InvalidInput
            If it contains other symbols.
        """
        value = sympify(value)
        strange = value.free_symbols - set(system.states)
        if strange:
            raise InvalidInput(
                f"{name} contains {', '.join(sorted(map(plain, strange)))}, no states of the network; it has "
                f"{', '.join(map(plain, system.states))}"
            )
        offset = float(value.subs(dict(system.point)))
        return cls(name, {z: value.diff(z) for z in value.free_symbols}, offset, value)

    @property
    def separable(self) -> bool:
        """Whether each part of the gradient depends on its own state alone."""
        return all(unfold(g).free_symbols <= {z} for z, g in self.gradient.items())

    def terms(self, system: Undelayed) -> list[Expr]:
        """The terms g_z f_z of V' along the network's motion."""
        return [unfold(g) * system.flow[z] for z, g in self.gradient.items()]

    def values(self, system: Undelayed, states: Any) -> Any:
        """V at states of shape (n, ...)."""
        states = np.asarray(states, float)
        if self.value is not None:
            return evaluated(system.states, [self.value], states)[0]
        still = np.array([float(system.point[z]) for z in system.states]).reshape(-1, *(1 for _ in states.shape[1:]))
        total = np.full(states.shape[1:], self.offset)
        index = [system.states.index(z) for z in self.gradient]
        way = states - still
        slope = _numeric(system.states, list(self.gradient.values()))
        for t, weight in zip((_NODES + 1) / 2, _WEIGHTS / 2, strict=True):
            total = total + weight * np.sum(slope(still + t * way) * way[index], axis=0)
        return total


def evaluated(symbols: Any, expressions: list[Any], states: Any) -> Any:
    """Numbers of some expressions, shape (expressions, ...), at states of shape (n, ...)."""
    return _numeric(symbols, expressions)(np.asarray(states, float))


def _numeric(symbols: Any, expressions: list[Any]) -> Callable[[Any], Any]:
    """The function from states of shape (n, ...) to numbers of the expressions."""
    function = lambdify(symbols, [unfold(f) for f in expressions], "numpy", cse=True)
    return lambda at: np.array([np.broadcast_to(np.asarray(f, float), at.shape[1:]) for f in function(*at)])


def _definition(law: Law, name: str) -> Let:
    """The definition of that name in a law."""
    for f in law.flow.values():
        for let in f.atoms(Let):
            if let.name == name:
                return let
    raise Unsupported(
        f"{law.name} has no definition {name!r}, which this storage function is made of; "
        "give a formula by storage(formula)"
    )


def penalty_of(law: Law) -> tuple[Let, Let]:
    """(k, v): gain and delay penalty of a law of the form x' = k x (U' - v(e) - e')."""
    return _definition(law, "k"), _definition(law, "v")


def steepest(system: Undelayed) -> float:
    """alpha of (46) [1/s]: the largest slope of any user's penalty at any delay it can see."""
    slopes = []
    for name, spec in ((n, system.net.flows[n]) for n in system.rate):
        law = spec.law
        _, v = penalty_of(law)
        (kink,) = [s for s in law.switches if s.has(e)] or [None]
        slope = unfold(v).diff(e).replace(Heaviside, lambda *step: Integer(1))  # on the branch where it rises
        # On its rising branch it is steepest where it starts, at the threshold or at the propagation delay.
        start = float((e - kink).subs(dict(system.constants[name]))) if kink is not None else 0.0
        first = max(start, system.net.propagation_delay(name))
        grid = first + np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 400)])
        values = lambdify(e, slope.subs(dict(system.constants[name])), "numpy")(grid)
        slopes.append(float(np.max(values)))
    return max(slopes)


def paper_storage(system: Undelayed, *, alpha: float | None = None, literal: bool = False) -> Storage:
    """V_user + V_link of equations (28) and (29) of the LDCC paper.

    Parameters
    ----------
    system : Undelayed
        With LDCC flows, the gain held: ``undelayed(net, held=("k",))``.
    alpha : float, optional
        The largest slope of the penalties [1/s]; by default `steepest`.
    literal : bool
        As printed, with the delays d in (29) instead of their deviations: then V is not zero at an equilibrium at
        which a link is not saturated.
    """
    alpha = steepest(system) if alpha is None else float(alpha)
    gradient: dict[Symbol, Expr] = {}
    for name, rate in system.rate.items():
        k, _ = penalty_of(system.net.flows[name].law)
        still, gain = rate.subs(dict(system.point)), _at_rest(system, name, k)
        gradient[rate] = (rate - still) / (rate * gain * alpha)
    offset = 0.0
    for name, q in system.queue.items():
        capacity = Float(system.capacity[name], DIGITS)
        spare = 0 if system.rest.saturated.sel(link=name) else capacity - system.arrival[name].subs(dict(system.point))
        gradient[q] = capacity * (q - system.point[q]) + spare / alpha
        if literal:
            offset += float(spare / alpha * (system.net.links[name].delay + system.point[q]))
    return Storage(f"(28) + (29){' as printed' if literal else ''}", gradient, offset)


def _at_rest(system: Undelayed, name: str, expr: Expr) -> Expr:
    return system.of_flow(name, expr).subs(dict(system.point))


def repaired_storage(system: Undelayed) -> Storage:
    """V* = sum of the integrals of (z - x^)/z dz, plus c times that of k(s) (v(s) - v^) ds.

    For users with the same k and v, on one link that is saturated: then V*' <= 0 everywhere; k may depend on the delay.

    Raises
    ------
    Unsupported
        If there are several links, or users whose gain or penalty differs.
    """
    if len(system.queue) != 1 or len(system.arrival) != 1:
        raise Unsupported(f"V* is for one link; this network has {len(system.arrival)}")
    ((link, q),) = system.queue.items()
    gradient: dict[Symbol, Expr] = {}
    common: set[Expr] = set()
    for name, rate in system.rate.items():
        k, v = (system.of_flow(name, f) for f in penalty_of(system.net.flows[name].law))
        price = k * (v - v.subs(dict(system.point)))
        common.add(price.evalf(12))
        gradient[rate] = (rate - rate.subs(dict(system.point))) / rate
    if len(common) != 1:
        raise Unsupported(
            "V* is for users with the same gain and penalty; those of this network differ (by eta, beta, T, or a delay)"
        )
    gradient[q] = Float(system.capacity[link], DIGITS) * price
    return Storage("V*", gradient)
