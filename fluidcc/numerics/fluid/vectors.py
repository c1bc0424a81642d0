"""Numbers side by side as one value, on which the processor works at once: those of flows with equal law and delays.

Fused steps are straight lines of scalar arithmetic, of which the compiler by itself makes vectors of two at best. Here
a vector has a type of its own, with the arithmetic of numbers; where one operand is a number, it stands for all places.
A comparison makes a mask, by which `choose` chooses. Without the JIT the same names work on NumPy arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

__all__ = [
    "Mask", "Vector", "all_of", "beside", "choose", "equal_at", "lanes", "leading", "put_vector", "spread", "total",
    "vector_at", "worst",
]  # fmt: skip

_I1, _I32, _I64, _F64 = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.DoubleType()


class Vector(types.Type):
    """So many floats."""

    item = _F64

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(name=f"{type(self).__name__}({count})")


class Mask(Vector):
    """So many truth values."""

    item = _I1


@register_model(Vector)
@register_model(Mask)
class _Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Vector) -> None:
        super().__init__(dmm, fe_type, ir.VectorType(fe_type.item, fe_type.count))


def _is_vector(kind: Any) -> bool:
    return isinstance(kind, Vector) and not isinstance(kind, Mask)


def _count(kinds: Any) -> int:
    """Places of the vectors and masks among some types; 0 if there are none, or they differ."""
    counts = {kind.count for kind in kinds if isinstance(kind, Vector)}
    return counts.pop() if len(counts) == 1 else 0


def _spread(builder: Any, kind: Any, value: Any, count: int) -> Any:
    """A value as a vector, whatever it is."""
    if isinstance(kind, Vector):
        return value
    vector = ir.VectorType(value.type, count)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(_I32, 0))
    places = ir.Constant(ir.VectorType(_I32, count), [ir.Constant(_I32, 0)] * count)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), places)


def _operator(function: Any, arguments: int, wants: Any, scalar: Any, gives: Any, write: Callable[..., Any]) -> None:
    """Teach numba an operator of so many arguments, of the type `wants` or `scalar`, which stands for all places.

    The result has the type `gives`, and `write` its instructions.
    """

    def fits(kind: Any) -> bool:
        return type(kind) is wants or isinstance(kind, (types.Number, types.Boolean))

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            count = _count(args)
            if kws or len(args) != arguments or not count or not all(map(fits, args)):
                return None
            return signature(gives(count), *(kind if type(kind) is wants else scalar for kind in args))

    infer_global(function)(Template)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        count = _count(sig.args)
        return write(builder, *(_spread(builder, kind, v, count) for kind, v in zip(sig.args, args, strict=True)))

    shapes = [(wants,)] if arguments == 1 else [(wants, wants), (wants, type(scalar)), (type(scalar), wants)]
    for shape in shapes:
        lower_builtin(function, *shape)(lower)


def _size(builder: Any, value: Any) -> Any:
    kind = ir.FunctionType(value.type, [value.type])
    name = f"llvm.fabs.v{value.type.count}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [value])


def _method(name: str) -> Callable[..., Any]:
    """The builder's instruction of a name."""
    return lambda builder, *values: getattr(builder, name)(*values)


def _comparison(sign: str) -> Callable[..., Any]:
    return lambda builder, a, b: (builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered)(sign, a, b)


def _register() -> None:
    for function, name in (("add", "fadd"), ("sub", "fsub"), ("mul", "fmul"), ("truediv", "fdiv")):
        _operator(getattr(operator, function), 2, Vector, types.float64, Vector, _method(name))
    _operator(operator.neg, 1, Vector, types.float64, Vector, _method("fneg"))
    _operator(abs, 1, Vector, types.float64, Vector, _size)
    for function, sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!=")):
        _operator(getattr(operator, function), 2, Vector, types.float64, Mask, _comparison(sign))
    for function in ("and_", "or_"):
        _operator(getattr(operator, function), 2, Mask, types.boolean, Mask, _method(function))
    _operator(operator.eq, 2, Mask, types.boolean, Mask, lambda builder, a, b: builder.not_(builder.xor(a, b)))


if config.DISABLE_JIT:

    def vector_at(F: Any, o: int, count: int) -> Any:
        return np.array(F[o : o + count])

    def equal_at(I: Any, o: int, count: int, value: int) -> Any:
        return np.array(I[o : o + count]) == value

    def put_vector(F: Any, o: int, count: int, value: Any) -> None:
        F[o : o + count] = value

    def choose(condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, a, b) if isinstance(condition, np.ndarray) else a if condition else b

    def beside(*values: float) -> Any:
        return np.array(values)

    def spread(value: float, count: int) -> Any:
        return np.full(count, value)

    def lanes(value: Any) -> Any:
        return tuple(value.tolist())

    def leading(mask: Any) -> int:
        return int(np.argmin(np.append(mask, False)))

    def total(value: Any) -> float:
        return sum(value.tolist())

    def worst(before: float, value: Any) -> float:
        return max(before, float(np.max(value))) if np.all(value == value) else np.inf

    def all_of(mask: Any) -> bool:
        return bool(np.all(mask))

