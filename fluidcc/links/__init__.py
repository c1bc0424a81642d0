"""Queues and prices, one file each: pure data."""

from fluidcc.links.droptail import DropTail
from fluidcc.links.paqm import PAQM
from fluidcc.links.pi_aqm import PI
from fluidcc.links.prices import DualLink, PenaltyLink
from fluidcc.links.red import RED, AdaptiveRED

__all__ = ["PAQM", "PI", "RED", "AdaptiveRED", "DropTail", "DualLink", "PenaltyLink"]
