"""Is a candidate a Lyapunov function? Its signs at the equilibrium, and a search for
counterexamples over states.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Float, Heaviside, Integer, Matrix, Symbol, lambdify, sympify

from fluidcc.analysis.local import LocalLoop, local_loop
from fluidcc.analysis.operating_point import operating_point
from fluidcc.analysis.point import Point
from fluidcc.analysis.undelayed_system import DIGITS, UndelayedSystem
from fluidcc.base.arguments import explained, number, shown, whole
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.base.tables import InTable, in_html
from fluidcc.laws import Law
from fluidcc.numerics.linear.dlti import DelayLTI
from fluidcc.symbols import e, plain, unfold

if TYPE_CHECKING:
    from fluidcc.equilibria.equilibrium import Equilibrium
    from fluidcc.network import Network


__all__ = [
    "PassivityReport", "Storage", "StorageReport", "UserPassivity", "check_storage",
    "evaluated", "paper_storage", "passivity", "penalty_of", "repaired_storage", "steepest",
]  # fmt: skip


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)


@dataclass(frozen=True)
class Storage:
    """A candidate V of the states of an undelayed network.

    Attributes
    ----------
    name : str
        For messages.
    gradient : mapping of Symbol to Expr
        dV/dz of each state z on which it depends.
    offset : float
        V at the equilibrium.
    value : Expr, optional
        V itself; without it V is integrated along a straight line from the equilibrium, for which
        the gradient must be one.
    """

    name: str
    gradient: Mapping[Symbol, Expr]
    offset: float = 0.0
    value: Expr | None = None

    @classmethod
    def of(cls, system: UndelayedSystem, value: Any, name: str = "V") -> Storage:
        """The candidate with that formula in the states of the network.

        Raises
        ------
        InvalidInput
            If it contains other symbols.
        """
        value = sympify(value)
        strange = value.free_symbols - set(system.states)
        if strange:
            raise InvalidInput(
                f"{name} contains {', '.join(sorted(map(plain, strange)))}, no states of the "
                f"network; it has {', '.join(map(plain, system.states))}"
            )
        offset = float(value.subs(dict(system.point)))
        return cls(name, {z: value.diff(z) for z in value.free_symbols}, offset, value)

    @property
    def separable(self) -> bool:
        """Whether each part of the gradient depends on its own state alone."""
        return all(unfold(g).free_symbols <= {z} for z, g in self.gradient.items())

    def terms(self, system: UndelayedSystem) -> list[Expr]:
        """The terms g_z f_z of V' along the network's motion."""
        return [unfold(g) * system.flow[z] for z, g in self.gradient.items()]

    def values(self, system: UndelayedSystem, states: Any) -> Any:
        """V at states of shape (n, ...)."""
        states = np.asarray(states, float)
        if self.value is not None:
            return evaluated(system.states, [self.value], states)[0]
        still = np.array([float(system.point[z]) for z in system.states]).reshape(
            -1, *(1 for _ in states.shape[1:])
        )
        total = np.full(states.shape[1:], self.offset)
        index = [system.states.index(z) for z in self.gradient]
        way = states - still
        slope = _numeric(system.states, list(self.gradient.values()))
        for t, weight in zip((_NODES + 1) / 2, _WEIGHTS / 2, strict=True):
            total = total + weight * np.sum(slope(still + t * way) * way[index], axis=0)
        return total


def evaluated(symbols: Any, expressions: list[Any], states: Any) -> Any:
    """Numbers of some expressions, shape (expressions, ...), at states of shape (n, ...)."""
    return _numeric(symbols, expressions)(np.asarray(states, float))


def _numeric(symbols: Any, expressions: list[Any]) -> Callable[[Any], Any]:
    """The function from states of shape (n, ...) to numbers of the expressions."""
    function = lambdify(symbols, [unfold(f) for f in expressions], "numpy", cse=True)
    return lambda at: np.array(
        [np.broadcast_to(np.asarray(f, float), at.shape[1:]) for f in function(*at)]
    )


def penalty_of(law: Law) -> tuple[Any, Any]:
    """(k, v): gain and delay penalty of a law of the form x' = k x (U' - v(e) - e')."""
    gain, penalty = (getattr(law, name, None) for name in ("gain", "penalty"))
    if gain is None or penalty is None:
        raise Unsupported(
            f"{law.name} declares no gain and penalty, which this storage function is made of; "
            "give a formula by storage(formula)"
        )
    return gain, penalty


