"""The list of what set-up compiles covers every law; compiling it is what set-up does."""

from __future__ import annotations

import fluidcc as fc
from fluidcc.cli.warm import groups
from fluidcc.laws import Source


def test_every_law_is_on_the_list() -> None:
    names = [name for group in groups() for name, _ in group]
    assert {"the network solver", "LDCC", "CBR", "DualLink"} <= set(names)
    assert len(names) == len(set(names))
    assert {law for law in fc.sources.__all__ if isinstance(getattr(fc, law), Source)} <= set(names)
