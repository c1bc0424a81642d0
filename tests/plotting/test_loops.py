"""Pictures of loops: what is drawn, not how it looks."""

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import InvalidInput
from tests.analysis import networks

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def _line(ax: object, label: str) -> np.ndarray:
    (line,) = [l for l in ax.get_lines() if str(l.get_label()).startswith(label)]  # type: ignore[attr-defined]
    return np.asarray(line.get_xydata())


def test_nyquist_marks_the_margins_on_the_loci() -> None:
    report = fc.stability(networks.parking_lot())
    ax = fc.plot.nyquist(report)
    ((x, y),) = _line(ax, "gain margin")
    assert (x, y) == pytest.approx((-1 / report.gain_margin, 0))
    ((x, y),) = _line(ax, "phase margin")
    assert np.hypot(x, y) == pytest.approx(1)
    assert np.degrees(np.angle(-(x + 1j * y))) == pytest.approx(report.phase_margin)
    on_locus = np.linalg.eigvals(report.open(1j * report.crossover))
    assert np.abs(on_locus - (x + 1j * y)).min() < 1e-6
    assert "rad" not in ax.get_xlabel()
    circle = np.add(_line(ax, "modulus margin"), [1, 0])
    assert np.hypot(*circle.T) == pytest.approx(report.modulus_margin)


def test_bode_shows_one_at_the_crossover() -> None:
    report = fc.stability(networks.one_link())
    above, below = fc.plot.bode(report, low=0.01, high=50)
    curve = _line(above, "eigenlocus")
    at = np.exp(np.interp(np.log(report.crossover), np.log(curve[:, 0]), np.log(curve[:, 1])))
    assert at == pytest.approx(1, rel=1e-2)
    assert curve[:, 0].min() >= 0.0099
    assert "rad/s" in below.get_xlabel()


@pytest.mark.parametrize(("eta", "verdict"), [(0.4, "stable"), (4.0, "unstable")])
def test_root_map_has_the_roots(eta: float, verdict: str) -> None:
    net = fc.dumbbell([fc.LDCC(eta=eta)] * 4, {"capacity": "3 Mbit/s"}, rtt="50 ms")
    ax = fc.plot.root_map(net, count=6)
    assert ax.get_title().startswith(verdict)
    drawn = _line(ax, "closed loop") @ [1, 1j]
    np.testing.assert_allclose(drawn, fc.linearize(net).roots(count=6))
    assert len(_line(ax, "differences in flow1 (x4)")) == 1
    assert _line(fc.plot.root_map(fc.DelayLTI.transfer([1], [1, 0])), "decay rate 0 1/s").size == 4


def test_chart_of_a_boundary() -> None:
    net = fc.dumbbell([fc.LDCC], {"capacity": "1 Mbit/s"}, rtt="50 ms")
    curve: Any = fc.stability_boundary(
        net, "eta", along="capacity", along_bounds=("0.8 Mbit/s", "1.2 Mbit/s")
    )
    ax = fc.plot.stability_chart(curve)
    np.testing.assert_allclose(_line(ax, "boundary"), np.column_stack([curve.x / 1e6, curve.y]))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("capacity [Mbit/s]", r"$\eta$")
    with pytest.raises(InvalidInput, match="labels has 2 entries for 1 curves"):
        fc.plot.stability_chart(curve, labels=["a", "b"])


def test_a_return_ratio_of_ones_own_is_drawn_smoothly() -> None:
    loop = fc.DelayLTI.transfer([2], [1, 1], delay=1.0)
    ax = fc.plot.nyquist(loop)
    ((x, y),) = _line(ax, "gain margin")
    assert (x, y) == pytest.approx((-1 / loop.margins().gain, 0))
    curve = _line(ax, "eigenloci") @ [1, 1j]
    bends = np.diff(np.unwrap(np.angle(np.diff(curve[np.abs(curve) > 0.3]))))
    assert np.abs(bends).max() < np.radians(5)
    whole: Any = _line(ax, "eigenloci") @ [1, 1j]
    for tip, branch in zip(ax.texts, (whole, whole[::-1].conj()), strict=True):
        end, start = (np.argmin(np.abs(branch - complex(*at))) for at in (tip.xy, tip.xyann))  # type: ignore[attr-defined]
        assert end > start  # towards higher frequency
    assert _line(fc.plot.bode(loop)[0], "eigenlocus").shape[0] > 1000
    omega, phase = np.asarray(fc.plot.bode(loop)[1].get_lines()[0].get_xydata()).T
    np.testing.assert_allclose(phase, -np.degrees(omega + np.arctan(omega)), rtol=1e-9)
    with pytest.raises(InvalidInput, match="is square"):
        fc.plot.nyquist(fc.DelayLTI([[-1.0]], [[1.0, 1.0]], [[1.0]], [[0.0, 0.0]]))
    with pytest.raises(InvalidInput, match="the return ratio itself"):
        fc.plot.nyquist(loop, at="links")


def test_only_networks_and_reports_are_drawn() -> None:
    with pytest.raises(InvalidInput, match="give a Network or a StabilityReport.*, not 3"):
        fc.plot.nyquist(3)
