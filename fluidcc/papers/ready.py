"""Ready scenarios with parameters: a function for each, which says what it is in its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from fluidcc.base.arguments import shown
from fluidcc.base.errors import InvalidInput
from fluidcc.network.network import Network
from fluidcc.network.patterns import near, quantity
from fluidcc.network.scenarios import RUN_FIELDS, Scenario

__all__ = ["Made", "pick", "ready"]

Made = tuple[Network, dict[str, Any]]  # a network, and the fields of `Scenario` for its run
_RUN = ("until", "samples", *RUN_FIELDS)


def ready(**units: str) -> Callable[[Callable[..., Made]], Any]:
    """Make ready scenarios of a function of the parameters.

    The function returns the network and the fields of `Scenario` for its run; its name is the
    scenario's, the first line of its docstring the title, and the rest the notes.

    Parameters
    ----------
    **units
        Of the parameters that are numbers with one: text is converted into it.
    """

    def register(build: Callable[..., Made]) -> Callable[..., Scenario]:
        name, known = build.__name__, inspect.signature(build).parameters
        title, _, notes = (build.__doc__ or "").strip().partition("\n")

        @wraps(build)
        def made(**values: Any) -> Scenario:
            own = {key: values.pop(key) for key in _RUN if key in values}
            for key, value in values.items():
                if key not in known:
                    raise InvalidInput(
                        f"scenario {name!r} has no parameter {shown(key)}; {near(key, known)}"
                    )
                if (unit := units.get(key)) and value is not None:
                    what = f"{key} of scenario {name!r}"
                    values[key] = quantity(value, unit, what)
            net, run = build(**values)
            about = {"title": title.rstrip("."), "notes": inspect.cleandoc(notes)}
            return Scenario(name, net, **{**about, **run, **own}, make=made)

        return made

    return register


def pick(given: Any, what: str, known: Mapping[str, Any]) -> Any:
    """Return what goes by a name in a scenario; `what` is the parameter."""
    if not isinstance(given, str) or given not in known:
        raise InvalidInput(f"{what} is {shown(given)}; {near(str(given), known)}")
    return known[given]
