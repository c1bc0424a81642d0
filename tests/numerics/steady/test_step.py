"""The steady state on arrays: its step against differences of its residual."""

from typing import Any

import numpy as np
import pytest
from sympy import Expr, log, symbols

import fluidcc as fc
from fluidcc.equilibria.assembly import Assembled
from fluidcc.equilibria.many import system_of
from fluidcc.network.wired import Wired
from fluidcc.numerics.steady.follow import Search
from fluidcc.numerics.steady.step import projected_step
from fluidcc.symbols import c, e, loss, mark, offer_min, pi, price, x_tau, y


def listener(pull: float, ratio: Expr = pi) -> fc.Source:
    """Two states that hear delay, a ratio, price, the least offer and the own rate."""
    a, b, gain, big = symbols("a b gain big", positive=True)
    most = big * offer_min / (big + offer_min)
    first = gain * (most / (1 + e * gain) - a - ratio * b - price * x_tau)
    second = gain * (a * (1 + log(1 + e * gain)) - 2 * b)
    return fc.Source(
        "Listener", {a: first, b: second}, {"rate": b + a * pull / (1 + e * gain)},
        {gain: 2.0, big: 3.0}, {a: "bit/s", b: "bit/s", gain: "1/s", big: "bit/s"},
        initial={a: 1, b: 1},
    )  # fmt: skip


def teller() -> fc.Link:
    """A queue with a state; drops, marks, price and offer all hear the arrival rate."""
    queue, own, gain = symbols("queue own gain", positive=True)
    out = {
        "mark": own / (20 + own + y / c),
        "drop": y / (y + 9 * c * own),
        "price": (queue * gain + y / c + own) / 10,
    }
    out["offer"] = c * (1 + own) / (1 + queue * gain) + y
    return fc.Link(
        "Teller", {queue: (y - c) / c, own: gain * (queue * gain * y / c - own)}, out,
        {gain: 1.5}, {queue: "s", own: "1", gain: "1/s"}, queue=queue, initial={queue: 0.1, own: 1},
    )  # fmt: skip


def network(law: Any = fc.DropTail, buffers: tuple[Any, ...] = (0.6, None, None)) -> Assembled:
    net = fc.Network()
    for name, capacity, buffer in zip("lmn", (2.0, 3.0, 1.5), buffers, strict=True):
        size = buffer and f"{buffer} bit"
        net.link(name, law, capacity=f"{capacity} bit/s", buffer=size, delay=0.1)
    net.flow("a", listener(0.5), route=["l", "m", "n"])
    net.flow("b", listener(0.2, pi / 2 + loss + 3 * mark), route=["m", "l"], access_delay=0.2)
    return system_of(Wired.of(net.flow("u", fc.CBR(rate="0.1 bit/s"), route=["m"])))


def place(system: Assembled, queues: tuple[float, ...], seed: int = 0) -> Any:
    """Unknowns with these queues, at whose arrivals no queue throttles."""
    u = np.random.default_rng(seed).uniform(0.2, 0.5, system.shape.unknowns)
    system.queues(u)[:] = queues
    return u


def moved(system: Assembled, u: Any, h: float) -> Any:
    """The move of one step."""
    search = Search(system.shape)
    w, n = search.state, len(u)
    search.residual(system.numbers, 0, u)
    w.size[:n] = np.abs(u) + 0.1
    w.lower[:n], w.upper[:n] = -np.inf, np.inf
    assert projected_step(w, h)
    return w.move[:n].copy()


@pytest.mark.parametrize("h", [0.1, 1e3])
@pytest.mark.parametrize("law", [fc.DropTail, teller()], ids=lambda v: v.name)
@pytest.mark.parametrize("queues", [(0.2, 0.1, 0.05), (0.5, 0.1, 0.2), (0.1, 0.7, 0.3)])
def test_a_step_solves_the_whole_linear_system(
    queues: tuple[float, ...], law: Any, h: float
) -> None:
    system = network(law)
    u, search = place(system, queues), Search(system.shape)
    n, step = len(u), 1e-6

    def at(v: Any) -> Any:
        return search.residual(system.numbers, 0, v).copy()

    J = np.array([at(u + d) - at(u - d) for d in step * np.eye(n)]).T / (2 * step)
    mass = np.ones(n)
    F, L = system.shape.flows, system.shape.links
    mass[:F] = mass[F + L : F + 2 * L] = 0
    wanted = np.linalg.solve(np.diag(mass / h) - J, at(u))
    np.testing.assert_allclose(moved(system, u, h), wanted, rtol=1e-6, atol=1e-7)
