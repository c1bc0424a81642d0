"""Section IV-A and Appendix A: which steps hold, which do not, and what holds instead."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from fluidcc.papers.ldcc import passivity as room
from fluidcc.papers.model import Outcome, claims_of

WANTED = {
    "supply_rates_cancel": "proved",
    "equilibrium_conditions": "proved",
    "user_storage_positive": "proved",
    "gain_before_the_sum": "differs",
    "link_storage_offset": "differs",
    "users_derivative": "proved",
    "users_projection": "proved",
    "users_inequality": "refuted",
    "slope_inequality": "refuted",
    "routing_adjoint": "proved",
    "users_dissipation": "proved",
    "links_derivative": "proved",
    "links_inequality": "differs",
    "sum_of_storages": "refuted",
    "repaired": "proved",
    "locally_stable": "proved",
}


def test_every_step_has_the_verdict_that_was_worked_out() -> None:
    rows = {
        row.check.__name__: row.check()
        for row in claims_of("ldcc")
        if row.check.__module__ == room.__name__
    }
    assert {name: found.verdict for name, found in rows.items()} == WANTED
    refuted = rows["sum_of_storages"]
    assert refuted.values["V"] > 0
    assert refuted.values["rate"] > 0
    assert rows["users_inequality"].values["left"] > rows["users_inequality"].values["right"]
    assert rows["locally_stable"].values["worst"] < 0


MUTATIONS: list[tuple[Callable[[], Outcome], str, Any]] = [
    (room.users_derivative, "RATE", 2 * room.RATE),
    (room.users_projection, "ABOVE", 2 * room.ABOVE),
    (room.slope_inequality, "STEEPEST", room.STEEPEST / 2),
    (room.users_dissipation, "U2", -room.U2),
    (room.equilibrium_conditions, "GAIN", 2 * room.GAIN),
    (room.repaired, "RATE", room.RATE + room.x),
    (room.locally_stable, "U2", 2 * room.U2),
]


@pytest.mark.parametrize(
    ("check", "name", "wrong"), MUTATIONS, ids=[f"{f.__name__}-{n}" for f, n, _ in MUTATIONS]
)
def test_a_wrong_equation_turns_the_verdict(
    monkeypatch: pytest.MonkeyPatch, check: Callable[[], Outcome], name: str, wrong: Any
) -> None:
    before = WANTED[check.__name__]
    monkeypatch.setattr(sys.modules[check.__module__], name, wrong)
    found = check()
    assert found.verdict != before or "fails" in found.computed
