"""Charts of sweeps: what is drawn is what was measured."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, UnknownName


def measured(p: Any) -> dict[str, Any]:
    return {"stable": bool(p["x"] + p["y"] < 1.0), "gain_margin": 1.0 / (p["x"] + p["y"] + 0.1),
            "condition": bool(p["x"] + p["y"] < 0.5)}  # fmt: skip


def boundaries(ax: Any) -> list[Any]:
    """Where the lines of a chart are."""
    lines = [c for c in ax.collections if len(c.get_linestyles()) and not c.get_fill()]
    return [
        np.concatenate([p.vertices for p in line.get_paths() if len(p.vertices)]) for line in lines
    ]


@pytest.mark.slow
def test_the_boundary_and_conditions_are_where_they_are() -> None:
    n = 41
    axis = np.linspace(0, 1, n)
    ds = fc.sweep(measured, {"x": axis, "y": axis}, executor="serial")
    ax: Any = fc.plot.stability_chart(ds, over=["condition"])
    sums = [np.sum(places, axis=1) for places in boundaries(ax)]
    for wanted in (1.0, 0.5):
        assert any(np.all(np.abs(s - wanted) <= 2 / (n - 1)) for s in sums), wanted
    assert ax.get_xlabel() == "$x$"
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert texts == ["stable: boundary", "condition"]
    assert [a.get_ylabel() for a in ax.figure.axes][1] == "gain margin"
    plt.close(ax.figure)


def test_conditions_may_come_from_another_sweep() -> None:
    some, many, more = (np.linspace(0, 1, n) for n in (5, 41, 81))
    fine = fc.sweep(measured, {"x": many, "y": many}, executor="serial")
    rough = fc.sweep(measured, {"y": some, "x": more}, executor="serial")
    ax: Any = fc.plot.stability_chart(fine, over={"the paper's": rough.condition})
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert texts == ["stable: boundary", "the paper's"]
    np.testing.assert_allclose(boundaries(ax)[-1].sum(axis=1), 0.5, atol=0.26)
    plt.close(ax.figure)
    ax = fc.plot.stability_chart(fine, over={"a margin": rough.gain_margin / (1 / 0.8)})
    np.testing.assert_allclose(boundaries(ax)[-1].sum(axis=1), 0.7, atol=0.03)
    plt.close(ax.figure)
    with pytest.raises(InvalidInput, match="must be a DataArray over x and y"):
        fc.plot.stability_chart(fine, over={"the paper's": rough.condition[0]})


@pytest.mark.slow
def test_with_the_decay_rate_the_boundary_is_exact() -> None:
    net = fc.dumbbell([fc.LDCC], {"capacity": "1 Mbit/s"}, rtt="50 ms")
    edges = (0.8e6, 1.2e6)
    curve: Any = fc.stability_boundary(net, "eta", along="capacity", along_bounds=edges)
    grid = {"capacity": np.linspace(*edges, 9), "eta": np.linspace(1.2, 2.4, 13)}
    ds = fc.sweep(net, grid, ["stable", "decay_rate"], refine="stable", executor="serial")
    ax: Any = fc.plot.stability_chart(ds, value="decay_rate")
    x, y = boundaries(ax)[-1].T
    np.testing.assert_allclose(y, np.interp(x, curve.x / 1e6, curve.y), atol=5e-3)
    assert ax.get_ylabel() == r"$\eta$"
    plt.close(ax.figure)


@pytest.mark.parametrize("measure", ["decay_rate", "critical_gain", "gain_margin"])
def test_a_slow_mode_does_not_bend_the_boundary(measure: str) -> None:
    """Where flows become equal slowly, the decay rate of the stable side is another root's."""
    net = fc.dumbbell([fc.LDCC] * 2, {"capacity": "10 Mbit/s"}, rtt="50 ms")
    grid = {"capacity": [9e6, 10e6, 11e6], "eta": np.linspace(0.2, 3, 15)}
    ds = fc.sweep(net, grid, ["stable", measure], executor="serial")
    ax: Any = fc.plot.stability_chart(ds)
    x, y = boundaries(ax)[-1].T
    exact: Any = fc.stability_boundary(net, "eta")
    order = np.argsort(x)
    assert np.interp(10.0, x[order], y[order]) == pytest.approx(exact.value, rel=0.01)
    plt.close(ax.figure)


def test_one_verdict_everywhere_and_logarithmic_axes() -> None:
    ds = fc.sweep(measured, {"x": [0.001, 0.01, 0.1], "y": [0.01, 0.02, 0.03]}, executor="serial")
    ax: Any = fc.plot.stability_chart(ds)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    plt.close(ax.figure)


def test_mistakes_are_named() -> None:
    ds = fc.sweep(measured, {"x": [0.1, 0.2], "y": [0.1, 0.2]}, executor="serial")
    with pytest.raises(UnknownName, match="'stabel'; did you mean 'stable'"):
        fc.plot.stability_chart(ds, verdict="stabel")
    with pytest.raises(InvalidInput, match="over x with 2, y with 1: fix"):
        fc.plot.stability_chart(ds.isel(y=[0]))
    with pytest.raises(InvalidInput, match="labels are for curves"):
        fc.plot.stability_chart(ds, labels=["a"])


def test_a_sweep_over_three_axes_is_drawn_where_one_is_fixed() -> None:
    def shifted(p: Any) -> dict[str, Any]:
        return {"stable": bool(p["x"] + p["y"] < p["z"])}

    n = 21
    grid = {"x": np.linspace(0, 1, n), "z": [0.5, 1.0], "y": np.linspace(0, 1, n)}
    ds = fc.sweep(shifted, grid, executor="serial")
    with pytest.raises(InvalidInput, match="this one is over x with 21, z with 2, y"):
        fc.plot.stability_chart(ds)
    ax: Any = fc.plot.stability_chart(ds.sel(z=0.5))
    np.testing.assert_allclose(boundaries(ax)[-1].sum(axis=1), 0.5, atol=2 / (n - 1))
    plt.close(ax.figure)
    for few, told in ((ds.isel(x=0, z=0), "over y"), (ds.isel(x=0, y=0, z=0), "over none")):
        with pytest.raises(InvalidInput, match=f"two axes, .*; this one is {told}"):
            fc.plot.stability_chart(few)
