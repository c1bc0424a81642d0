"""Wrong inputs of every kind, from Python, TOML and the shell: each answered by one sentence,
with object and value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sympy import symbols

import fluidcc as fc
from fluidcc.base.arguments import brief, shown
from fluidcc.base.errors import FluidccError
from fluidcc.cli import main
from fluidcc.sweeps.files import load_sweep

x, g = symbols("x g", positive=True)
nan, inf = math.nan, math.inf


@cache
def net() -> fc.Network:
    links = fc.Network().link("l", fc.DropTail, capacity=3e6, delay=0.025, buffer="100 packets")
    return links.flow("a", fc.LDCC, route=["l"])


@cache
def run() -> Any:
    return fc.simulate(net(), 0.5, samples=6)


def link(**given: Any) -> Any:
    return fc.Network().link(**{"name": "l", "law": fc.DropTail, "capacity": 1e6, **given})


def flow(**given: Any) -> Any:
    return link(delay=0.01).flow(**{"name": "a", "law": fc.LDCC, "route": ["l"], **given})


def law(**given: Any) -> Any:
    known = {
        "flow": {x: g * x},
        "out": {"rate": x},
        "params": {g: 1},
        "units": {x: "bit/s", g: "1/s"},
    }
    return fc.Source(**{"name": "Mine", **known, **given})


def dde(**given: Any) -> Any:
    known = {"fun": lambda t, y, Z: -Z[:, 0], "t_span": (0, 1), "history": 1.0, "lags": [1.0]}
    return fc.solve_dde(**{**known, **given})


def interval(**given: Any) -> Any:
    known = {
        "k": 0,
        "l": 1,
        "lam": 1,
        "sigma": 0.5,
        "capacity": 10,
        "n": 2,
        "intervals": 5,
        "initial": [1, 2],
    }
    return fc.synchronized(**{**known, **given})


def swept(grid: Any = None, measure: Any = "stable", **given: Any) -> Any:
    return fc.sweep(net(), {"beta": [0.1]} if grid is None else grid, measure, **given)


def lag(**given: Any) -> Any:
    return fc.DelayLTI.transfer(**{"num": [1.0], "den": [1.0, 1.0], "delay": 0.1, **given})


RATE = [
    None,
    True,
    "abc",
    "",
    nan,
    -1,
    0,
    inf,
    "3 mbps",
    "25 ms",
    "1 bit//s",
    "5 bit/s/",
    "1__0 Mbit/s",
    1j,
    b"x",
]
TIME = [True, "abc", nan, -1, "3 Mbit", "5 s/", "-3 s", 1j, b"x", {}]
WHOLE: list[Any] = [None, True, "abc", nan, -1, 1.5, 1j, []]
NUMBER = [None, True, "abc", nan, -1, inf, 1j, [1, 2]]
NETWORK = [None, 3, "ldcc_fig5", fc.LDCC]

# What is called with a wrong value, what the sentence must name, and the values, each of which it
# must name too.
PYTHON: dict[str, tuple[Callable[[Any], Any], str, list[Any]]] = {
    "capacity": (lambda v: link(capacity=v), "capacity of link 'l'", RATE),
    "delay": (lambda v: link(delay=v), "delay of link 'l'", [None, inf, *TIME]),
    "buffer": (lambda v: link(buffer=v), "buffer of link 'l'", [True, "abc", nan, -1, "3 bit/s", 1j,
    b"x", {}]),
    "name of a link": (lambda v: link(name=v), "name of a link", [None, 3, "", b"x"]),
    "law of a link": (lambda v: link(law=v), "law of link 'l'", [None, 3, "DropTail", fc.LDCC]),
    "name of a flow": (lambda v: flow(name=v), "name of a flow", [None, 3, "", b"x"]),
    "law of a flow": (lambda v: flow(law=v), "law of flow 'a'", [None, 3, "LDCC", fc.DropTail]),
    "route": (lambda v: flow(route=v), "route of flow 'a'", [None, 3, "l", ["m"], [3]]),
    "start": (lambda v: flow(start=v), "start of flow 'a'", ["abc", nan, "3 Mbit", 1j, b"x"]),
    "stop": (lambda v: flow(stop=v), "stop of flow 'a'", ["abc", nan, -1, "3 Mbit", 1j, b"x"]),
    "access_delay": (lambda v: flow(access_delay=v), "access_delay of flow 'a'", [None, inf,
    *TIME]),
    "return_delay": (lambda v: flow(return_delay=v), "return_delay of flow 'a'", [inf, *TIME]),
    "packet": (lambda v: flow(packet=v), "packet of flow 'a'", [None, True, "abc", nan, -1, 0, inf,
    "3 s"]),
    "initial": (lambda v: flow(initial=v), "initial of flow 'a'", [3, "abc", {"y": 1}, {"x": "abc"},
    {"x": nan}]),
    "pattern": (lambda v: flow(law=fc.CBR, pattern=v), "pattern of flow 'a'", [3, "abc",
    {"kind": "odd"}, [(0, -1)]]),
    "beta": (lambda v: fc.LDCC(beta=v), "LDCC: parameter beta", [None, True, "abc", nan, -1, 0, inf,
    "3 s", 1j, [1]]),
    "a parameter": (lambda v: fc.LDCC(**{v: 1}), "LDCC has no parameter", ["bta", "self", "", "x"]),
    "a parameter by position": (lambda v: fc.LDCC(v), "LDCC takes parameters by name", [3, None,
    "beta"]),
    "name of a law": (lambda v: law(name=v), "the name of a law", [None, 3, ""]),
    "units of a law": (lambda v: law(units={x: v, g: "1/s"}), "the unit of x", [None, 3, "furlong",
    "bit//s", "b/s)"]),
    "params of a law": (lambda v: law(params={g: v}), "Mine: parameter g", [None, "abc", nan, -1, 0,
    [1]]),
    "out of a law": (lambda v: law(out={v: x}), "no output of a source", ["speed", 3]),
    "flow of a law": (lambda v: law(flow=v), "Mine: flow", [None, 3, "x"]),
    "flows of a dumbbell": (lambda v: fc.dumbbell(v, {"capacity": 1e6}), "flows", [None, 3,
    "LDCC"]),
    "link of a dumbbell": (lambda v: fc.dumbbell([fc.LDCC], v), "link", [None, 3, "l"]),
    "rtt of a dumbbell": (lambda v: fc.dumbbell([fc.LDCC], {"capacity": 1e6}, rtt=v), "rtt", ["abc",
    nan, -1, "3 b"]),
    "a flow": (lambda v: net().base_rtt(v), "flow", ["b", 3, None]),
    "a changed link": (lambda v: net().with_link(v, delay=1), "link", ["m", 3, None]),
    "until": (lambda v: fc.simulate(net(), v), "until", [None, True, "abc", nan, -1, 0, inf,
    "3 Mbit", 1j, [1]]),
    "rtol": (lambda v: fc.simulate(net(), 1, rtol=v), "rtol", NUMBER),
    "atol": (lambda v: fc.simulate(net(), 1, atol=v), "atol", [True, "abc", nan, -1, 1j]),
    "samples": (lambda v: fc.simulate(net(), 1, samples=v), "samples", [0, 1, *WHOLE]),
    "seed": (lambda v: fc.simulate(net(), 1, seed=v), "seed", WHOLE),
    "max_step": (lambda v: fc.simulate(net(), 1, max_step=v), "max_step", [True, "abc", nan, -1, 0,
    1j]),
    "first_step": (lambda v: fc.simulate(net(), 1, first_step=v), "first_step", [True, "abc", nan,
    -1, 0]),
    "delays": (lambda v: fc.simulate(net(), 1, delays=v), "delays", [None, 3, "frosen", True]),
    "engine": (lambda v: fc.simulate(net(), 1, engine=v), "engine", [None, 3, "turbo"]),
    "t_eval": (lambda v: fc.simulate(net(), 1, t_eval=v), "t_eval", ["often", [2, 1], [nan], [-1],
    True]),
    "a network to run": (lambda v: fc.simulate(v, 1), "the network", [None, 3]),
    "a network to rest": (lambda v: fc.equilibrium(v), "the network", [None, 3]),
    "a network to judge": (lambda v: fc.stability(v), "the network", [None, 3]),
    "at": (lambda v: fc.equilibrium(net(), at=v), "at is", [None, True, "abc", nan, -1, "3 Mbit"]),
    "certify": (lambda v: fc.stability(net(), certify=v), "certify", [None, 3, "yes"]),
    "roots": (lambda v: fc.stability(net(), roots=v), "roots", [None, True, "abc", nan, -1]),
    "a boundary's name": (lambda v: fc.stability_boundary(net(), v), "", ["zeta", "b.eta", 3,
    None]),
    "at of num": (lambda v: fc.num.solve(net(), at=v), "at is", [None, "abc", nan, -1]),
    "intervals": (lambda v: interval(intervals=v), "intervals", [None, True, "abc", nan, -1, 1.5]),
    "lam": (lambda v: interval(lam=v), "lam", [None, "abc", nan, -1]),
    "capacity of intervals": (lambda v: interval(capacity=v), "capacity", [None, "abc", nan, -1,
    0]),
    "lags": (lambda v: dde(lags=v), "lags", [None, "abc", [nan], [-1]]),
    "a lag": (lambda v: dde(lags=[v]), r"lags\[0\] .*; give a .*time", [nan, inf, -1.0]),
    "an intensity": (lambda v: fc.AIMD.averaged(intensity=v), "the intensity", [None, "abc",
    10**400, -(10**400)]),
    "a part of a scenario": (lambda v: fc.Scenario.load("p1", {"flows.a.params": v}), "params",
    [np.ones(1), 3]),
    "no name": (lambda v: getattr(net(), v)(), "lacks name; give name", ["with_flow", "with_link"]),
    "t_span": (lambda v: dde(t_span=v), "t_span", [None, 3, "abc", (0,), (0, nan)]),
    "rtol of a dde": (lambda v: dde(rtol=v), "rtol", [None, True, "abc", nan, -1]),
    "method": (lambda v: dde(method=v), "method", [None, 3, "RK99"]),
    "delay of a lag": (lambda v: lag(delay=v), "delay", [None, "abc", nan, -1]),
    "omega": (lambda v: lag().frequency_response(v), "omega", [None, "abc", nan]),
    "grid": (lambda v: swept(v), "the grid", [3, "beta", []]),
    "an axis": (lambda v: swept({"beta": v}), "axis 'beta'", [None, 3, "abc", [nan], [None],
    ["3 s"], [[1, 2], [3]]]),
    "a value of an axis": (lambda v: swept({"beta": v}), "beta", [[0.1, -2, 0.2], [0.1, inf]]),
    "its name": (lambda v: swept({v: [1]}), "axis", ["bta", "a.zeta", "c.beta", "", "a.", "."]),
    "a range": (lambda v: swept({"beta": {"from": 0.1, "to": 0.2, "points": v}}),
    "points of axis 'beta'",
                [None, 1, 2.0, "3", 10**12, -1]),
    "a scale": (lambda v: swept({"beta": {"from": 0.1, "to": 1, "points": 3, "scale": v}}),
    "scale of axis 'beta'",
                [None, 3, "cubic"]),
    "copies": (lambda v: swept({"count": [v]}), "axis 'count'", [None, -1, 1.5, 10**9, "2"]),
    "seeds": (lambda v: swept({"seed": [v]}), "axis 'seed'", [None, -1, 1.5, "2"]),
    "measure": (lambda v: swept(measure=v), "measure", [3, "stabel", "", ["stable", 3], []]),
    "store": (lambda v: swept(store=v), "store", [3, "", "a\0b", "x" * 400]),
    "chunk": (lambda v: swept(chunk=v), "chunk", [True, "abc", nan, -1, 0, 1.5]),
    "workers": (lambda v: swept(workers=v), "workers", [True, "abc", -1, 0, 1.5]),
    "executor": (lambda v: swept(executor=v), "executor", [3, "turbo"]),
    "refine": (lambda v: swept(refine=v), "refine", [3, "stabel"]),
    "progress": (lambda v: swept(progress=v), "progress", [3, "yes"]),
    "window": (lambda v: swept(measure="mean_rate", until=1, window=v), "window", [3, "abc", (0,)]),
    "until of a sweep": (lambda v: swept(measure="mean_rate", until=v), "until", ["abc", nan, -1,
    0]),
    "what is swept": (lambda v: fc.sweep(v, {"beta": [1]}, "stable"), "what is swept", [None, 3,
    "ldcc_fig5"]),
    "a dataset to draw": (lambda v: fc.plot.timeseries(v), "", [None, 3, "run"]),
    "a variable to draw": (lambda v: fc.plot.timeseries(run(), v), "", ["speed"]),
    "window of a mean": (lambda v: fc.metrics.windowed_mean(run().rate, v), "window", [None, "abc",
    nan, -1, 0]),
    "a paper": (lambda v: fc.claims.table(v), "no claims of", ["lddc", 3, ""]),
    "a claim": (lambda v: fc.claims.table("ldcc", only=v), "no claim is at", ["(99)", 3]),
    "a scenario": (lambda v: fc.Scenario.load(v), "", ["ldcc_fig55", "no.toml", "a\0b", "x" * 400,
    3, None]),
    "a ready scenario": (lambda v: fc.scenarios[v], "no ready scenario", ["ldcc_fig55", 3, None]),
    "TOML": (lambda v: fc.Scenario.loads(v, "m.toml"), "m.toml", [None, 3]),
    "flows of only": (lambda v: net().only(v), "flow", [None, 3, "ab", ["b"]]),
    "kind of a pattern": (lambda v: flow(law=fc.CBR, pattern={"kind": v}), "pattern of flow 'a'",
    [3, [1], {}, "odd"]),
    "results of a function": (lambda v: fc.sweep(lambda p: v, {"x": [1]}), "",  ["abc", None, {},
    {"x": 3}, [[1], []]]),
    "a folder": (lambda v: fc.claims.reproduce(v), "folder", [None, 3, "a\0b"]),
}  # fmt: skip

GOOD = {
    "": {"until": '"1 s"'},
    "links.l": {
        "law": '"DropTail"',
        "capacity": '"3 Mbit/s"',
        "delay": '"25 ms"',
        "buffer": '"100 packets"',
    },
    "flows.a": {"law": '"LDCC"', "route": '["l"]'},
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
    ("links.l", "law", ['"DropTale"', "3", '""', '"LDCC"']),
    (
        "links.l",
        "capacity",
        ["0", "-1", '"3 mbps"', '"3 Mbit^999999999/s"', '"1__0 Mbit/s"', '"1 bit//s"', "true"],
    ),
    ("links.l", "delay", ['"5 Mbit"', "-1", "nan", "[]"]),
    ("links.l", "buffer", ['"3 bit/s"', "-1", "true"]),
    ("links.l", "params", ["3", "[]", '"x"']),
    ("flows.a", "law", ['"LDC"', "3", '"DropTail"']),
    ("flows.a", "route", ['"l"', "[]", '["m"]', "3"]),
    ("flows.a", "start", ['"soon"', "true", '"3 Mbit"']),
    ("flows.a", "stop", ["0", "-1", '"late"']),
    ("flows.a", "access_delay", ['"5 Mbit"', "-1"]),
    ("flows.a", "packet", ["0", '"5 s"']),
    ("flows.a", "initial", ["3", "{y = 1}", '{x = "1 s"}']),
    (
        "flows.a",
        "params",
        ["{self = 1}", "{bta = 1}", "{beta = -1}", '{beta = "1 s"}', "{beta = [1]}", "3"],
    ),
]
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
    ("scenario", '""', "scenario"), ("scenario", '"a\\u0000b"', "scenario"), ("scenario", '"."',
    "is a folder"),
    ("measure", "3", "measure is 3"), ("measure", '"rate"', "'rate'"), ("measure", "[]",
    "measure is []"),
    ("grid", "3", "grid is 3"), ("grid", "{ beta = 3 }", "grid.beta is 3"), ("grid", "{}",
    "the grid is {}"),
    ("grid", "{ beta = [] }", "axis 'beta' of the grid has no values"), ("grid", "{ bta = [1] }",
    "'bta'"),
    ("grid", "{ beta = [nan] }", "nan"), ("grid", "{ beta = [0.1, 0.1] }", "0.1 twice"),
    ("grid", "{ beta = [-1] }", "beta is -1"), ("grid", '{ beta = ["1 s"] }', "'1 s'"),
    ("grid", "{ beta = {from = 0.1, to = 1, points = 1000000000000} }", "1000000000000"),
    ("grid", "{ beta = {from = 0, to = 1, points = 3, scale = 'log'} }", "from 0 to 1"),
    ("grid", "{ beta = {from = 1, to = 1, points = 3} }", "from 1 to 1"),
    ("grid", "{ beta = {from = 1, to = 2} }", "grid.beta"), ("grid", "{ count = [1.5] }", "1.5"),
    ("grid", "{ count = [1000000000] }", "1000000000"), ("grid", "{ until = [-1] }", "-1"),
    ("grid", "{ until = ['soon'] }", "'soon'"), ("grid", "{ rtt = ['1 Mbit'] }", "'1 Mbit'"),
    ("grid", "{ capacity = ['3 mbps'] }", "'3 mbps'"), ("grid", "{ 'initial.x' = [-1] }", "-1"),
    ("until", "[]", "until is []"), ("until", '"soon"', "'soon'"), ("window", "3", "window is 3"),
    ("window", '["2 s", "1 s"]', "2 to 1 s"), ("store", "3", "store is 3"), ("store", '""',
    "store is ''"),
    ("refine", '"stabel"', "'stabel'"), ("refine", "3", "refine is 3"), ("chunk", "0",
    "chunk is 0"),
    ("chunk", '"x"', "chunk is 'x'"), ("workers", "0", "workers is 0"), ("workers", "1.5",
    "workers is 1.5"),
    ("executor", '"turbo"', "'turbo'"), ("set", "3", "set is 3"), ("set", '{"flows.z.start" = 1}',
    "'z'"),
    ("set", '{"flows.a.params.self" = 1}', "'self'"), ("options", "3", "options is 3"),
    ("options", "{ progress = 1 }", "options.progress"), ("options", "{ net = 1 }", "options.net"),
    ("options", "{ store = 'x' }", "options.store"), ("options", "{ rtol = 'x' }", "rtol is 'x'"),
    ("options", "{ samples = 1 }", "samples is 1"), ("options", "{ seed = -1 }", "seed is -1"),
    ("options", "{ engine = 'turbo' }", "'turbo'"), ("options", "{ delays = 'frosen' }",
    "'frosen'"),
    ("options", "{ max_step = -1 }", "max_step is -1"), ("colour", "3", "colour"), ("output",
    '"x.txt"', "x.txt"),
    ("output", '"no/x.nc"', "no/x.nc"), ("output", '"a\\u0000.nc"', ".nc"),
]  # fmt: skip
COMMANDS: list[tuple[str, str]] = [
    ("simulate no.toml", "no.toml"), ("simulate ldcc_fig55", "ldcc_fig55"), ("simulate folder",
    "folder"),
    ("simulate bytes.toml", "bytes.toml is not TOML"), ("simulate s.toml --until soon", "'soon'"),
    ("simulate s.toml --until=-1", "-1"), ("simulate s.toml --until=nan", "nan"),
    ("simulate s.toml --rtol 0", "0.0"),
    ("simulate s.toml --rtol nan", "nan"), ("simulate s.toml --rtol 1", "1.0"),
    ("simulate s.toml --set x", "x"),
    ("simulate s.toml --set =3", "=3"), ("simulate s.toml --set flows.z.start=3", "'z'"),
    ("simulate s.toml --set flows.a.params.self=1", "'self'"), ("simulate s.toml --set until=[[[",
    "[[["),
    ("simulate s.toml --set flows.a.law=LDC", "'LDC'"), ("simulate s.toml --set links.l.capacity=0",
    "0"),
    (f"simulate s.toml --set seed={BIG}", "99"), ("simulate s.toml -o x.csv", "x.csv"),
    ("simulate s.toml -o x", "x:"),
    ("simulate s.toml -o s.toml", "s.toml"), ("simulate s.toml -o no/x.nc", "no/x.nc"),
    ("simulate s.toml -o there.nc", "there.nc"), ("simulate s.toml --figure x.gif", "x.gif"),
    ("simulate s.toml --figure s.toml", "s.toml"), (f"simulate s.toml -o {'x' * 300}.nc", "xxx"),
    (f"simulate {'x' * 300}", "xxx"), ("stability s.toml --at late", "'late'"),
    ("stability s.toml --at=nan", "nan"),
    ("stability s.toml --at=-1", "-1"), ("stability s.toml -o x.txt", "x.txt"),
    ("stability no.toml", "no.toml"),
    ("stability s.toml -o there.png", "there.png"), ("sweep no.toml", "no.toml"), ("sweep folder",
    "folder"),
    ("sweep s.toml", "until"), ("sweep bytes.toml", "bytes.toml"), ("sweep g.toml -o x.txt",
    "x.txt"),
    ("sweep g.toml -o g.toml", "g.toml"), ("sweep g.toml -o there.nc", "there.nc"),
    ("sweep g.toml --workers 0", "0"),
    ("sweep g.toml --store s.toml", "s.toml"), ("sweep g.toml --scheduler nowhere", "nowhere"),
    ("claims lddc", "'lddc'"), ("reproduce --folder s.toml", "s.toml"),
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
    for name, (call, named, values) in PYTHON.items():
        for k, value in enumerate(values):
            yield pytest.param(lambda c=call, v=value: c(v), (named, value), id=f"{name} {k}")
    for table, key, texts in SCENARIO:
        for text in texts:
            inner = (
                "True"
                if text == "true"
                else re.sub(r"^[{\['\"]+|[}\]'\"]+$", "", text).split(" = ")[0]
            )
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
    parts = (
        [*value, *value.values()]
        if isinstance(value, dict)
        else value
        if isinstance(value, list | tuple)
        else []
    )
    inner = [word for part in parts for word in _words(part)]
    return [shown(value), *([brief(value)] if isinstance(value, str) else []), *inner]


CASES = list(_cases())


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


def test_there_are_four_hundred() -> None:
    assert len(CASES) >= 400


def test_the_files_that_are_changed_are_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(_text("", "title", '"t"'))
    Path("g.toml").write_text("\n".join(f"{k} = {v}" for k, v in SWEEP.items()))
    scenario, given, _ = load_sweep("g.toml")
    assert scenario.net.flow_names == ("a",)
    assert given["grid"] == {"beta": [0.1, 0.2]}
    assert np.isfinite(swept({"beta": [0.1]}, "decay_rate").decay_rate)
