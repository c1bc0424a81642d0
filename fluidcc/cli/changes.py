"""``--set KEY=VALUE``: values of a scenario's file, replaced."""

from __future__ import annotations

import tomllib
from typing import Any

from fluidcc.base.errors import InvalidInput

__all__ = ["assignment", "number"]


def assignment(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise InvalidInput(f"--set {text}: give KEY=VALUE, such as flows.a.params.beta=0.2")
    return key.strip(), number(value.strip())


def number(text: str) -> Any:
    """A value as TOML writes it (a number, a list, quoted text), or else the text itself: 90 s."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