def steepest(system: UndelayedSystem) -> float:
    """alpha of (46) [1/s]: the largest slope of any user's penalty at any delay it can see."""
    slopes = []
    for name, spec in ((n, system.net.flows[n]) for n in system.rate):
        law = spec.law
        _, v = penalty_of(law)
        (kink,) = [s for s in law.switches if s.has(e)] or [None]
        slope = (
            unfold(v).diff(e).replace(Heaviside, lambda *step: Integer(1))
        )  # on the branch where it rises
        # On its rising branch it is steepest where it starts, at the threshold or at the
        # propagation delay.
        start = float((e - kink).subs(dict(system.constants[name]))) if kink is not None else 0.0
        first = max(start, system.net.propagation_delay(name))
        grid = first + np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 400)])
        values = lambdify(e, slope.subs(dict(system.constants[name])), "numpy")(grid)
        slopes.append(float(np.max(values)))
    return max(slopes)


def paper_storage(
    system: UndelayedSystem, *, alpha: float | None = None, literal: bool = False
) -> Storage:
    """V_user + V_link of equations (28) and (29) of the LDCC paper.

    Parameters
    ----------
    system : UndelayedSystem
        With LDCC flows, the gain held: ``undelayed(net, held=("k",))``.
    alpha : float, optional
        The largest slope of the penalties [1/s]; by default `steepest`.
    literal : bool
        As printed, with the delays d in (29) instead of their deviations: then V is not zero at an
        equilibrium at which a link is not saturated.
    """
    alpha = steepest(system) if alpha is None else float(alpha)
    gradient: dict[Symbol, Expr] = {}
    for name, rate in system.rate.items():
        k, _ = penalty_of(system.net.flows[name].law)
        still, gain = rate.subs(dict(system.point)), _at_rest(system, name, k)
        gradient[rate] = (rate - still) / (rate * gain * alpha)
    offset = 0.0
    for name, q in system.queue.items():
        capacity = Float(system.capacity[name], DIGITS)
        spare = (
            0
            if system.rest.saturated.sel(link=name)
            else capacity - system.arrival[name].subs(dict(system.point))
        )
        gradient[q] = capacity * (q - system.point[q]) + spare / alpha
        if literal:
            offset += float(spare / alpha * (system.net.links[name].delay + system.point[q]))
    return Storage(f"(28) + (29){' as printed' if literal else ''}", gradient, offset)


def _at_rest(system: UndelayedSystem, name: str, expr: Expr) -> Expr:
    return system.of_flow(name, expr).subs(dict(system.point))


def repaired_storage(system: UndelayedSystem) -> Storage:
    """V* = sum of the integrals of (z - x^)/z dz, plus c times that of k(s) (v(s) - v^) ds.

    For users with the same k and v, on one link that is saturated: then V*' <= 0 everywhere; k may
    depend on the delay.

    Raises
    ------
    Unsupported
        If there are several links, or users whose gain or penalty differs.
    """
    if len(system.queue) != 1 or len(system.arrival) != 1:
        raise Unsupported(f"V* is for one link; this network has {len(system.arrival)}")
    ((link, q),) = system.queue.items()
    gradient: dict[Symbol, Expr] = {}
    common: set[Expr] = set()
    for name, rate in system.rate.items():
        k, v = (system.of_flow(name, f) for f in penalty_of(system.net.flows[name].law))
        price = k * (v - v.subs(dict(system.point)))
        common.add(price.evalf(12))
        gradient[rate] = (rate - rate.subs(dict(system.point))) / rate
    if len(common) != 1:
        raise Unsupported(
            "V* is for users with the same gain and penalty; those of this network differ (by "
            "eta, beta, T, or a delay)"
        )
    gradient[q] = Float(system.capacity[link], DIGITS) * price
    return Storage("V*", gradient)


