"""Linearised laws: exact on each branch, and answering small signals as the law itself does."""

import numpy as np
import pytest
from sympy import Symbol, simplify, symbols

from fluidcc.base.errors import InvalidInput
from fluidcc.laws import Law
from fluidcc.laws.linear import active_modes, branch_function, slope
from fluidcc.laws.sampled import standing
from fluidcc.sources import LDCC, SampledLDCC
from fluidcc.symbols import c, e, e_b, edot, packet, pi, unfold, y
from tests.some_laws import all_laws, random_values, reference

N = 25
STEP = 1e-40
s = Symbol("s", positive=True)


@pytest.mark.slow
@pytest.mark.parametrize("law", all_laws(), ids=lambda law: law.name)
def test_branches_equal_the_law_and_jacobians_equal_complex_steps(law: Law) -> None:
    values = random_values(law, N, seed=3)
    z, u, p = (
        np.array([values[s] for s in group]).reshape(len(group), N)
        for group in (law.states, law.inputs, law.params)
    )
    branch, function = branch_function(law)(z, u, p, active_modes(law, z, u, p)), reference(law)
    for got, wanted in zip(branch[:2], function(z, u, p), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13 * np.abs(u).max())
    found = branch.jacobians
    for columns, matrices in ((z, (found.A, found.C)), (u, (found.B, found.D))):
        for j in range(len(columns)):
            moved = columns.astype(complex)
            moved[j] += 1j * STEP
            flow, out = function(moved, u, p) if columns is z else function(z, moved, p)
            for matrix, rows in zip(matrices, (flow, out), strict=True):
                atol = 1e-13 * np.abs(matrix).max(initial=1.0)
                np.testing.assert_allclose(matrix[:, j], rows.imag / STEP, rtol=1e-12, atol=atol)


def test_a_sampled_law_stands_still_where_the_continuous_one_does() -> None:
    """At a constant delay the averages of an interval are the delay itself."""
    (x,), steady = LDCC.states, {edot: 0, pi: 0, packet: 8000, e: 0.3, e_b: 0.02}
    held, flow = (
        unfold(law.flow[x]).subs({**law.params, **steady, x: 1e6})
        for law in (standing(SampledLDCC, "flow"), LDCC)
    )
    assert float(held) == pytest.approx(float(flow))
    assert float(flow) < 0


def test_a_switching_surface_is_refused() -> None:
    z, p = [np.array(1e6)], [np.array(v) for v in LDCC.params.values()]
    u = [np.array(LDCC.parameter("T") if s == e else 0.1) for s in LDCC.inputs]
    with pytest.raises(InvalidInput, match=r"LDCC stands on a switching surface, -T \+ e = 0"):
        active_modes(LDCC, z, u, p)


def test_a_power_with_a_symbol_as_exponent_has_a_slope_at_zero() -> None:
    B, g = symbols("B g", positive=True)
    f = (c * (y / c) ** B + g * y**2) * (1 + (y / c) ** g)
    found = slope(f, y)
    assert simplify(found - f.diff(y)) == 0
    assert found.subs({B: 3, g: 2, c: 5, y: 0}) == 0
    assert slope(B**y, y) == (B**y).diff(y)
