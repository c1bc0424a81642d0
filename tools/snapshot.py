"""Write what the package answers into a file, and compare two such files.

    python tools/snapshot.py write before.json [--networks 200] [--fused 10] [--claims]
    python tools/snapshot.py compare before.json after.json [--rtol 1e-9]

The file holds, by a name such as ``run/17/array/fifo/rate``: units; every law (equations,
parameters, units, bounds, jumps, ticks, and its equilibrium on a dumbbell); verdicts with every
field of a `StabilityReport`; boundaries; limit cycles; equilibria and 50 samples of runs of random
networks, some of them by fused steps too; sweeps; and, where asked for, the papers' claims. An
error or a warning is kept as its sentence. Only public names are used, so that any two versions of
the package can be compared.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from tqdm import tqdm

import fluidcc as fc
from fluidcc import links, sources

Task = tuple[str, Callable[[], Any]]

COUNTS = ("steps", "rejections", "nfev", "events", "jumps", "ticks", "breaking_points")
LAW = (
    "flow", "out", "params", "units", "lower", "upper", "initial", "limits", "where", "jumps",
    "ticks", "ref",
)  # fmt: skip
EQUILIBRIUM = (
    "rate", "one_way_delay", "rtt", "loss", "queueing_delay", "price", "saturated", "full",
    "arrival_rate", "admitted_rate", "states", "free", "warnings",
)  # fmt: skip
REPORT = (
    "stable", "marginal", "unstable", "encirclements", "open_unstable", "rightmost_roots",
    "margins", "delays", "free", "warnings", "trackers", "regime", "verdict", "certified",
    "gain_margin", "critical_gain", "phase_margin", "delay_margin", "modulus_margin", "crossover",
    "sensitivity_peak", "complementary_peak", "decay_rate", "modes", "fairness", "sufficient",
    "sensitivities", "passivity",
)  # fmt: skip
BOUNDARY = (
    "name", "units", "value", "frequency", "kind", "slope", "stable_below", "mode", "delays",
    "period",
)  # fmt: skip
CYCLE = ("period", "error", "jumps", "mean", "least", "most", "loss", "multipliers")
UNITS = {
    "bit bits b bps byte bytes B Bps": ("", "k", "K", "M", "G", "T", "Ki", "Mi", "Gi"),
    "packet packets pkt pkts Hz": ("", "k", "K", "M", "G", "T"),
    "s sec": ("", "m", "u", "µ", "n"),
    "second seconds min minute minutes h hour hours 1 % bit/s packet/s 1/s": ("",),
}


def main() -> int:
    """Write a snapshot, or print how two differ; 1 if they do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write")
    write.add_argument("file", type=Path)
    write.add_argument("--networks", type=int, default=200, help="how many random networks")
    write.add_argument("--fused", type=int, default=10, help="how many of them by fused steps too")
    write.add_argument("--claims", action="store_true", help="the papers' claims too")
    write.add_argument("--only", default="", help="only what has a name that begins like this")
    compare = commands.add_parser("compare")
    compare.add_argument("one", type=Path)
    compare.add_argument("other", type=Path)
    compare.add_argument("--rtol", type=float, default=1e-9)
    given = parser.parse_args()
    if given.command == "compare":
        one, other = (json.loads(path.read_text("utf-8")) for path in (given.one, given.other))
        return differences(one, other, given.rtol)
    chosen = [
        task
        for task in tasks(given.networks, given.fused, given.claims)
        if task[0].startswith(given.only)
    ]
    found: dict[str, Any] = {}
    seconds: Counter[str] = Counter()
    bar = tqdm(chosen, mininterval=1)
    for name, work in bar:
        bar.set_postfix_str(name, refresh=False)
        began = perf_counter()
        found.update(flat(name, outcome(work)))
        seconds[name] = perf_counter() - began
    given.file.write_text(json.dumps(found, indent=0), "utf-8")
    slowest = ", ".join(f"{name} {took:.1f} s" for name, took in seconds.most_common(8))
    print(f"{len(found)} entries in {given.file}; the slowest: {slowest}")
    return 0


