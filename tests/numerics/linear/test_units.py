"""Time and states have no unit: roots, counts and responses in all of them, against theory.

Poles that are given, Lambert's function and the method of steps by incomplete gamma functions are
the references.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.special import gammainc, lambertw

import fluidcc as fc
from fluidcc.base.errors import Undecided
from fluidcc.numerics.linear import respond, roots

transfer = fc.DelayLTI.transfer
SCALES = [10.0**k for k in range(-6, 7)]

POLES: dict[str, list[complex]] = {
    "one": [-0.3],
    "three": [-1, -2, -3],
    "in pairs": [-1 + 3j, -1 - 3j, -0.2 + 7j, -0.2 - 7j, -4],
    "unstable": [0.7, -0.6, -1.1, -1.4, -2, -2.6],
    "eight of one size": [*-np.linspace(0.7, 2.5, 8)],
    "ten of one size": [*-np.linspace(1, 10, 10)],
    "over eight decades": [-1e-4, -1e-2, -1, -1e2, -1e4],
    "over ten decades": [*-(10.0 ** np.arange(-5, 5))],
    "slow pair and fast": [-1e-3 + 1e-3j, -1e-3 - 1e-3j, -1 + 9j, -1 - 9j, -1e2, -1e5],
    "slowly unstable": [1e-7, -1, -2, -300],
    "an integrator": [0, -1, -5],
    "two integrators": [0, 0, -3, -4],
    "on the axis": [2j, -2j, -1],
}

LOOPS: dict[str, list[tuple[float, float, float]]] = {  # x' = a x + b x(t - tau), states mixed
    "a delayed integrator": [(0, -1, 1.0)],
    "two delays": [(-1, -2, 0.5), (-0.3, -0.5, 1.3)],
    "unstable": [(-0.1, -3, 1.0), (-0.4, -0.3, 0.4)],
    "short delays": [(-1, -0.5, 1e-6), (-2, 0, 0), (-3, 0, 0), (-0.01, -0.2, 1e-6)],
    "a shorter delay": [(-1, -0.5, 1e-9), (-2.5, 0.7, 2e-9), (-1e-4, 0, 0)],
    "a long delay": [(-1, 0.5, 300.0)],
}


def branches(a: float, b: float, tau: float) -> np.ndarray:
    """The roots of x' = a x + b x(t - tau)."""
    if not b:
        return np.array([a], complex)
    return np.asarray(a + lambertw(b * tau * np.exp(-a * tau), np.arange(-90, 91)) / tau)


def mixed(A: np.ndarray, terms: Any, seed: int, time: float) -> fc.DelayLTI:
    """A system turned among its states, which then get units from 1e-6 to 1e6."""
    rng = np.random.default_rng(seed)
    T = np.linalg.qr(rng.normal(size=A.shape))[0]
    unit = 10.0 ** rng.integers(-6, 7, len(A))

    def seen(M: np.ndarray) -> np.ndarray:
        return np.asarray(T @ M @ T.T * unit[:, None] / unit * time)

    late = [(seen(M), tau / time) for M, tau in terms]
    one = np.ones(len(A))
    return fc.DelayLTI.retarded(seen(A), *late, B=T @ one * unit * time, C=T @ one / unit)


def loop(parts: list[tuple[float, float, float]], time: float) -> fc.DelayLTI:
    eye = np.eye(len(parts))
    terms = [(np.diag(eye[i]) * b, tau) for i, (_, b, tau) in enumerate(parts) if b]
    return mixed(np.diag([a for a, *_ in parts]), terms, 4, time)


