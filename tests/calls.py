"""Calls with good arguments, of which wrong inputs change one."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from sympy import symbols

import fluidcc

fc: Any = fluidcc  # given here what its types forbid
x, g = symbols("x g", positive=True)
nan, inf = math.nan, math.inf


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


def bare(**changes: Any) -> fc.Network:
    return link(**{"capacity": 3e6, "delay": 0.025, **changes})


TOML = 'until = "9 s"\n[links.l]\ncapacity = "3 Mbit/s"\n[flows.a]\nlaw = "LDCC"\nroute = ["l"]\n'
