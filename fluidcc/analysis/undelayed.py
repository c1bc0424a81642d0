"""A network whose communication delays are negligible: z' = f(z), symbolic in the states, exact
from the laws.

This is the system of Section IV-A of the LDCC paper: every rate reaches its links at once, and
every delay is heard at once. Propagation delays stay in the one-way delays that the laws see.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sympy import Expr

from fluidcc.analysis.passivity import (
    Storage,
    StorageReport,
    check_storage,
    paper_storage,
    repaired_storage,
)
from fluidcc.analysis.undelayed_system import Builder, UndelayedSystem
from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import UnknownName, Unsupported
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.network.network import require_network
from fluidcc.network.patterns import near
from fluidcc.symbols import Let

if TYPE_CHECKING:
    from fluidcc.network.network import Network


__all__ = ["Undelayed", "undelayed"]


@dataclass(frozen=True, repr=False)
class Undelayed(UndelayedSystem):
    """The undelayed network, and the storage functions that are put to the test on it."""

    def storage(self, formula: Any, name: str = "V") -> Storage:
        """Make a candidate for a storage function of a formula in the states, as `Storage.of`
        does.
        """
        return Storage.of(self, formula, name)

    def paper_storage(self, *, alpha: float | None = None, literal: bool = False) -> Storage:
        """Make the LDCC paper's candidate, (28) + (29): see
        `fluidcc.analysis.passivity.paper_storage`.
        """
        return paper_storage(self, alpha=alpha, literal=literal)

    def repaired_storage(self) -> Storage:
        """Make V*, which does decrease: see `fluidcc.analysis.passivity.repaired_storage`."""
        return repaired_storage(self)

    def check(
        self, candidate: Any, *, samples: int = 4096, seed: int = 0, spread: float = 100.0
    ) -> StorageReport:
        """Look for a state at which a candidate is not positive, or grows.

        Parameters
        ----------
        candidate : Storage or Expr
            Of `storage`, `paper_storage` or `repaired_storage`, or the formula itself.
        samples, seed, spread
            As for `fluidcc.analysis.passivity.check_storage`.

        Returns
        -------
        StorageReport
            Without a counterexample it is evidence, not a proof.
        """
        storage = self.storage(candidate) if isinstance(candidate, Expr) else candidate
        return check_storage(self, storage, samples=samples, seed=seed, spread=spread)


@explained
def undelayed(net: Network, at: float = math.inf, *, held: Sequence[str] = ()) -> Undelayed:
    """Leave out every communication delay.

    Parameters
    ----------
    net : Network
        Its buffers must not be full at the equilibrium.
    at : float
        Time [s] at which capacities and flows are taken, as in `fluidcc.equilibrium`.
    held : sequence of str
        Names of `Let` definitions in the laws that keep their value of the equilibrium: ``("k",)``
        holds LDCC's gain eta/RTT constant, as its paper does in Section IV-A.

    Raises
    ------
    Unsupported
        If a buffer is full, or a law has jumps, ticks or outputs that feed back at once.
    UnknownName
        If no law has a definition of a name in `held`.

    Examples
    --------
    The paper's storage function grows at some states; one of the same kind does not.

    >>> import fluidcc as fc
    >>> net = fc.dumbbell([fc.LDCC] * 2, {"capacity": "3.5 Mbit/s"}, rtt="50 ms")
    >>> system = fc.undelayed(net, held="k")
    >>> system
    Undelayed(states: x_flow1, x_flow2, q_bottleneck; held: k)
    >>> bool(system.check(system.paper_storage(), samples=64))
    False
    >>> bool(system.check(system.repaired_storage(), samples=64))
    True
    >>> x, *_ = system.states
    >>> system.check((x - system.point[x]) ** 2, samples=64).positive_definite
    False
    """
    require_network(net)
    held = (held,) if isinstance(held, str) else tuple(held)
    known = sorted(
        {let.name for f in net.flows.values() for g in f.law.flow.values() for let in g.atoms(Let)}
    )
    for name in held:
        if name not in known:
            raise UnknownName(
                f"no law of the network has a definition {shown(name)} to be held; "
                f"{near(str(name), known)}"
            )
    rest = equilibrium(net, at)
    if bool(rest.full.any()):
        full = next(str(name) for name in rest.full.link.values if bool(rest.full.sel(link=name)))
        raise Unsupported(
            f"the buffer of link {full!r} is full at the equilibrium, and without delays its "
            "loss would act at once; the undelayed network is for links with room in their "
            "buffers"
        )
    return Undelayed(**Builder(net, at, rest, held).build())
