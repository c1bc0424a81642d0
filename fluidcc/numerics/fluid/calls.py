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
from numba.extending import intrinsic

from ..layout import NamedArraysType
from .state import State

_P = types.CPointer(types.float64)
_Q = types.CPointer(types.int64)

#: step(F, I) -> status
step_signature = types.int64(_P, _Q)

PYTHON_KERNELS: dict[int, Callable[..., Any]] = {}


def _call_kernel_python(address: int, *arguments: Any) -> None:
    PYTHON_KERNELS[address](*arguments)


def _call_step_python(address: int, run: State) -> int:
    return int(PYTHON_KERNELS[address](run.F, run.I))


_STATE = NamedArraysType(State)


if config.DISABLE_JIT:
    state: Callable[..., Any] = State
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
