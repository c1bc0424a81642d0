"""How much of a scan is run: all of it if SCAN=full is in the environment (`make scan SCAN=full`);
else a sample.
"""

import os
from collections.abc import Sequence
from datetime import date
from typing import TypeVar

__all__ = ["FULL", "of_today", "sample"]

Case = TypeVar("Case")
FULL = os.environ.get("SCAN") == "full"


def sample(cases: Sequence[Case], every: int) -> Sequence[Case]:
    """All of `cases`, or one of so many."""
    return cases if FULL else cases[::every]


def of_today(cases: Sequence[Case], every: int) -> Sequence[Case]:
    """All of `cases`, or one of so many, others each day; SCAN=2026-11-26 draws those of a day."""
    if FULL:
        return cases
    day = os.environ.get("SCAN")
    return cases[(date.fromisoformat(day) if day else date.today()).toordinal() % every :: every]
