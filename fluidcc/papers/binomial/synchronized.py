"""The interval model of binary feedback: every flow a step up in each interval, a step down where
the link was over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Symbol, sympify

from fluidcc.base.arguments import choice, explained, flag, number, shown, whole
from fluidcc.base.errors import InvalidInput, NegativeRate, SolverError, Unsupported, warn
from fluidcc.base.tables import InTable
from fluidcc.network.patterns import quantity

if TYPE_CHECKING:
    from fluidcc.numerics.tape import Tape
    from fluidcc.papers.binomial.intervals import Flows

_LIMIT = 200_000_000  # intervals in which a cycle is looked for: some seconds to a minute
# intervals times flows in one call of compiled code: some tens of milliseconds, for Ctrl-C
_AT_ONCE = 5_000_000
RATES = 2**28  # rates that are kept, at most: 2 GiB
INTERVALS = 10**10  # intervals times flows that are run, at most: minutes
# intervals in rational arithmetic, whose numbers grow longer from interval to interval
EXACT = 200_000
_TIE = 1e-12  # relative distance from the capacity below which rounding decides


@explained
def synchronized(
    k: Any = None,
    l: Any = None,
    lam: Any = None,
    sigma: Any = None,
    capacity: Any = None,
    *,
    increase: Any = None,
    decrease: Any = None,
    n: Any = 1,
    initial: Any = None,
    intervals: int = 0,
    hears: str = "all",
    delay: int = 0,
    missed: float = 0.0,
    floor: Any = 0.0,
    seed: int = 0,
    exact: bool = False,
    keep: bool = True,
) -> Synchronized:
    """Run controls with binary feedback, (2) of the binomial paper, in discrete intervals, as its
    Section V-B does.

    In each interval the flows send their rates; what exceeds the capacity is lost. Then each flow
    that hears of a loss goes down by R_D(x), and each other one goes up by R_I(x). Of binomial
    controls (3) these are sigma x**l and lam x**-k.

    Parameters
    ----------
    k, l, lam, sigma : float or array_like, shape (flows,)
        Powers and constants of each class of flows. `lam` and `sigma` are in the powers of the unit
        of the capacity that (3) asks for.
    capacity : float or str
        Of the link [bit/s, or packets a round trip].
    increase, decrease : Expr, or a list of one for each class
        R_I and R_D of (2), in place of the powers: expressions of SymPy in one symbol, the rate, in
        the unit of the capacity. `fluidcc.formulas.binomial.monotonic_convergence` says which of
        the paper's conditions they obey.
    n : int or array_like of int
        Flows of each class. Those of a class have one rate between them.
    initial : float or array_like, optional
        First rates; by default equal shares of the capacity.
    intervals : int
        How many to run; the orbit needs none. Times the classes, at most 2^28 are kept (2 GiB),
        10^10 run without keeping them, and 200,000 in rational arithmetic.
    hears : {"all", "one"}
        Who hears of an overload: all flows, or one, drawn with probabilities as the rates
        (proportional loss).
    delay : int
        Intervals by which feedback is late; 0 is the paper's immediate one.
    missed : float
        Probability that a flow misses its feedback.
    floor : float
        Lowest rate; at the default 0 a rate that falls to zero or below is an error.
    seed : int
        Of what is drawn.
    exact : bool
        In rational arithmetic, with floats taken as the binary fractions that they are. Powers must
        be integers; expressions have none.
    keep : bool
        Keep the rates of every interval; without, long runs of many flows take no memory.

    Returns
    -------
    Synchronized
        With `rates`, sums and `orbit`.

    Raises
    ------
    InvalidInput
        If an argument is none that the model can take.
    NegativeRate
        If a rate falls to zero or below, or is no finite number.

    Examples
    --------
    >>> import fluidcc as fc
    >>> one = fc.synchronized(0, 1, "1/10", "1/2", 1, exact=True).orbit
    >>> one.period, one.loss, one.efficiency
    (6, Fraction(0, 1), Fraction(3, 4))

    A decrease that is no power, and improves fairness strictly:

    >>> from sympy import Symbol, log
    >>> x = Symbol("x", positive=True)
    >>> steps = {"increase": 0.01, "decrease": x - log(1 + x)}
    >>> two = fc.synchronized(capacity=10, **steps, initial=[2, 7], intervals=4000)
    >>> bool(two.fairness[-1] > 0.999)
    True

    Notes
    -----
    D. Loguinov and H. Radha, "End-to-end rate-based congestion control: convergence properties and
    scalability analysis", IEEE/ACM Transactions on Networking 11 (2003) 564-577, equations (2),
    (3), Section V-B.
    """
    if not flag(exact, "exact"):
        capacity = quantity(capacity, "bit/s", "the capacity", positive=True)
    choice(hears, "hears", ("all", "one"))
    intervals, delay, seed = (
        whole(intervals, "intervals"),
        whole(delay, "delay", most=100_000),
        whole(seed, "seed"),
    )
    missed = number(
        missed, "missed", "a probability of at least 0 and below 1", least=0.0, below=1.0
    )
    flag(keep, "keep")
    if exact and (hears != "all" or delay or missed or np.any(np.asarray(floor, dtype=float) > 0)):
        raise Unsupported(
            "exact arithmetic is for immediate feedback that all flows hear, without a floor"
        )
    from fluidcc.papers.binomial.intervals import columns_of

    powers = {"k": k, "l": l, "lam": lam, "sigma": sigma}
    steps, tapes = _rules(powers, increase, decrease, exact)
    columns = columns_of(steps, n, initial, floor, capacity, exact)
    model = _IntervalModel(columns, capacity, hears, delay, missed, seed, exact, tapes)
    return model.run(intervals, keep)


def _rules(
    powers: dict[str, Any], increase: Any, decrease: Any, exact: bool
) -> tuple[dict[str, Any], tuple[Tape, ...]]:
    """The powers, or the number of each class's rule and the tapes of all steps up and down."""
    given = {"increase": increase, "decrease": decrease}
    missing = [name for name, v in (powers | given).items() if v is None]
    if missing == list(given):
        return powers, ()
    if missing != list(powers):
        raise InvalidInput(
            "the steps are given by k, l, lam and sigma, or by increase= and decrease=, not "
            f"both; {', '.join(missing) or 'none'} {'are' if len(missing) > 1 else 'is'} left out"
        )
    if exact:
        raise Unsupported(
            "exact arithmetic is for integer powers k and l; give those, or no exact="
        )
    each = {
        name: v if isinstance(v, list | tuple | np.ndarray) else [v] for name, v in given.items()
    }
    classes = max(map(len, each.values()))
    if any(len(v) not in (1, classes) for v in each.values()):
        raise InvalidInput(
            f"increase has {len(each['increase'])} expressions and decrease has "
            f"{len(each['decrease'])}; give one, or one for each class of flows"
        )
    from fluidcc.laws.bytecode import tape

    tapes = []
    for i in range(classes):
        for (name, some), sign in zip(each.items(), (1, -1), strict=True):
            step = _expression(name, some[i % len(some)])
            rate = next(iter(step.free_symbols), Symbol("x", positive=True))
            tapes.append(tape([rate], [rate + sign * step]))
    return {"steps": range(classes) if classes > 1 else 0}, tuple(tapes)


