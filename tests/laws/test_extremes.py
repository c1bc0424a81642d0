"""Windowed extremes in laws: against those of the samples of a run, block by block."""

from typing import Any

import numpy as np
import pytest
from sympy import Eq, Heaviside, Piecewise, symbols

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, LawError, Unsupported
from fluidcc.sources.windows import acked, w
from fluidcc.symbols import RTT, c, packet, positive, t, x_tau, y

x, z, u, W, most = positive("x z u W most")
TRIP = 0.1


def constant(*extremes: Any) -> fc.Source:
    """A source of 2 Mbit/s that keeps extremes, and does nothing with them."""
    kept = [positive(f"z_{k}") for k in range(len(extremes))]
    return fc.Source(
        "Keeper", {x: 0, **dict(zip(kept, extremes, strict=True))}, {"rate": x},
        initial={x: 2e6, **dict.fromkeys(kept, 1)}, params={most: 1.5},
        units={x: "bit/s", most: "s", **dict.fromkeys(kept, "s^2")},
    )  # fmt: skip


def visited(law: fc.Source) -> fc.Network:
    """A flow of `law`, and others that come and go and fill the queue."""
    net = fc.Network().link("l", fc.DropTail, capacity="10 Mbit/s", delay=TRIP / 2)
    net.flow("f", law, route=["l"], packet=8000)
    for k, (start, rate) in enumerate([(1, 10e6), (4, 9e6), (8, 12e6), (11, 9.5e6)]):
        net.flow(f"other{k}", fc.CBR(rate=rate), route=["l"], start=start, stop=start + 0.9)
    return net


def kept(run: Any, law: str, name: str, blocks: int, pick: Any, now: np.ndarray) -> Any:
    names = [name, *(f"{name}_{k}" for k in range(1, blocks))]
    return pick.reduce([now, *(run[f"{law}_{z}"].values for z in names)])


def sampled(t: np.ndarray, values: np.ndarray, block: float, blocks: int, pick: Any) -> Any:
    """The extreme of the samples of the present block and those before."""
    since = (np.floor(t / block + 1e-9) - blocks + 1) * block
    return [
        pick.reduce(values[(t >= s - 1e-9) & (t <= now)]) for s, now in zip(since, t, strict=True)
    ]


@pytest.mark.parametrize(("blocks", "over"), [(4, 2.0), (3, most)])
def test_extremes_of_round_trips_are_those_of_the_last_seconds(blocks: int, over: Any) -> None:
    law = constant(
        fc.lowest(RTT, over, blocks, name="A"),
        fc.highest(RTT, over, blocks, name="B"),
        fc.highest(RTT - most, over, blocks, name="C"),  # which may be below 0, and is
    )
    run = fc.simulate(visited(law), 14, samples=14_001, rtol=1e-9).sel(flow="f")
    t, trip, block = run.time.values, run.rtt.values, (2.0 if blocks == 4 else 1.5) / blocks
    assert np.ptp(trip) > 0.05
    for name, pick, of in (
        ("A", np.minimum, trip), ("B", np.maximum, trip), ("C", np.maximum, trip - 1.5),
    ):  # fmt: skip
        found = kept(run, "Keeper", name, blocks, pick, of)
        some = slice(100, None, 37)  # off the ends of blocks, whose samples count for both
        wanted = np.array(sampled(t, of, block, blocks, pick))
        # Between samples a round trip of slope 0.4 is up to 4e-4 s beyond them.
        np.testing.assert_allclose(found[some], wanted[some], atol=2e-4)
        assert np.abs(found - wanted)[some].mean() < 2e-6


def test_what_jumps_away_is_kept_in_round_trips() -> None:
    """A sawtooth of 20 packets a second, from 20 to 40, over round trips that stand still."""
    law = fc.Source(
        "Saw", {W: 20, x: fc.highest(W, over=fc.rounds(6), blocks=3, name="B") / RTT},
        {"rate": W * packet / RTT}, initial={W: 23, x: 1}, units={W: "1", x: "1"},
        jumps=(fc.Jump(when=W - 40, reset={W: W / 2}),),
    )  # fmt: skip
    net = fc.Network().link("l", fc.DropTail, capacity="10 Mbit/s", delay=TRIP / 2)
    net.flow("f", law, route=["l"], packet=8000, return_delay=TRIP / 2)
    run = fc.simulate(net, 6, samples=6_001, rtol=1e-9).sel(flow="f")
    t, window = run.time.values, run.Saw_W.values
    found = kept(run, "Saw", "B", 3, np.maximum, window)
    wanted = np.array(sampled(t, window, 2 * TRIP, 3, np.maximum))
    some = slice(7, None, 26)  # off the ends of blocks
    np.testing.assert_allclose(found[some], wanted[some], atol=0.025)  # 20 packets a second
    assert np.ptp(wanted[1000:]) > 1