def outcome(work: Callable[[], Any]) -> Any:
    """Return a result with the warnings beside it, or the sentence of the error."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            result = work()
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    said = sorted({str(w.message) for w in heard if w.category.__module__.startswith("fluidcc")})
    return {"": result, "warned": said} if said else result


def flat(name: str, value: Any) -> dict[str, Any]:
    """Return the numbers and texts in a value as JSON holds them, by their names."""
    if value is None or isinstance(value, bool | str | int):
        return {name: value}
    if hasattr(value, "data_vars"):
        counts = {k: value.attrs[k] for k in COUNTS if k in value.attrs}
        known = {k: v.values for k, v in value.data_vars.items()}
        return flat(name, {**known, **({"counts": counts} if counts else {})})
    if isinstance(value, Mapping):
        entries = [(f"{name}/{k}".rstrip("/"), v) for k, v in value.items()]
    elif is_dataclass(value):
        entries = [(f"{name}/{f.name}", getattr(value, f.name)) for f in fields(value)]
    elif isinstance(value, tuple | list) and not all(isinstance(v, (int, float)) for v in value):
        entries = [(f"{name}/{k}", v) for k, v in enumerate(value)] or [(name, [])]
        if not value:
            return {name: []}
    else:
        array = np.asarray(getattr(value, "values", value))
        if array.dtype.kind == "c":
            array = np.stack([array.real, array.imag], -1)
        known = array.dtype.kind in "fiubUT"
        return {name: array.tolist() if known else re.sub(r" at 0x\w+", "", str(value))}
    return {key: entry for k, v in entries for key, entry in flat(k, v).items()}


def some(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return attributes of an object by name; where one cannot be had, its error's sentence."""
    return {n: outcome(lambda n=n: getattr(value, n)) for n in names if hasattr(type(value), n)
            or n in getattr(value, "__dict__", {})}  # fmt: skip


def tasks(networks: int, fused: int, claims: bool) -> Iterator[Task]:
    """Every question that is asked, and its name."""
    yield "units", units
    for room in (sources, links):
        for name in room.__all__:
            yield f"law/{name}", lambda room=room, name=name: written(getattr(room, name))
    for name, net in dumbbells().items():
        yield f"equilibrium/{name}", lambda net=net: some(fc.equilibrium(net), EQUILIBRIUM)
        for delays in ("fifo", "frozen"):
            yield f"verdict/{name}/{delays}", lambda n=net, d=delays: verdict(n, d)
        law = next(iter(net.flows.values())).law
        if (law.jumps or law.ticks) and name.endswith("DropTail"):
            yield f"cycle/{name}", lambda net=net: cycle(net)
    for name, (net, knob) in edges().items():
        yield f"boundary/{name}", lambda n=net, k=knob: some(fc.stability_boundary(n, k), BOUNDARY)
    left = fused
    for k in range(networks):
        net, delays = at_random(k)
        yield f"run/{k}/array/{delays}", lambda n=net, d=delays: run(n, d, "array")
        yield f"equilibrium/{k}", lambda net=net: some(fc.equilibrium(net), EQUILIBRIUM)
        if k % 2 == 0:
            yield f"verdict/{k}", lambda k=k: verdict(*at_random(k, smooth=True))
        if left and len(net.flows) < 3 and len(net.links) < 3:
            left -= 1
            yield f"run/{k}/fused/{delays}", lambda n=net, d=delays: run(n, d, "fused")
    yield from sweeps()
    if claims:
        for row in fc.claims.claims_of():
            yield f"claim/{row.id}", lambda row=row: {
                "statement": row.statement, "published": row.published, "outcome": row.check(),
            }  # fmt: skip


def units() -> dict[str, Any]:
    """Every unit in base units."""
    from fluidcc.base.units import dimension, to_si

    every = [
        p + name for names, prefixes in UNITS.items() for name in names.split() for p in prefixes
    ]
    sizes = {unit: dimension(unit) for unit in every}
    return {unit: [to_si(f"1 {unit}", base(dim)), *dim] for unit, dim in sizes.items()}


def base(dim: Any) -> str:
    return "*".join(f"{unit}^{n}" for unit, n in zip(("bit", "s", "packet"), dim, strict=True))


def written(law: Any) -> dict[str, Any]:
    """What a law says: its equations as text, the numbers of its parameters."""
    told = some(law, LAW)
    for name in ("jumps", "ticks", "where"):
        told[name] = [str(part) for part in told[name]]
    told["flow"] = {str(k): str(v) for k, v in law.flow.items()}
    return told


def verdict(net: Any, delays: str) -> dict[str, Any]:
    """Every field of the report; in the first flow's own loop, its margins."""
    report = fc.stability(net, delays=delays, roots=4)
    first = next(iter(net.flows))
    return {**some(report, REPORT), "of_flow": outcome(lambda: report.of_flow(first))}