def _expression(name: str, given: Any) -> Expr:
    """A step as an expression in one symbol at most."""
    from fluidcc.symbols import plain

    if not isinstance(given, Expr | Real) or isinstance(given, bool):
        raise InvalidInput(f"{name} is {shown(given)}; give an expression of SymPy in the rate")
    step = sympify(given)
    if len(step.free_symbols) > 1:
        raise InvalidInput(
            f"{name} is {step}, an expression in "
            f"{', '.join(sorted(map(plain, step.free_symbols)))}; give one in the rate alone: "
            "put numbers into the others by .subs({...})"
        )
    return step


# --- what it gives --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Orbit(InTable):
    """The attractor: a periodic orbit. Its sums and means are over one period, Fractions if it was
    found exactly.

    Attributes
    ----------
    period : int
        Intervals.
    rates : ndarray, shape (period, flows)
        Rates along it [as the capacity].
    sent, lost, carried : float or Fraction
        What all flows send, what exceeds the capacity, and what does not [capacity times
        intervals].
    loss, efficiency : float or Fraction
        Lost over sent, and carried over what the link could carry [1].
    overloads : int
        Intervals over capacity.
    """

    period: int
    rates: NDArray[Any]
    sent: Any
    lost: Any
    carried: Any
    overloads: int
    capacity: Any

    _shown = ("period [intervals]", "overloads", "loss", "efficiency", "fairness")

    @property
    def loss(self) -> Any:
        return self.lost / self.sent

    @property
    def efficiency(self) -> Any:
        return self.carried / (self.capacity * self.period)

    @property
    def fairness(self) -> float:
        """Lowest over highest rate (9) [1], at its worst along the orbit."""
        return float(np.min(self.rates.min(axis=1) / self.rates.max(axis=1)))

    def __repr__(self) -> str:
        return (
            f"Orbit(period={self.period}, overloads={self.overloads}, loss={float(self.loss):.6g}, "
            f"efficiency={float(self.efficiency):.6g}, fairness={self.fairness:.6g})"
        )


