"""`stability`: counts, margins and modes against other ways to the same numbers."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.analysis.report import _rightmost_roots as rightmost_roots_of
from fluidcc.base.errors import (
    FluidccWarning,
    InvalidInput,
    NoEquilibrium,
    Undecided,
    UnknownName,
)
from tests.analysis import networks


def _one(eta: float = 0.4, capacity: float = 3e6, count: int = 1) -> fc.Network:
    return fc.dumbbell([fc.LDCC(eta=eta)] * count, {"capacity": capacity}, rtt="50 ms")


def _paper_loop(eta: float, capacity: float, count: int = 1) -> Any:
    """(40) and (43) of the LDCC paper for N flows on one link: L(s) by hand."""
    w, beta, T, x = 20e3, 0.1, 0.1, capacity / count
    r = w / (beta * x)
    trip = (0.025 * r + T) / (1 - r) + 0.025

    def loop(omega: Any) -> Any:
        s = 1j * np.asarray(omega)
        own = ((beta - w / x) / trip + s) / (s + eta * w / (x * trip))
        return eta * np.exp(-s * trip) / (s * trip) * own

    return loop


def test_margins_are_those_of_the_papers_loop() -> None:
    loop = _paper_loop(0.4, 3e6)
    report = fc.stability(_one())
    omega = np.geomspace(1e-2, 100, 200_001)
    value = loop(omega)
    cross = np.flatnonzero(np.diff(np.sign(np.abs(value) - 1)))
    lag = np.angle(-value[cross])
    assert report.phase_margin == pytest.approx(np.degrees(lag.min()), rel=1e-3)
    assert report.crossover == pytest.approx(omega[cross][lag.argmin()], rel=1e-3)
    assert report.delay_margin == pytest.approx((lag / omega[cross]).min(), rel=1e-3)
    turn = np.flatnonzero((np.diff(np.sign(value.imag)) != 0) & (value.real[:-1] < -1e-3))
    assert report.gain_margin == pytest.approx((-1 / value.real[turn]).min(), rel=1e-3)
    assert report.modulus_margin == pytest.approx(np.abs(1 + value).min(), rel=1e-6)
    assert report.sensitivity_peak == pytest.approx(1 / report.modulus_margin)
    assert report.complementary_peak == pytest.approx(np.abs(value / (1 + value)).max(), rel=1e-6)


def test_delay_and_gain_margins_are_where_it_tips_over() -> None:
    """Frozen equilibrium: the open loop itself, with more delay or gain, then closed."""
    report = fc.stability(networks.parking_lot())
    n = report.open.n_inputs
    for factor, count in ((0.999, 0), (1.001, 2)):
        late = report.open.delayed(report.delay_margin * factor).feedback()
        assert late.count_unstable().unstable == count
        loud = (np.eye(n) * report.gain_margin * factor * report.open).feedback()
        assert loud.count_unstable().unstable == count


def test_a_flow_of_its_own() -> None:
    report = fc.stability(_one(eta=1.2, count=2))
    alone = report.of_flow("flow2")
    laws = [fc.LDCC(eta=1.2), fc.LDCC(eta=1.2, w=20e3 + 1e-6)]
    other = fc.stability(fc.dumbbell(laws, {"capacity": 3e6}, rtt="50 ms"))
    assert alone.delay == pytest.approx(other.of_flow("flow2").delay, rel=1e-6)
    # One of two can take more than both together.
    assert alone.delay > report.delay_margin
    with pytest.raises(UnknownName, match="no flow 'flow3' listens; did you mean"):
        report.of_flow("flow3")


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.data())
def test_encirclements_are_right_half_plane_roots(data: Any) -> None:
    """Random networks of one or two links: the verdict counts what the roots found say."""
    number = st.floats(0, 1)
    net = fc.Network()
    for l in range(data.draw(st.integers(1, 2))):
        capacity, delay = 2e6 * (1 + data.draw(number)), 0.01 + 0.03 * data.draw(number)
        buffer = data.draw(st.sampled_from([None, "15 packets"]))
        net.link(f"l{l}", fc.DropTail, capacity=capacity, delay=delay, buffer=buffer)
    names = net.link_names
    for i in range(data.draw(st.integers(1, 3))):
        law = fc.LDCC(eta=0.2 + 2.5 * data.draw(number), beta=0.1 + 0.1 * data.draw(number))
        route = data.draw(st.sampled_from([names, names[:1], names[-1:]]))
        net.flow(f"f{i}", law, route=route, access_delay=0.02 * data.draw(number))
    try:
        report = fc.stability(net)
    except (InvalidInput, NoEquilibrium):
        reject()  # and complain where that happens too often
    loop = report.closed.roots(count=8)
    among = [s for system in report.closed.deviations().values() for s in system.roots(count=2)]
    assert report.stable == bool(np.all(loop.real < 0) and np.all(np.real(among) < 0))
    assert np.sum(loop.real > 0) == report.closed.count_unstable().unstable
    assert report.encirclements == np.sum(loop.real > 0) - report.open_unstable
    assert report.stable == (report.decay_rate > 0)


def test_identical_flows_are_one_class_and_their_differences_govern_fairness() -> None:
    report = fc.stability(_one(count=500, capacity=1.5e9))
    assert report.closed.n_states == 2
    assert report.fairness is not None
    assert report.fairness.multiplicity == 499
    w, x, trip = 20e3, 3e6, float(report.equilibrium.rtt[0])
    assert report.fairness.root == pytest.approx(-0.4 / trip * w / x, rel=1e-9)  # -a = -k w / x
    same = fc.stability(_one(capacity=3e6))
    assert same.gain_margin == pytest.approx(report.gain_margin, rel=1e-9)
    assert fc.stability(_one()).fairness is None


def _at_random(seed: int) -> fc.Network:
    """Two flows that slowly become fair, or one alone that hardly damps its oscillation."""
    rng = np.random.default_rng(seed)
    net = fc.Network()
    for l in range(1 + seed % 2):
        capacity, delay = 2e6 * (1 + rng.random()), 0.01 + 0.03 * rng.random()
        net.link(f"l{l}", fc.DropTail, capacity=capacity, delay=delay)
    alone = seed % 3 == 2
    for name, route in (("a", net.link_names), ("b", net.link_names[-1:]))[: 1 if alone else 2]:
        eta = 1.4 + 0.05 * rng.random() if alone else 0.3 + 0.9 * rng.random()
        net.flow(name, fc.LDCC(eta=eta, beta=0.1 + 0.05 * rng.random()), route=route,
                 access_delay=0.03 * rng.random())  # fmt: skip
    return net


@pytest.mark.parametrize("seed", range(6))
def test_rightmost_roots_are_the_decay_of_random_networks(seed: int) -> None:
    """To six digits: a recursion fitted to the odd part of two runs."""
    net = _at_random(seed)
    report, rest = fc.stability(net, roots=6), fc.equilibrium(net)
    roots = report.rightmost_roots
    slow = [s for s in roots if s.real > 4 * roots[0].real]  # still there when others are gone
    begin = 16 / (-roots[len(slow)].real + roots[0].real)
    step = (0.5 if len(slow) == 1 else 1.2) / np.max(np.abs(slow))
    times = begin + step * np.arange(40)
    odd: Any = 0.0
    for sign in (1, -1):
        start = net
        for name in net.links:
            start = start.with_link(name, initial=rest.states[name])
        for name, size in zip(net.flows, (3e-4, -2e-4), strict=False):
            start = start.with_flow(name, initial={"x": rest.states[name]["x"] * (1 + sign * size)})
        run = fc.simulate(start, times[-1], t_eval=times, rtol=1e-12, atol=1e-14, engine="array")
        odd = odd + sign * run.rate.values
    n = len(slow)
    rows = [np.column_stack([x[n - 1 - i : len(x) - 1 - i] for i in range(n)]) for x in odd.T]
    past = np.concatenate(rows)
    fitted = np.linalg.lstsq(past, np.concatenate([x[n:] for x in odd.T]))[0]
    found = np.log(np.roots([1, *-fitted]).astype(complex)) / step
    assert np.abs(found - roots[0]).min() < 1e-6 * abs(roots[0])


@pytest.mark.parametrize("seed", range(1, 4))
def test_margins_of_each_flow_are_those_of_python_control(seed: int) -> None:
    """A flow's own loop is det(I + L) over that of the others, less one, on a dense grid."""
    control = pytest.importorskip("control")
    report = fc.stability(_at_random(seed))
    names = [f.label for f in report.point.classes]
    omega = np.geomspace(1e-3, 100, 2500)
    L = report.open.frequency_response(omega).transpose(2, 0, 1)
    whole = np.linalg.det(np.eye(len(names)) + L)
    for k, name in enumerate(names):
        others = [i for i in range(len(names)) if i != k]
        rest = np.linalg.det(np.eye(len(others)) + L[:, others][:, :, others]) if others else 1.0
        frd = control.FRD(whole / rest - 1, omega, smooth=True)
        gains, phases, moduli, _, w_phase, _ = control.stability_margins(frd, returnall=True)
        found = report.of_flow(name)
        assert found.gain == pytest.approx(np.min(gains[gains > 1], initial=np.inf), rel=1e-4)
        lags = phases % 360
        assert found.phase == pytest.approx(np.min(lags, initial=np.inf), rel=1e-4)
        assert found.delay == pytest.approx(
            np.min(np.radians(lags) / w_phase, initial=np.inf), rel=1e-4
        )
        if len(lags):
            assert found.crossover == pytest.approx(w_phase[np.argmin(lags)], rel=1e-4)
        assert found.modulus == pytest.approx(np.min(moduli), rel=1e-4)


