"""Every result shows itself in Jupyter: as HTML that closes its tags and names its values."""

import re
from functools import cache
from html.parser import HTMLParser
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.analysis.boundary import Onset
from fluidcc.analysis.modes import FreeDirection
from fluidcc.base.tables import in_units


class _Page(HTMLParser):
    """Texts of a page, whose elements must close in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def shown(result: Any) -> str:
    page = _Page()
    page.feed(result._repr_html_())
    page.close()
    assert page.open == []
    return " ".join(page.texts)


@cache
def two() -> fc.Network:
    flows = {"near": fc.LDCC, "far": {"law": fc.LDCC(eta=0.8), "access_delay": "20 ms"}}
    return fc.dumbbell(flows, {"capacity": "3 Mbit/s", "delay": "25 ms"})


def jumping() -> fc.Network:
    return fc.dumbbell(
        [fc.StaticAIMD], {"capacity": "2 Mbit/s", "buffer": "20 packets"}, rtt="50 ms"
    )


@cache
def report() -> Any:
    return fc.stability(two())


@cache
def certificate() -> Any:
    return fc.stability(two(), certify=True).certificates["loop"]


@cache
def decay() -> Any:
    return fc.solve_dde(lambda t, y, late: -late[0], (0, 5), [1.0], [1.0])


def checked() -> Any:
    system = fc.undelayed(two())
    return system.check(system.paper_storage(), samples=64)


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (lambda: fc.scenarios.tour, ["README"]),
        (lambda: fc.equilibrium(two()), ["rate [Mbit/s]", "near", "far"]),
        (lambda: fc.num.solve(two()), ["price", "duality gap"]),
        (report, ["verdict", "stable", "delay margin"]),
        (lambda: report().sensitivities, ["1 % more of", "near.eta"]),
        (lambda: report().sensitivities.parameters[0], ["units"]),
        (lambda: report().margins, ["phase lag [deg]", "delay [s]"]),
        (lambda: report().of_flow("near"), ["delay [s]"]),
        (lambda: report().eigenloci(), ["omega [rad/s]", "...", "array of 1 by "]),
        (lambda: report().sufficient, ["condition"]),
        (lambda: report().sufficient[0], ["applies", "theorem"]),
        (lambda: fc.linearize(two()).count_unstable(), ["by contour", "roots [1/s]", "none"]),
        (certificate, ["certified", "yes", "abscissa [1/s]", " ± "]),
        (lambda: certificate().rightmost[0], ["centre [1/s]", "multiplicity"]),
        (lambda: FreeDirection({"a.x": 1.0, "b.x": -0.5}), ["a.x = 1, b.x = -0.5"]),
        (lambda: fc.undelayed(two()), ["q_bottleneck = 0.0892575"]),
        (lambda: fc.undelayed(two()).paper_storage(), ["gradient", "x_near"]),
        (checked, ["positive definite"]),
        (decay, ["success", "yes", "array of 1 by "]),
        (lambda: decay().statistics, ["steps", "rejections"]),
        (lambda: fc.stability_boundary(two(), "far.eta"), ["hopf", "frequency"]),
        (lambda: fc.sampled_stability(two(), "20 ms"), ["radius", "decay rate"]),
        (lambda: fc.published["tcp_red"], ["as published", "exact"]),
        (lambda: report().modes[0], ["root [1/s]", "half life [s]", "shifts"]),
        (lambda: report().passivity, ["locally stable"]),
        (lambda: report().passivity.users[0], ["near", "settles", "yes"]),
        (lambda: fc.linearize(two()), ["states"]),
        (lambda: fc.claims.table("ldcc", only="(18)"), ["proved"]),
        (lambda: fc.claims.table("ldcc", only="(18)")[0], ["place", "(18)", "verdict", "proved"]),
        (lambda: fc.prove(fc.Kelly), ["rest point of (7)", "proved"]),
        (lambda: fc.synchronized(0, 1, 1.0, 0.5, 9.5), ["intervals", "efficiency"]),
        (lambda: fc.synchronized(0, 1, 1.0, 0.5, 9.5).orbit, ["period [intervals]", "fairness"]),
        (
            lambda: fc.limit_cycle(jumping(), rtol=1e-6, tol=1e-5),
            ["limit cycle", "mean rate [Mbit/s]", "flow1"],
        ),
        (
            lambda: Onset("supercritical", (1.0, 2.0), 0.1, 0.02, 0.03, 5.0),
            ["values", "1, 2", "until [s]", "5"],
        ),
    ],
)
def test_a_result_shows_itself(result: Any, says: list[str]) -> None:
    value = result()
    text = shown(value)
    assert [word for word in says if word not in text] == []
    terminal = not isinstance(value, fc.Scenario)  # which is no result
    assert not (terminal and re.match(r"\w+\(\w+=", str(value)))


def test_nothing_beside_what_is_measured_is_nothing() -> None:
    """An empty queue, which Newton's method leaves at -1e-14 s, and a loss of 1e-16."""
    cycle = fc.limit_cycle(jumping(), rtol=1e-6, tol=1e-5)
    assert in_units([-1e-14, 0.02], "s", 0.1) == ("ms", ["0", "20"])
    for result in (cycle, fc.equilibrium(two())):
        tables = str(result).split("\n", 1)[1]
        assert [x for x in re.findall(r"\d[\d.]*e-\d+", tables) if float(x) < 1e-12] == []
