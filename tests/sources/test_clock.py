"""The ack clock against the exact one, which is neutral, and against packets.

In flight is the window: w(t) is what was sent in the last round trip. Figures of packets are those
of a simulator with windows of real numbers; the exact clock is typed here by hand.
"""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from sympy import symbols

import fluidcc as fc
from fluidcc.base.errors import LawError
from fluidcc.sources.windows import acked, cuts, delta, regain, spread, w
from fluidcc.symbols import RTT, pi, positive, price

PACKET, C = 8000.0, 1000.0  # bit, packets/s
WINDOWS = np.array([110.0, 190.0])
FORWARD, BACK = np.array([0.01, 0.03]), np.array([0.03, 0.13])
W0, k, n = positive("W0 k n")
m = symbols("m", real=True)


def driven() -> tuple[fc.DelayLTI, Any]:
    """Two flows whose windows follow a price each, linearised, from a change of that price to
    windows [packet] and queue [s]; and the round trips.
    """
    law = fc.window("Driven", k * (W0 + price - w), params={W0: 1, k: 1},
                    units={W0: "packet", k: "1/s"})  # fmt: skip
    told = fc.Link("Told", {m: -k * m}, {"price": m}, params={k: 1}, units={m: "1", k: "1/s"},
                   initial={m: 0})  # fmt: skip
    net = fc.Network().link("l", fc.DropTail, capacity=C * PACKET)
    for i, name in enumerate("ab"):
        net.link(f"to_{name}", told, capacity=C * PACKET)
        net.flow(name, law(W0=WINDOWS[i]), route=[f"to_{name}", "l"], packet=PACKET,
                 access_delay=FORWARD[i], return_delay=BACK[i])  # fmt: skip
    loop, n = fc.linearize(net), len(fc.linearize(net).delays)
    at = [loop.states.index(name) for name in ("to_a.m", "to_b.m", "a.w", "b.w", "l.q")]
    one = np.eye(len(loop.states))
    D = np.zeros((3 + n, 2 + n))
    D[3:, 2:] = loop.D[-n:, -n:]
    B = np.hstack([one[:, at[:2]], loop.B[:, -n:]])
    system = fc.DelayLTI(loop.A, B, np.vstack([one[at[2:]], loop.C[-n:]]), D, delays=loop.delays)
    return system, fc.equilibrium(net).rtt.values


def exact(z: complex, R: Any) -> Any:
    """Packets of queue for a packet of each window."""
    sent = 1 / (1 - np.exp(-z * R))
    arrives = WINDOWS / R * z * np.exp(-z * R) * sent  # x z e^{-z (R - tau_f)} e^{-z tau_f}
    return np.exp(-z * FORWARD) * z * sent / (z + arrives.sum() / C) / C


def test_a_queue_answers_windows_as_the_exact_clock_has_it() -> None:
    system, R = driven()
    omega = np.array([0.5, 1.0, 2.0, 4.0, 7.0, 10.0])
    H = system.frequency_response(omega)
    for i in (0, 1):
        found = H[2, i] / H[i, i]
        off = found / [exact(1j * o, R)[i] for o in omega]
        assert np.all(np.abs(np.abs(off) - 1) < np.where(omega < 8, 0.01, 0.02))
        assert np.all(np.abs(np.degrees(np.angle(off))) < np.where(omega < 8, 1.0, 2.0))
    packets = [1.201, 1.199, 1.197, 1.183, 1.143, 1.062]  # 1.5 % low: windows are rounded down
    np.testing.assert_allclose(C * np.abs(H[2, 0] / H[0, 0]), packets, rtol=0.025)
    lags = [-1.1, -2.1, -4.2, -8.5, -15.6, -24.0]
    np.testing.assert_allclose(np.degrees(np.angle(H[2, 0] / H[0, 0])), lags, atol=1.5)


FAST = fc.window(
    "FAST", k * (n - delta * w / RTT), params={k: 2.5, n: 50}, units={k: "1/s", n: "packet"}
)
SMOOTH = fc.window("Smooth", (1 - pi) * acked / w - w / 2 * acked * pi)


# --- at rest, and over long times -----------------------------------------------------------------


