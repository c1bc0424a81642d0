"""Closed forms that belong to no single law: each a vectorised function with its SymPy
expression at hand.
"""

from __future__ import annotations

from fluidcc.formulas import binomial, delay_aimd, ecf, fast, gcc, ldcc, response
from fluidcc.formulas._formula import Bound, Formula

__all__ = ["Bound", "Formula", "binomial", "delay_aimd", "ecf", "fast", "gcc", "ldcc", "response"]
