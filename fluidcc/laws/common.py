"""What all laws share: see `fluidcc.laws.law`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from sympy import Expr, Matrix, Symbol, diff, expand, latex, powsimp, sqrt, sympify

from fluidcc.base.arguments import explained, shown
from fluidcc.base.errors import LawError
from fluidcc.laws.checks import check_law, parameter_values
from fluidcc.laws.parts import Frozen, Jump, Key, Steady, Tick, equal_once, frozen
from fluidcc.laws.switches import Switched, switched
from fluidcc.symbols import Let, expression, plain, unfold

__all__ = ["Law", "law_latex", "marginal", "tfrc_rate", "with_utility"]


def _read(kind: type[Law], content: dict[str, Any]) -> Law:
    """A law from a pickle, which need not be checked again."""
    law = object.__new__(kind)
    law.__dict__.update(content)
    return law


@dataclass(frozen=True, eq=False, repr=False)
class Law:
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
        Largest values of parameters, beyond the sign and the nonzero that a symbol's assumptions
        ask for.
    where : tuple of relational
        What must hold of parameters, such as ``(low < high, share < 1)``.

    Raises
    ------
    LawError
        If the law is not well formed; the message names the law, the culprit and the remedy.
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

    kind: ClassVar[str] = "law"
    inputs: ClassVar[tuple[Symbol, ...]] = ()
    outputs: ClassVar[tuple[str, ...]] = ()
    constants: ClassVar[tuple[Symbol, ...]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not self.name.isprintable():
            raise LawError(
                f"the name of a law is {shown(self.name)}; give a line of text, such as 'LDCC'"
            )
        for name in ("flow", "out", "lower", "upper", "initial"):
            self._keep(name, frozen(self._given(name, Mapping), f"{self.name}: {name}"))
        for name in ("units", "params", "limits"):
            self._keep(name, Frozen(self._given(name, Mapping)))
        claims = self._given("claims", Mapping)
        self._keep(
            "claims",
            Frozen(
                {k: v if isinstance(v, Steady) else self._claim(k, v) for k, v in claims.items()}
            ),
        )
        for name in ("jumps", "ticks"):
            self._keep(name, tuple(self._given(name, tuple | list)))
            kind = {"jumps": Jump, "ticks": Tick}[name]
            for one in getattr(self, name):
                if not isinstance(one, kind):
                    raise LawError(
                        f"{self.name}: {name} holds {shown(one)}; give {kind.__name__} objects"
                    )
        self._keep("where", tuple(self._given("where", tuple | list)))
        self._given("ref", str)
        self._keep("params", Frozen(parameter_values(self)))
        check_law(self)

    def _claim(self, label: Any, value: Any) -> Any:
        return expression(value, f"{self.name}: claim {shown(label)}")

    def _keep(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _given(self, name: str, kind: Any) -> Any:
        """The argument of that name, refused if it is of another kind."""
        value = getattr(self, name)
        if not isinstance(value, kind):
            right = {Mapping: "a mapping, such as {x: ...}", str: "text"}.get(
                kind, f"{name} in a list or tuple"
            )
            raise LawError(f"{self.name}: {name} is {shown(value)}; give {right}")
        return value

    # --- identity ---------------------------------------------------------------------------------

    @cached_property
    def _content(self) -> tuple[Any, ...]:
        values = (getattr(self, f.name) for f in fields(self))
        return (
            type(self).__name__,
            *(tuple(v.items()) if isinstance(v, dict) else v for v in values),
        )

    @cached_property
    def structure(self) -> tuple[Any, ...]:
        """What of the law does not depend on parameter values; laws of equal structure share
        kernels and checks.
        """
        kept = ("flow", "out", "units", "lower", "upper", "initial", "jumps", "ticks")
        values = (getattr(self, name) for name in kept)
        parts = (tuple(v.items()) if isinstance(v, dict) else v for v in values)
        return Key((self.kind, self.name, tuple(self.params), *parts))

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Law):
            return self is other
        return equal_once(self, other, lambda: self._content == other._content)

    @cached_property
    def _hash(self) -> int:
        return hash(self._content)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return _read, (type(self), {f.name: getattr(self, f.name) for f in fields(self)})

    def __repr__(self) -> str:
        values = ", ".join(f"{plain(s)}={v:g}" for s, v in self.params.items())
        return f"{self.kind} {self.name}({values})"

    def _repr_latex_(self) -> str:
        return law_latex(self)

    # --- use --------------------------------------------------------------------------------------

    def __call__(self, /, *unnamed: Any, **values: Any) -> Self:
        """Return the same law with other parameter values (numbers in SI units, or text with
        units).

        Raises
        ------
        LawError
            If there is no such parameter, or the value is not one it can take.
        """
        names = {plain(s): s for s in self.params}
        if unnamed:
            known = ", ".join(names) or "none"
            raise LawError(
                f"{self.name} takes parameters by name, not {shown(unnamed[0])} by position; it "
                f"has {known}"
            )
        for name in values:
            if name not in names:
                close = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
                hint = (
                    f"did you mean {' or '.join(close)}?"
                    if close
                    else f"it has {', '.join(names) or 'none'}"
                )
                raise LawError(f"{self.name} has no parameter {shown(name)}: {hint}")
        return replace(self, params={**self.params, **{names[k]: v for k, v in values.items()}})

    @property
    def states(self) -> tuple[Symbol, ...]:
        """The state symbols, in order."""
        return tuple(self.flow)

    @explained
    def parameter(self, name: str) -> float:
        """Value of the parameter of that name.

        Parameters
        ----------
        name : str
        """
        for s, value in self.params.items():
            if isinstance(name, str) and plain(s) == name:
                return float(value)
        known = ", ".join(map(plain, self.params)) or "none"
        raise LawError(f"{self.name} has no parameter {shown(name)}: it has {known}")

    @explained
    def averaged(
        self,
        intensity: Any,
        *,
        name: str | None = None,
        claims: Mapping[str, Any] | None = None,
        ref: str | None = None,
    ) -> Self:
        """Return the fluid limit of the jumps at a Poisson intensity: flow + sum intensity (reset -
        state).

        Parameters
        ----------
        intensity : Expr, such as fluidcc.symbols.x_tau * mark
            Expected jumps a second [1/s], in place of each jump's `when`; refractory times are
            dropped.
        name, claims, ref : optional
            Those of the averaged law; by default its name and `ref` are the same, and it claims
            nothing.
        """
        if not self.jumps:
            raise LawError(f"{self.name} has no jumps to average")
        intensity = expression(intensity, f"the intensity at which {self.name} is averaged")
        drift = {
            z: f + sum(intensity * expand(j.reset[z] - z) for j in self.jumps if z in j.reset)
            for z, f in self.flow.items()
        }
        return replace(
            self,
            flow=drift,
            jumps=(),
            name=name or self.name,
            claims=claims or {},
            ref=ref or self.ref,
        )

    @cached_property
    def system(self) -> tuple[Matrix, Matrix]:
        """(F, H): columns of the flows, and of the outputs in the order of `out`, without Lets."""
        return Matrix(len(self.flow), 1, [unfold(f) for f in self.flow.values()]), Matrix(
            len(self.out), 1, [unfold(f) for f in self.out.values()]
        )

    @cached_property
    def jacobians(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """A, B, C, D: derivatives of `system` by the states and by `inputs`, symbolic; kinks
        give Heavisides.
        """
        F, H = self.system
        z, u = self.states, self.inputs
        return tuple(
            Matrix(M.rows, len(v), lambda i, j, M=M, v=v: diff(M[i], v[j]))
            for M in (F, H)
            for v in (z, u)
        )

    def switched(self) -> Switched:
        """Flow and outputs with every kink held by a mode symbol: see
        `fluidcc.laws.switches.Switched`.
        """
        return self._switched

    @cached_property
    def _switched(self) -> Switched:
        return switched(self)

    @property
    def switches(self) -> tuple[Expr, ...]:
        """The expressions whose signs choose the branches of Max, Min, Piecewise, ... in the
        flow and outputs.
        """
        return self._switched.switches

    def expressions(self) -> Iterator[tuple[str, Expr]]:
        """Every expression of the law with a description of its place."""
        yield from ((f"the flow of {plain(z)}", f) for z, f in self.flow.items())
        yield from ((f"output {k!r}", f) for k, f in self.out.items())
        for side in ("lower", "upper"):
            yield from (
                (f"the {side} bound of {plain(z)}", f) for z, f in getattr(self, side).items()
            )
        for i, j in enumerate(self.jumps):
            yield f"the condition of jump {i}", j.when
            yield f"the refractory time of jump {i}", j.refractory
            yield from ((f"the reset of {plain(z)} in jump {i}", f) for z, f in j.reset.items())
        for i, tick in enumerate(self.ticks):
            yield f"the period of tick {i}", tick.every
            yield f"the phase of tick {i}", tick.phase
            yield from (
                (f"the update of {plain(z)} in tick {i}", f) for z, f in tick.update.items()
            )


# --- LaTeX of a law: one row an equation, then what the names in them stand for ------------------


def _show(f: Any) -> str:
    return str(latex(f, order="none"))


def _lets(roots: list[Any]) -> list[Let]:
    """Every Let below `roots`, in order of first use."""
    found: list[Let] = []
    todo = list(roots)
    while todo:
        for v in sorted(sympify(todo.pop(0)).atoms(Let), key=str):
            if v not in found:
                found.append(v)
                todo.append(v.definition)
    return found


def _dot(z: Any) -> str:
    head, _, tail = _show(z).partition("_")
    return rf"\dot{{{head}}}" + (f"_{tail}" if tail else "")


def law_latex(law: Any) -> str:
    """The law as a displayed LaTeX block, for Jupyter."""
    rows = [rf"{_dot(z)} &= {_show(f)}" for z, f in law.flow.items()]
    rows += [rf"\mathrm{{{k}}} &= {_show(f)}" for k, f in law.out.items() if f not in law.flow]
    for j in law.jumps:
        rows += [
            rf"{_show(z)} &\leftarrow {_show(f)} \quad\text{{when }} {_show(j.when)} > 0"
            + (r"\text{, when it becomes so}" if j.once else "")
            + (rf"\text{{, at most once per }} {_show(j.refractory)}" if j.refractory != 0 else "")
            for z, f in j.reset.items()
        ]
    for tick in law.ticks:
        rows += [
            rf"{_show(z)} &\leftarrow {_show(f)} \quad\text{{every }} {_show(tick.every)}"
            for z, f in tick.update.items()
        ]
    rows += [rf"{_show(z)} &\geq {_show(f)}" for z, f in law.lower.items()]
    rows += [rf"{_show(z)} &\leq {_show(f)}" for z, f in law.upper.items()]
    lets = _lets([f for _, f in law.expressions()])
    rows += [
        (r"\text{where}\quad " if i == 0 else "") + rf"{_show(v)} &= {_show(v.definition)}"
        for i, v in enumerate(lets)
    ]
    body = " \\\\\n".join(rows)
    return "$$\\begin{aligned}\n" + body + "\n\\end{aligned}$$"


# --- Equations that laws send by and formulas evaluate: written once, below both -----------------


def tfrc_rate(p: Any, rtt: Any, packet: Any, b: Any) -> Expr:
    """TCP-friendly rate [bit/s] of RFC 5348, Section 3.1, with a timeout of four round trips.

    Parameters
    ----------
    p, rtt, packet, b : Expr
        Loss event ratio [1], round-trip time [s], packet length [bit], packets an acknowledgement
        [1].
    """
    return packet / (rtt * (sqrt(2 * b * p / 3) + 12 * sqrt(3 * b * p / 8) * p * (1 + 32 * p**2)))


# --- another utility in the place of a law's own --------------------------------------------------


MARGINAL = "U'"


def marginal(utility: Any, x: Symbol) -> Let:
    """dU/dx under the name by which `Source.with_utility` finds it."""
    return Let(MARGINAL, powsimp(diff(sympify(utility), x)))


def with_utility(
    law: Any,
    utility: Any,
    params: Mapping[Symbol, Any],
    units: Mapping[Symbol, str],
    name: str | None,
) -> Any:
    """See `fluidcc.laws.law.Source.with_utility`."""
    x = law.out["rate"]
    old = next((v for f in law.flow.values() for v in f.atoms(Let) if v.name == MARGINAL), None)
    if old is None or law.utility is None:
        raise LawError(f"{law.name} maximises no utility, so none can be put in its place")
    utility = expression(utility, f"the utility of {law.name}")
    new = marginal(utility, x)
    flow = {z: f.xreplace({old: new}) for z, f in law.flow.items()}
    values = {**law.params, **params}
    texts = {**law.units, **units}
    bare = replace(law, params=law.params, claims={}, name=name or law.name)
    used = (
        set(utility.free_symbols) | {*flow} | set().union(*(f.free_symbols for f in flow.values()))
    )
    for _, f in bare.expressions():
        if f not in law.flow.values():
            used |= f.free_symbols
    used |= set().union(*(f.free_symbols for f in law.initial.values()))
    return replace(
        bare,
        flow=flow,
        utility=utility,
        params={s: v for s, v in values.items() if s in used or s in params},
        units={s: v for s, v in texts.items() if s in used or s in units},
    )
