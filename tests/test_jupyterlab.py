"""The tour in JupyterLab in a real browser; skipped where Playwright, Chromium or JupyterLab is not
there.
"""

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("jupyterlab") is None:
    pytest.skip("JupyterLab is not installed", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.browser]
TOUR = Path(__file__).parents[1] / "notebooks" / "0_tour.ipynb"
CELLS = """() => {
    const book = window.jupyterapp.shell.currentWidget.content;
    return book.widgets.map(cell => ({...cell.model.toJSON(), trusted: cell.model.trusted}));
}"""


EXPLORE = "import fluidcc as fc\nfc.explore(until=2)"
RUN = """async () => {
    const session = window.jupyterapp.shell.currentWidget.sessionContext;
    await session.ready;
    await session.session.kernel.info;
    await window.jupyterapp.commands.execute('notebook:run-all-cells');
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where JupyterLab serves a folder with the tour, which it has never seen before."""
    folder = tmp_path_factory.mktemp("lab")
    shutil.copy(TOUR, folder)
    book = json.loads(TOUR.read_text())
    code = next(cell for cell in book["cells"] if cell["cell_type"] == "code")
    book["cells"] = [{**code, "source": EXPLORE, "outputs": []}]
    (folder / "explore.ipynb").write_text(json.dumps(book))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}",
        "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}",
        "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip
    # what was trusted before, settings and sessions are elsewhere; the kernel chooses its backend
    own = {f"JUPYTER_{kind}_DIR": str(folder / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
    own |= {key: value for key, value in os.environ.items() if key != "MPLBACKEND"}
    with (
        open(folder / "log", "w") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=own) as server,
    ):
        try:
            for _ in range(240):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/api", timeout=1)
                    break
                except OSError:
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/lab/tree/{TOUR.name}"
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Any:
    page = browser.new_page(viewport={"width": 1400, "height": 3000})
    page.goto(address)
    page.locator(".jp-Cell").first.wait_for(timeout=120_000)
    return page


def test_an_untrusted_notebook_shows_the_network(page: Any) -> None:
    picture = page.locator(".jp-CodeCell:has-text('fc.Network()') .jp-OutputArea-output img").first
    picture.wait_for(timeout=60_000)
    assert not all(cell["trusted"] for cell in page.evaluate(CELLS) if cell["cell_type"] == "code")
    assert picture.evaluate("image => image.naturalWidth") > 400


def test_the_tour_runs_and_shows_its_pictures(page: Any) -> None:
    page.evaluate(RUN)
    cells = [cell for cell in page.evaluate(CELLS) if cell["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert [o for o in outputs if o["output_type"] == "error"] == []
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kept = [o for cell in json.loads(TOUR.read_text())["cells"] for o in cell.get("outputs", ())]
    shown, expected = (
        sum("image/png" in o.get("data", {}) for o in some) for some in (outputs, kept)
    )
    assert shown == expected >= 5


def test_the_explorer_needs_nothing_from_elsewhere(browser: Any, address: str) -> None:
    """It draws and answers its controls while every request beyond this machine fails."""
    alone = browser.new_page(viewport={"width": 1400, "height": 1600})
    outside: list[str] = []

    def refuse(route: Any) -> None:
        outside.append(route.request.url)
        route.abort()

    alone.route(re.compile(r"^https?://(?!127\.0\.0\.1[:/])"), refuse)
    alone.goto(address.replace(f"/lab/tree/{TOUR.name}", "/lab/workspaces/e/tree/explore.ipynb"))
    alone.locator(".jp-Cell").first.wait_for(timeout=120_000)
    alone.evaluate(RUN)
    canvas = alone.locator(".bk-Figure").first
    canvas.wait_for(timeout=120_000)
    alone.wait_for_timeout(2000)
    before = canvas.screenshot()
    delay = alone.locator(".jp-OutputArea-output input:visible[type=text]").nth(2)
    delay.fill("60")
    delay.blur()  # Enter is JupyterLab's
    for _ in range(60):
        if canvas.screenshot() != before:
            break
        alone.wait_for_timeout(1000)
    assert canvas.screenshot() != before
    assert outside == []
    alone.close()
