"""A law: the flow, outputs, jumps, ticks and bounds of one source or one link, in SymPy.

Everything else (LaTeX, compiled kernel, Jacobians, equilibrium relations, unit check, proofs)
follows from it. Laws are values: frozen, picklable, checked when they are made, and equal laws are
the same object.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self, TypeVar
from weakref import WeakValueDictionary

from sympy import Expr, Symbol, diff, expand, powsimp, sqrt, sympify

from fluidcc.base.arguments import choice, explained, explained_class, shown
from fluidcc.base.errors import LawError, warn
from fluidcc.laws.checks import Dim, check_law, dim_of_text, parameter_values
from fluidcc.laws.extremes import written_out
from fluidcc.laws.parts import Frozen, Jump, Steady, Structure, Tick, frozen, interned, structure
from fluidcc.laws.past import agos, known_past
from fluidcc.laws.switches import Switched, switched
from fluidcc.laws.written import described, in_latex
from fluidcc.symbols import (
    LINK_INPUTS,
    LINK_OUTPUTS,
    OUTPUT_UNITS,
    RTT,
    SOURCE_INPUTS,
    SOURCE_OUTPUTS,
    Let,
    c,
    e_b,
    expression,
    packet,
    plain,
    q_max,
    symbols_of,
)

L = TypeVar("L", bound="Law")
NEAR = 3.0
"""So near to the usual value if it is read in milliseconds, a number is hardly meant in seconds."""
_laws: WeakValueDictionary[Any, Law] = WeakValueDictionary()  # those in use


def _one(law: Law) -> Any:
    """Return the law in use that is equal to `law`, which is that law itself where none is."""
    values = (getattr(law, f.name) for f in fields(law))
    parts = (tuple(v.items()) if isinstance(v, dict) else v for v in values)
    return interned(_laws, (type(law), *parts), law)


def _read(kind: type[Law], content: dict[str, Any]) -> Law:
    """Return a law from a pickle, which need not be checked again."""
    law = object.__new__(kind)
    law.__dict__.update(content)
    found: Law = _one(law)
    return found


class _Doc(str):
    """The docstring of a class of laws, and of each of its laws what `described` says of it.

    It is text, as pydoc looks for it past the descriptor.
    """

    def __get__(self, law: Law | None, owner: type) -> str:
        return str(self) if law is None else described(law)


class _EqualIsSame(type):
    """Makes equal laws the same object, so that caches find them at once."""

    def __init__(cls, name: str, bases: tuple[type, ...], content: dict[str, Any]) -> None:
        super().__init__(name, bases, content)
        cls.__doc__ = _Doc(cls.__doc__)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _one(super().__call__(*args, **kwargs))

    @property
    def __signature__(cls) -> inspect.Signature:
        """What editors show, which would be that of `__call__` here."""
        made = inspect.signature(vars(cls)["__init__"])
        return made.replace(parameters=[*made.parameters.values()][1:])


_KINDS = (  # what arguments of laws must be, beside the expressions
    (("params", "units", "limits", "claims", "meaning"), Mapping, "a mapping, such as {x: ...}"),
    (("jumps", "ticks", "where"), (list, tuple), "them in a list or tuple"),
    (("ref", "about", "mean_of"), str, "text"),
)


def check_kinds(law: str, given: Mapping[str, Any]) -> None:
    """Refuse arguments of a law that are of another kind; `given` has them by name."""
    for names, kind, right in _KINDS:
        for name in names:
            if name in given and not isinstance(given[name], kind):
                raise LawError(f"{law}: {name} is {shown(given[name])}; give {right}")
    for s, text in given.get("meaning", {}).items():
        if not (isinstance(s, Symbol) and isinstance(text, str)):
            raise LawError(f"{law}: meaning of {shown(s)} is {shown(text)}; give text by symbol")


@dataclass(frozen=True, eq=False, repr=False)
class Law(metaclass=_EqualIsSame):
    """What `Source` and `Link` share; use those.

    Parameters
    ----------
    name : str
        Name used in messages and results.
    flow : mapping of Symbol to Expr
        Time derivative of each state.
    out : mapping of str to Expr
        Output signals.
    params : mapping of Symbol to float
        Parameters and their default values, in SI units (s, bit, bit/s; windows in packets).
    units : mapping of Symbol to str
        Unit of every state and parameter, in s, bit and packet: ``"bit/s"``, ``"1"``. Packets are a
        count.
    lower, upper : mapping of Symbol to Expr
        Bounds onto which states are projected.
    jumps, ticks : tuple of Jump, tuple of Tick
        Changes at once: on a condition, or at a period. See `Jump` and `Tick`.
    claims : mapping of str to Expr, relational or Steady
        Statements of the paper, by their label there, for `fluidcc.prove`.
    ref : str
        Where the law is from.
    initial : mapping of Symbol to Expr
        Default initial values, in terms of parameters and constants of the flow or link.
    limits : mapping of Symbol to float
        Largest values of parameters; their signs are those of the symbols' assumptions.
    where : tuple of relational
        What must hold of parameters, such as ``(low < high, share < 1)``.
    about : str
        What it does, in a line.
    meaning : mapping of Symbol to str
        What parameters and states are, in a few words each.

    Raises
    ------
    LawError
        If the law is not well formed; the message names the law, the culprit and the remedy.

    Examples
    --------
    Every law of the library is one, and is described by `help`:

    >>> import fluidcc as fc
    >>> isinstance(fc.LDCC, fc.Law), isinstance(fc.RED, fc.Law)
    (True, True)
    >>> fc.LDCC.__doc__.splitlines()[0]
    'Low-delay congestion control: listens to delay, its change and losses.'
    """

    name: str
    flow: Mapping[Symbol, Any] = field(default_factory=dict)
    out: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[Symbol, Any] = field(default_factory=dict)
    units: Mapping[Symbol, str] = field(default_factory=dict)
    lower: Mapping[Symbol, Any] = field(default_factory=dict)
    upper: Mapping[Symbol, Any] = field(default_factory=dict)
    jumps: tuple[Jump, ...] = ()
    ticks: tuple[Tick, ...] = ()
    claims: Mapping[str, Any] = field(default_factory=dict)
    ref: str = ""
    initial: Mapping[Symbol, Any] = field(default_factory=dict)
    limits: Mapping[Symbol, float] = field(default_factory=dict)
    where: tuple[Any, ...] = ()
    about: str = ""
    meaning: Mapping[Symbol, str] = field(default_factory=dict)

    kind: ClassVar[str] = "law"
    inputs: ClassVar[tuple[Symbol, ...]] = ()
    outputs: ClassVar[tuple[str, ...]] = ()
    constants: ClassVar[tuple[Symbol, ...]] = ()

    def __post_init__(self) -> None:
        def keep(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        if not isinstance(self.name, str) or not self.name or not self.name.isprintable():
            raise LawError(
                f"the name of a law is {shown(self.name)}; give a line of text, such as 'LDCC'"
            )
        check_kinds(self.name, vars(self))
        for name in ("flow", "out", "lower", "upper", "initial"):
            keep(name, frozen(getattr(self, name), f"{self.name}: {name}"))
        for name in ("units", "limits", "meaning"):
            keep(name, Frozen(getattr(self, name)))
        claims = {
            k: v if isinstance(v, Steady) else expression(v, f"{self.name}: claim {shown(k)}")
            for k, v in self.claims.items()
        }
        keep("claims", Frozen(claims))
        for name, part in (("jumps", Jump), ("ticks", Tick)):
            keep(name, tuple(getattr(self, name)))
            for one in getattr(self, name):
                if not isinstance(one, part):
                    raise LawError(
                        f"{self.name}: {name} holds {shown(one)}; give {part.__name__} objects"
                    )
        keep("where", tuple(self.where))
        self._know_parameters(keep)
        keep("params", Frozen(parameter_values(self)))
        for name, value in written_out(self).items():
            keep(name, value)
        check_law(self)

    def _know_parameters(self, keep: Any) -> None:
        """Take parameters, which do not change, for their past."""
        if not agos(f for _, f in self.expressions()):
            return
        known = partial(known_past, params=self.params)
        for name in ("flow", "out"):
            keep(name, Frozen({k: known(f) for k, f in getattr(self, name).items()}))
        keep("jumps", tuple(j.rewritten(known) for j in self.jumps))
        keep("ticks", tuple(tick.rewritten(known) for tick in self.ticks))

    @cached_property
    def structure(self) -> Structure:
        """What of the law does not depend on parameter values; laws of equal structure share it."""
        kept = ("flow", "out", "units", "lower", "upper", "initial", "jumps", "ticks", "where",
                "steady")  # fmt: skip
        values = (getattr(self, name, Frozen()) for name in kept)
        parts = (tuple(v.items()) if isinstance(v, dict) else v for v in values)
        queue = getattr(self, "queue", None)
        return structure(self.kind, self.name, tuple(self.params), queue, *parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return _read, (type(self), {f.name: getattr(self, f.name) for f in fields(self)})

    def __repr__(self) -> str:
        values = ", ".join(f"{plain(s)}={v:g}" for s, v in self.params.items())
        return f"{self.kind} {self.name}({values})"

    # --- use --------------------------------------------------------------------------------------

    def __call__(self, /, *unnamed: Any, **values: Any) -> Self:
        """Return the same law with other parameter values (numbers in SI units, or text with
        units).

        Raises
        ------
        LawError
            If there is no such parameter, or the value is not one it can take.

        Warns
        -----
        FluidccWarning
            If a time without a unit would be usual in milliseconds, as 15 for 15 ms.
        """
        names = {plain(s): s for s in self.params}
        known = ", ".join(names) or "none"
        if unnamed:
            raise LawError(
                f"{self.name} takes parameters by name, not {shown(unnamed[0])} by position; it "
                f"has {known}"
            )
        for name in values:
            if name not in names:
                close = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
                hint = f"did you mean {' or '.join(close)}?" if close else f"it has {known}"
                raise LawError(f"{self.name} has no parameter {shown(name)}: {hint}")
            self._ask_for_unit(names[name], values[name])
        return replace(self, params={**self.params, **{names[k]: v for k, v in values.items()}})

    def _ask_for_unit(self, p: Symbol, value: Any) -> None:
        """Warn of a time without a unit that is hardly meant in seconds."""
        if self.units.get(p) != "s" or type(value) not in (int, float):
            return
        usual = float(self.params[p])
        if value >= 1 > usual > 0 and usual / NEAR <= 1e-3 * value <= NEAR * usual:
            n, name = f"{value:g}", plain(p)
            warn(
                f"{name} of {self.name} is {n}, which is {n} s ({usual:g} s by default); for "
                f"{n} ms write {name}='{n} ms', or '{n} s' if seconds are meant",
                stacklevel=3,
            )

    @property
    def states(self) -> tuple[Symbol, ...]:
        """The state symbols, in order."""
        return tuple(self.flow)

    @explained
    def parameter(self, name: str) -> float:
        """Return the value of the parameter of that name.

        Parameters
        ----------
        name : str
        """
        values = {plain(s): value for s, value in self.params.items()}
        if not isinstance(name, str) or name not in values:
            known = ", ".join(values) or "none"
            raise LawError(f"{self.name} has no parameter {shown(name)}: it has {known}")
        return float(values[name])

    @explained
    def averaged(
        self,
        intensity: Any,
        *,
        name: str | None = None,
        claims: Mapping[str, Any] | None = None,
        ref: str | None = None,
        about: str | None = None,
    ) -> Self:
        """Return the fluid limit of the jumps at a Poisson intensity: flow + sum intensity (reset -
        state).

        Means of functions are taken for functions of means, which is exact where the law is linear
        in its states. CUBIC's window would be 23 % too small: `fluidcc.CUBICFluid` is its mean.

        Parameters
        ----------
        intensity : Expr, such as x_tau * pi / packet of fluidcc.symbols
            Expected jumps a second [1/s], in place of each jump's `when`; refractory times are
            dropped.
        name, claims, ref, about : optional
            Those of the averaged law; by default its name and `ref` are the same, it claims
            nothing, and is about the mean of this one.
        """
        if not self.jumps:
            raise LawError(f"{self.name} has no jumps to average")
        intensity = expression(intensity, f"the intensity at which {self.name} is averaged")
        kept = getattr(self, "steady", {})  # what follows from other states jumps no more
        if len(self.reasons) > 1:
            raise LawError(
                f"{self.name} jumps for {len(self.reasons)} reasons, and one intensity is not that "
                "of all of them: write its mean as a law of its own"
            )
        drift = {
            z: sum(intensity * expand(j.reset[z] - z) for j in self.jumps if z in j.reset)
            for z in self.flow
            if z not in kept
        }
        # a rate that has the growth of a window in it has all of it
        put = {
            f: Let(f.name, f.definition + drift[z])
            for z, f in self.flow.items()
            if isinstance(f, Let) and drift.get(z, 0) != 0
        }
        flow = {z: put.get(f, f.xreplace(put) + drift.get(z, 0)) for z, f in self.flow.items()}
        return replace(
            self,
            flow=flow,
            out={name: f.xreplace(put) for name, f in self.out.items()},
            jumps=(),
            name=name or self.name,
            claims=claims or {},
            ref=ref or self.ref,
            about=about or f"{self.name} averaged over backoffs at random.",
        )

    @property
    def reasons(self) -> set[Expr]:
        """What its jumps are for, but those that change nothing except what follows from others."""
        follow = getattr(self, "steady", {}).keys()
        return {j.when for j in self.jumps if j.reset.keys() - follow}

    def switched(self) -> Switched:
        """Return flow and outputs with every kink held by a mode: see `Switched`."""
        return switched(self)

    @property
    def switches(self) -> tuple[Expr, ...]:
        """The expressions whose signs choose the branches of Max, Min, Piecewise, ... in the
        flow and outputs.
        """
        return switched(self).switches

    def equations(self) -> Iterator[tuple[str, Expr, Any]]:
        """Yield the place of every expression, the expression, and what its unit is made of.

        That is a tuple of states and of texts of units; None where any unit will do.
        """
        for z, f in self.flow.items():
            yield f"the flow of {plain(z)}", f, (z, "1/s")
        for name, f in self.out.items():
            yield f"output {name!r}", f, (OUTPUT_UNITS.get(name, "1"),)
        for side in ("lower", "upper"):
            for z, f in getattr(self, side).items():
                yield f"the {side} bound of {plain(z)}", f, (z,)
        for i, j in enumerate(self.jumps):
            yield f"the condition of jump {i}", j.when, None
            yield f"the refractory time of jump {i}", j.refractory, ("s",)
            for z, f in j.reset.items():
                yield f"the reset of {plain(z)} in jump {i}", f, (z,)
        for i, tick in enumerate(self.ticks):
            yield f"the period of tick {i}", tick.every, ("s",)
            yield f"the phase of tick {i}", tick.phase, ("s",)
            for z, f in tick.update.items():
                yield f"the update of {plain(z)} in tick {i}", f, (z,)

    def expressions(self) -> Iterator[tuple[str, Expr]]:
        """Yield the place of every expression of the law, and the expression."""
        return ((place, f) for place, f, _ in self.equations())

    # --- for people -------------------------------------------------------------------------------

    @property
    def latex(self) -> str:
        """The equations in LaTeX, as ``aligned``."""
        return in_latex(self)

    def _repr_latex_(self) -> str:
        return f"$${self.latex}$$"

    @property
    def __signature__(self) -> inspect.Signature:
        """What editors offer inside ``LDCC(``: the parameters with their values."""
        by_name = inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature(
            [inspect.Parameter(plain(s), by_name, default=v) for s, v in self.params.items()]
        )


# --- sources --------------------------------------------------------------------------------------


def marginal(utility: Any, x: Symbol) -> Let:
    """Return dU/dx, as flows hold it in which `Source.with_utility` can put another one."""
    return Let("U'", powsimp(diff(sympify(utility), x)))


def extended(law: L, name: str, *, claims: Mapping[str, Any] | None = None, **more: Any) -> L:
    """Return a law that has more than another one, under another name.

    Parameters
    ----------
    claims : mapping, optional
        What holds of the new law: what the other one claims need not.
    **more
        Of the law. Mappings are added to those of the other law; all else takes their place.
    """
    merged: dict[str, Any] = {
        k: {**getattr(law, k), **v} if isinstance(v, Mapping) else v for k, v in more.items()
    }
    return replace(law, name=name, claims=claims or {}, **merged)


@explained_class
@dataclass(frozen=True, eq=False, repr=False)
class Source(Law):
    """A sender: states z' = flow(z, u), sending rate out["rate"] [bit/s]; u are
    `fluidcc.symbols.SOURCE_INPUTS`.

    Parameters
    ----------
    utility : Expr, optional
        U(x) of the state that is the rate, increasing and concave, if the law maximises one.
    window : Symbol, optional
        The state that is a congestion window [packet]. One of which the rate is W packet/RTT need
        not be named.
    traffic : {"", "on_off_pareto", "poisson"}
        Kind of random traffic that a law without states sends, by parameters of the names that
        `Network.flow` has in its `pattern`.
    gain, penalty : Expr, optional
        k and v of a law of the form x' = k x (U'(x) - v - e' - loss).
    threshold : Expr, optional
        Queueing delay above which it backs off [s], in its states, parameters and the round trip.
    steady : mapping of Symbol to Expr
        States that follow from others at an equilibrium, such as ``{F: w}``: it is found without
        them, in terms of the states, the signals and the parameters that are left. With ``"rate"``
        what is sent then.
    doubts : mapping of str to Expr
        What makes a run doubtful, said of the flow (``"started too late"``), where the expression
        of states and parameters is positive at the end.
    mean_of : str
        Law of the library that jumps at losses, of which this window is the mean over losses at
        random (``"fluidcc.AIMD"``): what a run over a full buffer, which drops of all, advises.

    See `Law` for the others.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from sympy import symbols
    >>> from fluidcc.symbols import e
    >>> x, w, b = symbols("x w b", positive=True)
    >>> law = fc.Source("Leveller", {x: w - b * x * e}, {"rate": x}, initial={x: 1e5}, lower={x: 0},
    ...                 params={w: 1e5, b: 1.0},
    ...                 units={x: "bit/s", w: "bit/s^2", b: "1/s^2"})
    >>> net = fc.dumbbell([law], {"capacity": "1 Mbit/s"}, rtt="50 ms")
    >>> fc.equilibrium(net).one_way_delay.item()
    0.1
    """

    utility: Expr | None = None
    window: Symbol | None = None
    traffic: str = ""
    gain: Expr | None = None
    penalty: Expr | None = None
    threshold: Expr | None = None
    steady: Mapping[Any, Any] = field(default_factory=dict)
    doubts: Mapping[str, Any] = field(default_factory=dict)
    mean_of: str = ""

    kind: ClassVar[str] = "source"
    inputs: ClassVar[tuple[Symbol, ...]] = SOURCE_INPUTS
    outputs: ClassVar[tuple[str, ...]] = SOURCE_OUTPUTS
    constants: ClassVar[tuple[Symbol, ...]] = (e_b, packet)

    def __post_init__(self) -> None:
        for what in ("utility", "threshold", "gain", "penalty"):
            if (given := getattr(self, what)) is not None:
                object.__setattr__(self, what, expression(given, f"{self.name}: the {what}"))
        object.__setattr__(self, "steady", frozen(self.steady, f"{self.name}: steady"))
        super().__post_init__()
        if self.window is not None and (
            self.window not in self.flow or dim_of_text(self.units[self.window]) != Dim()
        ):
            raise LawError(
                f"{self.name}: window is {shown(self.window)}; give one of its states [packet]"
            )
        choice(self.traffic, f"{self.name}: traffic", ("", "on_off_pareto", "poisson"))
        object.__setattr__(self, "doubts", frozen(self.doubts, f"{self.name}: doubts"))
        known = {*self.flow, *self.params}
        trip = ", parameters and the round trip"
        self._of(self.threshold, known | symbols_of(RTT), "threshold", trip)
        for doubt in self.doubts.values():
            self._of(doubt, known, "condition of a doubt", " and parameters")

    def _of(self, given: Expr | None, known: set[Symbol], what: str, which: str) -> None:
        """Refuse an expression of other symbols than these."""
        if given is not None and (strange := symbols_of(given) - known):
            raise LawError(
                f"{self.name}: the {what} depends on {', '.join(sorted(map(plain, strange)))}; "
                f"give it in states{which}"
            )

    @property
    def static_window(self) -> Symbol | None:
        """The state W of a law whose rate is W packet/RTT at every instant, else None.

        So it is None where acknowledgements clock the window, or a rate is controlled.

        Examples
        --------
        >>> import fluidcc as fc
        >>> fc.StaticReno.static_window, fc.Reno.static_window
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

        The law's marginal utility, the Let ``U'`` in its flow, is replaced by dU/dx; parameters
        that then occur nowhere are dropped.

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
        x, lets = self.out["rate"], {v for f in self.flow.values() for v in f.atoms(Let)}
        if self.utility is None or marginal(self.utility, x) not in lets:
            raise LawError(f"{self.name} maximises no utility, so none can be put in its place")
        utility = expression(utility, f"the utility of {self.name}")
        check_kinds(self.name, {"params": params or {}, "units": units or {}})
        new = {marginal(self.utility, x): marginal(utility, x)}
        flow = {z: f.xreplace(new) for z, f in self.flow.items()}
        others = [f for _, f in self.expressions() if f not in self.flow.values()]
        kept = [utility, *flow.values(), *others, *self.initial.values()]
        used = {*flow, *(params or {})}.union(*(f.free_symbols for f in kept))
        values, texts = {**self.params, **(params or {})}, {**self.units, **(units or {})}
        return replace(
            self,
            name=name or self.name,
            flow=flow,
            utility=utility,
            claims={},
            params={s: v for s, v in values.items() if s in used},
            units={s: v for s, v in texts.items() if s in used or s in (units or {})},
        )


def tfrc_rate(p: Any, rtt: Any, packet: Any, b: Any) -> Expr:
    """Return the TCP-friendly rate [bit/s] of RFC 5348, Section 3.1, with a timeout of four round
    trips: both sources and formulas have it.

    Parameters
    ----------
    p, rtt, packet, b : Expr
        Loss event ratio [1], round-trip time [s], packet length [bit], packets an acknowledgement
        [1].
    """
    return packet / (rtt * (sqrt(2 * b * p / 3) + 12 * sqrt(3 * b * p / 8) * p * (1 + 32 * p**2)))


# --- links ----------------------------------------------------------------------------------------


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

    Examples
    --------
    A link that marks in proportion to its queueing delay:

    >>> import fluidcc as fc
    >>> from sympy import symbols
    >>> from fluidcc.symbols import c, y
    >>> q, slope = symbols("q slope", nonnegative=True)
    >>> law = fc.Link("Proportional", {q: (y - c) / c}, {"mark": slope * q}, queue=q, lower={q: 0},
    ...               params={slope: 2.0}, units={q: "s", slope: "1/s"}, initial={q: 0})
    >>> net = fc.Network().link("l", law, capacity="5 Mbit/s", delay="10 ms")
    """

    queue: Symbol | None = None

    kind: ClassVar[str] = "link"
    inputs: ClassVar[tuple[Symbol, ...]] = LINK_INPUTS
    outputs: ClassVar[tuple[str, ...]] = LINK_OUTPUTS
    constants: ClassVar[tuple[Symbol, ...]] = (c, q_max)

    def __post_init__(self) -> None:
        if not isinstance(self.queue, Symbol | None):
            raise LawError(f"{self.name}: queue is {shown(self.queue)}; give the symbol of a state")
        super().__post_init__()
