"""Wrong inputs of every kind, from Python, TOML and the shell: one sentence each."""

import inspect
import math
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sympy import Function, Matrix, symbols

import fluidcc
from fluidcc.analysis.boundary import Boundary
from fluidcc.analysis.linearize import LinearNetwork
from fluidcc.analysis.report import Sensitivities, StabilityReport
from fluidcc.base import errors
from fluidcc.base.arguments import brief, shown
from fluidcc.base.errors import FluidccError
from fluidcc.cli import main
from fluidcc.cli.sweep_files import load_sweep
from fluidcc.equilibria.result import Equilibrium
from fluidcc.numerics.dde.result import DdeResult
from fluidcc.papers.ldcc.undelayed import Undelayed
from fluidcc.papers.tables import Table

fc: Any = fluidcc  # given here what its types forbid
x, g = symbols("x g", positive=True)
nan, inf = math.nan, math.inf


class Odd:
    def __repr__(self) -> str:
        return "<odd>"


WRONG: dict[str, Any] = {
    "None": None, "True": True, "text": "abc", "empty text": "", "nan": nan, "-inf": -inf, "-1": -1,
    "object": Odd(), "array of nan": np.array([nan]), "list of None": [None], "inf": inf,
    "wrong unit": "3 Mbit", "complex": 1j, "bytes": b"x", "huge": 10**400, "ragged": [[1, 2], [3]],
    "nan as text": "nan", "truths": [True, False], "empty dict": {}, "empty list": [],
    "empty array": np.array([]),
}  # fmt: skip
NONE, EMPTY = {"None"}, {"empty dict", "empty list", "empty array"}
NAMES = {"text", "wrong unit", "nan as text"}


@cache
def net() -> fc.Network:
    link = {"name": "l", "capacity": 3e6, "delay": 0.025, "buffer": "100 packets"}
    return fc.dumbbell({"a": fc.LDCC}, link)


@cache
def run() -> Any:
    return fc.simulate(net(), 0.5, samples=6)


@cache
def report() -> Any:
    return fc.stability(net())


def law(**changes: Any) -> Any:
    given: dict[str, Any] = {"flow": {x: g * x}, "out": {"rate": x}, "params": {g: 1}}
    return fc.Source(**{"name": "Mine", "units": {x: "bit/s", g: "1/s"}, **given, **changes})


def price(**changes: Any) -> Any:
    given = {"name": "L", "out": {"price": g}, "params": {g: 1}, "units": {g: "1"}}
    return fc.Link(**{**given, **changes})


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
    given = {"k": 0, "l": 1, "lam": 1, "sigma": 0.5, "capacity": 10, "n": 2, "initial": [1, 2]}
    return fc.synchronized(**{**given, "intervals": 5, **changes})


def block(**changes: Any) -> Any:
    return fc.DelayLTI(**{"A": [[-1.0]], "B": [[1.0]], "C": [[1.0]], "D": [[0.0]], **changes})


def lag(**changes: Any) -> Any:
    return fc.DelayLTI.transfer(**{"num": [1.0], "den": [1.0, 1.0], "delay": 0.1, **changes})


def given(function: Callable[..., Any], **known: Any) -> Callable[..., Any]:
    return lambda **changes: function(**{**known, **changes})


def with_net(function: Callable[..., Any], **known: Any) -> Callable[..., Any]:
    return lambda **changes: function(**{"net": net(), **known, **changes})


def swept(grid: Any = None, measure: Any = "stable", **given: Any) -> Any:
    return fc.sweep(net(), {"beta": [0.1]} if grid is None else grid, measure, **given)


# What is called, its arguments, and of some which of the wrong values they do take: None and what
# is empty, mostly.
ARGUMENTS: list[tuple[Callable[..., Any], str, dict[str, set[str]]]] = [
    (law, "flow out params units", {"name": NAMES, "lower": {"empty dict"},
     "upper": {"empty dict"}, "jumps": {"empty list"}, "ticks": {"empty list"},
     "claims": {"empty dict"}, "ref": NAMES | {"empty text"}, "initial": {"empty dict"},
     "utility": NONE}),
    (price, "out params units", {"name": NAMES, "flow": {"empty dict"}, "queue": NONE}),
    (jump, "when reset refractory", {"once": {"True"}}),
    (tick, "every update", {"phase": NONE}),
    (given(fc.Let, name="v", definition=x), "", {"name": NAMES,
     "definition": {"nan", "inf", "-inf", "-1", "huge", "complex"}}),
    (fc.LDCC, "beta", {}),
    (given(fc.count_packets, law=fc.RED, mean=6e3), "law", {"mean": {"wrong unit"},
     "assumed": {"wrong unit"}}),
    (given(fc.marked_by_bytes, law=fc.StaticReno), "law", {"mean": {"wrong unit"}}),
    (fc.LDCC.with_utility, "utility", {}),
    (fc.LDCC.parameter, "name", {}),
    (link, "law capacity delay", {"name": NAMES, "buffer": NONE | {"wrong unit", "inf"},
     "initial": NONE | {"empty dict"}, "packet": {"wrong unit"}}),
    (flow, "law route access_delay", {"name": NAMES, "start": NONE | {"-inf", "list of None"},
     "return_delay": NONE, "stop": NONE | {"inf", "list of None"}, "packet": {"wrong unit"},
     "initial": NONE | {"empty dict"}, "pattern": NONE}),
    (lambda flow: net().base_rtt(flow), "flow", {}),
    (lambda name: net().with_link(name), "name", {}),
    (lambda kind: net().given(kind, "a"), "kind", {}),
    (given(fc.dumbbell, flows=[fc.LDCC], link={"capacity": 1e6, "delay": 0.01}), "link",
     {"flows": EMPTY, "rtt": NONE}),
    (given(fc.parking_lot, long=[fc.LDCC], cross=[fc.LDCC], link={"capacity": 1e6}), "cross link",
     {"long": EMPTY}),
    (given(fc.two_queues, udp=[fc.CBR], tcp=[fc.LDCC], udp_link={"capacity": 1e6}, tcp_link={}),
     "udp_link", {"udp": EMPTY, "tcp": EMPTY, "tcp_link": {"empty dict"}}),
    (with_net(fc.simulate, until=0.01), "net until rtol atol delays samples seed engine",
     {"frozen_at": NONE, "t_eval": NONE, "first_step": NONE, "max_step": {"inf"}, "restart": NONE,
     "progress": NONE | {"True"}}),
    (with_net(fc.compile), "net delays", {}),
    (with_net(fc.equilibrium), "net", {"at": {"inf"}}),
    (with_net(fc.hold_trackers), "net", {}),
    (with_net(fc.num.solve), "net", {"at": {"inf"}}),
    (with_net(fc.linearize), "net loop delays", {"at": {"inf"}}),
    (with_net(fc.stability), "net delays roots", {"at": {"inf"}, "certify": {"True"}}),
    (with_net(fc.stability_boundary, name="a.eta"), "net name delays", {"bounds": NONE,
     "along": NONE, "along_bounds": NONE}),
    (with_net(fc.sampled_stability, period=0.1), "net", {"period": NONE, "at": {"inf"}}),
    (with_net(fc.limit_cycle), "net", {}),
    (interval, "lam sigma capacity n intervals hears delay missed seed", {"k": {"-1"}, "l": {"-1"},
     "initial": NONE, "floor": {"-1"}, "exact": {"True"}, "keep": {"True"}}),
    (dde, "fun t_span method rtol atol max_steps", {"history": {"-1"},
     "lags": {"empty list", "empty array"}, "t_eval": NONE | {"empty list", "empty array"},
     "dense_output": {"True"}, "events": NONE | EMPTY, "jumps": NONE | EMPTY,
     "switches": NONE | EMPTY, "args": NONE | EMPTY | {"empty text"}, "max_step": {"inf"},
     "first_step": NONE, "breaking_points": {"-1", "empty list", "empty array"},
     "max_order": NONE}),
    (block, "", {"A": {"-1"}, "B": {"-1"}, "C": {"-1"}, "D": {"-1"},
     "delays": {"empty list", "empty array"}, "states": {"empty list"}, "inputs": {"empty list"},
     "outputs": {"empty list"}}),
    (lag, "delay", {"num": {"-1"}, "den": {"-1"}}),
    (lambda omega: lag().frequency_response(omega), "",
     {"omega": {"-1", "empty list", "empty array"}}),
    (lambda t: lag().step(t), "", {"t": {"empty list", "empty array"}}),
    (lambda **v: lag().feedback().roots(**v), "", {"count": NONE, "region": NONE}),
    (lambda other: lag().append(other), "other", {}),
    (lambda other: lag().feedback(other), "", {"other": NONE | {"-1"}}),
    (lambda back: lag().connect(back), "", {"back": {"-1"}}),
    (lambda extra: lag().delayed(extra), "extra", {}),
    (lambda **v: lag().to_control(**v), "pade", {}),
    (lambda rate: fc.metrics.jain(rate), "", {"rate": {"array of nan"}}),
    (lambda **v: fc.metrics.mean(run().rate, **v), "", {"start": NONE, "stop": NONE}),
    (lambda **v: fc.metrics.windowed_mean(run().rate, **v), "window", {}),
    (lambda **v: fc.metrics.settling_time(run().rate, **v), "tolerance", {"target": NONE | {"-1"},
     "start": {"-1"}}),
    (lambda result: fc.metrics.loss(result), "result", {}),
    (lambda net: fc.metrics.max_min_rates(net), "net", {}),
    (lambda rate: fc.metrics.is_max_min_fair(rate, net()), "rate", {}),
    (lambda **v: fc.plot.timeseries(**{"ds": run(), **v}), "ds variables", {"flows": NONE | EMPTY,
     "links": NONE | EMPTY, "ax": NONE}),
    (lambda **v: fc.plot.bode(**{"of": report(), **v}), "of", {"low": NONE, "high": NONE}),
    (lambda **v: fc.plot.nyquist(**{"of": report(), **v}), "of reach", {}),
    (lambda **v: fc.plot.root_map(**{"of": report(), **v}), "of count", {}),
    (fc.plot.phase_plane, "ds", {}),
    (given(fc.plot.convergence_plane, rates=[[1, 2]], capacity=1), "rates capacity", {}),
    (fc.plot.stability_chart, "curves", {}),
    (fc.plot.claims, "table", {}),
    (given(fc.claims.table, paper="ldcc", only="(18)"), "", {"progress": NONE | {"True"}}),
    (lambda paper: fc.claims.table(paper, only="(18)"), "", {"paper": NONE}),
    (lambda only: fc.claims.table("ldcc", only=only), "", {"only": NONE}),
    (lambda where: fc.prove(x - x, where=where), "", {"where": EMPTY}),
    (lambda path: fc.Scenario.load(path), "path", {}),
    (lambda text: fc.Scenario.loads(text), "text", {}),
    (lambda changes: fc.Scenario.load("p1", changes), "", {"changes": NONE | {"empty dict"}}),
    (lambda name: fc.scenarios[name], "name", {}),
    (lambda name: report().of_flow(name), "name", {}),
    (lambda t: fc.formulas.gcc.queue(t, g=0.1), "", {"t": EMPTY}),
]  # fmt: skip
# Arguments whose sentence names neither them nor the value, but the part of it that is wrong.
PARTS = {"when", "reset", "every", "update", "phase", "flow", "flows", "udp_link", "initial",
         "events", "switches", "args", "other", "curves", "where", "text"}  # fmt: skip