def test_the_margins_of_a_linearised_network_are_those_of_its_report() -> None:
    flows = {"near": fc.LDCC, "far": {"law": fc.LDCC(eta=0.8), "access_delay": "20 ms"}}
    net = fc.dumbbell(flows, {"capacity": "3 Mbit/s", "delay": "25 ms"})
    for delays in ("fifo", "frozen"):
        report = fc.stability(net, delays=delays)
        closed, opened, links = (
            fc.linearize(net, loop, delays) for loop in ("closed", "open", "links")
        )
        names = ("phase_margin", "gain_margin", "delay_margin", "modulus_margin")
        wanted = [getattr(report, name) for name in names]
        for found in (closed.margins(), opened.margins(), report.closed.margins()):
            assert [found.phase, found.gain, found.delay, found.modulus] == wanted
        assert closed.margins("far").delay == pytest.approx(report.of_flow("far").delay)
        assert links.margins().phase == pytest.approx(report.phase_margin)
        at_delays = closed.margins(at="delays")
        assert at_delays.phase < report.phase_margin - 10
        late = closed.delays + at_delays.delay  # puts a root on the axis
        longer = fc.DelayLTI(closed.A, closed.B, closed.C, closed.D, delays=late)
        assert abs(longer.roots(count=1)[0].real) < 1e-9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the equilibrium is one of a continuum")
