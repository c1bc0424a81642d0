"""Certificates: what is proved holds for roots in closed form, and no more is claimed."""

import re

import numpy as np
import pytest
from scipy.special import lambertw

import fluidcc as fc
from fluidcc.numerics.certify import certify

transfer = fc.DelayLTI.transfer


@pytest.mark.parametrize(("gain", "unstable"), [(1.5, 0), (1.5707, 0), (1.5709, 2), (20.0, 6)])
def test_the_delayed_integrator_is_certified_on_both_sides_of_its_boundary(
    gain: float, unstable: int
) -> None:
    proved = certify(transfer([gain], [1, 0], 1.0).feedback())
    assert proved.certified
    assert (proved.unstable, proved.stable, proved.reason) == (unstable, unstable == 0, "certified")
    exact = complex(lambertw(-gain, 0))
    ball = proved.rightmost[0]
    assert abs(ball.centre - exact) <= ball.radius < 1e-6
    assert proved.abscissa is not None
    assert proved.abscissa[0] <= exact.real <= proved.abscissa[1]
    assert all(abs(complex(lambertw(-gain, k))) < proved.radius for k in range(unstable // 2))


@pytest.mark.parametrize("seed", range(4))
def test_a_certificate_agrees_with_the_count(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 2 + seed % 2
    A, near, far = rng.normal(size=(3, n, n))
    system = fc.DelayLTI.retarded(A - 0.5 * np.eye(n), (near, 0.3), (far, 0.011))
    proved = certify(system)
    assert proved.certified
    assert proved.unstable == system.count_unstable().unstable
    assert len(proved.rightmost) >= 2


def test_double_roots_are_enclosed_as_pairs() -> None:
    proved = certify(fc.DelayLTI.retarded(0, (-np.exp(-1), 1.0)).append(transfer([1], [1, 9])))
    # exp(-1) in floating point: the double root at -1 splits by rounding, and the square holds both
    assert proved.unstable == 0
    assert [ball.multiplicity for ball in proved.rightmost] == [2]
    assert abs(proved.rightmost[0].centre + 1) <= proved.rightmost[0].radius


@pytest.mark.parametrize(
    ("system", "text"),
    [
        (transfer([1], [1, 0]), "root lies on the path"),
        (transfer([np.pi / 2], [1, 0], 1.0).feedback(), "root lies on the path"),
        (fc.DelayLTI(-1.0, [[0, 1.5]], [1, -1], np.diag([0, 1.5]), delays=[1.0]), "amplify each"),
    ],
)
def test_what_cannot_be_proved_is_not_claimed(system: fc.DelayLTI, text: str) -> None:
    proved = certify(system)
    assert not proved.certified
    assert proved.stable is None
    assert text in proved.reason


def test_a_neutral_system_with_a_contraction_is_certified() -> None:
    a, c = 1.0, 0.5  # x' = -a x + c x'(t - 1)
    proved = certify(fc.DelayLTI(-a, [0, c], [1, -a], np.diag([0, c]), delays=[1.0]), roots=0)
    assert proved.stable is True


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        ([-1.0, -3.0, -4.0], "3 roots right of .* of which 2 are enclosed"),
        ([-1.0, -2.2, -3.0], "0 roots near s = -2.2 1/s where 1 were expected"),
    ],
)
def test_a_root_that_is_overlooked_or_misplaced_leaves_the_rightmost_ones_unproved(
    seen: list[float], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The walk around the half plane counts it all the same."""
    A = np.diag([-1.0, -2.0, -3.0, -4.0])
    system = fc.DelayLTI(A, np.zeros((4, 1)), np.zeros((1, 4)), [[0.0]])
    found = [ball.centre.real for ball in certify(system, 3).rightmost]
    assert found == pytest.approx([-1, -2, -3])
    monkeypatch.setattr(fc.DelayLTI, "roots", lambda self, count: np.array(seen[:count], complex))
    proved = certify(system, 2)
    assert (proved.certified, proved.unstable, proved.rightmost) == (True, 0, ())
    assert proved.abscissa is None
    assert re.search(reason, proved.reason.replace("+0j", "").replace("(-2.2)", "-2.2"))
