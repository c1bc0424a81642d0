"""Roots against Lambert's W, polynomials and known neutral spectra; both counts."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import lambertw

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, Undecided, Unsupported
from fluidcc.numerics.linear import contours
from fluidcc.numerics.linear.compiled.zeros import iterate
from fluidcc.numerics.linear.wiring import Blocks, block_of

transfer = fc.DelayLTI.transfer


def scalar(a: float, b: float, tau: float, branches: int) -> np.ndarray:
    """Roots of s = a + b exp(-s tau), all branches up to some number, the rightmost first."""
    k = np.arange(-branches, branches + 1)
    s = np.array([a + lambertw(b * tau * np.exp(-a * tau), j) / tau for j in k])
    return s[np.lexsort((-s.imag, np.abs(s.imag), -np.round(s.real * tau, 10)))]


@pytest.mark.parametrize(
    ("a", "b", "tau"), [(-2, 1.5, 0.01), (1, -3, 40.0), (-1e3, -2e4, 1e-3), (0.5, 2, 3)]
)
def test_all_branches_of_the_scalar_equation(a: float, b: float, tau: float) -> None:
    exact = scalar(a, b, tau, 12)
    found = fc.DelayLTI.retarded(a, (b, tau)).roots(count=15)
    assert len(found) >= 15
    assert np.abs(found - exact[: len(found)]).max() * tau < 1e-10 * np.abs(exact * tau)[:15].max()


@pytest.mark.parametrize("n", [30, 40, 60])
def test_without_delays_there_are_as_many_roots_as_states(n: int) -> None:
    """However ill-conditioned: to what rounding of the coefficients leaves of them."""
    rng = np.random.default_rng(n)
    half = rng.normal(size=n // 2) - 1 + 3j * rng.normal(size=n // 2)
    den = np.poly(np.r_[half, half.conj()]).real
    found = transfer([1], den).roots(count=n)
    assert len(found) == n
    powers = np.abs(found[:, None]) ** np.arange(n, -1, -1)
    assert (np.abs(np.polyval(den, found)) <= 1e-9 * (np.abs(den) * powers).sum(axis=1)).all()


@pytest.mark.parametrize("unit", [1e-5, 1.0, 1e5])
@pytest.mark.parametrize("near", [-1e-1, -1e-3, 2e-3, 1e-4, 1e-6, 3e-7, 1e-7, -1e-7])
def test_a_root_beside_one_at_zero_is_not_at_zero(near: float, unit: float) -> None:
    """s = a - a exp(-s tau): zero, and near zero the other real branch where a tau is near one: as
    exactly as rounding leaves it.
    """
    a, tau = 1 / unit, (1 + near) * unit
    system = fc.DelayLTI.retarded(a, (-a, tau))
    told, found = system.count_unstable(), system.roots(count=2).real * unit
    assert told.unstable == (near > 0)
    if abs(near) < 1e-5:
        other = found[np.abs(found).argmax()]
        assert other == pytest.approx(2 * near, rel=1e-15 / near**2 + 1e-3)
        return
    exact = a + (lambertw(-a * tau * np.exp(-a * tau), 0 if near > 0 else -1) / tau).real
    assert np.sort(found) == pytest.approx(np.sort([0, exact * unit]), abs=1e-11)
    assert (told.marginal, told.at_zero) == (0, 1)


@pytest.mark.parametrize(
    ("left", "top", "count"), [(-4.5, 80, 26), (-8.0, 1000, 2 * 159), (0.5, 9, 0)]
)
def test_a_region_holds_all_its_roots(left: float, top: float, count: int) -> None:
    exact = scalar(0, -1, 1, 400)
    inside = (exact.real > left) & (np.abs(exact.imag) < top)
    found = fc.DelayLTI.retarded(0, (-1, 1)).roots(region=(left, 3, -top, top))
    assert len(found) == inside.sum() == count
    wanted = np.sort_complex(exact[inside])
    assert np.abs(found[:, None] - wanted).min(axis=0, initial=np.inf).max(initial=0) < 1e-10


def test_the_rightmost_roots_to_twelve_digits_and_hundreds_of_them() -> None:
    found = fc.DelayLTI.retarded(0, (-1, 1.0)).roots(count=160)
    # W_0(-1) to 20 digits, an independent table value
    first = -0.31813150520476413531 + 1.33723570143068940890j
    assert np.abs(found[:2] - [first, first.conjugate()]).max() < 1e-12
    assert np.abs(found - scalar(0, -1, 1, 400)[:160]).max() < 1e-10


def quasipolynomial(coefficients: np.ndarray, delays: np.ndarray) -> fc.DelayLTI:
    """A system with the roots of a sum of polynomials (rising powers) times exp(-s delay)."""
    rows = coefficients / coefficients[0, -1]
    n, k = rows.shape[1] - 1, len(delays) - 1
    A = np.eye(n, k=1)
    A[-1] = -rows[0, :n]
    B = np.zeros((n, k))
    B[-1] = -1.0
    highest = rows[1:, n:]  # of powers that are delayed
    C, D = rows[1:, :n] + highest * A[-1], -highest * np.ones((1, k))
    return fc.DelayLTI(A, B, C, D, delays=delays[1:])


EXAMPLES = {  # 2 and 3 of Vyhlidal and Zitek, QPmR, in Delay Systems (Springer 2014), pages 299-312
    "nine delays": ([
        [0, -1.8, 0.001, 0, 0, -12.8, 0, 1.7, 0.2], [51.7, 0, 0, 0, 0, 0, 0, 0, 0],
        [1.5, -0.1, 0.04, 0.03, 0, 0, 0, 0, 0], [0, 0, 0, 0.5, 0, 0, 0, 0, 0],
        [0, 25.2, 0, -0.9, 0.2, 0.15, 0, 0, 0], [7.2, -1.4, 0, 0, 0.1, 0, 0.8, 0, 0],
        [0, 19.3, 2.1, 0, -8.7, 0, 0, 0, 0], [0, 6.7, 0, 0, 0, -1.1, 0, 1, 0],
        [29.1, 0, 0, 0, 0, 0, 0, 0, 0],
    ], [0.0, 24.99, 23.35, 19.9, 18.52, 13.32, 10.33, 8.52, 4.61], (-2.25, 3.0, 0.0, 20.0)),
    "neutral": ([
        [2.1, 5, 0, 0.2, 1], [0, -2.1, 0, 0, 0.5], [0, 0, 3.2, 0, 0.3], [0, 0, 1.2, 0, 0],
        [3, 0, 0, 0, 0],
    ], [0.0, 1.5, 2.2, 4.3, 6.3], (-10.0, 7.0, 0.0, 100.0)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_published_examples_have_as_many_roots_as_the_quasipolynomial_winds(name: str) -> None:
    coefficients, delays, box = (np.array(part) for part in EXAMPLES[name])
    system = quasipolynomial(coefficients, delays)

    def terms(s: np.ndarray) -> np.ndarray:
        powers = s[None, :] ** np.arange(coefficients.shape[1])[:, None]
        return (coefficients @ powers) * np.exp(-s * delays[:, None])

    left, right, _, top = box
    corners = np.array([left - 1j * top, right - 1j * top, right + 1j * top, left + 1j * top])
    ends = zip(corners, np.roll(corners, -1), strict=True)
    edges = [np.linspace(a, b, 60_001)[:-1] for a, b in ends]
    angle = np.unwrap(np.angle(terms(np.concatenate([*edges, corners[:1]])).sum(axis=0)))
    around = round((angle[-1] - angle[0]) / (2 * np.pi))
    roots = system.roots(region=tuple(box))
    assert 2 * (roots.imag > 0).sum() + (roots.imag == 0).sum() == around
    assert len(roots) == {"nine delays": 83, "neutral": 101}[name]
    found = terms(roots)
    assert (np.abs(found.sum(axis=0)) < 1e-8 * np.abs(found).sum(axis=0)).all()
    s = np.array([complex(left, 0.01), complex(left, 0.5 * top), complex(0.5 * left, 1.0), 1j])
    exact = terms(s).sum(axis=0) / coefficients[0, -1]
    np.testing.assert_allclose(system.characteristic(s), exact, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b", "tau", "unstable"),
    [(0.0, -1.0, 300.0, 96), (-1.0, 1.01, 1000.0, 45), (-1.0, -1.5, 1000.0, 356)],
)
def test_many_unstable_roots_are_counted_and_found(
    a: float, b: float, tau: float, unstable: int
) -> None:
    # A pair crosses at frequency sqrt(b^2 - a^2) each time its phase has turned once more.
    omega = np.sqrt(b * b - a * a)
    first = -np.angle((1j * omega - a) / b) % (2 * np.pi)
    assert 2 * int((omega * tau - first) // (2 * np.pi) + 1) + (a + b > 0) == unstable
    count = fc.DelayLTI.retarded(a, (b, tau)).count_unstable()
    assert count.unstable == count.by_contour == count.by_roots == len(count.roots) == unstable
    assert np.abs(count.roots - a - b * np.exp(-tau * count.roots)).max() < 1e-12
    assert len(np.unique(np.round(count.roots * tau, 6))) == unstable


@pytest.mark.parametrize(("gain", "tau"), [(500.0, 0.6), (900.0, 0.2)])
def test_a_long_chain_of_a_short_delay_is_counted(gain: float, tau: float) -> None:
    """Several of its roots are near the axis; not all of the others were found, and a verdict that
    was certain was refused.
    """
    near, far = np.array([[gain / tau, 1e-9], [0.0, 0.0]]), np.array([[0.0, 0.0], [1e-9, -0.1]])
    count = fc.DelayLTI.retarded(np.zeros((2, 2)), (near, tau), (far, 1.0)).count_unstable()
    exact = int((lambertw(gain, np.arange(-400, 401)).real > 0).sum())
    assert (count.unstable, count.marginal, count.at_zero) == (exact, 0, 0)


def test_compiled_code_is_left_between_guesses_where_many_roots_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All at once took 15 s for 3,000 roots on a busy machine, in which Ctrl-C was not heard."""
    pencil = fc.DelayLTI.retarded(0, (-1, 1.0)).pencil
    known = scalar(0, -1, 1, 1000)
    guesses, longest = known + (0.1 + 0j), []

    def noted(start: Any, whole: Any, real: Any, known: Any, rounds: int) -> Any:
        longest.append(len(start) * len(known))
        return iterate(start, whole, real, known, rounds)

    monkeypatch.setattr(contours, "iterate", noted)
    s, size = contours.newton(pencil, guesses, known, 2)
    at_once = iterate(guesses, pencil.whole, pencil.table[0], known, 2)
    assert max(longest) < 1_100_000 < len(guesses) * len(known)
    np.testing.assert_array_equal(s, at_once[0])
    np.testing.assert_array_equal(size, at_once[1])