def test_of_two_jumps_in_a_block_the_first_is_kept_where_it_was_from_higher() -> None:
    """From 40 to 20 and, half a second later, from 30 to 15."""
    law = fc.Source(
        "Saw", {W: 20, most: 0, x: fc.highest(W, over=40, name="B") / RTT},
        {"rate": W * packet / RTT}, initial={W: 23, most: 40, x: 1},
        units=dict.fromkeys((W, most, x), "1"),
        jumps=(fc.Jump(when=W - most, reset={W: W / 2, most: most - 10}),),
    )  # fmt: skip
    run = fc.simulate(fc.dumbbell([law], {"capacity": "10 Mbit/s"}, rtt=TRIP), 1.5)
    assert [len(run.jump_time), run.Saw_B[-1, 0]] == pytest.approx([2, 40])


def test_samples_overlook_what_is_between_them() -> None:
    law = constant(fc.highest(RTT, 2.0, every=0.25, name="A"), fc.highest(RTT, 2.0, every=0.5))
    run = fc.simulate(visited(law), 14, samples=14_001, rtol=1e-9).sel(flow="f")
    t, trip = run.time.values, run.rtt.values
    for every, name in ((0.25, "A"), (0.5, "highest")):
        found = kept(run, "Keeper", name, 4, np.maximum, trip)
        at = np.abs(t / every - np.round(t / every)) < 1e-6
        at[0] = False  # the first is taken a period after the start
        for i in range(100, len(t), 97):
            since = max((np.floor(t[i] / 0.5 + 1e-9) - 3) * 0.5, 0.0)
            wanted = max(trip[at & (t >= since - 1e-9) & (t <= t[i])].max(initial=0), trip[i])
            assert found[i] == pytest.approx(wanted, abs=1e-6)


def test_samples_at_a_tick_of_the_law_are_of_what_was_before_it() -> None:
    """What came in each second, which the tick that reads it sets to 0."""
    n, B = symbols("n B", nonnegative=True)
    law = fc.Source(
        "Counter", {n: x_tau / packet, B: 0}, {"rate": 10 * packet / most}, params={most: 1},
        initial={n: 0, B: 0}, units={n: "1", B: "1", most: "s"},
        ticks=(fc.Tick(1, {B: fc.highest(n, over=3, blocks=3, every=1), n: 0}),),
    )  # fmt: skip
    assert len(law.ticks) == 1
    run = fc.simulate(fc.dumbbell([law], {"capacity": "1 Mbit/s"}, rtt="100 ms"), 5.5, samples=56)
    assert float(run.Counter_B[-1, 0]) == pytest.approx(10 * 12000 / 12000, rel=1e-6)


def test_a_link_keeps_the_extremes_of_its_queue() -> None:
    (q,) = fc.DropTail.states
    peak = fc.highest(q, over=1.0, name="peak")
    law = fc.laws.extended(
        fc.DropTail, "Peaky", out={"mark": Heaviside(peak - most, 0)}, params={most: 0.5},
        units={most: "s"},
    )  # fmt: skip
    net = fc.Network().link("l", law, capacity="10 Mbit/s", delay=0.01, buffer="100 Mbit")
    net.flow("f", fc.CBR, route=["l"], pattern=[(0, 5e6), (1, 20e6), (1.6, 1e6)])
    run = fc.simulate(net, 5, samples=5_001, rtol=1e-9)
    t, queue = run.time.values, run.queueing_delay.values[:, 0]
    found = kept(run.isel(link=0), "Peaky", "peak", 4, np.maximum, queue)
    wanted = np.array(sampled(t, queue, 0.25, 4, np.maximum))
    np.testing.assert_allclose(found[3::7], wanted[3::7], atol=1e-3)
    marked = t[run.link_mark.values[:, 0] > 0.5]
    assert marked[0] == pytest.approx(1.5, abs=2e-3)  # it is 0.5 s then, 0.6 s at 1.6 s
    assert marked[-1] == pytest.approx(2.5, abs=2e-3)  # the block of 1.5 to 1.75 s is over


