"""Equations that laws send by and formulas evaluate: written once, below both."""

from __future__ import annotations

from typing import Any

from sympy import Expr, sqrt

__all__ = ["tfrc_rate"]


def tfrc_rate(p: Any, rtt: Any, packet: Any, b: Any) -> Expr:
    """TCP-friendly rate [bit/s] of RFC 5348, Section 3.1, with a timeout of four round trips.

    Parameters
    ----------
    p, rtt, packet, b : Expr
        Loss event ratio [1], round-trip time [s], packet length [bit], packets an acknowledgement [1].
    """
    return packet / (rtt * (sqrt(2 * b * p / 3) + 12 * sqrt(3 * b * p / 8) * p * (1 + 32 * p**2)))
