"""What every table of claims must be."""

from __future__ import annotations

import math

from fluidcc.papers import VERDICTS, Table


def check_rows(rows: Table) -> None:
    """Each row has a verdict, what was computed, and a reason where one is due."""
    for r in rows:
        assert r.verdict in VERDICTS
        assert r.computed, r.id
        assert r.reason or r.verdict in ("proved", "reproduced"), r.id
        assert all(math.isfinite(v) for v in r.values.values()), r.id