def test_delays_that_lie_on_no_cycle_make_no_roots() -> None:
    chain = transfer([1], [1, 3], 0.4) * transfer([2], [1, 5], 0.7)
    assert chain.roots(count=10) == pytest.approx(np.array([-3, -5]))
    empty = np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((2, 0))
    assert not len(fc.DelayLTI(*empty, 1 - np.eye(2), delays=[1.0]).roots())


def test_lags_that_cancel_make_no_roots() -> None:
    coupled = [[-1.0, 0.3], [0.2, -2.0]]
    for A in ([[-1.0]], coupled):
        n = len(A)
        into, read = np.zeros((n, 2)), np.zeros((2, n))
        into[0], read[:, 0] = (1.0, -1.0), 1.0
        system = fc.DelayLTI(A, into, read, np.zeros((2, 2)), delays=[1.0, 1.0])
        exact = np.sort(np.linalg.eigvals(A))[::-1]
        np.testing.assert_allclose(system.roots(count=5), exact, rtol=1e-12)
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
    both = transfer([20], [1, 0], 1.0).feedback().append(transfer([1], [1, 0], 2))
    with_tracker = both.count_unstable()
    assert (with_tracker.unstable, with_tracker.at_zero) == (6, 1)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1))
def test_encirclements_and_roots_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    lags = 10 ** rng.uniform(-2, 0.5, k)
    terms = [(rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.6), t) for t in lags]
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
    assert system.essential_abscissa == pytest.approx(np.log(c))
    roots = system.roots(region=(-2, 1, -40, 40))
    assert np.abs(roots + a - c * roots * np.exp(-roots)).max() < 1e-9
    far = roots[np.abs(roots.imag) > 30]
    assert len(far) == 4  # one a turn of 2 pi
    assert far.real == pytest.approx(np.log(c), abs=2e-2)
    assert system.count_unstable().unstable == 0
    with pytest.raises(Unsupported, match="essential abscissa"):
        system.roots(count=30)


