"""Grids over everything, measures of everything, the same result however it is computed."""

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, InvalidInput, SweepFailed, UnknownName
from fluidcc.sweeps.api import make_task
from fluidcc.sweeps.axes import make_grid
from tests.hybrid_laws import aimd, alone


def network() -> fc.Network:
    link = {"name": "l", "capacity": "3 Mbit/s", "delay": "25 ms", "buffer": "0.5 s"}
    flows = {n: {"law": fc.LDCC, "initial": {"x": x}} for n, x in (("a", 1e5), ("b", 2e5))}
    return fc.dumbbell(flows, link)


def test_equilibria_follow_the_closed_form() -> None:
    """Equation (19) of the LDCC paper: e = (e_b r + T)/(1 - r), r = w/(beta x)."""
    grid = {"beta": [0.1, 0.2], "w": ["20 kbit/s", "40 kbit/s"], "capacity": [2e6, 3e6]}
    ds = fc.sweep(network().with_link("l", buffer=None), grid, "equilibrium_one_way_delay")
    r = ds.w / (ds.beta * ds.capacity / 2)
    wanted = (0.025 * r + 0.1) / (1 - r)
    values = ds.equilibrium_one_way_delay.transpose(*wanted.dims, "flow")
    np.testing.assert_allclose(values, wanted.values[..., None] * np.ones(2), rtol=1e-8)
    assert ds.capacity.attrs["units"] == "bit/s"
    assert ds.attrs["failed"] == 0


AXES: list[tuple[str, Any, Any]] = [
    ("beta", 0.15, lambda n: [n.flows[f].law.parameter("beta") for f in "ab"] == [0.15, 0.15]),
    ("a.beta", 0.15, lambda n: [n.flows[f].law.parameter("beta") for f in "ab"] == [0.15, 0.1]),
    ("flows.eta", 0.3, lambda n: n.flows["b"].law.parameter("eta") == 0.3),
    ("capacity", "4 Mbit/s", lambda n: (n.links["l"].capacity, n.links["l"].buffer) == (4e6, 2e6)),
    ("buffer", "40 ms", lambda n: n.links["l"].buffer == pytest.approx(0.04 * 3e6)),
    ("l.delay", "30 ms", lambda n: n.links["l"].delay == 0.03),
    ("buffer", "100 packets", lambda n: n.links["l"].buffer == 8e5),
    ("b.return_delay", "40 ms",
     lambda n: (n.return_delay("a"), n.return_delay("b")) == (0.025, 0.04)),
    ("access_delay", "5 ms", lambda n: n.base_rtt("a") == pytest.approx(0.06)),
    ("rtt", "80 ms",
     lambda n: (n.base_rtt("a"), n.links["l"].delay) == pytest.approx((0.08, 0.04))),
    ("b.rtt", "80 ms",
     lambda n: (n.base_rtt("b"), n.base_rtt("a"), n.links["l"].delay) == (0.08, 0.05, 0.025)),
    ("a.initial.x", 3e5, lambda n: [n.flows[f].initial["x"] for f in "ab"] == [3e5, 2e5]),
    ("initial.backlog", "1 packet", lambda n: n.links["l"].initial["q"] == 8000 / 3e6),
    ("count", 3, lambda n: n.flow_names == ("a", "b", "a_2", "a_3", "b_2", "b_3")),
    ("a.count", 0, lambda n: n.flow_names == ("b",)),
    ("b.start", 5, lambda n: n.flows["b"].intervals == ((5.0, float("inf")),)),
    ("a.law", fc.CBR(rate=1e5), lambda n: n.flows["a"].law.name == "CBR"),
]  # fmt: skip


@pytest.mark.parametrize(("axis", "value", "check"), AXES, ids=[a[0] for a in AXES])
def test_every_kind_of_axis(axis: str, value: Any, check: Any) -> None:
    net = network()
    if axis == "a.law":
        net = net.with_flow("a", initial=None, law=fc.CBR)
    ds = fc.sweep(net, {axis: [value]}, {"right": lambda p: bool(check(p.net))}, executor="serial")
    assert ds.right.dtype == bool
    assert ds.right.values.all()


