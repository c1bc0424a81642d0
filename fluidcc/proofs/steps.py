"""The work of a proof, counted in steps, so that it ends: one is about as much as to work out one
part of an expression, so that the answer does not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from fluidcc.base.errors import Unsupported

MOST = 250_000
"""Steps that one call of `fluidcc.prove` may take."""


class OutOfStepsError(Unsupported):
    """The steps that a proof may take are used up."""


@dataclass
class StepsLeft:
    """Steps that are left of those that were given."""

    given: int
    left: int


_account: ContextVar[StepsLeft | None] = ContextVar("steps of a proof", default=None)


@contextmanager
def at_most(steps: int) -> Iterator[StepsLeft]:
    """Limit what is done here to a number of steps, after which `spend` raises."""
    account = StepsLeft(steps, steps)
    token = _account.set(account)
    try:
        yield account
    finally:
        _account.reset(token)


def spend(steps: int) -> None:
    """Count steps of work that begins.

    Raises
    ------
    OutOfStepsError
        If there are no more left; later calls raise too.
    """
    if (account := _account.get()) is None:
        return
    account.left -= steps
    if account.left < 0:
        raise OutOfStepsError(
            f"its search ended after {account.given:,} steps, as many as it may take"
        )
