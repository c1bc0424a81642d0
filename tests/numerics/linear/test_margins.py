"""Margins: closed forms, python-control on a dense grid, and roots of the perturbed loop."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy.optimize import brentq

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.numerics.linear.compiled.loci import assign
from fluidcc.numerics.linear.margins import Closed, eigenloci
from fluidcc.numerics.linear.margins import margins as margins_of

transfer = fc.DelayLTI.transfer
CASES = {
    "delayed integrator": transfer([1], [1, 0], 1.0),
    "TCP/RED-like": transfer([5.0], np.poly([-0.5, -3, -0.01]), 0.25) * 1e-2,
    "double integrator with lead": transfer([1, 0.2], [1, 3, 0, 0], 0.3),
    "conditionally stable": transfer(8 * np.poly([-1, -1.2]), [1, 0, 0, 0], 0.02),
    "resonant": transfer([0.4], [1, 0.05, 1], 0.1) * transfer([1], [1, 0.5]),
}


def margins(loop: fc.DelayLTI, channel: Any = None) -> Any:
    """What is read off any loop, as of a stable one."""
    return margins_of(loop, channel, Closed(True, 0))


def network(seed: int, flows: int = 3, links: int = 1) -> fc.DelayLTI:
    """Rates through lags into leaky queues and back with delays: a return ratio of rank `links`."""
    rng = np.random.default_rng(seed)
    lags = rng.uniform(0.02, 0.3, (flows, links))
    pole, gain = rng.uniform(1, 10, flows), rng.uniform(0.2, 1.2, flows)
    routes = rng.random((links, flows)) < 0.7
    routes |= np.arange(flows) % links == np.arange(links)[:, None]
    n, k = links + flows, flows * links
    A = np.diag(np.r_[-rng.uniform(0.0, 0.2, links), -pole])
    B, C = np.zeros((n, flows + k)), np.zeros((flows + k, n))
    B[:links, :flows] = routes / flows
    C[:flows, links:] = np.eye(flows)
    for i in range(flows):
        for l in range(links):
            channel = flows + i * links + l
            C[channel, l] = 1.0
            B[links + i, channel] = routes[l, i] * gain[i] * pole[i] / lags[i].max()
    return fc.DelayLTI(A, B, C, np.zeros((flows + k, flows + k)), delays=lags.ravel())


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_python_control_on_a_dense_grid(name: str) -> None:
    control = pytest.importorskip("control")
    loop = CASES[name]
    found = margins(loop)
    omega = np.geomspace(1e-3, 1e2, 6000)
    frd = control.frd(loop.frequency_response(omega), omega, smooth=True)
    gain, phase, modulus, w_gain, w_phase, w_modulus = control.stability_margins(frd)
    assert found.gain_nearest == pytest.approx(gain, rel=1e-6)
    assert found.phase == pytest.approx(phase, abs=1e-4)
    assert found.modulus == pytest.approx(modulus, rel=1e-6)
    assert found.crossover == pytest.approx(w_phase, rel=1e-6)
    assert found.modulus_frequency == pytest.approx(w_modulus, rel=1e-3)
    assert found.ms == pytest.approx(1 / modulus, rel=1e-6)
    up = found.gain_nearest == found.gain
    nearest = found.phase_crossover if up else found.phase_crossover_down
    assert nearest == pytest.approx(w_gain, rel=1e-6)
    value = loop.frequency_response(np.r_[1e-6, omega])[0, 0]
    assert found.mt >= np.abs(value / (1 + value)).max() * (1 - 1e-12)
    assert found.mt == pytest.approx(np.abs(value / (1 + value)).max(), rel=1e-4)


@pytest.mark.parametrize("of", [*CASES, *range(6), 12, 13])
def test_a_margin_used_up_puts_a_root_on_the_axis(of: str | int) -> None:
    loop = CASES[of] if isinstance(of, str) else network(of, 3 + of % 3, 1 + of % 3)
    if isinstance(of, int) and of >= 12:  # queues that do not leak: poles at the origin
        A = loop.A.copy()
        A[: 1 + of % 3, : 1 + of % 3] = 0.0
        loop = fc.DelayLTI(A, loop.B, loop.C, loop.D, delays=loop.delays)
    found = margins(loop)
    for changed, omega in (
        (loop * found.gain, found.phase_crossover),
        (loop * found.gain_down, found.phase_crossover_down),
        (loop.delayed(found.delay) if np.isfinite(found.delay) else None, found.delay_crossover),
    ):
        if changed is not None and np.isfinite(omega):
            closed = changed.feedback()
            s = 1j * omega
            scale = np.abs(closed.characteristic(s + 0.1 * omega + 0.1 / loop.pencil.time))
            assert np.abs(closed.characteristic(s)) < 1e-9 * scale


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([1, 2]), st.floats(-9.0, 1.4))
def test_a_dense_grid_shows_no_crossing_that_was_missed(seed: int, links: int, gain: float) -> None:
    loop = network(seed, links + 2, links) * float(np.exp(gain))
    found = margins(loop)
    omega = np.geomspace(1e-3, 300.0, 8000)
    response = np.moveaxis(loop.frequency_response(omega), 2, 0)
    every = np.linalg.eigvals(response)
    beyond = (np.abs(every) >= 1).sum(axis=1)
    place = np.searchsorted(omega, found.crossovers)
    assert set(np.flatnonzero(np.diff(beyond)) + 1) <= set(place.tolist())
    assert len(place) >= np.abs(np.diff(beyond)).sum()
    back = np.eye(links + 2) + response
    least = np.linalg.svd(back, compute_uv=False)[:, -1]
    assert least.min() >= found.modulus * (1 - 1e-10)
    largest = np.linalg.norm(response @ np.linalg.inv(back), 2, axis=(1, 2)).max()
    assert largest <= found.mt * (1 + 1e-10)
    locus = every[np.arange(len(every)), np.abs(every).argmax(axis=1)]
    if links == 1:  # the only locus, so that its way between two points of the grid is a chord
        a, b = locus[:-1], locus[1:]
        through = np.flatnonzero((a.imag >= 0) != (b.imag >= 0))
        a, b = a[through], b[through]
        real = a.real + (b.real - a.real) * a.imag / (a.imag - b.imag)
        factor = -1 / real[real < 0]
        assert found.gain <= factor[factor > 1].min(initial=np.inf) * (1 + 1e-4)
        assert found.gain_down >= factor[factor < 1].max(initial=0.0) * (1 - 1e-4)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(-2.0, 2.0), min_size=1, max_size=4),
    st.floats(-2.5, 1.0),
    st.floats(-8.0, 0.0),
    st.booleans(),
)
def test_a_gain_margin_is_found_however_weak_the_loop(
    poles: list[float], delay: float, gain: float, integrator: bool
) -> None:
    """Lags, perhaps an integrator, and a delay: the first crossing is the nearest."""
    w, tau = np.exp(poles), np.exp(delay)
    den = np.poly([*-w, *([0.0] if integrator else [])])
    loop = transfer([np.exp(gain) * np.prod(w)], den, tau)

    def lag(omega: float) -> float:
        return float(np.arctan(omega / w).sum() + tau * omega + integrator * np.pi / 2)

    low = brentq(lambda omega: lag(omega) - np.pi, 0.0, np.pi / tau, xtol=1e-300, rtol=1e-15)
    critical = 1 / np.abs(loop.frequency_response([low])[0, 0, 0])
    found = margins(loop)
    assert found.gain_nearest == pytest.approx(critical, rel=1e-9)
    assert found.phase_crossover == pytest.approx(low, rel=1e-9) or critical < 1


@pytest.mark.parametrize("damping", [1e-3, 1e-7])
@pytest.mark.parametrize("delay", [0.0, 3.0])
def test_a_peak_is_seen_however_narrow_it_is(damping: float, delay: float) -> None:
    resonance = transfer([damping], [1, 2 * damping, 1], delay)
    omega = 1 + damping * np.linspace(-20, 20, 40001)
    for peak in (0.05, 0.5):
        some = resonance * (2 * peak) + transfer([peak / 5], [1, 1])
        value = some.frequency_response(omega)[0, 0]
        found = margins(some)
        assert found.modulus == pytest.approx(np.abs(1 + value).min(), rel=1e-4)
        assert found.mt >= np.abs(value / (1 + value)).max() * (1 - 1e-9)


def test_what_passes_straight_through_is_followed_to_its_limit() -> None:
    """A loop that tends to a circle: the nearest crossing is that limit."""
    found = margins(transfer([0.3, 0.3], [1, 2], 0.5))
    assert found.gain == pytest.approx(1 / 0.3, rel=1e-5)
    assert found.modulus == pytest.approx(0.7, rel=1e-5)


def test_a_named_channel_has_the_others_closed() -> None:
    loop = network(3, 2, 1)
    found = margins(loop, channel=1)
    assert found == margins(loop, channel="u1") or found.delay == margins(loop, channel="u1").delay
    late = loop.delayed(found.delay, inputs=1).feedback()
    assert np.abs(late.roots(count=4).real).min() < 1e-8 * found.delay_crossover
    assert found.delay > margins(loop).delay


def test_many_channels_over_many_links() -> None:
    """Decompositions of this size are LAPACK's, in the space that the factors of L span."""
    loop = network(5, 30, 12)
    found = margins(loop)
    for value, at, largest in (
        (found.modulus, found.modulus_frequency, False),
        (found.mt, found.mt_frequency, True),
    ):
        omega = at * np.r_[1.0, np.geomspace(0.1, 10.0, 400), np.linspace(0.99, 1.01, 101)]
        response = np.moveaxis(loop.frequency_response(omega), 2, 0)
        back = np.eye(30) + response
        size = np.linalg.svd(response @ np.linalg.inv(back) if largest else back, compute_uv=False)
        size = size[:, 0] if largest else -size[:, -1]
        assert size[0] == pytest.approx(value if largest else -value, rel=1e-9)
        assert size.max() <= size[0] + 1e-9


