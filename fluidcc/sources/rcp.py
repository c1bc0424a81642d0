"""RCP, the rate control protocol: sends at the least rate that routers on its path offer."""

from __future__ import annotations

from sympy import Min

from fluidcc.laws import Source
from fluidcc.symbols import offer_min, positive

__all__ = ["RCP"]

R_max = positive("R_max")  # [bit/s]

RCP = Source(
    name="RCP",
    out={"rate": Min(offer_min, R_max)},
    params={R_max: 1e9},
    units={R_max: "bit/s"},
    about="Sends at the least rate that routers (RCPLink) on its path offer.",
    meaning={R_max: "rate of its access"},
    ref="Dukkipati, Kobayashi, Zhang-Shen and McKeown, IWQoS 2005",
)
