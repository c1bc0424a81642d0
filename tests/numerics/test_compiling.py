"""The cache of compiled code: whatever happens to it costs a compilation, and never a result."""

import ast
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import config
from numba.core.errors import NumbaError
from numba.core.runtime import rtsys

import fluidcc
from fluidcc.base.errors import FluidccWarning
from fluidcc.numerics import compiling
from fluidcc.numerics.compiling import njit

TEXT = """
from numba import types
from fluidcc.numerics.compiling import cfunc

@cfunc(types.float64(types.float64))
def plus(x):
    return x + {number}
"""
pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path / "cache"))
    forget()
    yield tmp_path / "cache"
    forget()


def forget() -> None:
    """Forget what this process has loaded and said."""
    for name in compiling._modules:
        if name.startswith("trial"):
            sys.modules.pop(name, None)
    for name in [name for name in compiling._modules if name.startswith("trial")]:
        del compiling._modules[name]
    compiling._said.clear()


def plus(number: float = 1.0) -> tuple[float, int]:
    """What the compiled function makes of 2, and how often it came from the cache."""
    function = compiling.load_text(TEXT.format(number=number), "trial").plus
    return function.ctypes(2.0), function.cache_hits


def test_code_is_compiled_once_and_then_loaded(folder: Path) -> None:
    assert plus() == (3.0, 0)
    forget()
    assert plus() == (3.0, 1)


def test_what_another_version_wrote_is_compiled_anew_without_a_word(folder: Path) -> None:
    plus()
    (index,) = folder.glob("*.nbi")
    index.write_bytes(index.read_bytes().replace(b"types.scalars", b"types.numbers"))
    forget()
    assert plus() == (3.0, 0)
    forget()
    assert plus() == (3.0, 1)


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("size", [0, 60])
def test_a_truncated_file_is_said_once_and_written_anew(
    folder: Path, ending: str, size: int
) -> None:
    plus()
    (damaged,) = folder.glob(f"*.{ending}")
    damaged.write_bytes(damaged.read_bytes()[:size])
    forget()
    with pytest.warns(FluidccWarning, match="damaged .* compiled again"):
        assert plus() == (3.0, 0)
    forget()
    assert plus() == (3.0, 1)


def test_a_file_of_something_else_is_not_taken(folder: Path) -> None:
    plus(1.0), plus(5.0)
    one, other = folder.glob("*.nbc")
    content = one.read_bytes(), other.read_bytes()
    one.write_bytes(content[1])
    other.write_bytes(content[0])
    forget()
    assert plus(1.0)[0] == 3.0
    assert plus(5.0)[0] == 7.0


def test_no_source_file_is_trusted(folder: Path) -> None:
    name = compiling.generated_name(TEXT.format(number=1.0), "trial")
    folder.mkdir()
    (folder / f"{name}.py").write_text("raise SystemExit('run')")
    assert plus() == (3.0, 0)


def _folder(name: str) -> Any:
    return lambda patch, path: patch.setenv("FLUIDCC_CACHE_DIR", str(path / name))


def _homeless(patch: pytest.MonkeyPatch, path: Path) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("FLUIDCC_CACHE_DIR", "XDG_CACHE_HOME"):
        patch.delenv(name, raising=False)
    patch.setattr(Path, "home", home)


def _full(patch: pytest.MonkeyPatch, path: Path) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    patch.setattr(compiling._Entries, "_save_data", full)


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        (_folder("file"), "cannot be kept .* set FLUIDCC_CACHE_DIR"),
        (_folder("file/cache"), "cannot be kept .* set FLUIDCC_CACHE_DIR"),
        (_folder("/proc/none"), "cannot be kept .* set FLUIDCC_CACHE_DIR"),
        (_homeless, "home directory"),
        (_full, "No space left on device"),
    ],
)
def test_where_nothing_can_be_kept_is_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path, trouble: Any, says: str
) -> None:
    (tmp_path / "file").touch()
    trouble(monkeypatch, tmp_path)
    with pytest.warns(FluidccWarning, match=says):
        assert plus() == (3.0, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plus(2.0) == (4.0, 0)


@pytest.mark.slow
def test_threads_on_an_empty_cache_all_get_their_results(tmp_path: Path) -> None:
    script = """
import sys
from concurrent.futures import ThreadPoolExecutor
import fluidcc as fc

def run(i):
    net = fc.Network().link("l", fc.RED, capacity=5e6, delay=0.01, buffer=8e5)
    return fc.simulate(net.flow("a", (fc.LDCC, fc.Vegas)[i % 2], route=["l"]), 1)

sys.setswitchinterval(1e-6)
results = list(ThreadPoolExecutor(6).map(run, range(8)))
assert all(results[i].rate.equals(results[i % 2].rate) for i in range(8))
"""
    folder = str(Path(fluidcc.__file__).parents[1])
    known = {**os.environ, "FLUIDCC_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": folder}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "cache").glob("*.nbi"))) == 3


