"""Ten flows of one smooth law beside ten of another, each with a round trip of its own: a verdict,
or a sentence that says why there is none, in five seconds.
"""

from contextlib import suppress
from itertools import combinations_with_replacement
from time import process_time

import numpy as np
import pytest

import fluidcc as fc
from fluidcc import sources
from tests.scan.cases import of_today

LIMIT = 5.0  # [s] of processor time
# Its timers are those of a data centre, and so are its pairs' networks: with round trips a thousand
# times as long it has hundreds of roots right of the axis, which take half a minute.
NEAR = {"DCQCN"}
# Of flows that hear themselves over a full buffer some 150 roots are near the axis.
HARD = ("DCTCP", "DCTCP")
TRIPS = np.linspace(0.02, 0.2, 20)  # [s]; near ones are a thousandth of these
SMOOTH = [
    name
    for name in sources.__all__
    if isinstance(law := getattr(sources, name), fc.Source) and not (law.jumps or law.ticks)
]
PAIRS = [*combinations_with_replacement(SMOOTH, 2)]


def pair(one: str, other: str, each: int = 10) -> fc.Network:
    flows = [getattr(sources, name) for name in (one, other) for _ in range(each)]
    capacity, unit = ("40 Gbit/s", "ms") if NEAR & {one, other} else ("100 Mbit/s", "s")
    trips = [f"{trip} {unit}" for trip in TRIPS[:: 10 // each][: 2 * each]]
    return fc.dumbbell(flows, {"capacity": capacity, "buffer": "500 packets"}, rtt=trips)


@pytest.mark.scan
@pytest.mark.filterwarnings("ignore::fluidcc.base.errors.FluidccWarning")
@pytest.mark.parametrize(("one", "other"), [*of_today(PAIRS, 30), HARD])
def test_a_verdict_or_the_reason_why_there_is_none(one: str, other: str) -> None:
    judge(pair(one, other, each=1))  # compiles the laws
    start = process_time()
    with suppress(fc.errors.FluidccError):
        bool(fc.stability(pair(one, other)))  # the verdict alone
    assert process_time() - start < LIMIT
    said, spent = timed(one, other)
    if spent > LIMIT:  # what it said is right or ours all the same
        pytest.xfail(f"the margins take {spent:.0f} s: {said}")


def timed(one: str, other: str) -> tuple[str, float]:
    net, start = pair(one, other), process_time()
    return judge(net), process_time() - start


def judge(net: fc.Network) -> str:
    try:
        report = fc.stability(net)
    except fc.errors.FluidccError as error:
        return str(error)
    assert report.stable == (report.verdict == "stable")
    said = repr(report)
    assert np.isnan(report.gain_margin) != report.stable or "the margins are not known" in said
    return said