def test_no_crossing_is_an_infinite_margin() -> None:
    found = margins(transfer([0.5], [1, 1]))
    assert found.gain == found.delay == found.phase == np.inf
    assert found.gain_down == 0
    assert np.isnan(found.crossover)
    assert found.modulus == pytest.approx(1.0)
    static = margins(transfer([-0.5], [1, 1]))  # at twice that its pole is at the origin
    assert static.gain == pytest.approx(2.0)
    assert static.phase_crossover == 0


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_no_way_from_the_inputs_to_the_outputs_is_no_loop(channels: int) -> None:
    nothing = np.zeros((channels, 1))
    for B, C in ((nothing.T, nothing + 1), (nothing.T + 1, nothing), (nothing.T, nothing)):
        found = margins(fc.DelayLTI([[-1.0]], B, C, np.zeros((channels, channels))))
        assert found.gain == found.phase == found.delay == np.inf
        assert found.gain_down == found.mt == 0
        assert found.modulus == 1


@pytest.mark.parametrize("a", [1e3, 1e6, 1e8])
def test_gain_and_phase_margins_do_not_depend_on_the_units_of_the_channels(a: float) -> None:
    lag = transfer([1.5], [1, 1], 0.5)
    two, three = lag.append(lag), lag.append(lag).append(lag)
    for loop, wanted in (
        (two, [[0, 1], [-1, 0]]),
        (two, [[1, 1], [0, 1]]),
        (three, [[0, 1, 1], [-1, 0.2, 1], [0.1, -0.4, 0.3]]),
        (three, [[0, 1, 0], [-1, 0, 0], [1, 1, 0.3]]),
    ):
        gains = np.array(wanted, float)
        units = np.geomspace(1, a ** (len(gains) - 1), len(gains))
        plain, scaled = margins(loop * gains), margins(loop * (gains / units[:, None] * units))
        for name in ("gain", "gain_down", "phase", "delay", "crossover"):
            assert getattr(scaled, name) == pytest.approx(getattr(plain, name), rel=1e-9)


