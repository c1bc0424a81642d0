"""Loops of the literature, each as published and exact: the return ratio of the paper, and that of the laws behind it.

``fc.published["tcp_pi"]`` is a `PublishedLoop`; both its loops are `DelayLTI` with negative feedback. What a paper
leaves out (a delayed term, a pole, a delay that moves) is what makes the two differ.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from sympy import exp, symbols

from fluidcc.derive.linear import jacobian_function
from fluidcc.errors import UnknownName
from fluidcc.law import Source, Steady
from fluidcc.links import DualLink, PenaltyLink
from fluidcc.network import Network
from fluidcc.numerics.linear.dlti import DelayLTI
from fluidcc.patterns import near
from fluidcc.sources import Reno
from fluidcc.symbols import RTT, e, packet, pi, price, x_tau

if TYPE_CHECKING:
    from fluidcc.numerics.linear.margins import Margins

__all__ = ["DelayedPrimal", "PublishedLoop", "ScalableSource", "ScalableTCP", "published", "tcp_plant", "tcp_red"]

W, x = symbols("W x", positive=True)
kappa, w, a, b, alpha, hops, top = symbols("kappa w a b alpha M x_max", positive=True)

DelayedPrimal = Source(
    name="DelayedPrimal",
    flow={x: kappa * (w - x_tau * price)},
    out={"rate": x},
    params={kappa: 1.0, w: 1e5},
    units={x: "bit/s", kappa: "1/s", w: "bit/s"},
    lower={x: 0},
    initial={x: w},
    claims={"equilibrium": Steady(w - x * price)},
    ref="Kelly, Maulloo and Tan 1998, with the delays of Johari and Tan 2001",
)
"""x' = kappa (w - x(t - RTT) p(t)): the primal algorithm with a round trip of delay."""

ScalableTCP = Source(
    name="ScalableTCP",
    flow={W: x_tau / packet * (a * (1 - price) - b * W * price)},
    out={"rate": packet * W / RTT},
    params={a: 0.01, b: 0.125},
    units={W: "packet", a: "packet", b: "1"},
    lower={W: 1},
    initial={W: 10},
    claims={"equilibrium": Steady(a * (1 - price) - b * W * price)},
    ref="Kelly, ACM CCR 33(2), 2003",
)
"""The window grows by a for each acknowledgement and falls by b W for each loss, of which a share p happens."""

ScalableSource = Source(
    name="ScalableSource",
    out={"rate": top * exp(-alpha * price / (hops * RTT))},
    params={alpha: 1.0, hops: 1, top: 1e7},
    units={alpha: "s", hops: "1", top: "bit/s"},
    ref="Paganini, Doyle and Low, CDC 2001",
)
"""A static source whose rate falls by alpha/(M RTT) of itself for each second of price."""


@dataclass(frozen=True)
class PublishedLoop:
    """A loop of the literature.

    Attributes
    ----------
    name, title, ref : str
        Short name, what it is, and where it is from.
    published, exact : DelayLTI
        Open loops, negative feedback: as the paper has it, and linearised from the laws without its simplifications.
    facts : mapping of str to float
        What the paper prints.
    computed : mapping of str to float
        The same quantities, computed.
    notes : str
        What the paper leaves out.
    """

    name: str
    title: str
    ref: str
    published: DelayLTI
    exact: DelayLTI
    facts: Mapping[str, float] = field(default_factory=dict)
    computed: Mapping[str, float] = field(default_factory=dict)
    notes: str = ""

    def margins(self) -> tuple[Margins, Margins]:
        """Margins as published, and exact."""
        from fluidcc.numerics.linear.margins import margins

        return margins(self.published), margins(self.exact)

    def _repr_html_(self) -> str:
        printed, exact = self.margins()
        rows = [("as published", printed), ("exact", exact)]
        cells = "".join(
            f"<tr><td>{name}</td><td>{m.gain:.4g}</td><td>{m.phase:.4g}&deg;</td><td>{m.delay:.4g} s</td>"
            f"<td>{m.crossover:.4g} rad/s</td></tr>"
            for name, m in rows
        )
        head = "<tr><th></th><th>gain margin</th><th>phase margin</th><th>delay margin</th><th>crossover</th></tr>"
        facts = "".join(
            f"<li>{html.escape(k)}: {v:.6g} printed, {self.computed[k]:.6g} computed</li>"
            for k, v in self.facts.items()
        )
        about = f"<p>{html.escape(self.ref)}. {html.escape(self.notes)}</p>"
        return f"<h4>{html.escape(self.title)}</h4>{about}<table>{head}{cells}</table><ul>{facts}</ul>"


