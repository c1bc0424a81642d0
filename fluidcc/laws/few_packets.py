"""Windows so small that a fluid says little of them: one sentence, for runs and for equilibria."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from fluidcc.laws.law import Law
from fluidcc.symbols import plain

__all__ = ["FEW", "few_packets", "window_names"]

FEW = 3.0
"""Packets. With windows as small as that, single packets and timeouts rule, which a fluid does not have."""


def window_names(law: Law) -> tuple[str, ...]:
    """Names of the states of a law that are windows."""
    return _window_names(tuple((plain(z), law.units.get(z, "")) for z in law.states))


@lru_cache(maxsize=256)
def _window_names(states: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return tuple(name for name, unit in states if unit == "packet" and name in ("W", "w"))


def few_packets(windows: Mapping[str, float], how: str = "") -> list[str]:
    """What to say of the windows of flows, by flow name [packet]: nothing, or one sentence.

    Parameters
    ----------
    how : str
        What kind of value they are, such as "on average ".
    """
    small = {name: w for name, w in windows.items() if w < FEW}
    if not small:
        return []
    least = min(small, key=lambda name: small[name])
    many = f"the windows of {len(small)} flows are" if len(small) > 1 else f"the window of flow {least!r} is"
    return [
        f"{many} below {FEW:g} packets, {small[least]:.2g} {how}at the least: timeouts and single packets then rule, "
        "which a fluid does not have"
    ]
