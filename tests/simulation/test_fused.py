"""Fused steps against the array step: the same work, and runs to tolerance."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dis import get_instructions
from itertools import pairwise
from types import CodeType
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import InvalidInput
from fluidcc.links import DropTail, DualLink, PenaltyLink
from fluidcc.network.network import Network
from fluidcc.simulation.fused import _structure, fused_address
from fluidcc.simulation.fused import compile as compile_network
from fluidcc.simulation.fused_text import step_text
from fluidcc.simulation.layout import lay_out
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import CBR, LDCC, PrimalDual, StaticReno
from tests.hybrid_laws import BACK, aimd, alone, sampled


def one_link() -> Network:
    flow = {"law": LDCC, "return_delay": 0.025, "start": 0}
    flows = {f"f{i}": {**flow, "initial": {"x": 1e5 * (i + 1)}} for i in range(3)}
    return fc.dumbbell(flows, {"name": "l", "capacity": 3e6, "delay": 0.025, "buffer": 2.1e5})


def crowd() -> Network:
    """Three flows that are taken together, and one alone; some come and go, as capacity does."""
    net = Network().link("l", DropTail, capacity=[(0, 4e6), (6, 3e6)], delay=0.02, buffer=3e5)
    for i in range(4):
        back = 0.01 if i < 3 else 0.05
        more: Any = {} if i % 3 else {"start": [0.0, 5.0], "stop": [3.0 + 0.1 * i, 9.0]}
        more |= {"return_delay": back, "initial": {"x": 1e5 * (i + 1)}}
        net.flow(f"f{i}", LDCC(w=20e3 + 1e3 * i), route=["l"], **more)
    return net


def prices() -> Network:
    """Over two hops with frozen delays, of which one changes its capacity."""
    links = [{"law": PenaltyLink, "capacity": [(0, 3e6), (4, 2.5e6)], "delay": 0.01},
             {"law": DualLink, "capacity": 3e6, "delay": 0.01}]  # fmt: skip
    long, first = (PrimalDual(alpha=1e5, w=w) for w in (20e3, 40e3))
    return fc.parking_lot([long], [first, {"law": long, "start": 5}], links)


def drops() -> Network:
    """Early drops, then a full buffer, at capacities that change; laws with states and without,
    and given rates, of flows that come and go.
    """
    net = Network().link("a", fc.REDDrop(T=0.1), capacity=[(0, 1e6), (4, 0.9e6)], delay=0.01)
    net.link("b", DropTail, capacity=0.8e6, delay=0.01, buffer=1e5)
    net.flow("udp", CBR(rate=5e5), route=["a", "b"], start=0)
    net.flow("reno", StaticReno, route=["a"], access_delay=0.01, start=1)
    net.flow("ldcc", LDCC, route=["a"], access_delay=0.01, start=[0, 6], stop=[5, 20])
    return net.flow("bursts", CBR, route=["b"], pattern=[(0, 1e5), (2, 6e5), (3, 2e5)], start=0)


def with_jumps() -> Network:
    net = alone(aimd(), 1e4, return_delay=BACK, initial={"x": 9.95e6})
    return net.flow("g", sampled(K=1e5, P=0.04), route=["l"], start=0.1, initial={"x": 1e5})


RUNS: dict[str, tuple[Callable[[], Network], str]] = {
    "full buffer": (one_link, "fifo"),
    "three together, one alone": (crowd, "frozen"),
    "prices": (prices, "frozen"),
    "drops": (drops, "fifo"),
    "jumps and ticks": (with_jumps, "fifo"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", RUNS)
def test_runs_agree_with_the_array_step_to_tolerance(case: str) -> None:
    make, delays = RUNS[case]
    rtol = 1e-8
    how: Any = {"delays": delays, "rtol": rtol}
    array, fast = (simulate(make(), 20.0, engine=e, **how) for e in ("array", "fused"))
    assert (array.attrs["engine"], fast.attrs["engine"]) == ("array", "fused")
    assert array.attrs["events"] == fast.attrs["events"]
    for work in ("steps", "rejections", "nfev", "extra_passes"):  # the same errors are estimated
        assert fast.attrs[work] == pytest.approx(array.attrs[work], rel=0.04, abs=3), work
    if case == "jumps and ticks":
        assert array.attrs["jumps"] == fast.attrs["jumps"] > 3
        times = [fc.metrics.jumps(run).time for run in (fast, array)]
        np.testing.assert_allclose(times[0], times[1], atol=1e-6)
        np.testing.assert_allclose(fast.rate[-1], array.rate[-1], rtol=1e-5)
        return
    for name in (name for name, values in array.data_vars.items() if values.dims[0] == "time"):
        a, b = array[name].values, fast[name].values
        atol = 100 * rtol * max(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)), 1e-3)
        np.testing.assert_allclose(b, a, rtol=0, atol=atol, err_msg=str(name))


def test_other_values_take_the_same_step_and_are_read_at_run_time() -> None:
    other = Network().link("x", DropTail, capacity=5e6, delay=0.04, buffer=1e7)
    for i in range(3):
        law = LDCC(w=1e4 * (i + 1), beta=0.2 + 0.1 * i, T=0.02 * (i + 1), eta=0.3)
        other.flow(f"g{i}", law, route=["x"], return_delay=0.01, initial={"x": 3e5}, start=0)
    addresses = [fused_address(lay_out(net)) for net in (one_link(), other)]
    assert addresses[0] == addresses[1]
    array, fast = (simulate(other, 20.0, rtol=1e-8, engine=e) for e in ("array", "fused"))
    np.testing.assert_allclose(fast.rate, array.rate, rtol=0, atol=5.0)


def test_structures_differ_in_text() -> None:
    layouts = []
    for make, delays in [*RUNS.values(), (drops, "frozen")]:
        net = make()
        layouts.append(
            lay_out(net, dict.fromkeys(net.link_names, 0.0) if delays != "fifo" else None)
        )
    known, texts = ({f(at) for at in layouts} for f in (_structure, lambda at: step_text(at, "")))
    assert len(known) == len(texts) == len(layouts)


@pytest.mark.parametrize("law", [fc.BBRv1, fc.BBRv3, fc.SlowStartTFRC], ids=lambda law: law.name)
def test_no_result_is_a_tuple_made_of_a_list(law: fc.Source) -> None:
    """Python makes those of more than thirty so, which numba refuses."""
    text = step_text(lay_out(fc.dumbbell([law], {"capacity": 1e7}, rtt=0.05)), "")
    for code in codes_of(compile(text, "", "exec")):
        steps = [step.opname for step in get_instructions(code)]
        assert ("LIST_TO_TUPLE", "RETURN_VALUE") not in pairwise(steps)


def codes_of(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from codes_of(inner)


def test_the_engine_follows_from_the_network_alone_and_not_from_what_is_compiled() -> None:
    before = simulate(one_link(), 5.0)
    said = compile_network(one_link())
    assert said.startswith("fused step of 3 LDCC over 1 DropTail, fifo delays: ready after ")
    after, fast = (simulate(one_link(), 5.0, engine=e) for e in ("auto", "fused"))
    assert [run.attrs["engine"] for run in (before, after, fast)] == ["array", "array", "fused"]
    assert before.rate.values.tobytes() == after.rate.values.tobytes()
    assert before.rate.values.tobytes() != fast.rate.values.tobytes()  # else nothing was compared


def test_large_networks_are_refused_with_the_limit() -> None:
    net = fc.dumbbell([LDCC] * 9, {"capacity": 3e6, "delay": 0.025})
    for act in (lambda: compile_network(net), lambda: simulate(net, 1.0, engine="fused")):
        with pytest.raises(InvalidInput, match="9 .flow, link. pairs .* at most 8"):
            act()
    assert simulate(net, 1.0).attrs["engine"] == "array"
    with pytest.raises(InvalidInput, match="delays is 'both'"):
        compile_network(net, delays="both")


_PLAIN = """
import json, sys
sys.path[:0] = {path!r}
import numpy as np, fluidcc as fc
from tests.simulation.test_fused import judged, one_link, with_jumps
engines = ("array", "fused", "auto")
a, b, c = (fc.simulate(one_link(), 0.3, rtol=1e-5, samples=5, engine=e) for e in engines)
assert [d.attrs["engine"] for d in (a, b, c)] == ["array", "fused", "array"]
assert abs(a.rate - b.rate).max() < 10.0
ds = fc.simulate(with_jumps(), 0.3, samples=3, rtol=1e-5)
with np.errstate(all="ignore"):  # as compiled code has it
    print(json.dumps([float(b.rate[-1, 0]), fc.metrics.jumps(ds).time.values.tolist(),
                      fc.metrics.ticks(ds).time.values.tolist(), judged()]))