def test_a_round_trip_takes_every_delay_along() -> None:
    net = network().with_flow("b", access_delay=0.01, return_delay=0.015)

    def delays(p: Any) -> list[float]:
        flow = p.net.flows["b"]
        return [flow.access_delay, flow.return_delay, p.net.links["l"].delay]

    ds = fc.sweep(net, {"rtt": ["80 ms"]}, {"delays": delays}, executor="serial")
    np.testing.assert_allclose(ds.delays[0], [0.016, 0.024, 0.04])


def test_axes_act_together() -> None:
    """Also those that are ranges with units."""
    spread = {"from": "1 Mbit/s", "to": "4 Mbit/s", "points": 3, "scale": "log"}
    grid: dict[str, Any] = {"l.capacity": spread, "count": [1, 2], "beta": [0.1, 0.2]}
    grid["rtt"] = [0.05, 0.1]

    def seen(p: Any) -> list[float]:
        net, beta = p.net, p.net.flows["b"].law.parameter("beta")
        return [net.links["l"].capacity, len(net.flows) / 2, beta, net.base_rtt("b")]

    ds = fc.sweep(network(), grid, {"seen": seen}, executor="serial")
    np.testing.assert_allclose(ds["l.capacity"], [1e6, 2e6, 4e6])
    for k, axis in enumerate(grid):
        np.testing.assert_allclose(ds.seen[..., k], ds[axis].broadcast_like(ds.seen[..., k]).values)


def test_trajectories_are_those_of_simulate() -> None:
    grid = {"beta": [0.1, 0.2], "a.return_delay": [0.025, 0.04]}
    measures = ["mean_rate", "final_rate", "max_backlog"]
    ds = fc.sweep(network(), grid, measures, until=10, rtol=1e-8, window=(5, 10))
    net = network().with_flow("a", law=fc.LDCC(beta=0.2), return_delay=0.04)
    net = net.with_flow("b", law=fc.LDCC(beta=0.2))
    run = fc.simulate(net, 10, rtol=1e-8, samples=20001)
    mean = fc.metrics.mean(run.rate, 5, 10)
    np.testing.assert_allclose(ds.mean_rate[1, 1], mean, rtol=1e-6)
    np.testing.assert_allclose(ds.final_rate[1, 1], run.rate[-1], rtol=1e-6)
    largest = run.backlog.sel(time=slice(5, 10)).max("time")
    np.testing.assert_allclose(ds.max_backlog[1, 1], largest, rtol=1e-5)


def test_shares_and_ratios_are_those_of_a_run() -> None:
    """Of 2 and 0.5 Mbit/s over 2 Mbit/s a fifth is lost; of windows A = B."""
    link = {"capacity": "2 Mbit/s", "buffer": "20 kbit"}
    flows = {n: fc.CBR(rate=r) for n, r in (("a", 2e6), ("b", 5e5), ("none", 0.0))}
    measures, span = ["share", "loss_ratio", "mark_ratio"], (5.0, 20.0)
    ds = fc.sweep(fc.dumbbell(flows, link), {"buffer": [2e4]}, measures, until=20, window=span)
    np.testing.assert_allclose(ds.share[0], [0.8, 0.2, 0.0], rtol=1e-12)
    np.testing.assert_allclose(ds.loss_ratio[0], [0.2, 0.2, np.nan], rtol=1e-6)
    pi = {"law": fc.PI, "capacity": "10 Mbit/s", "buffer": "300 packets", "loss": 1e-4}
    net = fc.dumbbell([fc.StaticReno] * 2, pi, rtt=["40 ms", "80 ms"])
    ds = fc.sweep(net, {"capacity": [1e7]}, measures, until=20, window=span, samples=1001)
    run, mean = fc.simulate(net, 20, t_eval=np.linspace(*span, 1001)), fc.metrics.mean
    union = 1 - (1 - run.loss) * (1 - run.mark)
    np.testing.assert_allclose(ds.share[0], mean(run.rate) / mean(run.rate).sum(), rtol=1e-9)
    np.testing.assert_allclose(ds.loss_ratio[0], fc.metrics.loss(run), rtol=1e-9)
    lost, total = (fc.metrics.loss(run.assign(loss=of)) for of in (run.loss, union))
    np.testing.assert_allclose(ds.mark_ratio[0], (total - lost) / (1 - lost), rtol=1e-9)
    assert ds.mark_ratio.min() > 0


