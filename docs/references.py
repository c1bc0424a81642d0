"""Full references: of the five papers, of each law's source, and of the theory.

A law cites in its own words, as in "Loguinov and Radha, (3)"; the pattern beside a reference in
references.toml finds it there.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_ALL = tomllib.loads((Path(__file__).parent / "references.toml").read_text("utf-8"))
PAPERS: dict[str, str] = {name: paper["full"] for name, paper in _ALL["papers"].items()}
YEARS: dict[str, int] = {name: paper["year"] for name, paper in _ALL["papers"].items()}
_EVERY = [*_ALL["papers"].values(), *_ALL["all"]["others"]]


def cited(words: str) -> list[str]:
    """Return the full references that a law's own words name."""
    return [one["full"] for one in _EVERY if "cited" in one and re.search(one["cited"], words)]


def every() -> list[str]:
    """Return all references, by the first author."""
    return sorted((one["full"] for one in _EVERY), key=_first_author)


def _first_author(text: str) -> str:
    return re.split(r",| and ", text)[0].split()[-1]
