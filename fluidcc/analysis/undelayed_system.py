"""The equations of a network without communication delays, and its state at rest, to 50 digits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
from sympy import Expr, Float, Matrix, Max, Piecewise, Symbol, lambdify, sympify

from fluidcc.equilibria.assembly import capacity_at, constant_rate, is_on
from fluidcc.equilibria.equilibrium import Equilibrium
from fluidcc.laws.steady import refuse_unsteady
from fluidcc.symbols import Let, c, e, e_b, edot, packet, pi, plain, price, unfold, x_tau, y

if TYPE_CHECKING:
    from fluidcc.laws import Law
    from fluidcc.network.network import FlowSpec, Network


__all__ = ["DIGITS", "Builder", "UndelayedSystem"]

DIGITS = 50
"""Precision of numbers in the expressions."""


@dataclass(frozen=True)
class UndelayedSystem:
    """The equations of the undelayed network.

    Attributes
    ----------
    flow : dict of Symbol to Expr
        Time derivative of each state, with its projection.
    point : dict of Symbol to Float
        The equilibrium, to 50 digits, so that a counterexample next to it can be told from
        rounding.
    rate, delay : dict of str to Expr
        Of each flow that listens: its rate [bit/s], and the one-way delay it sees [s].
    queue, arrival : dict of str to Expr
        Of each link with a queue: its state [s]; of every link: what arrives [bit/s].
    capacity : dict of str to float
        Of each link [bit/s].
    floors : dict of Symbol to float
        Lower bounds of states.
    constants : dict of str to mapping
        What is put into each flow's law besides states and signals: parameters, e_b, packet.
    frozen : dict of str to mapping
        The definitions of each flow's law that are held, and their values.
    rest : Equilibrium
        As `fluidcc.equilibrium` found it.
    net : Network
        The network.
    """

    flow: Mapping[Symbol, Expr]
    point: Mapping[Symbol, Expr]
    rate: Mapping[str, Expr]
    delay: Mapping[str, Expr]
    queue: Mapping[str, Symbol]
    arrival: Mapping[str, Expr]
    capacity: Mapping[str, float]
    floors: Mapping[Symbol, float]
    constants: Mapping[str, Mapping[Any, Any]]
    frozen: Mapping[str, Mapping[Let, Expr]]
    rest: Equilibrium
    net: Network

    def __repr__(self) -> str:
        held = sorted({let.name for frozen in self.frozen.values() for let in frozen})
        return (
            "Undelayed(states: "
            f"{', '.join(map(plain, self.states))}{'; held: ' if held else ''}{', '.join(held)})"
        )

    @property
    def states(self) -> tuple[Symbol, ...]:
        """The states, in order: of flows, then of links."""
        return tuple(self.flow)

    def of_flow(self, name: str, expr: Any) -> Expr:
        """An expression of a flow's law in the states of the network."""
        spec = self.net.flows[name]
        own = _renamed(spec.law, name)
        expr = sympify(expr).xreplace(dict(self.frozen[name]))
        return (
            unfold(expr)
            .subs({e: self.delay[name], edot: 0, pi: 0})
            .subs({**own, **self.constants[name]})
        )


