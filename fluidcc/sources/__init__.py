"""Controllers, one file each: pure data. A law is made, and checked, when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what `_HOME` does at run time, for type checkers and editors
    from fluidcc.sources.binomial import (
        AIAD,
        AIPD,
        IIAD,
        ISCC,
        SQRT,
        Binomial,
        BinomialFluid,
        Kelly,
        RateAIMD,
        RateBinomial,
    )
    from fluidcc.sources.cxtcp import CxTCP
    from fluidcc.sources.dca import FAST, LEDBAT, StaticFAST, StaticVegas, Vegas
    from fluidcc.sources.dccp import DCCP
    from fluidcc.sources.delay_aimd import HTCP, DelayAIMD, PlainDelayAIMD, SlowStartAIMD
    from fluidcc.sources.ecf import ECF, FramedECF, PoissonECF
    from fluidcc.sources.gcc import GCC, AdaptiveGCC
    from fluidcc.sources.ldcc import LDCC
    from fluidcc.sources.nada import NADA
    from fluidcc.sources.nada_rfc import NADA8698
    from fluidcc.sources.primal import (
        AlphaFairPrimalDual,
        DelayedPrimal,
        PrimalDual,
        PrimalPenalty,
        ScalableSource,
        ScalableTCP,
    )
    from fluidcc.sources.reno import AIMD, Reno
    from fluidcc.sources.sampled import SampledLDCC
    from fluidcc.sources.tfrc import TFRC, SlowStartTFRC, TFRCFluid
    from fluidcc.sources.traffic import CBR, OnOff, Poisson

# The laws of each file.
_FILES = {
    "binomial": (
        "AIAD", "AIPD", "Binomial", "BinomialFluid", "IIAD", "ISCC", "Kelly", "RateAIMD",
        "RateBinomial", "SQRT",
    ),
    "cxtcp": ("CxTCP",),
    "dca": ("FAST", "LEDBAT", "StaticFAST", "StaticVegas", "Vegas"),
    "dccp": ("DCCP",),
    "delay_aimd": ("DelayAIMD", "HTCP", "PlainDelayAIMD", "SlowStartAIMD"),
    "ecf": ("ECF", "FramedECF", "PoissonECF"),
    "gcc": ("AdaptiveGCC", "GCC"),
    "ldcc": ("LDCC",),
    "nada": ("NADA",),
    "nada_rfc": ("NADA8698",),
    "primal": (
        "AlphaFairPrimalDual", "DelayedPrimal", "PrimalDual", "PrimalPenalty",
        "ScalableSource", "ScalableTCP",
    ),
    "reno": ("AIMD", "Reno"),
    "sampled": ("SampledLDCC",),
    "tfrc": ("SlowStartTFRC", "TFRC", "TFRCFluid"),
    "traffic": ("CBR", "OnOff", "Poisson"),
}  # fmt: skip
_HOME = {name: file for file, names in _FILES.items() for name in names}

__all__ = [
    "AIAD", "AIMD", "AIPD", "CBR", "DCCP", "ECF", "FAST", "GCC", "HTCP", "IIAD", "ISCC", "LDCC",
    "LEDBAT", "NADA", "NADA8698", "SQRT", "TFRC", "AdaptiveGCC", "AlphaFairPrimalDual",
    "Binomial", "BinomialFluid", "CxTCP", "DelayAIMD", "DelayedPrimal", "FramedECF", "Kelly",
    "OnOff", "PlainDelayAIMD", "Poisson", "PoissonECF", "PrimalDual", "PrimalPenalty",
    "RateAIMD", "RateBinomial", "Reno", "SampledLDCC", "ScalableSource", "ScalableTCP",
    "SlowStartAIMD", "SlowStartTFRC", "StaticFAST", "StaticVegas", "TFRCFluid", "Vegas",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(f"{__name__}.{_HOME[name]}"), name))
