"""Packages that are installed only with an extra: in a clone, ``pip install ".[store]"``."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fluidcc.base.errors import Unsupported


def command(extra: str = "") -> str:
    """Return what installs an extra, or without one the core; fluidcc is in no registry."""
    what = f'".[{extra}]"' if extra else "."
    return f"pip install {what}, in a clone of fluidcc"


def installed(*packages: str) -> bool:
    """Return whether all of these packages can be imported."""
    return all(find_spec(package) is not None for package in packages)


def need(module: str, extra: str, what: str) -> Any:
    """Return a module of a package that an extra brings, or say how to install it.

    Parameters
    ----------
    module : str
        What is imported, such as ``"zarr"``.
    extra : str
        The extra of fluidcc that brings it.
    what : str
        What it is needed for: the sentence begins with it.

    Raises
    ------
    Unsupported
        If it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".")[0]
        if error.name is not None and error.name.split(".")[0] != package:
            raise  # it is there, and lacks something itself
        raise Unsupported(
            f"{what} needs the package {package}, which is not installed: {command(extra)}"
        ) from None
