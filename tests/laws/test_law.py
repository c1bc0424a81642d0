"""Laws refuse what is wrong, by name, and are values."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from weakref import ref

import pytest
from sympy import Basic, Derivative, Eq, Function, Max, exp, log, simplify, symbols

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, LawError
from fluidcc.laws import Jump, Law, Link, Source, Tick
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.sources import AIMD, CBR, LDCC, OnOff, PrimalDual, Reno
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
REFUSALS: dict[str, tuple[Callable[[], Law], str]] = {
    "no name": (lambda: Source(""), "the name of a law is .*; give a line of text"),
    "flow is no mapping": (lambda: a_source(flow=x), "flow is x; give a mapping"),
    "not readable": (lambda: a_source(flow={x: "1 +"}), r"flow: x is .1 \+.; give an expression"),
    "a condition for an expression": (
        lambda: a_source(flow={x: x > 1}),
        "is x > 1, which is no expression",
    ),
    "stray symbol": (
        lambda: a_source(flow={x: stray / RTT}),
        "Z in the flow of x is neither .*declare it",
    ),
    "misspelt": (
        lambda: replace(LDCC, flow={x: betta * x / RTT}),
        "betta in the flow of x .*did you mean beta",
    ),
    "stray in a Let": (lambda: a_source(flow={x: Let("v", stray) / RTT}), "Z in the flow of x"),
    "stray in out": (lambda: a_source(out={"rate": stray}), "Z in output 'rate'"),
    "stray in a bound": (lambda: a_source(upper={x: stray}), "Z in the upper bound of x"),
    "stray in a jump": (
        lambda: a_source(jumps=(Jump(pi, {x: stray * x}),)),
        "Z in the reset of x in jump 0",
    ),
    "stray in a tick": (
        lambda: a_source(ticks=(Tick(stray, {x: x}),)),
        "Z in the period of tick 0",
    ),
    "stray in initial": (
        lambda: a_source(initial={x: e * w}),
        "e in the initial value of x is neither",
    ),
    "a link's signal in a source": (
        lambda: a_source(flow={x: x * (y - w) / w / RTT}),
        "y in the flow of x",
    ),
    "other assumptions": (
        lambda: a_source(flow={x: lonely / RTT}),
        "use the same symbol: there is one of that name",
    ),
    "two of a name": (
        lambda: a_source(params={w: 1, lonely: 1}),
        "two different symbols are called x",
    ),
    "state and parameter": (
        lambda: a_source(params={w: 1, x: 1}),
        "x is both a state and a parameter",
    ),
    "signal as parameter": (
        lambda: a_source(params={w: 1, e_b: 0.1}),
        "e_b is a signal that the network gives",
    ),
    "signal as state": (
        lambda: a_source(flow={x: x / RTT, e: 1}),
        "e is a signal .*cannot be a state",
    ),
    "Let as state": (lambda: a_source(flow={RTT: 1}), "states are symbols"),
    "unknown function": (
        lambda: a_source(flow={x: Function("f")(x)}),
        r"holds an unknown function, f\(x\)",
    ),
    "derivative": (
        lambda: a_source(flow={x: Derivative(x * e, e, evaluate=False)}),
        "holds a derivative",
    ),
    "no rate": (lambda: a_source(out={}), "needs its sending rate"),
    "unknown output": (
        lambda: a_source(out={"rate": x, "window": x}),
        "'window' is no output of a source; use rate",
    ),
    "unit missing": (lambda: a_source(units={x: "bit/s"}), "parameter w has no unit"),
    "unit of a state missing": (lambda: a_source(units={w: "bit/s"}), "state x has no unit"),
    "unit of a stranger": (
        lambda: a_source(units={x: "bit/s", w: "bit/s", T: "s"}),
        "units names T",
    ),
    "unit unreadable": (
        lambda: a_source(units={x: "bit/s", w: "furlong"}),
        "unit of w is given as 'furlong'",
    ),
    "unit with a prefix": (
        lambda: a_source(units={x: "bit/s", w: "kbit/s"}),
        "declare the base unit",
    ),
    "flow of wrong unit": (
        lambda: a_source(flow={x: x * (w / x - edot)}),
        r"x has unit bit/s, wanted bit/s\^2",
    ),
    "mixed units": (lambda: a_source(flow={x: x * (w / x - e) / RTT}), r"it adds .*-e \[s\]"),
    "mixed units in Max": (
        lambda: a_source(flow={x: Max(x, e) / RTT}),
        r"it (adds|compares) .*\[s\]",
    ),
    "unit in a function": (
        lambda: a_source(flow={x: x * exp(e) / RTT}),
        r"exp needs a number, not e \[s\]",
    ),
    "a bare number": (lambda: a_source(flow={x: x * (e - 0.1) / RTT**2}), r"it adds .*\[1\]"),
    "rate of wrong unit": (
        lambda: a_source(out={"rate": x * e}),
        "output 'rate' has unit bit, wanted bit/s",
    ),
    "forgot the packet size": (
        lambda: replace(AIMD, out={"rate": AIMD.states[0] / RTT}),
        "has unit 1/s, wanted bit/s",
    ),
    "bound of wrong unit": (
        lambda: a_source(lower={x: e}),
        "lower bound of x has unit s, wanted bit/s",
    ),
    "initial of wrong unit": (
        lambda: a_source(initial={x: w * e_b}),
        "initial value of x has unit bit, wanted bit/s",
    ),
    "reset of wrong unit": (
        lambda: a_source(jumps=(Jump(pi, {x: x * e}),)),
        "reset of x in jump 0 has unit bit",
    ),
    "refractory of wrong unit": (
        lambda: a_source(jumps=(Jump(pi, {x: x / 2}, x),)),
        "refractory time of jump 0 has",
    ),
    "period of wrong unit": (
        lambda: a_source(ticks=(Tick(x, {x: x}),)),
        "period of tick 0 has unit bit/s, wanted s",
    ),
    "bound of a stranger": (lambda: a_source(lower={w: 0}), "lower names w, which is no state"),
    "jump of a stranger": (
        lambda: a_source(jumps=(Jump(pi, {w: 0}),)),
        "jump 0 names w, which is no state",
    ),
    "jump of nothing": (lambda: a_source(jumps=(Jump(pi, {}),)), "jump 0 changes no state"),
    "not a jump": (
        lambda: a_source(jumps=(Tick(1, {x: x}),)),
        "jumps holds Tick.*; give Jump objects",
    ),
    "tick of a stranger": (lambda: a_source(ticks=(Tick(RTT, {w: 0}),)), "tick 0 names w"),
    "initial of a stranger": (lambda: a_source(initial={w: 0}), "initial names w"),
    "parameter is no number": (lambda: a_source(params={w: stray}), "parameter w is Z"),
    "parameter is NaN": (
        lambda: a_source(params={w: float("nan")}),
        "parameter w is nan; give a finite number",
    ),
    "parameter is above its limit": (
        lambda: a_source(params={w: 2}, limits={w: 1}),
        "parameter w is 2, but must be at most 1",
    ),
    "limit of no parameter": (
        lambda: a_source(limits={stray: 1}),
        "limits has Z: 1; give the largest value",
    ),
    "limit is text": (
        lambda: a_source(limits={w: "1"}),
        "limits has w: '1'; give the largest value",
    ),
    "parameter is negative": (
        lambda: a_source(params={w: -1}),
        "parameter w is -1, but must be positive",
    ),
    "parameter text": (
        lambda: a_source(params={w: "3 ms"}),
        "parameter w is '3 ms', a time; give a rate",
    ),
    "parameter by name": (
        lambda: a_source(params={"w": 1}),
        "params has .w.: 1; give parameters by SymPy symbol",
    ),
    "queue is no state": (lambda: a_link(queue=y), "queue=y is no state"),
    "queue in bits": (
        lambda: a_link(flow={q: y - c}, units={q: "bit"}),
        "the queue is a delay; its unit is bit",
    ),
    "queue's flow": (lambda: a_link(flow={q: (y - c) / c / 2}), r"wanted \(y - c\)/c"),
    "loss without queue": (
        lambda: a_link(queue=None, out={"loss": (y - c) / y}),
        "name the queue=",
    ),
    "link without output": (lambda: a_link(queue=None), "needs a queue= or an output"),
    "link output": (
        lambda: a_link(out={"rate": y}),
        "'rate' is no output of a link; use loss or mark or price",
    ),
    "utility falls": (lambda: LDCC.with_utility(-w * log(x)), "is not increasing at x ="),
    "utility convex": (lambda: LDCC.with_utility(x**2 / w), "is not strictly concave at x ="),
    "utility's stray": (lambda: LDCC.with_utility(stray * log(x)), "Z in "),
    "utility's unit": (lambda: LDCC.with_utility(eta * log(x)), r"it adds .*s/bit"),
    "no utility": (lambda: Reno.with_utility(w * log(x)), "maximises no utility"),
    "nothing to average": (lambda: LDCC.averaged(intensity=pi / RTT), "has no jumps"),
    "intensity of wrong unit": (
        lambda: AIMD.averaged(intensity=x_tau * pi),
        "flow of W mixes units",
    ),
}


@pytest.mark.parametrize(("make", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refusals_name_the_law_and_the_culprit(make: Callable[[], Law], message: str) -> None:
    with pytest.raises(LawError, match=message):
        make()


def test_initial_values_and_bounds_may_be_plain_numbers() -> None:
    law = a_source(initial={x: 1e5}, lower={x: 1e3}, upper={x: 1e9})
    net = Network().link("l", DropTail, capacity=2e6, delay=0.025).flow("a", law, route=["l"])
    assert net.flows["a"].initial["x"] == 1e5


def test_new_parameter_values() -> None:
    law = LDCC(w="30 kbit/s", T="50 ms")
    assert (law.parameter("w"), law.parameter("T"), law.parameter("beta")) == (30e3, 0.05, 0.1)
    assert law != LDCC
    assert law(w=20e3, T=0.1) == LDCC
    with pytest.raises(LawError, match="no parameter 'betta': did you mean beta"):
        LDCC(betta=1)
    with pytest.raises(LawError, match="CBR has no parameter 'gain'"):
        CBR(gain=1)
    with pytest.raises(LawError, match="LDCC: parameter eta is 0, but must be positive"):
        LDCC(eta=0)


def test_what_a_call_lacks_is_said() -> None:
    with pytest.raises(
        InvalidInput, match=r"averaged\(\) lacks intensity; give intensity \(Expr, such as"
    ):
        AIMD.averaged()  # type: ignore[call-arg]


def test_averaged_aimd_is_misra_gong_towsley() -> None:
    (W,) = AIMD.states
    a, b = AIMD.params
    published = a / (e + e_b) - b * W * x_tau * pi / packet
    assert simplify(unfold(Reno.flow[W]) - published) == 0
    assert Reno.jumps == ()
    assert Reno.lower == {W: 1}


def test_other_utility() -> None:
    rho = symbols("rho", positive=True)
    law = LDCC.with_utility(w**rho * x ** (1 - rho) / (1 - rho), params={rho: 2}, units={rho: "1"})
    assert (
        simplify(
            unfold(law.flow[x] - LDCC.flow[x]) - eta / (e + e_b) * (w**rho * x ** (1 - rho) - w)
        )
        == 0
    )
    assert [str(s) for s in law.params] == ["w", "beta", "T", "eta", "rho"]
    assert law(rho=0.5).parameter("rho") == 0.5
    a, b = symbols("a b", positive=True)
    bare = PrimalDual.with_utility(
        a * log(x + b), params={a: 1e4, b: 1e5}, units={a: "bit/s", b: "bit/s"}
    )
    assert "w" in map(str, bare.params)  # the initial rate still refers to it


def test_a_law_cannot_be_changed() -> None:
    with pytest.raises(TypeError, match="cannot be changed"):
        LDCC.params[w] = 1  # type: ignore[index]
    with pytest.raises(AttributeError):
        LDCC.name = "other"  # type: ignore[misc]


@LAWS
def test_laws_are_values(law: Law) -> None:
    for twin in (pickle.loads(pickle.dumps(law)), copy.copy(law), copy.deepcopy(law), law()):
        assert twin == law
        assert hash(twin) == hash(law)
        assert twin.switches == law.switches
    assert replace(law, name="Other") != law
    assert len({law, law()}) == 1
    assert law.name in repr(law)


def test_a_structure_comes_out_of_a_pickle_without_its_hash() -> None:
    """Which is another one in every process, since those of names are."""
    structure = LDCC.structure
    assert hash(structure) == hash(tuple(structure)) == hash(LDCC(beta=0.2).structure)
    twin = pickle.loads(pickle.dumps(structure))
    assert not vars(twin)
    assert twin == structure


@LAWS
def test_equal_laws_are_compared_by_their_expressions_only_once(
    law: Law, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a worker, which gets the same laws with every task, finds them in its caches at
    once.
    """
    first, second = (pickle.loads(pickle.dumps(law)) for _ in range(2))
    renamed = replace(law, name="Other")
    assert first is not law
    assert first == law
    assert law == second
    assert first.structure == law.structure
    assert law.structure == second.structure

    def compared(self: Any, other: Any) -> bool:
        raise AssertionError("expressions are compared again")

    monkeypatch.setattr(Basic, "__eq__", compared)
    assert first == second == law == first
    assert first.structure == second.structure == law.structure == first.structure
    monkeypatch.undo()
    assert first != renamed != second
    assert renamed.structure != first.structure
    assert first.structure == tuple(law.structure)


