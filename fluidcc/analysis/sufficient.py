"""Conditions for stability from the literature, by name: whether they apply, hold, and how much they give away.

All are about loops F = Gamma l(s) R_f diag(...) R_f^T(-s) with frozen delays; `fluidcc.analysis.local` brings a network
into that form. Margins are factors by which the gain may grow until a condition fails, so that a margin below 1 means
that it fails already.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.lags import DISCRETE, JOHARI_TAN, PAGANINI, VINNICOMBE, lag_gains
from fluidcc.analysis.local import LocalLoop, local_loop
from fluidcc.analysis.nyquist import crossings, hull_reach, passes
from fluidcc.analysis.operating_point import Point, operating_point
from fluidcc.base.errors import UnknownName, Unsupported
from fluidcc.network.patterns import near
from fluidcc.symbols import plain

if TYPE_CHECKING:
    from fluidcc.equilibria.equilibrium import Equilibrium
    from fluidcc.network import Network
    from fluidcc.numerics.linear.dlti import DelayLTI

__all__ = ["Condition", "Conditions", "sufficient_conditions"]

Met = tuple[NDArray[np.float64], list[list[tuple[float, int]]]]
"""What `crossings` finds."""

RULE, HULL, DIVIDED = "-1/M rule", "convex hull", "eta divided by M"
_REF = {
    RULE: "LDCC, after (39): every G_r passes -1/M",
    HULL: "LDCC (39), with the exact spectral radius (Vinnicombe 2000)",
    DIVIDED: "LDCC, after (43): the gain of one link, divided by M",
    JOHARI_TAN: "Johari and Tan, IEEE/ACM ToN 9(6), 2001; for several delays proved by Vinnicombe, IFAC 2002",
    DISCRETE: "Johari and Tan 2001, rates that change once a step: gain times step below 2 sin(pi/(4 D + 2)); for "
    "several delays proved by Tian, 'A general stability criterion for congestion control with diverse communication "
    "delays', Automatica 41(7), 2005; the argument in short is in fluidcc.analysis.lags",
    VINNICOMBE: "Vinnicombe, IFAC 2002, with the exact spectral radius",
    PAGANINI: "Paganini, Doyle and Low, CDC 2001: gain times RTT below pi/2",
}


@dataclass(frozen=True)
class Condition:
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
        The exact gain margin over this one: above 1, that much gain is given away; below 1, the condition promises
        what is not so. nan where unknown.
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
        head = "".join(f"<th style='text-align:left'>{h}</th>" for h in _COLUMNS)
        rows = "".join(
            "<tr>" + "".join(f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in _cells(v)) + "</tr>"
            for v in self
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


_COLUMNS = ("condition", "verdict", "gain margin", "exact over it", "theorem", "why", "source")


def _verdict(v: Condition) -> str:
    return "does not apply" if not v.applies else "holds" if v.holds else "fails"


def _cells(v: Condition) -> tuple[str, ...]:
    numbers = ("" if math.isnan(n) else f"{n:.4g}" for n in (v.margin, v.conservatism))
    return (v.name, _verdict(v), *numbers, "yes" if v.theorem else "no", v.why, v.ref)


def sufficient_conditions(
    net: Network,
    open_loop: DelayLTI | None = None,
    equilibrium: Equilibrium | float | Point = math.inf,
    exact: float | None = None,
) -> Conditions:
    """Test a network against the conditions of the literature.

    Parameters
    ----------
    net : Network
        The network.
    open_loop : DelayLTI, optional
        Its return ratio, whose exact gain margin the conditions are compared with; by default
        ``linearize(net, "open")``, that is with queues that conserve flow.
    equilibrium : Equilibrium, float or Point
        Where; or the time [s] as in `fluidcc.equilibrium`; or the operating point itself, which the open loop has.
    exact : float, optional
        The exact gain margin, where it is known already; the open loop is not asked for it then.

    Returns
    -------
    Conditions

    Raises
    ------
    NoEquilibrium, Unsupported, InvalidInput
        As `fluidcc.linearize`.
    """
    from fluidcc.analysis.linearize import LinearNetwork
    from fluidcc.analysis.matrices import all_flows
    from fluidcc.analysis.wiring import wire

    if isinstance(equilibrium, Point):
        point = equilibrium
    else:
        point = operating_point(net, equilibrium)
    if exact is None:
        exact = _exact_margin(
            LinearNetwork.of(point, all_flows(point, wire(point, "open"))) if open_loop is None else open_loop
        )
    try:
        loop = local_loop(point)
    except Unsupported as error:
        return Conditions(tuple(_no(name, str(error)) for name in _REF))
    met = crossings(loop)
    found = [_rule(loop, met, exact), _hull(loop, exact), _divided(point, loop, met, exact)]
    return Conditions((*found, *_lags(loop, exact)))


def _exact_margin(open_loop: DelayLTI) -> float:
    """Factor by which every gain may grow until the loop is unstable; below 1 if it is unstable now."""
    from fluidcc.numerics.linear.margins import margins

    found = margins(open_loop)
    stable = open_loop.feedback().count_unstable().unstable == 0
    return float(found.gain if stable else found.gain_down)


def _no(name: str, why: str) -> Condition:
    return Condition(name, False, False, math.nan, math.nan, name not in (RULE, DIVIDED), why, _REF[name])


def _yes(name: str, holds: bool, margin: float, exact: float, why: str) -> Condition:
    worth = exact / margin if margin > 0 and math.isfinite(margin) else math.nan
    return Condition(name, True, holds, margin, worth, name not in (RULE, DIVIDED), why, _REF[name])


# --- the paper's --------------------------------------------------------------------------------------------------


def _for_queues(loop: LocalLoop) -> str:
    """Why the paper's rules do not apply, or ""."""
    if loop.signal == "queueing delay":
        return ""
    return f"it is about queues that answer by their delay; these links answer by {loop.signal}"


