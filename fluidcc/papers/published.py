"""Loops of the literature, each as published and exact: the return ratio of the paper, and that of
the laws behind it.

``fc.published["tcp_pi"]`` is a `PublishedLoop` of the network ``fc.scenarios["tcp_pi"]``; both its
loops are `DelayLTI` with negative feedback. What a paper leaves out (a delayed term, a pole, a
delay that moves) makes the two differ.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from fluidcc.analysis.linearize import linearize
from fluidcc.base.errors import InvalidCall, UnknownName, Unsupported
from fluidcc.base.tables import in_columns, in_html
from fluidcc.equilibria.equilibrium import one_equilibrium
from fluidcc.network import Network
from fluidcc.network.patterns import near
from fluidcc.network.scenarios import scenarios
from fluidcc.numerics.linear.dlti import DelayLTI

if TYPE_CHECKING:
    from fluidcc.numerics.linear.margins import Margins


@dataclass(frozen=True, repr=False)
class PublishedLoop:
    """A loop of the literature.

    Attributes
    ----------
    name, title, ref : str
        Short name, what it is, and where it is from.
    net : Network
        The network behind it, that of the ready scenario of this name.
    published, exact : DelayLTI
        Open loops, negative feedback: as the paper has it, and the linearisation of the network,
        broken where the paper breaks it (`fluidcc.linearize`: at the "marks" for queue management,
        elsewhere "open" at the flow's rate).
    facts : mapping of str to float
        What the paper prints.
    computed : mapping of str to float
        The same quantities, computed; and what shows its trend, where it prints no numbers.
    notes : str
        What the paper leaves out.
    """

    name: str
    title: str
    ref: str
    net: Network
    published: DelayLTI
    exact: DelayLTI
    facts: Mapping[str, float] = field(default_factory=dict)
    computed: Mapping[str, float] = field(default_factory=dict)
    notes: str = ""

    def margins(self) -> tuple[Margins, Margins]:
        """Margins as published, and exact."""
        return self.published.margins(), self.exact.margins()

    def _tables(self) -> list[list[tuple[str, ...]]]:
        head = ("", "closed loop", "gain margin", "phase margin", "delay margin", "crossover")
        rows = [
            (
                name,
                m.verdict,
                f"{m.gain:.4g}",
                f"{m.phase:.4g}\u00b0",
                f"{m.delay:.4g} s",
                f"{m.crossover:.4g} rad/s",
            )
            for name, m in zip(("as published", "exact"), self.margins(), strict=True)
        ]
        facts = [
            (name, f"{self.facts[name]:.6g}" if name in self.facts else "", f"{value:.6g}")
            for name, value in self.computed.items()
        ]
        return [[head, *rows], [("", "printed", "computed"), *facts]]

    def __repr__(self) -> str:
        about = f"{self.title}\n{self.ref}. {self.notes}"
        return "\n\n".join([about, *("\n".join(in_columns(rows)) for rows in self._tables())])

    def _repr_html_(self) -> str:
        title, about = (html.escape(text) for text in (self.title, f"{self.ref}. {self.notes}"))
        tables = "".join(in_html(rows, head) for head, *rows in self._tables())
        return f"<h4>{title}</h4><p>{about}</p>{tables}"


def _made(
    name: str,
    published: DelayLTI,
    exact: DelayLTI,
    facts: dict[str, float],
    computed: dict[str, float],
    notes: str,
) -> PublishedLoop:
    s = scenarios[name]
    return PublishedLoop(name, s.title, s.ref, s.net, published, exact, facts, computed, notes)


# --- TCP with active queue management -------------------------------------------------------------


def tcp_loops(net: Network) -> tuple[DelayLTI, DelayLTI, dict[str, float]]:
    """The loop of TCP and a link that marks, as published and exact.

    Parameters
    ----------
    net : Network
        One flow of `StaticReno`, which may stand for N equal ones (a = N packets, b = 1/(2 N)), on
        one link of `RED`, at rest on its slope, or of `PI`.

    Returns
    -------
    published : DelayLTI
        C^2/(2N) e^{-sR}/((s + 2N/(R^2 C))(s + 1/R)), Hollot et al. (their (8)), times the link's
        own transfer function from queue to mark.
    exact : DelayLTI
        The linearisation of the network: the window one round trip ago as it was, and the
        round-trip time that a sender knows, which is one it has heard of.
    facts : dict
        Window and mark ratio of one of the N flows at the equilibrium, and the two poles.

    Raises
    ------
    Unsupported
        If the network has another form.
    """
    (flow, *more), (link, *others) = net.flows.values(), net.links.values()
    if more or others or flow.law.name != "StaticReno" or link.law.name not in ("RED", "PI"):
        raise Unsupported(
            "the published loop is that of one flow of StaticReno on one link of RED or PI, here "
            f"{flow.name!r} ({flow.law.name}) on {link.name!r} ({link.law.name}); see "
            "fluidcc.scenarios['tcp_red'].net"
        )
    N, C = flow.law.parameter("a"), float(link.capacity) / flow.packet
    R = float(one_equilibrium(net).array("rtt")[0])
    slow, fast, window = 2 * N / (R**2 * C), 1 / R, R * C / N
    plant = DelayLTI.transfer([C**2 / (2 * N)], np.polymul([1, slow], [1, fast]), R)
    facts = {"window": window, "mark": 2 / window**2, "window pole": slow, "queue pole": fast}
    return plant * _controller(link.law, C), linearize(net, "marks"), facts


def _controller(law: Any, C: float) -> DelayLTI:
    """From the queue [packet] to the mark ratio."""
    get = law.parameter
    if law.name == "PI":
        return DelayLTI.transfer([get("a") / C, get("b") / C], [1, 0])
    slope, pole = get("p_max") / (get("max_th") - get("min_th")) / C, 1 / get("T")
    return DelayLTI.transfer([slope * pole], [1, pole])


def _tcp_red() -> PublishedLoop:
    printed, exact, found = tcp_loops(scenarios["tcp_red"].net)
    return _made(
        "tcp_red", printed, exact, {"window": 15, "mark": 0.008, "window pole": 0.53,
        "queue pole": 4.1}, found,
        "Published: the delayed window is dropped, as W >> 1, and the queue is known to the "
        "sender at once. RED: slope 1.86e-4 a packet, pole 0.005 rad/s.",
    )  # fmt: skip


def _tcp_pi() -> PublishedLoop:
    printed, exact, _ = tcp_loops(scenarios["tcp_pi"].net)
    found = printed.margins()
    return _made(
        "tcp_pi", printed, exact, {"phase margin": 75, "crossover": 0.53},
        {"phase margin": float(found.phase), "crossover": float(found.crossover)},
        "C_PI = 9.64e-6 (s/0.53 + 1)/s; its zero cancels the pole of the window. Published: the "
        "queue is known to the sender at once; that a sender divides by a round-trip time it has "
        "heard of adds phase at the crossover, and takes most of the gain margin.",
    )  # fmt: skip


def _low() -> PublishedLoop:
    net = scenarios["low_paganini"].net
    printed, exact, _ = tcp_loops(net)
    limits = {
        f"longest stable path, {how}, N = {N}, C = {C} packets/s [s]": _longest_path(
            net, N, C, which
        )
        for N, C in ((60, 3750), (60, 7500), (120, 3750))
        for which, how in enumerate(("as published", "exact"))
    }
    return _made(
        "low_paganini", printed, exact, {}, limits,
        "The paper's trend, without its numbers: stability is lost as delay or capacity grows, "
        "or as flows become few. Other networks: changed_path and tcp_loops of "
        "fluidcc.papers.published.",
    )  # fmt: skip


def changed_path(net: Network, flows: float, capacity: float, path: float) -> Network:
    """A network of Reno and RED with N flows, capacity [packet/s] and round-trip propagation time
    [s].

    RED keeps its slope a packet; half of the path is between queue and receiver.
    """
    (flow,), (link,) = net.flows.values(), net.links.values()
    red, bits = link.law, capacity * flow.packet
    width = (red.parameter("max_th") - red.parameter("min_th")) * float(link.capacity) / bits
    law = flow.law(a=flows, b=0.5 / flows)
    red = red(max_th=red.parameter("min_th") + width)
    net = net.with_all("flow", {flow.name: {"law": law, "return_delay": path / 2}})
    return net.with_all("link", {link.name: {"law": red, "capacity": bits, "delay": path / 2}})


def _longest_path(net: Network, flows: float, capacity: float, which: int) -> float:
    """Where the rightmost root of a loop of `tcp_loops` (0 published, 1 exact) meets the axis."""
    from scipy.optimize import brentq

    def height(path: float) -> float:
        printed, exact, _ = tcp_loops(changed_path(net, flows, capacity, path))
        return float((printed, exact)[which].feedback().roots(count=1)[0].real)

    return float(brentq(height, 0.1, 3.0, xtol=1e-9))


# --- conditions of pi/2 ---------------------------------------------------------------------------


def _johari_tan() -> PublishedLoop:
    net, exact, p, R = _one_user("johari_tan")
    total = (
        net.flows["user"].law.parameter("kappa") * (1 + net.links["link"].law.parameter("B")) * p
    )  # kappa (p + x p')
    return _made(
        "johari_tan", DelayLTI.transfer([total], [1, 0], R), exact,
        {"critical gain times delay": math.pi / 2},
        {"critical gain times delay": total * R * exact.margins().gain},
        "Stable iff kappa (p + x p') R < pi/2. One user on one link: both delayed terms together "
        "are one integrator with a delay, so the condition is exact.",
    )  # fmt: skip


def _paganini() -> PublishedLoop:
    net, exact, _, R = _one_user("paganini")
    gain = net.flows["user"].law.parameter("alpha")
    return _made(
        "paganini", DelayLTI.transfer([gain / R], [1, 0], R), exact,
        {"critical alpha": math.pi / 2},
        {"critical alpha": gain * exact.margins().gain},
        "Stable iff alpha < pi/2: alpha e^{-sR}/(s R) for any capacity and delay, as the gain "
        "scales itself.",
    )  # fmt: skip


def _scalable_tcp() -> PublishedLoop:
    net, exact, p, R = _one_user("scalable_tcp")
    growth, B = net.flows["user"].law.parameter("a"), net.links["link"].law.parameter("B")
    # s dx = -(a/R) ((1 - p) + B e^{-sR}) dx, since a + b W = a/p: the bound a B < 1 (or pi/2) is
    # about the last part.
    return _made(
        "scalable_tcp", DelayLTI.transfer([growth * B / R], [1, 0], R), exact, {"a y p'/p": 1.0},
        {"a y p'/p": growth * B * exact.margins().gain},
        "Stable if a < p/(y p'), whatever the delays. One user on one link is stable up to the "
        "value computed, beyond pi/2, as its own pole a (1 - p)/R, which is held, helps (here p "
        f"= {p:.3g}).",
    )  # fmt: skip


def _one_user(name: str) -> tuple[Network, DelayLTI, float, float]:
    """A network, its loop, and price and round-trip time at rest."""
    net = scenarios[name].net
    rest = one_equilibrium(net)
    return net, linearize(net, "open"), float(rest.array("price")[0]), float(rest.array("rtt")[0])


@dataclass
class _Loops(Mapping[str, PublishedLoop]):
    """The loops by name, made when asked for."""

    makers: dict[str, Callable[[], PublishedLoop]]

    def __getitem__(self, name: str) -> PublishedLoop:
        if name not in self.makers:
            raise UnknownName(
                f"there is no published loop {name!r}; {near(str(name), self.makers)}"
            )
        return self.makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self.makers)

    def __len__(self) -> int:
        return len(self.makers)

    def __call__(self, *_: Any) -> NoReturn:
        raise InvalidCall("fluidcc.published is no function; give fluidcc.published['tcp_red']")

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        return f"published loops: {', '.join(self)}"


published = _Loops(
    {
        "tcp_red": _tcp_red,
        "tcp_pi": _tcp_pi,
        "low_paganini": _low,
        "johari_tan": _johari_tan,
        "paganini": _paganini,
        "scalable_tcp": _scalable_tcp,
    }
)
