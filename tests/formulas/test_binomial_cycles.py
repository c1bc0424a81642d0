"""The binomial paper's cycle, (26) to (28), against limit cycles of the jump automata in the
network engine.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc
from fluidcc.formulas import binomial

C, UNIT, INTERVAL = 1e6, 1e5, 0.1  # capacity and MTU/RTT [bit/s], control interval [s]
AFTER = 1e-12  # a look just after a jump [s]


@pytest.mark.parametrize("flows", [1, 3])
@pytest.mark.parametrize(
    ("k", "l", "alpha", "beta"),
    [(0, 1, 0.3, 0.5), (1, 0, 0.5, 2.0), (0.5, 0.5, 0.4, 1.0), (-1.5, 2, 0.02, 0.03), (-2, 3, 3e-3,
    2e-3),
     (-1, 1, 0.05, 0.4)],
)  # fmt: skip
def test_the_cycle_of_the_automaton_is_the_formula_s(
    k: float, l: float, alpha: float, beta: float, flows: int
) -> None:
    net = fc.Network().link("l", fc.DropTail, capacity=flows * C, delay=0.002, buffer=1e3)
    law = fc.RateBinomial(k=k, l=l, alpha=alpha, beta=beta, m=UNIT, R=INTERVAL)
    for i in range(flows):
        net.flow(f"f{i}", law, route=["l"], return_delay=0.002, start=0, initial={"x": 0.9 * C})
    run = fc.simulate(net, 40, rtol=1e-11, atol=1e-13, samples=2)
    edges = run.jump_time.values.reshape(-1, flows)[-3:-1, 0]
    cycle = fc.simulate(net, edges[-1] + 1e-3, rtol=1e-11, atol=1e-13, t_eval=edges + AFTER)
    lam, sigma = binomial.window_to_rate(alpha, beta, k, l, UNIT, 1.0)
    low = cycle.rate.values[-1, 0]
    U = brentq(lambda top: top - sigma * top**l - low, low, 1.1 * C, xtol=1e-9, rtol=1e-15)
    time, sent = np.diff(edges)[0], np.diff(cycle.entered.values[:, 0])[0] / flows
    assert time == pytest.approx(binomial.cycle_time(k, l, lam, sigma, U, INTERVAL), rel=1e-9)
    assert sent == pytest.approx(binomial.cycle_data(k, l, lam, sigma, U, INTERVAL), rel=1e-9)
    assert sent / time / U == pytest.approx(binomial.efficiency(k, l, sigma, U), rel=1e-9)


def test_the_automaton_s_steps_are_those_of_the_interval_model() -> None:
    # one definition in SymPy, one compiled: R_I and R_D of the law against a step of
    # fc.synchronized
    for k, l, alpha, beta in ((0, 1, 0.3, 0.5), (0.5, 0.5, 0.4, 1.0), (-1.5, 2, 0.02, 0.03)):
        law = fc.RateBinomial(k=k, l=l, alpha=alpha, beta=beta, m=UNIT, R=INTERVAL)
        (x,) = law.states
        values = {**law.params, x: 0.8 * C}
        up = float(law.flow[x].subs(values)) * INTERVAL
        down = 0.8 * C - float(law.jumps[0].reset[x].subs(values))
        lam, sigma = binomial.window_to_rate(alpha, beta, k, l, UNIT, 1.0)
        for capacity, step in ((C, up), (0.5 * C, -down)):
            run = fc.synchronized(k, l, lam, sigma, capacity, initial=0.8 * C, intervals=2)
            assert run.rates[1, 0] - run.rates[0, 0] == pytest.approx(step, rel=1e-9)


def test_the_limit_cycle_of_the_jump_solver() -> None:
    for k, l, alpha, beta in ((0, 1, 0.3, 0.5), (0.5, 0.5, 0.4, 1.0)):
        net = fc.Network().link("l", fc.DropTail, capacity=C, delay=0.002, buffer=1e3)
        law = fc.RateBinomial(k=k, l=l, alpha=alpha, beta=beta, m=UNIT, R=INTERVAL)
        cycle = fc.limit_cycle(
            net.flow("f", law, route=["l"], return_delay=0.002, initial={"x": 0.9 * C})
        )
        lam, sigma = binomial.window_to_rate(alpha, beta, k, l, UNIT, 1.0)
        U, mean = float(cycle.most.rate[0]), float(cycle.mean.rate[0])
        assert mean / U == pytest.approx(binomial.efficiency(k, l, sigma, U), rel=1e-9)
        assert cycle.period == pytest.approx(
            binomial.cycle_time(k, l, lam, sigma, U, INTERVAL), rel=1e-9
        )
