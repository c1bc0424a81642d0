"""What can be run by fixed steps in lanes, and why points that were to be were not."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput
from fluidcc.laws.kernels import handwritten
from fluidcc.network import Network
from fluidcc.simulation.layout import Layout, lay_out
from fluidcc.sweeps.lanes_text import BRANCH, EMPTIED, FILLED, FIXED, INEXACT
from fluidcc.symbols import e, e_b, edot, packet, pi, price, symbols_of

if TYPE_CHECKING:
    from fluidcc.sweeps.task import Task

__all__ = ["ABOUT", "LATE", "LONG", "UNSUITED", "why", "with_step"]

ABOUT = "why the point was run by free steps; empty where the fixed step did"
LONG, LATE, UNSUITED = BRANCH + 1, BRANCH + 2, BRANCH + 3
REASONS = {
    FIXED: "",
    INEXACT: "the error of a step exceeds the tolerance",
    EMPTIED: "a queue is empty",
    FILLED: "a queue is full",
    BRANCH: "a law changes its branch",
    LONG: "the steps are too many",
    LATE: "a flow has an access delay",
    UNSUITED: "what makes a run doubtful must be looked at",
}
MOST_FLOWS = 8  # beyond, it takes long to compile, and free steps do better
HEARD = {e, edot, e_b, packet, pi, price}


def with_step(task: Task, step: float) -> Task:
    """The task with its trajectories by fixed steps.

    Raises
    ------
    InvalidInput
        If no point can be run so, naming what has no place in lanes.
    """
    reason = "no trajectory is measured that can be run among others"
    if any(target.kind in ("count", "law") for target in task.targets.values()):
        reason = "numbers of flows or laws are swept"
    elif task.batched and isinstance(task.model, Network):
        frozen = task.options.get("delays") == "frozen"
        reason = _misfit(lay_out(task.model, dict.fromkeys(task.model.link_names, 0.0) if frozen else None))
    if reason:
        raise InvalidInput(f"step is given, but {reason}; leave step out: the steps are then chosen freely")
    return replace(task, options={**task.options, "step": step})


def _misfit(at: Layout) -> str:
    """What of a network has no place in lanes, if anything."""
    if len(at.flows) > MOST_FLOWS:
        return f"there are {len(at.flows)} flows, and lanes are compiled for at most {MOST_FLOWS}"
    if at.frozen is None:
        return "delays follow the queues (delays='fifo'), and fixed steps need delays='frozen'"
    for flow in at.flows:
        if len(flow.route) > 1:
            return f"flow {flow.name!r} crosses several links, and fixed steps take one"
        if flow.access_delay:
            return f"flow {flow.name!r} has an access delay"
        if flow.intervals != ((-inf, inf),) or flow.pattern is not None:
            return f"flow {flow.name!r} starts, stops or follows a pattern"
    for link in at.links:
        if link.schedule:
            return f"the capacity of link {link.name!r} changes with time"
    for group in (*at.groups, *at.link_groups):
        law = group.law
        if law.jumps or law.ticks or group in at.link_groups or handwritten(law):
            return f"{law.name} is more than a smooth law of sources"
        strange = {v for _, f in law.expressions() for v in symbols_of(f)} - {*law.states, *law.params, *HEARD}
        if strange or at.rate_state[group.members[0]] < 0:
            return f"{law.name} {f'goes by {min(map(str, strange))}' if strange else 'has no state that is its rate'}"
    return ""


def why(codes: NDArray[np.float64]) -> NDArray[np.str_]:
    """In words, how points ended that were to be run by fixed steps; nothing of points that were not run at all."""
    return np.array([REASONS[int(code)] if code >= 0 else "" for code in codes])
