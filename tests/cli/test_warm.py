"""The list of what set-up compiles covers every law and every ready scenario; compiling it is
what set-up does.
"""

from __future__ import annotations

import fluidcc as fc
from fluidcc.cli.warm import groups


def test_every_law_and_scenario_is_on_the_list_or_too_large() -> None:
    names = [name for group in groups() for name, _ in group]
    assert {
        "the network solver",
        "LDCC",
        "Reno",
        "CBR",
        "DualLink",
        "scenario p1",
        "scenario tour",
    } <= set(names)
    assert len(names) == len(set(names))
    for name, scenario in fc.scenarios.items():
        pairs = sum(len(f.route) for f in scenario.net.flows.values())
        assert (f"scenario {name}" in names) == (pairs <= 8 and len(scenario.net.links) <= 4)


def test_a_task_compiles() -> None:
    dict(task for group in groups() for task in group)["scenario p1"]()
    assert fc.scenarios["p1"].simulate(until=1.0).attrs["engine"] == "fused"
