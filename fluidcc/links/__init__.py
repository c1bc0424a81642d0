"""Queues and prices, one file each: pure data."""

from fluidcc.links.droptail import DropTail
from fluidcc.links.pi_aqm import PI
from fluidcc.links.prices import DualLink, PenaltyLink
from fluidcc.links.red import RED, AdaptiveRED

__all__ = ["PI", "RED", "AdaptiveRED", "DropTail", "DualLink", "PenaltyLink"]
