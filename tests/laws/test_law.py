"""Laws refuse what is wrong, by name, and are values."""

import copy
import gc
import inspect
import pickle
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any
from weakref import ref

import cloudpickle
import numpy as np
import pytest
import sympy
from sympy import Derivative, Float, Function, Heaviside, Max, exp, log, simplify, symbols

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, LawError
from fluidcc.laws import Jump, Law, Link, Source, Tick
from fluidcc.laws.written import formula
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.sources import CBR, LDCC, OnOff, PrimalDual, StaticAIMD, StaticReno
from fluidcc.symbols import RTT, Let, c, e, e_b, edot, packet, pi, unfold, x_tau, y
from tests.some_laws import all_laws

LAWS = pytest.mark.parametrize("law", all_laws(), ids=lambda law: law.name)

(x,) = LDCC.states
w, beta, T, eta = LDCC.params
q = symbols("q", nonnegative=True)


def a_source(**changes: Any) -> Source:
    parts: dict[str, Any] = {
        "flow": {x: x * (w / x - edot) / RTT},
        "out": {"rate": x},
        "params": {w: 2e4},
        "units": {x: "bit/s", w: "bit/s"},
    }
    return Source("Mine", **{**parts, **changes})


def a_link(**changes: Any) -> Link:
    parts: dict[str, Any] = {"flow": {q: (y - c) / c}, "units": {q: "s"}, "queue": q}
    return Link("Queue", **{**parts, **changes})


