"""What a law must satisfy before it exists: every refusal names the law, the culprit and the remedy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fluidcc.errors import LawError
from fluidcc.symbols import plain

__all__ = ["check_law", "parameter_values"]


def parameter_values(law: Any) -> Mapping[Any, float]:
    values = {}
    for s, value in law.params.items():
        if isinstance(value, str):
            from fluidcc.units import to_si

            value = to_si(value, law.units.get(s, "1"))
        values[s] = float(value)
        if not math.isfinite(values[s]):
            raise LawError(f"{law.name}: parameter {plain(s)} is {value}, give a finite number")
    return values


def check_law(law: Any) -> None:
    """To come."""
