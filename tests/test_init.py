"""The public face: cheap to import, and every name it promises is there."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import pytest

import fluidcc as fc


def run(code: str) -> str:
    """What a fresh interpreter prints (in this one, other tests have imported everything)."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_numpy_at_most() -> None:
    heavy = (
        "sympy",
        "scipy",
        "numba",
        "xarray",
        "matplotlib",
        "pandas",
        "control",
        "joblib",
        "msgspec",
        "h5py",
    )
    assert run(f"import sys, fluidcc; print(*[m for m in {heavy} if m in sys.modules])") == ""


@pytest.mark.slow
def test_a_simulation_does_without_dask() -> None:
    net = "fc.dumbbell([fc.LDCC], dict(capacity='3 Mbit/s'), rtt='50 ms')"
    assert (
        run(f"import sys, fluidcc as fc; fc.simulate({net}, until=1); print('dask' in sys.modules)")
        == "False"
    )


@pytest.mark.parametrize("name", fc.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(fc, name) is not None
    assert name in dir(fc)


def test_laws_are_public_names() -> None:
    from fluidcc import links, sources

    for room in (sources, links):
        for name in room.__all__:
            assert getattr(fc, name) is getattr(room, name)
            assert name in dir(fc)


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(inspect.getsource(fc))
    block = next(
        s for s in tree.body if isinstance(s, ast.If) and ast.unparse(s.test) == "TYPE_CHECKING"
    )
    seen, modules = {}, {}
    for line in block.body:
        assert isinstance(line, ast.ImportFrom)
        assert line.module is not None
        home = line.module.removeprefix("fluidcc").removeprefix(".")
        for alias in line.names:
            if (whole := f"{home}.{alias.name}".removeprefix(".")) in fc._MODULES.values():
                modules[alias.asname or alias.name] = whole
            elif alias.name != "*":
                seen[alias.name] = home
    assert seen == fc._HOME
    assert modules == fc._MODULES
    assert {*fc.__all__} == {*fc._HOME, *fc._MODULES, "__version__"}


def test_a_wrong_name_gets_a_near_one() -> None:
    with pytest.raises(AttributeError, match=r"did you mean .*Network"):
        _ = fc.Netwrk


def test_laws_are_listed_once_for_people_and_once_for_python() -> None:
    from fluidcc import sources

    tree = ast.parse(inspect.getsource(sources))
    block = next(
        s for s in tree.body if isinstance(s, ast.If) and ast.unparse(s.test) == "TYPE_CHECKING"
    )
    seen = {a.name: str(line.module).rpartition(".")[2] for line in block.body if isinstance(line,
    ast.ImportFrom)
            for a in line.names}  # fmt: skip
    assert seen == sources._HOME
    assert {*sources.__all__} == {*sources._HOME}


@pytest.mark.slow
def test_one_law_does_not_make_the_others() -> None:
    code = (
        "import sys, fluidcc as fc; fc.LDCC; print(*[m for m in sys.modules if "
        "m.startswith('fluidcc.sources.')])"
    )
    assert run(code) == "fluidcc.sources.ldcc"


def test_no_room_has_the_name_of_a_public_function() -> None:
    rooms = {module.name for module in iter_modules(fc.__path__) if module.ispkg}
    assert {
        name for name in rooms & {*fc.__all__} if not isinstance(getattr(fc, name), ModuleType)
    } == set()


def test_what_docstrings_send_users_to_can_be_imported() -> None:
    import fluidcc.sweeps.measures as m
    from fluidcc.sweeps import Point, Refine

    assert "equilibrium_rate" in m.known_measures()
    assert (Point.__module__, Refine.__module__) == (
        "fluidcc.sweeps.measures",
        "fluidcc.sweeps.refine",
    )
    text = fc.sweep.__doc__ or ""
    for name in re.findall(r"`(fluidcc(?:\.\w+)+)`", text):
        home, _, last = name.rpartition(".")
        try:
            import_module(name)
        except ImportError:
            assert hasattr(import_module(home), last), name
