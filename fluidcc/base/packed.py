"""Arrays as text that every kind of file keeps as an attribute: NetCDF, Zarr, JSON."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: attributes of a run that are such text
PACKED = ("instants", "final_state")


def packed(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return one-dimensional arrays by name as text, to the bit.

    Examples
    --------
    >>> unpacked(packed({"t": np.array([0.1, 0.2])}))
    {'t': array([0.1, 0.2])}
    """
    about = json.dumps({name: [of.dtype.str, len(of)] for name, of in arrays.items()}).encode()
    data = b"".join(
        [len(about).to_bytes(8, "little"), about, *(a.tobytes() for a in arrays.values())]
    )
    return b64encode(zlib.compress(data, 1)).decode()


def unpacked(text: str) -> dict[str, NDArray[Any]]:
    """Return what `packed` was given.

    Raises
    ------
    ValueError
        If the text is not of `packed`.
    """
    try:
        data = zlib.decompress(b64decode(text, validate=True))
    except zlib.error as error:
        raise ValueError(str(error)) from error
    start = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, (dtype, count) in json.loads(data[8:start]).items():
        stop = start + count * np.dtype(dtype).itemsize
        found[name] = np.frombuffer(data[start:stop], dtype)
        start = stop
    return found


def axes_of(data: Any) -> list[str]:
    """Return the axes of the grid of a sweep; of another dataset, all its dimensions.

    They are in its attribute ``axes`` as JSON, since NetCDF 3 has no lists of text.
    """
    names = json.loads(data.attrs["axes"]) if "axes" in data.attrs else map(str, data.dims)
    return [name for name in names if name in data.dims]  # one may be fixed by isel
