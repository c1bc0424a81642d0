"""HighSpeed TCP against the table of RFC 3649, Appendix B, and its response function."""

from typing import Any

import pytest

import fluidcc as fc
from fluidcc.formulas import response
from fluidcc.sources import highspeed
from fluidcc.sources.windows import w
from fluidcc.symbols import unfold

# Windows at which the increase is 2, 3, ..., and the part given up there.
TABLE = {118: 0.44, 221: 0.41, 347: 0.38, 495: 0.37, 663: 0.35, 851: 0.34, 1058: 0.33}


def at(form: Any, size: float) -> float:
    return float(unfold(form).subs({**fc.HighSpeed.params, w: size}))


def test_increase_and_decrease_are_those_of_the_table() -> None:
    for k, (size, part) in enumerate(TABLE.items()):
        assert at(highspeed.increase, size) == pytest.approx(k + 2, abs=0.05)
        assert at(highspeed._b, size) == pytest.approx(part, abs=0.006)
    assert (at(highspeed.increase, 30), at(highspeed._b, 30)) == (1.0, 0.5)
    assert at(highspeed._b, 83_000) == pytest.approx(0.1)


@pytest.mark.parametrize("rate", [50, 200, 1000])
def test_the_window_is_near_the_response_function(rate: float) -> None:
    """2/(2 - b) times as many losses as of a sawtooth: they come at random. And TCP below 38."""
    link = {"law": fc.PI, "capacity": rate * 1e6}
    rest = fc.equilibrium(fc.dumbbell([fc.HighSpeed], link, rtt="50 ms"))
    own, p = float(rest.states["flow1"]["w"]), float(rest.mark[0])
    part = at(highspeed._b, own)
    lost = part * own * (1 - (1 - p) ** own)
    assert lost == pytest.approx(at(highspeed.increase, own) * (1 - p), rel=1e-6)
    periodic = p * (2 - part) / 2
    assert own == pytest.approx(response.highspeed_window(periodic), rel=0.03)
