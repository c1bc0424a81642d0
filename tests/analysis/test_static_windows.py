"""W/RTT over queues that mark: how far it misjudges TCP, and that this is said."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from sympy import symbols

import fluidcc as fc
from fluidcc.sources import reno

FLOWS, PACKETS, TRIP, PACKET = 60, 3750.0, 0.246, 8000.0  # packets/s, s, bit
WINDOW = TRIP * PACKETS / FLOWS
MARKS = 2 / WINDOW**2
(q,) = fc.DropTail.states
gain = symbols("gain", positive=True)  # of the queueing delay [1/s]
PROPORTIONAL = replace(
    fc.DropTail, name="Proportional", out={**fc.DropTail.out, "mark": gain * q}, params={gain: 1.0},
    units={**fc.DropTail.units, gain: "1/s"}, claims={},
)  # fmt: skip


def marked(law: fc.Source, per_packet: float, link: fc.Link = PROPORTIONAL) -> fc.Network:
    """Flows at rest with that round trip, whatever the queue."""
    away = TRIP - MARKS / per_packet / PACKETS
    law_of_link = link(gain=per_packet * PACKETS) if link is PROPORTIONAL else link
    net = fc.Network().link("l", law_of_link, capacity=PACKETS * PACKET, delay=away / 4)
    for i in range(FLOWS):
        net.flow(f"f{i}", law, route=["l"], return_delay=0.75 * away, packet=PACKET)
    return net


def _misra(per_packet: float) -> fc.DelayLTI:
    """W' = 1/R - W W(t-R) p(t-R)/(2 R(t-R)), q' = N W/R - C, R = T + q/C, p = k q, by hand."""
    R, k = TRIP, per_packet
    decay, queue, marks = MARKS * WINDOW / (2 * R), 1 / (PACKETS * R**2), WINDOW**2 / (2 * R)
    now = [[-decay, -queue], [FLOWS / R, -FLOWS * WINDOW / (PACKETS * R**2)]]
    then = [[-decay, MARKS * WINDOW**2 / (2 * R**2 * PACKETS) - marks * k], [0.0, 0.0]]
    return fc.DelayLTI.retarded(np.array(now), (np.array(then), R))


def _clocked(omega: Any) -> Any:
    """What is in flight is the window, so that q = N W - C T: k of a root of the loop at j omega.

    W' = 1/R - W (C/N) p(t-R)/2: marks come with acknowledgements, at the rate of the queue.
    """
    s = 1j * np.asarray(omega)
    own = s + MARKS * PACKETS / (2 * FLOWS) + FLOWS / (PACKETS * TRIP**2)
    return -own * np.exp(s * TRIP) / (WINDOW * PACKETS / 2)


def _critical(unstable: Any) -> float:
    low, high = 3e-5, 5e-4
    for _ in range(30):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if unstable(middle) else (middle, high)
    return low


def test_the_critical_gains_are_as_the_report_says() -> None:
    static = _critical(lambda k: fc.stability(marked(fc.StaticReno, k)).unstable)
    misra = _critical(lambda k: _misra(k).count_unstable().unstable)
    omega = brentq(lambda w: _clocked(w).imag, 4.0, 10.0)
    found = static, misra, float(_clocked(omega).real)
    (said,) = fc.stability(marked(fc.StaticReno, 5e-5)).warnings
    for text in (said, str(fc.stability.__doc__), str(reno.__doc__)):
        figures = re.findall(r"\d\.\d+e-\d", text)
        assert len(figures) == 3
        for figure, value in zip(figures, found, strict=True):
            digits = len(figure.partition("e")[0]) - 2
            assert float(figure) == float(f"{value:.{digits}e}")


@pytest.mark.parametrize("law", [fc.StaticReno, fc.BinomialFluid, fc.StaticReno(a=2.0)])
def test_static_windows_over_queues_that_mark_are_doubtful(law: fc.Source) -> None:
    report = fc.stability(marked(law, 5e-5))
    (said,) = report.warnings
    assert said.startswith(f"flow 'f0' ({law.name}) sends its window over the round trip that it")
    assert said in repr(report)
    assert "clocked by acknowledgements" in report._repr_html_()
    assert "it misjudges TCP over queues that mark" in fc.StaticReno.ref


def test_nothing_is_said_of_other_laws_nor_of_other_links() -> None:
    marks = {"law": fc.RED, "capacity": 3e6, "delay": 0.02}
    large = {"capacity": 30e6, "delay": 0.05, "buffer": 3e5}
    for law, link in ((fc.LDCC, marks), (fc.Kelly, marks), (fc.StaticReno, large)):
        assert not fc.stability(fc.dumbbell([law], link)).warnings
