"""What compiled code reads and calls by address: the state of a run by name, kernels and fused
steps.

A call by address takes 4 ns, one of a function object passed from Python 50 us. With
``NUMBA_DISABLE_JIT=1`` the same names run in pure Python: an address is then a key of
`PYTHON_KERNELS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import config, types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from ..compiling import njit
from .state import PLACES, Floats, State

__all__ = [
    "PYTHON_KERNELS", "at", "call_kernel", "call_step", "clear", "copy", "kernel_signature",
    "state", "step_signature",
]  # fmt: skip

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}
_P = types.CPointer(types.float64)
_Q = types.CPointer(types.int64)

#: kernel(n, signal stride, states, signals, parameters, modes, derivatives, outputs, switches, want
#: switches)
kernel_signature = types.void(types.int64, types.int64, _P, _P, _P, _P, _P, _P, _P, types.int64)
#: step(F, I) -> status
step_signature = types.int64(_P, _Q)

PYTHON_KERNELS: dict[int, Callable[..., Any]] = {}


def _call_kernel_python(address: int, *arguments: Any) -> None:
    PYTHON_KERNELS[address](*arguments)


def _call_step_python(address: int, run: State) -> int:
    return int(PYTHON_KERNELS[address](run.F, run.I))


def _at_python(array: Any, places: int) -> Any:
    return array[places:]


class _StateType(types.Type):
    """`State` in compiled code: the addresses of its two arrays."""

    def __init__(self) -> None:
        super().__init__("fluidcc.State")


_STATE = _StateType()
_KINDS = {"float": types.float64, "int": types.int64, "Floats": _P, "Ints": _Q}


@register_model(_StateType)
class _StateModel(models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, [("F", _P), ("I", _Q)])


@infer_getattr
class _StateNames(AttributeTemplate):
    key = _StateType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        return _KINDS[PLACES[name][0]] if name in PLACES else None


def _place(context: Any, builder: Any, run: Any, name: str) -> Any:
    """The address of a scalar, or of the number that says where an array begins."""
    kind, place = PLACES[name]
    arrays = cgutils.create_struct_proxy(_STATE)(context, builder, value=run)
    word = context.get_constant(types.int64, place)
    return builder.gep(arrays.F if kind == "float" else arrays.I, [word])


@lower_getattr_generic(_StateType)
def _get(context: Any, builder: Any, kind: Any, run: Any, name: str) -> Any:
    found = builder.load(_place(context, builder, run, name))
    if PLACES[name][0] in ("float", "int"):
        return found
    arrays = cgutils.create_struct_proxy(_STATE)(context, builder, value=run)
    return builder.gep(arrays.F if PLACES[name][0] == "Floats" else arrays.I, [found])


@lower_setattr_generic(_StateType)
def _set(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    builder.store(args[1], _place(context, builder, args[0], name))


@typeof_impl.register(State)
def _typeof(value: State, context: Any) -> _StateType:
    return _STATE


@unbox(_StateType)
def _from_python(kind: Any, value: Any, c: Any) -> NativeValue:
    """The addresses of the arrays of a `State`, which keeps them."""
    made = cgutils.create_struct_proxy(_STATE)(c.context, c.builder)
    for name, dtype in (("F", types.float64), ("I", types.int64)):
        array, kind = c.pyapi.object_getattr_string(value, name), types.Array(dtype, 1, "C")
        native = c.unbox(kind, array).value
        setattr(made, name, c.context.make_array(kind)(c.context, c.builder, native).data)
        c.context.nrt.decref(c.builder, kind, native)
        c.pyapi.decref(array)
    return NativeValue(made._getvalue())


if config.DISABLE_JIT:
    state: Callable[..., Any] = State
    at: Callable[..., Any] = _at_python
    call_kernel: Callable[..., Any] = _call_kernel_python
    call_step: Callable[..., Any] = _call_step_python
else:

    @intrinsic
    def state(typingctx, F, I):  # type: ignore[no-untyped-def]
        """The state of a run from its two arrays, or their addresses."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            made = cgutils.create_struct_proxy(_STATE)(context, builder)
            made.F, made.I = (
                value
                if isinstance(kind, types.CPointer)
                else context.make_array(kind)(context, builder, value).data
                for kind, value in zip(sig.args, args, strict=True)
            )
            return made._getvalue()

        return _STATE(F, I), codegen

    @intrinsic
    def at(typingctx, array, places):  # type: ignore[no-untyped-def]
        """The address so many places behind another one."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return builder.gep(args[0], [context.cast(builder, args[1], sig.args[1], types.int64)])

        return array(array, places), codegen

    @intrinsic
    def call_kernel(  # type: ignore[no-untyped-def]
        typingctx, address, n, su, z, u, p, m, d, o, g, want
    ):
        """Call a law kernel that stands at `address`."""
        from llvmlite import ir

        signature = types.void(address, n, su, z, u, p, m, d, o, g, want)

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            double = ir.DoubleType().as_pointer()
            word = ir.IntType(64)
            kind = ir.FunctionType(ir.VoidType(), [word, word, *([double] * 7), word])
            builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
            return context.get_dummy_value()

        return signature, codegen

    @intrinsic
    def call_step(typingctx, address, run):  # type: ignore[no-untyped-def]
        """Call a fused step that stands at `address` on the state of a run."""
        from llvmlite import ir

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            arrays = cgutils.create_struct_proxy(_STATE)(context, builder, value=args[1])
            word = ir.IntType(64)
            kind = ir.FunctionType(word, [ir.DoubleType().as_pointer(), word.as_pointer()])
            function = builder.inttoptr(args[0], kind.as_pointer())
            return builder.call(function, [arrays.F, arrays.I])

        return types.int64(address, run), codegen


@njit(**_CFG)
def copy(target: Floats, source: Floats, count: int) -> None:
    """Copy so many numbers."""
    for i in range(count):
        target[i] = source[i]


@njit(**_CFG)
def clear(target: Floats, count: int) -> None:
    """Put zeros into so many places."""
    for i in range(count):
        target[i] = 0
