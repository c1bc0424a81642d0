"""Warnings are told to the user of the line that asks, or gathered, by each thread for itself."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.base.errors import FluidccWarning, gathered, warn


def test_what_is_gathered_is_not_told() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with gathered() as told:
            warn("first")
            with gathered() as inside:
                warn("second")
            warn("third")
    assert (told, inside) == (["first", "third"], ["second"])
    with pytest.warns(FluidccWarning, match="fourth"):
        warn("fourth")


def test_threads_gather_apart() -> None:
    together = Barrier(4)

    def one(number: int) -> list[str]:
        with gathered() as told:
            together.wait(10)
            warn(f"of {number}")
            together.wait(10)
        return told

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(4))) == [[f"of {number}"] for number in range(4)]


def _series() -> fc.Network:
    net = fc.Network()
    for name in ("k", "l"):
        net.link(name, fc.DropTail, capacity="3 Mbit/s", delay="10 ms")
    return net.flow("f", fc.LDCC, route=["k", "l"])


def _lone() -> fc.Network:
    return fc.dumbbell([fc.ECF], {"capacity": "3 Mbit/s", "delay": "10 ms"})


@pytest.mark.parametrize(
    "ask", [lambda: fc.equilibrium(_series()), lambda: fc.simulate(_lone(), 1)]
)
def test_a_warning_is_of_the_line_that_asks(ask: Any) -> None:
    """So that Python shows it once for each such line."""
    with pytest.warns(FluidccWarning) as told:
        ask()
    assert [one.filename for one in told] == [__file__]