@pytest.mark.parametrize("a", [1.0, 1e8])
def test_a_neutral_system_is_called_so_in_all_units(a: float) -> None:
    inner = np.array([[0, 0, 0], [0, 0, a], [0, 0.5 / a, 0]])
    system = fc.DelayLTI([[-1.0]], np.zeros((1, 3)), np.zeros((3, 1)), inner, delays=[1.0, 1.3])
    assert system.neutral
    assert system.essential_abscissa == pytest.approx(np.log(0.5) / 2.3)  # 1 = 0.5 exp(-2.3 c)


def test_channels_of_one_delay_are_one_delay_of_the_difference_operator() -> None:
    # z(t) = M z(t - 1), with abs(M) of spectral radius 1.9 and M of 0.95: chains at log(0.95)
    inner = np.zeros((4, 4))
    inner[1:, 1:] = [[-0.95, 0.95, 0.95], [-0.475, 0.95, 0], [-0.475, 0, 0.95]]
    late = [0.1 + 0.2, 0.3, 0.3]  # which differ in the last bit
    into, read = np.array([[0, 0.1, 0.1, 0.1]]), np.array([[0], [0.2], [0.2], [0.2]])
    system = fc.DelayLTI([[-1.0]], into, read, inner, delays=late)
    assert system.essential_abscissa == pytest.approx(np.log(0.95) / 0.3, rel=1e-6)
    assert system.count_unstable().unstable == 0
    roots = system.roots(region=(-0.5, 1, 0, 400))
    assert len(roots) > 15
    assert roots.real.max() < 0
    apart = np.array([0.3, 0.2, 0.4])  # at 10 pi the first alone turns its sign: 1.9 counts
    unlike = fc.DelayLTI([[-1.0]], into, read, inner, delays=apart)
    assert unlike.count_unstable().unstable == np.inf
    signs = inner[1:, 1:] * [-1, 1, 1]
    assert brentq(lambda c: np.linalg.det(np.eye(3) - signs * np.exp(-c * apart)), 0.0, 4.0) > 1


