"""What stands side by side in a fused step and is one value in its text: a vector, where neighbours differ in numbers.

Flows of equal law that share a route and its delays hear the same, and what they compute differs in states and
parameters alone. So the text has one line for all of them, on vectors, where it else has one for each.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from fluidcc.compile import count_switches
from fluidcc.engine.layout import Group, Layout

__all__ = [
    "Span", "chosen", "load", "members", "put", "spans_of_flows", "spans_of_states", "spans_of_switches", "value_at",
]  # fmt: skip

_KNOWN = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.USub, ast.Gt, ast.GtE, ast.Lt, ast.LtE)  # what vectors can do


@dataclass(frozen=True)
class Span:
    """Neighbours, of which names in the text bear the first number."""

    first: int
    count: int = 1


class _Chosen(ast.NodeTransformer):
    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        parts = [self.visit(part) for part in (node.test, node.body, node.orelse)]
        return ast.Call(ast.Name("choose", ast.Load()), parts, [])

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        operator = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
        first, *rest = (self.visit(value) for value in node.values)
        for value in rest:
            first = ast.BinOp(first, operator, value)
        return first


def chosen(definition: str) -> str | None:
    """The text of a law's function for vectors, which have no branches; None if it does what vectors cannot."""
    tree = ast.parse(definition)
    for node in ast.walk(tree):
        if isinstance(node, ast.operator | ast.unaryop | ast.cmpop) and not isinstance(node, _KNOWN):
            return None
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id == "abs"):
            return None
    return ast.unparse(ast.fix_missing_locations(_Chosen().visit(tree)))


def members(at: Layout, group: Group, able: bool) -> list[Span]:
    """The members of a group of flows, by their numbers in it; together where one line does for them.

    `able` says whether vectors can do what their law does.
    """
    able = able and bool(group.own) and all(at.own_rate[i] < 0 for i in group.members)
    spans: list[Span] = []
    for j, i in enumerate(group.members):
        smooth = at.refit or at.route(i) not in at.aggregates
        if able and smooth and spans and i == group.members[j - 1] + 1:
            last = spans[-1]
            if at.flow_class[i] == at.flow_class[group.members[last.first]]:
                spans[-1] = Span(last.first, last.count + 1)
                continue
        spans.append(Span(j))
    return spans


def spans_of_states(at: Layout, found: list[list[Span]]) -> list[Span]:
    """All states in order; `found` are the members of each group of flows."""
    states = [
        Span(group.states + n * group.size + span.first, span.count)
        for group, spans in zip(at.groups, found, strict=True)
        for n in range(len(group.own))
        for span in spans
    ]
    known = sum(span.count for span in states)
    return [*states, *(Span(k) for k in range(known, at.n_states))]


def spans_of_flows(at: Layout, found: list[list[Span]]) -> list[Span]:
    """All flows in order."""
    return [
        Span(group.members[span.first], span.count)
        for group, spans in zip(at.groups, found, strict=True)
        for span in spans
    ]


def spans_of_switches(at: Layout, found: list[list[Span]]) -> list[Span]:
    """The switches of all laws in order."""
    first, switches = 0, []
    for group, spans in [*zip(at.groups, found, strict=True), *((g, _alone(g)) for g in at.link_groups)]:
        for n in range(count_switches(group.law)):
            switches += [Span(first + n * group.size + span.first, span.count) for span in spans]
        first += count_switches(group.law) * group.size
    return switches


def _alone(group: Group) -> list[Span]:
    return [Span(j) for j in range(group.size)]


def load(name: str, spans: list[Span], offset: int = 0) -> list[str]:
    """Lines that load what stands from F[o + offset] on."""
    return [f"{name}{span.first} = {value_at(offset + span.first, span.count)}" for span in spans]


def value_at(place: int, count: int) -> str:
    """Text of what stands at F[o + place]."""
    return f"F[o + {place}]" if count == 1 else f"vector_at(F, o + {place}, {count})"


def put(name: str, spans: list[Span], offset: int = 0) -> list[str]:
    """Lines that put values back from F[o + offset] on; ``{i}`` in the name stands for the number."""
    return [
        f"F[o + {offset + span.first}] = {name.format(i=span.first)}"
        if span.count == 1
        else f"put_vector(F, o + {offset + span.first}, {span.count}, {name.format(i=span.first)})"
        for span in spans
    ]
