"""How a newcomer finds its propagation delay: the estimator and the pause, in networks of flows
that know theirs.
"""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from sympy import Eq

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, LawError
from fluidcc.formulas import fast
from fluidcc.papers.zoo.fast import meeting
from fluidcc.proofs.prove import Verdict
from fluidcc.sources.dca import alpha
from fluidcc.sources.propagation import (
    d_hat,
    delta,
    r0,
    rounds,
    trial,
    with_estimator,
    with_pause,
    x0,
)
from fluidcc.symbols import RTT, unfold

PACKET = 8000.0


def newcomer(law: fc.Source, others: int = 4, rtt: float = 0.1, until: float = 90.0) -> xr.Dataset:
    """`law` arrives at 15 s where `others` FAST flows have shared an empty queue fairly."""
    fast_flow = {"law": fc.FAST, "start": 0.0, "packet": PACKET}
    flows = [*[fast_flow] * others, {"law": law, "start": 15.0, "packet": PACKET}]
    net = fc.dumbbell(flows, {"capacity": "100 Mbit/s", "delay": rtt / 2})
    return fc.simulate(net, until, samples=141, rtol=1e-6)


def share(ds: xr.Dataset, time: float) -> float:
    """Rate of the newcomer over the mean of the others, as in Fig. 3."""
    rate = ds.rate.sel(time=time, method="nearest").values
    return float(rate[-1] / rate[:-1].mean())


def test_the_correction_of_a_newcomer_at_rest_is_that_of_the_formula() -> None:
    """After the probe RTT - delta is `corrected_delay` of what it was before."""
    law = fc.with_estimator(fc.FAST)
    after = RTT - law.jumps[-1].reset[delta].args[-1].expr
    named = {s.name: s for s in fast.corrected_delay.arguments}
    values = {"theta": trial, "alpha": alpha, "x0": x0, "d_hat": d_hat}
    values |= {"t_eps": rounds * r0, "delta_r": r0 - RTT}
    form = fast.corrected_delay.form.subs({named[name]: v for name, v in values.items()})
    inner = unfold(after).replace(
        lambda f: f.func.__name__ == "Max", lambda f: max(f.args, key=lambda a: len(a.free_symbols))
    )
    at_rest = {alpha: x0 * (r0 - d_hat)}  # (2)
    verdict = fc.prove(Eq(inner.subs(at_rest), unfold(form).subs(at_rest)))
    assert isinstance(verdict, Verdict)
    assert verdict


@pytest.mark.parametrize("theta", [-0.5, 0.1])
def test_probes_of_both_signs_find_the_delay(theta: float) -> None:
    """With theta > 0 the queue falls below what the newcomer met: no propagation delay alone."""
    law = fc.with_estimator(fc.FAST(pace=0.3))(wait=120, theta=theta)
    old = {"law": fc.FAST(pace=0.3), "start": 0.0, "packet": PACKET, "initial": {"w": 1300}}
    flows = {"f0": old, "f1": old, "new": {"law": law, "start": 15.0, "packet": PACKET}}
    net = fc.dumbbell(flows, {"capacity": "100 Mbit/s", "delay": "100 ms"})
    run = fc.simulate(net, 137.0, t_eval=[134.9, 137.0], rtol=1e-8)
    taken = (run.rtt - run.FASTEstimator_delta).sel(flow="new").values
    assert taken[0] == pytest.approx(0.2 + 2 * 50 / 12500, rel=1e-4)
    assert taken[1] == pytest.approx(0.2, rel=1e-4)


def over_others(net: fc.Network, until: float) -> tuple[float, xr.Dataset]:
    """Rate of the last flow over the mean of the others, over the last 10 s; and the run."""
    run = fc.simulate(net, until, t_eval=np.arange(until - 10, until, 0.05), rtol=1e-6)
    mean = run.rate.mean("time").values
    return float(mean[-1] / mean[:-1].mean()), run


