"""The equations of a network without communication delays, and its state at rest, to 50 digits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Float, Integer, Matrix, Max, Piecewise, Symbol, lambdify, oo, prod, sympify
from sympy.printing.numpy import NumPyPrinter

from fluidcc.base.arguments import choice, explained_class
from fluidcc.base.errors import Unsupported
from fluidcc.base.tables import InTable
from fluidcc.equilibria.result import Equilibrium
from fluidcc.laws.steady import refuse_unsteady
from fluidcc.network.wired import capacity_at, constant_rate, is_on
from fluidcc.symbols import (
    LINK_INPUTS,
    SOURCE_INPUTS,
    Let,
    c,
    e,
    e_b,
    edot,
    expression,
    packet,
    pi,
    plain,
    price,
    q_max,
    unfold,
    x_tau,
    y,
)

if TYPE_CHECKING:
    from fluidcc.laws import Law
    from fluidcc.network.network import Network
    from fluidcc.network.specs import FlowSpec, LinkSpec

DIGITS = 50
"""Precision of numbers in the expressions."""


@explained_class
@dataclass(frozen=True, repr=False)
class UndelayedSystem(InTable):
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

    _shown = ("states", "point")

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

    @property
    def still(self) -> NDArray[np.float64]:
        """The states at rest, in order."""
        return np.array([float(z) for z in self.point.values()])

    @property
    def bounded(self) -> NDArray[np.bool_]:
        """Which states have a lower bound that they can reach, as queues have."""
        return np.array([z in self.floors for z in self.states])

    def of_flow(self, name: str, expr: Any) -> Expr:
        """An expression of a flow's law in the states of the network."""
        choice(name, "name", self.constants)
        values = {e: self.delay[name], edot: 0, pi: 0, **self.constants[name]}
        return _put(self.net.flows[name], expression(expr, "expr"), self.frozen[name], values)


def equations(net: Network, at: float, rest: Equilibrium, held: tuple[str, ...]) -> dict[str, Any]:
    """The attributes of `UndelayedSystem`; definitions whose names are in `held` get numbers."""
    flows = {n: f for n, f in net.flows.items() if is_on(f, at)}
    sent = {n: v for n, f in flows.items() if (v := constant_rate(f, at)) is not None}
    heard = {n: f for n, f in flows.items() if n not in sent}
    constants, frozen = {}, {}
    for n, f in heard.items():
        refuse_unsteady(f.law, f"flow {n!r}")
        own = {e_b: net.return_delay(n), packet: f.packet}
        constants[n] = {k: Float(v, DIGITS) for k, v in {**f.law.params, **own}.items()}
        frozen[n] = _held(f, rest, constants[n], held)
    queue = {
        l: _renamed(link.law, l)[link.law.queue]
        for l, link in net.links.items()
        if link.law.queue is not None
    }
    waits = {n: [queue[l] for l in f.route if l in queue] for n, f in heard.items()}
    delay = {n: Float(net.propagation_delay(n), DIGITS) + sum(waits[n]) for n in heard}
    rate = {}
    for n, f in heard.items():
        told = {e: delay[n], **constants[n]}
        if f.law.out["rate"].has(price):  # at once, so only prices that are states can be heard
            asked = [net.links[l] for l in f.route if "price" in net.links[l].law.out]
            told[price] = sum(unfold(k.law.out["price"]).subs(_of_link(k)) for k in asked)
        rate[n] = _put(f, f.law.out["rate"], frozen[n], told)
    come = {**rate, **{n: Float(v, DIGITS) for n, v in sent.items()}}
    arrival = {
        l: sum((come[n] for n, f in flows.items() if l in f.route), Float(0)) for l in net.links
    }
    capacity = {l: capacity_at(spec, at) for l, spec in net.links.items()}
    motion: dict[Symbol, Expr] = {}
    links: dict[Symbol, Expr] = {}
    prices, unmarked, floors = {}, {}, dict[Symbol, Any]()
    for l, link in net.links.items():
        own = _renamed(link.law, l)
        floors |= _floors(link.law, own)
        inside = {**_of_link(link), y: arrival[l], c: Float(capacity[l], DIGITS)}
        inside[q_max] = oo if link.buffer is None else Float(link.buffer / capacity[l], DIGITS)
        for z, f in link.law.flow.items():
            links[own[z]] = _projected(own[z], unfold(f).subs(inside), floors)
        prices[l] = unfold(link.law.out.get("price", Integer(0))).subs(inside)
        unmarked[l] = 1 - unfold(link.law.out.get("mark", Integer(0))).subs(inside)
        seen = {s for f in (prices[l], unmarked[l], *(links[own[z]] for z in own))
                for s in f.free_symbols}  # fmt: skip
        if "drop" in link.law.out or seen.intersection(LINK_INPUTS):
            raise Unsupported(
                f"link {l!r} ({link.law.name}) drops before its queue, or looks at the time or the "
                "number of flows, which the undelayed equations do not have; fluidcc.stability does"
            )
    for n, f in heard.items():
        _check_known(n, f, [rate[n]])
        signals = {
            e: delay[n], edot: sum(links[q] for q in waits[n]),
            pi: 1 - prod(unmarked[l] for l in f.route), price: sum(prices[l] for l in f.route),
            x_tau: rate[n], **constants[n],
        }  # fmt: skip
        own = _renamed(f.law, n)
        floors |= _floors(f.law, own)
        for z, g in f.law.flow.items():
            motion[own[z]] = _projected(own[z], _put(f, g, frozen[n], signals), floors)
        _check_known(n, f, [motion[z] for z in own.values()])
    motion |= links
    specs: list[FlowSpec | LinkSpec] = [*heard.values(), *net.links.values()]
    still = {
        z: rest.states[spec.name][plain(own)]
        for spec in specs
        for own, z in _renamed(spec.law, spec.name).items()
    }
    lowest = {z: float(floor) for z, floor in floors.items()}
    return {
        "flow": motion, "point": _refined(motion, still, lowest), "rate": rate, "delay": delay,
        "queue": queue, "arrival": arrival, "capacity": capacity, "floors": lowest,
        "constants": constants, "frozen": frozen, "rest": rest, "net": net,
    }  # fmt: skip


