"""TIMELY and its patch against recursions typed by hand: of all that is sent, and linear."""

from typing import Any

import numpy as np
import pytest
from numpy.polynomial import polynomial as P

import fluidcc as fc

C, DELTA, ALPHA, LOW, HIGH, D_MIN, SEG, TRIP = 1e10, 1e7, 0.875, 50e-6, 500e-6, 2e-5, 128e3, 1e-4


def over(law: Any, n: int, **more: Any) -> Any:
    return fc.dumbbell([law] * n, {"capacity": C, **more}, rtt=TRIP)


def by_hand(patched: bool, n: int, until: float) -> Any:
    """Rates from tick to tick, of flows that tick together: the queue is made of straight lines."""
    t, rate, g, before, beta = 0.0, 1e9, 0.0, 0.0, 0.008 if patched else 0.8
    sent, queue, ticks = [0.0], [0.0], []  # when it was sent that found this delay
    while t < until:
        t += max(SEG / rate, D_MIN)
        steep = n * rate / C - 1
        end = queue[-1] + steep * (t - sent[-1])
        if end < 0:
            sent, queue = [*sent, sent[-1] - queue[-1] / steep], [*queue, 0.0]
        sent, queue = [*sent, t], [*queue, max(end, 0.0)]
        ticks.append((t, rate))
        q = np.interp(t - TRIP, np.add(sent, queue), queue)
        g, before = (1 - ALPHA) * g + ALPHA * (q - before) / D_MIN, q
        w = min(max(2 * g + 0.5, 0), 1)
        if q < LOW or (not patched and q <= HIGH and g <= 0):
            new = rate + DELTA
        elif q > HIGH:
            new = rate * (1 - beta * (1 - HIGH / q))
        else:
            cut = w * (q - LOW) / LOW if patched else g
            new = DELTA * (1 - w) * patched + rate * (1 - beta * cut)
        rate = max(new, rate / 2, DELTA)
    return np.array(ticks).T


@pytest.mark.parametrize("n", [2, 12])
@pytest.mark.parametrize("law", [fc.TIMELY, fc.PatchedTIMELY], ids=lambda law: law.name)
def test_a_run_sends_what_the_algorithm_does(law: Any, n: int) -> None:
    ends, rates = by_hand(law is fc.PatchedTIMELY, n, 0.02)
    middles = ends - np.diff(ends, prepend=0) / 2
    run = fc.simulate(over(law, n), 0.03, rtol=1e-9, t_eval=middles)
    np.testing.assert_allclose(run.rate.values[:, -1], rates, rtol=1e-5)


def multipliers(n: int, slope: float) -> Any:
    """Of the rate at rest, where n R = C: what is heard at a tick is TRIP + q old, which is m - 1
    periods and the part f of one.
    """
    q, beta = LOW * (1 + n * DELTA / (0.008 * C)), 0.008
    period = max(SEG * n / C, D_MIN)
    m = int((TRIP + q) / period) + 1
    f = (TRIP + q) / period - (m - 1)
    heard = np.append(np.zeros(m), np.array([1 - f, f]) * n * period / C)  # its change, by z^-1
    rate, g, whole = [1, beta * (q / LOW - 1) / 2 - 1], [1, ALPHA - 1], [1, -1]
    by_g = 2 * DELTA * slope * ALPHA / D_MIN * P.polymul(heard, whole)
    by_q = C / n * beta / (2 * LOW) * P.polymul(heard, g)
    return 1 / P.polyroots(P.polyadd(P.polymul(P.polymul(rate, g), whole), P.polyadd(by_g, by_q)))


@pytest.mark.parametrize(("slope", "n", "stable"), [
    (2, 2, False), (2, 3, True), (2, 19, True), (2, 20, False), (0.5, 4, False), (0.5, 5, True),
])  # fmt: skip
def test_the_patch_is_stable_for_as_many_flows_as_its_recursion_says(
    slope: float, n: int, stable: bool
) -> None:
    every = multipliers(n, slope)
    wanted = every[np.argmax(abs(every))]
    law = fc.PatchedTIMELY(slope=slope)
    q = fc.equilibrium(over(law, n)).queueing_delay.item()
    assert q == pytest.approx(LOW * (1 + n * DELTA / (0.008 * C)), rel=1e-9)
    net = over(law, n, initial={"q": q})
    for name in net.flow_names:
        net = net.with_flow(name, initial={"R": C / n * (1 + 1e-4), "q": q})
    period = max(SEG * n / C, D_MIN)
    run = fc.simulate(net, 100 * period, rtol=1e-9, t_eval=(np.arange(50, 100) + 0.5) * period)
    x = run.rate.values[:, 0] * n / C - 1
    by, of = np.stack([x[1:-1], x[:-2]], axis=1), x[2:]
    found = np.roots([1, *-np.linalg.lstsq(by, of, rcond=None)[0]])[0]
    assert complex(found.real, abs(found.imag)) == pytest.approx(
        complex(wanted.real, abs(wanted.imag)), rel=2e-3
    )
    assert (abs(wanted) < 1) == stable


def test_beyond_its_upper_threshold_the_patch_does_not_rest() -> None:
    """Two would rest at 62.5 us; above T_high each shrinks by the delay alone."""
    with pytest.raises(fc.errors.NoEquilibrium, match="switch where its queueing delay is 6e-05 s"):
        fc.equilibrium(over(fc.PatchedTIMELY(T_high=60e-6), 2))
