"""Over decades of capacity and delay a law rests where its equations hold, or says why not."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import NoEquilibrium, SolverError
from fluidcc.equilibria.many import system_of
from fluidcc.network.wired import Wired
from tests.some_laws import reference

NAMES = ("LDCC", "StaticReno", "StaticFAST", "Vegas", "NADA", "LEDBAT", "Kelly", "CxTCP")
RESTING = [getattr(fc, name) for name in NAMES]
TOLERANCE = 1e-6


def left(net: fc.Network, eq: Any, name: str) -> tuple[Any, Any]:
    """What a law's flows and rate leave at a result, and by how much one part in 1e6 moves them.

    The law is read by NumPy from its own expressions, no code of the search.
    """
    system = system_of(Wired.of(net))
    k = system.wired.row[system.wired.place[name]]
    held = system.laws[0][k] or net.flows[name].law
    k, back = net.flow_names.index(name), net.return_delay(name)
    told = {key: float(eq.array(key)[k]) for key in ("rate", "one_way_delay")}
    known = {"e": told["one_way_delay"], "pi": eq.lost_or_marked(name), "x_tau": told["rate"]}
    known |= {"e_b": back, "ell": net.flows[name].packet}
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
    for buffer, capacity, delay in product((None, "0.05 s"), (1e3, 1e8, 1e13), (1e-6, 1.0)):
        flows = {"a": law, "b": {"law": law, "access_delay": delay}}
        net = fc.dumbbell(flows, {"capacity": capacity, "delay": delay, "buffer": buffer})
        try:
            eq = fc.equilibrium(net)
        except (NoEquilibrium, SolverError):
            continue
        rests += 1
        y, kept = float(eq.arrival_rate[0]), 1 - float(eq.loss[0])
        assert float(eq.rate.sum()) == pytest.approx(y, rel=1e-9)
        assert y * kept <= capacity * (1 + 1e-7)
        if float(eq.queueing_delay[0]) > 0:
            assert y * kept == pytest.approx(capacity, rel=1e-7)
        for name in net.flows:
            here, allowed = left(net, eq, name)
            assert np.all(np.abs(here) <= allowed), (buffer, capacity, delay, name, here)
    assert rests or law is fc.Kelly
