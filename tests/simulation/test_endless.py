"""What would take memory or time without end is refused first, with value and remedy."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.papers.binomial import synchronized as interval_model


def _net(law: Any = None, **given: Any) -> Any:
    flow = {"law": law or fc.CBR(rate=1e6), "return_delay": 0.03, **given}
    return fc.dumbbell({"f": flow}, {"name": "l", "capacity": 3e6, "delay": 0.02})


def _drawn(**pattern: Any) -> Any:
    return fc.simulate(_net(pattern=pattern), 10)


(x,) = fc.LDCC.states
ENDLESS = {
    "intervals of a Poisson pattern": (
        lambda: _drawn(kind="poisson", mean_rate=1e6, interval=1e-12),
        "2000000 intervals of 1e-12 s",
    ),
    "periods of a Pareto pattern": (
        lambda: _drawn(kind="on_off_pareto", peak=1e6, mean_on=1e-9, mean_off=1e-9, shape=1.5),
        "2000000 periods of means 1e-09 and 1e-09 s",
    ),
    "steps": (
        lambda: fc.simulate(_net(fc.LDCC), 10, max_step=1e-12),
        "max_step is 1e-12 s.* give at least 1e-07 s",
    ),
    "samples": (lambda: fc.simulate(_net(fc.LDCC), 10, samples=10**8), "samples is 100000000"),
    "samples of many variables": (
        lambda: fc.simulate(fc.dumbbell([fc.LDCC] * 40, {"capacity": 3e6}, 0.1), 9, samples=10**7),
        "10000000 samples of [0-9]+ variables.* at most [0-9]+ times",
    ),
    "intervals kept": (lambda: _intervals(10**12), "or keep=False"),
    "intervals": (lambda: _intervals(10**12, keep=False), "intervals is 10+, "),
    "exact intervals": (lambda: _intervals(10**9, "1/10", exact=True), "at most 200000 are run"),
}


def _intervals(count: int, lam: Any = 0.1, **how: Any) -> Any:
    return fc.synchronized(0, 1, lam, "1/2" if how.get("exact") else 0.5, 1, intervals=count, **how)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDLESS)
def test_what_has_no_end_is_refused_before_memory_is_taken(name: Any) -> None:
    call, message = ENDLESS[name]
    tracemalloc.start()
    try:
        with pytest.raises(fc.errors.InvalidInput, match=message):
            call()
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("key", [1, None, x])
def test_initial_states_go_by_name(key: Any) -> None:
    for make, what in (
        (lambda: _net(fc.LDCC, initial={key: 3}), "flow 'f' has the key .* such as {'x': 0.1}"),
        (lambda: _net().with_link("l", initial={key: 1}), "link 'l' has .* such as {'q': 0.1}"),
    ):
        with pytest.raises(fc.errors.InvalidInput, match=f"initial of {what}"):
            make()


@pytest.mark.parametrize("chance", [{}, {"hears": "one", "seed": 3}, {"delay": 3, "missed": 0.1}])
def test_intervals_run_in_pieces_are_those_run_at_once(chance: Any, monkeypatch: Any) -> None:
    """Compiled code returns to Python from time to time, so that Ctrl-C is heard."""
    arguments = ([0.5, 0.2], 1, 0.01, 0.1, 10.0)
    whole = fc.synchronized(*arguments, intervals=1000, **chance)
    monkeypatch.setattr(interval_model, "_AT_ONCE", 14)
    pieces = fc.synchronized(*arguments, intervals=1000, **chance)
    assert np.array_equal(whole.rates, pieces.rates)
    assert (whole.sent, whole.lost, whole.carried) == (pieces.sent, pieces.lost, pieces.carried)


def test_a_cycle_found_in_pieces_is_that_found_at_once(monkeypatch: Any) -> None:
    whole = fc.synchronized(0, 1, 0.1, 0.5, 1.03, initial=0.3).orbit
    monkeypatch.setattr(interval_model, "_AT_ONCE", 7)
    pieces = fc.synchronized(0, 1, 0.1, 0.5, 1.03, initial=0.3).orbit
    assert whole.period == pieces.period > 1
    assert np.array_equal(whole.rates, pieces.rates)
