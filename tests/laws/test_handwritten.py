"""A law from a function written by hand is the law from symbols, where both exist; without
symbols it is refused.
"""

import math
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from sympy import Symbol, symbols

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, LawError, Unsupported
from tests.some_laws import reference

x = Symbol("x", positive=True)
w, beta, T, eta = symbols("w beta T eta", positive=True)
PLACE: dict[str, Any] = {
    "states": [x],
    "params": {w: 20e3, beta: 0.1, T: 0.1, eta: 0.4},
    "units": {x: "bit/s", w: "bit/s", beta: "1", T: "s", eta: "1"},
    "lower": {x: 0},
    "initial": {x: 5 * w},
}


def ldcc(x, e, edot, pi, e_b, w, beta, T, eta):  # type: ignore[no-untyped-def]
    """(15) to (17) of the LDCC paper, as a programmer writes them."""
    rtt = e + e_b
    penalty = 0.0
    if e > T:
        penalty = beta * (e - T) / rtt
    return (eta / rtt * (w - x * (penalty + edot + pi)), x)


BY_HAND = fc.Source.from_kernel("ByHand", ldcc, **PLACE)


def net(law: Any) -> fc.Network:
    net = fc.Network().link("l", fc.DropTail, capacity=2e6, delay=0.025, buffer=6e5)
    return net.flow("a", law, route=["l"]).flow("b", law(w=30e3), route=["l"], access_delay=0.01)


def runs(law: Any, **options: Any) -> Any:
    how: Any = {"rtol": 1e-9, "atol": 1e-11, "samples": 121, "engine": "array", **options}
    return fc.simulate(net(law), 12.0, **how)


def test_right_hand_sides_agree_with_the_symbolic_law() -> None:
    rng = np.random.default_rng(1)
    z, p = rng.uniform(0.5, 2, (1, 40)), rng.uniform(0.5, 2, (4, 40))
    u = rng.uniform(0.01, 2, (len(BY_HAND.inputs), 40))
    by_hand, symbolic = (reference(law)(z, u, p) for law in (BY_HAND, fc.LDCC))
    for got, wanted in zip(by_hand, symbolic, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-13)


def test_runs_agree_with_the_symbolic_law() -> None:
    """The rate may be a value of the kernel, or the state itself; kinks are not located."""
    wanted = runs(fc.LDCC)
    as_state = fc.Source.from_kernel("ByHand", decorated, rate=x, **PLACE)
    for law in (BY_HAND, as_state):
        got = runs(law)
        np.testing.assert_allclose(got.rate, wanted.rate, rtol=1e-6)
        np.testing.assert_allclose(got.backlog, wanted.backlog, atol=1.0)
        assert got.attrs["engine"] == "array"


@njit
def decorated(x, e, edot, pi, e_b, w, beta, T, eta):  # type: ignore[no-untyped-def]
    rtt = e + e_b
    penalty = beta * max(e - T, 0.0) / rtt
    return (eta / rtt * (w - x * (penalty + edot + pi)),)


def test_it_is_a_law_like_any_other() -> None:
    assert pickle.loads(pickle.dumps(BY_HAND)) is BY_HAND
    assert BY_HAND(w=1e4).parameter("w") == 1e4
    assert BY_HAND(w=1e4).structure is BY_HAND.structure
    assert r"\mathrm{ldcc}_{0}" in BY_HAND._repr_latex_()
    assert fc.Source.from_kernel("Other", ldcc, **PLACE) != BY_HAND
    assert replace(BY_HAND, name="Named").flow == BY_HAND.flow


@pytest.mark.slow
def test_it_pickles_to_a_fresh_process(tmp_path: Path) -> None:
    """Workers have neither the function nor its module: the text is in the law."""
    (tmp_path / "law.pickle").write_bytes(pickle.dumps(BY_HAND))
    where = str(tmp_path / "law.pickle")
    code = (
        f"import pickle, fluidcc as fc\nlaw = pickle.load(open({where!r}, 'rb'))\n"
        "net = fc.dumbbell([law], {'capacity': 2e6, 'delay': 0.025})\n"
        "print(float(fc.simulate(net, 1.0, engine='array').rate[-1, 0]))"
    )
    command = [sys.executable, "-c", code]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    here = fc.dumbbell([BY_HAND], {"capacity": 2e6, "delay": 0.025})
    assert float(there) == float(fc.simulate(here, 1.0, engine="array").rate[-1, 0])


def test_what_needs_equations_refuses_it() -> None:
    words = r"the kernel ldcc\(\) is written by hand, so it has no derivative by"
    for call in (fc.equilibrium, fc.linearize):
        with pytest.raises(Unsupported, match=words):
            call(net(BY_HAND))
    words = "ByHand is a kernel written by hand, which a fused step"
    with pytest.raises(InvalidInput, match=words):
        fc.compile(net(BY_HAND))


def outside(x, e):  # type: ignore[no-untyped-def]
    return x * net(e), x


def unknown(x, queue):  # type: ignore[no-untyped-def]
    return x - queue, x


def short(x, e):  # type: ignore[no-untyped-def]
    return x * math.exp(-e)


def hidden(x, e_b):  # type: ignore[no-untyped-def]
    return (5.0 - x) / e_b, x


def default(x, e=1.0):  # type: ignore[no-untyped-def]
    return x * e, x


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (
            outside,
            "its kernel outside uses net from outside; define it inside the kernel, or make ",
        ),
        (unknown, "argument queue of its kernel unknown is neither a state"),
        (short, "its kernel short returns .*; return a tuple of 2: the derivative of each state,"),
        (hidden, "the flow of x mixes units: .* what it holds besides numbers must be a parameter"),
        (default, "its kernel default must name every argument, without"),
        (lambda x: (x, x), "is not a function made by def|cannot be read"),
        (math.sin, "the source of its kernel .* cannot be read; write it with def"),
    ],
)
def test_kernels_that_cannot_be_used(kernel: Any, words: str) -> None:
    with pytest.raises(LawError, match=words):
        fc.Source.from_kernel("K", kernel, states=[x], units={x: "bit/s"}, initial={x: 1e5})
