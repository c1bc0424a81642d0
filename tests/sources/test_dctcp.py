"""DCTCP and TCP Prague against their rest points by hand, and DCTCP's relay against the formulas
of its authors.
"""

import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc

PACKET = 8000.0  # by default


@pytest.mark.parametrize("lost", [0.0, 3e-4])
def test_dctcp_rests_where_a_packet_a_round_trip_is_what_its_cuts_take(lost: float) -> None:
    """(1 - p)(1 - l)/R = (p w/2 (1 - (1 - p)^w) + w/2 (1 - (1 - l)^w))/R: alpha is the share p of
    marks alone, and a loss, of which there are l, halves the window.
    """
    link = {"law": fc.PI2(target="1 ms"), "capacity": "1 Gbit/s", "buffer": "10 ms", "loss": lost}
    rest = fc.equilibrium(fc.dumbbell([fc.DCTCP] * 4, link, rtt="200 us"))
    w, p = 1e9 / 4 / (1 - lost) * 1.2e-3 / PACKET, float(rest.mark[0])
    assert float(rest.loss[0]) == pytest.approx(lost, rel=1e-9)
    assert float(rest.states["flow1"]["w"]) == pytest.approx(w, rel=1e-9)
    assert float(rest.states["flow1"]["alpha"]) == pytest.approx(p, rel=1e-9)
    cuts = p * w * (1 - (1 - p) ** w) + w * (1 - (1 - lost) ** w)
    assert 2 * (1 - p) * (1 - lost) == pytest.approx(cuts, rel=1e-9)


@pytest.mark.parametrize("n", [2, 10])
def test_dctcp_over_a_threshold_is_a_relay_of_nearly_its_published_size(n: int) -> None:
    """Alizadeh and others, SIGCOMM 2010, Section 3.3: alpha, amplitude n (w + 1) alpha/2 and
    largest queue K + n, for windows that all saw-tooth together and are cut in one packet's time.
    The fluid's cuts take a round trip, in which the queue grows on; alpha is smooth.
    """
    rate, trip, threshold = 1e10 / PACKET, 1e-4, 40
    w = (rate * trip + threshold) / n
    link = {
        "law": fc.StepMark(K=threshold / rate),
        "capacity": "10 Gbit/s",
        "buffer": "400 packets",
    }
    cycle = fc.limit_cycle(fc.dumbbell([fc.DCTCP] * n, link, rtt=trip))
    alpha = brentq(lambda a: a**2 * (1 - a / 4) - (2 * w + 1) / (w + 1) ** 2, 0, 1)
    queue = [float(one.backlog[0]) / PACKET for one in (cycle.least, cycle.most)]
    assert queue[1] - queue[0] == pytest.approx(n * (w + 1) * alpha / 2, rel=0.13)
    assert queue[1] == pytest.approx(threshold + n, rel=0.01)
    assert float(cycle.mean.DCTCP_alpha[0]) == pytest.approx(alpha, rel=0.2)
    assert cycle.contraction < 1
    assert float(cycle.mean.utilisation[0]) == 1.0  # K > C RTT/7
    with pytest.raises(fc.base.errors.NoEquilibrium, match="rests on neither side"):
        fc.stability(fc.dumbbell([fc.DCTCP] * n, link, rtt=trip))


def test_prague_has_one_rate_at_all_round_trips_below_25_ms() -> None:
    """x p T (1 - (1 - p)^(x T))/2 = 1 - p with T = 25 ms; beyond it that of DCTCP."""
    trips = np.array([2e-3, 10e-3, 20e-3, 50e-3])
    link = {"law": fc.PI2(target="1 ms"), "capacity": "200 Mbit/s", "buffer": "100 ms"}
    rest = fc.equilibrium(fc.dumbbell([fc.Prague] * 4, link, rtt=trips))
    p, R = float(rest.mark[0]), trips + 1e-3
    for x, T in zip(rest.rate.values / PACKET, np.maximum(R, 0.025), strict=True):
        assert x * p * T / 2 * (1 - (1 - p) ** (x * T)) == pytest.approx(1 - p, rel=1e-8)
    assert rest.rate.values[:3] == pytest.approx(float(rest.rate[0]), rel=1e-9)
    over = {f"p{k}": fc.Prague for k in (1, 2)} | {f"d{k}": fc.DCTCP for k in (1, 2)}
    same = fc.equilibrium(fc.dumbbell(over, link, rtt="40 ms")).rate.values
    assert same == pytest.approx(same[0], rel=1e-9)
