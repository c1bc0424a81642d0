"""The return ratio of a network in the form of (35): links alike up to a factor, users diagonal,
delays between.

F = Gamma l(s) R_f diag(N d(s) e^{-sR}) R_f^T(-s), with l(s) = 1/s for queues and dual prices and 1
for what answers at once. Delays are frozen, as in the papers whose conditions are tested with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.point import BUSY, FULL, Lags, links_of, passed
from fluidcc.analysis.wiring import HEARD, sources
from fluidcc.base.errors import Unsupported
from fluidcc.laws.parts import told_apart
from fluidcc.symbols import e, edot, pi, price, x_tau

if TYPE_CHECKING:
    from fluidcc.analysis.point import OperatingPoint

DELAY, LOSS, PRICE = "queueing delay", "loss", "price"
_INPUT = {DELAY: e, LOSS: pi, PRICE: price}


@dataclass(frozen=True)
class LocalLoop:
    """A network whose links differ by a factor only.

    Attributes
    ----------
    signal : str
        What the links send back: "queueing delay", "loss" or "price".
    integrates : bool
        Whether l(s) is 1/s.
    links : tuple of str
        Names of the links that answer.
    route : ndarray (links, classes)
        1 where a class crosses a link.
    gamma : ndarray (links,)
        Gain of each link.
    x, count, trip : ndarray (classes,)
        Rate of one flow [bit/s], number of flows, round-trip time [s].
    forward : ndarray (links, classes)
        Delay from source to link [s], 0 where it does not cross.
    laws : list
        A, B, C, D of each class from its signal, and from its own rate one round trip ago.
    """

    signal: str
    integrates: bool
    links: tuple[str, ...]
    route: NDArray[np.float64]
    gamma: NDArray[np.float64]
    x: NDArray[np.float64]
    count: NDArray[np.float64]
    trip: NDArray[np.float64]
    forward: NDArray[np.float64]
    laws: list[Any]
    labels: tuple[str, ...]

    @property
    def hops(self) -> int:
        """M: the largest number of answering links on a route."""
        return int(self.route.sum(axis=0).max())

    @property
    def load(self) -> NDArray[np.float64]:
        """Gain times the rate that listens, by link: 1 for a queue without other traffic."""
        return np.asarray(self.gamma * (self.route @ (self.count * self.x)))

    def user(self, s: Any) -> Any:
        """G of each class at complex s, shape (classes, len(s)): its answer over its rate, times
        l(s) e^{-sR}.
        """
        s = np.asarray(s, complex)
        return np.array([self._answer(k, s) for k in range(len(self.x))]) * (
            1 / s if self.integrates else 1.0
        )

    def user_at(self, users: Any, s: Any) -> Any:
        """G of one class at each s, by its number: shape of s."""
        found = np.empty(len(s), complex)
        for k in np.unique(users):
            mine = users == k
            found[mine] = self._answer(k, s[mine]) * (1 / s[mine] if self.integrates else 1.0)
        return found

    def _answer(self, k: int, s: Any) -> Any:
        A, B, C, D = self.laws[k]
        drive, own = (
            B[0][:, None] + s * B[1][:, None],
            np.broadcast_to(B[2][:, None], (len(A), len(s))),
        )
        if len(A) == 1:
            both = np.stack([drive, own]) / (s - A[0, 0])
        else:
            pole = np.eye(len(A)) * s[:, None, None] - A
            both = np.linalg.solve(pole, np.stack([drive.T, own.T], axis=-1)).transpose(2, 1, 0)
        heard, back = np.einsum("i,kin->kn", C, both) + np.array(
            [D[0] + s * D[1], np.full(len(s), D[2])]
        )
        lag = np.exp(-s * self.trip[k])
        return -heard / (1 - back * lag) / self.x[k] * lag

    def spread(self, omega: Any) -> Any:
        """R~ of (37) at j omega, shape (len, links, classes)."""
        weight = np.sqrt(self.gamma)[:, None] * self.route * np.sqrt(self.count * self.x)
        return weight * np.exp(-1j * np.asarray(omega)[:, None, None] * self.forward)

    def radius(self, omega: Any) -> Any:
        """Spectral radius of R~ R~*, at each frequency."""
        if len(self.gamma) == 1:
            return np.full(len(omega), self.load[0])
        R = self.spread(omega)
        return np.linalg.eigvalsh(R @ R.conj().transpose(0, 2, 1))[:, -1]

    def eigenloci(self, omega: Any) -> Any:
        """Eigenvalues of F at j omega, shape (len, links)."""
        R = self.spread(omega)
        G = self.user(1j * np.asarray(omega)).T
        return np.linalg.eigvals((R * G[:, None, :]) @ R.conj().transpose(0, 2, 1))


def local_loop(point: OperatingPoint) -> LocalLoop:
    """Write a network in that form.

    Raises
    ------
    Unsupported
        If it has none: links that answer differently, or a flow that loses packets before a link
        that answers it.
    """
    kinds = _kinds(point)
    if not kinds:
        raise Unsupported("no link answers the flows, so there is no loop")
    if len({kind[:2] for kind in kinds.values()}) > 1:
        said = ", ".join(f"{point.links[l].name!r} by {kind[0]}" for l, kind in kinds.items())
        raise Unsupported(f"its links answer differently ({said}), so they have no common factor")
    signal, integrates, _ = next(iter(kinds.values()))
    if signal == LOSS and (few := [f for f in point.classes if told_apart(f.spec.law)]):
        raise Unsupported(
            f"flow {few[0].label!r} ({few[0].spec.law.name}) hears marks apart from losses, and "
            "here links answer by one ratio; fluidcc.stability is exact there too"
        )
    _refuse_thinned(point, kinds)
    place = {l: i for i, l in enumerate(kinds)}
    route, forward = np.zeros((2, len(kinds), len(point.classes)))
    lag = Lags(point)
    for k, f in enumerate(point.classes):
        for h, l in enumerate(f.route):
            if l in place:
                route[place[l], k], forward[place[l], k] = 1.0, lag.forward[k][h]
    columns = [HEARD.index(v) for v in (_INPUT[signal], edot, x_tau)]
    laws = []
    for f, source in zip(point.classes, sources(point), strict=True):
        if source.past:
            raise Unsupported(
                f"flow {f.label!r} ({f.spec.law.name}) knows its own past, so that its loop has "
                "more delays than its round trip; fluidcc.stability is exact there too"
            )
        B, D = source.B[:, columns].T.copy(), np.array(source.D)[columns]
        if signal != DELAY:
            B[1], D[1] = 0.0, 0.0
        laws.append((source.A, B, source.C, D))
    return LocalLoop(
        signal, integrates, tuple(point.links[l].name for l in kinds), route,
        np.array([gain for _, _, gain in kinds.values()]), point.x, point.count, np.array(lag.trip,
        float), forward,
        laws, tuple(f.label for f in point.classes),
    )  # fmt: skip


def _refuse_thinned(point: OperatingPoint, kinds: dict[int, Any]) -> None:
    """What loses packets upstream arrives as (1 - pi) x less a share of what others send, so
    that F is no R G R^T.
    """
    for f in point.classes:
        share = passed(point, f.route, f.spec.ecn)
        for h, l in enumerate(f.route):
            if l in kinds and share[h] < 1:
                lossy = next(
                    point.links[f.route[j]].name for j in range(h) if share[j + 1] < share[j]
                )
                raise Unsupported(
                    f"flow {f.label!r} loses packets at link {lossy!r} before link "
                    f"{point.links[l].name!r} answers it: what arrives there depends on all who "
                    "share the loss, so that the way to the links is not the transpose of the "
                    "way back, on which convex hulls, spectral radii and passivity rest; "
                    "fluidcc.stability and fluidcc.stability_boundary are exact there too"
                )


def _kinds(point: OperatingPoint) -> dict[int, tuple[str, bool, float]]:
    """Signal, whether it is an integral, and gain of every link that answers."""
    found: dict[int, tuple[str, bool, float]] = {}
    for l in range(len(point.links)):
        if point.mode[l] == BUSY:
            found[l] = (DELAY, True, 1 / point.c[l])
        elif point.mode[l] == FULL:
            found[l] = (LOSS, False, point.c[l] / point.y[l] ** 2)
    links = links_of(point)
    for g in links.groups:
        if "offer" in g.law.out:
            raise Unsupported(
                f"link {point.links[g.members[0]].name!r} offers a rate, past the queues, of which "
                "a flow hears the least alone; fluidcc.stability is exact there too"
            )
        if "drop" in g.law.out or any(point.mixed[l] for l in g.members):
            raise Unsupported(
                f"link {point.links[g.members[0]].name!r} drops before its queue, beyond an "
                "integral"
            )
        if "price" not in g.law.out and "mark" not in g.law.out:
            continue
        if any(point.links[l].stamp == "departure" for l in g.members):
            raise Unsupported(
                f"link {point.links[g.members[0]].name!r} marks at departure, and tells of its "
                "delay and of its marks at different times; fluidcc.stability is exact there too"
            )
        out = list(g.law.out)
        signal = PRICE if "price" in g.law.out else LOSS
        row = out.index("price" if signal == PRICE else "mark")
        jac = links.at(g).jacobians
        for j, l in enumerate(g.members):
            A, B, C, D = (M[..., j] for M in jac)
            moving = g.free[:, j]
            if l in found or moving.sum() > 1:
                raise Unsupported(
                    f"link {point.links[l].name!r} has dynamics of its own beyond an integral"
                )
            if not moving.any():
                if D[row, 0] != 0:
                    found[l] = (signal, False, float(D[row, 0]))
            elif np.all(A[moving][:, moving] == 0) and D[row, 0] == 0:
                found[l] = (signal, True, float((C[row, moving] @ B[moving, 0]).item()))
            else:
                raise Unsupported(
                    f"link {point.links[l].name!r} has dynamics of its own beyond an integral"
                )
    return dict(sorted(found.items()))