# --- TCP with active queue management -----------------------------------------------------------------------------


def tcp_plant(flows: float, capacity: float, rtt: float) -> tuple[DelayLTI, DelayLTI, dict[str, float]]:
    """From mark probability to queue [packets]: of N Reno flows on a link of C packets/s, minus sign left out.

    Parameters
    ----------
    flows, capacity, rtt : float
        N, C [packet/s], and the round-trip time R [s] at the equilibrium.

    Returns
    -------
    published, exact : DelayLTI
        C^2/(2N) e^{-sR}/((s + 2N/(R^2 C))(s + 1/R)), Hollot et al. (their (8)); and the linearisation of the law that
        keeps the window one round trip ago and the round-trip time that moves with the queue.
    facts : dict
        Window and mark probability at the equilibrium, the two poles.

    Notes
    -----
    The model is theirs: W' = 1/R(t) - W/2 x(t - R) p(t - R), q' = N x - C, x = W/R(t), R = q/C + T_p, with the lag R of
    the arguments held.
    """
    N, C, R = float(flows), float(capacity), float(rtt)
    window = R * C / N
    slow, fast = 2 * N / (R**2 * C), 1 / R
    printed = DelayLTI.transfer([C**2 / (2 * N)], np.polymul([1, slow], [1, fast]), R)
    mark = 2 / window**2
    signals = {e: R, pi: mark, x_tau: C / N, packet: 1.0}
    jac = jacobian_function(Reno)([window], [signals.get(s, 0.0) for s in Reno.inputs], list(Reno.params.values()))
    by = {s: (float(jac.B[0, i]), float(jac.D[0, i])) for i, s in enumerate(Reno.inputs)}
    own, out = float(jac.A[0, 0]), float(jac.C[0, 0])
    # States W, q; input the mark; channels its value and the rate one round trip ago. e = q/C + T_p.
    rate = [out, by[e][1] / C]
    A = np.array([[own, by[e][0] / C], [N * rate[0], N * rate[1]]])
    B = np.array([[0.0, by[pi][0], by[x_tau][0]], [0.0, 0.0, 0.0]])
    exact = DelayLTI(A, B, np.array([[0, -1.0], [0, 0], rate]), np.array([[0, 0, 0], [1.0, 0, 0], [0, 0, 0]]),
                     delays=[R, R])  # fmt: skip
    return printed, exact, {"window": window, "mark": mark, "window pole": slow, "queue pole": fast}


def tcp_red(
    flows: float, capacity: float, rtt: float, slope: float = 1.86e-4, pole: float = 0.005
) -> tuple[DelayLTI, DelayLTI]:
    """The loop of TCP and RED, as published and exact.

    Parameters
    ----------
    flows, capacity, rtt : float
        As for `tcp_plant`.
    slope : float
        Of the mark probability over the averaged queue [1/packet].
    pole : float
        Of the average [rad/s].
    """
    printed, exact, _ = tcp_plant(flows, capacity, rtt)
    red = DelayLTI.transfer([slope * pole], [1, pole])
    return printed * red, exact * red


_HOLLOT = {"flows": 60, "capacity": 3750.0, "rtt": 0.246}
_TREND = {"flows": 60, "capacity": 3750.0}


def _tcp_red() -> PublishedLoop:
    _, _, found = tcp_plant(**_HOLLOT)
    printed, exact = tcp_red(**_HOLLOT)
    return PublishedLoop(
        "tcp_red", "TCP and RED: N = 60, C = 3750 packets/s, R = 0.246 s",
        "Hollot, Misra, Towsley and Gong, INFOCOM 2001",
        printed, exact, {"window": 15, "mark": 0.008, "window pole": 0.53, "queue pole": 4.1}, found,
        "Published: the delayed window is dropped, as W >> 1. RED: slope 1.86e-4 a packet, pole 0.005 rad/s.",
    )  # fmt: skip


def _tcp_pi() -> PublishedLoop:
    from fluidcc.numerics.linear.margins import margins

    printed, exact, _ = tcp_plant(**_HOLLOT)
    gain, zero = 9.64e-6, 0.53
    control = DelayLTI.transfer([gain / zero, gain], [1, 0])
    loop = printed * control
    found = {"phase margin": float(margins(loop).phase), "crossover": float(margins(loop).crossover)}
    return PublishedLoop(
        "tcp_pi", "TCP and a PI controller of the queue", "Hollot, Misra, Towsley and Gong, INFOCOM 2001 (PI)", loop,
        exact * control, {"phase margin": 75, "crossover": 0.53}, found,
        "C_PI = 9.64e-6 (s/0.53 + 1)/s; its zero cancels the pole of the window.",
    )  # fmt: skip