def _rule(loop: LocalLoop, met: Met, exact: float) -> Condition:
    if why := _for_queues(loop):
        return _no(RULE, why)
    return _every_user(RULE, loop, met, loop.hops, exact, f"-1/M = -1/{loop.hops}")


def _every_user(name: str, loop: LocalLoop, met: Met, hops: int, exact: float, lead: str) -> Condition:
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
        name, holds, margin, exact, f"{lead}; G of {loop.labels[worst]} crosses the axis at {-reach[worst]:.4g}"
    )


def _hull(loop: LocalLoop, exact: float) -> Condition:
    if why := _unstable_alone(loop):
        return _no(HULL, why)
    reach, omega = hull_reach(loop)
    if reach == 0:
        return _yes(HULL, True, math.inf, exact, "the hull never reaches the negative real axis")
    why = f"the hull reaches {-reach:.4g} at {omega:.4g} rad/s, where rho = {float(loop.radius([omega])[0]):.4g}"
    return _yes(HULL, reach < 1, 1 / reach, exact, why)


def _unstable_alone(loop: LocalLoop) -> str:
    """Why crossings of the users' loops do not decide, or ""."""
    for k, (A, B, _, D) in enumerate(loop.laws):
        label = loop.labels[k]
        if np.any(np.linalg.eigvals(A).real > 0) if len(A) else False:
            return f"the law of flow {label!r} is unstable by itself"
        if np.any(B[2]) or D[2]:
            return f"the law of flow {label!r} hears its own past rate, a second loop with a delay of its own"
    return ""


def _divided(point: Point, loop: LocalLoop, met: Met, exact: float) -> Condition:
    if why := _for_queues(loop):
        return _no(DIVIDED, why)
    scaled, hops = [], loop.hops
    for k, f in enumerate(point.classes):
        names = [plain(v) for v in f.spec.law.params]
        if "eta" not in names:
            return _no(DIVIDED, f"the law of flow {loop.labels[k]!r} has no gain eta")
        values = point.p[k].copy()
        values[names.index("eta")] *= hops
        scaled.append(values)
    if hops > 1:
        loop = local_loop(point.changed(p=scaled))
        met = crossings(loop)
    return _every_user(DIVIDED, loop, met, 1, exact, f"-1, with eta times M = {hops}")


def _lags(loop: LocalLoop, exact: float) -> list[Condition]:
    found = []
    for name, why, value, text in lag_gains(loop):
        if why:
            found.append(_no(name, why))
        else:
            margin = math.pi / 2 / value if value > 0 else math.inf
            found.append(_yes(name, value < math.pi / 2, margin, exact, f"{text} {value:.4g} against pi/2"))
    return found
