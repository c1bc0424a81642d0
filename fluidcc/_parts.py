"""The parts of a law: unchangeable mappings, jumps, ticks, and claims about equilibria."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sympy import Symbol, sympify

__all__ = ["Frozen", "Jump", "Steady", "Tick", "frozen"]


class Frozen(dict):
    """A dict that cannot be changed once made, so that a law's hash and its cached properties stay true."""

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a law cannot be changed; law(**params) makes another one with other parameter values")

    __setitem__ = __delitem__ = update = pop = popitem = clear = setdefault = __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return Frozen, (dict(self),)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


def frozen(mapping: Mapping[Any, Any] | None) -> Frozen:
    return Frozen({k: sympify(v) for k, v in (mapping or {}).items()})


@dataclass(frozen=True)
class Jump:
    """The states in `reset` change at once whenever `when` > 0, at most once per `refractory`.

    Parameters
    ----------
    when : Expr
        Condition; the jump happens while it is positive.
    reset : mapping of Symbol to Expr
        New value of each state that changes, in terms of the old ones.
    refractory : Expr
        Time [s] after a jump during which no other happens.
    """

    when: Any
    reset: Mapping[Symbol, Any]
    refractory: Any = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", sympify(self.when))
        object.__setattr__(self, "reset", frozen(self.reset))
        object.__setattr__(self, "refractory", sympify(self.refractory))


@dataclass(frozen=True)
class Tick:
    """The states in `update` change every `every` seconds: a sampled law.

    Parameters
    ----------
    every : Expr
        Period [s]; an expression of states and signals is evaluated anew at each tick.
    update : mapping of Symbol to Expr
        New value of each state that changes, in terms of the old ones.
    """

    every: Any
    update: Mapping[Symbol, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "every", sympify(self.every))
        object.__setattr__(self, "update", frozen(self.update))


@dataclass(frozen=True)
class Steady:
    """A claim about every equilibrium of a law: where the flow vanishes (and edot = 0), `relation` holds.

    Parameters
    ----------
    relation : Eq, other relational, or Expr (meaning Expr = 0)
        The statement.
    given : mapping of Symbol to Expr
        What is put in first, for instance ``{pi: 0}`` for 'without loss'.
    eliminate : Symbol, optional
        The symbol for which stationarity is solved, in which the flow is linear; found if not given.
    """

    relation: Any
    given: Mapping[Symbol, Any] = field(default_factory=dict)
    eliminate: Symbol | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", sympify(self.relation))
        object.__setattr__(self, "given", frozen(self.given))
