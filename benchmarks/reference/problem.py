"""What is solved independently, and what a solution holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Case", "Event", "FlowCase", "LinkCase", "Solution"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinkCase:
    """A FIFO link: capacity [bit/s], propagation delay [s], buffer [s] (the largest queueing
    delay).
    """

    capacity: float
    delay: float
    q_max: float = np.inf


@dataclass(frozen=True)
class FlowCase:
    """An LDCC flow: its links in order, its return delay [s] and its initial rate [bit/s]."""

    route: tuple[int, ...]
    return_delay: float
    rate: float


@dataclass(frozen=True)
class Case:
    """A network of LDCC flows, started on empty queues, with rates constant before t = 0."""

    name: str
    links: tuple[LinkCase, ...]
    flows: tuple[FlowCase, ...]
    until: float
    fifo: bool = True  # False: delayed look-ups ignore the queues (the feedback lag is fixed)
    w: float = 20e3
    beta: float = 0.1
    T: float = 0.1
    eta: float = 0.4
    samples: int = 601


@dataclass(frozen=True)
class Event:
    """A kink that was located: `what` is busy, empty, full, below full, or e above/below T of a
    flow.
    """

    time: float
    what: str
    where: int


@dataclass
class Solution:
    """The 601 samples and what was met on the way."""

    time: Array
    rate: Array  # (flow, time) [bit/s]
    queue: Array  # (link, time) [s]
    arrival: Array  # (link, time) [bit/s]
    events: list[Event]
    pieces: int
