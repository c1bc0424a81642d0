"""The page without a browser: every law, every view, every wrong value."""

import random
import subprocess
import sys
from typing import Any

import numpy as np
import panel as pn
import pytest

import fluidcc as fc
from fluidcc.explorer.app import Explorer, explore, page
from fluidcc.explorer.board import Board
from fluidcc.explorer.scene import Scene, draw_chart
from tests.scan.cases import of_today

# Panel's own composite widgets still give their parts a name.
pytestmark = pytest.mark.filterwarnings("ignore:Widget.name is deprecated")
TABS = ("run", "Nyquist", "roots", "stability", "chart", "equilibrium", "code")


@pytest.fixture(scope="module")
def three() -> Explorer:
    """Three flows, as a user would compare them."""
    laws = [fc.LDCC, fc.LDCC(eta=0.3), fc.CBR(rate="500 kbit/s")]
    net = fc.dumbbell(laws, {"capacity": "3 Mbit/s", "buffer": "0.5 s"}, rtt="50 ms")
    return Explorer(net, until=20.0)


@pytest.fixture(scope="module")
def two() -> Explorer:
    return Explorer(
        fc.dumbbell([fc.LDCC] * 2, {"capacity": "3 Mbit/s", "buffer": "0.5 s"}), until=2.0
    )


def slider(made: Explorer, name: str, label: str) -> Any:
    (card,) = (one for one in made.controls.objects if getattr(one, "title", "") == name)
    parts = card.select(lambda one: getattr(one, "label", None) == label)
    return parts[0]


@pytest.mark.slow
@pytest.mark.parametrize("tab", range(len(TABS)), ids=TABS)
def test_each_view_follows_a_slider(three: Explorer, tab: int) -> None:
    three.tabs.active = tab
    beta = slider(three, "flow1", "beta")
    seen = []
    for value in (0.1, 0.2):
        beta.value = value
        assert not three.message.visible, three.message.object
        seen.append(
            str((
                [s.data["ys"] for s in three.series.sources], three.loci.lines.data["ys"],
                three.plane.points.data["x"], three.report.object, three.map.here.data,
                three.rest.object, three.codes[0].object,
            ))
        )  # fmt: skip
    moves = tab != TABS.index("chart")  # the axes shown there are others
    assert (seen[0] != seen[1]) == moves


def test_what_is_drawn_is_what_the_library_computes(three: Explorer) -> None:
    three.tabs.active = 0
    net = three.board.network()
    run = fc.simulate(net, 20.0)
    data = three.series.sources[0].data
    assert data["name"] == ["flow1", "flow2", "flow3"]
    np.testing.assert_allclose(data["ys"][1], run.rate.sel(flow="flow2") / 1e6)
    three.tabs.active = 1
    three.refresh()
    (gain,) = (
        x for x, what in zip(three.loci.points.data["x"], three.loci.points.data["what"],
                             strict=True) if "gain" in what
    )  # fmt: skip
    assert -1 / gain == pytest.approx(fc.stability(net).gain_margin)


def test_a_wrong_value_shows_its_sentence_and_a_right_one_takes_it_away(three: Explorer) -> None:
    beta = slider(three, "flow1", "beta")
    beta.value = -1.0
    assert three.message.visible
    assert "beta is -1" in three.message.object
    for tab in (1, 0):  # no view of the network before stands for this one
        three.tabs.active = tab
        assert (three.message.visible, three.verdict.object) == (True, "")
        assert not three._views[tab][1].visible
    beta.value = 0.1
    assert not three.message.visible
    assert three._views[0][1].visible


def test_a_law_without_a_verdict_leaves_no_other_verdict_on_the_page(two: Explorer) -> None:
    two.tabs.active = TABS.index("stability")
    assert "stable" in two.report.object
    law = slider(two, "flow1", "law")
    law.value = "AIMD"
    assert "has jumps" in two.message.object
    assert not two._views[two.tabs.active][1].visible
    law.value = "LDCC"
    assert two._views[two.tabs.active][1].visible


