"""A verdict follows from the printed digits: what rounds to them agrees, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fluidcc.base.errors import InvalidInput
from fluidcc.papers.model import Claim, Outcome, compared
from fluidcc.papers.printed import agrees, bound


@pytest.mark.parametrize(
    ("printed", "inside", "outside"),
    [
        ("352", (351.5, 352, 352.5), (351.4, 352.6)),
        ("9.6", (9.55, 9.65), (8.9, 9.54, 9.66)),
        ("10", (9.5, 10.5), (9.1, 9.49)),
        ("0", (0.0, 0.5), (0.6,)),
        ("1.00", (0.995, 1.005), (0.99, 1.01)),
        ("219 889", (219_889.4,), (219_888,)),
        ("40-50", (39.5, 45, 50.5), (39.4, 52)),
        ("30 to 65", (29.5, 65.5), (29.4, 65.6)),
        ("99.8 to 100", (99.75, 100.4), (99.7, 100.6)),
        ("about 600", (550, 576, 650), (549, 651)),
        ("about 0.5", (0.45, 0.55), (0.44, 0.56)),
        ("about 7", (6.5, 7.5), (8.0,)),
        ("< 30", (29.99,), (30.0, 32.3)),
        ("<= 5", (5.0,), (5.01,)),
        ("> 1", (1.01,), (1.0,)),
        (">= 1", (1.0,), (0.99,)),
        ("< 30 ms", (0.0299,), (0.03, 0.0323)),
        ("99.8-100 %", (0.9975, 1.004), (0.997,)),
        ("14 kbit/s", (14.4e3,), (14.6e3,)),
    ],
)  # fmt: skip
def test_a_number_agrees_if_it_rounds_to_the_printed_digits(
    printed: str, inside: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    assert all(agrees(printed, v) for v in inside)
    assert not any(agrees(printed, v) for v in outside)
    assert not agrees(printed, float("nan"))


@pytest.mark.parametrize("text", ["", "ten", "1 m", "close to 1", "-3", "1.2.3", "1e3"])
def test_what_is_no_printed_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="give digits such as"):
        agrees(text, 1.0)


def test_one_number_that_does_not_agree_is_named_and_makes_a_difference() -> None:
    claim = Claim(
        "p.one", "p", "runs", "(1)", "So it is.", digits=("352", "< 30 ms"), reason="Why."
    )
    good = claim.outcome(compared([352.2, 0.012], {"a": 1}, computed="both"))
    assert good == Outcome("reproduced", "both", "Why.", {"a": 1.0})
    bad = claim.outcome(compared([352.2, (0.012, 0.0323)], computed="both"))
    assert bad == Outcome("differs", "both", "Not as printed: 32.3 for < 30. Why.")
    claim = replace(claim, reason="")
    assert claim.outcome(compared([2.0], digits=["1"])).reason == "Not as printed: 2 for 1."
    digits = "219 889", "2-5 ms", "1.91"
    shown = claim.outcome(compared([543_940.3, 3e-14, 1.9182], digits=digits)).reason
    assert shown == "Not as printed: 543940 for 219 889, 0 for 2-5, 1.92 for 1.91."


def test_a_bound_does_not_move_with_the_last_bits() -> None:
    found = [bound(v) for v in (0.0, 5e-15, 4e-11, 2e-9, 0.03)]
    assert found == ["1e-9", "1e-9", "1e-9", "1e-8", "1e-1"]
    assert bound(0.999e-7) == bound(1.001e-7) == "1e-6"
