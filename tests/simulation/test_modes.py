"""Byte and packet modes: what a router counts, and to whom its marks go."""

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, LawError

C, LONG, SHORT = 30e6, 12000.0, 4000.0
RED = fc.RED(min_th=0.02, max_th=0.06, p_max=0.1, T=0.5)


def mixed(link: fc.Link, law: fc.Source) -> fc.Network:
    """Flows of long packets, and as many of short ones."""
    sizes = {"long": LONG, "short": SHORT}
    flows = {name: {"law": law, "packet": size} for name, size in sizes.items()}
    return fc.dumbbell(flows, {"name": "l", "law": link, "capacity": C, "delay": 0.03})


MANY = fc.StaticReno(a=30, b=0.5 / 30)  # thirty flows as one


def test_rates_go_as_the_length_by_packets_and_as_its_root_by_bytes() -> None:
    """W^2 p = 2 per flow, with p the same for all or in proportion to the length."""
    for law, wanted in ((MANY, LONG / SHORT), (fc.marked_by_bytes(MANY), np.sqrt(LONG / SHORT))):
        rest = fc.equilibrium(mixed(RED, law))
        assert float(rest.rate[0] / rest.rate[1]) == pytest.approx(wanted, rel=1e-9)
        run = fc.simulate(mixed(RED, law), 60, samples=3, rtol=1e-8)
        np.testing.assert_allclose(run.rate[-1], rest.rate, rtol=1e-5)
        assert float(rest.rate.sum()) == pytest.approx(C, rel=1e-9)


def test_packets_of_mean_length_are_marked_as_before() -> None:
    by_bytes = fc.marked_by_bytes(MANY, SHORT)
    rates = [fc.equilibrium(mixed(RED, law)).rate for law in (MANY, by_bytes)]
    assert float(rates[1][0]) < float(rates[0][0])
    plain, same = (
        fc.equilibrium(mixed(RED, law).without_flow("short"))
        for law in (MANY, fc.marked_by_bytes(MANY))
    )
    np.testing.assert_allclose(plain.rate, same.rate, rtol=1e-12)
    np.testing.assert_allclose(plain.queueing_delay, same.queueing_delay, rtol=1e-12)


def test_a_queue_of_short_packets_looks_longer_by_packets() -> None:
    """Half of the packets are of 40 bytes: a target of 100 packets is 20.5 ms, not 40 ms."""
    mean = (1500 + 40) / 2
    law = fc.count_packets(RED, mean=f"{mean} B")
    count = law.parameter("count")
    assert count == pytest.approx(1500 / mean)
    net = fc.dumbbell([MANY], {"name": "l", "law": law, "capacity": C, "delay": 0.03})
    rest = fc.equilibrium(net)
    average = rest.states["l"]["avg"]
    assert average == pytest.approx(count * float(rest.queueing_delay[0]), rel=1e-9)
    assert float(rest.mark[0]) == pytest.approx(0.1 * (average - 0.02) / 0.04, rel=1e-9)
    assert fc.equilibrium(net.with_link("l", law=RED)).queueing_delay > 1.3 * rest.queueing_delay


@pytest.mark.parametrize("count", [1.0, 1.2, 3.0])
def test_by_packets_p_aqm_takes_short_packets_for_an_overload(count: float) -> None:
    """0.8 c, counted so often: u = c/r + K q0 c/(dT r) with an empty queue, at most 1."""
    law = fc.count_packets(fc.PAQMDrop, mean=LONG / count, assumed=LONG)
    net = fc.dumbbell([fc.CBR(rate=0.8 * C)], {"law": law, "capacity": C, "delay": 0.01})
    run = fc.simulate(net, 5, samples=501)
    assert float(run.link_loss[-1, 0]) == pytest.approx(1 - min(1.0, 1.6 / (0.8 * count)), abs=1e-9)
    assert float(run.queueing_delay.max()) == 0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: fc.count_packets(fc.PI, mean="500 B"), "PI goes by how its queue changes"),
        (lambda: fc.count_packets(fc.DropTail, mean="500 B"), "DropTail measures neither"),
        (lambda: fc.marked_by_bytes(fc.CBR), "CBR hears neither losses nor marks"),
        (lambda: fc.count_packets(RED, mean=0), "mean is 0"),
    ],
)
def test_what_has_no_modes_says_so(call: Any, says: str) -> None:
    with pytest.raises((LawError, InvalidInput), match=says):
        call()


def test_drops_by_bytes_carry_a_doubt() -> None:
    said = "flow 'long' hears of drops by bytes, but link 'l' thins all"
    dropping = fc.REDDrop(min_th=0.02, max_th=0.06)
    for law, ecn, doubtful in ((dropping, True, True), (RED, True, False), (RED, False, True)):
        net = mixed(law, fc.marked_by_bytes(MANY)).with_flow("long", ecn=ecn)
        assert (said in fc.simulate(net, 5, samples=3).attrs["warnings"]) == doubtful
