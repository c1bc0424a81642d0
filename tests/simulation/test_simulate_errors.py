"""What `simulate` refuses, and how it says so."""

import re
from typing import Any

import numpy as np
import pytest
from sympy import exp, symbols

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, NegativeRate, NotFinite, StepCollapse
from fluidcc.laws import Source
from fluidcc.links import PenaltyLink
from fluidcc.network import Network
from fluidcc.simulation import workspace
from fluidcc.simulation.simulate import simulate
from fluidcc.sources import AIAD, LDCC, PrimalDual
from fluidcc.symbols import t
from tests.simulated import one_link

x, a, k = symbols("x a k", positive=True)
UNITS = {x: "bit/s", a: "bit/s", k: "1/s"}


@pytest.mark.parametrize(
    ("law", "says"),
    [
        (Source("Bad", {x: k * a**2 / (x - a)}, {"rate": x}, {a: 1.0, k: 1.0}, UNITS,
                initial={x: 1.0}), r"state x of flow 'f'.*0 s"),
        # exp(1000 t) is more than a float from 0.71 s on, and no state notices.
        (Source("Loud", {x: 0}, {"rate": a * exp(k * t)}, {a: 1.0, k: 1000.0}, UNITS,
                initial={x: 1}), r"of flow 'f' became NaN or infinite at 0\.[67].*smaller rtol"),
        (Source("Down", {x: -a * k}, {"rate": x}, {a: 1e6, k: 1.0}, UNITS, initial={x: 1e6}),
         "flow 'f' became negative.*lower bound"),
    ],
    ids=lambda case: getattr(case, "name", ""),
)  # fmt: skip
def test_a_law_that_leaves_its_domain_is_named(law: Source, says: str) -> None:
    net = Network().link("l", PenaltyLink, capacity=1e6, delay=0.01)
    with pytest.raises((NotFinite, NegativeRate), match=says):
        simulate(net.flow("f", law, route=["l"]), 5, engine="array")


def test_what_cannot_be_integrated_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no flows"):
        simulate(one_link(), 1)
    with pytest.raises(InvalidInput, match="algebraic loop"):
        simulate(one_link(delay=0.0).flow("f", LDCC, route=["l"]), 1)


def test_delays_are_frozen_at_a_series_as_at_a_dict() -> None:
    """What an equilibrium gives, `queueing_delay.to_series()`, is no Mapping."""
    net = fc.dumbbell([fc.LDCC] * 2, {"capacity": "2 Mbit/s"}, rtt="50 ms")
    held = fc.equilibrium(net).queueing_delay.to_series()
    how: Any = {"delays": "frozen", "samples": 5}
    one, other = (fc.simulate(net, 1.0, frozen_at=at, **how) for at in (held, dict(held)))
    assert one.rate.equals(other.rate)


def test_frozen_queues_that_drain_together_faster_than_time_are_told() -> None:
    """e' of two queues passes -1, where an ack clock divides by 0; with FIFO delays 1 + e' > 0."""
    net = fc.Network().link("l", fc.DropTail, capacity=3e6, delay=0.02)
    net.link("m", fc.DropTail, capacity=2.5e6, delay=0.02).flow("a", fc.FAST, route=["l", "m"])
    says = r"1 \+ e', by which laws divide, reaches 0: take delays='fifo'"
    with pytest.raises(StepCollapse, match=says) as told:
        fc.simulate(net, 1.0, delays="frozen", progress=False)
    (when,) = re.findall(r"at ([\d.]+) s,", str(told.value))
    times = np.linspace(0, 0.1, 20001)
    early = fc.simulate(net, 0.1, delays="frozen", t_eval=times, progress=False)
    rise = early.arrival_rate.values / [3e6, 2.5e6] - 1
    slope = np.where(early.queueing_delay.values > 0, rise, 0.0)
    # News of link l is 0.08 s old, that of m 0.06 s.
    at = np.linspace(0.09, float(when) + 0.002, 5001)
    heard = np.interp(at - 0.08, times, slope[:, 0]) + np.interp(at - 0.06, times, slope[:, 1])
    assert at[np.argmax(heard <= -1)] == pytest.approx(float(when), abs=1e-4)
    assert np.isfinite(fc.simulate(net, 1.0, progress=False).rate.values).all()


def test_steps_that_fill_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window grows without end, and the gain of the other with its eighth power."""
    monkeypatch.setattr(workspace, "MOST_RECORDS", 2**14)
    net = Network().link("l", PenaltyLink, capacity=5e6, delay=0.01)
    net.flow("a", AIAD, route=["l"], return_delay=0.03)
    net.flow("b", PrimalDual, route=["l"], return_delay=0.05, start=0)
    says = r"more than 16,384 steps .* state x of flow 'b'.*too stiff.*rtol or atol"
    with pytest.raises(StepCollapse, match=says):
        simulate(net, 5)
