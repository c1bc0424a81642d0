"""Another utility in the place of a law's own: the marginal utility in its flow is replaced by the new one's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sympy import Symbol, diff, powsimp, sympify

from fluidcc.base.errors import LawError
from fluidcc.symbols import Let, expression

__all__ = ["marginal", "with_utility"]

MARGINAL = "U'"


def marginal(utility: Any, x: Symbol) -> Let:
    """dU/dx under the name by which `Source.with_utility` finds it."""
    return Let(MARGINAL, powsimp(diff(sympify(utility), x)))


def with_utility(
    law: Any, utility: Any, params: Mapping[Symbol, Any], units: Mapping[Symbol, str], name: str | None
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
    used = set(utility.free_symbols) | {*flow} | set().union(*(f.free_symbols for f in flow.values()))
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