@pytest.mark.parametrize("law", [fc.Reno, FAST], ids=lambda law: law.name)
def test_at_rest_what_is_in_flight_is_the_window(law: fc.Source) -> None:
    link = {"law": fc.PI} if law is fc.Reno else {}
    rest = fc.equilibrium(fc.dumbbell([law] * 3, {**link, "capacity": "20 Mbit/s"}, rtt="60 ms"))
    for name, own in ((n, rest.states[n]) for n in ("flow1", "flow3")):
        rate = float(rest.rate.sel(flow=name)) / PACKET
        assert own["F"] == pytest.approx(own["w"], rel=1e-9)
        assert rate == pytest.approx(own["w"] / float(rest.rtt.sel(flow=name)), rel=1e-9)
        assert own["s"] == pytest.approx(rate, rel=1e-9)


@pytest.mark.parametrize("first", [1, 10, 100, 1000, 5000])
def test_the_equilibrium_does_not_depend_on_where_its_search_begins(first: float) -> None:
    flow = {"law": fc.Reno, "initial": {"w": first}}
    rest = fc.equilibrium(fc.dumbbell([flow] * 8, {"law": fc.PI, "capacity": 30e6}, rtt="100 ms"))
    assert rest.queueing_delay[0] == pytest.approx(0.05, rel=1e-9)
    own = float(rest.states["flow1"]["w"])
    assert own == pytest.approx(30e6 / 8 / PACKET * 0.15, rel=1e-9)
    p = float(rest.mark[0])
    assert own / 2 * (1 - (1 - p) ** own) == pytest.approx(1 - p, rel=1e-9)


def test_the_mean_of_the_automaton_is_reno() -> None:
    """Its rate has all of the window's change in it, so that it rests where Reno does."""
    mean = fc.AIMD.averaged(intensity=cuts(), name="Mean")
    link = {"law": fc.PI2, "capacity": "20 Mbit/s"}
    found = [fc.stability(fc.dumbbell([law] * 3, link, rtt="40 ms")) for law in (mean, fc.Reno)]
    one, other = (report.equilibrium.states["flow1"] for report in found)
    assert one["w"] == pytest.approx(other["w"], rel=1e-9)
    assert one["r"] == 1
    assert found[0].delay_margin == pytest.approx(found[1].delay_margin, rel=1e-6)


@pytest.mark.slow
def test_what_is_in_flight_does_not_drift_in_ten_thousand_laps() -> None:
    net = fc.dumbbell([FAST], {"capacity": 100 * PACKET / 0.01}, rtt="10 ms")
    run = fc.simulate(net, 100.0, t_eval=[50.0, 100.0])
    off = np.abs(run.FAST_F - run.FAST_w).values / run.FAST_w.values
    assert off.max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("rtol", "steps"), [(1e-6, 10_000), (1e-8, 20_000)])
def test_three_fast_flows_take_few_steps(rtol: float, steps: int) -> None:
    net = fc.Network().link("l", fc.DropTail, capacity=1e8, delay=0.01, buffer=4000 * PACKET)
    for j, access in enumerate((0.01, 0.017, 0.033)):
        net.flow(f"f{j}", FAST, route=["l"], access_delay=access, return_delay=0.02, start=0)
    assert fc.simulate(net, 20.0, rtol=rtol, samples=3).attrs["steps"] < steps


def test_ripples_of_an_idle_path_die() -> None:
    """By 0.8 % a lap: |G| = 0.992 at the lap's own harmonic. Below 1/(2 pi^2) they would grow."""
    law = fc.window("Still", 0 * w / fc.symbols.RTT)
    assert law.params[spread] * law.params[regain] > 1 / (2 * np.pi**2)
    with pytest.raises(LawError, match="spread is 0.03 and regain is 1; change one"):
        law(regain=1)
    net = fc.dumbbell(
        [{"law": law, "initial": {"w": 100}, "start": 0}], {"capacity": 1e9}, "100 ms"
    )
    run = fc.simulate(net, 40.0, t_eval=np.arange(2.0, 40.0, 0.005))
    rate = run.rate.values[:, 0] / PACKET
    size = [np.ptp(rate[i : i + 40]) for i in (0, 3600, 7400)]
    assert size[0] > size[1] > size[2]
    assert (size[2] / size[1]) ** (1 / 190) == pytest.approx(0.992, abs=2e-3)