lonely = symbols("x")  # the same name, other assumptions
stray, betta = symbols("Z betta", positive=True)
SOURCES: list[tuple[dict[str, Any], str]] = [  # what is given to `a_source`, and what it answers
    ({"flow": x}, "flow is x; give a mapping"),
    ({"flow": {x: "1 +"}}, r"flow: x is .1 \+.; give an expression"),
    ({"flow": {x: x > 1}}, "is x > 1, which is no expression"),
    ({"flow": {x: stray / RTT}}, "Z in the flow of x is neither .*declare it"),
    ({"flow": {x: Let("v", stray) / RTT}}, "Z in the flow of x"),
    ({"out": {"rate": stray}}, "Z in output 'rate'"),
    ({"upper": {x: stray}}, "Z in the upper bound of x"),
    ({"jumps": (Jump(pi, {x: stray * x}),)}, "Z in the reset of x in jump 0"),
    ({"ticks": (Tick(stray, {x: x}),)}, "Z in the period of tick 0"),
    ({"initial": {x: e * w}}, "e in the initial value of x is neither"),
    ({"flow": {x: x * (y - w) / w / RTT}}, "y in the flow of x"),
    ({"flow": {x: lonely / RTT}}, "use the same symbol: there is one of that name"),
    ({"params": {w: 1, lonely: 1}}, "two different symbols are called x"),
    ({"params": {w: 1, x: 1}}, "x is both a state and a parameter"),
    ({"params": {w: 1, e_b: 0.1}}, "e_b is a signal that the network gives"),
    ({"flow": {x: x / RTT, e: 1}}, "e is a signal .*cannot be a state"),
    ({"flow": {RTT: 1}}, "states are symbols"),
    ({"flow": {x: Function("f")(x)}}, r"holds an unknown function, f\(x\)"),
    ({"flow": {x: Derivative(x * e, e, evaluate=False)}}, "holds a derivative"),
    ({"out": {}}, "needs its sending rate"),
    ({"out": {"rate": x, "window": x}}, "'window' is no output of a source; use rate"),
    ({"units": {x: "bit/s"}}, "parameter w has no unit"),
    ({"units": {w: "bit/s"}}, "state x has no unit"),
    ({"units": {x: "bit/s", w: "bit/s", T: "s"}}, "units names T"),
    ({"units": {x: "bit/s", w: "furlong"}}, "unit of w is given as 'furlong'"),
    ({"units": {x: "bit/s", w: "kbit/s"}}, "declare the base unit"),
    ({"units": {x: "bit/s", w: ["bit/s"]}}, r"the unit of w is \['bit/s'\]; give text"),
    ({"flow": {x: x * (w / x - edot)}}, r"x has unit bit/s, wanted bit/s\^2"),
    ({"flow": {x: x * (w / x - e) / RTT}}, r"it adds .*-e \[s\]"),
    ({"flow": {x: Max(x, e) / RTT}}, r"it (adds|compares) .*\[s\]"),
    ({"flow": {x: x * exp(e) / RTT}}, r"exp needs a number, not e \[s\]"),
    ({"flow": {x: x * (e - 0.1) / RTT**2}}, r"it adds .*\[1\]"),
    ({"out": {"rate": x * e}}, "output 'rate' has unit bit, wanted bit/s"),
    ({"lower": {x: e_b}}, "lower bound of x has unit s, wanted bit/s"),
    ({"lower": {x: w * e}}, "lower bound of x moves with e; .* is a state of its own, flow={d: ed"),
    ({"upper": {x: 2 * x}}, "upper bound of x moves with x; bounds are made of parameters"),
    ({"flow": {x: (w - x * sympy.pi) / RTT}}, "sympy.pi, .*from fluidcc.symbols import pi"),
    ({"out": {"rate": x * sympy.E}}, "sympy.E, .*from fluidcc.symbols import e`; write 2.718"),
    ({"jumps": (Jump(pi, {x: x * sympy.I}),)}, "sympy.I, the root of -1"),
    ({"flow": {x: w / sympy.Symbol("RTT")}}, "RTT in .*`from fluidcc.symbols import RTT`"),
    ({"flow": {x: w / sympy.Symbol(r"\\dot{e}")}}, "edot in .*`from fluidcc.symbols import edot`"),
    ({"params": {w: 1, sympy.Symbol("pi"): 1}}, "called pi; .*`from fluidcc.symbols import pi`"),
    ({"flow": {x: (w - c) / RTT}}, "c in .* a signal of links; take one of sources"),
    ({"flow": {x: w / RTT - 0.1 * x}}, r"if 0.1 is in 1/s, make it a parameter, params=\{k: 0.1\}"),
    ({"flow": {x: 3 * x}}, "if 3 is in 1/s, make it a parameter"),
    ({"out": {"rate": x * exp(-2 * e)}}, "if 2 is in 1/s, make it a parameter"),
    ({"jumps": (Jump(e - 0.2, {x: x / 2}),)}, "if 0.2 is in s, make it a parameter"),
    ({"initial": {x: w * e_b}}, "initial value of x has unit bit, wanted bit/s"),
    ({"jumps": (Jump(pi, {x: x * e}),)}, "reset of x in jump 0 has unit bit"),
    ({"jumps": (Jump(pi, {x: x / 2}, x),)}, "refractory time of jump 0 has"),
    ({"ticks": (Tick(x, {x: x}),)}, "period of tick 0 has unit bit/s, wanted s"),
    ({"lower": {w: 0}}, "lower names w, which is no state"),
    ({"jumps": (Jump(pi, {w: 0}),)}, "jump 0 names w, which is no state"),
    ({"jumps": (Jump(pi, {}),)}, "jump 0 changes no state"),
    ({"jumps": (Tick(1, {x: x}),)}, "jumps holds Tick.*; give Jump objects"),
    ({"ticks": (Tick(RTT, {w: 0}),)}, "tick 0 names w"),
    ({"initial": {w: 0}}, "initial names w"),
    ({"params": {w: stray}}, "parameter w is Z"),
    ({"params": {w: float("nan")}}, "parameter w is nan; give a finite number"),
    ({"params": {w: 2}, "limits": {w: 1}}, "parameter w is 2, but must be at most 1"),
    ({"limits": {stray: 1}}, "limits has Z: 1; give the largest value"),
    ({"limits": {w: "1"}}, "limits has w: '1'; give the largest value"),
    ({"params": {w: -1}}, "parameter w is -1, but must be positive"),
    ({"params": {w: "3 ms"}}, "parameter w is '3 ms', a time; give a rate"),
    ({"params": {"w": 1}}, "params has .w.: 1; give parameters by SymPy symbol"),
    ({"window": w}, "window is w; give one of its states"),
]
LINKS: list[tuple[dict[str, Any], str]] = [
    ({"queue": y}, "queue=y is no state"),
    ({"flow": {q: y - c}, "units": {q: "bit"}}, "the queue is a delay; its unit is bit"),
    ({"flow": {q: (y - c) / c / 2}}, r"wanted \(y - c\)/c"),
    ({"queue": None, "out": {"loss": (y - c) / y}}, "name the queue="),
    ({"queue": None, "out": {"drop": (y - c) / y}}, "'drop' is what does not enter"),
    ({"queue": None}, "needs a queue= or an output"),
    ({"out": {"rate": y}}, "'rate' is no output of a link; use loss or mark or price"),
    ({"out": {"factor": 1}}, "reports 'factor' without 'raise'"),
    ({"jumps": (Jump(q - 1, {q: 0}),)}, "jump 0 changes the queue q"),
]
OTHERS: list[tuple[Callable[[], Law], str]] = [
    (lambda: Source(""), "the name of a law is .*; give a line of text"),
    (lambda: replace(LDCC, flow={x: betta * x / RTT}), "betta in .*did you mean beta"),
    (
        lambda: replace(StaticAIMD, out={"rate": StaticAIMD.states[0] / RTT}),
        "has unit 1/s, wanted bit/s",
    ),
    (lambda: LDCC.with_utility(-w * log(x)), "is not increasing at x ="),
    (lambda: LDCC.with_utility(x**2 / w), "is not strictly concave at x ="),
    (lambda: LDCC.with_utility(stray * log(x)), "Z in "),
    (lambda: LDCC.with_utility(eta * log(x)), r"it adds .*s/bit"),
    (lambda: StaticReno.with_utility(w * log(x)), "maximises no utility"),
    (lambda: LDCC.averaged(intensity=pi / RTT), "has no jumps"),
    (lambda: fc.HTCP.averaged(intensity=pi / RTT), "jumps for . reasons"),
    (lambda: StaticAIMD.averaged(intensity=x_tau * pi), "flow of W mixes units"),
    (lambda: LDCC(betta=1), "no parameter 'betta': did you mean beta"),
    (lambda: CBR(gain=1), "CBR has no parameter 'gain'"),
    (lambda: LDCC(eta=0), "LDCC: parameter eta is 0, but must be positive"),
    (lambda: fc.HTCP(beta_min=0.9), "beta_min <= beta_max must hold, but beta_min is 0.9 and"),
    (lambda: fc.HTCP(beta_max=1.5), "beta_max is 1.5, but must be at most 1"),
    (lambda: fc.ECF(r_max=1e3), "r_min <= r_max must hold"),
    (lambda: fc.NADA(R_min=2e6), "R_min <= R_max must hold"),
    (lambda: fc.RED(min_th=0.12), "min_th < max_th must hold, but min_th is 0.12 and max_th"),
    (lambda: fc.DelayAIMD(cap=2), "cap is 2, but must be at most 1"),
]


