"""The public face: cheap to import, and every name it promises is there."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import pytest

import fluidcc as fc
from fluidcc import links, sources
from fluidcc.laws import Law


def run(code: str) -> str:
    """What a fresh interpreter prints (in this one, other tests have imported everything)."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_numpy_at_most() -> None:
    heavy = "sympy scipy numba xarray matplotlib pandas control joblib msgspec h5py".split()  # noqa: SIM905
    assert run(f"import sys, fluidcc; print(*[m for m in {heavy} if m in sys.modules])") == ""


@pytest.mark.slow
def test_a_simulation_does_without_dask() -> None:
    net = "fc.dumbbell([fc.LDCC], dict(capacity='3 Mbit/s'), rtt='50 ms')"
    code = f"import sys, fluidcc as fc; fc.simulate({net}, until=1); print('dask' in sys.modules)"
    assert run(code) == "False"


@pytest.mark.parametrize("name", fc.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(fc, name) is not None
    assert name in dir(fc)


def public() -> dict[str, Any]:
    """What can be called, by its name: no laws, which are one example each, and no errors."""
    found = {}
    for name in fc.__all__:
        thing = getattr(fc, name)
        parts = getattr(thing, "__all__", ()) if isinstance(thing, ModuleType) else [""]
        for part in parts:
            one = getattr(thing, part) if part else thing
            if inspect.isroutine(one) or inspect.isclass(one):
                found[f"{name}.{part}".rstrip(".")] = one
    return {name: one for name, one in found.items() if not name.startswith("errors.")}


@pytest.mark.parametrize("name", public())
def test_what_can_be_called_has_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(public()[name]) or "")


def test_laws_are_public_names() -> None:
    for room in (sources, links):
        for name in room.__all__:
            assert getattr(fc, name) is getattr(room, name)
            assert name in dir(fc)


def test_type_checkers_see_the_same_names() -> None:
    seen, modules = {}, {}
    for line in block_of(fc):
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


def block_of(module: ModuleType) -> list[ast.stmt]:
    """What only type checkers run of a module."""
    tree = ast.parse(inspect.getsource(module))
    return next(
        s.body
        for s in tree.body
        if isinstance(s, ast.If) and ast.unparse(s.test) == "TYPE_CHECKING"
    )


def test_laws_are_listed_once_for_people_and_once_for_python() -> None:
    for room in (sources, links):
        lines = [line for line in block_of(room) if isinstance(line, ast.ImportFrom)]
        assert [str(line.module).rpartition(".")[2] for line in lines] == [*room._FILES]
        for file, names in room._FILES.items():
            module = import_module(f"{room.__name__}.{file}")
            laws = [n for n in module.__all__ if isinstance(getattr(module, n), Law)]
            assert sorted(laws) == sorted(names)


@pytest.mark.slow
def test_one_law_does_not_make_the_others() -> None:
    laws = "[m for m in sys.modules if m.startswith('fluidcc.sources.')]"
    assert run(f"import sys, fluidcc as fc; fc.LDCC; print(*{laws})") == "fluidcc.sources.ldcc"


def test_no_room_has_the_name_of_a_public_function() -> None:
    rooms = {module.name for module in iter_modules(fc.__path__) if module.ispkg}
    both = [getattr(fc, name) for name in rooms & {*fc.__all__}]
    assert all(isinstance(value, ModuleType) for value in both)


def test_what_docstrings_send_users_to_can_be_imported() -> None:
    import fluidcc.sweeps.measures as m
    from fluidcc.sweeps import Point, Refine

    assert "equilibrium_rate" in m.known_measures()
    homes = (Point.__module__, Refine.__module__)
    assert homes == ("fluidcc.sweeps.measures", "fluidcc.sweeps.refine")
    text = fc.sweep.__doc__ or ""
    for name in re.findall(r"`(fluidcc(?:\.\w+)+)`", text):
        home, _, last = name.rpartition(".")
        try:
            import_module(name)
        except ImportError:
            assert hasattr(import_module(home), last), name
