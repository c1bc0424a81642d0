"""Over ten decades of capacity and six of delay a law rests where its equations hold, or there
is a reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import NoEquilibrium, SolverError
from fluidcc.equilibria.equilibrium import system_of
from tests.some_laws import reference

RESTING = [
    getattr(fc, name)
    for name in ("LDCC", "Reno", "StaticFAST", "Vegas", "NADA", "LEDBAT", "Kelly", "CxTCP")
]
TOLERANCE = 1e-6


def left(net: fc.Network, eq: Any, name: str) -> tuple[Any, Any]:
    """What a law's flows and rate leave at a result, and how they change as each argument changes
    by one part in 1e6.

    The law is read by NumPy from its own expressions, no code of the search.
    """
    held = system_of(net, np.inf).net.flows[name].law
    k, back = net.flow_names.index(name), net.return_delay(name)
    told = {key: float(eq.array(key)[k]) for key in ("rate", "one_way_delay", "loss")}
    known = {
        "e": told["one_way_delay"], "pi": told["loss"], "x_tau": told["rate"], "e_b": back,
        "ell": net.flows[name].packet,
    }  # fmt: skip
    z = np.array([eq.states[name][fc.symbols.plain(s)] for s in held.states], float).reshape(-1)
    u = np.array([known.get(fc.symbols.plain(s), 0.0) for s in held.inputs], float)
    p = np.array([float(v) for v in held.params.values()])
    function = reference(held)

    def at(z: Any, u: Any) -> Any:
        with np.errstate(all="ignore"):
            flow, out = function(z, u, p)
        rate = out[list(held.out).index("rate")] - told["rate"]
        return np.array([*flow, rate], float)

    here, moved = at(z, u), np.zeros(len(z) + 1)
    for one in (z, u):
        for i in range(len(one)):
            was, one[i] = one[i], one[i] * (1 + TOLERANCE)
            moved += np.abs(at(z, u) - here)
            one[i] = was
    for i, s in enumerate(held.states):
        low, high = (side.get(s) for side in (held.lower, held.upper))
        values = {**held.params}
        for bound, sign in ((low, -1), (high, 1)):
            if bound is not None and (b := fc.symbols.unfold(bound).subs(values)).is_number:
                at_it = np.isclose(z[i], float(b), rtol=1e-12, atol=0)
                here[i] = 0.0 if at_it and sign * here[i] >= 0 else here[i]
    return here, moved + 1e-9 * np.append(np.abs(z), told["rate"] + 1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fluidcc.base.errors.FluidccWarning")
@pytest.mark.parametrize("law", RESTING, ids=lambda law: law.name)
def test_a_rest_holds_at_every_scale(law: Any) -> None:
    rests = 0
    for buffer in (None, "0.05 s"):
        for capacity in (1e3, 1e8, 1e13):
            for delay in (1e-6, 1.0):
                net = fc.Network().link(
                    "l", fc.DropTail, capacity=capacity, delay=delay, buffer=buffer
                )
                net.flow("a", law, route=["l"]).flow("b", law, route=["l"], access_delay=delay)
                try:
                    eq = fc.equilibrium(net)
                except (NoEquilibrium, SolverError):
                    continue
                rests += 1
                y = float(eq.arrival_rate[0])
                kept = 1 - float(eq.loss[0])
                assert float(eq.rate.sum()) == pytest.approx(y, rel=1e-9)
                assert y * kept <= capacity * (1 + 1e-7)
                if float(eq.queueing_delay[0]) > 0:
                    assert y * kept == pytest.approx(capacity, rel=1e-7)
                for name in net.flows:
                    here, allowed = left(net, eq, name)
                    assert np.all(np.abs(here) <= allowed), (
                        buffer,
                        capacity,
                        delay,
                        name,
                        here,
                        allowed,
                    )
    assert rests or law is fc.Kelly
