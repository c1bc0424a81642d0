"""The command ``fluidcc``: the same from a shell. Errors of fluidcc are one line on standard error,
and exit code 2. Standard output has what was asked for and nothing else: text, or JSON.

Each command imports what it needs when it runs, so that ``--help`` and errors in arguments come at
once.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fluidcc.base.errors import FluidccError
from fluidcc.cli.parser import make_parser

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        The exit code: 0, or 2 after an error of fluidcc or of the file system, or 130 after Ctrl-C.
    """
    args = make_parser().parse_args(argv)
    with warnings.catch_warnings():
        # The rest of its arguments says where in the code.
        warnings.showwarning = _warn  # type: ignore[assignment]
        try:
            said = args.run(args)
            if said is not None:
                text, data = said
                print(json.dumps(plain(data), indent=2, allow_nan=False) if args.json else text)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (FluidccError, OSError) as error:
            wrong = str(error) if isinstance(error, FluidccError) else _of_the_system(error)
            print(f"fluidcc: {' '.join(wrong.split())}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("fluidcc: stopped", file=sys.stderr)
            return 130
    return 0


def plain(value: Any) -> Any:
    """Return the JSON form of a value: null for infinite and undefined numbers, a pair
    for a complex number.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if hasattr(value, "tolist"):  # of NumPy
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, complex):
        return plain([value.real, value.imag])
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def _of_the_system(error: OSError) -> str:
    """What the file system refused; HDF5 says the same at length, and without the file's name."""
    if error.errno is None:
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{os.strerror(error.errno).lower()}; make room there, or give another place"


def _warn(message: Warning | str, *_: Any) -> None:
    print(f"fluidcc: warning: {' '.join(str(message).split())}", file=sys.stderr)
