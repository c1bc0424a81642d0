"""Checkpoints: finished chunks on disk, so that a sweep that is killed goes on where it was.

The store is a Zarr group, one array (points, ...) for each variable, in chunks of as many points as the sweep's. Last
of all that belongs to a chunk, a file ``chunks/<number>.json`` appears, at once and whole, with the reasons of the
points that failed and the warnings of those that are doubtful: a chunk without it is computed again. The arrays carry
checksums, so that damage is noticed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.errors import InvalidInput
from fluidcc.sweep.piece import Piece, Variable

__all__ = ["Store", "differences"]

_MAKING = "making"  # a file that is there while the store is made
_TEXTS = ("errors", "doubts")  # what is kept of single points in JSON


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
        If the store belongs to another sweep, saying what changed; if it is in use, or no store at all.
    """

    def __init__(self, path: str | Path, identity: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._identity = json.loads(json.dumps(identity))
        self._lock: Any = None
        self._group: Any = None
        self.chunk, self.cost = 0, 0.0
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            self._open()

    def _open(self) -> None:
        about = self.path / "sweep.json"
        if not about.is_file():
            names = {p.name for p in self.path.iterdir()} if self.path.is_dir() else {""}
            if _MAKING not in names and not all(n == "lock" or n.startswith(f".{_MAKING}") for n in names):
                raise InvalidInput(f"store {str(self.path)!r} holds something else than a sweep; give another name")
            self._hold()  # killed while it was made: begin() makes it anew
            return
        self._hold()
        known = json.loads(about.read_text(encoding="utf-8"))
        changes = differences(known["identity"], self._identity)
        if changes:
            self.close()
            more = f"; and {len(changes) - 5} more" if len(changes) > 5 else ""
            raise InvalidInput(
                f"store {str(self.path)!r} belongs to another sweep: {'; '.join(changes[:5])}{more}. "
                "Give another store, or delete it"
            )
        import zarr

        self._group = zarr.open_group(str(self.path), mode="r+")
        self.chunk, self.cost = int(known["chunk"]), float(known["cost"])

    def _hold(self) -> None:
        """Keep others from writing into the store at the same time; the system lets go of it when this process ends."""
        try:
            import fcntl
        except ImportError:  # no such locks on this system
            return
        self._lock = open(self.path / "lock", "w")  # noqa: SIM115 - held as long as the store
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise InvalidInput(f"store {str(self.path)!r} is in use by another sweep; wait, or give another") from None

    @property
    def begun(self) -> bool:
        """Whether the store was there before."""
        return self._group is not None

    def schema(self) -> dict[str, Variable]:
        """The variables of a store that was there before."""
        known = json.loads((self.path / "sweep.json").read_text(encoding="utf-8"))["schema"]
        return {name: _variable(about) for name, about in known.items()}

    def begin(self, schema: Mapping[str, Variable], size: int, chunk: int, cost: float) -> None:
        """Make the store for `size` points in chunks of `chunk`; ``sweep.json`` comes last, and makes it one.

        `cost` is how many seconds a point takes, for those who resume.
        """
        import zarr
        from zarr.codecs import BloscCodec, Crc32cCodec

        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"store {str(self.path)!r} cannot be made ({error.strerror}); give another") from None
        if self._lock is None:
            self._hold()
        _replace(self.path / _MAKING, "")
        group = zarr.open_group(str(self.path), mode="a")
        common: dict[str, Any] = {"compressors": [BloscCodec(), Crc32cCodec()], "overwrite": True}
        for name, v in schema.items():
            group.create_array(
                name,
                shape=(size, *v.shape),
                chunks=(min(chunk, size), *(max(n, 1) for n in v.shape)),
                dtype=v.dtype,
                fill_value=complex(np.nan, np.nan) if v.dtype == "complex128" else np.nan,
                dimension_names=("point", *v.dims),
                attributes=dict(v.attrs),
                **common,
            )
        about = {
            "identity": self._identity,
            "chunk": chunk,
            "cost": cost,
            "schema": {name: vars(v) for name, v in schema.items()},
        }
        _replace(self.path / "sweep.json", json.dumps(about, indent=1))
        (self.path / "chunks").mkdir(exist_ok=True)
        (self.path / _MAKING).unlink()
        self._group = group
        self.chunk = chunk

    def finished(self) -> set[int]:
        """Numbers of the chunks that are whole."""
        return {int(file.stem) for file in (self.path / "chunks").glob("[0-9]*.json")}

    def write(self, number: int, piece: Piece) -> None:
        """Keep the results of chunk `number`."""
        first = number * self.chunk
        for name, values in piece.values.items():
            self._group[name][first : first + len(values)] = values
        about: dict[str, Any] = {"seconds": piece.seconds}
        for name in _TEXTS:
            about[name] = {first + k: text for k, text in getattr(piece, name).items()}
        _replace(self.path / "chunks" / f"{number}.json", json.dumps(about))

    def read(self) -> Piece:
        """All values, the reasons of the failed points, and the warnings of others.

        Raises
        ------
        OSError
            If a chunk is damaged.
        """
        piece = Piece({}, {})
        for name in self.schema():
            try:
                piece.values[name] = np.asarray(self._group[name][:])
            except (RuntimeError, ValueError) as error:
                raise OSError(f"store {str(self.path)!r}: {name} is damaged ({error}); delete the store") from error
        for file in (self.path / "chunks").glob("[0-9]*.json"):
            about = json.loads(file.read_text(encoding="utf-8"))
            piece.seconds += about["seconds"]
            for name in _TEXTS:
                getattr(piece, name).update({int(k): text for k, text in about[name].items()})
        return piece

    def close(self) -> None:
        """Let go of the store."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _replace(file: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.replace(file)


def _variable(about: Mapping[str, Any]) -> Variable:
    coords = {k: tuple(v) for k, v in about["coords"].items()}
    return Variable(
        about["dtype"], about["boolean"], tuple(about["shape"]), tuple(about["dims"]), coords, about["attrs"]
    )


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
    return [f"{place} was {texts[0]}, now {texts[1]}" if texts[0] != texts[1] else f"{place} has changed"]


def _short(value: Any) -> str:
    text = json.dumps(value)
    if len(text) <= 60:
        return text
    if isinstance(value, list):
        return f"{len(value)} values from {json.dumps(value[0])} to {json.dumps(value[-1])}"
    return f"{text[:50]}..."
