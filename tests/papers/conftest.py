"""Tests of one paper stay in one process, which computes each of its runs once; the slow ones are
`make papers`.
"""

from collections.abc import Iterator

import pytest

from fluidcc.papers import papers
from fluidcc.papers.fast import runs


@pytest.fixture(scope="session", autouse=True)
def _two_seeds() -> Iterator[None]:
    """Of five, on which the page of claims has its means: each costs eighteen seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "SEEDS", runs.SEEDS[:2])
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        _, here, name = item.nodeid.partition("tests/papers/")
        if here and item.get_closest_marker("slow"):
            item.add_marker("papers")
        group = next((paper for paper in papers() if here and paper in name), None)
        if group:
            item.add_marker(pytest.mark.xdist_group(f"papers {group}"))
