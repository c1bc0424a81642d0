"""Text of one evaluation of a network's right-hand side, on scalars, with routes, classes and laws known.

It computes what `fluidcc.numerics.fluid.rhs.evaluate` computes. Names: states ``z``, derivatives ``d``, rates ``x``,
arrivals ``a``, marks ``m``, prices ``q``; per read node the cursor ``k``, the place ``r`` of the link in that record,
the range ``lo`` to ``hi`` that the record covers, the position ``u`` in it and the entry time ``th``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fluidcc.compile import LINK_ROWS, SOURCE_ROWS, count_switches, law_lines, law_names
from fluidcc.law import Link
from fluidcc.layout import Group, Layout
from fluidcc.numerics.fluid import slots as s

__all__ = ["LawText", "Rhs", "quartic"]

_PLACE = re.compile(r"\b(?:([ZUPM])(\d+)|L(\w+))\b")
_NAME = re.compile(r"[A-Za-z_]\w*")


def quartic(o: str, u: str, first: int = 0) -> str:
    """Text of the quartic whose coefficients stand at `o` + `first`, at `u`."""
    at = [f"F[{o} + {first + k}]" for k in range(5)]
    return f"({at[0]} + {u}*({at[1]} + {u}*({at[2]} + {u}*({at[3]} + {u}*{at[4]}))))"


@dataclass(frozen=True)
class LawText:
    """A law's text with places to fill: Z states, U signals, P parameters, M modes, L temporaries."""

    lines: list[str]
    flows: list[str]
    outputs: list[str]
    switches: list[str]

    @classmethod
    def of(cls, group: Group) -> LawText:
        law = group.law
        rows = LINK_ROWS if isinstance(law, Link) else SOURCE_ROWS
        names = law_names(law, *([f"{a}{k}" for k in range(n)] for a, n in (
            ("Z", len(group.own)), ("U", len(rows)), ("P", len(law.params)))))  # fmt: skip
        return cls(*law_lines(law, names, lambda n: f"M{n}", "L", automatic=False))

    def uses(self, kind: str) -> set[int]:
        """Numbers of the states (Z), signals (U), parameters (P) or modes (M) that occur."""
        text = " ".join([*self.lines, *self.flows, *self.outputs, *self.switches])
        return {int(n) for n in re.findall(rf"\b{kind}(\d+)\b", text)}

    def needed(self, roots: list[str]) -> list[str]:
        """The lines that `roots` need."""
        want = set(_NAME.findall(" ".join(roots)))
        kept: list[str] = []
        for line in reversed(self.lines):
            target, value = line.split(" = ", 1)
            if target in want:
                kept.append(line)
                want |= set(_NAME.findall(value))
        return kept[::-1]


def _fill(text: str, places: dict[str, list[str]], prefix: str) -> str:
    return _PLACE.sub(lambda m: f"{prefix}{m[3]}" if m[3] else places[m[1]][int(m[2])], text)