@dataclass(frozen=True, repr=False)
class Synchronized(InTable):
    """A run of the interval model, and the orbit it ends on.

    Attributes
    ----------
    rates : ndarray, shape (intervals, flows)
        Rate of a flow of each class in each interval; Fractions if `exact`. With ``keep=False`` one
        row, the rates after the last interval.
    capacity : float or Fraction
    n : ndarray of int, shape (flows,)
        Flows of each class.
    sent, lost, carried : float or Fraction
        Sums over the intervals [capacity times intervals].
    overloads, decreases : int
        Intervals over capacity, and those in which a flow went down.
    intervals : int
        How many were run.
    """

    rates: NDArray[Any]
    capacity: Any
    n: NDArray[np.int64]
    sent: Any
    lost: Any
    carried: Any
    overloads: int
    decreases: int
    intervals: int
    _model: _IntervalModel = field(repr=False)

    _shown = ("intervals", "overloads", "decreases", "loss", "efficiency")

    @property
    def loss(self) -> Any:
        """Lost over sent [1]; nan of no intervals."""
        return self.lost / self.sent if self.intervals else float("nan")

    @property
    def efficiency(self) -> Any:
        """Carried over what the link could carry [1]; nan of no intervals."""
        return self.carried / (self.capacity * self.intervals) if self.intervals else float("nan")

    @cached_property
    def fairness(self) -> NDArray[np.float64]:
        """Lowest over highest rate (9) [1] in each interval."""
        return np.array(self.rates.min(axis=1) / self.rates.max(axis=1), dtype=float)

    @cached_property
    def orbit(self) -> Orbit:
        """The periodic orbit that it ends on, from the same initial rates.

        Raises
        ------
        SolverError
            If none was found: with k + l = 0 rates may wander for ever.
        Unsupported
            If feedback is drawn at random, or exact arithmetic has no cycle for these powers.
        """
        return self._model.orbit()


# --- the map: runs of it, and its cycles, in floating point and exactly ---------------------------


