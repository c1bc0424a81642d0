"""What a run gives: a table of samples, marks and losses apart, states by name, and what is kept
beside: the final state, jumps and ticks.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.base.errors import InvalidInput
from fluidcc.symbols import RTT, c, nonnegative, pi, positive, q_max, y

LINK = {"capacity": "10 Mbit/s", "buffer": "50 packets"}
q, x, at = nonnegative("q"), positive("x"), positive("at")


def hybrid() -> fc.Network:
    return fc.dumbbell(
        {"a": fc.StaticAIMD, "b": fc.StaticAIMD, "c": fc.NADA8698}, LINK, rtt="60 ms"
    )


def _scipy(run: xr.Dataset, path: Path) -> xr.Dataset:
    run.to_netcdf(path / "run.nc", engine="scipy")
    with xr.open_dataset(path / "run.nc", engine="scipy") as read:
        return read.load()


def _h5netcdf(run: xr.Dataset, path: Path) -> xr.Dataset:
    run.to_netcdf(path / "run.nc", engine="h5netcdf")
    with xr.open_dataset(path / "run.nc", engine="h5netcdf") as read:
        return read.load()


def _zarr(run: xr.Dataset, path: Path) -> xr.Dataset:
    run.to_zarr(path / "run.zarr", zarr_format=2)
    return xr.open_zarr(path / "run.zarr").load()


def _pickled(run: xr.Dataset, path: Path) -> xr.Dataset:
    read: xr.Dataset = pickle.loads(pickle.dumps(run))
    return read


def _selected(run: xr.Dataset, path: Path) -> xr.Dataset:
    return run.isel(time=slice(None, None, 2)).sel(flow=["a", "b"])


@pytest.mark.parametrize("keep", [_scipy, _h5netcdf, _zarr, _pickled, _selected])
def test_a_run_is_a_table_and_what_is_beside_survives(keep: Any, tmp_path: Path) -> None:
    """The frame of a run: docs/questions/pandas.md; xarray multiplies all dimensions."""
    run = fc.simulate(hybrid(), 8.0, samples=101)
    assert dict(run.sizes) == {"time": 101, "flow": 3, "link": 1}
    assert len(run.to_dataframe()) == 101 * 3
    kept = keep(run, tmp_path)
    for of in (fc.metrics.jumps, fc.metrics.ticks):
        table = of(run)
        assert len(table) > 1
        assert table.time.is_monotonic_increasing
        assert of(kept).equals(table)
    assert len(fc.metrics.jumps(run)) == run.attrs["jumps"]
    np.testing.assert_array_equal(fc.metrics.breaks(kept), fc.metrics.breaks(run))
    more = [fc.simulate(hybrid(), 9.0, restart=one, samples=3) for one in (run, kept)]
    np.testing.assert_array_equal(more[0].rate, more[1].rate)


def test_what_lost_its_attributes_or_was_put_together_is_refused() -> None:
    run = fc.simulate(hybrid(), 1.0, samples=3)
    second = fc.simulate(hybrid(), 2.0, restart=run, samples=3)
    with pytest.raises(InvalidInput, match="no attribute 'instants'"):
        fc.metrics.jumps(run.drop_attrs())
    with pytest.raises(InvalidInput, match="up to 2 s, and a final state of 1 s.*; give the last"):
        fc.simulate(hybrid(), 3.0, restart=xr.concat([run, second], "time"))


def test_a_link_shows_what_it_marks() -> None:
    """RED's ratio by its average queue: the threads TL-System/ns.py#20 and dcgym/iroko#17."""
    net = fc.Network().link("l", fc.RED, capacity="10 Mbit/s", delay="5 ms")
    run = fc.simulate(net.flow("u", fc.CBR(rate=10.4e6), route=["l"]), until=20)
    assert run.avg.equals(run.RED_avg)
    avg = run.avg.values
    share = 0.1 * np.clip((avg - 0.04) / 0.08, 0, 1) + 0.9 * np.clip((avg - 0.12) / 0.12, 0, 1)
    np.testing.assert_allclose(run.link_mark, share, atol=1e-6)
    assert run.lost.max() == run.link_loss.max() == run.link_drop.max() == 0
    assert run.link_mark.attrs["units"] == "1"


BOTH = fc.Link(
    "Both", {q: (y - c) / c}, {"loss": (y - c) / y, "mark": at / 5, "drop": at / 4},
    {at: 1}, {q: "s", at: "1"}, queue=q, lower={q: 0}, upper={q: q_max}, initial={q: 0},
)  # fmt: skip
HEARS = fc.Source(  # a constant rate, all but a billionth
    "Hears", {x: -at * x * pi / RTT}, {"rate": x}, {at: 1e-9}, {x: "bit/s", at: "1"}, initial={x: 1}
)


@pytest.mark.parametrize("delays", ["fifo", "frozen"])
def test_marks_and_losses_of_flows_are_apart(delays: str) -> None:
    """Two links drop 1/4 before their queues and mark 1/5 of the rest; then a full buffer."""
    net = fc.Network().link("one", BOTH, capacity=9e6, delay=0.01)
    net.link("two", BOTH, capacity=9e6, delay=0.01)
    net.link("full", fc.DropTail, capacity=0.45e6, delay=0.01, buffer=1e4)
    net.flow("long", HEARS, route=["one", "two", "full"], initial={"x": 1.6e6})
    net.flow("short", HEARS, route=["one"], initial={"x": 1e5})
    net.flow("deaf", fc.CBR(rate=1e5), route=["one"])
    run = fc.simulate(net, 1.0, delays=delays, samples=3)
    last = run.isel(time=-1)
    full = float(last.link_loss.sel(link="full"))
    if delays == "fifo":
        assert full == pytest.approx(0.5, rel=1e-6)
    loss = [1 - 9 / 16 * (1 - full), 1 / 4, 1 - 3 / 4 * 4 / 5]
    np.testing.assert_allclose(last.loss, loss, rtol=1e-6)
    np.testing.assert_allclose(last.mark, [1 - (4 / 5) ** 2, 1 / 5, 0], rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(last.link_mark, [1 / 5, 1 / 5, 0], rtol=1e-6)
    np.testing.assert_allclose(last.link_drop, [1 / 4, 1 / 4, 0], rtol=1e-6)
    grid = {"short.initial.x": [1e5, 2e5]}
    names = ["final_loss", "final_mark", "final_link_mark", "final_link_drop"]
    swept = fc.sweep(net, grid, names, until=1.0, delays=delays, samples=3, progress=False)
    for name in names:
        found = swept[name].isel({"short.initial.x": 0})
        np.testing.assert_array_equal(found, last[name.partition("_")[2]])


def test_states_have_their_own_names_where_these_are_one_laws() -> None:
    run = fc.simulate(
        fc.dumbbell([fc.StaticAIMD, fc.StaticReno, fc.NADA], LINK, rtt="60 ms"), 1.0, samples=3
    )
    assert [name in run for name in ("StaticAIMD_W", "StaticReno_W", "W")] == [True, True, False]
    alone = fc.simulate(fc.dumbbell([fc.StaticAIMD, fc.CBR], LINK, rtt="60 ms"), 1.0, samples=3)
    np.testing.assert_array_equal(alone.W, alone.StaticAIMD_W)
    assert alone.W.attrs["units"] == "packet"
    assert fc.plot.timeseries(alone.isel(flow=0), ["rate", "W", "queueing_delay"]).shape == (3,)
    assert fc.plot.timeseries(alone.isel(flow=0, link=0), "queueing_delay").lines
