"""Equilibria on switches: beside algebra, runs, and laws that switch over a width."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Expr, Heaviside, Piecewise, exp, sign, symbols, tanh

import fluidcc as fc
from fluidcc.equilibria.many import equilibria
from fluidcc.laws import Tick
from fluidcc.laws.sliding import shared
from fluidcc.network.parameters import Parameters
from fluidcc.sweeps.axes import find_target
from fluidcc.symbols import RTT, c, e, pi, y

x, v, u = symbols("x v u", real=True)
a, b, d, g, h, k, mu, p, p_0, r, T = symbols("a b d g h k mu p p_0 r T", positive=True)
UNITS = {x: "bit/s", a: "bit/s", b: "1/s", d: "s", g: "bit/s^2", h: "bit/s^2", p_0: "1", u: "s"}
VALUES = {a: 2e6, b: 0.5, d: 0.05, g: 1e6, h: 3e6, p_0: 0.01}
Step = Callable[[Expr, Any], Expr]


def above(s: Expr, size: Any = 1) -> Expr:
    return Heaviside(s, 0)


def within(width: float) -> Step:
    """A step that takes a width, relative to a size."""
    return lambda s, size: (1 + tanh(s / size / width)) / 2


def own(flow: Any, initial: Any = None, **changed: float) -> fc.Source:
    """A law whose rate is its state x."""
    values = {s: changed.get(s.name, f) for s, f in VALUES.items()}
    used = set().union(*(f.free_symbols for f in flow.values()))
    params = {s: f for s, f in values.items() if s in used}
    return fc.Source(
        "Own", flow, {"rate": x}, params, {s: UNITS[s] for s in (*flow, *params)}, lower={x: 0},
        initial=initial or {x: 1e6},
    )  # fmt: skip


def over(*laws: fc.Source, **link: Any) -> fc.Network:
    return fc.dumbbell(list(laws), {"capacity": "10 Mbit/s", **link}, rtt="40 ms")


# --- by algebra and by runs -----------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3])
def test_a_rate_rests_where_both_branches_lead_back(count: int) -> None:
    """x' = g - (g + h) H(x - a): x = a, by g/(g + h) of the branch above; so do runs."""
    net = over(*[own({x: g - (g + h) * above(x - a)})] * count)
    rest = fc.equilibrium(net)
    assert rest.rate.values == pytest.approx(2e6, rel=1e-12)
    (slide,) = rest.sliding
    assert slide.share == pytest.approx(0.25, rel=1e-9)
    assert (slide.name, slide.count, slide.switch) == ("flow1", count, x - a)
    assert slide.leads_back
    assert rest.free == ()
    assert "rests on a switch, -a + x = 0, with 0.25 of its branch above" in f"{rest}"
    assert "rests on a switch" in rest._repr_html_()
    run = fc.simulate(net, 5)
    assert run.attrs["slides"] == count
    assert run.rate.isel(time=-1).values == pytest.approx(rest.rate.values, rel=1e-9)


def test_what_follows_from_a_slide_is_at_its_mean() -> None:
    """x = a, where u' = (RTT - u) b + b d H(x - a) has its mean: u = RTT + d g/(g + h)."""
    law = own({x: g - (g + h) * above(x - a), u: b * (RTT - u) + b * d * above(x - a)},
              {x: 1e6, u: 0})  # fmt: skip
    rest = fc.equilibrium(over(law))
    assert rest.states["flow1"]["u"] == pytest.approx(0.04 + 0.05 * 0.25, rel=1e-9)
    run = fc.simulate(over(law), 60)
    assert float(run.Own_u.isel(time=-1)[0]) == pytest.approx(0.0525, rel=1e-6)


def test_two_rates_of_increase_and_a_threshold_of_delay() -> None:
    """x' = g up to the delay d and -h beyond: e = d, where it is g/(g + h) of the time."""
    rest = fc.equilibrium(over(own({x: g - (g + h) * above(e - d)})))
    assert rest.rate.item() == pytest.approx(10e6, rel=1e-9)
    assert rest.one_way_delay.item() == pytest.approx(0.05, rel=1e-9)
    (slide,) = rest.sliding
    assert slide.share == pytest.approx(0.25, rel=1e-9)
    assert not slide.leads_back  # the answer comes a round trip later
    assert "no run stays there" in f"{rest}"


