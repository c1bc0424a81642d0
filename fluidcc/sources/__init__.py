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

# The file of each law.
_HOME = {
    "AIAD": "binomial",
    "AIPD": "binomial",
    "Binomial": "binomial",
    "BinomialFluid": "binomial",
    "IIAD": "binomial",
    "ISCC": "binomial",
    "Kelly": "binomial",
    "RateAIMD": "binomial",
    "RateBinomial": "binomial",
    "SQRT": "binomial",
    "CBR": "traffic",
    "CxTCP": "cxtcp",
    "FAST": "dca",
    "LEDBAT": "dca",
    "StaticFAST": "dca",
    "StaticVegas": "dca",
    "Vegas": "dca",
    "DCCP": "dccp",
    "DelayAIMD": "delay_aimd",
    "HTCP": "delay_aimd",
    "PlainDelayAIMD": "delay_aimd",
    "SlowStartAIMD": "delay_aimd",
    "AdaptiveGCC": "gcc",
    "GCC": "gcc",
    "ECF": "ecf",
    "FramedECF": "ecf",
    "PoissonECF": "ecf",
    "LDCC": "ldcc",
    "NADA": "nada",
    "NADA8698": "nada_rfc",
    "OnOff": "traffic",
    "Poisson": "traffic",
    "AlphaFairPrimalDual": "primal",
    "DelayedPrimal": "primal",
    "PrimalDual": "primal",
    "PrimalPenalty": "primal",
    "AIMD": "reno",
    "Reno": "reno",
    "SampledLDCC": "sampled",
    "ScalableSource": "primal",
    "ScalableTCP": "primal",
    "SlowStartTFRC": "tfrc",
    "TFRC": "tfrc",
    "TFRCFluid": "tfrc",
}

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
