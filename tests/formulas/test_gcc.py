"""GCC's limit cycle in closed form: proved in parts, and equal to the simulation of the law."""

import math

import pytest
from scipy.integrate import quad

import fluidcc as fc
from fluidcc.formulas import gcc

DELAY = 0.025
G = math.log(1.08)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("g", "gamma", "alpha", "z", "delay"),
    [
        (G, 0.05, 0.85, 1.0, DELAY),
        (0.3, 0.02, 0.7, 1.0, 0.1),
        (G, 0.05, 0.85, 0.6, DELAY),
        (0.15, 0.1, 0.5, 0.3, 0.01),
    ],
)
def test_it_is_the_limit_cycle_of_the_law(
    g: float, gamma: float, alpha: float, z: float, delay: float
) -> None:
    capacity = 2e6
    net = fc.Network().link("l", fc.DropTail, capacity=capacity, delay=delay)
    net.flow("f", fc.GCC(g=g, gamma=gamma, alpha=alpha), route=["l"])
    if z < 1:
        net.flow("udp", fc.CBR(rate=(1 - z) * capacity), route=["l"])
    found, closed = fc.limit_cycle(net), gcc.cycle(2 * delay, g, gamma, alpha, z)
    assert found.period == pytest.approx(closed.period, rel=1e-9)
    rate, queue = (
        v.isel({k: 0}) for v, k in ((found.mean.rate, "flow"), (found.mean.queueing_delay, "link"))
    )
    assert float(rate) / capacity == pytest.approx(closed.rate_mean, rel=1e-9)
    assert float(queue) == pytest.approx(closed.queue_mean, rel=1e-8)
    assert float(found.most.queueing_delay[0]) == pytest.approx(closed.queue_max, rel=1e-8)
    assert float(found.mean.utilisation[0]) == pytest.approx(closed.utilisation, rel=1e-9)
    extremes = [float(v.rate[0]) / capacity for v in (found.most, found.least)]
    assert extremes == pytest.approx([closed.rate_high, closed.rate_low], rel=1e-9)


def test_its_mean_queue_is_the_integral_of_the_queue() -> None:
    rtt, g, gamma, alpha = 0.05, G, 0.05, 0.85
    c = gcc.cycle(rtt, g, gamma, alpha)
    peak = math.log(c.rate_high) / g  # when the rate is cut
    up, _ = quad(lambda t: gcc.queue(t, g), 0, peak)
    down = c.queue_max**2 / (2 * (1 - alpha))
    assert c.queue_mean * c.period == pytest.approx(up + down, rel=1e-10)
    assert c.queue_max == pytest.approx(gcc.queue(peak, g), rel=1e-12)


def test_the_queue_is_about_a_square() -> None:
    """For slow growth z (exp(g t) - 1) is g t: the largest queue is (gamma/g + rtt)^2 g/2."""
    g = 1e-3
    c = gcc.cycle(0.05, g, 1e-3, 0.85)
    assert c.queue_max == pytest.approx((1.0 + 0.05) ** 2 * g / 2, rel=2e-3)
