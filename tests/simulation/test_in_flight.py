"""What is in flight, counted from the history, against what it must be by the rate itself."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sympy import Heaviside, symbols

import fluidcc as fc
from fluidcc.numerics.fluid import state as s
from fluidcc.numerics.fluid.reads import invert
from fluidcc.simulation.restart import FinalState, counted_anew
from fluidcc.symbols import c, plain, t, y
from tests.compiled import called

PACKET = 8000.0


def kept(run: Any, net: fc.Network, flow: int = 0) -> float:
    """F of a flow in the final state of a run [packet]."""
    name = net.flow_names[flow]
    states = FinalState.of(run).states("flow", name)
    return float(states[[plain(z) for z in net.flows[name].law.states].index("F")])


def network(law: fc.Source, **more: Any) -> fc.Network:
    net = fc.Network().link("near", fc.DropTail, capacity="20 Mbit/s", delay="10 ms")
    net.link("far", fc.DropTail, capacity="10 Mbit/s", delay="15 ms", buffer="600 kbit")
    return net.flow("f", law, route=["near", "far"], packet=PACKET, **more)


@pytest.mark.parametrize(
    ("law", "access"), [(fc.FAST, 0.02), (fc.HTCP, 0.0), (fc.PlainDelayAIMD(pace=0), 0.02)]
)
def test_a_coarse_account_becomes_that_of_the_rate(law: fc.Source, access: float) -> None:
    """The rate at Gauss points between kinks, from when that was sent of which news comes now."""
    net, until = network(law, access_delay=access, return_delay="30 ms"), 6.0
    run = fc.simulate(net, until, rtol=1e-5, atol=1e-8, t_eval=np.unique([until - access, until]))
    # An access delay shifts the clock of the final state: it is the source's at `until - access`.
    now, trip = until - access, float(run.rtt[0, 0])
    kinks = fc.metrics.breaks(run)
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


# --- one record of a queue ------------------------------------------------------------------------

PLACES = np.array([0.1, 0.35, 0.8, 1.0])


def records(
    quartics: list[list[float]], modes: list[int], work: float
) -> tuple[NDArray[np.float64], list[float]]:
    """Blocks of one link in four records, and W at the four places."""
    F, targets = np.zeros(4 * s.LSIZE), []
    for k, (quartic, mode, u) in enumerate(zip(quartics, modes, PLACES, strict=True)):
        block = F[k * s.LSIZE :]
        block[: len(quartic)] = quartic
        block[s.LCH], block[s.LS0], block[s.LMODE] = work, 7.0 * k, mode
        targets.append(float(7.0 * k + work * u + np.polynomial.Polynomial(quartic)(u)))
    return F, targets


def inverted(F: NDArray[np.float64], targets: list[float]) -> list[float]:
    return [called(invert)(F[k * s.LSIZE :], target) for k, target in enumerate(targets)]


def test_some_records_need_more_care() -> None:
    """An empty queue; one that hardly fills for a while; and one that has just begun."""
    hesitant = [3.0, -1.999, 0.0, 2.0, 0.0]  # W' = 0.001 + 6 u^2
    quartics = [[0.0], hesitant, [3.0, 0.1], [1e-17, 0.0, 0.5]]
    F, targets = records(quartics, [s.EMPTY, s.BUSY, s.FULL, s.BUSY], work=2.0)
    np.testing.assert_allclose(inverted(F, targets), PLACES, rtol=1e-9)


def test_nobody_enters_after_he_leaves() -> None:
    """A backlog below 0 by rounding does not put the entry after the exit."""
    F, targets = records([[-1e-15]] * 4, [s.BUSY] * 4, work=2.0)
    found = inverted(F, targets)
    leaves = [(target - 7.0 * k) / 2.0 for k, target in enumerate(targets)]
    assert all(u <= at for u, at in zip(found, leaves, strict=True))
    np.testing.assert_allclose(found, PLACES, rtol=1e-14)


# --- news of a stretch of time at one instant -----------------------------------------------------


@pytest.mark.parametrize("law", [fc.FAST(alpha=600), fc.HTCP], ids=lambda law: law.name)
def test_what_is_lost_while_nothing_enters_is_no_longer_in_flight(law: fc.Source) -> None:
    """A router drops all that comes for 0.3 s, in which its queue does not empty."""
    q, when, span = symbols("q when span", nonnegative=True)
    closed = Heaviside(t - when, 0) * Heaviside(when + span - t, 0)
    units = {q: "s", when: "s", span: "s"}
    gate = fc.Link("Gate", {q: (y - c) / c}, {"drop": closed}, queue=q, lower={q: 0},
                   params={when: 4, span: 0.3}, units=units, initial={q: 0})  # fmt: skip
    net = fc.Network().link("l", gate, capacity="10 Mbit/s", delay="50 ms")
    net.flow("f", law, route=["l"], packet=PACKET, return_delay="50 ms", initial={"w": 700})
    net.flow("u", fc.CBR(rate="2 Mbit/s"), route=["l"], return_delay="50 ms")
    run = fc.simulate(net, 6.0, t_eval=[3.9, 4.31, 4.5, 6.0])
    assert float(run.backlog[1, 0]) > 0
    assert kept(run, net) == pytest.approx(kept(counted_anew(net, run), net), abs=0.01)
    if law.name == "FAST":  # and the round trip without a queue is what it was
        np.testing.assert_allclose((run.rtt - run.FAST_delta)[:, 0], 0.1, rtol=1e-4)
