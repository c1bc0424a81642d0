"""Nothing is silently something else: what hardly means what it says is warned of, what cannot be
meant is refused, as are calls that do not fit.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sympy import Matrix, symbols

from fluidcc.analysis.boundary import Boundary
from fluidcc.analysis.linearize import LinearNetwork
from fluidcc.analysis.report import Sensitivities, StabilityReport
from fluidcc.base import errors
from fluidcc.base.errors import FluidccError
from fluidcc.equilibria.result import Equilibrium
from fluidcc.numerics.dde.result import DdeResult
from fluidcc.papers.ldcc.undelayed import Undelayed
from fluidcc.papers.tables import Table

from tests.calls import (  # isort: skip
    TOML, bare, block, dde, fc, flow, g, interval, lag, law, link, nan, net, report, run,
    swept, x,
)  # fmt: skip


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
    (lambda: link(buffer="-1 s"), "-1 s"), (lambda: link(delay="20 m"), "'m' is no unit"),
    (lambda: flow(packet="3 packets"), "packet of flow"),
    (lambda: flow(initial={"x": True}), "True"),
    (lambda: flow(law=fc.CBR, pattern=[(0, 1e6), (-1, 2e6)]), "a time in a pair"),
    (lambda: bell(-0.05), "-0.05"), (lambda: fc.CBR(rate=-1), "rate"),
    (lambda: frozen(-0.1), r"frozen_at of link 'l' is -0.1; give a queueing delay from 0 to 0.26"),
    (lambda: frozen(True), "True"), (lambda: frozen("1 Mbit"), "an amount of data"),
    (lambda: late(delays="frozen", frozen_at={"k": 0.1}), "'k'; the network has l"),
    (lambda: fc.simulate(bare().flow("a", fc.LDCC, route=["l"]), 1.0, delays="frozen",
                         frozen_at={"l": 1e300}), "from 0 to 1e[+]12 s"),
    (lambda: fc.simulate(net(), 1e13), "until is 1e13|until is 10000000000000"),
    (lambda: fc.simulate(net(), 0), "give a pos"),
    (lambda: late(t_eval=[-1, 0.5]), "t_eval"), (lambda: late(t_eval=[0, 0.5, 0.5]), "strictly"),
    (lambda: late(t_eval=[0, 200]), "within 0 "), (lambda: report().eigenloci(points=1), "is 1"),
    (lambda: fc.simulate(net(), 1, 1e-6), "1e-06 is too much"),
    (lambda: fc.stability_boundary(net(), "a.eta", bounds=(2, 1)), "bounds"),
    (lambda: swept(store="s3://b/x"), "store is 's3://b/x', an address; give a path"),
    (lambda: swept(store=Path("gs://b/x")), "addre"),
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
    (lambda: lag(delay=-1), "delay"), (lambda: block(B=[[1.0], [2.0]]), "B"),
    (lambda: lag().delayed(-1), "-1"), (lambda: interval(n=0), "n is 0"),
    (lambda: fc.metrics.windowed_mean(run().rate, window=1e6), "window"),
    (lambda: fc.simulate(net(), "10"), "'10', text without a unit"),
    (lambda: fc.simulate(net(), 0.1, restart=run()), "restart ends at 0.5 s; give a later"),
    (lambda: fc.Network(3), "nothing by"),
    (lambda: fc.stability(net(), at=elsewhere()), "none of this network: l.q moves; give one of"),
    (lambda: fc.linearize(net(), at=elsewhere()), "none of this network: l.q moves; give one of"),
    (lambda: fc.stability(net(), at=rest(rate=2.9e6)), "none of this network; give one of"),
    (lambda: fc.linearize(net(), at=rest(states={"l": {}})), "knows no LDCC 'a'; give one of"),
    (lambda: fc.stability(net().with_flow("a", law=fc.Vegas), at=rest()), "no Vegas 'a'; give"),
    (lambda: rest(rate=[1, 2]), r"rate is \[1, 2\]; give a number, or 1"),
    (lambda: rest(states=3), "states is 3; give all"),
    (lambda: fc.undelayed(net(), held=3), "held is 3"), (lambda: rest(speed=3), "array 'speed'"),
    (lambda: fc.undelayed(net(), held=["z"]), "'z' to be"), (lambda: link(name="l\t"), "blank"),
    (lambda: flow(start=["1 s", "2"], stop=[3, 4]), "'2', text without"),
    (lambda: link(buffer="1e400 packets"), "'1e400 packets'; give a finite number"),
    (lambda: link(buffer="100"), "'100', text without"), (lambda: bell("50"), "rtt of flow"),
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
    (lambda: fc.DCCP(b=2), "b is 2, but"),
    (lambda: fc.LDCC(beta=symbols("k")), "beta is k; give a number"),
    (lambda: law(limits={g: nan}), "limits has g: nan"), (lambda: law(where=[3]), "where holds 3"),
    (lambda: law(flow={x: Matrix([x])}), r"flow: x is Matrix.*; give an expression"),
    (lambda: law(traffic="burst"), "traffic is 'burst'; give"),
    (lambda: law(threshold=symbols("k")), "depends on k"),
    (lambda: fc.LDCC.with_utility(fc.LDCC.utility, params=3), "LDCC: params is 3"),
    *[(lambda k=k: fc.window("w", 1, **{k: 3}), f"w: {k} is 3; give ") for k in (
        "params", "units", "flow", "jumps", "ticks", "steady", "limits", "meaning", "initial")],
    (lambda: fc.window("w", "1"), "growth is '1'"), (lambda: fc.window("w", 1, least="1"), "least"),
    (lambda: fc.window("w", 1, clock="x"), "clock is 'x'"),
    (lambda: fc.with_windowed_minimum(fc.Vegas, 10**6), "buckets is 1000000; give .* from 2 to"),
    (lambda: fc.with_pause("x"), "law is 'x'"), (lambda: fc.count_packets(fc.RED, -1), "mean"),
    (lambda: lag(delay="100"), "'100', text without"), (lambda: lag(delay="1 bit"), "amount of"),
    (lambda: lag().delayed("x"), "the extra delay is 'x'"),
    (lambda: fc.DelayLTI.retarded(1, (-1, "1 b")), "the delay of A_k is '1 b', an amount"),
    *[(lambda v=v: lag().feedback(sign=v), "sign is .*; give -1 or 1") for v in (2, "-", 0, nan)],
    (lambda: lag().margins(at="x"), "at is 'x'"), (lambda: lag().lsim([1, 2], [0]), "u has the"),
    (lambda: lag().lsim([1, 2], [1, 0]), "t is"),
    (lambda: fc.metrics.mean(run().rate, time=[0, 1]), "a DataArray has its own; leave it out"),
    (lambda: fc.metrics.mean(run()), "x is a Dataset; give one of its variables"),
    (lambda: fc.metrics.jain(run()), "a Dataset"), (lambda: fc.metrics.jain([-1, 2]), "one is -1"),
    (lambda: fc.metrics.settling_time(run().rate, start=9), "start is 9 s, and the samples end"),
    (lambda: fc.metrics.mean(run().rate, 0.4, 0.2), "the span from 0.4 to 0.2 s"),
    (lambda: fc.metrics.mean(run().rate, "0.1"), "start is '0.1', text"),
    (lambda: fc.metrics.over_others([1, 2], True), "no flow True"),
    (lambda: fc.metrics.loss(run(), start=9), "span from 9"),
    (lambda: fc.plot.compare(run(), run(), variable=3), "variable is 3; give a name"),
    (lambda: fc.plot.phase_plane(run(), ["a", "a"]), r"not of \['a', 'a'\]: simulate"),
    (lambda: fc.plot.stability_chart(swept(), measure="z"), "no argument 'measure'"),
    (lambda: swept(until=1), "until is of runs, and no measure here is of one; leave it out"),
    (lambda: swept(window=(0, 1)), "window is of runs"), (lambda: swept(at=-1), "argument 'at'"),
    (lambda: swept(delays="frozen"), "a sweep judges with 'fifo'; give a function"),
    (lambda: swept(measure=["stable", "stable"]), "two measures are named 'stable'"),
    (lambda: swept({"beta": [0.1], "a.beta": [1]}), "both set beta"),
    (lambda: fc.prove(x > 1, where=[3]), "the condition 3 is neither an equation"),
    (lambda: fc.prove(x > 1, where=[g]), "n g is neither"), (lambda: fc.prove("x > 0"), "str 'x >"),
    (lambda: fc.Scenario.loads(TOML, name=3), "name is 3"), (lambda: toml("3"[:0]), "TOML"),
    (lambda: fc.Scenario(3, net(), 1), "name is 3"), (lambda: toml("3e6", "starts = 3"), "'start'"),
    (lambda: toml('"3"'), "'3', text without"), (lambda: toml("3e6", 'count = "3"'), "count of"),
    (lambda: fc.claims.table("ldcc", only="(18)").filter(verdict="z"), "verdict is 'z'; give"),
    (lambda: fc.claims.table("ldcc", only="(18)").filter(own="z"), "own is 'z'; give True"),
    (lambda: fc.claims.reproduce("/proc/x"), "folder /proc/x cannot be made"),
    (lambda: fc.claims.reproduce("x", progress="x"), "progress is 'x'"),
    (lambda: dde(lags=[lambda t, y: 1.0]), "one function of .t, y. that returns them all"),
    (lambda: dde(args={"k": 3}), "must be a tuple: write args"),
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
    (lambda: fc.DelayLTI.retarded(-1, B=[[1, 2], [3]]), "B is"),
    (lambda: net().with_all(
        "flow", 3), "the changes is 3"),
    (lambda: interval(increase=x, decrease=x), "not both"),
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


KINDS = [fc.DelayLTI, fc.Jump, fc.Link, fc.Network, fc.Scenario, fc.Source, fc.Tick, Boundary,
         DdeResult, Equilibrium, LinearNetwork, Sensitivities, StabilityReport, Table,
         Undelayed]  # fmt: skip


def _public() -> list[tuple[str, Any]]:
    rooms = {"fc": fc, "metrics": fc.metrics, "plot": fc.plot, "num": fc.num, "claims": fc.claims}
    found = [
        (f"{room}.{name}", getattr(module, name))
        for room, module in rooms.items()
        for name in module.__all__
    ]
    for kind in KINDS:
        own = [k for k in vars(kind) if k[0] != "_" or k == "__init__"]
        found += [(f"{kind.__name__}.{k}", vars(kind)[k]) for k in own]
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