def ratio(n: int, rtt: float) -> float:
    """The same of a newcomer with the estimator's defaults, among n flows at rest."""
    net = meeting(fc.with_estimator(fc.FAST), [rtt] * n, rtt)
    return over_others(net, 75 + 250 * rtt)[0]


@pytest.mark.parametrize(("n", "rtt"), [(1, 0.02), (16, 0.02), (4, 0.1), (1, 0.3), (16, 0.3)])
def test_by_default_a_newcomer_probes_when_it_will_be_right(n: int, rtt: float) -> None:
    """Corners of n = 1 to 16, RTT = 20 to 300 ms."""
    assert ratio(n, rtt) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(("rtt", "apart"), [(0.02, 20), (0.1, 20), (0.3, 80)])
def test_arrivals_one_after_the_other_share_fairly(rtt: float, apart: float) -> None:
    """Fig. 2(b): the first knows its path and never probes. At 300 ms a link takes 30 s to fill."""
    law = fc.with_estimator(fc.FAST)
    flows = [{"law": law, "start": apart * i, "packet": PACKET} for i in range(5)]
    net = fc.dumbbell(flows, {"capacity": "100 Mbit/s", "delay": rtt / 2})
    run = over_others(net, 5 * apart + 20)[1]
    assert run.rate.mean("time").values == pytest.approx(20e6, rel=0.05)
    began = run.FASTEstimator_began.values[-1]
    assert began[0] == 0
    assert min(began[1:]) > 5


def test_a_probe_that_met_a_loss_is_discarded_and_half_as_strong_the_next_time() -> None:
    law = fc.with_estimator(fc.FAST)
    found, run = over_others(meeting(law, [0.1] * 4, 0.1, buffer=500), 90)
    assert found == pytest.approx(1, abs=0.02)
    assert run.FASTEstimator_trial.values[-1, -1] == law.parameter("theta") / 2


def test_a_run_warns_of_a_probe_before_rest_and_of_no_other() -> None:
    net = meeting(fc.with_estimator(fc.FAST)(wait=1, calm=0), [0.1] * 4, 0.1)
    _, run = over_others(net, 90)
    assert "flow 'new0' probed before the queue was at rest" in run.attrs["warnings"]
    _, run = over_others(net.with_flow("new0", law=fc.with_estimator(fc.FAST)(wait=1)), 90)
    assert "probed" not in run.attrs["warnings"]


def test_the_estimator_makes_a_newcomer_share_fairly() -> None:
    ds = newcomer(with_estimator(fc.FAST)(wait=40, rounds=0.25))
    assert share(ds, 54.0) == pytest.approx(fast.unfairness(4), rel=2e-3)
    assert share(ds, 90.0) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(("wrap", "values", "text"), [
    (with_estimator, {"theta": 1.5}, "FASTEstimator: theta < 1 must hold, but theta is 1.5; "
                                     "change it"),
    (with_estimator, {"theta": 0}, "FASTEstimator: parameter theta is 0, but must not be"),
    (with_pause, {"depth": 1}, "FASTPause: depth < 1 must hold, but depth is 1; change it"),
    (with_pause, {"pace": 1.1}, "FASTPause: parameter pace is 1.1, but must be at most 1"),
])  # fmt: skip
def test_what_a_plan_cannot_be_is_refused(wrap: Any, values: dict[str, float], text: str) -> None:
    with pytest.raises(LawError, match=text):
        wrap(fc.FAST)(**values)
    with pytest.raises(InvalidInput, match="law is 'FAST'; give a source law"):
        wrap("FAST")


@pytest.mark.parametrize(("law", "culprit"), [(fc.LDCC, "LDCC"), (fc.CBR, "CBR")])
def test_a_law_without_a_window_that_sees_the_queue_is_refused(
    law: fc.Source, culprit: str
) -> None:
    for wrap in (with_pause, with_estimator):
        with pytest.raises(LawError, match=f"{culprit} has no"):
            wrap(law)
