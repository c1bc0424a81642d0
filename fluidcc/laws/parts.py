"""The parts of a law: unchangeable mappings, jumps, ticks, and claims about equilibria."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

from sympy import Expr, Symbol, sympify

from fluidcc.base.arguments import explained_class, flag, shown
from fluidcc.base.errors import LawError
from fluidcc.symbols import expression

__all__ = ["Frozen", "Jump", "Key", "Steady", "Tick", "equal_once", "frozen"]


class Frozen(dict):
    """A dict that cannot be changed once made, so that a law's hash and its cached properties
    stay true.
    """

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "a law cannot be changed; law(**params) makes another one with other parameter values"
        )

    __setitem__ = __delitem__ = update = pop = popitem = clear = setdefault = __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return Frozen, (dict(self),)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


def equal_once(one: Any, other: Any, equal: Callable[[], bool]) -> bool:
    """Whether two objects are equal, by their expressions once, and from then on by what they
    remember.

    Caches are looked into by laws that are equal to those in them and other objects, where these
    came in a pickle: to compare all expressions takes longer than what a cache saves.
    """
    first, second = _eldest(one), _eldest(other)
    if first is second:
        return True
    if not equal():
        return False
    younger, elder = sorted(
        (first, second), key=lambda it: -it.__dict__.setdefault("_age", next(_ages))
    )
    younger.__dict__["_twin"] = (
        elder  # and not the other way round, so that those of the past can go
    )
    return True


_ages = count()  # the later an object was compared for the first time, the younger it is


def _eldest(one: Any) -> Any:
    """The one of equal objects that those lead to which have been compared."""
    while (twin := one.__dict__.get("_twin")) is not None:
        one = twin
    return one


class Key(tuple[Any, ...]):
    """A tuple of expressions that works out its hash once, since many caches are looked into by
    it.
    """

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        equal = super().__eq__
        return (
            equal_once(self, other, lambda: equal(other))
            if isinstance(other, Key)
            else equal(other)
        )

    def __reduce__(
        self,
    ) -> tuple[Any, ...]:  # without its hash, which is another one in other processes
        return Key, (tuple(self),)


def frozen(given: Any, what: str) -> Frozen:
    """A mapping from symbols to expressions; None is an empty one."""
    if given is not None and not isinstance(given, Mapping):
        raise LawError(
            f"{what} is {shown(given)}; give a mapping from symbols to expressions, such as {{x: "
            f"...}}"
        )
    return Frozen({k: expression(v, f"{what}: {k}") for k, v in (given or {}).items()})


@explained_class
@dataclass(frozen=True)
class Jump:
    """The states in `reset` change at once when `when` becomes positive, at most once per
    `refractory`.

    Parameters
    ----------
    when : Expr
        Condition; the jump happens when it becomes positive, and at once where it is positive when
        the flow starts or after a breaking point (a loss that begins, say). The instant is located
        exactly; a condition that is true only within one step of the solver, and false at both its
        ends, is not seen: `max_step` of `simulate` helps.
    reset : mapping of Symbol to Expr
        New value of each state that changes, in terms of the old ones; it is then put within the
        state's bounds.
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
    """

    when: Any
    reset: Mapping[Symbol, Any]
    refractory: Any = 0
    once: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", expression(self.when, "when of a Jump"))
        object.__setattr__(self, "reset", frozen(self.reset, "reset of a Jump"))
        object.__setattr__(self, "refractory", expression(self.refractory, "refractory of a Jump"))
        object.__setattr__(self, "once", flag(self.once, "once of a Jump"))

    def rewritten(self, change: Callable[[Any], Expr]) -> Jump:
        """The same with every expression changed."""
        values = {z: change(f) for z, f in self.reset.items()}
        return Jump(change(self.when), values, change(self.refractory), self.once)


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
        """The same with the new values changed; it comes when it did."""
        return Tick(self.every, {z: change(f) for z, f in self.update.items()}, self.phase)


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
    """

    relation: Any
    given: Mapping[Symbol, Any] = field(default_factory=dict)
    eliminate: Symbol | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", sympify(self.relation))
        object.__setattr__(self, "given", frozen(self.given, "given of a Steady"))
