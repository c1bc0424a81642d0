"""Loops that people asked about in public, each with its thread and its right value."""

from __future__ import annotations

import numpy as np
import pytest

import fluidcc as fc

tf = fc.DelayLTI.transfer


def test_two_paths_of_one_plant_in_a_feedback() -> None:
    """JuliaControl/ControlSystems.jl#253: 1/(1 + (2 - 2 exp(-s))/(s (s + 1))), 1/3 at rest."""
    loop = tf([2], [1, 1, 0]) - tf([2], [1, 1, 0], 1.0)
    found = np.abs(tf([1], [1]).feedback(loop).frequency_response([1e-5, 1e3])[0, 0])
    assert found.tolist() == pytest.approx([1 / 3, 1], abs=1e-5)


def test_the_largest_dead_time() -> None:
    """mcqoptions.com, discussion 2216112: 2 exp(-s T)/(s (s + 3)), by hand from abs(L) = 1."""
    omega = np.sqrt((np.sqrt(9**2 + 4 * 4) - 9) / 2)
    largest = (np.pi / 2 - np.arctan(omega / 3)) / omega
    assert tf([2], [1, 3, 0]).margins().delay == pytest.approx(largest, rel=1e-9)


def test_a_triple_integrator_is_stable_from_a_gain_on() -> None:
    """python-control/python-control#947: (s^2 + 0.5 s + 0.05)/s^3, by Routh from 0.1 on."""
    margins = tf([1, 0.5, 0.05], [1, 0, 0, 0]).margins()
    assert margins.gain_down == pytest.approx(0.1, abs=1e-9)
    assert np.isinf(margins.gain)


def test_steps_of_pure_delays() -> None:
    """JuliaControl/ControlSystems.jl#544, #1054, #920; SciML/OrdinaryDiffEq.jl#3636."""
    pure = tf([1], [1], 0.01).step([0, 0.0099, 0.01, 1.0])[0, 0]
    assert pure.tolist() == pytest.approx([0, 0, 1, 1], abs=1e-9)
    late = tf([1], [0.85, 1], 0.14).step([1.4])[0, 0, 0]
    assert late == pytest.approx(1 - np.exp(-1.26 / 0.85), abs=1e-9)
    twice = (2 * (tf([1], [2, 1], 0.5) * tf([1], [1], 1.0))).step([1.0, 1.49, 3.5])[0, 0]
    assert twice.tolist() == pytest.approx([0, 0, 2 - 2 * np.exp(-1)], abs=1e-9)


def test_a_controller_of_a_plant_with_dead_time() -> None:
    """JuliaControl/ControlSystems.jl, example/delayed_lti_timeresp.jl, after MathWorks' Analyzing
    Control Systems with Delays: printed 2.02 and 81.8 degrees.
    """
    margins = (tf([1, 2], [1, 0.4, 1.2], 2.2) * tf([0.08, 0.08], [1, 0])).margins()
    assert margins.gain == pytest.approx(2.022841472218183, abs=2e-4)
    assert margins.phase == pytest.approx(81.80160756020933, abs=2e-4)


def test_a_smith_predictor_of_an_integrator_leaves_an_offset() -> None:
    """nebhead/PiFire#244: (1 + K L)/K after a step of the load."""
    plant, model = tf([1], [1, 0], 2.0), tf([1], [1, 0])
    loop = plant.feedback(tf([0.3], [1]).feedback(model - plant))
    assert loop.step([200.0])[0, 0, 0] == pytest.approx((1 + 0.3 * 2) / 0.3, abs=1e-6)


@pytest.mark.parametrize(
    ("b", "c", "stable"),
    [(15, 10, False), (-15, 12, False), (18, -9, False), (24, 5, False), (10, -22, False),
     (12, 9, True), (18, -20, False)],
)  # fmt: skip
def test_two_delays_of_which_one_is_a_third(b: float, c: float, stable: bool) -> None:
    """Mahaffy and Busken, arXiv 1308.1427: x' = -20 x - b x(t - 1) - c x(t - 1/3)."""
    loop = fc.DelayLTI.retarded(-20.0, (-b, 1.0), (-c, 1 / 3))
    assert (loop.count_unstable().unstable == 0) == stable
