"""Explicit congestion feedback: reports at their instants, the outer loop by its recursion,
max-min, two queues.
"""

from typing import Any

import numpy as np
import pytest
from sympy import lambdify

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, InvalidInput
from fluidcc.formulas import ecf
from fluidcc.laws import extended
from fluidcc.symbols import (
    crossing,
    e,
    e_b,
    nonnegative,
    packet,
    pi,
    trip_max,
    trip_mean,
    unfold,
    x_tau,
)
from tests.sources.networks import marking

PACKET, C = 12000.0, 30e6


def network(
    flows: int, law: fc.Source = fc.ECF, link: fc.Link = fc.PAQMECF, far: float = 0.01
) -> fc.Network:
    path = {"capacity": C, "delay": 0.02, "buffer": "400 packets", "packet": PACKET}
    flow = {"law": law, "access_delay": far, "packet": PACKET}
    return fc.dumbbell({f"s{i}": flow for i in range(flows)}, {"name": "aqm", "law": link, **path})


def test_reports_arrive_one_way_after_each_period() -> None:
    far = 0.013
    ds = fc.simulate(network(2, link=fc.PAQMECF(T_ECF=0.16), far=far), 2)
    begun = np.zeros(4)  # where counts stand at the start, of routers that are not there
    wanted = [*begun, *np.repeat([0, *(0.16 * np.arange(1, 13) + far)], 2)]
    np.testing.assert_allclose(np.sort(fc.metrics.jumps(ds).time.values), wanted, atol=1e-12)


def outer_loop(
    steps: int, rate: float, queue: float, flows: int, old: bool, T: float, R: float
) -> np.ndarray:
    """(6) to (12) in bits, the old rate coming for R more; no period is quiet, nothing dropped."""
    r, q, rows = rate, queue, []
    for _ in range(steps):
        error = 0.028 * C - q
        wanted = C + ((error - (r - C) * R) / (T - R) if old else error / T)
        new = r * wanted / r if wanted < r else r + flows * (wanted - r) / (2 * flows)
        q += (r - C) * R + (new - C) * (T - R)
        r = new
        rows.append((r, q))
    return np.array(rows)


@pytest.mark.parametrize("link", [fc.PAQMECF, fc.PAQMECF2])
@pytest.mark.parametrize("R", [0.02, 0.06])
def test_the_rates_are_those_of_the_recursion(link: fc.Link, R: float) -> None:
    """One second with the inner loop's set point out of the way; three sources as one."""
    params = {"T_s": 0.16 - R, "q_0": 2.0, "calm": 0.99999}
    params |= {"R": R} if link is fc.PAQMECF2 else {}
    net = network(3, fc.ECF(r_max=11e6), link(**params), far=R / 2)
    net = net.with_link("aqm", initial={"q": 0.03, "r": C}, buffer=None)
    periods = 0.16 * np.arange(1, 7)
    times = np.sort([*(periods + R / 2 + 1e-6), *(periods + 0.16 - 1e-9)])[:11]
    ds = fc.simulate(net, 1.0, t_eval=times)
    start = 0.03 * C + 0.16 * 3e6  # 33 Mbit/s come during the first period
    wanted = outer_loop(6, 33e6, start, 3, link is fc.PAQMECF2, 0.16, R)
    total = ds.rate.sum("flow").values
    seen = [total[np.searchsorted(ds.time, t + R / 2)] for t in periods[:5]]
    assert wanted[:5, 1].min() > 0
    np.testing.assert_allclose(seen, wanted[:5, 0], rtol=1e-6)


def test_the_stall_rule_lowers_once_after_five_quiet_periods() -> None:
    net = network(3, fc.ECF(r_max=10e6), fc.PAQMECF(forced=0.9))
    net = net.with_link("aqm", initial={"q": 0.028})
    ds = fc.simulate(net, 1.0, samples=1001)
    told = ds.PAQMECF_MD.values[:, 0]
    at = [ds.time.values[k] for k in np.flatnonzero(np.diff(told) < -0.05) + 1]
    assert at == pytest.approx([5 * 0.16])
    assert told[830] == pytest.approx(0.9)
    assert ds.rate.values[900].sum() == pytest.approx(0.9 * C, rel=1e-6)


