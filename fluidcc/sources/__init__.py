"""Controllers, one file each: pure data."""

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
from fluidcc.sources.cbr import CBR
from fluidcc.sources.dca import FAST, LEDBAT, StaticFAST, StaticVegas, Vegas
from fluidcc.sources.delay_aimd import HTCP, DelayAIMD, PlainDelayAIMD
from fluidcc.sources.ldcc import LDCC
from fluidcc.sources.onoff import OnOff, Poisson
from fluidcc.sources.primal import AlphaFairPrimalDual, PrimalDual, PrimalPenalty
from fluidcc.sources.reno import AIMD, Reno
from fluidcc.sources.sampled import SampledLDCC
from fluidcc.sources.tfrc import TFRC, TFRCFluid

__all__ = [
    "AIAD",
    "AIMD",
    "AIPD",
    "CBR",
    "FAST",
    "HTCP",
    "IIAD",
    "ISCC",
    "LDCC",
    "LEDBAT",
    "SQRT",
    "TFRC",
    "AlphaFairPrimalDual",
    "Binomial",
    "BinomialFluid",
    "DelayAIMD",
    "Kelly",
    "OnOff",
    "PlainDelayAIMD",
    "Poisson",
    "PrimalDual",
    "PrimalPenalty",
    "RateAIMD",
    "RateBinomial",
    "Reno",
    "SampledLDCC",
    "StaticFAST",
    "StaticVegas",
    "TFRCFluid",
    "Vegas",
]
