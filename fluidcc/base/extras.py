"""Packages that are installed only with an extra, such as ``pip install "fluidcc[store]"``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fluidcc.base.errors import Unsupported


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
            f"{what} needs the package {package}, which is not installed: "
            f'pip install "fluidcc[{extra}]"'
        ) from None
