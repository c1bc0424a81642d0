"""The bar shows when it should, and pausing for it changes nothing."""

import io
import sys
import time

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base import progress
from fluidcc.base.progress import Progress, patiently
from fluidcc.numerics.compiling import njit


class Screen(io.StringIO):
    """Standard error, with or without a person before it."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(progress, "perf_counter", lambda: now[0])
    return now


def net() -> fc.Network:
    link = {"capacity": "3 Mbit/s", "delay": "25 ms"}
    return fc.parking_lot([fc.LDCC], [fc.LDCC, fc.LDCC], link)


@pytest.mark.parametrize("terminal", [True, False])
def test_by_default_a_bar_after_two_seconds_in_a_terminal(
    terminal: bool, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress(60.0) as bar:
        clock[0] = 1.9
        bar.reach(10.0)
        assert screen.getvalue() == ""
        clock[0] = 2.1
        bar.reach(20.0)
        assert ("20 of 60 s" in screen.getvalue()) is terminal


def test_after_a_late_start_the_bar_moves_on_steadily(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(True)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    with Progress(60.0) as bar:
        clock[0] = 3.0
        for time in (20.0, 20.5, 21.0, 21.5):
            bar.reach(time)
    assert all(f"{time} of 60 s" in screen.getvalue() for time in ("20", "20.5", "21", "21.5"))


def test_a_bar_that_is_asked_for_shows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(False)
    monkeypatch.setattr(sys, "stderr", screen)
    fc.simulate(net(), until=30.0, progress=True)
    assert "simulated" in screen.getvalue()
    assert "of 30 s" in screen.getvalue()


def test_no_bar_that_is_not_wanted(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(True)
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress(60.0, show=False) as bar:
        clock[0] = 100.0
        bar.reach(20.0)
    assert screen.getvalue() == ""


def test_the_bar_goes_away_when_the_run_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Screen(False))
    with pytest.raises(ArithmeticError), Progress(60.0, show=True) as bar:
        raise ArithmeticError
    assert bar._bar.disable  # what tqdm sets when it closes


@pytest.mark.slow
@pytest.mark.parametrize("patience", [0.02, 60.0])
def test_work_of_unknown_length_says_what_it_is(
    patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a while on, and not where it ends sooner."""
    screen = Screen(True)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    monkeypatch.setattr(progress, "INTERVAL", 0.01)
    monkeypatch.setattr(progress, "_waited", 0.0)
    with patiently("compiling fun"):
        time.sleep(0.5)
    assert ("compiling fun [00:00 elapsed]" in screen.getvalue()) is (patience < 1)


@pytest.mark.slow
def test_parts_of_unknown_length_share_the_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is too short for a bar; the second has it at once, and the part within it none."""
    screen = Screen(True)
    monkeypatch.setattr(sys, "stderr", screen)
    for name, value in (("PATIENCE", 0.3), ("INTERVAL", 0.01), ("_waited", 0.0)):
        monkeypatch.setattr(progress, name, value)
    with patiently("part one"):
        time.sleep(0.2)
    assert screen.getvalue() == ""
    with patiently("part two"), patiently("within"):
        time.sleep(0.2)
    assert "part two [" in screen.getvalue()
    assert "within" not in screen.getvalue()


@pytest.mark.slow
def test_what_is_compiled_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(True)
    monkeypatch.setattr(sys, "stderr", screen)
    for name, value in (("PATIENCE", 0.0), ("INTERVAL", 0.001), ("_waited", 0.0)):
        monkeypatch.setattr(progress, name, value)
    half = njit(entry=True, cache=False)(lambda x: 0.5 * x)
    assert half(3.0) == 1.5
    assert "compiling the equations, once [" in screen.getvalue()
    shown = len(screen.getvalue())
    assert half(5.0) == 2.5
    assert len(screen.getvalue()) == shown


@pytest.mark.parametrize("steps", [1, 7])
def test_pausing_changes_no_bit(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fc.simulate(net(), until=20.0)

    times: list[float] = []
    monkeypatch.setattr(Progress, "reach", lambda self, time: times.append(time))
    monkeypatch.setattr(sys.modules["fluidcc.simulation.simulate"], "pause_after", lambda at: steps)
    paused = fc.simulate(net(), until=20.0)
    assert len(times) > whole.attrs["steps"] / (steps + 1)
    assert np.all(np.diff(times) >= 0)
    for name in whole.data_vars:
        np.testing.assert_array_equal(paused[name], whole[name])
