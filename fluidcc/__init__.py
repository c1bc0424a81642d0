"""Fluid models of congestion control: two local laws and an interconnection.

The public names live in their rooms and are fetched when first used, so that ``import fluidcc`` costs nothing.
Every law of `fluidcc.sources` and `fluidcc.links` is a public name too.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what `_HOME` does at run time, for type checkers and editors
    from fluidcc import claims, errors, formulas, metrics, num, plot
    from fluidcc.analysis.boundary import stability_boundary
    from fluidcc.analysis.linearize import linearize
    from fluidcc.analysis.orbit import limit_cycle
    from fluidcc.analysis.published import published
    from fluidcc.analysis.sampled import sampled_stability
    from fluidcc.analysis.stability import stability
    from fluidcc.analysis.undelayed import undelayed
    from fluidcc.derive.prove import prove
    from fluidcc.engine.fused import compile
    from fluidcc.equilibrium import equilibrium, hold_trackers
    from fluidcc.law import Jump, Link, Source, Tick
    from fluidcc.links import *
    from fluidcc.links.counting import count_packets
    from fluidcc.network import Network
    from fluidcc.numerics.dde import solve_dde
    from fluidcc.numerics.linear.dlti import DelayLTI
    from fluidcc.scenarios import Scenario, scenarios
    from fluidcc.simulate import simulate
    from fluidcc.sources import *
    from fluidcc.sources.by_bytes import marked_by_bytes
    from fluidcc.sources.probes import with_estimator, with_pause
    from fluidcc.sources.windowed import with_windowed_minimum
    from fluidcc.sweeps import sweep
    from fluidcc.symbols import Let
    from fluidcc.synchronized import synchronized
    from fluidcc.topologies import dumbbell, parking_lot, two_queues

__version__ = "0.1.0"

# Where each public name lives; a name whose home is "" is the module of that name.
_HOME = {
    "DelayLTI": "numerics.linear.dlti",
    "Jump": "law",
    "Let": "symbols",
    "Link": "law",
    "Network": "network",
    "Scenario": "scenarios",
    "Source": "law",
    "Tick": "law",
    "claims": "",
    "compile": "engine.fused",
    "count_packets": "links.counting",
    "dumbbell": "topologies",
    "equilibrium": "equilibrium",
    "hold_trackers": "equilibrium",
    "errors": "",
    "formulas": "",
    "limit_cycle": "analysis.orbit",
    "linearize": "analysis.linearize",
    "marked_by_bytes": "sources.by_bytes",
    "metrics": "",
    "num": "",
    "parking_lot": "topologies",
    "plot": "",
    "prove": "derive.prove",
    "published": "analysis.published",
    "scenarios": "scenarios",
    "simulate": "simulate",
    "solve_dde": "numerics.dde",
    "sampled_stability": "analysis.sampled",
    "stability": "analysis.stability",
    "stability_boundary": "analysis.boundary",
    "sweep": "sweeps",
    "synchronized": "synchronized",
    "two_queues": "topologies",
    "undelayed": "analysis.undelayed",
    "with_estimator": "sources.probes",
    "with_pause": "sources.probes",
    "with_windowed_minimum": "sources.windowed",
}
_LAWS = ("sources", "links")

__all__ = [
    "DelayLTI",
    "Jump",
    "Let",
    "Link",
    "Network",
    "Scenario",
    "Source",
    "Tick",
    "__version__",
    "claims",
    "compile",
    "count_packets",
    "dumbbell",
    "equilibrium",
    "errors",
    "formulas",
    "hold_trackers",
    "limit_cycle",
    "linearize",
    "marked_by_bytes",
    "metrics",
    "num",
    "parking_lot",
    "plot",
    "prove",
    "published",
    "sampled_stability",
    "scenarios",
    "simulate",
    "solve_dde",
    "stability",
    "stability_boundary",
    "sweep",
    "synchronized",
    "two_queues",
    "undelayed",
    "with_estimator",
    "with_pause",
    "with_windowed_minimum",
]


class _Package(ModuleType):
    """A package in which ``fluidcc.simulate`` is always the function, though a module of that name exists.

    Importing the module ``fluidcc.simulate`` binds it on the package; here the public name inside it is bound instead.
    A public name that lives elsewhere, as ``fluidcc.compile`` does, waits until it is used.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _HOME.get(name):
            if _HOME[name] != name:
                return
            value = getattr(value, name, value)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _HOME:
        home = _HOME[name]
        value = import_module(f"{__name__}.{home or name}")
        value = getattr(value, name) if home else value
        globals()[name] = value
        return value
    if name[:1].isupper():
        for room in _LAWS:
            laws = import_module(f"{__name__}.{room}")
            if name in laws.__all__:
                return globals().setdefault(name, getattr(laws, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(name)}")


def _hint(name: str) -> str:
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches

    near = get_close_matches(name, __dir__(), n=3)
    return f"; did you mean {', '.join(near)}?" if near else ""


def __dir__() -> list[str]:
    laws = [name for room in _LAWS for name in import_module(f"{__name__}.{room}").__all__]
    return sorted({*__all__, *laws})
