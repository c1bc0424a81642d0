"""What is marked, heard apart from what is lost: against ratios by hand, and against the union of
both where a law hears that.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Symbol

import fluidcc as fc
from fluidcc.symbols import loss, mark, nonnegative, pi, plain, positive

a, (d, m) = positive("a"), nonnegative("d m")
UNION = 1 - (1 - loss) * (1 - mark)
RATIOS = fc.Link(
    "Ratios", fc.DropTail.flow, {**fc.DropTail.out, "drop": d, "mark": m}, queue=fc.DropTail.queue,
    params={d: 0.0, m: 0.0}, units={**fc.DropTail.units, d: "1", m: "1"},
    lower=fc.DropTail.lower, upper=fc.DropTail.upper, initial=fc.DropTail.initial,
)  # fmt: skip


def apart(law: fc.Source) -> fc.Source:
    """The same law, which puts the union together by itself."""
    return replace(
        law, name="Apart", claims={}, flow={z: f.subs(pi, UNION) for z, f in law.flow.items()}
    )


def two_links(
    law: fc.Source, first: fc.Link, second: fc.Link, buffer: str = "200 packets"
) -> fc.Network:
    net = fc.Network().link("a", first, capacity="10 Mbit/s", delay="10 ms", buffer=buffer)
    net.link("b", second, capacity="8 Mbit/s", delay="5 ms", buffer=buffer)
    for i, route in enumerate((["a", "b"], ["b"])):
        net.flow(f"f{i}", law, route=route, return_delay=0.02 + 0.01 * i)
    return net


@pytest.mark.parametrize(
    ("engine", "delays"), [("array", "fifo"), ("array", "frozen"), ("fused", "frozen")]
)
def test_ratios_of_two_links_are_those_by_hand(engine: str, delays: str) -> None:
    """1 - (1 - .1)(1 - .2) are lost, 1 - (1 - .3)(1 - .4) of the rest marked."""
    hears = fc.Source("Hears", {}, {"rate": a * (1 + loss + 10 * mark + 100 * pi)},
                      params={a: 1e3}, units={a: "bit/s"})  # fmt: skip
    laws = RATIOS(d=0.1, m=0.3), RATIOS(d=0.2, m=0.4)
    run = fc.simulate(two_links(hears, *laws), until=1, engine=engine, delays=delays)
    lost, marked = np.array([0.28, 0.2]), np.array([0.58, 0.4])
    either = 1 - (1 - lost) * (1 - marked)
    wanted = 1e3 * (1 + lost + 10 * marked + 100 * either)
    assert run.rate.values[-1] == pytest.approx(wanted, rel=1e-12)
    assert run.loss.values[-1] == pytest.approx(lost, rel=1e-12)
    assert run.mark.values[-1] == pytest.approx(marked, rel=1e-12)


LINKS = {
    "drops, marks": (fc.REDDrop, fc.PI),
    "marks, drops": (RATIOS(m=0.002), fc.PI2Drop),
    "both": (RATIOS(d=0.001, m=0.002), fc.PI),
}


@pytest.mark.parametrize("links", LINKS.values(), ids=LINKS)
def test_a_law_that_puts_the_union_together_itself_is_the_same(links: tuple[Any, Any]) -> None:
    nets = [two_links(law, *links) for law in (fc.StaticReno, apart(fc.StaticReno))]
    ran, ran_too = (fc.simulate(net, until=5, engine="array", rtol=1e-8) for net in nets)
    assert ran_too.rate.values == pytest.approx(ran.rate.values, rel=1e-5)
    assert ran_too.mark.values == pytest.approx(ran.mark.values, rel=1e-4, abs=1e-9)
    rest, rest_too = (fc.equilibrium(net) for net in nets)
    for name in ("rate", "loss", "mark", "queueing_delay"):
        wanted = getattr(rest, name).values
        assert getattr(rest_too, name).values == pytest.approx(wanted, rel=1e-8)
    linear, linear_too = (fc.linearize(net) for net in nets)
    assert linear_too.rightmost(3) == pytest.approx(linear.rightmost(3), rel=1e-6)
    report, report_too = (fc.stability(net) for net in nets)
    assert report_too.gain_margin == pytest.approx(report.gain_margin, rel=1e-6)


@pytest.mark.parametrize(
    ("ratio", "link", "other"),
    [
        (mark, fc.StepMark(K="10 ms"), fc.StepMark(K="10 ms")),
        (loss, fc.DropTail, fc.DropTail),
        (loss, fc.StepMark(K="10 ms"), fc.DropTail),  # deaf to marks
    ],
)
def test_jumps_at_one_ratio(ratio: Symbol, link: fc.Link, other: fc.Link) -> None:
    """As at the union, where there is but that one."""

    def hears(f: Any) -> Any:
        return f.subs(pi, ratio)

    law = replace(
        fc.StaticAIMD, name="Apart", claims={},
        jumps=tuple(j.rewritten(hears) for j in fc.StaticAIMD.jumps),
    )  # fmt: skip
    both = (law, link), (fc.StaticAIMD, other)
    nets = [two_links(own, fc.DropTail, second, "50 packets") for own, second in both]
    one, same = (fc.simulate(net, until=30, engine="array", rtol=1e-8) for net in nets)
    assert one.attrs["jumps"] == same.attrs["jumps"] > 10
    assert one.rate.values == pytest.approx(same.rate.values, rel=1e-4)
    with pytest.raises(fc.base.errors.Unsupported, match=f"x_tau \\* {plain(ratio)} / packet"):
        fc.equilibrium(nets[0])
