"""States by the names of flows and links, where one set of numbers stands for every flow that is identical."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

__all__ = ["SharedStates"]


class SharedStates(Mapping[str, Mapping[str, float]]):
    """States of flows, by the place of the flow that stands for each, and of links. Nothing is copied for a name.

    Parameters
    ----------
    place : mapping of str to int
        For each flow, which of `own` it has. Two of these that share this object have identical flows alike.
    own : sequence of mappings
        States by name, of each kind of flows.
    links : mapping
        States by name, of each link.
    """

    def __init__(
        self,
        place: Mapping[str, int],
        own: Sequence[Mapping[str, float]],
        links: Mapping[str, Mapping[str, float]],
    ) -> None:
        self.place, self._own, self._links = place, own, links

    def __getitem__(self, name: str) -> Mapping[str, float]:
        link = self._links.get(name)
        return MappingProxyType(dict(self._own[self.place[name]] if link is None else link))

    def __iter__(self) -> Iterator[str]:
        return chain(self.place, (name for name in self._links if name not in self.place))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr({name: dict(states) for name, states in self.items()})
