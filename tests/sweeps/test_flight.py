"""What is known of the jobs that are out."""

from __future__ import annotations

import math

import pytest

from fluidcc.sweeps.flight import Flight


def test_a_job_that_ends_by_time_keeps_its_worker_for_no_longer_and_gives_points_back() -> None:
    """Half of its time is over; half as much is to be done by each worker so that both end together."""
    now = [0.0]
    flight = Flight(lambda: now[0])
    flight.add(0, 5000, 0.2, 2)
    flight.add(5000, 5000, 0.2, 2)
    now[0] = 0.1
    flight.end(0)
    assert flight.back(1e-4, 0.0) == 3000
    assert flight.back(1e-4, 0.1) == 4000, "a call takes some of the time"
    assert flight.gap(1e-4, 0.0, 0.0, 3000, 2) == pytest.approx((3000 * 1e-4 + 0.2 - 0.1) / 2)
    flight.end(5000)
    assert flight.back(1e-4, 0.0) == 0


def test_a_job_that_measures_all_of_its_points_gives_none_back() -> None:
    flight = Flight(lambda: 0.0)
    flight.add(0, 5000, math.inf, 2)
    flight.add(5000, 1000, 0.2, 2)
    assert flight.back(1e-4, 0.0) == 0
