"""Queues and prices, one file each: pure data. A law is made, and checked, when it is first
asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what `_HOME` does at run time, for type checkers and editors
    from fluidcc.links.droptail import DropTail
    from fluidcc.links.paqm import PAQM, PAQMECF, PAQMECF2, PAQMDrop
    from fluidcc.links.pi_aqm import PI
    from fluidcc.links.prices import DualLink, PenaltyLink
    from fluidcc.links.red import RED, AdaptiveRED, AdaptiveREDDrop, REDDrop

# The file of each law.
_HOME = {
    "DropTail": "droptail",
    "PAQMECF": "paqm",
    "PAQMECF2": "paqm",
    "PAQM": "paqm",
    "PAQMDrop": "paqm",
    "PI": "pi_aqm",
    "DualLink": "prices",
    "PenaltyLink": "prices",
    "AdaptiveRED": "red",
    "AdaptiveREDDrop": "red",
    "RED": "red",
    "REDDrop": "red",
}

__all__ = [
    "PAQM", "PAQMECF", "PAQMECF2", "PI", "RED", "AdaptiveRED", "AdaptiveREDDrop", "DropTail",
    "DualLink", "PAQMDrop", "PenaltyLink", "REDDrop",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(f"{__name__}.{_HOME[name]}"), name))
