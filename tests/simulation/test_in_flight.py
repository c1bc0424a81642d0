"""What is in flight, counted from the history, against what it must be by the rate itself."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.simulation.restart import FinalState, counted_anew
from fluidcc.symbols import plain

PACKET = 8000.0


def kept(run: Any, net: fc.Network, flow: int = 0) -> float:
    """F of a flow in the final state of a run [packet]."""
    name = net.flow_names[flow]
    states = FinalState.of(run).flows[name]["states"]
    return float(states[[plain(z) for z in net.flows[name].law.states].index("F")])


def network(law: fc.Source, **more: Any) -> fc.Network:
    net = fc.Network().link("near", fc.DropTail, capacity="20 Mbit/s", delay="10 ms")
    net.link("far", fc.DropTail, capacity="10 Mbit/s", delay="15 ms", buffer="600 kbit")
    return net.flow("f", law, route=["near", "far"], packet=PACKET, **more)


@pytest.mark.parametrize(
    "law", [fc.FAST, fc.HTCP, fc.PlainDelayAIMD(pace=0)], ids=lambda law: law.name
)
@pytest.mark.parametrize("access", [0.0, 0.02])
def test_a_coarse_account_becomes_that_of_the_rate(law: fc.Source, access: float) -> None:
    """The rate at Gauss points between kinks, from when that was sent of which news comes now."""
    net, until = network(law, access_delay=access, return_delay="30 ms"), 6.0
    run = fc.simulate(net, until, rtol=1e-5, atol=1e-8, t_eval=np.unique([until - access, until]))
    # An access delay shifts the clock of the final state: it is the source's at `until - access`.
    now, trip = until - access, float(run.rtt[0, 0])
    kinks = run.break_time.values if "break_time" in run else np.empty(0)
    edges = np.unique(np.r_[now - trip, kinks[(kinks > now - trip) & (kinks < now)], now])
    edges = np.unique(np.concatenate([np.linspace(a, b, 61) for a, b in pairwise(edges)]))
    nodes, weights = np.polynomial.legendre.leggauss(4)
    times = edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2
    rates = fc.simulate(net, until, rtol=1e-5, atol=1e-8, t_eval=times.ravel()).rate.values[:, 0]
    bits = np.sum(rates.reshape(times.shape) * weights / 2 * np.diff(edges)[:, None])
    sent = float(bits) / PACKET
    counted = kept(counted_anew(net, run), net)
    assert counted == pytest.approx(sent, rel=3e-8)
    assert abs(kept(run, net) - sent) > 3 * abs(counted - sent)


def test_a_fine_run_has_nothing_to_count_anew() -> None:
    net = network(fc.HTCP, start=0.3)
    run = fc.simulate(net, 6.0, rtol=1e-11, atol=1e-14, t_eval=[6.0])
    assert kept(counted_anew(net, run), net) == pytest.approx(kept(run, net), rel=1e-9)


def test_runs_without_such_accounts_stay_as_they_are() -> None:
    net = network(fc.LDCC)
    run = fc.simulate(net, 1.0, t_eval=[1.0])
    assert counted_anew(net, run) is run


def test_a_flow_that_was_on_before_keeps_its_account() -> None:
    """It hears of data from before it began again, of which it knows nothing."""
    net = network(fc.FAST, start=[0.0, 2.01], stop=[2.0, 9.0])
    run = fc.simulate(net, 6.0, rtol=1e-5, t_eval=[6.0])
    assert kept(counted_anew(net, run), net) == kept(run, net)
