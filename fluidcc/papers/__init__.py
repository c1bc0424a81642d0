"""What the papers claim, put to the test: one row a claim, and every figure."""

from __future__ import annotations

from fluidcc.papers.model import VERDICTS, Claim, Outcome, papers
from fluidcc.papers.reproduction import data, figure, reproduce
from fluidcc.papers.tables import Row, Table, table

__all__ = [
    "VERDICTS",
    "Claim",
    "Outcome",
    "Row",
    "Table",
    "data",
    "figure",
    "papers",
    "reproduce",
    "table",
]
