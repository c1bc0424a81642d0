"""Text of the record that a pass of a fused step makes: quartics, from its stages and nodes."""

from __future__ import annotations

from fluidcc.numerics.fluid import slots as s
from fluidcc.numerics.fluid.constants import CONSTANTS
from fluidcc.numerics.fluid.records import FIT
from fluidcc.numerics.tableaus import TSIT5
from fluidcc.simulation.fused_rhs import Rhs
from fluidcc.simulation.fused_spans import Span, total

__all__ = ["constant", "record_lines", "weighted"]


def weighted(weights: list[float], name: str, i: int) -> str:
    """Sum of ``name0_i``, ``name1_i``, ..., with weights."""
    return " + ".join(f"{constant(w)}*{name}{k}_{i}" for k, w in enumerate(weights) if w != 0.0) or "0.0"


def constant(value: float) -> str:
    """Text of a number, by its place in `F` where it stands there."""
    return f"F[{s.TABLE + CONSTANTS.index(value)}]" if value in CONSTANTS else repr(value)


def _fit(names: list[str]) -> list[str]:
    """Coefficients of the quartic through five values at equal distances."""
    first, *others = names
    rows = ([f"{float(w)!r}*({v} - {first})" for w, v in zip(row, others, strict=True)] for row in FIT)
    return [first, *(" + ".join(row) for row in rows)]


def _dense(base: str, name: str, i: int) -> list[str]:
    return [base, *(f"h*({weighted([float(p) for p in TSIT5.P[:, j]], name, i)})" for j in range(4))]


def record_lines(rhs: Rhs) -> list[str]:
    """The quartics of the record at the ring's next place."""
    at = rhs.at
    lines = [f"r = I[{s.OHIST}] + (nrec & I[{s.MASK}]) * I[{s.STRIDE}]"]
    for l in range(len(at.links)):
        b, state = s.RLINKS + l * s.LSIZE, at.backlog + l
        pieces = [(0, _dense(f"y{state}", "d", state))]
        for wanted, a, slot in ((True, "a", s.LY), (rhs.marks, "m", s.LMARK), (rhs.prices, "q", s.LPRICE)):
            if wanted and at.refit:
                pieces.append((slot, _fit([f"{a}{k}_{l}" for k in range(5)])))
            elif wanted:
                pieces.append((slot, _dense(f"a0_{l}", "ak", l)))
        lines += [f"F[r + {b + slot + j}] = {c}" for slot, five in pieces for j, c in enumerate(five)]
    for l in at.acting:
        five = _fit([f"w{k}_{l}" for k in range(5)])
        lines += [f"F[r + {rhs.act_place(l) + j}] = {c}" for j, c in enumerate(five)]
    return lines + _rates_on_record(rhs)


def _rates_on_record(rhs: Rhs) -> list[str]:
    """Rates that feed later links, summed by route, and those that their own sources look back at."""
    at = rhs.at
    first = s.RLINKS + len(at.links) * s.LSIZE
    feeds = [[span for span in rhs.spans.flows if at.route(span.first) == route] for route in at.aggregates]
    slots = [*feeds, *([Span(i)] for i, slot in enumerate(at.own_rate) if slot >= 0)]
    lines = []
    for slot, flows in enumerate(slots):
        at_node = ["(" + " + ".join(total(f"x{k}_{span.first}", span) for span in flows) + ")" for k in range(5)]
        if at.refit:
            five = _fit(at_node)
        else:
            state = rhs.rate_state(flows[0].first)
            five = _dense(at_node[0], "d", state) if state >= 0 else [at_node[0], *["0.0"] * 4]
        lines += [f"F[r + {first + 5 * slot + j}] = {c}" for j, c in enumerate(five)]
    return lines
