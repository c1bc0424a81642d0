"""Conditions for stability from the literature, by name: whether they apply, hold, and how much
they give away.

All are about loops F = Gamma l(s) R_f diag(...) R_f^T(-s) with frozen delays;
`fluidcc.conditions.local` brings a network into that form. Margins are factors by which the gain
may grow until a condition fails, so that a margin below 1 means that it fails already.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.operating import operating_point
from fluidcc.analysis.point import OperatingPoint
from fluidcc.base.errors import UnknownName, Unsupported
from fluidcc.base.tables import InTable, in_html
from fluidcc.conditions.local import LocalLoop, local_loop
from fluidcc.network.patterns import near

if TYPE_CHECKING:
    from fluidcc.equilibria.result import Equilibrium
    from fluidcc.network import Network
    from fluidcc.numerics.linear.dlti import DelayLTI

JOHARI_TAN, DISCRETE, VINNICOMBE, PAGANINI = (
    "Johari-Tan",
    "Johari-Tan, discrete",
    "Vinnicombe",
    "Paganini",
)


def lag_gains(loop: LocalLoop) -> list[tuple[str, str, float, str]]:
    """What each condition holds against pi/2.

    Users are one integral or lag on links that answer at once, or static on links that integrate.
    Delays may differ.

    - "Johari-Tan": proved by its authors for one delay and conjectured for several, proved for
      these by Vinnicombe.
    - "Johari-Tan, discrete" is for rates that change once a step, the shortest round-trip time:
      with D steps of delay the gain times step is to stay below 2 sin(pi/(4 D + 2)). Proved by its
      authors for one delay, conjectured for several and proved for these by Tian. In short: with
      half the angle h at the bound every user's curve obeys Re z - (2h/pi) cot(h) Im z >= -1, so
      that no hull of them reaches beyond -1. Its value is scaled to pi/2.
    - "Vinnicombe" replaces the largest row sum of "Johari-Tan" by the spectral radius, which is at
      most that.
    - "Paganini": proved for any delays, as its static users scale their gain by their own
      round-trip time.

    Returns
    -------
    list of (str, str, float, str)
        Name, why it does not apply (or ""), the value, and what it is.
    """
    named = list(zip(loop.labels, loop.laws, strict=True))
    reasons = [
        "its links integrate" if loop.integrates else "",
        next(
            (f"flow {l!r} is not one integral or lag" for l, law in named if not _is_lag(law)), ""
        ),
    ]
    integral = next(
        (
            f"flow {l!r} has a pole of its own, and no integral"
            for l, law in named
            if np.any(law[0])
        ),
        "",
    )
    static = [
        "" if loop.integrates else "its links answer at once, without an integral",
        next((f"flow {l!r} has dynamics of its own, which the condition has not"
              for l, law in named if len(law[0]) or np.any(law[3][1:])), ""),
    ]  # fmt: skip
    own, gain = own_and_gain(loop, any(static))
    total = loop.gamma * (loop.route @ (loop.count * loop.x))
    rate = own + gain * (loop.route.T @ total)
    most = float(np.max(loop.trip * rate))
    M = (
        loop.route.T * loop.gamma
    ) @ loop.route  # per user, from user: how much of its rate each link shows
    nonnegative = (loop.trip * gain)[:, None] * M * (loop.count * loop.x) + np.diag(loop.trip * own)
    radius = float(np.max(np.abs(np.linalg.eigvals(nonnegative)))) if not any(reasons) else math.nan
    step = float(loop.trip.min())
    held = np.ceil(loop.trip / step * (1 - 1e-12))
    stepped = float(np.max(rate * step / (2 * np.sin(np.pi / (4 * held + 2))))) * math.pi / 2
    rows = (
        (JOHARI_TAN, reasons, most, "largest RTT times gain"),
        (
            DISCRETE,
            [*reasons, integral],
            stepped,
            f"in steps of {step:.4g} s, step times gain over its bound is",
        ),
        (VINNICOMBE, reasons, radius, "spectral radius of RTT times gain"),
        (PAGANINI, static, most, "largest RTT times gain"),
    )
    return [
        (name, " and ".join(v for v in why if v), value, text) for name, why, value, text in rows
    ]


def _is_lag(law: Any) -> bool:
    A, B, C, D = law
    if len(A) != 1 or np.any(D) or B[1][0] != 0:
        return False
    return bool(A[0, 0] <= 0 and -C[0] * B[0][0] >= 0 and -B[2][0] * C[0] >= 0)


def own_and_gain(loop: LocalLoop, lag: bool) -> tuple[Any, Any]:
    """Of each user, from its own past rate and from its signal over its rate [1/s]."""
    own, gain = np.zeros((2, len(loop.x)))
    for k, (A, B, C, D) in enumerate(loop.laws):
        if lag and len(A):
            own[k], gain[k] = -B[2][0] * C[0], -C[0] * B[0][0] / loop.x[k]
        elif not lag:
            gain[k] = -D[0] / loop.x[k]
    return own, gain


# --- where the users' loops, and the convex hull of them, meet the negative real axis ------


_POINTS, _TURNS, _ZOOMS, _CELLS = 600, 4000, 12, 6
_PAIRS = 500_000  # of points, looked at in one go


def _grid(loop: LocalLoop) -> NDArray[np.float64]:
    """Frequencies [rad/s] from below every pole to where every loop has turned many times and
    shrunk.
    """
    slow = [abs(v) for A, _, _, _ in loop.laws if len(A) for v in np.linalg.eigvals(A) if v != 0]
    low = 1e-3 * min([1 / loop.trip.max(), *slow])
    high = 8 * np.pi / loop.trip.min()
    step = max(0.1 / loop.trip.max(), high / _TURNS)
    return np.unique(
        np.concatenate([np.geomspace(low, high, _POINTS), np.arange(step, high, step)])
    )


def crossings(loop: LocalLoop) -> tuple[NDArray[np.float64], list[list[tuple[float, int]]]]:
    """Where each G_r crosses the negative real axis.

    Returns
    -------
    reach : ndarray (classes,)
        The largest -Re G_r there; 0 if it never does.
    found : list of list of (float, int)
        Every crossing: -Re G_r, and +1 if it enters the upper half plane as the frequency grows,
        else -1.
    """
    from scipy.optimize.elementwise import find_root

    omega = _grid(loop)
    G = loop.user(1j * omega)
    turned = (np.sign(G[:, :-1].imag) != np.sign(G[:, 1:].imag)) & (G[:, :-1].real < 0)
    users, cells = np.nonzero(turned)
    met = find_root(
        lambda w, k: loop.user_at(k, 1j * w).imag, (omega[cells], omega[cells + 1]), args=(users,)
    ).x
    reach = -loop.user_at(users, 1j * met).real
    signs = np.where(G[users, cells + 1].imag > 0, 1, -1)
    found: list[list[tuple[float, int]]] = [[] for _ in G]
    for k, value, sign in zip(users.tolist(), reach.tolist(), signs.tolist(), strict=True):
        if value > 0:
            found[k].append((value, sign))
    return np.array([max((v for v, _ in points), default=0.0) for points in found]), found


def passes(points: list[tuple[float, int]], hops: int) -> bool:
    """Whether a loop with these crossings does not encircle -1/hops: as many ways in as out,
    left of it.
    """
    return sum(sign for value, sign in points if value * hops >= 1) == 0


def hull_reach(loop: LocalLoop) -> tuple[float, float]:
    """The largest h with -h in rho(R~ R~*) co(0, G_1, ..., G_R) at a frequency, and that frequency
    [rad/s].

    Between two neighbouring frequencies the hull of both is taken, which contains a crossing that
    happens in between; the cells that reach furthest are cut until that no longer matters.
    """
    omega = _grid(loop)
    G = loop.user(1j * omega)
    # No hull that is on one side of the axis, or right of zero, reaches it.
    above, left = G.imag > 0, G.real < 0
    meets = np.flatnonzero(_pairs(above.any(axis=0)) & _pairs(~above.all(axis=0))
                           & _pairs(left.any(axis=0)))  # fmt: skip
    low, high = omega[meets], omega[meets + 1]
    for zoom in range(_ZOOMS + 1):
        if zoom:
            cuts = np.linspace(low, high, 9).T
            low, high = cuts[:, :-1].ravel(), cuts[:, 1:].ravel()
        reach = _hull_cells(loop, low, high)
        keep = np.argsort(reach)[::-1][:_CELLS]
        low, high, reach = low[keep], high[keep], reach[keep]
    return (float(reach[0]), float(low[0])) if len(reach) else (0.0, 0.0)


def _pairs(points: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of neighbours, whether either is so."""
    return np.asarray(points[:-1] | points[1:])


