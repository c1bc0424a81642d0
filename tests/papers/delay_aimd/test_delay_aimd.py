"""Claims of the delay-based AIMD paper: their numbers agree with formulas here."""

import math
from itertools import pairwise

import numpy as np
import pytest

from fluidcc.formulas import delay_aimd
from fluidcc.papers.delay_aimd import figures as figures_delay_aimd
from fluidcc.papers.delay_aimd import rules as delay_aimd_rules
from fluidcc.papers.delay_aimd import runs as delay_aimd_runs
from fluidcc.papers.delay_aimd.knee import FLOWS
from tests.papers.rows import outcome


def values_of(name: str) -> dict[str, float]:
    return dict(outcome(f"delay_aimd.{name}").values)


# --- numbers, by formulas that share nothing with the library -------------------------------------


def mean_delay(tau0: float, T: float, parts: int = 20000) -> float:
    """Mean over time of R - T while R R' is constant, from T to T + tau0."""
    trips = [T + tau0 * (k + 0.5) / parts for k in range(parts)]
    return sum(R * (R - T) for R in trips) / sum(trips)


NUMBERS = [
    ("increase_minimum", "at Delta = 0", 1 - 10 + 0.5, 1e-12),
    ("rise_epochs", "beta = 0.5", math.log(10) / math.log(2), 1e-12),
    ("rise_epochs", "beta = 0.75", math.log(10) / math.log(4 / 3), 1e-12),
    ("algorithm_increase", "longer", 1.57, 1e-2),
    ("algorithm_threshold", "tau0", 0.05, 1e-12),
    ("algorithm_cap", "bound", 9.0, 1e-9),
    ("algorithm_loss_branch", "top", 100 * 8000 / 50e6, 1e-6),
    ("slow_start_threshold", "q = w/3", 2.0, 1e-12),
    ("slow_start_length", "linear", 12.0, 1e-9),
    ("slow_start_length", "10 Gbit/s", math.log2(10e9 * 0.02 / 8000 / 10), 1e-9),
    ("ratchet_buffer", "1000 byte", 0.184, 1e-12),
    ("ratchet_buffer", "1500 byte", 0.216, 1e-12),
    ("knee_independent", "tau0 = 50 ms", mean_delay(0.05, 0.25), 1e-6),
    ("just_empties", "closed", mean_delay(0.02, 0.12), 1e-6),
    ("closed_form", "prompt", 6250 / 6 * (0.14**2 - 0.12**2), 1e-9),
    ("busy_one_by_one", "used, 1", 1.0, 1e-6),
    (
        "closed_form",
        "period",
        (1 - (6 / 7) ** 2) * ((6250 * 0.14) ** 2 + 6 * 6250 * 0.14) / (6 * 6250),
        1e-9,
    ),
    ("vegas_queue", "n = 8", 16.0, 1e-2),
    ("adaptive_backoff", "adaptive", 1.0, 1e-6),
    ("ratchet_of_one", "last", 0.12, 1e-4),
    ("converges", "factor 1", 0.25 / 0.30, 1e-2),
    ("converges", "factor 0.9", 0.9 * 0.25 / 0.30, 1e-2),
    ("coexists", "gamma = 0.9, Delta0 = 2 s", 0.25, 0.08),
    ("table_one", "with a queue", 7, 0),
    ("table_one", "as printed", 0, 0),
    ("coefficient", "with 0.5", 4, 0),
    ("coefficient", "with 0.25", 7, 0),
    ("coefficient", "with 0.5, 1 s", 1, 0),
    ("coefficient", "with 0.25, 1 s", 1, 0),
]
BELOW = [
    ("adaptive_backoff", "half", 0.8),
    ("just_empties", "low", 0.003),
    ("coexists", "gamma = 0, Delta0 = 0 s", 0.05),
    ("ratchet_of_ten", "after", 10),
    ("busy_one_by_one", "used, 0.9", 0.99),
]
ABOVE = [
    ("ratchet_of_one", "stuck", 0.17),
    ("ratchet_of_ten", "stuck", 0.17),
    ("ratchet_of_ten", "after", 0),
    ("busy_over_two_links", "alone, 50", 0.4),
    ("busy_over_two_links", "alone, 40", 0.4),
    ("busy_over_two_links", "used, 50", 0.9999),
    ("busy_over_two_links", "used, 40", 0.9999),
    ("busy_one_by_one", "alone, 1", 0.4),
    ("busy_one_by_one", "used, 1", 0.9999),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "key", "by_hand", "rel"), NUMBERS, ids=[f"{n}-{k}" for n, k, *_ in NUMBERS]
)
def test_numbers_by_hand(name: str, key: str, by_hand: float, rel: float) -> None:
    assert values_of(name)[key] == pytest.approx(by_hand, rel=rel)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "key", "bound", "sign"), [(*v, -1) for v in BELOW] + [(*v, 1) for v in ABOVE]
)
def test_numbers_are_on_their_side_of_a_bound(name: str, key: str, bound: float, sign: int) -> None:
    assert sign * values_of(name)[key] > sign * bound


def test_an_epoch_with_the_factor_of_algorithm_1() -> None:
    """(2), added up second by second, makes up for C (0.14^2 - 0.12^2)/2 trips of a packet."""

    def lasts(factor: float, step: float = 1e-5) -> float:
        t, left = 0.0, 6250 * (0.14**2 - 0.12**2) / 2
        while left > 0:
            late = max(t - 1, 0.0)
            left -= factor * (1 + 10 * late + 0.5 * late**2) * step
            t += step
        return t

    assert values_of("algorithm_increase")["by (2)"] == pytest.approx(
        lasts(2 / 7) / lasts(1.0), rel=1e-4
    )


