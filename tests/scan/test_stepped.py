"""Networks of many laws against Euler's method, which shares no code with the solver.

`make scan SCAN=full` runs all of them, `make scan` a sample. A network is compared up to where the
scheme's own results with three steps come apart: beyond, what it says is its error. Where PI says
next to no marks for a while, its own errors say some at times, of 1e-13, and sources back off: the
smallest steps are with marks that are more than that.
"""

import warnings
from typing import Any

import numpy as np
import pytest
import xarray as xr
from numpy.typing import NDArray

import fluidcc as fc
from tests.scan.cases import sample
from tests.scan.stepped import FLOW_LAWS, LINK_LAWS, Flow, Link, run

UNTIL, MARK = 6.0, 0.5  # [s] means are compared at each multiple of MARK
SAMPLES = 120_000  # as many intervals; windows begin with bursts of a millisecond
STEPS = (1e-4, 5e-5, 2.5e-5)
NOISE = (
    0.02  # [1/s] PI's p leaves 0 by up to as much times a step where a rate jumps within the step
)
APART = 0.01  # of a mean rate, by which the scheme is no oracle any more


def network(links: list[Link], flows: list[Flow]) -> fc.Network:
    net = fc.Network()
    for k, one in enumerate(links):
        net.link(
            f"l{k}", getattr(fc, one.law), capacity=one.capacity, delay=one.delay, buffer=one.buffer
        )
    for k, flow in enumerate(flows):
        delays = {"access_delay": flow.access, "return_delay": flow.back, "start": flow.start}
        net.flow(f"f{k}", getattr(fc, flow.law), route=[f"l{j}" for j in flow.route], **delays)
    return net


def drawn(seed: int) -> tuple[list[Link], list[Flow]]:
    """One or two links in a row, and one to three flows over some of them."""
    rng = np.random.default_rng(seed)
    links, flows = [], []
    for _ in range(rng.integers(1, 3)):
        c = rng.uniform(2e6, 8e6)
        links.append(
            Link(
                str(rng.choice([*LINK_LAWS])),
                c,
                rng.uniform(0.005, 0.03),
                c * rng.uniform(0.05, 0.25),
            )
        )
    for k in range(rng.integers(1, 4)):
        first = int(rng.integers(0, len(links)))
        route = tuple(range(first, 1 + int(rng.integers(first, len(links)))))
        law, access = (
            str(rng.choice([*FLOW_LAWS])),
            float(rng.choice([0.0, rng.uniform(0.0, 0.01)])),
        )
        flows.append(
            Flow(law, route, access, rng.uniform(0.01, 0.06), rng.uniform(0.0, 1.0) if k else 0.0)
        )
    return links, flows


def sent(result: xr.Dataset) -> NDArray[Any]:
    """What each flow has sent by each sample."""
    rate, widths = result.rate.values, np.diff(result.time.values)[:, None]
    return np.vstack([0.0 * rate[:1], np.cumsum(0.5 * widths * (rate[1:] + rate[:-1]), axis=0)]).T


@pytest.mark.scan
@pytest.mark.parametrize("seed", sample(range(200), 40))
def test_a_random_network_sends_what_eulers_method_says(seed: int) -> None:
    links, flows = drawn(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of windows of few packets, and paths that are never empty
        result = fc.simulate(network(links, flows), UNTIL, samples=SAMPLES + 1, engine="array")
    marks = np.arange(MARK, UNTIL + 0.1, MARK)
    mine = sent(result)[:, np.round(marks / UNTIL * SAMPLES).astype(int)]
    for finer, noise in ((1, 0.0), (4, 0.0), (16, NOISE)):
        steps = [step / finer for step in STEPS]
        theirs = [
            run(links, flows, UNTIL, step, noise * step)[0][:, np.round(marks / step).astype(int)]
            for step in steps
        ]
        apart, size = np.ptp(theirs, axis=0), theirs[-1] + 0.01 * max(one.capacity for one in links)
        held = np.minimum.accumulate(np.all(apart < APART * size, axis=0))
        agreed = np.all((np.abs(mine - theirs[-1]) <= 2 * apart + 1e-3 * size) | ~held)
        if held[0] and agreed:
            break
    assert held[0], "the scheme says nothing: take smaller steps"
    assert agreed