@pytest.mark.parametrize("first", [True, False])
def test_a_law_keeps_none_of_those_that_it_was_compared_with(first: bool) -> None:
    """Of many tasks, each with laws of its own; but the one that has been longest in use."""
    law, gone = pickle.loads(pickle.dumps(LDCC)), []
    for _ in range(5):
        twin = pickle.loads(pickle.dumps(LDCC))
        assert (law == twin) if first else (twin == law)
        gone.append(ref(twin))
        del twin
    gc.collect()
    assert sum(one() is not None for one in gone) <= 1


@LAWS
def test_latex_is_balanced_and_names_every_state_and_let(law: Law) -> None:
    text = law._repr_latex_()
    assert text.startswith("$$")
    assert text.endswith("$$")
    assert text.count("{") == text.count("}")
    assert text.count(r"\left") - text.count(r"\leftarrow") == text.count(r"\right")
    assert text.count(r"\begin") == text.count(r"\end") == 1
    lets = {v for _, f in law.expressions() for v in f.atoms(Let)}
    assert (r"\text{where}" in text) == bool(lets)
    for v in lets:
        assert f"{v} &=" in text


@LAWS
def test_mathtext_can_draw_every_row(law: Law) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.mathtext import MathTextParser

    rows = law._repr_latex_().split("\n")[1:-1]
    for row in rows:
        row = (
            row.removesuffix(r" \\")
            .replace("&", "")
            .replace(r"\text", r"\mathrm")
            .replace(r"\quad", r"\ ")
        )
        MathTextParser("path").parse(f"${row}$")