def run(net: Any, delays: str, engine: str) -> Any:
    """50 samples of four seconds."""
    return fc.simulate(net, until=4, samples=50, delays=delays, engine=engine)


def cycle(net: Any) -> dict[str, Any]:
    return some(fc.limit_cycle(net, max_steps=100_000), CYCLE)


def dumbbells() -> dict[str, Any]:
    """Two flows of each source over a tail drop with a short buffer and over RED; and others."""
    found = {}
    for name in sources.__all__:
        law = getattr(sources, name)
        for link, router in (("DropTail", fc.DropTail), ("RED", fc.RED)):
            place = {"law": router, "capacity": "3 Mbit/s", "delay": "20 ms", "buffer": "0.3 Mbit"}
            found[f"{name}/{link}"] = fc.dumbbell([law] * 2, place, rtt="60 ms")
    for name in links.__all__:
        law = getattr(links, name)
        net = fc.Network().link(
            "l", law, capacity=3e6, delay=0.02, buffer=4e5 if law.queue else None
        )
        net.flow("a", fc.Reno, route=["l"]).flow("b", fc.PrimalPenalty, route=["l"])
        found[f"Reno/{name}"] = net
        found[f"LDCC/{name}"] = net.with_flow("a", law=fc.LDCC).with_flow("b", law=fc.LDCC)
    return found


def edges() -> dict[str, tuple[Any, str]]:
    """Networks with a parameter that brings them to the edge of stability."""
    two = fc.dumbbell(
        {"near": fc.LDCC, "far": {"law": fc.LDCC(eta=0.8), "access_delay": "20 ms"}},
        {"capacity": "3 Mbit/s", "delay": "25 ms"},
    )
    many = fc.dumbbell([fc.LDCC] * 5, {"capacity": "5 Mbit/s"}, rtt="80 ms")
    red = fc.dumbbell([fc.Reno] * 8, {"law": fc.RED, "capacity": "8 Mbit/s"}, rtt="60 ms")
    hop = {"capacity": "3 Mbit/s", "delay": "10 ms"}
    lot = fc.parking_lot([fc.LDCC], [fc.LDCC, fc.LDCC], hop)
    knobs = [(two, "far.eta"), (two, "near.beta"), (many, "eta"), (red, "p_max"), (lot, "eta")]
    return {f"{k}/{knob}": (net, knob) for k, (net, knob) in enumerate(knobs)}


def at_random(seed: int, smooth: bool = False) -> tuple[Any, str]:
    """A network of up to three links and four flows, and how its delays are taken.

    The first flow and link of network k are the laws k of all, so that each has its turn. Laws that
    are `smooth` have neither jumps nor ticks, and their links queue.
    """
    rng = np.random.default_rng(seed)
    net, laws, routers = fc.Network(), sources.__all__, links.__all__
    if smooth:
        laws, routers = (
            [n for n in room.__all__ if is_smooth(getattr(room, n))] for room in (sources, links)
        )
        seed //= 2
    count = int(rng.integers(1, 4))
    for k in range(count):
        plain = rng.random() < 0.6
        router = (
            routers[seed % len(routers)] if k == 0 else "DropTail" if plain else rng.choice(routers)
        )
        law, c = getattr(links, router), float(rng.uniform(2e6, 8e6))
        net.link(
            f"l{k}", law, delay=float(rng.uniform(0.005, 0.03)),
            capacity=c if rng.random() < 0.8 else [(0, c), (1.5, 0.7 * c)],
            buffer=float(c * rng.uniform(0.05, 0.25)) if law.queue and rng.random() < 0.6 else None,
        )  # fmt: skip
    alike = rng.random() < 0.25
    for k in range(int(rng.integers(1, 5))):
        first = 0 if alike else int(rng.integers(0, count))
        end = count if alike else int(rng.integers(first, count)) + 1
        name = laws[seed % len(laws)] if k == 0 or alike else str(rng.choice(laws))
        net.flow(
            f"f{k}", getattr(sources, name), route=[f"l{j}" for j in range(first, end)],
            access_delay=0.004 if alike else float(rng.choice([0.0, rng.uniform(0, 0.01)])),
            return_delay=0.03 if alike else float(rng.uniform(0.01, 0.06)),
            start=float(rng.uniform(0, 1)) if k and not alike else 0.0,
            stop=3.1 if rng.random() < 0.1 else None,
        )  # fmt: skip
    return net, "frozen" if rng.random() < 0.3 else "fifo"