def _refusals() -> Iterator[tuple[Callable[[], Law], str]]:
    yield from OTHERS
    yield from ((lambda g=given: a_source(**g), says) for given, says in SOURCES)
    yield from ((lambda g=given: a_link(**g), says) for given, says in LINKS)


def test_a_time_far_above_the_usual_one_is_asked_for_its_unit() -> None:
    with pytest.warns(
        FluidccWarning, match="15 s .0.015 s by default.; for 15 ms write target='15"
    ):
        law = fc.PIE(target=15)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fc.PIE(target="15 s").parameter("target") == law.parameter("target") == 15
        assert fc.PIE(target=0.9).parameter("target") == 0.9


def test_a_number_that_stands_alone_is_in_the_unit_of_its_place() -> None:
    """All of them beside one another: the rate doubles at 0.05 s and every 0.1 s from then on."""
    law = a_source(
        flow={x: 1e5}, lower={x: 1e3}, upper={x: 1e9}, initial={x: 1e6}, params={},
        units={x: "bit/s"}, ticks=[Tick(every=0.1, update={x: 2 * x}, phase=0.05)],
        jumps=[Jump(when=pi, reset={x: 1e6}, refractory=0.2)],
    )  # fmt: skip
    net = Network().link("l", DropTail, capacity=1e9, delay=0.01).flow("f", law, route=["l"])
    run = fc.simulate(net, 0.2, t_eval=[0.04, 0.16])
    assert run.rate.values.ravel() == pytest.approx([1.004e6, 2 * (2 * 1.005e6 + 1e4) + 1e3])
    np.testing.assert_allclose(fc.metrics.ticks(run).time, [0.05, 0.15], rtol=1e-15)


