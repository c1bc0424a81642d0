"""A run in two parts is the run in one, whatever its queues were doing when it was cut."""

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sympy import symbols

import fluidcc as fc
from fluidcc.base.errors import InvalidInput
from fluidcc.base.packed import packed

pytestmark = pytest.mark.filterwarnings("error")


def dumbbell(buffer: Any = None, **link: Any) -> fc.Network:
    link = {"name": "l", "capacity": 3e6, "delay": 0.025, "buffer": buffer} | link
    flows = {f"f{k}": {"law": fc.LDCC, "initial": {"x": 1e5 * (k + 1)}} for k in range(3)}
    return fc.dumbbell(flows, link)


def lot(**first: Any) -> fc.Network:
    path: Any = {"delay": 0.02, "buffer": 6e5}
    links = [{"name": f"l{k}", "capacity": c, **path} for k, c in enumerate((3e6, 2e6))]
    flows = {
        "long": {"law": fc.LDCC, "access_delay": 0.013, "initial": {"x": 4e5}, **first},
        "a": {"law": fc.LDCC(beta=0.5), "initial": {"x": 1e6}, "return_delay": 0.07},
        "b": {"law": fc.LDCC, "access_delay": 0.004, "initial": {"x": 2e5}},
    }
    long, *cross = ({name: flow} for name, flow in flows.items())
    return fc.parking_lot(long, cross, links)


def join(first: xr.Dataset, second: xr.Dataset) -> xr.Dataset:
    """Where a flow stops, the first run has the rate before, the second that after."""
    return xr.concat([first.isel(time=slice(0, -1)), second], "time", combine_attrs="override")


def agree(whole: xr.Dataset, parts: xr.Dataset, most: float) -> None:
    np.testing.assert_allclose(parts.time, whole.time, atol=1e-12)
    scales = {"rate": 3e6, "one_way_delay": 0.1, "backlog": 3e5, "loss": 1.0, "entered": 1e8}
    for name, scale in scales.items():
        worst = np.abs(parts[name].values - whole[name].values).max() / scale
        assert worst < most, (name, worst)


def cut(
    net: fc.Network, at: float, until: float, rtol: float = 1e-8, **options: Any
) -> tuple[Any, Any]:
    options |= {"rtol": rtol, "atol": rtol / 100}
    n, m = round(until / 0.1), round(at / 0.1)
    times = np.linspace(0, until, n + 1)
    whole = fc.simulate(net, until, t_eval=times, **options)
    first = fc.simulate(net, at, t_eval=times[: m + 1], **options)
    second = fc.simulate(net, until, t_eval=times[m:], restart=first, **options)
    return whole, join(first, second)


@pytest.mark.parametrize("at", [25.0, 0.03])
def test_sixty_seconds_in_two_parts(at: float) -> None:
    """Also cut within the first round trip, where the past before time 0 is still heard of."""
    net = dumbbell()
    options: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-10}
    whole = fc.simulate(net, 60.0, t_eval=np.linspace(at, 60, 351), **options)
    first = fc.simulate(net, at, **options)
    second = fc.simulate(net, 60.0, restart=first, samples=351, **options)
    assert float(second.time[0]) == at
    agree(whole, second, 1e-7)


def test_cut_with_a_full_buffer_and_an_empty_queue() -> None:
    net = dumbbell(buffer=2e5, capacity=[(0, 3e6), (6, 6e6), (9, 3e6)])
    whole = fc.simulate(net, 20.0)
    full = float(whole.time[np.flatnonzero(whole.link_loss[:, 0] > 0)[3]])
    empty = float(whole.time[np.flatnonzero(whole.backlog[:, 0] == 0)[-3]])
    assert full > 0.0
    assert empty > 6.0
    for at in (round(full, 1), round(empty, 1)):
        agree(*cut(net, at, 20.0), most=2e-7)


@pytest.mark.parametrize("delays", ["fifo", "frozen"])
def test_cut_on_a_parking_lot_with_access_delays(delays: str) -> None:
    net = lot(start=[0, 5.0, 8.0], stop=[3.0, 7.0, math.inf])
    agree(*cut(net, 7.0, 12.0, delays=delays), most=2e-7)


