"""Queues and prices, one file each: pure data."""

from fluidcc.links.droptail import DropTail
from fluidcc.links.prices import DualLink, PenaltyLink

__all__ = ["DropTail", "DualLink", "PenaltyLink"]
