"""What a run says of itself: jumps at any ratio of marks, flows that go on though most is lost."""

import warnings
from dataclasses import replace
from typing import Any

import pytest
from sympy import Heaviside, Rational, symbols

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, gathered
from fluidcc.laws import extended
from fluidcc.symbols import RTT, c, loss, mark, pi, y

q, K = symbols("q K", nonnegative=True)
STEP = fc.Link("Step", {q: (y - c) / c}, {"mark": Heaviside(q - K, 0)}, queue=q, lower={q: 0},
               params={K: 5e-3}, units={q: "s", K: "s"}, initial={q: 0})  # fmt: skip
LOSSY = extended(fc.DropTail, "Lossy", out={"drop": Rational(1, 1000)})


def dumbbell(*laws: fc.Source, link: fc.Link = fc.DropTail, buffer: str = "10 ms") -> fc.Network:
    return fc.dumbbell([*laws], {"law": link, "capacity": 1e7, "buffer": buffer}, rtt="50 ms")


@pytest.mark.parametrize(
    "link", [fc.RED, fc.PI, fc.PAQM, fc.REDDrop, LOSSY], ids=lambda law: law.name
)
@pytest.mark.parametrize(
    "law", [fc.StaticAIMD, fc.HTCP, fc.TFRC, fc.marked_by_bytes(fc.StaticIIAD)]
)
def test_a_jump_at_any_ratio_is_warned_of(law: fc.Source, link: fc.Link) -> None:
    says = rf"'flow1' \({law.name}\) jumps once a round trip .* 'bottleneck' \({link.name}\)"
    with pytest.warns(FluidccWarning, match=says):
        fc.simulate(dumbbell(law, link=link), 0.1)
    late = dumbbell(law, link=link).with_flow("flow1", start=0.2)
    assert "jumps once" not in fc.simulate(late, 0.1).attrs["warnings"]


@pytest.mark.parametrize(
    ("law", "link"),
    [(fc.Reno, fc.DropTail), (fc.HighSpeed, fc.DropTail), (fc.AIMD, fc.DropTail),
     (fc.Reno, fc.PI), (fc.Reno, fc.PI(q_ref=0.005))],  # one set point is beyond 10 ms of buffer
)  # fmt: skip
def test_a_mean_over_losses_is_doubted_at_a_full_buffer(law: fc.Source, link: fc.Link) -> None:
    with gathered() as told:
        said = fc.simulate(dumbbell(law, link=link), 20).attrs["warnings"]
    doubted, says = link != fc.PI(q_ref=0.005) and law is not fc.AIMD, "a mean over losses at rand"
    assert doubted == (f"({law.name}) is {says}" in str(said))
    assert (doubted and law is fc.Reno) == (f"{says}" in str(told) and "take fluidcc.AIMD," in said)


@pytest.mark.parametrize(
    ("law", "endless"), [(fc.CUBIC, True), (fc.CBR(rate=1.2e8), False), (fc.LDCC, False)]
)
def test_a_queue_without_an_end_is_warned_of_where_losses_would_end_it(
    law: fc.Source, endless: bool
) -> None:
    for buffer in (None, "500 kB"):
        net = fc.dumbbell([law], {"capacity": 1e8, "buffer": buffer}, rtt="40 ms")
        with gathered() as told:
            fc.simulate(net, 60)
        assert ("has no end to its buffer" in str(told)) == (endless and buffer is None)


HALVED = {s: s / 2 for s in fc.StaticAIMD.states}
HALF = fc.Jump(when=pi - 0.5, reset=HALVED, refractory=1)
DEAF_TO_LITTLE = replace(fc.StaticAIMD, name="Half", jumps=(HALF,))


@pytest.mark.parametrize(
    ("law", "link"),
    [(fc.StaticAIMD, fc.DropTail), (fc.StaticAIMD, STEP), (fc.StaticReno, fc.PI), (fc.DCCP, fc.RED),
     (fc.GCC, fc.RED), (DEAF_TO_LITTLE, fc.RED)],
)  # fmt: skip
def test_no_other_jump_is(law: fc.Source, link: fc.Link) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fc.simulate(dumbbell(law, link=link), 0.1)


@pytest.mark.parametrize("ecn", [True, False])
@pytest.mark.parametrize("signal", [pi, mark, loss])
def test_without_ecn_a_flow_is_warned_of_drops_in_place_of_marks(signal: Any, ecn: bool) -> None:
    jump = fc.Jump(on=signal, reset=HALVED, refractory=RTT)
    law = replace(fc.StaticAIMD, name="Hears", jumps=(jump,))
    link = {"law": fc.RED, "capacity": 1e7, "buffer": "1 s"}
    with gathered():
        run = fc.simulate(fc.dumbbell([{"law": law, "ecn": ecn}], link, rtt="50 ms"), 20)
    assert (run.mark.max() > 0) == ecn != (run.loss.max() > 0)
    told, said = run.attrs["warnings"], "marks" if ecn else "drops"
    assert (f"'bottleneck' (RED) {said} is above 0" in told) == (signal != (loss if ecn else mark))


@pytest.mark.parametrize(
    ("law", "says"),
    [(fc.FAST, "'flow1' (FAST) ignores losses: 75% of what it sent"), (fc.LEDBAT, ""),
     (fc.AIAD(alpha=20), "'flow1' (AIAD) sends more than the link carries for ever"),
     (fc.ScalableTCP, ""), (fc.Vegas, ""), (fc.CBR(rate=5e7), "")],
    ids=lambda value: getattr(value, "name", ""),
)  # fmt: skip
def test_who_goes_on_though_most_is_lost_is_named(law: fc.Source, says: str) -> None:
    said = fc.simulate(dumbbell(law, fc.StaticReno), 60).attrs["warnings"]
    assert says in said
    assert bool(says) == ("of it was lost" in said or "ignores losses" in said)


def test_ledbat_and_reno_share_a_link_whose_buffer_is_below_the_target() -> None:
    """RFC 6817, Section 2.4.2: half the window at a loss, once a round trip."""
    link = {"capacity": "100 Mbit/s", "buffer": "40 ms"}
    run = fc.simulate(fc.dumbbell([fc.LEDBAT, fc.StaticReno], link, rtt="50 ms"), 300)
    mean = run.rate[-300:].mean("time") / 1e6
    assert 90 < float(mean.sum()) < 101
    assert 30 < float(mean[0]) < 70
    alone = fc.equilibrium(dumbbell(fc.LEDBAT))
    w, n = (float(v) for v in (alone.states["flow1"]["w"], alone.loss[0] * alone.rate[0] / 8000))
    grows, rtt = (1 - 0.01 / 0.1) / 0.06, 0.06
    assert grows == pytest.approx(w / 2 * n / (1 + n * rtt), rel=1e-6)
