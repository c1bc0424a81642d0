"""TFRC: its loss intervals are a shift register, its rate the equation, and its fluid rests
where the equation says.
"""

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.formulas import response
from fluidcc.sources.tfrc import WEIGHTS
from fluidcc.symbols import e, e_b, packet, unfold
from tests.sources.networks import marking

C = 10e6
NAMES = [f"TFRC_{name}" for name in ("s0", *(f"I{m}" for m in range(1, 9)))]


def link(law: fc.Source) -> fc.Network:
    net = fc.Network().link("l", fc.DropTail, capacity=C, delay="25 ms", buffer="300 kbit")
    return net.flow("f", law, route=["l"], return_delay="25 ms")


def test_loss_events_shift_the_intervals() -> None:
    net = link(fc.TFRC(n0=100))
    run = fc.simulate(net, 200, samples=2)
    times = fc.metrics.jumps(run).time.values[:10]
    near = fc.simulate(net, 200, t_eval=np.sort(np.concatenate([times - 1e-9, times + 1e-9])))
    state = np.array([near[name].values[:, 0] for name in NAMES])
    before, after = state[:, ::2], state[:, 1::2]
    assert len(times) == 10
    assert after[0] == pytest.approx(0, abs=1e-4)
    assert after[1:] == pytest.approx(before[:-1], rel=1e-6, abs=1e-4)
    assert np.all(np.diff(times) > 0.05)  # at most one a round trip


def test_the_rate_is_the_equation_over_the_average_interval() -> None:
    run = fc.simulate(link(fc.TFRC(n0=100)), 40, samples=301)
    intervals = np.array([run[name].values[:, 0] for name in NAMES])
    weights = np.array(WEIGHTS, dtype=float)
    mean = np.maximum(weights @ intervals[1:], weights @ intervals[:-1]) / weights.sum()
    wanted = response.tfrc(1 / mean, run.rtt.values[:, 0])
    assert run.rate.values[:, 0] == pytest.approx(wanted, rel=1e-6)


def test_it_fills_the_link_with_few_losses() -> None:
    run = fc.simulate(link(fc.TFRC), 200, samples=401)
    assert float(run.utilisation.values[200:].mean()) > 0.95
    assert 0 < float(run.loss.values[200:].mean()) < 0.02


def test_the_fluid_rests_at_the_equation() -> None:
    rest = fc.equilibrium(link(fc.TFRCFluid))
    loss, rtt, rate = (float(v.item()) for v in (rest.loss, rest.rtt, rest.rate))
    assert rate == pytest.approx(response.tfrc(loss, rtt), rel=1e-6)
    assert rate * (1 - loss) == pytest.approx(C, rel=1e-6)


def test_slow_start_doubles_each_round_trip_until_one_packet_is_marked() -> None:
    """News of v0 (2^k - 1) packets has come k + 1 round trips after the start."""
    p, trip, v0, size = 0.002, 0.1, 3.0, 8000.0
    net = fc.Network().link("l", marking(p), capacity=1e9, delay=trip / 2)
    net.flow("f", fc.SlowStartTFRC(v0=v0), route=["l"], packet=size, return_delay=trip / 2, start=0)
    whole = int(np.log2(1 + 1 / (p * v0)))
    window = v0 * 2**whole  # of the round trip in which the mark was made
    end = trip * (1 + whole + (1 / p - v0 * (2**whole - 1)) / window)
    times = np.array([0.01, 1.5 * trip, 2.5 * trip, 6.5 * trip, end + 1e-6])
    run = fc.simulate(net, 60, t_eval=[*times, 60], rtol=1e-9)
    np.testing.assert_allclose(fc.metrics.jumps(run).time.values, [end], rtol=1e-8)
    rate = run.rate.values[:, 0]
    np.testing.assert_allclose(rate[:4], size * v0 / trip * np.array([1, 2, 4, 64]), rtol=1e-9)
    assert run.SlowStartTFRC_I8.values[4, 0] == pytest.approx(2 / 3 * window**2, rel=1e-4)
    assert rate[4] == pytest.approx(response.tfrc(1.5 / window**2, trip, size), rel=1e-3)
    assert rate[4] == pytest.approx(size * window / trip, rel=0.01)  # the first term is nearly all
    event = rate[5] * trip / size * p  # packets marked a round trip
    assert rate[5] == pytest.approx(response.tfrc(p / (1 + event), trip, size), rel=1e-3)


def test_no_more_is_sent_than_twice_what_is_received() -> None:
    """In slow start over a narrow link, and where the equation would allow more."""
    most, capacity = [], [(0, 20e6), (10, 0.2e6)]
    for t_mbi in (64, 1e-6):  # with a packet a microsecond there is no limit after slow start
        path = {"capacity": capacity, "delay": "25 ms", "buffer": "1 Mbit"}
        run = fc.simulate(fc.dumbbell([fc.SlowStartTFRC(t_mbi=t_mbi)], path), 20, samples=4001)
        rate, time = run.rate.values[:, 0], run.time.values
        # a round trip of doubling once the queue stands; the window alone would come to 1.7 times
        assert rate[time < 10].max() == pytest.approx(2 * 20e6, rel=1e-6)
        most.append(rate[time > 11].max())  # news of the narrow link has come
    assert most[0] <= 2 * 0.2e6 * (1 + 1e-6)
    assert most[1] > 1.5 * most[0]


def test_slow_start_fills_an_empty_link_soon() -> None:
    net = link(fc.SlowStartTFRC)
    slow = link(fc.TFRCFluid(n0=100))
    first = [
        fc.metrics.mean(fc.simulate(n, 10.0).throughput, 2.0, 10.0).item() for n in (net, slow)
    ]
    assert first[0] > 0.9 * C > 2 * first[1]


def test_weights_are_those_of_the_rfc() -> None:
    """RFC 5348, Section 5.4: 1 for the latest four intervals, then a fifth less each."""
    assert [float(w) for w in WEIGHTS] == [1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2]


@pytest.mark.parametrize("p", [1e-4, 0.01, 0.3])
def test_the_rate_is_the_throughput_equation_with_a_timeout_of_four_round_trips(p: float) -> None:
    """RFC 5348, Section 3.1, in bits of a packet of 8000."""
    now = {e: 0.06, e_b: 0.04, packet: 8000, **fc.TFRC.params}
    now |= dict.fromkeys(fc.TFRC.states, 1 / p)
    timeout = 0.4 * 3 * np.sqrt(3 * p / 8) * p * (1 + 32 * p**2)
    wanted = 8000 / (0.1 * np.sqrt(2 * p / 3) + timeout)
    assert float(unfold(fc.TFRC.out["rate"]).subs(now)) == pytest.approx(wanted, rel=1e-12)
