"""The explorer: controls on the left, what they change on the right.

Panel draws it: it is the one library whose pages run alike on their own and in a notebook, with
Bokeh's figures, which take new data without being drawn anew.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from threading import Thread
from typing import Any

import panel as pn
from bokeh.models import ImportedStyleSheet
from panel.io.notebook import replace_inline_css

from fluidcc.analysis.report import rows_of
from fluidcc.base.arguments import explained
from fluidcc.base.errors import FluidccError, InvalidInput, warn
from fluidcc.base.tables import in_html
from fluidcc.explorer.access import HERE, guard, is_local
from fluidcc.explorer.board import ABOUT, Board, Knob
from fluidcc.explorer.scene import Scene, draw_chart
from fluidcc.explorer.views import Loci, Map, Plane, Series
from fluidcc.laws.parts import HEARD
from fluidcc.network.scenarios import RUN_FIELDS, scenarios
from fluidcc.plotting.common import words

SEEN = ["rate", "queueing_delay", "one_way_delay", "throughput", "loss", "mark", "backlog", "price"]
OWN = "what was given"
MOST_COPIES = 1000  # of a flow: slower than a slider above
# On a telephone the controls are above the views.
NARROW = """@media (max-width: 760px) {
  #content { flex-direction: column; }
  #sidebar { width: 100% !important; max-width: 100%; height: 40vh; overflow-y: auto; }
  #main { width: 100% !important; padding: 0; }
}"""
# Sliders and their boxes have the names beside them, for those who do not see these.
NAMES = """<script>setInterval(() => {
  const all = (root, what) => [...root.querySelectorAll("*")].flatMap(one =>
    [...(one.matches(what) ? [one] : []), ...(one.shadowRoot ? all(one.shadowRoot, what) : [])]);
  for (const slider of all(document, "[role=slider]")) {
    const both = slider.getRootNode().host.getRootNode();
    const name = all(both, ".bk-clearfix")[0]?.textContent.replace(/:$/, "");
    if (name) [slider, ...all(both, "input")].forEach(one => one.setAttribute("aria-label", name));
  }
}, 1000)</script>"""

WIDE = {"sizing_mode": "stretch_width"}
TABLES = "td, th { padding: .15rem 1.2rem .15rem 0; } table { margin: .6rem 0; }"


class _Kept:
    """A pane whose style sheets stay in the page: Panel would have the browser fetch those of one
    that changes in a notebook, from elsewhere.
    """

    def _get_properties(self, doc: Any) -> dict[str, Any]:
        found: dict[str, Any] = super()._get_properties(doc)  # type: ignore[misc]
        if pn.config.inline:
            found["stylesheets"] = [
                replace_inline_css(one) if isinstance(one, ImportedStyleSheet) else one
                for one in found.get("stylesheets", ())
            ]
        return found


class Alert(_Kept, pn.pane.Alert):
    pass


class Markdown(_Kept, pn.pane.Markdown):
    pass


class HTML(_Kept, pn.pane.HTML):
    pass


class Explorer:
    """One page: a board, its controls, and the views of it.

    Attributes
    ----------
    board : Board
        What is explored.
    scene : Scene
        What was last computed of it.
    controls, main : panel objects
        The two halves of the page.
    """

    def __init__(self, source: Any = None, until: float | None = None) -> None:
        self.given = (source, until)
        self.board = Board.of(source, until)
        self.scene = self._scene()
        self.pinned: list[tuple[str, Any]] = []
        self._due: list[Callable[[], None]] = []  # what will be done at the next tick
        self._listing = False
        self._cards: dict[tuple[str, str], Any] = {}
        self._map_is_of = self._map_says = ""  # what the chart was drawn of, and what it lacks
        self._make_views()
        self.controls = pn.Column(**WIDE)
        self._make_controls()
        self.refresh()

    # --- controls ---------------------------------------------------------------------------------

    def _make_controls(self) -> None:
        """Make the controls of a network that is new."""
        table = self.board.table
        start = OWN if self.given[0] is not None else "two flows of TCP"
        network = pn.widgets.Select(
            label="network",
            options=[start, *scenarios.files],
            value=self._scenario or start,
            **WIDE,
        )
        _watched(network, lambda name: self._load(None if name == start else name))
        until = _slider("until [s]", self.board.until, (0.0, max(4 * self.board.until, 1.0)))
        _watched(until, lambda time: self._put(("until",), time))
        delays = pn.widgets.RadioButtonGroup(
            options=["fifo", "frozen"], value=table["delays"], **WIDE
        )
        _watched(delays, lambda kind: self._put(("delays",), kind))
        losses = pn.widgets.Select(
            label="losses heard", options=[*HEARD], value=table["losses"], **WIDE
        )
        _watched(losses, lambda how: self._put(("losses",), how))
        more = _button("add a flow", lambda: self._rebuilt(self.board.add_flow))
        fewer = _button("drop the last", lambda: self._rebuilt(self.board.drop_flow))
        self._cards.clear()
        self._top, self._bottom = (network, until, delays, losses), pn.Row(more, fewer)
        self._place_cards()

    def _place_cards(self) -> None:
        """Show a card for each flow and link: those that there are already, and new ones."""
        places = [(kind, name) for kind in ("flows", "links") for name in self.board.table[kind]]
        self._cards = {place: self._cards.get(place) or self._card(*place) for place in places}
        self.controls.objects = [*self._top, *self._cards.values(), self._bottom]

    def _card(self, kind: str, name: str) -> Any:
        law = pn.widgets.Select(
            label="law", options=self.board.laws(kind), value=self.board.table[kind][name]["law"],
            **WIDE,
        )  # fmt: skip
        _watched(law, partial(self._put_law, kind, name))
        rows = [self._how_many(name)] if kind == "flows" else []
        for knob in self.board.knobs(kind, name):
            slider = _slider(knob.label, knob.value / knob.size, knob.range)
            _watched(slider, partial(self._turn, knob))
            tip = pn.widgets.TooltipIcon(value=knob.about, margin=0, visible=bool(knob.about))
            rows.append(pn.Row(slider, tip, **WIDE))
        return pn.Card(law, *rows, title=name, collapsed=len(self.board.table[kind]) > 3, **WIDE)

    def _how_many(self, name: str) -> Any:
        """The control for the number of flows like one."""
        count = self.board.table["flows"][name].get("count", 1)
        many = pn.widgets.EditableIntSlider(
            label="count", value=count, start=1, end=max(4 * count, 20), fixed_start=1,
            fixed_end=MOST_COPIES, margin=(2, 10), **WIDE,
        )  # fmt: skip
        _watched(many, lambda k: self._rebuilt(lambda: self.board.put(("flows", name, "count"), k)))
        tip = pn.widgets.TooltipIcon(value=ABOUT["count"], margin=0)
        return pn.Row(many, tip, **WIDE)

    _scenario: str | None = None  # the ready one that was chosen
    _wrong = ""  # what is wrong with the network as the controls have it

    def _load(self, name: str | None) -> None:
        source, until = (name, None) if name else self.given
        self._scenario = name
        self.pinned.clear()
        self.map.clear()
        self.board = Board.of(source, until)
        self._make_controls()
        self._rebuilt(lambda: None)

    def _put_law(self, kind: str, name: str, law: str) -> None:
        self.board.put_law(kind, name, law)
        self._rebuilt(lambda: self._cards.pop((kind, name)))

    def _rebuilt(self, change: Any) -> None:
        change()
        self._place_cards()
        self._listing = True  # what there is to choose from, before the scene is of the new network
        self._list_axes()
        self._listing = False
        self.changed()

    def _turn(self, knob: Knob, value: float) -> None:
        self._put(knob.place, self.board.written(knob, value))

    def _put(self, place: tuple[str, ...], value: Any) -> None:
        self.board.put(place, value)
        self.changed()

    # --- views ------------------------------------------------------------------------------------

    def _make_views(self) -> None:
        self.message = Alert("", alert_type="danger", visible=False)
        self.notes = Alert("", alert_type="warning", visible=False)
        self.verdict, self.map_note = Markdown("", **WIDE), Markdown("")
        self.variables = pn.widgets.CheckButtonGroup(
            options={words(n): n for n in SEEN}, value=SEEN[:3], **WIDE
        )
        _watched(self.variables, lambda _: self._choose_and_show())
        self.plots = pn.Column(**WIDE)
        self.loci, self.plane, self.map = Loci(), Plane(), Map()
        self.report, self.rest = (HTML("", stylesheets=[TABLES]) for _ in range(2))
        self.axes = [
            _watched(pn.widgets.Select(label=f"{a} axis", **WIDE), lambda _: self._axis_chosen())
            for a in ("horizontal", "vertical")
        ]
        again = _button("draw the chart", self._draw_map, color="primary")
        self.codes = [pn.pane.Str("", **WIDE) for _ in ("python", "toml")]
        data = pn.widgets.FileDownload(
            callback=self._data, filename="run.csv", label="save the data", **WIDE
        )
        pins = _button("pin this run", self._pin), _button("unpin all", self._unpin)
        # in columns: a figure's own pane that was hidden is not seen again the first time it should
        self._views: list[tuple[str, Any, Callable[[], None]]] = [
            ("run", pn.Column(self.variables, self.plots, pn.Row(*pins, data, **WIDE), **WIDE),
             lambda: self.series.draw([*self.pinned, ("", self.scene.run)])),
            ("Nyquist", pn.Column(pn.pane.Bokeh(self.loci.figure, **WIDE), **WIDE),
             lambda: self.loci.draw(self.scene)),
            ("roots", pn.Column(pn.pane.Bokeh(self.plane.figure, **WIDE), **WIDE),
             lambda: self.plane.draw(self.scene)),
            ("stability", self.report, self._show_report),
            ("chart", pn.Column(pn.Row(*self.axes, again, **WIDE), self.map_note,
                                pn.pane.Bokeh(self.map.figure, **WIDE), **WIDE), self._show_map),
            ("equilibrium", self.rest, self._show_rest),
            ("code", pn.Column("Python", self.codes[0], "Scenario file", self.codes[1], **WIDE),
             self._show_code),
        ]  # fmt: skip
        self.tabs = pn.Tabs(
            *((title, content) for title, content, _ in self._views), dynamic=True, **WIDE
        )
        self.tabs.param.watch(lambda _: self._show(), "active")
        self.main = pn.Column(self.verdict, self.message, self.notes, self.tabs, **WIDE)
        self._choose_variables()
        self._list_axes()

    def _choose_variables(self) -> None:
        self.series = Series(self.variables.value)
        figures = self.series.figures
        # so that the browser knows them all, whichever tab it shows when new data arrive
        self.tabs.tags = [*figures, self.loci.figure, self.plane.figure, self.map.figure]
        self.plots.objects = [pn.pane.Bokeh(one, **WIDE) for one in figures]

    def _choose_and_show(self) -> None:
        self._choose_variables()
        self._show()

    # --- what happens on a change -----------------------------------------------------------------

    def changed(self) -> None:
        """Compute anew, once for all changes that wait."""
        self._soon(self.refresh)

    def _soon(self, act: Callable[[], None]) -> None:
        """Do what was not asked for already, after the browser has been sent what is new."""
        page = pn.state.curdoc
        if page is None or page.session_context is None:  # in a notebook, or without a browser
            act()
        elif act not in self._due:
            self._due.append(act)
            page.add_next_tick_callback(partial(self._do, act))

    def _do(self, act: Callable[[], None]) -> None:
        self._due.remove(act)
        act()

    def refresh(self) -> None:
        """Show the network as the controls have it, or the sentence that says why not."""
        try:
            self.scene, self._wrong = self._scene(), ""
        except FluidccError as error:
            self._wrong = str(error)
        self._show()

    def _scene(self) -> Scene:
        board = self.board
        run = {key: board.table[key] for key in RUN_FIELDS}
        return Scene(board.network(), board.until, copies=board.copies, **run)

    def _show(self) -> None:
        """Draw the view that is looked at, or in its place the sentence that says why not."""
        said = self._wrong
        _, view, draw = self._views[self.tabs.active]
        try:
            if not said:
                draw()
        except FluidccError as error:
            said = str(error)
        self.message.object, self.message.visible = said, bool(said)
        view.visible = not said  # for what it shows is of another network
        self.verdict.styles = {"opacity": "0.4"}  # it is still of the network before
        pn.io.push_notebook(self.main)  # without it a notebook does not update figures
        self._soon(self._tell)

    def _tell(self) -> None:
        """Say the verdict, which takes longer than a picture of the run."""
        if self.refresh in self._due:  # of a network that is newer
            return
        self.verdict.object = "" if self._wrong else f"**{self.scene.headline}**"
        self.verdict.styles = {}
        self.notes.object = "\n\n".join(self.scene.warnings)
        self.notes.visible = bool(self.scene.warnings)

    def _show_report(self) -> None:
        self.report.object = in_html(rows_of(self.scene.report))

    def _show_rest(self) -> None:
        self.rest.object = self.scene.rest._repr_html_()

    def _show_code(self) -> None:
        self.codes[0].object, self.codes[1].object = self.board.python(), self.board.toml()

    def _pin(self) -> None:
        self.pinned.append((f"pin {len(self.pinned) + 1}", self.scene.run))
        self._show()

    def _unpin(self) -> None:
        self.pinned.clear()
        self._show()

    def _data(self) -> io.BytesIO:
        names = [name for name in self.variables.value if name in self.scene.run]
        frames = self.scene.run[names].to_dataframe().reset_index()
        return io.BytesIO(frames.to_csv(index=False).encode())

    # --- the chart --------------------------------------------------------------------------------

    def _knobs(self) -> dict[str, Knob]:
        """Those that an axis of a chart can have."""
        return {
            f"{name}: {knob.place[-1]}": knob
            for kind in ("flows", "links") for name in self.board.table[kind]
            for knob in self.board.knobs(kind, name) if knob.axis and knob.value
            and knob.place[-1] != "start"
        }  # fmt: skip

    def _list_axes(self) -> None:
        knobs = self._knobs()
        first = next(iter(self.board.table["flows"]))
        of_links = [name for name, knob in knobs.items() if knob.place[0] == "links"]
        of_the_first = [name for name, knob in knobs.items() if knob.place[1] == first]
        of_laws = [name for name in of_links if "params" in knobs[name].place]
        choice = [*of_links, *knobs][0], [*of_laws[:1], *of_the_first[-1:], *knobs][0]
        for one, usual in zip(self.axes, choice, strict=True):
            one.options = [*knobs]
            if one.value not in knobs:
                one.value = usual

    def _axis_chosen(self) -> None:
        if not self._listing:
            self._show()

    def _chosen(self) -> list[Knob] | None:
        """The knobs of both axes, if they are two."""
        knobs, names = self._knobs(), [one.value for one in self.axes]
        return [knobs[n] for n in names] if len({*names} & {*knobs}) == 2 else None

    def _show_map(self) -> None:
        chosen = self._chosen()
        if chosen is None:
            self.map_note.object = "Choose two parameters that are not 0."
            return
        self.map.mark(*chosen)
        if self._map_of() != self._map_is_of:
            self.map_note.object = "The chart is not of this network: draw it."
        else:
            self.map_note.object = self._map_says

    def _map_of(self) -> str:
        """What a chart depends on: all but the two parameters on its axes, and the run's end."""
        board = Board(deepcopy(self.board.table))
        for knob in self._chosen() or ():
            board.put(knob.place, 0.0)
        board.put(("until",), 0.0)
        return f"{board.table} {[one.value for one in self.axes]}"

    def _draw_map(self) -> None:
        """Draw the chart, in a thread of its own where a server has to answer meanwhile."""
        chosen, page = self._chosen(), pn.state.curdoc
        if chosen is None:
            return
        of, scene = self._map_of(), self.scene

        def work() -> Any:
            try:
                return draw_chart(scene, *((knob.axis, knob.value) for knob in chosen))
            except FluidccError as error:
                return error

        if page is None or page.session_context is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._drawn(work(), of, chosen)
        elif not self._map_busy:
            self._map_busy = True
            self.map_note.object = "The chart is being drawn ..."

            def aside() -> None:
                chart = work()
                page.add_next_tick_callback(lambda: self._drawn(chart, of, chosen))

            Thread(target=aside, daemon=True).start()

    _map_busy = False

    def _drawn(self, chart: Any, of: str, chosen: list[Knob]) -> None:
        self._map_busy = False
        if isinstance(chart, FluidccError):
            self.map.clear()
            self.map_note.object = str(chart)
            return
        self.map.draw(chart, *chosen)
        self._map_is_of = of
        self._map_says = f"No exact boundary: {chart.missing}" if chart.missing else ""
        self._show_map()


