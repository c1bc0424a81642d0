"""Network utility maximisation on networks: exact solutions, and refusals."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import log

import fluidcc as fc
from fluidcc.base.errors import Infeasible, InvalidInput, Unbounded, Unsupported


def lot(n: int, capacity: float = 3e6) -> fc.Network:
    """A long flow over n links, and a short one on each."""
    links = [{"name": f"l{l}", "law": fc.DualLink, "capacity": capacity} for l in range(n)]
    cross = [{f"s{l}": fc.PrimalDual} for l in range(n)]
    return fc.parking_lot({"long": fc.PrimalDual}, cross, links)


def shared(*laws: Any, capacity: Any) -> fc.Network:
    return fc.dumbbell(laws, {"law": fc.DualLink, "capacity": capacity})


@pytest.mark.parametrize("n", [1, 2, 5])
def test_parking_lot(n: int) -> None:
    solution = fc.num.solve(lot(n))
    assert solution.rate.sel(flow="long") == pytest.approx(3e6 / (n + 1), rel=1e-12)
    assert solution.rate.sel(flow="s0") == pytest.approx(3e6 * n / (n + 1), rel=1e-12)
    assert solution.price.sel(link="l0") == pytest.approx(20e3 * (n + 1) / (n * 3e6), rel=1e-12)
    assert max(solution.gap, solution.kkt) < 1e-10
    assert solution.rate.attrs["units"] == "bit/s"


def test_constant_rates_come_first() -> None:
    net = lot(1).flow("udp", fc.CBR(rate=1e6), route=["l0"])
    solution = fc.num.solve(net)
    np.testing.assert_allclose(solution.rate, [1e6, 1e6, 1e6], rtol=1e-12)


def test_each_flow_has_its_own_utility() -> None:
    # w/x1 = 0.01 and (v/x2)^2 = 0.01 on a link of x1 + x2 = c.
    laws = fc.PrimalDual(w=1e4), fc.AlphaFairPrimalDual(w=2e5)
    solution = fc.num.solve(shared(*laws, capacity=3e6))
    np.testing.assert_allclose(solution.rate, [1e6, 2e6], rtol=1e-12)
    np.testing.assert_allclose(solution.price, [0.01], rtol=1e-12)


def test_utility_without_closed_form_inverse() -> None:
    # U' = w/x + w/(x + w): at x = w it is 3/2.
    x = fc.PrimalDual.out["rate"]
    w = next(s for s in fc.PrimalDual.params if str(s) == "w")
    law = fc.PrimalDual.with_utility(w * log(x) + w * log(1 + x / w), name="Odd")
    solution = fc.num.solve(shared(law, law, capacity=4e4))
    np.testing.assert_allclose(solution.rate, 2e4, rtol=1e-12)
    np.testing.assert_allclose(solution.price, 1.5, rtol=1e-12)
    assert solution.kkt < 1e-10


def test_time_chooses_flows_and_capacities() -> None:
    late = {"law": fc.PrimalDual, "start": 5, "stop": 20}
    net = shared(fc.PrimalDual, late, capacity=[(0, 2e6), (10, 6e6)])
    for at, rates in (
        (0, [2e6, 0]),
        ("5 s", [1e6, 1e6]),
        ("10000 ms", [3e6, 3e6]),
        (np.inf, [6e6, 0]),
    ):
        np.testing.assert_allclose(fc.num.solve(net, at=at).rate, rates, rtol=1e-12)


def test_infeasible_names_link_and_numbers() -> None:
    net = lot(1).flow("udp", fc.CBR(rate=4e6), route=["l0"])
    with pytest.raises(Infeasible, match=r"link 'l0' has 3e\+06 bit/s .*'udp'.* 4e\+06 bit/s"):
        fc.num.solve(net)
    with pytest.raises(
        Infeasible, match="'udp' take all of it, so nothing is left for 'long', 's0'"
    ):
        fc.num.solve(net.with_flow("udp", law=fc.CBR(rate=3e6)))


def test_unbounded_names_the_flow() -> None:
    net = lot(2)
    net._links["l1"] = replace(net.links["l1"], capacity=np.inf)  # networks refuse it at the door
    with pytest.raises(Unbounded, match="flow 's1' crosses no link of finite capacity"):
        fc.num.solve(net)


def test_flows_without_utility_are_refused() -> None:
    with pytest.raises(
        InvalidInput, match="flow 'tcp' .*StaticReno.* has no utility .*; or take .*fluidcc.LDCC"
    ):
        fc.num.solve(lot(1).flow("tcp", fc.StaticReno, route=["l0"]))
    with pytest.raises(Unsupported, match="flow 'burst' sends at random"):
        fc.num.solve(lot(1).flow("burst", fc.OnOff, route=["l0"]))


def test_only_constant_rates() -> None:
    solution = fc.num.solve(fc.dumbbell([fc.CBR(rate=4e5)], {"capacity": 1e6}))
    assert solution.rate.item() == 4e5
    assert solution.price.item() == 0


def test_parameters_may_be_in_the_utility_of_one_group() -> None:
    # Flows of one law and different weights: x in proportion to w.
    net = shared(*(fc.PrimalDual(w=k * 1e4) for k in (1, 2, 3)), capacity=6e6)
    np.testing.assert_allclose(fc.num.solve(net).rate, [1e6, 2e6, 3e6], rtol=1e-12)