@LAWS
def test_a_wrong_unit_is_caught(law: Law) -> None:
    """Mutation: multiply the unit of any symbol that a law's equations use, and the law is
    refused.
    """
    used = {s for _, f in law.expressions() for s in unfold(f).free_symbols} | set(law.flow)
    for s in (*law.states, *law.params):
        if s in used:
            for factor in ("s", "bit"):
                with pytest.raises(LawError, match=law.name):
                    replace(law, units={**law.units, s: f"{law.units[s]}*{factor}"})


@LAWS
def test_a_law_names_no_unused_parameters(law: Law) -> None:
    used = {s for _, f in law.expressions() for s in unfold(f).free_symbols}
    used |= {s for f in law.initial.values() for s in f.free_symbols}
    drawn = (
        set(law.params) if law.name in (OnOff.name, "Poisson") else set()
    )  # these describe the random pattern
    assert set(law.params) - used <= drawn


def test_ldcc_is_equation_15() -> None:
    v = beta * Max(e - T, 0) / (e + e_b)
    assert simplify(unfold(LDCC.flow[x]) - eta / (e + e_b) * x * (w / x - v - edot - pi)) == 0


def test_droptail_is_equations_2_and_4() -> None:
    assert Eq(DropTail.flow[DropTail.queue], (y - c) / c)
    assert DropTail.out["loss"] == (y - c) / y


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
    with pytest.raises(
        LawError, match="low < high must hold, but low is 2 and high is 2; change one of them"
    ):
        good(low=2)
    for wrong in ("low < high", low, low < w * x, True):
        with pytest.raises(
            LawError, match="give relations between parameters, which are w, low, high"
        ):
            law(where=[wrong])
    with pytest.raises(LawError, match="where compares low < w"):
        law(where=[low < w])


@pytest.mark.parametrize(
    ("law", "wrong", "says"),
    [
        (
            fc.HTCP,
            {"beta_min": 0.9},
            "beta_min <= beta_max must hold, but beta_min is 0.9 and beta_max is 0.8",
        ),
        (fc.HTCP, {"beta_max": 1.5}, "beta_max is 1.5, but must be at most 1"),
        (fc.ECF, {"r_max": 1e3}, "r_min <= r_max must hold"),
        (fc.NADA, {"R_min": 2e6}, "R_min <= R_max must hold"),
        (
            fc.RED,
            {"min_th": 0.12},
            "min_th < max_th must hold, but min_th is 0.12 and max_th is 0.12",
        ),
        (fc.DelayAIMD, {"cap": 2}, "cap is 2, but must be at most 1"),
    ],
)
def test_laws_refuse_bounds_the_wrong_way_round(
    law: Any, wrong: dict[str, float], says: str
) -> None:
    with pytest.raises(LawError, match=says):
        law(**wrong)