@pytest.mark.parametrize(
    ("k", "tau"), [(1.0, 1.0), (2.0, 0.25), (1e-3, 400.0), (5e4, 1e-5), (1e-9, 1.0), (5e-3, 1.0)]
)
def test_any_system_says_its_margins_those_of_a_delayed_integrator_in_closed_form(
    k: float, tau: float
) -> None:
    loop = transfer([k], [1, 0], tau)
    for found in (loop.margins(), loop.margins("u0"), loop.feedback().margins(at="delays")):
        assert found.stable
        assert found.gain == pytest.approx(np.pi / (2 * k * tau), rel=1e-10)
        assert found.phase == pytest.approx(90 - np.degrees(k * tau), rel=1e-10)
        assert found.delay == pytest.approx(np.pi / (2 * k) - tau, rel=1e-10)
        assert found.crossover == found.delay_crossover == pytest.approx(k, rel=1e-10)
        assert found.crossovers == pytest.approx([k], rel=1e-10)
        assert found.gain_down == 0
        assert found.phase_crossover == pytest.approx(np.pi / (2 * tau), rel=1e-10)
        value = k * np.exp(-1j * tau * found.modulus_frequency) / (1j * found.modulus_frequency)
        assert found.modulus == pytest.approx(abs(1 + value), rel=1e-10)


