"""Queues and prices, one file each: pure data."""

from fluidcc.links.droptail import DropTail

__all__ = ["DropTail"]