# What is called with a wrong value, what the sentence must name, and the values, each of which it
# must name too.
VALUES: list[tuple[Callable[[Any], Any], str, list[Any]]] = [
    (lambda v: flow(law=fc.CBR, pattern=v), "pattern of flow 'a'",
     [3, "abc", {"kind": "odd"}, [(0, -1)]]),
    (lambda v: fc.LDCC(**{v: 1}), "LDCC has no parameter", ["bta", "self", "", "x"]),
    (lambda v: fc.LDCC(v), "LDCC takes parameters by name", [3, None, "beta"]),
    (lambda v: law(units={x: v, g: "1/s"}), "the unit of x",
     [None, 3, "furlong", "bit//s", "b/s)"]),
    (lambda v: law(params={g: v}), "Mine: parameter g", [None, "abc", nan, -1, 0, [1]]),
    (lambda v: law(out={v: x}), "no output of a source", ["speed", 3]),
    (lambda v: fc.stability_boundary(net(), v), "", ["zeta", "b.eta", 3, None]),
    (lambda v: dde(lags=[v]), r"lags\[0\] .*; give a .*time", [nan, inf, -1.0]),
    (lambda v: fc.StaticAIMD.averaged(intensity=v), "the intensity", [None, "abc", 10**400,
        -(10**400)]),
    (lambda v: fc.Scenario.load("p1", {"flows.a.params": v}), "params", [np.ones(1), 3]),
    (lambda v: getattr(net(), v)(), "lacks name; give name", ["with_flow", "with_link"]),
    (lambda v: swept(v), "the grid", [3, "beta", []]),
    (lambda v: swept({"beta": v}), "axis 'beta'",
     [None, 3, "abc", [nan], [None], ["3 s"], [[1, 2], [3]]]),
    (lambda v: swept({"beta": v}), "beta", [[0.1, -2, 0.2], [0.1, inf]]),
    (lambda v: swept({v: [1]}), "axis", ["bta", "a.zeta", "c.beta", "", "a.", "."]),
    (lambda v: swept({"beta": {"from": 0.1, "to": 0.2, "points": v}}), "points of axis 'beta'",
     [None, 1, 2.0, "3", 10**12, -1]),
    (lambda v: swept({"beta": {"from": 0.1, "to": 1, "points": 3, "scale": v}}),
     "scale of axis 'beta'", [None, 3, "cubic"]),
    (lambda v: swept({"count": [v]}), "axis 'count'", [None, -1, 1.5, 10**9, "2"]),
    (lambda v: swept({"seed": [v]}), "axis 'seed'", [None, -1, 1.5, "2"]),
    (lambda v: swept(measure=v), "measure", [3, "stabel", "", ["stable", 3], []]),
    (lambda v: swept(store=v), "store", [3, "", "a\0b", "x" * 400]),
    (lambda v: swept(chunk=v), "chunk", [True, "abc", nan, -1, 0, 1.5]),
    (lambda v: swept(workers=v), "workers", [True, "abc", -1, 0, 1.5]),
    (lambda v: swept(executor=v), "executor", [3, "turbo"]),
    (lambda v: swept(refine=v), "refine", [3, "stabel"]),
    (lambda v: swept(progress=v), "progress", [3, "yes"]),
    (lambda v: swept(measure="mean_rate", until=1, window=v), "window", [3, "abc", (0,)]),
    (lambda v: swept(measure="mean_rate", until=v), "until", ["abc", nan, -1, 0]),
    (lambda v: fc.sweep(v, {"beta": [1]}, "stable"), "what is swept", [None, 3, "ldcc_fig5"]),
    (lambda v: net().only(v), "flow", [None, 3, "ab", ["b"]]),
    (lambda v: flow(law=fc.CBR, pattern={"kind": v}), "pattern of flow 'a'", [3, [1], {}, "odd"]),
    (lambda v: fc.sweep(lambda p: v, {"x": [1]}), "", ["abc", None, {}, {"x": 3}, [[1], []]]),
    (lambda v: fc.claims.reproduce(v), "folder", [None, 3, "a\0b"]),
]  # fmt: skip