def test_windows_of_one_round_trip_are_judged_whatever_their_gains() -> None:
    link = {"capacity": 1e7, "delay": 0.025}
    apart, near, equal = (
        fc.stability(fc.dumbbell([fc.FAST(gamma=0.5), fc.FAST(gamma=gamma)], link))
        for gamma in (0.3, 0.5000001, 0.5)
    )
    for report in (apart, near, equal):
        assert report.stable
        # The clock of acknowledgements shifts windows at a rate of its own, whatever the gains.
        assert report.rightmost_roots[0] == pytest.approx(equal.rightmost_roots[0], rel=1e-6)
    trip = float(equal.equilibrium.rtt.values[0])
    assert apart.closed.essential_abscissa == pytest.approx(np.log(0.95) / trip, rel=1e-6)


@pytest.mark.parametrize("number", [3, 6])
@pytest.mark.filterwarnings("ignore:the equilibrium is one of a continuum")
def test_flows_that_hear_themselves_in_one_queue_are_stable_however_many_they_are(
    number: int,
) -> None:
    """(1/N) sum of products of others' 1 - u, abs(u) < 1, is not 0: 1/(1 - u) is right of 1/2."""
    link = {"capacity": "100 Mbit/s"}
    trips = np.linspace(0.02, 0.2, number).tolist()
    report = fc.stability(fc.dumbbell([fc.FAST] * number, link, rtt=trips))
    assert (report.verdict, report.unstable) == ("stable", 0)
    assert report.closed.essential_abscissa < 0
    assert np.isfinite(report.gain_margin) != ("margins are not known" in repr(report))