def _hull_cells(loop: LocalLoop, left: Any, right: Any) -> Any:
    """Reach of the hull over each cell [left, right]."""
    found = []
    for a, b in zip(*(np.array_split(end, 1 + len(left) * len(loop.x) ** 2 // _PAIRS)
                      for end in (left, right)), strict=True):  # fmt: skip
        G = np.concatenate([loop.user(1j * a), loop.user(1j * b)])
        found.append(np.maximum(loop.radius(a), loop.radius(b)) * _axis_reach(G))
    return np.concatenate(found)


def _axis_reach(z: Any) -> Any:
    """How far left on the real axis the hull of 0 and the points z (points, cells) reaches."""
    above, below = np.maximum(z.imag, 0), np.maximum(-z.imag, 0)
    u, d = above[:, None], below[None]
    total = u + d
    weight = np.where((u > 0) & (d >= 0) & (total > 0) & (z.imag[None] <= 0), 1.0, 0.0)
    meets = np.divide(
        z.real[:, None] * d + z.real[None] * u, total, out=np.zeros_like(total), where=total > 0
    )
    return np.maximum(np.max(-meets * weight, axis=(0, 1)), 0.0)


# --- conditions for stability from the literature -------------------------------------------------


Met = tuple[NDArray[np.float64], list[list[tuple[float, int]]]]
"""What `crossings` finds."""

RULE, HULL, DIVIDED = "-1/M rule", "convex hull", "eta divided by M"
_ABOUT = {
    RULE: (False, "LDCC, after (39): every G_r passes -1/M"),
    HULL: (True, "LDCC (39), with the exact spectral radius (Vinnicombe 2000)"),
    DIVIDED: (False, "LDCC, after (43): the gain of one link, divided by M"),
    JOHARI_TAN: (
        True,
        "Johari and Tan, IEEE/ACM ToN 9(6), 2001; for several delays proved by Vinnicombe, IFAC "
        "2002",
    ),
    DISCRETE: (
        True,
        "Johari and Tan 2001, rates that change once a step: gain times step below 2 sin(pi/(4 D "
        "+ 2)); for several delays proved by Tian, 'A general stability criterion for congestion "
        "control with diverse communication delays', Automatica 41(7), 2005; the argument in "
        "short is in fluidcc.conditions.sufficient",
    ),
    VINNICOMBE: (True, "Vinnicombe, IFAC 2002, with the exact spectral radius"),
    PAGANINI: (True, "Paganini, Doyle and Low, CDC 2001: gain times RTT below pi/2"),
}
"""Of each condition, whether it is a theorem, and where it is from."""


@dataclass(frozen=True)
class Condition(InTable):
    """One condition.

    Attributes
    ----------
    name, ref : str
        Which it is, and where it is from.
    applies : bool
        Whether the network has the form that it is about; `why` says why not.
    holds : bool
        Whether it is fulfilled; False where it does not apply.
    margin : float
        Factor by which the loop gain may grow until it fails; nan where it does not apply.
    conservatism : float
        The exact gain margin over this one: above 1, that much gain is given away; below 1, the
        condition promises what is not so. nan where unknown.
    theorem : bool
        Whether it is a theorem for frozen delays; the papers' rules of thumb are not.
    why : str
        The numbers behind it, or why it does not apply.
    """

    name: str
    applies: bool
    holds: bool
    margin: float
    conservatism: float
    theorem: bool
    why: str
    ref: str

    _shown = ("name", "applies", "holds", "margin", "conservatism", "theorem", "why", "ref")


@dataclass(frozen=True)
class Conditions(Sequence[Condition]):
    """All conditions, by position or by name; shown as a table."""

    conditions: tuple[Condition, ...]

    @overload
    def __getitem__(self, key: int | str) -> Condition: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Condition]: ...
    def __getitem__(self, key: int | str | slice) -> Condition | Sequence[Condition]:
        """The condition of that position or name."""
        if isinstance(key, str):
            for found in self.conditions:
                if found.name == key:
                    return found
            raise UnknownName(f"there is no condition {key!r}; {near(key, [v.name for v in self])}")
        return self.conditions[key]

    def __len__(self) -> int:
        return len(self.conditions)

    def __iter__(self) -> Iterator[Condition]:
        return iter(self.conditions)

    def __repr__(self) -> str:
        return "\n".join(f"{v.name}: {_verdict(v)} ({v.why})" for v in self)

    def _repr_html_(self) -> str:
        return in_html(map(_cells, self), _COLUMNS)


