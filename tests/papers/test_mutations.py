"""Every kind of row can turn: with a wrong equation, law or result its verdict is another one."""

import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sympy import Eq
from xarray import DataArray

from fluidcc.equilibria.num import solve
from fluidcc.formulas.response import square_root_fluid
from fluidcc.laws import Law, Steady
from fluidcc.links import DropTail
from fluidcc.network.topologies import dumbbell, two_queues
from fluidcc.papers import model
from fluidcc.papers.binomial import cycles, related
from fluidcc.papers.binomial.cycles import errors, mean_value
from fluidcc.papers.delay_aimd import rules as delay_rules
from fluidcc.papers.delay_aimd.knee import Knee, _cycle
from fluidcc.papers.delay_aimd.rules import fig2
from fluidcc.papers.delay_aimd.runs import coexistence as beside_loss
from fluidcc.papers.delay_aimd.runs import fig1, fig5, ratchet_run
from fluidcc.papers.ecf import equations as ecf
from fluidcc.papers.ecf.common import RTTS, framed, outer_map, starting, steady, two_nodes
from fluidcc.papers.fast import equations as fast_rules
from fluidcc.papers.fast.common import FLOWS, plateaus
from fluidcc.papers.internet import bbr, copa, queues, rdma, scream, windows
from fluidcc.papers.ldcc import coexistence, law, passivity, regimes, runs, stability
from fluidcc.papers.ldcc.coexistence import settled
from fluidcc.papers.ldcc.common import T, at_time, beta, eta, run, w, x
from fluidcc.papers.ldcc.common import equilibrium_of as rest_of
from fluidcc.papers.ldcc.common import four_flows as four
from fluidcc.papers.ldcc.common import series as slow
from fluidcc.papers.ldcc.model import _final as last_of
from fluidcc.papers.ldcc.model import parking
from fluidcc.papers.ldcc.passivity import paper_storage as storage
from fluidcc.proofs.prove import Verdict, prove
from fluidcc.proofs.standstill import at_rest
from fluidcc.sources import GCC, LDCC, NADA
from fluidcc.sources import DelayAIMD as beside
from fluidcc.sources import StaticReno as Reno
from fluidcc.symbols import RTT, c, e, e_b, edot, pi, unfold, y
from tests.papers.test_claims import WANTED

AS_PRINTED = "reproduced"


def mutated(monkeypatch: pytest.MonkeyPatch, row: str, wrong: dict[str, Any]) -> model.Outcome:
    """Test a row with other things under these names, in each room of its paper that has them."""
    (claim,) = [one for one in model.claims_of(row.split(".")[0]) if one.id == row]
    rooms = {sys.modules[c.test.__module__] for c in model.claims_of(claim.paper)}
    for name, thing in wrong.items():
        real = getattr(sys.modules[claim.test.__module__], name)
        for room in rooms:
            if getattr(room, name, None) is real:
                monkeypatch.setattr(room, name, thing)
    return claim.check()


# --- equations, which are no longer proved --------------------------------------------------------

WRONG_PENALTY = beta * (e - T) / e
WRONG_LAW = replace(LDCC, claims={
    "(18)": Steady(Eq(e, RTT * w / (beta * x) - T), given={pi: 0}),
    "(19)": Steady(Eq(e, (e_b * w / (beta * x) + T) / (1 + w / (beta * x))), given={pi: 0}),
    "(20)": Steady(x > 2 * w / beta, given={pi: 0}),
})  # fmt: skip
DOUBLED = at_rest(replace(LDCC, claims={}, flow={x: 2 * LDCC.flow[x]}), given={pi: 0}, eliminate=e)
(TICK,) = ecf.PAQM.ticks
WRONG_TICK = replace(
    TICK, update={z: unfold(f).subs(ecf._K, 2 * ecf._K) for z, f in TICK.update.items()}
)

PART = cycles._part_of_n()

