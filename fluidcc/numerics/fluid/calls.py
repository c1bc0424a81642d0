"""Calling compiled code by address: 4 ns where a function object passed from Python costs 50 us a
call.

With ``NUMBA_DISABLE_JIT=1`` the same names run in pure Python: an address is then a key of
`PYTHON_KERNELS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import config, types
from numba.extending import intrinsic

__all__ = [
    "PYTHON_KERNELS",
    "call_kernel",
    "call_step",
    "kernel_signature",
    "pointer",
    "step_signature",
]

_P = types.CPointer(types.float64)
_Q = types.CPointer(types.int64)

#: kernel(n, signal stride, states, signals, parameters, modes, derivatives, outputs, switches, want
#: switches)
kernel_signature = types.void(types.int64, types.int64, _P, _P, _P, _P, _P, _P, _P, types.int64)
#: step(F, I) -> status
step_signature = types.int64(_P, _Q)

PYTHON_KERNELS: dict[int, Callable[..., Any]] = {}


def _call_kernel_python(
    address: int,
    n: int,
    su: int,
    F: Any,
    oz: int,
    ou: int,
    op: int,
    om: int,
    od: int,
    oo: int,
    og: int,
    want: int,
) -> None:
    PYTHON_KERNELS[address](n, su, F[oz:], F[ou:], F[op:], F[om:], F[od:], F[oo:], F[og:], want)


def _call_step_python(address: int, F: Any, I: Any) -> int:
    return int(PYTHON_KERNELS[address](F, I))


def _pointer_python(array: Any) -> Any:
    return array


if config.DISABLE_JIT:
    pointer: Callable[..., Any] = _pointer_python
    call_kernel: Callable[..., Any] = _call_kernel_python
    call_step: Callable[..., Any] = _call_step_python
else:

    def _data(context, builder, kind, value):  # type: ignore[no-untyped-def]
        """The address of an array's first item; a pointer is one already."""
        return (
            value
            if isinstance(kind, types.CPointer)
            else context.make_array(kind)(context, builder, value).data
        )

    @intrinsic
    def pointer(typingctx, array):  # type: ignore[no-untyped-def]
        """Address of a contiguous array's first item, whose indices may not be negative and so need
        no look.
        """

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return _data(context, builder, sig.args[0], args[0])

        return types.CPointer(array.dtype)(array), codegen

    @intrinsic
    def call_kernel(  # type: ignore[no-untyped-def]
        typingctx, address, n, su, F, oz, ou, op, om, od, oo, og, want
    ):
        """Call a law kernel that stands at `address`, with its arrays at offsets into `F`."""
        from llvmlite import ir

        i8 = types.int64
        signature = types.void(address, n, su, F, *([i8] * 8))

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            data = _data(context, builder, sig.args[3], args[3])
            double = ir.DoubleType().as_pointer()
            word = ir.IntType(64)
            kind = ir.FunctionType(ir.VoidType(), [word, word, *([double] * 7), word])
            function = builder.inttoptr(args[0], kind.as_pointer())
            pointers = [builder.gep(data, [offset]) for offset in args[4:11]]
            builder.call(function, [args[1], args[2], *pointers, args[11]])
            return context.get_dummy_value()

        return signature, codegen

    @intrinsic
    def call_step(typingctx, address, F, I):  # type: ignore[no-untyped-def]
        """Call a fused step that stands at `address` on the workspace."""
        from llvmlite import ir

        signature = types.int64(address, F, I)

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            f, i = (_data(context, builder, sig.args[k], args[k]) for k in (1, 2))
            word = ir.IntType(64)
            kind = ir.FunctionType(word, [ir.DoubleType().as_pointer(), word.as_pointer()])
            function = builder.inttoptr(args[0], kind.as_pointer())
            return builder.call(function, [f, i])

        return signature, codegen