def _check_known(name: str, flow: FlowSpec, made: list[Any]) -> None:
    """Refuse a flow whose rate or states are made of what a law hears and these equations lack."""
    if left := {s for f in made for s in f.free_symbols} & {*SOURCE_INPUTS}:
        names = ", ".join(sorted(map(plain, left)))
        raise Unsupported(
            f"flow {name!r} ({flow.law.name}): its rate is made of {names}, which the undelayed "
            "equations do not have; fluidcc.stability does"
        )


def _of_link(link: LinkSpec) -> dict[Symbol, Expr]:
    """The names and numbers that stand in the network for a link's states and parameters."""
    numbers = {k: Float(v, DIGITS) for k, v in link.law.params.items()}
    return {**_renamed(link.law, link.name), **numbers}


class _ConditionPrinter(NumPyPrinter):
    """Prints conditions as they are, which SymPy would simplify, for minutes or in vain."""

    def _print_Piecewise(self, expr: Piecewise) -> str:
        where, text = self._module_format("numpy.where"), self._module_format("numpy.nan")
        for value, condition in reversed(expr.args):
            text = f"{where}({self._print(condition)}, {self._print(value)}, {text})"
        return text


def numeric(symbols: Any, expressions: Any) -> Any:
    """The function from numbers, or arrays of them, to those of expressions; the derivative of a
    step is zero beside it.
    """
    settings = {"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True,
                "user_functions": {"DiracDelta": "DiracDelta"}}  # fmt: skip
    modules: Any = [{"DiracDelta": lambda x: 0.0 * x}, "numpy"]
    return lambdify(symbols, expressions, modules, printer=_ConditionPrinter(settings), cse=True)


def _put(flow: FlowSpec, expr: Any, frozen: Any, values: Mapping[Any, Any]) -> Expr:
    """An expression of a flow's law with signals, parameters and own states put in; what is held
    gets a number.
    """
    within = unfold(sympify(expr).xreplace(dict(frozen)))
    put = {s: sympify(value) for s, value in values.items()}
    return within.xreplace(put | _renamed(flow.law, flow.name))


def _held(flow: FlowSpec, rest: Equilibrium, constants: Any, held: Any) -> dict[Let, Expr]:
    """The definitions to be held, with their values at the equilibrium."""
    delay, pi_ = float(rest.one_way_delay.sel(flow=flow.name)), rest.lost_or_marked(flow.name)
    states = {z: rest.states[flow.name][plain(z)] for z in flow.law.states}
    values = {e: delay, edot: 0, pi: pi_, **states, **constants}
    lets = {let for f in flow.law.flow.values() for let in f.atoms(Let) if let.name in held}
    return {let: Float(unfold(let).subs(values), DIGITS) for let in lets}


def _floors(law: Law, own: Mapping[Symbol, Symbol]) -> dict[Symbol, Expr]:
    """Lower bounds of the states that can reach them."""
    return {
        own[z]: unfold(floor).xreplace({**law.params})
        for z, floor in law.lower.items() if not z.is_positive
    }  # fmt: skip


def _projected(state: Symbol, f: Expr, floors: Mapping[Symbol, Expr]) -> Expr:
    """(f)^+ at a lower bound."""
    return Piecewise((Max(f, 0), state <= floors[state]), (f, True)) if state in floors else f


def _refined(
    flow: Mapping[Symbol, Expr], point: Mapping[Symbol, float], floors: Mapping[Symbol, float]
) -> Any:
    """The equilibrium to `DIGITS` digits, by Newton steps with the Jacobian in double precision."""
    moving = [z for z in flow if z not in floors or point[z] > floors[z]]
    if not moving:
        return {z: Float(v, DIGITS) for z, v in point.items()}
    F = Matrix([flow[z] for z in moving])
    J = np.array(numeric(list(flow), F.jacobian(moving))(*(point[z] for z in flow)), float)
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
    return {
        z: Symbol(
            f"{plain(z)}_{name}",
            positive=z.is_positive or None, nonnegative=z.is_nonnegative or None, real=True,
        )
        for z in law.states
    }  # fmt: skip