def test_runs_about_a_threshold_of_delay_have_its_mean() -> None:
    """With a fall in proportion to the rate it is a cycle about the equilibrium, which shrinks with
    the round trip.
    """
    law, away = own({x: g - (g + b * x) * above(e - d)}, g=2e6, b=0.2), []
    for trip, delay in (("40 ms", 0.03), ("4 ms", 0.003)):
        net = fc.dumbbell([law(d=delay)], {"capacity": "10 Mbit/s"}, rtt=trip)
        rest = fc.equilibrium(net)
        assert rest.sliding[0].share == pytest.approx(0.5, rel=1e-9)  # g/(g + b c)
        tail = fc.simulate(net, 200, samples=4001).sel(time=slice(100, None))
        away.append(float(abs(tail.one_way_delay.mean() / rest.one_way_delay.item() - 1)))
        assert float(tail.rate.mean()) == pytest.approx(rest.rate.item(), rel=0.01)
    assert away[0] < 0.1
    assert away[1] < 0.3 * away[0]


@pytest.mark.parametrize(("start", "speed"), [(-0.5, 0.4), (0.3, 0.4), (0.1, 0.0), (0.6, 0.0)])
def test_dry_friction_holds_at_any_place_up_to_its_largest_force(
    start: float, speed: float
) -> None:
    """x'' = -x - mu sign(x'): at rest x = mu (1 - 2 share), so x is free."""
    law = fc.Source(
        "Rubbing", {x: b * v, v: b * (-x - mu * sign(v))}, {"rate": r * (2 + x)},
        {b: 1.0, mu: 0.7, r: 1e6}, {x: "1", v: "1", b: "1/s", mu: "1", r: "bit/s"},
        initial={x: start, v: speed},
    )  # fmt: skip
    with pytest.warns(fc.errors.FluidccWarning, match=r"continuum: nothing determines flow1\.x"):
        rest = fc.equilibrium(over(law))
    (slide,) = rest.sliding
    assert rest.states["flow1"]["v"] == pytest.approx(0, abs=1e-12)
    assert rest.states["flow1"]["x"] == pytest.approx(0.7 * (1 - 2 * slide.share), abs=1e-9)
    assert 0 < slide.share < 1
    assert slide.leads_back


def test_shares_that_are_one_for_all_flows_leave_no_continuum() -> None:
    """x' = g (1 - H) - b x H with one H for all: the rates are g (1 - share)/(b share) each. With
    x' = g (1 - H) - h H their sum alone is known.
    """
    fair = fc.equilibrium(over(*[own({x: g - (g + b * x) * above(e - d)})] * 3))
    assert fair.free == ()
    share = fair.sliding[0].share
    assert fair.rate.values == pytest.approx(10e6 / 3, rel=1e-9)
    assert 1e6 * (1 - share) / (0.5 * share) == pytest.approx(10e6 / 3, rel=1e-9)
    with pytest.warns(fc.errors.FluidccWarning, match="nothing determines flow1.x, flow2.x"):
        fc.equilibrium(over(*[own({x: g - (g + h) * above(e - d)})] * 2))


def test_a_link_slides() -> None:
    """p' = b (y/c - 2 H(p - p_0)): the price is p_0, by y/(2 c) of the branch above, and runs stay.
    With p' = b (2 H(y - p_0 c) - 1) it is at what makes flows send p_0 c.
    """
    units = {p: "1", b: "1/s", p_0: "1"}
    own_price = fc.Link("Slides", {p: b * (y / c - 2 * above(p - p_0))}, {"price": p},
                        {b: 1.0, p_0: 0.02}, units, lower={p: 0}, initial={p: 0.1})  # fmt: skip
    load = {p: b * (2 * above(y / c - p_0) - 1)}
    by_load = replace(own_price, name="Load", flow=load, params={b: 1.0, p_0: 0.9})
    nets = [
        fc.Network().link("l", law, capacity="10 Mbit/s", delay="10 ms").flow(
            "f", fc.PrimalDual, route=["l"])
        for law in (own_price, by_load)
    ]  # fmt: skip
    first, second = map(fc.equilibrium, nets)
    assert first.price.item() == pytest.approx(0.02, rel=1e-9)
    assert first.sliding[0].share == pytest.approx(first.rate.item() / 20e6, rel=1e-9)
    run = fc.simulate(nets[0], 300)
    assert float(run.link_price.isel(time=-1)[0]) == pytest.approx(0.02, rel=1e-9)
    assert first.sliding[0].leads_back
    assert second.rate.item() == pytest.approx(9e6, rel=1e-9)
    assert second.sliding[0].kind == "link"
    assert not second.sliding[0].leads_back


