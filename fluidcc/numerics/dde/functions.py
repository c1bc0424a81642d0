"""Functions of the user as the compiled solver calls them: by address, on a frame.

The frame is one array of floats: first what the function returned, then the state, the delayed
states, the modes, and the parameters. A function compiled by numba is wrapped into machine code
that reads its arguments there. Any other one is called through Python, on copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any
from weakref import WeakKeyDictionary

import numba
import numpy as np
from numba import carray, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.extending import overload
from numpy.typing import NDArray

from fluidcc.base.arguments import numbers
from fluidcc.base.errors import InvalidInput
from fluidcc.base.progress import patiently
from fluidcc.numerics.compiling import is_generated, load_text, report
from fluidcc.numerics.dde.state import FUNCTION
from fluidcc.numerics.layout import at

Array = NDArray[np.float64]
SIGNATURE = types.int64(types.float64, types.CPointer(types.float64))


def returned(value: object, size: int, what: str, t: float) -> Array:
    """What a function of the user returned, as that many floats; `what` names it, such as
    ``"fun"``.

    Raises
    ------
    InvalidInput
        If they are not numbers, complex, or not so many.
    """
    array = np.asarray(value)
    if array.dtype != np.float64:
        array = numbers(value, f"{what} at t = {t:.10g}", "real numbers", finite=False)
    if array.size != size:
        raise InvalidInput(
            f"{what} returned shape {array.shape} at t = {t:.10g}; give {size} "
            f"number{'s'[: size != 1]}"
        )
    return array.reshape(size)


def is_compiled(function: object) -> bool:
    """Whether numba compiles this function (and is not switched off)."""
    return bool(numba.extending.is_jitted(function))


@dataclass(frozen=True)
class FrameLayout:
    """What stands where in a frame; `parameters` are kinds and shapes of the user's `args`."""

    width: int  # of what functions return
    n: int
    past: tuple[int, ...]  # shape of Z
    modes: int
    parameters: tuple[tuple[str, tuple[int, ...]], ...] | None  # None: not all of them are numbers

    @cached_property
    def places(self) -> dict[str, tuple[int, int]]:
        """Begin and end of each part."""
        sizes = {"out": self.width, "y": self.n, "Z": math.prod(self.past), "modes": self.modes}
        sizes["args"] = sum(math.prod(shape) for _, shape in self.parameters or ())
        ends = accumulate(sizes.values())
        return {name: (end - sizes[name], end) for name, end in zip(sizes, ends, strict=True)}

    def text(self, names: tuple[str, ...]) -> str:
        """The arguments of a function, read from the frame f."""
        texts, places = [], self.places
        for name in names:
            low, high = places.get(name, (0, 0))
            if name == "args":
                for kind, shape in self.parameters or ():
                    texts.append(_parameter_text(kind, shape, low))
                    low += math.prod(shape)
            else:
                shape = self.past if name == "Z" else (high - low,)
                texts.append("t" if name == "t" else f"carray(at(f, {low}), {shape})")
        return ", ".join(texts)


def _parameter_text(kind: str, shape: tuple[int, ...], low: int) -> str:
    if shape == ():
        return {"f": f"f[{low}]", "b": f"f[{low}] != 0.0"}.get(kind, f"int(f[{low}])")
    text = f"carray(at(f, {low}), {shape})"
    return {"f": text, "b": f"({text} != 0.0)"}.get(kind, f"{text}.astype(np.int64)")


def parameter_kinds(args: tuple[object, ...]) -> tuple[tuple[str, tuple[int, ...]], ...] | None:
    """Kind ("f", "i" or "b") and shape of each of `args`; None if some are no numbers."""
    kinds = []
    for arg in args:
        if not isinstance(arg, int | float | np.number | np.bool_ | np.ndarray):
            return None
        array = np.asarray(arg)
        kind = {"u": "i"}.get(array.dtype.kind, array.dtype.kind)
        if kind not in "fib" or (kind == "i" and np.abs(array).max(initial=0) > 2**53):
            return None
        kinds.append((kind, array.shape))
    return tuple(kinds)


class Frame:
    """The array of floats in which functions find their arguments and put their results."""

    def __init__(self, layout: FrameLayout, args: tuple[object, ...]) -> None:
        self.layout, self.args = layout, args
        places = layout.places
        self.array = np.zeros(places["args"][1])
        self.views = {name: self.array[low:high] for name, (low, high) in places.items()}
        if layout.parameters:
            values = [np.ravel(np.asarray(arg, dtype=float)) for arg in args]
            self.views["args"][:] = np.concatenate(values)
        self.shaped = {**self.views, "Z": self.views["Z"].reshape(layout.past)}
        self.error: BaseException | None = None  # what a function raised


