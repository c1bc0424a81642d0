"""Controllers, one file each: pure data."""

from fluidcc.sources.cbr import CBR
from fluidcc.sources.ldcc import LDCC
from fluidcc.sources.reno import AIMD, Reno

__all__ = ["AIMD", "CBR", "LDCC", "Reno"]