# --- conditions of pi/2 -------------------------------------------------------------------------------------------


def _linearized(net: Network) -> DelayLTI:
    from fluidcc.analysis.linearize import linearize

    return linearize(net, "open")


def _lag_net(law: Source, sharpness: float, capacity: float = 1e6, delay: float = 0.05) -> Network:
    net = Network().link("l", PenaltyLink(B=sharpness), capacity=capacity, delay=delay)
    return net.flow("f", law, route=["l"], return_delay=delay)


def _johari_tan() -> PublishedLoop:
    B, R, gain = 4.0, 0.1, 10.0
    net = _lag_net(DelayedPrimal(kappa=gain, w=1e5), B)
    rest = _price(net)
    total = gain * (1 + B) * rest["price"]  # kappa (p + x p')
    return PublishedLoop(
        "johari_tan", "The primal algorithm with one delay: stable iff kappa (p + x p') R < pi/2",
        "Johari and Tan, IEEE/ACM ToN 9(6), 2001", DelayLTI.transfer([total], [1, 0], R), _linearized(net),
        {"critical gain times delay": math.pi / 2}, {"critical gain times delay": total * R * _gain(net)},
        "One user on one link: both delayed terms together are one integrator with a delay, so the condition is exact.",
    )  # fmt: skip


def _paganini() -> PublishedLoop:
    R, gain, c = 0.1, 1.0, 1e6
    net = Network().link("l", DualLink(nu=1 / c), capacity=c, delay=R / 2)
    net.flow("f", ScalableSource(alpha=gain, x_max=5e6), route=["l"], return_delay=R / 2)
    return PublishedLoop(
        "paganini", "A static source on an integrating link: stable iff alpha < pi/2",
        "Paganini, Doyle and Low, CDC 2001",
        DelayLTI.transfer([gain / R], [1, 0], R), _linearized(net), {"critical alpha": math.pi / 2},
        {"critical alpha": gain * _gain(net)},
        "alpha e^{-sR}/(s R) for any capacity and delay: the gain scales itself.",
    )  # fmt: skip


def _scalable_tcp() -> PublishedLoop:
    B, R, growth = 4.0, 0.1, 0.05
    law = ScalableTCP(a=growth, b=0.125)
    net = _lag_net(law, B)
    p = _price(net)["price"]
    # s dx = -(a/R) ((1 - p) + B e^{-sR}) dx, since a + b W = a/p: the bound a B < 1 (or pi/2) is about the last part.
    return PublishedLoop(
        "scalable_tcp", "Scalable TCP: stable if a < p/(y p')", "Kelly, ACM CCR 33(2), 2003",
        DelayLTI.transfer([growth * B / R], [1, 0], R), _linearized(net), {"a y p'/p": 1.0},
        {"a y p'/p": growth * B * _gain(net)},
        f"The bound is 1 whatever the delays. One user on one link is stable up to the value computed, beyond pi/2, as "
        f"its own pole a (1 - p)/R, which is held, helps (here p = {p:.3g}).",
    )  # fmt: skip


def _low() -> PublishedLoop:
    printed, exact = tcp_red(**_TREND, rtt=0.5)
    return PublishedLoop(
        "low_paganini", "TCP and RED lose stability as delay or capacity grows, or flows become few",
        "Low, Paganini, Wang and Doyle, INFOCOM 2002 (the trend)", printed, exact, {}, {},
        "Loops for other N, C and R: fluidcc.analysis.published.tcp_red.",
    )  # fmt: skip


def _price(net: Network) -> dict[str, float]:
    from fluidcc.equilibrium import equilibrium

    rest = equilibrium(net)
    return {"price": float(rest.price.values[0]), "rate": float(rest.rate.values[0])}


def _gain(net: Network) -> float:
    """Factor by which every gain of the exact loop may grow."""
    from fluidcc.numerics.linear.margins import margins

    return float(margins(_linearized(net)).gain)


@dataclass
class _Loops(Mapping[str, PublishedLoop]):
    """The loops by name, made when asked for."""

    makers: dict[str, Callable[[], PublishedLoop]]

    def __getitem__(self, name: str) -> PublishedLoop:
        if name not in self.makers:
            raise UnknownName(f"there is no published loop {name!r}; {near(str(name), self.makers)}")
        return self.makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self.makers)

    def __len__(self) -> int:
        return len(self.makers)

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