def bare(**changes: Any) -> fc.Network:
    return link(**{"capacity": 3e6, "delay": 0.025, **changes})


TOML = 'until = "9 s"\n[links.l]\ncapacity = "3 Mbit/s"\n[flows.a]\nlaw = "LDCC"\nroute = ["l"]\n'
api: Any = fc  # whose arguments are not checked beforehand
# Mistakes of new users: what is done, the class of the error, and object, value and remedy as the
# sentence has them.
MISTAKES: list[tuple[Callable[[], Any], type[Exception], list[str]]] = [
    (lambda: api.compile(None), errors.InvalidInput,
     ["the network is NoneType", "'None'", "give a Network"]),
    (lambda: api.equilibrium(bare()), errors.InvalidInput,
     ["the network", "has no flows", "add one with .flow(name, law, route=[...])"]),
    (lambda: api.equilibrium(net(), at="late"), errors.InvalidInput,
     ["at is", "'late'", "give a time in s, such as"]),
    (lambda: api.simulate(net(), 1.0, t_eval="often"), errors.InvalidInput,
     ["t_eval is", "'often'", "give a list of times in seconds"]),
    (lambda: api.simulate(net(), 1.0, delays="frozen", frozen_at=[0.1]), errors.InvalidInput,
     ["frozen_at is", "[0.1]", "give the queueing delay of each link by name"]),
    (lambda: api.simulate(net(), 1.0, restart="run.nc"), errors.InvalidInput,
     ["restart is str", "without the attribute final_state", "give a result of simulate()"]),
    (lambda: api.Scenario.load(3), errors.ScenarioError,
     ["the scenario is", "3", "give the path of a TOML file"]),
    (lambda: bare(capacity="3 mbps"), errors.UnitsError,
     ["capacity of link 'l'", "'3 mbps', where 'mbps' is no unit", "give a rate in"]),
    (lambda: api.Scenario.loads(TOML.replace("capacity", "capcity"), "mine.toml"),
     errors.ScenarioError, ["mine.toml", "links.l.capcity", "did you mean 'capacity'"]),
    (lambda: api.Scenario.loads(TOML.replace("LDCC", "LDC"), "mine.toml"), errors.ScenarioError,
     ["mine.toml, flows.a.law", "'LDC'", "did you mean 'LDCC'"]),
    (lambda: api.simulate(net(), until=9, rtol=0), errors.InvalidInput,
     ["rtol", "is 0", "give a number between 1e-13 and 0.1"]),
    (lambda: api.simulate(api.scenarios["p1"], until=9), errors.InvalidInput,
     ["the network", "is Scenario", "give a Network, its .net"]),
    (lambda: api.simulate(net(), until="9 m"), errors.UnitsError,
     ["until", "'9 m', where 'm' is no unit", "give a time in s"]),
    (lambda: api.simulate(bare(delay=0).flow("a", api.LDCC, route=["l"]), until=9),
     errors.InvalidInput,
     ["flow 'a'", "no propagation delay", "give a link delay, access_delay or return_delay"]),
    (lambda: net().flow("a", api.LDCC, route=["l"]), errors.InvalidInput,
     ["name of flow 'a'", "taken", "give another, or change that flow by with_flow()"]),
    (lambda: api.equilibrium(net().with_link("l", capacity=15e4, buffer=None)),
     errors.NoEquilibrium,
     ["link 'l'", "'a' never falls below w/beta = 200000 bit/s",
      "give it a finite buffer, more capacity or fewer flows"]),
    (lambda: api.num.solve(net().copy().flow("udp", api.CBR(rate="4 Mbit/s"), route=["l"])),
     errors.Infeasible,
     ["link 'l'", "send 4e+06 bit/s", "lower their rates or raise the capacity"]),
    (lambda: api.Network().link("a", api.DropTail, "3e6"), errors.InvalidInput,
     ["link() takes name, law by position, and by name capacity", "'3e6' is"]),
    (lambda: api.Network().link("a", api.DropTail, capcity=1), errors.InvalidInput,
     ["link() has no argument 'capcity'", "did you mean 'capacity'"]),
    (lambda: api.Network().flow("f", api.LDCC, law=api.LDCC, route=["l"]), errors.InvalidInput,
     ["flow() has law twice"]),
    (lambda: api.simulate(net(), 1.0, restart=run().mean("time", keep_attrs=True)),
     errors.InvalidInput, ["restart has no times of samples", "give a result of simulate()"]),
    (lambda: api.Steady("x=1"), errors.LawError, ["relation of a Steady is 'x=1'", "give an expr"]),
    (lambda: law(lower={x: 5}, upper={x: 3}), errors.LawError,
     ["Mine: the upper bound of x less the lower one is -2", "give a lower bound that is not"]),
    (lambda: jump(when=fc.symbols.pi, refractory=-1 / g), errors.LawError,
     ["Mine: the refractory time of jump 0 is -1", "give a time in seconds that is not negative"]),
    (lambda: api.simulate(net(), 1.0, restart=run().isel(time=slice(0))), errors.InvalidInput,
     ["restart has no times of samples", "give a result of simulate()"]),
    (lambda: api.plot.timeseries(run().isel(time=slice(0))), errors.InvalidInput,
     ["the result is", "give the Dataset"]),
    (lambda: dde(dense_output=True).sol("x"), errors.InvalidInput,
     ["t is 'x'", "give a time, or a vector of times"]),
    (lambda: dde(history=run()), errors.InvalidInput, ["history is", "give a finite number"]),
    (lambda: api.Let("v", dde()), errors.LawError, ["is DdeResult(", "give an expression"]),
    (lambda: api.solve_dde({symbols("f", cls=Function)(x): x}, (0, 1), 1.0, args=3),
     errors.InvalidInput, ["args must name parameters of equations", "{beta: 0.2, ...}"]),
    (lambda: api.solve_dde({symbols("f", cls=Function)(x): x}, (0, 1), 1.0, events=3),
     errors.InvalidInput, ["events is 3", "give them in a list"]),
    (lambda: lag().margins(1j), errors.UnknownName, ["no channel 1j", "there are u0"]),
    (lambda: lag() ** 0.5, errors.InvalidInput,
     ["the power of a block is 0.5", "give a whole number from 1 to 100"]),
    (lambda: lag() * 1j, errors.InvalidInput, ["the factor is 1j", "give a finite number"]),
    (lambda: api.DelayLTI.retarded(-1, (1, -1.0)), errors.InvalidInput,
     ["the delay of A_k is -1.0", "give a time in seconds, not negative"]),
    (lambda: api.LDCC(0.4), errors.InvalidInput,
     ["LDCC takes parameters by name, not 0.4 by position", "it has w, beta"]),
    (lambda: api.sweep(net(), {"beta": [0.1]}), TypeError,
     ["the measure is missing", "give a name"]),
    (lambda: api.plot.timeseries(api.simulate(net(), until=1), "delay"), errors.UnknownName,
     ["the result", "no variable 'delay'", "it has rate, one_way_delay, loss"]),
]  # fmt: skip