def off(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest relative distance to exact roots, each of which is taken once."""
    rest, worst = list(exact), 0.0
    for s in found:
        near = rest.pop(int(np.argmin([abs(s - x) for x in rest])))
        worst = max(worst, abs(s - near) / abs(near) if near else np.inf * abs(s) if s else 0.0)
    return worst


def judged(system: fc.DelayLTI, exact: np.ndarray, count: int) -> None:
    """Rightmost roots and counts are those of theory."""
    found = system.roots(count=count)
    rightmost = np.sort(-exact.real)[: len(found)]
    assert off(found, exact) < 1e-9
    np.testing.assert_allclose(
        np.sort(-found.real), rightmost, rtol=1e-9, atol=1e-9 * abs(found).max()
    )
    told = system.count_unstable()
    axis = np.abs(exact.real) <= 1e-12 * np.abs(exact)
    at_zero = int((exact == 0).sum())
    right = int((~axis & (exact.real > 0)).sum())
    assert (told.unstable, told.at_zero) == (right, at_zero)
    assert told.marginal == axis.sum() - at_zero


@pytest.mark.parametrize("name", POLES)
def test_roots_are_the_poles_in_every_unit_of_time(name: str) -> None:
    """JuliaControl/ControlSystems.jl#679: poles at some MHz."""
    poles = np.array(POLES[name], complex)
    for time in SCALES[::2]:
        judged(transfer([1], np.poly(poles * time).real), poles * time, len(poles))


UNEVEN = [1.0, 1e-6, 1.7e3, 1e6]
MULTIPLE: dict[str, tuple[list[complex], list[complex]]] = {
    "pairs on the axis": ([1j, -1j], []),
    "pairs on the axis among others": ([1j, -1j], [-1, -3]),
    "zeros": ([0], [-1, -2]),
    "stable": ([-1], [-4]),
    "unstable pairs": ([0.1 + 1j, 0.1 - 1j], [-1]),
}


@pytest.mark.parametrize("times", range(2, 7))
@pytest.mark.parametrize("name", MULTIPLE)
def test_multiple_poles_in_every_unit_of_time(name: str, times: int) -> None:
    many, others = MULTIPLE[name]
    poles = np.array(many * times + others, complex)
    for time in UNEVEN:
        judged(transfer([1], np.poly(poles * time).real), poles * time, len(poles))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("eigenvalue", [0j, -1 + 0j, 1j, -0.3 + 1j])
def test_chains_of_states_that_share_an_eigenvalue(eigenvalue: complex, seed: int) -> None:
    times, both = 2 + seed % 3, bool(eigenvalue.imag)
    one = np.array([[eigenvalue.real, eigenvalue.imag], [-eigenvalue.imag, eigenvalue.real]])
    one = one if both else one[:1, :1]
    J = np.kron(np.eye(times), one) + np.kron(np.eye(times, k=1), np.eye(1 + both))
    many = [eigenvalue, eigenvalue.conjugate()][: 1 + both] * times
    for time in UNEVEN:
        exact = np.array([*many, -2, -0.5]) * time
        judged(mixed(block_diag(J, -2, -0.5), [], seed, time), exact, len(exact))


@pytest.mark.parametrize("others", [2, 5, 30])
def test_oscillators_that_are_alike_and_all_coupled(others: int) -> None:
    turn = np.kron(np.eye(others), [[0, 1], [-1, 0]])
    system = fc.DelayLTI.retarded(turn - 0.1 * np.kron(np.ones([others] * 2), np.eye(2)))
    if others < 30:
        told = system.count_unstable()
        assert (told.unstable, told.marginal, told.at_zero) == (0, 2 * others - 2, 0)
    else:  # more at one place than are told from one another there
        with pytest.raises(Undecided, match="could not be settled"):
            system.count_unstable()


@pytest.mark.parametrize("gain", [np.pi / 2, 0.9 * np.pi / 2])
@pytest.mark.parametrize("times", [2, 3])
def test_multiple_roots_of_delay_equations_in_every_unit(times: int, gain: float) -> None:
    """(s + a exp(-s))^m as one equation of order m, on the axis with a = pi / 2; and in x' = A x(t
    - 1) of loops that are alike.
    """
    one = lambertw(-gain, np.arange(-4, 4))
    exact = np.tile(one, times)
    both = np.concatenate((np.tile(one, 4), lambertw(-gain - 0.3, np.arange(-4, 4))))
    for time in UNEVEN:
        terms = []
        for k in range(1, times + 1):
            late = np.zeros((times, times))
            late[-1, times - k] = -comb(times, k) * (gain * time) ** k
            terms.append((late, k / time))
        judged(fc.DelayLTI.retarded(np.eye(times, k=1), *terms), exact * time, 2 * times)
        alike = -(gain * np.eye(5) + 0.3 / 5) * time
        judged(fc.DelayLTI.retarded(np.zeros((5, 5)), (alike, 1 / time)), both * time, 4)


@pytest.mark.parametrize("coupling", [0.0, 1e-6, 1e-3])
def test_loops_that_hardly_hear_one_another_are_told_apart(coupling: float) -> None:
    late = -1.2 * np.eye(10) + coupling * (np.eye(10, k=1) + np.eye(10, k=-1))
    values = np.linalg.eigvalsh(late)
    exact = np.concatenate([lambertw(a, [0, -1, 1, -2]) for a in values])
    judged(fc.DelayLTI.retarded(np.zeros((10, 10)), (late, 1.0)), exact, 20)


def test_poles_over_eighteen_decades() -> None:
    judged(transfer([1], np.poly(poles := -(10.0 ** np.linspace(-9, 9, 19)))), poles + 0j, 19)


@pytest.mark.parametrize("seed", range(4))
def test_roots_are_the_poles_in_every_unit_of_the_states(seed: int) -> None:
    rng = np.random.default_rng(seed)
    real, (x, y) = rng.uniform(-3, 1, 3), rng.uniform(1, 4, 2)
    A = block_diag(*real, [[-x, y], [-y, -x]], *([0.0] if seed % 2 else []))
    exact = np.array([*real, -x + 1j * y, -x - 1j * y, *([0.0] if seed % 2 else [])])
    for time in SCALES[::2]:
        judged(mixed(A, [], seed, time), exact * time, len(exact))


@pytest.mark.parametrize("name", LOOPS)
def test_roots_of_loops_with_delays_in_every_unit(name: str) -> None:
    parts = LOOPS[name]
    exact = np.concatenate([branches(*part) for part in parts])
    for time in SCALES[::2]:
        judged(loop(parts, time), exact * time, min(5, len(exact)))


@pytest.mark.parametrize(("parts", "zeros"), [
    ([(-1, 1, 0.7), (-2, -0.5, 0.2)], 1),
    ([(-1, 1, 1e-6), (-2, -0.5, 1e-6)], 1),
    ([(1, -1, 1.0), (-2, -0.5, 0.2)], 2),  # s - 1 + exp(-s) is s^2/2 near 0
    ([(-1, 1, 1.0), (-3, 3, 1.0)], 2),
])  # fmt: skip
def test_roots_that_are_zero_by_cancellation_are_counted(parts: Any, zeros: int) -> None:
    for time in SCALES[::3]:
        told = loop(parts, time).count_unstable()
        assert (told.unstable, told.marginal, told.at_zero) == (0, 0, zeros)


def test_a_slow_root_is_not_taken_for_zero() -> None:
    for a in (1e-10, -1e-10):
        late = np.diag([0.0, -1.0])
        told = fc.DelayLTI.retarded(np.diag([a, 0]), (late, 1.0)).count_unstable()
        assert (told.unstable, told.at_zero) == (int(a > 0), 0)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_multiple_roots_are_known_to_a_root_of_rounding(m: int) -> None:
    for time in SCALES[::3]:
        found = transfer([1], np.poly([-time] * m + [-5 * time])).roots()
        assert abs(found[:m] / time + 1).max() < 30 * np.finfo(float).eps ** (1 / m)


# --- responses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [n for n in POLES if not n.startswith(("an int", "two", "on", "slowly"))]
)
def test_steps_and_impulses_are_the_partial_fractions_in_every_unit(name: str) -> None:
    """JuliaControl/ControlSystems.jl#679, #544: no false refusal, and the cost stays."""
    poles = np.array(POLES[name], complex)
    weak = np.array([np.prod([-q / (p - q) for q in poles if q != p]) for p in poles])
    last = 20.0 if poles.real.max() > 0 else 30 / np.abs(poles.real).min()
    t = np.array([0, *np.geomspace(1e-3 / np.abs(poles).max(), last, 12)])
    rise, impulse = (np.exp(np.outer(t, poles)) @ x for x in (weak, -weak * poles))
    for time in SCALES[::6]:
        den = np.poly(poles * time).real
        system = transfer([den[-1]], den, 2 / time)
        for got, exact in ((system.step, 1 - rise), (system.impulse, impulse * time)):
            assert off_size(got(t / time + 2 / time)[0, 0], exact.real) < 1e-9


