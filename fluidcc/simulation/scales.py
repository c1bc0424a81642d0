"""Natural sizes, of which tolerances are fractions."""

from __future__ import annotations

from fluidcc.simulation.layout import Layout

__all__ = ["state_sizes", "work_sizes"]


def state_sizes(at: Layout, work: list[float]) -> list[float]:
    """The natural size of each state, of which `atol` is a fraction: capacity, its work in a base RTT, one.

    Parameters
    ----------
    at : Layout
    work : list of float
        What each link does in a base RTT: `work_sizes`.
    """
    scale = [1.0] * at.n_states
    scale[at.backlog : at.backlog + len(at.links)] = work
    for group in at.groups:
        for j, z in enumerate(group.own):
            if group.law.units[z] == "bit/s":
                for n, i in enumerate(group.members):
                    top = max(at.links[l].capacity for l in at.route(i))
                    scale[group.states + j * group.size + n] = top
    return scale


def work_sizes(at: Layout) -> list[float]:
    """What each link does in the longest base RTT of its flows [bit]."""
    work = [0.0] * len(at.links)
    for route, access, back in at.classes:
        trip = max(access + sum(at.links[l].delay for l in route) + back, 1e-3)
        for l in route:
            work[l] = max(work[l], at.links[l].capacity * trip)
    return [bits if bits > 0.0 else link.capacity for bits, link in zip(work, at.links, strict=True)]
