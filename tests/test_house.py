"""What `make house` measures, on packages and graphs that can be counted by hand."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def house() -> Any:
    path = Path(__file__).parents[1] / "tools/house.py"
    spec = importlib.util.spec_from_file_location("house", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_small_package_is_measured(house: Any, tmp_path: Path) -> None:
    texts = {
        "__init__": "from p.top import a\n",
        "top/__init__": "from .a import a\n",
        "top/a": "def a():\n    from p.low import b  # a comment\n    return b\n",
        "low": "import typing\nif typing.TYPE_CHECKING:\n    from p import top\nb = 'x'"
        + " + ''" * 30
        + "\n",
    }
    for name, text in texts.items():
        path = tmp_path / "p" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    sizes = {"files": 4, "lines": 9, "tokens": 98, "lines over 100 columns": 1}
    assert house.sizes(tmp_path / "p") == sizes
    # low imports top, which only hands on; top.a imports low
    found = house.structure(tmp_path / "p")
    assert found == {"rooms": 2, "floors": 2, "circles of files": 0, "circles of rooms": 1}


def test_floors_and_circles(house: Any) -> None:
    chain: dict[str, set[str]] = {"a": {"b"}, "b": {"c"}, "c": set()}
    assert house.floors(chain) == 3
    assert all(len(group) == 1 for group in house.groups(chain))
    circle = {**chain, "c": {"b", "d"}, "d": set()}
    assert house.floors(circle) == 3
    assert {"b", "c"} in house.groups(circle)
