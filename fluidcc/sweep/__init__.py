"""Sweeps: any measure over a grid of anything, from one core to a cluster. `fluidcc.sweep` is the function."""

from __future__ import annotations

from fluidcc.sweep.api import sweep

__all__ = ["sweep"]
