"""What the results of a sweep depend on, as data that can be compared: a store is resumed only if nothing changed."""

from __future__ import annotations

import hashlib
import platform
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base import version
from fluidcc.network import Network
from fluidcc.sweeps.task import Task
from fluidcc.symbols import plain

__all__ = ["identity", "versions"]

# No result depends on these.
_OUTSIDE = ("base/progress.py", "cli", "network/drawing.py", "network/zoo", "papers", "plotting")


def identity(task: Task, points: NDArray[np.int64] | None = None) -> dict[str, Any]:
    """The model, the grid, the measures, the options, the versions of the code, and the points if not all are meant."""
    return {
        "points": "all" if points is None else hashlib.sha256(points.tobytes()).hexdigest()[:16],
        "model": _network(task.model) if isinstance(task.model, Network) else {"function": _function(task.model)},
        "grid": {axis.name: [_plain(v) for v in axis.values] for axis in task.grid.axes},
        "measure": {m.name: _function(m.function) if m.function else m.key for m in task.measures},
        "option": {k: _plain(v) for k, v in task.options.items()},
        "version of": versions(),
    }


def versions() -> dict[str, str]:
    """What computes: equal where results are equal bit for bit."""
    import numba

    return {
        "fluidcc": version.__version__,
        "fluidcc's code": _code_of_fluidcc(),
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "Numba": numba.__version__,
        "processor": platform.machine(),
    }


@lru_cache(maxsize=1)
def _code_of_fluidcc() -> str:
    folder = Path(version.__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        where = path.relative_to(folder)
        if not any(where.is_relative_to(name) for name in _OUTSIDE):
            digest.update(where.as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _network(net: Network) -> dict[str, Any]:
    links = {f"link {name}": _spec(spec) for name, spec in net.links.items()}
    return links | {f"flow {name}": _spec(spec) for name, spec in net.flows.items()}


def _spec(spec: Any) -> dict[str, Any]:
    about = {k: _plain(v) for k, v in vars(spec).items() if k not in ("name", "law")}
    law = _hash(repr(spec.law.structure))
    return {"law": f"{spec.law.name} {law}", **{plain(p): float(v) for p, v in spec.law.params.items()}, **about}


def _plain(value: Any) -> Any:
    """Something that JSON can hold, equal for equal values."""
    if isinstance(value, bool | int | float | str) or value is None:
        return value if not isinstance(value, float) or abs(value) < float("inf") else repr(value)
    if hasattr(value, "items"):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "structure") and hasattr(value, "params"):
        return f"{value.name} {_hash(repr((value.structure, value.params)))}"
    if isinstance(value, Network):
        return _network(value)
    if callable(value):
        return _function(value)
    return f"{type(value).__name__} {_hash(repr(value))}"


def _function(function: Any) -> str:
    """A function by its name and what it does: its code, its constants, its defaults and what it closes over."""
    name = getattr(function, "__qualname__", type(function).__name__)
    digest = hashlib.sha256()
    _digest(function, digest, set())
    return f"{name} {digest.hexdigest()[:16]}"


def _digest(thing: Any, digest: Any, seen: set[int]) -> None:
    if id(thing) in seen:
        return
    code = getattr(thing, "__code__", None)
    if isinstance(code, CodeType):
        seen.add(id(thing))
        _digest(code, digest, seen)
        _digest((thing.__defaults__, thing.__kwdefaults__), digest, seen)
        for cell in thing.__closure__ or ():
            _digest(cell.cell_contents, digest, seen)
        for name in code.co_names:  # helpers and constants of the same module or cell
            value = thing.__globals__.get(name)
            if value is not None and getattr(value, "__module__", None) in (None, thing.__module__):
                digest.update(name.encode())
                _digest(value, digest, seen)
    elif isinstance(thing, CodeType):
        digest.update(thing.co_code + repr(thing.co_names).encode())
        for constant in thing.co_consts:
            _digest(constant, digest, seen)
    elif hasattr(thing, "func") and hasattr(thing, "args") and hasattr(thing, "keywords"):  # functools.partial
        _digest((thing.func, thing.args, dict(thing.keywords)), digest, seen)
    elif isinstance(thing, list | tuple):
        for part in thing:
            _digest(part, digest, seen)
        digest.update(b",")
    elif callable(thing) and not isinstance(thing, type) and not hasattr(thing, "structure"):
        digest.update(type(thing).__qualname__.encode())
        _digest(type(thing).__call__, digest, seen)
        _digest(sorted(getattr(thing, "__dict__", {}).items()), digest, seen)
    elif hasattr(thing, "tobytes"):
        digest.update(repr(getattr(thing, "shape", "")).encode() + thing.tobytes())
    else:
        digest.update(repr(_plain(thing) if not callable(thing) else thing).encode())


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
