"""Whether an equilibrium stands alone: a search from beside it comes back, unless there is a
continuum of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base.errors import warn
from fluidcc.symbols import plain

if TYPE_CHECKING:
    from fluidcc.equilibria.assembly import Assembled
    from fluidcc.numerics.steady.follow import Search

__all__ = ["undetermined", "warn_undetermined"]

ASIDE = 1e-3
"""How far the second search starts from the equilibrium, relative to the largest unknown of a
kind.
"""
MOVED = 1e-6
"""What counts as another equilibrium, likewise; a search that slowly closes in on one ends
within 1e-9.
"""
VANISHED = 1e-9
"""What is left of a state that decays, relative to its start."""
NAMED = 6  # in a warning


def undetermined(system: Assembled, search: Search, u: Any) -> tuple[str, ...]:
    """What is not determined at an equilibrium, by name: states as "flow.state" and "link.state",
    else rates.

    Parameters
    ----------
    system : Assembled
        The network at one point.
    search : Search
        Its search.
    u : ndarray (unknowns,)
        The equilibrium.
    """
    size = _sizes(system, u)
    again = search.again(system.numbers, 0, _beside(system, u, size), bold=False)
    moved = (np.abs(again.u - u) > MOVED * size) & (again.status == 0)
    for l in _just_saturated(system, u):
        moved |= _with_a_queue(system, search, u, size, l)
    return _names(system, moved) if moved.any() else ()


def _just_saturated(system: Assembled, u: Any) -> list[int]:
    """Links that are saturated and empty: they may share the queue of another link in any way."""
    c, S = system.numbers.c[0], system.shape
    just = (
        np.array(S.queued) & (system.queues(u) <= 0) & (np.abs(system.arrivals(u) / c - 1) < MOVED)
    )
    return list(np.flatnonzero(just).tolist())


def _with_a_queue(system: Assembled, search: Search, u: Any, size: Any, l: int) -> Any:
    """Which unknowns move if a link keeps a queue, and stays saturated by that; none if it does
    not.
    """
    i = system.shape.flows + l
    v = u.copy()
    v[i] = ASIDE * max(size[i], 1e-3)
    again = search.again(system.numbers, 0, v, bold=False, held=np.array([i]))
    stays = (
        again.status == 0 and abs(system.arrivals(again.u)[l] / system.numbers.c[0, l] - 1) < 1e-9
    )
    return (np.abs(again.u - u) > MOVED * np.maximum(size, 1e-3 * ASIDE)) & stays


def _sizes(system: Assembled, u: Any) -> Any:
    """The size of each unknown: that of the largest of its kind, or its own where it is a state.

    A state that has all but vanished since the start is as good as zero.
    """
    F, L = system.shape.flows, system.shape.links
    size = np.maximum(np.abs(u), VANISHED * np.abs(system.numbers.initial[0]))
    for part in (slice(F), slice(F, F + L), slice(F + L, F + 2 * L)):
        size[part] = np.max(size[part], initial=0.0)
    return size


def _beside(system: Assembled, u: Any, size: Any) -> Any:
    """A point at some distance; queues that are empty stay so."""
    F, L = system.shape.flows, system.shape.links
    away = ASIDE * np.random.default_rng(1).uniform(0.5, 1.5, len(u)) * size
    away[F : F + L][system.queues(u) <= 0] = 0.0
    return np.clip(u + away, system.numbers.lower[0], system.numbers.upper[0])


def _names(system: Assembled, moved: Any) -> tuple[str, ...]:
    net, F = system.net, system.shape.flows
    names = [f"{spec.name}.{plain(z)}" for _, spec, z, i in system.named_states() if moved[i]]
    for l, (name, link) in enumerate(net.links.items()):
        law = link.law
        if law.queue is not None and moved[F + l]:
            names.append(f"{name}.{plain(law.queue)}")
    return tuple(names) or tuple(f"{name}.rate" for r, name in enumerate(net.flows) if moved[r])


def warn_undetermined(names: tuple[str, ...]) -> None:
    """Tell that an equilibrium is one of a continuum."""
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        warn(
            "the equilibrium is one of a continuum: nothing determines "
            f"{', '.join(names[:NAMED])}{more}; where a run ends depends on where it starts",
            stacklevel=4,  # beyond `explained`: the line that asks
        )