def test_a_chart_of_frozen_delays_is_that_of_their_verdicts(monkeypatch: Any) -> None:
    monkeypatch.setattr("fluidcc.explorer.scene.GRID", (3, 3))
    net = fc.parking_lot([fc.LDCC], [[fc.LDCC]] * 2, {"capacity": "1 Mbit/s", "delay": "9 ms"})
    chart = draw_chart(Scene(net, 1.0, "frozen"), ("beta", 0.2), ("eta", 1.0))
    for i, j in ((0, 0), (2, 2), (0, 2)):
        law = {"law": fc.LDCC(beta=chart.x[j], eta=chart.y[i])}
        own = net.with_flows(dict.fromkeys(net.flow_names, law))
        assert chart.stable[i, j] == fc.stability(own, delays="frozen").stable
    assert {0.0, 1.0} == {*chart.stable.ravel()}


def test_a_run_is_pinned_and_compared(three: Explorer) -> None:
    three.tabs.active = 0
    three._pin()
    slider(three, "flow1", "beta").value = 0.05
    data = three.series.sources[0].data
    assert data["name"][0] == "flow1, pin 1"
    assert data["dash"][0] == "dashed"
    assert not np.allclose(data["ys"][0], data["ys"][3])
    three._unpin()
    assert len(three.series.sources[0].data["name"]) == 3


def test_the_number_of_flows_of_a_card_is_that_of_the_network(three: Explorer) -> None:
    three.tabs.active = 0
    for count in (4, 1):
        slider(three, "flow2", "count").value = count
        assert not three.message.visible
        assert len(three.scene.net.flows) == 2 + count
        assert three.series.sources[0].data["name"] == ["flow1", "flow2", "flow3"]


def test_data_are_saved_as_they_are_shown(three: Explorer) -> None:
    head, first, *_ = three._data().read().decode().splitlines()
    assert {"time", "flow", "rate"} <= set(head.split(","))
    assert first.startswith("0.0,")


@pytest.mark.slow
def test_a_chart_has_the_present_point_and_the_exact_boundary() -> None:
    net = fc.dumbbell([fc.LDCC], {"capacity": "1 Mbit/s"}, rtt="50 ms")
    made = Explorer(net)
    made.tabs.active = TABS.index("chart")
    made.axes[0].value, made.axes[1].value = "flow1: beta", "flow1: eta"
    edge: Any = fc.stability_boundary(net, "eta")
    slider(made, "flow1", "eta").value = edge.value
    made._draw_map()
    assert not made.message.visible, made.message.object
    cells: Any = made.map.cells.data
    curve: Any = made.map.curve.data
    assert set(np.unique(cells["stable"])) == {0.0, 1.0}
    here: Any = made.map.here.data
    near = np.argmin(np.hypot(curve["x"] / here["x"][0] - 1, curve["y"] / here["y"][0] - 1))
    assert curve["y"][near] == pytest.approx(here["y"][0], rel=0.05)
    slider(made, "flow1", "T [ms]").value = 90.0
    assert "not of this network" in made.map_note.object


@pytest.mark.slow
@pytest.mark.parametrize("law", of_today(Board.of().laws("flows"), 20))
def test_any_law_can_be_looked_at(two: Explorer, law: str) -> None:
    two.tabs.active = 0
    slider(two, "flow2", "law").value = law
    for tab in range(len(TABS)):
        two.tabs.active = tab  # an error that is not the library's would end this
    assert f"fc.{law}" in two.codes[0].object


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_hundred_random_actions_do_no_harm(monkeypatch: Any, seed: int) -> None:
    """What the controls that are seen can do, sensible or not: no exception leaves the page."""
    monkeypatch.setattr("fluidcc.explorer.scene.GRID", (2, 2))
    made, rng = Explorer(until=2.0), random.Random(seed)

    def controls(name: str) -> list[Any]:
        return list(made.controls.select(lambda one: type(one).__name__ == name))

    def turn() -> None:
        one = rng.choice(controls("EditableFloatSlider")[1:])  # the first is the end of the run
        inside = rng.uniform(one.start, one.end)
        one.value = rng.choice([inside, one.start, one.end, -1.0, 0.0, 1e6])

    def choose() -> None:
        rest = [one for one in controls("Select") if one is not made._top[0]]
        one = rng.choice([*rest, *made.axes, made._top[2]])
        one.value = rng.choice(one.options)

    def press() -> None:
        seen = [*controls("Button"), *made._views[0][1].select(pn.widgets.Button)]
        one = rng.choice(seen if made._views[0][1].visible else seen[:2])
        one.clicks += 1

    def view() -> None:
        made.variables.value = rng.sample([*made.variables.options.values()], rng.randrange(4))
        made.tabs.active = rng.randrange(len(TABS))

    def other() -> None:
        made.controls.objects[0].value = rng.choice(made.controls.objects[0].options)
        controls("EditableFloatSlider")[0].value = 2.0

    for act in rng.choices(
        [turn, choose, press, view, other, made._draw_map], [50, 20, 10, 15, 3, 2], k=100
    ):
        act()
        assert made.message.visible == (not made._views[made.tabs.active][1].visible)


