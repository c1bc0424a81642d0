"""A network whose communication delays are negligible, z' = f(z), exact from the laws; and whether
a candidate is a Lyapunov function of it: its signs at the equilibrium, and a search for
counterexamples over states.

This is the system of Section IV-A of the LDCC paper: every rate reaches its links at once, and
every delay is heard at once. Propagation delays stay in the one-way delays that the laws see.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Float, Heaviside, Integer, Matrix, Symbol, lambdify

from fluidcc.base.arguments import explained, explained_class, number, shown, whole
from fluidcc.base.errors import InvalidInput, UnknownName, Unsupported
from fluidcc.base.tables import InTable, in_html
from fluidcc.equilibria.equilibrium import equilibrium
from fluidcc.laws import Law
from fluidcc.laws.steady import refuse_unsteady
from fluidcc.network.network import require_network
from fluidcc.network.patterns import near
from fluidcc.papers.ldcc.undelayed_system import DIGITS, UndelayedSystem, equations, numeric
from fluidcc.proofs.prove import prove
from fluidcc.symbols import Let, c, e, edot, expression, pi, plain, price, unfold, x_tau, y

if TYPE_CHECKING:
    from fluidcc.network.network import Network

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)


@dataclass(frozen=True)
class Storage(InTable):
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

    _shown = ("name", "gradient", "offset")

    @classmethod
    def of(cls, system: Undelayed, value: Any, name: str = "V") -> Storage:
        """The candidate with that formula in the states of the network.

        Raises
        ------
        InvalidInput
            If it contains other symbols.
        """
        value = expression(value, name)
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

    def terms(self, system: Undelayed) -> list[Expr]:
        """The terms g_z f_z of V' along the network's motion."""
        return [unfold(g) * system.flow[z] for z, g in self.gradient.items()]

    def values(self, system: Undelayed, states: Any) -> Any:
        """V at states of shape (n, ...)."""
        states = np.asarray(states, float)
        if self.value is not None:
            return evaluated(system.states, [self.value], states)[0]
        still = system.still.reshape(-1, *(1 for _ in states.shape[1:]))
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
    function = numeric(symbols, [unfold(f) for f in expressions])
    return lambda at: np.array(
        [np.broadcast_to(np.asarray(f, float), at.shape[1:]) for f in function(*at)]
    )


def penalty_of(law: Law) -> tuple[Any, Any]:
    """(k, v): gain and delay penalty of a law of the form x' = k x (U' - v(e) - e')."""
    gain, penalty = (getattr(law, name, None) for name in ("gain", "penalty"))
    if gain is None or penalty is None:
        raise Unsupported(
            f"{law.name} declares no gain and penalty, which this storage function is made of; "
            "give a formula by storage(formula), or take price_storage() where prices are heard"
        )
    return gain, penalty


def steepest(system: Undelayed) -> float:
    """alpha of (46) [1/s]: the largest slope of any user's penalty at any delay it can see."""
    if not system.rate:
        raise Unsupported("no flow of this network listens, so there is no user to have a storage")
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
    system: Undelayed, *, alpha: float | None = None, literal: bool = False
) -> Storage:
    """V_user + V_link of equations (28) and (29) of the LDCC paper.

    Parameters
    ----------
    system : Undelayed
        With LDCC flows, the gain held: ``undelayed(net, held=("k",))``.
    alpha : float, optional
        The largest slope of the penalties [1/s]; by default `steepest`.
    literal : bool
        As printed, with the delays d in (29) instead of their deviations: then V is not zero at an
        equilibrium at which a link is not saturated.
    """
    alpha = steepest(system) if alpha is None else number(alpha, "alpha", above=0)
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


def _at_rest(system: Undelayed, name: str, expr: Expr) -> Expr:
    return system.of_flow(name, expr).subs(dict(system.point))


