"""The algebra of Section IV-B: what is proved stays proved, and turns when the law or the
formula is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fluidcc.laws.linear import at_rest
from fluidcc.papers.ldcc import regimes as user
from fluidcc.papers.ldcc import stability as room
from fluidcc.papers.model import Outcome, claims_of
from fluidcc.sources import LDCC
from fluidcc.symbols import e, pi

PROVED = {
    "linearised", "solved", "return_ratio", "diagonal_part", "same_spectrum", "user_loop",
    "poles_of_user_loop",
    "curvature", "penalty_slope", "zero_of_user_loop", "user_loop_of_ldcc",
    "places_of_pole_and_zero",
    "identical_flows", "parking_lot_eigenvalues",
}  # fmt: skip


def test_the_algebra_of_the_paper_is_proved() -> None:
    named = {*PROVED, "gain_divided", "delayed_rate_equation", "delayed_queue"}
    rows = [row.check for row in claims_of("ldcc") if row.check.__name__ in named]
    found = {check.__name__: check().verdict for check in rows}
    assert set(found) == named
    assert {name for name, verdict in found.items() if verdict == "proved"} == PROVED
    assert found["gain_divided"] == "refuted"
    assert {found["delayed_rate_equation"], found["delayed_queue"]} == {"differs"}


(X,) = LDCC.states
DOUBLED = at_rest(replace(LDCC, claims={}, flow={X: 2 * LDCC.flow[X]}), given={pi: 0}, eliminate=e)

MUTATIONS: list[tuple[Callable[[], Outcome], str, Any]] = [
    (room.linearised, "REST", DOUBLED),
    (room.solved, "REST", DOUBLED),
    (room.return_ratio, "REST", DOUBLED),
    (room.diagonal_part, "K", 2 * room.K),
    (user.user_loop, "REST", DOUBLED),
    (user.user_loop_of_ldcc, "REST", DOUBLED),
    (user.user_loop_of_ldcc, "ROUND", 2 * room.ROUND),
    (user.curvature, "U2", 2 * room.U2),
    (user.penalty_slope, "ABOVE", 2 * user.ABOVE),
    (user.places_of_pole_and_zero, "REST", DOUBLED),
    (user.identical_flows, "K", 2 * room.K),
]


@pytest.mark.parametrize(
    ("check", "name", "wrong"), MUTATIONS, ids=[f"{f.__name__}-{n}" for f, n, _ in MUTATIONS]
)
def test_a_wrong_equation_is_not_proved(
    monkeypatch: pytest.MonkeyPatch, check: Callable[[], Outcome], name: str, wrong: Any
) -> None:
    for module in (room, user):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, wrong)
    assert check().verdict == "refuted"
