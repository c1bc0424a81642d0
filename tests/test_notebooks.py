"""The notebooks are kept as they ran: every cell, in order, with its outputs."""

import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
FILES = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def book(request: pytest.FixtureRequest) -> Any:
    return nbformat.read(request.param, as_version=4)


def test_it_was_run_from_top_to_bottom(book: Any) -> None:
    counts = [cell.execution_count for cell in book.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))


def test_it_has_outputs_and_no_complaints(book: Any) -> None:
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert outputs
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]


def test_it_draws_and_asserts_its_own_numbers(book: Any) -> None:
    codes = [cell for cell in book.cells if cell.cell_type == "code"]
    assert any("image/png" in output.get("data", {}) for cell in codes for output in cell.outputs)
    assert any("assert" in cell.source for cell in codes)


def test_it_teaches_in_short_cells_with_public_names_and_its_checks_are_folded(book: Any) -> None:
    for cell in (cell for cell in book.cells if cell.cell_type == "code"):
        folded = "remove-cell" in cell.metadata.get("tags", ())
        assert folded == cell.metadata.get("jupyter", {}).get("source_hidden", False)
        assert folded or ("assert" not in cell.source and len(cell.source.splitlines()) <= 15)
        assert set(re.findall(r"\bfluidcc\.(\w+)", cell.source)) <= {"symbols"}


def test_it_is_tidy(book: Any) -> None:
    """Otherwise each execution would change it (``tools/tidy_notebooks.py`` mends that)."""
    assert not [cell.id for cell in book.cells if "execution" in cell.metadata]
    assert book.metadata.language_info == {"name": "python"}
