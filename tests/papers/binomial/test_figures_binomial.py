"""The figures of the binomial paper: what is drawn is what the claims compute, with units on the axes."""

from __future__ import annotations

import numpy as np
import pytest

from fluidcc.base.errors import InvalidInput
from fluidcc.papers.binomial import figures as figures_binomial
from fluidcc.papers.binomial.common import fig5
from fluidcc.plotting import convergence_plane


@pytest.mark.parametrize("name", [n for n in figures_binomial.FIGURES if n != "binomial_iscc"])
def test_axes_are_labelled_and_hold_finite_data(name: str) -> None:
    figure = figures_binomial.draw(name)
    for ax in figure.axes:
        assert "[" in ax.get_xlabel()
        assert ax.lines
        drawn = [np.asarray(line.get_ydata(), dtype=float) for line in ax.lines]
        assert all(np.all(np.isfinite(values)) for values in drawn)


def test_figure_5_draws_the_losses() -> None:
    growth, ratio = figures_binomial.draw("binomial_fig5").axes
    for name in ("AIMD1", "AIMD2", "IIAD"):
        line = next(line for line in ratio.lines if line.get_label() == name)
        assert np.asarray(line.get_ydata()) == pytest.approx(100 * fig5(name))
        line = next(line for line in growth.lines if line.get_label() == name)
        assert np.asarray(line.get_ydata())[-1] == pytest.approx(fig5(name)[-1] / fig5(name)[0])


def test_the_corners_of_cycles() -> None:
    path = figures_binomial.corners("AIMD", 3)
    assert path[::2].sum(axis=1) == pytest.approx(100)
    assert path[1] == pytest.approx([10, 40])  # half of (20, 80)
    assert path[2] == pytest.approx([35, 65])  # and up by the same


def test_the_plane_has_its_lines() -> None:
    ax = convergence_plane([[20, 80], [10, 40], [35, 65]], 100, label="AIMD", unit="Mbit/s")
    assert ax.get_xlabel() == "rate x [Mbit/s]"
    lines = {line.get_label(): np.asarray(line.get_xydata()) for line in ax.lines}
    assert lines["efficiency line"].sum(axis=1) == pytest.approx([100, 100])
    assert np.ptp(lines["fairness line"], axis=1) == pytest.approx([0, 0])
    assert lines["equi-fairness line"][1, 1] / lines["equi-fairness line"][1, 0] == pytest.approx(4)
    assert len(lines["AIMD"]) == 3


@pytest.mark.parametrize(("rates", "capacity"), [([[1, 2, 3]], 1), ([], 1), ([[1, np.nan]], 1), ([[1, 2]], 0)])
def test_planes_are_of_pairs(rates: list[list[float]], capacity: float) -> None:
    with pytest.raises(InvalidInput):
        convergence_plane(rates, capacity)
