"""Sweeps: any measure over a grid of anything, from one core to a cluster."""

from __future__ import annotations

from fluidcc.sweeps.api import sweep
from fluidcc.sweeps.measures import Point
from fluidcc.sweeps.refine import Refine

__all__ = ["Point", "Refine", "sweep"]
