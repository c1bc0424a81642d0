"""Points of one structure side by side by fixed steps, where that is smooth; who does not suit is left to free steps.

A point's step divides its shortest feedback delay, so that what the start sends round meets the steps; points whose
delays are the same multiples of their steps share lanes, since they read the same nodes of their histories. The step is
held to the tolerance that free steps keep: where the estimate of an error exceeds it, where a queue empties or fills,
or a law changes its branch, the point is handed back. What a lane computes does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.compiling import load_text, source_hash, vectorised
from fluidcc.numerics.fluid import slots as s
from fluidcc.numerics.lanes.pair import C, hermite
from fluidcc.simulation.workspace import Workspace
from fluidcc.sweeps.lanes_text import FIXED, LANES, lane_rows, lanes_text
from fluidcc.sweeps.measures import VARIABLES
from fluidcc.sweeps.suited import LATE, LONG

__all__ = ["Lanes"]

MOST = 50_000  # steps of a run that are kept
DIGITS = 9  # of a delay in steps: what is further apart does not share lanes


@lru_cache(maxsize=32)
def _kernel(text: str) -> Any:
    with vectorised():
        return load_text(text, "lanes").run


class Lanes:
    """Runs of points of one structure by fixed steps, for one thread.

    Parameters
    ----------
    space : Workspace
        The workspace of the structure.
    step : float
        The longest step [s].
    names : list of str
        Of the measures, such as ``mean_rate``.
    kinds : array of int
        The statistic of every row: each measure has one for each flow or link.
    """

    def __init__(self, space: Workspace, step: float, names: list[str], kinds: NDArray[np.int64]) -> None:
        from fluidcc.numerics.lanes.samples import statistics  # here, since it is compiled or loaded by that

        self.statistics = statistics
        at = space.at
        self.space, self.at, self.kinds, self.step = space, at, kinds, min(step, float(space.F[s.HMAX]))
        self.variables = [name.partition("_")[2] for name in names]
        self.run_block = _kernel(lanes_text(at, source_hash("fluid")))
        self.loops = np.array([at.paths[k][-1] for k in range(len(at.classes))])
        self.nodes = np.unique(self.loops)
        self.times = space.F[space.I[s.OTS] :][: space.I[s.NSAMP]]
        self.links = np.array([at.nodes[n].link for n in self.loops])
        self.room, self.rows = np.zeros((0, 0)), lane_rows(at)

    def run(self, table: Any, where: Any, values: Any, out: NDArray[np.float64]) -> NDArray[np.int64]:
        """Statistics of points, into `out`, and how each one ended.

        A row of `table` is what stands in a workspace without the samples, but at the places `where` of the workspace
        stand `values` (points, places).
        """
        a, b = int(self.space.I[s.OOUT]), int(self.space.I[s.OINIT])
        table[:, np.where(where < a, where, where + a - b)] = values
        off = self._of(table, s.OOFF, len(self.at.nodes))
        least = off[:, self.nodes].min(axis=1)
        steps = least / np.ceil(least / self.step * (1.0 - 1e-12))
        access = self._of(table, s.OACC, len(self.at.flows)).max(axis=1)
        count = np.ceil(self.times[-1] / steps)
        ratios = np.round(off[:, self.nodes] / steps[:, None], DIGITS)
        codes = np.where(count > MOST, LONG, np.where(access > 0.0, LATE, FIXED))
        W, form = self._work(table, steps, count), self._form(table)
        for rows in _blocks(ratios, count, np.flatnonzero(codes == FIXED)):
            codes[rows] = self._block(W, rows, ratios[rows[0]], form, out)
        return codes

    def _block(self, all_: Any, rows: Any, ratios: Any, form: Any, out: Any) -> NDArray[np.int64]:
        """Run some points that share lanes, of which the last stands in all that are left over."""
        full = rows[np.minimum(np.arange(LANES), len(rows) - 1)]
        W = np.ascontiguousarray(all_[:, full])
        count = W[self.rows["count"]].astype(np.int64)
        last = int(count.max())
        H = self._history(last + 2, W)
        shift, weight = _places(tuple(ratios.tolist()), tuple(self.nodes.tolist()), len(self.at.nodes))
        self.run_block(last, shift, weight, float(self.space.F[s.RTOL]), W.ravel(), H)
        codes = W[self.rows["ended"], : len(rows)].astype(np.int64)
        good = codes == FIXED
        if good.any():
            found = np.empty((len(rows), len(self.kinds)))
            ages, *of, factor, term = form
            self.statistics(
                H, W[self.rows["step"]], count, ages[full], self.times, *of, factor[full], term[full], found
            )
            out[rows[good]] = found[good]
        return codes

    def _work(self, table: Any, steps: Any, count: Any) -> NDArray[np.float64]:
        """What lanes work in, at the start: rows over points."""
        at, nf, classes, links = self.at, len(self.at.flows), len(self.at.classes), len(self.at.links)
        W = np.zeros((self.rows[""], len(table)))
        parameters = sum(g.size * len(g.law.params) for g in at.groups)
        for part, value in (
            ("values", self._of(table, s.OINIT, at.n_states)), ("step", steps), ("count", count),
            ("lag", self._of(table, s.OCPROP, classes)),
            ("back", self._of(table, s.OEB, classes)), ("packet", self._of(table, s.OU, nf, s.UPACKET * nf)),
            ("parameters", self._of(table, s.OPAR, parameters)), ("capacity", self._of(table, s.OCAP, links)),
            ("buffer", self._of(table, s.OBUF, links)), ("atol", self._of(table, s.OATOL, at.n_states)),
        ):  # fmt: skip
            rows = np.atleast_2d(value.T)
            W[self.rows[part] :][: len(rows)] = rows
        return W

    def _form(self, table: Any) -> tuple[Any, ...]:
        """What samples are made of, as `fluidcc.numerics.lanes.samples.statistics` takes it, by point."""
        at = self.at
        cap = self._of(table, s.OCAP, len(at.links))
        off, prop = self._of(table, s.OOFF, len(at.nodes)), self._of(table, s.OCPROP, len(at.classes))
        one, none = np.ones(len(table)), np.zeros(len(table))
        found: list[tuple[int, Any, Any, Any]] = []
        for variable in self.variables:
            for i in np.argsort(at.order) if VARIABLES[variable] == "flow" else ():
                k = at.flow_class[i]
                link = self.links[k]
                delay = (
                    at.backlog + link,
                    1.0 / cap[:, link],
                    prop[:, k],
                    off[:, self.loops[k]],
                )
                rate = (at.rate_state[i], one, none, none)
                found.append({"rate": rate, "loss": (0, none, none, none)}.get(variable, delay))
            for l in range(len(at.links)) if VARIABLES[variable] == "link" else ():
                sent = (0, none, cap[:, l], none)
                found.append({
                    "backlog": (at.backlog + l, one, none, none),
                    "queueing_delay": (at.backlog + l, 1.0 / cap[:, l], none, none),
                    "arrival_rate": (at.n_states + l, one, none, none),
                    "throughput": sent, "utilisation": sent, "link_loss": (0, none, none, none),
                }[variable])  # fmt: skip
        factor, term, age = (np.stack([of[k] for of in found], axis=1) for k in (1, 2, 3))
        ages, which = np.unique(age, axis=1, return_inverse=True)
        return np.ascontiguousarray(ages), which.ravel(), self.kinds, np.array([row for row, *_ in found]), factor, term

    def _of(self, table: Any, slot: int, number: int, first: int = 0) -> Any:
        """What stands from a slot on, for each row of the table, which leaves out the samples."""
        begin, a, b = (int(self.space.I[k]) for k in (slot, s.OOUT, s.OINIT))
        begin += first if begin < a else first + a - b
        return table[:, begin : begin + number]

    def _history(self, nodes: int, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Room for values and slopes at the nodes; first stands what was before the start, when queues stood still."""
        states, links = self.at.n_states, len(self.at.links)
        if len(self.room) < nodes:
            self.room = np.zeros((nodes, 3 * (states + links) * LANES))
        before = np.concatenate([W[:states], W[self.rows["capacity"] :][:links]])
        self.room[0] = 0.0
        self.room[0, : before.size] = before.ravel()
        self.room[1] = 0.0
        return self.room


def _blocks(ratios: NDArray[np.float64], count: NDArray[np.float64], some: NDArray[np.int64]) -> Iterator[Any]:
    """Of some points, those that share lanes: all delays are the same numbers of steps, and the runs about as long."""
    order = some[np.lexsort((count[some], *ratios[some].T))]
    edges = np.flatnonzero(np.any(np.diff(ratios[order], axis=0) != 0.0, axis=1)) + 1
    for alike in np.split(order, edges) if len(order) else ():
        yield from (alike[k : k + LANES] for k in range(0, len(alike), LANES))


@lru_cache(maxsize=64)
def _places(ratios: tuple[float, ...], loops: tuple[int, ...], nodes: int) -> tuple[Any, Any]:
    """Between which nodes each stage looks, from the one of its step on, and the weights there."""
    back = np.zeros(nodes)
    back[list(loops)] = ratios
    at = np.array(C[1:])[None, :] - back[:, None]
    shift = np.ceil(at - 1e-9).astype(np.int64) - 1  # a node is the end of what is before it, which is always known
    return shift, hermite(np.clip(at - shift, 0.0, 1.0))
