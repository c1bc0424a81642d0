"""What makes a result doubtful is told of each point of a sweep as of that result alone."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, InvalidInput
from fluidcc.sweeps import Refine
from fluidcc.sweeps.api import make_task
from fluidcc.sweeps.evaluate import evaluate, with_schema
from fluidcc.sweeps.measures import Point
from fluidcc.sweeps.task import empty_piece
from fluidcc.sweeps.trajectories import runs_together

TRACKED = "has never seen its path empty"
SMALL = "timeouts and single packets then rule"


def windows(**link: Any) -> fc.Network:
    """Windows of about 17 packets in all."""
    path = {"name": "l", "capacity": "2 Mbit/s", "delay": "25 ms", "buffer": "100 kbit"}
    return fc.dumbbell(
        {"a": fc.StaticReno, "b": {"law": fc.StaticReno, "return_delay": "60 ms"}}, path | link
    )


def newcomer() -> fc.Network:
    """The second flow meets the queue of the first."""
    flow = {"law": fc.FAST(alpha=20), "return_delay": "10 ms"}
    link = {"name": "l", "capacity": "10 Mbit/s", "delay": "10 ms"}
    return fc.dumbbell({"a": flow, "b": {**flow, "start": 4}}, link)


def sweep(*given: Any, **more: Any) -> xr.Dataset:
    says = "points carry a warning, in the variable 'warning'; the first, at "
    with pytest.warns(FluidccWarning, match=says):
        return fc.sweep(*given, progress=False, **more)


CASES: dict[str, tuple[fc.Network, dict[str, Any], str]] = {
    "numbers in the workspace": (windows(), {"initial.W": [1, 5], "a.a": [1, 0.01]}, SMALL),
    "axes that move the network": (
        windows(), {"capacity": [2e6, 2e5], "buffer": [1e5, 2e4], "l.delay": [0.02, 0.05]}, SMALL
    ),
    "numbers of flows": (windows(), {"a.count": [1, 9], "capacity": [1e6, 2e6]}, SMALL),
    "a tracker, by a delay and a parameter": (
        newcomer(), {"l.delay": [0.01, 0.02], "b.start": [0, 4], "a.alpha": [20, 18]}, TRACKED
    ),
}  # fmt: skip


@pytest.mark.parametrize(("net", "grid", "says"), CASES.values(), ids=CASES)
def test_together_says_what_each_result_says(
    net: fc.Network, grid: dict[str, Any], says: str
) -> None:
    steady = ["equilibrium_rate", "stable"] if says == SMALL else ["final_rtt"]
    measures = ["mean_rate", *steady]
    task = with_schema(make_task(net, grid, measures, 12.0, (6, 12), {"samples": 61}))
    piece = evaluate(task, np.arange(task.grid.size))
    assert runs_together(task)
    told = piece.values["warning"].tolist()
    assert not any(piece.values["error"])
    assert not all(told)
    assert any(says in text for text in told)
    for number in range(task.grid.size):
        point = task.point(number)
        assert isinstance(point, Point)
        alone = point.sampled.attrs["warnings"].split("; ")
        if says == SMALL:
            alone += [*fc.equilibrium(point.net).warnings, *fc.stability(point.net).warnings]
        assert told[number] == "; ".join(dict.fromkeys(text for text in alone if text))


def test_a_warning_of_the_structure_stands_at_every_point() -> None:
    """Here no samples are looked at: nothing in a run makes it more or less doubtful."""
    net = fc.Network().link("l", fc.DropTail, capacity="2 Mbit/s", delay="25 ms")
    net.flow("lone", fc.ECF, route=["l"])
    given: Any = ({"a.beta": [0.1, 0.2]}, "mean_rate")
    data = sweep(net.flow("a", fc.LDCC, route=["l"]), *given, until=2, executor="serial")
    assert all("no router on the route of lone" in text for text in data.warning.values.tolist())
    quiet = fc.sweep(net.without_flow("lone"), *given, until=2, executor="serial")
    assert "warning" not in quiet
    assert quiet.attrs["warned"] == 0


def test_every_way_to_compute_a_sweep_keeps_them(tmp_path: Path) -> None:
    grid = {"capacity": np.linspace(2e5, 2e6, 6), "a.count": [1, 4]}
    given: Any = (windows(), grid, ["mean_rate", "equilibrium_rate"])
    whole = sweep(*given, until=4, executor="serial")
    assert 0 < whole.attrs["warned"] < 12
    for executor in ("threads", "processes"):
        other = sweep(*given, until=4, executor=executor, workers=2, chunk=5)
        xr.testing.assert_identical(other.warning, whole.warning)
    kept = sweep(*given, until=4, executor="serial", store=tmp_path / "s", chunk=3)
    (tmp_path / "s" / "digest" / "c" / "0").unlink()
    again = sweep(*given, until=4, executor="serial", store=tmp_path / "s")
    read = sweep(*given, until=4, executor="serial", store=tmp_path / "s")
    for other in (kept, again, read):
        xr.testing.assert_identical(other.drop_attrs(), whole.drop_attrs())


def test_a_refined_sweep_has_those_of_the_points_that_it_measures() -> None:
    net = fc.dumbbell([fc.StaticReno], {"capacity": "1 Mbit/s", "buffer": "100 kbit"}, rtt="50 ms")
    grid = {"capacity": np.linspace(1e5, 4e6, 9), "buffer": np.linspace(1e4, 4e5, 9)}
    data = sweep(net, grid, "stable", refine=Refine("stable", step=4), executor="serial")
    every = sweep(net, grid, "stable", executor="serial")
    assert 0 < data.attrs["warned"] <= data.attrs["measured"]
    told = np.where(data.measured.values, every.warning.values, "")
    np.testing.assert_array_equal(data.warning.values, told)


def test_points_that_are_measured_one_by_one() -> None:
    """Limit cycles, runs of laws that jump, and functions of a point."""
    link = {"capacity": "10 Mbit/s", "delay": "25 ms", "buffer": "300 kbit"}

    def queue(point: Point) -> float:
        return float(point.run.backlog.max())

    measures = ["limit_cycle_period", "mean_rate", queue]
    grid = {"capacity": ["0.2 Mbit/s", "10 Mbit/s"], "buffer": ["5 kbit", "300 kbit"]}
    data = sweep(fc.dumbbell([fc.StaticAIMD], link), grid, measures, until=20)
    assert data.attrs["failed"] == 0
    assert SMALL in data.warning.values[0, 0]
    assert data.warning.values[1, 1] == ""


def test_what_a_function_is_warned_of_stands_at_its_point() -> None:
    def one(point: Any) -> float:
        net = fc.Network()
        for l in range(point["links"]):
            net.link(f"l{l}", fc.DropTail, capacity=3e6, delay=0.01)
        return fc.equilibrium(net.flow("f", fc.LDCC, route=list(net.link_names))).rtt.item()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        data = fc.sweep(one, {"links": [1, 2]}, executor="serial")
    assert len(told) == 1
    first = "1 of 2 points carry a warning, in the variable 'warning'; the first, at links = 2"
    assert str(told[0].message).startswith(first)
    assert told[0].filename == __file__
    assert data.warning.values[0] == ""
    assert "one of a continuum: nothing determines l0.q, l1.q" in data.warning.values[1]


def test_a_text_that_is_part_of_another_is_said_too() -> None:
    piece = empty_piece({}, 1)
    piece.doubt(0, ["flow 'a' rests; why", "rests", "rests", ""])
    piece.doubt(0, ["flow 'a' rests; why", "flow 'a'"])
    assert piece.values["warning"][0] == "flow 'a' rests; why; rests; flow 'a'"


@pytest.mark.parametrize("name", ["error", "warning"])
def test_no_measure_may_have_the_name_of_what_is_said_of_points(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"a measure is named '{name}', as results name what"):
        fc.sweep(windows(), {"a.b": [0.4, 0.5]}, {name: "equilibrium_rate"})
    with pytest.raises(InvalidInput, match=f"a measure is named '{name}'"):
        fc.sweep(lambda point: {name: 1.0}, {"x": [1, 2]})