else:
    _register()

    def _pointer(builder: Any, base: Any, offset: Any, item: Any, count: int) -> Any:
        return builder.bitcast(builder.gep(base, [offset]), ir.VectorType(item, count).as_pointer())

    def _lanes(builder: Any, vector: Any) -> list[Any]:
        return [builder.extract_element(vector, ir.Constant(_I32, k)) for k in range(vector.type.count)]

    def _beside(builder: Any, values: list[Any]) -> Any:
        vector = ir.Constant(ir.VectorType(_F64, len(values)), ir.Undefined)
        for k, value in enumerate(values):
            vector = builder.insert_element(vector, value, ir.Constant(_I32, k))
        return vector

    @intrinsic(prefer_literal=True)
    def vector_at(typingctx, F, o, count):  # type: ignore[no-untyped-def]
        """The `count` numbers from F[o] on."""
        size = count.literal_value

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return builder.load(_pointer(builder, args[0], args[1], _F64, size), align=8)

        return Vector(size)(F, types.int64, count), codegen

    @intrinsic(prefer_literal=True)
    def equal_at(typingctx, I, o, count, value):  # type: ignore[no-untyped-def]
        """Which of the `count` whole numbers from I[o] on equal `value`."""
        size = count.literal_value

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            found = builder.load(_pointer(builder, args[0], args[1], _I64, size), align=8)
            return builder.icmp_signed("==", found, _spread(builder, sig.args[3], args[3], size))

        return Mask(size)(I, types.int64, count, types.int64), codegen

    @intrinsic(prefer_literal=True)
    def put_vector(typingctx, F, o, count, value):  # type: ignore[no-untyped-def]
        """A vector, or a number for all its places, into F[o : o + count]."""
        size, kind = count.literal_value, value if _is_vector(value) else types.float64

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            values = _spread(builder, kind, args[3], size)
            builder.store(values, _pointer(builder, args[0], args[1], _F64, size), align=8)
            return context.get_dummy_value()

        return types.void(F, types.int64, count, kind), codegen

    @intrinsic
    def choose(typingctx, condition, a, b):  # type: ignore[no-untyped-def]
        """`a` where the condition holds, else `b`: of vectors, or of numbers."""
        size = _count((condition, a, b))
        kinds = [kind if _is_vector(kind) else types.float64 for kind in (a, b)]

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            if not size:
                return builder.select(*args)
            first, second = (_spread(builder, kind, v, size) for kind, v in zip(kinds, args[1:], strict=True))
            return builder.select(args[0], first, second)

        return (Vector(size) if size else types.float64)(condition, *kinds), codegen

    @intrinsic
    def beside(typingctx, *values):  # type: ignore[no-untyped-def]
        """A vector of numbers."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return _beside(builder, cgutils.unpack_tuple(builder, args[0]))

        return Vector(len(values))(types.StarArgTuple.from_types([types.float64] * len(values))), codegen

    @intrinsic(prefer_literal=True)
    def spread(typingctx, value, count):  # type: ignore[no-untyped-def]
        """A vector of so many times a number."""
        size = count.literal_value

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return _spread(builder, types.float64, args[0], size)

        return Vector(size)(types.float64, count), codegen

    @intrinsic
    def lanes(typingctx, value):  # type: ignore[no-untyped-def]
        """The numbers of a vector."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return context.make_tuple(builder, sig.return_type, _lanes(builder, args[0]))

        return types.UniTuple(types.float64, value.count)(value), codegen

    @intrinsic
    def leading(typingctx, mask):  # type: ignore[no-untyped-def]
        """At how many places from the first on a mask holds."""
        size = mask.count

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            others = builder.zext(builder.not_(builder.bitcast(args[0], ir.IntType(size))), _I64)
            return builder.cttz(builder.or_(others, ir.Constant(_I64, 1 << size)), ir.Constant(_I1, 1))

        return types.int64(mask), codegen

    @intrinsic
    def total(typingctx, value):  # type: ignore[no-untyped-def]
        """The sum of a vector's numbers, from the first to the last."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            first, *rest = _lanes(builder, args[0])
            for more in rest:
                first = builder.fadd(first, more)
            return first

        return types.float64(value), codegen

    @intrinsic
    def worst(typingctx, before, value):  # type: ignore[no-untyped-def]
        """The largest of `before` and a vector's numbers; infinite if there was a NaN."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            most, infinite = args[0], ir.Constant(_F64, float("inf"))
            for one in _lanes(builder, args[1]):
                kept = builder.select(builder.fcmp_ordered("==", one, one), most, infinite)
                most = builder.select(builder.fcmp_ordered(">", one, most), one, kept)
            return most

        return types.float64(types.float64, value), codegen

    @intrinsic
    def all_of(typingctx, mask):  # type: ignore[no-untyped-def]
        """Whether a mask holds at all places; a truth value is a mask of one."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            if not isinstance(mask, Mask):
                return args[0]
            whole = builder.bitcast(args[0], ir.IntType(mask.count))
            return builder.icmp_unsigned("==", whole, ir.Constant(ir.IntType(mask.count), -1))

        return types.boolean(mask if isinstance(mask, Mask) else types.boolean), codegen
