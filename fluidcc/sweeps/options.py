"""Options of the runs of a sweep, checked before anything is computed."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidcc.base.arguments import shown
from fluidcc.base.errors import InvalidInput
from fluidcc.base.units import to_si
from fluidcc.network import Network
from fluidcc.simulation.simulate import _check_tolerance, _frozen, _positive, _sample_times, simulate

__all__ = ["checked", "span"]

_OWN = ("net", "until", "progress", "t_eval")


def checked(given: Mapping[str, Any], net: Network | None) -> dict[str, Any]:
    """Options of `fluidcc.simulate`, each as it would check them; times in seconds.

    Raises
    ------
    InvalidInput
        If there is no such option, or its value cannot be used.
    """
    known = {n: p.default for n, p in inspect.signature(simulate).parameters.items() if n not in _OWN}
    if given.get("step") is not None:
        raise InvalidInput(
            f"step is {shown(given['step'])}; steps follow from rtol and atol: leave it out, or bound "
            "them by max_step="
        )
    for name in given:
        if name not in known:
            raise InvalidInput(f"sweep() has no argument {name!r}; of simulate() it takes {', '.join(known)}")
    options = {k: v for k, v in given.items() if v is not None}
    used = {**known, **options}
    _check_tolerance(used["rtol"], used["atol"])
    _sample_times(None, used["samples"], 0.0, 1.0)
    if used["engine"] not in ("auto", "array", "fused"):
        raise InvalidInput(f"engine is {used['engine']!r}; give 'auto', 'array' or 'fused'")
    if isinstance(used["seed"], bool) or not isinstance(used["seed"], int | np.integer) or used["seed"] < 0:
        raise InvalidInput(f"seed is {used['seed']!r}; give a whole number from 0 on")
    for name in ("first_step", "max_step"):
        if name in options:
            options[name] = _positive(options[name], name, np.inf)
    if net is not None:
        _frozen(net, used["delays"], used["frozen_at"])
    return options


def span(window: Any, until: float | None) -> tuple[float, float] | None:
    """The part of a run of which the statistics are [s].

    Raises
    ------
    InvalidInput
        If it is no span, or not within the run.
    """
    if window is None:
        return None
    if not isinstance(window, tuple | list) or len(window) != 2:
        raise InvalidInput(f"window is {window!r}; give its start and its end, such as ('30 s', '60 s')")
    first, last = (to_si(v, "s", "window") for v in window)
    if not 0 <= first < last or (until is not None and last > until):
        end = "" if until is None else f" = {until:g} s"
        raise InvalidInput(f"window is {first:g} to {last:g} s; it must lie within 0 and until{end}")
    return first, last