_COLUMNS = ("condition", "verdict", "gain margin", "exact over it", "theorem", "why", "source")


def _verdict(v: Condition) -> str:
    return "does not apply" if not v.applies else "holds" if v.holds else "fails"


def _cells(v: Condition) -> tuple[str, ...]:
    numbers = ("" if math.isnan(n) else f"{n:.4g}" for n in (v.margin, v.conservatism))
    return (v.name, _verdict(v), *numbers, "yes" if v.theorem else "no", v.why, v.ref)


def sufficient_conditions(
    net: Network,
    equilibrium: Equilibrium | float | OperatingPoint = math.inf,
    exact: float | None = None,
) -> Conditions:
    """Test a network against the conditions of the literature.

    Parameters
    ----------
    net : Network
        The network.
    equilibrium : Equilibrium, float or OperatingPoint
        Where; or the time [s] as in `fluidcc.equilibrium`; or the operating point itself.
    exact : float, optional
        The exact gain margin that the conditions are compared with; by default that of
        ``linearize(net, "open")``, that is with queues that conserve flow.

    Returns
    -------
    Conditions

    Raises
    ------
    NoEquilibrium, Unsupported, InvalidInput
        As `fluidcc.linearize`.
    """
    from fluidcc.analysis.linearize import LinearNetwork
    from fluidcc.analysis.wiring import apart, as_one, wire

    if isinstance(equilibrium, OperatingPoint):
        point = equilibrium
    else:
        point = operating_point(net, equilibrium)
    if exact is None:
        opened = as_one(apart(point, wire(point, "open")))
        exact = exact_margin(LinearNetwork.of(point, opened))
    try:
        loop = local_loop(point)
    except Unsupported as error:
        return Conditions(tuple(_no(name, str(error)) for name in _ABOUT))
    met = crossings(loop)
    found = [_rule(loop, met, exact), _hull(loop, exact), _divided(point, loop, met, exact)]
    return Conditions((*found, *_lags(loop, exact)))


