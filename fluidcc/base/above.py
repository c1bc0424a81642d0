"""Modules that rooms below them call without importing them; the package's front names them.

A result shows its picture (`fluidcc.base.pictures.image`) and a scenario runs itself, though the
subpackages that draw and run are above them.
"""

from __future__ import annotations

DRAWN_BY = ""  # the module of the plots
RUN_BY = ""  # the module of `simulate`