@pytest.mark.parametrize("of", [z + u, z * u])
def test_a_bound_that_holds_a_part_of_it_does_not_hide_where_it_turns(of: Any) -> None:
    """z falls at 1 a second to 0.2 and stays there; u falls at 0.25 till 1.3 s, and rises then."""
    rate = Piecewise((-1, t / most < 1.3), (1, True)) / (4 * most)
    law = fc.Source(
        "Held", {x: 0, z: -1 / most, u: rate, W: fc.lowest(of, 4 * most, 2, name="A") / most},
        {"rate": x}, lower={z: 0.2}, initial={x: 1e6, z: 1, u: 3, W: 1}, params={most: 1},
        units={x: "bit/s", z: "1", u: "1", W: "1", most: "s"},
    )  # fmt: skip
    run = fc.simulate(fc.dumbbell([law], {"capacity": "2 Mbit/s"}, rtt="1 s"), 3, samples=3_001)
    parts = run.Held_z.values[:, 0], run.Held_u.values[:, 0]
    value = sum(parts) if of == z + u else parts[0] * parts[1]
    found = kept(run.isel(flow=0), "Held", "A", 2, np.minimum, value)
    wanted = np.array(sampled(run.time.values, value, 2.0, 2, np.minimum))
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    assert wanted[-1] < value[-1] - 0.05


def test_it_is_a_law_like_others() -> None:
    least = fc.Let(r"\mathrm{RTT}_{\min}", fc.lowest(RTT, over=10))
    law = fc.window("Shy", acked / w * (1 - (RTT - least) / most), params={most: 0.005},
                    units={most: "s"})  # fmt: skip
    assert r"\mathrm{RTT}_{\min}" in law.latex
    assert "lowest_3  1e+30  s         least RTT of the block 3 back" in str(law.__doc__)
    with pytest.raises(Unsupported, match="Shy.*has jumps, so it cycles"):
        fc.equilibrium(fc.dumbbell([law], {"capacity": "10 Mbit/s"}, rtt="50 ms"))


def make(of: Any, over: Any, **more: Any) -> fc.Source:
    return fc.Source(
        "Bad", {x: fc.lowest(of, over, **more) / RTT**2}, {"rate": x}, params={most: 1},
        units={x: "bit/s", most: "bit/s"}, initial={x: 1},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ((RTT, 0), LawError, r"over of lowest is 0; give seconds, a parameter, or fluidcc.rounds"),
        ((RTT, -1.5), LawError, "over of lowest is -1.5; give seconds"),
        ((RTT, "10 s"), LawError, "over of lowest is '10 s'; give seconds"),
        ((RTT, float("inf")), LawError, "over of lowest is inf; give seconds"),
        ((RTT, most), LawError, r"Bad: over of lowest is most \[bit/s\]; give seconds"),
        ((RTT, W), LawError, "Bad: over of lowest has W, which source laws have only as"),
        (("RTT", 1), LawError, "what lowest is of is 'RTT'; give an expression"),
        ((RTT + x, 1), LawError, "Bad: what lowest is of mixes units: it adds"),
        ((x_tau, 1), LawError, "x_tau can change at once; sample it, as in lowest.*every=RTT"),
        ((RTT * Heaviside(x - most), 1), LawError, "which has steps; sample it"),
    ],
)
def test_bad_extremes_are_refused(given: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make(*given)


def test_bad_options_are_refused() -> None:
    with pytest.raises(LawError, match="n of rounds is 0; give a positive number"):
        fc.rounds(0)
    with pytest.raises(InvalidInput, match="blocks of lowest is 1; give a whole number from 2 to"):
        make(RTT, 1, blocks=1)
    with pytest.raises(LawError, match="every of lowest is -1; give seconds"):
        make(RTT, 1, every=-1)
    with pytest.raises(LawError, match="Bad: lowest is called 'x', as a state, parameter or sig"):
        make(RTT, 1, name="x")
    with pytest.raises(LawError, match="the name of lowest is 'a b'; give that of a state"):
        make(RTT, 1, name="a b")
    with pytest.raises(
        LawError, match="Bad: lowest cannot stand where x is told; in flow, outputs"
    ):
        fc.Source("Bad", {x: 0}, {"rate": x}, initial={x: fc.lowest(x, 1)}, units={x: "bit/s"})
    for claim in (Eq(x, fc.lowest(x, 1)), fc.Steady(fc.lowest(x, 1) - x)):
        with pytest.raises(LawError, match="lowest cannot stand where it rests is told"):
            fc.Source("Bad", {x: 0}, {"rate": x}, initial={x: 1}, units={x: "bit/s"},
                      claims={"it rests": claim})  # fmt: skip
    with pytest.raises(LawError, match="L: over of highest has e, e_b, which link laws"):
        fc.laws.extended(fc.DropTail, "L", out={"mark": fc.highest(y / c, fc.rounds(2), every=1)})
