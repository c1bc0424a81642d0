"""NADA of 2013: where it rests, as the LDCC paper says, and how it gets there."""

from __future__ import annotations

import numpy as np
import pytest

import fluidcc as fc
from tests.sources.networks import on_one_link

R_MAX, DELAY = 1.5e6, 0.025


@pytest.mark.parametrize("capacity", [0.5e6, 1e6, 1.4e6])
def test_the_delay_at_rest_is_r_max_owd_min_over_r(capacity: float) -> None:
    ds = fc.simulate(on_one_link(capacity, fc.NADA(R_max=R_MAX)), 300)
    assert float(ds.rate[-1, 0]) == pytest.approx(capacity, rel=1e-5)
    assert float(ds.one_way_delay[-1, 0]) == pytest.approx(R_MAX * DELAY / capacity, rel=1e-4)
    assert np.ptp(ds.one_way_delay.values[-50:]) < 1e-5


def test_with_room_for_its_largest_rate_it_takes_that_and_queues_nothing() -> None:
    ds = fc.simulate(on_one_link(2e6, fc.NADA(R_max=R_MAX)), 300)
    assert float(ds.rate[-1, 0]) == pytest.approx(R_MAX, rel=1e-4)
    assert float(ds.queueing_delay.max()) == 0


def test_flows_that_start_together_share_by_weight() -> None:
    """The product of rate and delay is the same for all, but for the weight, where the least
    rate is 0.
    """
    ds = fc.simulate(
        on_one_link(1.2e6, fc.NADA(weight=1), fc.NADA(weight=2), fc.NADA(weight=3)), 120
    )
    np.testing.assert_allclose(ds.rate.values[-1], [0.2e6, 0.4e6, 0.6e6], rtol=1e-4)
    assert float(ds.one_way_delay[-1, 0]) == pytest.approx(R_MAX * DELAY / 0.2e6, rel=1e-3)


def test_a_least_rate_shifts_the_product() -> None:
    least, capacity = 150e3, 0.6e6
    ds = fc.simulate(on_one_link(capacity, fc.NADA(R_min=least)), 60)
    wanted = (R_MAX - least) * DELAY / (capacity - least)
    assert float(ds.one_way_delay[-1, 0]) == pytest.approx(wanted, rel=1e-4)


def test_one_who_comes_late_takes_the_queue_for_the_path() -> None:
    """Its reference is the delay it met first, so that it gets more: the share is not fair, as
    the claim has it.
    """
    net = on_one_link(1e6, fc.NADA).flow("late", fc.NADA, route=["l"], start=40)
    ds = fc.simulate(net, 200)
    early, late = ds.rate.values[-1]
    e, delta = ds.one_way_delay.values[-1], ds.NADA_delta.values[-1]
    assert late > 1.2 * early
    np.testing.assert_allclose([early * e[0], late * e[1]], R_MAX * (e - delta), rtol=1e-3)


def test_a_loss_counts_as_delay() -> None:
    """Over a buffer too short for the delay at rest, losses make up for it: (R)(e + d_L pi) =
    R_max e_min.
    """
    capacity = 0.5e6
    ds = fc.simulate(on_one_link(capacity, fc.NADA(d_L=0.5), buffer=0.01 * capacity), 60)
    R, e, loss = (float(v[-1, 0]) for v in (ds.rate, ds.one_way_delay, ds.loss))
    assert e == pytest.approx(DELAY + 0.01, rel=1e-6)
    assert loss == pytest.approx(1 - capacity / R, rel=1e-4)
    assert R * (e + 0.5 * loss) == pytest.approx(R_MAX * DELAY, rel=1e-4)
