"""Positive realness by frequency and by the matrix inequality, and by the algebra."""

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.conditions.positive_real import kyp, positive_real

transfer = fc.DelayLTI.transfer


@pytest.mark.parametrize(("zero", "expected"), [(2.9, True), (3.1, False)])
@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e9])
def test_both_tests_agree_on_the_boundary_of_a_family(
    zero: float, expected: bool, unit: float
) -> None:
    # (s + a) / ((s + 1)(s + 2)) is positive real for a <= 3: Re ~ (2 a + (3 - a) w^2)
    system = transfer([unit, unit * zero], [1, 3, 2])
    assert positive_real(system).positive_real is expected
    assert kyp(system).feasible is expected


def test_the_certificate_is_a_storage_function() -> None:
    rng = np.random.default_rng(2)
    n = 4
    R = rng.normal(size=(n, n))
    A = rng.normal(size=(n, n))
    A = A - A.T - R @ R.T * 0.3  # a port-Hamiltonian system is passive with P = I
    B = rng.normal(size=(n, 2))
    system = fc.DelayLTI(50 * A, 50 * B, B.T, np.zeros((2, 2)))
    found = kyp(system)
    assert found.feasible
    assert found.P is not None
    P, A, B, C = found.P, system.A, system.B, system.C
    for _ in range(200):  # d/dt x'Px/2 <= u'y
        x, u = rng.normal(size=n), rng.normal(size=2)
        assert x @ P @ (A @ x + B @ u) <= u @ C @ x + 1e-5 * (x @ x + u @ u)
    assert np.linalg.eigvalsh(P).min() > 0
    assert positive_real(system).positive_real


def test_a_delay_destroys_positive_realness_but_not_with_enough_feedthrough() -> None:
    lag = transfer([1], [1, 1], 0.5)
    least = positive_real(lag).least
    omega = np.linspace(0, 40, 400001)
    assert least == pytest.approx((np.exp(-0.5j * omega) / (1 + 1j * omega)).real.min(), rel=1e-7)
    assert not positive_real(lag).positive_real
    assert positive_real(lag + (-least + 1e-6)).positive_real
    assert not positive_real(lag + (-least - 1e-6)).positive_real


def test_an_unstable_system_is_not_positive_real() -> None:
    found = positive_real(transfer([1], [1, -1]) + 3)
    assert (found.positive_real, found.stable) == (False, False)


def test_refusals() -> None:
    with pytest.raises(Unsupported, match="without delays"):
        kyp(transfer([1], [1, 1], 1.0))
    with pytest.raises(InvalidInput, match="as many outputs"):
        positive_real(fc.DelayLTI(-1.0, [[1.0, 1.0]], 1.0, [[0.0, 0.0]]))
