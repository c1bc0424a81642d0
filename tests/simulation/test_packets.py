"""Beside packets: ns-3 and ns-2, as `benchmarks/packets` has run them."""

import csv
from pathlib import Path

import numpy as np
import pytest

import fluidcc as fc

RESULTS = Path(__file__).parents[2] / "benchmarks" / "packets" / "results.csv"


def packets(scenario: str, what: str) -> float:
    rows = csv.DictReader(RESULTS.read_text().splitlines())
    return float(np.mean([float(row[what]) for row in rows if row["scenario"] == scenario]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "laws", "queue", "buffer", "rtt", "losses", "lost", "within"),
    [
        ("newreno", [fc.AIMD], fc.DropTail, 62, (100, 100), "ratio", "loss", (0.1, 0.15)),
        ("newreno8", [fc.AIMD] * 8, fc.DropTail, 125, (50, 60), "random", "loss", (0.15, 0.2)),
        ("dctcp4", [fc.DCTCP] * 4, fc.StepMark(K=0.016), 250, (50, 60), "ratio", "mark", (0.2, .1)),
        ("newreno8_pie", [fc.Reno] * 8, fc.PIEDrop, 250, (50, 60), "ratio", None, (0.12, 0)),
    ],
)  # fmt: skip
def test_queues_and_losses_are_near_packets(
    scenario: str, laws: list[fc.Source], queue: fc.Link, buffer: int, rtt: tuple[float, float],
    losses: str, lost: str | None, within: tuple[float, float],
) -> None:  # fmt: skip
    link = {"law": queue, "capacity": "10 Mbit/s", "buffer": f"{buffer} packets"}
    net = fc.dumbbell(laws, link, rtt=list(np.linspace(*rtt, len(laws)) / 1e3))
    run = fc.simulate(net, 100.0, samples=10001, losses=losses).sel(time=slice(20, None))
    kept = run.backlog.mean().item() / 8000
    assert kept == pytest.approx(packets(scenario, "queue"), rel=within[0])
    used = run.utilisation.mean().item()
    assert used == pytest.approx(packets(scenario, "utilisation"), rel=0.02)
    gone = run.isel(time=-1) - run.isel(time=0)
    ratio = float(gone.lost[0] / gone.entered[0])
    if lost == "mark":
        ratio = float((run.mark * run.rate).mean() / run.rate.mean())
    assert lost is None or ratio == pytest.approx(packets(scenario, lost), rel=within[1])
