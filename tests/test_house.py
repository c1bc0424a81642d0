"""What `make house` measures, on packages and graphs that can be counted by hand; and whether the
texts that `make mutants` changes are there.
"""

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def house() -> Any:
    return _tool("house")


def _tool(name: str) -> Any:
    path = Path(__file__).parents[1] / f"tools/{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_small_package_is_measured(
    house: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert house.tokens(tmp_path / "p" / "top" / "a.py") == 13
    monkeypatch.setattr(house, "KNOWN", {"a": "top", "all but a": ". | top/a.py"})
    assert house.known(tmp_path / "p") == {"a": 18, "all but a": 85}
    # low imports top, which imports top.a, which imports low
    found = house.structure(tmp_path / "p")
    assert found == {"rooms": 2, "floors": 2, "circles of files": 1, "circles of rooms": 1}
    for path in (tmp_path / "p" / "low.py", tmp_path / "p" / "top" / "a.py"):
        path.write_text("class C: ...\n")
    assert house.shared_names(tmp_path / "p") == {"C": ["low.py", "top/a.py"]}


def test_floors_and_circles(house: Any) -> None:
    chain: dict[str, set[str]] = {"a": {"b"}, "b": {"c"}, "c": set()}
    assert house.floors(chain) == 3
    assert all(len(group) == 1 for group in house.groups(chain))
    circle = {**chain, "c": {"b", "d"}, "d": set()}
    assert house.floors(circle) == 3
    assert {"b", "c"} in house.groups(circle)


def test_copies_of_a_network_are_counted(house: Any) -> None:
    import fluidcc as fc

    net = fc.dumbbell([fc.LDCC] * 2, {"capacity": "3 Mbit/s"}, rtt="50 ms")
    assert house.copies_in(lambda: [net.copy(), net.with_link("bottleneck", capacity=2e6)]) == 2
    assert house.copies_in(lambda: net.links) == 0


def test_every_mutation_makes_other_python_of_a_text_that_stands_once() -> None:
    tool = _tool("mutants")
    for row in tool.read():
        found = tool.places(tool.ROOT / "fluidcc" / row["room"], row["find"])
        assert len(found) == 1, row["find"]
        path, start, end = found[0]
        text = path.read_text("utf-8")
        mutant = ast.parse(text[:start] + row["replace"] + text[end:], row["replace"])
        assert ast.dump(mutant) != ast.dump(ast.parse(text)), row["find"]
