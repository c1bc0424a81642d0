"""The steady state of a network on arrays: its Jacobian against differences, and its signals by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidcc.numerics.steady import FlowGroup, LinkGroup, SteadyNetwork


def network(q_max: tuple[float, ...] = (0.3, np.inf, 0.0)) -> SteadyNetwork:
    """Two flows with one state each, over three links with a mark, a price and one state each."""

    def flow(z: Any, signals: Any) -> Any:
        e, pi, price, own = signals
        F = 1 / z - e * z - pi - price * own
        zero = np.zeros_like(z[0])
        A = (-1 / z**2 - e)[None]
        B = np.stack([-z[0], zero - 1, -own, -price])[None]
        return F, z[0] / e, A, B, (1 / e)[None], np.stack([-z[0] / e**2, zero, zero, zero])

    def link(v: Any) -> Any:
        q, m, y = v
        zero, one = np.zeros_like(q), np.ones_like(q)
        return (
            np.stack([y * q - m, 0.1 * m, q + 0.01 * y]),
            np.array([[y, -one, q], [zero, 0.1 * one, zero], [one, zero, 0.01 * one]]),
        )

    none = np.full((1, 2), np.inf)
    flows = [FlowGroup(np.arange(2), flow, np.ones((1, 2)), 0 * none.clip(0, 0), none)]
    wide = np.full((1, 3), np.inf)
    links = [LinkGroup(np.arange(3), link, np.ones((1, 3)), -wide, wide)]
    return SteadyNetwork(
        np.array([[0, 1, 2], [1, 0, -1]]),
        np.array([0.1, 0.2]),
        np.array([2.0, 3.0, 1.5]),
        np.array(q_max),
        np.ones(3, bool),
        flows,
        links,
    )


@pytest.mark.parametrize("s", [(0.2, 0.1, 0.0), (0.5, 0.1, 0.2), (0.0, 0.7, 0.3)])
def test_jacobian_is_the_derivative(s: tuple[float, ...]) -> None:
    system, rng = network(), np.random.default_rng(0)
    u = rng.uniform(0.2, 0.5, system.n)
    u[system.S] = s
    # At rest, where no queue throttles, arrivals must fit: the throttle is held constant on purpose.
    u[system.Y] = 0.5
    _, J = system.residual(u)
    step = 1e-6
    for i in range(system.n):
        if i in system.S and u[i] == 0 and system.q_max[i - system.S[0]] == 0:
            continue
        shift = np.zeros(system.n)
        shift[i] = step
        difference = (system.residual(u + shift)[0] - system.residual(u - shift)[0]) / (2 * step)
        np.testing.assert_allclose(J[:, i], difference, rtol=1e-6, atol=1e-7)


def test_signals_by_hand() -> None:
    system = network((0.3, np.inf, np.inf))
    u = np.zeros(system.n)
    u[system.S] = 0.3 + 0.25, 0.1, 0.2  # the first link is full and loses 1 - 1/(1 + 0.25) = 0.2
    u[system.M] = 0.0, 0.5, 0.0
    u[system.P] = 1.0, 2.0, 4.0
    sig = system.signals(u)
    np.testing.assert_allclose(sig.queue, [0.3, 0.1, 0.2])
    np.testing.assert_allclose(sig.loss, [0.2, 0, 0])
    np.testing.assert_allclose(sig.path[0], [0.1 + 0.6, 0.2 + 0.4])
    np.testing.assert_allclose(sig.path[1], [1 - 0.8 * 0.5] * 2)
    np.testing.assert_allclose(sig.path[2], [7, 3])
    np.testing.assert_allclose(sig.survival, [[1, 0.8, 0.8], [1, 1, 0.8]])


def test_a_busy_queue_passes_its_capacity_on() -> None:
    system = network((np.inf, np.inf, np.inf))
    u = np.zeros(system.n)
    u[system.S], u[system.Y] = (0.1, 0.0, 0.0), (4.0, 9.0, 1.0)
    # Link 0 has capacity 2 and an arrival of 4; link 1 has an empty queue and may not throttle.
    np.testing.assert_allclose(system.signals(u).passing, [[1, 0.5, 0.5], [1, 1, 0.5]])
