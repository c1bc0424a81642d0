"""Units: what is read, what is refused, and that text survives a round trip."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidcc.base.errors import UnitsError
from fluidcc.base.units import Dimension, dimension, dimension_of, format_si, to_si


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        ("3.5 Mbit/s", "bit/s", 3.5e6), ("3.5Mbit/s", "bit/s", 3.5e6), ("2 Mbit / s", "bit/s", 2e6),
        ("25ms", "s", 0.025), (".5 s", "s", 0.5), ("5. s", "s", 5.0), ("1e-3 s", "s", 1e-3),
        ("1500 B/packet", "bit/packet", 12000.0), ("1 KB", "bit/packet", 8000.0),
        ("130 packets", "packet", 130.0), ("1_000 bit", "bit", 1000.0), ("-2 ms", "s", -2e-3),
        ("0.1", "1", 0.1), ("2 Hz", "1/s", 2.0), ("2 1/s", "Hz", 2.0),
        ("3 kbit/s^2", "bit/s^2", 3000.0), ("3 bit/(packet*ms)", "bit/packet/s", 3000.0),
        ("4 packets/ms", "packet/s", 4000.0),
        (7, "s", 7.0), (np.float32(0.5), "1", 0.5), (np.array(2), "s", 2.0),
    ],
)  # fmt: skip
def test_reads(value: Any, unit: str, expected: float) -> None:
    assert to_si(value, unit) == pytest.approx(expected, rel=1e-15)


DECIMAL = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
LARGE = DECIMAL | {"Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}
SMALL = {"m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9}  # micro sign, and the Greek letter


@pytest.mark.parametrize(
    ("names", "prefixes", "unit", "size"),
    [
        ("bit bits b", LARGE, "bit", 1),
        ("byte bytes B", LARGE, "bit", 8),
        ("bps", LARGE, "bit/s", 1),
        ("Bps", LARGE, "bit/s", 8),
        ("packet packets pkt pkts", DECIMAL, "packet", 1),
        ("s sec", SMALL, "s", 1),
        ("second seconds", {}, "s", 1),
        ("min minute minutes", {}, "s", 60),
        ("h hour hours", {}, "s", 3600),
        ("Hz", DECIMAL, "1/s", 1),
        ("1", {}, "1", 1),
        ("%", {}, "1", 0.01),
    ],
)
def test_every_unit_has_its_size(
    names: str, prefixes: dict[str, float], unit: str, size: float
) -> None:
    for name in names.split():
        for prefix, factor in {"": 1, **prefixes}.items():
            assert to_si(f"3 {prefix}{name}", unit) == pytest.approx(3 * factor * size, rel=1e-15)


def test_packets_stand_for_bits_where_their_size_is_known() -> None:
    assert to_si("130 packets", "bit", packet=8000) == 1_040_000
    assert to_si("100 packets/s", "bit/s", packet=12000) == 1.2e6
    assert to_si("3 KB", "packet", packet=8000) == 3
    with pytest.raises(UnitsError, match="no packet size is known"):
        to_si("130 packets", "bit")


@pytest.mark.parametrize(
    ("value", "unit", "message"),
    [
        ("3 Mbit", "bit/s", "an amount of data; give a rate in bit/s, such as '3.5 Mbit/s'"),
        ("25 ms", "bit/s", "a time; give a rate"),
        ("3 mbps", "bit/s", r"'mbps' is no unit \(near: .*bps"),
        ("25 sm", "s", "'sm' is no unit"),
        ("20 packets", "s", r"a number of packets; give a time in s, .* takes n/capacity"),
        ("fast", "bit/s", "starts with no number"),
        ("", "s", "starts with no number"),
        ("1 s^x", "s", "no unit"),
        ("nan s", "s", "finite number"),
        ("inf s", "s", "finite number"),
        ("0.1", "bit/s", "without a unit"),
        (math.nan, "s", "finite number"),
        (-math.inf, "s", "finite number"),
        (None, "s", "None; give a time in s"),
        (True, "s", "True; give a time in s"),
        ([1.0], "s", "give a time in s"),
        (np.ones(1), "s", "give a time in s"),
        (1j, "1", "give a plain number"),
    ],
)
def test_refuses(value: Any, unit: str, message: str) -> None:
    with pytest.raises(UnitsError, match=f"^the thing is .*{message}"):
        to_si(value, unit, "the thing")


def test_infinity_where_it_is_allowed() -> None:
    assert to_si("inf s", "s", allow_inf=True) == math.inf
    assert to_si("-inf s", "s", allow_inf=True) == -math.inf
    with pytest.raises(UnitsError):
        to_si("nan s", "s", allow_inf=True)


def test_dimension() -> None:
    assert dimension("bit/s") == Dimension(1, -1, 0)
    assert dimension("bit/(s*packet)") == dimension("bit/s/packet") == Dimension(1, -1, -1)
    assert dimension("1") == Dimension()
    assert dimension("s**-2") == Dimension(0, -2, 0)
    assert dimension_of("0.5 s") == Dimension(s=1)
    assert dimension_of("25 packets") == Dimension(packet=1)
    assert dimension_of("25") is dimension_of("25 furlongs") is dimension_of("much") is None


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.5e6, "bit/s", "3.5 Mbit/s"), (999_999.9, "bit/s", "1 Mbit/s"), (0.025, "s", "25 ms"),
        (90.0, "s", "90 s"), (1e-12, "s", "0.001 ns"), (0.0, "s", "0 s"), (0.1, "1", "0.1"),
        (-2e4, "bit", "-20 kbit"), (math.inf, "bit", "inf bit"), (130.0, "packet", "130 packet"),
        (5e-4, "s^2", "0.0005 s^2"),
    ],
)  # fmt: skip
def test_format(value: float, unit: str, text: str) -> None:
    assert format_si(value, unit) == text


@given(
    st.floats(min_value=-1e15, max_value=1e15, allow_nan=False),
    st.sampled_from(["bit/s", "s", "bit", "packet", "bit/packet"]),
)
def test_what_is_formatted_reads_back(value: float, unit: str) -> None:
    near = pytest.approx(value, rel=1e-14, abs=1e-300)
    assert to_si(format_si(value, unit, digits=17), unit) == near


@pytest.mark.parametrize(
    "text",
    ["1 bit//s", "1 bit/s)", "5 bit/s/", "5 (bit/s", "5 bit/(s", "5 *bit/s", "5 bit/s*",
     "5 bit()/s", "5 ((bit/s))", "5 bit^/s", "3 Mbit^999999999/s", "3 Mbit^10/s", "1__0 Mbit/s",
     "1_ Mbit/s", "1_.5 Mbit/s", "5 /s", "5 bit^9 Tbit^9 Tbit^9 Tbit^9 Tbit^9/s"],
)  # fmt: skip
def test_text_that_is_no_product_of_powers_is_refused(text: str) -> None:
    with pytest.raises(UnitsError, match="no unit"):
        to_si(text, "bit/s", "capacity")


def test_what_divides_in_a_divisor_multiplies() -> None:
    assert dimension("bit/(packet/s)") == dimension("bit*s/packet")
    assert dimension("bit/(packet*s)") == dimension("bit/packet/s")
    assert to_si("2_000 kbit/(ms/s)", "bit") == 2e9
