"""What stands side by side in a fused step and is one value in its text: a vector, where neighbours differ in numbers.

Flows of equal law that share a route and its delays hear the same, and what they compute differs in states and
parameters alone. So the text has one line for all of them, on vectors, where it else has one for each.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from fluidcc.laws.kernels import count_switches
from fluidcc.simulation.layout import Group, Layout

__all__ = ["Span", "Spans", "chosen", "load", "put", "total", "value_at"]

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


@dataclass(frozen=True)
class Spans:
    """All that a fused step works on, by what is one value in its text."""

    members: list[list[Span]]  # of each group of flows, by their numbers in it
    states: list[Span]
    flows: list[Span]
    modes: list[Span]  # of all switches

    @classmethod
    def of(cls, at: Layout, able: list[bool]) -> Spans:
        """Those of a network; `able` says of each group of flows whether vectors can do what its law does."""
        found = [_members(at, group, can) for group, can in zip(at.groups, able, strict=True)]
        known = list(zip(at.groups, found, strict=True))
        own = [
            Span(group.states + n * group.size + span.first, span.count)
            for group, spans in known
            for n in range(len(group.own))
            for span in spans
        ]
        rest = (Span(k) for k in range(sum(span.count for span in own), at.n_states))
        flows = [Span(group.members[span.first], span.count) for group, spans in known for span in spans]
        single = [(group, [Span(j) for j in range(group.size)]) for group in at.link_groups]
        return cls(found, [*own, *rest], flows, _modes([*known, *single]))


def _members(at: Layout, group: Group, able: bool) -> list[Span]:
    able = able and bool(group.own) and all(at.own_rate[i] < 0 for i in group.members)
    spans: list[Span] = []
    for j, i in enumerate(group.members):
        smooth = at.refit or at.route(i) not in at.aggregates
        if able and smooth and j and i == group.members[j - 1] + 1:
            last = spans[-1]
            if at.flow_class[i] == at.flow_class[group.members[last.first]]:
                spans[-1] = Span(last.first, last.count + 1)
                continue
        spans.append(Span(j))
    return spans


def _modes(groups: list[tuple[Group, list[Span]]]) -> list[Span]:
    first, modes = 0, []
    for group, spans in groups:
        for n in range(count_switches(group.law)):
            modes += [Span(first + n * group.size + span.first, span.count) for span in spans]
        first += count_switches(group.law) * group.size
    return modes


def load(name: str, spans: list[Span], offset: int = 0) -> list[str]:
    """Lines that load what stands from F[o + offset] on."""
    return [f"{name}{span.first} = {value_at(offset + span.first, span.count)}" for span in spans]


def total(name: str, span: Span) -> str:
    """Text of the sum of a span's values."""
    return name if span.count == 1 else f"total({name})"


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
