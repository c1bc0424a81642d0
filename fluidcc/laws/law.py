"""A law: the flow, outputs, jumps, ticks and bounds of one source or one link, as SymPy
expressions.

Everything else (LaTeX, compiled kernel, Jacobians, equilibrium relations, unit check, proofs)
follows from it. Laws are values: frozen, hashable, picklable, equal by content, and checked when
they are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from sympy import Expr, Symbol

from fluidcc.base.arguments import explained_class, shown
from fluidcc.base.errors import LawError
from fluidcc.laws.common import Law, marginal, with_utility
from fluidcc.laws.handwritten import handwritten_parts
from fluidcc.laws.parts import Jump, Steady, Tick
from fluidcc.symbols import (
    LINK_INPUTS,
    LINK_OUTPUTS,
    RTT,
    SOURCE_INPUTS,
    SOURCE_OUTPUTS,
    expression,
    packet,
    plain,
)

__all__ = ["Jump", "Law", "Link", "Source", "Steady", "Tick", "marginal"]


@explained_class
@dataclass(frozen=True, eq=False, repr=False)
class Source(Law):
    """A sender: states z' = flow(z, u), sending rate out["rate"] [bit/s]; u are
    `fluidcc.symbols.SOURCE_INPUTS`.

    Parameters
    ----------
    utility : Expr, optional
        U(x) of the state that is the rate, increasing and concave, if the law maximises one.
    gain, penalty : Expr, optional
        k and v of a law of the form x' = k x (U'(x) - v - e' - loss).

    See `Law` for the others.
    """

    utility: Expr | None = None
    gain: Expr | None = None
    penalty: Expr | None = None

    kind: ClassVar[str] = "source"
    inputs: ClassVar[tuple[Symbol, ...]] = SOURCE_INPUTS
    outputs: ClassVar[tuple[str, ...]] = SOURCE_OUTPUTS
    constants: ClassVar[tuple[Symbol, ...]] = tuple(
        s for s in SOURCE_INPUTS if plain(s) in ("e_b", "ell")
    )

    def __post_init__(self) -> None:
        if self.utility is not None:
            object.__setattr__(
                self, "utility", expression(self.utility, f"{self.name}: the utility")
            )
        super().__post_init__()

    @property
    def static_window(self) -> Symbol | None:
        """The state W of a law whose rate is W packet/RTT at every instant, else None.

        So it is None where acknowledgements clock the window, or a rate is controlled.

        Examples
        --------
        >>> import fluidcc as fc
        >>> fc.Reno.static_window, fc.FAST.static_window
        (W, None)
        """
        window = self.out["rate"] * RTT / packet
        return window if window in self.states else None

    def with_utility(
        self,
        utility: Any,
        params: Mapping[Symbol, Any] | None = None,
        units: Mapping[Symbol, str] | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Return the same law with another utility U(x), increasing and concave.

        The law's marginal utility, the Let named ``U'`` in its flow, is replaced by dU/dx;
        parameters that then occur nowhere are dropped.

        Parameters
        ----------
        utility : Expr
            U of the law's rate state; dU/dx must have the unit of the marginal utility it replaces.
        params, units : mapping
            Default and unit of every parameter that `utility` brings along.
        name : str, optional
            Name of the new law; by default the same.

        Raises
        ------
        LawError
            If the law maximises no utility, or this one is not increasing and concave.
        """
        return with_utility(self, utility, params or {}, units or {}, name)

    @classmethod
    def from_kernel(
        cls,
        name: str,
        kernel: Any,
        *,
        states: Sequence[Symbol],
        params: Mapping[Symbol, Any] | None = None,
        units: Mapping[Symbol, str],
        rate: Any = None,
        lower: Mapping[Symbol, Any] | None = None,
        upper: Mapping[Symbol, Any] | None = None,
        initial: Mapping[Symbol, Any] | None = None,
        ref: str = "",
    ) -> Self:
        """Make a law too irregular for SymPy from a function of numbers written by hand.

        Such a law runs in `fluidcc.simulate` (not in a fused step), is checked for units by
        rescaling, and pickles. Its kinks are left to error control. What needs equations refuses
        it: equilibria, linearisation, proofs.

        Parameters
        ----------
        name : str
            Name of the law.
        kernel : callable
            A plain or numba function of numbers, named after states, parameters and signals
            (`fluidcc.symbols.SOURCE_INPUTS`: e, edot, pi, price, x_tau, e_b, packet, t); those it
            does not need may be left out. It returns a tuple: the derivative of each state, then
            the rate [bit/s] unless `rate` is given. It may use ``math`` and numpy as ``np``, and
            must define whatever else it uses.
        states : sequence of Symbol
            The states, in the order of their derivatives.
        rate : Expr, optional
            The rate in terms of states, where it is as simple as that: ``rate=x``.
        params, units, lower, upper, initial, ref
            As for every law: see `Law`.

        Raises
        ------
        LawError
            If the function cannot be used: the message says why, and what would be right.

        Examples
        --------
        >>> import fluidcc as fc
        >>> from sympy import symbols
        >>> x, a = symbols("x a", positive=True)
        >>> def steps(x, e, a):
        ...     target = a if e < 0.1 else a / 2
        ...     return ((target - x) / 1.0,)
        >>> fc.Source.from_kernel("Steps", steps, states=[x], rate=x, params={a: 1e6},
        ...                       units={x: "bit/s", a: "bit/s"},
        ...                       initial={x: a})  # doctest: +SKIP
        source Steps(a=1e+06)
        """
        maps = {"params": params, "lower": lower, "upper": upper, "initial": initial}
        given: dict[str, Any] = {key: {} if value is None else value for key, value in maps.items()}
        if not isinstance(given["params"], Mapping):
            raise LawError(
                f"{name}: params is {shown(params)}; give a mapping from symbols to values"
            )
        flow, sends = handwritten_parts(name, kernel, states, tuple(given["params"]), rate)
        return cls(name, flow, {"rate": sends}, units=units, ref=ref, **given)


@explained_class
@dataclass(frozen=True, eq=False, repr=False)
class Link(Law):
    """A queue or price: states z' = flow(z, y), outputs any of ``LINK_OUTPUTS``; inputs
    `fluidcc.symbols.LINK_INPUTS`.

    Outputs: ``"loss"`` of a full buffer; ``"mark"``, the share that is marked; ``"drop"``, the
    share that never enters the queue; ``"price"``. What a router tells its sources straight back,
    past the data: ``"offer"``, a rate [bit/s]; or reports, ``"factor"`` and ``"raise"`` [bit/s] of
    a rate, and ``"reports"``, how many there were so far.

    Parameters
    ----------
    queue : Symbol, optional
        The state that is the FIFO queueing delay [s], if there is one; its flow must be (y - c)/c.

    See `Law` for the others.
    """

    queue: Symbol | None = None

    kind: ClassVar[str] = "link"
    inputs: ClassVar[tuple[Symbol, ...]] = LINK_INPUTS
    outputs: ClassVar[tuple[str, ...]] = LINK_OUTPUTS
    constants: ClassVar[tuple[Symbol, ...]] = tuple(
        s for s in LINK_INPUTS if plain(s) in ("c", "q_max")
    )

    def __post_init__(self) -> None:
        if not isinstance(self.queue, Symbol | None):
            raise LawError(f"{self.name}: queue is {shown(self.queue)}; give the symbol of a state")
        super().__post_init__()
