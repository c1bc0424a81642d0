"""Pictures show the numbers of the result, in the units that their labels say."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.colours import colour
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.plotting.common import in_symbols, scaled

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def one_link() -> Any:
    net = fc.dumbbell(
        {"a": fc.LDCC, "b": {"law": fc.LDCC, "start": 2}, "udp": fc.CBR(rate="0.5 Mbit/s")},
        {"capacity": [(0, "3 Mbit/s"), (6, "2 Mbit/s")]},
        rtt="50 ms",
    )
    return fc.simulate(net, until=10.0, samples=101)


@pytest.fixture(scope="module")
def two_links() -> Any:
    return fc.simulate(fc.scenarios["ldcc_fig10"].net, until=10.0, samples=51)


def lines(ax: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in ax.get_lines()}


def test_rates_in_megabits_and_delays_in_milliseconds(one_link: Any) -> None:
    top, bottom = fc.plot.timeseries(one_link)
    assert top.get_ylabel() == "rate [Mbit/s]"
    assert bottom.get_ylabel() == "queueing delay [ms]"
    assert bottom.get_xlabel() == "time [s]"
    np.testing.assert_array_equal(lines(top)["b"].get_xdata(), one_link.time)
    np.testing.assert_allclose(
        lines(top)["b"].get_ydata(), one_link.rate.sel(flow="b") / 1e6, rtol=1e-12
    )
    np.testing.assert_allclose(
        lines(bottom)["bottleneck"].get_ydata(), one_link.queueing_delay[:, 0] * 1e3, rtol=1e-12
    )


def test_the_sum_of_all_and_the_capacity_of_one_link(one_link: Any) -> None:
    ax = fc.plot.timeseries(one_link, "rate")
    np.testing.assert_allclose(
        lines(ax)["sum"].get_ydata(), one_link.rate.sum("flow") / 1e6, rtol=1e-12
    )
    capacity = lines(ax)["capacity"]
    assert capacity.get_linestyle() == "--"
    assert set(capacity.get_ydata()) == {3.0, 2.0}
    assert np.all(np.where(one_link.time < 6, 3.0, 2.0) == capacity.get_ydata())
    part = fc.plot.timeseries(one_link, "rate", flows=["a", "b"])
    assert set(lines(part)) == {"a", "b", "capacity"}
    assert "capacity" not in lines(fc.plot.timeseries(one_link[["rate"]], "rate"))  # which has none


def test_several_links_have_no_common_capacity(two_links: Any) -> None:
    assert set(lines(fc.plot.timeseries(two_links, "rate"))) == {"flow1", "flow2", "flow3", "udp"}
    arrivals = lines(fc.plot.timeseries(two_links, "arrival_rate"))
    assert set(arrivals) == {"link1", "link2", "capacity"}  # equal ones are drawn once


def test_one_colour_for_a_flow_in_every_picture(one_link: Any) -> None:
    whole = fc.plot.timeseries(one_link, "rate")
    part = fc.plot.timeseries(one_link, "rtt", flows="udp")
    assert lines(whole)["udp"].get_color() == lines(part)["udp"].get_color() == colour(2)


def test_runs_are_compared_in_one_picture(one_link: Any) -> None:
    faster = one_link.assign(rate=(2 * one_link.rate).assign_attrs(one_link.rate.attrs))
    ax = fc.plot.compare(one_link, faster, labels=["as it is", "twice"], flows=["a", "b"])
    drawn = lines(ax)
    assert set(drawn) == {"a, as it is", "b, as it is", "a, twice", "b, twice", "capacity"}
    np.testing.assert_array_equal(
        drawn["a, twice"].get_ydata(), 2 * drawn["a, as it is"].get_ydata()
    )
    assert drawn["a, twice"].get_color() == drawn["a, as it is"].get_color()
    assert drawn["a, twice"].get_linestyle() != drawn["a, as it is"].get_linestyle()
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] > drawn["b, twice"].get_ydata().max()
    for runs, labels in (([one_link], None), ([one_link] * 2, ["a"]), ([one_link] * 5, None)):
        with pytest.raises(InvalidInput, match="compare takes 2 to 4 runs and as many labels"):
            fc.plot.compare(*runs, labels=labels)
    with pytest.raises(UnknownName, match="no variable 'rte'"):
        fc.plot.compare(one_link, faster, variable="rte")


@pytest.mark.parametrize(
    ("name", "unit", "label"),
    [
        ("near.eta", "1", r"$\eta$ of near"),
        ("T_s", "s", "$T_{s}$ [ms]"),
        ("GCC_A", "bit/s", "$A$ of GCC [Mbit/s]"),
        ("return_delay", "s", "return delay [ms]"),
        ("b.return_delay", "s", "b.return delay [ms]"),
        ("gain_margin", "1", "gain margin"),
    ],
)
def test_symbols_are_as_in_the_law(name: str, unit: str, label: str) -> None:
    assert in_symbols(scaled(name, unit)[0], name) == label


def test_states_are_drawn_for_the_flows_that_have_them(one_link: Any) -> None:
    ax = fc.plot.timeseries(one_link, "LDCC_x")
    assert set(lines(ax)) == {"a", "b"}
    assert ax.get_ylabel() == "$x$ of LDCC [Mbit/s]"
    assert fc.plot.timeseries(one_link, "loss").get_ylabel() == "loss"


def test_into_given_axes(one_link: Any) -> None:
    figure, (left, right) = plt.subplots(1, 2)
    assert fc.plot.timeseries(one_link, "rate", ax=left) is left
    drawn = fc.plot.timeseries(one_link, ("rate", "rtt"), ax=(left, right))
    assert list(drawn) == [left, right]
    assert left.get_xlabel() == "time [s]"  # not shared, so it keeps its label
    assert len(plt.get_fignums()) == 1
    assert figure.axes == [left, right]


def test_the_legend_hides_no_data(one_link: Any) -> None:
    ax = fc.plot.timeseries(one_link, "rate")
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().x0 > ax.get_window_extent().x1
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert texts == ["a", "b", "udp", "sum", "capacity"]


def test_below_one_another_each_line_is_named_once(one_link: Any) -> None:
    rate, delay, queue = fc.plot.timeseries(one_link, ("rate", "one_way_delay", "queueing_delay"))
    assert delay.get_legend() is None
    assert delay.get_ylabel() == "one-way delay [ms]"
    assert [t.get_text() for t in queue.get_legend().get_texts()] == ["bottleneck"]
    assert [a.get_xlabel() for a in (rate, delay, queue)] == ["", "", "time [s]"]


def test_of_many_flows_some_are_named() -> None:
    link, trips = {"capacity": "30 Mbit/s"}, [0.05 + 0.001 * k for k in range(30)]
    ax = fc.plot.timeseries(
        fc.simulate(fc.dumbbell([fc.LDCC] * 30, link, trips), 1.0, samples=50), "one_way_delay"
    )
    assert len(ax.get_lines()) == 30
    assert len(ax.get_legend().get_texts()) == 12
    assert ax.get_legend().get_title().get_text() == "12 of 30"
    alike = fc.simulate(fc.dumbbell([fc.LDCC] * 30, link, "50 ms"), 1.0, samples=5)
    assert [line.get_label() for line in fc.plot.timeseries(alike, "one_way_delay").lines] == [
        "flow1 and 29 alike"
    ]
    few = fc.simulate(fc.dumbbell([fc.LDCC] * 2, link, "50 ms"), 1.0, samples=5)
    assert len(fc.plot.timeseries(few, "one_way_delay").lines) == 2


def test_a_result_read_back_from_a_file(one_link: Any, tmp_path: Any) -> None:
    import xarray as xr

    one_link.to_netcdf(tmp_path / "r.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "r.nc", engine="h5netcdf") as back:
        ax = fc.plot.timeseries(back, "rate")
    np.testing.assert_allclose(
        lines(ax)["a"].get_ydata(), one_link.rate.sel(flow="a") / 1e6, rtol=1e-12
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"variables": "rte"}, "the result has no variable 'rte'; did you mean 'rate'"),
        ({"flows": ["c"]}, "the result has no flow 'c'; it may be a, b, udp"),
        ({"links": "bottelneck"}, "the result has no link 'bottelneck'; did you mean 'bottleneck'"),
    ],
)
def test_names_that_are_not_there(one_link: Any, given: dict[str, Any], says: str) -> None:
    with pytest.raises(UnknownName, match=says):
        fc.plot.timeseries(one_link, **given)


def test_axes_for_each_variable(one_link: Any) -> None:
    with pytest.raises(InvalidInput, match="1 axes for 2 variables"):
        fc.plot.timeseries(one_link, ax=plt.figure().add_subplot())
    with pytest.raises(InvalidInput, match="variables is empty"):
        fc.plot.timeseries(one_link, [])


def test_phase_plane(one_link: Any) -> None:
    ax = fc.plot.phase_plane(one_link, ("b", "a"))
    curve = lines(ax)["rates"]
    np.testing.assert_allclose(curve.get_xdata(), one_link.rate.sel(flow="b") / 1e6, rtol=1e-12)
    np.testing.assert_allclose(curve.get_ydata(), one_link.rate.sel(flow="a") / 1e6, rtol=1e-12)
    assert ax.get_xlabel() == "rate of b [Mbit/s]"
    full = lines(ax)["link fully used"]  # 2 Mbit/s at the end, less the 0.5 of the third flow
    np.testing.assert_allclose(full.get_xydata(), [[0.0, 1.5], [1.5, 0.0]], rtol=1e-12)
    assert "link fully used" in lines(fc.plot.phase_plane(one_link))
    for flows in (["a", "b", "udp"], ["a"]):
        with pytest.raises(InvalidInput, match="two flows, not of "):
            fc.plot.phase_plane(one_link, flows)


def test_claims_are_counted_by_verdict() -> None:
    ax = fc.plot.claims([{"verdict": v} for v in ("refuted", "proved", "proved", "odd")])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["proved", "refuted", "odd"]
    assert [bar.get_bbox().width for bar in ax.containers[0]] == [2, 1, 1]
    with pytest.raises(InvalidInput, match="no rows"):
        fc.plot.claims([])


@pytest.mark.slow
def test_matplotlib_is_loaded_when_a_picture_is_drawn() -> None:
    code = (
        "import sys, fluidcc; fluidcc.plot.timeseries; print('matplotlib' in sys.modules, "
        "'xarray' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


FUNCTIONS = [name for name in fc.plot.__all__ if name.islower()]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_size_title_and_legend_are_asked_for_alike(name: str, one_link: Any) -> None:
    net = fc.dumbbell([fc.LDCC], {"capacity": "1 Mbit/s"}, rtt="50 ms")
    of: dict[str, Any] = {
        "claims": lambda: ([{"verdict": "proved"}],),
        "compare": lambda: (one_link, one_link),
        "convergence_plane": lambda: ([[8e5, 1e5], [9e5, 2e5]], 1e6),
        "stability_chart": lambda: (
            fc.stability_boundary(net, "eta", along="beta", along_bounds=(0.09, 0.12)),
        ),
        **dict.fromkeys(("timeseries", "phase_plane"), lambda: (one_link, ["a", "b"])),
        **dict.fromkeys(("nyquist", "bode", "root_map"), lambda: (net,)),
    }  # fmt: skip
    given = of[name]()
    if name == "timeseries":
        given = given[:1]
    look: dict[str, Any] = {} if name == "claims" else {"legend": False}
    draw = getattr(fc.plot, name)
    axes = np.ravel(draw(*given, figsize=(5.5, 4.5), title="as asked", **look))
    assert tuple(axes[0].figure.get_size_inches()) == (5.5, 4.5)
    assert axes[0].get_title() == "as asked"
    assert all(ax.get_legend() is None for ax in axes)
    with pytest.raises(InvalidInput, match="leave it out where ax is given"):
        draw(*given, ax=list(axes), figsize=(4, 3))
    with pytest.raises(InvalidInput, match="figsize is 4; give width and height in inches"):
        draw(*given, figsize=4)
    if look:
        assert draw(*given, legend="upper right") is not None
        with pytest.raises(InvalidInput, match="legend"):
            draw(*given, legend="uper right")


def test_figures_have_the_size_and_letters_of_the_style_that_is_set(one_link: Any) -> None:
    with plt.rc_context(fc.plot.PAPER):
        ax = fc.plot.timeseries(one_link, "rate", title="narrow")
    assert tuple(ax.figure.get_size_inches()) == fc.plot.PAPER["figure.figsize"]
    assert ax.xaxis.label.get_fontsize() == 8
    ax.figure.canvas.draw()
    drawn = [part.get_window_extent() for part in (ax.get_legend(), ax.title, ax.patch)]
    legend, title, patch = drawn
    assert patch.y1 <= legend.y0 < legend.y1 <= title.y0  # one above the other
    assert title.y1 <= ax.figure.bbox.y1
    assert patch.width > 0.7 * ax.figure.bbox.width
