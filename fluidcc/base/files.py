"""Output files: their names are checked before a long run rather than after it.

Nothing replaces a file that is there unless that is asked for, and nothing ever replaces what is
read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from errno import EIO
from pathlib import Path

from fluidcc.base.arguments import brief, shown
from fluidcc.base.errors import InvalidInput

PICTURES = (".pdf", ".png", ".svg")


def check_local(path: str | Path, what: str) -> None:
    """Refuse an address, such as ``s3://bucket/x``: it would be taken for a folder named ``s3:``.

    Raises
    ------
    InvalidInput
        Naming the address.
    """
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(path)):
        raise InvalidInput(
            f"{what} is {shown(str(path))}, an address; give a path of this machine's files, such "
            "as one where the address is mounted"
        )


def check_new(
    file: Path,
    what: str,
    endings: Sequence[str],
    *,
    force: bool = False,
    keep: Mapping[str, Path] | None = None,
) -> None:
    """Refuse a file that must not or cannot be written.

    Parameters
    ----------
    file : Path
        Where to.
    what : str
        Names it in messages, such as ``"--output"``.
    endings : sequence of str
        Those that its name may have: each says the format.
    force : bool
        Whether a file that is there may be replaced.
    keep : mapping of str to Path, optional
        Files and folders that it must be no part of, nor they of it, by what they are: what is
        read, other outputs.

    Raises
    ------
    InvalidInput
        If its ending is none of these, its folder is not there, it is there, or it is one of
        `keep`.
    """
    check_local(file, what)
    name = f"{what} {brief(str(file)) if str(file).isprintable() else shown(str(file))}"
    if file.suffix.lower() not in endings:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}" if len(endings) > 1 else endings[0]
        raise InvalidInput(f"{name}: its name must end in {known}")
    try:
        there = _there(file)
        clash = next(
            (f"{k} is {place}" for k, place in (keep or {}).items() if _overlap(file, place)), None
        )
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"{name}: this cannot be written ({told_by_system(error)}); give another name"
        ) from None
    if not there and not file.parent.is_dir():
        raise InvalidInput(f"{name}: there is no folder {file.parent}; make it, or write elsewhere")
    if clash:
        raise InvalidInput(f"{name}: {clash}, which must stay; give another name")
    if there and not force:
        raise InvalidInput(
            f"{name}: it is there already; give another name, or --force to replace it"
        )
    is_zarr = file.suffix.lower() == ".zarr" and any(
        (file / n).is_file() for n in (".zgroup", "zarr.json")
    )
    if file.is_dir() and (not is_zarr or (file / "sweep.lock").is_file()):
        kind = "the store of a sweep" if is_zarr else "a folder of something else"
        raise InvalidInput(f"{name}: this is {kind}; give another name")


@contextmanager
def writing(file: Path) -> Iterator[None]:
    """Name the file in what the file system says."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno or EIO, "", str(file)) from error


def present(file: Path) -> bool:
    """Return whether there is something of that name; OSError where the system does not say, which
    `Path.exists` has taken for a no since Python 3.14.
    """
    try:
        os.stat(file)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    return True


def _there(file: Path) -> bool:
    """Return whether there is something of that name, be it a link to nothing."""
    try:
        os.lstat(file)
    except FileNotFoundError:
        return False
    return True


def _overlap(one: Path, other: Path) -> bool:
    """Return whether two names are of one file, however they are written or linked, or one is
    inside the other.
    """
    first, second = (Path(os.path.realpath(path)) for path in (one, other))
    if first == second or first in second.parents or second in first.parents:
        return True
    return first.exists() and second.exists() and first.samefile(second)


def told_by_system(error: Exception) -> str:
    return (
        os.strerror(error.errno).lower()
        if isinstance(error, OSError) and error.errno
        else str(error)
    )