GOOD = {
    "": {"until": '"1 s"'},
    "links.l": {"capacity": '"3 Mbit/s"', "delay": '"25 ms"', "buffer": '"100 packets"'},
    "flows.a": {"law": '"LDCC"', "route": '["l"]'},
    "flows.b": {"law": '"CBR"', "route": '["l"]'},
}
BIG = "9" * 5000
# Of a scenario's file: the table, the key, and values; the sentence names file and key, and the
# value.
SCENARIO: list[tuple[str, str, list[str]]] = [
    ("", "until", ["nan", "-1", '"soon"', "[1]", '"3 Mbit"', '"1 s/"']),
    ("", "seed", ["-1", "1.5", '"x"', "[]"]),
    ("", "delays", ['"frosen"', "3", "true"]),
    ("", "samples", ["1", "1.5", '"many"']),
    ("", "title", ["3", "[]"]),
    ("", "ref", ["3", "[]"]),
    ("links.l", "law", ['"DropTale"', "3", '""', '"LDCC"']),
    ("links.l", "capacity", ["0", "-1", '"3 mbps"', '"3 Mbit^999999999/s"', '"1__0 Mbit/s"',
                             '"1 bit//s"', "true"]),
    ("links.l", "delay", ['"5 Mbit"', "-1", "nan", "[]"]),
    ("links.l", "buffer", ['"3 bit/s"', "-1", "true"]),
    ("links.l", "params", ["3", "[]", '"x"']),
    ("links.l", "initial", ["3", "{x = 1}", "[]"]),
    ("links.l", "packet", ["0", '"5 s"', "nan"]),
    ("flows.a", "law", ['"LDC"', "3", '"DropTail"']),
    ("flows.a", "route", ['"l"', "[]", '["m"]', "3"]),
    ("flows.a", "start", ['"soon"', "true", '"3 Mbit"']),
    ("flows.a", "stop", ["0", "-1", '"late"']),
    ("flows.a", "access_delay", ['"5 Mbit"', "-1"]),
    ("flows.a", "return_delay", ['"5 Mbit"', "-1", "1979-05-27"]),
    ("flows.a", "packet", ["0", '"5 s"']),
    ("flows.a", "initial", ["3", "{y = 1}", '{x = "1 s"}']),
    ("flows.a", "params", ["{self = 1}", "{bta = 1}", "{beta = -1}", '{beta = "1 s"}',
                           "{beta = [1]}", "3"]),
    ("flows.b", "pattern", ["3", '"abc"', "true", "nan"]),
]  # fmt: skip
WHOLE_FILES = {
    "nested": ("a = " + "[" * 20_000, "nested too deeply"),
    "nested tables": ("a = " + "{a = " * 20_000, "nested too deeply"),
    "digits": (f"until = {BIG}", "thousands of digits"),
    "empty": ("", "until is missing"),
    "no TOML": ("until = = 3", "is not TOML"),
    "a stranger": ("utnil = 3", "until"),
    "a long stranger": ("z" * 9999 + " = 3", "zzz"),
    "no flows": ("until = 1\n[links.l]\ncapacity = 1", "flows is missing"),
}
SWEEP = {
    "scenario": '"s.toml"', "measure": '"equilibrium_rtt"', "grid": "{ beta = [0.1, 0.2] }",
    "output": '"x.csv"',
}  # fmt: skip
# Of a sweep's file: the key and its value, and what the sentence must have besides.
SWEEPS: list[tuple[str, str, str]] = [
    ("scenario", '"no.toml"', "scenario: no.toml"), ("scenario", "3", "scenario is 3"),
    ("scenario", '""', "scenario"), ("scenario", '"a\\u0000b"', "scenario"),
    ("scenario", '"."', "is a folder"), ("measure", "3", "measure is 3"),
    ("measure", '"rate"', "'rate'"), ("measure", "[]", "measure is []"),
    ("grid", "3", "grid is 3"), ("grid", "{ beta = 3 }", "axis 'beta' of the grid is 3"),
    ("grid", "{}", "the grid is {}"), ("grid", "{ bta = [1] }", "'bta'"),
    ("grid", "{ beta = [] }", "axis 'beta' of the grid has no values"),
    ("grid", "{ beta = [0.1, 0.1] }", "0.1 twice"), ("grid", '{ beta = ["1 s"] }', "'1 s'"),
    ("grid", "{ beta = {from = 0, to = 1, points = 3, scale = 'log'} }", "from 0 to 1"),
    ("grid", "{ beta = {from = 1, to = 1, points = 3} }", "from 1 to 1"),
    ("grid", "{ beta = {from = 1, to = 2} }", "axis 'beta' of the grid"),
    ("grid", "{ until = [-1] }", "-1"),
    ("grid", "{ capacity = ['3 mbps'] }", "'3 mbps'"), ("grid", "{ 'initial.x' = [-1] }", "-1"),
    ("until", "[]", "until is []"), ("window", "3", "window is 3"),
    ("window", '["2 s", "1 s"]', "2 to 1 s"), ("store", "3", "store is 3"),
    ("refine", '"stabel"', "'stabel'"), ("chunk", "0", "chunk is 0"),
    ("workers", "1.5", "workers is 1.5"), ("executor", '"turbo"', "'turbo'"),
    ("set", "3", "set is 3"), ("set", '{"flows.z.start" = 1}', "'z'"),
    ("set", '{"flows.a.params.self" = 1}', "'self'"), ("options", "3", "options is 3"),
    ("options", "{ progress = 1 }", "options.progress"), ("options", "{ net = 1 }", "options.net"),
    ("options", "{ store = 'x' }", "options.store"), ("options", "{ rtol = 'x' }", "rtol is 'x'"),
    ("options", "{ samples = 1 }", "samples is 1"), ("options", "{ seed = -1 }", "seed is -1"),
    ("options", "{ engine = 'turbo' }", "'turbo'"), ("colour", "3", "colour"),
    ("output", '"x.txt"', "x.txt"), ("output", '"no/x.nc"', "no/x.nc"),
    ("output", '"a\\u0000.nc"', ".nc"),
]  # fmt: skip
COMMANDS: list[tuple[str, str]] = [
    ("simulate no.toml", "no.toml"), ("simulate ldcc_fig55", "ldcc_fig55"),
    ("simulate folder", "folder"), ("simulate bytes.toml", "bytes.toml is not TOML"),
    ("equilibrium ldc_fig5", "ldcc_fig5"),
    ("explore p1 --port 99999", "99999"),
    ("simulate s.toml --until soon", "'soon'"), ("simulate s.toml --until=-1", "-1"),
    ("simulate s.toml --until=nan", "nan"), ("simulate s.toml --rtol 0", "0.0"),
    ("simulate s.toml --rtol nan", "nan"), ("simulate s.toml --rtol 1", "1.0"),
    ("simulate s.toml --set x", "x"), ("simulate s.toml --set =3", "=3"),
    ("simulate s.toml --set flows.z.start=3", "'z'"),
    ("simulate s.toml --set flows.a.params.self=1", "'self'"),
    ("simulate s.toml --set until=[[[", "[[["), ("simulate s.toml --set flows.a.law=LDC", "'LDC'"),
    ("simulate s.toml --set links.l.capacity=0", "0"), (f"simulate s.toml --set seed={BIG}", "99"),
    ("simulate s.toml -o x.txt", "x.txt"), ("simulate s.toml -o no/x.nc", "no/x.nc"),
    ("simulate s.toml -o there.nc", "there.nc"), ("simulate s.toml --figure x.gif", "x.gif"),
    (f"simulate s.toml -o {'x' * 300}.nc", "xxx"), (f"simulate {'x' * 300}", "name too long"),
    ("stability s.toml --at late", "'late'"), ("stability s.toml --at=nan", "nan"),
    ("stability s.toml --at=-1", "-1"), ("stability no.toml", "no.toml"),
    ("stability s.toml -o there.png", "there.png"), ("sweep no.toml", "no.toml"),
    ("sweep folder", "folder"), ("sweep s.toml", "is a scenario"),
    ("sweep bytes.toml", "bytes.toml"), ("sweep g.toml --workers 0", "0"),
    ("sweep g.toml --store s.toml", "s.toml"),
    ("sweep g.toml --scheduler nowhere", "nowhere"), ("claims lddc", "'lddc'"),
    ("reproduce --folder s.toml", "s.toml"), ("simulate s.toml -o .", "--output ."),
]  # fmt: skip


