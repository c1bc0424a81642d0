"""Points found together are those found one by one, however they are cut into chunks."""

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning
from fluidcc.sweeps.api import make_task
from fluidcc.sweeps.evaluate import evaluate, values_at, with_schema
from fluidcc.sweeps.measures import MEASURES, STABILITY

ALL = [name for name in MEASURES if name.startswith("equilibrium_")]
JUDGED = [*STABILITY]


def network() -> fc.Network:
    net = fc.Network().link("l", fc.DropTail, capacity="3 Mbit/s", delay="25 ms")
    net.link("m", fc.DropTail, capacity="4 Mbit/s", delay="10 ms", buffer="0.2 s")
    net.flow("a", fc.LDCC, route=["l", "m"])
    net.flow("b", fc.LDCC, route=["l"], return_delay="60 ms")
    return net.flow("udp", fc.CBR(rate="0.5 Mbit/s"), route=["m"])


GRIDS: dict[str, dict[str, Any]] = {
    "parameters": {"beta": [0.1, 0.2], "a.w": [1e4, 3e4], "udp.rate": [1e5, 2e6]},
    "a capacity and a buffer": {"capacity": [2e6, 5e6], "m.buffer": [1e5, "1 Mbit"]},
    "delays": {"l.delay": [0.01, 0.05], "a.access_delay": [0, 0.02], "b.return_delay": [0.05, 0.1]},
    "a buffer in seconds by capacity": {"m.buffer": ["0.1 s", "0.3 s"], "m.capacity": [2e6, 4e6]},
    "round trips beside delays": {"b.rtt": [0.09, 0.2], "l.delay": [0.01, 0.04]},
    "numbers of flows": {"a.count": [1, 3], "a.beta": [0.1, 0.2], "b.count": [0, 1]},
    "starts and stops": {"a.start": [0, 5], "b.stop": [10, math.inf], "beta": [0.1, 0.2]},
    "states and ends": {"a.initial.x": [1e5, 2e5], "until": [1.0, 2.0], "capacity": [3e6, 3.5e6]},
    "laws": {"b.law": [fc.LDCC, fc.LDCC(beta=0.2)], "a.beta": [0.1, 0.2]},
}


@pytest.mark.slow
@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_together_is_one_by_one(grid: dict[str, Any]) -> None:
    task = with_schema(make_task(network(), grid, [*ALL, *JUDGED], None, None, {}))
    together = evaluate(task, np.arange(task.grid.size))
    for number in range(task.grid.size):
        values, failed, _ = values_at(task, number)
        assert bool(failed) == bool(together.values["error"][number])
        for name, alone in values.items():
            row = np.full(task.schema[name].shape, np.nan, task.schema[name].dtype)
            task.schema[name].fill(alone, row, name)
            rtol, scale = (1e-8, np.nanmax(np.abs(row))) if name in ALL else (1e-6, 1.0)
            np.testing.assert_allclose(
                together.values[name][number], row, rtol, 1e-9 * (scale or 1.0),
                err_msg=f"{name} at {number}",
            )  # fmt: skip


def test_flows_that_have_stopped_are_left_out() -> None:
    grid = {"eta": [0.3, 2.5], "a.beta": [0.1, 0.2]}
    rest = network().without_flow("a")
    data = fc.sweep(network().with_flow("a", stop=10.0), grid, JUDGED, executor="serial")
    wanted = fc.sweep(rest, {"eta": grid["eta"]}, JUDGED, executor="serial")
    assert data.attrs["failed"] == 0
    for name in JUDGED:
        for k in range(2):
            np.testing.assert_allclose(data[name][:, k], wanted[name], rtol=1e-9, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 7])
def test_chunks_do_not_matter_to_the_last_bit(chunk: int) -> None:
    grid = {"eta": np.linspace(0.2, 3.0, 4), "capacity": [2e6, 3e6, 5e6], "b.count": [0, 1, 2]}
    whole = fc.sweep(network(), grid, [*ALL, *JUDGED], executor="serial", chunk=36)
    cut = fc.sweep(network(), grid, [*JUDGED, *ALL], executor="threads", workers=2, chunk=chunk)
    assert set(whole.stable.values.ravel().tolist()) == {0, 1}
    for name in whole.data_vars:
        assert cut[name].values.tobytes() == whole[name].values.tobytes()


