"""Westwood+, Illinois, Compound, LEDBAT++: rest by algebra, margins by transfer functions."""

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from tests.sources.test_clock import PACKET

N, C, D, Q = 4, 10_000.0, 0.1, 0.05  # flows, packets/s, round trip and wanted queue [s]


def westwood(w: float, p: float) -> Any:
    """A cut takes x q: increase, part given up, its derivative by w; nothing by the queue."""
    part = Q / (D + Q)
    return 1.0, part, (1 - part) / w, 0.0, 0.0


def illinois(w: float, p: float) -> Any:
    """kappa_1/(kappa_2 + d_a), and kappa_3 + kappa_4 d_a, of the paper, with d_m = 0.1 s."""
    k1 = 0.099 * 0.3 * 10 / 9.7
    k2 = 0.099 * 0.3 / 9.7 - 0.001
    k4 = (0.5 - 0.125) / 0.07
    return k1 / (k2 + Q), 0.125 + k4 * (Q - 0.01), 0.0, -k1 / (k2 + Q) ** 2, k4


def compound(w: float, p: float) -> Any:
    return w**0.75 / 8, 0.5, 0.0, 0.0, 0.0


@pytest.mark.parametrize(
    ("law", "by_hand"),
    [(fc.Westwood, westwood), (fc.Illinois, illinois), (fc.Compound(gamma=1000), compound)],
    ids=["Westwood", "Illinois", "Compound"],
)
def test_rest_and_margins_are_those_by_hand(law: fc.Source, by_hand: Any) -> None:
    """w' = x ((1 - p) a/w - b (1 - (1 - p)^w)): x = C/N acknowledgements, q = N w/C - D."""
    link = {"law": fc.PI(a=0.014, b=0.0072), "capacity": C * PACKET, "buffer": "1 s"}
    report = fc.stability(fc.dumbbell([law] * N, link, rtt=D))
    w, p, x, R = C / N * (D + Q), float(report.equilibrium.mark[0]), C / N, D + Q
    assert float(report.equilibrium.states["flow1"]["w"]) == pytest.approx(w, rel=1e-9)
    a, b, b_by_w, a_by_q, b_by_q = by_hand(w, p)
    hit = 1 - (1 - p) ** w  # at least one of w packets
    assert (1 - p) * a / w == pytest.approx(b * hit, rel=1e-6)
    a_by_w = 0.75 * a / w if by_hand is compound else 0.0
    rarer = -((1 - p) ** w) * np.log(1 - p)
    pole = x * ((1 - p) * (a / w**2 - a_by_w / w) + b_by_w * hit + b * rarer)
    gain = x * (a / w + b * w * (1 - p) ** (w - 1)) * N / C
    window = fc.DelayLTI.transfer([gain], [1, pole], R)  # from marks to minus the queue [s]
    if a_by_q:  # and by the queue's average, a round trip long
        slope = -x * ((1 - p) * a_by_q / w - b_by_q * hit) * N / C
        window = window.feedback(fc.DelayLTI.transfer([slope / gain], [R, 1]))
    found = (window * fc.DelayLTI.transfer([0.014, 0.0072], [1, 0])).margins()
    assert report.gain_margin == pytest.approx(found.gain, rel=0.01)
    assert report.phase_margin == pytest.approx(found.phase, rel=0.02, abs=0.1)
    assert report.delay_margin == pytest.approx(found.delay, rel=0.02)


def test_compound_is_reno_where_its_packets_wait_or_its_window_is_small() -> None:
    """Above gamma dwnd shrinks to nothing; below alpha w^k = 1, 16 packets, it does not grow."""
    for rate, trip, queue in ((40e6, 0.05, 0.05), (4e6, 0.02, 0.002)):
        link = {"law": fc.PI(q_ref=queue), "capacity": rate, "buffer": "1 s"}
        found = [
            fc.equilibrium(fc.dumbbell([f] * 2, link, rtt=trip)) for f in (fc.Compound, fc.Reno)
        ]
        own = found[0].states["flow1"]
        assert own["cwnd"] == pytest.approx(own["w"], rel=1e-9)
        assert float(found[0].mark[0]) == pytest.approx(float(found[1].mark[0]), rel=1e-9)


def test_westwood_empties_the_queue_and_keeps_the_link_busy() -> None:
    """Over a full buffer of a fifth of the path; Reno's automaton leaves a part idle."""
    link = {"capacity": "10 Mbit/s", "buffer": "10 ms"}
    used = [
        float(fc.simulate(fc.dumbbell([law], link, rtt="50 ms"), "60 s").sel(time=slice(30, None))
              .utilisation.mean())
        for law in (fc.Westwood, fc.AIMD)
    ]  # fmt: skip
    assert used[0] > 0.98 > used[1]


@pytest.mark.parametrize(("base", "part"), [(0.001, 16), (0.02, 6), (0.04, 3), (0.05, 3), (0.2, 1)])
def test_ledbatpp_rests_above_its_target_by_its_gain(base: float, part: int) -> None:
    """G = 1/min(16, ceil(120 ms/base)), and G = w (q/target - 1) at rest."""
    rest = fc.equilibrium(fc.dumbbell([fc.LEDBATpp] * 2, {"capacity": "20 Mbit/s"}, rtt=base))
    w, q = rest.states["flow1"]["w"], rest.queueing_delay.item()
    assert w * (q / 0.06 - 1) == pytest.approx(1 / part, rel=1e-6)


def test_ledbatpp_is_stable_while_a_round_trip_takes_less_than_pi_half_targets() -> None:
    """w' = -(w/RTT)(q/target - 1) with q = N w/C - base: s + e^(-s RTT)/target, as w grows."""
    net = fc.dumbbell([fc.LEDBATpp] * 2, {"capacity": "20 Gbit/s"}, rtt="40 ms")
    found: Any = fc.stability_boundary(net, "target")
    assert found.value == pytest.approx(0.04 / (np.pi / 2 - 1), rel=1e-4)
    assert found.frequency == pytest.approx(1 / found.value, rel=1e-3)
