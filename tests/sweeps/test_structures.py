"""Sweeps over numbers of flows and over laws: run together network by network, as they are one by
one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.sources import DCCP
from fluidcc.sweeps.api import WORTH, make_task
from fluidcc.sweeps.evaluate import evaluate, probed, values_at
from fluidcc.sweeps.measures import KINDS, VARIABLES
from fluidcc.sweeps.trajectories import runs_together, trajectories_of

ALL = [f"{kind}_{name}" for name in VARIABLES for kind in KINDS]
OTHER = fc.LDCC(w=3e4, eta=0.3)


def network() -> fc.Network:
    net = fc.Network().link("l", fc.DropTail, capacity="3 Mbit/s", delay="25 ms", buffer="0.06 s")
    net.flow("a", fc.LDCC, route=["l"])
    return net.flow("b", fc.LDCC, route=["l"], initial={"x": 3e5})


GRIDS: list[tuple[str, dict[str, Any], int]] = [
    ("numbers of flows", {"count": [1, 3], "beta": [0.1, 0.2]}, 0),
    (
        "the number of some, last",
        {"a.beta": [0.1, 0.2], "capacity": [2e6, 3e6], "a.count": [2, 0, 3]},
        0,
    ),
    ("nothing else", {"b.count": [0, 1, 2]}, 0),
    (
        "round trips of copies",
        {"a.rtt": [0.06, 0.1], "a.count": [1, 2], "a.initial.x": [1e5, 2e5]},
        0,
    ),
    (
        "laws, and their parameters",
        {"a.beta": [0.1, 0.2], "a.law": [fc.LDCC, OTHER], "b.eta": [0.2, 0.4]},
        0,
    ),
    ("a law that jumps", {"a.law": [fc.LDCC, DCCP], "b.beta": [0.1, 0.2]}, 2),
    ("no flow at all", {"count": [1, 0]}, 1),
]


@pytest.mark.parametrize(("grid", "alone"), [g[1:] for g in GRIDS], ids=[g[0] for g in GRIDS])
def test_together_is_one_by_one(grid: dict[str, Any], alone: int) -> None:
    task = probed(make_task(network(), grid, ALL, 3.0, None, {"samples": 41}))
    assert runs_together(task)
    points = np.arange(task.grid.size)
    piece = evaluate(task, points)
    assert len(trajectories_of(task).run(points, list(task.measures)).left) == alone
    for number in points.tolist():
        values, failed, _ = values_at(task, number)
        assert bool(failed) == (number in piece.errors)
        for name in task.schema:
            row = np.full(task.schema[name].shape, np.nan)
            if name in values:
                task.schema[name].fill(values[name], row, name)
            if name.endswith(("rtt", "utilisation")):  # made of other statistics
                np.testing.assert_allclose(
                    piece.values[name][number], row, rtol=1e-12, atol=1e-12, err_msg=name
                )
            else:
                np.testing.assert_array_equal(piece.values[name][number], row, err_msg=name)


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


def test_many_points_of_many_flows_can_be_run() -> None:
    """No step is compiled for each number of flows, and none is asked for that has no room for
    them.
    """
    grid = {
        "count": [1, 2, 12],
        "beta": np.linspace(0.05, 0.2, 40),
        "eta": np.linspace(0.2, 0.4, 25),
    }
    task = probed(make_task(network(), grid, "mean_rate", 1.0, None, {}))
    assert task.options["engine"] == "array"
    assert task.grid.size >= WORTH
    piece = evaluate(task, np.array([0, 1000, 2999]))
    assert piece.errors == {}
    assert np.isfinite(piece.values["mean_rate"]).sum(axis=1).tolist() == [2, 4, 24]


def test_nothing_is_compiled_for_a_number_of_flows() -> None:
    from numba.core import event

    grid = {"count": [1, 2], "beta": [0.1, 0.2]}
    fc.sweep(network(), grid, "mean_rate", until=2, executor="serial")
    with event.install_recorder("numba:compile") as compiled:
        fc.sweep(network(), {**grid, "count": [3, 4, 5]}, "mean_rate", until=2, executor="serial")
    assert compiled.buffer == []
