"""Exceptions and warnings of fluidcc.

Each subclasses a builtin, so that ``except ValueError`` keeps working, and each message names the
object, the value and the remedy.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = [
    "FluidccError", "FluidccWarning", "Infeasible", "InvalidCall", "InvalidInput", "LawError",
    "NegativeRate", "NoBoundary", "NoEquilibrium", "NotFinite", "ScenarioError", "SolverError",
    "StepCollapse", "SweepFailed", "Unbounded", "Undecided", "UnitsError", "UnknownName",
    "Unsupported", "gathered", "warn",
]  # fmt: skip


class FluidccError(Exception):
    """Base of every exception that fluidcc raises on purpose."""


class InvalidInput(FluidccError, ValueError):
    """An argument has a value that no network, law or solver can take."""


class InvalidCall(InvalidInput, TypeError):
    """A call lacks an argument, or has one too many, twice or of an unknown name: a TypeError,
    as in Python.
    """


class UnitsError(InvalidInput):
    """A quantity has the wrong physical dimension, or its text cannot be read."""


class UnknownName(InvalidInput):
    """A link, flow, state, parameter or scenario of that name does not exist."""


class LawError(InvalidInput):
    """A law is not well formed: a stray symbol, a wrong dimension, a missing output."""


class ScenarioError(InvalidInput):
    """A scenario file is wrong: the message names the file, the key, the value and what would be
    right.
    """


class Unsupported(FluidccError, NotImplementedError):
    """The request is meaningful, but outside what this function does; the message says what does
    it.
    """


class NoEquilibrium(FluidccError, ArithmeticError):
    """The network has no equilibrium; the message says why."""


class NoBoundary(InvalidInput):
    """A network has the same verdict wherever it was looked: no parameter value in the bounds is a
    boundary of stability.

    Attributes
    ----------
    stable : bool
        That verdict.
    """

    def __init__(self, message: str, stable: bool = False) -> None:
        super().__init__(message)
        self.stable = stable

    def __reduce__(self) -> tuple[type, tuple[str, bool]]:
        return type(self), (str(self), self.stable)


class Infeasible(FluidccError, ArithmeticError):
    """An optimisation problem has no feasible point."""


class Unbounded(FluidccError, ArithmeticError):
    """An optimisation problem has no finite optimum."""


class Undecided(FluidccError, ArithmeticError):
    """Two independent ways to the same answer disagree, or neither resolves it; the message
    gives both.
    """


class SolverError(FluidccError, ArithmeticError):
    """An integration failed: the message says what failed, where, and what to try."""


class StepCollapse(SolverError):
    """The step size fell below the resolution of time."""


class NotFinite(SolverError):
    """A right-hand side or a state became NaN or infinite."""


class NegativeRate(SolverError):
    """A sending rate became negative."""


class SweepFailed(FluidccError, ArithmeticError):
    """No point of a sweep could be measured; the message has the first one's reason."""


class Zeno(SolverError):
    """Jumps follow one another without end at one instant, or ever faster towards it."""


class FluidccWarning(UserWarning):
    """A result may be wrong or not what was meant."""


# --- warnings -------------------------------------------------------------------------------------


_gathered: ContextVar[list[str] | None] = ContextVar("gathered", default=None)


def warn(text: str, stacklevel: int = 1) -> None:
    """Warn that a result may be wrong or not what was meant; `stacklevel` as of `warnings.warn`,
    from the caller on.
    """
    texts = _gathered.get()
    if texts is None:
        warnings.warn(text, FluidccWarning, stacklevel=stacklevel + 1)
    else:
        texts.append(text)


@contextmanager
def gathered() -> Iterator[list[str]]:
    """Collect the warnings raised meanwhile instead of showing them: of this thread alone, unlike
    Python's own ways.
    """
    texts: list[str] = []
    before = _gathered.set(texts)
    try:
        yield texts
    finally:
        _gathered.reset(before)
