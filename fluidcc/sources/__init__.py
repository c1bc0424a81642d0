"""Controllers, one file each: pure data. A law is made, and checked, when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# The laws of each file.
_FILES = {
    "bbr1": ("BBRv1",),
    "bbr2": ("BBRv2",),
    "bbr3": ("BBRv3",),
    "binomial": (
        "AIAD", "AIPD", "Binomial", "BinomialFluid", "IIAD", "ISCC", "Kelly", "RateAIMD",
        "RateBinomial", "SQRT", "StaticIIAD", "StaticSQRT",
    ),
    "compound": ("Compound",),
    "copa": ("Copa",),
    "cubic": ("CUBIC", "CUBICFluid"),
    "cxtcp": ("CxTCP",),
    "dca": ("FAST", "LEDBAT", "StaticFAST", "StaticVegas", "Vegas"),
    "dccp": ("DCCP",),
    "dcqcn": ("DCQCN",),
    "dctcp": ("DCTCP",),
    "delay_aimd": (
        "DelayAIMD", "HTCP", "PlainDelayAIMD", "PrintedDelayAIMD", "SlowStartAIMD",
        "SmoothedDelayAIMD",
    ),
    "ecf": ("ECF", "FramedECF", "PoissonECF"),
    "gcc": ("AdaptiveGCC", "GCC"),
    "highspeed": ("HighSpeed",),
    "illinois": ("Illinois",),
    "ldcc": ("LDCC",),
    "ledbatpp": ("LEDBATpp",),
    "nada": ("NADA",),
    "nada_rfc": ("NADA8698",),
    "prague": ("Prague",),
    "primal": (
        "AlphaFairPrimalDual", "DelayedPrimal", "PrimalDual", "PrimalPenalty",
        "ScalableSource", "ScalableTCP",
    ),
    "rcp": ("RCP",),
    "reno": ("AIMD", "Reno", "StaticAIMD", "StaticReno"),
    "sampled": ("SampledLDCC",),
    "scream": ("SCReAM",),
    "tfrc": ("SlowStartTFRC", "TFRC", "TFRCFluid"),
    "timely": ("PatchedTIMELY", "TIMELY"),
    "traffic": ("CBR", "OnOff", "Poisson"),
    "westwood": ("Westwood",),
}  # fmt: skip
_HOME = {name: file for file, names in _FILES.items() for name in names}

if TYPE_CHECKING:  # what `__getattr__` does at run time, for type checkers and editors
    from fluidcc.sources.bbr1 import *
    from fluidcc.sources.bbr2 import *
    from fluidcc.sources.bbr3 import *
    from fluidcc.sources.binomial import *
    from fluidcc.sources.compound import *
    from fluidcc.sources.copa import *
    from fluidcc.sources.cubic import *
    from fluidcc.sources.cxtcp import *
    from fluidcc.sources.dca import *
    from fluidcc.sources.dccp import *
    from fluidcc.sources.dcqcn import *
    from fluidcc.sources.dctcp import *
    from fluidcc.sources.delay_aimd import *
    from fluidcc.sources.ecf import *
    from fluidcc.sources.gcc import *
    from fluidcc.sources.highspeed import *
    from fluidcc.sources.illinois import *
    from fluidcc.sources.ldcc import *
    from fluidcc.sources.ledbatpp import *
    from fluidcc.sources.nada import *
    from fluidcc.sources.nada_rfc import *
    from fluidcc.sources.prague import *
    from fluidcc.sources.primal import *
    from fluidcc.sources.rcp import *
    from fluidcc.sources.reno import *
    from fluidcc.sources.sampled import *
    from fluidcc.sources.scream import *
    from fluidcc.sources.tfrc import *
    from fluidcc.sources.timely import *
    from fluidcc.sources.traffic import *
    from fluidcc.sources.westwood import *
else:
    __all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(f"{__name__}.{_HOME[name]}"), name))
