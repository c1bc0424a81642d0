"""Every law that jumps or has a window, beside AIMD and beside a constant rate, over random
capacities: none stops, and every bit is accounted for.

`make scan SCAN=full` runs 20 traces, `make scan` a tenth, drawn by the day.
"""

import warnings
from itertools import product

import numpy as np
import pytest

import fluidcc as fc
from fluidcc import sources
from fluidcc.laws.steady import window
from fluidcc.simulation.restart import FinalState, counted_anew
from fluidcc.symbols import plain
from tests.scan.cases import of_today

UNTIL, TRACES = 20, range(20)
HARD = [(1, "CUBICFluid"), (824, "CUBICFluid")]  # REDDrop lets ever less in, and then nothing
# Over a REDDrop that lets next to nothing in: pacing laws up to 1.5e-4 of the buffer at 1e-6,
# CUBICFluid 2e-2.
FINER = dict.fromkeys(("BBRv1", "BBRv2", "BBRv3", "Copa", "CUBICFluid"), 1e-7)
LAWS = [n for n in sources.__all__ if (x := getattr(fc, n)).jumps or x.ticks or window(x)]


def network(law: str, beside: str, link: str, seed: int) -> fc.Network:
    """A buffer of one product of mean capacity and round trip."""
    rng = np.random.default_rng(seed)
    capacities, rtt = rng.uniform(2e6, 20e6, UNTIL), rng.uniform(0.02, 0.2)
    schedule = [(float(k), float(c)) for k, c in enumerate(capacities)]
    spec = {"law": getattr(fc, link), "capacity": schedule, "buffer": capacities.mean() * rtt}
    return fc.dumbbell({"a": getattr(fc, law), "b": getattr(fc, beside)}, spec, rtt=rtt)


@pytest.mark.scan
@pytest.mark.parametrize(("seed", "law"), [*HARD, *of_today([*product(TRACES, LAWS)], 10)])
def test_a_law_runs_over_a_random_trace(seed: int, law: str) -> None:
    for link, beside in product(("DropTail", "REDDrop", "PI"), ("StaticAIMD", "CBR")):
        net = network(law, beside, link, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of small windows, losses that are not heard, routers
            run = fc.simulate(net, UNTIL, rtol=FINER.get(law, 1e-6))
        assert np.isfinite(run.rate).all()
        assert run.rate.min() >= 0
        buffer = net.links["bottleneck"].buffer
        assert run.backlog.min() >= 0
        assert run.backlog.max() <= buffer * (1 + 1e-4)
        own = [plain(z) for z in net.flows["a"].law.states]
        if "F" in own:  # what it has in flight is what it sent and has not heard of
            kept, counted = (
                FinalState.of(r).states("flow", "a")[own.index("F")]
                for r in (run, counted_anew(net, run))
            )
            assert kept == pytest.approx(counted, abs=1e-4 * buffer / 8000)
