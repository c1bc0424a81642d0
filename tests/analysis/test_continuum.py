"""Roots at zero of a continuum of equilibria: which they are, and how the rest is judged."""

from typing import Any

import numpy as np
import pytest
from sympy import symbols

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, InvalidInput
from fluidcc.conditions.passivity import passivity
from fluidcc.laws import Source
from fluidcc.numerics.linear.margins import margins
from fluidcc.symbols import e, edot

x = symbols("x", positive=True)
z = symbols("z", real=True)
k, T, g, x0 = symbols("k T g x_0", positive=True)
# Settles wherever the delay is T: how the flows share the link is left open.
Toward = Source(
    "Toward", flow={x: k * x * (T - e - g * edot)}, out={"rate": x},
    params={k: 2.0, T: 0.15, g: 1.0}, initial={x: 1e6},
    units={x: "bit/s", k: "1/s^2", T: "s", g: "s"}, lower={x: 0},
)  # fmt: skip


def _shared() -> fc.Network:
    flows = {"a": Toward, "b": {"law": Toward(k=1.0, T=0.16), "access_delay": 0.01}}
    return fc.dumbbell(flows, {"name": "l", "capacity": 3e6, "delay": 0.025})


def _series(nu: float = 2e-9, delay: float = 0.025) -> fc.Network:
    path = {"capacity": 3e6, "delay": delay}
    laws = {"l1": fc.DualLink(nu=1e-9), "l2": fc.DualLink(nu=nu)}
    links: Any = [{"name": name, "law": law, **path} for name, law in laws.items()]
    return fc.parking_lot({"a": fc.PrimalDual(alpha=3e7)}, [[], []], links)


def _judged(net: fc.Network) -> Any:
    with pytest.warns(FluidccWarning, match="the equilibrium is one of a continuum, along"):
        return fc.stability(net)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "moves"),
    [(_shared, {"a.x": 1, "b.x": -1}), (_series, {"l1.lambda": 1, "l2.lambda": -1})],
)
def test_a_direction_is_named_and_left_out(make: Any, moves: dict[str, float]) -> None:
    report = _judged(make())
    (free,) = report.free
    assert free.states == pytest.approx(moves)
    assert (report.stable, report.marginal, free.multiplicity) == (True, False, 1)
    assert np.abs(report.rightmost_roots).min() > 1e-2
    raw = report.closed.count_unstable()
    assert (raw.at_zero, raw.unstable, raw.marginal) == (1, 0, 0)
    assert f">{free} (roots at zero left out: 1)" in report._repr_html_()


@pytest.mark.slow
def test_a_push_ends_elsewhere_on_it_and_what_is_left_decays_as_the_other_roots_say() -> None:
    net = _shared()
    report = _judged(net)
    rest = report.equilibrium
    start = net.with_link("l", initial=rest.states["l"])
    for name, size in (("a", 1.001), ("b", 0.9995)):
        start = start.with_flow(name, initial={"x": rest.states[name]["x"] * size})
    times = np.arange(4.0, 9.0, 0.25)
    run = fc.simulate(start, 30.0, t_eval=[*times, 30.0], rtol=1e-11, atol=1e-13, engine="array")
    end = run.rate.sel(time=30.0)
    assert abs(float(end.sel(flow="a")) / rest.states["a"]["x"] - 1) > 1e-4
    assert float(end.sum()) == pytest.approx(3e6, rel=1e-9)
    swing = run.queueing_delay.values[:-1, 0] - float(rest.queueing_delay[0])
    past = np.column_stack([swing[1:-1], swing[:-2]])
    one, two = np.linalg.lstsq(past, swing[2:], rcond=None)[0]
    found = np.log(np.roots([1, -one, -two]).astype(complex)) / 0.25
    assert found[np.argmax(found.imag)] == pytest.approx(report.rightmost_roots[0], rel=1e-3)


@pytest.mark.slow
def test_differences_among_identical_flows() -> None:
    net = fc.dumbbell([Toward] * 3 + [Toward(k=1.3)] * 2, {"capacity": 3e6}, rtt="50 ms")
    report = _judged(net)
    among = [(d.among, d.multiplicity) for d in report.free]
    assert among == [("", 1), ("flow1 (x3)", 2), ("flow4 (x2)", 1)]
    assert report.free[0].states == pytest.approx({"flow1 (x3).x": 1, "flow4 (x2).x": -1.5})
    assert report.stable
    with pytest.raises(InvalidInput, match="a continuum, along .* does not move with k in one way"):
        fc.stability_boundary(net, "k")


def test_redundant_links_of_a_cycle_of_routes() -> None:
    """Over two of four links each: the incidence matrix has rank three, and structurally four."""
    net = fc.Network()
    for name in "pqrs":
        net.link(name, fc.DualLink(nu=1e-9), capacity=2e6, delay=0.01)
    for i, route in enumerate(("pr", "ps", "qr", "qs")):
        net.flow(f"f{i}", fc.PrimalDual(alpha=2e7 + i * 1e6), route=list(route))
    (free,) = _judged(net).free
    assert str(free) == "p.lambda + q.lambda - r.lambda - s.lambda"


def test_passivity_decides_nothing_where_a_user_integrates() -> None:
    found = passivity(_shared())
    assert not found.stable
    assert found.verdict.startswith("undecided: flow a has a pole of its own on the imaginary axis")


