"""Checkpoints: finished chunks on disk, so that a killed sweep resumes.

The store is a Zarr group, which can be read while the sweep runs: one array (point, ...) for each
variable, and for the texts ``error`` and ``warning``, in chunks of as many points as the sweep's.
Last of all that belongs to a chunk, its digest is written into the array ``digest``. A chunk whose
values are not those of its digest is computed again. What the sweep is stands in the attribute
``sweep`` of the group, which is written when all arrays are there.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fluidcc.base import version
from fluidcc.base.arguments import shown
from fluidcc.base.errors import InvalidInput
from fluidcc.base.files import present, told_by_system
from fluidcc.laws import Law
from fluidcc.network import Network
from fluidcc.sweeps.measures import TOLD
from fluidcc.sweeps.task import Piece, Task, Variable, empty_piece
from fluidcc.symbols import plain

# parts of the package on which no result depends
IRRELEVANT = ("base/progress.py", "cli", "network/drawing.py", "plotting")
LOCK = "sweep.lock"
DIGEST = "digest"  # of the results of each chunk; 0 where there are none
RESERVED = (LOCK, DIGEST, "zarr.json")  # names in a store that are no variables


class Header(msgspec.Struct):
    """The attribute ``sweep``: what the store is of, and its form."""

    identity: dict[str, Any]
    size: Annotated[int, msgspec.Meta(ge=1)]
    chunk: Annotated[int, msgspec.Meta(ge=1)]
    schema: Annotated[dict[str, Variable], msgspec.Meta(min_length=1)]

    def arrays(self) -> dict[str, tuple[tuple[int, ...], Variable]]:
        """Return the shape of each array, and the form of its elements along the first axis."""
        points = self.schema | {name: Variable("str") for name in TOLD}
        found = {name: ((self.size, *v.shape), v) for name, v in points.items()}
        return found | {DIGEST: ((math.ceil(self.size / self.chunk),), Variable("uint64"))}


class Store:
    """The results of a sweep on disk.

    Parameters
    ----------
    path : str or Path
        Folder of the store; made if it is not there.
    identity : mapping
        What the results depend on, as JSON: a store with another one is refused.

    Attributes
    ----------
    header : Header, optional
        What was begun here before.

    Raises
    ------
    InvalidInput
        If the store belongs to another sweep, saying what changed; if it is in use, or no store at
        all.
    """

    def __init__(self, path: str | Path, identity: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.header: Header | None = None
        self._identity = json.loads(json.dumps(identity))
        self._lock: Any = None
        self._arrays: dict[str, Any] = {}
        try:
            names = {file.name for file in self.path.iterdir()} if present(self.path) else set()
        except NotADirectoryError:
            names = {""}
        except (OSError, ValueError) as error:  # no name of a file, or one that must not be read
            raise InvalidInput(
                f"store {shown(str(path))} cannot be read ({told_by_system(error)}); give another"
            ) from None
        if names and LOCK not in names:
            raise InvalidInput(
                f"store {str(self.path)!r} holds something else than a sweep; give another name"
            )
        if not names:
            return
        self._hold()
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Read the header and open the arrays, unless the sweep was killed before all were made."""
        import zarr

        if not present(self.path / "zarr.json"):
            return
        place = self.path
        try:
            group = zarr.open_group(str(self.path), mode="r+")
            if (found := group.attrs.get("sweep")) is None:
                return
            known = msgspec.convert(found, Header)
            # or chunks of NaN alone would not be kept, of which the bits matter
            with zarr.config.set({"array.write_empty_chunks": True}):
                for name, (shape, _) in known.arrays().items():
                    place = self.path / name
                    array: Any = group[name]
                    self._arrays[name] = array
                    if array.shape != shape:
                        raise ValueError(f"shape {array.shape}")
        except Exception as error:  # of many classes, by what is damaged
            raise InvalidInput(
                f"{place} is damaged ({' '.join(str(error).split())}); delete the store, or give "
                "another"
            ) from None
        if changes := differences(known.identity, self._identity):
            more = f"; and {len(changes) - 5} more" if len(changes) > 5 else ""
            raise InvalidInput(
                f"store {str(self.path)!r} belongs to another sweep: "
                f"{'; '.join(changes[:5])}{more}. Give another store, or delete it"
            )
        self.header = known

    def _hold(self) -> None:
        """Keep others from writing into the store at the same time; the system lets go of it when
        this process ends.
        """
        try:
            self._lock = open(self.path / LOCK, "w")  # noqa: SIM115 - held as long as the store
        except OSError as error:
            raise InvalidInput(
                f"store {str(self.path)!r}: its file {LOCK!r} cannot be written "
                f"({told_by_system(error)}); give another store"
            ) from None
        try:
            import fcntl

            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # no such locks on this system
            return
        except OSError:
            self.close()
            raise InvalidInput(
                f"store {str(self.path)!r} is in use by another sweep; wait, or give another"
            ) from None

    def begin(self, schema: Mapping[str, Variable], size: int, chunk: int) -> None:
        """Make the store for `size` points in chunks of `chunk`."""
        for name in schema:
            if name in RESERVED or not re.fullmatch(r"[^./\\\0][^/\\\0]{0,99}", name):
                raise InvalidInput(
                    f"variable {shown(name)} cannot be kept in a store under this name; rename it"
                )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"store {str(self.path)!r} cannot be made ({told_by_system(error)}); give another"
            ) from None
        if self._lock is None:
            self._hold()
        import zarr

        group = zarr.open_group(str(self.path), mode="a")
        header = Header(self._identity, size, chunk, dict(schema))
        for name, (shape, v) in header.arrays().items():
            group.create_array(
                name,
                shape=shape,
                chunks=(1 if name == DIGEST else min(chunk, size), *(max(n, 1) for n in v.shape)),
                dtype=v.dtype,
                fill_value=_FILL[v.dtype],
                dimension_names=("chunk" if name == DIGEST else "point", *v.dims),
                attributes=dict(v.attrs),
                overwrite=True,
            )
        group.attrs["sweep"] = msgspec.to_builtins(header)
        self._open()

    def write(self, number: int, piece: Piece) -> None:
        """Keep the results of chunk `number`."""
        assert self.header is not None
        first = number * self.header.chunk
        for name, values in piece.values.items():
            self._arrays[name][first : first + len(piece)] = values
        self._arrays[DIGEST][number] = _digest(piece)

    def read(self) -> tuple[Piece, set[int]]:
        """Return all results, and which chunks these are.

        A chunk that is missing, or not as it was written, is left out.
        """
        assert self.header is not None
        size, chunk = self.header.size, self.header.chunk
        whole, numbers = empty_piece(self.header.schema, size), set()
        for number, first in enumerate(range(0, size, chunk)):
            rows = slice(first, first + chunk)
            try:
                digest = int(self._arrays[DIGEST][number])
                values = {
                    name: np.asarray(self._arrays[name][rows], like.dtype)
                    for name, like in whole.values.items()
                }
            except Exception:  # of many classes, by what is damaged
                continue
            if digest == _digest(piece := Piece(values)):
                whole.put(rows, piece)
                numbers.add(number)
        return whole, numbers

    def close(self) -> None:
        """Let go of the store."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


_FILL = {"float64": np.nan, "complex128": complex(np.nan, np.nan), "str": "", "uint64": 0}


def _digest(piece: Piece) -> int:
    """The same for equal results only."""
    digest = hashlib.sha256()
    for name in sorted(piece.values):
        values = piece.values[name]
        text = repr(values.tolist()).encode() if name in TOLD else values.tobytes()
        digest.update(name.encode() + text)
    return int.from_bytes(digest.digest()[:8], "little")


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """What differs between two identities, in words."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in dict.fromkeys((*old, *new)):
            here = f"{place} {key}".strip()
            if key in new and key in old:
                found += differences(old[key], new[key], here)
            else:
                found.append(f"{here} is {'new' if key in new else 'no longer there'}")
        return found
    was, now = _short(old), _short(new)
    if old == new:
        return []
    return [f"{place} was {was}, now {now}" if was != now else f"{place} has changed"]


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
        if not any(where.is_relative_to(name) for name in IRRELEVANT):
            digest.update(where.as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _plain(value: Any) -> Any:
    """Something that JSON can hold, equal for equal values."""
    if isinstance(value, Network):
        specs: dict[str, Mapping[str, Any]] = {"link": value.links, "flow": value.flows}
        return {
            f"{kind} {name}": _spec(spec) for kind, of in specs.items() for name, spec in of.items()
        }
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
