"""Looking into one record of a queue: what left it at the end of some work entered when."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.fluid import state as s
from fluidcc.numerics.fluid.reads import invert
from tests.compiled import called

PLACES = np.array([0.1, 0.35, 0.8, 1.0])


def records(
    quartics: list[list[float]], modes: list[int], work: float
) -> tuple[NDArray[np.float64], list[float]]:
    """Blocks of one link in four records, and W at the four places."""
    F, targets = np.zeros(4 * s.LSIZE), []
    for k, (quartic, mode, u) in enumerate(zip(quartics, modes, PLACES, strict=True)):
        block = F[k * s.LSIZE :]
        block[: len(quartic)] = quartic
        block[s.LCH], block[s.LS0], block[s.LMODE] = work, 7.0 * k, mode
        targets.append(float(7.0 * k + work * u + np.polynomial.Polynomial(quartic)(u)))
    return F, targets


def inverted(F: NDArray[np.float64], targets: list[float]) -> list[float]:
    return [called(invert)(F[k * s.LSIZE :], target) for k, target in enumerate(targets)]


def test_some_records_need_more_care() -> None:
    """An empty queue; one that hardly fills for a while; and one that has just begun."""
    hesitant = [3.0, -1.999, 0.0, 2.0, 0.0]  # W' = 0.001 + 6 u^2
    quartics = [[0.0], hesitant, [3.0, 0.1], [1e-17, 0.0, 0.5]]
    F, targets = records(quartics, [s.EMPTY, s.BUSY, s.FULL, s.BUSY], work=2.0)
    np.testing.assert_allclose(inverted(F, targets), PLACES, rtol=1e-9)


def test_nobody_enters_after_he_leaves() -> None:
    """A backlog below 0 by rounding does not put the entry after the exit."""
    F, targets = records([[-1e-15]] * 4, [s.BUSY] * 4, work=2.0)
    found = inverted(F, targets)
    leaves = [(target - 7.0 * k) / 2.0 for k, target in enumerate(targets)]
    assert all(u <= at for u, at in zip(found, leaves, strict=True))
    np.testing.assert_allclose(found, PLACES, rtol=1e-14)
