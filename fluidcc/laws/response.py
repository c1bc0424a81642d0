"""How a law at rest answers small signals: its Jacobians there, and its transfer functions, as formulas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Expr, Matrix, Symbol, eye, zeros
from sympy.core.relational import Relational

from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.laws.law import Law, Steady
from fluidcc.laws.linear import linearize_law
from fluidcc.laws.standstill import standstills
from fluidcc.symbols import e, edot, plain, unfold

__all__ = ["AtRest", "at_rest"]


@dataclass(frozen=True)
class AtRest:
    """A law linearised where it stands still, on one branch of its kinks.

    Attributes
    ----------
    law : Source or Link
        The law.
    A, B, C, D : Matrix
        Derivatives of flow and outputs (rows) by states and inputs (columns), in the law's orders.
    values : dict of Symbol to Expr
        What standing still determines; already put into the matrices.
    conditions : tuple of relational
        Under which it can stand still on this branch.
    """

    law: Law
    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    values: dict[Symbol, Expr]
    conditions: tuple[Relational, ...]

    def put(self, expr: Any) -> Expr:
        """`expr` at this equilibrium, without Lets."""
        return unfold(expr).subs(self.values)

    def transfer(self, output: str, signal: Symbol, s: Symbol) -> Expr:
        """Transfer function C (sI - A)^{-1} B + D from one input to one output.

        For the one-way delay `fluidcc.symbols.e` of a source, its derivative e' is taken along as s e.

        Raises
        ------
        InvalidInput
            If the law has no such output or input.
        """
        outputs, inputs = list(self.law.out), list(self.law.inputs)
        if output not in outputs or signal not in inputs:
            raise InvalidInput(
                f"{self.law.name} has no output {output!r} or no input {plain(signal)!r}; it has "
                f"{', '.join(outputs)} and {', '.join(map(plain, inputs))}"
            )
        row, column = outputs.index(output), inputs.index(signal)
        b, d = self.B[:, column], self.D[row, column]
        if signal == e and edot in inputs:
            slope = inputs.index(edot)
            b, d = b + s * self.B[:, slope], d + s * self.D[row, slope]
        n = self.A.rows
        if n == 0:
            return d
        return (self.C[row, :] * (s * eye(n) - self.A).inv() * b)[0] + d


def at_rest(law: Law, *, given: Mapping[Symbol, Any] | None = None, eliminate: Symbol | None = None) -> AtRest:
    """Linearise a law where it stands still.

    Parameters
    ----------
    law : Source or Link
    given : mapping of Symbol to Expr
        What else is known there, such as ``{pi: 0}`` for 'without loss'.
    eliminate : Symbol, optional
        The symbol that standing still determines, in which the flow is linear; found if not given.

    Returns
    -------
    AtRest

    Raises
    ------
    Unsupported
        If there is no branch, or more than one, on which it can.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from fluidcc.symbols import e, pi
    >>> at_rest(fc.LDCC, given={pi: 0}, eliminate=e).A.shape
    (1, 1)
    """
    found = list(standstills(law, Steady(True, given=given or {}, eliminate=eliminate)))
    if len(found) != 1:
        number = "no branch" if not found else f"{len(found)} branches"
        raise Unsupported(f"{law.name} can stand still on {number} of its kinks under what is given; give more of it")
    (still,) = found
    matrices = linearize_law(law, still.modes)
    put = [M.applyfunc(lambda f: unfold(f).subs(still.values)) if M.shape != (0, 0) else zeros(0, 0) for M in matrices]
    A, B, C, D = put
    return AtRest(law, A, B, C, D, values=still.values, conditions=still.conditions)
