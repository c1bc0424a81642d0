"""The work on a task as workers get it: as it is in this process, as bytes in others, which read them once."""

from __future__ import annotations

import math
import pickle
import platform
from functools import partial
from threading import Event

from fluidcc.base.errors import InvalidInput
from fluidcc.base.progress import unless
from fluidcc.sweeps.chunk import Piece
from fluidcc.sweeps.identity import versions
from fluidcc.sweeps.jobs import Points
from fluidcc.sweeps.task import Task

__all__ = ["Near", "Sent"]

LIGHT = 50_000  # bytes of a task that go out with every job; a heavier one goes only to workers that ask for it
TASKS = 4  # tasks that a worker keeps


class Near:
    """The work on a task for threads, which end early once `stop` is set."""

    def __init__(self, task: Task, stop: Event) -> None:
        self.usual = self.whole = partial(unless, stop, task.evaluate)


class Sent:
    """The work on a task as it is sent to other processes: with the task, and as a rule without it if it is large."""

    def __init__(self, task: Task) -> None:
        try:
            import cloudpickle
        except ImportError:  # older versions of joblib carry their own
            from joblib.externals import cloudpickle
        read = cloudpickle.dumps(task)
        self.whole = partial(_evaluate, task.token, read, versions())
        self.usual = self.whole if len(read) <= LIGHT else partial(_evaluate, task.token, None, None)


_tasks: dict[str, Task] = {}  # of this process; a task is read once, since its laws take milliseconds to read


def _evaluate(
    token: str, read: bytes | None, wanted: dict[str, str] | None, points: Points, seconds: float = math.inf
) -> Piece | None:
    """Results of some points, of `Task.evaluate`; None if the task is not known here, and has not been sent."""
    task = _tasks.get(token)
    if task is None:
        if read is None or wanted is None:
            return None
        here = versions()
        for what in [k for k, v in wanted.items() if here[k] != v and k != "processor"]:
            raise InvalidInput(
                f"a worker on {platform.node()} has {what} {here[what]}, and the sweep {wanted[what]}, with which "
                "results may differ; install the same on all machines and start the workers again"
            )
        task = pickle.loads(read)
        while len(_tasks) >= TASKS:
            _tasks.pop(next(iter(_tasks)), None)
        _tasks[token] = task
    return task.evaluate(points, seconds)