def test_a_function_may_build_networks_and_a_scenario_brings_its_own_end() -> None:
    build = lambda p: fc.dumbbell([fc.LDCC], {"capacity": p["c"]}, rtt=0.05)  # noqa: E731
    ds = fc.sweep(build, {"c": [1e6, 2e6]}, "equilibrium_rate")
    np.testing.assert_allclose(ds.equilibrium_rate[:, 0], [1e6, 2e6])
    scenario = fc.Scenario("s", network(), until=4.0)
    ds = fc.sweep(scenario, {"beta": [0.1]}, {"end": lambda p: float(p.run.time[-1])})
    assert ds.end.item() == 4.0


def test_the_end_may_be_an_axis_and_steps_may_be_bounded() -> None:
    """Each point has its own end; the options of `simulate` mean what they mean there."""
    grid: Any = {"until": ["2 s", "4 s"], "beta": [0.1]}
    ds = fc.sweep(network(), grid, "final_rate", executor="serial")
    for k, end in enumerate((2, 4)):
        np.testing.assert_array_equal(ds.final_rate[k, 0], fc.simulate(network(), end).rate[-1])
    steps: Any = {"max_step": "1 ms", "first_step": "0.1 ms"}
    ds = fc.sweep(network(), {"beta": [0.1]}, "final_rate", until=2, **steps)
    run = fc.simulate(network(), 2, **steps)
    np.testing.assert_array_equal(ds.final_rate[0], run.rate[-1])
    first = fc.simulate(network(), 1)
    ds = fc.sweep(network(), {"beta": [0.1]}, "final_rate", until=2, restart=first, window=(1, 2))
    np.testing.assert_allclose(ds.final_rate[0], fc.simulate(network(), 2).rate[-1], rtol=1e-5)


def test_failures_are_told_and_the_rest_goes_on() -> None:
    def measured(p: Any) -> dict[str, float]:
        if p["x"] == 6:  # inside a chunk
            raise ZeroDivisionError("no such thing")
        return {"double": 2 * p["x"]}

    with pytest.warns(
        FluidccWarning, match="1 of 9 points failed and are NaN there, .* at x = 6: Zero"
    ):
        ds = fc.sweep(measured, {"x": np.arange(9)}, chunk=5)
    np.testing.assert_array_equal(ds.double, [0, 2, 4, 6, 8, 10, np.nan, 14, 16])
    assert ds.error.values.tolist() == [""] * 6 + ["ZeroDivisionError: no such thing"] + [""] * 2
    assert ds.attrs["failed"] == 1


def test_nothing_to_measure_at_all_is_an_error() -> None:
    for law in (fc.SampledLDCC, fc.NADA8698):  # of whose states an equilibrium has some alone
        with pytest.raises(SweepFailed, match="is sampled, so it has no Jacobian"):
            fc.sweep(fc.dumbbell([law], {"capacity": 5e6}, rtt=0.04), {"capacity": [5e6]}, "stable")
    with pytest.raises(SweepFailed, match="ZeroDivisionError"):
        fc.sweep(lambda p: p["x"] / 0, {"x": [1, 2]})


