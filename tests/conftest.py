"""What every test needs: figures without a screen, a folder of its own for what is compiled, rare
searches for garbage, property tests that a busy machine cannot fail, and a browser.
"""

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("MPLBACKEND", "Agg")
# Matrices here are small: on a busy machine threads of the linear algebra wait for each other.
for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
compiled = Path(__file__).parents[1] / ".pytest_cache" / "compiled"
if "FLUIDCC_CACHE_DIR" not in os.environ:
    from fluidcc.numerics.compiling import cache_folder

    if not compiled.exists() and cache_folder().exists():  # what `make setup` has compiled of laws
        shutil.copytree(cache_folder(), compiled, dirs_exist_ok=True)
    os.environ["FLUIDCC_CACHE_DIR"] = str(compiled)

settings.register_profile(
    "fluidcc",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # it measures seconds too
    derandomize="CI" in os.environ,
    print_blob=True,
)
settings.load_profile("fluidcc")

# Formulas and compiled code are many objects that live on: to look through them all for garbage
# every few hundred new ones takes a tenth of the time.
gc.set_threshold(50_000, 20, 20)


def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium; its tests are skipped where Playwright or a Chromium is not there."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium")
    with api.sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
