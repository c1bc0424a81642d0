"""A history in Python as a table of quartic pieces, for runs with many lags.

Each stage of each step looks up every lag. With hundreds of them a call of Python for each takes
most of the time, so the history is called beforehand, at some hundred places, and compiled code
reads the pieces.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.numerics.dde.functions import Array

_NODES = (1 - np.cos(np.pi * np.arange(5) / 4)) / 2  # of a piece, and where it is tried
_TESTS = np.array([0.3, 0.7])
_FIT = np.linalg.inv(np.vander(_NODES, increasing=True))
_TRY = np.vander(_TESTS, 5, increasing=True)
_LEAST, _MOST = 16, 4000  # pieces
_NARROWEST = 1e-9  # of the whole: so a jump in the history is enclosed
_SHARE = 0.01  # of the tolerance, that a piece may be off


def history_table(
    history: Callable[[float], Array], ends: list[float], rtol: float, atol: Array
) -> dict[str, Any] | None:
    """Return starts, widths, values and coefficients of pieces of a history between its ends and
    breaks, as those of steps; None where it is too rough, or not defined everywhere.
    """
    pieces: list[tuple[float, float, Array]] = []
    narrowest = _NARROWEST * (ends[-1] - ends[0])
    for low, high in itertools.pairwise(ends):
        cuts = np.linspace(low, high, _LEAST + 1)
        todo = list(itertools.pairwise(cuts.tolist()))[::-1]
        inside = np.nextafter(low, np.inf), np.nextafter(high, -np.inf)
        while todo:
            a, b = todo.pop()
            try:
                nodes, tests = (
                    np.array([history(t) for t in np.clip(a + (b - a) * v, *inside).tolist()])
                    for v in (_NODES, _TESTS)
                )
            except Exception:  # the run says so, if it comes to where the history is not defined
                return None
            c = _FIT @ nodes
            allowed = _SHARE * (atol + rtol * np.abs(tests))
            allowed = allowed + 16 * np.finfo(float).eps * np.abs(nodes).max(axis=0)
            if not np.isfinite(c).all() or len(pieces) + len(todo) > _MOST:
                return None
            if (np.abs(_TRY @ c - tests) <= allowed).all() or b - a <= narrowest:
                pieces.append((a, b - a, c))
            else:
                todo += [((a + b) / 2, b), (a, (a + b) / 2)]
    starts, widths, coefficients = (np.array(column) for column in zip(*pieces, strict=True))
    powers = np.moveaxis(coefficients[:, 1:], 1, 2)
    return {
        "piece_t": starts, "piece_h": widths, "piece_y": coefficients[:, 0].ravel(),
        "piece_q": powers.ravel(),
    }  # fmt: skip
