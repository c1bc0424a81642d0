"""Rows of claims that several tests look at, each tested once in a process."""

from functools import cache

from fluidcc.papers import Outcome
from fluidcc.papers.model import claims_of


@cache
def outcome(name: str) -> Outcome:
    """Return what the row of that id finds."""
    (claim,) = [c for c in claims_of(name.split(".")[0]) if c.id == name]
    return claim.check()