def test_no_two_processes_number_their_functions_alike() -> None:
    """Symbols differ by these numbers: where two were the same, those within a kept `np.sort` stood
    in for those of a kept `np.argsort`, and the process died.
    """
    script = """
import os
from numba.core.bytecode import FunctionIdentity
import fluidcc.numerics.compiling

if hasattr(os, "fork"):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
print(next(FunctionIdentity._unique_ids), flush=True)
"""
    folder = str(Path(fluidcc.__file__).parents[1])
    given: Any = {"env": {**os.environ, "PYTHONPATH": folder}, "capture_output": True, "text": True}
    runs = [subprocess.run([sys.executable, "-c", script], check=True, **given) for _ in range(2)]
    numbers = [number for run in runs for number in run.stdout.split()]
    assert len({*numbers}) == len(numbers) == (4 if hasattr(os, "fork") else 2)


def test_a_stamp_is_of_the_sources_of_a_folder_and_of_those_it_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tableaus.py", "dde/driver.py", "fluid/step.py", "linear/compiled/judge.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    monkeypatch.setattr(compiling, "_PACKAGE", tmp_path)

    def changed(name: str) -> set[str]:
        folders = ("", "fluid", "linear/compiled")
        compiling.source_hash.cache_clear()
        before = {folder: compiling.source_hash(folder) for folder in folders}
        with (tmp_path / name).open("a") as file:
            file.write("y = 2\n")
        compiling.source_hash.cache_clear()
        return {folder for folder in folders if compiling.source_hash(folder) != before[folder]}

    assert changed("fluid/step.py") == {"fluid"}
    assert changed("linear/compiled/judge.py") == {"linear/compiled"}
    assert changed("tableaus.py") == {"", "fluid", "linear/compiled"}
    assert changed("dde/driver.py") == set()
    compiling.source_hash.cache_clear()


def test_compiled_code_imports_nothing_that_its_stamp_leaves_out() -> None:
    """No folder imports compiled code of another one."""
    package = Path(compiling.__file__).parent
    shared = {("numerics", p.stem) for p in package.glob("*.py")}
    for path in package.rglob("*.py"):
        folder = ("numerics", *path.parent.relative_to(package).parts)
        if len(folder) == 1 or "njit" not in path.read_text():
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                module = tuple((node.module or "").split("."))
                start = (*folder[: len(folder) - node.level + 1],) if node.level else ()
                place = (*start, *module) if start else module[1:]
                inside = place[: len(folder)] == folder or place[:2] in shared
                assert inside or place[:1] != ("numerics",), f"{path} imports {place}"


# --- functions that compiled code alone calls -----------------------------------------------------


@njit()
def _making(values: Any) -> Any:
    return (values * values).sum()


@njit(entry=True, counted=False, cache=False)
def _handed(table: Any) -> Any:
    total = 0.0
    for i in range(len(table)):
        row = table[i]
        total += row[1:].reshape(row.size - 1, 1)[0, 0] + _making(row[:2])
    return total


def test_python_is_refused() -> None:
    with pytest.raises(TypeError, match="_making is called by compiled code alone"):
        _making(np.ones(3))


def test_it_has_no_machine_code_and_no_file() -> None:
    _handed(np.ones((4, 3)))
    (made,) = _making.overloads.values()
    assert made.fndesc.llvm_func_name in made.library.get_llvm_str()
    assert not made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    assert not _making._cache.cache_path


def test_an_array_is_refused() -> None:
    @njit(entry=True, counted=False, cache=False)
    def made(n: int) -> Any:
        return np.zeros(n)[0]

    with pytest.raises(NumbaError):
        made(3)


def test_no_array_is_lost() -> None:
    table = np.arange(12.0).reshape(4, 3)
    held, nrt = table.copy(), pytest.importorskip("numba.core.runtime._nrt_python")
    _handed(held)
    nrt.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    found = _handed(held)
    after = rtsys.get_allocation_stats()
    nrt.memsys_disable_stats()
    assert found == table[:, 1].sum() + (table[:, :2] ** 2).sum()
    assert after.alloc - before.alloc == after.free - before.free > 0
    np.testing.assert_array_equal(held, table)
