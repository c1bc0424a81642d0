"""Traffic patterns: drawn by seed and name, and by nothing else."""

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import InvalidInput
from fluidcc.network.patterns import Modulated
from fluidcc.network.specs import resolve_pattern

POISSON = {"kind": "poisson", "mean_rate": "1 Mbit/s", "interval": "10 ms"}
BURSTS: dict[str, object] = {"kind": "on_off_pareto", "peak": "5 Mbit/s", "shape": 1.25}
BURSTS |= {"mean_on": "100 ms", "mean_off": 0.1}


def net(*names: str, pattern: object = None) -> fc.Network:
    n = fc.Network().link("l", fc.DropTail, capacity=1e7)
    for name in names:
        n.flow(name, fc.CBR, route=["l"], pattern=pattern)
    return n


def test_given_pairs_are_kept() -> None:
    spec = net("a", pattern=[(0, "1 Mbit/s"), ("5 s", 0), (7, 2e6)]).flows["a"]
    assert spec.pattern == ((0.0, 1e6), (5.0, 0.0), (7.0, 2e6))
    resolved = resolve_pattern(spec, seed=0, until=6)
    assert resolved is not None
    assert resolved[0].tolist() == [0, 5, 7]
    assert resolved[1].tolist() == [1e6, 0, 2e6]
    assert resolve_pattern(net("b").flows["b"], 0, 1) is None


@pytest.mark.parametrize("pattern", [POISSON, BURSTS])
def test_a_stream_follows_from_seed_and_name_alone(pattern: object) -> None:
    def drawn(n: fc.Network, name: str, seed: int, until: float = 20.0) -> np.ndarray:
        return np.array(resolve_pattern(n.flows[name], seed, until))

    alone, together = net("a", pattern=pattern), net("b", "a", "c", pattern=pattern)
    assert np.array_equal(drawn(alone, "a", 1), drawn(together, "a", 1))
    assert not np.array_equal(drawn(together, "a", 1)[:, :9], drawn(together, "b", 1)[:, :9])
    assert not np.array_equal(drawn(alone, "a", 1)[:, :9], drawn(alone, "a", 2)[:, :9])
    longer = drawn(alone, "a", 1, until=40.0)
    assert np.array_equal(drawn(alone, "a", 1), longer[:, longer[0] < 20.0])


def test_poisson_counts_packets_of_the_flow() -> None:
    n = net("a", pattern=POISSON).with_flow("a", packet="500 B")
    resolved = resolve_pattern(n.flows["a"], seed=4, until=10)
    assert resolved is not None
    packets = resolved[1] * 0.01 / 4000
    assert packets == pytest.approx(np.round(packets), abs=1e-9)


def test_the_kind_and_its_values_are_read() -> None:
    assert net("a", pattern=BURSTS).flows["a"].pattern == Modulated(
        "on_off_pareto", (("peak", 5e6), ("mean_on", 0.1), ("mean_off", 0.1), ("shape", 1.25))
    )
    with pytest.raises(InvalidInput, match="shape is 1; give more than 1, else periods have no"):
        net("a", pattern=BURSTS | {"shape": 1})


@pytest.mark.parametrize("late", [0, "1 s", 0.5])
def test_times_of_a_pattern_rise(late: object) -> None:
    with pytest.raises(InvalidInput, match="sort its pairs by time, one for each time"):
        net("a", pattern=[(0, 1e6), (1, 2e6), (late, 1e6)])


def test_laws_of_random_traffic_carry_their_pattern() -> None:
    n = net("a", pattern=BURSTS).flow(
        "b", fc.OnOff(peak=5e6, mean_on=0.1, mean_off=0.1, shape=1.25), route=["l"]
    )
    assert n.flows["b"].pattern is not None
    assert dict(n.flows["b"].pattern.parameters) == dict(n.flows["a"].pattern.parameters)  # type: ignore[union-attr]
    n.flow("c", fc.Poisson(mean_rate="1 Mbit/s", interval="10 ms"), route=["l"])
    assert n.flows["c"].pattern == Modulated("poisson", (("mean_rate", 1e6), ("interval", 0.01)))
    assert n.with_flow("c", law=fc.CBR).flows["c"].pattern is None
    with pytest.raises(InvalidInput, match="pattern of flow 'd': shape is 0.5; give more than 1"):
        n.flow("d", fc.OnOff(shape=0.5), route=["l"])


@pytest.mark.parametrize("seed", [-1, 0.5, "a", True, None])
def test_seed_is_a_nonnegative_integer(seed: object) -> None:
    with pytest.raises(InvalidInput, match=r"seed is .*; give a whole number of at least 0"):
        resolve_pattern(net("a", pattern=POISSON).flows["a"], seed, 1.0)  # type: ignore[arg-type]
