"""Queues and prices, one file each: pure data. A law is made, and checked, when it is first
asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# The laws of each file.
_FILES = {
    "codel": ("CoDel", "CoDelDrop"),
    "droptail": ("DropTail",),
    "paqm": ("PAQM", "PAQMDrop", "PAQMECF", "PAQMECF2"),
    "pi2": ("PI2", "PI2Drop"),
    "pi_aqm": ("PI",),
    "pie": ("PIE", "PIEDrop"),
    "prices": ("DualLink", "PenaltyLink"),
    "rcp": ("RCPLink",),
    "red": ("RED", "AdaptiveRED", "AdaptiveREDDrop", "REDDrop"),
    "step_mark": ("RampMark", "StepMark"),
}
_HOME = {name: file for file, names in _FILES.items() for name in names}

if TYPE_CHECKING:  # what `__getattr__` does at run time, for type checkers and editors
    from fluidcc.links.codel import *
    from fluidcc.links.droptail import *
    from fluidcc.links.paqm import *
    from fluidcc.links.pi2 import *
    from fluidcc.links.pi_aqm import *
    from fluidcc.links.pie import *
    from fluidcc.links.prices import *
    from fluidcc.links.rcp import *
    from fluidcc.links.red import *
    from fluidcc.links.step_mark import *
else:
    __all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(f"{__name__}.{_HOME[name]}"), name))
