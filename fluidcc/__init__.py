"""Fluid models of congestion control: two local laws and an interconnection.

The public names live in subpackages and are fetched when first used, so that ``import fluidcc``
costs nothing. Every law of `fluidcc.sources` and `fluidcc.links` is a public name too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fluidcc.base import above
from fluidcc.base.version import __version__

if TYPE_CHECKING:  # what `_HOME` and `_MODULES` do at run time, for type checkers and editors
    from fluidcc import formulas, metrics
    from fluidcc import papers as claims
    from fluidcc import plotting as plot
    from fluidcc.analysis.boundary import stability_boundary
    from fluidcc.analysis.linearize import linearize
    from fluidcc.analysis.stability import stability
    from fluidcc.base import errors
    from fluidcc.cycles.orbit import limit_cycle
    from fluidcc.equilibria import num
    from fluidcc.equilibria.equilibrium import equilibrium, hold_trackers
    from fluidcc.explorer.app import explore
    from fluidcc.laws import Jump, Law, Link, Source, Steady, Tick, highest, lowest, rounds
    from fluidcc.laws.delay_equations import solve_dde
    from fluidcc.laws.past import ago
    from fluidcc.links import *
    from fluidcc.links.counting import count_packets
    from fluidcc.network import Network
    from fluidcc.network.scenarios import Scenario, scenarios
    from fluidcc.network.topologies import dumbbell, parking_lot, two_queues
    from fluidcc.network.traces import read_trace
    from fluidcc.numerics.linear.dlti import DelayLTI
    from fluidcc.papers.binomial.synchronized import synchronized
    from fluidcc.papers.ecf.routers import sampled_stability
    from fluidcc.papers.ldcc.undelayed import undelayed
    from fluidcc.papers.published import published
    from fluidcc.proofs.prove import prove
    from fluidcc.simulation.fused import compile
    from fluidcc.simulation.simulate import simulate
    from fluidcc.sources import *
    from fluidcc.sources.by_bytes import marked_by_bytes
    from fluidcc.sources.propagation import with_estimator, with_pause, with_windowed_minimum
    from fluidcc.sources.slow_start import with_slow_start
    from fluidcc.sources.windows import window
    from fluidcc.sweeps import sweep
    from fluidcc.symbols import Let

# Where each public name lives: as a name in a module, or as a module.
_HOME = {
    "DelayLTI": "numerics.linear.dlti",
    "Jump": "laws",
    "Law": "laws",
    "Let": "symbols",
    "Link": "laws",
    "Network": "network",
    "Scenario": "network.scenarios",
    "Source": "laws",
    "Steady": "laws",
    "Tick": "laws",
    "ago": "laws.past",
    "compile": "simulation.fused",
    "count_packets": "links.counting",
    "dumbbell": "network.topologies",
    "equilibrium": "equilibria.equilibrium",
    "explore": "explorer.app",
    "highest": "laws",
    "hold_trackers": "equilibria.equilibrium",
    "limit_cycle": "cycles.orbit",
    "linearize": "analysis.linearize",
    "lowest": "laws",
    "marked_by_bytes": "sources.by_bytes",
    "parking_lot": "network.topologies",
    "prove": "proofs.prove",
    "published": "papers.published",
    "read_trace": "network.traces",
    "rounds": "laws",
    "sampled_stability": "papers.ecf.routers",
    "scenarios": "network.scenarios",
    "simulate": "simulation.simulate",
    "solve_dde": "laws.delay_equations",
    "stability": "analysis.stability",
    "stability_boundary": "analysis.boundary",
    "sweep": "sweeps",
    "synchronized": "papers.binomial.synchronized",
    "two_queues": "network.topologies",
    "undelayed": "papers.ldcc.undelayed",
    "with_estimator": "sources.propagation",
    "with_pause": "sources.propagation",
    "with_slow_start": "sources.slow_start",
    "with_windowed_minimum": "sources.propagation",
    "window": "sources.windows",
}
_MODULES = {
    "claims": "papers",
    "errors": "base.errors",
    "formulas": "formulas",
    "metrics": "metrics",
    "num": "equilibria.num",
    "plot": "plotting",
}
_LAWS = ("sources", "links")
above.DRAWN_BY, above.RUN_BY = f"{__name__}.plotting", f"{__name__}.simulation.simulate"
above.CONDITIONS_IN = f"{__name__}.conditions"

__all__ = [
    "DelayLTI", "Jump", "Law", "Let", "Link", "Network", "Scenario", "Source", "Steady", "Tick",
    "__version__", "ago", "claims", "compile", "count_packets", "dumbbell", "equilibrium", "errors",
    "explore", "formulas", "highest", "hold_trackers", "limit_cycle", "linearize", "lowest",
    "marked_by_bytes", "metrics", "num", "parking_lot", "plot", "prove", "published", "read_trace",
    "rounds", "sampled_stability", "scenarios", "simulate", "solve_dde", "stability",
    "stability_boundary", "sweep", "synchronized", "two_queues", "undelayed", "window",
    "with_estimator", "with_pause", "with_slow_start", "with_windowed_minimum",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        module = import_module(f"{__name__}.{_MODULES[name]}")
        vars(module)["__dir__"] = lambda: module.__all__  # what the Tab key offers
        return globals().setdefault(name, module)
    if name in _HOME:
        return globals().setdefault(name, getattr(import_module(f"{__name__}.{_HOME[name]}"), name))
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

    alike = [one for one in __dir__() if one.lower() == name.lower()]
    near = alike or get_close_matches(name, __dir__(), n=3, cutoff=0.7)  # BBR is no misprint of CBR
    if near:
        return f"; did you mean {', '.join(near)}?"
    return "; `fluidcc list` names the laws, and fc.Source makes one" if name[0].isupper() else ""


def __dir__() -> list[str]:
    laws = [name for room in _LAWS for name in import_module(f"{__name__}.{room}").__all__]
    return sorted({*__all__, *laws})
