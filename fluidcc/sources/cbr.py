"""Constant-rate and modulated sources: traffic that does not listen."""

from __future__ import annotations

from sympy import symbols

from fluidcc.laws import Source

__all__ = ["CBR"]

rate = symbols("rate", nonnegative=True)  # [bit/s]

CBR = Source(
    name="CBR",
    flow={},
    out={"rate": rate},
    params={rate: 0.5e6},
    units={rate: "bit/s"},
    ref="the UDP flow of LDCC, Fig. 5",
)
