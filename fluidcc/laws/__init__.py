"""Laws: their equations, what follows from these by algebra, and their compiled kernels."""

from __future__ import annotations

from fluidcc.laws.extremes import highest, lowest, rounds
from fluidcc.laws.law import Law, Link, Source, extended, marginal
from fluidcc.laws.parts import Jump, Steady, Tick

__all__ = [
    "Jump", "Law", "Link", "Source", "Steady", "Tick", "extended", "highest", "lowest", "marginal",
    "rounds",
]  # fmt: skip
