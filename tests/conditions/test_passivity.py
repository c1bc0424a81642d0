"""Candidates for Lyapunov functions: those known to be, and those known not to be."""

import math
from typing import Any

import numpy as np
import pytest
from sympy import Float, Matrix, Min, Symbol, lambdify, log, symbols

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, UnknownName, Unsupported
from fluidcc.conditions.passivity import PassivityReport, UserPassivity, passivity
from fluidcc.papers.ldcc.undelayed import (
    Storage,
    Undelayed,
    check_storage,
    evaluated,
    paper_storage,
    repaired_storage,
    steepest,
    undelayed,
)
from fluidcc.symbols import c, e, plain, price, y


def pair(**how: Any) -> Undelayed:
    return undelayed(fc.dumbbell([fc.LDCC] * 2, {"capacity": 3.5e6}, rtt=0.05), **how)


@pytest.fixture(scope="module")
def held() -> Undelayed:
    return pair(held="k")


@pytest.fixture(scope="module")
def free() -> Undelayed:
    return pair()


def test_the_papers_function_grows_somewhere(held: Undelayed) -> None:
    found = check_storage(held, paper_storage(held), samples=256)
    assert found.positive_definite
    assert not found.decreasing
    assert found.rate > 0.1
    assert found.dissipation[-1] > 0 > found.dissipation[0]  # indefinite at the equilibrium
    assert "no Lyapunov function" in repr(found)
    assert found.why.endswith("as its quadratic form at the equilibrium is indefinite")
    assert "q_bottleneck" in found._repr_html_()
    state = np.array(list(found.counterexample.values()))
    storage = paper_storage(held)
    terms = evaluated(held.states, storage.terms(held), state)
    assert terms.sum() > 0
    # The same number from the equations of the paper, written out here.
    x, q = state[:2], state[2]
    k, alpha, still = 0.4 / float(held.rest.rtt[0]), 0.8, 1.75e6
    slope = (x.sum() - 3.5e6) / 3.5e6
    v = 0.1 * max(q + 0.025 - 0.1, 0) / (q + 0.05)
    own = np.sum((x - still) / x / (k * alpha) * k * x * (20e3 / x - v - slope))
    q_still = float(held.rest.queueing_delay[0])
    assert terms.sum() == pytest.approx(own + 3.5e6 * (q - q_still) * slope, rel=1e-5)


def test_the_repaired_function_never_grows(free: Undelayed, held: Undelayed) -> None:
    for system in (free, held):
        found = check_storage(system, repaired_storage(system), samples=256)
        assert found
        assert found.counterexample == {}
        assert found.rate <= 0
        assert np.all(found.curvature > 0)


def test_growth_by_a_hundred_millionth_is_growth(held: Undelayed) -> None:
    """V' = little f1 f2 of terms f1 f2 and -(1 - little) f1 f2: of their sizes little/2."""
    one, other, _ = held.states
    for little in (1e-8, 1e-10):
        kept = Float(1 - little, 30)
        gradient = {one: held.flow[other], other: -kept * held.flow[one]}
        found = check_storage(held, Storage("nearly balanced", gradient), samples=64)
        assert not found.decreasing
        assert found.rate == pytest.approx(little / 2, rel=1e-4)


def test_candidates_are_made_and_checked_by_the_undelayed_network_itself() -> None:
    """By public names alone: sum (x - x^)^2 + (q - q^)^2 is positive definite, and grows."""
    system = pair(held="k")
    assert system.check(system.repaired_storage(), samples=64)
    for printed in (system.paper_storage(), system.paper_storage(alpha=2.0)):
        found = system.check(printed, samples=64)
        assert (found.positive_definite, found.decreasing) == (True, False)
    squares = sum((z / system.point[z] - 1) ** 2 for z in system.states)
    given = squares, system.storage(squares, "squares")
    bare, named = (system.check(storage, samples=64) for storage in given)
    assert (bare.name, named.name) == ("V", "squares")
    assert (bare.positive_definite, bare.decreasing, bare.rate) == (True, False, named.rate)
    state = dict(zip(system.states, bare.counterexample.values(), strict=True))
    grows = sum(squares.diff(z) * f for z, f in system.flow.items()).subs(state)
    assert grows > 0
    with pytest.raises(InvalidInput, match=r"storage is 3; give .* system.paper_storage\(\)"):
        system.check(3)
    with pytest.raises(InvalidInput, match="V contains y, no states of the network"):
        system.check(Symbol("y") ** 2)


