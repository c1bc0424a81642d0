"""Byte and packet modes: what a router counts, and to whom its marks go, where packets are not
of one size.
"""

from __future__ import annotations

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, LawError

C, LONG, SHORT = 30e6, 12000.0, 4000.0
RED = fc.RED(min_th=0.02, max_th=0.06, p_max=0.1, T=0.5)


def mixed(link: fc.Link, law: fc.Source) -> fc.Network:
    """Flows of long packets, and as many of short ones."""
    net = fc.Network().link("l", link, capacity=C, delay=0.03)
    for name, size in (("long", LONG), ("short", SHORT)):
        net.flow(name, law, route=["l"], packet=size)
    return net


MANY = fc.Reno(a=30, b=0.5 / 30)  # thirty flows as one


def test_rates_go_as_the_length_by_packets_and_as_its_root_by_bytes() -> None:
    """W^2 p = 2 per flow, with p the same for all or in proportion to the length."""
    for law, wanted in ((MANY, LONG / SHORT), (fc.marked_by_bytes(MANY), np.sqrt(LONG / SHORT))):
        rest = fc.equilibrium(mixed(RED, law))
        assert float(rest.rate[0] / rest.rate[1]) == pytest.approx(wanted, rel=1e-9)
        run = fc.simulate(mixed(RED, law), 60, samples=3, rtol=1e-8)
        np.testing.assert_allclose(run.rate[-1], rest.rate, rtol=1e-5)
        assert float(rest.rate.sum()) == pytest.approx(C, rel=1e-9)


def test_packets_of_mean_length_are_marked_as_before() -> None:
    plain, by_bytes = (
        fc.equilibrium(mixed(RED, law)) for law in (MANY, fc.marked_by_bytes(MANY, SHORT))
    )
    assert float(by_bytes.rate[0]) < float(plain.rate[0])
    one = fc.Network().link("l", RED, capacity=C, delay=0.03)
    rests = [
        fc.equilibrium(one.copy().flow("f", law, route=["l"], packet=LONG))
        for law in (MANY, fc.marked_by_bytes(MANY))
    ]
    np.testing.assert_allclose(rests[0].rate, rests[1].rate, rtol=1e-12)
    np.testing.assert_allclose(rests[0].queueing_delay, rests[1].queueing_delay, rtol=1e-12)


def test_a_queue_of_short_packets_looks_longer_by_packets() -> None:
    """Half of the packets are acknowledgements of 40 bytes: a target of 100 packets is 20.5 ms
    instead of 40 ms.
    """
    mean = (1500 + 40) / 2
    law = fc.count_packets(RED, mean=f"{mean} B")
    count = law.parameter("count")
    assert count == pytest.approx(1500 / mean)
    net = fc.Network().link("l", law, capacity=C, delay=0.03).flow("f", MANY, route=["l"])
    rest = fc.equilibrium(net)
    assert rest.states["l"]["avg"] == pytest.approx(count * float(rest.queueing_delay[0]), rel=1e-9)
    assert float(rest.loss[0]) == pytest.approx(
        0.1 * (rest.states["l"]["avg"] - 0.02) / 0.04, rel=1e-9
    )
    assert fc.equilibrium(net.with_link("l", law=RED)).queueing_delay > 1.3 * rest.queueing_delay


@pytest.mark.parametrize("count", [1.0, 1.2, 3.0])
def test_by_packets_p_aqm_takes_short_packets_for_an_overload(count: float) -> None:
    """0.8 c of traffic, each bit of which counts so often: u = c/r + K q0 c/(dT r) with an empty
    queue, at most 1.
    """
    law = fc.count_packets(fc.PAQMDrop, mean=LONG / count, assumed=LONG)
    net = (
        fc.Network()
        .link("l", law, capacity=C, delay=0.01)
        .flow("f", fc.CBR(rate=0.8 * C), route=["l"], start=0)
    )
    run = fc.simulate(net, 5, samples=501)
    assert float(run.link_loss[-1, 0]) == pytest.approx(1 - min(1.0, 1.6 / (0.8 * count)), abs=1e-9)
    assert float(run.queueing_delay.max()) == 0


def test_what_has_no_modes_says_so() -> None:
    with pytest.raises(LawError, match="PI goes by how its queue changes"):
        fc.count_packets(fc.PI, mean="500 B")
    with pytest.raises(LawError, match="DropTail measures neither"):
        fc.count_packets(fc.DropTail, mean="500 B")
    with pytest.raises(LawError, match="CBR hears neither losses nor marks"):
        fc.marked_by_bytes(fc.CBR)
    with pytest.raises(InvalidInput, match="mean is 0"):
        fc.count_packets(RED, mean=0)


def test_drops_by_bytes_carry_a_doubt() -> None:
    net = mixed(fc.REDDrop(min_th=0.02, max_th=0.06), fc.marked_by_bytes(MANY))
    assert (
        "flow 'long' hears of drops by bytes, but link 'l' thins all"
        in fc.simulate(net, 5, samples=3).attrs["warnings"]
    )
    assert (
        "by bytes"
        not in fc.simulate(mixed(RED, fc.marked_by_bytes(MANY)), 5, samples=3).attrs["warnings"]
    )
