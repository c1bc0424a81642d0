"""Passes over a step that looks into itself: they converge where plain repetition would not, and
cost no accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.networks import as_network, delays, error
from benchmarks.reference.cases import FULL, P1, P2
from benchmarks.reference.problem import Case
from benchmarks.speed import reference
from fluidcc.numerics.fluid.fixed_point import (
    begin_passes,
    forget,
    judge,
    learn,
    measure,
    mix,
    raised,
)
from fluidcc.simulation.layout import lay_out
from fluidcc.simulation.simulate import simulate
from fluidcc.simulation.workspace import Workspace
from tests.compiled import called


def workspace() -> Workspace:
    space = Workspace(
        lay_out(as_network(P2)), np.array([0.0, 1.0]), 1.0, rtol=1e-8, atol=1e-10, patterns={}
    )
    run = space.state
    run.reach, run.h, run.sigma, run.rest = 1.0, 1.0, np.inf, np.inf
    return space


def coefficients(space: Workspace) -> NDArray[np.int64]:
    """Where the coefficients that passes mix stand in `F`."""
    run = space.state
    quartics = run.quartic_place[: run.n_quartics]
    record = run.start("ring") + (run.n_records & run.ring_mask) * run.record_size
    return np.asarray(record + quartics[:, None] + np.arange(1, 5)).ravel()


def stage_places(space: Workspace) -> NDArray[np.int64]:
    """Where the stages that passes mix stand in `F`."""
    n = int(space.state.n_states)
    return space.state.start("slopes") + n + np.arange(6 * n)


def passes(
    space: Workspace,
    matrix: NDArray[Any],
    target: NDArray[Any],
    start: NDArray[Any] | None = None,
    count: int = 8,
    stages: NDArray[Any] | None = None,
) -> NDArray[np.float64]:
    """Passes G(x) = target + matrix (x - target) from a start or 0, in natural units; errors of
    what they look into.

    Their stages are `stages` (x - target), and the step ends with the last pass, where they are
    given.
    """
    F, run = space.F, space.state
    natural = np.repeat(1.0 / run.quartic_weight[: run.n_compared], 4)
    where, looked = coefficients(space), run.looked[: 4 * run.n_quartics]
    run.n_pass = 0
    looked[:] = 0.0 if start is None else start * natural
    errors = []
    for k in range(count):
        x = looked / natural
        errors.append(np.abs(x - target).max())
        F[where] = (target + matrix @ (x - target)) * natural
        if stages is not None:
            F[stage_places(space)] = stages @ (x - target)
        called(measure)(run, run.n_compared)
        ends = stages is not None and k == count - 1
        called(mix)(run, run.n_quartics, run.n_compared, run.n_mixed, ends)
    return np.array(errors)


def test_passes_converge_where_repetition_would_not() -> None:
    space = workspace()
    random = np.random.default_rng(1)
    n = len(coefficients(space))
    left, right, target = (random.normal(size=size) for size in ((n, 2), (2, n), n))
    matrix = left @ np.linalg.inv(right @ left) @ np.diag([-3.0, -1.5]) @ right
    assert np.abs(np.linalg.eigvals(matrix)).max() == pytest.approx(3.0)
    errors = passes(space, matrix, target, count=5)
    assert errors[1] > errors[0]
    assert errors[4] < 1e-6 * errors[0]  # two directions have to be found
    space = workspace()
    passes(space, matrix, target, count=4)
    errors = passes(space, matrix, target, target + left @ [0.3, -0.2], count=2)
    assert errors[1] < 1e-6 * errors[0]  # the next time they are known


def test_a_step_ends_with_the_mixture_of_its_stages() -> None:
    """They are those of the fixed point, before any pass has looked into it."""
    space = workspace()
    space.state.h = 0.7
    random = np.random.default_rng(4)
    n = len(coefficients(space))
    left, right, target = (random.normal(size=size) for size in ((n, 2), (2, n), n))
    matrix = left @ np.linalg.inv(right @ left) @ np.diag([-0.6, 0.4]) @ right
    start, stages = target + left @ [0.3, -0.2], random.normal(size=(len(stage_places(space)), n))
    errors = passes(space, matrix, target, start, count=3, stages=stages)
    assert errors[2] > 1e-3
    assert np.abs(space.F[stage_places(space)]).max() < 1e-6


def test_what_is_forgotten_changes_nothing() -> None:
    space = workspace()
    n = len(coefficients(space))
    random = np.random.default_rng(2)
    passes(space, random.normal(size=(n, n)), random.normal(size=n))
    called(forget)(space.state)
    errors, anew = (passes(a, 0.1 * np.eye(n), np.ones(n)) for a in (space, workspace()))
    np.testing.assert_array_equal(errors, anew)
    assert errors[1] == pytest.approx(0.1)
    assert errors[-1] < 1e-8


def test_what_decays_is_guessed_exactly() -> None:
    """Records that are each the one before, only smaller, over growing steps: no polynomial goes
    that far.
    """
    space = workspace()
    F, run = space.F, space.state
    nq, nql, nl = int(run.n_quartics), int(run.n_compared), int(run.n_links)
    natural = np.repeat(1.0 / run.quartic_weight[:nql], 4)
    shape = natural * np.random.default_rng(3).normal(size=4 * nq)
    run.t, run.h, run.h_before, run.fresh = 0.0, 1.0, 1.0, 1
    missed = []
    for _ in range(6):
        called(begin_passes)(run, nq, nl)
        run.fresh = 0
        where = coefficients(space)
        record = np.exp(-0.3 * run.t) * shape * np.tile(run.h ** np.arange(1, 5), nq)
        missed.append(np.max(np.abs(F[where] - record) / natural))
        F[where] = record
        called(learn)(run, nq, nql)
        run.t, run.h_before, run.n_records = run.t + run.h, run.h, run.n_records + 1
        run.h *= 1.1
    assert min(missed[:3]) > 0.1
    assert max(missed[4:]) < 1e-12


@pytest.mark.parametrize(("least", "tolerance"), [(0.1, 1e-6), (0.01, 1e-3)])
def test_a_decay_is_raised_to_any_power(least: float, tolerance: float) -> None:
    for x in np.linspace(least, 2.0, 20):
        for power in np.linspace(0.05, 2.0, 14):
            assert called(raised)(x, power) == pytest.approx(x**power, rel=tolerance)


def test_states_that_hardly_depend_on_the_record_need_one_pass() -> None:
    """By what one pass changed in the states; but never if records say that the guess was far
    off.
    """
    space = workspace()
    run = space.state
    run.change, run.gap, run.sigma, run.n_pass = 1e-9, 1e-7, np.inf, 0
    assert called(judge)(run, np.inf) < 0
    assert called(judge)(run, 1.0) == 0  # nothing is known yet
    run.n_pass = 1
    # a change by 1e-7 made 0.1, so that 1e-9 will make a hundredth of that
    assert called(judge)(run, 0.1) > 0
    run.n_pass = 0
    assert called(judge)(run, 1.0) > 0
    run.change = 1e-7
    assert called(judge)(run, 1.0) == 0


@pytest.mark.parametrize("case", [P1, P2, FULL], ids=lambda case: case.name)
@pytest.mark.parametrize("rtol", [1e-5, 1e-7, 1e-9])
def test_few_passes_keep_to_the_tolerance(case: Case, rtol: float) -> None:
    """Also just after a buffer has filled, where long steps look back into what follows upon a
    kink.
    """
    truth = reference(case)
    given: dict[str, Any] = {
        "rtol": rtol,
        "atol": 0.01 * rtol,
        "t_eval": truth["time"],
        "delays": delays(case),
        "engine": "array",
    }
    assert error(simulate(as_network(case), case.until, **given), truth) < 3.0 * rtol
