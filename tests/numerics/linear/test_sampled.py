"""Monodromy matrices against the recursion written out, and against the continuous loop for short periods."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import fluidcc as fc
from fluidcc.errors import InvalidInput
from fluidcc.numerics.linear.sampled import SampledLoop


def held(loop: SampledLoop, parts: int, periods: int, x0: np.ndarray) -> list[np.ndarray]:
    """The loop run on a grid of h / parts, which holds every delay: samples of x, and nothing shared with the map."""
    h = loop.period / parts
    A, B, C = (np.asarray(m, float) for m in (loop.A, loop.B, loop.C))
    n = len(A)
    whole = expm(
        np.block([[A, np.eye(n), np.zeros((n, n))], [np.zeros((n, 2 * n)), np.eye(n)], [np.zeros((n, 3 * n))]]) * h
    )
    E, I1, I2 = whole[:n, :n], whole[:n, n : 2 * n], whole[:n, 2 * n :]
    ahead = [round(d / h) for d in loop.input_delays]
    behind = [round(d / h) for d in loop.output_delays]
    xs, rs = [x0], []
    means: list[np.ndarray] = []
    xi, m = np.zeros(len(np.asarray(loop.F))), np.zeros(len(C))
    samples = []
    for step in range(parts * periods):
        if step % parts == 0:
            samples.append(xs[-1])
            for i, lag in enumerate(behind):
                if loop.averaged[i]:
                    past = [means[j] for j in range(step - lag - parts, step - lag) if j >= 0]
                    m[i] = C[i] @ np.sum(past, axis=0) / parts if past else 0.0
                else:
                    m[i] = C[i] @ xs[step - lag] if step >= lag else 0.0
            r = np.asarray(loop.H) @ xi + np.asarray(loop.J) @ m
            xi = np.asarray(loop.F) @ xi + np.asarray(loop.G) @ m
        rs.append(r)
        u = np.array([rs[step - d][j] if step >= d else 0.0 for j, d in enumerate(ahead)])
        means.append((I1 @ xs[-1] + I2 @ (B @ u)) / h)
        xs.append(E @ xs[-1] + I1 @ (B @ u))
    return samples


def two_by_two(averaged: tuple[bool, bool]) -> SampledLoop:
    rng = np.random.default_rng(8)
    return SampledLoop(
        0.1,
        A=rng.normal(size=(2, 2)) - np.eye(2),
        B=rng.normal(size=(2, 2)),
        C=rng.normal(size=(2, 2)),
        F=[[0.3]],
        G=rng.normal(size=(1, 2)),
        H=rng.normal(size=(2, 1)),
        J=-rng.uniform(size=(2, 2)),
        input_delays=[0.13, 0.2],
        output_delays=[0.04, 0.31],
        averaged=averaged,
    )


@pytest.mark.parametrize("averaged", [(False, False), (True, False), (False, True), (True, True)])
def test_the_map_is_the_recursion(averaged: tuple[bool, bool]) -> None:
    loop = two_by_two(averaged)
    x0 = np.array([1.0, -0.5])
    samples = held(loop, 100, 12, x0)  # every delay is a multiple of h / 100, so that this is exact
    state = np.zeros(len(loop.monodromy))
    state[:2] = x0
    for sample in samples:
        assert state[:2] == pytest.approx(sample, rel=1e-9, abs=1e-11)
        state = loop.monodromy @ state


def test_the_classical_case_without_delays() -> None:
    # x' = r, r_k = -g x_k: x_(k+1) = (1 - g h) x_k
    loop = SampledLoop(0.5, 0.0, 1.0, 1.0, [], [], [], -3.0, [0.0], [0.0])
    assert loop.multipliers == pytest.approx([-0.5])
    assert loop.stable
    assert not SampledLoop(0.5, 0.0, 1.0, 1.0, [], [], [], -4.0, [0.0], [0.0]).stable


def test_short_periods_are_the_continuous_loop() -> None:
    # x' = -x(t - 1) with the sample held: the mean age of what is held adds h / 2
    exact = fc.DelayLTI.retarded(0, (-1, 1.0)).roots(count=1)[0]
    rates = [SampledLoop(h, 0.0, 1.0, 1.0, [], [], [], -1.0, [0.37], [0.63]).decay_rate for h in (0.1, 0.05, 0.025)]
    errors = np.abs(np.array(rates) + exact.real)
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.1)
    late = fc.DelayLTI.retarded(0, (-1, 1.0125)).roots(count=1)[0]
    assert rates[2] == pytest.approx(-late.real, rel=1e-3)


def test_malformed_loops_are_refused() -> None:
    with pytest.raises(InvalidInput, match="J must be"):
        SampledLoop(0.1, 0.0, 1.0, 1.0, [], [], [], [[1.0, 2.0]], [0.0], [0.0])
    with pytest.raises(InvalidInput, match="positive"):
        SampledLoop(0.0, 0.0, 1.0, 1.0, [], [], [], 1.0, [0.0], [0.0])
    with pytest.raises(InvalidInput, match="1 input delays"):
        SampledLoop(0.1, 0.0, 1.0, 1.0, [], [], [], 1.0, [0.0, 1.0], [0.0])
