"""The site in a real browser: what people search for is the first hit of Sphinx's own search, and
formulas in tables are drawn, none wider than its column.
"""

import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.browser]
SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
SEARCHES = {
    "made/models/BBRv1": ["BBR", "BBR version 1"], "made/models/BBRv3": ["BBR version 3"],
    "made/models/BBRv2": ["BBR version 2"],
    "made/models/Copa": ["Copa"], "made/models/CUBIC": ["CUBIC"], "made/models/DCQCN": ["DCQCN"],
    "made/models/DCTCP": ["DCTCP", "Data Center TCP"], "made/models/RED": ["RED"],
    "made/models/SCReAM": ["SCReAM"], "questions/tcp": ["TCP and RED"],
    "questions/aqm": ["RED, PI and drop-tail", "AQM"], "questions/parking_lot": ["parking lot"],
    "questions/queueing_delay": ["queueing delay"], "questions/random_loss": ["random loss"],
    "questions/packet_size": ["packet size", "jumbo", "MTU"],
    "questions/prices": ["utility maximisation", "proportional fairness"],
    "questions/buffer_size": ["buffer size"], "questions/transfer": ["flow completion time"],
    "questions/trace": ["cellular trace"], "questions/gain_margin": ["gain margin", "phase margin"],
    "questions/delay_margin": ["delay margin"], "questions/bode": ["Bode plot"],
    "questions/mimo": ["delay margin MIMO", "delay margin of a MIMO loop"],
    "questions/boundary": ["Hopf", "Hopf bifurcation"],
    "questions/limit_cycle": ["limit cycle", "oscillate by nature limit cycle"],
    "questions/matlab": ["MATLAB"], "questions/nyquist": ["Nyquist", "Nyquist plot"],
    "questions/pade": ["Padé"], "questions/dde": ["DDE solver"],
    "questions/roots": ["characteristic roots"],
    "questions/sampled": ["sampled controller", "sampling time"],
    "questions/sweep": ["map phase margin sweep store resume"],
    "questions/sweep_file": ["sweep file"], "made/measures": ["measures of a sweep"],
    "made/notebooks/10_design_an_aqm": ["design an AQM"],
    "theory/ack_clock": ["ack clock"], "theory/passivity": ["passivity"],
    "own_controller": ["own controller"], "verify_a_derivation": ["verify a derivation"],
    "theory/model": ["asymmetric path", "reverse traffic"], "install": ["report a bug"],
    "questions/packets": ["packet simulator"], "which_tool": ["ns-3", "JiTCDDE"],
}  # fmt: skip


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Say nothing of requests."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the site is served that `make docs` has built."""
    if not (SITE / "searchindex.js").exists():
        stop = pytest.fail if "CI" in os.environ else pytest.skip
        stop("the site is not built: make docs")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_the_first_hit_is_the_page_that_answers(browser: Any, address: str) -> None:
    page, found = browser.new_page(), {}
    for search in (search for some in SEARCHES.values() for search in some):
        page.goto(f"{address}search.html?{urlencode({'q': search})}")
        first = page.locator("#search-results li a").first
        first.wait_for(timeout=30_000)
        found[search] = first.evaluate("link => link.href").removeprefix(address).split(".html")[0]
    assert found == {search: hit for hit, some in SEARCHES.items() for search in some}


def test_formulas_in_what_a_cell_returns_are_drawn(browser: Any, address: str) -> None:
    page = browser.new_page()
    for name in ("verify_a_derivation", "questions/prices"):
        page.goto(f"{address}{name}.html")
        page.locator(".cell_output mjx-container").first.wait_for(timeout=30_000)


@pytest.mark.parametrize("width", [1024, 1200])
def test_no_equation_is_wider_than_its_column(browser: Any, address: str, width: int) -> None:
    """On a tablet, and where sidebars begin to take their part of a small screen."""
    page, wide = browser.new_page(viewport={"width": width, "height": 800}), []
    for file in sorted([*SITE.glob("made/models/*.html"), *SITE.glob("theory/*.html")]):
        page.goto(address + file.relative_to(SITE).as_posix())
        if page.locator("div.math").count():
            page.locator("div.math mjx-container").first.wait_for(timeout=30_000)
            page.evaluate("() => MathJax.startup.promise")
            drawn = page.locator("div.math mjx-container")
            if drawn.evaluate_all("all => all.some(one => one.scrollWidth > one.clientWidth + 1)"):
                wide.append(file.stem)
    assert wide == []
