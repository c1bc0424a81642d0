"""Roots against Lambert's W, polynomials and known neutral spectra; both counts on random systems."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import lambertw

import fluidcc as fc
from fluidcc.errors import InvalidInput, Unsupported

transfer = fc.DelayLTI.transfer


def scalar(a: float, b: float, tau: float, branches: int) -> np.ndarray:
    """Roots of s = a + b exp(-s tau), all branches up to some number."""
    k = np.arange(-branches, branches + 1)
    return np.array([a + lambertw(b * tau * np.exp(-a * tau), j) / tau for j in k])


def test_the_delayed_integrator_to_twelve_digits() -> None:
    roots = fc.DelayLTI.retarded(0, (-1, 1.0)).roots(count=2)
    # W_0(-1) to 20 digits, an independent table value
    exact = -0.31813150520476413531 + 1.33723570143068940890j
    assert np.abs(roots - [exact, exact.conjugate()]).max() < 1e-12


@pytest.mark.parametrize(
    ("a", "b", "tau"), [(0, -1, 1), (-2, 1.5, 0.01), (1, -3, 40.0), (-1e3, -2e4, 1e-3), (0.5, 2, 3)]
)
def test_all_branches_of_the_scalar_equation(a: float, b: float, tau: float) -> None:
    exact = scalar(a, b, tau, 12)
    exact = exact[np.lexsort((-exact.imag, np.abs(exact.imag), -np.round(exact.real * tau, 10)))]
    found = fc.DelayLTI.retarded(a, (b, tau)).roots(count=15)
    assert len(found) >= 15
    assert np.abs(found - exact[: len(found)]).max() * tau < 1e-10 * np.abs(exact * tau)[:15].max()


def test_a_region_holds_all_its_roots() -> None:
    exact = scalar(0, -1, 1, 40)
    inside = (exact.real > -4.5) & (np.abs(exact.imag) < 80)
    found = fc.DelayLTI.retarded(0, (-1, 1)).roots(region=(-4.5, 1, -80, 80))
    assert len(found) == inside.sum() == 26
    assert np.abs(np.sort_complex(found) - np.sort_complex(exact[inside])).max() < 1e-10
    assert not len(fc.DelayLTI.retarded(0, (-1, 1)).roots(region=(0, 3, -9, 9)))


def test_multiple_roots_are_repeated() -> None:
    double = fc.DelayLTI.retarded(0, (-np.exp(-1), 1.0)).roots(count=3)  # s exp(s) = -1/e: -1 twice
    assert np.abs(double[:2] + 1).max() < 1e-10
    assert double[2].real < -2
    twins = transfer([1], [1, 0], 1.0).feedback()
    pair = twins.append(twins).roots(count=4)
    assert np.abs(pair - np.array([1, 1, -1, -1]) * 1.3372357014306894j + 0.3181315052047641).max() < 1e-10
    quadruple = transfer([1], np.poly([-2, -2, -2, -2]))
    assert np.abs(quadruple.roots(count=4) + 2).max() < 1e-3  # of a fourfold root, a matrix knows four digits


def test_close_roots_stay_apart() -> None:
    near = transfer([1], np.poly([-1, -1.0001, -1.0002])).append(transfer([1], [1, 1.00005]))
    assert np.abs(near.roots(count=4) + np.array([1, 1.00005, 1.0001, 1.0002])).max() < 1e-6


def test_delays_that_lie_on_no_cycle_make_no_roots() -> None:
    chain = transfer([1], [1, 3], 0.4) * transfer([2], [1, 5], 0.7)
    assert chain.roots(count=10) == pytest.approx(np.array([-3, -5]))
    assert not len(
        fc.DelayLTI(np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((2, 0)), 1 - np.eye(2), delays=[1.0]).roots()
    )


def test_lags_that_cancel_make_no_roots() -> None:
    coupled = [[-1.0, 0.3], [0.2, -2.0]]
    for A in ([[-1.0]], coupled):
        n = len(A)
        into, read = np.zeros((n, 2)), np.zeros((2, n))
        into[0], read[:, 0] = (1.0, -1.0), 1.0
        system = fc.DelayLTI(A, into, read, np.zeros((2, 2)), delays=[1.0, 1.0])
        np.testing.assert_allclose(system.roots(count=5), np.sort(np.linalg.eigvals(A))[::-1], rtol=1e-12)
        into[0, 1] = -1.0 + 1e-6  # now they do not: the chain begins far to the left
        system = fc.DelayLTI(A, into, read, np.zeros((2, 2)), delays=[1.0, 1.0])
        far = system.roots(count=n + 1)[n:]
        assert len(far)
        assert far.real.max() < -10
        assert np.abs(system.characteristic(far) / np.exp(-far)).max() < 1e-9


def test_integrators_and_the_axis() -> None:
    count = (transfer([1], [1, 0], 0.5) * transfer([1], [1, 0, 4], 0.5)).count_unstable()
    assert (count.unstable, count.marginal, count.at_zero, count.stable) == (0, 2, 1, False)
    hopf = transfer([np.pi / 2], [1, 0], 1.0).feedback().count_unstable()
    assert (hopf.unstable, hopf.marginal) == (0, 2)
    with_tracker = transfer([20], [1, 0], 1.0).feedback().append(transfer([1], [1, 0], 2)).count_unstable()
    assert (with_tracker.unstable, with_tracker.at_zero) == (6, 1)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1))
def test_encirclements_and_roots_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    terms = [(rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.6), t) for t in 10 ** rng.uniform(-2, 0.5, k)]
    system = fc.DelayLTI.retarded(rng.normal(size=(n, n)) - rng.uniform(0, 3) * np.eye(n), *terms)
    count = system.count_unstable()
    # an argument principle of its own: a dense walk around the same half plane, by determinants
    size = 1 + float(np.linalg.norm(system.A, 2) + np.sum([np.linalg.norm(m, 2) for m, _ in terms]))
    line = 1j * size * np.sinh(np.linspace(-8, 8, 60001)) / np.sinh(8)
    arc = size * np.exp(1j * np.linspace(np.pi / 2, -np.pi / 2, 20001))
    s = np.concatenate((line, arc[1:]))
    value = np.eye(n) * s[:, None, None] - system.A
    for m, t in terms:
        value = value - m * np.exp(-t * s)[:, None, None]
    turns = -np.diff(np.unwrap(np.angle(np.linalg.det(value)))).sum() / (2 * np.pi)
    assert count.unstable == round(turns)
    assert count.by_contour == count.by_roots == (count.roots.real > 0).sum()
    residual = np.abs(system.characteristic(count.roots)) / np.maximum(1, np.abs(count.roots)) ** n
    assert residual.max(initial=0) < 1e-8 * max(1, size) ** n


def test_neutral_chain_of_roots() -> None:
    # x' = -a x + c x'(t - 1): z = x', so that D22 = c; s + a = c s exp(-s)
    a, c = 1.0, 0.5
    system = fc.DelayLTI([[-a]], [[0.0, c]], [[1.0], [-a]], [[0.0, 0.0], [0.0, c]], delays=[1.0])
    assert system.neutral
    assert system.difference_norm == pytest.approx(c)
    assert system.essential_abscissa == pytest.approx(np.log(c))
    roots = system.roots(region=(-2, 1, -40, 40))
    assert np.abs(roots + a - c * roots * np.exp(-roots)).max() < 1e-9
    far = roots[np.abs(roots.imag) > 30]
    assert len(far) == 4  # one a turn of 2 pi
    assert far.real == pytest.approx(np.log(c), abs=2e-2)
    assert system.count_unstable().unstable == 0
    with pytest.raises(Unsupported, match="essential abscissa"):
        system.roots(count=30)


def test_a_neutral_system_without_strong_stability_is_refused() -> None:
    system = fc.DelayLTI([[-1.0]], [[0.0, 1.5]], [[1.0], [-1.0]], [[0.0, 0.0], [0.0, 1.5]], delays=[1.0])
    with pytest.raises(Unsupported, match="not strongly stable"):
        system.count_unstable()


@pytest.mark.parametrize("a", [1.0, 1e8])
def test_a_neutral_system_is_called_so_in_all_units(a: float) -> None:
    inner = np.array([[0, 0, 0], [0, 0, a], [0, 0.5 / a, 0]])
    system = fc.DelayLTI([[-1.0]], np.zeros((1, 3)), np.zeros((3, 1)), inner, delays=[1.0, 1.3])
    assert system.neutral
    assert system.essential_abscissa == pytest.approx(np.log(0.5) / 2.3)  # 1 = 0.5 exp(-2.3 c)


def test_retarded_systems_are_not_called_neutral() -> None:
    nilpotent = fc.DelayLTI(0.0, np.array([1, 1, 0]), np.ones((3, 1)), np.diag([0, 1.0], k=1), delays=[1, 2])
    assert not nilpotent.neutral
    assert nilpotent.essential_abscissa == -np.inf
    inner = np.array([[0, 0, 0], [0, 1, -1], [0, 1, -1]])
    cancelling = fc.DelayLTI(-1.0, np.ones((1, 3)), np.ones((3, 1)), inner, delays=[1, 1])
    assert not cancelling.neutral
    assert cancelling.count_unstable().by_contour >= 0


def test_unreasonable_requests() -> None:
    system = fc.DelayLTI.retarded(0, (-1, 1.0))
    with pytest.raises(InvalidInput, match="not both"):
        system.roots(count=2, region=(-1, 1, -1, 1))
    with pytest.raises(InvalidInput, match="from 1 to"):
        system.roots(count=0)
    with pytest.raises(InvalidInput, match="finite box"):
        system.roots(region=(1, -1, 0, 1))
