"""Cx-TCP: alone it keeps a short queue, beside Reno it fills the buffer with it and shares."""

import numpy as np
import pytest

import fluidcc as fc
from tests.sources.networks import on_one_link

C = 10e6


def net(*laws: fc.Source) -> fc.Network:
    return on_one_link(C, *laws, buffer=0.2 * C)


def test_alone_it_rests_where_its_draws_are_the_loss_that_its_window_needs() -> None:
    """W^2 g(q) = a/b on the rising part of g, with W = x RTT: five flows on 10 Mbit/s."""
    law = fc.CxTCP(peak=0.01)
    ds = fc.simulate(net(*[law] * 5), 200)
    q, W = float(ds.queueing_delay[-1, 0]), ds.CxTCP_W.values[-1]
    assert float(ds.lost[-1, 0]) == 0
    assert 0 < q < 0.02
    np.testing.assert_allclose(W, C / 5 * (0.05 + q) / 8000, rtol=1e-3)
    np.testing.assert_allclose(W**2 * 0.01 * q / 0.02, 2, rtol=2e-3)


@pytest.mark.parametrize(("capacity", "trip"), [(1e7, 0.01), (1e8, 1.0), (1e9, 0.1), (1e9, 1.0)])
def test_the_faster_the_link_the_shorter_the_queue_that_holds_it(
    capacity: float, trip: float
) -> None:
    """Alone, with W = c RTT/l, a queue of (2/W^2) turn/peak, down to 51 ps."""
    net = fc.dumbbell([fc.CxTCP], {"capacity": capacity, "buffer": capacity}, rtt=trip)
    rest = fc.equilibrium(net)
    q, W = float(rest.queueing_delay[0]), float(rest.states["flow1"]["W"])
    assert float(rest.rate[0]) == pytest.approx(capacity, rel=1e-9)
    assert pytest.approx(capacity * (trip + q) / 8000, rel=1e-9) == W
    assert q == pytest.approx(2 / W**2 * 0.02 / 0.05, rel=1e-5)  # the round trip has no more digits


def test_beside_reno_it_shares_the_link() -> None:
    ds = fc.simulate(net(fc.CxTCP, fc.StaticReno), 200, samples=2001)
    mean = ds.rate[1000:].mean("time")
    assert float(mean[0] / mean[1]) == pytest.approx(1, abs=0.02)
    assert float(ds.queueing_delay[1000:].min()) > 0.06  # beyond turn + fall: nothing is drawn


def test_without_the_fall_it_would_give_way() -> None:
    """The same law whose probability stays at its peak leaves Reno most of the link."""
    ds = fc.simulate(net(fc.CxTCP(fall=1e6), fc.StaticReno), 200, samples=2001)
    mean = ds.rate[1000:].mean("time")
    assert float(mean[0] / mean[1]) < 0.3