# --- beside laws that switch over a width ---------------------------------------------------------


def drawn(seed: int, step: Step) -> fc.Network:
    """A network of up to three flows with a law that switches, drawn at random."""
    rng = np.random.default_rng(seed)
    s, size = [
        (e - d, d), (RTT - d, d), (x - a, a), (x / a - 1 + (e / d - 1) / 2, 1), (u - d, d),
        (pi - p_0, p_0),
    ][seed % 6]  # fmt: skip
    up = [g, g * (1 + b * RTT), g * a / (x + a)][rng.integers(3)]
    down = [h, b * x, b * x**2 / a, b * x * e / d][rng.integers(4)]
    flow = {x: up - (up + down) * step(s, size), u: b * (RTT - u)}
    values = {a: 10 ** rng.uniform(5.5, 7.2), b: 10 ** rng.uniform(-1, 0.7),
              d: rng.uniform(0.045, 0.2), g: 10 ** rng.uniform(5, 7), h: 10 ** rng.uniform(5, 7),
              p_0: 10 ** rng.uniform(-3, -0.5)}  # fmt: skip
    law = own(flow, {x: 1e6, u: 0.02}, **{one.name: value for one, value in values.items()})
    return over(*[law] * int(rng.integers(1, 4)), buffer="200 ms")


@pytest.mark.filterwarnings("ignore::fluidcc.base.errors.FluidccWarning")
@pytest.mark.parametrize("seed", [*range(11), *range(12, 24)])  # of 11 no smooth law is solved
def test_it_is_the_limit_of_equilibria_of_ever_steeper_laws(seed: int) -> None:
    rest = fc.equilibrium(drawn(seed, above))
    assert rest.sliding

    def told(of: Any) -> Any:
        return np.array([*of.rate.values / 1e7, *of.queueing_delay.values / 0.2])

    away = {}
    for width in (3e-2, 3e-3, 3e-4):
        smooth = drawn(seed, within(width))
        for name in smooth.flows:
            near = {z: 1.01 * value for z, value in rest.states[name].items()}
            smooth = smooth.with_flow(name, initial=near)
        try:
            away[width] = np.abs(told(fc.equilibrium(smooth)) - told(rest)).max()
        except fc.errors.SolverError:  # too steep for that search
            continue
    assert away
    assert all(gap < 5 * width for width, gap in away.items())


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", [fc.stability, fc.linearize])
def test_there_is_no_verdict_on_a_switch(loop: Any) -> None:
    says = r"\(Own\) rests on a switch, -a \+ x = 0, .*fluidcc.simulate.*fluidcc.limit_cycle.*tanh"
    net = over(own({x: g - (g + h) * above(x - a)}))
    with pytest.raises(fc.errors.InvalidInput, match=says):
        loop(net)
    with pytest.raises(fc.errors.InvalidInput, match=says):
        loop(net, at=fc.equilibrium(net))


def two(*rows: tuple[float, float, float, float]) -> fc.Network:
    """Flows with x' = g up to a delay d and -h beyond, and an access delay each."""
    net = fc.Network().link("l", fc.DropTail, capacity="10 Mbit/s", delay="10 ms")
    for i, (up, down, at, access) in enumerate(rows):
        law = own({x: g - (g + h) * above(e - d)}, g=up, h=down, d=at)
        net.flow(f"f{i}", law, route=["l"], access_delay=access)
    return net


