"""The parts of a law: unchangeable mappings, jumps, ticks, claims about equilibria, structure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, wraps
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from sympy import Expr, Symbol

from fluidcc.base.arguments import explained_class, flag, shown
from fluidcc.base.errors import LawError
from fluidcc.symbols import RATIOS, expression, loss, mark, symbols_of

T = TypeVar("T")


class Frozen(dict):
    """A dict that cannot be changed once made, so that what is known of a law stays true."""

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "a law cannot be changed; law(**params) makes another one with other parameter values"
        )

    __setitem__ = __delitem__ = update = pop = popitem = clear = setdefault = __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return Frozen, (dict(self),)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


def frozen(given: Any, what: str) -> Frozen:
    """Return an unchangeable mapping from symbols to expressions; `what` names it in messages."""
    if not isinstance(given, Mapping):
        raise LawError(
            f"{what} is {shown(given)}; give a mapping from symbols to expressions, such as "
            "{x: ...}"
        )
    return Frozen({k: expression(v, f"{what}: {k}") for k, v in given.items()})


# --- equal laws are the same object ---------------------------------------------------------------


class _Content(tuple[Any, ...]):
    """A tuple that works out its hash once, and not where what it belongs to is thrown away."""

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash


_lock = Lock()


def interned(in_use: WeakValueDictionary[Any, T], content: Iterable[Any], made: T) -> T:
    """Return what is in use of equal content, which is `made` where nothing is."""
    with _lock:
        return in_use.setdefault(_Content(content), made)


class Structure:
    """What of a law does not depend on the values of its parameters, and what follows from it.

    Laws of equal structure have the same one: they share checks, kernels and derivatives.
    """

    def __init__(self, *parts: Any) -> None:
        self.parts = parts
        self.known: dict[Any, Any] = {}  # what has been worked out, by the function that did

    def __repr__(self) -> str:
        return repr(self.parts)


_structures: WeakValueDictionary[Any, Structure] = WeakValueDictionary()


@lru_cache(maxsize=256)  # keeps the last ones, so that a law that is made anew finds its own
def structure(*parts: Any) -> Structure:
    """Return the structure of these parts, the same object for all who ask."""
    return interned(_structures, parts, Structure(*parts))


def per_structure(find: Callable[[Any], T]) -> Callable[[Any], T]:
    """Make a function of a law work its value out once for all laws of the same structure."""

    @wraps(find)
    def found(law: Any) -> T:
        known = law.structure.known
        if find not in known:
            known[find] = find(law)
        value: T = known[find]
        return value

    return found


@per_structure
def used(law: Any) -> frozenset[Symbol]:
    """What the expressions of a law depend on."""
    return frozenset().union(*(symbols_of(f) for _, f in law.expressions()))


def hears_ratios(law: Any, ratios: Sequence[Symbol] = RATIOS) -> bool:
    """Whether a source hears what is lost or marked, or one of some of these ratios."""
    return not used(law).isdisjoint(ratios)


def told_apart(law: Any) -> bool:
    """Whether a source hears what is marked apart from what is lost."""
    return hears_ratios(law, (loss, mark))


# When jumps at losses or marks hear of one: at any ratio above 0, in the mean over chance, at whole
# packets, or at packets drawn at random.
HEARD = ("ratio", "mean", "packets", "random")


@explained_class
@dataclass(frozen=True)
class Jump:
    """The states in `reset` change at once when `when` becomes positive, or `on` a loss or mark, at
    most once per `refractory`.

    Parameters
    ----------
    when : Expr
        Condition; the jump happens when it becomes positive, and at once where it is positive when
        the flow starts or after a breaking point (a loss that begins, say). The instant is located
        exactly; a condition that is true only within one step of the solver, and false at both its
        ends, is not seen: `max_step` of `simulate` helps.
    on : Expr
        In place of `when`: ``pi``, ``loss`` or ``mark``, the ratio of packets at which it happens.
        When a flow hears of one is chosen by ``losses=`` of `fluidcc.simulate`: by default while
        the ratio is above 0.
    reset : mapping of Symbol to Expr
        New value of each state that changes, in terms of the old ones; it is then put within the
        state's bounds. With `once` it may be empty: the jump then only notes when `when` becomes
        positive, for `fluidcc.metrics.jumps`.
    refractory : Expr
        Time [s] after a jump during which it does not happen again, evaluated just before the
        reset. At its end the jump happens again at once if `when` still holds: 'once per RTT while
        there is loss' is ``refractory=RTT``. If it is 0, the reset itself must make `when` false,
        or the run stops with `Zeno`.
    once : bool
        Only when `when` becomes positive, however long it then stays so; it must have been false in
        between. What becomes true within the refractory time is passed over for good.

    Notes
    -----
    All that happens at one instant has a fixed order: ticks of links, ticks of sources, jumps of
    links, jumps of sources; within a kind in the order of the network, within a law as listed.
    Jumps see the states that the ticks left, and a jump that another one sets off happens at the
    same instant.

    Examples
    --------
    One cut of a window a round trip while packets are lost or marked, as TCP does:

    >>> from sympy import Symbol
    >>> import fluidcc as fc
    >>> from fluidcc.symbols import RTT, packet, pi
    >>> W = Symbol("W", positive=True)
    >>> cut = fc.Jump(on=pi, reset={W: W / 2}, refractory=RTT)
    >>> law = fc.Source("Halving", {W: 1 / RTT}, {"rate": W * packet / RTT}, lower={W: 1},
    ...                 initial={W: 10}, units={W: "1"}, jumps=[cut])
    """

    when: Any = None
    reset: Mapping[Symbol, Any] = field(default_factory=dict)
    refractory: Any = 0
    once: bool = False
    on: Any = None

    def __post_init__(self) -> None:
        if self.on is not None:
            object.__setattr__(self, "on", expression(self.on, "on of a Jump"))
            if self.when not in (None, self.on):
                raise LawError(f"when of a Jump is {shown(self.when)} beside on; give one of them")
            object.__setattr__(self, "when", self.on)
        object.__setattr__(self, "when", expression(self.when, "when of a Jump"))
        object.__setattr__(self, "reset", frozen(self.reset, "reset of a Jump"))
        object.__setattr__(self, "refractory", expression(self.refractory, "refractory of a Jump"))
        object.__setattr__(self, "once", flag(self.once, "once of a Jump"))

    def rewritten(self, change: Callable[[Any], Expr]) -> Jump:
        """Return the same jump with every expression changed."""
        values = {z: change(f) for z, f in self.reset.items()}
        on = None if self.on is None else change(self.on)
        return Jump(on or change(self.when), values, change(self.refractory), self.once, on)


@explained_class
@dataclass(frozen=True)
class Tick:
    """The states in `update` change every `every` seconds: a sampled law. A state with flow 0 is
    held in between.

    Parameters
    ----------
    every : Expr
        Period [s]. One made of parameters and constants gives the exact instants start + phase + k
        every, k = 0, 1, ... One of states or signals is evaluated anew at each tick, with the
        states just updated.
    update : mapping of Symbol to Expr
        New value of each state that changes, in terms of the old ones and of what is known at that
        instant, what arrives just then included; it is then put within the state's bounds.
    phase : Expr, optional
        Time [s] from the start of the flow (for a link, from 0) to the first tick; by default one
        period.

    Notes
    -----
    An average over the last period is a state whose flow is the quantity and whose update is 0,
    divided by the period where it is used. For the order of what happens at one instant see `Jump`.

    Examples
    --------
    A window that is sampled once a round trip, and grows by a packet while delays are small:

    >>> import fluidcc as fc
    >>> from sympy import Piecewise, symbols
    >>> from fluidcc.symbols import RTT, e, packet
    >>> W, limit = symbols("W limit", positive=True)
    >>> law = fc.Source("Climber", {W: 0}, {"rate": W * packet / RTT}, initial={W: 10},
    ...                 params={limit: 0.05}, units={W: "1", limit: "s"},
    ...                 ticks=[fc.Tick(RTT, {W: Piecewise((W + 1, e < limit), (W, True))})])
    """

    every: Any
    update: Mapping[Symbol, Any]
    phase: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "every", expression(self.every, "every of a Tick"))
        object.__setattr__(self, "update", frozen(self.update, "update of a Tick"))
        phase = self.every if self.phase is None else expression(self.phase, "phase of a Tick")
        object.__setattr__(self, "phase", phase)

    def rewritten(self, change: Callable[[Any], Expr]) -> Tick:
        """Return the same tick with its new values changed."""
        return Tick(self.every, {z: change(f) for z, f in self.update.items()}, self.phase)


@explained_class
@dataclass(frozen=True)
class Steady:
    """A claim about every equilibrium of a law: where the flow vanishes (and edot = 0), `relation`
    holds.

    Parameters
    ----------
    relation : Eq, other relational, or Expr (meaning Expr = 0)
        The statement.
    given : mapping of Symbol to Expr
        What is put in first, for instance ``{pi: 0}`` for 'without loss'.
    eliminate : Symbol, optional
        The symbol for which stationarity is solved, in which the flow is linear; found if not
        given.

    Examples
    --------
    A source that pays w at rest; `fluidcc.prove` proves it of the law that has it in its `claims`:

    >>> import fluidcc as fc
    >>> from sympy import Eq, symbols
    >>> from fluidcc.symbols import price
    >>> x, k, w = symbols("x k w", positive=True)
    >>> law = fc.Source("Payer", {x: k * (w - x * price)}, {"rate": x}, params={k: 1, w: 1e5},
    ...                 units={x: "bit/s", k: "1/s", w: "bit/s"}, initial={x: w},
    ...                 claims={"what it pays": fc.Steady(Eq(x * price, w))})
    >>> law.claims["what it pays"].relation
    Eq(\\lambda*x, w)
    """

    relation: Any
    given: Mapping[Symbol, Any] = field(default_factory=dict)
    eliminate: Symbol | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", expression(self.relation, "relation of a Steady"))
        if not isinstance(self.eliminate, Symbol | None):
            raise LawError(f"eliminate of a Steady is {shown(self.eliminate)}; give a symbol")
        object.__setattr__(self, "given", frozen(self.given, "given of a Steady"))
