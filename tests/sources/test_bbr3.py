"""BBR, version 3, against its cycle by hand, and against what the draft says of it."""

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from tests.sources.test_bbr import BDP, TRIP, C, beside


def begins(run: xr.Dataset, phase: int) -> np.ndarray:
    at = run.BBRv3_phase.values[:, 0] == phase
    return run.time.values[1:][at[1:] & ~at[:-1]]


def test_one_flow_has_the_cycle_of_its_gains() -> None:
    """It looks for more until a third round trip has shown none. The queue that is seen at t
    after its begin is 0.2375/1.2375 (t - d): the third takes as much longer. Then it sends 0.891 of
    the link until no more is in flight than fits.
    """
    run = beside([fc.BBRv3], 8, 20, samples=1000)
    ups, downs, cruises = (begins(run, k) for k in (5, 2, 3))
    rounds = 3 + 0.2375 / 1.2375
    most = 0.99 + (1.2375 - 0.99) + (1.2375 - 1) * (rounds - 1)  # of what fits
    np.testing.assert_allclose(downs[1:] - ups, rounds * TRIP, rtol=1e-2)
    after = cruises[np.searchsorted(cruises, downs[1:])]
    np.testing.assert_allclose(after - downs[1:], (most - 1) / 0.109 * TRIP, rtol=2e-2)
    assert run.BBRv3_F.sel(time=slice(2, None)).max() == pytest.approx(most * BDP, rel=1e-2)
    np.testing.assert_allclose(run.BBRv3_B.sel(time=slice(2, None)), C / 8000, rtol=2e-3)


def test_pauses_cost_two_per_cent() -> None:
    """Half of what fits for 0.2 s each 5 s: 0.98, less what emptying and filling take."""
    rates = []
    for every in (5, 1000):
        run = beside([fc.BBRv3(every=every)], 8, 32)
        rates.append(float(run.rate.sel(time=slice(4, 4 + 5 * 5.264)).mean()))
    assert rates[0] / rates[1] == pytest.approx(0.98, abs=6e-3)
    held = begins(beside([fc.BBRv3], 8, 20, samples=1000), 7)
    assert 5.2 < np.diff(held).min() <= np.diff(held).max() < 5.4


def test_losses_teach_it_what_may_be_in_flight() -> None:
    """A probe that loses too much leaves H at what path and buffer hold; then it is cautious."""
    run = beside([fc.BBRv3], 0.3, 30)
    bound = run.BBRv3_H.sel(time=slice(10, None))
    assert 1.2 * BDP < float(bound.min()) <= float(bound.max()) < 1.45 * BDP
    assert {1, 2} <= {*np.unique(run.BBRv3_m)}
    assert float(run.link_loss.mean()) < 5e-3


@pytest.mark.slow
@pytest.mark.parametrize("buffer", [0.5, 4])
def test_bandwidths_converge(buffer: float) -> None:
    """To equal shares, roughly: with a gain of 0.9 in down, says the draft."""
    late = {"law": fc.BBRv3(wait=2.7), "start": 10}
    run = beside([fc.BBRv3(wait=2.2), late], buffer, 160)
    rates = run.rate.sel(time=slice(70, None)).mean("time").values
    assert 0.62 < rates[1] / rates[0] < 1.3


@pytest.mark.slow
def test_it_leaves_cubic_more_than_version_1_does() -> None:
    left = [
        beside([law, fc.CUBIC], 0.5, 60).rate.sel(time=slice(20, None)).mean("time").values[1]
        for law in (fc.BBRv1, fc.BBRv3)
    ]
    assert left[1] > 2 * left[0]
    assert left[1] > 0.15 * C