def exact_margin(open_loop: DelayLTI) -> float:
    """Factor by which every gain may grow until the loop is unstable; below 1 if it is unstable
    now.
    """
    found = open_loop.margins()
    return float(found.gain_below if found.unstable else found.gain_above)


def _no(name: str, why: str) -> Condition:
    """A condition that does not apply."""
    return Condition(name, False, False, math.nan, math.nan, why=why, **_about(name))


def _yes(name: str, holds: bool, margin: float, exact: float, why: str) -> Condition:
    """A condition that applies."""
    worth = exact / margin if margin > 0 and math.isfinite(margin) else math.nan
    return Condition(name, True, holds, margin, worth, why=why, **_about(name))


def _about(name: str) -> dict[str, Any]:
    return dict(zip(("theorem", "ref"), _ABOUT[name], strict=True))


# --- the paper's ----------------------------------------------------------------------------------


def _for_queues(loop: LocalLoop) -> str:
    """Why the paper's rules do not apply, or ""."""
    if loop.signal == "queueing delay":
        return ""
    return f"it is about queues that answer by their delay; these links answer by {loop.signal}"


def _rule(loop: LocalLoop, met: Met, exact: float) -> Condition:
    if why := _for_queues(loop):
        return _no(RULE, why)
    return _every_user(RULE, loop, met, loop.hops, exact, f"-1/M = -1/{loop.hops}")


