"""Random loss on a link: what it adds to a law, against the square-root law and against algebra."""

import numpy as np
import pytest

import fluidcc as fc

P = 0.0003


def _net(law: fc.Link, **more: object) -> fc.Network:
    link = {"law": law, "capacity": "6 Mbit/s", "delay": "25 ms", "loss": P, **more}
    return fc.dumbbell([fc.StaticReno] * 2, link, rtt="50 ms")


def test_what_it_does_to_tcp_is_the_square_root_law() -> None:
    net = _net(fc.DropTail, capacity="50 Mbit/s")
    wanted = np.sqrt(2 / P) * 8000 / 0.05
    np.testing.assert_allclose(fc.equilibrium(net).rate, wanted, rtol=1e-9)
    np.testing.assert_allclose(fc.simulate(net, 200, samples=2).rate[-1], wanted, rtol=1e-6)


@pytest.mark.parametrize("law", [fc.PI, fc.REDDrop, fc.PIE(target=0.05)])
def test_a_flow_hears_of_the_union_and_the_queue_takes_what_is_left(law: fc.Link) -> None:
    rest = fc.equilibrium(_net(law))
    rate, pi = rest.rate.values, 1 - (1 - rest.loss.values) * (1 - rest.mark.values)
    let_in = rest.arrival_rate.values * (1 - rest.link_drop.values)
    np.testing.assert_allclose((rate * rest.rtt.values / 8000) ** 2 * pi, 2, rtol=1e-9)
    np.testing.assert_allclose(let_in, 6e6, rtol=1e-9)
    assert rest.link_drop > P * 0.999
    before = fc.Network().link("first", fc.DropTail, capacity="1 Gbit/s", loss=P)
    before.link("then", law, capacity="6 Mbit/s", delay="25 ms")
    for name in ("flow1", "flow2"):
        before.flow(name, fc.StaticReno, route=["first", "then"], return_delay="25 ms")
    one, two = (fc.stability(net).rightmost_roots for net in (_net(law), before))
    np.testing.assert_allclose(one[0], two[0], rtol=1e-8)


def test_a_sweep_sets_it_as_a_changed_network_has_it() -> None:
    net, losses = _net(fc.PI), [0, 0.001, 0.1]
    found = fc.sweep(net, {"bottleneck.loss": losses}, "equilibrium_rate", progress=False)
    for loss, rate in zip(losses, found.equilibrium_rate.values, strict=True):
        changed = net.with_link("bottleneck", loss=loss)
        assert changed.links["bottleneck"].law.parameter("loss") == loss
        np.testing.assert_allclose(rate, fc.equilibrium(changed).rate, rtol=1e-9)
    other = net.with_link("bottleneck", law=fc.RED).links["bottleneck"].law
    assert (other.name, other.parameter("loss")) == ("RED", P)
    assert net.with_link("bottleneck", loss=None).links["bottleneck"].law == fc.PI
