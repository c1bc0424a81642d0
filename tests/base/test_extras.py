"""What needs an extra says so in one sentence, and every extra brings what is said of it."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

import fluidcc as fc
from fluidcc.base.errors import Unsupported
from fluidcc.base.extras import command, need
from fluidcc.cli.sweep_files import ENDINGS
from fluidcc.conditions.positive_real import kyp

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def needed() -> list[tuple[str, str]]:
    """Each call of `need` in the package: what it imports, of which extra."""
    found = [("panel", "explore"), ("tomli_w", "explore")]
    found += [(package, "store") for package in ENDINGS.values() if package]
    for file in (ROOT / "fluidcc").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "need":
                module, extra = node.args[:2]
                if isinstance(module, ast.Constant) and isinstance(extra, ast.Constant):
                    found.append((str(module.value), str(extra.value)))
    return found


def test_every_extra_brings_the_packages_that_name_it() -> None:
    brought = {k: [text.split(">=")[0] for text in texts] for k, texts in EXTRAS.items()}
    found = needed()
    assert len(found) > 9
    for module, extra in found:
        package = module.split(".")[0].replace("_", "-").replace("flint", "python-flint")
        assert package in brought[extra], (module, extra)


@pytest.mark.parametrize(
    ("missing", "extra", "task"),
    [
        ("flint", "certify", lambda two: fc.stability(two, certify=True)),
        ("clarabel", "certify", lambda two: kyp(fc.DelayLTI.transfer([1], [1, 1]))),
        ("zarr", "store", lambda two: fc.sweep(two, {"eta": [0.1]}, "stable", store="s.zarr")),
        ("joblib.externals.loky", "cluster",
         lambda two: fc.sweep(two, {"eta": [0.1]}, "stable", executor="processes")),
    ],
)  # fmt: skip
def test_what_needs_an_extra_names_it(
    missing: str, extra: str, task: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = fc.dumbbell([fc.LDCC] * 2, {"capacity": "3 Mbit/s"}, rtt="50 ms")
    package = missing.split(".")[0]
    for name in (missing, package):
        monkeypatch.setitem(sys.modules, name, None)
    said = f'needs the package {package}, which is not installed: pip install ".[{extra}]"'
    with pytest.raises(Unsupported) as told:
        task(two)  # type: ignore[operator]
    assert said in str(told.value)


def test_a_package_that_is_there_and_broken_keeps_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_there.py").write_text("import no_such_package_at_all")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_package_at_all"):
        need("half_there", "store", "this")


def test_a_sweep_asks_for_no_extra_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that holds the GIL goes to processes by default: without joblib it stays here."""
    for name in ("joblib", "joblib.externals.loky"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("fluidcc.sweeps.execute.WORTH_WORKERS", 0.0)
    found = fc.sweep(lambda point: point["x"] ** 2, {"x": range(1, 400)})
    assert found["value"].values.tolist() == [k**2 for k in range(1, 400)]


def test_the_remedy_is_a_command_that_works_in_a_clone() -> None:
    assert {f'pip install ".[{extra}]", in a clone of fluidcc' for extra in EXTRAS} == {
        command(extra) for extra in EXTRAS
    }
    text = "".join(f.read_text() for f in [*ROOT.glob("docs/**/*.md"), ROOT / "README.md"])
    assert set(re.findall(r'pip install "?(.*?)[" `]', text)) <= {
        ".", *(f".[{extra}]" for extra in EXTRAS)
    }  # fmt: skip