def is_smooth(law: Any) -> bool:
    return not (law.jumps or law.ticks) and bool(getattr(law, "queue", law.states))


def sweeps() -> Iterator[Task]:
    """A few sweeps: of equilibria, of margins, of boundaries and of runs."""
    bell = fc.dumbbell([fc.LDCC] * 2, {"capacity": "3 Mbit/s", "buffer": "0.2 Mbit"}, rtt="50 ms")
    mixed = bell.copy().flow(
        "udp", fc.CBR(rate="0.5 Mbit/s"), route=["bottleneck"], return_delay=0.1
    )
    judged = [
        "stable", "encirclements", "gain_margin", "phase_margin", "delay_margin", "crossover",
        "modulus_margin", "decay_rate", "critical_gain", "rightmost_root",
    ]  # fmt: skip
    rest = [f"equilibrium_{n}" for n in ("rate", "rtt", "loss", "queueing_delay", "full")]
    told = ["mean_rate", "std_rate", "max_backlog", "final_rtt", "mean_utilisation", "max_loss"]
    eta = np.linspace(0.2, 3.0, 12)
    some_runs = {"beta": [0.1, 0.2], "capacity": [2e6, 3e6], "flow2.return_delay": [0.02, 0.03]}
    cases: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
        "equilibria": (mixed, {"beta": [0.1, 0.2], "udp.rate": [1e5, 2e6, 4e6]}, rest, {}),
        "margins": (bell, {"eta": eta, "capacity": [2e6, 5e6]}, judged, {}),
        "counts": (mixed, {"flow1.count": [0, 1, 3], "eta": [0.1, 2.0]}, judged + rest, {}),
        "edges": (bell, {"capacity": [2e6, 6e6], "rtt": [0.05, 0.08]}, ["critical_eta"], {}),
        "runs": (bell, some_runs, told, {"until": 4}),
        "frozen": (mixed, {"flow1.w": [2e4, 3e4]}, told, {"until": 4, "delays": "frozen"}),
        "starts": (bell, {"flow2.start": [1.0, 2.0], "buffer": [1e5, 2e5]}, told,
                   {"until": 4, "window": (1, 4)}),
        "laws": (bell, {"flow1.law": [fc.LDCC, fc.DelayAIMD, fc.Reno]}, told, {"until": 3}),
        "refined": (bell, {"eta": np.linspace(0.2, 4, 30), "w": np.linspace(1e4, 4e4, 30)},
                    ["stable", "gain_margin"], {"refine": "stable"}),
    }  # fmt: skip
    for name, (net, grid, measures, more) in cases.items():
        yield (
            f"sweep/{name}",
            lambda n=net, g=grid, m=measures, o=more: fc.sweep(n, g, m, executor="serial", **o),
        )


def differences(one: dict[str, Any], other: dict[str, Any], rtol: float) -> int:
    """Print what differs between two snapshots; 1 if anything does."""
    groups: Counter[str] = Counter()
    for name in [*one, *(n for n in other if n not in one)]:
        said = (
            "is only in the second" if name not in one
            else "is only in the first" if name not in other
            else differs(one[name], other[name], rtol)
        )  # fmt: skip
        if said:
            groups[name.split("/")[0]] += 1
            print(f"{name}: {said}")
    about = ", ".join(f"{count} of {group}" for group, count in groups.items())
    print(f"{sum(groups.values())} of {len({*one, *other})} entries differ {about and ': '}{about}")
    return 1 if groups else 0


def differs(one: Any, other: Any, rtol: float) -> str:
    """Return how two entries differ, or no text: arrays relative to their largest number."""
    try:
        a, b = np.asarray(one, float), np.asarray(other, float)
    except (TypeError, ValueError):
        return "" if one == other else f"{shortened(one)} -> {shortened(other)}"
    if a.shape != b.shape:
        return f"shape {a.shape} -> {b.shape}: {shortened(one)} -> {shortened(other)}"
    scale = np.abs(a[np.isfinite(a)]).max(initial=1e-300)
    if np.allclose(a, b, rtol=0, atol=rtol * scale, equal_nan=True):
        return ""
    with np.errstate(invalid="ignore"):
        worst = np.nanmax(np.where(a == b, 0.0, np.abs(a - b))) / scale
    return f"by {worst:.2g} of the largest: {shortened(one)} -> {shortened(other)}"


def shortened(value: Any) -> str:
    text = str(value)
    return text if len(text) < 160 else text[:160] + " ..."


if __name__ == "__main__":
    sys.exit(main())
