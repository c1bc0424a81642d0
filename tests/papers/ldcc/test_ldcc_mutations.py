"""The claims can fail: with a wrong equation, law or result in place of the right one, the
verdict turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sympy import Eq

from fluidcc.laws import Steady
from fluidcc.papers import Outcome
from fluidcc.papers.ldcc import common as ldcc_common
from fluidcc.papers.ldcc import errata as ldcc_errata
from fluidcc.papers.ldcc import law as ldcc_law
from fluidcc.papers.ldcc import model as ldcc_model
from fluidcc.papers.ldcc import runs as ldcc_runs
from fluidcc.sources import LDCC
from fluidcc.symbols import RTT, c, e, e_b, edot, pi, y

x, w, beta, T = ldcc_common.x, ldcc_common.w, ldcc_common.beta, ldcc_common.T
WRONG_PENALTY = beta * (e - T) / e
WRONG_LAW = replace(LDCC, claims={
    "(18)": Steady(Eq(e, RTT * w / (beta * x) - T), given={pi: 0}),
    "(19)": Steady(Eq(e, (e_b * w / (beta * x) + T) / (1 + w / (beta * x))), given={pi: 0}),
    "(20)": Steady(x > 2 * w / beta, given={pi: 0}),
})  # fmt: skip

SYMBOLIC: list[tuple[Callable[[], Outcome], Any, str, Any]] = [
    (ldcc_law.rate_equation, ldcc_law, "FLOW", ldcc_law.FLOW + x),
    (ldcc_law.penalty, ldcc_law, "ABOVE", WRONG_PENALTY),
    (ldcc_law.penalty_shape, ldcc_law, "ABOVE", WRONG_PENALTY),
    (ldcc_law.saturation, ldcc_law, "ABOVE", 2 * ldcc_law.ABOVE),
    (ldcc_law.saturation, ldcc_law, "V", 2 * ldcc_law.V),
    (ldcc_law.equilibrium_delay, ldcc_law, "LDCC", WRONG_LAW),
    (ldcc_law.equilibrium_delay_solved, ldcc_law, "LDCC", WRONG_LAW),
    (ldcc_law.rate_floor, ldcc_law, "LDCC", WRONG_LAW),
    (ldcc_law.utility, ldcc_law, "U", x**2),
    (ldcc_law.penalty_cannot_starve, ldcc_law, "FLOW", ldcc_law.FLOW - beta * x),
    (ldcc_law.similar_penalties, ldcc_law, "ABOVE", (e - T) / e_b),
    (ldcc_law.signal_of_losses, ldcc_law, "MERGED", edot + pi),
    (ldcc_law.discrete_rule, ldcc_law, "FLOW", 2 * ldcc_law.FLOW),
    (ldcc_law.discrete_rule, ldcc_law, "MERGED", edot + 2 * pi),
    (ldcc_law.gain_of_a_round_trip, ldcc_law, "eta", 2 * ldcc_common.eta),
    (ldcc_model.loss_ratio, ldcc_model, "LOSS", (y - c) / c),
]


@pytest.mark.parametrize(("check", "room", "name", "wrong"), SYMBOLIC,
                         ids=[f"{f.__name__}-{name}" for f, _, name, _ in SYMBOLIC])  # fmt: skip
def test_a_wrong_equation_is_not_proved(
    monkeypatch: pytest.MonkeyPatch, check: Callable[[], Outcome], room: Any, name: str, wrong: Any
) -> None:
    monkeypatch.setattr(room, name, wrong)
    found = check()
    assert found.verdict in ("refuted", "differs")
    assert found.reason


def _scaled(function: Callable[..., Any], *names: str, by: float = 1.01) -> Callable[..., Any]:
    """The same function, with those parts of its result larger by 1 %."""

    def wrong(*args: Any, **given: Any) -> Any:
        result = function(*args, **given)
        if hasattr(result, "assign"):  # a run
            return result.assign({n: result[n] * by for n in names})
        if hasattr(result, "changed"):  # an equilibrium
            return result.changed(**{n: result.array(n) * by for n in names})
        parts = {n: getattr(result, n) for n in vars(result)}
        return SimpleNamespace(**{**parts, **{n: parts[n] * by for n in names}})

    return wrong


NUMERIC: list[tuple[Callable[[], Outcome], Any, str, tuple[str, ...]]] = [
    (ldcc_model.queue_growth, ldcc_model, "simulate", ("queueing_delay",)),
    (ldcc_model.fifo_delay, ldcc_model, "simulate", ("queueing_delay",)),
    (ldcc_model.one_way_delay, ldcc_model, "equilibrium", ("queueing_delay",)),
    (ldcc_model.loss_ratio, ldcc_model, "run", ("link_loss",)),
    (ldcc_model.path_loss, ldcc_model, "equilibrium", ("loss",)),
    (ldcc_model.round_trip, ldcc_model, "run", ("rtt",)),
    (ldcc_model.price_is_delay, ldcc_model, "equilibrium", ("queueing_delay",)),
    (ldcc_model.primal_dual_converges, ldcc_model, "simulate", ("link_price",)),
    (ldcc_model.penalty_converges, ldcc_model, "simulate", ("rate",)),
    (ldcc_model.loss_as_price, ldcc_model, "equilibrium", ("loss",)),
    (ldcc_model.self_inflicted, ldcc_model, "equilibrium", ("queueing_delay",)),
    (ldcc_model.starvation, ldcc_model, "equilibrium", ("rate",)),
    (ldcc_law.other_utilities, ldcc_law, "equilibrium", ("one_way_delay",)),
    (ldcc_law.equilibrium_delay_solved, ldcc_law, "at_time", ("one_way_delay",)),
    (ldcc_law.below_floor, ldcc_law, "simulate", ("rate",)),
    (ldcc_law.only_losses, ldcc_law, "equilibrium", ("rate",)),
    (ldcc_runs.fig5_values, ldcc_runs, "at_time", ("one_way_delay",)),
    (ldcc_runs.fig6_fair, ldcc_runs, "at_time", ("rate",)),
    (ldcc_runs.fig10_long_flow, ldcc_runs, "at_time", ("rate",)),
    (ldcc_runs.fig10_delays, ldcc_runs, "equilibrium", ("one_way_delay",)),
    (ldcc_runs.fig11_long_flow, ldcc_runs, "at_time", ("rate",)),
    (ldcc_runs.fig11_mixed, ldcc_runs, "equilibrium", ("loss",)),
    (ldcc_runs.fig8_reached, ldcc_runs, "run", ("rate",)),
    (ldcc_errata.conservation, ldcc_errata, "simulate", ("entered",)),
]


@pytest.mark.parametrize(
    ("check", "room", "name", "parts"), NUMERIC, ids=[f.__name__ for f, *_ in NUMERIC]
)
def test_a_result_that_is_off_by_a_percent_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
    check: Callable[[], Outcome],
    room: Any,
    name: str,
    parts: tuple[str, ...],
) -> None:
    assert check().verdict in ("proved", "reproduced")
    monkeypatch.setattr(room, name, _scaled(getattr(room, name), *parts))
    found = check()
    assert found.verdict in ("differs", "refuted")
    assert found.reason


def test_an_optimum_that_is_not_one_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = ldcc_model.num.solve
    monkeypatch.setattr(
        ldcc_model, "num", SimpleNamespace(solve=lambda net: replace(solve(net), kkt=1e-6))
    )
    assert ldcc_model.num_unique().verdict == "differs"
    assert ldcc_model.dual_conditions().verdict == "differs"


def test_losses_and_unequal_rates_in_figure_5_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ldcc_runs.run("ldcc_fig5")
    monkeypatch.setattr(ldcc_runs, "run", lambda name: real.assign(lost=real.lost + 1.0))
    assert ldcc_runs.fig5_no_loss().verdict == "differs"
    late = real.sel(time=259.0, method="nearest")
    monkeypatch.setattr(
        ldcc_runs,
        "at_time",
        lambda name, t: late.assign(rate=late.rate * np.array([1.2, 1, 0.8, 1])),
    )
    assert ldcc_runs.fig5_fair().verdict == "differs"


def test_equal_rates_would_not_pass_for_half(monkeypatch: pytest.MonkeyPatch) -> None:
    equal = np.tile(np.array(ldcc_runs.CAPACITIES)[:, None] / 4, (1, 4))
    monkeypatch.setattr(ldcc_runs, "fair_rates", lambda name: equal)
    assert ldcc_runs.fig8_worst().verdict == "differs"


def test_what_is_about_half_is_so_to_its_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    for share, wanted in ((0.54, "reproduced"), (0.56, "differs")):
        low = np.array(ldcc_runs.CAPACITIES)[:, None] / 4 * np.array([share, 1.1, 1.1, 1.2])
        monkeypatch.setattr(ldcc_runs, "fair_rates", lambda name, low=low: low)
        assert ldcc_runs.fig8_worst().verdict == wanted


def test_a_buffer_is_compared_with_the_printed_milliseconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """130 packets of 1000 bytes are 297 ms; of 1009.6 bytes they would be 300."""
    assert ldcc_runs.buffer_130().verdict == "differs"
    link = SimpleNamespace(buffer=130 * 8 * 1009.6, capacity=3.5e6)
    fake = {"ldcc_fig5": SimpleNamespace(net=SimpleNamespace(links={"bottleneck": link}))}
    monkeypatch.setattr(ldcc_runs, "scenarios", fake)
    assert ldcc_runs.buffer_130().verdict == "reproduced"


def test_equal_rates_downstream_and_equal_transients_would_be_as_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = ldcc_model.run("ldcc_fig10")
    monkeypatch.setattr(ldcc_model, "run", lambda name, delays="fifo": real)
    assert ldcc_model.frozen_against_fifo().verdict == "reproduced"


def test_a_monotone_fairness_would_be_reproduced(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ldcc_runs.equilibrium
    monkeypatch.setattr(ldcc_runs, "jain", lambda rate: 1 - float(rate.sum()) / 1e8)
    assert real is ldcc_runs.equilibrium
    assert ldcc_runs.fig7_capacity().verdict == "reproduced"


def test_an_erratum_that_does_not_hold_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the library froze an empty queue too, or fed losses into Fig. 5, the printed equations
    would stand.
    """
    monkeypatch.setattr(ldcc_errata, "_overloaded", lambda until: 0.0)
    assert ldcc_errata.projection_freezes().verdict == "reproduced"
    real = ldcc_errata.run("ldcc_fig5")
    monkeypatch.setattr(ldcc_errata, "run", lambda name: real.assign(lost=real.lost + 1.0))
    assert ldcc_errata.loss_only_while_full().verdict == "reproduced"
