"""Jacobians of every law against complex steps, which are exact to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from sympy import simplify, symbols

from fluidcc.base.errors import InvalidInput
from fluidcc.laws import Law
from fluidcc.laws.kernel_text import law_reference
from fluidcc.laws.linear import active_modes, jacobian_function, linearize_law, slope
from fluidcc.sources import LDCC, Reno
from fluidcc.symbols import c, e, e_b, edot, packet, pi, unfold, x_tau, y
from tests.some_laws import all_laws, random_values

N = 25
STEP = 1e-40


@pytest.mark.parametrize("law", all_laws(), ids=lambda law: law.name)
def test_jacobians_equal_complex_steps(law: Law) -> None:
    values = random_values(law, N, seed=3)
    z, u, p = (
        np.array([values[s] for s in group]).reshape(len(group), N)
        for group in (law.states, law.inputs, law.params)
    )
    found = jacobian_function(law)(z, u, p)
    reference = law_reference(law)
    for columns, matrices in ((z, (found.A, found.C)), (u, (found.B, found.D))):
        for j in range(len(columns)):
            moved = columns.astype(complex)
            moved[j] += 1j * STEP
            flow, out = reference(moved, u, p) if columns is z else reference(z, moved, p)
            for matrix, rows in zip(matrices, (flow, out), strict=True):
                scale = np.abs(matrix).max(initial=1.0)
                np.testing.assert_allclose(
                    matrix[:, j], rows.imag / STEP, rtol=1e-12, atol=1e-13 * scale
                )


def test_the_branch_can_be_given() -> None:
    above, below = linearize_law(LDCC, [1]), linearize_law(LDCC, [0])
    (x,), (w, beta, T, eta) = LDCC.states, LDCC.params
    column = LDCC.inputs.index(e)
    rest = {edot: 0, pi: 0, w: x * beta * (e - T) / (e + e_b)}  # at equilibrium, (18)
    slope = -eta * x / (e + e_b) * beta * (T + e_b) / (e + e_b) ** 2  # -k x v'(e)
    assert simplify(above.B[0, column].subs(rest) - slope) == 0
    assert below.B[0, column].has(beta) is False
    with pytest.raises(InvalidInput, match="LDCC has 1 switches; 2 modes were given"):
        linearize_law(LDCC, [1, 0])


def test_a_switching_surface_is_refused() -> None:
    z, p = [np.array(1e6)], [np.array(v) for v in LDCC.params.values()]
    u = [np.array(LDCC.parameter("T") if s == e else 0.1) for s in LDCC.inputs]
    with pytest.raises(InvalidInput, match=r"LDCC stands on a switching surface, -T \+ e = 0"):
        active_modes(LDCC, z, u, p)


def test_reno_has_the_coefficients_of_hollot_misra_towsley_gong() -> None:
    """INFOCOM 2001, (5): W0^2 p0 = 2 and dW' = -(N/(R^2 C)) (dW + dW_R) - (R C^2/(2 N^2)) dp,
    less queue terms.
    """
    (W,), (a, b) = Reno.states, Reno.params
    A, B, *_ = linearize_law(Reno)
    W0 = packet * 0 + W
    at = {pi: 2 / W0**2, x_tau: packet * W0 / (e + e_b), a: 1, b: 1 / unfold(2)}
    own = A[0, 0].subs(at)
    delayed = (B[0, Reno.inputs.index(x_tau)] * packet / (e + e_b)).subs(
        at
    )  # through x_tau = packet W_R/R
    assert simplify(own + 1 / (W0 * (e + e_b))) == 0  # N/(R^2 C) = 1/(W0 R), as W0 = R C/N
    assert simplify(delayed - own) == 0
    assert (
        simplify(B[0, Reno.inputs.index(pi)].subs(at) + W0**2 / (2 * (e + e_b))) == 0
    )  # R C^2/(2 N^2)


def test_a_power_with_a_symbol_as_exponent_has_a_slope_at_zero() -> None:
    B, g = symbols("B g", positive=True)
    f = (c * (y / c) ** B + g * y**2) * (1 + (y / c) ** g)
    found = slope(f, y)
    assert simplify(found - f.diff(y)) == 0
    assert found.subs({B: 3, g: 2, c: 5, y: 0}) == 0
    assert slope(B**y, y) == (B**y).diff(y)