@pytest.mark.parametrize("number", [3, 6, 12])
def test_what_shares_a_sum_is_strongly_stable_however_many_they_are(number: int) -> None:
    """0.95 (I - x 1') E has the norm 0.95 in units of sqrt(x), whatever the delays are."""
    rng = np.random.default_rng(number)
    x, delays = rng.dirichlet(np.ones(number)), rng.uniform(0.05, 0.3, number)
    inner = 0.95 * (np.eye(number) - x[:, None])
    system = fc.DelayLTI([[-1.0]], 0.1 * x[None], np.full((number, 1), 0.1), inner, delays=delays)
    assert np.log(0.95) / delays.min() < system.essential_abscissa <= np.log(0.95) / delays.max()
    assert system.count_unstable().unstable == 0


def _shared(kept: float, near: float, far: float) -> fc.DelayLTI:
    """Two that keep a part of a sum: 1 - kept/2 exp(-near s) - kept/2 exp(-far s), by hand.

    z1 = kept (z1 - (z1 + z2)/2) at `near`, z2 at `far`: the product of both has the coefficient 0.
    """
    inner = kept * np.array([[0.5, -0.5], [-0.5, 0.5]])
    return fc.DelayLTI([[-1.0]], [[0.1, 0.2]], [[0.3], [0.1]], inner, delays=[near, far])


@pytest.mark.parametrize(("near", "far"), [(0.13, 0.15), (0.13, 0.13 + 1e-9), (0.1, 0.3)])
def test_unequal_delays_of_what_shares_a_sum_are_strongly_stable(near: float, far: float) -> None:
    system = _shared(0.95, near, far)
    chain = lambda c: 0.475 * np.exp(-near * c) + 0.475 * np.exp(-far * c) - 1  # noqa: E731
    c = brentq(chain, -1, 0, xtol=1e-15)
    assert system.neutral
    assert system.essential_abscissa == pytest.approx(c, rel=1e-9)
    assert system.count_unstable().unstable == 0
    roots = system.roots(region=(-3.0, 1.0, 0, 300))
    assert len(roots) > 2
    s, D = roots[:, None, None], system.D
    value = np.eye(2) - D * np.exp(-s * np.array([near, far]))
    left = (s[:, 0, 0] + 1) * np.linalg.det(value)
    # Cramer's rule for C2 x = (I - D22 E) z, 0 = (s + 1) x - B2 E z.
    for k, one in enumerate(roots):
        lag = np.exp(-one * np.array([near, far]))
        z = np.linalg.solve(value[k], system.C[:, 0])
        assert abs(left[k] - np.linalg.det(value[k]) * (system.B[0] * lag @ z)) < 1e-8 * abs(one)
    assert roots.real.max() < 0


