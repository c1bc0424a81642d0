"""The pencil: eliminated in parts it has the determinant, slope and response that NumPy finds."""

import numpy as np
import pytest

from fluidcc.numerics.linear.compiled.elimination import CUT, PARTS, SECOND
from fluidcc.numerics.linear.pencil import Pencil, pencils
from fluidcc.numerics.linear.wiring import Blocks, block_of, entries_of


def crowd(flows: int, links: int, seed: int) -> Blocks:
    """Flows that hear a queue and what arrives there: rates that come late are summed in channels
    without delay.
    """
    rng = np.random.default_rng(seed)
    n, k = links + flows, 2 * flows + links
    late, arrive, back = (flows + first + np.arange(count) for first, count in
                          ((0, flows), (flows, links), (flows + links, flows)))  # fmt: skip
    A = np.diag(-rng.uniform(0.5, 2, n))
    B, C, D = np.zeros((n, flows + k)), np.zeros((flows + k, n)), np.zeros((flows + k, flows + k))
    share = rng.uniform(0.5, 2, (links, flows)) * (rng.random((links, flows)) < 0.7)
    D[late, np.arange(flows)] = 1.0
    D[np.ix_(arrive, late)] = share
    B[np.arange(links), arrive] = 1.0
    hears = np.arange(flows) % links
    C[back, hears], D[back, arrive[hears]] = rng.normal(size=(2, flows))
    B[links + np.arange(flows), back] = C[np.arange(flows), links + np.arange(flows)] = 1.0
    lags = np.concatenate((rng.uniform(0.1, 1, flows), np.zeros(links), rng.uniform(0.1, 1, flows)))
    return Blocks(A, B, C, D, lags)


def dense(pencil: Pencil, s: complex) -> tuple[np.ndarray, np.ndarray]:
    """The bordered pencil in its own units, and its derivative."""
    A, B, C, D, lags = block_of(pencil.own)
    (m, p), n = pencil.ports, pencil.n
    late = np.exp(-s * lags)
    value = np.block([
        [s * np.eye(n) - A, -B[:, m:] * late, -B[:, :m]],
        [-C[p:], np.eye(len(lags)) - D[p:, m:] * late, -D[p:, :m]],
        [C[:p], D[:p, m:] * late, D[:p, :m]],
    ])  # fmt: skip
    slope = np.zeros_like(value)
    slope[:n, :n] = np.eye(n)
    slope[:, n : n + len(lags)] = np.vstack((B[:, m:], D[p:, m:], -D[:p, m:])) * (lags * late)
    return value, slope


@pytest.mark.parametrize("integrator", [False, True])
@pytest.mark.parametrize(("flows", "links"), [(1, 1), (3, 1), (8, 2), (60, 3)])
def test_parts_have_the_determinant_and_response_of_the_whole(
    flows: int, links: int, integrator: bool
) -> None:
    block = crowd(flows, links, flows)
    if integrator:
        block.A[links] = 0.0  # a part that is singular at the origin, while the pencil is not
    pencil = Pencil(entries_of(block))
    assert (pencil.whole[pencil.whole[SECOND] + PARTS] > 0) == (flows > 1)
    s = np.array([0.3 + 1j, -2.0 + 5j, 4.0, 1e-9j, 0.1 if integrator else 0.0])
    found, size = pencil.values(s, scaled=True), pencil.size
    for i, at in enumerate(s.tolist()):
        value, rate = dense(pencil, at)
        slope = np.trace(np.linalg.solve(value[:size, :size], rate[:size, :size]))
        phase, log = np.linalg.slogdet(value[:size, :size])
        own = [found.phase[i], found.log[i], found.slope[i]]
        np.testing.assert_allclose(own, [phase, log, slope], rtol=1e-7, atol=1e-9)
        back = np.linalg.solve(value[:size, :size], value[:size, size:])
        response = value[size:, size:] - value[size:, :size] @ back
        np.testing.assert_allclose(found.response[i], response, rtol=1e-7, atol=1e-9)


def test_what_all_paths_from_inputs_lead_through_factors_the_return_ratio() -> None:
    for flows, links in ((3, 1), (8, 2), (60, 3)):
        assert Pencil(entries_of(crowd(flows, links, 0))).loop[CUT] == links
    block = crowd(8, 2, 0)
    block.D[0, 0] = 0.5  # straight from an input to an output: no cut
    assert Pencil(entries_of(block)).loop[CUT] == 0


def test_systems_with_entries_at_other_places_are_evaluated_apart() -> None:
    blocks = [crowd(6, 1, 0) for _ in range(4)]
    blocks[2].C[0, 1] = 0.0
    stack = Blocks(*(np.stack(part) for part in zip(*blocks, strict=True)))
    found = [tuple(rows.tolist()) for rows, _ in pencils(entries_of(stack))]
    assert sorted(found) == [(0, 1, 3), (2,)]
