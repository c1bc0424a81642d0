"""Trajectories by fixed steps, eight points side by side: as exact as free steps, and handed back if they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from sympy import symbols

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, InvalidInput
from fluidcc.sweeps.file import load_sweep
from fluidcc.sweeps.measures import KINDS, VARIABLES
from fluidcc.symbols import e

CAPACITY = 3e6
ALL = [f"{kind}_{name}" for name in VARIABLES for kind in KINDS]
HOW: dict[str, Any] = {"until": 10, "delays": "frozen", "samples": 81, "executor": "serial"}
EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-14}  # of less error than any fixed step here

x, g, T = symbols("x g T", positive=True)
DRAIN = fc.Source(
    name="Drain", flow={x: g * (T - e)}, out={"rate": x}, params={g: 2e6, T: 0.2},
    units={x: "bit/s", g: "bit/s^3", T: "s"}, initial={x: 1e6},
)  # fmt: skip


def busy(backs: tuple[float, ...] = (0.025, 0.025, 0.025), eta: float = 2.0, links: int = 1) -> fc.Network:
    """Flows on links whose queues are there from the start, and stay; all are beyond the kink of their law."""
    net = fc.Network()
    for l in range(links):
        net.link(f"l{l}", fc.DropTail, capacity=CAPACITY / links, delay=0.025, initial={"q": 0.1067})
    for k, back in enumerate(backs):
        rate = {"x": (0.8e6 + 0.2e6 * k) / links if links == 1 else 1.4e6 + 0.1e6 * k}
        net.flow(f"f{k}", fc.LDCC(eta=eta), route=[f"l{k % links}"], return_delay=back, initial=rate)
    return net


def largest(first: Any, second: Any, names: list[str]) -> float:
    """The largest difference of measures, each over the largest value of what it is a statistic of."""
    off = []
    for name in names:
        variable = name.partition("_")[2]
        size = second[f"max_{variable}" if f"max_{variable}" in second else name]
        off.append(float(abs(first[name] - second[name]).max()) / (float(abs(size).max()) or 1.0))
    return max(off)


CASES: dict[str, tuple[fc.Network, dict[str, Any]]] = {
    "parameters": (busy(), {"w": [1.9e4, 2.1e4], "beta": [0.1, 0.11, 0.12, 0.13, 0.14]}),
    "the feedback delay, so that steps differ": (busy(), {"rtt": [0.05, 0.06, 0.075], "eta": [1.0, 2.0]}),
    "delays that are no multiples": (busy((0.035, 0.047, 0.175)), {"f1.return_delay": [0.041, 0.06], "eta": [1.0, 2]}),
    "capacities and starts": (busy(), {"capacity": [3e6, 3.1e6], "f0.initial.x": [0.8e6, 0.9e6]}),
    "a queue that stands still until the start": (busy(), {"f2.initial.x": [0.9e6, 1.3e6], "rtt": [0.05, 0.06]}),
    "two links": (busy((0.025, 0.025), links=2), {"f0.w": [1.9e4, 2.1e4], "l1.capacity": [1.5e6, 1.6e6]}),
}


@pytest.mark.parametrize("case", CASES)
def test_every_statistic_is_that_of_tight_free_steps(case: str) -> None:
    net, grid = CASES[case]
    found = fc.sweep(net, grid, ALL, step="20 ms", rtol=1e-4, **HOW)
    assert found.attrs["handed_back"] == 0
    assert np.all(found.handed_back == "")
    assert largest(found, fc.sweep(net, grid, ALL, **HOW, **EXACT), ALL) < 1e-5


def test_a_law_whose_solution_is_known() -> None:
    """x' = g (T - e), q' = x - c, e = p + q(t - p - b)/c: polynomials from one feedback delay to the next."""
    forward, back, until, queue = 0.025, 0.075, 0.3, 0.4
    net = fc.Network().link("l", fc.DropTail, capacity=CAPACITY, delay=forward, initial={"q": queue})
    net.flow("a", DRAIN, route=["l"], return_delay=back, initial={"x": 1.1 * CAPACITY})
    gains = np.array([1e6, 2e6, 3e6])
    found = fc.sweep(
        net, {"g": gains}, ["final_rate", "final_backlog"], step="50 ms", rtol=0.01, **{**HOW, "until": until}
    )
    assert found.attrs["handed_back"] == 0
    for k, gain in enumerate(gains):
        lag, rate, heard = forward + back, Polynomial([1.1 * CAPACITY]), Polynomial([queue * CAPACITY])
        backlog = heard
        for _ in range(round(until / lag)):
            rate = (gain * (0.2 - forward - heard / CAPACITY)).integ(k=rate(lag) if rate.degree() else 1.1 * CAPACITY)
            backlog = (rate - CAPACITY).integ(k=backlog(lag) if backlog.degree() else queue * CAPACITY)
            heard = backlog
        assert found.final_rate.values[k, 0] == pytest.approx(rate(lag), rel=1e-9)
        assert found.final_backlog.values[k, 0] == pytest.approx(backlog(lag), rel=1e-9)


@pytest.mark.parametrize(
    ("backs", "gain"), [((0.025, 0.025, 0.025), 100), ((0.035, 0.047, 0.175), 8)], ids=["on nodes", "between nodes"]
)
def test_a_quarter_of_the_step_has_far_less_of_the_error(backs: tuple[float, ...], gain: float) -> None:
    """Order four: 256 in the limit; two, or 16, where what the start sends round arrives within steps."""
    net, grid, names = busy(backs, eta=3.0), {"w": [1.9e4, 2.1e4]}, ["max_rate", "std_rate"]
    exact = fc.sweep(net, grid, names, **HOW, **EXACT)
    errors = [largest(fc.sweep(net, grid, names, step=step, rtol=0.1, **HOW), exact, names) for step in (0.05, 0.0125)]
    assert errors[0] < 1e-3
    assert errors[1] < errors[0] / gain


def test_who_does_not_suit_is_handed_back_and_told() -> None:
    """The same bits as without a step, and why."""
    full = busy().with_link("l0", buffer=0.11 * CAPACITY).with_flow("f0", initial={"x": 1.5e6})
    for net, step, rtol, reason in (
        (busy().with_link("l0", initial={"q": 0.0}), 0.02, 1e-6, "a queue is empty"),
        (full, 0.02, 1e-2, "a queue is full"),
        (busy().with_link("l0", initial={"q": 0.05}), 0.02, 1e-2, "a law changes its branch"),
        (busy(eta=4.0), 0.05, 1e-8, "the error of a step exceeds the tolerance"),
        (busy(), 1e-4, 1e-6, "the steps are too many"),
    ):
        grid, names = {"w": [1.9e4, 2.1e4], "beta": [0.1, 0.11]}, ["mean_rate", "max_backlog"]
        with pytest.warns(FluidccWarning, match=f"4 of 4 points were run by free steps.*{reason}; give a smaller step"):
            found = fc.sweep(net, grid, names, step=step, rtol=rtol, **HOW)
        assert set(found.handed_back.values.ravel()) == {reason}
        assert found.attrs["handed_back"] == 4
        free = fc.sweep(net, grid, names, rtol=rtol, **HOW)
        for name in names:
            np.testing.assert_array_equal(found[name], free[name])


def test_only_those_that_do_not_suit_are_handed_back() -> None:
    grid = {"l0.initial.q": [0.05, 0.1067], "eta": [0.5, 1.0, 2.0]}
    found = fc.sweep(busy(), grid, ["mean_rate"], step=0.02, rtol=1e-4, **HOW)
    free = fc.sweep(busy(), grid, ["mean_rate"], rtol=1e-4, **HOW)
    np.testing.assert_array_equal(found.handed_back != "", [[True] * 3, [False] * 3])
    np.testing.assert_array_equal(found.mean_rate[0], free.mean_rate[0])
    assert not np.array_equal(found.mean_rate[1], free.mean_rate[1])


@pytest.fixture(scope="module")
def many() -> tuple[dict[str, Any], Any]:
    """A sweep some of whose points share lanes and some do not, and some are handed back."""
    grid = {"rtt": [0.05, 0.055, 0.06], "eta": np.linspace(0.5, 3.0, 7), "l0.initial.q": [0.05, 0.1067]}
    return grid, fc.sweep(busy(), grid, ALL, step=0.02, rtol=1e-4, **HOW)


@pytest.mark.parametrize(
    "how", [{"chunk": 1}, {"chunk": 5}, {"executor": "threads", "workers": 2}, {"executor": "processes", "workers": 2}]
)
def test_bits_do_not_depend_on_who_runs_beside(how: dict[str, Any], many: tuple[dict[str, Any], Any]) -> None:
    grid, once = many
    again = fc.sweep(busy(), grid, ALL, step=0.02, rtol=1e-4, **{**HOW, **how})
    for name in (*ALL, "handed_back"):
        np.testing.assert_array_equal(again[name], once[name], err_msg=name)


def test_bits_do_not_depend_on_the_order_of_the_points(many: tuple[dict[str, Any], Any]) -> None:
    grid, once = many
    turned = {name: np.asarray(values)[::-1] for name, values in grid.items()}
    again = fc.sweep(busy(), turned, ["mean_rate", "final_rtt"], step=0.02, rtol=1e-4, **HOW)
    for name in ("mean_rate", "final_rtt"):
        np.testing.assert_array_equal(again[name].values[::-1, ::-1, ::-1], once[name])


def test_a_store_goes_on_and_knows_the_step(many: tuple[dict[str, Any], Any], tmp_path: Path) -> None:
    grid, once = many
    how = {**HOW, "store": tmp_path / "s.zarr", "rtol": 1e-4, "chunk": 9}
    for _ in range(2):
        again = fc.sweep(busy(), grid, ALL, step=0.02, **how)
        for name in (*ALL, "handed_back"):
            np.testing.assert_array_equal(again[name], once[name], err_msg=name)
    with pytest.raises(InvalidInput, match="step"):
        fc.sweep(busy(), grid, ALL, step=0.01, **how)


def test_nothing_is_compiled_for_a_point() -> None:
    from numba.core import event

    grid: dict[str, Any] = {"eta": np.linspace(0.5, 3.0, 7), "rtt": [0.05, 0.06], "capacity": [3e6, 3.1e6]}
    fc.sweep(busy(), {k: v[:1] for k, v in grid.items()}, ["mean_rate"], step=0.02, rtol=1e-4, **HOW)
    with event.install_recorder("numba:compile") as compiled:
        found = fc.sweep(busy(), grid, ["mean_rate", "std_rate"], step=0.02, rtol=1e-4, **HOW)
    assert found.attrs["handed_back"] == 0
    assert compiled.buffer == []


AQM = busy().with_link("l0", law=fc.RED)
REFUSED: list[tuple[Any, dict[str, Any], dict[str, Any], str]] = [
    (busy(), {"eta": [0.4]}, {"delays": "fifo"}, "need delays='frozen'"),
    (busy(), {"count": [1, 2]}, {}, "numbers of flows or laws are swept"),
    (busy().with_flow("f1", access_delay=0.01), {"eta": [0.4]}, {}, "'f1' has an access delay"),
    (busy().with_flow("f1", start=1.0), {"eta": [0.4]}, {}, "'f1' starts, stops"),
    (AQM, {"eta": [0.4]}, {}, "RED is more than a smooth law"),
    (busy(), {"eta": [0.4]}, {"step": 0.0}, "step is 0"),
    (busy(), {"eta": [0.4]}, {"step": "2 bit"}, "step"),
    (busy((0.02,) * 9), {"eta": [0.4]}, {}, "9 flows"),
    (lambda p: busy(), {"eta": [0.4]}, {}, "no trajectory"),
]


@pytest.mark.parametrize(("model", "grid", "more", "said"), REFUSED, ids=[r[3] for r in REFUSED])
def test_what_no_point_can_do_is_refused(model: Any, grid: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        fc.sweep(model, grid, "mean_rate", **{**HOW, "step": 0.02, **more})


def test_a_measure_of_its_own_is_no_trajectory() -> None:
    with pytest.raises(InvalidInput, match="no trajectory is measured"):
        fc.sweep(busy(), {"eta": [0.4]}, "equilibrium_rtt", step=0.02)


def test_a_sweep_file_may_give_a_step(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        """
        scenario = "ldcc_fig5"
        measure = "mean_rate"
        until = "3 s"
        [grid]
        eta = [0.3, 0.4]
        [options]
        delays = "frozen"
        step = "20 ms"
        """
    )
    scenario, given, _ = load_sweep(tmp_path / "s.toml")
    with pytest.raises(InvalidInput, match="step is given, but flow"):  # it crosses several links, or starts later
        fc.sweep(scenario, given.pop("grid"), given.pop("measure"), **given)