NONE = {
    # one switch for both flows: 1/4 of the time for one to rest and 2/5 for the other
    "no share for both": two((1e6, 3e6, 0.05, 0), (2e6, 3e6, 0.05, 0)),
    "no share for both at the same queue": two((1e6, 3e6, 0.05, 0), (2e6, 3e6, 0.055, 0.005)),
    "both branches lead up": over(own({x: g * (1 + above(x - a))})),
    "both branches lead away": over(own({x: g * (2 * above(x - a) - 1)}, {x: 3e6})),
    "more delay, more rate": over(
        replace(own({x: g * (2 * above(e - d) - 1)}, {x: 12e6}), lower={})
    ),
    "the share would be above 1": over(own({x: g + h - g * above(x - a)})),
    "two switches at once": over(
        own({x: -g * sign(x - a), u: -b * d * sign(u - d)}, {x: 1e6, u: 0.0})
    ),
    "TIMELY, where the branch above is still on its switch": fc.dumbbell(
        [fc.TIMELY] * 2, {"capacity": 1e9, "delay": 5e-6}, rtt=20e-6
    ),
    "a link that marks by steps": fc.Network()
    .link("l", fc.StepMark, capacity="100 Mbit/s", delay="1 ms")
    .flow("f", fc.StaticReno, route=["l"]),
}  # fmt: skip


@pytest.mark.parametrize("name", NONE)
def test_no_equilibrium_is_made_up(name: str) -> None:
    with pytest.raises((fc.errors.NoEquilibrium, fc.errors.SolverError)):
        fc.equilibrium(NONE[name])


def test_a_sampled_law_stands_still_on_no_mean() -> None:
    law = own({x: g * 0})
    tick = Tick(T, {x: x + g * T * (1 - 2 * above(x - a))})
    law = replace(law, params={g: 1e6, a: 2e6, T: 0.1}, ticks=(tick,),
                  units={x: "bit/s", a: "bit/s", g: "bit/s^2", T: "s"})  # fmt: skip
    with pytest.raises((fc.errors.NoEquilibrium, fc.errors.SolverError)):
        fc.equilibrium(over(law))


@pytest.mark.filterwarnings("ignore:2 of 4 points carry a warning")
def test_many_points_slide_or_not_each_by_itself() -> None:
    """x' = b (a - x) - 2 h H(x - 2 Mbit/s): below, on and (were h less) above the switch."""
    law = own({x: b * (a - x) - h * above(x - g / b)}, b=1.0, g=2e6, h=3e6)
    net, grid = over(law), [1e6, 2.5e6, 4e6, 6e6]
    many = equilibria(Parameters.of(net, {"a": find_target(net, "a")}, {"a": grid}))
    assert many.found.all()
    assert many.rate[:, 0] == pytest.approx([1e6, 2e6, 2e6, 3e6], rel=1e-9)
    assert {i: s[0].share for i, s in many.sliding.items()} == pytest.approx({1: 1 / 6, 2: 2 / 3})
    with pytest.warns(fc.errors.FluidccWarning, match="2 of 4 points failed .* rests on a switch"):
        swept = fc.sweep(net, {"a": grid}, {"stable": "stable"})
    assert swept.stable.values[[0, 3]].tolist() == [1, 1]
    assert np.isnan(swept.stable.values[[1, 2]]).all()


def test_a_switch_is_one_however_it_is_written() -> None:
    """x' = g H(a - x) - h H(x - a): g/(g + h) of the branch above; and with a Piecewise. To runs
    the former are two switches.
    """
    both = g * Heaviside(a - x, 0) - h * above(x - a)
    by_cases = Piecewise((g, x <= a), (-h, True))
    for flow in (both, by_cases):
        (slide,) = fc.equilibrium(over(own({x: flow}))).sliding
        below = slide.share if slide.switch == a - x else 1 - slide.share
        assert below == pytest.approx(0.75, rel=1e-9)
        assert slide.leads_back == (flow == by_cases)


def test_laws_of_many_switches_cost_little() -> None:
    """Each switch has a side put in, and none is written out in all others."""
    for law in (fc.PIE, fc.PIEDrop, fc.Illinois, fc.SCReAM):
        made, own_size = shared(law), sum(f.count_ops() for f in law.switched().flow.values())
        assert made.switches
        assert sum(f.count_ops() for f in made.flow.values()) < 4 * own_size


def test_a_share_weighs_branches_and_not_steps() -> None:
    """x' = g - h (exp(H(x - a)) - 1): the mean of branches is g - h (E - 1) share; with the share
    in place of the step it would be g - h (exp(share) - 1).
    """
    step = exp(above(x - a)) - 1
    rest = fc.equilibrium(over(own({x: g - h * step})))
    assert rest.sliding[0].share == pytest.approx(1 / (3 * (math.e - 1)), rel=1e-9)