def _every_user(
    name: str, loop: LocalLoop, met: Met, hops: int, exact: float, lead: str
) -> Condition:
    """Whether every G_r passes -1/hops, by where it `met` the negative real axis."""
    reach, users = met
    holds = all(passes(points, hops) for points in users)
    if not np.any(reach):
        return _yes(name, holds, math.inf, exact, f"{lead}; no G_r crosses the negative real axis")
    worst = int(np.argmax(reach))
    # Of a user that passes: the gain at which its nearest crossing reaches the point.
    inside = [v for points in users for v, _ in points if v * hops < 1 or not holds]
    margin = 1 / (hops * max(inside)) if inside else math.inf
    return _yes(
        name,
        holds,
        margin,
        exact,
        f"{lead}; G of {loop.labels[worst]} crosses the axis at {-reach[worst]:.4g}",
    )


def _hull(loop: LocalLoop, exact: float) -> Condition:
    if why := _unstable_alone(loop):
        return _no(HULL, why)
    reach, omega = hull_reach(loop)
    if reach == 0:
        return _yes(HULL, True, math.inf, exact, "the hull never reaches the negative real axis")
    why = (
        f"the hull reaches {-reach:.4g} at {omega:.4g} rad/s, where rho = "
        f"{float(loop.radius([omega])[0]):.4g}"
    )
    return _yes(HULL, reach < 1, 1 / reach, exact, why)


def _unstable_alone(loop: LocalLoop) -> str:
    """Why crossings of the users' loops do not decide, or ""."""
    for k, (A, B, _, D) in enumerate(loop.laws):
        label = loop.labels[k]
        if np.any(np.linalg.eigvals(A).real > 0) if len(A) else False:
            return f"the law of flow {label!r} is unstable by itself"
        if np.any(B[2]) or D[2]:
            return (
                f"the law of flow {label!r} hears its own past rate, a second loop with a delay "
                "of its own"
            )
    return ""


def _divided(point: OperatingPoint, loop: LocalLoop, met: Met, exact: float) -> Condition:
    if why := _for_queues(loop):
        return _no(DIVIDED, why)
    for label, f in zip(loop.labels, point.classes, strict=True):
        if f.spec.law.gain is None:
            return _no(DIVIDED, f"the law of flow {label!r} has no gain eta")
    hops = loop.hops
    if hops > 1:
        loop = replace(loop, laws=[(A * hops, B * hops, C, D) for A, B, C, D in loop.laws])
        met = crossings(loop)
    return _every_user(DIVIDED, loop, met, 1, exact, f"-1, with eta times M = {hops}")


def _lags(loop: LocalLoop, exact: float) -> list[Condition]:
    found = []
    for name, why, value, text in lag_gains(loop):
        if why:
            found.append(_no(name, why))
        else:
            margin = math.pi / 2 / value if value > 0 else math.inf
            found.append(
                _yes(name, value < math.pi / 2, margin, exact, f"{text} {value:.4g} against pi/2")
            )
    return found