@pytest.mark.parametrize("of", [*CASES, *range(4)])
def test_only_a_stable_loop_has_margins_and_the_verdict_is_that_of_its_roots(of: str | int) -> None:
    loop = CASES[of] if isinstance(of, str) else network(of, 3, 1 + of % 2)
    edges = margins(loop)
    for factor in (0.5, edges.gain_below, 0.99, edges.gain_above * 1.01, edges.gain_above, 8.0):
        if not 0 < factor < np.inf:
            continue
        one, count = loop * factor, (loop * factor).feedback().count_unstable()
        found = one.margins()
        verdict = "unstable" if count.unstable else "stable" if count.stable else "marginal"
        assert found.verdict.split()[-1] == verdict
        assert (found.stable, found.unstable) == (count.stable, count.unstable)
        assert repr(found).startswith(f"Margins({found.verdict}")
        own = (found.gain, found.gain_down, found.phase, found.phase_lag, found.phase_lead,
               found.delay, found.modulus, found.ms, found.mt)  # fmt: skip
        assert np.isnan(own).all() != count.stable
        assert found.gain_nearest == pytest.approx(margins(one).gain_nearest, rel=1e-12)
        assert one.margins("u0").stable == count.stable


@pytest.mark.parametrize("loop", [
    transfer([0.1], [1, 0.05, 1], 2.0) * transfer([1], [1, 0.5]), CASES["conditionally stable"],
])  # fmt: skip
def test_where_a_lead_or_less_gain_may_make_it_unstable_both_ways_are_said(loop: Any) -> None:
    found = loop.margins()
    lag = np.degrees(np.angle([-loop.frequency_response([w])[0, 0, 0] for w in found.crossovers]))
    assert found.phase_lead == pytest.approx((-lag % 360).min())
    assert found.phase_lag == pytest.approx((lag % 360).min())
    assert found.phase in (found.phase_lag, -found.phase_lead)
    assert f"{found.phase_lead:.4g} deg of lead" in repr(found)
    assert found.verdict == ("conditionally stable" if found.gain_down else "stable")


