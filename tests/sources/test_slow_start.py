"""Slow start: doubling by the round trip, the queue that it builds, and what ends it."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from sympy import Symbol

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, LawError
from fluidcc.laws import extended
from fluidcc.sources.windows import w as window
from fluidcc.symbols import RTT, pi, plain, unfold

TRIP = 0.05


def run(law: fc.Source, until: float = 1.0, buffer: str = "125 packets") -> tuple[fc.Network, Any]:
    net = fc.dumbbell([law], {"capacity": "20 Mbit/s", "buffer": buffer}, rtt=TRIP)
    return net, fc.simulate(net, until, samples=round(until / 0.0005) + 1)


@pytest.mark.parametrize("hystart", [False, True])
@pytest.mark.parametrize("law", [fc.AIMD, fc.CUBIC], ids=lambda law: law.name)
def test_a_window_doubles_until_the_link_is_full_and_then_grows_by_what_it_carries(
    law: fc.Source, hystart: bool
) -> None:
    """10 packets a round trip, 20, 40, 80, 160; the path holds 125 and carries 2,500 a second."""
    made = fc.with_slow_start(law, hystart)
    _, ran = run(made)
    w = np.ravel(ran["w"].values)
    at = np.interp([*(TRIP * np.arange(2, 6)), 0.26, 0.29], ran.time.values, w)
    np.testing.assert_allclose(at[:4], [20, 40, 80, 160], rtol=0.01)
    assert (at[5] - at[4]) / 0.03 == pytest.approx(2500, rel=0.01)
    # A loss is heard of a round trip after 250 packets were in flight: twice as many are, by then.
    # HyStart++ sees the round trip grow before that.
    assert w.max() < 350 if hystart else w.max() == pytest.approx(500, rel=0.01)


def test_a_cut_sets_the_threshold_and_what_follows_is_the_law_s_own() -> None:
    made = fc.with_slow_start(fc.AIMD)
    assert not made.ticks  # HyStart++ is asked for
    _, ran = run(made, 12.0)
    w, threshold = (np.ravel(ran[name].values) for name in ("w", "ssthresh"))
    late = ran.time.values > 2
    assert np.all(w[late] >= threshold[late] * (1 - 1e-9))
    jumps = np.flatnonzero(np.diff(threshold)) + 1
    np.testing.assert_allclose(threshold[jumps], w[jumps], rtol=0.01)
    plain = fc.limit_cycle(run(fc.AIMD)[0])
    started = fc.limit_cycle(run(made)[0])
    assert started.period == pytest.approx(plain.period, rel=1e-6)


def test_a_file_is_there_as_soon_as_by_hand() -> None:
    """2 MB over a link that holds 125 packets, with a buffer that loses nothing: 310 packets in the
    first five rounds, whose last keeps the link busy, and the rest at 2,500 packets a second.
    """
    sent = Symbol("sent", nonnegative=True)
    law = fc.with_slow_start(fc.AIMD)
    law = extended(law, "File", flow={sent: law.out["rate"]}, units={sent: "bit"},
                   initial={sent: 0})  # fmt: skip
    _, ran = run(law, 2.0, buffer="4000 packets")
    arrived = np.ravel(ran["sent"].values) - np.ravel(ran.backlog.values)
    done = float(ran.time[np.searchsorted(arrived, 16e6)])
    assert done == pytest.approx(0.2 + (2000 - 150) / 2500, abs=0.06)


@pytest.mark.parametrize(("last", "grown"), [(16, 20), (64, 72), (256, 272)])
@pytest.mark.parametrize("css", [0, 1, 4, 5])
def test_a_round_of_hystart_is_that_of_rfc_9406(last: int, grown: int, css: int) -> None:
    """Its Section 4.2, in ms, about and at each threshold."""
    (tick,) = fc.with_slow_start(fc.AIMD, hystart=True).ticks
    update = {plain(z): f for z, f in tick.update.items()}
    for trip, base, w in product((grown - 1, grown, grown + 1), (grown - 1, grown), (7, 8, 9)):
        slow = w < 8
        if css:
            wanted = {"css": 0 if trip < base else css + 1, "RTT_base": base}
        else:
            wanted = {"css": int(trip >= grown), "RTT_base": trip}
        wanted |= {"css": wanted["css"] * slow, "RTT_last": trip}
        wanted["ssthresh"] = w if slow and css >= 5 else 8
        now = {"RTT_last": last, "RTT_base": base, "css": css, "ssthresh": 8, "w": w}
        now |= {"eta_min": 4, "eta_max": 16}
        at = {z: now[plain(z)] for f in update.values() for z in f.free_symbols if plain(z) in now}
        found = {name: f.subs(RTT, trip).subs(at) for name, f in update.items()}
        assert found == wanted


def test_what_is_lost_does_not_open_the_window() -> None:
    law, threshold = fc.with_slow_start(fc.AIMD), Symbol("ssthresh", nonnegative=True)
    begun = unfold(law.flow[window]).subs({window: 10, threshold: 20})
    assert begun.subs(pi, 0.2) / begun.subs(pi, 0) == pytest.approx(0.8)


def test_what_has_no_slow_start_is_said() -> None:
    with pytest.raises(InvalidInput, match="law is 'x'"):
        fc.with_slow_start("x")  # type: ignore[arg-type]
    for law in (fc.Reno, fc.FAST, fc.StaticAIMD, fc.LDCC, fc.with_slow_start(fc.AIMD)):
        with pytest.raises(LawError, match="AIMD, IIAD, SQRT and CUBIC"):
            fc.with_slow_start(law)
