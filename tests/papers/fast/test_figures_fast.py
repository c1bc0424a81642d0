"""The figures on FAST: what is drawn is what the claims compute, with units on the axes."""

from __future__ import annotations

import numpy as np
import pytest

from fluidcc.papers.fast import figures as figures_fast
from fluidcc.papers.fast.common import METHODS, ratios


@pytest.mark.parametrize("name", figures_fast.FIGURES)
def test_axes_are_labelled_and_hold_data(name: str) -> None:
    (ax,) = figures_fast.draw(name).axes
    assert "[" in ax.get_xlabel()
    assert "[" in ax.get_ylabel()
    named = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
    assert len(named) >= 2
    assert all(np.any(np.isfinite(np.asarray(line.get_ydata(), dtype=float))) for line in named)


def test_figure_3_draws_the_ratios() -> None:
    (ax,) = figures_fast.draw("fast_fig3a").axes
    for method in METHODS:
        line = next(line for line in ax.lines if line.get_label() == method)
        assert np.asarray(line.get_ydata()) == pytest.approx(ratios(method, "rtt"))