def off_size(got: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(got - exact).max() / np.abs(exact).max())


def by_steps(t: np.ndarray, a: float, b: float, tau: float) -> np.ndarray:
    """Step of x' = a x + b x(t - tau) + u, a < 0: a series of lags of rising order."""
    ks = range(int(t.max() / tau) + 1) if b else range(1)
    late = [gammainc(k + 1, -a * np.maximum(t - k * tau, 0)) for k in ks]
    return np.asarray(sum((b / -a) ** k * x / -a for k, x in zip(ks, late, strict=True)))


def by_modes(t: np.ndarray, a: float, b: float, tau: float) -> np.ndarray:
    s = branches(a, b, tau)
    weak = 1 / (s * (1 + (b * tau * np.exp(-s * tau) if b else 0)))
    return np.asarray((np.exp(np.outer(t, s)) @ weak).real - 1 / (a + b))


@pytest.mark.parametrize(("name", "exact", "until"), [
    ("two delays", by_steps, 7.0), ("unstable", by_steps, 4.0), ("short delays", by_modes, 40.0),
    ("a shorter delay", by_modes, 900.0), ("a long delay", by_steps, 1000.0),
])  # fmt: skip
def test_steps_of_loops_with_delays_in_every_unit(name: str, exact: Any, until: float) -> None:
    t = until * np.array([0.01, 0.1, 0.37, 0.5, 1.0])
    wanted = sum(exact(t, *part) for part in LOOPS[name])
    for time in SCALES[::6]:
        assert off_size(loop(LOOPS[name], time).step(t / time)[0, 0], wanted) < 1e-9


def noted(work: list[int], real: Any) -> Any:
    def call(*given: Any) -> Any:
        work.append(1)
        return real(*given)

    return call


def test_the_work_does_not_depend_on_the_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    work: list[int] = []
    for place, name in ((respond._Run, "_meets"), (roots, "winding"), (roots, "newton")):
        real = getattr(place, name)
        monkeypatch.setattr(place, name, noted(work, real))
    for parts in LOOPS.values():
        done = []
        for time in SCALES[::3]:
            work.clear()
            system = loop(parts, time)
            system.count_unstable(), system.roots(count=4), system.step([20 / time])
            done.append(len(work))
        assert max(done) <= 1.5 * min(done)