def test_equilibrium_is_the_outer_set_point_and_a_continuum_of_rates() -> None:
    """Without the stall rule 28 ms, and whatever shares there were stay."""
    for shares in ([0.5, 0.3, 0.2], [0.2, 0.2, 0.6]):
        net = network(3, link=fc.PAQMECF(forced=1))
        for i, share in enumerate(shares):
            net = net.with_flow(f"s{i}", initial={"r1": share * C})
        ds = fc.simulate(net, 12, samples=121)
        assert float(ds.queueing_delay[-1, 0]) == pytest.approx(0.028, rel=1e-3)
        rates = ds.rate.values[-1]
        assert rates.sum() == pytest.approx(C, rel=1e-3)
        assert np.ptp(rates) > 0.3 * np.ptp(shares) * C


@pytest.mark.parametrize("way", [["one", "two"], ["two", "one"]])
def test_max_min_over_two_routers(way: list[str]) -> None:
    """Two nodes of 30 and 12 Mbit/s and different periods: 4, 4, 4 and 26, by water filling."""
    net = fc.Network().link("one", fc.PAQMECF, capacity=30e6, delay=0.01, packet=PACKET)
    net.link("two", fc.PAQMECF(T_ECF=0.2, T_s=0.12), capacity=12e6, delay=0.01, packet=PACKET)
    routes = {"long": way, "a": ["two"], "b": ["two"], "c": ["one"]}
    for name, route in routes.items():
        net.flow(name, fc.ECF(r_max=30e6), route=route, access_delay=0.01, packet=PACKET)
    ds = fc.simulate(net, 60, samples=601)
    mean = ds.rate.sel(time=slice(40, None)).mean("time")
    np.testing.assert_allclose(mean, [4e6, 4e6, 4e6, 26e6], rtol=0.1)


def test_a_source_without_a_router_holds_its_largest_rate_and_warns() -> None:
    net = fc.Network().link("l", fc.DropTail, capacity=C, delay=0.02)
    net.flow("lone", fc.ECF(r_max=3e6), route=["l"]).flow("other", fc.LDCC, route=["l"])
    with pytest.warns(FluidccWarning, match="no router on the route of lone reports"):
        ds = fc.simulate(net, 5)
    np.testing.assert_allclose(ds.rate.sel(flow="lone"), 3e6, rtol=1e-12)
    assert "no router on the route of lone" in ds.attrs["warnings"]


def test_frames_hold_the_rate_until_they_begin() -> None:
    ds = fc.simulate(network(3, fc.FramedECF(gop=0.48)), 5, samples=5001)
    changed = ds.time.values[1:][np.abs(np.diff(ds.rate.values[:, 0])) > 1]
    assert len(changed) > 5
    np.testing.assert_allclose(np.round(changed / 0.48), changed / 0.48, atol=2.1e-3)


def test_two_queues_share_by_active_flows_and_drop_or_mark() -> None:
    udp = [fc.CBR(rate=12e6), {"law": fc.CBR(rate=12e6), "start": 4, "stop": 8}]
    net = fc.two_queues(udp, [fc.StaticReno, fc.StaticReno], {"law": fc.PAQMDrop, "capacity": C,
        "delay": 0.02},
                        {"law": fc.PAQM, "delay": 0.02, "buffer": "400 packets",
                        "packet": PACKET})  # fmt: skip
    assert net.links["udp"].capacity == pytest.approx(C / 3)
    assert [t for t, _ in net.links["udp"].schedule] == [4, 8]
    assert [c for _, c in net.links["udp"].schedule] == pytest.approx([C / 2, C / 3])
    ds = fc.simulate(net, 12, samples=1201)
    lost = ds.lost.values[-1]
    assert lost[0] > 1e6  # UDP packets are dropped
    assert lost[1] == 0  # TCP is marked
    tcp = ds.sel(flow="tcp1")
    assert tcp.loss.max() == 0 < tcp.mark.max()
    with pytest.raises(InvalidInput, match="the router has 2 capacities"):
        fc.two_queues([fc.CBR], [fc.StaticReno], {"capacity": 1e6}, {"capacity": 2e6})