MISTAKES: list[tuple[type[Exception], dict[str, Any], str]] = [
    (UnknownName, {"grid": {"c.beta": [1]}}, "no flow or link 'c'"),
    (InvalidInput, {"grid": {"beta": []}}, "at least one"),
    (InvalidInput, {"grid": {"beta": ["0.1 s"]}},
     "axis 'beta' of the grid is '0.1 s', a time; give a plain"),
    (InvalidInput, {"grid": {"buffer": ["50 ms", "25 packets"]}},
     "axis 'buffer' of the grid is '50 ms'"),
    (InvalidInput, {"max_step": "1 bit"}, "max_step is '1 bit'"),
    (InvalidInput, {"executor": "tcp://host:1"}, "here distributed.Client('tcp://host:1')"),
    (InvalidInput, {"net": "ldcc_fig5"}, "fluidcc.Scenario.load('ldcc_fig5')"),
    (InvalidInput, {"grid": {"capacity": [-1.0]}}, "capacity of link 'l'"),
    (InvalidInput, {"grid": {"a.rtt": ["20 ms"]}}, "rtt of flow 'a' is 0.02 s, and its way there"),
    *((UnknownName, {"measure": name}, "lse give one of fluidcc.sweeps.measures")
      for name in ("critical", "critical_", "decay", "limit_cycle")),
    (InvalidInput, {"until": None}, "give until="),
    (InvalidInput, {"window": (5, 99)}, "window"),
    (InvalidInput, {"executor": "cluster"}, "Dask client"),
    (InvalidInput, {"step": "20 ms"}, "step is '20 ms'; steps follow from rtol and atol"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "change", "says"), MISTAKES)
def test_mistakes_are_named(error: type[Exception], change: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"net": network(), "grid": {"beta": [0.1]}, "until": 2, **change}
    given.setdefault("measure", "mean_rate")
    with pytest.raises(error) as caught:
        fc.sweep(given.pop("net"), given.pop("grid"), given.pop("measure"), **given)
    assert says in str(caught.value)


