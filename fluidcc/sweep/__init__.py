"""Sweeps: any measure over a grid of anything, from one core to a cluster. `fluidcc.sweep` is the function."""

from __future__ import annotations

from fluidcc.sweep.api import sweep
from fluidcc.sweep.point import Point
from fluidcc.sweep.refine import Refine

__all__ = ["Point", "Refine", "sweep"]