@pytest.mark.slow
def test_equal_round_trips_have_the_queue_of_their_windows() -> None:
    """q = sum w/C - d, whatever the windows do, but for what is spread."""
    grow = fc.window("Grow", 20 * fc.symbols.packet / fc.symbols.packet / fc.symbols.RTT)
    flows = [{"law": grow, "initial": {"w": first}, "start": 0} for first in (300, 500)]
    run = fc.simulate(fc.dumbbell(flows, {"capacity": 1e7}, rtt="100 ms"), 8.0, samples=81)
    late = run.sel(time=slice(4, None))
    windows = late.Grow_w.sum("flow").values
    np.testing.assert_allclose(late.queueing_delay[:, 0], windows * PACKET / 1e7 - 0.1, rtol=2e-2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:flow .* jumps once a round trip")
def test_links_that_drop_all_stop_no_run() -> None:
    """RED beyond its threshold, not gentle: nothing leaves that enters, so 1 + e' is 0."""
    hard = fc.REDDrop(min_th=0.02, max_th=0.03, p_max=0.05, T=0.02, gentle=1e-3)
    link = {"law": hard, "capacity": "10 Mbit/s", "buffer": "1 s"}
    flows = [{"law": law, "initial": {"w": 60}} for law in (fc.AIMD, fc.Reno) * 2]
    run = fc.simulate(fc.dumbbell(flows, link, rtt="60 ms"), 20.0, samples=201)
    assert float(run.link_drop.max() if "link_drop" in run else run.loss.max()) > 0.9
    assert np.isfinite(run.rate).all()


def over_red(T: float) -> xr.Dataset:
    """Sixty flows at 15 Mbit/s, 500 bytes, 0.2 s; thresholds of 150 and 200 packets, not gentle."""
    own, rate = 4000.0, 3750.0
    law = fc.REDDrop(min_th=150 / rate, max_th=200 / rate, p_max=0.1, T=T, gentle=1e-3)
    link = {"law": law, "capacity": rate * own, "buffer": 800 * own, "packet": own,
            "initial": {"avg": 150 / rate}}  # fmt: skip
    flow = {"law": fc.Reno, "packet": own, "initial": {"w": 12}}
    run = fc.simulate(fc.dumbbell([flow] * 60, link, rtt="200 ms"), 100.0, samples=4001)
    late = run.sel(time=slice(50, None))
    return xr.Dataset({"queue": late.backlog.mean() / own, "used": late.utilisation.mean()})


@pytest.mark.slow
def test_sixty_renos_over_red_are_near_packets() -> None:
    """ns-2, w_q of 1.33e-6 and 2.67e-4: 155.0 packets at full use; 106.5 packets at 0.913."""
    slow, fast = over_red(200.0), over_red(1.0)
    assert float(slow.queue) == pytest.approx(155.0, rel=0.01)
    assert float(slow.used) == pytest.approx(1.0, rel=0.05)
    assert float(fast.used) == pytest.approx(0.913, rel=0.05)
    assert float(fast.queue) == pytest.approx(106.5, rel=0.16)


@pytest.mark.slow
@pytest.mark.xfail(
    strict=True,
    reason="122 packets by the mean, and 130 by AIMD with losses='random', at a utilisation of "
    "0.96 and 0.98: that windows do not swing in step is not what is missing. Of windows of 15 "
    "packets some end in time-outs, which the law has not",
)
def test_sixty_renos_over_a_fast_red_have_the_queue_of_packets() -> None:
    assert float(over_red(1.0).queue) == pytest.approx(106.5, rel=0.1)  # 122 by the mean


@pytest.mark.slow
@pytest.mark.parametrize("law", [FAST, fc.FAST, fc.StaticFAST], ids=["ack", "neutral", "static"])
def test_long_runs_rest_where_the_equilibrium_is(law: fc.Source) -> None:
    """The queueing delay that a source sees keeps no errors of steps; what is in flight does."""
    net = fc.dumbbell([law] * 6, {"capacity": "100 Mbit/s"}, rtt=list(np.linspace(0.02, 0.2, 6)))
    until = 1000.0 if law is FAST else 300.0
    run, rest = fc.simulate(net, until, t_eval=[until]), fc.equilibrium(net)
    np.testing.assert_allclose(run.rate[-1], rest.rate, rtol=1e-6 if law is fc.StaticFAST else 3e-4)
    delta = run[f"{law.name}_delta"].values[-1]
    np.testing.assert_allclose(delta, float(run.queueing_delay[-1, 0]), rtol=1e-5)


def test_several_windows_have_a_verdict() -> None:
    """A retarded clock; and no warning of a continuum, as what is in flight is no choice."""
    for n in (3, 6):
        flows, trips = [FAST] * n, list(np.linspace(0.02, 0.2, n))
        report = fc.stability(fc.dumbbell(flows, {"capacity": "100 Mbit/s"}, rtt=trips))
        assert report.verdict == "stable"
