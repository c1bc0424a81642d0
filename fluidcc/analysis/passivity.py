"""Is a candidate a Lyapunov function? Its signs at the equilibrium, and a search for counterexamples over states."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from sympy import Matrix, lambdify

from fluidcc.analysis.storage import Storage, evaluated
from fluidcc.analysis.undelayed import DIGITS, Undelayed
from fluidcc.base.arguments import explained, number, shown, whole
from fluidcc.base.errors import InvalidInput
from fluidcc.symbols import plain, unfold

__all__ = ["StorageReport", "check_storage"]

ROUNDING = 1e-12
"""V' counts as positive above this, relative to the sum of its terms' sizes; it is computed in 50 digits."""
_MADE: dict[type, str] = {
    Undelayed: "an undelayed network: fluidcc.undelayed(net)",
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
        V' there, relative to the sum of the sizes of its terms (between -1 and 1); the largest found otherwise.
    curvature, dissipation : ndarray
        Eigenvalues of the quadratic forms of V and of V' at the equilibrium, over the states that can move both ways,
        each scaled by its equilibrium value.
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
        left = "style='text-align:left'"
        body = "".join(f"<tr><th {left}>{html.escape(k)}</th><td {left}>{html.escape(v)}</td></tr>" for k, v in rows)
        return f"<h4>{html.escape(self.name)}</h4><table>{body}</table>"


@explained
def check_storage(
    system: Undelayed, storage: Storage, *, samples: int = 4096, seed: int = 0, spread: float = 100.0
) -> StorageReport:
    """Look for a state at which a candidate is not positive, or grows.

    Parameters
    ----------
    system : Undelayed
        From `fluidcc.undelayed`.
    storage : Storage
        The candidate.
    samples : int
        Sobol points over the states, best a power of two; as many again near the equilibrium.
    seed : int
        Of their scrambling.
    spread : float
        Positive states range from their equilibrium over this to times this; queues from empty to ten times theirs.

    Returns
    -------
    StorageReport
        Without a counterexample it is evidence, not a proof.

    Raises
    ------
    InvalidInput
        If an argument is no such thing.
    """
    for what, value, kind in (("system", system, Undelayed), ("storage", storage, Storage)):
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
        storage.name, positive, decreasing, why, example, rate, curvature, dissipation, states.shape[1]
    )


def _states(system: Undelayed, samples: int, seed: int, spread: float) -> Any:
    """(n, 2 samples): over the whole range, and around the equilibrium at distances over many decades."""
    from scipy.stats import qmc

    n = len(system.states)
    still = np.array([float(system.point[z]) for z in system.states])
    unit = qmc.Sobol(n + 1, seed=seed).random(2 * samples).T
    far, near = unit[:n, :samples], unit[:, samples:]
    queue = np.array([z in system.floors for z in system.states])
    scale = np.where(still > 0, still, np.max(still[queue], initial=1e-3))
    wide = np.where(queue[:, None], 10 * scale[:, None] * far, scale[:, None] * spread ** (2 * far - 1))
    step = 10.0 ** (-4 + 3.5 * near[n]) * (2 * near[:n] - 1)
    close = np.maximum(still[:, None] + scale[:, None] * step, np.where(queue, 0.0, 1e-9 * scale)[:, None])
    return np.concatenate([wide, close], axis=1)


def _relative_rate(system: Undelayed, storage: Storage, states: Any) -> Any:
    terms = evaluated(system.states, storage.terms(system), states)
    size = np.sum(np.abs(terms), axis=0)
    return np.divide(np.sum(terms, axis=0), size, out=np.zeros_like(size), where=size > 0)


def _largest_rate(system: Undelayed, storage: Storage, states: Any, spread: float) -> tuple[float, Any]:
    """The largest relative V' found, and where: the best samples, climbed from, and then looked at in 50 digits."""
    from scipy.optimize import minimize

    rates = _relative_rate(system, storage, states)
    terms = storage.terms(system)
    function = lambdify(system.states, terms, "numpy", cse=True)
    queue = np.array([z in system.floors for z in system.states])
    scale = np.array([max(abs(float(system.point[z])), 1e-3) for z in system.states])

    def back(u: Any) -> Any:
        return scale * np.where(queue, np.minimum(u**2, 10.0), np.exp(np.clip(u, -np.log(spread), np.log(spread))))

    def loss(u: Any) -> float:
        parts = np.array(function(*back(u)), float)
        size = float(np.sum(np.abs(parts)))
        return -float(np.sum(parts)) / size if size > 0 else 0.0

    order = np.argsort(rates)[::-1]
    found = [states[:, i] for i in order[:_LOOKED_AT]]
    for i in order[:3]:
        z = states[:, i] / scale
        start = np.where(queue, np.sqrt(np.maximum(z, 0)), np.log(np.maximum(z, 1e-9)))
        climbed = minimize(loss, start, method="Nelder-Mead", options={"maxiter": 200 * len(start), "maxfev": 800})
        found.append(back(climbed.x))
    precise = lambdify(system.states, terms, "mpmath")
    exact = [(_exactly(precise, z), z) for z in found]
    return max(exact, key=lambda pair: pair[0])


def _exactly(terms: Callable[..., Any], state: Any) -> float:
    """The relative V' at a state, in 50 digits: next to the equilibrium, doubles leave nothing but rounding."""
    with mpmath.workdps(DIGITS):
        parts = terms(*(mpmath.mpf(float(v)) for v in state))
        size = sum(abs(v) for v in parts)
        return float(sum(parts) / size) if size else 0.0


def _positive(system: Undelayed, storage: Storage, states: Any) -> tuple[bool, Any]:
    """Whether V > 0 away from the equilibrium and 0 there; if not, where not."""
    still = np.array([float(system.point[z]) for z in system.states])
    values = storage.values(system, states)
    distance = np.max(np.abs(states - still[:, None]) / np.maximum(np.abs(still), 1e-9)[:, None], axis=0)
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


def _local(system: Undelayed, storage: Storage) -> tuple[Any, Any]:
    """Eigenvalues of the forms of V and V' at the equilibrium: with g' = H and f' = J they are H and HJ + (HJ)^T."""
    still = {z: float(system.point[z]) for z in system.states}
    moving = [z for z in system.states if z not in system.floors or still[z] > system.floors[z]]
    gradient = Matrix([unfold(storage.gradient.get(z, 0)) for z in moving])
    flow = Matrix([system.flow[z] for z in moving])
    scale = np.diag([max(abs(still[z]), 1e-300) for z in moving])
    H, J = (
        np.array(lambdify(system.states, M.jacobian(moving), "numpy")(*still.values()), float) for M in (gradient, flow)
    )
    form = H @ J
    own, dissipated = (np.linalg.eigvalsh(scale @ (M + M.T) @ scale / 2) for M in (H, form))
    return own, dissipated


def _reasons(
    system: Undelayed, storage: Storage, positive: bool, decreasing: bool, dissipation: Any, tried: int
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
        said.append("V' > 0 at a state" + (", as its quadratic form at the equilibrium is indefinite" * indefinite))
    if not said:
        said.append(f"V > 0 and V' <= 0 at {tried} states")
    return "; ".join(said)
