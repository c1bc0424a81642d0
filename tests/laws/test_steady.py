"""Laws at rest: which go together, their bounds, and which have none."""

from __future__ import annotations

import pytest

import fluidcc as fc
from fluidcc.base.errors import Unsupported
from fluidcc.laws.steady import grouped, refuse_unsteady


def test_laws_of_equal_structure_go_together() -> None:
    laws = [fc.LDCC, fc.Reno, fc.LDCC(T=0.2), fc.LDCC(T=0.2), fc.PrimalDual]
    assert grouped(laws) == [[0, 2, 3], [1], [4]]


def test_unsteady_laws_are_refused() -> None:
    refuse_unsteady(fc.LDCC, "flow 'a'")
    with pytest.raises(Unsupported, match="flow 'a' .*jumps"):
        refuse_unsteady(fc.AIMD, "flow 'a'")
