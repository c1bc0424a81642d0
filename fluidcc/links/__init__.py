"""Queues and prices, one file each: pure data."""

from fluidcc.links.droptail import DropTail
from fluidcc.links.ecf import PAQMECF, PAQMECF2
from fluidcc.links.paqm import PAQM, PAQMDrop
from fluidcc.links.pi_aqm import PI
from fluidcc.links.prices import DualLink, PenaltyLink
from fluidcc.links.red import RED, AdaptiveRED, AdaptiveREDDrop, REDDrop

__all__ = [
    "PAQM", "PAQMECF", "PAQMECF2", "PI", "RED", "AdaptiveRED", "AdaptiveREDDrop", "DropTail", "DualLink", "PAQMDrop",
    "PenaltyLink", "REDDrop",
]  # fmt: skip
