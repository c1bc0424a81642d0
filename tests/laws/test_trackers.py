"""Which states only keep account, and what they show at rest."""

import pickle

import numpy as np
import pytest
from sympy import Integer

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, LawError, Unsupported
from fluidcc.laws.steady import Account, Level, grouped, levels, refuse_unsteady, trackers
from fluidcc.symbols import packet

PACKET, C = 8000.0, 100e6


def accounts(law: fc.Source) -> dict[str, Account]:
    return {z.name: account for z, account in trackers(law).items()}


def test_windows_keep_account_of_the_round_trip_and_of_what_is_under_way() -> None:
    assert accounts(fc.FAST) == {
        "delta": Account(Integer(1), Integer(0)),
        "F": Account(Integer(0), 1 / packet),
    }
    assert accounts(fc.StaticFAST) == {"delta": Account(Integer(1), Integer(0))}
    assert accounts(fc.LDCC) == accounts(fc.StaticReno) == {}


def network(law: fc.Source, flows: int = 1, rtt: float = 0.1) -> fc.Network:
    net = fc.Network().link("l", fc.DropTail, capacity=C, delay=rtt / 2)
    for k in range(flows):
        net.flow(f"f{k}", law, route=["l"], packet=PACKET)
    return net


@pytest.mark.parametrize(
    "law", [fc.FAST, fc.StaticFAST, fc.Vegas, fc.StaticVegas], ids=lambda law: law.name
)
def test_the_equilibrium_is_that_of_flows_that_know_their_path(law: fc.Source) -> None:
    """(2) with d^ = d: each has alpha packets in the queue."""
    rest = fc.equilibrium(network(law, 3))
    queue = 3 * law.parameter("alpha") * PACKET / C
    np.testing.assert_allclose(rest.rate, C / 3, rtol=1e-9)
    np.testing.assert_allclose(rest.queueing_delay, queue, rtol=1e-9)
    states = rest.states["f1"]
    assert states["delta"] == pytest.approx(queue, rel=1e-9)
    assert states["w"] == pytest.approx(C / 3 / PACKET * (0.1 + queue), rel=1e-9)
    if "F" in states:
        assert states["F"] == pytest.approx(states["w"], rel=1e-9)


def test_a_newcomer_that_took_a_queue_for_propagation_gets_more() -> None:
    """(3) to (5): its level is lower by the queue it met."""
    n, net = 8, fc.hold_trackers(network(fc.StaticFAST, 9))
    law = net.flows["f0"].law
    met = n * 50 * PACKET / C
    rest = fc.equilibrium(net.with_flow("f0", law=law(delta_0=law.parameter("delta_0") - met)))
    newcomer, others = fc.formulas.fast.equilibrium_rates(n, C / PACKET, 50.0)
    np.testing.assert_allclose(rest.rate / PACKET, [newcomer, *[others] * n], rtol=1e-9)


def test_a_simulation_started_there_stays() -> None:
    net = network(fc.StaticFAST, 2)
    rest = fc.equilibrium(net)
    for name in net.flows:
        net = net.with_flow(name, initial=rest.states[name])
    net = net.with_link("l", initial={"q": float(rest.queueing_delay[0])})
    run = fc.simulate(net, 5.0, samples=11, rtol=1e-9)
    np.testing.assert_allclose(run.rate, C / 2, rtol=1e-6)


def test_a_level_is_a_parameter_like_any_other() -> None:
    law = fc.hold_trackers(network(fc.StaticFAST)).flows["f0"].law
    (level,) = levels(law)
    assert isinstance(level, Level)
    assert pickle.loads(pickle.dumps(law)) == law
    assert law(delta_0=-0.2).parameter("delta_0") == -0.2
    with pytest.raises(LawError, match="no parameter 'delta_1'"):
        law(delta_1=0)


def test_laws_without_trackers_are_left_alone() -> None:
    net = network(fc.LDCC)
    assert fc.hold_trackers(net) is net


@pytest.mark.filterwarnings("error::fluidcc.base.errors.FluidccWarning")
def test_trackers_are_reported_and_the_roots_of_their_accounts_left_out() -> None:
    report = fc.stability(network(fc.FAST, 2))
    assert report.stable
    assert report.trackers == ("f0 (x2).delta",)
    assert min(abs(report.rightmost_roots)) > 1e-3
    assert issubclass(FluidccWarning, UserWarning)


# --- laws at rest ---------------------------------------------------------------------------------


def test_laws_of_equal_structure_go_together() -> None:
    laws = [fc.LDCC, fc.StaticReno, fc.LDCC(T=0.2), fc.LDCC(T=0.2), fc.PrimalDual]
    assert grouped(laws) == [[0, 2, 3], [1], [4]]


def test_unsteady_laws_are_refused() -> None:
    refuse_unsteady(fc.LDCC, "flow 'a'")
    with pytest.raises(Unsupported, match="flow 'a' .*jumps"):
        refuse_unsteady(fc.StaticAIMD, "flow 'a'")
