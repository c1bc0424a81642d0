"""Networks whose links switch: what is beyond the switch is found, or told not to be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sympy import Heaviside

import fluidcc as fc
from fluidcc.base.errors import NoEquilibrium
from fluidcc.symbols import c, y


def over(link: fc.Link, flows: int = 30) -> fc.Network:
    net = fc.Network().link("aqm", link, capacity="30 Mbit/s", delay="20 ms", buffer="400 packets")
    law = fc.Reno(a=flows, b=0.5 / flows)
    return net.flow("tcp", law, route=["aqm"], access_delay="10 ms", packet="1500 B")


@pytest.mark.parametrize("flows", [1, 10, 30])
def test_a_queue_that_marks_above_its_capacity_only_has_no_rest(flows: int) -> None:
    """TCP needs marks at rest, where no more comes than leaves: on the switch alone."""
    says = "'aqm' .PAQM. switches where .* on the switch, .* see fluidcc.limit_cycle"
    with pytest.raises(NoEquilibrium, match=says):
        fc.equilibrium(over(fc.PAQM, flows))
    rest = fc.equilibrium(over(fc.PAQMDrop, flows))  # what is dropped comes, above the capacity
    assert float(rest.arrival_rate[0]) > 30e6
    assert float(rest.queueing_delay[0]) == pytest.approx(0.04)


@pytest.mark.parametrize(("share", "marks"), [(0.9, 0.001), (0.5, 0.002), (1.1, 0.0)])
def test_a_switch_that_holds_on_one_side_has_the_rest_of_that_side(
    share: float, marks: float
) -> None:
    """Above a share of the capacity a link marks 0.001 more: the square-root law."""
    w = (1 / (0.5 * 0.001)) ** 0.5  # window of one flow at a ratio of 0.001
    rate = 12e3 * w / 0.06
    on = Heaviside(y - share * c, 0)
    out = {**fc.DropTail.out, "mark": 0.001 + 0.001 * on}
    law = replace(fc.DropTail, name="Step", out=out, claims={})
    net = over(law, 1).with_link("aqm", capacity=1.05 * rate)
    if marks == 0.002:  # it sends 0.707 of that, which is still above half of the capacity
        rate *= 0.5**0.5
    if share == 0.9:  # off it sends 0.95 c and switches on; on it sends 0.67 c and switches off
        says = "rests on neither side.*beyond the switch.*beyond the switch"
        with pytest.raises(NoEquilibrium, match=says):
            fc.equilibrium(net)
        return
    assert float(fc.equilibrium(net).rate[0]) == pytest.approx(rate, rel=1e-6)
