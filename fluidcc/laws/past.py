"""The past in the language of laws: what a source knew or was some time ago.

``ago(expr, lag)`` splits into the past of each state and signal in the expression, an `Ago` each:
a symbol, so that kernels, derivatives and printers take it as one, that knows whose past it is and
how long ago.

At rest the past of a state is the state. A state that all of the law has only in differences from
its own past, such as what has been acknowledged so far in (acks - ago(acks, RTT))/RTT, need not
rest: it runs on at a constant rate, and the difference is that rate times the lag.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sympy import Expr, Integer, N, Rational, Symbol, simplify

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import LawError, Unsupported
from fluidcc.laws.parts import per_structure
from fluidcc.symbols import e_b, expression, packet, symbols_of, t, unfold

_KINDS = ("positive", "negative", "nonnegative", "nonpositive", "real")


def _signs(of: Symbol) -> dict[str, bool]:
    return {k: True for k in _KINDS if getattr(of, f"is_{k}")}


class Ago(Symbol):
    """A state or signal of a source some time ago.

    Attributes
    ----------
    of : Symbol
        The state or signal.
    lag : Expr
        How long ago [s], without Lets.
    written : Expr
        The same, as it was given.
    """

    of: Symbol
    lag: Expr
    written: Expr

    def __new__(cls, of: Symbol, lag: Expr) -> Ago:
        plainly = unfold(lag)
        self: Ago = Symbol.__xnew__(cls, f"{of.name}(t - ({plainly}))", **_signs(of))
        self.of, self.lag, self.written = of, plainly, lag
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[Symbol, Expr], dict[str, Any]]:
        return (self.of, self.written), {}

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.of, self.lag)

    @property
    def free_symbols(self) -> set[Any]:
        """Itself, and what has to be known for it."""
        return {self, self.of, *self.lag.free_symbols}

    def _eval_subs(self, old: Any, new: Any) -> None:
        """Nothing in it is replaced: the state now says nothing of the state then."""

    def stand_in(self, number: int) -> Symbol:
        """Return a plain symbol for it."""
        return Symbol(f"_past_{number}", **_signs(self.of))

    def xreplace(self, rule: Any, hack2: bool = False) -> Expr:
        """Replace it, or what its past is of; SymPy's own leaves symbols as they are."""
        return self._xreplace(rule)[0]

    def _xreplace(self, rule: Any) -> tuple[Expr, bool]:
        if self in rule:
            return rule[self], True
        (of, first), (lag, second) = self.of._xreplace(rule), self.written._xreplace(rule)
        return (ago(of, lag), True) if first or second else (self, False)


@explained
def ago(expr: Any, lag: Any) -> Expr:
    """Return an expression of a law as it was some time ago, with the states and signals of then.

    It is for flows, outputs, jumps and ticks of sources. Before a flow starts its past is what it
    was at its start: its initial states, and what it heard then. A flow that starts again has no
    earlier past.

    Parameters
    ----------
    expr : Expr
        Of states, signals and parameters of the source.
    lag : Expr
        How long ago [s], of parameters, states and the round trip now; below 0 it counts as 0. It
        may not grow so fast that it more than doubles within itself.

    Raises
    ------
    LawError
        If either is no expression, or has a past itself.

    Examples
    --------
    A rate that is steered by how the delay has changed in a time T:

    >>> import fluidcc as fc
    >>> from sympy import symbols
    >>> from fluidcc.symbols import RTT, e
    >>> x, k, w, T, h = symbols("x k w T h", positive=True)
    >>> slope = (e - fc.ago(e, T)) / T
    >>> law = fc.Source("Slope", {x: k * (w / RTT - x * e / T - h * x * slope)}, {"rate": x},
    ...                 params={k: 0.2, w: 1e5, T: 0.1, h: 5}, initial={x: 1e5}, lower={x: 0},
    ...                 units={x: "bit/s", k: "1/s", w: "bit", T: "s", h: "1"})
    >>> net = fc.dumbbell([law], {"capacity": "1 Mbit/s"}, rtt="50 ms")
    >>> fc.stability(net).stable
    True
    """
    f = unfold(expression(expr, "the expression of ago"))
    lag = expression(lag, "the lag of ago")
    for what, one in (("expression", f), ("lag", unfold(lag))):
        if one.atoms(Ago):
            raise LawError(
                f"the {what} of ago is {shown(one)}, which has a past itself; give one lag that is "
                "the sum of both, or let a state follow it"
            )
    constant = {e_b: e_b, packet: packet, t: t - lag}
    return f.xreplace({s: constant.get(s) or Ago(s, lag) for s in f.free_symbols})


