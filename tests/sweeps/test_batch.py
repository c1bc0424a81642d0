"""Runs in batches are the runs of `simulate`, bit for bit, whatever the axes change."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.numerics.fluid.many import FINAL, MAX, MEAN, MIN, STD, statistic
from fluidcc.sweeps.api import make_task
from fluidcc.sweeps.evaluate import evaluate, probed, releases_gil, values_at
from fluidcc.sweeps.measures import KINDS, VARIABLES
from fluidcc.sweeps.trajectories import Runs, runs_together, trajectories_of

ALL = [f"{kind}_{name}" for name in VARIABLES for kind in KINDS]


def network(**link: Any) -> fc.Network:
    net = fc.Network().link(
        "l", fc.DropTail, **{"capacity": "3 Mbit/s", "delay": "25 ms", "buffer": "0.06 s", **link}
    )
    net.flow("a", fc.LDCC, route=["l"])
    return net.flow("b", fc.LDCC, route=["l"], initial={"x": 3e5})


GRIDS: list[tuple[str, dict[str, Any], int, int]] = [
    ("parameters, one of which sets a start", {"w": [2e4, 3e4], "beta": [0.1, 0.2]}, 2, 1),
    ("a parameter of one flow", {"a.w": [2e4, 3e4], "b.initial.x": [1e5, 2e5]}, 2, 1),
    ("a start that is set and would follow", {"w": [2e4, 3e4], "a.initial.x": [1e5, 2e5]}, 2, 1),
    ("a buffer that follows from the capacity", {"capacity": [2e6, 3e6], "beta": [0.1, 0.3]}, 1, 1),
    (
        "delays that coincide",
        {"a.return_delay": [0.02, 0.03], "b.return_delay": [0.02, 0.03]},
        0,
        2,
    ),
    ("a buffer that is infinite", {"buffer": [1e5, float("inf")], "eta": [0.3, 0.4]}, 1, 2),
    ("starts and round trips", {"b.start": [1.0, 2.0], "rtt": [0.05, 0.06]}, 0, 1),
]


def runs_of(task: Any) -> Runs:
    """The runs of a task whose axes change numbers only."""
    runs = trajectories_of(task).runs_of(())
    assert runs is not None
    return runs


@pytest.mark.parametrize(
    ("grid", "free", "structures"), [g[1:] for g in GRIDS], ids=[g[0] for g in GRIDS]
)
@pytest.mark.parametrize("delays", ["fifo", "frozen"])
def test_a_batch_is_simulate_bit_for_bit(
    grid: dict[str, Any], free: int, structures: int, delays: str
) -> None:
    task = make_task(network(), grid, ALL, 4.0, None, {"delays": delays, "samples": 81})
    assert runs_together(task)
    runs = runs_of(task)
    points = np.arange(task.grid.size)
    values, errors, _ = runs.run(task.grid.places(points))
    assert errors == {}
    assert len(runs.own) == free, "axes that change numbers of their own"
    assert len(runs.structures) == structures
    for number in range(task.grid.size):
        alone = values_at(task, number).values
        for name in ALL:
            wanted = alone[name].values
            if name.endswith(("rtt", "utilisation")):  # made of other statistics
                np.testing.assert_allclose(
                    values[name][number], wanted, rtol=1e-12, atol=1e-12, err_msg=name
                )
            else:
                np.testing.assert_array_equal(values[name][number], wanted, err_msg=name)


@pytest.mark.parametrize("axis", ["beta", "w"])
def test_a_long_axis_of_a_parameter_needs_few_workspaces(
    axis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a start follows from it, as that of flow a from w."""
    built: list[Any] = []
    space = Runs._space

    def counted(self: Runs, values: dict[str, Any]) -> Any:
        built.append(values)
        return space(self, values)

    monkeypatch.setattr(Runs, "_space", counted)
    count = 40
    values = np.random.default_rng(3).permutation(
        np.linspace(0.1, 0.2, count) * (1.0 if axis == "beta" else 2e5)
    )
    task = make_task(network(), {axis: values, "eta": [0.3, 0.4]}, "final_rate", 4.0, None, {})
    found, errors, _ = runs_of(task).run(task.grid.places(np.arange(task.grid.size)))
    assert errors == {}
    assert len(built) <= 6
    for number in (1, 2 * int(np.argmax(values)), 16, 31, 77):
        wanted = values_at(task, number).values["final_rate"].values
        np.testing.assert_array_equal(found["final_rate"][number], wanted)