# --- is a candidate a Lyapunov function? Its signs at the equilibrium -----------------------------


ROUNDING = 1e-12
"""V' counts as positive above this, relative to the sum of its terms' sizes; it is computed in
50 digits.
"""
_MADE: dict[type, str] = {
    UndelayedSystem: "an undelayed network: fluidcc.undelayed(net)",
    Storage: "a candidate, such as system.paper_storage() or system.storage(formula)",
}
_LOOKED_AT = 20  # samples that are computed in 50 digits


@dataclass(frozen=True)
class StorageReport:
    """What became of a candidate storage function.

    Attributes
    ----------
    name : str
        Of the candidate.
    positive_definite, decreasing : bool
        Whether V > V(equilibrium) = 0 elsewhere, and V' <= 0, at every state that was tried.
    why : str
        What fails, in words, or what was tried.
    counterexample : mapping of str to float
        A state (by name, SI units) at which V' > 0, or else V <= 0; empty if none was found.
    rate : float
        V' there, relative to the sum of the sizes of its terms (between -1 and 1); the largest
        found otherwise.
    curvature, dissipation : ndarray
        Eigenvalues of the quadratic forms of V and of V' at the equilibrium, over the states that
        can move both ways, each scaled by its equilibrium value.
    tried : int
        Number of states.
    """

    name: str
    positive_definite: bool
    decreasing: bool
    why: str
    counterexample: Mapping[str, float] = field(default_factory=dict)
    rate: float = 0.0
    curvature: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    dissipation: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    tried: int = 0

    def __bool__(self) -> bool:
        return self.positive_definite and self.decreasing

    def __repr__(self) -> str:
        verdict = "no counterexample" if self else "no Lyapunov function"
        return f"{self.name}: {verdict} ({self.why})"

    def _repr_html_(self) -> str:
        state = ", ".join(f"{name} = {value:.6g}" for name, value in self.counterexample.items())
        rows = (
            ("positive definite", "yes" if self.positive_definite else "no"),
            ("V' \u2264 0", f"at all {self.tried} states tried" if self.decreasing else "no"),
            ("because", self.why),
            ("counterexample", state or "none found"),
            ("V' there, of its terms' sizes", f"{self.rate:.3g}"),
            ("eigenvalues of V''", ", ".join(f"{v:.3g}" for v in self.curvature)),
            ("eigenvalues of V' to second order", ", ".join(f"{v:.3g}" for v in self.dissipation)),
        )
        return in_html(rows, (self.name,))