def test_dccp_halves_when_one_packet_has_been_marked_since_the_last_round() -> None:
    """At a constant mark ratio p it is a sawtooth of AIMD, of about sqrt(1.5/p) packets."""
    net = fc.Network().link("l", marking(0.002), capacity=1e9, delay=0.05)
    net.flow("f", fc.DCCP, route=["l"], packet=PACKET, return_delay=0.05)
    ds = fc.simulate(net, 200, samples=20001)
    W = ds.DCCP_W.values[10000:, 0]
    times = fc.metrics.jumps(ds).time.values[5:]
    cycle = np.diff(times).mean() / 0.1  # round trips from half to whole window
    assert W.max() == pytest.approx(2 * W.min(), rel=0.02)
    assert cycle == pytest.approx(W.max() / 2, rel=0.02)
    # of the 3/8 top^2 packets of a cycle those after a round trip and a half make one mark
    top = W.max()
    assert 3 / 8 * top**2 == pytest.approx(1 / 0.002 + 1.5 * top / 2, rel=0.1)


@pytest.mark.parametrize("mean", [0.05, 0.5, 2.0, 20.0])
def test_poisson_numbers_have_their_mean_whatever_the_interval(mean: float) -> None:
    """By quadrature over the normal distribution: mean m, variance m but for 3/8, never below 0."""
    z, weight = np.polynomial.hermite_e.hermegauss(40)
    weight = weight / weight.sum()
    values = {"r1": mean, **dict.fromkeys(("r2", "r3"), 9.0 * mean + 9), "packet": 1, "interval": 1}
    rate = fc.PoissonECF.out["rate"]
    symbols = sorted(rate.free_symbols, key=str)
    known = {str(s).replace("\\ell", "packet"): s for s in symbols}
    assert set(known) == {*values, "noise"}
    function = lambdify([known["noise"], *(known[k] for k in values)], unfold(rate), "numpy")
    number = function(z, *values.values())
    assert number.min() >= 0
    assert weight @ number == pytest.approx(mean, rel=1e-12)
    assert weight @ (number - mean) ** 2 == pytest.approx(mean, abs=3 / 8 * min(1, 4 * mean))


@pytest.mark.parametrize(("since", "heard"), [(0.099, 0.0), (0.101, 25.0), (0.5, 25.0)])
def test_dccp_counts_marks_again_a_round_trip_after_it_has_halved(
    since: float, heard: float
) -> None:
    """Of 200 kbit in 0.1 s, one packet in ten marked: 25 packets a second; then it halves once."""
    W, m, last = fc.DCCP.states
    now = {e: 0.06, e_b: 0.04, x_tau: 2e6, pi: 0.1, packet: 8000, W: 10, m: 2, last: since}
    assert float(unfold(fc.DCCP.flow[m]).subs(now)) == pytest.approx(heard)
    (halving,) = fc.DCCP.jumps
    assert halving.when.subs(now) == 1
    new = {z: float(f.subs({**now, **fc.DCCP.params})) for z, f in halving.reset.items()}
    assert new == {W: 5, m: 0, last: 0}


@pytest.mark.parametrize("rtt", [0.06, 0.2, 0.4])
def test_with_the_period_of_4_nothing_is_lost_at_any_round_trip(rtt: float) -> None:
    """The scenario has T_ECF by (4); after the start the queue is kept, and the link is full."""
    run = fc.scenarios["ecf_fig8"](count=5, rtt=rtt, until=80).simulate(rtol=1e-5)
    late = run.sel(time=slice(50, None))
    assert float(late.lost[-1, 0] - late.lost[0, 0]) == 0
    assert float(late.utilisation.mean()) > 0.99
    assert "reports every" not in run.attrs["warnings"]


