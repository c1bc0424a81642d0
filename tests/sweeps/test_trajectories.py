"""Runs of many points are the runs of `simulate`, bit for bit, whatever the axes change."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning
from fluidcc.simulation.workspace import Workspace
from fluidcc.sources import DCCP
from fluidcc.sweeps.api import WORTH, make_task
from fluidcc.sweeps.evaluate import evaluate, values_at, with_schema
from fluidcc.sweeps.execute import best_executor
from fluidcc.sweeps.measures import TRAJECTORIES, statistic
from fluidcc.sweeps.task import Piece, empty_piece
from fluidcc.sweeps.trajectories import Trajectories, runs_together, trajectories_of

ALL = [*TRAJECTORIES]
OTHER = fc.LDCC(w=3e4, eta=0.3)


def network(**link: Any) -> fc.Network:
    path = {"name": "l", "capacity": "3 Mbit/s", "delay": "25 ms", "buffer": "0.06 s"}
    return fc.dumbbell({"a": fc.LDCC, "b": {"law": fc.LDCC, "initial": {"x": 3e5}}}, path | link)


def as_alone(task: Any, piece: Piece, points: Any) -> None:
    """Each result of some points is that of the point alone."""
    for number in points:
        values, failed, _ = values_at(task, int(number))
        assert bool(failed) == bool(piece.values["error"][number])
        for name, variable in task.schema.items():
            row = np.full(variable.shape, np.nan)
            if name in values:
                variable.fill(values[name], row, name)
            got = piece.values[name][number]
            np.testing.assert_array_equal(got, row, err_msg=name)


GRIDS: dict[str, tuple[dict[str, Any], int, int, int]] = {
    "parameters, one of which sets a start": ({"w": [2e4, 3e4], "beta": [0.1, 0.2]}, 2, 1, 0),
    "a start that is set": ({"w": [2e4, 3e4], "a.initial.x": [1e5, 2e5]}, 2, 1, 0),
    "a buffer that follows": ({"capacity": [2e6, 3e6], "beta": [0.1, 0.3]}, 1, 1, 0),
    "delays that coincide": (
        {"a.return_delay": [0.02, 0.03], "b.return_delay": [0.02, 0.03]}, 0, 2, 0
    ),
    "a buffer that is infinite": ({"buffer": [1e5, float("inf")], "eta": [0.3, 0.4]}, 1, 2, 0),
    "starts and round trips": ({"b.start": [1.0, 2.0], "rtt": [0.05, 0.06]}, 0, 1, 0),
    "the number of some, last": (
        {"a.beta": [0.1, 0.2], "capacity": [2e6, 3e6], "a.count": [2, 0, 3]}, 1, 3, 0
    ),
    "round trips of copies": (
        {"a.rtt": [0.06, 0.1], "a.count": [1, 2], "a.initial.x": [1e5, 2e5]}, 1, 2, 0
    ),
    "laws, and their parameters": (
        {"a.beta": [0.1, 0.2], "a.law": [fc.LDCC, OTHER], "b.eta": [0.2, 0.4]}, 2, 1, 0
    ),
    "a law that jumps": ({"a.law": [fc.LDCC, DCCP], "b.beta": [0.1, 0.2]}, 1, 1, 2),
    "no flow at all": ({"count": [1, 0]}, 0, 1, 1),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("grid", "alone", "structures", "left"), GRIDS.values(), ids=GRIDS)
def test_runs_together_are_simulate_bit_for_bit(
    grid: dict[str, Any], alone: int, structures: int, left: int
) -> None:
    task = with_schema(make_task(network(), grid, ALL, 3.0, None, {"samples": 41}))
    assert runs_together(task)
    points, runs = np.arange(task.grid.size), trajectories_of(task)
    as_alone(task, evaluate(task, points), points)
    assert len(runs.alone) == alone
    assert len(runs.structures) == structures
    assert len(runs.run(points, [*task.measures], empty_piece(task.schema, len(points)))) == left


def test_each_law_starts_as_it_says() -> None:
    """Also where laws differ in nothing but that, and the start follows from a swept parameter."""
    x = next(iter(fc.LDCC.initial))
    later = replace(fc.LDCC, initial={x: fc.LDCC.initial[x] / 5})
    grid = {"a.law": [fc.LDCC, later], "a.w": [2e4, 3e4, 4e4]}
    net = network().without_flow("b")
    task = with_schema(make_task(net, grid, ALL, 2.0, None, {"samples": 41}))
    as_alone(task, evaluate(task, range(6)), range(6))
    assert trajectories_of(task).alone == [1]


def test_frozen_delays_too() -> None:
    grid = {"capacity": [2e6, 3e6], "b.start": [0.0, 1.0], "beta": [0.1, 0.2]}
    task = with_schema(
        make_task(network(), grid, ALL, 4.0, None, {"delays": "frozen", "samples": 81})
    )
    as_alone(task, evaluate(task, range(8)), range(8))


def test_a_long_axis_of_a_parameter_needs_few_workspaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a start follows from it, as that of flow a from w."""
    built: list[Any] = []
    space = Trajectories._space

    def counted(self: Trajectories, values: dict[str, Any]) -> Any:
        built.append(values)
        return space(self, values)

    monkeypatch.setattr(Trajectories, "_space", counted)
    values = np.random.default_rng(3).permutation(np.linspace(2e4, 4e4, 40))
    grid = {"w": values, "eta": [0.3, 0.4]}
    task = with_schema(make_task(network(), grid, "final_rate", 4.0, None, {}))
    piece = evaluate(task, np.arange(task.grid.size))
    assert len(built) <= 6
    as_alone(task, piece, (1, 2 * int(np.argmax(values)), 16, 31, 77))


