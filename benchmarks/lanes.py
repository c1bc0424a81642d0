"""What fixed steps in lanes gain: ``fc.sweep(..., step=)`` against free steps, at equal measured error.

Three LDCC flows on a link whose queue stays, delays constant, 60 s. Settled, free steps grow to many feedback delays,
and a fixed one is never longer than one: hardly anything is gained, or something is lost. Where the flows oscillate for
long, near the boundary of stability, free steps are short as well, and eight points side by side win.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np

import fluidcc as fc
from benchmarks.speed import Row

__all__ = ["lanes"]

CAPACITY, UNTIL = 3e6, 60.0
GRID = {"w": np.linspace(18e3, 22e3, 61), "beta": np.linspace(0.09, 0.11, 49)}
MEASURES = ["mean_rate", "final_rate", "max_queueing_delay"]
CASES = {
    "settled": (0.4, (0.025, 0.025, 0.025)),
    "oscillating": (3.0, (0.025, 0.025, 0.025)),
    "near the boundary": (4.5, (0.025, 0.025, 0.025)),
    "settled, three delays": (0.4, (0.035, 0.095, 0.175)),
    "oscillating, three delays": (2.4, (0.035, 0.095, 0.175)),
}
TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
STEPS = (0.06, 0.05, 0.025, 0.0125, 0.00625)
WANTED = (1e-4, 1e-6, 1e-8)  # errors, over the largest value


def lanes() -> Iterator[Row]:
    """Microseconds a point of the cheapest free and the cheapest fixed steps, for each error."""
    for name, (eta, backs) in CASES.items():
        net = _network(eta, backs)
        exact = _sweep(net, {name: values[::12] for name, values in GRID.items()}, rtol=1e-12, atol=1e-14)
        free = [_measured(net, exact, rtol=rtol) for rtol in TOLERANCES]
        fixed = [_measured(net, exact, rtol=0.1, step=step) for step in STEPS]
        for wanted in WANTED:
            best = [min((cost for off, cost in of if off <= wanted), default=np.nan) for of in (free, fixed)]
            value = f"{best[0] * 1e6:.0f} us a point by free steps, {best[1] * 1e6:.0f} us by fixed ones"
            yield Row(f"{name}, error {wanted:.0e}", f"{value}: {best[0] / best[1]:.1f} times")


def _network(eta: float, backs: tuple[float, ...]) -> fc.Network:
    link = {"capacity": CAPACITY, "delay": 0.025, "initial": {"q": 3.2e5 / CAPACITY}}
    net = fc.dumbbell([fc.LDCC(eta=eta)] * len(backs), link, rtt="50 ms")
    for k, (flow, back) in enumerate(zip(list(net.flows), backs, strict=True)):
        net = net.with_flow(flow, return_delay=back, initial={"x": 0.8e6 + 0.2e6 * k})
    return net


def _sweep(net: fc.Network, grid: dict[str, Any], **how: Any) -> Any:
    return fc.sweep(net, grid, MEASURES, until=UNTIL, delays="frozen", executor="serial", engine="fused", **how)


def _measured(net: fc.Network, exact: Any, **how: Any) -> tuple[float, float]:
    """The error of the means, ends and maxima, over the largest value of each, and seconds a point."""
    if "step" not in how:
        how["atol"] = 0.01 * how["rtol"]
    spent = []
    for _ in range(3):
        began = process_time()
        found = _sweep(net, GRID, **how)
        spent.append((process_time() - began) / found.attrs["points"])
    if found.attrs.get("handed_back"):
        return np.inf, np.inf  # these are free steps
    off = max(float(abs(found[m] - exact[m]).max() / abs(exact[m]).max()) for m in MEASURES)
    return off, min(spent)