def _text(table: str, key: str, value: str) -> str:
    changed = {**GOOD, table: {**GOOD[table], key: value}}
    return "\n".join(
        f"[{name}]\n" * bool(name) + "\n".join(f"{k} = {v}" for k, v in keys.items())
        for name, keys in changed.items()
    )


def _sweep(key: str, value: str) -> None:
    Path("g.toml").write_text("\n".join(f"{k} = {v}" for k, v in {**SWEEP, key: value}.items()))
    assert main(["sweep", "g.toml"]) == 2


def _cases() -> Iterator[Any]:
    """A call, and what its sentence must have."""
    for k, (call, named, values) in enumerate(VALUES):
        for n, value in enumerate(values):
            yield pytest.param(lambda c=call, v=value: c(v), (named, value), id=f"value {k} {n}")
    for table, key, texts in SCENARIO:
        for text in texts:
            inner = re.sub(r"^[{\['\"]+|[}\]'\"]+$", "", text).split(" = ")[0]
            inner = {"true": "True", "1979-05-27": "1979"}.get(inner, inner)
            yield pytest.param(
                lambda t=table, k=key, v=text: fc.Scenario.loads(_text(t, k, v), "m.toml"),
                (rf"m.toml, .*{key}", inner), id=f"{table} {key} = {text}",
            )  # fmt: skip
    for name, (text, says) in WHOLE_FILES.items():
        yield pytest.param(lambda t=text: fc.Scenario.loads(t, "m.toml"), ("m.toml", says), id=name)
    for key, value, says in SWEEPS:
        yield pytest.param(
            lambda k=key, v=value: _sweep(k, v), ("", says), id=f"{key} = {value[:40]}"
        )
    for command, says in COMMANDS:
        yield pytest.param(lambda c=command: main(c.split()), ("", says), id=command[:60])


def _words(value: Any) -> list[str]:
    """How a sentence may name a value: as it is, or the part of it that is wrong."""
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    parts = parts if isinstance(parts, list | tuple) else []
    inner = [word for part in parts for word in _words(part)]
    return [shown(value), *([brief(value)] if isinstance(value, str) else []), *inner]


CASES = list(_cases())