@dataclass(frozen=True)
class _IntervalModel:
    """The map with its constants, ready to run."""

    columns: dict[str, NDArray[Any]]
    capacity: Any
    hears: str
    delay: int
    missed: float
    seed: int
    exact: bool
    tapes: tuple[Tape, ...] = ()

    def __post_init__(self) -> None:
        if self.hears == "one" and np.any(self.columns["n"] > 1):
            raise InvalidInput(
                "with hears='one' every flow needs its own rate: give initial= one rate a flow, "
                "and n=1"
            )

    def _flows(self) -> Flows:
        from fluidcc.papers.binomial.intervals import floats, flows_of

        return flows_of(self.columns, float(floats(self.capacity)), self.tapes)

    def run(self, intervals: int, keep: bool) -> Synchronized:
        """The first intervals."""
        flows, most = len(self.columns["n"]), EXACT if self.exact else RATES if keep else INTERVALS
        if intervals * flows > most:
            hint = ", or keep=False" if keep and not self.exact else ""
            raise InvalidInput(
                f"intervals is {intervals}, and with {flows} rates in each at most {most // flows} "
                "are run; "
                f"give fewer{hint}"
            )
        if self.exact:
            return self._exact_run(intervals, keep)
        from fluidcc.papers.binomial.intervals import FELL, advance

        x, sums = self.columns["initial"].copy(), np.zeros(5)
        rates = np.empty((intervals if keep else 0, len(x)))
        rng = np.random.default_rng(self.seed)
        given, pending, some = self._flows(), np.zeros(self.delay), max(1, _AT_ONCE // len(x))
        for first in range(0, intervals, some):
            taken = advance(
                x, given, pending, min(some, intervals - first), rates[first : first + some],
                sums,
                int(self.hears == "one"), self.missed, rng,
            )  # fmt: skip
            if taken == FELL:
                raise self._fell()
        counts = self.columns["n"].astype(np.int64)
        sent, lost, carried = (float(v) for v in sums[:3])
        return Synchronized(
            rates if keep else x[np.newaxis], float(self.capacity), counts, sent, lost, carried,
            int(sums[3]),
            int(sums[4]), intervals, self,
        )  # fmt: skip

    def orbit(self) -> Orbit:
        """The cycle."""
        if self.hears != "all" or self.missed > 0:
            raise Unsupported(
                "feedback that is drawn at random has no periodic orbit; give intervals= and take "
                "means"
            )
        if self.exact:
            return self._exact_orbit()
        from fluidcc.papers.binomial.intervals import FELL, advance, find_cycle

        x, pending, rng = (
            self.columns["initial"].copy(),
            np.zeros(self.delay),
            np.random.default_rng(0),
        )
        flows = self._flows()
        mark, mark_pending, counts = x.copy(), pending.copy(), np.array([1, 0, 0])
        period, some = 0, max(1, _AT_ONCE // len(x))
        while period == 0 and counts[2] < _LIMIT:
            period = find_cycle(x, flows, pending, mark, mark_pending, counts, some, rng)
        if period == FELL:
            raise self._fell()
        if period == 0:
            raise SolverError(
                f"no periodic orbit in {counts[2]} intervals; with k + l near 0 rates approach one "
                "very slowly, or "
                "wander for ever: give intervals= and take means"
            )
        keep, sums = np.empty((period, len(x))), np.zeros(5)
        advance(x, flows, pending, period, keep, sums, 0, 0.0, rng)
        if np.min(np.abs(keep @ self.columns["n"] / flows.capacity - 1)) < _TIE:
            warn(
                "the orbit passes the capacity within rounding, so that rounding decides where the "
                "flows go down; "
                "take exact=True, or another capacity",
                stacklevel=3,
            )
        shortest = _shortest(keep)
        sent, lost, carried, overs = (float(v) * shortest / period for v in sums[:4])
        return Orbit(shortest, keep[:shortest], sent, lost, carried, round(overs), flows.capacity)

    def _fell(self) -> NegativeRate:
        if self.tapes:
            return NegativeRate(
                "a rate fell to zero or below, or is no finite number; the paper asks for R_I > 0, "
                "and for x - R_D > 0 by (20): take other steps, or give floor="
            )
        return NegativeRate(
            "a rate fell to zero or below; for l < 1 (29) bounds n: lower sigma or n, or give "
            "floor="
        )

    # --- exactly ----------------------------------------------------------------------------------

    def _exact_flows(self) -> tuple[Any, Fraction]:
        from fluidcc.papers.binomial.rational import RationalFlow, as_fraction

        c = self.columns
        for name in ("k", "l"):
            if np.any(c[name] % 1):
                raise Unsupported(f"exact arithmetic needs integer powers, but {name} is {c[name]}")
        rows = zip(c["k"], c["l"], c["exact lam"], c["exact sigma"], c["n"], strict=True)
        return [RationalFlow(int(k), int(l), a, s, int(n)) for k, l, a, s, n in rows], as_fraction(
            self.capacity, "the capacity"
        )

    def _exact_run(self, intervals: int, keep: bool) -> Synchronized:
        from fluidcc.papers.binomial.rational import iterate, sums_of

        flows, capacity = self._exact_flows()
        *rows, last = iterate(flows, list(self.columns["exact initial"]), capacity, intervals + 1)
        rates = _objects(rows, len(flows))
        sent, lost, carried, _ = sums_of(flows, rows, capacity)
        counts = self.columns["n"].astype(np.int64)
        over = int(np.sum(rates @ counts.astype(object) > capacity))
        kept = rates if keep else _objects([last], len(flows))
        return Synchronized(
            kept, capacity, counts, sent, lost, carried, over, over, intervals, self
        )

    def _exact_orbit(self) -> Orbit:
        from fluidcc.papers.binomial.rational import cycle, sums_of

        flows, capacity = self._exact_flows()
        rows = cycle(flows, list(self.columns["exact initial"]), capacity)
        return Orbit(
            len(rows), _objects(rows, len(flows)), *sums_of(flows, rows, capacity), capacity
        )


def _shortest(keep: NDArray[np.float64]) -> int:
    """The shortest period of a cycle, up to rounding: in floating point a cycle may close only
    after several turns.
    """
    period = len(keep)
    for p in range(1, period // 2 + 1):
        if period % p == 0 and np.allclose(keep, np.roll(keep, p, axis=0), rtol=1e-11, atol=0.0):
            return p
    return period


def _objects(rows: list[list[Fraction]], width: int) -> NDArray[Any]:
    found = np.empty((len(rows), width), dtype=object)
    for i, row in enumerate(rows):
        found[i, :] = row
    return found
