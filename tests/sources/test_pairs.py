"""Sources beside one another on one link: they run, and what comes out is what a link can do. A
part of the pairs, others each day, and a part over other links; `make scan SCAN=full` has all.
"""

import warnings

import numpy as np
import pytest
import xarray as xr

from fluidcc import links, sources
from fluidcc.laws import Link, Source
from fluidcc.links import DropTail
from fluidcc.network import Network
from fluidcc.simulation.simulate import simulate
from tests.scan.cases import of_today

CAPACITY, BUFFER, UNTIL = 10e6, 60e3, 1.5
RTOLS = (1e-6, 1e-4)  # the default, and a loose one, for every other pair
LAWS = [getattr(sources, name) for name in sources.__all__]


def pair(first: Source, second: Source, link: Link = DropTail) -> Network:
    net = Network().link("l", link, capacity=CAPACITY, delay=0.0213, buffer=BUFFER)
    return net.flow("a", first, route=["l"], start=0).flow("b", second, route=["l"], start=0.137)


def sane(run: xr.Dataset, rtol: float = RTOLS[0]) -> None:
    """Finite rates, no more served than the link can, and nothing made or lost on the way."""
    rate, queue = run.rate.values, run.backlog.values[:, 0]
    assert np.all(np.isfinite(rate))
    assert rate.min() >= 0.0
    assert rate[-1].max() > 0.0
    assert np.all(rate[run.time.values < 0.137, 1] == 0.0)
    np.testing.assert_allclose(run.arrival_rate[:, 0], rate.sum(axis=1), rtol=10 * rtol, atol=1.0)
    assert float(run.utilisation.max()) <= 1 + 1e-9
    assert queue.min() >= 0.0
    assert queue.max() <= BUFFER * (1 + 1e-9)
    loss = run.link_loss.values
    assert loss.min() >= 0.0
    assert loss.max() < 1.0
    served = np.diff((run.entered - run.lost).values[:, 0] - queue)
    most = CAPACITY * np.diff(run.time.values)
    assert served.min() >= -10 * rtol * most.max()
    assert np.all(served <= most * (1 + 20 * rtol))
    entered, lost = run.entered.values[-1, 0], run.lost.values[:, 0]
    # a difference of what entered and what passed
    assert np.all(np.diff(lost) >= -np.finfo(float).eps * entered)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(len(LAWS)), ids=lambda k: LAWS[k].name)
def test_each_source_runs_beside_itself_and_some_of_the_others(first: int) -> None:
    for other in (first, *of_today(range(first + 3, len(LAWS), 3), 3)):
        second = LAWS[other]  # Scalable TCP and the slow start after it are at the loose tolerance
        rtol = RTOLS[(other - first) // 3 % 2]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = simulate(pair(LAWS[first], second), UNTIL, samples=31, rtol=rtol, engine="array")
        try:
            sane(run, rtol)
        except AssertionError as error:
            raise AssertionError(f"{LAWS[first].name} beside {second.name}: {error}") from error
        both = ("a", LAWS[first]), ("b", second)
        named = ", ".join(n for n, law in both if law.name.endswith(("ECF", "RCP")))
        wanted = f"no router on the route of {named} reports or offers anything"
        said = [
            text[: len(wanted)]
            for w in caught
            if " is a mean over " not in (text := str(w.message))
        ]
        assert said == ([wanted] if named else []), (LAWS[first].name, second.name, said)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["RED", "REDDrop", "PI", "PAQM", "PAQMDrop"])
def test_each_source_runs_beside_another_on_links_that_act(name: str) -> None:
    """Each law is there first once, and the newcomer once; on each link with other laws."""
    link, apart = getattr(links, name), 3 + 5 * links.__all__.index(name)
    for k, first in enumerate(LAWS):
        second = LAWS[(k + apart) % len(LAWS)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of routers that report nothing
            run = simulate(
                pair(first, second, link), UNTIL, samples=31, rtol=RTOLS[0], engine="array"
            )
        try:
            sane(run)
        except AssertionError as error:
            raise AssertionError(f"{first.name} beside {second.name}: {error}") from error


def test_what_is_checked_can_fail() -> None:
    good = simulate(pair(LAWS[0], LAWS[1]), UNTIL, samples=31, rtol=RTOLS[0], engine="array")
    sane(good)
    for name, factor in (("rate", 1.01), ("utilisation", 1.5), ("backlog", 2.0), ("entered", 1.3)):
        with pytest.raises(AssertionError):
            sane(good.assign({name: good[name] * factor}))