def test_a_window_and_a_ring_that_grows() -> None:
    """A long feedback lag keeps many steps in the history."""
    net = fc.Network().link("l", fc.DropTail, capacity=3e6, delay=0.025)
    net.flow("a", fc.LDCC(eta=0.1), route=["l"], return_delay=3.0)
    net.flow("b", fc.LDCC(eta=1.5), route=["l"], return_delay=0.02)
    given = {"b.eta": [1.4, 1.5], "a.beta": [0.1, 0.12]}
    task = make_task(
        net, given, ["mean_rate", "std_rate"], 12.0, (6, 12), {"rtol": 1e-9, "max_step": 0.02}
    )
    runs = runs_of(task)
    values, errors, _ = runs.run(task.grid.places(np.arange(4)))
    assert errors == {}
    (structure,) = runs.structures.values()
    before = runs._space({"b.eta": 1.4, "a.beta": 0.1})
    assert len(structure.space.F) > len(before.F), "the ring has grown"
    for number in range(4):
        alone = values_at(task, number).values
        for name in ("mean_rate", "std_rate"):
            np.testing.assert_array_equal(values[name][number], alone[name].values)


def test_random_traffic_by_seed() -> None:
    net = network()
    net.flow(
        "udp",
        fc.CBR,
        route=["l"],
        pattern={"kind": "poisson", "mean_rate": "1 Mbit/s", "interval": "10 ms"},
    )
    ds = fc.sweep(
        net, {"seed": [0, 1, 2], "beta": [0.1, 0.2]}, "mean_rate", until=2, executor="serial"
    )
    run = fc.simulate(
        net.with_flow("a", law=fc.LDCC(beta=0.2)).with_flow("b", law=fc.LDCC(beta=0.2)), 2, seed=2
    )
    np.testing.assert_allclose(ds.mean_rate[2, 1], fc.metrics.mean(run.rate), rtol=1e-12)
    assert len(set(ds.mean_rate.sel(flow="udp").values[:, 0])) == 3


def test_a_run_that_fails_says_what_simulate_says() -> None:
    net = network(delay=0.0).with_flow("b", access_delay=0.01, return_delay=0.01)
    ds = fc.sweep(net, {"a.return_delay": [0.0, 0.03]}, "mean_rate", until=1, executor="serial")
    assert "algebraic loop" in ds.error.values[0]
    assert np.isnan(ds.mean_rate[0]).all()
    assert np.isfinite(ds.mean_rate[1]).all()


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [(MEAN, 1.5), (STD, np.sqrt(35 / 12)), (MIN, -1.0), (MAX, 4.0), (FINAL, 4.0)],
)
def test_statistics_of_a_broken_line(kind: int, wanted: float) -> None:
    """Through (0, 2), (1, -1), (3, 4): the mean is (0.5 + 3)/3 and so on, computed by hand."""
    F = np.array([2.0, -1.0, 4.0, 0.0, 1.0, 3.0])
    mean = (0.5 * (2 - 1) * 1 + 0.5 * (-1 + 4) * 2) / 3
    if kind == MEAN:
        wanted = mean
    if kind == STD:  # integral of the square, piece by piece: (a^2 + ab + b^2)/3 times the length
        square = ((4 - 2 + 1) / 3 * 1 + (1 - 4 + 16) / 3 * 2) / 3
        wanted = np.sqrt(square - mean**2)
    assert statistic(kind, F, 0, 3, 3) == pytest.approx(wanted, rel=1e-14)


def test_threads_do_what_is_compiled_and_processes_the_rest() -> None:
    """Where nearly every point needs a workspace of its own, that is most of the work, and holds
    the GIL.
    """
    many = {"capacity": np.linspace(2e6, 4e6, 30), "beta": np.linspace(0.1, 0.2, 30)}
    assert releases_gil(make_task(network(), many, "mean_rate", 4.0, None, {}))
    delays = {**many, "a.return_delay": np.linspace(0.02, 0.1, 30), "beta": [0.1, 0.2]}
    assert not releases_gil(make_task(network(), delays, "mean_rate", 4.0, None, {}))
    both = make_task(network(), many, ["mean_rate", "critical_eta"], 4.0, None, {})
    assert not releases_gil(both)


def test_threads_share_the_workspaces_of_values() -> None:
    axes = {"capacity": [2e6, 3e6], "w": [2e4, 3e4]}
    task = probed(make_task(network(), axes, "mean_rate", 2.0, None, {}))
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: (trajectories_of(task), evaluate(task, range(4))), range(2)))
    assert both[0][0] is both[1][0]
    here = evaluate(task, range(4))
    for _, piece in both:
        assert piece.values["mean_rate"].tobytes() == here.values["mean_rate"].tobytes()
