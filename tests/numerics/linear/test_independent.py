"""Parts without a common loop: their roots together are those of the whole."""

from __future__ import annotations

import numpy as np

import fluidcc as fc
from fluidcc.numerics.linear.wiring import independent


def _chain(rng: np.random.Generator) -> fc.DelayLTI:
    """A loop that drives another one, and a delayed state that drives nothing."""
    A = -np.diag(rng.uniform(0.5, 2.0, 3))
    B, C = np.zeros((3, 4)), np.zeros((4, 3))
    B[0, 0] = B[1, 1] = -1.0
    C[0, 0] = C[1, 1] = 1.0
    B[1, 2], C[2, 0] = 0.7, 1.0
    B[2, 3], C[3, 1] = 0.3, 1.0
    return fc.DelayLTI(A, B, C, np.zeros((4, 4)), delays=rng.uniform(0.3, 2.0, 4))


def test_the_roots_are_those_of_the_parts() -> None:
    whole = _chain(np.random.default_rng(0))
    parts = [fc.DelayLTI(*part[:4], delays=part.delays) for part in independent(whole._block)]
    assert sorted((part.n_states, len(part.delays)) for part in parts) == [(1, 0), (1, 1), (1, 1)]
    box = (-3.0, 1.0, -12.0, 12.0)
    among = np.concatenate([part.roots(region=box) for part in parts])
    wanted = whole.roots(region=box)
    assert len(wanted) == len(among) > 5
    assert np.abs(wanted[:, None] - among).min(axis=1).max() < 1e-9


def test_the_characteristic_function_is_their_product() -> None:
    whole = _chain(np.random.default_rng(1))
    s = np.array([0.3 + 0.2j, -0.4 + 2j, 1.5j])
    parts = [fc.DelayLTI(*part[:4], delays=part.delays) for part in independent(whole._block)]
    own = np.prod([part.characteristic(s) for part in parts], axis=0)
    ratio = own / whole.characteristic(s)  # but for a factor: each has its own unit of time
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-10)


def test_a_loop_is_left_whole() -> None:
    assert len(independent(fc.DelayLTI.retarded(-1.0, (-0.5, 1.0))._block)) == 1
