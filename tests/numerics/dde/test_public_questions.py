"""Delay equations that people asked about in public, each with its thread and its right value."""

from __future__ import annotations

import numpy as np
import pytest
from sympy import Function, symbols

import fluidcc as fc


def test_a_dose_with_a_delayed_loss_of_the_other_state() -> None:
    """SciML/DelayDiffEq.jl#57; by hand y0 = 80 exp(-1.2 (t - 4))."""

    def rates(t: float, y: np.ndarray, Z: np.ndarray) -> list[float]:
        return [-1.2 * y[0], 1.2 * y[0] - y[1] / 20 - 0.1 * Z[1, 0]]

    dose = (4.0, lambda t, y: [y[0] + 80, y[1]])
    run = fc.solve_dde(
        rates, (0, 6), [0.0, 0.0], [1.0], jumps=[dose], t_eval=[4.5, 5.0], rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(run.y[0], 80 * np.exp([-0.6, -1.2]), rtol=1e-9)
    np.testing.assert_allclose(run.y[1], [35.603334338863824, 54.26380905086708], atol=1e-6)


def test_a_transport_delay_in_inverse_proportion_to_the_flow() -> None:
    """neurophysik/jitcdde#56: the flow coasts down from t = 40."""

    def flow(t: float) -> float:
        return 20.0 if t < 40 else max(20.0 * np.exp(-(t - 40) / 8.0), 9.0)

    def rates(t: float, y: np.ndarray, Z: np.ndarray) -> list[float]:
        gain = flow(t) / 800
        return [gain * (Z[1, 0] - y[0]) + 0.6, gain * (Z[0, 0] - y[1]) - 0.6]

    run = fc.solve_dde(rates, (0, 200), [40.0, 40.0], lambda t, y: [160 / flow(t)],
                       t_eval=[60, 200], rtol=1e-9, atol=1e-9)  # fmt: skip
    found = [run.y[0, 0], run.y[0, 1], run.y[1, 1]]
    np.testing.assert_allclose(
        found, [56.797223768628264, 66.52897079825611, 13.47102920174408], atol=2e-6
    )


def test_a_matrix_of_delays_each_read_for_one_state() -> None:
    """SciML/DifferentialEquations.jl#983: phase oscillators; the value of the public case."""
    rng = np.random.default_rng(7)
    gains = rng.random((4, 4))
    np.fill_diagonal(gains, 0)
    lags, own = rng.uniform(0.5, 6, (4, 4)), rng.normal(0.3, 0.05, 4)
    phases = rng.uniform(0, 6, 4)
    i, j = np.nonzero(gains)

    def rates(t: float, y: np.ndarray, Z: np.ndarray) -> np.ndarray:
        out = own.copy()
        np.add.at(out, i, 0.2 * gains[i, j] * np.sin(Z - y[i]))
        return out

    run = fc.solve_dde(rates, (0, 25), phases, lags[i, j], lag_states=j, rtol=1e-8, atol=1e-9)
    expected = [11.747829248459873, 6.756435397533789, 11.936541191244512, 6.969311823617601]
    np.testing.assert_allclose(run.y[:, -1], expected, atol=5e-5)


def test_a_state_is_reset_when_it_passed_a_level_one_lag_ago() -> None:
    """mathematica.stackexchange 99576: y' = 1, so the times follow by hand."""

    def late(t: float, y: np.ndarray, Z: np.ndarray) -> float:
        return float(Z[0, 0] - (1.0 if t <= 5 else (1.5 if t <= 10 else 2.0)))

    late.delayed, late.direction = True, 1  # type: ignore[attr-defined]
    run = fc.solve_dde(
        lambda t, y, Z: [1.0], (0, 20), [0.0], [1.0], jumps=[(late, lambda t, y: [0.0])], rtol=1e-9
    )
    np.testing.assert_allclose(run.t_jumps, [2.0, 4.0, 6.5, 9.0, 12.0, 15.0, 18.0], atol=1e-6)


def test_two_oscillators_whose_lags_are_parameters() -> None:
    """SciML/ModelingToolkit.jl#2232."""
    t, k, a, b = symbols("t k a b")
    x, y, u, v = (Function(name) for name in "xyuv")
    equations = {
        x(t): y(t), y(t): -x(t - a) + u(t - b), u(t): v(t), v(t): -k * u(t - b) + x(t - a)
    }  # fmt: skip
    run = fc.solve_dde(equations, (0, 20), [0.2, 0.1, 0.1, 0.1],
                       args={k: 3.0, a: 0.02, b: 0.05}, rtol=1e-9, atol=1e-11)  # fmt: skip
    assert run.y[:, -1].tolist() == pytest.approx(
        [-0.12522841997553327, -0.2980653266042577, -0.11936008279867691, 0.15608841166624757],
        abs=1e-6,
    )
