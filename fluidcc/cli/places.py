"""Where files go: told before a long run rather than after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EIO
from pathlib import Path

from fluidcc.errors import InvalidInput

__all__ = ["PICTURES", "check_folder", "check_picture", "check_places", "writing"]

PICTURES = (".pdf", ".png", ".svg")


def check_places(output: Path, figure: Path) -> None:
    """Of the result and of the figure of a run."""
    check_picture("--figure", figure)
    if output.resolve() == figure.resolve():
        raise InvalidInput(f"--output and --figure are both {output}; give two names")
    for file in (output, figure):
        check_folder(file)


def check_picture(option: str, figure: Path) -> None:
    if figure.suffix.lower() not in PICTURES:
        raise InvalidInput(f"{option} {figure}: its name must end in {', '.join(PICTURES[:-1])} or {PICTURES[-1]}")


@contextmanager
def writing(file: Path) -> Iterator[None]:
    """Name the file in what the file system says."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno or EIO, "", str(file)) from error


def check_folder(file: Path) -> None:
    if file.is_dir():
        raise InvalidInput(f"{file} is a folder; give the name of a file")
    if not file.parent.is_dir():
        raise InvalidInput(f"{file}: there is no folder {file.parent}; make it, or write elsewhere")