@pytest.mark.filterwarnings("ignore:the equilibrium is one of a continuum")
def test_a_mean_over_losses_that_hears_them_at_once_is_unstable_over_a_full_buffer() -> None:
    """y(t) = -K y(t - R) + ...: of windows w at a loss p, K > 1 is
    (1/w + b w (1 - p)^(w - 1)) (1 - p)^2.
    """
    report = fc.stability(fc.dumbbell([fc.Reno] * 2, {"capacity": 2e7, "buffer": 8e5}, rtt=0.05))
    rest, p = report.equilibrium.states["flow1"], float(report.equilibrium.loss[0])
    K = (1 / rest["w"] + 0.5 * rest["w"] * (1 - p) ** (rest["w"] - 1)) * (1 - p) ** 2
    rate = np.log(K) / float(report.equilibrium.rtt[0])
    assert report.closed.essential_abscissa == pytest.approx(rate, rel=1e-3)
    assert (report.verdict, report.unstable) == ("unstable", np.inf)
    assert "infinitely many roots" in repr(report)
    assert "fluidcc.StaticReno" in repr(report)


def test_regimes() -> None:
    found = {make.__name__: fc.stability(make()).regime for make in networks.ALL}
    assert found == {
        "one_link": "delay-driven", "parking_lot": "delay-driven", "trunk": "delay-driven",
        "full_buffers": "loss-driven", "penalty_prices": "price-driven",
        "dual_prices": "price-driven",
    }  # fmt: skip
    mixed = networks.parking_lot().with_link("l1", buffer="5 packets")
    assert fc.stability(mixed).regime == "mixed"
    assert fc.stability(fc.scenarios["tcp_pi"].net).regime == "mark-driven"


def test_unstable_and_shown() -> None:
    report = fc.stability(_one(eta=2.5, capacity=1e6))
    assert (report.stable, report.marginal, bool(report)) == (False, False, False)
    assert report.unstable == report.encirclements == 2
    assert report.decay_rate < 0
    told = "StabilityReport(unstable, delay-driven: 2 unstable roots, critical gain 0."
    assert repr(report).startswith(told)
    page = report._repr_html_()
    assert "unstable" in page
    assert "data:image/png;base64," in page


def test_on_the_boundary_it_is_marginal() -> None:
    edge: Any = fc.stability_boundary(_one(capacity=1e6), "eta")
    report = fc.stability(edge.network(edge.value))
    assert (report.stable, report.marginal) == (False, True)
    assert report.verdict == "marginal"


def test_without_a_saturated_link_there_is_no_loop() -> None:
    net = fc.dumbbell([fc.LDCC], {"name": "far", "capacity": 9e6, "delay": 0.3})
    with pytest.warns(FluidccWarning, match=r"no flow is connected .* offer \(far carry less"):
        report = fc.stability(net)
    assert report.stable
    assert report.regime == "no feedback"
    assert report.gain_margin == report.delay_margin == math.inf
    w, beta, T, eta, e, trip = 20e3, 0.1, 0.1, 0.4, 0.3, 0.6
    x = w * trip / (beta * (e - T))
    assert report.decay_rate == pytest.approx(eta / trip * w / x, rel=1e-9)
    assert "no feedback" in report._repr_html_()


