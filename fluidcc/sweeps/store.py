"""Checkpoints: finished chunks on disk, so that a sweep that is killed goes on where it was.

The store is a folder with a file ``sweep.json``, which says what sweep it is of, and a file
``<number>.npz`` for each chunk: the arrays (points, ...) of its variables, the reasons of the
points that failed and the warnings of those that are doubtful. Each file appears at once and whole.
A chunk without it, or whose file is not as it was written (a ZIP file has check sums), is computed
again. A store whose ``sweep.json`` is damaged is refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from fluidcc.base import version
from fluidcc.base.arguments import shown
from fluidcc.base.errors import InvalidInput
from fluidcc.base.files import _said, present
from fluidcc.laws import Law
from fluidcc.network import Network
from fluidcc.sweeps.task import Piece, Task, Variable, empty_piece
from fluidcc.symbols import plain

__all__ = ["Store", "differences", "identity", "versions"]

# No result depends on these.
_OUTSIDE = ("base/progress.py", "cli", "network/drawing.py", "network/zoo", "papers", "plotting")


class _About(msgspec.Struct):
    """``sweep.json``: what the store is of, and its form."""

    identity: dict[str, Any]
    chunk: Annotated[int, msgspec.Meta(ge=1)]
    schema: Annotated[dict[str, Variable], msgspec.Meta(min_length=1)]


class Store:
    """The results of a sweep on disk.

    Parameters
    ----------
    path : str or Path
        Folder of the store; made if it is not there.
    identity : mapping
        What the results depend on, as JSON: a store with another one is refused.

    Raises
    ------
    InvalidInput
        If the store belongs to another sweep, saying what changed; if it is in use, or no store at
        all.
    """

    def __init__(self, path: str | Path, identity: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._identity = json.loads(json.dumps(identity))
        self._lock: Any = None
        self.chunk, self.schema = 0, dict[str, Variable]()
        try:
            there = present(self.path) and (not self.path.is_dir() or any(self.path.iterdir()))
        except (OSError, ValueError) as error:  # no name of a file, or one that must not be read
            raise InvalidInput(
                f"store {shown(str(path))} cannot be read ({_said(error)}); give another"
            ) from None
        if there:
            self._open()

    def _open(self) -> None:
        about = self.path / "sweep.json"
        if not about.is_file():
            names = [p.name for p in self.path.iterdir()] if self.path.is_dir() else [""]
            if not all(n == "lock" or n.startswith(".sweep.json") for n in names):
                raise InvalidInput(
                    f"store {str(self.path)!r} holds something else than a sweep; give another name"
                )
            self._hold()  # killed while it was made: begin() makes it anew
            return
        self._hold()
        try:
            known = _read(about)
            changes = differences(known.identity, self._identity)
            if changes:
                more = f"; and {len(changes) - 5} more" if len(changes) > 5 else ""
                raise InvalidInput(
                    f"store {str(self.path)!r} belongs to another sweep: "
                    f"{'; '.join(changes[:5])}{more}. Give another store, or delete it"
                )
            self.chunk, self.schema = known.chunk, known.schema
        except BaseException:
            self.close()
            raise

    def _hold(self) -> None:
        """Keep others from writing into the store at the same time; the system lets go of it when
        this process ends.
        """
        try:
            import fcntl
        except ImportError:  # no such locks on this system
            return
        try:
            self._lock = open(self.path / "lock", "w")  # noqa: SIM115 - held as long as the store
        except OSError as error:
            raise InvalidInput(
                f"store {str(self.path)!r}: its file 'lock' cannot be written ({_said(error)}); "
                "give another store"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise InvalidInput(
                f"store {str(self.path)!r} is in use by another sweep; wait, or give another"
            ) from None

    @property
    def begun(self) -> bool:
        """Whether the store was there before."""
        return bool(self.schema)

    def begin(self, schema: Mapping[str, Variable], chunk: int) -> None:
        """Make the store for chunks of so many points."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"store {str(self.path)!r} cannot be made ({_said(error)}); give another"
            ) from None
        if self._lock is None:
            self._hold()
        self.chunk, self.schema = chunk, dict(schema)
        about = _About(self._identity, chunk, self.schema)
        text = json.dumps(asdict(about), default=vars, indent=1)
        _replace(self.path / "sweep.json", text.encode())

    def _file(self, number: int) -> Path:
        return self.path / f"{number}.npz"

    def write(self, number: int, piece: Piece) -> None:
        """Keep the results of chunk `number`."""
        told, file = json.dumps([piece.errors, piece.doubts]), io.BytesIO()
        # by their places, since a variable may have any name
        np.savez(file, np.array(told), *(piece.values[name] for name in self.schema))
        _replace(self._file(number), file.getvalue())

    def _chunk(self, number: int) -> Piece | None:
        """What was written as chunk `number`, or None if it is not there, or not as it was."""
        try:
            with np.load(io.BytesIO(self._file(number).read_bytes())) as file:
                told, *arrays = file.values()
        except Exception:  # of many classes, by what is damaged
            return None
        errors, doubts = (
            {int(row): said for row, said in part.items()} for part in json.loads(told.item())
        )
        return Piece(dict(zip(self.schema, arrays, strict=True)), errors, doubts)

    def read(self, size: int) -> tuple[Piece, set[int]]:
        """All values of so many points, the reasons of the failed ones, and the warnings of others;
        and which chunks these are.

        A chunk that is missing, or not as it was written, is left out.
        """
        whole, numbers = empty_piece(self.schema, size), set()
        for first in range(0, size, self.chunk):
            piece = self._chunk(first // self.chunk)
            if piece is not None:
                whole.put(range(first, first + len(piece)), piece)
                numbers.add(first // self.chunk)
        return whole, numbers

    def close(self) -> None:
        """Let go of the store."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _replace(file: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.write_bytes(content)
    new.replace(file)


def _read(file: Path) -> _About:
    """What ``sweep.json`` says, if it has the right form."""
    try:
        return msgspec.convert(json.loads(file.read_bytes()), _About)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{file} is damaged ({' '.join(str(error).split())}); delete the store, or give another"
        ) from None


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """What differs between two identities, in words."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in dict.fromkeys((*old, *new)):
            here = f"{place} {key}".strip()
            if key not in new:
                found.append(f"{here} is no longer there")
            elif key not in old:
                found.append(f"{here} is new")
            else:
                found += differences(old[key], new[key], here)
        return found
    if old == new:
        return []
    texts = [_short(old), _short(new)]
    return [
        f"{place} was {texts[0]}, now {texts[1]}"
        if texts[0] != texts[1]
        else f"{place} has changed"
    ]


def _short(value: Any) -> str:
    text = json.dumps(value)
    if len(text) <= 60:
        return text
    if isinstance(value, list):
        return f"{len(value)} values from {json.dumps(value[0])} to {json.dumps(value[-1])}"
    return f"{text[:50]}..."


# --- what results depend on -----------------------------------------------------------------------


def identity(task: Task, points: NDArray[np.int64] | None = None) -> dict[str, Any]:
    """The model, the grid, the measures, the options, the versions of the code, and the points if
    not all are meant.
    """
    return {
        "points": "all" if points is None else _hash(points.tolist()),
        "model": _plain(net if isinstance(net := task.model, Network) else {"function": net}),
        "grid": {axis.name: _plain(axis.values) for axis in task.grid.axes},
        "measure": {m.name: _plain(m.function) if m.function else m.key for m in task.measures},
        "option": _plain(task.options),
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


def _plain(value: Any) -> Any:
    """Something that JSON can hold, equal for equal values."""
    if isinstance(value, Network):
        specs: dict[str, Any] = {f"link {name}": spec for name, spec in value.links.items()}
        specs |= {f"flow {name}": spec for name, spec in value.flows.items()}
        return {name: _spec(spec) for name, spec in specs.items()}
    if isinstance(value, float):
        return value if abs(value) < float("inf") else repr(value)
    if isinstance(value, bool | int | str) or value is None:
        return value
    if hasattr(value, "items"):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Law):
        return f"{value.name} {_hash((value.structure, value.params))}"
    if callable(value):
        name = getattr(value, "__qualname__", type(value).__name__)
        return f"{name} {_hash(_meaning(value, set()))}"
    return f"{type(value).__name__} {_hash(value)}"


def _spec(spec: Any) -> dict[str, Any]:
    about = {k: _plain(v) for k, v in vars(spec).items() if k not in ("name", "law")}
    parameters = {plain(p): float(v) for p, v in spec.law.params.items()}
    return {"law": f"{spec.law.name} {_hash(spec.law.structure)}", **parameters, **about}


def _meaning(thing: Any, seen: set[int]) -> Any:
    """What a function does: its code, constants and defaults, what it closes over, and the helpers
    and constants of its own module; so also of what is called like a function, and of their parts.
    """
    if id(thing) in seen:
        return "above"
    if isinstance(thing, list | tuple):
        return [_meaning(part, seen) for part in thing]
    if isinstance(thing, CodeType):
        constants = _meaning(thing.co_consts, seen)
        return [thing.co_code, thing.co_names, constants]
    if isinstance(code := getattr(thing, "__code__", None), CodeType):
        seen.add(id(thing))
        known = {name: thing.__globals__.get(name) for name in code.co_names}
        own = (None, thing.__module__)
        near = [(k, v) for k, v in known.items() if getattr(v, "__module__", None) in own]
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        return _meaning([code, thing.__defaults__, thing.__kwdefaults__, cells, near], seen)
    if isinstance(thing, partial):
        return _meaning([thing.func, thing.args, thing.keywords], seen)
    if callable(thing) and not isinstance(thing, type | Law):
        parts = sorted(getattr(thing, "__dict__", {}).items())
        return [type(thing).__qualname__, _meaning([type(thing).__call__, parts], seen)]
    if hasattr(thing, "tobytes"):
        return [getattr(thing, "shape", ""), thing.tobytes()]
    return repr(thing if callable(thing) else _plain(thing))


def _hash(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]
