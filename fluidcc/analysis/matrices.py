"""Matrices of a linear network with its delays pulled out, and what is told without wiring a network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fluidcc.analysis.linear_laws import LinearLaw, matters, sources
from fluidcc.analysis.rest import Lags

if TYPE_CHECKING:
    from fluidcc.analysis.operating_point import Point

__all__ = ["Matrices", "all_flows", "apart", "closed", "deviation", "deviations", "has_loop"]


@dataclass(frozen=True)
class Matrices:
    """A system with its delays pulled out, in the layout of `fluidcc.numerics.linear.DelayLTI`."""

    A: Any
    B: Any
    C: Any
    D: Any
    delays: Any
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    trackers: tuple[str, ...]


def closed(m: Matrices) -> Matrices | None:
    """An open loop, from rates to minus what the laws want them to be, closed: from disturbances of rates to rates.

    None where rates act on one another without any delay, round and round.
    """
    K = len(m.inputs)
    at_once = -m.D[:K, :K]
    rate = term = np.zeros_like(at_once) + np.eye(K).reshape(K, K, *(1 for _ in at_once.shape[2:]))
    if at_once.any():  # the powers of what acts at once end
        for _ in range(K):
            term = _times(at_once, term)
            rate = rate + term
        if term.any():
            return None
    z, v = -_times(rate, m.C[:K]), -_times(rate, m.D[:K, K:])
    into, sent = m.B[:, :K], m.D[K:, :K]
    C = np.concatenate((z, m.C[K:] + _times(sent, z)))
    D = np.concatenate(
        (
            np.concatenate((rate, v), axis=1),
            np.concatenate((_times(sent, rate), m.D[K:, K:] + _times(sent, v)), axis=1),
        )
    )
    B = np.concatenate((_times(into, rate), m.B[:, K:] + _times(into, v)), axis=1)
    return replace(m, A=m.A + _times(into, z), B=B, C=C, D=D)


def _times(left: Any, right: Any) -> Any:
    """The product of two matrices, at each of the points along the axes after the first two."""
    return left @ right if left.ndim == 2 else np.einsum("ij...,jk...->ik...", left, right)


def has_loop(m: Any) -> bool:
    """Whether, in an open loop, any flow hears of what any flow sends; at any of the points."""
    parts: Any = [np.reshape(part != 0, (*part.shape[:2], -1)).any(axis=-1) for part in (m.A, m.B, m.C, m.D)]
    A, B, C, D = parts
    inputs, outputs = len(m.inputs), len(m.outputs)
    reach = np.vstack([B[:, :inputs], D[outputs:, :inputs]]).any(axis=1)
    links = np.block([[A, B[:, inputs:]], [C[outputs:], D[outputs:, inputs:]]])
    for _ in range(len(links)):
        reach = reach | links @ reach
    return bool((np.hstack([C[:outputs], D[:outputs, inputs:]]) @ reach).any() or D[:outputs, :inputs].any())


def deviations(point: Point, loop: str = "closed") -> dict[str, Matrices]:
    """`deviation` of every class of two or more flows, by its label."""
    if all(f.count < 2 for f in point.classes):
        return {}
    laws, trips = sources(point), Lags(point).trip
    return {
        f.label: _alone(point, f.label, laws[k], trips[k], loop) for k, f in enumerate(point.classes) if f.count > 1
    }


def deviation(point: Point, k: int) -> Matrices:
    """How the flows of class `k` differ from their mean: links hear nothing of that, each only its own past."""
    return _alone(point, point.classes[k].label, sources(point)[k], Lags(point).trip[k], "closed")


def _alone(point: Point, label: str, source: LinearLaw, trip: Any, loop: str) -> Matrices:
    n, own = len(source.names), source.B[:, -1:]
    heard = matters(own) or matters(source.D[-1])
    kind, many = np.result_type(source.A, source.D, source.C), np.shape(point.x)[1:]
    B, C, D = (np.zeros((*shape, *many), kind) for shape in ((n, 1 + heard), (1 + heard, n), (1 + heard, 1 + heard)))
    C[0] = -source.C
    if heard:
        B[:, 1], D[0, 1], D[1, 0] = own[:, 0], -source.D[-1], 1.0
    delays = np.array([trip])[: int(heard)]
    states, ports = (tuple(f"differences in {name}" for name in names) for names in (source.names, (label,)))
    opened = Matrices(source.A, B, C, D, delays, states, ports, ports, source.trackers)
    return cast(Matrices, closed(opened)) if loop == "closed" else opened  # its own past is never heard at once


def all_flows(point: Point, opened: Matrices) -> Matrices:
    """The return ratio of all flows as one system; see `apart`."""
    return reduce(_beside, apart(point, opened))


def apart(point: Point, opened: Matrices) -> list[Matrices]:
    """The return ratio of all flows, from that by class: as of N flows each, in coordinates of orthonormal modes.

    Its parts have nothing to do with one another, so that margins are the least of theirs.

    A class of N moves as one by its mean times sqrt(N): so singular values are those of all flows. The differences
    among its flows are a loop, too, where the law hears its own past; else nothing returns of them.
    """
    weight = np.sqrt(point.count / point.count[0]).reshape(-1, *(1 for _ in opened.A.shape[1:]))
    K = len(weight)
    B, C, D = opened.B.copy(), opened.C.copy(), opened.D.copy()
    C[:K] *= weight
    D[:K] *= weight
    B[:, :K] /= np.swapaxes(weight, 0, 1)
    D[:, :K] /= np.swapaxes(weight, 0, 1)
    found = replace(opened, B=B, C=C, D=D)
    return [found, *(own for own in deviations(point, "open").values() if len(own.delays))]


def _beside(one: Matrices, other: Matrices) -> Matrices:
    """Two systems that have nothing to do with one another, as one; of each there are as many outputs as inputs."""
    a, b = (
        np.concatenate((np.concatenate((m.A, m.B), axis=1), np.concatenate((m.C, m.D), axis=1))) for m in (one, other)
    )
    M = np.zeros((len(a) + len(b), len(a) + len(b), *a.shape[2:]), np.result_type(a, b))
    M[: len(a), : len(a)], M[len(a) :, len(a) :] = a, b
    sizes = [len(part) for m in (one, other) for part in (m.states, m.inputs, m.delays)]
    order = np.argsort(np.repeat([0, 1, 2] * 2, sizes), kind="stable")  # states, inputs, channels
    M = M[order][:, order]
    n = len(one.states) + len(other.states)
    return Matrices(
        M[:n, :n], M[:n, n:], M[n:, :n], M[n:, n:], np.concatenate((one.delays, other.delays)),
        one.states + other.states, one.inputs + other.inputs, one.outputs + other.outputs, one.trackers,
    )  # fmt: skip