class Rhs:
    """Writes evaluations of one network."""

    def __init__(self, at: Layout) -> None:
        self.at = at
        self.frozen = at.frozen is not None
        outs = {name for g in at.link_groups for name in g.law.out}
        self.marks, self.prices = "mark" in outs, "price" in outs
        self.lossy = any(link.buffer != float("inf") for link in at.links) or self.marks
        self.scheduled = [bool(link.schedule) for link in at.links]
        self.texts = [LawText.of(g) for g in at.groups]
        self.link_texts = [LawText.of(g) for g in at.link_groups]
        self.fifo_factor = bool(at.streams) and not self.frozen
        self.switches: dict[int, int] = {}  # first switch of a group, by the group's identity
        self.n_switches = 0
        for g in (*at.groups, *at.link_groups):
            self.switches[id(g)] = self.n_switches
            self.n_switches += count_switches(g.law) * g.size

    # --- reading the past ------------------------------------------------------------------------------------------

    def reads(self) -> list[str]:
        """Where each node looks, and what the path down to it does."""
        lines = ["tl = tolt * max(1.0, abs(now))"]
        for n, node in enumerate(self.at.nodes):
            lines += self._place(n, node.parent, node.link)
            lines += self._pass(n, node.parent, node.link)
        return lines

    def _place(self, n: int, parent: int, link: int) -> list[str]:
        block = s.RLINKS + link * s.LSIZE
        up = "now" if parent < 0 or self.frozen else f"th{parent}"
        lines = [f"w{n} = {up} - off{n}"]
        if self.frozen:
            find, tol = f"find_time(F, I, {block}, k{n}, w{n}, tl, last)", "tl"
        else:
            tol = f"tl * c{n}"
            find = f"find_work(F, I, {link}, k{n}, w{n}, {tol}, last)"
            if self.scheduled[link]:
                lines.append(f"w{n}, c{n} = work(F, I, {link}, w{n})")
            else:
                lines += [f"c{n} = cap{link}", f"w{n} = c{n} * w{n}"]
        lines += [
            f"if w{n} - {tol} >= hi{n} or w{n} + {tol} < lo{n}:",
            f"    k{n}, r{n}, lo{n}, hi{n} = {find}",
        ]
        if self.frozen:
            lines.append(f"u{n} = (w{n} - F[r{n} - {block - s.RT0}]) * F[r{n} - {block - s.RINVH}]")
        else:
            lines.append(f"u{n} = invert(F, r{n}, w{n})")
        lines += [
            f"th{n} = F[r{n} - {block - s.RT0}] + u{n} * F[r{n} - {block - s.RH}]",
            f"if k{n} >= nrec or th{n} > t + tl:",
            "    inside = 1",
        ]
        return lines

    def _pass(self, n: int, parent: int, link: int) -> list[str]:
        """What this queue does to what passes, on top of what the rest of the path did."""
        r, before = f"r{n}", parent >= 0
        same = not self.scheduled[link]  # the record's capacity is the one of now
        here = f"cap{link}" if same else f"F[{r} + {s.LC}]"
        lines = [f"mode = F[{r} + {s.LMODE}]", f"y = {quartic(r, f'u{n}', s.LY)}"]
        if self.frozen:
            inverse = f"icap{link}" if same else f"(1.0 / {here})"
            lines.append(f"ce{n} = (y - {here}) * {inverse} if mode == {s.BUSY}.0 else 0.0")
            lines.append(f"cq{n} = {quartic(r, f'u{n}')} * {inverse}")
            if before:
                lines += [f"ce{n} += ce{parent}", f"cq{n} += cq{parent}"]
        else:
            inverse = f"icap{link}" if same else f"(1.0 / c{n})"
            full = "1.0" if same else f"{here} / c{n}"
            lines.append(f"ce{n} = y * {inverse} if mode == {s.BUSY}.0 else ({full} if mode == {s.FULL}.0 else 1.0)")
            if before:
                lines.append(f"ce{n} *= ce{parent}")
        c = f"cap{link}" if self.frozen else f"c{n}"
        if self.fifo_factor:
            lines += [
                "f = 1.0",
                f"if mode == {s.BUSY}.0 or mode == {s.FULL}.0:",
                f"    f = {c} / y if y > 0.0 else 0.0",
                f"elif mode == {s.HELD}.0:",
                f"    f = {c} / y if y > 0.0 and (F[{r}] > 0.0 or y > {c}) else 1.0",
                f"cf{n} = cf{parent} * f" if before else f"cf{n} = f",
            ]
        if self.lossy:
            lines += [
                "f = 1.0",
                f"if mode == {s.FULL}.0:",
                f"    f = {here} / y if y > {here} else 1.0",
                f"elif mode == {s.HELD}.0:",
                f"    f = {c} / y if y > {c} and F[{r}] >= buf{link} else 1.0",
            ]
            if self.marks:
                lines.append(f"f *= 1.0 - {quartic(r, f'u{n}', s.LMARK)}")
            lines.append(f"cs{n} = cs{parent} * f" if before else f"cs{n} = f")
        if self.prices:
            lines.append(f"cp{n} = {quartic(r, f'u{n}', s.LPRICE)}" + (f" + cp{parent}" if before else ""))
        return lines

    # --- sources ---------------------------------------------------------------------------------------------------

    def signals(self) -> list[str]:
        """What the sources of each class know."""
        at, lines = self.at, []
        for k in range(len(at.classes)):
            leaf = at.paths[k][-1]
            if self.frozen:
                lines += [f"e{k} = acc{k} + prop{k} + cq{leaf}", f"edot{k} = ce{leaf}"]
            else:
                lines += [f"e{k} = acc{k} + (now - lag{k}) - th{leaf}", f"edot{k} = ce{leaf} - 1.0"]
            if self.lossy:
                lines.append(f"pi{k} = 1.0 - cs{leaf}")
            if self.prices:
                lines.append(f"price{k} = cp{leaf}")
            lines.append(f"tk{k} = now - acc{k}")
        for i, slot in enumerate(at.own_rate):
            if slot >= 0:
                leaf = at.paths[at.flow_class[i]][-1]
                skip = (len(at.links) - at.nodes[leaf].link) * s.LSIZE + 5 * (len(at.aggregates) + slot)
                lines.append(f"xt{i} = {quartic(f'r{leaf}', f'u{leaf}', skip)}")
        return lines

    def _names(self, i: int, group: Group, j: int) -> dict[str, list[str]]:
        k = self.at.flow_class[i]
        pi, price = (f"pi{k}" if self.lossy else "0.0"), (f"price{k}" if self.prices else "0.0")
        return {
            "Z": [f"z{group.states + n * group.size + j}" for n in range(len(group.own))],
            "U": [f"e{k}", f"edot{k}", pi, price, f"xt{i}", f"eb{k}", f"pk{i}", f"tk{k}"],
            "P": [f"p{i}_{n}" for n in range(len(group.law.params))],
            "M": self.modes(group, j),
        }

    def sources(self, stage: int | None, want: bool) -> list[str]:
        """Rates; the derivatives of a stage, or none; the values of the switches when wanted."""
        lines: list[str] = []
        for group, text in zip(self.at.groups, self.texts, strict=True):
            for j, i in enumerate(group.members):
                names = self._names(i, group, j)
                lines += _law(text, group, j, names, f"f{i}_", stage, want, [f"x{i}"], f" if on{i} == {s.ON} else 0.0")
                if not group.own:
                    lines.append(f"x{i} = pat{i} if sch{i} else x{i}")
                lines.append(f"x{i} = x{i} if on{i} != {s.OFF} else 0.0")
        return lines

    # --- links -----------------------------------------------------------------------------------------------------

    def links(self, stage: int | None, want: bool) -> list[str]:
        """Arrivals, backlogs, and the laws of links."""
        at = self.at
        rates: list[list[str]] = [[] for _ in at.links]
        slopes: list[list[str]] = [[] for _ in at.links]
        for i in range(len(at.flows)):
            first = at.route(i)[0]
            rates[first].append(f"x{i}")
            if stage is not None and self.rate_state(i) >= 0:
                slopes[first].append(f"d{stage}_{self.rate_state(i)}")
        for leaf, g, link in at.streams:
            skip = (len(at.links) - at.nodes[leaf].link) * s.LSIZE + 5 * g
            factor = f" * cf{leaf}" if self.fifo_factor else ""
            rates[link].append(f"{quartic(f'r{leaf}', f'u{leaf}', skip)}{factor}")
        lines = []
        for l in range(len(at.links)):
            lines.append(f"a{l} = {' + '.join(rates[l]) or '0.0'}")
            if stage is not None:
                lines.append(f"d{stage}_{at.backlog + l} = a{l} - cap{l} if busy{l} else 0.0")
                if not at.refit:
                    lines.append(f"ak{stage}_{l} = {' + '.join(slopes[l]) or '0.0'}")
        for group, text in zip(at.link_groups, self.link_texts, strict=True):
            for j, l in enumerate(group.members):
                names = {
                    "Z": [f"z{group.states + n * group.size + j}" for n in range(len(group.own))],
                    "U": [f"a{l}", f"cap{l}", f"(z{at.backlog + l} / cap{l})", f"(buf{l} / cap{l})", "now"],
                    "P": [f"g{l}_{n}" for n in range(len(group.law.params))],
                    "M": self.modes(group, j),
                }
                lines += _law(text, group, j, names, f"l{l}_", stage, want, [f"m{l}", f"q{l}"], "")
        return lines

    def modes(self, group: Group, j: int) -> list[str]:
        """Text of the modes of member `j`."""
        first = self.switches[id(group)]
        return [f"s{first + n * group.size + j}" for n in range(count_switches(group.law))]

    def rate_state(self, i: int) -> int:
        """State that is the flow's rate, or -1; a scheduled rate has none."""
        return max(self.at.rate_state[i], -1)

    def evaluation(self, stage: int | None, want: bool) -> list[str]:
        """All of it, at time ``now``, from states ``z``."""
        return [*self.reads(), *self.signals(), *self.sources(stage, want), *self.links(stage, want)]


def _law(
    text: LawText, group: Group, j: int, names: dict[str, list[str]], prefix: str, stage: int | None, want: bool,
    outputs: list[str], alive: str,
) -> list[str]:  # fmt: skip
    flows = text.flows if stage is not None else []
    switches = text.switches if want else []
    values = [f"v{m[1:]}" for m in names["M"]]
    lines = [_fill(line, names, prefix) for line in text.needed([*flows, *text.outputs, *switches])]
    for n, flow in enumerate(flows):
        lines.append(f"d{stage}_{group.states + n * group.size + j} = {_fill(flow, names, prefix)}{alive}")
    lines += [f"{name} = {_fill(value, names, prefix)}" for name, value in zip(outputs, text.outputs, strict=True)]
    lines += [f"{v} = {_fill(g, names, prefix)}" for v, g in zip(values, switches, strict=False)]
    return lines