def test_the_repaired_function_with_a_wrong_gain_is_found_out(
    free: Undelayed, held: Undelayed
) -> None:
    # Its integral holds k where the network's k moves with the delay.
    wrong = Storage("V* with a constant k", repaired_storage(held).gradient)
    assert not check_storage(free, wrong, samples=256).decreasing


def test_a_formula_and_its_gradient_agree(free: Undelayed) -> None:
    x1, x2, q = free.states
    parts = [z - free.point[z] - free.point[z] * log(z / free.point[z]) for z in (x1, x2)]
    whole = parts[0] + parts[1] + 3.5e6 * (q - free.point[q]) ** 2 / 2
    formula = Storage.of(free, whole, "by formula")
    gradient = {**{z: 1 - free.point[z] / z for z in (x1, x2)}, q: 3.5e6 * (q - free.point[q])}
    separate = Storage("by gradient", gradient)
    states = np.array([[1e6, 2e6, 0.3], [3e5, 4e6, 0.01]]).T
    found = [storage.values(free, states) for storage in (formula, separate)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    assert formula.separable
    assert separate.separable
    assert abs(formula.offset) < 1e-9


@pytest.mark.slow
def test_the_printed_link_function_is_not_zero_at_rest() -> None:
    net = fc.Network().link("a", fc.DropTail, capacity=2e6, delay=0.025)
    net.link("b", fc.DropTail, capacity=3e6, delay=0.01)
    system = undelayed(net.flow("f", fc.LDCC, route=["a", "b"]), held=("k",))
    printed = paper_storage(system, literal=True)
    assert printed.offset == pytest.approx((3e6 - 2e6) * 0.01 / steepest(system), rel=1e-9)
    found = check_storage(system, printed, samples=64)
    assert not found.positive_definite
    assert "not zero" in found.why
    assert paper_storage(system).offset == 0


def test_a_function_that_is_not_positive_or_misses_a_state_is_reported(free: Undelayed) -> None:
    x1, x2, q = free.states
    for formula in (-((q - free.point[q]) ** 2) - (x1 - x2) ** 2, (q - free.point[q]) ** 2):
        found = check_storage(free, Storage.of(free, formula), samples=64)
        assert not found.positive_definite
        assert not found


def test_what_is_negative_nearby_counts_however_large_v_is_far_away(held: Undelayed) -> None:
    """d (d - 1) (d - 2), d the square of the relative distance: -0.4 there, and 1e18 at most."""
    d = sum((z / held.point[z] - 1) ** 2 for z in held.states)
    for size in (1, Float(1e-15)):
        found = held.check(size * d * (d - 1) * (d - 2), samples=256)
        assert not found.positive_definite
        assert found.why.startswith("V is not positive away from the equilibrium")
        assert found.why.endswith("as its quadratic form at the equilibrium is indefinite")


def test_alpha_is_the_steepest_slope_of_any_user() -> None:
    system = undelayed(fc.dumbbell([fc.LDCC, fc.LDCC(T=0.2)], {"capacity": 3e6}, rtt=[0.3, 0.08]))
    # beta (T + e_b)/(e + e_b)^2 at the larger of T and p: flow 1 starts above its threshold.
    slopes = [0.1 * (0.1 + 0.15) / 0.3**2, 0.1 / 0.24]
    assert steepest(system) == pytest.approx(max(slopes), rel=1e-9)
    assert math.isclose(slopes[1], 0.1 * 0.24 / 0.24**2)


def test_what_does_not_apply_is_refused() -> None:
    different = undelayed(fc.dumbbell([fc.LDCC] * 2, {"capacity": 3e6}, rtt=[0.05, 0.08]))
    with pytest.raises(Unsupported, match="same gain and penalty"):
        repaired_storage(different)
    with pytest.raises(InvalidInput, match="no states of the network"):
        Storage.of(different, Symbol("z") ** 2)
    link = {"law": fc.PenaltyLink, "capacity": 2e6, "delay": 0}
    system = undelayed(fc.dumbbell([fc.PrimalPenalty], link))
    with pytest.raises(Unsupported, match="declares no gain and penalty"):
        paper_storage(system)
    with pytest.raises(Unsupported, match=r"has a queue; of this network these are 1 and 0\."):
        repaired_storage(system)
    deaf = undelayed(fc.dumbbell([fc.CBR(rate=1e6)] * 2, {"capacity": 4e6}, rtt=0.05))
    assert deaf.still.tolist() == [0.0]
    with pytest.raises(Unsupported, match="no flow of this network listens"):
        deaf.paper_storage()
    with pytest.raises(Unsupported, match="'bottleneck' answers by its queue"):
        different.price_storage()
    for law, said in ((fc.REDDrop, "drops before its queue"), (fc.AdaptiveRED, "has ticks")):
        with pytest.raises(Unsupported, match=f"{law.name}.* {said}"):
            undelayed(fc.dumbbell([fc.LDCC], {"law": law, "capacity": "3 Mbit/s"}, rtt=0.05))


Marking = fc.Link("Marking", out={"mark": Min((y / c) ** 4 / 9, 1)})
Priced = fc.Link("Priced", out={"price": (y / c) ** 4, "mark": Min((y / c) ** 4 / 9, 1)})
x, a, s = symbols("x a s", positive=True)
Convex = fc.Source(
    "Convex", flow={x: a * (s / x + x / s / 100 - price)}, out={"rate": x}, params={a: 1e6, s: 1e6},
    units={x: "bit/s", a: "bit/s^2", s: "bit/s"}, initial={x: 1e6},
)  # fmt: skip


def parking_lot(law: Any, link: Any) -> Undelayed:
    net = fc.Network().link("a", link, capacity=2e6, delay=0.01)
    net.link("b", link, capacity=3e6, delay=0.01).flow("long", law, route=["a", "b"])
    return undelayed(net.flow("a", law, route=["a"]).flow("b", law, route=["b"]))


@pytest.mark.parametrize(
    ("law", "link"),
    [
        (fc.PrimalPenalty, fc.PenaltyLink),  # (12)
        (fc.ScalableSource, fc.DualLink),  # (13)
        (fc.PrimalDual, fc.DualLink),  # (14)
        (fc.AlphaFairPrimalDual, fc.DualLink),
        (fc.DelayedPrimal, fc.DualLink),
        (fc.ScalableTCP, fc.DualLink),
    ],
    ids=lambda law: law.name,
)
def test_primal_and_dual_laws_have_a_storage_on_any_routes(law: Any, link: Any) -> None:
    system = parking_lot(law, link)
    storage = system.price_storage()
    assert {plain(z) for z in storage.gradient} == {plain(z) for z in system.states}
    assert system.check(storage, samples=128)
    z = system.states[0]
    worse = Storage("turned", {**storage.gradient, z: -storage.gradient[z]})
    assert not system.check(worse, samples=128)


def test_the_storage_of_the_primal_dual_law_by_hand() -> None:
    system = parking_lot(fc.PrimalDual(alpha=2e6), fc.DualLink(nu=3e-6))
    at = system.still * 1.5
    wanted = np.sum((at[:3] - system.still[:3]) ** 2) / 2 / 2e6
    wanted += np.sum((at[3:] - system.still[3:]) ** 2) / 2 / 3e-6
    assert float(system.price_storage().values(system, at)) == pytest.approx(wanted)


def test_what_has_no_such_storage_says_why() -> None:
    for law, link, why in (
        (fc.Kelly, Marking, "Kelly does not hear prices alone"),
        (Convex, fc.DualLink, "its utility is concave is not proved"),
        (fc.DelayedPrimal, Priced, "'a' .Priced. asks for another price"),
    ):
        with pytest.raises(Unsupported, match=why):
            parking_lot(law, link).price_storage()


def test_marks_are_heard_and_conditions_stay_as_they_are() -> None:
    """SymPy would simplify conditions on numbers for minutes, or fail."""
    for law, link in ((fc.Kelly, fc.RED), (fc.StaticReno, fc.PI), (fc.StaticVegas, fc.DropTail)):
        given = {"law": link, "capacity": "10 Mbit/s", "buffer": "1 MB"}
        system = undelayed(fc.dumbbell([law] * 2, given, rtt="50 ms"))
        assert max(abs(float(f.subs(system.point))) for f in system.flow.values()) < 1e-12
        size = sum((z - system.point[z]) ** 2 for z in system.states)
        assert system.check(size, samples=16).positive_definite


def test_wrong_arguments_are_told(held: Undelayed) -> None:
    storage: Any = paper_storage(held)
    assert repr(held) == "Undelayed(states: x_flow1, x_flow2, q_bottleneck; held: k)"
    with pytest.raises(UnknownName, match="definition 'q' to be held; it may be .*k"):
        undelayed(held.net, held=("q",))
    for given, how, says in (
        ((storage, held), {}, r"system is Storage.*; give an undelayed network"),
        ((held, storage), {"samples": 0}, "samples is 0; give a whole number"),
        ((held, storage), {"spread": math.nan}, "spread is nan; give a factor above 1"),
    ):
        with pytest.raises(InvalidInput, match=says):
            check_storage(*given, **how)


# --- the positive-real argument -------------------------------------------------------------------


def test_the_index_is_that_of_the_printed_answer() -> None:
    net = fc.dumbbell([fc.LDCC] * 2, {"capacity": 3e6}, rtt=0.05)
    found = passivity(net)
    rest = fc.equilibrium(net)
    R, x = float(rest.rtt[0]), float(rest.rate[0])
    a, zero = 0.4 * 20e3 / (x * R), (0.1 - 20e3 / x) / R
    # eta (s + v')/(s + a), of x/RTT: the real part is monotone from eta v'/a at 0 to eta.
    (user,) = found.users
    assert user.index == pytest.approx(min(0.4, 0.4 * zero / a), rel=1e-6)
    assert user.kyp
    assert found
    assert "strictly positive real" in repr(found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_networks_that_it_calls_stable_have_no_unstable_root(seed: int) -> None:
    rng = np.random.default_rng(seed)
    law = fc.LDCC(eta=10 ** rng.uniform(-1, 1.5), T=0.25)
    links = [{"capacity": c, "delay": 0.01} for c in rng.uniform(2e6, 5e6, 2)]
    net = fc.parking_lot([law], [[law], [law]], links)
    assert passivity(net).stable
    system = undelayed(net)
    state = [float(system.point[z]) for z in system.states]
    slopes = Matrix(list(system.flow.values())).jacobian(list(system.states))
    J = lambdify(system.states, slopes, "numpy")(*state)
    assert np.linalg.eigvals(np.array(J, float)).real.max() < 0


def test_a_user_whose_own_pole_grows_is_not_called_stable() -> None:
    """b + k/(s - m) with k < b m: a positive real part, but c s + b + k/(s - m) = 0 at an s > 0."""
    x, b, k, m, E, r = symbols("x b k m E r", positive=True)
    law = fc.Source(
        "Saddle", {x: m * (x - r) - k * (e - E)}, {"rate": x - b * (e - E)},
        {b: 2e6, k: 1e6, m: 1, E: 0.1, r: 1e6},
        {x: "bit/s", b: "bit/s^2", k: "bit/s^3", m: "1/s", E: "s", r: "bit/s"}, initial={x: 1e6},
    )  # fmt: skip
    found = passivity(fc.dumbbell([law], {"capacity": 1e6, "delay": 0.05}))
    (user,) = found.users
    assert user.index > 0
    assert not found.stable
    assert "has a pole of its own" in found.verdict


def test_dependent_routes_decide_nothing() -> None:
    found = PassivityReport((UserPassivity("f", 0.4, 0.0, True),), links=2, rank=1)
    assert not found.stable
    assert "rank 1" in found.verdict


def test_a_report_of_stability_has_it() -> None:
    report = fc.stability(fc.scenarios["ldcc_fig5"].net, at=200.0)
    assert report.passivity.stable
    assert [u.name for u in report.passivity.users] == ["flow1 (x3)"]  # the third flow sends then
    assert report.sufficient["convex hull"].conservatism == pytest.approx(1, rel=1e-6)


def test_links_that_answer_by_loss_have_no_index() -> None:
    with pytest.raises(Unsupported, match="answer by loss"):
        passivity(fc.scenarios["ldcc_fig6"].net, at=200.0)


# --- the network without communication delays -----------------------------------------------------


def _pair(**given: float) -> fc.Network:
    return fc.dumbbell([fc.LDCC, fc.LDCC(eta=0.7)], {"capacity": 3e6}, rtt=[0.05, 0.08], **given)


def test_the_point_is_an_equilibrium_to_fifty_digits() -> None:
    system = undelayed(_pair())
    for f in system.flow.values():
        assert abs(f.subs(dict(system.point))) < 1e-38
    rest = fc.equilibrium(_pair())
    point = {plain(z): float(v) for z, v in system.point.items()}
    assert point["x_flow1"] == pytest.approx(float(rest.rate.sel(flow="flow1")), rel=1e-9)
    assert point["q_bottleneck"] == pytest.approx(float(rest.queueing_delay[0]), rel=1e-9)


def test_the_flow_is_the_law_by_hand() -> None:
    system = undelayed(_pair())
    x1, x2, q = 1.3e6, 2.1e6, 0.11
    state = dict(zip(system.states, (x1, x2, q), strict=True))
    found = [float(f.subs(state)) for f in system.flow.values()]
    slope = (x1 + x2 - 3e6) / 3e6
    for value, x, eta, p in ((found[0], x1, 0.4, 0.025), (found[1], x2, 0.7, 0.04)):
        trip = q + 2 * p
        wanted = eta / trip * x * (20e3 / x - 0.1 * (q + p - 0.1) / trip - slope)
        assert value == pytest.approx(wanted, rel=1e-12)
    assert found[2] == pytest.approx(slope, rel=1e-12)


def test_held_gains_keep_their_value_of_the_equilibrium() -> None:
    free, held = undelayed(_pair()), undelayed(_pair(), held=("k",))
    state = dict(zip(free.states, (1.3e6, 2.1e6, 0.4), strict=True))
    ratio = [float(held.flow[z].subs(state) / free.flow[z].subs(state)) for z in free.states[:2]]
    rest = fc.equilibrium(_pair())
    for r, trip, p in zip(ratio, rest.rtt.values, (0.025, 0.04), strict=True):
        assert r == pytest.approx((0.4 + 2 * p) / trip, rel=1e-9)


def test_an_empty_queue_is_projected_and_two_hops_add_up() -> None:
    net = fc.Network().link("a", fc.DropTail, capacity=2e6, delay=0.025)
    net.link("b", fc.DropTail, capacity=3e6).flow("f", fc.LDCC, route=["a", "b"])
    system = undelayed(net.flow("udp", fc.CBR(rate=5e5), route=["b"]))
    f = lambdify(system.states, list(system.flow.values()), "numpy")
    names = [plain(z) for z in system.states]
    assert names == ["x_f", "q_a", "q_b"]
    x, qa, qb = f(1.5e6, 0.0, 0.0)
    assert (qa, qb) == (0, 0)
    assert f(1.5e6, 0.1, 0.0)[1] == pytest.approx(-0.25)
    assert f(2.7e6, 0.0, 0.0)[2] == pytest.approx(0.2 / 3)
    state = dict(zip(system.states, (1, 0.1, 0.2), strict=True))
    assert float(system.delay["f"].subs(state)) == pytest.approx(0.325)
    assert np.isfinite(x)


def test_a_full_buffer_is_refused() -> None:
    with pytest.raises(Unsupported, match="buffer of link 'bottleneck' is full"):
        undelayed(fc.scenarios["ldcc_fig6"].net, at=200.0)


@pytest.mark.parametrize("law", [fc.StaticFAST, fc.StaticVegas])
def test_a_rate_that_follows_the_round_trip_rests_where_the_equilibrium_is(law: Any) -> None:
    net = fc.dumbbell([law] * 2, {"capacity": "10 Mbit/s"}, rtt="50 ms")
    system = fc.undelayed(net)
    assert max(abs(float(f.subs(system.point))) for f in system.flow.values()) < 1e-12
    rates = [float(rate.subs(system.point)) for rate in system.rate.values()]
    assert rates == pytest.approx(fc.equilibrium(net).rate.values.tolist(), rel=1e-12)
