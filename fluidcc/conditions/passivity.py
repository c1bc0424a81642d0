"""Local stability without delays, by positive realness of each user."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fluidcc.analysis.operating import operating_point
from fluidcc.analysis.point import OperatingPoint
from fluidcc.base.errors import Unsupported
from fluidcc.base.tables import InTable, in_html
from fluidcc.conditions.local import LocalLoop, local_loop
from fluidcc.numerics.linear.dlti import DelayLTI

if TYPE_CHECKING:
    from fluidcc.equilibria.result import Equilibrium
    from fluidcc.network import Network


@dataclass(frozen=True)
class UserPassivity(InTable):
    """One class of flows.

    Attributes
    ----------
    name : str
        The class.
    index : float
        Least real part of its answer over frequency, relative to rate over round-trip time; above 0
        it is strictly positive real.
    omega : float
        Where that is [rad/s].
    kyp : bool
        Whether the matrix inequality has a solution, that is a quadratic storage function.
    settles : bool
        Whether its own poles lie left of the imaginary axis, without which the real part there says
        too little.
    """

    name: str
    index: float
    omega: float
    kyp: bool
    settles: bool = True

    _shown = ("name", "index", "omega [rad/s]", "kyp", "settles")


@dataclass(frozen=True)
class PassivityReport:
    """Whether the passivity argument proves local stability of the undelayed network.

    Attributes
    ----------
    users : tuple of UserPassivity
        Each class of flows.
    links, rank : int
        Number of queues that answer, and rank of their routing matrix.
    """

    users: tuple[UserPassivity, ...]
    links: int
    rank: int

    @property
    def stable(self) -> bool:
        """True if the passivity theorem proves stability; False means not proved."""
        return self.rank == self.links and all(
            user.settles and user.index > 0 for user in self.users
        )

    def __bool__(self) -> bool:
        return self.stable

    def __repr__(self) -> str:
        return f"PassivityReport({self.verdict})"

    @property
    def verdict(self) -> str:
        """In a sentence."""
        if self.stable:
            return (
                "locally stable without delays: every user is strictly positive real, and the "
                "routes have full rank"
            )
        if self.rank < self.links:
            return (
                f"undecided: {self.links} queues have routes of rank {self.rank}, so how they "
                "share is undetermined"
            )
        if free := [user.name for user in self.users if not user.settles]:
            return (
                f"undecided: flow {free[0]} has a pole of its own on the imaginary axis or right "
                "of it"
            )
        worst = min(self.users, key=lambda user: user.index)
        return (
            f"undecided: flow {worst.name} is not positive real, least real part "
            f"{worst.index:.4g} at {worst.omega:.4g}"
        )

    def _repr_html_(self) -> str:
        head = ("flow", "least Re H, of x/RTT", "at [rad/s]", "quadratic storage")
        rows = [
            (u.name, f"{u.index:.4g}", f"{u.omega:.4g}", "yes" if u.kyp else "no")
            for u in self.users
        ]
        return f"<p>{html.escape(self.verdict)}</p>{in_html(rows, head)}"


def passivity(net: Network, at: float | Equilibrium | OperatingPoint = math.inf) -> PassivityReport:
    """Test each user of a network for positive realness, over frequency and by the KYP inequality.

    Parameters
    ----------
    net : Network
        Whose links answer by their queueing delay.
    at : float, Equilibrium or OperatingPoint
        As in `fluidcc.linearize`, or the operating point itself.

    Raises
    ------
    Unsupported
        If its links answer otherwise, or a law hears its own past.
    """
    from fluidcc.conditions.positive_real import kyp, positive_real

    loop = local_loop(at if isinstance(at, OperatingPoint) else operating_point(net, at))
    if loop.signal != "queueing delay":
        raise Unsupported(
            f"its links answer by {loop.signal}; the argument is about queues that are not full"
        )
    users = []
    for k, label in enumerate(loop.labels):
        system = _user(loop, k)
        found = positive_real(system)
        A = loop.laws[k][0] * loop.trip[k]
        settles = bool(np.all(np.linalg.eigvals(A).real < -1e-9)) if len(A) else True
        users.append(UserPassivity(label, found.least, found.omega, kyp(system).feasible, settles))
    return PassivityReport(tuple(users), len(loop.links), int(np.linalg.matrix_rank(loop.route)))


def _user(loop: LocalLoop, k: int) -> DelayLTI:
    """From minus delay, in round-trip times, to rate, in rates: -C (sI - A)^-1 (B0 + s B1) - D0,
    in time t/RTT.
    """
    A, B, C, D = loop.laws[k]
    if np.any(B[2]) or D[2] or D[1]:
        raise Unsupported(
            f"the law of flow {loop.labels[k]!r} hears its own past rate, or sends by the slope "
            "of delay"
        )
    trip, scale = loop.trip[k], loop.trip[k] / loop.x[k]
    direct = -(D[0] + C @ B[1]) * scale
    return DelayLTI(A * trip, -(B[0] + A @ B[1])[:, None] * trip * scale, C[None], [[direct]])