EQUATIONS: list[tuple[str, str, Any]] = [
    ("ldcc.rate_equation", "FLOW", law.FLOW + x),
    ("ldcc.penalty", "ABOVE", WRONG_PENALTY),
    ("ldcc.penalty_shape", "ABOVE", WRONG_PENALTY),
    ("ldcc.saturation", "ABOVE", 2 * law.ABOVE),
    ("ldcc.saturation", "V", 2 * law.V),
    ("ldcc.equilibrium_delay", "LDCC", WRONG_LAW),
    ("ldcc.equilibrium_delay_solved", "LDCC", WRONG_LAW),
    ("ldcc.rate_floor", "LDCC", WRONG_LAW),
    ("ldcc.utility", "U", x**2),
    ("ldcc.penalty_cannot_starve", "FLOW", law.FLOW - beta * x),
    ("ldcc.similar_penalties", "ABOVE", (e - T) / e_b),
    ("ldcc.signal_of_losses", "MERGED", edot + pi),
    ("ldcc.discrete_rule", "FLOW", 2 * law.FLOW),
    ("ldcc.discrete_rule", "MERGED", edot + 2 * pi),
    ("ldcc.gain_of_a_round_trip", "eta", 2 * eta),
    ("ldcc.loss_ratio", "LOSS", (y - c) / c),
    ("ldcc.users_derivative", "RATE", 2 * passivity.RATE),
    ("ldcc.users_projection", "ABOVE", 2 * law.ABOVE),
    ("ldcc.slope_inequality", "STEEPEST", passivity.STEEPEST / 2),
    ("ldcc.users_dissipation", "U2", -stability.U2),
    ("ldcc.equilibrium_conditions", "GAIN", 2 * passivity.GAIN),
    ("ldcc.repaired", "RATE", passivity.RATE + x),
    ("ldcc.locally_stable", "U2", 2 * stability.U2),
    *((f"ldcc.{row}", "REST", DOUBLED) for row in ("linearised", "solved", "return_ratio")),
    *((f"ldcc.{row}", "REST", DOUBLED) for row in ("user_loop", "user_loop_of_ldcc")),
    ("ldcc.places_of_pole_and_zero", "REST", DOUBLED),
    ("ldcc.diagonal_part", "K", 2 * stability.K),
    ("ldcc.user_loop_of_ldcc", "ROUND", 2 * stability.ROUND),
    ("ldcc.curvature", "U2", 2 * stability.U2),
    ("ldcc.penalty_slope", "ABOVE", 2 * law.ABOVE),
    ("ldcc.identical_flows", "K", 2 * stability.K),
    ("internet.aimd_mean", "aimd_window", square_root_fluid),
    ("internet.friendly_increase", "aimd_window", square_root_fluid),
    ("internet.cubic_mean", "_MEAN", 2 * windows._MEAN),
    ("fast.pause_length", "THRESHOLD", 2 * fast_rules.THRESHOLD),
    ("internet.power", "_GOODPUT", queues._GOODPUT - queues.f),
    ("internet.goodput_rises", "_GOODPUT", queues._GOODPUT - queues.f),
    ("internet.static_link", "exp", lambda s: s),
    ("ecf.control", "PAQM", replace(ecf.PAQM, ticks=(WRONG_TICK,))),
    ("ecf.wanted_rate", "V1", ecf.V1 + ecf.c),
    ("ecf.wanted_rate_late", "V2", ecf.V2 + ecf.c),
    ("binomial.independent_of_n", "_part_of_n", lambda: PART / cycles.n),
    ("binomial.aimd_scales_best", "AIMD", {cycles.k: 1, cycles.l: 1}),
    ("binomial.limited_rates", "IDEAL", Eq(cycles.l + 2 * cycles.k, 0)),
    ("binomial.continuous_feedback", "FLOW", 2 * related.FLOW),
    ("binomial.aipd", "RESET", {w: f / 2 for w, f in related.RESET.items()}),
    ("binomial.bandwidth_per_user", "P", related.P + cycles.n),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "name", "wrong"), EQUATIONS, ids=[f"{r}-{n}" for r, n, _ in EQUATIONS]
)
def test_a_wrong_equation_turns_the_verdict(
    monkeypatch: pytest.MonkeyPatch, row: str, name: str, wrong: Any
) -> None:
    found = mutated(monkeypatch, row, {name: wrong})
    assert found.verdict != "proved"
    assert found.verdict != WANTED[row][0] or "fails" in found.computed
    assert found.reason


# --- results that are off by a percent ------------------------------------------------------------


def scaled(function: Callable[..., Any], *names: str, by: float = 1.01) -> Callable[..., Any]:
    """Return the same function, with those parts of its result larger by 1 %."""

    def wrong(*args: Any, **given: Any) -> Any:
        result = function(*args, **given)
        if hasattr(result, "assign"):  # a run
            return result.assign({n: result[n] * by for n in names})
        return result.changed(**{n: result.array(n) * by for n in names})  # an equilibrium

    return wrong


