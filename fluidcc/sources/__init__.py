"""Controllers, one file each: pure data."""

from fluidcc.sources.cbr import CBR
from fluidcc.sources.ldcc import LDCC
from fluidcc.sources.onoff import OnOff, Poisson
from fluidcc.sources.primal import AlphaFairPrimalDual, PrimalDual, PrimalPenalty
from fluidcc.sources.reno import AIMD, Reno

__all__ = ["AIMD", "CBR", "LDCC", "AlphaFairPrimalDual", "OnOff", "Poisson", "PrimalDual", "PrimalPenalty", "Reno"]
