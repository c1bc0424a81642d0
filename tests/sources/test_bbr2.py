"""BBR, version 2, against its cycle by hand, and beside CUBIC, with which it means to live."""

import numpy as np
import pytest

import fluidcc as fc
from tests.sources.test_bbr import BDP, TRIP, beside


def test_one_flow_goes_up_to_five_quarters_of_what_fits() -> None:
    """It has 0.99 of it in flight, and 0.2475 more a round trip later, when acknowledgements come
    at the rate of the link; then 0.2375 more a round trip. Down it sends 0.7425 of the link until
    no more is in flight than fits.
    """
    run = beside([fc.BBRv2], 8, 20, samples=1000)
    phase, t = run.BBRv2_phase.values[:, 0], run.time.values[1:]
    ups, downs, cruises = (t[(phase[1:] == k) & (phase[:-1] != k)] for k in (5, 2, 3))
    rounds = 1 + (1.25 - 0.99 - 0.2475) / 0.2375
    np.testing.assert_allclose(downs[1:] - ups, rounds * TRIP, atol=1.5e-3)
    after = cruises[np.searchsorted(cruises, downs[1:])]
    np.testing.assert_allclose(after - downs[1:], 0.25 / 0.2575 * TRIP, atol=2.5e-3)
    assert run.BBRv2_F.sel(time=slice(2, None)).max() == pytest.approx(1.25 * BDP, rel=1e-2)


@pytest.mark.parametrize("buffer", [0.5, 1, 4])
def test_beside_cubic_it_is_nearer_to_one_half_than_version_1(buffer: float) -> None:
    shares = []
    for law in (fc.BBRv1, fc.BBRv2):
        rates = beside([law, fc.CUBIC], buffer, 60).rate.sel(time=slice(20, None)).mean("time")
        shares.append(float(rates[0] / rates.sum()))
    assert abs(shares[1] - 0.5) < abs(shares[0] - 0.5)
