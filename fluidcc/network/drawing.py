"""A network as a picture in SVG, for Jupyter: links are columns, flows are lines through those
they cross.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from itertools import pairwise

from fluidcc.network.specs import FlowSpec, LinkSpec, describe

__all__ = ["topology_svg"]

_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2")
_MOST = 24  # flows drawn; the others are counted
_LEFT, _COLUMN, _ROW, _TOP = 260, 210, 26, 62
_REACH = 60  # of a line before its first link and after its last


def topology_svg(links: Mapping[str, LinkSpec], flows: Mapping[str, FlowSpec], label: str) -> str:
    """Return the picture as an ``<svg>`` element.

    Parameters
    ----------
    links, flows : mappings of names to specs
        Links stand in the order in which they were added; a line that turns back crosses them in
        another.
    label : str
        What is read out where the picture cannot be seen.
    """
    at = {name: _LEFT + _COLUMN * i + 40 for i, name in enumerate(links)}
    drawn = list(flows.values())[:_MOST]
    height = _TOP + _ROW * max(len(drawn), 1) + 24
    width = _LEFT + _COLUMN * max(len(at), 1) + 20
    body = [
        _link(describe(spec), name, x, height)
        for (name, spec), x in zip(links.items(), at.values(), strict=True)
    ]
    body += [_flow(flow, i, at) for i, flow in enumerate(drawn)]
    if rest := len(flows) - len(drawn):
        body.append(f'<text x="8" y="{height - 6}" fill="#666">and {rest} more flows</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 '
        f'{width} {height}" '
        f'font-family="sans-serif" font-size="12" role="img" aria-label="{escape(label)}">'
        f'<rect width="{width}" height="{height}" fill="white"/>{"".join(body)}</svg>'
    )


def _link(text: str, name: str, x: int, height: int) -> str:
    return (
        f'<rect class="link" x="{x - 14}" y="{_TOP - 18}" width="28" height="{height - _TOP}" '
        f'rx="6" fill="#e8e8e8" '
        f'stroke="#888"/><text x="{x}" y="18" text-anchor="middle" '
        f'font-weight="bold">{escape(name)}</text>'
        f'<text x="{x}" y="34" text-anchor="middle" font-size="10" '
        f'fill="#444">{escape(text)}</text>'
    )


def _flow(flow: FlowSpec, row: int, at: dict[str, int]) -> str:
    y, colour = _TOP + _ROW * row, _COLOURS[row % len(_COLOURS)]
    xs = [at[name] for name in flow.route]
    path = [(xs[0] - _REACH, y)]
    for before, x in pairwise([xs[0] - _REACH, *xs]):
        if x < before:  # back to the left: below the row, so that it is not taken for a crossing
            path += [(before + 24, y), (before + 24, y + 9), (x - 24, y + 9), (x - 24, y)]
        path.append((x, y))
    path.append((xs[-1] + _REACH, y))
    points = " ".join(f"{a},{b}" for a, b in path)
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>' for x in xs)
    tip = path[-1][0]
    arrow = f'<path d="M{tip},{y} l-7,-4 v8 z" fill="{colour}"/>'
    label = f"{flow.name}: {flow.law.name}{_when(flow)}"
    return (
        f'<text x="8" y="{y + 4}" fill="{colour}">{escape(label)}</text>'
        f'<polyline class="flow" points="{points}" fill="none" stroke="{colour}" '
        f'stroke-width="1.6"/>{dots}{arrow}'
    )


def _when(flow: FlowSpec) -> str:
    if flow.intervals == ((-math.inf, math.inf),):
        return ""
    spans = [
        f"from {max(a, 0.0):g}{'' if b == math.inf else f' to {b:g}'} s"
        for a, b in flow.intervals[:2]
    ]
    return f" ({', '.join(spans)}{', ...' if len(flow.intervals) > 2 else ''})"