def _watched(widget: Any, act: Callable[[Any], object]) -> Any:
    """Return a widget after registering `act` as the callback for new values."""
    widget.param.watch(lambda event: act(event.new), "value")
    return widget


def _button(label: str, act: Callable[[], None], **more: Any) -> Any:
    button = pn.widgets.Button(label=label, **WIDE, **more)
    button.on_click(lambda _: act())
    return button


def _slider(name: str, value: float, ends: tuple[float, float]) -> Any:
    """A slider with a box beside it, which takes values beyond its ends."""
    low, high = min(ends[0], value), max(ends[1], value)
    return pn.widgets.EditableFloatSlider(
        label=name, value=value, start=low, end=high, step=(high - low) / 200, format="0.[0000]",
        margin=(2, 10), **WIDE,
    )  # fmt: skip


class Page(pn.Row):
    """The explorer in a cell of a notebook; `show` opens it in a browser from elsewhere."""

    def show(self, port: int = 0, host: str = HERE) -> None:  # type: ignore[override]
        """Serve this page until Ctrl-C, to the browsers of this machine alone by default."""
        server = serve(self, port, host)
        server.show("/")
        server.start()
        server.io_loop.start()


@explained
def explore(net: Any = None, until: float | None = None) -> Any:
    """Return a page in a notebook cell on which a network is changed by sliders.

    Parameters
    ----------
    net : Network, Scenario, or name or path of a scenario, optional
        What to begin with; by default two TCP flows over a PI controller of the queue.
    until : float, optional
        End of the run [s]; by default that of the scenario, or 30.

    Returns
    -------
    Page
        A row of Panel that shows itself in Jupyter, with a network connection or without.
        ``fluidcc explore`` opens the same in a browser.

    Raises
    ------
    Unsupported
        If Panel is not installed: ``pip install ".[explore]"``, in a clone of fluidcc.

    Examples
    --------
    >>> import fluidcc as fc
    >>> page = fc.explore(fc.dumbbell([fc.LDCC, fc.NADA], {"capacity": "3 Mbit/s"}, rtt="50 ms"))
    """
    pn.extension(inline=True, notifications=False)
    made = Explorer(net, until)
    paper = {"background": "white", "color": "#222222"} | {  # in a dark notebook too
        f"--design-{part}-{what}": shade
        for part, back in (("background", "white"), ("surface", "#F3F3F3"))
        for what, shade in (("color", back), ("text-color", "#222222"))
    }
    return Page(pn.Column(made.controls, width=330), made.main, styles=paper, **WIDE)


