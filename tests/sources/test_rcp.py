"""RCP against its return ratio by hand."""

from math import pi, sqrt

import numpy as np
import pytest

import fluidcc as fc

FAR = {"law": fc.RCP, "access_delay": "50 ms"}  # an offer is 0.1 s old when it is answered


@pytest.mark.parametrize("alpha", [0.2, 0.4, 0.54, 0.57])
def test_it_has_the_published_margin_at_any_load(alpha: float) -> None:
    """(alpha s d + beta)/(s d)^2 e^(-s d) with beta = alpha^2 sqrt 2 is stable for alpha < pi/(4
    sqrt 2), with a phase margin of pi/4 - alpha sqrt 2: Katabi, Handley and Rohrs, SIGCOMM 2002,
    Theorem 1. For a queue that is not empty the capacity is to be used a little more than whole.
    """
    law = fc.RCPLink(alpha=alpha, beta=alpha**2 * sqrt(2), gamma=1.02)
    for flows in (2, 5):
        net = fc.dumbbell([FAR] * flows, {"law": law, "capacity": "20 Mbit/s", "delay": 0})
        rest, report = fc.equilibrium(net), fc.stability(net)
        assert rest.rate.values == pytest.approx(20e6 / flows, rel=1e-9)
        assert float(rest.queueing_delay[0]) == pytest.approx(0.02 * 0.1 / (alpha * sqrt(2)))
        assert report.stable == (alpha < pi / (4 * sqrt(2)))
        if report.stable:
            margin = np.degrees(pi / 4 - alpha * sqrt(2))
            assert report.margins.phase == pytest.approx(margin, rel=1e-6)


def test_without_a_queue_it_rests_below_the_capacity() -> None:
    """alpha gamma e^(-s d)/(s d): a gain margin of pi/(2 alpha gamma)."""
    link = {"law": fc.RCPLink, "capacity": "30 Mbit/s", "delay": 0}
    net = fc.dumbbell([FAR] * 3, link)
    assert fc.equilibrium(net).rate.values == pytest.approx(9.5e6, rel=1e-9)
    assert fc.stability(net).margins.gain == pytest.approx(pi / (2 * 0.4 * 0.95), rel=1e-6)
