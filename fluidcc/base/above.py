"""Modules that subpackages below them call without importing them; the package's front names them.

A result shows its picture (`fluidcc.base.pictures.image`), a scenario runs itself, and a verdict
compares itself with the literature, though the subpackages that do so are above them.
"""

from __future__ import annotations

DRAWN_BY = ""  # the module of the plots
RUN_BY = ""  # the module of `simulate`
CONDITIONS_IN = ""  # the subpackage of conditions for stability