def agos(expressions: Iterable[Any]) -> set[Ago]:
    """Return the pasts in some expressions, to the bottom of every Let."""
    return {s for f in expressions for s in symbols_of(f) if isinstance(s, Ago)}


def known_past(f: Any, params: Mapping[Any, Any]) -> Any:
    """Return an expression with parameters, which do not change, for the past of parameters."""
    constant = {one: one.of for one in agos([f]) if one.of in params}
    return f._xreplace(constant)[0] if constant else f


@per_structure
def pasts(law: Any) -> tuple[Ago, ...]:
    """Return the pasts that a law has, in a fixed order."""
    return tuple(sorted(agos(f for _, f in law.expressions()), key=str))


@per_structure
def lags(law: Any) -> tuple[Expr, ...]:
    """Return its different lags, without Lets."""
    return tuple(dict.fromkeys(one.lag for one in pasts(law)))


@per_structure
def remembered(law: Any) -> tuple[Symbol, ...]:
    """Return the states and signals whose past it has."""
    return tuple(dict.fromkeys(one.of for one in pasts(law)))


@per_structure
def running(law: Any) -> tuple[Symbol, ...]:
    """Return the states that a law has only in differences from their own past: they need not rest.

    A constant more in all of their history changes nothing that the law computes.
    """
    own = [z for z in remembered(law) if z in law.flow]
    new = [pair for event in law.jumps for pair in event.reset.items()]
    new += [pair for event in law.ticks for pair in event.update.items()]
    every = [*law.flow.values(), *law.out.values(), *(event.when for event in law.jumps)]
    return tuple(
        z for z in own
        if not any(z in one.lag.free_symbols for one in pasts(law))
        and all(
            _same(unfold(f), [z, *(one for one in pasts(law) if one.of == z)])
            for f in (*every, *(f - z if key == z else f for key, f in new))
        )
    )  # fmt: skip


def _same(f: Expr, moved: list[Symbol]) -> bool:
    """Return whether an expression stays as it is where these symbols grow by the same amount."""
    change = sum((f.diff(s) for s in moved), Integer(0))
    return vanishes(change) and bool(change == 0 or simplify(change) == 0)


def vanishes(f: Expr) -> bool:
    """Return whether an expression is zero at some points, to forty digits: to decide that in
    general takes ten times as long.
    """
    symbols = sorted(f.free_symbols, key=str)
    points = (
        {s: Rational(17 + 7 * k + 5 * n, 11 + k) for n, s in enumerate(symbols)} for k in range(3)
    )
    return all(abs(N(f.xreplace(point), 40)) < 1e-30 for point in points)


def at_rest(law: Any, flow: Mapping[Symbol, Expr] | None = None) -> dict[Symbol, Expr]:
    """Return what the pasts of a law are where it rests, in terms of its states and signals.

    Parameters
    ----------
    law : Law
    flow : mapping of Symbol to Expr, optional
        Its flows, in another form.

    Raises
    ------
    Unsupported
        If states run on at rates that depend on one another's past.
    """
    flow = {z: unfold(f) for z, f in law.flow.items()} if flow is None else flow
    runs = running(law)
    put: dict[Symbol, Expr] = {
        one: one.of - one.lag * flow[one.of] if one.of in runs else one.of for one in pasts(law)
    }
    for _ in put:
        if not agos(put.values()):
            break
        put = {one: f.xreplace(put) for one, f in put.items()}
    if agos(put.values()):
        raise Unsupported(
            f"{law.name} has states that run on at rates that depend on one another's past, of "
            "which no equilibria are made: simulate it"
        )
    return put
