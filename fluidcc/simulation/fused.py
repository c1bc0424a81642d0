"""Fused steps: the whole step of a small network as one compiled function, many times faster than
the array step.

A fused step belongs to the structure of a network: its laws, routes and classes of equal delays.
Parameters, delays, capacities and buffers are read at run time.
"""

from __future__ import annotations

import itertools
from collections import Counter
from functools import lru_cache
from time import perf_counter
from typing import Any

import numba

from fluidcc.base.arguments import choice, explained
from fluidcc.base.errors import InvalidInput
from fluidcc.laws import Law, Link
from fluidcc.laws.parts import used
from fluidcc.laws.past import pasts
from fluidcc.laws.steady import trackers
from fluidcc.network import Network
from fluidcc.numerics.compiling import load_text, source_hash
from fluidcc.numerics.fluid import calls
from fluidcc.simulation.fused_text import step_text
from fluidcc.simulation.layout import Layout, lay_out, require_runnable
from fluidcc.symbols import OF_FLOWS, REPORTING, SOURCE_INPUTS, offer_min

MOST_INCIDENCES = 8  # (flow, link) pairs: beyond, compiling takes long and loops do nearly as well
MOST_LINKS = 4
_python_addresses = itertools.count(1 << 32)  # apart from those of the kernels
MOST_STRUCTURES = 1024  # whose addresses are remembered, the latest
_addresses: dict[Any, int] = {}  # by structure


@explained
def compile(net: Network, *, delays: str = "fifo") -> str:
    """Compile the fused step of a network's structure, for this and all later runs.

    ``simulate(engine="fused")`` takes it from then on, with any values of parameters, delays,
    capacities and buffers that leave alone which flows share their delays and which buffers are
    finite. It is kept on disk.

    Parameters
    ----------
    net : Network
        Of at most 8 (flow, link) pairs and 4 links.
    delays : {"fifo", "frozen"}
        As in `fluidcc.simulate`.

    Returns
    -------
    str
        What was compiled, or loaded, and how long that took.

    Raises
    ------
    InvalidInput
        If the network is too large, or has no flows.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.dumbbell([fc.LDCC] * 3, dict(capacity="3 Mbit/s"), rtt="50 ms")
    >>> fc.compile(net)  # doctest: +SKIP
    'fused step of 3 LDCC over 1 DropTail, fifo delays: ready after 2.6 s'
    """
    require_runnable(net)
    choice(delays, "delays", ("fifo", "frozen"))
    at = lay_out(net, dict.fromkeys(net.link_names, 0.0) if delays == "frozen" else None)
    began = perf_counter()
    fused_address(at)
    return f"fused step of {_about(at)}: ready after {perf_counter() - began:.1f} s"


def fused_address(at: Layout) -> int:
    """Address of the fused step of a layout, which is compiled unless it has been before.

    Raises
    ------
    InvalidInput
        If the network is too large, or has a law that a fused step does not take.
    """
    if refusal := _refusal(at):
        raise InvalidInput(refusal)
    key = _structure(at)
    found = _addresses.get(key)
    if found is None:
        found = _addresses[key] = _load(step_text(at, source_hash("fluid")))
        if len(_addresses) > MOST_STRUCTURES:
            _addresses.pop(next(iter(_addresses)), None)
    return found


def fits(at: Layout) -> bool:
    """Whether a network is one for a fused step."""
    return not _refusal(at)


def _refusal(at: Layout) -> str:
    """Why a network gets no fused step; nothing if it does."""
    pairs, links = sum(len(at.route(i)) for i in range(len(at.flows))), len(at.links)
    if pairs > MOST_INCIDENCES or links > MOST_LINKS:
        return (
            f"the network has {pairs} (flow, link) pairs and {links} links; a fused step takes at "
            f"most {MOST_INCIDENCES} and {MOST_LINKS}: use engine='array', or 'auto'"
        )
    if at.frozen is not None and any(len(f.route) > 1 and trackers(f.law) for f in at.flows):
        return (
            "frozen delays of several links may fall by a second a second, which a fused step does "
            "not notice where laws divide by 1 + edot; use engine='array'"
        )
    if any(link.stamp == "departure" for link in at.links):
        return "a fused step does not take links that mark at departure; use engine='array'"
    for group in at.every_group:
        what = _strange(group.law)
        if what:
            return f"{group.law.name} {what}, which a fused step does not take; use engine='array'"
    return ""


@lru_cache(maxsize=4096)
def _strange(law: Law) -> str:
    """What a fused step does not take of a law."""
    heard = {*SOURCE_INPUTS[SOURCE_INPUTS.index(offer_min) :], *OF_FLOWS}
    told = isinstance(law, Link) and {*law.out} & {"offer", *REPORTING}
    if pasts(law):
        return "knows its own past"
    return "tells or hears more than data carry" if told or used(law) & heard else ""


def _about(at: Layout) -> str:
    flows, links = (
        Counter(f.law.name for f in at.flows),
        Counter(link.law.name for link in at.links),
    )
    who, where = (", ".join(f"{n} {name}" for name, n in names.items()) for names in (flows, links))
    return f"{who} over {where}, {'frozen' if at.frozen is not None else 'fifo'} delays"


def _structure(at: Layout) -> Any:
    """What the text depends on, quicker to compare than to write."""
    return (
        at.frozen is not None, at.refit, at.backlog, at.n_states,
        tuple((g.law.structure, tuple(g.members)) for g in at.every_group),
        tuple((bool(l.schedule), l.buffer == float("inf"), l.law.name) for l in at.links),
        tuple((node.parent, node.link) for node in at.nodes),
        tuple(tuple(path) for path in at.paths), tuple(at.flow_class),
        tuple(route for route, _, _ in at.classes),
        tuple(at.aggregates), tuple(at.streams), tuple(max(k, -1) for k in at.rate_state),
        tuple(at.own_rate),
    )  # fmt: skip


def _load(text: str) -> int:
    if numba.config.DISABLE_JIT:
        scope: dict[str, Any] = {}
        exec(text.replace("@cfunc(step_signature, ", "@njit("), scope)  # njit does nothing here
        address = next(_python_addresses)
        calls.PYTHON_KERNELS[address] = scope["step"]
        return address
    return int(load_text(text, "fused").step.address)