def test_broken_at_its_delays_a_loop_tolerates_just_so_much_more_delay_in_all_of_them() -> None:
    # x' = -0.4 x - x(t - 0.5) - 0.3 x(t - 0.9)
    system = fc.DelayLTI.retarded(-0.4, (-1.0, 0.5), (-0.3, 0.9))
    extra = system.margins(at="delays").delay
    later = fc.DelayLTI.retarded(-0.4, (-1.0, 0.5 + extra), (-0.3, 0.9 + extra))
    assert abs(later.roots(count=1)[0].real) < 1e-9
    gain = system.margins(at="delays").gain
    stronger = fc.DelayLTI.retarded(-0.4, (-gain, 0.5), (-0.3 * gain, 0.9))
    assert abs(stronger.roots(count=1)[0].real) < 1e-9
    one = system.margins("delay0", at="delays").delay
    late = fc.DelayLTI.retarded(-0.4, (-1.0, 0.5 + one), (-0.3, 0.9))
    assert abs(late.roots(count=1)[0].real) < 1e-9


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda lag: lag.append(lag).select(outputs=0).margins(), "here 1 outputs and 2 inputs"),
        (lambda lag: lag.margins(at="delays"), "no delayed signal at which a loop could be broken"),
        (lambda lag: lag.margins(at="queue"), "at is 'queue'; give 'ports' or 'delays'"),
        (lambda lag: lag.margins("u7"), "there is no channel 'u7'; there are u0"),
        (lambda lag: margins(lag, channel=7), "no channel 7"),
    ],
)
def test_margins_of_what_is_no_loop_are_refused_in_a_sentence(call: Any, says: str) -> None:
    with pytest.raises((InvalidInput, UnknownName), match=says):
        call(transfer([1], [1, 1]))


def test_eigenloci_have_at_least_as_many_points_as_were_asked_for_and_the_same_values() -> None:
    loop = network(11, 5, 2)
    coarse, fine = eigenloci(loop, 0.1, 30.0), eigenloci(loop, 0.1, 30.0, points=800)
    assert np.isin(np.geomspace(0.1, 30.0, 800).round(9), fine.omega.round(9)).all()
    assert len(coarse.omega) < 400
    assert fine.omega[[0, -1]] == pytest.approx([0.1, 30.0])
    assert (np.diff(fine.omega) >= 0).all()
    every = np.linalg.eigvals(np.moveaxis(loop.frequency_response(fine.omega), 2, 0))
    assert len(fine.value) == 2  # a deficient rank has no loci
    largest = np.sort(np.abs(every), axis=1)[:, -2:]
    assert np.sort(np.abs(fine.value.T), axis=1) == pytest.approx(largest, rel=1e-8)
    for locus in fine.value:
        assert np.abs(every - locus[:, None]).min(axis=1).max() < 1e-9
        assert (np.abs(np.diff(locus)) < 0.03 * (0.1 + np.abs(locus[1:]))).all()


# --- the assignment of eigenvalues ----------------------------------------------------------------


@njit
def _assign(foretold: Any, found: Any, order: Any) -> None:
    assign(foretold, found, order)


def assigned(foretold: Any, found: Any) -> Any:
    order = np.full(len(foretold), -1)
    _assign(foretold, found, order)
    assert sorted(order) == list(range(len(order)))
    return order


@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_what_moves_less_than_half_way_to_another_is_found_in_any_order(
    rank: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rank) + 1j * rng.normal(size=rank)
    gap = np.abs(a[:, None] - a + np.diag(np.full(rank, np.inf))).min()
    moved, mixed = a + 0.49 * gap * np.exp(1j * rng.uniform(0, 7, rank)), rng.permutation(rank)
    np.testing.assert_array_equal(assigned(a[mixed], moved), mixed)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e200])
def test_what_is_no_number_is_given_to_some_one(wrong: float) -> None:
    assigned(np.array([0j, 1, 2, 3]), np.array([2.1, wrong, 0.1, 3.1 + 0j]))
    assigned(np.array([0j, 1, wrong, 3]), np.array([2.1, wrong, wrong, 3.1 + 0j]))


# --- crossovers below all poles, and lobes beside each other --------------------------------------


@pytest.mark.parametrize("zero", [1e-3, 1e-5, 1e-7])
def test_zeros_far_slower_than_the_delay(zero: float) -> None:
    """(s + z)^2 z / s^3: modulus and phase in closed form, as the delay hardly acts."""
    found = transfer(8 * zero * np.poly([-zero, -zero]), [1, 0, 0, 0], 1e-3).margins()
    turn = 1e-3 * zero / 2  # of the phase at the crossing, of which the slope is one over z
    assert found.phase_crossover_down == pytest.approx(zero, rel=4 * turn + 1e-9)
    assert found.gain_down == pytest.approx(1 / 16, rel=8 * turn + 1e-9)
    omega = found.crossover / zero
    assert 8 * (1 + omega**2) == pytest.approx(omega**3, rel=1e-9)


