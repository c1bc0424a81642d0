"""Ctrl-C ends whatever runs: compiled code returns to Python, and threads look."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.progress import Stopped, look, unless

ONE = "net = fc.dumbbell([fc.LDCC], {'capacity': 3e6}, rtt=0.05)\n"
MANY = "flows = [fc.LDCC(eta=0.1 + i / 1e4) for i in range({})]\n"
BUSY = MANY + "net = fc.dumbbell(flows, {{'capacity': 3e7}}, rtt=0.05)\nfc.{}(net)"
SINE = "lambda t, y, Z: np.cos(7 * t) - Z[:, 0]"
ENDLESS = {
    "simulate": (
        "net = fc.dumbbell([fc.AIMD, fc.AIMD], {'capacity': 1e7, 'buffer': 1e5}, rtt=0.05)\n"
        "run = lambda until: fc.simulate(net, until, samples=10, engine='array')\nrun(1)",
        "run(1e9)",
    ),
    "solve_dde": (
        f"run = lambda until: fc.solve_dde({SINE}, (0, until), [1.0], [1.0])\nrun(1)",
        "run(1e6)",
    ),
    "solve_dde compiled": (
        f"import numba\nfun, most = numba.njit({SINE}), 10**12\n"
        "run = lambda t: fc.solve_dde(fun, (0, t), [1.0], [1.0], max_steps=most)\nrun(1)",
        "run(1e9)",
    ),
    "solve_dde of many": (
        "import numba\nfun = numba.njit(lambda t, y, Z, k: np.cos(7 * t) - k * Z[:, 0])\n"
        "given = {'args': np.ones((9, 1)), 'max_steps': 10**12}\n"
        "run = lambda t: fc.solve_dde(fun, (0, t), [1.0], [1.0], **given)\nrun(1)",
        "run(1e9)",
    ),
    "equilibrium": (BUSY.format(9, "equilibrium"), "[fc.equilibrium(net) for _ in range(10**9)]"),
    "stability": (BUSY.format(9, "stability"), "[fc.stability(net) for _ in range(10**9)]"),
    "sweep": (
        ONE + "def run(points, until):\n"
        "    grid = {'eta': np.linspace(0.1, 0.8, points), 'beta': np.linspace(0.05, 0.2, 9)}\n"
        "    fc.sweep(net, grid, ['mean_rate'], until=until, executor='threads', workers=2)\n"
        "run(3, 1)",
        "run(300, 1e7)",
    ),
    "synchronized": (
        "run = lambda n: fc.synchronized(0.5, 1, 0.01, 0.1, 10, intervals=n, keep=False)\nrun(10)",
        "[run(9 * 10**9) for _ in range(10**6)]",
    ),
}


#: does what stands in each line of its input: says when it begins, and that it has been stopped
CHILD = """
import signal, sys
import fluidcc as fc
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
for line in sys.stdin:
    prepare, call = eval(line)
    exec(prepare)
    print("ready", flush=True)
    try:
        exec(call)
    except KeyboardInterrupt:
        print("heard", flush=True)
"""


@pytest.fixture(scope="module")
def child() -> Iterator[Any]:
    how: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", CHILD], start_new_session=True, **how) as one:
        yield one
        one.kill()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals as Unix has them")
@pytest.mark.parametrize("name", ENDLESS)
def test_ctrl_c_ends_it(child: Any, name: str) -> None:
    print(ENDLESS[name], file=child.stdin, flush=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.5)
    assert child.poll() is None
    late = threading.Timer(60, child.kill)
    late.start()
    os.killpg(child.pid, signal.SIGINT)
    assert child.stdout.readline() == "heard\n"
    late.cancel()


@pytest.mark.parametrize("call", ["stability", "sweep", "roots", "count_unstable"])
def test_ctrl_c_is_heard_while_compiled_code_hands_over(call: Any) -> None:
    """What numba's own Python hears, called to build an object, comes out as a SystemError."""
    net = fc.dumbbell([fc.LDCC(eta=0.1), fc.LDCC(eta=0.2)], {"capacity": 3e7}, rtt=0.05)
    calls = {
        "stability": lambda: fc.stability(net),
        "sweep": lambda: fc.sweep(net, {"beta": [0.1, 0.2]}, ["gain_margin"], executor="serial"),
        "roots": lambda: fc.DelayLTI.retarded(0, (-1, 1.0)).roots(),
        "count_unstable": lambda: fc.DelayLTI.retarded(0, (-1, 1.0)).count_unstable(),
    }
    calls[call]()
    times = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal times
        if frame.f_code.co_name == "_numba_unpickle":
            times += 1
            raise KeyboardInterrupt
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(KeyboardInterrupt):
            calls[call]()
    finally:
        sys.settrace(before)
    assert times == 1


def test_a_thread_stops_at_the_next_look() -> None:
    stop = threading.Event()
    look()  # nothing to stop here
    assert unless(stop, sum, [3, 4]) == 7
    stop.set()
    with pytest.raises(Stopped):
        unless(stop, look)
    look()


def test_runs_in_pieces_are_those_without_a_pause(monkeypatch: Any) -> None:
    """Many runs in one call of compiled code, with and without returns to Python in between."""
    net = fc.dumbbell([fc.LDCC], {"capacity": 3e6}, rtt=0.05)
    grid = {"eta": np.linspace(0.1, 0.8, 5), "beta": np.linspace(0.05, 0.2, 4)}
    given: Any = net, grid, ["mean_rate", "max_queueing_delay"]
    whole = fc.sweep(*given, until=60)
    monkeypatch.setattr(sys.modules["fluidcc.sweeps.trajectories"], "pause_after", lambda at: 1)
    pieces = fc.sweep(*given, until=60)
    assert np.array_equal(whole.mean_rate, pieces.mean_rate)
    assert np.array_equal(whole.max_queueing_delay, pieces.max_queueing_delay)
