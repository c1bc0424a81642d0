"""What the papers claim, put to the test: `table` computes one row a claim, `reproduce` everything there is to see."""

from __future__ import annotations

from fluidcc.papers.model import VERDICTS, Claim, Outcome, papers
from fluidcc.papers.reproduction import reproduce
from fluidcc.papers.tables import Row, Table, table

__all__ = ["VERDICTS", "Claim", "Outcome", "Row", "Table", "papers", "reproduce", "table"]