def test_the_check_of_a_long_axis_takes_no_network_and_no_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net, compared = network(), []

    class Value:
        def __hash__(self) -> int:
            return id(self)

        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return self is other

    for bad in (-0.3, math.inf):  # is found wherever it stands
        with pytest.raises(InvalidInput, match=rf"beta is {bad:g}"):
            make_task(net, {"beta": [0.1, 0.2, bad, 0.4]}, "stable", None, None, {})
    monkeypatch.setattr(fc.Network, "__init__", None)
    for axis in ("beta", "capacity", "rtt", "a.initial.x"):
        make_task(net, {axis: np.linspace(0.1, 0.2, 3000)}, "stable", None, None, {})
    make_grid({"x": [Value() for _ in range(3000)]})
    assert not compared


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        ({"capacity": ["1 Mbit/s", 2e6, 1e6]},
         "axis 'capacity' of the grid has the value 1000000.0 twice"),
        ({"seed": range(10**12)}, "axis 'seed' of the grid has 1000000000000 values"),
        ({k: np.linspace(0.1, 0.2, 10**4) for k in ("beta", "eta", "T")},
         r"the grid has 1e\+12 points"),
    ],
)  # fmt: skip
def test_grids_that_cannot_be_are_refused_before_memory_is_taken(
    grid: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        fc.sweep(network(), grid, "stable")


# --- measures -------------------------------------------------------------------------------------


def two_flows(eta: float = 0.4) -> fc.Network:
    return fc.dumbbell([fc.LDCC(eta=eta)] * 2, {"capacity": "3 Mbit/s"}, rtt="50 ms")


def test_periods_of_limit_cycles_follow_the_closed_form() -> None:
    """A linear sawtooth: up by `slope` until the full buffer is heard of, then by 1 - b."""
    delay, back, slope, b = 0.025, 0.04, 1e6, 0.5
    net = alone(aimd(beta=b), return_delay=back)
    grid = {"capacity": [8e6, 10e6], "buffer": [2e5, 3e5]}
    ds = fc.sweep(net, grid, ["limit_cycle_period", "limit_cycle_amplitude"], executor="serial")
    loop, over = ds.buffer / ds.capacity + delay + back, np.sqrt(2 * ds.buffer / slope)
    wanted = b * (ds.capacity + slope * (over + loop)) / slope
    wanted = wanted.transpose("capacity", "buffer")
    np.testing.assert_allclose(ds.limit_cycle_period, wanted, rtol=1e-10)
    full = 0.5 * (ds.buffer / ds.capacity).transpose("capacity", "buffer")  # it empties, too
    np.testing.assert_allclose(ds.limit_cycle_amplitude.sel(link="l"), full, rtol=1e-10)
    assert ds.limit_cycle_period.units == ds.limit_cycle_amplitude.units == "s"


def test_a_critical_value_is_where_the_critical_gain_is_one() -> None:
    grid = {"capacity": ["2 Mbit/s", "6 Mbit/s"]}
    ds = fc.sweep(two_flows(), grid, ["critical_eta", "stable"], executor="serial")
    assert ds.stable.all()
    for c, eta in zip(ds.capacity.values, ds.critical_eta.values, strict=True):
        below, above = 0.98 * eta, 1.02 * eta
        net = two_flows().with_link("bottleneck", capacity=c)
        measures = ["stable", "critical_gain", "gain_margin", "decay_rate", "rightmost_root"]
        with pytest.warns(FluidccWarning, match="a root is on the imaginary axis"):
            both = fc.sweep(net, {"eta": [below, eta, above]}, measures)
        assert both.stable.values[[0, 2]].tolist() == [True, False]
        gains = both.critical_gain.values
        assert gains[0] > 1 > gains[2]
        assert gains[1] == pytest.approx(1, abs=1e-6)
        assert gains[0] == both.gain_margin.values[0]
        np.testing.assert_array_equal(both.decay_rate, -both.rightmost_root.real)
        assert both.decay_rate.values[0] > 0 > both.decay_rate.values[2]


def test_a_measure_that_fails_everywhere_is_told_and_the_others_go_on() -> None:
    measures = {"a": "limit_cycle_period", "b": "critical_etta", "c": "stable"}
    with pytest.warns(FluidccWarning, match="2 of 2 points failed"):
        ds = fc.sweep(two_flows(), {"capacity": [2e6, 3e6]}, measures, executor="serial")
    assert ds.c.all()
    assert ds.attrs["failed"] == 2
    assert np.isnan(ds.a).all()
    for says in ("a: SolverError: no limit cycle", "b: UnknownName:", "mean 'eta'"):
        assert says in ds.error.values[1]


def test_what_a_function_returns_must_be_numbers() -> None:
    def measured(p: Any) -> Any:
        return "three" if p["x"] == 3 else {"a": p["x"], "b": np.ones(2)}

    with pytest.warns(FluidccWarning, match="1 of 3 points failed"):
        ds = fc.sweep(measured, {"x": [1, 2, 3]}, executor="serial")
    assert ds.b.dims == ("x", "b_0")
    assert "returned 'three'; return a number, an array or a mapping" in ds.error.values[2]


def test_a_function_may_return_networks_of_more_and_fewer_flows() -> None:
    def model(point: Any) -> fc.Network:
        n = int(point["n"])
        flows = {f"f{k}": fc.LDCC for k in range(n)}
        return fc.dumbbell(flows, {"capacity": point["c"]}, rtt="50 ms")

    for counts in ([1, 2, 3], [3, 1, 2], [1, 3, 1.5]):
        grid = {"c": [3e6, 6e6], "n": counts}
        found = fc.sweep(model, grid, "equilibrium_rate", executor="serial").equilibrium_rate
        for c in grid["c"]:
            for n in counts:
                rates = found.sel(c=c, n=n).values
                np.testing.assert_allclose(rates[: int(n)], c / int(n), rtol=1e-6)
                assert np.isnan(rates[int(n) :]).all()
