"""Dimensions found by rescaling, against dimensions known by hand."""

from typing import Any

import pytest
from sympy import Abs, Heaviside, Max, Min, Piecewise, exp, log, sqrt, symbols

from fluidcc.base.errors import UnitsError
from fluidcc.laws.checks import Dim, base_unit, dim_of_text, explain, measure

x, T, n, k = symbols("x T n k", positive=True)
s = symbols("s", real=True)
DIMS = {x: Dim(1, -1), T: Dim(0, 1), s: Dim(0, 1), n: Dim(), k: Dim()}

KNOWN: dict[str, tuple[Any, Dim | str | None]] = {
    "product": (x * T**2, Dim(1, 1)),
    "root": (sqrt(x / T), Dim(0.5, -1)),
    "sum": (x + n * x * T / (T + s), Dim(1, -1)),
    "difference that cancels at times": (s - T, Dim(0, 1)),
    "kinks": (Max(x, 0) * Min(T, Abs(s)) * Heaviside(s), Dim(1, 0)),
    "symbolic exponent of a number": (n**k * T, Dim(0, 1)),
    "ratio in a function": (x * exp(-s / T) * log(1 + n), Dim(1, -1)),
    "branches": (Piecewise((x, s > T), (x**2 * T / (x * T + 1 * x * T), True)), Dim(1, -1)),
    "a number": (n - 3, Dim()),
    "constant": (0 * x + 2, Dim()),
    "zero": (0 * x, "any"),
    "always zero": (Max(x, 0) - Abs(x), "any"),
    "sum of unlike": (x + T, None),
    "power of a unit": (x**k, None),
    "unit in a function": (exp(T), None),
    "threshold without a unit": (Max(T - 3, 0), None),
    "unlike branches": (Piecewise((x, s > T), (T, True)), None),
}


@pytest.mark.parametrize(("f", "dim"), KNOWN.values(), ids=KNOWN)
def test_dimension_is_the_power_by_which_an_expression_rescales(
    f: Any, dim: Dim | str | None
) -> None:
    got = measure(f + 0, DIMS)
    assert got == (pytest.approx(dim) if isinstance(dim, Dim) else dim)


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (x * (n - T) / T, r"it adds (n \[1\] and -T \[s\]|-T \[s\] and n \[1\])"),
        (n**T, r"the exponent T has unit s"),
        (T**n, r"raises a unit, s, to a power that varies"),
        (x * log(T), r"log needs a number, not T \[s\]"),
        (Max(x, T), r"it compares .*\[s\]"),
    ],
)
def test_the_innermost_culprit_is_named(f: Any, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(explain(f, DIMS))


@pytest.mark.parametrize("text", ["bit/s", "1", "1/s^2", "bit*s", "bit^2/s", "s"])
def test_text_and_dimension_go_both_ways(text: str) -> None:
    assert base_unit(dim_of_text(text)) == text


def test_packets_are_a_count() -> None:
    assert dim_of_text("packet") == Dim()
    assert dim_of_text("bit/packet") == dim_of_text("bit")


@pytest.mark.parametrize("text", ["ms", "kbit", "Mbit/s", "KB"])
def test_prefixes_are_refused(text: str) -> None:
    with pytest.raises(UnitsError, match="declare the base unit"):
        dim_of_text(text)
