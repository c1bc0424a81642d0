"""The text of a kernel, run as plain Python, computes what the law says; over every law."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Abs, Heaviside, Max, Min, Piecewise, Symbol, exp, log, sign, sqrt, symbols

from fluidcc.base.errors import LawError
from fluidcc.laws import Law, Source
from fluidcc.laws.kernel_text import assignments, law_reference, scalar_text
from fluidcc.laws.kernels import _HEAD, kernel_text
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.simulation.fused import _full_text
from fluidcc.simulation.layout import lay_out
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import LDCC
from fluidcc.symbols import RTT, e, edot, packet, pi
from tests.some_laws import all_laws, random_values

LAWS = pytest.mark.parametrize("law", all_laws(), ids=lambda law: law.name)


def run(
    law: Law, values: dict[Symbol, float], **options: Any
) -> tuple[list[float], list[float], list[float]]:
    """Flow, outputs and modes from the text, the modes found from the switches in order."""
    names = {s: f"a[{i}]" for i, s in enumerate(values)}
    modes = [f"m[{k}]" for k in range(len(law.switches))]
    text = assignments(law, names, modes, "k", **options)
    scope: dict[str, Any] = {"math": math, "a": list(values.values()), "m": [0.0] * len(modes)}
    for k, switch in enumerate(text.switches):  # a switch depends on earlier modes only
        exec("\n".join(text.lines), scope)
        scope["m"][k] = float(eval(switch, scope) > 0)
    exec("\n".join(text.lines), scope)
    return (
        [eval(f, scope) for f in text.flow],
        [eval(f, scope) for f in text.out.values()],
        scope["m"],
    )


@LAWS
def test_text_agrees_with_lambdify_to_a_few_ulps(law: Law) -> None:
    values = random_values(law, 40)
    u = np.array([values[s] for s in law.inputs])
    p = np.array([values[s] for s in law.params]).reshape(len(law.params), 40)
    z = np.array([values[s] for s in law.states]).reshape(len(law.states), 40)
    flow, out = law_reference(law)(z, u, p)
    for i in range(40):
        got_flow, got_out, _ = run(law, {s: float(v[i]) for s, v in values.items()})
        terms = (
            max(np.abs(flow[:, i]).max(initial=0), np.abs(u[:, i]).max(), 1.0) * 100
        )  # cancellation within sums
        np.testing.assert_allclose(got_flow, flow[:, i], rtol=1e-14, atol=4e-16 * terms)
        np.testing.assert_allclose(got_out, out[:, i], rtol=1e-14, atol=4e-16 * terms)


@LAWS
def test_modes_are_the_signs_of_the_switches(law: Law) -> None:
    values = random_values(law, 10, seed=1)
    for i in range(10):
        at = {s: float(v[i]) for s, v in values.items()}
        modes = run(law, at)[2]
        assert modes == [
            float(float(s.subs(at | dict(zip(law.switched().modes, modes, strict=True)))) > 0)
            for s in law.switches
        ]


def test_the_side_not_taken_may_be_singular() -> None:
    m = Symbol("m")
    f = Piecewise((sqrt(pi) / pi + log(pi), m > 0.5), (pi * 3, True)) + 1 / (1 + pi) + log(pi + 1)
    lines, (text,) = scalar_text([f], {pi: "a", m: "m"})
    scope: dict[str, Any] = {"math": math, "a": 0.0, "m": 0.0}
    exec("\n".join(lines), scope)
    assert eval(text, scope) == 1.0


def test_nested_kinks_agree_with_numpy() -> None:
    z = symbols("z", real=True)
    p, q = symbols("p q", real=True)
    law = Source(
        "Kinky",
        flow={
            z: (Max(p, Min(q, z) - q, exp(edot) * z) + Abs(Max(q, z)) - sign(z - p) * Heaviside(q))
            / RTT
        },
        out={"rate": Piecewise((z, (z > p) & (q >= 0)), (p, z <= q), (q * q, True)) * packet / RTT},
        params={p: 1, q: 2},
        units={z: "1", p: "1", q: "1"},
    )
    n = 200
    values = random_values(law, n)
    stack = [np.array([values[s] for s in group]) for group in (law.states, law.inputs, law.params)]
    flow, out = law_reference(law)(*stack)
    seen = set()
    for i in range(n):
        got_flow, got_out, modes = run(law, {s: float(v[i]) for s, v in values.items()})
        np.testing.assert_allclose([*got_flow, *got_out], [*flow[:, i], *out[:, i]], rtol=1e-13)
        seen.add(tuple(modes))
    assert len(seen) > 8  # many different branches were tried


def test_powers_are_products() -> None:
    lines, texts = scalar_text([(e + pi) ** 3, 1 / e**2, e**0.5, e**pi], {e: "u", pi: "v"})
    text = "\n".join([*lines, *texts])
    assert "**" not in text.replace("u**v", "")
    scope = {"math": math, "u": 1.7, "v": 0.3}
    exec("\n".join(lines), scope)
    assert [eval(t, scope) for t in texts] == pytest.approx(
        [2.0**3, 1.7**-2, math.sqrt(1.7), 1.7**0.3], rel=1e-15
    )


def test_a_missing_name_is_refused() -> None:
    law = all_laws()[0]
    with pytest.raises(LawError, match="no name was given for"):
        assignments(law, {}, [f"m{k}" for k in range(len(law.switches))])


def test_numba_compiles_the_text_and_agrees() -> None:
    numba = pytest.importorskip("numba")
    (x,) = LDCC.states
    names = {s: f"a[{i}]" for i, s in enumerate((*LDCC.states, *LDCC.inputs, *LDCC.params))}
    text = assignments(LDCC, names, ["m[0]"], "k", extra={"bound": 2 * x})
    body = [*text.lines, f"return {text.flow[0]}, {text.switches[0]}, {text.extra['bound']}"]
    scope: dict[str, Any] = {"math": math}
    exec("def f(a, m):\n    " + "\n    ".join(body), scope)
    fast = numba.njit(error_model="numpy")(scope["f"])
    rng = np.random.default_rng(5)
    for mode in (0.0, 1.0):
        a = rng.uniform(0.1, 2, len(names))
        np.testing.assert_allclose(fast(a, np.array([mode])), scope["f"](a, [mode]), rtol=1e-14)


def test_no_name_of_a_law_is_run() -> None:
    """Neither as a part of the kernel's text, nor of the fused step's."""
    evil = '"""; raise SystemExit("run"); """'
    law = replace(LDCC, name=evil)
    net = Network().link("l", DropTail, capacity=3e6).flow("f", law, route=["l"], return_delay=0.02)
    assert "SystemExit" not in _HEAD + kernel_text(law) + _full_text(lay_out(net))
    simulate(net, 1.0)
    with pytest.raises(LawError, match="the name of a law is .*; give a line of text"):
        replace(LDCC, name='"""\nimport os\n"""')
