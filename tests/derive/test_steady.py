"""Laws at rest as functions of arrays: values and derivatives against the symbolic ones."""

from __future__ import annotations

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.derive.steady import Structure, bounds, grouped, link_function, refuse_unsteady, source_function
from fluidcc.errors import Unsupported
from fluidcc.symbols import e, e_b, edot, packet, pi, price, x_tau


@pytest.mark.parametrize("law", [fc.LDCC, fc.Reno, fc.PrimalDual, fc.AlphaFairPrimalDual, fc.CBR], ids=lambda v: v.name)
def test_source_function_gives_the_system_and_its_jacobians(law: fc.Source) -> None:
    k, signals = len(law.states), (e, pi, price, x_tau)
    names = (*law.states, *signals, edot, e_b, packet, *law.params)
    point = dict(zip(names, [*[3e5] * k, 0.2, 0.01, 0.02, 2e5, 0.0, 0.05, 8000.0, *law.params.values()], strict=True))
    F, H = law.system
    expected = [*H, *H.jacobian(signals)]
    if k:
        expected = [*F, *H, *F.jacobian(law.states), *F.jacobian(signals), *H.jacobian(law.states), *expected[1:]]
    values = source_function(Structure.of(law))(*map(float, point.values()))
    np.testing.assert_allclose(np.array(values, float), [float(f.doit().subs(point)) for f in expected], rtol=1e-12)


def test_link_function_leaves_the_queue_out() -> None:
    values = link_function(Structure.of(fc.DropTail))(0.1, 2e6, 1e6, 0.5)
    assert list(map(float, values)) == [0, 0, 0, 0, 0, 0]
    # DualLink: nu (y - c), no mark, price lambda; derivatives by q, lambda, y.
    values = link_function(Structure.of(fc.DualLink))(0.0, 0.3, 3e6, 1e6, np.inf, 1e-6)
    np.testing.assert_allclose(np.array(values, float), [2, 0, 0.3, 0, 0, 1e-6, 0, 0, 0, 0, 1, 0], rtol=1e-14)


def test_laws_of_equal_structure_go_together() -> None:
    laws = [fc.LDCC, fc.Reno, fc.LDCC(T=0.2), fc.LDCC(T=0.2), fc.PrimalDual]
    assert [index for _, index in grouped(laws)] == [[0, 2, 3], [1], [4]]


def test_bounds() -> None:
    np.testing.assert_array_equal(bounds([fc.Reno, fc.Reno], fc.Reno.states, "lower", [{}, {}]), [[1, 1]])
    np.testing.assert_array_equal(bounds([fc.Reno], fc.Reno.states, "upper", [{}]), [[np.inf]])


def test_unsteady_laws_are_refused() -> None:
    refuse_unsteady(fc.LDCC, "flow 'a'")
    with pytest.raises(Unsupported, match="flow 'a' .*jumps"):
        refuse_unsteady(fc.AIMD, "flow 'a'")
