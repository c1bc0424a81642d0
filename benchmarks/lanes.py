"""What vector lanes could give: points side by side, by fixed steps, in the case that suits them best.

Three flows on a link whose queue never empties, delays that are constant, no events, no error control, Runge-Kutta 4 on
a mesh that has all delays as nodes, histories looked up by cubic Hermite polynomials. The law comes from its SymPy
definition. Lanes either share their delays, so that they read the same nodes, or have delays of their own, as they do
wherever delays are swept, and wherever a queue's delay is heard at the time that follows from it (``delays="fifo"``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import numpy as np
from sympy import Symbol, pycode

import fluidcc as fc
from benchmarks.speed import Row
from benchmarks.sweep import three_flows
from fluidcc.symbols import RTT, e, e_b, edot, pi, plain, unfold

__all__ = ["lanes"]

CAPACITY, FORWARD, BACK = 3e6, 0.025, (0.035, 0.095, 0.175)  # bit/s, s, s
UNTIL, STEPS, FINE = 60.0, 12_000, 120_000  # at 5 ms a step all delays are nodes
RATES, QUEUE = (0.8e6, 1.0e6, 1.2e6), 3.2e5  # bit/s and bit at the start: the queue stays
COUNTS = (1, 8, 32)
AT = {"shared": "0", "own": "l"}

_TEXT = """
def run(n, h, p, ahead, back, y, H, D):
    # p (parameters, lanes); y (4, lanes): rates and queue; H, D (nodes, 4, lanes): y at the nodes, and its slopes
    k, s, total = np.empty((4, {L})), np.empty((4, {L})), np.empty((4, {L}))
    H[0], H[1], D[0], D[1] = y, y, 0.0, 0.0
    for m in range(n):
        H[m], s[:], total[:] = y, y, 0.0
        for stage in range(4):
            at, last = m + (0.0, 0.5, 0.5, 1.0)[stage], max(m - 1, 0) + 0.5
            k[3] = -{capacity}
            for j in range(3):
                {shared}
                for l in range({L}):
                    {own}
                    a, b, da, db = H[i, j, l], H[i + 1, j, l], h * D[i, j, l], h * D[i + 1, j, l]
                    k[3, l] += a + u * (da + u * (3 * (b - a) - 2 * da - db + u * (2 * (a - b) + da + db)))
                    a, b, da, db = H[g, 3, l], H[g + 1, 3, l], h * D[g, 3, l], h * D[g + 1, 3, l]
                    c2, c3 = 3 * (b - a) - 2 * da - db, 2 * (a - b) + da + db
                    e = ahead[j, l] + (a + v * (da + v * (c2 + v * c3))) / {capacity}
                    edot = (da + v * (2 * c2 + 3 * v * c3)) / (h * {capacity})
                    e_b = back[j, l]
                    x = s[j, l]
                    {parameters}
                    k[j, l] = {law}
            if stage == 0 and m > 0:
                D[m] = k
            weight, to = (1.0, 2.0, 2.0, 1.0)[stage], (0.5, 0.5, 1.0, 0.0)[stage]
            for r in range(4):
                for l in range({L}):
                    total[r, l] += weight * k[r, l]
                    s[r, l] = y[r, l] + to * h * k[r, l]
        for r in range(4):
            for l in range({L}):
                y[r, l] += h / 6.0 * total[r, l]
        H[m + 1], D[m + 1] = y, k
"""
_LOOK = "{w} = max(at - {lag}[j, {l}] / h, 0.0); {i} = np.int32(min({w}, last)); {w} = {w} - {i}"


def _compiled(count: int, shared: bool) -> Callable[..., None]:
    """The loop over the steps of so many lanes."""
    import numba

    law = fc.LDCC
    ((x, slope),) = law.flow.items()
    names: dict[Any, Any] = {RTT: Symbol("e") + Symbol("e_b"), e: Symbol("e"), e_b: Symbol("e_b"), edot: Symbol("edot")}
    names |= {x: Symbol("x"), pi: 0} | {one: Symbol(plain(one)) for one in law.params}
    at = AT["shared" if shared else "own"]
    looks = [_LOOK.format(w=w, i=i, lag=lag, l=at) for w, i, lag in (("u", "i", "ahead"), ("v", "g", "back"))]
    both = ["pass", "; ".join(looks)]
    text = _TEXT.format(
        L=count,
        capacity=CAPACITY,
        shared=both[shared],
        own=both[not shared],
        parameters="; ".join(f"{plain(one)} = p[{row}, l]" for row, one in enumerate(law.params)),
        law=pycode(unfold(slope).xreplace(names), fully_qualified_modules=False),
    )
    made: dict[str, Any] = {"np": np}
    exec(text, made)  # the text is that above, with a law of this library
    return numba.njit(made["run"], fastmath=True, error_model="numpy")


def _run(count: int, shared: bool, steps: int, repeats: int = 7) -> tuple[float, Any]:
    """Seconds for an evaluation of a point, and the rates of the first one, which is the same for any count."""
    step, random = _compiled(count, shared), np.random.default_rng(0)
    own = np.ones(count) if shared else random.uniform(0.8, 1.2, count)
    spread = random.uniform(0.9, 1.1, (len(fc.LDCC.params), count))
    own[0], spread[:, 0] = 1.0, 1.0
    parameters = np.array(list(map(float, fc.LDCC.params.values())))[:, None] * spread
    ahead, back = np.full((3, 1), FORWARD) * own, np.array(BACK)[:, None] * own
    H, D = np.zeros((steps + 2, 4, count)), np.zeros((steps + 2, 4, count))
    spent = []
    for _ in range(repeats + 1):
        y = np.repeat(np.array([*RATES, QUEUE])[:, None], count, axis=1)
        began = process_time()
        step(steps, UNTIL / steps, parameters, ahead, back, y, H, D)
        spent.append(process_time() - began)
    return min(spent[1:]) / (4 * steps * count), H[:: steps // 600, :3, 0]


def lanes() -> Iterator[Row]:
    """What an evaluation of a point takes in lanes, and how exact they are; and the same of the scalar kernel."""
    best = _run(1, True, FINE, 1)[1]
    for shared in (True, False):
        for count in COUNTS:
            each, rates = _run(count, shared, STEPS)
            off = float(np.max(np.abs(rates - best)) / np.max(best))
            value = f"{each * 1e9:.0f} ns an evaluation, {4e6 * STEPS * each:.0f} us a point, error {off:.0e}"
            yield Row(f"{count} lanes, {'shared' if shared else 'own'} delays", value)
    net, grid = three_flows(), {"w": np.linspace(15e3, 25e3, 40), "beta": np.linspace(0.08, 0.12, 50)}
    times = np.linspace(0.0, UNTIL, 601)
    for delays in ("frozen", "fifo"):
        how: dict[str, Any] = {"delays": delays, "rtol": 1e-6}
        exact = fc.simulate(net, UNTIL, t_eval=times, delays=delays, rtol=1e-11, atol=1e-13).rate.values
        found = fc.simulate(net, UNTIL, t_eval=times, **how)
        off = float(np.max(np.abs(found.rate.values - exact)) / np.max(exact))
        spent = []
        for _ in range(4):
            began = process_time()
            fc.sweep(net, grid, "final_rate", until=UNTIL, samples=2, executor="serial", **how)
            spent.append((process_time() - began) / (len(grid["w"]) * len(grid["beta"])))
        each, count = min(spent[1:]), int(found.attrs["nfev"])
        value = f"{each / count * 1e9:.0f} ns an evaluation, {each * 1e6:.0f} us a point, error {off:.0e}"
        yield Row(f"scalar, {delays}", value)