"""


def judged() -> list[float]:
    """What is computed by the compiled linear algebra, of a verdict."""
    net = fc.dumbbell([LDCC] * 2, {"capacity": "3 Mbit/s"}, rtt=["20 ms", "150 ms"])
    report = fc.stability(net)
    first = report.rightmost_roots[0]
    margins = [report.gain_margin, report.phase_margin, report.delay_margin]
    return [float(v) for v in (*margins, first.real, first.imag)]


@pytest.mark.slow
def test_without_the_jit_all_runs_as_plain_python() -> None:
    path = [p for p in sys.path if p] + [os.getcwd()]
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    script = [sys.executable, "-c", _PLAIN.format(path=path)]
    done = subprocess.run(script, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rate, jumps, ticks, verdict = json.loads(done.stdout)
    assert verdict == pytest.approx(judged(), rel=1e-9, abs=1e-12)
    expected = simulate(one_link(), 0.3, rtol=1e-5, samples=5, engine="fused").rate[-1, 0]
    assert math.isclose(rate, float(expected), rel_tol=1e-4)
    ds = simulate(with_jumps(), 0.3, samples=3, rtol=1e-5)
    assert (len(jumps), len(ticks)) == (1, 5)
    np.testing.assert_allclose(jumps, fc.metrics.jumps(ds).time.values, rtol=1e-9)
    np.testing.assert_allclose(ticks, fc.metrics.ticks(ds).time.values, rtol=1e-12)