def test_a_point_without_equilibrium_says_what_the_search_says() -> None:
    flows = {"a": fc.LDCC, "udp": fc.CBR(rate=1e5)}
    net = fc.dumbbell(flows, {"capacity": "1 Mbit/s"}, rtt="50 ms")
    grid = {"udp.rate": [1e5, 2e6], "beta": [0.1, 0.2]}
    with pytest.warns(FluidccWarning, match="2 of 4 points failed"):
        ds = fc.sweep(net, grid, ["equilibrium_rate", "equilibrium_full"])
    with pytest.raises(fc.errors.NoEquilibrium) as alone:
        fc.equilibrium(net.with_flow("udp", law=fc.CBR(rate=2e6)))
    said = f"NoEquilibrium: {' '.join(str(alone.value).split())}"
    assert ds.error.values[1, 0] == f"equilibrium_rate: {said}; equilibrium_full: {said}"
    assert ds.attrs["failed"] == 2
    assert np.isnan(ds.equilibrium_rate.values[1]).all()
    assert np.isnan(ds.equilibrium_full.values[1]).all()
    assert np.isfinite(ds.equilibrium_rate.values[0]).all()


def test_a_combination_that_no_network_can_have_fails_alone() -> None:
    """The way there is longer than the round trip that is asked for, at some of the delays."""
    grid = {"b.rtt": [0.03, 0.2], "l.delay": [0.01, 0.05]}
    with pytest.warns(FluidccWarning, match="1 of 4 points failed"):
        ds = fc.sweep(network(), grid, "equilibrium_rtt", executor="serial")
    assert (ds.error.values != "").tolist() == [[False, True], [False, False]]
    assert "its way there alone takes 0.05 s" in ds.error.values[0, 1]


@pytest.mark.parametrize("law", [fc.RED, fc.AdaptiveRED], ids=lambda law: law.name)
def test_parameters_that_must_fit_one_another_fail_where_they_do_not(law: Any) -> None:
    """Found together, run together, and one by one: that law ticks."""
    net = fc.Network().link("l", law, capacity="3 Mbit/s", delay="25 ms", buffer="1 Mbit")
    net.flow("a", fc.StaticReno, route=["l"])
    measures = ["equilibrium_rate", "mean_rate"] if law is fc.RED else ["mean_rate"]
    grid = {"min_th": [0.03, 0.1], "max_th": [0.05, 0.2]}
    with pytest.warns(FluidccWarning, match="1 of 4 points failed"):
        data = fc.sweep(net, grid, measures, until=1, executor="serial")
    told = "must hold, but min_th is 0.1 and max_th is 0.05"
    says = [told in text for text in data.error.values.ravel()]
    assert says == [False, False, True, False]
    assert np.isnan(data.mean_rate.values).ravel().tolist() == says
    with pytest.raises(fc.errors.LawError, match="min_th < max_th must hold, but min_th is 0.2"):
        fc.sweep(net, {"min_th": [0.03, 0.2]}, measures, until=1)


def test_nothing_is_compiled_and_no_network_is_built_for_a_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from numba.core import event

    grid = {"beta": np.linspace(0.1, 0.3, 20), "capacity": np.linspace(2e6, 5e6, 20)}
    measures = ["equilibrium_rate", "stable", "gain_margin"]
    task = with_schema(make_task(network(), grid, measures, None, None, {}))
    evaluate(task, np.arange(2))
    built: list[str] = []
    old = fc.Network.with_all

    def told(self: Any, *given: Any, **more: Any) -> Any:
        built.append(str(given))
        return old(self, *given, **more)

    monkeypatch.setattr(fc.Network, "with_all", told)
    task.point(0)
    assert built, "what is counted is what builds networks"
    del built[:]
    with event.install_recorder("numba:compile") as compiled:
        piece = evaluate(task, np.arange(400))
    assert compiled.buffer == []
    assert built == []
    assert np.isfinite(piece.values["equilibrium_rate"]).all()


def test_more_flows_than_the_network_bears_fail_and_the_fewer_do_not() -> None:
    """The results have the form of the largest network, though nothing is measured of it."""
    measures = ["equilibrium_rtt", "stable"]
    with pytest.warns(FluidccWarning, match="1 of 3 points failed"):
        data = fc.sweep(network(), {"a.count": [1, 2, 20]}, measures, executor="serial")
    assert data.sizes["flow"] == 22
    assert data.error.values.astype(bool).tolist() == [False, False, True]
    for row, flows in ((0, ["a", "b", "udp"]), (1, ["a", "a_2", "b", "udp"])):
        found = data.equilibrium_rtt.isel({"a.count": row}).dropna("flow")
        assert sorted(found.flow.values) == flows
    assert "queue grows without limit" in str(data.error.values[2])