def repaired_storage(system: Undelayed) -> Storage:
    """V* = sum of the integrals of (z - x^)/z dz, plus c times that of k(s) (v(s) - v^) ds.

    For users with the same k and v, on one link that is saturated: then V*' <= 0 everywhere; k may
    depend on the delay.

    Raises
    ------
    Unsupported
        If there are several links, or users whose gain or penalty differs.
    """
    if len(system.queue) != 1 or len(system.arrival) != 1:
        raise Unsupported(
            f"V* is for one link, which has a queue; of this network these are "
            f"{len(system.arrival)} and {len(system.queue)}. For links that ask for prices take "
            "price_storage()"
        )
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


def price_storage(system: Undelayed) -> Storage:
    """The storage of the primal (12), dual (13) and primal-dual (14) laws, as Wen and Arcak do it.

    For users of the form x' = b(x) (U'(x) - price), b > 0, it is the sum of the integrals of (z -
    x^)/b(z) dz; for links l' = s (y - c), whose price is l, it is the sum of (l - l^)^2/(2 s). A
    window in place of the rate is such a user too. Users and links without a state have none. Then
    V' is at most the sum of (x - x^) (U'(x) - U'(x^)), which is negative for every concave utility,
    whatever the routes are.

    Raises
    ------
    Unsupported
        If a law is not of that form, or its utility is not proved to be concave.
    """
    if system.queue:
        raise Unsupported(f"link {next(iter(system.queue))!r} answers by its queue; {_FORM}")
    gradient: dict[Symbol, Expr] = {}
    for name, rate in system.rate.items():
        law = system.net.flows[name].law
        sent = unfold(law.out["rate"])
        if not law.states:
            _require(law, "its rate falls with the price", sent.diff(price) < 0)
            continue
        z, *others = law.states
        flow = unfold(law.flow[z]).subs({x_tau: sent, pi: 0, edot: 0}).expand()
        gain = -flow.diff(price)
        if others or gain.has(price) or not gain or sent.has(price):
            raise Unsupported(f"{law.name} does not hear prices alone, in proportion; {_FORM}")
        marginal = (flow.subs(price, 0) / gain).simplify()
        _require(law, "its rate rises with its state", sent.diff(z) > 0)
        _require(law, "its gain is positive", gain > 0)
        _require(law, "its utility is concave", marginal.diff(z) < 0)
        (own,) = rate.free_symbols
        gradient[own] = (rate - rate.subs(dict(system.point))) / system.of_flow(name, gain)
    for name, spec in system.net.links.items():
        gradient |= _of_link(system, name, spec.law)
    return Storage("(12) to (14)", gradient)


_FORM = "this storage is for x' = b(x) (U'(x) - price) and l' = s (y - c) with the price l"


def _require(law: Law, what: str, relation: Any) -> None:
    if not prove(relation, where=[e > 0, y > 0]):
        raise Unsupported(f"{law.name}: that {what} is not proved; {_FORM}")


def _of_link(system: Undelayed, name: str, law: Law) -> dict[Symbol, Expr]:
    """The part of the gradient that belongs to a link."""
    asked = unfold(law.out.get("price", Integer(0)))
    if not law.states and asked.has(y) and "mark" not in law.out:
        _require(law, "the price rises with the load", asked.diff(y) > 0)
        return {}
    if asked not in law.states or len(law.states) > 1 or "mark" in law.out:
        raise Unsupported(f"link {name!r} ({law.name}) asks for another price; {_FORM}")
    slope = unfold(law.flow[asked]).diff(y)
    if slope.has(y) or (unfold(law.flow[asked]) - slope * (y - c)).simplify() != 0:
        raise Unsupported(f"link {name!r} ({law.name}) moves otherwise; {_FORM}")
    (state,) = (z for z in system.states if plain(z) == f"{plain(asked)}_{name}")
    numbers = {k: Float(v, DIGITS) for k, v in law.params.items()}
    gain = slope.subs({**numbers, c: Float(system.capacity[name], DIGITS), asked: state})
    return {state: (state - system.point[state]) / gain}


# --- is a candidate a Lyapunov function? Its signs at the equilibrium -----------------------------


