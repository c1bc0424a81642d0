"""Tests of one paper stay in one process, which computes each of its runs once."""

import pytest

from fluidcc.papers import papers


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        _, here, name = item.nodeid.partition("tests/papers/")
        group = next((paper for paper in papers() if here and paper in name), None)
        if group:
            item.add_marker(pytest.mark.xdist_group(f"papers {group}"))
