"""States that only keep account: of the round trip, or of what is in flight. An equilibrium leaves them undetermined.

A state z with z' = a edot/(1 + edot) + b (rate - x_tau/(1 + edot)) is a first integral away: edot/(1 + edot) is the
round trip's rate of change as the source sees it, and the second bracket that of the data under way, so that
z - a RTT - b (data under way) never changes. At rest a rate x has x RTT under way.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from sympy import Expr, Integer, N, Rational, Symbol, cancel, together

from fluidcc.derive.steady import Structure
from fluidcc.law import Law
from fluidcc.symbols import e, edot, packet, x_tau

__all__ = ["Account", "trackers"]


class Account(NamedTuple):
    """z - `delay` RTT - `data` (bits under way) is constant."""

    delay: Expr
    data: Expr


def trackers(law: Law) -> dict[Symbol, Account]:
    """The states of a source that keep account, on the branch on which all of its modes but bounds hold.

    Parameters
    ----------
    law : Source or Link
        Links have none.
    """
    return _trackers(Structure.of(law)) if law.kind == "source" else {}


@lru_cache(maxsize=256)
def _trackers(structure: Structure) -> dict[Symbol, Account]:
    held = structure.law.switched()
    running = dict.fromkeys(held.modes, Integer(1))
    rate = held.out["rate"]
    found = {}
    for z, flow in held.flow.items():
        if flow.free_symbols & {edot, x_tau} and (account := _account(flow, rate, running, held.flow.keys())):
            found[z] = account
    return found


def _account(flow: Expr, rate: Expr, running: dict[Any, Any], states: Any) -> Account | None:
    signals = {e, edot, x_tau}
    data: Expr = Integer(0)
    if x_tau in flow.free_symbols:
        gap, back = (flow - rate / packet).subs(running), x_tau / (1 + edot)
        if not _vanishes(gap + back / packet - (gap + back / packet).subs(x_tau, 1)):
            return None
        data, flow = 1 / packet, (gap + back / packet).subs(x_tau, 1)
    flow = flow.subs(running)
    delay = Integer(0) if _vanishes(flow) else _plain(flow * (1 + edot) / edot)
    if delay.free_symbols & (signals | {*states}) or (delay == 0 and data == 0):
        return None
    return Account(delay, data)


def _vanishes(f: Expr) -> bool:
    """Whether an expression is zero at some points, to forty digits."""
    symbols = sorted(f.free_symbols, key=str)
    points = ({s: Rational(17 + 7 * k + 5 * n, 11 + k) for n, s in enumerate(symbols)} for k in range(3))
    return all(abs(N(f.subs(point), 40)) < 1e-30 for point in points)


def _plain(f: Expr) -> Expr:
    return cancel(together(f))
