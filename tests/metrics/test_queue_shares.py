"""Whose data wait in a FIFO: shares add up to the backlog, and at rest they are the paper's."""

from __future__ import annotations

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.formulas import fast

PACKET = 8000.0


def test_shares_add_up_to_the_backlogs_of_two_links_in_a_row() -> None:
    """Rates that change, access delays, and a queue before the queue."""
    net = fc.Network().link("a", fc.DropTail, capacity="10 Mbit/s", delay="20 ms")
    net.link("b", fc.DropTail, capacity="8 Mbit/s", delay="5 ms")
    net.flow(
        "long", fc.FAST(alpha=20), route=["a", "b"], start=0, packet=PACKET, access_delay="3 ms"
    )
    net.flow("on a", fc.CBR(rate="6 Mbit/s"), route=["a"], start=1, stop=2.5)
    net.flow("on b", fc.CBR(rate="3 Mbit/s"), route=["b"], start=3, stop=5, access_delay="11 ms")
    run = fc.simulate(net, 6, samples=60001, rtol=1e-8)
    shares = fc.metrics.queue_shares(run, net)
    assert shares.dims == ("time", "link", "flow")
    known = shares.sel(time=slice(0.5, None))
    np.testing.assert_allclose(
        known.sum("flow"), run.backlog.sel(time=slice(0.5, None)), atol=0.05 * PACKET
    )
    assert float(known.sel(link="b", flow="on b").max()) > 10 * PACKET
    assert float(abs(known.sel(link="a", flow="on b")).max()) == 0.0
    assert np.all(np.isnan(shares.values[0, 0]) | (shares.values[0, 0] == 0))


def test_at_rest_each_flow_has_alpha_and_the_newcomer_what_5_says() -> None:
    net = fc.Network().link("l", fc.DropTail, capacity="100 Mbit/s", delay="20 ms")
    for k, start in enumerate((0.0, 0.0, 15.0)):
        net.flow(f"f{k}", fc.FAST, route=["l"], start=start, packet=PACKET)
    run = fc.simulate(net, 40.0, samples=8001, rtol=1e-7)
    last = fc.metrics.queue_shares(run, net).isel(time=-1, link=0) / PACKET
    assert float(last[0]) == pytest.approx(50, rel=5e-3)
    assert float(last[2]) == pytest.approx(fast.newcomer_backlog(2, 50), rel=5e-3)


def test_what_it_cannot_tell_is_refused() -> None:
    net = fc.Network().link(
        "l", fc.DropTail, capacity="1 Mbit/s", delay="20 ms", buffer="5 packets"
    )
    net.flow("f", fc.CBR(rate="2 Mbit/s"), route=["l"], start=0)
    run = fc.simulate(net, 1.0, samples=11)
    with pytest.raises(Unsupported, match="data were lost"):
        fc.metrics.queue_shares(run, net)
    with pytest.raises(InvalidInput, match="other flows or links"):
        fc.metrics.queue_shares(run, net.copy().flow("g", fc.CBR, route=["l"]))
