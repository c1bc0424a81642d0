"""The text of a kernel, run as plain Python, computes what the law says; over every law."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Abs, Heaviside, Max, Min, Piecewise, Symbol, exp, log, sign, sqrt, symbols

from fluidcc.base.errors import LawError
from fluidcc.laws import Law, Link, Source
from fluidcc.laws.kernels import _HEAD, LINK_OUT, count_switches, kernel_text, scalar_text
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.simulation.fused_text import step_text
from fluidcc.simulation.layout import lay_out
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import LDCC
from fluidcc.symbols import OF_FLOWS, RTT, e, edot, packet, pi, q_max, t, y
from fluidcc.symbols import c as capacity
from tests.some_laws import all_laws, random_values, reference

LAWS = pytest.mark.parametrize("law", all_laws(), ids=lambda law: law.name)


N = 40


def run(law: Law, values: dict[Symbol, Any]) -> tuple[Any, Any, Any]:
    """Flows, outputs by name and switches of the kernel's text, run as Python, at N points."""
    own = [z for z in law.states if z != getattr(law, "queue", None)]
    rows: list[Any] = [*law.inputs]
    if isinstance(law, Link):
        rows = [y, capacity, law.queue, q_max, t, *OF_FLOWS]
    z, u, p = (
        np.array([values.get(s, np.zeros(N)) for s in group]).ravel()
        for group in (own, rows, law.params)
    )
    wanted = LINK_OUT if isinstance(law, Link) else ("rate",)
    modes = np.full(count_switches(law) * N, -1.0)  # decided here and now
    dz, out, switches = (np.zeros(n * N) for n in (len(own), len(wanted), count_switches(law)))
    scope: dict[str, Any] = {"math": math}
    exec(kernel_text(law), scope)
    scope["kernel"](N, N, z, u, p, modes, dz, out, switches, 1)
    outputs = dict(zip(wanted, out.reshape(-1, N), strict=True))
    return dict(zip(own, dz.reshape(-1, N), strict=True)), outputs, switches.reshape(-1, N)


def check(law: Law) -> Any:
    """The kernel's text against NumPy's reading of the law, to a few ulps; return the switches."""
    law, values = replace(law, lower={}, upper={}, initial={}), random_values(law, N)
    u, p, z = (
        np.array([values[s] for s in group]).reshape(len(group), N)
        for group in (law.inputs, law.params, law.states)
    )
    flow, out = reference(law)(z, u, p)
    got_flow, got_out, switches = run(law, values)
    sizes = np.abs([*flow, *u, np.ones(N)]).max(axis=0) * 100  # cancellation within sums
    for s, row in zip(law.states, flow, strict=True):
        if s in got_flow:
            np.testing.assert_array_less(abs(got_flow[s] - row), 4e-16 * sizes + 1e-14 * abs(row))
    for name, row in zip(law.out, out, strict=True):
        if name in got_out:
            np.testing.assert_array_less(abs(got_out[name] - row), 4e-16 * sizes + 1e-14 * abs(row))
    return switches


@pytest.mark.slow
@LAWS
def test_text_agrees_with_numpy_to_a_few_ulps(law: Law) -> None:
    check(law)


def test_the_side_not_taken_may_be_singular() -> None:
    m = Symbol("m")
    f = Piecewise((sqrt(pi) / pi + log(pi), m > 0.5), (pi * 3, True)) + 1 / (1 + pi) + log(pi + 1)
    lines, (text,) = scalar_text([f], {pi: "a", m: "m"})
    scope: dict[str, Any] = {"math": math, "a": 0.0, "m": 0.0}
    exec("\n".join(lines), scope)
    assert eval(text, scope) == 1.0


def test_nested_kinks_agree_with_numpy() -> None:
    z, p, q = symbols("z p q", real=True)
    kinks = Max(p, Min(q, z) - q, exp(edot) * z) + Abs(Max(q, z)) - sign(z - p) * Heaviside(q)
    rate = Piecewise((z, (z > p) & (q >= 0)), (p, z <= q), (q * q, True)) * packet / RTT
    units = dict.fromkeys((z, p, q), "1")
    law = Source("Kinky", {z: kinks / RTT}, {"rate": rate}, {p: 1, q: 2}, units)
    branches = {tuple(column) for column in (check(law) > 0).T}
    assert len(branches) > 8


def test_powers_are_products() -> None:
    lines, texts = scalar_text([(e + pi) ** 3, 1 / e**2, e**0.5, e**pi], {e: "u", pi: "v"})
    text = "\n".join([*lines, *texts])
    assert "**" not in text.replace("u**v", "")
    scope = {"math": math, "u": 1.7, "v": 0.3}
    exec("\n".join(lines), scope)
    assert [eval(t, scope) for t in texts] == pytest.approx(
        [2.0**3, 1.7**-2, math.sqrt(1.7), 1.7**0.3], rel=1e-15
    )


def test_no_name_of_a_law_is_run() -> None:
    """Neither as a part of the kernel's text, nor of the fused step's."""
    evil = '"""; raise SystemExit("run"); """'
    law = replace(LDCC, name=evil)
    net = Network().link("l", DropTail, capacity=3e6).flow("f", law, route=["l"], return_delay=0.02)
    assert "SystemExit" not in _HEAD + kernel_text(law) + step_text(lay_out(net), "")
    simulate(net, 1.0)
    with pytest.raises(LawError, match="the name of a law is .*; give a line of text"):
        replace(LDCC, name='"""\nimport os\n"""')
