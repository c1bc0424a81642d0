"""Beyond the delay-driven regime: the last paragraph of Section IV-B of the LDCC paper, put to
the test.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import lambertw

import fluidcc as fc


def _full(rtt: str, buffer: str, count: int = 3) -> fc.Network:
    return fc.dumbbell([fc.LDCC] * count, {"capacity": "3 Mbit/s", "buffer": buffer}, rtt=rtt)


@pytest.mark.parametrize("rtt", ["50 ms", "200 ms"])
@pytest.mark.parametrize("buffer", ["5 packets", "15 packets"])
def test_full_buffer_in_closed_form(rtt: str, buffer: str) -> None:
    """Loss only: s + a + k (1 - pi) e^(-s RTT), with a = k w/x, from (15) and (4) with a constant
    queue.

    At s = j omega: omega RTT = arccos(-r) and eta = arccos(-r) / ((1 - pi) sqrt(1 - r^2)), r = w/(x
    (1 - pi)).
    """
    net = _full(rtt, buffer)
    report = fc.stability(net)
    x, pi, trip = (
        float(report.equilibrium.__getattribute__(name)[0]) for name in ("rate", "loss", "rtt")
    )
    k = 0.4 / trip
    s = np.array([0.3 + 0.2j, -1 + 3j, 2 - 5j])
    by_hand = s + k * 20e3 / x + k * (1 - pi) * np.exp(-s * trip)
    np.testing.assert_allclose(report.closed.characteristic(s), by_hand, rtol=1e-9)
    edge: Any = fc.stability_boundary(net, "eta")
    r = 20e3 / (x * (1 - pi))
    assert edge.value == pytest.approx(np.arccos(-r) / ((1 - pi) * np.sqrt(1 - r**2)), rel=1e-9)
    assert edge.frequency == pytest.approx(np.arccos(-r) / trip, rel=1e-9)


def test_the_delay_terms_drop_out_but_the_constant_delay_moves_the_roots() -> None:
    """The paper: 'a constant delay plays no role in the placement of eigenvalues'."""
    near, far = (fc.stability(_full(rtt, "5 packets")) for rtt in ("50 ms", "200 ms"))
    assert near.regime == far.regime == "loss-driven"
    # No queue is among the states, so that the delay-based terms are indeed gone ...
    assert near.closed.states == far.closed.states == ("flow1 (x3).x",)
    # ... and yet the loop's roots lie elsewhere, by the loop's own lag and by k = eta/RTT: s + a +
    # g e^(-s RTT) = 0 with a = k w/x and g = k (1 - pi) is solved by s = W(-g RTT e^(a RTT))/RTT -
    # a, on every branch of Lambert's W.
    places = []
    for report in (near, far):
        x, pi, trip = (
            float(getattr(report.equilibrium, name)[0]) for name in ("rate", "loss", "rtt")
        )
        lag, gain = 0.4 * 20e3 / x, 0.4 * (1 - pi)  # a RTT and g RTT
        branches = np.array([lambertw(-gain * np.exp(lag), k) for k in (0, -1, 1, -2)])
        by_hand = (branches - lag) / trip
        np.testing.assert_allclose(
            np.sort_complex(report.closed.roots(count=4)), np.sort_complex(by_hand), rtol=1e-8
        )
        places.append(by_hand * trip)
    # In units of 1/RTT they hardly differ (by the far flows' penalty, as e > T there): it is the
    # delay that moves them.
    np.testing.assert_allclose(places[0], places[1], rtol=0.02)
    assert near.equilibrium.rtt[0] < far.equilibrium.rtt[0] - 0.14


@pytest.mark.parametrize(
    "buffers", [("10 packets", None), (None, "10 packets"), ("20 packets", None)]
)
def test_mixed_regimes_of_the_parking_lot_are_stable_at_the_papers_gain(buffers: Any) -> None:
    net = fc.parking_lot([fc.LDCC], [fc.LDCC, fc.LDCC], [
        {"capacity": 2.5e6, "delay": 0.025, "buffer": buffers[0]},
        {"capacity": 2.4e6, "delay": 0.025, "buffer": buffers[1]},
    ])  # fmt: skip
    report = fc.stability(net)
    assert report.regime == "mixed"
    assert report.stable
    pure = fc.stability(net.with_link("link1", buffer=None).with_link("link2", buffer=None))
    assert report.gain_margin == pytest.approx(pure.gain_margin, rel=0.03)
