"""Flows without ECN over links that mark: what is marked of others is dropped of them."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, root
from sympy import sin

import fluidcc as fc
from fluidcc.base.errors import FluidccError, FluidccWarning
from fluidcc.laws import extended
from fluidcc.symbols import c, mark, nonnegative, positive, t, y

k, g = positive("k"), nonnegative("g")
SENDS = fc.Source("Sends", {}, {"rate": k * (1 + g * mark)}, params={k: 1, g: 0},
                  units={k: "bit/s", g: "1"})  # fmt: skip
WAVE = extended(fc.DropTail, "Wave", out={"mark": (3 + sin(k * t)) / 10}, params={k: 40},
                units={k: "1/s"})  # fmt: skip
RISES = extended(fc.PI, "Rises", out={"mark": y / (3 * c)})
RED = {"law": fc.RED}
CASES = [(fc.PI2, 0.015, 0), (fc.RED(T="10 ms", max_th="1 s"), 0.04, 9.6)]


def shared(link: dict[str, Any], *ecn: Any) -> fc.Network:
    flows = [{"law": fc.StaticReno, "ecn": able} for able in ecn]
    return fc.dumbbell(flows, {"capacity": "4 Mbit/s", **link}, rtt="60 ms")


def two_links(first: float, second: float, **how: Any) -> Any:
    """Constant flows of 4 and 3 Mbit/s, the second one without ECN; capacities in Mbit/s."""
    net = fc.Network().link("a", WAVE, capacity=1e6 * first, delay="10 ms")
    net.link("b", WAVE, capacity=1e6 * second, delay="10 ms")
    for rate, ecn in ((4e6, True), (3e6, False)):
        net.flow(f"{rate}", SENDS(k=rate), route=["a", "b"], return_delay=0, ecn=ecn)
    return fc.simulate(net, until=1, **how)


@pytest.mark.parametrize(("law", "least", "slope"), CASES)
def test_both_have_the_window_of_the_square_root_law(law: Any, least: Any, slope: Any) -> None:
    """W^2 m = 2 of each; 2 - m of these rates fill the link, whose queue follows from m."""
    filled = lambda w: 8000 * (2 * w - 2 / w) - 4e6 * (0.06 + least + slope * 2 / w**2)  # noqa: E731
    m = 2 / float(brentq(filled, 2, 500, xtol=1e-13)) ** 2
    net = shared({"law": law}, True, False)
    begun = fc.simulate(net, until=20, rtol=1e-8)
    last = fc.simulate(net, until=200, rtol=1e-8, restart=begun).isel(time=-1)
    for at, near in ((last, 1e-6), (fc.equilibrium(net), 1e-12)):
        assert at.rate.values == pytest.approx([4e6 / (2 - m)] * 2, rel=near)
        assert at.arrival_rate.item() == pytest.approx(8e6 / (2 - m), rel=near)
        found = [*at.loss.values, *at.mark.values, at.link_mark.item(), at.link_drop.item()]
        assert found == pytest.approx([0, m, m, 0, m, m / 2], rel=10 * near)
        assert at.queueing_delay.item() == pytest.approx(least + slope * m, rel=near)


def test_roots_and_margins_are_those_of_the_characteristic_function() -> None:
    """Both windows heard of and thinned at the queue, k being the gain of both rates; the fifth
    root is that of their difference.
    """
    net = shared({"law": fc.RED(T="10 ms", max_th="1 s"), "capacity": "1.5 Mbit/s"}, True, False)
    rest, report = fc.equilibrium(net), fc.stability(net)
    x, m, trip = rest.rate[0].item() / 8000, rest.mark[0].item(), rest.rtt[0].item()

    def left(s: complex, k: float = 1.0) -> complex:
        late, ratio, w = np.exp(-s * trip), (0.1 / 0.96) / (1 + 0.01 * s), x * trip
        own = trip * (s + m * x / 2)
        rate = -k * late * ((1 / trip**2 + w * x * ratio / 2) / own + w / trip**2)
        rate /= 1 + k * w * m * late / 2 / own
        return complex(s - (rate * (2 - m) - x * ratio) / (1.5e6 / 8000))

    assert max(abs(left(s)) for s in report.rightmost_roots[1:4]) < 1e-9
    edge = root(lambda at: [(z := left(1j * at[0], at[1])).real, z.imag], [8.4, 1.35], tol=1e-13)
    assert report.gain_margin == pytest.approx(edge.x[1], rel=1e-8)


def chain(p_max: float) -> fc.Network:
    """Four windows and a constant flow over two links, of which one flow can be marked."""
    net, on = fc.Network(), {"a": 1e6, "b": 0.9e6}
    for name, capacity in on.items():
        law = fc.RED(T="5 ms", min_th="1 ms", max_th=5e-7 * capacity, p_max=p_max)
        net.link(name, law, capacity=capacity, delay="10 ms")
    for route, back, ecn in (("ab", 0.03, True), ("ab", 0.045, False), ("a", 0.02, False),
                             ("b", 0.025, False)):  # fmt: skip
        net.flow(f"{route}{ecn}", fc.StaticReno, route=[*route], return_delay=back, ecn=ecn)
    return net.flow("u", fc.CBR(rate="0.1 Mbit/s"), route=["a", "b"], ecn=False)


def test_runs_swing_about_the_equilibrium_as_its_roots_say() -> None:
    net, t = chain(0.4), np.linspace(0, 60, 60001)
    rest, (s, *_) = fc.equilibrium(net), fc.stability(net).rightmost_roots
    run = fc.simulate(net, until=60, rtol=1e-9, t_eval=t)
    for name in (
        "rate",
        "loss",
        "mark",
        "link_mark",
        "link_drop",
        "queueing_delay",
        "arrival_rate",
    ):
        np.testing.assert_allclose(run[name][-1], rest.array(name), rtol=1e-5)
    off = (run.queueing_delay[:, 0] - rest.queueing_delay[0]).values
    top = np.flatnonzero((off[1:-1] > off[:-2]) & (off[1:-1] >= off[2:])) + 1
    top = top[(t[top] > 18) & (t[top] < 32)]
    assert np.polyfit(t[top], np.log(off[top]), 1)[0] == pytest.approx(s.real, rel=1e-3)
    assert 2 * np.pi / np.diff(t[top]).mean() == pytest.approx(s.imag, rel=1e-4)
    edge: Any = fc.stability_boundary(net, "p_max")
    signs = [fc.stability(chain(factor * edge.value)).decay_rate > 0 for factor in (0.98, 1.02)]
    assert edge.frequency > s.imag
    assert signs == [True, False]
    grid = {"a.delay": [0.01, 0.012], "p_max": [0.2, 0.4]}
    with pytest.warns(FluidccWarning, match="over the round trip that it hears of"):
        many = fc.sweep(net, grid, ["equilibrium_link_drop", "decay_rate"], executor="serial")
    assert many.decay_rate[0, 1] == -s.real
    np.testing.assert_array_equal(many.equilibrium_link_drop[0, 1], rest.link_drop)


def test_what_enters_at_an_instant_is_dropped_at_the_ratio_of_that_instant() -> None:
    """Over empty queues: at b after 10 ms, at the source after 20."""
    late = two_links(10, 10, max_step="4 ms").sel(time=slice(0.1, None))
    at_a, at_b = ((3 + np.sin(40 * (late.time.values - lag))) / 10 for lag in (0.02, 0.01))
    heard = np.stack([0 * at_a, 1 - (1 - at_a) * (1 - at_b)], axis=1)
    assert late.loss.values == pytest.approx(heard, rel=1e-7)
    assert late.mark.values == pytest.approx(heard[:, ::-1], rel=1e-7)
    assert late.arrival_rate.sel(link="b").values == pytest.approx(7e6 - 3e6 * at_b, rel=1e-7)


def test_a_queue_passes_on_what_it_has_let_in() -> None:
    """A busy one at the shares of the instant of entry, known by hand."""
    theta = np.linspace(0, 0.6, 40)
    other = 3e6 * (0.7 - 0.1 * np.sin(40 * theta))
    entered = 4e6 * theta + 3e6 * (0.7 * theta - 0.1 * (1 - np.cos(40 * theta)) / 40)
    leave = entered / 5.5e6 + 0.01
    run = two_links(5.5, 5, t_eval=theta, rtol=1e-9).sel(link="a")
    assert (run.entered - run.lost).values == pytest.approx(entered, rel=1e-7, abs=1)
    assert run.backlog.values == pytest.approx(entered - 5.5e6 * theta, rel=1e-6, abs=1)
    run = two_links(5.5, 5, t_eval=leave[1:], rtol=1e-9).sel(link="b")
    shares = (other / (4e6 + other))[1:]
    assert (run.link_drop / run.link_mark).values == pytest.approx(shares, rel=1e-6)


def test_where_nothing_is_mixed_it_is_the_same_run_and_point() -> None:
    tail = {"buffer": "50 packets"}
    nets = shared(tail, True, False), shared(tail, True, True)
    for pair in (nets, (shared(RED, False, False), shared({"law": fc.REDDrop}, True, True))):
        one, same = (fc.simulate(n, until=20).to_array() for n in pair)
        np.testing.assert_array_equal(one, same)
        assert fc.stability(pair[0]).decay_rate == fc.stability(pair[1]).decay_rate


@pytest.mark.parametrize(("words", "act"), {
    "goes by what arrives in all": lambda: fc.stability(shared({"law": RISES}, True, False)),
    "which the frozen form": lambda: fc.stability(shared(RED, True, False), delays="frozen"),
    "engine='array'": lambda: fc.simulate(shared(RED, True, False), until=1, engine="fused"),
    "steps by its queue": lambda: fc.simulate(shared({"law": fc.StepMark}, False), until=1),
    "marks and drops": lambda: fc.simulate(shared({**RED, "loss": 0.1}, False), until=1),
    "ecn of flow 'flow1' is 0; give True": lambda: shared(RED, 0),
}.items())  # fmt: skip
def test_what_is_refused(words: str, act: Any) -> None:
    with pytest.raises(FluidccError, match=words):
        act()
