"""A progress bar for runs that take a while: simulated time, in a terminal or a notebook."""

from __future__ import annotations

import multiprocessing as mp
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from time import perf_counter
from types import TracebackType
from typing import Any, Self

PATIENCE = 2.0  # seconds without a bar; most runs end sooner
INTERVAL = 0.25  # seconds between two looks of the bar
FORMAT = "{l_bar}{bar}| {n:.4g} of {total:.4g} s [{elapsed} elapsed, {remaining} to go]"
BARE = "{l_bar}{bar}| [{elapsed} elapsed]"  # for what has steps of no even length


_here = threading.local()


class Stopped(BaseException):
    """The work of a thread is wanted no more."""


def unless(stop: threading.Event, work: Callable[..., Any], *arguments: Any) -> Any:
    """Do some work in this thread, which `look` ends once `stop` is set: Ctrl-C is heard by the
    main thread alone.
    """
    _here.stop = stop
    try:
        return work(*arguments)
    finally:
        _here.stop = None


def look() -> None:
    """End this thread's work if it is wanted no more; to be called from time to time where work
    takes long.
    """
    stop = getattr(_here, "stop", None)
    if stop is not None and stop.is_set():
        raise Stopped


def interrupted(error: BaseException) -> bool:
    """Return whether Ctrl-C is behind an error: compiled code that builds a Python object calls
    numba's Python for it, and what is heard there arrives as the cause of a SystemError.
    """
    cause: BaseException | None = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    return isinstance(cause, KeyboardInterrupt)


def watched() -> bool:
    """Return whether a person is likely to see a bar: standard error is a terminal, or this is a
    Jupyter kernel; and the process is not one beside the first, whose bar shows what all do.
    """
    if mp.parent_process() is not None:
        return False
    if "IPython" in sys.modules:
        shell = sys.modules["IPython"].get_ipython()
        if shell is not None and "IPKernelApp" in shell.config:
            return True
    return sys.stderr is not None and sys.stderr.isatty()


class Progress:
    """Shows how far a run has come.

    Parameters
    ----------
    total : float
        Simulated time at the end [s], or a number of `unit`.
    show : bool, optional
        True: from the start. False: never. None: from two seconds of run time on, if someone is
        `watched` to see it.
    start : float
        Units done at the start, which do not count for the pace.
    about, form, unit : str
        Description, tqdm's format, and unit counted.

    Examples
    --------
    >>> with Progress(60.0, show=False) as bar:
    ...     bar.reach(30.0)
    """

    def __init__(
        self,
        total: float,
        show: bool | None = None,
        *,
        start: float = 0.0,
        about: str = "simulated",
        form: str = FORMAT,
        unit: str = "s",
        waited: float = 0.0,
    ) -> None:
        self._total = total
        self._start = start
        self._shown = {"desc": about, "bar_format": form, "unit": f" {unit}"}
        self._began = perf_counter() - waited
        self._wanted = watched() if show is None else bool(show)
        self._patience = PATIENCE if show is None else 0.0
        self._bar: Any = None

    def __enter__(self) -> Self:
        self.reach(self._start)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            if kind is None:
                self.reach(self._total)
            self._bar.close()

    def reach(self, time: float) -> None:
        """The run has come to `time` [s]."""
        look()
        time = min(time, self._total)
        if self._bar is not None:
            self._bar.update(time - self._bar.n)
            return
        elapsed = perf_counter() - self._began
        if self._wanted and elapsed >= self._patience:
            self._bar = _bar(self._total, {**self._shown, "initial": self._start})
            self._bar.start_t -= (
                elapsed  # so that what it says of the time to go holds from the first
            )
            self._bar.n = time
            self._bar.refresh()


@contextmanager
def patiently(about: str) -> Iterator[None]:
    """Show a progress bar from two seconds on, if the output is `watched`.

    It is for work that cannot say how far it has come, such as compiling. Such work comes in many
    parts: once they have taken two seconds together, the next one shows its bar at once. Of parts
    within parts, and in several threads, the first has the bar.
    """
    global _waited
    if not watched() or not _bar_is_free.acquire(blocking=False):
        yield
        return
    began, done = perf_counter(), threading.Event()

    def show(before: float) -> None:
        if done.wait(INTERVAL):
            return
        with Progress(1.0, about=about, form="{desc} [{elapsed} elapsed]", waited=before) as bar:
            while not done.wait(INTERVAL):
                bar.reach(0.0)

    thread = threading.Thread(target=show, args=(_waited,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        _waited += perf_counter() - began
        _bar_is_free.release()


_bar_is_free = threading.Lock()
_waited = 0.0  # seconds that all of it has taken in this process


def tell(name: str) -> None:
    """Say that a part of the work that `together` does is done."""
    _told(name)


_told: Callable[[str], object] = str  # of a process beside the first: it puts names into a queue


def _begin(queue: mp.SimpleQueue[str]) -> None:
    global _told
    _told = queue.put


def together(
    work: Callable[[Any], Any], parts: Sequence[Any], processes: int, bar: Any
) -> list[Any]:
    """Return what `work` makes of each part, in so many processes, while `bar` counts what they
    `tell`.
    """
    global _told

    def show(name: str) -> None:
        bar.update()
        bar.set_postfix_str(name)

    if processes == 1:
        before, _told = _told, show
        try:
            return [work(part) for part in parts]
        finally:
            _told = before
    context = mp.get_context("spawn")
    queue = context.SimpleQueue()
    with ProcessPoolExecutor(min(processes, len(parts)), context, _begin, (queue,)) as pool:
        found = [pool.submit(work, part) for part in parts]
        for future in found:
            future.add_done_callback(lambda _: queue.put(""))
        left = len(parts)
        while left:
            if name := queue.get():
                show(name)
            else:
                left -= 1
        return [future.result() for future in found]


def _bar(total: float, shown: dict[str, Any]) -> Any:
    # By time alone, and at the mean pace: left to itself tqdm takes the jump of a late first value
    # for the usual one.
    pace = {"mininterval": INTERVAL, "miniters": 0, "smoothing": 0}
    pace["delay"] = 1e-9  # it shows itself when it knows how long the work has taken
    return bar_class()(total=total, leave=False, **shown, **pace)


def bar_class() -> Any:
    """Return the bar of tqdm that suits the place, a terminal or a notebook."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # without ipywidgets tqdm says so, and shows the bar as text
        from tqdm.auto import tqdm

    return tqdm
