"""Writing down the final state of a run: its states, and its history over the largest delay, as named arrays.

They stand in one row of bytes (an ``.npz`` archive and its digest), a variable of the dataset like any other, so that
it survives NetCDF, Zarr and pickling.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput
from fluidcc.laws import Law
from fluidcc.network.network import FlowSpec
from fluidcc.numerics.fluid import slots as s
from fluidcc.simulation.jumps_and_ticks import owner_of
from fluidcc.simulation.layout import Layout
from fluidcc.simulation.workspace import Workspace
from fluidcc.symbols import plain, unfold

__all__ = [
    "CLOCKS", "COUNTS", "VERSION", "digest", "event_keys", "event_table", "flow_places", "link_places", "nudged",
    "past", "read_back", "snapshot",
]  # fmt: skip

VERSION = 4
_DIGEST = hashlib.sha256().digest_size
Array = NDArray[Any]


@lru_cache(maxsize=256)
def _digest_of(structure: Any, law: Law) -> str:
    parts = [law.kind, law.name, *map(plain, law.states), "|", *map(plain, law.params), "|"]
    parts += [f"{what}={unfold(f)}" for what, f in law.expressions()]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def digest(law: Law) -> str:
    """The law apart from its parameter values."""
    return _digest_of(law.structure, law)


def _ragged(name: str, rows: Iterable[Iterable[Any]], kind: type) -> dict[str, Array]:
    full = [list(row) for row in rows]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in full])]).astype(np.int64)
    return {name: np.array([v for row in full for v in row], dtype=kind), f"{name}_starts": starts}


def snapshot(space: Workspace) -> NDArray[np.uint8]:
    """The final state of a run whose clock stands at its end."""
    arrays = {**_flows(space), **_links(space), **_history(space), **_landings(space), **_events(space)}
    frozen = space.at.frozen
    about = {"version": VERSION, "frozen": dict(frozen) if frozen is not None else None}
    arrays["about"] = np.array(json.dumps(about))
    arrays["clock"] = np.array([space.F[s.T], space.F[s.HNEXT]])
    return _bytes(arrays)


def nudged(final: Any, changes: Mapping[tuple[str, str], Mapping[int, float]]) -> Array:
    """A final state with some states moved a little, at the instant it was taken.

    Parameters
    ----------
    final : array of bytes
        As `snapshot` gives it.
    changes : mapping of (kind, name) to mapping of int to float
        What to add, by ``("flow", name)`` or ``("link", name)`` and the number of the state in its law; of a link, not
        its queue.
    """
    arrays = read_back(final)
    for (kind, name), moves in changes.items():
        first = arrays[f"{kind}_states_starts"][list(arrays[kind]).index(name)]
        for number, step in moves.items():
            arrays[f"{kind}_states"][first + number] += step
    return _bytes(arrays)


def _bytes(arrays: dict[str, Array]) -> Array:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # its stubs take the names for options
    data = buffer.getvalue()
    return np.frombuffer(data + hashlib.sha256(data).digest(), dtype=np.uint8)


def read_back(final: Any) -> dict[str, Array]:
    """The arrays of a final state.

    Raises
    ------
    InvalidInput
        If it is not to the bit as `snapshot` gave it.
    """
    given = np.asarray(final)
    raw = given.tobytes() if given.dtype == np.uint8 else b""
    data, end = raw[:-_DIGEST], raw[-_DIGEST:]
    if hashlib.sha256(data).digest() != end:
        raise InvalidInput(
            "the final_state of restart is damaged, or of another version of fluidcc; give a result of simulate() as "
            "it was returned, or run the first part again"
        )
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def flow_places(space: Workspace) -> list[NDArray[np.int64]]:
    """Where the states of each flow stand in `OY`."""
    F0 = [space.I[int(space.I[k]) :] for k in (s.JFSTATE, s.JFSTRIDE, s.JFN)]
    return [F0[0][i] + F0[1][i] * np.arange(F0[2][i]) for i in range(len(space.at.flows))]


def link_places(at: Layout) -> list[list[int]]:
    """The same for the states that links have beside their backlogs."""
    rows: list[list[int]] = [[] for _ in at.links]
    for g in at.link_groups:
        for n, l in enumerate(g.members):
            rows[l] = [g.states + j * g.size + n for j in range(len(g.own))]
    return rows


def _flows(space: Workspace) -> dict[str, Array]:
    at, y = space.at, space.F[space.I[s.OY] :]
    return {
        "flow": np.array([f.name for f in at.flows]),
        "flow_law": np.array([digest(f.law) for f in at.flows]),
        "flow_delays": np.array([(f.access_delay, at.net.return_delay(f.name), f.packet) for f in at.flows]),
        "flow_on": space.I[space.I[s.JON] :][: len(at.flows)].copy(),
        **_ragged("flow_route", [at.route(i) for i in range(len(at.flows))], int),
        **_ragged("flow_states", [y[where] for where in flow_places(space)], float),
        **_ragged("flow_params", [[float(v) for v in f.law.params.values()] for f in at.flows], float),
        **_ragged("flow_past", [chain.from_iterable(past(f, float(space.F[s.T]))) for f in at.flows], float),
    }


def past(flow: FlowSpec, time: float) -> list[tuple[float, float]]:
    """When a flow was on before `time`."""
    return [(begin, min(end, time)) for begin, end in flow.intervals if begin < time]


def _links(space: Workspace) -> dict[str, Array]:
    at, y, nl = space.at, space.F[space.I[s.OY] :], len(space.at.links)
    return {
        "link": np.array([link.name for link in at.links]),
        "link_law": np.array([digest(link.law) for link in at.links]),
        "link_delay": np.array([link.delay for link in at.links]),
        "link_mode": space.I[space.I[s.JMODE] :][:nl].copy(),
        "link_totals": space.F[space.I[s.OINT] :][: 2 * nl].reshape(2, nl).copy(),
        "link_backlog": y[at.backlog : at.backlog + nl].copy(),
        **_ragged("link_states", [y[where] for where in link_places(at)], float),
        **_ragged("link_capacity", [chain((0.0, k.capacity), *k.schedule) for k in at.links], float),
    }


def _history(space: Workspace) -> dict[str, Array]:
    at, I = space.at, space.I
    stride, nl, nx = int(I[s.STRIDE]), len(at.links), len(at.aggregates)
    ring = space.F[int(I[s.OHIST]) :].reshape(-1, stride)
    records = ring[np.arange(int(I[s.FIRST]), int(I[s.NREC])) & int(I[s.MASK])]
    links = s.RLINKS + nl * s.LSIZE
    acting = links + 5 * (nx + int(I[s.NT]))
    own = [i for i, slot in enumerate(at.own_rate) if slot >= 0]
    return {
        "record_head": records[:, : s.RLINKS],
        "record_links": records[:, s.RLINKS : links].reshape(len(records), nl, s.LSIZE),
        "record_routes": records[:, links : links + 5 * nx].reshape(len(records), nx, 5),
        "record_own": records[:, links + 5 * nx : acting].reshape(len(records), -1, 5),
        "own": np.array(own, dtype=np.int64),
        "record_acting": records[:, acting:].reshape(len(records), len(at.acting), 5 * s.XSIZE),
        "acting": np.array(at.acting, dtype=np.int64),
        **_ragged("route", at.aggregates, int),
    }


def _landings(space: Workspace) -> dict[str, Array]:
    """Breaking points under way; those to a class of flows are addressed to one flow of it."""
    I, count = space.I, int(space.I[s.NHEAP])
    entries = I[int(I[s.JHEAP]) :][: 3 * count].reshape(count, 3).copy()
    first: dict[int, int] = {}
    for i, c in enumerate(space.at.flow_class):
        first.setdefault(c, i)
    for row in entries:
        if row[0] == s.AT_CLASS:
            row[1] = first[int(row[1])]
    return {"landing_time": space.F[int(I[s.OHEAP]) :][:count].copy(), "landing": entries}


CLOCKS = (s.OHTIME, s.OHBASE, s.OHPER, s.OHLAST, s.OHG)
COUNTS = (s.HCOUNT, s.HREPEAT)


def event_table(space: Workspace) -> NDArray[np.int64]:
    """The rows of jumps and ticks in the workspace, as they are now; changing it changes them."""
    count = int(space.I[s.NHY])
    return space.I[int(space.I[s.JHY]) :][: count * s.HSIZE].reshape(count, s.HSIZE)


def event_keys(space: Workspace) -> list[str]:
    """Whose each jump or tick is, and its number in the law."""
    at = space.at
    owners = [owner_of(row) for row in space.event_rows]
    names = [f"flow {at.flows[i].name}" if source else f"link {at.links[i].name}" for source, i in owners]
    return [f"{name} {row[s.HWANT]}" for name, row in zip(names, space.event_rows, strict=True)]


def _events(space: Workspace) -> dict[str, Array]:
    """When ticks are next due and refractory times end."""
    count = int(space.I[s.NHY])
    return {
        "event": np.array(event_keys(space), dtype=str),
        "event_clocks": np.array([space.F[int(space.I[k]) :][:count] for k in CLOCKS]).reshape(len(CLOCKS), count),
        "event_counts": event_table(space)[:, COUNTS].copy(),
    }
