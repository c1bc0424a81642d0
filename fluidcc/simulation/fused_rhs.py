"""Text of one evaluation of a network's right-hand side in straight lines, with routes, classes and
laws known.

It computes what `fluidcc.numerics.fluid.rhs.evaluate` computes. Names: states ``z``, derivatives
``d``, rates ``x``, arrivals ``a``, what is dropped ``w``, marks ``m``, prices ``q``; per read node
the cursor ``k``, the place ``r`` of the record, the range ``lo`` to ``hi`` that it covers, the
position ``u`` in it and the entry time ``th``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fluidcc.laws import Link
from fluidcc.laws.kernels import (
    LINK_OUT,
    LINK_ROWS,
    SOURCE_ROWS,
    bounded_states,
    count_switches,
    law_lines,
    law_names,
)
from fluidcc.numerics.fluid import slots as s
from fluidcc.simulation.layout import Group, Layout, acts

__all__ = ["LawText", "Rhs"]


@dataclass(frozen=True)
class LawText:
    """A law as a function of scalars ``Z0, Z1, ...`` (states), U (signals), P (parameters) and M
    (modes).
    """

    name: str
    arguments: list[str]
    lines: list[str]
    flows: list[str]
    outputs: list[str]
    switches: list[str]
    bounded: list[str]  # states that have bounds, on which they are put where they are held

    @classmethod
    def of(cls, group: Group, name: str) -> LawText:
        law = group.law
        rows = LINK_ROWS if isinstance(law, Link) else SOURCE_ROWS
        counts = {"Z": len(group.own), "U": len(rows), "P": len(law.params)}
        names = law_names(law, *([f"{a}{k}" for k in range(n)] for a, n in counts.items()))
        lines, flows, outputs, switches = law_lines(
            law, names, lambda n: f"M{n}", "L", automatic=False
        )
        text = " ".join([*lines, *flows, *outputs, *switches])
        arguments = sorted(
            set(re.findall(r"\b[ZUPM]\d+\b", text)), key=lambda a: ("ZUPM".index(a[0]), int(a[1:]))
        )
        return cls(
            name, arguments, lines, flows, outputs, switches, [f"Z{k}" for k in bounded_states(law)]
        )

    def uses(self, kind: str) -> list[int]:
        """Numbers of the arguments of a kind."""
        return [int(a[1:]) for a in self.arguments if a[0] == kind]

    def definition(self) -> str:
        """The function; it returns flows, outputs, switches and bounded states."""
        results = [*self.flows, *self.outputs, *self.switches, *self.bounded]
        body = [*self.lines, f"return {', '.join(results)},"]
        return f"def {self.name}({', '.join(self.arguments)}):\n" + "".join(
            f"    {line}\n" for line in body
        )

    def call(self, values: dict[str, list[str]], results: list[str]) -> str:
        """A line that assigns the results for the given values of the arguments."""
        given = ", ".join(values[a[0]][int(a[1:])] for a in self.arguments)
        return f"{', '.join(results)}, = {self.name}({given})"


class Rhs:
    """Writes evaluations of one network."""

    def __init__(self, at: Layout) -> None:
        self.at = at
        self.frozen = at.frozen is not None
        outs = {name for g in at.link_groups for name in g.law.out}
        self.marks, self.prices = bool({"mark", "drop"} & outs), "price" in outs
        self.dropping = [bool(acts(link.law) & s.DROPS) for link in at.links]
        self.lossy = any(link.buffer != float("inf") for link in at.links) or self.marks
        self.scheduled = [bool(link.schedule) for link in at.links]
        self.texts = [LawText.of(g, f"source{k}") for k, g in enumerate(at.groups)]
        self.link_texts = [LawText.of(g, f"link{k}") for k, g in enumerate(at.link_groups)]
        self.thinned = bool(at.streams) and not self.frozen
        self.switches: dict[int, int] = {}  # first switch of a group, by the group's identity
        self.n_switches = 0
        for g in (*at.groups, *at.link_groups):
            self.switches[id(g)] = self.n_switches
            self.n_switches += count_switches(g.law) * g.size

    # --- reading the past -------------------------------------------------------------------------

    def reads(self, tags: list[str]) -> list[str]:
        """What the network looks up at the times ``now`` of `tags`, in order; and all that comes of
        it.

        The names of what is used later end with the tag.
        """
        lines = [f"tl_{tag} = tolt * max(1.0, abs(now_{tag}))" for tag in tags]
        for n, node in enumerate(self.at.nodes):
            for tag in tags:
                lines += self._record(n, node.parent, node.link, tag)
            for tag in tags:
                lines += self._position(n, node.link, tag)
        for tag in tags:
            lines.append(f"now = now_{tag}")
            for n, node in enumerate(self.at.nodes):
                names = ("r", "u", "th") if self.frozen else ("r", "u", "th", "c")
                lines += [f"{name}{n} = {name}{n}_{tag}" for name in names]
                lines += self._pass(n, node.parent, node.link)
            lines += [*self._signals(tag), *self._streams(tag)]
        return lines

    def _record(self, n: int, parent: int, link: int, tag: str) -> list[str]:
        """What node `n` looks for, a time or an amount of work; the capacity then; and the record
        that has it.
        """
        w, c, known = f"w{n}_{tag}", f"c{n}_{tag}", f"k{n}, r{n}, lo{n}, hi{n}"
        found = f"k{n}_{tag}, r{n}_{tag} = k{n}, r{n}"
        if self.frozen:
            return [
                f"{w} = now_{tag} - off{n}",
                f"{known} = near_time(F, I, {known}, {w}, tl_{tag}, nrec)",
                found,
            ]
        leave = f"{f'now_{tag}' if parent < 0 else f'th{parent}_{tag}'} - off{n}"
        lines = [f"{c} = cap{link}", f"{w} = cap{link} * ({leave})"]
        if self.scheduled[link]:
            lines = [f"{w}, {c} = work(F, I, {link}, {leave})"]
        return [
            *lines,
            f"{known} = near_work(F, I, {link}, {known}, {w}, tl_{tag} * {c}, nrec)",
            found,
        ]

    def _position(self, n: int, link: int, tag: str) -> list[str]:
        """Where in the record that is, and when it entered the queue."""
        r, u = f"r{n}_{tag}", f"u{n}_{tag}"
        found = f"invert(F, {r} + {s.RLINKS + link * s.LSIZE}, w{n}_{tag})"
        if self.frozen:
            found = f"(w{n}_{tag} - F[{r} + {s.RT0}]) * F[{r} + {s.RINVH}]"
        return [
            f"{u} = {found}",
            f"th{n}_{tag} = F[{r} + {s.RT0}] + {u} * F[{r} + {s.RH}]",
            f"{u} = min(max({u}, 0.0), 1.0)",
            f"inside |= (k{n}_{tag} >= nrec) | (th{n}_{tag} > t + tl_{tag})",
        ]

    def _pass(self, n: int, parent: int, link: int) -> list[str]:
        """What this queue does to what passes, on top of what the rest of the path did."""
        up = parent >= 0
        c = f"cap{link}" if self.frozen else f"c{n}"
        lines = [f"b = r{n} + {s.RLINKS + link * s.LSIZE}", f"y = quartic(F, b + {s.LY}, u{n})"]
        if self.frozen:
            inverse = f"1.0 / F[b + {s.LC}]" if self.scheduled[link] else f"icap{link}"
            wait = f"quartic(F, b, u{n}) * {inverse}"
            lines += [f"ce{n} = drift(F, b, y, {inverse})" + (f" + ce{parent}" if up else "")]
            lines += [f"cq{n} = {wait}" + (f" + cq{parent}" if up else "")]
        else:
            inverse = f"1.0 / {c}" if self.scheduled[link] else f"icap{link}"
            lines.append(
                f"ce{n} = stretch(F, b, y, {c}, {inverse})" + (f" * ce{parent}" if up else "")
            )
        if self.thinned:
            dropping = self.dropping[link]
            own = (
                f"thinned(F, b, y, {c}, {self._dropped(n, link)})"
                if dropping
                else f"factor(F, b, y, {c})"
            )
            lines.append(f"cf{n} = {own}" + (f" * cf{parent}" if up else ""))
        if self.lossy:
            mark = f" * (1.0 - quartic(F, b + {s.LMARK}, u{n}))" if self.marks else ""
            lines.append(
                f"cs{n} = keep(F, b, y, {c}, buf{link}){mark}" + (f" * cs{parent}" if up else "")
            )
        if self.prices:
            lines.append(
                f"cp{n} = quartic(F, b + {s.LPRICE}, u{n})" + (f" + cp{parent}" if up else "")
            )
        return lines

    def _signals(self, tag: str) -> list[str]:
        """What the sources of each class know."""
        at, lines = self.at, []
        for k in range(len(at.classes)):
            leaf = at.paths[k][-1]
            if self.frozen:
                lines += [f"e{k}_{tag} = acc{k} + prop{k} + cq{leaf}", f"edot{k}_{tag} = ce{leaf}"]
            else:
                lines += [
                    f"e{k}_{tag} = acc{k} + (now - lag{k}) - th{leaf}",
                    f"edot{k}_{tag} = ce{leaf} - 1.0",
                ]
            if self.lossy:
                lines.append(f"pi{k}_{tag} = lost(cs{leaf})")
            if self.prices:
                lines.append(f"pr{k}_{tag} = cp{leaf}")
            lines.append(f"tk{k}_{tag} = now - acc{k}")
        for i, slot in enumerate(at.own_rate):
            if slot >= 0:
                past = self._stored(at.paths[at.flow_class[i]][-1], len(at.aggregates) + slot)
                lines.append(f"xt{i}_{tag} = {past}")
        if at.link_groups:
            lines.append(f"now_{tag} = now")
        return lines

    def _streams(self, tag: str) -> list[str]:
        """What arrives at links from others."""
        lines = []
        for n, (leaf, g, _) in enumerate(self.at.streams):
            trunk = f"quartic(F, r{leaf} + {s.RLINKS + (-1 - g) * s.LSIZE + s.LY}, u{leaf})"
            if g < 0 and self.dropping[-1 - g] and self.thinned:
                trunk = f"({trunk} + {self._dropped(leaf, -1 - g)})"
            arrived = self._stored(leaf, g) if g >= 0 else trunk
            lines.append(f"st{n}_{tag} = {arrived}" + (f" * cf{leaf}" if self.thinned else ""))
        return lines

    def _stored(self, leaf: int, slot: int) -> str:
        """A rate on the record that a node looks at."""
        return (
            f"quartic(F, r{leaf} + {s.RLINKS + len(self.at.links) * s.LSIZE + 5 * slot}, u{leaf})"
        )

    def _dropped(self, node: int, link: int) -> str:
        """What a link dropped, on the record that a node looks at."""
        return f"quartic(F, r{node} + {self.act_place(link)}, u{node})"

    def act_place(self, link: int) -> int:
        """Where in a record the quartic of what a link drops begins."""
        at = self.at
        own = sum(slot >= 0 for slot in at.own_rate)
        before = s.RLINKS + len(at.links) * s.LSIZE + 5 * (len(at.aggregates) + own)
        return before + 5 * s.XSIZE * at.acting.index(link)

    # --- sources ----------------------------------------------------------------------------------

    def _known(self, i: int, group: Group, j: int, tag: str) -> dict[str, list[str]]:
        """What a flow's law is a function of."""
        k = self.at.flow_class[i]
        pi = f"pi{k}_{tag}" if self.lossy else "0.0"
        price = f"pr{k}_{tag}" if self.prices else "0.0"
        return {
            "Z": [f"z{group.states + n * group.size + j}" for n in range(len(group.own))],
            "U": [
                f"e{k}_{tag}",
                f"edot{k}_{tag}",
                pi,
                price,
                f"xt{i}_{tag}",
                f"eb{k}",
                f"pk{i}",
                f"tk{k}_{tag}",
            ],
            "P": [f"p{i}_{n}" for n in range(len(group.law.params))],
            "M": self.modes(group, j),
        }

    def modes(self, group: Group, j: int) -> list[str]:
        """Names of the modes of member `j`."""
        first = self.switches[id(group)]
        return [f"s{first + n * group.size + j}" for n in range(count_switches(group.law))]

    def _results(self, group: Group, j: int, stage: int | None, outputs: list[str]) -> list[str]:
        """Names of what a law returns; of the inner nodes only the outputs matter, and nothing else
        may be touched.
        """
        states = [group.states + n * group.size + j for n in range(len(group.own))]
        modes = self.modes(group, j)
        bounded = [f"z{states[n]}" for n in bounded_states(group.law)]
        if stage is None:
            return [
                *(f"d_{k}" for k in states),
                *outputs,
                *(f"v_{mode[1:]}" for mode in modes),
                *bounded,
            ]
        return [
            *(f"d{stage}_{k}" for k in states),
            *outputs,
            *(f"v{mode[1:]}" for mode in modes),
            *bounded,
        ]

    def _sources(self, stage: int | None, tag: str) -> list[str]:
        """Rates, derivatives and the values of switches."""
        lines: list[str] = []
        for group, text in zip(self.at.groups, self.texts, strict=True):
            for j, i in enumerate(group.members):
                results = self._results(group, j, stage, [f"x{i}"])
                lines.append(text.call(self._known(i, group, j, tag), results))
                lines += [f"{d} = pick(live{i}, {d}, 0.0)" for d in results[: len(group.own)]]
                if not group.own:
                    lines.append(f"x{i} = pick(sch{i}, pat{i}, x{i})")
                lines.append(f"x{i} = pick(sends{i}, x{i}, 0.0)")
        return lines

    # --- links ------------------------------------------------------------------------------------

    def _links(self, stage: int | None, tag: str) -> list[str]:
        """Arrivals, backlogs, and the laws of links."""
        at = self.at
        rates: list[list[str]] = [[] for _ in at.links]
        slopes: list[list[str]] = [[] for _ in at.links]
        for i in range(len(at.flows)):
            first = at.route(i)[0]
            rates[first].append(f"x{i}")
            if self.rate_state(i) >= 0:
                slopes[first].append(f"d{stage}_{self.rate_state(i)}")
        for n, (_, _, link) in enumerate(at.streams):
            rates[link].append(f"st{n}_{tag}")
        lines = []
        for l in range(len(at.links)):
            lines.append(f"a{l} = {' + '.join(rates[l]) or '0.0'}")
            if stage is not None and not at.refit:
                lines.append(f"ak{stage}_{l} = {' + '.join(slopes[l]) or '0.0'}")
        for group, text in zip(at.link_groups, self.link_texts, strict=True):
            for j, l in enumerate(group.members):
                known = {
                    "Z": [f"z{group.states + n * group.size + j}" for n in range(len(group.own))],
                    "U": [
                        f"a{l}",
                        f"cap{l}",
                        f"(z{at.backlog + l} / cap{l})",
                        f"(buf{l} / cap{l})",
                        f"now_{tag}",
                        "",
                    ],
                    "P": [f"g{l}_{n}" for n in range(len(group.law.params))],
                    "M": self.modes(group, j),
                }
                outputs = [f"m{l}", f"q{l}", f"r{l}_", *["_"] * (len(LINK_OUT) - 3)]
                lines.append(text.call(known, self._results(group, j, stage, outputs)))
                if self.dropping[l]:
                    lines += [f"w{l} = r{l}_ * a{l}", f"a{l} = a{l} - w{l}"]
                    lines.append(f"m{l} = 1.0 - (1.0 - m{l}) * (1.0 - r{l}_)")
        if stage is not None:
            lines += [
                f"d{stage}_{at.backlog + l} = pick(busy{l}, a{l} - cap{l}, 0.0)"
                for l in range(len(at.links))
            ]
        return lines

    def rate_state(self, i: int) -> int:
        """State that is the flow's rate, or -1; a scheduled rate has none."""
        return max(self.at.rate_state[i], -1)

    def evaluation(self, stage: int | None, tag: str) -> list[str]:
        """Derivatives and arrivals, from states ``z`` and what has been looked up by the name
        `tag`.
        """
        return [*self._sources(stage, tag), *self._links(stage, tag)]
