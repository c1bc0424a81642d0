"""What an equilibrium tells: rates, delays, losses and states, by flow and link."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Float, N

from fluidcc.base.arguments import choice, explained_class, mapping, shown
from fluidcc.base.errors import InvalidInput, UnknownName, Unsupported
from fluidcc.base.tables import in_columns, in_html, in_units
from fluidcc.network.wired import capacity_at
from fluidcc.symbols import (
    RATIOS,
    Let,
    c,
    e,
    e_b,
    edot,
    packet,
    plain,
    price,
    q_max,
    unfold,
    x_tau,
    y,
)

if TYPE_CHECKING:
    import xarray as xr

    from fluidcc.equilibria.sliding import Slide
    from fluidcc.network import Network

COLUMNS = {
    "rate": ("flow", "bit/s"),
    "one_way_delay": ("flow", "s"),
    "rtt": ("flow", "s"),
    "loss": ("flow", "1"),
    "mark": ("flow", "1"),
    "queueing_delay": ("link", "s"),
    "link_loss": ("link", "1"),
    "link_drop": ("link", "1"),
    "link_mark": ("link", "1"),
    "price": ("link", "1"),
    "saturated": ("link", None),
    "full": ("link", None),
    "arrival_rate": ("link", "bit/s"),
    "admitted_rate": ("link", "bit/s"),
}
"""Dimension and unit of what an equilibrium tells."""
SHOWN = {
    "flow": ("rate", "one_way_delay", "rtt", "loss", "mark"),
    "link": (
        "queueing_delay", "arrival_rate", "link_loss", "link_drop", "link_mark", "price",
        "saturated", "full",
    ),
}  # fmt: skip
"""What its tables show; no ratios at links, marks or prices that are 0 all over."""
MAY_BE_NONE = {"mark", "link_loss", "link_drop", "link_mark", "price"}
MOST_ROWS = 12  # of a table in text


def _labelled(name: str) -> Any:
    """The attribute of that name, an array with its labels."""
    dim, units = COLUMNS[name]

    def labelled(self: Equilibrium) -> xr.DataArray:
        import xarray as xr

        attrs = {"units": units} if units else {}
        return xr.DataArray(self._values[name], {dim: self._names[dim]}, (dim,), name, attrs)

    return cached_property(labelled)


@explained_class
@dataclass(frozen=True, repr=False, eq=False)
class Equilibrium:
    """An equilibrium; flows that are off have rate 0 and see the same path as the others.

    Attributes
    ----------
    rate : DataArray over "flow"
        Sending rates [bit/s].
    one_way_delay, rtt : DataArray over "flow"
        e [s] and e + e_b [s].
    loss, mark : DataArray over "flow"
        Loss ratio and mark ratio on the path [1]: of the data sent, and of the data not lost. For a
        flow that uses neither signal marks count as losses.
    queueing_delay : DataArray over "link"
        [s]
    link_loss, link_drop, link_mark : DataArray over "link"
        Share that a full buffer loses, that the link's law drops before its queue, and that it
        marks [1].
    price : DataArray over "link"
        The link's price output [1], 0 where its law has none.
    saturated : DataArray of bool over "link"
        Where the admitted rate equals the capacity.
    full : DataArray of bool over "link"
        Where the buffer is full.
    arrival_rate, admitted_rate : DataArray over "link"
        What comes [bit/s], and what of it is not dropped before the queue; of that, what exceeds
        the capacity is lost.
    states : mapping
        Every law's own states, by flow or link name and state name.
    error : float
        Bound of the relative error of every rate, queue and state [1], rounding included; of one
        that has all but vanished relative to a millionth of what it was on the way. Infinite where
        there is none below 1 %: in a continuum, and where equations hardly tell.
    at : float
        Time [s] whose capacities and flows it has.
    free : tuple of str or None
        States ("flow.state", "link.state") that nothing determines, as the equilibrium is one of a
        continuum; empty where it is isolated, None where that was not examined.
    warnings : tuple of str
        What makes it doubtful, as in the attribute of that name of a run: windows of few packets.
    sliding : tuple
        The switches of laws on which it rests, where neither side has an equilibrium: ``switch`` is
        0, and ``share`` of what the law does above it, and the rest of what it does below, are at
        rest (Filippov's mean); ``leads_back`` says whether runs can slide there. Empty elsewhere.
    """

    _names: Mapping[str, list[str]]  # by dimension
    _values: Mapping[str, Any]  # arrays by attribute: labels cost more than small networks do
    states: Mapping[str, Mapping[str, float]]
    error: float
    at: float = math.inf
    free: tuple[str, ...] | None = None
    warnings: tuple[str, ...] = ()
    sliding: tuple[Slide, ...] = ()
    _net: Network | None = None

    def array(self, name: str) -> Any:
        """One of the attributes over "flow" or "link" as a plain array, without labels.

        Raises
        ------
        UnknownName
            If there is none of that name.
        """
        if name not in [*COLUMNS]:
            raise UnknownName(f"an equilibrium has no array {name!r}; it has {', '.join(COLUMNS)}")
        return self._values[name]

    def changed(
        self, states: Mapping[str, Mapping[str, float]] | None = None, **values: Any
    ) -> Equilibrium:
        """A copy with other values of some attributes, such as an equilibrium known by hand.

        Raises
        ------
        UnknownName
            If an attribute over "flow" or "link" has not that name.
        """
        arrays = {}
        for k, v in values.items():
            old = self.array(k)
            try:
                arrays[k] = np.broadcast_to(np.asarray(v, old.dtype), old.shape).copy()
            except (TypeError, ValueError, OverflowError):
                raise InvalidInput(
                    f"{k} is {shown(v)}; give a number, or {len(old)} of them"
                ) from None
        own = self.states if states is None else mapping(states, "states", "all, by flow and link")
        return replace(self, _values={**self._values, **arrays}, states=own)

    def lets(self, name: str) -> dict[str, float]:
        """The values of the named expressions (`Let`) of a flow's or link's law, by name, in SI
        units.

        Parameters
        ----------
        name : str
            Of a flow or link.

        Returns
        -------
        dict
            Without those that depend on time or other signals without equilibrium, or on states
            of a flow that is off. Of several expressions of one name the second is called by that
            name and "_2", and so on.

        Raises
        ------
        UnknownName
            If there is no flow or link of that name.
        Unsupported
            If the equilibrium is one of many points, which keep no network.

        Examples
        --------
        >>> import fluidcc as fc
        >>> net = fc.Network().link("l", fc.DropTail, capacity="2 Mbit/s", delay="25 ms")
        >>> eq = fc.equilibrium(net.flow("a", fc.LDCC, route=["l"]))
        >>> eq.lets("a").keys()
        dict_keys(['RTT', 'U', 'k', 'v'])
        >>> round(eq.lets("a")["v"], 6)  # (17): at equilibrium v = w/x
        0.01
        """
        if self._net is None:
            raise Unsupported(
                "an equilibrium of many points has no network; ask that of "
                "fluidcc.equilibrium(network)"
            )
        return values_of_lets(self, self._net, name)

    def lost_or_marked(self, flow: str) -> float:
        """The share of what a flow sends that is lost or marked: the signal pi of its law."""
        flows = self._names["flow"]
        k = flows.index(choice(flow, "flow", flows))
        loss, mark = (float(self._values[name][k]) for name in ("loss", "mark"))
        return loss + (1.0 - loss) * mark

    rate = _labelled("rate")
    one_way_delay = _labelled("one_way_delay")
    rtt = _labelled("rtt")
    loss = _labelled("loss")
    mark = _labelled("mark")
    queueing_delay = _labelled("queueing_delay")
    link_loss = _labelled("link_loss")
    link_drop = _labelled("link_drop")
    link_mark = _labelled("link_mark")
    price = _labelled("price")
    saturated = _labelled("saturated")
    full = _labelled("full")
    arrival_rate = _labelled("arrival_rate")
    admitted_rate = _labelled("admitted_rate")

    def _tables(self, most: float) -> list[list[list[str]]]:
        """The heads and rows of a table of flows and one of links, with so many rows at most."""
        tables = []
        for dim, names in SHOWN.items():
            some = [n for n in names if n not in MAY_BE_NONE or np.any(self._values[n] > 0)]
            labels = [n for i, n in enumerate(self._names[dim]) if i < most]
            head, columns = [dim], [labels]
            for name in some:
                unit, cells = self._column(name, len(labels))
                head.append(name if unit is None else f"{name} [{unit}]")
                columns.append(cells)
            tables.append([head, *map(list, zip(*columns, strict=True))])
        return tables

    def _column(self, name: str, most: int) -> tuple[str | None, list[str]]:
        """The unit and the texts of what the tables show of that name."""
        values, unit = self._values[name][:most], COLUMNS[name][1]
        if unit is None:
            return None, ["yes" if v else "no" for v in values]
        alike = [self._values[n] for n, (_, u) in COLUMNS.items() if u == unit]
        finite = np.concatenate(alike)
        size = 1.0 if unit == "1" else np.max(finite[np.isfinite(finite)], initial=0.0)
        return in_units(values, unit, size)

    def __repr__(self) -> str:
        tables = []
        for dim, rows in zip(SHOWN, self._tables(MOST_ROWS), strict=True):
            more = len(self._names[dim]) - MOST_ROWS
            tables.append(
                "\n".join([*in_columns(rows), *([f"... and {more} more"] if more > 0 else [])])
            )
        return "\n\n".join([*tables, *self._remarks()])

    def _remarks(self) -> list[str]:
        return [
            *map(str, self.sliding),
            *([f"one of a continuum, along {', '.join(self.free)}"] if self.free else []),
            *self.warnings,
        ]

    def _repr_html_(self) -> str:
        remarks = "".join(f"<p>{escape(text)}</p>" for text in self._remarks())
        tables = [in_html(rows, head) for head, *rows in self._tables(math.inf)]
        return "".join([remarks, *tables])


# --- The values that the named expressions of a law have at an equilibrium -----------------------


def values_of_lets(eq: Equilibrium, net: Network, name: str) -> dict[str, float]:
    """The values of the Lets of a flow's or link's law at an equilibrium of its network, by
    name.
    """
    if name in [*net.flows]:
        known = _of_flow(eq, net, name)
    elif name in [*net.links]:
        known = _of_link(eq, net, name)
    else:
        raise UnknownName(
            f"there is no flow or link {shown(name)}; there are "
            f"{', '.join([*net.flows, *net.links])}"
        )
    law: Any = (net.flows.get(name) or net.links[name]).law
    own = {z: eq.states[name][plain(z)] for z in law.states if plain(z) in eq.states[name]}
    values = {s: Float(v) for s, v in {**known, **law.params, **own}.items()}
    found: dict[str, float] = {}
    for let in _lets(law):
        f = unfold(let)
        if f.free_symbols <= values.keys():
            key, k = plain(let), 2
            while key in found:
                key, k = f"{plain(let)}_{k}", k + 1
            found[key] = float(N(f.xreplace(values)))
    return found


def _lets(law: Any) -> list[Let]:
    """Those in any expression of a law, and in their definitions, each once, sorted by name."""
    found: set[Let] = set()
    left = [f for _, f in law.expressions()]
    while left:
        more = left.pop().atoms(Let) - found
        found |= more
        left += [let.definition for let in more]
    return sorted(found, key=lambda let: (plain(let), str(let.definition)))


def _of_flow(eq: Equilibrium, net: Network, name: str) -> dict[Any, float]:
    k, flow = net.flow_names.index(name), net.flows[name]
    names = ("rate", "one_way_delay", "rtt", "loss", "mark")
    at = {q: float(eq.array(q)[k]) for q in names}
    links = list(net.links)
    prices = sum(float(eq.array("price")[links.index(l)]) for l in flow.route)
    return {
        e: at["one_way_delay"], edot: 0.0, price: prices,
        **dict(zip(RATIOS, (at["loss"], at["mark"], eq.lost_or_marked(name)), strict=True)),
        x_tau: at["rate"], e_b: at["rtt"] - at["one_way_delay"], packet: flow.packet,
    }  # fmt: skip


def _of_link(eq: Equilibrium, net: Network, name: str) -> dict[Any, float]:
    l, link = net.link_names.index(name), net.links[name]
    capacity = capacity_at(link, eq.at)
    # what its law knows of: without what it drops of flows without ECN in place of marks
    comes = "arrival_rate" if "drop" in link.law.out else "admitted_rate"
    return {y: float(eq.array(comes)[l]), c: capacity, q_max: link.buffer / capacity}
