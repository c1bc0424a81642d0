"""What a process remembers of laws and networks has bounds."""

import gc
from weakref import ref

import pytest
from sympy import symbols

import fluidcc as fc
from fluidcc.simulation import fused
from fluidcc.simulation.layout import lay_out

x, a, g = symbols("x a g", positive=True)


def a_law(number: int) -> fc.Source:
    return fc.Source(
        name=f"S{number}", flow={x: g * (a - x)}, out={"rate": x}, params={a: 1e5, g: 1},
        initial={x: 1e5},
        units={x: "bit/s", a: "bit/s", g: "1/s"},
    )  # fmt: skip


@pytest.mark.slow
def test_laws_and_what_was_worked_out_of_them_are_forgotten() -> None:
    """All but the structures that were seen last, of which the check need not be made again."""
    gone = [ref(a_law(number).structure) for number in range(600)]
    gc.collect()
    assert sum(one() is not None for one in gone) <= 256
    with pytest.raises(fc.errors.LawError, match="S3: the flow of x has unit"):
        fc.Source("S3", flow={x: a}, out={"rate": x}, params={a: 1.0}, units={x: "bit/s", a: "1"})


def test_structures_of_fused_steps_are_forgotten_beyond_a_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fused, "MOST_STRUCTURES", 3)
    monkeypatch.setattr(fused, "_addresses", {})
    monkeypatch.setattr(fused, "_load", len)  # instead of compiling
    for n in range(1, 7):
        net = fc.dumbbell([fc.LDCC] * n, {"capacity": "3 Mbit/s"}, rtt="50 ms")
        fused.fused_address(lay_out(net))
    assert len(fused._addresses) == 3
