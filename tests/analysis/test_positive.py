"""The positive-real argument: against the answer by hand, and against the roots of undelayed
networks.
"""

from __future__ import annotations

import numpy as np
import pytest
from sympy import Matrix, lambdify

import fluidcc as fc
from fluidcc.analysis.passivity import PassivityReport, UserPassivity, passivity
from fluidcc.analysis.undelayed import undelayed
from fluidcc.base.errors import Unsupported


def test_the_index_is_that_of_the_printed_answer() -> None:
    net = fc.dumbbell([fc.LDCC] * 2, {"capacity": 3e6}, rtt=0.05)
    found = passivity(net)
    rest = fc.equilibrium(net)
    R, x = float(rest.rtt[0]), float(rest.rate[0])
    a, zero = 0.4 * 20e3 / (x * R), (0.1 - 20e3 / x) / R
    # eta (s + v')/(s + a), of x/RTT: between eta v'/a at 0 and eta at infinity, the real part is
    # monotone.
    (user,) = found.users
    assert user.index == pytest.approx(min(0.4, 0.4 * zero / a), rel=1e-6)
    assert user.kyp
    assert found
    assert "strictly positive real" in repr(found)
    assert "<table>" in found._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_networks_that_it_calls_stable_have_no_unstable_root(seed: int) -> None:
    rng = np.random.default_rng(seed)
    law = fc.LDCC(eta=10 ** rng.uniform(-1, 1.5), T=0.25)
    links = [{"capacity": c, "delay": 0.01} for c in rng.uniform(2e6, 5e6, 2)]
    net = fc.parking_lot([law], [[law], [law]], links)
    assert passivity(net).stable
    system = undelayed(net)
    state = [float(system.point[z]) for z in system.states]
    J = lambdify(
        system.states, Matrix(list(system.flow.values())).jacobian(list(system.states)), "numpy"
    )(*state)
    assert np.linalg.eigvals(np.array(J, float)).real.max() < 0


def test_dependent_routes_decide_nothing() -> None:
    found = PassivityReport((UserPassivity("f", 0.4, 0.0, True),), links=2, rank=1)
    assert not found.stable
    assert "rank 1" in found.verdict


def test_a_report_of_stability_has_it() -> None:
    report = fc.stability(fc.scenarios["ldcc_fig5"].net, at=200.0)
    assert report.passivity.stable
    assert [u.name for u in report.passivity.users] == ["flow1 (x3)"]  # the third flow sends then
    assert report.sufficient["convex hull"].conservatism == pytest.approx(1, rel=1e-6)


def test_other_links_are_refused() -> None:
    with pytest.raises(Unsupported, match="answer by loss"):
        passivity(fc.scenarios["ldcc_fig6"].net, at=200.0)