def test_far_sources_that_join_near_ones_need_a_longer_period() -> None:
    """Seven at 300 ms join three at 20 ms: T_ECF of 160 ms is warned of, and loses; by (4) it is
    720 ms from then on.
    """
    lost, fixed = {}, fc.PAQMECF(T_ECF=0.16)
    for law in (fixed, fc.PAQMECF(T_s=0.42)):
        net = fc.Network().link("aqm", law, capacity=30e6, delay=0.02, buffer=400 * 12000.0)
        for i in range(10):
            far, start = (0.01, 0) if i < 3 else (0.15, 20)
            way: dict[str, Any] = {"route": ["aqm"], "packet": PACKET, "access_delay": far}
            net.flow(f"s{i}", fc.ECF, start=start, **way)
        run = fc.simulate(net, 80, samples=801)
        late = run.sel(time=slice(50, None))
        lost[law] = float(late.lost[-1, 0] - late.lost[0, 0]) / float(late.entered[-1, 0])
        warned = "'aqm' (PAQMECF) reports every 0.16 s, before what flow 's3'"
        assert (warned in run.attrs["warnings"]) == (law is fixed)
    assert min(lost.values()) == 0
    assert lost[fixed] > 0.01
    periods = np.unique(np.round(run.PAQMECF_T.values[1:], 9))
    assert periods.tolist() == pytest.approx([0.42, 0.44, 0.72])  # 420 ms before there are any
    assert ecf.period(0.3, 0.42, 0.02) == pytest.approx(0.72)


def _near_and_far(link: fc.Link, law: fc.Source = fc.ECF) -> fc.Network:
    """Round trips of 20, 80 and 2000 ms to the second link; the last begins late."""
    net = fc.Network().link("first", fc.DropTail, capacity=1e9, delay=0.01)
    net.link("aqm", link, capacity=C, delay=0.02)
    net.flow("near", law, route=["aqm"], access_delay=0.01)
    net.flow("far", law, route=["first", "aqm"], access_delay=0.03, stop=9)
    return net.flow("off", law, route=["aqm"], access_delay=1.0, start=20)


def test_a_link_knows_how_many_flows_are_on_and_their_round_trips() -> None:
    n, most, mean = nonnegative("n most mean")
    every = fc.Tick(every=0.5, update={n: crossing, most: trip_max, mean: trip_mean})
    knows = extended(
        fc.DropTail, "Knows", flow=dict.fromkeys((n, most, mean), 0), ticks=[every],
        units={n: "1", most: "s", mean: "s"}, initial=dict.fromkeys((n, most, mean), 0),
        about="Notes what it knows.",
    )  # fmt: skip
    net = _near_and_far(knows, fc.CBR).with_flow("far", start=2)
    run = fc.simulate(net, 12, t_eval=[1.2, 5.2, 11.2])
    seen = np.array([run[f"Knows_{z}"].sel(link="aqm") for z in (n, most, mean)])
    wanted = [[1.0, 2.0, 1.0], [0.02, 0.08, 0.02], [0.02, 0.05, 0.02]]
    np.testing.assert_allclose(seen, wanted, rtol=1e-12)


@pytest.mark.parametrize(("law", "more"), [(fc.PAQMECF, {}), (fc.PAQMECF2, {"R": 0.05})])
def test_periods_and_multipliers_by_4_are_those_of_the_numbers(law: Any, more: Any) -> None:
    net, given = map(_near_and_far, (law(T_s=0.12), law(T_s=0.12, T_ECF=0.2, **more)))
    by_4, wanted = (fc.sampled_stability(one, at=5).multipliers for one in (net, given))
    np.testing.assert_allclose(by_4, wanted, atol=1e-12)
    run = fc.simulate(net, 12, t_eval=[5, 11])
    np.testing.assert_allclose(run[f"{law.name}_T"].sel(link="aqm"), [0.2, 0.14])