class Builder:
    """Makes the equations of a network."""

    def __init__(self, net: Network, at: float, rest: Equilibrium, held: tuple[str, ...]) -> None:
        self.net, self.at, self.rest, self.held = net, at, rest, held
        self.flows = {n: f for n, f in net.flows.items() if is_on(f, at)}
        self.constant = {
            n: v for n, f in self.flows.items() if (v := constant_rate(f, at)) is not None
        }
        self.floors: dict[Symbol, float] = {}
        self.point: dict[Symbol, float] = {}
        self.constants: dict[str, dict[Any, Any]] = {}
        self.frozen: dict[str, dict[Let, Expr]] = {}

    def build(self) -> dict[str, Any]:
        """The attributes of `UndelayedSystem`."""
        listening = {n: f for n, f in self.flows.items() if n not in self.constant}
        for name, flow in listening.items():
            refuse_unsteady(flow.law, f"flow {name!r}")
            self.constants[name] = {
                **{k: Float(v, DIGITS) for k, v in flow.law.params.items()},
                e_b: Float(self.net.return_delay(name), DIGITS),
                packet: Float(flow.packet, DIGITS),
            }
            self.frozen[name] = self._held(name, flow.law)
        rate = {
            n: self._law(f.law, n, f.law.out["rate"], self.constants[n])
            for n, f in listening.items()
        }
        arrival = {l: self._arrival(l, rate) for l in self.net.links}
        capacity = {l: capacity_at(spec, self.at) for l, spec in self.net.links.items()}
        links, queue, prices = self._links(arrival, capacity)
        delay = {n: self._delay(n, f, queue) for n, f in listening.items()}
        motion: dict[Symbol, Expr] = {}
        for n, f in listening.items():
            slope = sum(links[queue[l]] for l in f.route if l in queue)
            signals = {
                e: delay[n],
                edot: slope,
                pi: 0,
                price: sum(prices[l] for l in f.route),
                x_tau: rate[n],
            }
            for z, g in f.law.flow.items():
                symbol = _renamed(f.law, n)[z]
                value = self._law(f.law, n, g, {**signals, **self.constants[n]})
                motion[symbol] = self._projected(f.law, z, symbol, value, n)
        point = _refined({**motion, **links}, self.point, self.floors)
        return {
            "flow": {**motion, **links}, "point": point, "rate": rate, "delay": delay,
            "queue": queue, "arrival": arrival, "capacity": capacity, "floors": self.floors,
            "constants": self.constants, "frozen": self.frozen, "rest": self.rest, "net": self.net,
        }  # fmt: skip

    def _links(
        self, arrival: Mapping[str, Expr], capacity: Mapping[str, float]
    ) -> tuple[Any, Any, Any]:
        """Flows of the links' states, the symbols of their queues, and their prices."""
        flow: dict[Symbol, Expr] = {}
        queue: dict[str, Symbol] = {}
        prices: dict[str, Expr] = {}
        for name, link in self.net.links.items():
            own, numbers = (
                _renamed(link.law, name),
                {k: Float(v, DIGITS) for k, v in link.law.params.items()},
            )
            inside = {**own, **numbers, y: arrival[name], c: Float(capacity[name], DIGITS)}
            for z, f in link.law.flow.items():
                flow[own[z]] = self._projected(link.law, z, own[z], unfold(f).subs(inside), name)
            if link.law.queue is not None:
                queue[name] = own[link.law.queue]
            prices[name] = unfold(link.law.out.get("price", 0)).subs(inside)
        return flow, queue, prices

    def _held(self, name: str, law: Law) -> dict[Let, Expr]:
        """The definitions to be held, with their values at the equilibrium."""
        delay, loss = (float(a.sel(flow=name)) for a in (self.rest.one_way_delay, self.rest.loss))
        states = {z: self.rest.states[name][plain(z)] for z in law.states}
        values = {e: delay, edot: 0, pi: loss, **states, **self.constants[name]}
        lets = {let for f in law.flow.values() for let in f.atoms(Let) if let.name in self.held}
        return {let: Float(unfold(let).subs(values), DIGITS) for let in lets}

    def _law(self, law: Law, name: str, expr: Any, values: Mapping[Any, Any]) -> Expr:
        """An expression of a law with signals, parameters and own states put in; what is held
        gets a number.
        """
        return (
            unfold(sympify(expr).xreplace(self.frozen[name])).subs(values).subs(_renamed(law, name))
        )

    def _arrival(self, link: str, rate: Mapping[str, Expr]) -> Expr:
        crossing = [n for n, f in self.flows.items() if link in f.route]
        return sum(
            (rate[n] if n in rate else Float(self.constant[n], DIGITS) for n in crossing), Float(0)
        )

    def _delay(self, name: str, flow: FlowSpec, queue: Mapping[str, Symbol]) -> Expr:
        return Float(self.net.propagation_delay(name), DIGITS) + sum(
            queue[l] for l in flow.route if l in queue
        )

    def _projected(self, law: Law, z: Symbol, symbol: Symbol, f: Expr, name: str) -> Expr:
        """(f)^+ at a lower bound that the state can reach; notes the state's place."""
        self.point[symbol] = self.rest.states[name][plain(z)]
        if z not in law.lower or z.is_positive:
            return f
        floor = unfold(law.lower[z]).xreplace({**law.params})
        self.floors[symbol] = float(floor)
        return Piecewise((Max(f, 0), symbol <= floor), (f, True))


def _refined(
    flow: Mapping[Symbol, Expr], point: Mapping[Symbol, float], floors: Mapping[Symbol, float]
) -> Any:
    """The equilibrium to `DIGITS` digits, by Newton steps with the Jacobian in double precision."""
    moving = [z for z in flow if z not in floors or point[z] > floors[z]]
    F = Matrix([flow[z] for z in moving])
    J = np.array(
        lambdify(list(flow), F.jacobian(moving), "numpy")(*(point[z] for z in flow)), float
    )
    row = 1 / np.maximum(np.abs(J).max(axis=1, initial=0.0, keepdims=True), 1e-300)
    column = 1 / np.maximum(np.abs(J * row).max(axis=0, initial=0.0), 1e-300)
    if np.linalg.matrix_rank(row * J * column) < len(moving):  # in units of their own
        return {
            z: Float(point[z], DIGITS) for z in flow
        }  # equal capacities in series: any split of the queue will do
    exact = lambdify(list(flow), list(F), "mpmath")
    found = {z: Float(point[z], DIGITS) for z in flow}
    with mpmath.workdps(DIGITS + 10):
        for _ in range(12):
            residual = mpmath.matrix(exact(*(mpmath.mpf(found[z]) for z in flow)))
            step = mpmath.lu_solve(mpmath.matrix(J.tolist()), residual)
            for z, change in zip(moving, step, strict=True):
                found[z] = Float(mpmath.mpf(found[z]) - change, DIGITS)
    return found


def _renamed(law: Law, name: str) -> dict[Symbol, Symbol]:
    """The law's states as states of the network, with the assumptions they have."""
    return {z: Symbol(f"{plain(z)}_{name}", **_assumed(z)) for z in law.states}


def _assumed(z: Symbol) -> dict[str, bool]:
    return (
        {"positive": True}
        if z.is_positive
        else {"nonnegative": True}
        if z.is_nonnegative
        else {"real": True}
    )
