"""Response functions against integrated sawtooths, and against the tables of their sources."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from fluidcc.formulas import binomial, response

P = np.array([1e-7, 1e-5, 1e-3])


def periodic(
    p: float, rtt: float, top: Callable[..., float], window: Callable[..., float]
) -> float:
    """Mean window if 1/p packets are sent in an epoch of T: `window(t, T, top)` after t seconds."""

    def packets(T: float) -> float:
        return float(quad(lambda t: window(t, T, top(T)), 0, T, epsrel=1e-11, limit=200)[0] / rtt)

    T = brentq(lambda T: packets(T) - 1 / p, 1e-6, 1e7, xtol=1e-12, rtol=1e-13)
    return packets(T) * rtt / T


@pytest.mark.parametrize("p", P)
def test_aimd_is_a_sawtooth(p: float) -> None:
    alpha, beta, rtt = 0.7, 0.3, 0.1
    grown = lambda t, T, W: (1 - beta) * W + alpha * t / rtt  # noqa: E731
    found = periodic(p, rtt, lambda T: alpha * T / rtt / beta, grown)
    assert response.aimd_window(p, alpha, beta) == pytest.approx(found, rel=1e-8)
    tcp = response.square_root_window(p)
    assert tcp == pytest.approx(response.aimd_window(p, 1, 0.5), rel=1e-14)
    friendly = response.aimd_window(p, binomial.tcp_friendly_alpha(beta), beta)
    assert friendly == pytest.approx(tcp, rel=1e-14)


@pytest.mark.parametrize("p", P)
def test_cubic_is_a_cubic(p: float) -> None:
    C, beta, rtt = 0.4, 0.7, 0.5
    grown = lambda t, T, W: C * (t - (W * (1 - beta) / C) ** (1 / 3)) ** 3 + W  # noqa: E731
    found = periodic(p, rtt, lambda T: C * T**3 / (1 - beta), grown)
    tcp = float(response.square_root_window(p))
    assert response.cubic_window(p, rtt) == pytest.approx(max(found, tcp), rel=1e-8)


@pytest.mark.parametrize("p", P)
def test_htcp_is_its_polynomial(p: float) -> None:
    beta, delta, rtt = 0.6, 1.0, 0.1

    def grown(t: float) -> float:
        late = max(t - delta, 0.0)
        return 2 * (1 - beta) / rtt * (t + 5 * late**2 + late**3 / 12)

    found = periodic(p, rtt, lambda T: grown(T) / (1 - beta), lambda t, T, W: beta * W + grown(t))
    assert response.htcp_window(p, rtt, beta) == pytest.approx(found, rel=1e-8)
    for epoch in (0.4, 1.0, 3.0, 12.0):
        at, window = response.htcp(epoch, rtt, beta)
        assert response.htcp_window(at, rtt, beta) == pytest.approx(window, rel=1e-8)


def test_htcp_is_tcp_for_short_epochs() -> None:
    p, window = response.htcp(0.5, 0.1)
    assert window == pytest.approx(response.square_root_window(p), rel=1e-13)


def test_highspeed_table() -> None:
    # RFC 3649, Table 2, rounds the exponent to -0.835 and the factor to 0.12.
    table = {1e-3: 38, 1e-4: 263, 1e-5: 1795, 1e-6: 12279, 1e-7: 83981}
    found = response.highspeed_window(np.array(list(table)))
    assert found == pytest.approx(list(table.values()), rel=0.02)
    assert response.highspeed_window(1e-7) == pytest.approx(83000)
    assert response.highspeed_window(0.01) == response.square_root_window(0.01)


def test_equations_with_timeouts() -> None:
    # RFC 5348 with b = 1 and t_RTO = 4 R
    p, rtt, packet = 0.01, 0.1, 8000.0
    f = np.sqrt(2 * p / 3) + 12 * np.sqrt(3 * p / 8) * p * (1 + 32 * p**2)
    assert response.tfrc(p, rtt, packet) == pytest.approx(packet / (rtt * f), rel=1e-14)
    # PFTK with the same timeout and b is the same rate in packets, where its minimum does not bite
    same = response.pftk(p, rtt, 4 * rtt, 1) * packet
    assert same == pytest.approx(response.tfrc(p, rtt, packet), rel=1e-14)
    # without timeouts it is the square-root law
    rare = response.pftk(1e-8, rtt, rtt, 2) * rtt
    assert rare == pytest.approx(response.square_root_window(1e-8, 2), rel=1e-6)
    assert response.pftk_limited(1e-4, rtt, 0.4, 10.0) == pytest.approx(100.0)


def test_fluids_of_tcp() -> None:
    # the drift of a window that is halved at rate p W/rtt, and grows by what is acknowledged
    W = response.square_root_fluid_sent(0.02)
    lost = 0.5 * W * 0.02 * W
    assert lost == pytest.approx(1 - 0.02)
    assert response.square_root_fluid(0.02) ** 2 * 0.02 == pytest.approx(2)


def test_binomial_window() -> None:
    p, k, l, alpha, beta = 1e-9, 0.5, 0.5, 1.0, 1e-3
    W = response.binomial_window(p, k, l, alpha, beta)
    assert binomial.cycle_data(k, l, alpha, beta, W) == pytest.approx(1 / p, rel=1e-3)