def test_a_period_that_is_a_number_is_one_that_is_a_parameter() -> None:
    (tick,) = fc.SampledLDCC.ticks
    law = replace(fc.SampledLDCC, ticks=(replace(tick, every=0.1, phase=0.1),))
    mine, theirs = (
        fc.dumbbell([one] * 2, {"capacity": "3 Mbit/s"}, rtt="50 ms")
        for one in (law, fc.SampledLDCC)
    )
    np.testing.assert_allclose(fc.equilibrium(mine).rate, fc.equilibrium(theirs).rate, rtol=1e-12)
    found, known = (fc.sampled_stability(net).multipliers for net in (mine, theirs))
    np.testing.assert_allclose(found, known, rtol=1e-9)


def test_the_recipe_for_the_smallest_delay_gives_it() -> None:
    d = symbols("d", nonnegative=True)
    flow, units = {x: 0, d: edot / (1 + edot)}, {x: "bit/s", d: "s"}
    law = a_source(flow=flow, lower={d: 0}, initial={x: 1e6, d: 0}, units=units, params={})
    spec = {"capacity": [(0, 8e5), (1, 2e6), (3, 8e5)]}
    run = fc.simulate(fc.dumbbell([law], spec, rtt=0.1), 5, samples=11)
    least = run.one_way_delay - run[f"{law.name}_d"]
    np.testing.assert_allclose(least, float(run.one_way_delay.min()), rtol=1e-6)


@pytest.mark.parametrize(("make", "says"), _refusals())
def test_refusals_name_the_law_and_the_culprit(make: Callable[[], Law], says: str) -> None:
    with pytest.raises(LawError, match=says):
        make()


def test_new_parameter_values() -> None:
    law = LDCC(w="30 kbit/s", T="50 ms")
    assert (law.parameter("w"), law.parameter("T"), law.parameter("beta")) == (30e3, 0.05, 0.1)
    assert law != LDCC
    assert law(w=20e3, T=0.1) == LDCC


def test_averaged_aimd_is_misra_gong_towsley() -> None:
    (W,) = StaticAIMD.states
    a, b = StaticAIMD.params
    published = a / (e + e_b) - b * W * x_tau * pi / packet
    assert simplify(unfold(StaticReno.flow[W]) - published) == 0
    assert StaticReno.jumps == ()
    assert StaticReno.lower == {W: 1}


def test_other_utility() -> None:
    rho = symbols("rho", positive=True)
    law = LDCC.with_utility(w**rho * x ** (1 - rho) / (1 - rho), params={rho: 2}, units={rho: "1"})
    more = eta / (e + e_b) * (w**rho * x ** (1 - rho) - w)
    assert simplify(unfold(law.flow[x] - LDCC.flow[x]) - more) == 0
    assert [str(s) for s in law.params] == ["w", "beta", "T", "eta", "rho"]
    assert law(rho=0.5).parameter("rho") == 0.5
    a, b = symbols("a b", positive=True)
    units = {a: "bit/s", b: "bit/s"}
    bare = PrimalDual.with_utility(a * log(x + b), params={a: 1e4, b: 1e5}, units=units)
    assert "w" in map(str, bare.params)  # the initial rate still refers to it


def test_a_law_cannot_be_changed() -> None:
    with pytest.raises(TypeError, match="cannot be changed"):
        LDCC.params[w] = 1  # type: ignore[index]
    with pytest.raises(AttributeError):
        LDCC.name = "other"  # type: ignore[misc]


@pytest.mark.slow
@LAWS
def test_equal_laws_are_the_same_object(law: Law) -> None:
    """So that a worker, which gets the same laws with every task, finds them in its caches."""
    for twin in (pickle.loads(pickle.dumps(law)), copy.copy(law), copy.deepcopy(law), law()):
        assert twin is law
    assert pickle.loads(cloudpickle.dumps(law)) is law
    renamed = replace(law, name="Other")
    assert renamed != law
    assert renamed.structure is not law.structure
    assert law.name in repr(law)
    for s, value in law.params.items():
        other = replace(law, params={**law.params, s: value * (1 - 1e-9)}) if value else law
        assert (other == law) == (not value)
        assert other.structure is law.structure


def test_a_law_is_made_with_the_arguments_that_editors_show() -> None:
    shown = [*inspect.signature(Source).parameters]
    assert shown[:3] == ["name", "flow", "out"]
    assert {*shown} - {*inspect.signature(Link).parameters} == {
        "doubts", "gain", "mean_of", "penalty", "steady", "threshold", "traffic", "utility",
        "window",
    }  # fmt: skip


