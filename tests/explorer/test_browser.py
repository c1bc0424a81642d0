"""The page in a real browser; skipped where Playwright or a Chromium is not there."""

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where ``fluidcc explore`` serves its page."""
    command = [sys.executable, "-u", "-m", "fluidcc", "explore", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as server:  # fmt: skip
        assert server.stdout is not None
        try:
            said = next(line for line in server.stdout if "http" in line)
            yield re.findall(r"http\S+", said)[0]
        finally:
            server.terminate()
        assert server.stdout.read().strip() == ""  # the terminal is quiet, closed tabs or not


@pytest.mark.parametrize(("width", "theme"), [(1400, "default"), (420, "dark")])
def test_the_page_works_and_its_console_stays_clean(
    browser: Any, address: str, width: int, theme: str
) -> None:
    page, rng = browser.new_page(viewport={"width": width, "height": 900}), random.Random(width)
    said: list[str] = []
    page.on("console", lambda m: said.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("requestfailed", lambda request: said.append(request.url))
    page.goto(f"{address}?theme={theme}", timeout=120_000)
    page.get_by_text("near", exact=True).first.wait_for(timeout=60_000)
    canvas = page.locator(".bk-Figure").first
    canvas.wait_for(timeout=60_000)
    page.wait_for_timeout(1000)
    # new data may come before the tab that they are for: then they would be for nothing known
    models = "[...Bokeh.documents[0]._all_models.values()]"
    known = page.evaluate(f"{models}.filter(m => m.type == 'Figure').length")
    assert known == 6  # three variables, Nyquist, roots and the chart
    before = canvas.screenshot()
    page.get_by_role("slider", name="q ref [ms]").wait_for(timeout=60_000)  # readers have its name
    wanted = page.get_by_role("textbox", name="q ref [ms]")
    wanted.fill("20")
    wanted.press("Enter")
    page.wait_for_timeout(5000)
    assert canvas.screenshot() != before
    wanted.fill("-1")
    wanted.press("Enter")
    page.get_by_text("q_ref is -").wait_for(timeout=60_000)
    wanted.fill("50")
    wanted.press("Enter")
    for tab in ("Nyquist", "roots", "stability", "chart", "equilibrium", "code"):
        page.locator(f".bk-tab:has-text('{tab}')").first.click()
        page.wait_for_timeout(500)
    page.get_by_text("import fluidcc as fc").wait_for(timeout=60_000)
    page.locator(".bk-tab:has-text('chart')").first.click()
    page.get_by_role("button", name="draw the chart").click()
    page.get_by_text("is being drawn").wait_for(timeout=60_000)
    page.get_by_text("is being drawn").wait_for(state="hidden", timeout=120_000)
    for key in rng.choices(["ArrowRight", "ArrowLeft", "Home", "End"], k=30):
        page.locator(".bk-tab").nth(rng.randrange(7)).click()
        rng.choice(page.get_by_role("slider").all()[1:]).press(key)  # the first is the run's end
    page.wait_for_timeout(2000)
    assert said == []
    page.close()