def test_a_window_and_a_ring_that_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long feedback lag keeps many steps in the history."""
    laws = {"a": (0.1, 3.0), "b": (1.5, 0.02)}
    flows = {n: {"law": fc.LDCC(eta=eta), "return_delay": d} for n, (eta, d) in laws.items()}
    net = fc.dumbbell(flows, {"capacity": 3e6, "delay": 0.025})
    given = {"b.eta": [1.4, 1.5], "a.beta": [0.1, 0.12]}
    how = {"rtol": 1e-9, "max_step": 0.02}
    grown, grow = [], Workspace.grow_ring

    def noted(space: Workspace) -> bool:
        grown.append(space)
        return grow(space)

    monkeypatch.setattr(Workspace, "grow_ring", noted)
    task = with_schema(make_task(net, given, ["mean_rate", "std_rate"], 12.0, (6, 12), how))
    as_alone(task, evaluate(task, range(4)), range(4))
    assert grown, "the ring has grown"


def test_a_ramp_deviates_from_its_mean_as_uniform_numbers_do() -> None:
    times, row = np.array([0.0, 0.5, 2.0]), np.array([[1.0, 2.0, 5.0]])
    assert statistic("std", row, times) == pytest.approx(4 / np.sqrt(12))


def test_random_traffic_by_seed() -> None:
    pattern = {"kind": "poisson", "mean_rate": "1 Mbit/s", "interval": "10 ms"}
    net = network().flow("udp", fc.CBR, route=["l"], pattern=pattern)
    grid = {"seed": [0, 1, 2], "beta": [0.1, 0.2]}
    ds = fc.sweep(net, grid, "mean_rate", until=2, executor="serial")
    for name in "ab":
        net = net.with_flow(name, law=fc.LDCC(beta=0.2))
    run = fc.simulate(net, 2, seed=2)
    np.testing.assert_allclose(ds.mean_rate[2, 1], fc.metrics.mean(run.rate), rtol=1e-12)
    assert len(set(ds.mean_rate.sel(flow="udp").values[:, 0])) == 3


def test_a_run_that_fails_says_what_simulate_says() -> None:
    net = network(delay=0.0).with_flow("b", access_delay=0.01, return_delay=0.01)
    with pytest.warns(FluidccWarning, match="the first, at a.return_delay = 0: InvalidInput: flow"):
        ds = fc.sweep(net, {"a.return_delay": [0.0, 0.03]}, "mean_rate", until=1, executor="serial")
    assert "algebraic loop" in ds.error.values[0]
    assert np.isnan(ds.mean_rate[0]).all()
    assert np.isfinite(ds.mean_rate[1]).all()


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("mean", 3.5 / 3), ("std", np.sqrt((1 + 26 / 3) / 3 - (3.5 / 3) ** 2)), ("min", -1.0),
     ("max", 4.0), ("final", 4.0)],
)  # fmt: skip
def test_statistics_of_a_broken_line(kind: str, wanted: float) -> None:
    """Through (0, 2), (1, -1), (3, 4): integrals by hand, of the square (a^2 + ab + b^2)/3 long."""
    values, times = np.array([[2.0, -1.0, 4.0]]), np.array([0.0, 1.0, 3.0])
    assert statistic(kind, values, times) == pytest.approx(wanted, rel=1e-14)


@pytest.mark.parametrize(
    ("measure", "short", "long"),
    [("stable", "threads", "threads"), ("mean_rate", "threads", "processes"),
     (["mean_rate", "critical_eta"], "processes", "processes"),
     (lambda point: 1.0, "processes", "processes")],
)  # fmt: skip
def test_threads_do_what_is_compiled_and_processes_the_rest(
    measure: Any, short: str, long: str
) -> None:
    pytest.importorskip("joblib")
    pytest.importorskip("cloudpickle")
    until = None if measure == "stable" else 4.0
    task = make_task(network(), {"beta": [0.1, 0.2]}, measure, until, None, {})
    assert best_executor(task, 2.0) == short
    assert best_executor(task, 200.0) == long


def test_threads_share_the_workspaces_of_values() -> None:
    axes = {"capacity": [2e6, 3e6], "w": [2e4, 3e4]}
    task = with_schema(make_task(network(), axes, "mean_rate", 2.0, None, {}))
    here = evaluate(task, range(4))
    with ThreadPoolExecutor(2) as pool:
        for piece in pool.map(lambda _: evaluate(task, range(4)), range(2)):
            assert piece.values["mean_rate"].tobytes() == here.values["mean_rate"].tobytes()


@pytest.mark.parametrize("order", [["a.law", "a.beta"], ["a.beta", "a.law"]])
def test_a_parameter_is_that_of_the_swept_law(order: list[str]) -> None:
    """In whatever order the axes are given."""
    axes = {"a.law": [fc.LDCC, OTHER], "a.beta": [0.11, 0.22]}

    def seen(point: Any) -> dict[str, float]:
        law = point.net.flows["a"].law
        return {"beta": law.parameter("beta"), "w": law.parameter("w")}

    data = fc.sweep(network(), {name: axes[name] for name in order}, seen, executor="serial")
    data = data.transpose("a.law", "a.beta")
    assert data.beta.values.tolist() == [[0.11, 0.22]] * 2
    assert data.w.values.tolist() == [[2e4, 2e4], [3e4, 3e4]]


def test_many_points_of_many_flows_can_be_run_and_nothing_is_compiled_for_them() -> None:
    """No step is compiled for a number of flows, nor asked for without room for them."""
    from numba.core import event

    long = {"beta": np.linspace(0.05, 0.2, 40), "eta": np.linspace(0.2, 0.4, 25)}
    few = with_schema(make_task(network(), {"count": [1, 2], **long}, "mean_rate", 1.0, None, {}))
    evaluate(few, range(1))
    task = with_schema(
        make_task(network(), {"count": [1, 2, 12], **long}, "mean_rate", 1.0, None, {})
    )
    assert task.options["engine"] == "array"
    assert task.grid.size >= WORTH
    with event.install_recorder("numba:compile") as compiled:
        piece = evaluate(task, np.array([0, 1000, 2999]))
    assert compiled.buffer == []
    assert not any(piece.values["error"])
    assert np.isfinite(piece.values["mean_rate"]).sum(axis=1).tolist() == [2, 4, 24]
