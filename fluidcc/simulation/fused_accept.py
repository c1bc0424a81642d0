"""Text of what a fused step does when it is accepted: samples, totals, what is learned, and what goes on from its end.

It does what `fluidcc.numerics.fluid.accept.accept` does for the array step, of the same pieces, with sizes known.
"""

from __future__ import annotations

import math

from fluidcc.numerics.fluid import slots as s
from fluidcc.numerics.fluid.lanes import LANES
from fluidcc.numerics.tableaus import TSIT5
from fluidcc.simulation.fused_record import constant
from fluidcc.simulation.fused_rhs import Rhs

__all__ = ["IMPORTS", "accept_lines", "sizes"]

IMPORTS = """\
from fluidcc.numerics.fluid.accept import hand_over
from fluidcc.numerics.fluid.guess import begin_passes, learn
from fluidcc.numerics.fluid.lanes import places, put, quartic_lanes
from fluidcc.numerics.fluid.sample import rate_lanes, until
from fluidcc.numerics.fluid.sample_links import add_totals, link_lanes
from fluidcc.numerics.fluid.sample_paths import hop, sample_path
from fluidcc.numerics.fluid.vectors import choose
"""


def sizes(rhs: Rhs) -> tuple[int, int, int]:
    """Quartics of a record, of them those by which records are compared, states mixed: I[NQ], I[NQL] and I[NMIX]."""
    at = rhs.at
    compared = (2 + rhs.marks) * len(at.links) + len(at.aggregates)
    rest = sum(slot >= 0 for slot in at.own_rate) + s.XSIZE * len(at.acting)
    rest += rhs.prices * len(at.links)
    return compared + rest, compared, 0 if at.refit or rest else at.n_states


def accept_lines(rhs: Rhs) -> list[str]:
    """Lines of a function ``take_over(F, I, final)``."""
    at = rhs.at
    nq, nql, _ = sizes(rhs)
    n, nf, nl, acting = at.n_states, len(at.flows), len(at.links), s.XSIZE * len(at.acting)
    return [
        f"t, h, size, ts = F[{s.T}], F[{s.H}], I[{s.NSAMP}] + {s.PAD}, I[{s.OTS}]",
        "inverse, end = 1.0 / h, math.inf if final else t + h",
        f"q = I[{s.OBATCH}]",
        *_quartics(n),
        f"out, done = I[{s.OOUT}], I[{s.JCSAMP}]",
        f"states = out + {nf + s.SCLASSROWS * len(at.classes) + s.SLINKROWS * nl} * size",
        *(line for k in range(len(at.classes)) for line in _class(rhs, k)),
        *_links(rhs),
        f"add_totals(F, I, {nl}, {any(rhs.dropping)})",
        f"learn(F, I, {nq}, {nql})",
        f"hand_over(F, I, {n}, {nf}, {nl}, {acting}, {int(at.refit)})",
    ]


def _quartics(n: int) -> list[str]:
    """The dense output of all states, first of one power, then of the next: neighbours are worked on at once."""
    lines = [f"y, k = I[{s.OY}], I[{s.OK}]"]
    lines += [f"d{k}_{i} = F[k + {k * n + i}]" for k in range(7) for i in range(n)]
    for j in range(5):
        for i in range(n):
            terms = " + ".join(f"{constant(float(p))}*d{k}_{i}" for k, p in enumerate(TSIT5.P[:, j - 1]) if p != 0.0)
            lines.append(f"c{i} = {f'h*({terms})' if j else f'F[y + {i}]'}")
        lines += [f"F[q + {j * n + i}] = c{i}" for i in range(n)]
    return lines


def _bounded(rhs: Rhs) -> bool:
    """Whether any buffer may fill."""
    return any(math.isfinite(link.buffer) for link in rhs.at.links)


def _class(rhs: Rhs, k: int) -> list[str]:
    """Samples of the flows of a class, at its clock."""
    at, n, path = rhs.at, rhs.at.n_states, rhs.at.paths[k]
    link = at.nodes[path[0]].link
    thins = rhs.marks or rhs.prices or _bounded(rhs)
    known = f"{k}, {path[0]}, {link}, first, last, shift, {rhs.frozen}, {rhs.scheduled[link]}, {thins}"
    lines = [
        f"shift, first = F[I[{s.OACC}] + {at.flow_class.index(k)}], I[done + {k}]",
        "last = until(F, I, first, end - shift)",
        "if last > first:",
        f"    I[done + {k}] = last",
        f"    hop(F, I, {known})" if len(path) == 1 else f"    sample_path(F, I, {k}, first, last, shift)",
        f"for j in range(first, last, {LANES}):",
        "    at = places(F, ts + j, t - shift, inverse)",
    ]
    for group in at.groups:
        for j, i in enumerate(group.members):
            if at.flow_class[i] != k:
                continue
            on = f"I[I[{s.JON}] + {i}] != {s.OFF}"
            for m in range(len(group.own)):
                state = group.states + m * group.size + j
                lines.append(f"    values = quartic_lanes(F, q + {state}, {n}, at)")
                lines.append(f"    put(F, states + {state} * size + j, values)")
                if state == rhs.rate_state(i):
                    lines.append(f"    put(F, out + {i} * size + j, choose({on}, values, 0.0))")
            if rhs.rate_state(i) < 0:
                lines.append(f"    put(F, out + {i} * size + j, choose({on}, rate_lanes(F, I, {i}, at), 0.0))")
    return lines


def _links(rhs: Rhs) -> list[str]:
    """Samples of links, and of states of their own."""
    at, n, nl = rhs.at, rhs.at.n_states, len(rhs.at.links)
    lines = [
        f"done = I[{s.JLSAMP}]",
        "first = I[done]",
        f"last = until(F, I, {'max(first, last)' if at.classes else 'first'}, end)",  # a class is never ahead of a link
        "I[done] = last",
        f"r = I[{s.OHIST}] + (I[{s.NREC}] & I[{s.MASK}]) * I[{s.STRIDE}] + {s.RLINKS}",
        f"rows = out + {len(at.flows) + s.SCLASSROWS * len(at.classes)} * size",
        f"for j in range(first, last, {LANES}):",
        "    at = places(F, ts + j, t, inverse)",
    ]
    lossy = any(rhs.dropping) or _bounded(rhs)
    for l in range(nl):
        given = f"r + {l * s.LSIZE}, rows + {l} * size + j, {nl} * size, at, min({LANES}, last - j)"
        known = f"{rhs.scheduled[l]}, {rhs.prices}, {lossy}, {rhs.dropping[l]}"
        lines.append(f"    link_lanes(F, I, {l}, {given}, {known})")
    lines += [
        f"    put(F, states + {i} * size + j, quartic_lanes(F, q + {i}, {n}, at))" for i in range(at.backlog + nl, n)
    ]
    return lines
