"""A compiled function called by its address.

What calls a compiled function by name carries its code along, and all that this calls, to be optimised once more.
Behind an address the code is compiled once: so stands what is long and rarely needed.
"""

from __future__ import annotations

from typing import Any

from numba import config, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

__all__ = ["address_of", "call"]


def address_of(function: Any, signature: Any) -> int:
    """Where the code of a compiled function is that returns nothing, in this process."""
    if config.DISABLE_JIT:
        return 0
    function.compile(signature)
    made = function.overloads[signature.args]
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))


def call(function: Any, signature: Any) -> Any:
    """What calls `function` from compiled code, of an address and seven arguments."""
    if config.DISABLE_JIT:
        return lambda address, *arguments: function(*arguments)

    @intrinsic
    def by_address(typingctx, address, a, b, c, d, e, f, g):  # type: ignore[no-untyped-def]
        if (a, b, c, d, e, f, g) != signature.args:
            raise TypingError(f"called with {(a, b, c, d, e, f, g)} and not with {signature.args}")

        def codegen(context, builder, _, arguments):  # type: ignore[no-untyped-def]
            kind = context.call_conv.get_function_type(types.none, signature.args)
            there = builder.inttoptr(arguments[0], kind.as_pointer())
            status, _ = context.call_conv.call_function(builder, there, types.none, signature.args, arguments[1:])
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return context.get_dummy_value()

        return types.void(types.int64, *signature.args), codegen

    return by_address