@pytest.fixture(autouse=True)
def _no_figure_stays() -> Iterator[None]:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("there.nc", "there.png"):
        Path(name).write_text("there")
    Path("folder").mkdir()
    Path("bytes.toml").write_bytes(b"\xff\xfe")
    Path("s.toml").write_text(_text("", "title", '"t"'))
    Path("g.toml").write_text("\n".join(f"{k} = {v}" for k, v in SWEEP.items()))


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize(("call", "said"), CASES)
def test_a_wrong_input_is_answered_by_one_sentence(
    call: Callable[[], Any], said: tuple[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = call()
    except FluidccError as error:
        text = str(error)
    else:
        text = capsys.readouterr().err.removesuffix("\n")
        assert code in (2, None)  # None after a sweep's file, whose code has been looked at
        assert text.startswith("fluidcc: ")
    named, value = said
    assert re.search(named, text), text
    assert any(word in text for word in _words(value)), text
    assert "\n" not in text
    assert "Traceback" not in text
    assert 20 < len(text) < 420, text


def _arguments() -> Iterator[Any]:
    for k, (call, names, taken) in enumerate(ARGUMENTS):
        for name in (*names.split(), *taken):
            yield pytest.param(call, name, taken.get(name, set()), id=f"{k}-{name}")


@pytest.mark.slow
@pytest.mark.parametrize(("call", "name", "taken"), _arguments())
def test_values_that_no_argument_can_take_are_answered_by_a_sentence(
    call: Callable[..., Any], name: str, taken: set[str]
) -> None:
    for label, value in WRONG.items():
        if label in taken:
            continue
        with pytest.raises(FluidccError) as caught:  # which value stands in the locals of a failure
            call(**{name: value})
        text = str(caught.value)
        assert isinstance(caught.value, ValueError | ArithmeticError | NotImplementedError), label
        assert "\n" not in text, label
        assert 20 < len(text) < 400, (label, text)
        if name not in PARTS:
            assert name in text or any(word in text for word in _words(value)), (label, text)


@pytest.mark.parametrize(("do", "kind", "words"), MISTAKES)
def test_mistakes_of_new_users_are_answered_with_object_value_and_remedy(
    do: Callable[[], Any], kind: type[Exception], words: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        do()
    text = str(caught.value)
    assert isinstance(caught.value, errors.FluidccError)
    for part in words:
        assert part in text
    assert not re.search(r"[.!] [A-Z]|\n", text)  # one sentence
    assert len(text) < 320


def test_the_files_that_are_changed_are_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(_text("", "title", '"t"'))
    Path("g.toml").write_text("\n".join(f"{k} = {v}" for k, v in SWEEP.items()))
    scenario, given, _ = load_sweep("g.toml")
    assert scenario.net.flow_names == ("a", "b")
    assert given["grid"] == {"beta": [0.1, 0.2]}
    assert np.isfinite(swept({"beta": [0.1]}, "decay_rate").decay_rate)


# --- nothing is silently something else -----------------------------------------------------------


def late(**options: Any) -> Any:
    return fc.simulate(net(), 1.0, **options)


def frozen(value: Any) -> Any:
    return late(delays="frozen", frozen_at={"l": value})


def toml(capacity: str, more: str = "") -> Any:
    return fc.Scenario.loads(TOML.replace('"3 Mbit/s"', capacity) + more)


def bell(rtt: Any, **link: Any) -> Any:
    return fc.dumbbell([fc.LDCC], {"capacity": 3e6, **link}, rtt=rtt)


# What hardly means what it says is warned of, once, with what to write in either case.
DOUBTFUL: list[tuple[Callable[[], Any], str]] = [
    (lambda: link(capacity=3.5), "capacity of link 'l' is 3.5, .*'3.5 Mbit/s', or '3.5 bit/s'"),
    (lambda: link(capacity=20), "'20 Mbit/s'"),
    (lambda: link(capacity=np.float64(10)), "'10 Mbit/s'"),
    (lambda: link(capacity=[(0, 3), (5, 2.5)]), "'3 Mbit/s'"),
    (lambda: link(capacity=((0, 3), (5, 0))), "'3 Mbit/s'"),
    (lambda: bell("50 ms", capacity=5), "capacity of link 'bottleneck' is 5"),
    (lambda: net().with_link("l", capacity=3.5), "'3.5 Mbit/s'"),
    (lambda: fc.parking_lot([fc.LDCC], [fc.LDCC], {"capacity": 2, "delay": "9 ms"}), "'2 Mbit/s'"),
    (lambda: toml("3.5"), "'3.5 Mbit/s'"),
    (lambda: link(buffer=100), "buffer of link 'l' is 100, .*'100 packets', or '100 bit'"),
    (lambda: link(buffer=7999.0), "7999 packets"),
    (lambda: net().with_link("l", buffer=50), "'50 packets'"),
    (lambda: flow(packet=9000), "packet of flow 'a' is 9000, .*'9000 bytes', or '9000 bit'"),
    (lambda: flow(packet=1500), "'1500 bytes'"), (lambda: flow(packet=1460), "'1460 bytes'"),
    (lambda: link(packet=1500), "packet of link 'l'"),
    (lambda: net().with_flow("a", packet=576), "'576 bytes'"),
    (lambda: net().with_flows({"a": {"packet": 576}}), "'576 bytes'"),
    (lambda: link(delay=20), "'20 ms', or '20 s'"), (lambda: link(delay=21), "'21 ms'"),
    (lambda: net().with_link("l", delay=25), "'25 ms'"), (lambda: bell(50), "rtt is 50"),
    (lambda: flow(access_delay=30), "'30 ms'"), (lambda: flow(return_delay=40), "'40 ms'"),
    (lambda: net().with_flow("a", return_delay=40), "'40 ms'"),
    (lambda: link(capacity=3, buffer=100, delay=25), "3 bit/s.*; and delay .*; and buffer"),
    (lambda: swept({"capacity": [3.5]}, "equilibrium_rtt"), "capacity of axis 'capacity' is 3.5"),
    (lambda: swept({"packet": [1500.0]}), "'1500 bytes'"),
    (lambda: swept({"rtt": [50]}, "equilibrium_rtt"), "'50 ms'"),
    (lambda: swept({"l.buffer": [1e2, 1e6]}, "equilibrium_rtt"), "'100 packets'"),
    (lambda: swept({"delay": {"from": 1, "to": 9, "points": 2}}, "equilibrium_rtt"), "'9 ms'"),
]  # fmt: skip


def rest(**changes: Any) -> Any:
    return fc.equilibrium(net()).changed(**changes)


def elsewhere() -> Any:
    return fc.equilibrium(net().with_link("l", capacity=4e6))


# What cannot be meant is refused, and what it is about is named.
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: link(capacity=[(0, 3e6), (-1, 2e6)]), "a time in a pair, is -1"),
    (lambda: link(capacity=[(0, 3e6), (nan, 2e6)]), "a time in a pair, is nan"),
    (lambda: link(capacity=[(0, 3e6), (1, -2e6)]), "capacity of link 'l' is -2000000"),
    (lambda: link(capacity=[(0, 3e6), (5, 2e6), (3, 1e6)]), "3 s after 5 s"),
    (lambda: link(capacity=[(1, 3e6)]), "first pair must be at time 0"),
    (lambda: link(capacity=[(3e6, 0), (2e6, 10)]), "must be at time 0"),
    (lambda: link(capacity=[(0, True)]), "True"), (lambda: link(capacity="3 MB"), "an amount of"),
    (lambda: link(capacity={0: 3e6}), "capacity of link"), (lambda: link(capacity=inf), "inf"),
    (lambda: link(capacity=np.array([3e6, 2e6])), "pairs such as"),
    (lambda: link(capacity={"trace": "x"}), "capacity of link 'l'"),
    (lambda: link(buffer="0 packets"), "0 packets"), (lambda: link(buffer="-1 s"), "-1 s"),
    (lambda: link(buffer="3 Mbit/s"), "a rate"), (lambda: link(buffer=[1e5]), "buffer of link"),
    (lambda: link(delay=[0.01]), "delay of link"), (lambda: link(delay=inf), "delay of link"),
    (lambda: link(delay="20 m"), "'m' is no unit"), (lambda: link(initial={"q": -1}), "is -1 s"),
    (lambda: link(buffer="0.1 s", initial={"q": 5.0}), "initial of link 'l'"),
    (lambda: link(initial={"q": 0.1, "backlog": 1e4}), "give one"),
    (lambda: link(law=fc.LDCC), "law of link"), (lambda: link(name=3), "name of a link is 3"),
    (lambda: link().link("l", fc.DropTail, capacity=1e6), "'l' is taken"),
    (lambda: flow(packet="1500 s"), "a time"), (lambda: flow(packet=inf), "packet of flow"),
    (lambda: flow(packet="3 packets"), "packet of flow"), (lambda: flow(start=-1), "is -1"),
    (lambda: flow(start=5, stop=4), "after its start"), (lambda: flow(start=True), "True"),
    (lambda: flow(start=[1, 2], stop=[3, 4]), "after the stop before"),
    (lambda: flow(start=[1, 2], stop=3), "2 and stop 1"), (lambda: flow(law="LDCC"), "'LDCC'"),
    (lambda: flow(initial={"x": True}), "True"), (lambda: flow(initial={"x": "1 s"}), "1 s"),
    (lambda: flow(initial={"y": 1}), "'y'"), (lambda: flow(route=["l", "l"]), "'l' twice"),
    (lambda: flow(route={"l": 1}), "give the links in order"), (lambda: flow(route={"l"}), "order"),
    (lambda: flow(pattern=[(0, 1e6)]), "sets its own rate"),
    (lambda: flow(law=fc.CBR, pattern=[(0, 1e6), (-1, 2e6)]), "a time in a pair"),
    (lambda: bell(-0.05), "-0.05"), (lambda: bell([0.05, 0.06]), "2 entries for 1 flows"),
    (lambda: fc.LDCC(beta=True), "beta"), (lambda: fc.LDCC(T="0.1 Mbit"), "T"),
    (lambda: fc.LDCC(beta=[0.1]), "beta"), (lambda: fc.CBR(rate=-1), "rate"),
    (lambda: frozen(-0.1), r"frozen_at of link 'l' is -0.1; give a queueing delay from 0 to 0.26"),
    (lambda: frozen(1e300), "0.266667 s, which its buffer holds"), (lambda: frozen(9), "is 9"),
    (lambda: frozen(True), "True"), (lambda: frozen("1 Mbit"), "an amount of data"),
    (lambda: late(frozen_at={"l": 0.1}), "give delays='frozen'"),
    (lambda: late(delays="frozen", frozen_at={"k": 0.1}), "'k'; the network has l"),
    (lambda: fc.simulate(bare().flow("a", fc.LDCC, route=["l"]), 1.0, delays="frozen",
                         frozen_at={"l": 1e300}), "from 0 to 1e[+]12 s"),
    (lambda: fc.simulate(net(), 1e13), "until is 1e13|until is 10000000000000"),
    (lambda: fc.simulate(net(), [1, 2]), "until"), (lambda: late(samples=2.0), "samples is 2.0"),
    (lambda: late(t_eval=[-1, 0.5]), "t_eval"), (lambda: late(t_eval=[0.5, 0.2]), "t_eval"),
    (lambda: late(t_eval=[[0.1, 0.2]]), "t_eval"), (lambda: late(t_eval=[False, True]), "t_eval"),
    (lambda: late(rtol="1e-6"), "rtol"), (lambda: late(seed=1.0), "seed"),
    (lambda: late(dt=1), "'dt'"),
    (lambda: fc.simulate(net(), 1, 1e-6), "1e-06 is too much"), (lambda: late(engine="c"), "'c'"),
    (lambda: fc.stability(net(), at=-1), "at is -1"), (lambda: fc.stability(net(), roots=2.5), "2"),
    (lambda: fc.stability_boundary(net(), "a.eta", bounds=(2, 1)), "bounds"),
    (lambda: fc.stability_boundary(net(), "a.eta", bounds=(1, 2, 3)), "bounds"),
    (lambda: swept(store="s3://b/x"), "store is 's3://b/x', an address; give a path"),
    (lambda: swept(store=Path("gs://b/x")), "addre"), (lambda: swept(store="file:///x"), "add"),
    (lambda: fc.claims.reproduce("s3://b/x"), "folder is 's3://b/x', an address"),
    (lambda: swept({"beta": [0.1, 0.1]}), "0.1 twice"), (lambda: swept({"beta": [True]}), "True"),
    (lambda: swept(measure="mean_rate", until=2, window=(2, 1)), "window is 2 to 1"),
    (lambda: toml("3e6", "count = -1"), "count of flow 'a' is -1"),
    (lambda: toml("3e6", "count = 2.5"), "2.5"), (lambda: toml("3e6", "count = 0"), "a count of 0"),
    (lambda: toml('{ trace = "no.csv" }'), "links.l.capacity: trace no.csv: no such file"),
    (lambda: toml('{ trace = "no.csv", bins = 1 }'), "capacity.bins: .* 'bin'"),
    (lambda: toml("{ trace = 3 }"), "the trace is 3"), (lambda: toml("{ file = 3 }"), "capacity"),
    (lambda: fc.read_trace("x", -1), "bin is -1"), (lambda: fc.read_trace("x", "1 Mbit"), "bin is"),
    (lambda: fc.read_trace("x", unit="Mbit"), "unit is 'Mbit'; give that of the second column"),
    (lambda: fc.read_trace("x", unit=1e6), "unit"), (lambda: fc.read_trace("x", unit=""), "is ''"),
    (lambda: lag(delay=-1), "delay"), (lambda: lag(num=[1, 0, 0]), "num|proper|degree"),
    (lambda: block(B=[[1.0], [2.0]]), "B"), (lambda: lag().delayed(-1), "-1"),
    (lambda: lag().step([-1, 0, 1]), "t is|times"), (lambda: interval(n=0), "n is 0"),
    (lambda: fc.metrics.windowed_mean(run().rate, window=1e6), "window"),
    (lambda: fc.simulate(net(), "10"), "'10', text without a unit"),
    (lambda: fc.simulate(net(), 1.0, workers=0), "no argument 'workers'"),
    (lambda: fc.simulate(net(), 0.1, restart=run()), "restart ends at 0.5 s; give a later"),
    (lambda: fc.simulate(net(), np.array([1.0])), "until"), (lambda: fc.Network(3), "nothing by"),
    (lambda: fc.stability(net(), at=elsewhere()), "none of this network: l.q moves; give one of"),
    (lambda: fc.linearize(net(), at=elsewhere()), "none of this network: l.q moves; give one of"),
    (lambda: fc.stability(net(), at=rest(rate=2.9e6)), "none of this network; give one of"),
    (lambda: fc.linearize(net(), at=rest(states={"l": {}})), "knows no 'a'; give one of"),
    (lambda: rest(rate=[1, 2]), r"rate is \[1, 2\]; give a number, or 1"),
    (lambda: rest(rate="x"), "rate is 'x'"), (lambda: rest(states=3), "states is 3; give all"),
    (lambda: fc.undelayed(net(), held=3), "held is 3"), (lambda: rest(speed=3), "array 'speed'"),
    (lambda: fc.undelayed(net(), held=["z"]), "'z' to be"), (lambda: link(name="l\t"), "blank"),
    (lambda: flow(name=" a"), "name of a flow is ' a'; .* without blanks"),
    (lambda: flow(start=["1 s", "2"], stop=[3, 4]), "'2', text without"),
    (lambda: flow(law=fc.AIMD, initial={"w": "5 ms"}), "'5 ms', a time"),
    (lambda: link(buffer="1e400 packets"), "'1e400 packets'; give a finite number"),
    (lambda: link(buffer="100"), "'100', text without"), (lambda: link(buffer="inf"), "'inf'"),
    (lambda: link(capacity=lambda t: 3e6), "capacity of link"), (lambda: link(capacity=g), "is g"),
    (lambda: link(capacity=[(0, 3e6, 1)]), "pairs such as"), (lambda: bell("50"), "rtt of flow"),
    (lambda: link(initial={"q": "5 packets"}), "'5 packets', a number of packets"),
    (lambda: net().with_flow("a", name="b"), "name twice"),
    (lambda: net().with_flow("a", beta=1), "beta of flow 'a' cannot be changed"),
    (lambda: net().with_flows([("a", {})]), "the changes is"), (lambda: net().only("a"), "'a'"),
    (lambda: fc.dumbbell({"a": {"law": fc.LDCC, "route": ["x"]}}, {"capacity": 1e6}),
     "route of flow 'a' follows from the topology; leave it out"),
    (lambda: fc.parking_lot([{"law": fc.LDCC, "route": []}], [[]], {"capacity": 1e6}), "leave it"),
    (lambda: fc.two_queues([], [fc.LDCC], {"capacity": 1e6}, {"dely": 1}), "link 'tcp' has no"),
    (lambda: fc.AIMD(b=2), "b is 2, but must be at most 1"), (lambda: fc.Reno(b=1.5), "at most 1"),
    (lambda: fc.RED(p_max=2), "p_max is 2, but"), (lambda: fc.GCC(alpha=2), "alpha is 2, but"),
    (lambda: fc.DCCP(b=2), "b is 2, but"), (lambda: fc.LDCC({"beta": 1}), "by name, not"),
    (lambda: fc.LDCC(beta=symbols("k")), "beta is k; give a number"),
    (lambda: law(limits={g: nan}), "limits has g: nan"), (lambda: law(where=[3]), "where holds 3"),
    (lambda: law(flow={x: Matrix([x])}), r"flow: x is Matrix.*; give an expression"),
    (lambda: law(window=x), r"window is x; give one of its states \[packet\]"),
    (lambda: law(traffic="burst"), "traffic is 'burst'; give"), (lambda: law(gain="x"), "gain is"),
    (lambda: law(penalty=[1]), "penalty is"), (lambda: law(threshold=symbols("k")), "depends on k"),
    (lambda: fc.LDCC.with_utility(fc.LDCC.utility, params=3), "LDCC: params is 3"),
    (lambda: fc.LDCC.with_utility(fc.LDCC.utility, units=[1]), "units is"),
    *[(lambda k=k: fc.window("w", 1, **{k: 3}), f"w: {k} is 3; give ") for k in (
        "params", "units", "flow", "jumps", "ticks", "steady", "limits", "meaning", "initial")],
    (lambda: fc.window("w", "1"), "growth is '1'"), (lambda: fc.window("w", 1, least="1"), "least"),
    (lambda: fc.window("w", 1, clock="x"), "clock is 'x'"), (lambda: fc.window("w"), "lacks g"),
    (lambda: fc.with_windowed_minimum(fc.Vegas, 10**6), "buckets is 1000000; give .* from 2 to"),
    (lambda: fc.with_pause("x"), "law is 'x'"), (lambda: fc.count_packets(fc.RED, -1), "mean"),
    (lambda: lag(delay="100"), "'100', text without"), (lambda: lag(delay="1 bit"), "amount of"),
    (lambda: lag().delayed("x"), "the extra delay is 'x'"), (lambda: lag().step([nan]), "t is"),
    (lambda: fc.DelayLTI.retarded(1, (-1, "1 b")), "the delay of A_k is '1 b', an amount"),
    *[(lambda v=v: lag().feedback(sign=v), "sign is .*; give -1 or 1") for v in (2, "-", 0, nan)],
    (lambda: lag().margins(at="x"), "at is 'x'"), (lambda: lag().lsim([1, 2], [0]), "u has the"),
    (lambda: lag().lsim([1, 2], [1, 0]), "t is"), (lambda: lag().roots(count=2.5), "count is 2.5"),
    (lambda: fc.metrics.mean(run().rate, time=[0, 1]), "a DataArray has its own; leave it out"),
    (lambda: fc.metrics.mean(run()), "x is a Dataset; give one of its variables"),
    (lambda: fc.metrics.jain(run()), "a Dataset"), (lambda: fc.metrics.jain([-1, 2]), "one is -1"),
    (lambda: fc.metrics.settling_time(run().rate, start=9), "start is 9 s, and the samples end"),
    (lambda: fc.metrics.mean(run().rate, 0.4, 0.2), "the span from 0.4 to 0.2 s"),
    (lambda: fc.metrics.mean(run().rate, "0.1"), "start is '0.1', text"),
    (lambda: fc.metrics.over_others([1, 2], True), "no flow True"),
    (lambda: fc.metrics.loss(run(), start=9), "span from 9"),
    (lambda: fc.plot.compare(run(), run(), variable=3), "variable is 3; give a name"),
    (lambda: fc.plot.compare(run(), run(), variable=["rate"]), r"variable is \['rate'\]"),
    (lambda: fc.plot.phase_plane(run(), ["a", "a"]), r"not of \['a', 'a'\]: give"),
    (lambda: fc.plot.stability_chart(swept(), measure="z"), "no argument 'measure'"),
    (lambda: swept(until=1), "until is of runs, and no measure here is of one; leave it out"),
    (lambda: swept(window=(0, 1)), "window is of runs"), (lambda: swept(rtol=1e-3), "rtol is of r"),
    (lambda: swept(seed=2), "seed is of runs"), (lambda: swept(at=-1), "argument 'at'"),
    (lambda: swept(delays="frozen"), "a sweep judges with 'fifo'; give lambda point: fluidcc"),
    (lambda: swept(measure=["stable", "stable"]), "two measures are named 'stable'"),
    (lambda: swept({"beta": [0.1], "a.beta": [1]}), "both set beta"),
    (lambda: fc.prove(x > 1, where=[3]), "the condition 3 is no equation"),
    (lambda: fc.prove(x > 1, where=[g]), "n g is no"), (lambda: fc.prove("x > 0"), "str 'x >"),
    (lambda: fc.Scenario.loads(TOML, name=3), "name is 3"), (lambda: toml("3"[:0]), "TOML"),
    (lambda: fc.Scenario(3, net(), 1), "name is 3"), (lambda: toml("3e6", "starts = 3"), "'start'"),
    (lambda: toml('"3"'), "'3', text without"), (lambda: toml("3e6", 'count = "3"'), "count of"),
    (lambda: fc.claims.table("ldcc", only="(18)").filter(verdict="z"), "verdict is 'z'; give"),
    (lambda: fc.claims.table("ldcc", only="(18)").filter(own="z"), "own is 'z'; give True"),
    (lambda: fc.claims.reproduce("/proc/x"), "folder /proc/x cannot be made"),
    (lambda: fc.claims.reproduce("x", progress="x"), "progress is 'x'"),
    (lambda: fc.claims.papers(3), "takes nothing by position"),
    (lambda: dde(lags=[lambda t, y: 1.0]), "one function of .t, y. that returns them all"),
    (lambda: dde(args={"k": 3}), "must be a tuple: write args"), (lambda: dde(args="x"), "a tuple"),
    (lambda: dde(t_eval=[0, 2]), "must lie in t_span"), (lambda: dde(jac=3), "'jac'"),
    (lambda: fc.published(3), "is no function; give .*_red"), (lambda: fc.scenarios(), r"\['p1'\]"),
    (lambda: fc.claims.table("ldcc", only="(18)").filter(3), "keep is 3; give a function of a r"),
    (lambda: fc.claims.table("ldcc", only="(18)").filter(place=3), "place is 3; give text"),
    (lambda: late(t_eval=[0, 1], samples=7), "samples is 7 beside t_eval; leave one"),
    (lambda: law(meaning={g: 3}), "Mine: meaning of g is 3; give text by symbol"),
    (lambda: rest().lets({}), "no flow or link {}"), (lambda: rest().array([]), r"array \[\]"),
    (lambda: rest().lost_or_marked("z"), "flow is 'z'; give 'a'"),
    (lambda: rest(rate=10**400), "1"), (lambda: fc.linearize(net()).rightmost("2"), "nt is '2'"),
    (lambda: fc.stability_boundary(net(), "a.eta").network([]), r"a.eta is \[\]; give"),
    (lambda: fc.undelayed(net()).storage("x"), "V is 'x'; give an expression"),
    (lambda: fc.undelayed(net()).of_flow("z", 0), "name is 'z'"),
    (lambda: fc.undelayed(net(), held=["k"]).paper_storage(alpha=0), "alpha is 0"),
    (lambda: fc.DelayLTI.retarded(-1, B=[[1, 2], [3]]), "B is"), (lambda: net().with_all(
        "flow", 3), "the changes is 3"), (lambda: interval(increase=x, decrease=x), "not both"),
    (lambda: fc.formulas.response.htcp_window(), "lacks p and rtt"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "says"), DOUBTFUL)
def test_what_is_hardly_meant_is_warned_of_once(call: Callable[[], Any], says: str) -> None:
    with pytest.warns(errors.FluidccWarning, match=says) as told:
        call()
    assert len(told) == 1
    assert "\n" not in str(told[0].message)


@pytest.mark.parametrize(("call", "says"), REFUSED)
def test_what_cannot_be_meant_is_refused(
    call: Callable[[], Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FluidccError, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert [*tmp_path.iterdir()] == []  # nothing was made


def test_a_run_that_takes_hours_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluidcc.simulation.simulate.PATIENCE", 0.0)
    monkeypatch.setattr("fluidcc.simulation.simulate.HOURS", 0.0)
    monkeypatch.setattr("fluidcc.simulation.simulate.pause_after", lambda at: 5)
    says = r"has come to .* of 20 s, and at this pace takes .* hours more; .*smaller until"
    with pytest.warns(errors.FluidccWarning, match=says) as told:
        fc.simulate(net().with_flow("a", law=fc.StaticAIMD, initial=None), 20)
    assert (len(told), told[0].filename) == (1, __file__)


KINDS = [fc.DelayLTI, fc.Link, fc.Network, fc.Scenario, fc.Source, Boundary, DdeResult, Equilibrium,
         LinearNetwork, Sensitivities, StabilityReport, Table, Undelayed]  # fmt: skip


def _public() -> list[tuple[str, Any]]:
    rooms = {"fc": fc, "metrics": fc.metrics, "plot": fc.plot, "num": fc.num, "claims": fc.claims}
    found = [
        (f"{room}.{name}", getattr(module, name))
        for room, module in rooms.items()
        for name in module.__all__
    ]
    for kind in KINDS:
        found += [(f"{kind.__name__}.{k}", v) for k, v in vars(kind).items() if k[0] != "_"]
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
        with pytest.raises(errors.InvalidCall, match=r"\(\) lacks .*; give ") as lacks:
            function()
        assert isinstance(lacks.value, TypeError)  # as in Python


@pytest.mark.parametrize("kind", [fc.Source, fc.Link, fc.Jump, fc.Tick, fc.DelayLTI, fc.Scenario])
def test_what_is_made_without_its_arguments_says_which(kind: Any) -> None:
    with pytest.raises(errors.InvalidCall, match=rf"{kind.__name__}\(\) lacks .*; give "):
        kind()
    with pytest.raises(
        errors.InvalidCall, match=rf"{kind.__name__}\(\) has no argument 'nonsense'"
    ):
        kind(nonsense=1)
