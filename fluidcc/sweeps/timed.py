"""As many points as can be measured in some seconds, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fluidcc.sweeps.chunk import Piece, Variable, empty_piece
from fluidcc.sweeps.pace import Pace

__all__ = ["room", "timed"]

DEAR = 20.0  # seconds of a first point that are its cost; loading and compiling code takes less
GROWTH = 16  # of blocks by which it is learned what a point costs
PATIENT = 4  # of the time of such a job the second block may take so much, since the first point loads code
CRUMB = 0.25  # of the time of a job: what is left of its points and takes less is not worth another one


def room(count: int, left: float, seconds: float, each: float) -> int:
    """How many of so many points a job of `seconds` measures that has some of them left, where each takes `each`."""
    fit = max(int(left > 0.0), math.floor(left / each))
    return count if (count - fit) * each <= CRUMB * seconds else fit


def timed(
    measure: Callable[[NDArray[np.int64]], Piece],
    schema: Mapping[str, Variable],
    points: NDArray[np.int64],
    seconds: float,
    pace: Pace,
) -> Piece:
    """Results of the first of some points: of as many as can be measured in so many seconds, but of one at least.

    It takes up to a quarter longer where it is then through with all of them.

    They tell what a point costs, and what a call costs besides: from blocks that grow. While nothing is known, the
    first of them is one point, which loads code and does not count. What is made once, such as workspaces that many
    points share, does not count either, unless it takes much longer than the points.

    Parameters
    ----------
    measure : callable
        Measures some points.
    schema : mapping
        The form of results.
    points : array of int
    seconds : float
    pace : Pace
        What is known of earlier calls, to which these are added.
    """
    whole, done, spent, once, left = empty_piece(schema, len(points)), 0, 0.0, 0.0, seconds - pace.call
    size = max(1, min(GROWTH * pace.count, room(len(points), left, seconds, pace.each)))
    while done < len(points) and (not done or (size and once < PATIENT * seconds)):
        part, known = measure(points[done : done + size]), pace.count > 0
        whole.put(done, part)
        worked = part.seconds - part.once
        pace.learn(len(part), worked)
        done += len(part)
        if known or part.seconds > DEAR:
            spent += worked
            once += part.once
        left = seconds - spent - pace.call if known else PATIENT * seconds
        size = min(GROWTH * size, room(len(points) - done, left, seconds, pace.each))
    return replace(whole.part(0, done), seconds=whole.seconds, once=whole.once, each=pace.each, call=pace.call)