def test_paths_that_cancel_are_no_difference_operator() -> None:
    """0.3 in one channel, and 0.1 + 0.2 in two: 1 - 0.9 exp(-0.3 s) + 0.5 exp(-0.3 s)."""
    together = np.array([[0.9, 0, 1.0], [0.9, 0, 1.0], [0, -0.5, 0]])
    into, read = np.full((1, 3), 0.1), np.full((3, 1), 0.1)
    found = fc.DelayLTI([[-1.0]], into, read, together, delays=[0.3, 0.1, 0.2])
    assert found.essential_abscissa == pytest.approx(np.log(0.4) / 0.3, rel=1e-9)
    assert found.count_unstable().unstable == 0


@pytest.mark.parametrize(
    "system",
    [
        fc.DelayLTI(-1.0, [[0.0, 1.5]], [[1.0], [-1.0]], np.diag([0, 1.5]), delays=[1.0]),
        _shared(1.2, 0.13, 0.15),  # 1 - 0.6 exp(-0.13 s) - 0.6 exp(-0.15 s)
        *(fc.DelayLTI.transfer(num, den, delay=1.0).feedback() for num, den in
          (([1.5], [1]), ([1.5, 1.5], [1, 1]))),  # no state of 1 + 1.5 exp(-s) moves
    ],
)  # fmt: skip
def test_chains_right_of_the_axis_are_infinitely_many_roots(system: fc.DelayLTI) -> None:
    assert system.count_unstable().unstable == np.inf
    beside = fc.DelayLTI.transfer([1], [1, 1]).append(system)
    assert beside.count_unstable().unstable == np.inf


def test_an_echo_is_stable_where_it_dies_out() -> None:
    """exp(-s) k: the roots of 1 + k exp(-s) are at Re s = log k, all of them."""
    echo = fc.DelayLTI.transfer([1.0], [1], delay=1.0)
    for k in (0.1, 0.5, 0.9, 0.999):
        assert (k * echo).feedback().count_unstable().stable
        assert (k * echo).feedback().essential_abscissa == pytest.approx(np.log(k))
    with pytest.raises(Unsupported, match="not strongly stable"):
        echo.feedback().count_unstable()


def test_chains_that_the_last_digits_of_delays_decide_about_are_refused() -> None:
    """1 + 0.6 u + 0.6 u^2, u = exp(-s), has zeros with abs(u) > 1 alone; of 1.2 that is chance."""
    inner = np.full((2, 2), -0.6)
    system = fc.DelayLTI([[-1.0]], [[0.1, 0.1]], [[0.1], [0.1]], inner, delays=[1.0, 2.0])
    with pytest.raises(Unsupported, match="not strongly stable"):
        system.count_unstable()


def test_retarded_systems_are_not_called_neutral() -> None:
    chain = np.diag([0, 1.0], k=1)
    nilpotent = fc.DelayLTI(0.0, np.array([1, 1, 0]), np.ones((3, 1)), chain, delays=[1, 2])
    assert not nilpotent.neutral
    assert nilpotent.essential_abscissa == -np.inf
    inner = np.array([[0, 0, 0], [0, 1, -1], [0, 1, -1]])
    cancelling = fc.DelayLTI(-1.0, np.ones((1, 3)), np.ones((3, 1)), inner, delays=[1, 1])
    assert not cancelling.neutral
    assert cancelling.count_unstable().by_contour >= 0


def test_unreasonable_requests() -> None:
    system = fc.DelayLTI.retarded(0, (-np.exp(-1), 2.0))
    root = system.roots(count=1)[0].real
    with pytest.raises(Undecided, match="a root lies on the contour; move the region's edges"):
        system.roots(region=(root, 1, 0, 1))
    with pytest.raises(Undecided, match="turns too often to be followed"):
        fc.DelayLTI.retarded(0, (-1e9, 1.0)).roots(region=(-9, 21, 0, 1e9))  # 1.6e8 roots
    for asked, says in (
        ({"region": (-800, 1, 0, 10)}, "begin at -150 1/s"),
        ({"count": 2, "region": (-1, 1, -1, 1)}, "not both"),
        ({"count": 0}, "from 1 to"),
        ({"region": (1, -1, 0, 1)}, "finite box"),
    ):
        with pytest.raises(InvalidInput, match=says):
            system.roots(**asked)


