"""Margins at what links send, the loop of queue management, of windows that acknowledgements clock:
against transfer functions typed by hand, and against the roots of networks with other gains.
"""

import re

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.symbols import pi, positive
from tests.analysis.test_static_windows import FLOWS, PACKETS, TRIP, WINDOW, marked
from tests.sources.test_clock import PACKET, SMOOTH

x, k, x0 = positive("x k x0")


def test_margins_of_sixty_flows_are_those_of_the_loop_by_hand() -> None:
    """q = N W - C T, and W' = (C/N)((1 - p)/W - W p/2): marks come with acknowledgements. Packets
    decay at 2.2e-4 a packet and oscillate at 2.3e-4, at 6.6 rad/s.
    """
    k, W, p = 1e-4, WINDOW, 2 / (WINDOW**2 + 2)
    own = PACKETS / FLOWS * ((1 - p) / W**2 + p / 2)
    by_hand = fc.DelayLTI.transfer([k * PACKETS * (1 / W + W / 2)], [1, own], TRIP).margins()
    report = fc.stability(marked(SMOOTH, k))
    assert (report.broken_at, report.open.inputs) == ("marks", ("l.mark",))
    assert by_hand.gain == pytest.approx(2.3125e-4 / k, rel=2e-3)
    assert report.gain_margin == pytest.approx(by_hand.gain, rel=5e-3)
    assert report.margins.phase_crossover == pytest.approx(6.70, rel=5e-3)
    for name in ("phase", "delay", "modulus", "crossover", "phase_crossover"):
        assert getattr(report.margins, name) == pytest.approx(getattr(by_hand, name), rel=0.01)


def test_pi2_bears_2_66_times_its_gains_and_an_added_round_trip() -> None:
    """8.5 dB at w = 50 and R = 0.1 s; packets say between 2.6 and 2.8."""

    def net(times: float) -> fc.Network:
        law = fc.PI2(alpha=0.16 * times, beta=3.2 * times)
        n = fc.Network().link("l", law, capacity=5000 * PACKET)
        for i in range(10):
            n.flow(f"f{i}", SMOOTH, route=["l"], packet=PACKET, return_delay=0.085)
        return n

    report = fc.stability(net(0.5))
    assert report.gain_margin / 2 == pytest.approx(2.658, rel=0.03)
    assert report.margins.phase_crossover == pytest.approx(12.66, rel=0.03)
    for factor, grows in ((0.99, False), (1.01, True)):
        gained = fc.stability(net(0.5 * report.gain_margin * factor))
        assert (gained.unstable > 0) == grows
        # All that a sender hears, acknowledgements too, is as late.
        late = report.closed.delays + factor * report.delay_margin
        m = report.closed
        system = fc.DelayLTI(m.A, m.B, m.C, m.D, delays=late)
        assert (system.count_unstable().unstable > 0) == grows
    assert report.of_flow("f1").gain > report.gain_margin


def test_margins_of_two_links_are_of_all_their_signals_together() -> None:
    """Gains of both controllers; many points at once say the same, and so does the closed loop."""

    def net(times: float) -> fc.Network:
        law = fc.PI(a=0.0682 * times, b=0.03615 * times)
        n = fc.Network().link("l", law, capacity="20 Mbit/s").link("k", law, capacity="30 Mbit/s")
        flows = {"long": (["l", "k"], 0.05), "near": (["l"], 0.08), "far": (["k"], 0.03)}
        for name, (route, back) in flows.items():
            n.flow(name, fc.Reno, route=route, return_delay=back)
        return n

    report = fc.stability(net(1))
    assert report.open.inputs == ("l.mark", "k.mark")
    for factor, grows in ((0.999, False), (1.001, True)):
        assert (fc.stability(net(report.gain_margin * factor)).unstable > 0) == grows
    assert report.closed.margins("long").gain == report.of_flow("long").gain > report.gain_margin
    assert "margins of the loop at  l.mark, k.mark" in re.sub("  +", "  ", str(report))
    names = ["gain_margin", "delay_margin", "modulus_margin", "encirclements"]
    found = fc.sweep(net(1), {"l.q_ref": [0.05, 0.06]}, names, executor="serial")
    for name in names:
        assert float(found[name][0]) == pytest.approx(getattr(report, name), rel=1e-9), name


def test_laws_without_a_clock_have_the_margins_that_they_had() -> None:
    """At the flows' rates; of one link that answers by a mark alone they are those at the mark."""
    law = fc.Source("Told", {x: k * (1 - pi * x / x0)}, {"rate": x}, {k: 2e7, x0: 1e5},
                    units={x: "bit/s", k: "bit/s^2", x0: "bit/s"}, initial={x: 1e6})  # fmt: skip
    net = fc.dumbbell([law] * 2, {"law": fc.PI, "capacity": "4 Mbit/s"}, rtt="20 ms")
    report, marks = fc.stability(net), fc.linearize(net, "marks").margins()
    assert report.broken_at == "flows"
    for name in ("gain", "phase", "delay", "modulus"):
        assert getattr(report.margins, name) == pytest.approx(getattr(marks, name), rel=1e-6)


@pytest.mark.parametrize("law", [fc.PI2Drop, fc.PIEDrop], ids=lambda law: law.name)
def test_early_drops_are_closed_around_the_queue_and_open_where_flows_hear(law: fc.Link) -> None:
    link = {"law": law, "capacity": "10 Mbit/s", "buffer": "1 s"}
    report = fc.stability(fc.dumbbell([fc.Reno] * 4, link, rtt="50 ms"))
    assert report.equilibrium.queueing_delay[0] == pytest.approx(0.015, rel=1e-9)
    assert (report.open.inputs, report.open_unstable) == (("bottleneck.loss",), 0)
    roots = report.closed.roots(count=4)
    np.testing.assert_allclose(report.open.feedback().roots(count=4), roots, atol=1e-7)
