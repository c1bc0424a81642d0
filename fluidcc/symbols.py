"""The field's vocabulary, once: what a path tells a source, what the flows tell a link.

Symbols are identified by name *and* assumptions, so every law takes its signals from here.
"""

from __future__ import annotations

from typing import Any

from sympy import Expr, Symbol, sympify

__all__ = [
    "LINK_INPUTS",
    "LINK_OUTPUTS",
    "RTT",
    "SIGNAL_UNITS",
    "SOURCE_INPUTS",
    "SOURCE_OUTPUTS",
    "Let",
    "c",
    "e",
    "e_b",
    "edot",
    "packet",
    "pi",
    "price",
    "q_max",
    "t",
    "unfold",
    "x_tau",
    "y",
]

t = Symbol("t", real=True)
e = Symbol("e", nonnegative=True)
edot = Symbol(r"\dot{e}", real=True)
pi = Symbol(r"\pi", nonnegative=True)
price = Symbol(r"\lambda", nonnegative=True)
x_tau = Symbol(r"x_{\tau}", nonnegative=True)
e_b = Symbol("e_b", nonnegative=True)
packet = Symbol(r"\ell", positive=True)
y = Symbol("y", nonnegative=True)
c = Symbol("c", positive=True)
q_max = Symbol(r"q_{\max}", positive=True)

SOURCE_INPUTS = (e, edot, pi, price, x_tau, e_b, packet, t)
SOURCE_OUTPUTS = ("rate",)
LINK_INPUTS = (y, c, q_max, t)
LINK_OUTPUTS = ("loss", "mark", "price")

SIGNAL_UNITS = {
    t: "s",
    e: "s",
    edot: "1",
    pi: "1",
    price: "1",
    x_tau: "bit/s",
    e_b: "s",
    packet: "bit/packet",
    y: "bit/s",
    c: "bit/s",
    q_max: "s",
}


class Let(Symbol):
    """A named sub-expression: printed by its name, derived by its definition."""

    definition: Expr

    def __new__(cls, name: str, definition: Any) -> Let:
        self = Symbol.__xnew__(cls, name)
        self.definition = sympify(definition)
        return self


def unfold(f: Any) -> Expr:
    """Replace every `Let` in `f` by its definition, to the bottom."""
    f = sympify(f)
    while lets := f.atoms(Let):
        f = f.xreplace({v: v.definition for v in lets})
    return f


RTT = Let(r"\mathrm{RTT}", e + e_b)