RESULTS = [
    ("queue_growth", "simulate", "queueing_delay"),
    ("fifo_delay", "simulate", "queueing_delay"),
    ("one_way_delay", "equilibrium_of", "queueing_delay"),
    ("loss_ratio", "run", "link_loss"),
    ("path_loss", "equilibrium_of", "loss"),
    ("round_trip", "run", "rtt"),
    ("price_is_delay", "equilibrium", "queueing_delay"),
    ("primal_dual_converges", "simulate", "link_price"),
    ("loss_as_price", "equilibrium", "loss"),
    ("self_inflicted", "equilibrium", "queueing_delay"),
    ("starvation", "equilibrium", "rate"),
    ("other_utilities", "equilibrium", "one_way_delay"),
    ("equilibrium_delay_solved", "at_time", "one_way_delay"),
    ("below_floor", "simulate", "rate"),
    ("only_losses", "equilibrium", "rate"),
    ("fig5_values", "at_time", "one_way_delay"),
    ("fig6_fair", "at_time", "rate"),
    ("fig10_delays", "equilibrium_of", "one_way_delay"),
    ("fig11_long_flow", "at_time", "rate"),
    ("fig11_mixed", "equilibrium_of", "loss"),
    ("fig8_reached", "run", "rate"),
    ("conservation", "simulate", "entered"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("row", "name", "part"), RESULTS, ids=[row for row, *_ in RESULTS])
def test_a_result_that_is_off_by_a_percent_is_noticed(
    monkeypatch: pytest.MonkeyPatch, row: str, name: str, part: str
) -> None:
    (claim,) = [one for one in model.claims_of("ldcc") if one.id == f"ldcc.{row}"]
    real = getattr(sys.modules[claim.test.__module__], name)
    assert WANTED[claim.id][0] in ("proved", "reproduced")
    found = mutated(monkeypatch, claim.id, {name: scaled(real, part)})
    assert found.verdict in ("differs", "refuted")
    assert found.reason


# --- results of another kind, and what their rows say then ----------------------------------------


def knee(mean: float, **others: float) -> dict[str, Any]:
    """Every run of Fig. 7 has this mean queueing delay."""
    found = Knee(1.0, mean, 0.06, 0.0, 2.0)._replace(**others)
    return {"fig7": lambda n, law=None, buffer=0.25: found}


def moving_knee(slope: float) -> dict[str, Any]:
    return {
        "fig7": lambda n, law=None, buffer=0.25: Knee(
            1.0, 0.02 + slope * (n + 9 * buffer), 0.06, 0.0, 2.0
        )
    }


def averages(what: str, values: tuple[float, ...], all_else: float = 0.999) -> dict[str, Any]:
    """Runs have these values at 60, 100 and 240 ms; the utilisation of ECF is another."""
    fixed = {"delay": 0.03, "jitter": 3e-3, "utilisation": all_else, "loss": 0.0}
    return {
        "averages": lambda rtt: fixed if rtt is None else fixed | {what: values[RTTS.index(rtt)]},
        "mean_field": lambda kind, aqm, n, rtt, begin=50.0: rtt,
        "dccp": lambda n, rtt: rtt,
        "held_at": lambda aim, seed: 0.06,
        "steady": lambda kind, v, n, rtt: None if what == "utilisation" or n < 100 else rtt,
    }


def delays(bend: float) -> dict[str, Any]:
    """Delays that grow with the sources and fall with the round trip, but for one."""
    return {
        "mean_field": lambda kind, aqm, n, rtt: (n, rtt),
        "dccp": lambda n, rtt: (n, rtt),
        "averages": lambda at: {"delay": at[0] * 1e-3 - at[1] / 10 + bend * (at == (30, 0.1))},
    }


def late_ones(last: float) -> Any:
    rates = np.append(np.full(29, 1e6), last * 1e6)
    return lambda *_: SimpleNamespace(rate=DataArray(rates[None], dims=("time", "flow")))


def resting() -> Any:
    last = steady("CBR", "V1", 30, 0.06).isel(time=[-1] * 600)
    return last.assign(rate=last.rate * 0 + 1e6, queueing_delay=last.queueing_delay * 0 + 0.028)


def oscillations(jitter: Callable[[float, float], float]) -> dict[str, Any]:
    unstable = type("Report", (), {"delay_margin": 0.01, "__bool__": lambda self: False})
    return {
        "at_rest": lambda n, rtt: None,
        "stability": lambda net: unstable(),
        "mean_field": lambda kind, aqm, n, rtt: (n, rtt),
        "averages": lambda at: {"jitter": jitter(*at)},
    }


def corrections(size: float, slope: float = 0.0) -> dict[str, Any]:
    return {"correction": lambda rounds, *_, **__: (size + slope * rounds, rounds, 0.0)}


def unlike(law: Any, **changes: Any) -> Any:
    """The law with other bounds, or told values times a number."""
    if "told" in changes:
        told = [
            {z: f * changes["told"].get(z.name, 1) for z, f in tick.update.items()}
            for tick in law.ticks
        ]
        pairs = zip(law.ticks, told, strict=True)
        return replace(law, ticks=[replace(tick, update=update) for tick, update in pairs])
    bounds = {z: v for z, v in law.lower.items() if z.name != "u"}
    return replace(law, lower=bounds, upper={})


def shares(parts: tuple[float, ...]) -> dict[str, Any]:
    rates = np.array(runs.CAPACITIES)[:, None] / 4 * np.array(parts)
    return {"fair_rates": lambda name: rates}


N = np.arange(1, 101)
LONGER = SimpleNamespace(  # 130 packets of 1500 bytes, 446 ms
    net=SimpleNamespace(
        links={"bottleneck": SimpleNamespace(buffer=130 * 12_000, capacity=3.5e6, delay=0)}
    )
)
LOSSES = SimpleNamespace(
    loss=lambda *_: np.array([1e-3, 0.0995, 0.997]),
    loss_approximate=lambda *_: np.array([1e-3, 0.1, 10.0]),
)
EPOCHS = np.round(
    delay_rules.delay_aimd.epoch_duration(np.array(delay_rules.TABLE[0], float), 0.1, offset=0.0), 1
)
EVEN = SimpleNamespace(
    one_way_delay=np.array([0.1]), rate=SimpleNamespace(values=(1.0, 1.0)), crossover=0.1,
    gain=1, phase=1, delay=1,
)  # fmt: skip
CLOSED = coexistence.closed()
LONG_QUEUE = SimpleNamespace(
    period=CLOSED.period, queue_max=CLOSED.queue_max, queue_mean=CLOSED.queue_max
)


ONE_USER = SimpleNamespace(net=dumbbell([LDCC], {"capacity": 1e6}, rtt=0.05))
TWICE = replace(Reno, claims={}, flow={z: 2 * f for z, f in Reno.flow.items()})
KNOWS = dict.fromkeys(("first", "late", "ratio"), 1.0) | dict.fromkeys(("seen", "met"), (0.1, 0.1))


def starving(own: float) -> Any:
    return lambda packets, law=LDCC: (own if law is LDCC else 0.1e6, 1.5e6)


def unequal(name: str, time: float) -> Any:
    late = run("ldcc_fig5").sel(time=259.0, method="nearest")
    return late.assign(rate=late.rate * np.array([1.2, 1, 0.8, 1]))


def late_start(name: str) -> Any:
    """As if flow 3 began at once with its share."""
    return run(name).assign(rate=run(name).rate.clip([0, 0, 1e6, 0], [1e5, 9e9, 9e9, 9e9]))


def lossy(name: str) -> Any:
    return run("ldcc_fig5").assign(lost=run("ldcc_fig5").lost + 1.0)


def higher(method: str, *last: float) -> Any:
    found = plateaus(method, *last)
    return found._replace(backlog=0.97 * found.backlog[::-1], rate=1.03 * found.rate)


def leaky() -> Any:
    return fig2().assign(lost=fig2().lost + 1.0)


ROOM: dict[str, Any] = {"_room": lambda packets, size=8000.0: 0.3}


def stuck(flows: int, delta: float, *more: float) -> Any:
    return ratchet_run(flows, 1.0, *more)


def gentle(net: Any, *_: Any) -> Any:
    """As if sampling at RTT did no harm until a gain of 1.6, beyond that of the continuous law."""
    return SimpleNamespace(radius=next(iter(net.flows.values())).law.parameter("eta") / 1.6)


def steeper(f: Any) -> tuple[Any, Any, Any]:
    y, value, slope = mean_value(f)
    return y, value + cycles.Delta * slope, slope


def path(after: float) -> Any:
    """Two cycles: fairness falls from 0.4 to 0.35 and rises to `after`, and to 0.55 at last."""
    return np.array([[f, 1.0] for f in (0.4, 0.35, after, 0.35, 0.55)])


def far_from_optimal(net: Any) -> Any:
    return replace(solve(net), kkt=1e-6)


SECOND = SimpleNamespace(rtt=DataArray([1.0]), rate=DataArray([1.0]))


def unqueued(net: Any) -> Any:
    return SimpleNamespace(rate=solve(net).rate, queueing_delay=DataArray([0.0, 0.0]))


_BELOW = SimpleNamespace(queueing_delay=np.array([1.9e-5]))
STILL = SimpleNamespace(period=1e-3, least=_BELOW, most=_BELOW)
UNFAIR = SimpleNamespace(fairness=0.6, rates=np.array([[2.0], [1.0]]))
ALIKE = SimpleNamespace(
    rate=DataArray(np.full((2, 2), 5e6), dims=("time", "flow"), coords={"time": [30, 300]})
)
ALL_ALIKE = SimpleNamespace(**dict.fromkeys(("htcp_window", "aimd_window"), lambda p, *_: 1 / p))
BEYOND = SimpleNamespace(rates=np.full((1, 1), 1e3))
TWO = related.two_flows

OTHERS: list[tuple[str, dict[str, Any], str]] = [
    ("ldcc.related_ledbat_unfair", {"simulate": lambda *_, **__: ALIKE}, "differs"),
    ("delay_aimd.scales_and_compatible", {"response": ALL_ALIKE}, "differs"),
    ("delay_aimd.losses_below_w0", {"fig2": lambda: leaky()}, "differs"),
    # binomial controls beside others
    ("binomial.generic_controls", {"two_flows": lambda m, u: TWO(m, u) * (1 + 1e-9)}, "differs"),
    ("binomial.monotone_steps", {"two_flows": lambda _: TWO("IIAD")}, "differs"),
    ("binomial.monotone_steps", {"two_flows": lambda _: TWO("AIMD")}, "differs"),
    (
        "binomial.max_min_fairness",
        {"synchronized": lambda *_: SimpleNamespace(orbit=UNFAIR)},
        "differs",
    ),
    (
        "binomial.actual_overshoot",
        {"synchronized": lambda *_: SimpleNamespace(orbit=BEYOND)},
        "differs",
    ),
    *(
        (f"binomial.{row}", {"_settled": lambda *_: np.array([0.3, 0.7, 0.7])}, "differs")
        for row in ("proportional_fairness", "potential_delay")
    ),
    ("binomial.nonzero_loss", {"FLOW": related.FLOW + 1}, AS_PRINTED),
    ("binomial.decrease_at_least_linear", {"SLOW": cycles.x / 2}, AS_PRINTED),
    ("binomial.too_aggressive", {"beside_aimd": lambda _: (9e6, 1e6)}, AS_PRINTED),
    (
        "binomial.stable_under_delays",
        {"stability_boundary": lambda *_, **__: SimpleNamespace(value=6.7)},
        AS_PRINTED,
    ),
    (
        "binomial.yields_to_aimd",
        {"beside_iscc": lambda _: dict.fromkeys((2, 20, 30), 2.0)},
        AS_PRINTED,
    ),
    ("binomial.growth_column", {"S_50": related.S_50 | {"TFRC": 79.1}}, "differs"),
    # LDCC
    ("ldcc.num_unique", {"num": SimpleNamespace(solve=far_from_optimal)}, "differs"),
    ("ldcc.dual_conditions", {"num": SimpleNamespace(solve=far_from_optimal)}, "differs"),
    ("ldcc.fig5_no_loss", {"run": lossy}, "differs"),
    ("ldcc.fig5_fair", {"at_time": unequal}, "differs"),
    ("ldcc.fig8_worst", shares((0.56, 1.1, 1.1, 1.2)), "refuted"),
    ("ldcc.fig8_worst", {"agrees": lambda *_: True}, AS_PRINTED),
    ("ldcc.fig10_long_flow", {"at_time": scaled(at_time, "rate")}, "refuted"),
    ("ldcc.fig10_long_flow", {"run": late_start}, AS_PRINTED),
    ("ldcc.buffer_130", {"scenarios": {"ldcc_fig5": LONGER}}, "differs"),
    ("ldcc.capacity_constraint", {"scenarios": {"ldcc_fig5": ONE_USER}}, AS_PRINTED),
    ("ldcc.tcp_as_gradient", {"Reno": TWICE}, AS_PRINTED),
    ("ldcc.discrete_rule_below_threshold", {"LiteralLDCC": law.MergedLDCC}, AS_PRINTED),
    ("ldcc.derivative_helps", {"edot": pi}, "differs"),
    ("ldcc.normalisation_stability", {"T": regimes._R / 2}, "differs"),
    ("ldcc.related_cxtcp_law", {"unfold": lambda f: 2 * unfold(f)}, "refuted"),
    ("ldcc.related_no_estimate", {"GCC": NADA}, "differs"),
    *(
        (f"ldcc.related_{one}_late", {"_late": lambda *_: KNOWS}, "differs")
        for one in ("ledbat", "cxtcp", "nada")
    ),
    *(
        ("ldcc.coexistence_starvation", {"mean_rates": starving(own)}, wanted)
        for own, wanted in ((0.3e6, AS_PRINTED), (0.1e6, "refuted"))
    ),
    ("ldcc.fig7_capacity", {"jain": lambda rate: 1 - float(rate.sum()) / 1e8}, AS_PRINTED),
    ("ldcc.projection_freezes", {"_overloaded": lambda until: 0.0}, AS_PRINTED),
    ("ldcc.coexistence_buffers", {"BUFFERS": (30, 160)}, "differs"),
    *(
        (f"ldcc.coexistence_{row}", {"mean_rates": lambda n, law=None: (0.1e6, 1.9e6)}, "differs")
        for row in ("delay_part", "weight", "floor")
    ),
    (
        "ldcc.coexistence_crossing",
        {"mean_rates": lambda n, law=None: (0.1e6, 1.9e6), "crossing": lambda: 40.0},
        "differs",
    ),
    ("ldcc.comparison_gcc_lowest", {"closed": lambda: LONG_QUEUE}, "differs"),
    ("ldcc.sampled_law", {"sampled_stability": gentle}, AS_PRINTED),
    ("ldcc.delayed_rate_equation", {"series": lambda a, b, r, **o: slow(a, r, r, **o)}, AS_PRINTED),
    ("ldcc.no_upper_projection", {"simulate": lambda *_, **__: run("ldcc_fig6")}, AS_PRINTED),
    ("ldcc.comparison_small_capacities", {"nada_delay": lambda c, largest=5e6: 0.1}, "refuted"),
    *(
        (f"ldcc.related_{row}", {"mean_rates": lambda *_: (1e6, 1e6)}, wanted)
        for row, wanted in (
            ("ledbat_starves", "differs"),
            ("gcc_starves", "differs"),
        )
    ),
    *(
        (f"ldcc.{row}", {"unstable": lambda *_, **__: 0}, AS_PRINTED)
        for row in ("several_bottlenecks", "each_user_alone", "stable_without_condition")
    ),
    ("ldcc.loss_driven", {"unstable": lambda *_, **__: 1}, "refuted"),
    ("ldcc.mixed_regime", {"FULL": regimes.BUSY}, AS_PRINTED),
    ("ldcc.constant_delay", {"equilibrium": lambda *_, **__: SECOND}, "refuted"),
    ("ldcc.threshold", {"with_law": lambda net, _: net}, AS_PRINTED),
    ("ldcc.lowest_capacity", {"four_flows": lambda p, c, **_: four(p, 2 * c)}, AS_PRINTED),
    ("ldcc.delay_cannot_starve", {"burst": scaled(law.burst, "rate", by=100.0)}, AS_PRINTED),
    ("ldcc.users_inequality", {"V": e}, AS_PRINTED),
    ("ldcc.sum_of_storages", {"paper_storage": passivity.repaired_storage}, AS_PRINTED),
    ("ldcc.link_storage_offset", {"paper_storage": lambda of, **_: storage(of)}, AS_PRINTED),
    ("ldcc.penalty_converges", {"_final": lambda *_, **__: SECOND}, AS_PRINTED),
    ("ldcc.more_capacity_less_delay", {"parking": lambda *of: parking(*of[:2])}, AS_PRINTED),
    ("ldcc.comparison_gcc_rule", {"_printed": lambda: GCC}, "refuted"),
    ("ldcc.related_ledbat_starves", {"_window": lambda: (2.0, 9.0)}, "differs"),
    ("ldcc.related_nada_new", {"simulate": lambda *_, **__: run("ldcc_fig5")}, AS_PRINTED),
    ("ldcc.gain_divided", {"chart": lambda: dict.fromkeys(("divided", "rule"), N)}, AS_PRINTED),
    ("ldcc.delayed_rates", {"_final": lambda *given, **_: last_of(*given)}, AS_PRINTED),
    ("ldcc.no_queue_at_optimum", {"equilibrium": unqueued}, AS_PRINTED),
    ("ldcc.link_rates", {"equilibrium_of": lambda _: rest_of("ldcc_fig10")}, AS_PRINTED),
    ("ldcc.normalisation", {"jain": lambda rates: 1.0}, AS_PRINTED),
    ("ldcc.delayed_queue", {"DropTail": replace(DropTail, upper={})}, AS_PRINTED),
    ("ldcc.coexistence_aggressive", {"mean_rates": lambda *_: (0.9e6, 1.1e6)}, AS_PRINTED),
    ("ldcc.fig10_no_loss", {"run": scaled(run, "queueing_delay", by=4.0)}, "differs"),
    ("ldcc.fig8_extremes", shares((1, 1, 1, 1)), "differs"),
    ("ldcc.latecomers", {"equilibrium": lambda *_: EVEN}, "differs"),
    ("ldcc.settings", {"LDCC": LDCC(w=3e4)}, "differs"),
    ("ldcc.buffer_25", {"scenarios": {"ldcc_fig6": LONGER}}, "differs"),
    ("ldcc.fig10_no_loss", {"run": lossy}, "differs"),
    ("ldcc.fig8_extremes", shares((0.1, 1.2, 1.3, 1.4)), "differs"),
    ("ldcc.comparison_owd_eq", {"nada_delay": lambda c: 5e4 / c}, "differs"),
    ("ldcc.places_in_section_v", {"margins": lambda _: EVEN}, "differs"),
    ("ldcc.comparison_constant", {"settled": lambda _, c: settled(GCC, c)}, "differs"),
    (
        "ldcc.comparison_constant",
        {"DELAYS": dict.fromkeys(("LDCC", "NADA"), lambda _: 0.2)},
        "differs",
    ),
    ("ldcc.comparison_gcc_no_rest", {"_printed": lambda: GCC}, "refuted"),
    # binomial controls
    ("binomial.errors_of_150_flows", {"errors": lambda _: errors(1)}, "differs"),
    ("binomial.tcp_friendly_is_slow", {"to_fairness": lambda k, l, n: n**2}, "differs"),
    ("binomial.cycles_to_fair", {"corners": lambda *_: path(0.5)}, AS_PRINTED),
    ("binomial.cycles_to_fair", {"corners": lambda *_: path(0.6)}, "differs"),
    ("binomial.slow_near_one", {"_cycles": lambda *_: 20}, "differs"),
    ("binomial.aggressive_loses_more", {"fig5": lambda _: N}, "differs"),
    ("binomial.several_decreases", {"_in_a_row": lambda k, l, n: 1 + l / 9}, "differs"),
    *(
        (f"binomial.no_crossing_{way}", {"mean_value": steeper}, AS_PRINTED)
        for way in ("up", "down")
    ),
    ("binomial.estimates", {"_with_estimates": lambda *_: (1e-3, 1.0)}, "differs"),
    ("binomial.loss_example", {"binomial": LOSSES}, AS_PRINTED),
    *(
        ("binomial.growth_aimd2", {"fig5": lambda _, s=s: 1e-4 * s ** ((N - 1) / 99)}, wanted)
        for s, wanted in ((352.4, AS_PRINTED), (353.0, "differs"), (6755.0, "differs"))
    ),
    *(
        ("binomial.becomes_linear", {"fig5": lambda _, m=m: 1e-6 * N * np.minimum(N, m)}, wanted)
        for m, wanted in ((7, AS_PRINTED), (9, "differs"), (100, "differs"), (1, "differs"))
    ),
    (
        "binomial.exponents_aimd",
        {"fig5": lambda name: 1e-4 * N ** (1.914 if name == "AIMD1" else 1.272)},
        AS_PRINTED,
    ),
    ("binomial.loss_of_100", {"fig5": lambda name: np.where(N < 100, 0.0, 0.112)}, "differs"),
    (
        "binomial.iscc_in_simulation",
        {"iscc_losses": lambda k, _: np.linspace(2e-3, 1e-3, 8) if k == -1.5 else np.full(8, 1e-3)},
        AS_PRINTED,
    ),
    (
        "binomial.iscc_in_simulation",
        {"iscc_losses": lambda k, _: np.linspace(2e-3, 1e-3, 8)},
        "differs",
    ),
    ("binomial.experiment_parameters", {"iscc": lambda k, l: (1 / 18, 1 / 2)}, "differs"),
    ("binomial.loss_of_many", {"P": 1 - 1 / (1 + cycles.n)}, AS_PRINTED),
    ("binomial.efficient_below_half", {"errors": lambda _: np.ones((3, 301))}, "differs"),
    # FAST
    *(
        (f"fast.{row}", {"plateaus": higher}, "differs")
        for row in ("plateaus_of_fast", "plateaus_of_estimator")
    ),
    ("fast.queues", {"plateaus": higher}, "refuted"),
    (
        "fast.throughput",
        {"plateaus": lambda m: higher("FAST") if m == "FAST" else plateaus(m)},
        "differs",
    ),
    ("fast.fast_over_rtt", {"ratios": lambda *_: np.full(7, 3.2)}, "differs"),
    ("fast.fast_over_n", {"ratios": lambda *_: np.full(5, 3.2)}, "differs"),
    ("fast.positive_theta", corrections(1.0), "differs"),
    *((f"fast.{row}", corrections(1.0, 1e-3), AS_PRINTED) for row in ("exact_iff", "simultaneous")),
    ("fast.simultaneous", corrections(2.0), "differs"),
    ("fast.static_windows", corrections(1.0, 1e-3), "differs"),
    ("fast.estimator_over_n", {"ratios": lambda *_: np.ones(5)}, "differs"),  # the others too
    ("fast.stability_needs_the_clock", {"growth": lambda *_: (0.1, 0.11)}, "differs"),
    ("fast.longer_pause", {"over_others": lambda *_: 1.0}, "differs"),
    *(
        ("fast.bursts_help", {"shares": lambda _, v=v: np.array([v] * 2).T}, wanted)
        for v, wanted in (((1.6, 1.4, 1.2), AS_PRINTED), ((1.2, 1.3, 1.1), "differs"))
    ),
    ("fast.estimator_over_n", {"ratios": lambda *_: np.full(5, 1.03)}, "differs"),
    ("fast.estimator_over_rtt", {"ratios": lambda *_: np.full(7, 1.03)}, "differs"),
    ("fast.small_buffer", {"_lost": lambda *_: 0.0}, "differs"),
    ("fast.unfair_until_the_probe", {"over_others": lambda *_: 1.01}, AS_PRINTED),
    ("fast.reduction_over_rtt", {"ratios": lambda *_: np.full(7, 1.2)}, "differs"),
    (
        "fast.reduction_over_n",
        {"ratios": lambda method, over: 1 + 0.1 * np.sqrt(FLOWS)},
        AS_PRINTED,
    ),
    # delay-based AIMD
    (
        "delay_aimd.coefficient",
        {
            "TABLE": (delay_rules.TABLE[0], tuple(EPOCHS)),
            "_by_rounds": lambda a: 7 if a == 0.5 else 3,
        },
        AS_PRINTED,
    ),
    ("delay_aimd.algorithm_loss_branch", {"backoffs": lambda _: []}, AS_PRINTED),
    ("delay_aimd.delay_backoff", {"fig2": leaky}, "differs"),
    ("delay_aimd.vegas_queue", {"fig1": lambda _: fig1(2)}, "differs"),
    ("delay_aimd.adaptive_backoff", {"fig2": lambda adaptive=True: fig2()}, "differs"),
    ("delay_aimd.flat_part_alters", {"DelayAIMD": lambda Delta0: beside(Delta0=0)}, AS_PRINTED),
    ("delay_aimd.algorithm_threshold", {"PrintedDelayAIMD": beside}, AS_PRINTED),
    ("delay_aimd.flat_part", {"fig5": lambda _: fig5(0.0)}, "differs"),
    (  # the same epoch, with no flat section
        "delay_aimd.flat_part",
        {"_epoch_and_flat": lambda run: (8.0, 0.05)},
        "differs",
    ),
    ("delay_aimd.drains", {"TAU2": 0.1}, AS_PRINTED),
    *(
        (f"delay_aimd.busy_{row}", {"agrees": lambda text, value, to=to: value > to}, wanted)
        for row in ("with_two_round_trips", "over_two_links")
        for to, wanted in ((0.1, AS_PRINTED), (1.1, "refuted"))
    ),
    ("delay_aimd.coexists", {"coexistence": lambda *_: beside_loss(0.0, 0.0)}, "differs"),
    (
        "delay_aimd.slow_start_runs",
        {"slow_start": lambda T, q: (1.1, 2 * T / q, q / 2)},
        "refuted",
    ),
    ("delay_aimd.second_flow", {"fig8": lambda _: (None, np.ones((9, 2)) * [1, 2])}, "differs"),
    ("delay_aimd.synchronised", {"_cycle": lambda n, a: _cycle(1, 3 + n / 1e3)}, "differs"),
    ("delay_aimd.closed_form", {"_cycle": lambda *_: _cycle(1, 3.001)}, "differs"),
    ("delay_aimd.slow_start_length", {"log": lambda value, base: base / value}, AS_PRINTED),
    ("delay_aimd.proportional_idle", {"last_cycle": lambda run: (2.65, 0.01, run)}, "differs"),
    ("delay_aimd.just_empties", {"_queue_at_rest": lambda: (0.0, 0.01, 0.02)}, AS_PRINTED),
    ("delay_aimd.algorithm_increase", {"TAU2": delay_rules.T2}, AS_PRINTED),
    *((f"delay_aimd.ratchet_{row}", ROOM, AS_PRINTED) for row in ("of_one", "of_ten", "buffer")),
    *(
        (f"delay_aimd.ratchet_{row}", ROOM | {"ratchet_run": stuck}, "differs")
        for row in ("of_one", "of_ten")
    ),
    ("delay_aimd.knee_delay", knee(0.031), "differs"),
    ("delay_aimd.knee_delay", knee(0.029), AS_PRINTED),
    ("delay_aimd.knee_utilisation", knee(0.02, utilisation=0.98), "differs"),
    ("delay_aimd.knee_losses", knee(0.02, lost=8e3), "differs"),
    ("delay_aimd.knee_of_loss_based", knee(0.2), "differs"),  # the same for both
    ("delay_aimd.shorter_epochs", knee(0.02), "differs"),
    *(
        (f"delay_aimd.knee_of_any_{row}", moving_knee(slope), wanted)
        for row in ("number", "buffer")
        for slope, wanted in ((0.0, AS_PRINTED), (5e-3, "differs"))
    ),
    ("delay_aimd.slow_start_exit", {"early_exit": lambda T, tau0: (100.0, 300.0)}, AS_PRINTED),
    # ECF
    ("ecf.filtered", {"PAQM": ecf.PAQM(a=0.4)}, "differs"),
    ("ecf.filtered", {"PAQMDrop": lambda a=0.5, law=ecf.PAQMDrop: law(a=1 - a)}, "differs"),
    ("ecf.scheduler", {"two_queues": lambda u, *rest: two_queues(u[:1], *rest)}, "differs"),
    ("ecf.source", {"_PRINTED": unlike(ecf._PRINTED, told={"AI": 0.9})}, "differs"),
    ("ecf.far_sources", {"PAQMECF": lambda T_s: ecf._PRINTED}, "differs"),
    ("ecf.without_adaptation", {"CBR": lambda rate, law=ecf.CBR: law(rate=rate / 2)}, "differs"),
    ("ecf.drops_and_marks", {"PAQM": ecf.PAQMDrop}, "differs"),
    ("ecf.marks_by_length", {"marked_by_bytes": lambda law, _: law}, "differs"),
    ("ecf.byte_mode", {"_carried": lambda _: 1.0}, "differs"),
    ("ecf.period_of_v1", {"outer_map": lambda _: outer_map(2)}, "refuted"),
    ("ecf.period_of_v1", {"_critical": lambda _: 0.5}, "differs"),
    ("ecf.hold_form", {"_critical": lambda _: 1.2}, "differs"),
    ("ecf.max_min", {"two_nodes": lambda: two_nodes() * 1.02}, "differs"),
    ("ecf.ecf_margins", {"ecf_margin": lambda *_: (1.1, 0.01)}, "differs"),
    ("ecf.shares", {"_last": lambda *_: [np.full(n, 27e6 / n) for n in range(1, 6)]}, "differs"),
    ("ecf.started", {"_last": lambda *_: [np.full(5, 6e6)]}, "differs"),
    ("ecf.sawtooth", {"_swing": lambda *_: 1.0}, "differs"),
    ("ecf.slow_tfrc", {"_unfair": lambda _: 0.1}, "differs"),
    ("ecf.set_points", {"PACKET": 8000.0}, "differs"),
    ("ecf.overheads", {"C": 2e7}, "differs"),
    ("ecf.dccp_drops", averages("loss", (1e-3, 1e-3, 1e-3)), "differs"),
    ("ecf.red_delay", delays(0.0), AS_PRINTED),
    ("ecf.red_delay", delays(0.01), "differs"),
    ("ecf.red_margins", oscillations(lambda n, rtt: n * rtt / 100), AS_PRINTED),
    ("ecf.red_margins", oscillations(lambda n, rtt: n / rtt / 100), "differs"),
    ("ecf.truncated", {"PAQMDrop": unlike(ecf.PAQMDrop)}, "differs"),
    ("ecf.decrease_and_increase", {"_PRINTED": unlike(ecf._PRINTED, told={"AI": 1.01})}, "differs"),
    ("ecf.decrease_and_increase", {"_PRINTED": unlike(ecf._PRINTED, told={"MD": 0.99})}, "differs"),
    ("ecf.measured_rate", {"_PRINTED": unlike(ecf._PRINTED, told={"MD": 0.99})}, "differs"),
    ("ecf.converges", {"steady": lambda *_: resting()}, AS_PRINTED),
    ("ecf.excited", {"starting": lambda *_: starting("CBR")}, "differs"),
    ("ecf.frames", {"framed": lambda _: framed(0.0)}, AS_PRINTED),
    ("ecf.late_ones", {"steady": late_ones(1.04)}, AS_PRINTED),
    ("ecf.late_ones", {"steady": late_ones(1.0)}, "differs"),
    ("internet.cubic_table_1", {"_MEAN": windows._MEAN * 1.001}, "differs"),
    ("internet.cubic_table_2", {"RENO": 1.21}, "differs"),
    ("internet.cubic_loss_ratios", {"_MEAN": windows._MEAN * 1.05}, "differs"),
    ("internet.highspeed_table", {"increase": 2 * windows.increase}, "differs"),
    ("internet.highspeed_response", {"highspeed_window": lambda p: 0.13 / p**0.835}, "differs"),
    ("internet.amplitude", {"_swing": lambda s: s**0.5}, "differs"),
    ("internet.cycles", {"limit_cycle": lambda _: STILL}, "differs"),
    ("internet.stable_at_100_ms", {"_margin": lambda _: 10.0}, AS_PRINTED),
    ("internet.classic_rate", {"square_root_window": lambda p: 1.41 / p**0.5}, "differs"),
    ("internet.gains", {"RTT_MAX": 0.3 / 3.2}, AS_PRINTED),
    ("internet.decay_time", {"DECAY": 0.03}, "differs"),
    ("internet.startup_gain", {"_GAIN": 1.05 * bbr._GAIN}, AS_PRINTED),
    ("internet.startup_gain_of_the_draft", {"_GAIN": 1.01 * bbr._GAIN}, "differs"),
    ("internet.packets_of_reno", {"PACKET": 12000}, "differs"),
    ("internet.seconds_of_reno", {"TRIP": 0.035}, "differs"),
    ("internet.fixed_point", {"_balance": lambda p, x: 1 / (p * x)}, "differs"),
    ("internet.fixed_point_formula", {"_resting": lambda *at: rdma._formula(*at)}, AS_PRINTED),
    (
        "internet.few_and_many",
        {"_loop": lambda _, queued, loop=rdma._loop: loop(2, queued)},
        "differs",
    ),
    ("internet.copa_cycle", {"_queue": lambda run, q=copa._queue: 1.1 * q(run)}, "differs"),
    ("internet.copa_shares", {"_queue": lambda run, q=copa._queue: 1.1 * q(run)}, "differs"),
    ("internet.copa_empties", {"_between": lambda *_, **__: np.array([0.3])}, "differs"),
    ("internet.copa_competes", {"AIMD": copa.Copa}, "differs"),
    ("internet.copa_among_itself", {"Copa": copa.CALM}, "differs"),
    ("internet.scream_once_a_round_trip", {"LONG": 0.025}, AS_PRINTED),
    ("internet.scream_slowest_growth", {"SCReAM": scream.SCReAM(near=0.1)}, AS_PRINTED),
    ("internet.scream_two_marks", {"_resting": lambda *_: (0, [2.0])}, AS_PRINTED),
    ("internet.scream_round_trips", {"SCReAM": scream.Prague}, AS_PRINTED),
    ("internet.scream_beside_prague", {"SCReAM": scream.Prague}, "differs"),
    ("internet.square_root", {"StaticReno": windows.Reno}, "differs"),
    ("internet.compound_buffers", {"_edge": lambda _: 30.0}, "differs"),
    ("internet.prague_round_trips", {"_ratio": lambda *_: 1.0}, AS_PRINTED),
    ("internet.interval", {"_used": lambda _: 0.95}, AS_PRINTED),
    ("internet.rcp_loop", {"pi": 3 * queues.pi}, "differs"),
    ("internet.timely_rests_nowhere", {"TIMELY": rdma.PatchedTIMELY}, "differs"),
    ("internet.patched_converges", {"_left": lambda *_: 0.1}, AS_PRINTED),
    ("internet.queue_of_version_1", {"_queue": lambda *_: 1.5}, "differs"),
    ("internet.queue_of_version_2", {"_queue": lambda _, n: (n - 1) / (4 * n + 1)}, AS_PRINTED),
    ("internet.buffers_of_version_2", {"_queue": lambda *_: 2.0}, AS_PRINTED),
    ("internet.shallow_buffers", {"BBRv1": bbr.BBRv2}, "differs"),
    ("internet.copa_on_short_paths", {"Copa": copa.CALM}, "differs"),
    ("internet.share_beside_losses", {"_share": lambda *_: 0.53}, AS_PRINTED),
    ("internet.share_beside_many", {"_share": lambda _, n: 1 / (n + 1)}, "differs"),
    (
        "internet.least_gain_of_down",
        {"_smaller": lambda law: law.parameter("down") / 2},
        AS_PRINTED,
    ),
    ("internet.threshold", {"_swing": lambda s: (s / 2) ** 0.5}, AS_PRINTED),
    ("ecf.tfrc_drops", averages("loss", (1e-3, 1e-3, 1e-3)), "differs"),
    ("ecf.inner_drops", averages("loss", (9e-3, 9e-3, 9e-3)), "differs"),
    ("ecf.inner_drops", averages("loss", (0.02, 0.02, 0.02)), AS_PRINTED),
    *(
        (f"ecf.{row}", averages(what, tuple(part * v for v in values)), wanted)
        for row, what, *values in (
            ("ecf_jitter", "jitter", 4e-3, 5e-3, 9.6e-3),
            ("ecf_delay", "delay", 28e-3, 28e-3, 18.7e-3),
            ("tfrc", "delay", 49e-3, 45e-3, 40e-3),
            ("tfrc_jitter", "jitter", 2.8e-3, 3.9e-3, 10.8e-3),
            ("utilisation", "utilisation", 0.92, 0.999, 1.0),
        )
        for part, wanted in ((1.0, AS_PRINTED), (0.8, "differs"))
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "wrong", "wanted"), OTHERS, ids=[f"{row}-{wanted}" for row, _, wanted in OTHERS]
)
def test_another_result_has_another_verdict(
    monkeypatch: pytest.MonkeyPatch, row: str, wrong: dict[str, Any], wanted: str
) -> None:
    assert mutated(monkeypatch, row, wrong).verdict == wanted


# --- whatever a row rests on ----------------------------------------------------------------------

# One is differentiated by hand.
PROVED = {name for name, (verdict, _) in WANTED.items() if verdict == "proved"}


@pytest.mark.slow
@pytest.mark.parametrize("row", sorted(PROVED - {"ldcc.gradient_of_penalty"}))
def test_what_is_proved_rests_on_proofs(monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    def refuted(verdict: Verdict) -> Verdict:
        return replace(verdict, status="refuted")

    def fails(statement: Any, where: Any = ()) -> Any:
        if isinstance(statement, Law):
            return prove(statement)
        return Verdict("", statement, "refuted", "no reason")

    monkeypatch.setattr(model, "_decided", refuted)
    monkeypatch.setattr(model, "prove", fails)
    assert mutated(monkeypatch, row, {}).verdict in ("refuted", "differs")


@pytest.mark.parametrize("row", [
    "binomial.logarithmic_example", "ldcc.receiving_rate_index",
    "ldcc.gain_before_the_sum", "ldcc.links_inequality",
])  # fmt: skip
def test_what_is_false_is_refuted_not_only_unproved(monkeypatch: Any, row: str) -> None:
    monkeypatch.setattr(model, "_decided", lambda v: v if v else replace(v, status="checked"))
    assert mutated(monkeypatch, row, {}).verdict == AS_PRINTED
