"""Single lost packets: against the theory of windows that lose packets at random, against a packet
simulator, and what must not change.
"""

import numpy as np
import pytest
from sympy import Symbol

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, LawError
from fluidcc.symbols import RTT, packet, pi

P = 2e-4


def _lossy(law: fc.Source = fc.AIMD, n: int = 10, **more: object) -> fc.Network:
    link = {"capacity": "10 Gbit/s", "buffer": "5000 packets", "loss": P, **more}
    return fc.dumbbell([law] * n, link, rtt="20 ms")


# A window that grows by 1 a round trip and halves at a loss: at every 1/p-th packet its mean is
# sqrt(3/2p), and its mean square 14/9p; where each packet is lost with the chance p they are
# 1.31/sqrt(p) (Ott, Kemperman and Mathis, 1996) and 2/p.
@pytest.mark.parametrize(
    ("losses", "n", "mean", "square", "off"),
    [
        ("packets", 1, 1.5**0.5, 14 / 9, 0.03),
        ("random", 10, 1.3098, 2, 0.06),
        ("mean", 1, 2**0.5, 2, 0.02),
    ],
)
def test_windows_at_a_constant_ratio(
    losses: str, n: int, mean: float, square: float, off: float
) -> None:
    run = fc.simulate(_lossy(n=n), 100, losses=losses, seed=1, samples=5001)
    late = run.w.sel(time=slice(20, None))
    assert float(late.mean()) * P**0.5 == pytest.approx(mean, rel=off)
    assert float((late**2).mean()) * P == pytest.approx(square, rel=2 * off)
    assert run.attrs["losses"] == losses


# ns-2: Sack1 on 20 Mbit/s and 100 ms + U(0, 10) ms, packets of 1,000 bytes, 250 of them in the
# buffer: 1.06e-3 of them are lost.
def test_flows_at_a_full_buffer_lose_what_packets_do() -> None:
    link = {"capacity": "20 Mbit/s", "buffer": "250 packets"}
    net = fc.dumbbell([fc.AIMD] * 8, link, rtt=[0.1 + 0.01 * k / 7 for k in range(8)])
    run = fc.simulate(net, 120, losses="random", seed=2, samples=12001)
    assert float(fc.metrics.loss(run, 20).mean()) == pytest.approx(1.06e-3, rel=0.2)


def test_draws_follow_the_seed_and_go_on_after_a_restart() -> None:
    net = _lossy(fc.CUBIC, 2)
    whole = fc.simulate(net, 30, losses="random", seed=3, samples=301)
    again, other = (fc.simulate(net, 30, losses="random", seed=s, samples=301) for s in (3, 4))
    assert whole.rate.equals(again.rate)
    assert not np.allclose(whole.rate, other.rate)
    assert not np.allclose(whole.rate[:, 0], whole.rate[:, 1])  # each flow has its own
    first = fc.simulate(net, 15, losses="random", seed=3, samples=151)
    then = fc.simulate(net, 30, losses="random", seed=9, samples=151, restart=first)
    np.testing.assert_allclose(then.rate[1:], whole.rate[151:], rtol=1e-4)
    with pytest.raises(InvalidInput, match="or losses= is another"):
        fc.simulate(net, 30, restart=first)
    table = fc.sweep(net, {"seed": [3, 4]}, "mean_rate", until=30, samples=301, losses="random")
    np.testing.assert_allclose(table.mean_rate, [fc.metrics.mean(r.rate) for r in (whole, other)])


def test_laws_without_such_jumps_are_told() -> None:
    with pytest.raises(InvalidInput, match="no law of the network jumps at losses"):
        fc.simulate(_lossy(fc.Reno), 1, losses="random")
    with pytest.raises(InvalidInput, match="losses is 'Random'; give 'ratio', 'mean'"):
        fc.simulate(_lossy(), 1, losses="Random")
    lost = Symbol("lost", nonnegative=True)
    with pytest.raises(LawError, match="when of a Jump is lost beside on; give one of them"):
        fc.Jump(when=lost, on=pi, reset={lost: 0})
    cut = fc.Jump(on=pi, reset={lost: lost / 2}, refractory=RTT)
    law = fc.Source(
        "Own", {lost: 1 / RTT}, {"rate": lost * packet / RTT}, lower={lost: 1},
        initial={lost: 10}, units={lost: "1"}, jumps=(cut,),
    )  # fmt: skip
    with pytest.raises(LawError, match="Own has a 'lost' of its own"):
        fc.simulate(_lossy(law, 1), 1, losses="packets")
