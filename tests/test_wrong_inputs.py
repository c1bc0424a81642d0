"""Wrong inputs of every kind, from Python, TOML and the shell: one sentence each."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sympy import Function, symbols

from fluidcc.base import errors
from fluidcc.base.arguments import brief, shown
from fluidcc.base.errors import FluidccError
from fluidcc.cli import main
from fluidcc.cli.sweep_files import load_sweep

from tests.calls import (  # isort: skip
    TOML, bare, block, dde, fc, flow, g, given, inf, interval, jump, lag, law, link, nan, net,
    price, report, run, swept, tick, with_net, x,
)  # fmt: skip


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
     "initial": NONE | {"empty dict"}, "packet": {"wrong unit"}, "loss": NONE}),
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
    (lambda v: fc.sweep(flow().flow(v, fc.LDCC, route=["l"]), {"a.count": [3]}, "stable"),
     "copy . of flow 'a' is called 'a_.', as another flow is", ["a_2", "a_3"]),
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


api: Any = fc  # whose arguments are not checked beforehand
# Mistakes of new users: what is done, the class of the error, and object, value and remedy as the
# sentence has them.
MISTAKES: list[tuple[Callable[[], Any], type[Exception], list[str]]] = [
    (lambda: api.compile(None), errors.InvalidInput,
     ["the network is NoneType", "'None'", "give a Network"]),
    (lambda: api.limit_cycle(bare()), errors.InvalidInput,
     ["the network", "has no flows", "add one with .flow(name, law, route=[...])"]),
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
    (lambda: swept(measure="critical_eta", delays="frozen"), errors.Unsupported,
     ["delays is 'frozen'", "fluidcc.stability_boundary(point.net, 'eta', delays='frozen').value"]),
    (lambda: api.plot.phase_plane(run()), errors.InvalidInput,
     ["of two flows, not of ['a']", "simulate two"]),
    (lambda: flow(start=[]), errors.InvalidInput, ["start of flow 'a' is empty", "leave start"]),
    (lambda: swept({"zz": [1]}), errors.UnknownName, ["no flow or link has 'zz'; it may be T, ac"]),
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
    ("links.l", "loss", ['"3 ms"', "-1", "1", "true"]),
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