ROUNDING = 1e-12
"""V' counts as positive above this, relative to the sum of its terms' sizes; it is computed in
50 digits.
"""
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
    system: Undelayed,
    candidate: Any,
    *,
    samples: int = 4096,
    seed: int = 0,
    spread: float = 100.0,
) -> StorageReport:
    """Look for a state at which a candidate is not positive, or grows.

    Parameters
    ----------
    system : Undelayed
        From `fluidcc.undelayed`.
    candidate : Storage or Expr
        From `Undelayed.storage`, `paper_storage` or `repaired_storage`, or the formula itself.
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
    if not isinstance(system, Undelayed):
        raise InvalidInput(
            f"system is {shown(system)}; give an undelayed network: fluidcc.undelayed(net)"
        )
    storage = system.storage(candidate) if isinstance(candidate, Expr) else candidate
    if not isinstance(storage, Storage):
        raise InvalidInput(
            f"storage is {shown(storage)}; give a candidate, such as system.paper_storage() or "
            "system.storage(formula)"
        )
    samples, seed = whole(samples, "samples", least=2, most=2**24), whole(seed, "seed")
    spread = number(spread, "spread", "a factor above 1", above=1.0)
    states = _states(system, samples, seed, spread)
    curvature, dissipation = _local(system, storage)
    wrong, where = _not_positive(system, storage, states)
    rate, worst = _largest_rate(system, storage, states, spread)
    why = [wrong] if wrong else []
    if rate > ROUNDING:
        where = worst
        indefinite = dissipation.max(initial=0.0) > 1e-9 * np.abs(dissipation).max(initial=0.0)
        form = ", as its quadratic form at the equilibrium is indefinite"
        why.append(f"V' > 0 at a state{form if indefinite else ''}")
    tried, names = states.shape[1], map(plain, system.states)
    return StorageReport(
        storage.name, not wrong, rate <= ROUNDING,
        "; ".join(why) or f"V > 0 and V' <= 0 at {tried} states",
        {} if where is None else dict(zip(names, map(float, where), strict=True)),
        rate, curvature, dissipation, tried,
    )  # fmt: skip


def _states(system: Undelayed, samples: int, seed: int, spread: float) -> Any:
    """(n, 2 samples): over the whole range, and around the equilibrium at distances over many
    decades.
    """
    from scipy.stats import qmc

    still, queue = system.still[:, None], system.bounded[:, None]
    n = len(still)
    unit = qmc.Sobol(n + 1, seed=seed).random(2 * samples).T
    far, near = unit[:n, :samples], unit[:, samples:]
    scale = np.where(still > 0, still, np.max(still[queue], initial=1e-3))
    wide = np.where(queue, 10 * scale * far, scale * spread ** (2 * far - 1))
    step = 10.0 ** (-4 + 3.5 * near[n]) * (2 * near[:n] - 1)
    close = np.maximum(still + scale * step, np.where(queue, 0.0, 1e-9 * scale))
    return np.concatenate([wide, close], axis=1)


def _largest_rate(
    system: Undelayed, storage: Storage, states: Any, spread: float
) -> tuple[float, Any]:
    """The largest V' found, relative to the sizes of its terms, and where: the best samples,
    climbed from, and then looked at in 50 digits, as next to the equilibrium doubles leave nothing
    but rounding.
    """
    from scipy.optimize import minimize

    terms = storage.terms(system)
    function = _numeric(system.states, terms)
    exact = lambdify(system.states, terms, "mpmath")
    queue, most = system.bounded, np.log(spread)
    scale = np.maximum(np.abs(system.still), 1e-3)

    def relative(states: Any) -> Any:
        parts = function(states)
        size = np.abs(parts).sum(axis=0)
        return parts.sum(axis=0) / np.where(size > 0, size, 1.0)

    def back(u: Any) -> Any:
        return scale * np.where(queue, np.minimum(u**2, 10.0), np.exp(np.clip(u, -most, most)))

    def precise(state: Any) -> float:
        parts = exact(*(mpmath.mpf(float(v)) for v in state))
        size = sum(abs(v) for v in parts)
        return float(sum(parts) / size) if size else 0.0

    order = np.argsort(relative(states))[::-1]
    found = [states[:, i] for i in order[:_LOOKED_AT]]
    for i in order[:3]:
        z = states[:, i] / scale
        start = np.where(queue, np.sqrt(np.maximum(z, 0)), np.log(np.maximum(z, 1e-9)))
        options = {"maxiter": 200 * len(start), "maxfev": 800}
        climbed = minimize(
            lambda u: -relative(back(u)), start, method="Nelder-Mead", options=options
        )
        found.append(back(climbed.x))
    with mpmath.workdps(DIGITS):
        return max(((precise(z), z) for z in found), key=lambda pair: pair[0])


def _not_positive(system: Undelayed, storage: Storage, states: Any) -> tuple[str, Any]:
    """What V lacks to be positive away from the equilibrium and 0 there, and where; or no text."""
    still = system.still
    values = storage.values(system, states)
    scale = float(np.max(np.abs(values))) or 1.0
    said = "V is not positive away from the equilibrium"
    if storage.offset:
        said = f"V is {storage.offset:.4g} at the equilibrium, not zero"
    if abs(storage.offset) > 1e-12 * scale:
        return said, still
    missing = [z not in storage.gradient for z in system.states]
    if any(missing):
        still[missing.index(True)] = 2 * still[missing.index(True)] + 1e-3
        return said, still
    distance = np.max(np.abs(states.T - still) / np.maximum(np.abs(still), 1e-9), axis=1)
    outwards, sizes = np.argsort(distance), np.empty_like(values)
    sizes[outwards] = np.maximum.accumulate(np.abs(values[outwards]))  # of V so far out, and nearer
    if np.any((values <= -1e-12 * sizes) & (distance > 1e-6)):
        return said, states[:, int(np.argmin(values))]
    return "", None


def _local(system: Undelayed, storage: Storage) -> tuple[Any, Any]:
    """Eigenvalues of the forms of V and V' at the equilibrium: with g' = H and f' = J they are H
    and HJ + (HJ)^T.
    """
    still = {z: float(system.point[z]) for z in system.states}
    moving = [z for z in system.states if z not in system.floors or still[z] > system.floors[z]]
    gradient = Matrix([unfold(storage.gradient.get(z, 0)) for z in moving])
    flow = Matrix([system.flow[z] for z in moving])
    scale = np.diag([max(abs(still[z]), 1e-300) for z in moving])
    H, J = (
        np.array(numeric(system.states, M.jacobian(moving))(*still.values()), float)
        for M in (gradient, flow)
    )
    form = H @ J
    own, dissipated = (np.linalg.eigvalsh(scale @ (M + M.T) @ scale / 2) for M in (H, form))
    return own, dissipated


# --- the network ----------------------------------------------------------------------------------


@explained_class
@dataclass(frozen=True, repr=False)
class Undelayed(UndelayedSystem):
    """The undelayed network, and the storage functions that are put to the test on it."""

    def storage(self, formula: Any, name: str = "V") -> Storage:
        """Make a candidate for a storage function of a formula in the states, as `Storage.of`
        does.
        """
        return Storage.of(self, formula, name)

    paper_storage = paper_storage
    repaired_storage = repaired_storage
    price_storage = price_storage
    check = check_storage


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
        If a buffer is full, a link drops before its queue, or a law has jumps, ticks or outputs
        that feed back at once.
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
    if not isinstance(held, Iterable):
        raise InvalidInput(f"held is {shown(held)}; give a name, or a list of names")
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
    for name, link in net.links.items():
        refuse_unsteady(link.law, f"link {name!r}")
    rest = equilibrium(net, at)
    if bool(rest.full.any()):
        full = next(str(name) for name in rest.full.link.values if bool(rest.full.sel(link=name)))
        raise Unsupported(
            f"the buffer of link {full!r} is full at the equilibrium, and without delays its "
            "loss would act at once; the undelayed network is for links with room in their "
            "buffers"
        )
    return Undelayed(**equations(net, at, rest, held))