@pytest.mark.parametrize("delay", [100.0, 1000.0])
def test_the_modulus_margin_is_that_of_the_nearest_lobe(delay: float) -> None:
    found = transfer([1], [1, 1], delay).margins()
    omega = np.pi / (1 + delay) * (1 + np.linspace(-1e-4, 1e-4, 20_001))
    least = np.abs(1 + np.exp(-1j * omega * delay) / (1 + 1j * omega)).min()
    assert least * (1 - 1e-4) <= found.modulus <= least
    assert found.modulus <= 1 - 1 / found.gain


def test_small_loci_beside_those_of_integrators_are_as_lapack_has_them() -> None:
    """Of a loop of deficient rank: the small one was rounding of the large one, and followed from
    one of 139,000 points to the next.
    """
    link = {"capacity": "12 Mbit/s", "buffer": "100 ms", "law": fc.PI}
    flows = [fc.StaticReno, fc.LDCC(T="37 ms"), fc.LDCC(T="37 ms")]
    loop = fc.stability(fc.dumbbell(flows, link, rtt=[0.02, 0.14, 0.2])).open
    loci = eigenloci(loop)
    assert len(loci.value) == 2
    assert len(loci.omega) < 1000
    for k in range(0, len(loci.omega), 10):
        exact = np.linalg.eigvals(loop.frequency_response(loci.omega[[k]])[..., 0])
        exact, found = exact[np.argsort(-abs(exact))], loci.value[:, k]
        found = found[np.argsort(-abs(found))]
        assert found == pytest.approx(exact[:2], rel=1e-6, abs=1e-13 * abs(exact[0]))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(-2.0, 2.0), min_size=2, max_size=3),
    st.lists(st.floats(-3.0, 2.0), max_size=1),
    st.integers(0, 2), st.floats(-6.0, 1.0), st.sampled_from([0.0, 1e-3, 1.0, 30.0, 300.0]),
    st.floats(-6.0, 6.0),
)  # fmt: skip
def test_what_holds_of_the_margins_of_any_loop_in_any_unit_of_time(
    poles: list[float], zeros: list[float], integrators: int, gain: float, delay: float, unit: float
) -> None:
    den = np.poly([*-(10.0 ** np.array(poles)), *[0.0] * integrators])
    num = 10.0**gain * np.atleast_1d(np.poly([-(10.0**z) for z in zeros]))
    num *= 1.0 if integrators else den[-1] / num[-1] * 10 ** (0.5 * gain + 1)
    time, m = 10.0**unit, margins(transfer(num, den, delay))
    powers = time ** -np.arange(len(den), dtype=float)
    scaled = margins(transfer(num * powers[len(den) - len(num) :], den * powers, delay * time))
    for name in ("gain_above", "gain_below", "phase_nearest", "modulus"):
        wanted = pytest.approx(getattr(m, name), rel=1e-6, abs=1e-9, nan_ok=True)
        assert getattr(scaled, name) == wanted, name
    if np.isnan(m.gain_nearest):  # turns too often to be followed
        return
    assert scaled.delay == pytest.approx(m.delay * time, rel=1e-6, abs=1e-9 * time)
    assert m.modulus <= abs(1 - 1 / m.gain_nearest) * (1 + 1e-12)
    if np.isfinite(m.phase_nearest):
        assert m.modulus <= 2 * np.sin(np.radians(abs(m.phase_nearest)) / 2) * (1 + 1e-9) + 1e-12
    if np.isfinite(m.delay):
        L = np.polyval(num, 1j * m.delay_crossover) / np.polyval(den, 1j * m.delay_crossover)
        late = L * np.exp(-1j * m.delay_crossover * (delay + m.delay))
        assert late == pytest.approx(-1, abs=1e-6)