def test_certified_on_request() -> None:
    for eta, stable in ((0.4, True), (2.5, False)):
        report = fc.stability(_one(eta=eta, capacity=2e6, count=2), certify=True)
        assert report.certified is stable
        assert list(report.certificates) == ["loop", "flow1 (x2)"]
        ends = [c.abscissa for c in report.certificates.values() if c.abscissa is not None]
        assert max(a for a, _ in ends) <= -report.decay_rate <= max(b for _, b in ends)
        assert "proved" in report._repr_html_()
    assert fc.stability(_one()).certified is None


@pytest.mark.parametrize(("seed", "buffers"), [(2, ""), (5, "all"), (10, "some"), (8, "red")])
def test_random_networks_are_certified_as_they_are_judged(seed: int, buffers: str) -> None:
    report = fc.stability(networks.at_random(seed, buffers), certify=True)
    assert report.certified is report.stable
    (proved,) = report.certificates.values()
    assert proved.abscissa is not None
    assert proved.abscissa[0] <= -report.decay_rate <= proved.abscissa[1]


# --- beyond the delay-driven regime: Section IV-B of the LDCC paper -------------------------------


@pytest.mark.parametrize("rtt", ["50 ms", "200 ms"])
@pytest.mark.parametrize("buffer", ["5 packets", "15 packets"])
def test_full_buffer_in_closed_form(rtt: str, buffer: str) -> None:
    """Loss only: s + a + k (1 - pi) e^(-s RTT), a = k w/x, of (15) and (4) with a constant queue.

    At j omega, with r = w/(x (1 - pi)): omega RTT = arccos(-r), and
    eta = arccos(-r) / ((1 - pi) sqrt(1 - r^2)).
    """
    net = fc.dumbbell([fc.LDCC] * 3, {"capacity": "3 Mbit/s", "buffer": buffer}, rtt=rtt)
    report = fc.stability(net)
    # No queue is among the states: the delay-based terms are gone, and yet the delay is in the lag.
    assert (report.regime, report.closed.states) == ("loss-driven", ("flow1 (x3).x",))
    at_rest = ("rate", "loss", "rtt")
    x, pi, trip = (float(getattr(report.equilibrium, name)[0]) for name in at_rest)
    k = 0.4 / trip
    s = np.array([0.3 + 0.2j, -1 + 3j, 2 - 5j])
    by_hand = s + k * 20e3 / x + k * (1 - pi) * np.exp(-s * trip)
    np.testing.assert_allclose(report.closed.characteristic(s), by_hand, rtol=1e-9)
    edge: Any = fc.stability_boundary(net, "eta")
    r = 20e3 / (x * (1 - pi))
    assert edge.value == pytest.approx(np.arccos(-r) / ((1 - pi) * np.sqrt(1 - r**2)), rel=1e-9)
    assert edge.frequency == pytest.approx(np.arccos(-r) / trip, rel=1e-9)


def test_roots_that_are_counted_but_not_found_are_not_known() -> None:
    def search(count: int) -> Any:
        raise Undecided("two were found where there are four")

    system = SimpleNamespace(n_states=2, rightmost=search)
    for roots in (np.array([], complex), np.array([0.1 + 0j])):
        zeros = {"": SimpleNamespace(unstable=2, roots=roots)}
        counts: Any = SimpleNamespace(parts={"": system}, gone={}, times={"": 1}, zeros=zeros)
        found, why = rightmost_roots_of(counts, 1)
        assert np.isnan(found).all()
        assert "two were found" in why


@pytest.mark.filterwarnings("ignore:the equilibrium is one of a continuum")
def test_a_decay_rate_that_is_not_known_is_no_number() -> None:
    """Of ack clocks infinitely many roots lie side by side, right of all others but those at 0."""
    flows = {"near": fc.FAST, "far": {"law": fc.FAST, "access_delay": 0.02}}
    report = fc.stability(fc.dumbbell(flows, {"capacity": 10e6, "delay": 0.02}))
    assert report.stable
    assert not report.decay_rate > 0
    assert "the rightmost root is not" in report.warnings[-1]