@explained
def check_storage(
    system: UndelayedSystem,
    storage: Storage,
    *,
    samples: int = 4096,
    seed: int = 0,
    spread: float = 100.0,
) -> StorageReport:
    """Look for a state at which a candidate is not positive, or grows.

    Parameters
    ----------
    system : UndelayedSystem
        From `fluidcc.undelayed`.
    storage : Storage
        The candidate.
    samples : int
        Sobol points over the states, best a power of two; as many again near the equilibrium.
    seed : int
        Of their scrambling.
    spread : float
        Positive states range from their equilibrium over this to times this; queues from empty to
        ten times theirs.

    Returns
    -------
    StorageReport
        Without a counterexample it is evidence, not a proof.

    Raises
    ------
    InvalidInput
        If an argument is no such thing.
    """
    for what, value, kind in (("system", system, UndelayedSystem), ("storage", storage, Storage)):
        if not isinstance(value, kind):
            raise InvalidInput(f"{what} is {shown(value)}; give {_MADE[kind]}")
    samples, seed = whole(samples, "samples", least=2, most=2**24), whole(seed, "seed")
    spread = number(spread, "spread", "a factor above 1", above=1.0)
    states = _states(system, samples, seed, spread)
    curvature, dissipation = _local(system, storage)
    positive, where = _positive(system, storage, states)
    rate, worst = _largest_rate(system, storage, states, spread)
    decreasing = rate <= ROUNDING
    why = _reasons(system, storage, positive, decreasing, dissipation, states.shape[1])
    found = worst if not decreasing else where
    names = [plain(z) for z in system.states]
    example = {} if found is None else dict(zip(names, map(float, found), strict=True))
    return StorageReport(
        storage.name,
        positive,
        decreasing,
        why,
        example,
        rate,
        curvature,
        dissipation,
        states.shape[1],
    )


def _states(system: UndelayedSystem, samples: int, seed: int, spread: float) -> Any:
    """(n, 2 samples): over the whole range, and around the equilibrium at distances over many
    decades.
    """
    from scipy.stats import qmc

    n = len(system.states)
    still = np.array([float(system.point[z]) for z in system.states])
    unit = qmc.Sobol(n + 1, seed=seed).random(2 * samples).T
    far, near = unit[:n, :samples], unit[:, samples:]
    queue = np.array([z in system.floors for z in system.states])
    scale = np.where(still > 0, still, np.max(still[queue], initial=1e-3))
    wide = np.where(
        queue[:, None], 10 * scale[:, None] * far, scale[:, None] * spread ** (2 * far - 1)
    )
    step = 10.0 ** (-4 + 3.5 * near[n]) * (2 * near[:n] - 1)
    close = np.maximum(
        still[:, None] + scale[:, None] * step, np.where(queue, 0.0, 1e-9 * scale)[:, None]
    )
    return np.concatenate([wide, close], axis=1)


def _relative_rate(system: UndelayedSystem, storage: Storage, states: Any) -> Any:
    terms = evaluated(system.states, storage.terms(system), states)
    size = np.sum(np.abs(terms), axis=0)
    return np.divide(np.sum(terms, axis=0), size, out=np.zeros_like(size), where=size > 0)


def _largest_rate(
    system: UndelayedSystem, storage: Storage, states: Any, spread: float
) -> tuple[float, Any]:
    """The largest relative V' found, and where: the best samples, climbed from, and then looked
    at in 50 digits.
    """
    from scipy.optimize import minimize

    rates = _relative_rate(system, storage, states)
    terms = storage.terms(system)
    function = lambdify(system.states, terms, "numpy", cse=True)
    queue = np.array([z in system.floors for z in system.states])
    scale = np.array([max(abs(float(system.point[z])), 1e-3) for z in system.states])

    def back(u: Any) -> Any:
        return scale * np.where(
            queue, np.minimum(u**2, 10.0), np.exp(np.clip(u, -np.log(spread), np.log(spread)))
        )

    def loss(u: Any) -> float:
        parts = np.array(function(*back(u)), float)
        size = float(np.sum(np.abs(parts)))
        return -float(np.sum(parts)) / size if size > 0 else 0.0

    order = np.argsort(rates)[::-1]
    found = [states[:, i] for i in order[:_LOOKED_AT]]
    for i in order[:3]:
        z = states[:, i] / scale
        start = np.where(queue, np.sqrt(np.maximum(z, 0)), np.log(np.maximum(z, 1e-9)))
        climbed = minimize(
            loss, start, method="Nelder-Mead", options={"maxiter": 200 * len(start), "maxfev": 800}
        )
        found.append(back(climbed.x))
    precise = lambdify(system.states, terms, "mpmath")
    exact = [(_exactly(precise, z), z) for z in found]
    return max(exact, key=lambda pair: pair[0])


