"""The loops of the literature give the numbers that their papers print, and the exact ones differ as they should."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from fluidcc.analysis.published import PublishedLoop, published, tcp_plant, tcp_red
from fluidcc.errors import UnknownName


def test_hollot_misra_towsley_gong() -> None:
    red, pi = published["tcp_red"], published["tcp_pi"]
    for name, printed in {"window": 15, "mark": 0.008, "window pole": 0.53, "queue pole": 4.1}.items():
        assert red.facts[name] == printed
        assert red.computed[name] == pytest.approx(printed, rel=0.06)
    assert pi.computed["phase margin"] == pytest.approx(75, abs=0.5)
    as_printed, exact = pi.margins()
    assert as_printed.phase == pytest.approx(pi.computed["phase margin"])
    assert 0.1 < abs(exact.phase - as_printed.phase) < 1  # the simplification costs a third of a degree


def test_the_published_plant_is_the_printed_transfer_function() -> None:
    printed, exact, _ = tcp_plant(60, 3750, 0.246)
    s = 1j * np.array([0.05, 0.5, 5.0])
    R, N, C = 0.246, 60, 3750
    wanted = C**2 / (2 * N) * np.exp(-s * R) / ((s + 2 * N / (R**2 * C)) * (s + 1 / R))
    np.testing.assert_allclose(printed(s)[0, 0], wanted, rtol=1e-12)
    # The whole linearisation, Misra's equations by hand: dW' = -N/(R^2 C)(dW + dW_R) - (dq - dq_R)/(R^2 C) - ... dp_R.
    lag = np.exp(-s * R)
    own = s + N / (R**2 * C) * (1 + lag)
    queue = (1 - lag) / (R**2 * C)
    # dq (s + 1/R) = (N/R) dW.
    loop = R * C**2 / (2 * N**2) * lag / (own + queue * (N / R) / (s + 1 / R)) * (N / R) / (s + 1 / R)
    np.testing.assert_allclose(exact(s)[0, 0], loop, rtol=1e-9)


def _unstable(flows: float, capacity: float, rtt: float) -> int:
    return sum(loop.feedback().count_unstable().unstable > 0 for loop in tcp_red(flows, capacity, rtt))


def test_tcp_and_red_lose_stability_with_delay_and_with_capacity() -> None:
    assert _unstable(60, 3750, 0.3) == 0
    assert _unstable(60, 3750, 1.2) == 2
    assert _unstable(60, 12000, 0.3) == 2
    assert _unstable(10, 3750, 0.3) == 2  # and with few flows


def test_conditions_of_half_pi_are_exact() -> None:
    for name in ("johari_tan", "paganini"):
        loop = published[name]
        (printed,), (found,) = loop.facts.values(), loop.computed.values()
        assert printed == math.pi / 2
        assert found == pytest.approx(math.pi / 2, rel=1e-9)
        omega = np.geomspace(0.1, 100, 7)
        np.testing.assert_allclose(
            loop.published.frequency_response(omega), loop.exact.frequency_response(omega), rtol=1e-6
        )


def test_scalable_tcp_is_stable_beyond_its_bound() -> None:
    loop = published["scalable_tcp"]
    (found,) = loop.computed.values()
    assert found > math.pi / 2 > 1
    # At the boundary s R = -a (1 - p) - u e^{-sR} with u = a B times the gain: theta = u sin theta, u cos theta < 0.
    growth, B = 0.05, 4.0
    own = growth * (1 - _loss_at_rest(growth, 0.125, B))
    angle = brentq(lambda v: v * math.cos(v) + own * math.sin(v), math.pi / 2, math.pi)
    assert found == pytest.approx(angle / math.sin(angle), rel=1e-8)


def _loss_at_rest(growth: float, cut: float, sharpness: float) -> float:
    def gap(p: float) -> float:
        return growth * (1 - p) - cut * p * (1e6 * p ** (1 / sharpness)) * 0.1 / 8000

    return float(brentq(gap, 1e-9, 1, xtol=1e-15))


def test_the_zoo_is_a_mapping_with_sources() -> None:
    assert set(published) == {"tcp_red", "tcp_pi", "low_paganini", "johari_tan", "paganini", "scalable_tcp"}
    assert len(published) == 6
    for name in published:
        loop = published[name]
        assert isinstance(loop, PublishedLoop)
        assert loop.ref
        assert "exact" in loop._repr_html_()
    with pytest.raises(UnknownName, match="no published loop 'tcp_p1'.*tcp_pi"):
        published["tcp_p1"]