def test_the_roots_of_parts_without_a_common_loop_are_those_of_the_whole() -> None:
    """A loop that drives another one, and a delayed state that drives nothing."""
    rng = np.random.default_rng(0)
    B, C = np.zeros((3, 4)), np.zeros((4, 3))
    B[0, 0] = B[1, 1] = -1.0
    C[0, 0] = C[1, 1] = 1.0
    B[1, 2], C[2, 0], B[2, 3], C[3, 1] = 0.7, 1.0, 0.3, 1.0
    lags = rng.uniform(0.3, 2.0, 4)
    whole = fc.DelayLTI(-np.diag(rng.uniform(0.5, 2.0, 3)), B, C, np.zeros((4, 4)), delays=lags)
    parts = [fc.DelayLTI(*part[:4], delays=part.delays) for part in parts_of(whole)]
    assert sorted((part.n_states, len(part.delays)) for part in parts) == [(1, 0), (1, 1), (1, 1)]
    box = (-3.0, 1.0, -12.0, 12.0)
    among = np.concatenate([part.roots(region=box) for part in parts])
    wanted = whole.roots(region=box)
    assert len(wanted) == len(among) > 5
    assert np.abs(wanted[:, None] - among).min(axis=1).max() < 1e-9
    s = np.array([0.3 + 0.2j, -0.4 + 2j, 1.5j])
    ratio = np.prod([part.characteristic(s) for part in parts], axis=0) / whole.characteristic(s)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-10)  # each has its own unit of time
    assert len(parts_of(fc.DelayLTI.retarded(-1.0, (-0.5, 1.0)))) == 1


def parts_of(system: fc.DelayLTI) -> list[Blocks]:
    return [block_of(part.core) for part in system._search.parts]


def test_roots_that_are_overlooked_leave_the_count_as_it_is(monkeypatch: Any) -> None:
    assert fc.DelayLTI.retarded(0, (-2.0, 1.0)).count_unstable().unstable == 2
    system = fc.DelayLTI.retarded(0, (-2.0, 1.0))
    search = type(system._search.parts[0])
    known = search.known
    monkeypatch.setattr(search, "known", lambda self: known(self)[known(self).real <= 0])
    found = system.count_unstable()
    assert (found.unstable, found.by_contour, found.by_roots) == (2, 2, 0)


@pytest.mark.parametrize(("n", "seed"), [(12, 1204), (16, 2)])
def test_roots_of_many_states_that_all_hear_all_with_two_delays(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = [rng.standard_normal((n, n)) for _ in range(3)]
    A0, A1, A2 = drawn[0] - 2 * np.eye(n), drawn[1] / n**0.5, drawn[2] / n**0.5
    # x on 41 Chebyshev nodes of the last 2.3 s, the one a second ago by interpolation
    at = np.polynomial.chebyshev.chebpts2(41)[::-1]
    powers = np.polynomial.chebyshev.chebvander(at, 40)
    slopes = np.polynomial.chebyshev.chebval(at, np.polynomial.chebyshev.chebder(np.eye(41))).T
    ago = np.polynomial.chebyshev.chebvander(1 - 2 / 2.3, 40) @ np.linalg.inv(powers)
    whole = np.kron(2 / 2.3 * slopes @ np.linalg.inv(powers), np.eye(n))
    whole[:n] = np.kron(np.eye(41)[:1], A0) + np.kron(ago, A1) + np.kron(np.eye(41)[40:], A2)
    exact = np.linalg.eigvals(whole)
    exact = exact[np.argsort(-exact.real)]
    system = fc.DelayLTI.retarded(A0, (A1, 1.0), (A2, 2.3))
    count, found = system.count_unstable(), system.roots(count=6)
    assert count.by_contour == count.by_roots == count.unstable == (exact.real > 0).sum()
    np.testing.assert_allclose(found.real, exact[: len(found)].real, rtol=1e-8)
    np.testing.assert_allclose(np.abs(found), np.abs(exact[: len(found)]), rtol=1e-8)
