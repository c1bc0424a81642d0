"""Natural sizes, of which tolerances are fractions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fluidcc.engine.layout import Layout

__all__ = ["state_sizes", "work_sizes"]


def state_sizes(at: Layout) -> NDArray[np.float64]:
    """The natural size of each state, of which `atol` is a fraction: capacity, its work in a base RTT, one."""
    scale = np.ones(at.n_states)
    scale[at.backlog : at.backlog + len(at.links)] = work_sizes(at)
    for group in at.groups:
        for j, z in enumerate(group.own):
            if group.law.units[z] == "bit/s":
                for n, i in enumerate(group.members):
                    top = max(at.links[l].capacity for l in at.route(i))
                    scale[group.states + j * group.size + n] = top
    return scale


def work_sizes(at: Layout) -> NDArray[np.float64]:
    """What each link does in the longest base RTT of its flows [bit]."""
    work = np.zeros(len(at.links))
    for i, f in enumerate(at.flows):
        for l in at.route(i):
            work[l] = max(work[l], at.links[l].capacity * max(at.net.base_rtt(f.name), 1e-3))
    return np.where(work > 0, work, [link.capacity for link in at.links])