def test_cut_where_the_law_reads_its_own_past_and_links_have_prices() -> None:
    net = fc.Network().link("p", fc.DualLink, capacity=3e6, delay=0.02)
    net.link("q", fc.DropTail, capacity=4e6, delay=0.01)
    net.flow("a", fc.PrimalDual, route=["p", "q"], initial={"x": 5e5})
    pattern = {"kind": "poisson", "mean_rate": 1e6, "interval": 0.3}
    net.flow("b", fc.CBR(rate=5e5), route=["q"], pattern=pattern)
    agree(*cut(net, 3.0, 8.0), most=2e-7)
    net = dumbbell(buffer=2e5).flow("r", fc.StaticReno, route=["l"], initial={"W": 4.0})
    agree(*cut(net, 4.0, 8.0), most=3e-7)


def test_what_changes_at_the_restart_is_what_a_schedule_changes() -> None:
    """Capacities, starts and stops: the run in one part has them in its schedule."""
    new: Any = {"law": fc.CBR(rate=3e5), "route": ["l0", "l1"], "start": 5.0}
    whole_net = lot().with_link("l0", capacity=[(0, 3e6), (5, 2e6)]).flow("new", **new, stop=9.0)
    options: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-10}
    whole = fc.simulate(whole_net, 12.0, t_eval=np.linspace(5, 12, 71), **options)
    first = fc.simulate(lot().flow("new", **new), 5.0, **options)
    later = lot().with_link("l0", capacity=2e6).flow("new", **new, stop=9.0)
    agree(whole, fc.simulate(later, 12.0, restart=first, samples=71, **options), 2e-7)
    stopped = later.with_flow("a", stop=5.0)
    run = fc.simulate(stopped, 7.0, restart=first, **options)
    assert np.all(run.rate.sel(flow="a") == 0.0)


def test_new_parameters_are_felt_from_the_restart_on() -> None:
    """A constant rate that changes: at the source at once, at its queue an access delay later."""
    net = fc.Network().link("l", fc.DropTail, capacity=3e6, delay=0.02)
    net.flow("u", fc.CBR(rate=1e6), route=["l"], access_delay=0.3)
    first = fc.simulate(net, 2.0)
    net = net.with_flow("u", law=fc.CBR(rate=2e6))
    second = fc.simulate(net, 4.0, restart=first, t_eval=[2.0, 2.2, 2.4, 4.0])
    np.testing.assert_allclose(second.rate[:, 0], 2e6)
    np.testing.assert_allclose(second.arrival_rate[:, 0], [1e6, 1e6, 2e6, 2e6])
    np.testing.assert_allclose(second.entered[-1, 0], 2.3e6 + 1.7 * 2e6, rtol=1e-12)
    ldcc = fc.simulate(dumbbell(), 5.0)
    net = dumbbell().with_flow("f0", law=fc.LDCC(w=60e3))
    more, rest = fc.simulate(net, 400.0, restart=ldcc, samples=11), fc.equilibrium(net)
    np.testing.assert_allclose(more.rate[-1], rest.rate, rtol=1e-4)


@pytest.mark.parametrize("engine", ["h5netcdf", "scipy"])  # NetCDF 4, and 3 of the core alone
def test_the_state_survives_files_and_further_restarts(tmp_path: Path, engine: Any) -> None:
    net = lot()
    times = np.linspace(4, 6, 21)
    whole = fc.simulate(net, 6.0, t_eval=times)
    first = fc.simulate(net, 1.5)
    first.to_netcdf(tmp_path / "run.nc", engine=engine)
    with xr.open_dataset(tmp_path / "run.nc", engine=engine) as read:
        second = fc.simulate(net, 4.0, restart=read)
    third = fc.simulate(net, 6.0, restart=pickle.loads(pickle.dumps(second)), t_eval=times)
    agree(whole, third, 1e-5)