@pytest.mark.slow
@pytest.mark.parametrize("capacity", [350e3, 411e3])
def test_windows_at_their_bound_leave_a_clock_alone(capacity: float) -> None:
    """No queue moves a window of one packet: lags cancel around the links.

    Of the queue's derivatives there is nothing but rounding. What one flow has more than the others
    goes round by its own clock: its root at zero leaves with any gain, and a pair soon crosses.
    """
    net = fc.dumbbell([fc.Vegas(alpha=0.5)] * 3, {"capacity": capacity}, rtt="10 ms")
    report = _judged(net)
    assert report.stable
    together = margins(fc.linearize(net, "open"))
    assert together.gain == together.gain_nearest == np.inf
    assert np.isnan(together.phase_crossover)
    assert (together.gain_down, together.phase) == (0.0, np.inf)
    (own,) = report.closed.deviations("open").values()
    assert report.gain_margin < 1.05  # 1/0.95 is what the clock itself bears
    beyond = [(report.gain_margin * f * own).feedback() for f in (0.999, 1.001)]
    assert [loop.count_unstable().unstable for loop in beyond] == [1, 3]
    alone = -np.sort(-np.diag(report.closed.A))  # each state moves as it would by itself
    np.testing.assert_allclose(report.closed.roots(count=5), alone, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("law", [fc.Vegas, Toward])
def test_what_leads_to_roots_at_zero_that_are_left_out_is_no_margin(law: Any) -> None:
    """Of Vegas, I + L vanishes with the frequency; what counts is the least singular value beyond
    its first turn, as a fine grid has it. Of the other law it stays near to 1.
    """
    other = law(**{str(next(iter(law.params))): 2.5})
    net = fc.dumbbell([law, other], {"capacity": 3e6}, rtt="50 ms")
    report = _judged(net) if law is Toward else fc.stability(net)
    assert report.stable
    assert report.counts.gone
    omega = np.linspace(0.02, 500.0, 200_000)
    back = np.eye(2) + np.moveaxis(report.open.frequency_response(omega), -1, 0)
    size = np.linalg.svd(back, compute_uv=False)[:, -1]
    least = size[np.flatnonzero(np.diff(size) < 0)[0] :].min()
    assert (size[0] < 0.2 * least) == (law is fc.Vegas)
    m = report.margins
    assert m.modulus == pytest.approx(least, rel=1e-3) == pytest.approx(1 / m.ms, rel=1e-3)
    assert m.gain_down == 0 < m.modulus < 1 - 1 / m.gain


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("form", ["square", "square, expanded", "cube", "fifth power"])
def test_where_the_linearisation_vanishes_it_decides_nothing(form: str, sign: int) -> None:
    """x' = -k (x/x0 - 1)^2 attracts from above alone; of odd powers the sign tells."""
    u = x / x0
    power = {"cube": 3, "fifth power": 5}.get(form, 2)
    flow = u**2 - 2 * u + 1 if "expanded" in form else (u - 1) ** power
    law = Source(
        "Power", {x: -sign * k * x0 * flow}, {"rate": x}, {k: 2.0, x0: 1e6}, lower={x: 0},
        units={x: "bit/s", k: "1/s", x0: "bit/s"}, initial={x: 1.5e6 if sign > 0 else 7e5},
    )  # fmt: skip
    net = fc.Network().link("l", fc.DropTail, capacity=3e6, delay=0.01)
    net = net.flow("f", law, route=["l"], return_delay=0.03)
    try:
        rest = fc.equilibrium(net)
    except fc.errors.SolverError:  # a search that follows the law runs away from it
        assert sign < 0
        return
    assert abs(rest.rate.item() / 1e6 - 1) <= rest.error
    assert ("is known to" in str(rest.warnings)) == (rest.error > 1e-9)
    with pytest.warns(FluidccWarning, match="there is no loop"):
        report = fc.stability(net)
    assert (report.verdict, report.unstable) == ("marginal", 0)
    assert "undecided by the linearisation" in repr(report)


def test_doubtful_equilibria_are_judged_the_same_among_many() -> None:
    """The found root is on the stable side, the other one within its error on the unstable."""
    flow = -k * x0 * (x**2 / x0**2 - 2 * x / x0 + 1)
    law = Source("Power", {x: flow}, {"rate": x}, {k: 2.0, x0: 1e6}, initial={x: 1.5e6},
                 units={x: "bit/s", k: "1/s", x0: "bit/s"}, lower={x: 0})  # fmt: skip
    net = fc.dumbbell({"a": fc.LDCC, "f": law}, {"capacity": 3e6, "delay": 0.02})
    report = fc.stability(net)
    assert (report.marginal, report.equilibrium.error > 1e-9) == (True, True)
    with pytest.warns(FluidccWarning, match="2 of 2 points carry a warning"):
        found = fc.sweep(net, {"a.beta": [0.1, 0.12]}, ["stable", "marginal"])
    assert (found.stable.sum(), found.marginal.sum()) == (0, 2)


def test_prices_in_series_at_a_loop_with_roots_far_to_the_left() -> None:
    """Where exp(-s tau) overflows, the search for roots goes on."""
    report = _judged(_series(1e-9, 0.01))
    assert (report.stable, len(report.free)) == (True, 1)
    a, kappa = 3e7 * 20e3 / 3e6**2, 0.03  # poles of the laws [1/s], alpha nu [1/s^2]
    for s in report.rightmost_roots:
        assert abs(s * (s + a) + kappa * 2 * np.exp(-0.04 * s)) < 1e-6 * abs(s) ** 2