@dataclass
class Function:
    """A function of the user."""

    function: Callable[..., object]
    what: str  # its name in messages
    names: tuple[str, ...]  # of its arguments: "t", "y", "Z", "modes", "args"
    count: int  # how many numbers it returns

    @property
    def delayed(self) -> bool:
        """Whether it reads delayed states."""
        return "Z" in self.names

    def at(self, t: float) -> Array:
        """The value of one of time alone, called from Python; 1/0 is infinite."""
        with np.errstate(all="ignore"):
            return returned(self.function(np.float64(t)), self.count, self.what, t).copy()

    def __call__(self, frame: Frame, t: float) -> Array:
        """Its value on what stands in the frame, called from Python."""
        given = [frame.shaped[name].copy() for name in self.names if name not in ("t", "args")]
        args = frame.args if "args" in self.names else ()
        if self.names == ("t",):  # the history, tried beyond its domain: 1/0 is infinite then
            t = np.float64(t)
        return returned(self.function(t, *given, *args), self.count, self.what, t)

    def by_address(self, frame: Frame) -> Any:
        """Something that stands for the function, called as `state.FUNCTION`, and must be kept."""
        fits = frame.layout.parameters is not None or "args" not in self.names
        if is_compiled(self.function) and fits:
            return _compiled(self, frame)
        answers = self._answers(frame)
        next(answers)
        return FUNCTION(answers.send)

    def _answers(self, frame: Frame) -> Generator[int, float, None]:
        """Answer calls, each with 1, or 0 where an exception was kept in the frame.

        A function would begin outside of its own ``try``, where Ctrl-C, which Python hears as it
        begins, would be lost; this goes on within.
        """
        answer, out = 1, frame.views["out"][: self.count]
        while True:
            try:
                while True:
                    t = yield answer
                    out[:] = self(frame, t)
                    answer = 1
            except GeneratorExit:
                return
            except BaseException as error:
                frame.error, answer = error, 0


_wrapped: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


def _compiled(given: Function, frame: Frame) -> Any:
    """The function as machine code that reads its arguments from a frame; kept for further runs."""
    key = (given.names, given.count, frame.layout)
    with global_compiler_lock:
        known = _wrapped.setdefault(given.function, {})
        if key not in known:
            try:
                with patiently(f"compiling {given.what}"):
                    known[key] = _wrap(given, frame.layout)
            except NumbaError as error:
                raise InvalidInput(
                    f"{given.what} cannot be compiled by numba for its arguments "
                    f"({', '.join(given.names)}): {_reason(error)}; mend it, or give it without "
                    f"numba"
                ) from error
        return known[key]


def put(value: Any, count: int, out: Any) -> int:
    """Copy what a compiled function returned to `out`; return 1, or 0 if it is not so many."""
    raise NotImplementedError


@overload(put)
def _put(value, count, out):  # type: ignore[no-untyped-def]
    def of_number(value, count, out):  # type: ignore[no-untyped-def]
        out[0] = value
        return int(count == 1)

    def of_sequence(value, count, out):  # type: ignore[no-untyped-def]
        if len(value) != count:
            return 0
        for i in range(count):
            out[i] = value[i]
        return 1

    def of_any(value, count, out):  # type: ignore[no-untyped-def]
        return put(np.asarray(value).ravel(), count, out)

    if isinstance(value, types.Number | types.Boolean):
        return of_number
    flat = isinstance(value, types.Array) and value.ndim == 1
    return of_sequence if flat or isinstance(value, types.UniTuple | types.List) else of_any


def _wrap(given: Function, layout: FrameLayout) -> Any:
    """The compiled function; of one that was generated it is kept on disk."""
    made = given.function
    text = f"""
@njit(cache=False)
def inner(t, f):
    return put(function({layout.text(given.names)}), {given.count}, f)

@cfunc(SIGNATURE)
def outer(t, frame):
    answer = 0
    try:
        answer = inner(t, frame)
    except Exception:
        answer = 0
    return answer
"""
    if is_generated(made.py_func):  # type: ignore[attr-defined]
        text = f"""import numpy as np
from numba import carray
from fluidcc.numerics.compiling import cfunc, njit
from fluidcc.numerics.dde.functions import SIGNATURE, put
from fluidcc.numerics.layout import at
from {made.__module__} import {made.__name__} as function
{text}"""
        return load_text(text, "delay_function").outer
    space = {"np": np, "carray": carray, "at": at, "njit": numba.njit, "cfunc": numba.cfunc}
    space |= {"SIGNATURE": SIGNATURE, "put": put, "function": made}
    exec(compile(text, "<solve_dde>", "exec"), space)
    return space["outer"]


def _reason(error: NumbaError) -> str:
    """The lines of numba's report that say most: what is missing, and for which arguments."""
    telling = [
        line for line in report(error) if not line.startswith(("Failed in", "During:", "File"))
    ]
    return " ".join([*telling[:1], *(line for line in telling[1:3] if line.startswith(">>>"))])