LOT = lot()
NEW: Any = {"law": fc.LDCC, "route": ["l0"]}
CROSS: Any = {"law": fc.LDCC(beta=0.5), "route": ["l0"], "return_delay": 0.07}
REFUSALS: list[tuple[fc.Network, dict[str, Any], str]] = [
    (LOT, {"restart": xr.Dataset()}, "without the attribute final_state; give a result of"),
    (LOT, {"until": 1.0}, "until is 1 s, and restart ends at 2 s; give a later time"),
    (LOT, {"until": 2.0}, "until is 2 s, and restart ends at 2 s; give a later time"),
    (LOT, {"delays": "frozen"}, "restart is from a run with delays='fifo'; give the same"),
    (LOT.without_flow("a"), {}, "restart has a flow 'a', which the network lacks"),
    (LOT.with_flow("a", law=fc.CBR, initial=None), {}, "law of flow 'a' is not that of the run"),
    (LOT.with_link("l1", delay=0.5), {}, "the delay of link 'l1' is 0.5 s, in restart 0.02 s"),
    (LOT.with_flow("a", access_delay=0.1), {}, "access_delay of flow 'a' is 0.1, in restart 0"),
    (LOT.with_flow("long", route=["l0"]), {}, "the route of flow 'long' is not that of the run"),
    (
        LOT.with_flow("a", start=1.0),
        {},
        "the start or stop so far of flow 'a' is not that of the run",
    ),
    (lot().flow("n", **NEW), {}, "flow 'n' is not in the run .* first run, with start=2"),
    (lot().link("n", fc.DualLink, capacity=1e6), {}, "link 'n' is not in the run of restart"),
    (LOT.without_flow("a").flow("a", **CROSS), {}, "flows are in another order .* long, a, b"),
    (LOT.with_flow("long", law=fc.LDCC(beta=0.3)), {"until": 2.001}, "before the new parameters"),
]


@pytest.mark.parametrize(("net", "options", "words"), REFUSALS)
def test_what_does_not_fit_is_refused_with_the_remedy(
    net: fc.Network, options: Any, words: str
) -> None:
    arguments: Any = {"until": 3.0, "restart": fc.simulate(LOT, 2.0)} | options
    with pytest.raises(InvalidInput, match=words):
        fc.simulate(net, **arguments)


DAMAGE: dict[str, Callable[[str], Any]] = {
    "nothing": lambda state: "",
    "all but the end": lambda state: state[:-1],
    "all but the last group": lambda state: state[:-4],
    "a letter swapped": lambda state: state[:200] + state[200:300].swapcase() + state[300:],
    "numbers": lambda state: np.zeros(3),
    "text": lambda state: "what is no state",
    "of another version": lambda state: packed({"about": np.frombuffer(b'{"version": 4}', "u1")}),
    "of something else": lambda state: packed({"time": np.zeros(2)}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_final_state_that_is_not_as_it_was_is_refused(damage: str) -> None:
    first = fc.simulate(dumbbell(), 0.5)
    changed = first.assign_attrs(final_state=DAMAGE[damage](first.final_state))
    with pytest.raises(InvalidInput, match=r"restart is damaged.*; give a result of simulate"):
        fc.simulate(dumbbell(), 1.0, restart=changed)


def test_a_buffer_must_hold_what_is_queued() -> None:
    first = fc.simulate(dumbbell(), 10.0)
    assert float(first.backlog[-1, 0]) > 1e4
    with pytest.raises(InvalidInput, match="the buffer of link 'l' is 10000 bit, and .* queued at"):
        fc.simulate(dumbbell(buffer=1e4), 20.0, restart=first)


@pytest.mark.parametrize("end", [4.0, 5.0, 5.562, 5.6])
def test_ticks_and_refractory_times_go_on(end: float) -> None:
    """Cut between jumps, on a tick, while losses are heard of, and in a refractory time."""
    rate, every = symbols("rate every", positive=True)
    sampled = fc.Source(
        "Sampled", {rate: 0}, {"rate": rate}, {every: 0.5}, {rate: "bit/s", every: "s"},
        initial={rate: 1e5}, ticks=(fc.Tick(every, {rate: 1.05 * rate}),),
    )  # fmt: skip
    net = fc.Network().link("l", fc.DropTail, capacity=1e7, delay=0.025, buffer=3e5)
    net.flow("a", fc.StaticAIMD, route=["l"]).flow(
        "b", sampled, route=["l"], access_delay=0.01, start=0
    )
    whole, first = (fc.simulate(net, stop, rtol=1e-9, atol=1e-12) for stop in (12.0, end))
    second = fc.simulate(net, 12.0, rtol=1e-9, atol=1e-12, restart=first)
    for of, size in ((fc.metrics.jumps, 3), (fc.metrics.ticks, 23)):
        times = np.concatenate([of(first).time, of(second).time])
        np.testing.assert_allclose(times, of(whole).time, atol=1e-8)
        assert len(times) >= size
    np.testing.assert_allclose(second.rate[-1], whole.rate[-1], rtol=1e-7)