def page(source: Any = None) -> Any:
    """Return the explorer as a page of its own, for ``panel.serve``."""
    pn.extension()
    made = Explorer(source)
    dark = pn.state.session_args.get("theme") == [b"dark"]
    other = pn.pane.HTML(f"<a href='?theme={'default' if dark else 'dark'}' "
                         f"style='color: white'>{'light' if dark else 'dark'}</a>{NAMES}"
                         )  # fmt: skip
    made_page = pn.template.BootstrapTemplate(
        title="fluidcc explorer", sidebar=[made.controls], main=[made.main], header=[other],
        sidebar_width=340, header_background="#0072B2", theme="dark" if dark else "default",
    )  # fmt: skip
    made_page.config.raw_css = [NARROW]
    return made_page


def quiet() -> None:
    """Silence warnings, which pages show, and log messages about closed tabs in the terminal."""
    warnings.simplefilter("ignore")
    for name in ("asyncio", "bokeh", "panel", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def serve(source: Any = None, port: int = 0, host: str = HERE) -> Any:
    """Return a server of the explorer, which is to be started.

    Parameters
    ----------
    source : optional
        As for `explore`; or a page of `explore` itself.
    port : int
        Of the page; 0 for any that is free.
    host : str
        Address of this machine that it listens on; by default the one that no other machine
        reaches.
    """
    if not host or not isinstance(host, str):
        raise InvalidInput(f"host is {host!r}; give an address of this machine, such as {HERE!r}")
    shown = source if isinstance(source, Page) else lambda: page(source)
    server = pn.serve(
        shown, port=port, address=host, show=False, start=False, verbose=False,
        title="fluidcc explorer",
    )  # fmt: skip
    guard(server, host)
    if not is_local(host):
        warn(
            f"whoever reaches {host} can use this page and this machine's cores; leave the host "
            "out for this machine alone"
        )
    return server