def epoch(window: float, rtt: float, quarter: bool, more: float = 0.0) -> float:
    """Whole round trips until half of a window and `more` is added, as it grows at their ends."""
    grown, count = 0.0, 0
    while grown < window / 2 + more - 1e-12:
        count += 1
        late = count * rtt
        grown += 1 + 10 * late + (0.25 if quarter else 0.5) * late**2
    return count * rtt


def test_table_one_by_counting_rounds() -> None:
    printed = {100: 1.1, 1000: 3.1, 2000: 4.3, 5000: 6.6, 10000: 9.2, 20000: 12.8, 50000: 19.4}
    values = values_of("table_one")
    found = {w: epoch(w, 0.1, quarter=True) for w in printed}
    for w, t in found.items():
        assert values[f"W = {w}"] == pytest.approx(t)
    assert values["equal"] == sum(abs(found[w] - t) < 0.05 for w, t in printed.items()) == 4
    assert max(abs(found[w] - t) for w, t in printed.items()) == pytest.approx(0.2)
    for more in (19.0, 20.0, 22.0):  # all of them, though none is printed
        assert [round(epoch(w, 0.1, quarter=True, more=more), 1) for w in printed] == list(
            printed.values()
        )


@pytest.mark.slow
def test_no_round_trip_gives_more_entries_of_table_one_than_the_corners() -> None:
    """At 110 ms, without an offset, three entries come out with 0.5; the row says no fewer."""
    windows = np.array(delay_aimd_rules.TABLE[0], dtype=float)
    rng = np.random.default_rng(3)
    values = values_of("coefficient")
    for a in (0.5, 0.25):
        found = [
            delay_aimd_rules.equal(
                delay_aimd.epoch_duration(windows, rtt, coefficient=a, offset=0.0, queue=queue)
            )
            for rtt, queue in [(0.11, 0), (0.1, 40), *rng.uniform((0.08, 0), (0.13, 80), (40, 2))]
        ]
        assert 3 <= max(found) <= values[f"with {a:g}"]


@pytest.mark.slow
def test_plain_slow_start_ends_where_news_of_its_bursts_comes() -> None:
    """Half of a round is in the queue at its end: tau0 is met in the first of C tau0 or more.

    News of it comes 2 C tau0 acknowledgements into the next one, in which the window doubles again.
    """
    values, per_second = values_of("slow_start_exit"), 50e6 / 8000
    for T, tau0 in delay_aimd_runs.CASES:
        before = 10 * 2 ** np.ceil(np.log2(per_second * tau0 / 10))
        wanted = 2 * before + 2 * per_second * tau0
        found = values[f"T = {T:g}, tau0 = {tau0:g}"] * per_second * T
        assert found == pytest.approx(wanted, rel=5e-3)


@pytest.mark.slow
def test_rates_of_flows_with_different_round_trips() -> None:
    """Windows grow by 1/RTT a second until the queue is tau0, and give up tau0/(T + tau0)."""
    v, near, tau0 = values_of("rtt_unfairness"), 0.04, 0.02

    def rate(T: float) -> float:
        grown = sum(1 / (T + tau0 * (k + 0.5) / 1000) for k in range(1000))
        peak = grown / (tau0 / (T + tau0))
        return peak / (T + tau0)

    for ratio in (1.5, 2, 3, 4):
        assert v[f"delay-based, {ratio:g}"] == pytest.approx(
            rate(near) / rate(ratio * near), rel=0.03
        )
        assert ratio**1.7 < v[f"standard TCP, {ratio:g}"] < ratio**2
    assert 0.9 < v["power of delay-based"] < 1.1
    assert v["capped"] > 1.3 * v["delay-based, 8"]


def test_a_probing_backoff_takes_a_part_of_the_smallest_round_trip() -> None:
    steps = [v for k, v in values_of("ratchet_of_one").items() if k.startswith("step")]
    for before, after in pairwise(steps):
        assert after == pytest.approx(max(0.12, 0.9 * before), rel=0.04)


@pytest.mark.slow
def test_the_knee() -> None:
    used = values_of("knee_utilisation")
    assert [used.pop(f"n = {n}") for n in FLOWS] == pytest.approx([1.0] * len(FLOWS), abs=1e-4)
    assert 0.9 < used["drained"] < 0.97
    delays = values_of("knee_delay")
    mean, printed = ([delays[f"{which}n = {n}"] for n in FLOWS] for which in ("", "Algorithm 1, "))
    assert mean == sorted(mean)
    assert printed == sorted(printed)
    assert printed[-1] < 0.026
    assert all(0.3 < v < 0.6 for v in values_of("shorter_epochs").values())
    loss_based = values_of("knee_of_loss_based")
    assert min(loss_based[f"n = {n}"] for n in FLOWS) > max(mean)
    # seconds; 64 flows are below 30 ms, 128 are not
    assert mean[0] < 0.02 < mean[-2] < 0.03 < mean[-1] < 0.035
    assert values_of("knee_losses")["lost"] == 0.0


def test_figures_draw_what_the_claims_compute() -> None:
    _, queue = figures_delay_aimd.FIGURES["delay_aimd_fig7"]().axes
    mean = next(line for line in queue.lines if line.get_label() == "mean")
    assert np.asarray(mean.get_ydata()) == pytest.approx(
        [1e3 * values_of("knee_delay")[f"n = {n}"] for n in FLOWS], rel=1e-12
    )
