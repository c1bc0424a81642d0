"""The figures: what is drawn are the runs and equilibria, with units on the axes."""

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import UnknownName
from fluidcc.papers import reproduction
from fluidcc.papers.ldcc import common as ldcc_common
from fluidcc.papers.ldcc import figures as figures_ldcc
from fluidcc.papers.model import claims_of
from fluidcc.papers.tables import Table

FIGURES = {
    name: draw
    for paper in fc.claims.papers()
    for name, draw in import_module(f"fluidcc.papers.{paper}.figures").FIGURES.items()
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_axes_are_labelled_and_hold_data(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures_ldcc, "POINTS", 8)
    monkeypatch.setattr(figures_ldcc, "CONSERVING", 2)
    figure = FIGURES[name]()
    assert any(ax.get_xlabel() for ax in figure.axes)
    for ax in figure.axes:
        assert ax.lines or ax.get_label() == "<colorbar>"
        drawn = [np.asarray(line.get_ydata(), dtype=float) for line in ax.lines]
        assert all(np.any(np.isfinite(y)) for y in drawn if y.size)
        for text in filter(None, (ax.get_xlabel(), ax.get_ylabel())):
            assert "[1]" not in text, "a plain number has no unit"
            assert "_" not in re.sub(r"\$.*?\$", "", text), "a raw name"


def test_a_figure_is_had_by_its_name() -> None:
    assert "LDCC, Fig. 2" in fc.claims.figure("ldcc_fig2").axes[0].get_title()
    with pytest.raises(UnknownName, match="no figure 'ldcc_fg2'; did you mean 'ldcc_fig2'"):
        fc.claims.figure("ldcc_fg2")


def test_figure_2_is_the_penalty() -> None:
    (ax,) = figures_ldcc.fig2().axes
    delay, v = (np.asarray(values, dtype=float) for values in ax.lines[0].get_data())
    assert v == pytest.approx(0.1 * np.maximum(delay / 1e3 - 0.1, 0) / (delay / 1e3 + 0.025))


def test_figure_5_draws_the_run() -> None:
    top = figures_ldcc.fig5().axes[0]
    line = next(line for line in top.lines if line.get_label() == "flow2")
    assert np.asarray(line.get_ydata()) * 1e6 == pytest.approx(
        ldcc_common.run("ldcc_fig5").rate.sel(flow="flow2").values
    )


def test_a_flow_that_is_off_has_no_delay_in_the_picture() -> None:
    below = figures_ldcc.fig10().axes[1]
    t, delay = next(line for line in below.lines if line.get_label() == "flow3").get_data()
    assert np.all(np.isnan(np.asarray(delay, dtype=float)[np.asarray(t) < 99]))


@pytest.mark.slow
def test_what_is_exact_lies_above_every_condition_that_is_a_theorem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(figures_ldcc, "POINTS", 6)
    monkeypatch.setattr(figures_ldcc, "CONSERVING", 2)
    for ax in figures_ldcc.delay_driven().axes[:8]:
        lines = {
            str(line.get_label()): np.asarray(line.get_ydata(), dtype=float) for line in ax.lines
        }
        exact = lines["exact, frozen delays"]
        assert np.all(lines["convex hull, exact radius"] <= 1.001 * exact)
        if "M = 1" in ax.get_title():  # one queue: frozen delays or not
            inside = exact[[0, -1]] < 9
            assert lines["exact, queues conserve flow"][inside] == pytest.approx(
                exact[[0, -1]][inside], rel=6e-3
            )
    for ax in figures_ldcc.loss_driven().axes:
        lines = {
            str(line.get_label()): np.asarray(line.get_ydata(), dtype=float) for line in ax.lines
        }
        for name in ("Vinnicombe", "Johari-Tan"):
            assert np.all(lines[name] <= 1.006 * lines["exact"])


def test_reproduce_writes_the_same_files_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {"ldcc_fig2": figures_ldcc.fig2, "tour": lambda: reproduction._scenario("tour")}
    claims = [claim for claim in claims_of("ldcc") if claim.place == "(16)"]
    monkeypatch.setattr(reproduction, "papers", lambda: ("ldcc",))
    monkeypatch.setattr(reproduction, "_figures", lambda paper: few)
    monkeypatch.setattr(reproduction, "_other", dict)
    monkeypatch.setattr(reproduction, "claims_of", lambda paper: claims)
    for folder in ("a", "b"):
        rows = fc.claims.reproduce(tmp_path / folder, progress=False)
        assert isinstance(rows, Table)
    files = sorted(p.name for p in (tmp_path / "a").iterdir())
    assert files == ["claims.md", "ldcc_fig2.png", "tour.png"]
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    text = (tmp_path / "a" / "claims.md").read_text()
    assert "1 claims: 1 proved" in text
    assert "| ldcc.utility | (16) |" in text


def test_every_ready_scenario_has_a_picture() -> None:
    assert set(fc.scenarios) <= set(reproduction._drawings())


def test_the_curves_of_a_figure_are_had_as_numbers() -> None:
    found, axes = fc.claims.data("fast_fig2a"), fc.claims.figure("fast_fig2a").axes
    (ax,) = axes
    assert found.sizes["line"] == len(ax.get_lines())
    for k, line in enumerate(ax.get_lines()):
        shown = found.isel(line=k).dropna("point")
        assert shown.y.values.tolist() == np.asarray(line.get_ydata()).tolist()
    assert set(found.ylabel.values) == {ax.get_ylabel()}
    run = fc.scenarios["fast_fig2a"].simulate(rtol=1e-6)  # by itself the same
    assert found.y.values[0] == pytest.approx(run.rate.values[:, 0] / 1e6)
