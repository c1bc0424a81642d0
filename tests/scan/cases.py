"""How much of a scan is run: all of it if SCAN=full is in the environment, as `make scan` has
it; else a sample.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["FULL", "sample"]

Case = TypeVar("Case")
FULL = os.environ.get("SCAN") == "full"


def sample(cases: Sequence[Case], every: int) -> Sequence[Case]:
    """All of `cases`, or one of so many."""
    return cases if FULL else cases[::every]
