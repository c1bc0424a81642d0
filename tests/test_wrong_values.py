"""Values that no argument can take, put into every argument of the public functions: each is
answered by a sentence.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from sympy import symbols

import fluidcc as fc
from fluidcc.base import errors

x, g = symbols("x g", positive=True)


class Odd:
    def __repr__(self) -> str:
        return "<odd>"


WRONG: dict[str, Any] = {
    "None": None, "True": True, "text": "abc", "empty text": "", "nan": math.nan, "-inf": -math.inf,
    "-1": -1,
    "object": Odd(), "array of nan": np.array([math.nan]), "list of None": [None],
    "wrong unit": "3 Mbit",
    "complex": 1j, "bytes": b"x", "huge": 10**400, "ragged": [[1, 2], [3]], "nan as text": "nan",
    "truths": [True, False], "empty dict": {}, "empty list": [], "empty array": np.array([]),
    "inf": math.inf,
}  # fmt: skip
NONE, EMPTY = {"None"}, {"empty dict", "empty list", "empty array"}
NAMES = {"text", "wrong unit", "nan as text"}


@cache
def net() -> fc.Network:
    links = fc.Network().link("l", fc.DropTail, capacity=3e6, delay=0.025, buffer="100 packets")
    return links.flow("a", fc.LDCC, route=["l"])


@cache
def run() -> Any:
    return fc.simulate(net(), 0.5, samples=6)


@cache
def report() -> Any:
    return fc.stability(net())


def law(**changes: Any) -> Any:
    given: dict[str, Any] = {
        "flow": {x: g * x},
        "out": {"rate": x},
        "params": {g: 1},
        "units": {x: "bit/s", g: "1/s"},
    }
    return fc.Source(**{"name": "Mine", **given, **changes})


def price(**changes: Any) -> Any:
    return fc.Link(
        **{"name": "L", "out": {"price": g}, "params": {g: 1}, "units": {g: "1"}, **changes}
    )


def jump(**changes: Any) -> Any:
    return law(jumps=(fc.Jump(**{"when": x - 1, "reset": {x: x / 2}, **changes}),))


def tick(**changes: Any) -> Any:
    return law(ticks=(fc.Tick(**{"every": 1, "update": {x: x / 2}, **changes}),))


def link(**changes: Any) -> Any:
    return fc.Network().link(**{"name": "l", "law": fc.DropTail, "capacity": 1e6, **changes})


def flow(**changes: Any) -> Any:
    return link(delay=0.01).flow(**{"name": "a", "law": fc.LDCC, "route": ["l"], **changes})


def dde(**changes: Any) -> Any:
    given = {"fun": lambda t, y, Z: -Z[:, 0], "t_span": (0, 1), "history": 1.0, "lags": [1.0]}
    return fc.solve_dde(**{**given, **changes})


def interval(**changes: Any) -> Any:
    given = {
        "k": 0,
        "l": 1,
        "lam": 1,
        "sigma": 0.5,
        "capacity": 10,
        "n": 2,
        "intervals": 5,
        "initial": [1, 2],
    }
    return fc.synchronized(**{**given, **changes})


def block(**changes: Any) -> Any:
    return fc.DelayLTI(**{"A": [[-1.0]], "B": [[1.0]], "C": [[1.0]], "D": [[0.0]], **changes})


def lag(**changes: Any) -> Any:
    return fc.DelayLTI.transfer(**{"num": [1.0], "den": [1.0, 1.0], "delay": 0.1, **changes})


def with_net(function: Callable[..., Any], **given: Any) -> Callable[..., Any]:
    return lambda **changes: function(**{"net": net(), **given, **changes})


# What is called, and of each argument which of the wrong values it does take: None and what is
# empty, mostly.
ARGUMENTS: list[tuple[Callable[..., Any], dict[str, set[str]]]] = [
    (law, {"name": NAMES, "flow": set(), "out": set(), "params": set(), "units": set(),
    "lower": {"empty dict"},
           "upper": {"empty dict"}, "jumps": {"empty list"}, "ticks": {"empty list"},
           "claims": {"empty dict"},
           "ref": NAMES | {"empty text"}, "initial": {"empty dict"}, "utility": NONE}),
    (price, {"name": NAMES, "flow": {"empty dict"}, "out": set(), "params": set(), "units": set(),
    "queue": NONE}),
    (jump, {"when": set(), "reset": set(), "refractory": set(), "once": {"True"}}),
    (tick, {"every": set(), "update": set(), "phase": NONE}),
    (lambda **v: fc.Let(**{"name": "v", "definition": x, **v}),
     {"name": NAMES, "definition": {"nan", "inf", "-inf", "-1", "huge", "complex"}}),
    (lambda **v: fc.LDCC(**v), {"beta": set()}),
    (lambda **v: fc.count_packets(**{"law": fc.RED, "mean": 6e3, **v}),
     {"law": set(), "mean": {"wrong unit"}, "assumed": {"wrong unit"}}),
    (lambda **v: fc.marked_by_bytes(**{"law": fc.Reno, **v}), {"law": set(),
    "mean": {"wrong unit"}}),
    (lambda utility: fc.LDCC.with_utility(utility), {"utility": set()}),
    (lambda name: fc.LDCC.parameter(name), {"name": set()}),
    (link, {"name": NAMES, "law": set(), "capacity": set(), "delay": set(),
    "buffer": NONE | {"wrong unit", "inf"},
            "initial": NONE | {"empty dict"}, "packet": {"wrong unit"}}),
    (flow, {"name": NAMES, "law": set(), "route": set(), "start": NONE | {"-inf", "list of None"},
    "return_delay": NONE,
            "stop": NONE | {"inf", "list of None"}, "access_delay": set(), "packet": {"wrong unit"},
            "initial": NONE | {"empty dict"}, "pattern": NONE}),
    (lambda flow: net().base_rtt(flow), {"flow": set()}),
    (lambda name: net().with_link(name), {"name": set()}),
    (lambda kind: net().given(kind, "a"), {"kind": set()}),
    (lambda **v: fc.dumbbell(**{"flows": [fc.LDCC], "link": {"capacity": 1e6, "delay": 0.01}, **v}),
     {"flows": EMPTY, "link": set(), "rtt": NONE}),
    (lambda **v: fc.parking_lot(**{"long": [fc.LDCC], "cross": [fc.LDCC], "link": {"capacity": 1e6},
    **v}),
     {"long": EMPTY, "cross": set(), "link": set()}),
    (lambda **v: fc.two_queues(**{
        "udp": [fc.CBR], "tcp": [fc.LDCC], "udp_link": {"capacity": 1e6}, "tcp_link": {}, **v}),
     {"udp": EMPTY, "tcp": EMPTY, "udp_link": set(), "tcp_link": {"empty dict"}}),
    (with_net(fc.simulate, until=0.01), {
        "net": set(), "until": set(), "rtol": set(), "atol": set(), "delays": set(),
        "frozen_at": NONE,
        "samples": set(), "t_eval": NONE, "seed": set(), "first_step": NONE, "max_step": {"inf"},
        "engine": set(),
        "restart": NONE, "progress": NONE | {"True"}}),
    (with_net(fc.compile), {"net": set(), "delays": set()}),
    (with_net(fc.equilibrium), {"net": set(), "at": {"inf"}}),
    (with_net(fc.hold_trackers), {"net": set()}),
    (with_net(fc.num.solve), {"net": set(), "at": {"inf"}}),
    (with_net(fc.linearize), {"net": set(), "loop": set(), "delays": set(), "at": {"inf"}}),
    (with_net(fc.stability), {"net": set(), "delays": set(), "at": {"inf"}, "roots": set(),
    "certify": {"True"}}),
    (with_net(fc.stability_boundary, name="a.eta"), {
        "net": set(), "name": set(), "bounds": NONE, "along": NONE, "along_bounds": NONE,
        "delays": set()}),
    (with_net(fc.sampled_stability, period=0.1), {"net": set(), "period": NONE, "at": {"inf"}}),
    (
        with_net(fc.limit_cycle),
        {"net": set(), "tol": set(), "rtol": set(), "until": set(), "max_steps": set()},
    ),
    (interval, {"k": {"-1"}, "l": {"-1"}, "lam": set(), "sigma": set(), "capacity": set(),
    "n": set(), "initial": NONE,
                "intervals": set(), "hears": set(), "delay": set(), "missed": set(),
                "floor": {"-1"}, "seed": set(),
                "exact": {"True"}, "keep": {"True"}}),
    (dde, {"fun": set(), "t_span": set(), "history": {"-1"}, "lags": {"empty list", "empty array"},
    "method": set(),
           "t_eval": NONE | {"empty list", "empty array"}, "dense_output": {"True"},
           "events": NONE | EMPTY,
           "jumps": NONE | EMPTY, "switches": NONE | EMPTY, "args": NONE | EMPTY | {"empty text"},
           "rtol": set(),
           "atol": set(), "max_step": {"inf"}, "first_step": NONE, "max_steps": set(),
           "breaking_points": {"-1", "empty list", "empty array"}, "max_order": NONE}),
    (block, {"A": {"-1"}, "B": {"-1"}, "C": {"-1"}, "D": {"-1"}, "delays": {"empty list",
    "empty array"},
             "states": {"empty list"}, "inputs": {"empty list"}, "outputs": {"empty list"}}),
    (lag, {"num": {"-1", "empty list", "empty array"}, "den": {"-1"}, "delay": set()}),
    (lambda omega: lag().frequency_response(omega), {"omega": {"-1", "empty list", "empty array"}}),
    (lambda t: lag().step(t), {"t": {"empty list", "empty array"}}),
    (lambda **v: lag().feedback().roots(**v), {"count": NONE, "region": NONE}),
    (lambda other: lag().append(other), {"other": set()}),
    (lambda other: lag().feedback(other), {"other": NONE | {"-1"}}),
    (lambda back: lag().connect(back), {"back": {"-1"}}),
    (lambda extra: lag().delayed(extra), {"extra": set()}),
    (lambda **v: lag().to_control(**v), {"pade": set()}),
    (lambda rate: fc.metrics.jain(rate), {"rate": {"array of nan"}}),  # of a flow that is off
    (lambda **v: fc.metrics.mean(run().rate, **v), {"start": NONE, "stop": NONE}),
    (lambda **v: fc.metrics.windowed_mean(run().rate, **v), {"window": set()}),
    (lambda **v: fc.metrics.settling_time(run().rate, **v), {
        "target": NONE | {"-1"}, "tolerance": set(), "start": {"-1"}}),
    (lambda result: fc.metrics.loss(result), {"result": set()}),
    (lambda net: fc.metrics.max_min_rates(net), {"net": set()}),
    (lambda rate: fc.metrics.is_max_min_fair(rate, net()), {"rate": set()}),
    (lambda **v: fc.plot.timeseries(**{"ds": run(), **v}), {
        "ds": set(), "variables": set(), "flows": NONE | EMPTY, "links": NONE | EMPTY, "ax": NONE}),
    (lambda **v: fc.plot.bode(**{"of": report(), **v}), {"of": set(), "low": NONE, "high": NONE}),
    (lambda **v: fc.plot.nyquist(**{"of": report(), **v}), {"of": set(), "reach": set()}),
    (lambda **v: fc.plot.root_map(**{"of": report(), **v}), {"of": set(), "count": set()}),
    (lambda **v: fc.plot.phase_plane(**v), {"ds": set()}),
    (lambda **v: fc.plot.convergence_plane(**{"rates": [[1, 2]], "capacity": 1, **v}),
     {"rates": set(), "capacity": set()}),
    (lambda **v: fc.plot.stability_chart(**v), {"curves": set()}),
    (lambda **v: fc.plot.claims(**v), {"table": set()}),
    (lambda **v: fc.claims.table(**{"paper": "ldcc", "only": "(18)", **v}),
    {"progress": NONE | {"True"}}),
    (lambda paper: fc.claims.table(paper, only="(18)"), {"paper": NONE}),
    (lambda only: fc.claims.table("ldcc", only=only), {"only": NONE}),
    (lambda where: fc.prove(x - x, where=where), {"where": EMPTY}),
    (lambda path: fc.Scenario.load(path), {"path": set()}),
    (lambda text: fc.Scenario.loads(text), {"text": set()}),
    (lambda changes: fc.Scenario.load("p1", changes), {"changes": NONE | {"empty dict"}}),
    (lambda name: fc.scenarios[name], {"name": set()}),
    (lambda name: report().of_flow(name), {"name": set()}),
    (lambda C: fc.formulas.gcc.queue(C), {"C": EMPTY}),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _no_figure_stays() -> Iterator[None]:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def _cases() -> list[Any]:
    return [
        pytest.param(call, name, taken, id=f"{k}-{name}")
        for k, (call, arguments) in enumerate(ARGUMENTS)
        for name, taken in arguments.items()
    ]


@pytest.mark.parametrize(("call", "name", "taken"), _cases())
def test_wrong_values_are_answered_by_a_sentence(
    call: Callable[..., Any], name: str, taken: set[str]
) -> None:
    for label, value in WRONG.items():
        if label in taken:
            continue
        with pytest.raises(
            errors.FluidccError
        ) as caught:  # which value it was stands in the locals of a failure
            call(**{name: value})
        text = str(caught.value)
        assert isinstance(caught.value, ValueError | ArithmeticError | NotImplementedError), label
        assert "\n" not in text, label
        assert 20 < len(text) < 400, (label, text)


def _public() -> list[tuple[str, Any]]:
    rooms = {"fc": fc, "metrics": fc.metrics, "plot": fc.plot, "num": fc.num, "claims": fc.claims}
    found = [
        (f"{room}.{name}", getattr(module, name))
        for room, module in rooms.items()
        for name in module.__all__
    ]
    return [(name, value) for name, value in found if inspect.isfunction(value)]


@pytest.mark.parametrize(("name", "function"), _public(), ids=[name for name, _ in _public()])
def test_calls_that_do_not_fit_are_answered_by_a_sentence(
    name: str, function: Callable[..., Any]
) -> None:
    parameters = inspect.signature(function).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        with pytest.raises(errors.InvalidCall, match=r"\(\) has no argument 'nonsense'; "):
            function(nonsense=1)
    if any(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters):
        with pytest.raises(errors.InvalidCall, match=r"\(\) lacks .*; give "):
            function()


@pytest.mark.parametrize("kind", [fc.Source, fc.Link, fc.Jump, fc.Tick, fc.DelayLTI, fc.Scenario])
def test_what_is_made_without_its_arguments_says_which(kind: Any) -> None:
    with pytest.raises(errors.InvalidCall, match=rf"{kind.__name__}\(\) lacks .*; give "):
        kind()
    with pytest.raises(
        errors.InvalidCall, match=rf"{kind.__name__}\(\) has no argument 'nonsense'"
    ):
        kind(nonsense=1)
