"""TFRC: its loss intervals are a shift register, its rate the equation, and its fluid rests where the equation says."""

from __future__ import annotations

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.derive.prove import Proof
from fluidcc.formulas import response
from fluidcc.sources.tfrc import WEIGHTS

C = 10e6
NAMES = [f"TFRC_{name}" for name in ("s0", *(f"I{m}" for m in range(1, 9)))]


def link(law: fc.Source) -> fc.Network:
    net = fc.Network().link("l", fc.DropTail, capacity=C, delay="25 ms", buffer="300 kbit")
    return net.flow("f", law, route=["l"], return_delay="25 ms")


def test_loss_events_shift_the_intervals() -> None:
    net = link(fc.TFRC(n0=100))
    run = fc.simulate(net, 200, samples=2)
    times = run.jump_time.values[:10]
    near = fc.simulate(net, 200, t_eval=np.sort(np.concatenate([times - 1e-9, times + 1e-9])))
    state = np.array([near[name].values[:, 0] for name in NAMES])
    before, after = state[:, ::2], state[:, 1::2]
    assert len(times) == 10
    assert after[0] == pytest.approx(0, abs=1e-4)
    assert after[1:] == pytest.approx(before[:-1], rel=1e-6, abs=1e-4)
    assert np.all(np.diff(times) > 0.05)  # at most one a round trip


def test_the_rate_is_the_equation_over_the_average_interval() -> None:
    run = fc.simulate(link(fc.TFRC(n0=100)), 40, samples=301)
    intervals = np.array([run[name].values[:, 0] for name in NAMES])
    weights = np.array(WEIGHTS, dtype=float)
    mean = np.maximum(weights @ intervals[1:], weights @ intervals[:-1]) / weights.sum()
    assert run.rate.values[:, 0] == pytest.approx(response.tfrc(1 / mean, run.rtt.values[:, 0]), rel=1e-6)


def test_it_fills_the_link_with_few_losses() -> None:
    run = fc.simulate(link(fc.TFRC), 200, samples=401)
    assert float(run.utilisation.values[200:].mean()) > 0.95
    assert 0 < float(run.loss.values[200:].mean()) < 0.02


def test_the_fluid_rests_at_the_equation() -> None:
    rest = fc.equilibrium(link(fc.TFRCFluid))
    loss, rtt, rate = (float(v.item()) for v in (rest.loss, rest.rtt, rest.rate))
    assert rate == pytest.approx(response.tfrc(loss, rtt), rel=1e-6)
    assert rate * (1 - loss) == pytest.approx(C, rel=1e-6)
    proofs = fc.prove(fc.TFRCFluid)
    assert isinstance(proofs, Proof)
    assert all(v.status == "proved" for v in proofs)
