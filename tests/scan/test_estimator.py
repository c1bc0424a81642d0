"""The estimator's defaults over the number of old flows and their round trip, of which
`tests/sources/test_probes.py` has the corners.
"""

import pytest

from tests.scan.cases import FULL
from tests.sources.test_probes import ratio


@pytest.mark.scan
@pytest.mark.skipif(not FULL, reason="this is a part of `make scan SCAN=full`")
@pytest.mark.parametrize("rtt", [0.02, 0.04, 0.1, 0.2, 0.3])
@pytest.mark.parametrize("n", [1, 2, 4, 8, 16])
def test_a_newcomer_shares_fairly(n: int, rtt: float) -> None:
    found = ratio(n, rtt)
    print(f"n = {n}, {1e3 * rtt:g} ms: {found:.3f}")
    assert found == pytest.approx(1, abs=0.03)