def test_a_threshold_is_of_what_the_source_knows() -> None:
    with pytest.raises(LawError, match="the threshold depends on edot; give it in states"):
        replace(fc.PlainDelayAIMD, threshold=edot)


@pytest.mark.slow
def test_laws_that_nobody_has_are_forgotten() -> None:
    gone = [ref(LDCC(beta=0.7313 + k / 1000)) for k in range(50)]  # which no other test has
    gc.collect()
    assert sum(one() is not None for one in gone) <= 1


@cache
def drawn(row: str) -> None:
    """Rows that many laws have are drawn once."""
    from matplotlib.mathtext import MathTextParser

    MathTextParser("path").parse(f"${row}$")


@pytest.mark.slow
@LAWS
def test_mathtext_can_draw_every_row_and_every_let_has_one(law: Law) -> None:
    pytest.importorskip("matplotlib")
    text = law._repr_latex_()
    for v in {v for _, f in law.expressions() for v in f.atoms(Let)}:
        assert f"{formula(v)} &=" in text
    for row in text.split("\n")[1:-1]:
        row = row.removesuffix(r" \\").replace("&", "")
        row = row.replace(r"\text", r"\mathrm").replace(r"\quad", r"\ ")
        if "{cases}" not in row:  # which browsers draw and matplotlib does not
            drawn(row)


@pytest.mark.slow
@LAWS
def test_a_wrong_unit_is_caught(law: Law) -> None:
    """Of two symbols in a law's equations, which are others in each law, times s and times bit."""
    used = {s for _, f in law.expressions() for s in unfold(f).free_symbols} | set(law.flow)
    symbols_of = [s for s in (*law.states, *law.params) if s in used]
    for k, factor in enumerate(("s", "bit")):
        s = symbols_of[(len(law.name) + k) % len(symbols_of)]
        with pytest.raises(LawError, match=law.name):
            replace(law, units={**law.units, s: f"{law.units[s]}*{factor}"})


def test_a_wrong_unit_behind_a_step_is_caught() -> None:
    """The step is 0 wherever units are tried, as 1e-9 is far below the values taken."""
    x, w, decay, late = symbols("x w decay late", positive=True)
    leak = x * decay * Heaviside(Float("1e-9") - e / late)
    units = {x: "bit/s", w: "bit/s", decay: "1/s", late: "s"}
    params = {w: 1, decay: 1, late: 1}
    law = fc.Source("Leaky", {x: w / RTT - leak}, {"rate": x}, params, units, initial={x: 1})
    with pytest.raises(LawError, match="adds"):
        replace(law, units={**units, decay: "1"})


@pytest.mark.slow
@LAWS
def test_a_law_names_no_unused_parameters(law: Law) -> None:
    used = {s for _, f in law.expressions() for s in unfold(f).free_symbols}
    used |= {s for f in law.initial.values() for s in f.free_symbols}
    if law.name not in (OnOff.name, "Poisson"):  # they describe the random pattern
        assert set(law.params) <= used


def test_ticks_and_jumps_are_kept_and_shown() -> None:
    law = a_source(
        flow={x: 0}, ticks=(Tick(RTT, {x: x + w}),), jumps=(Jump(pi - 0.5, {x: x / 2}, RTT),)
    )
    text = law._repr_latex_()
    assert r"\text{every } \mathrm{RTT}" in text
    assert r"\text{, at most once per } \mathrm{RTT}" in text
    assert pickle.loads(pickle.dumps(law)) == law


def test_parameters_must_fit_one_another() -> None:
    low, high = symbols("low high", positive=True)

    def law(**more: Any) -> Source:
        return a_source(
            params={w: 2e4, low: 1, high: 2},
            units={x: "bit/s", w: "bit/s", low: "s", high: "s"},
            **more,
        )

    good = law(where=[low < high])
    assert good(low=1.5).parameter("low") == 1.5
    assert good(low=3, high=4).parameter("low") == 3
    says = "low < high must hold, but low is 2 and high is 2; change one of them"
    with pytest.raises(LawError, match=says):
        good(low=2)
    says = "give relations between parameters, which are w, low, high"
    for wrong in ("low < high", low, low < w * x, True):
        with pytest.raises(LawError, match=says):
            law(where=[wrong])
    with pytest.raises(LawError, match="where compares low < w"):
        law(where=[low < w])