def _exactly(terms: Callable[..., Any], state: Any) -> float:
    """The relative V' at a state, in 50 digits: next to the equilibrium, doubles leave nothing
    but rounding.
    """
    with mpmath.workdps(DIGITS):
        parts = terms(*(mpmath.mpf(float(v)) for v in state))
        size = sum(abs(v) for v in parts)
        return float(sum(parts) / size) if size else 0.0


def _positive(system: UndelayedSystem, storage: Storage, states: Any) -> tuple[bool, Any]:
    """Whether V > 0 away from the equilibrium and 0 there; if not, where not."""
    still = np.array([float(system.point[z]) for z in system.states])
    values = storage.values(system, states)
    distance = np.max(
        np.abs(states - still[:, None]) / np.maximum(np.abs(still), 1e-9)[:, None], axis=0
    )
    known = {system.states.index(z) for z in storage.gradient}
    scale = float(np.max(np.abs(values))) or 1.0
    wrong = (values <= -1e-12 * scale) & (distance > 1e-6)
    if abs(storage.offset) > 1e-12 * scale:
        return False, still
    if len(known) < len(system.states):
        other = still.copy()
        missing = next(i for i in range(len(still)) if i not in known)
        other[missing] = 2 * other[missing] + 1e-3
        return False, other
    if np.any(wrong):
        return False, states[:, int(np.argmin(values))]
    return True, None


def _local(system: UndelayedSystem, storage: Storage) -> tuple[Any, Any]:
    """Eigenvalues of the forms of V and V' at the equilibrium: with g' = H and f' = J they are H
    and HJ + (HJ)^T.
    """
    still = {z: float(system.point[z]) for z in system.states}
    moving = [z for z in system.states if z not in system.floors or still[z] > system.floors[z]]
    gradient = Matrix([unfold(storage.gradient.get(z, 0)) for z in moving])
    flow = Matrix([system.flow[z] for z in moving])
    scale = np.diag([max(abs(still[z]), 1e-300) for z in moving])
    H, J = (
        np.array(lambdify(system.states, M.jacobian(moving), "numpy")(*still.values()), float)
        for M in (gradient, flow)
    )
    form = H @ J
    own, dissipated = (np.linalg.eigvalsh(scale @ (M + M.T) @ scale / 2) for M in (H, form))
    return own, dissipated


def _reasons(
    system: UndelayedSystem,
    storage: Storage,
    positive: bool,
    decreasing: bool,
    dissipation: Any,
    tried: int,
) -> str:
    said = []
    if not positive:
        if storage.offset:
            said.append(f"V is {storage.offset:.4g} at the equilibrium, not zero")
        else:
            said.append("V is not positive away from the equilibrium")
    if not decreasing:
        top = float(np.max(dissipation, initial=0.0))
        indefinite = top > 1e-9 * float(np.max(np.abs(dissipation), initial=1.0))
        said.append(
            "V' > 0 at a state"
            + (", as its quadratic form at the equilibrium is indefinite" * indefinite)
        )
    if not said:
        said.append(f"V > 0 and V' <= 0 at {tried} states")
    return "; ".join(said)


# --- local stability without delays, by positive realness of each user --------------------


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
        """Whether it does; if not, nothing is said."""
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


def passivity(net: Network, at: float | Equilibrium | Point = math.inf) -> PassivityReport:
    """Test each user of a network for positive realness, over frequency and by the KYP inequality.

    Parameters
    ----------
    net : Network
        Whose links answer by their queueing delay.
    at : float, Equilibrium or Point
        As in `fluidcc.linearize`, or the operating point itself.

    Raises
    ------
    Unsupported
        If its links answer otherwise, or a law hears its own past.
    """
    from fluidcc.numerics.linear.positive_real import kyp, positive_real

    loop = local_loop(at if isinstance(at, Point) else operating_point(net, at))
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