@pytest.mark.slow
def test_another_network_and_another_law_are_chosen(three: Explorer) -> None:
    made = Explorer()
    network = made.controls.objects[0]
    network.value = "p1"
    assert made.board.network() == fc.scenarios["p1"].net
    made.controls.objects[0].value = "two flows of TCP"
    assert made.board.network() == Board.of().network()
    others = {name: card for name, card in made._cards.items() if name != ("flows", "near")}
    slider(made, "near", "law").value = "FAST"
    assert made.board.network().flows["near"].law == fc.FAST
    assert slider(made, "near", "gamma").value == 0.5
    assert others.items() <= made._cards.items()  # one card is made anew, not all


@pytest.mark.slow
def test_the_network_may_change_while_the_chart_is_open(monkeypatch: Any) -> None:
    monkeypatch.setattr("fluidcc.explorer.scene.GRID", (3, 3))
    made = Explorer()
    made.tabs.active = TABS.index("chart")
    made._draw_map()
    assert len(made.map.cells.data["x"]) > 0
    for name in ("two flows of TCP", "p1", "ldcc_fig11", "tcp_red"):
        made.controls.objects[0].value = name
        net = Board.of().network() if name not in fc.scenarios else fc.scenarios[name].net
        assert made.scene.net == net
        assert {one.value for one in made.axes} <= {*made._knobs()}
        if name != "two flows of TCP":
            assert len(made.map.cells.data["x"]) == 0
            assert "not of this network" in made.map_note.object
    made.controls.objects[0].value = "two flows of TCP"
    made._rebuilt(made.board.drop_flow)
    made._rebuilt(made.board.drop_flow)
    assert made.board.network() == made.scene.net


def test_the_first_screen_has_flows_that_differ_numbers_and_a_boundary() -> None:
    made = Explorer()
    run = made.scene.run
    assert float(abs(run.rate[:, 0] - run.rate[:, 1]).max()) > 0.1 * float(run.capacity.max())
    report = fc.stability(made.board.network())
    assert f"delay margin {1e3 * report.delay_margin:.3g} ms" in made.verdict.object
    made._draw_map()
    assert {0.0, 1.0} == {*made.map.cells.data["stable"]}
    assert len(made.map.curve.data["x"]) > 5
    assert made.map_note.object == ""


def test_every_slider_says_what_it_sets() -> None:
    board = Board.of("p1")
    knobs = [
        k for kind in ("flows", "links") for n in board.table[kind] for k in board.knobs(kind, n)
    ]
    assert [knob.place for knob in knobs if not knob.about] == []
    start = next(k for k in Board.of().knobs("flows", "far") if k.place[-1] == "start")
    assert (start.label, start.value / start.size) == ("start [s]", 10.0)


def test_it_is_a_page_and_a_cell_of_a_notebook() -> None:
    assert len(explore(until=2.0)) == 2
    assert page().title == "fluidcc explorer"


def test_without_panel_one_sentence_says_what_to_install() -> None:
    code = "import sys; sys.modules['panel'] = None; import fluidcc as fc; fc.explore()"
    end = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = end.stderr.strip().splitlines()[-1]
    assert 'pip install ".[explore]"' in last
