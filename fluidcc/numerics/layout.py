"""Arrays of numbers that are read and written by name, in Python and in compiled code.

All numbers of `NamedArrays` stand in one array of floats `F` and one of integers `I`, so that
compiled code is handed two addresses, whatever is in them. The first floats and integers are its
scalars, and of each of its arrays an integer says where it begins. Code that takes so many arrays
one by one takes many times as long to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
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

from fluidcc.numerics.compiling import njit

#: In compiled code the address of the first number; in Python all from there to the array's end.
Floats = Any
Ints = Any

#: The least offer on a route where no link makes one [bit/s]: infinity times 0 would be no number.
NO_OFFER = 1e30


class NamedArrays:
    """Two arrays whose parts are named by the annotations of a subclass.

    These are ``float`` and ``int`` for scalars, `Floats` and `Ints` for arrays.

    Attributes
    ----------
    places : dict of str to (str, int)
        The kind of each name, and where its number is in `F` or `I`; of an array, where `I` says
        where it begins.
    sizes : dict of str to int
        How many floats and integers stand before all arrays.
    """

    F: Floats
    I: Ints
    places: ClassVar[dict[str, tuple[str, int]]]
    sizes: ClassVar[dict[str, int]]

    def __init__(self, F: Floats, I: Ints) -> None:
        self.F, self.I = F, I

    def __init_subclass__(cls) -> None:
        kinds: dict[str, str] = cls.__annotations__
        floats = [name for name, kind in kinds.items() if kind == "float"]
        ints = [name for name, kind in kinds.items() if kind != "float"]
        cls.places = {n: (kinds[n], k) for names in (floats, ints) for k, n in enumerate(names)}
        cls.sizes = {"Floats": len(floats), "Ints": len(ints)}
        for name, (kind, place) in cls.places.items():
            setattr(cls, name, _property(name, kind, place))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the two arrays with these scalars and arrays, which stand in this order.

        An integer in the place of an array stands for so many zeros. Every array has to be given;
        scalars that are not are 0.
        """
        floats, ints = [0.0] * cls.sizes["Floats"], [0] * cls.sizes["Ints"]
        size, parts = dict(cls.sizes), []
        for name, value in values.items():
            kind, place = cls.places[name]
            if kind in size:
                begin, zeros = size[kind], isinstance(value, int)
                size[kind] += value if zeros else len(value)
                if not zeros:
                    parts.append((kind, begin, size[kind], value))
                kind, value = "int", begin
            (floats if kind == "float" else ints)[place] = value
        arrays = {name for name, (kind, _) in cls.places.items() if kind in size}
        if missing := arrays - values.keys():
            raise KeyError(f"no values of {', '.join(sorted(missing))}")
        new = cls(np.zeros(size["Floats"]), np.zeros(size["Ints"], np.int64))
        new.F[: len(floats)], new.I[: len(ints)] = floats, ints
        for kind, begin, end, value in parts:
            (new.F if kind == "Floats" else new.I)[begin:end] = value
        return new

    def start(self, name: str) -> int:
        """Return where an array begins in `F` or `I`."""
        return int(self.I[self.places[name][1]])

    def _array(self, name: str) -> Any:
        return (self.F if self.places[name][0] == "Floats" else self.I)[self.start(name) :]

    def _put_array(self, name: str, begin: int) -> None:
        self.I[self.places[name][1]] = begin


class Scattered(NamedArrays):
    """`NamedArrays` whose arrays stand anywhere, so that each can be replaced by a longer one.

    Of each array its integers hold the address.

    Attributes
    ----------
    arrays : dict of str to array
        The arrays, which live as long as this does.
    """

    def __init__(self) -> None:
        super().__init__(np.zeros(self.sizes["Floats"]), np.zeros(self.sizes["Ints"], np.int64))
        self.arrays = dict[str, Any]()

    def allot(self, parts: Mapping[str, Any]) -> None:
        """Make arrays of these values, or of so many zeros, side by side: that is faster than one
        by one.
        """
        lengths = [p if isinstance(p, int | np.integer) else len(p) for p in parts.values()]
        sizes = dict(zip(parts, lengths, strict=True))
        for kind, number in (("Floats", np.float64), ("Ints", np.int64)):
            own = [name for name in parts if self.places[name][0] == kind]
            block, begin = np.zeros(sum(sizes[name] for name in own), number), 0
            address = block.__array_interface__["data"][0]
            for name in own:
                self.arrays[name] = block[begin : begin + sizes[name]]
                if sizes[name] is not parts[name]:
                    self.arrays[name][:] = parts[name]
                self.I[self.places[name][1]] = address + 8 * begin
                begin += sizes[name]

    def _array(self, name: str) -> Any:
        return self.arrays[name]

    def _put_array(self, name: str, value: Any) -> None:
        kind, place = self.places[name]
        value = np.ascontiguousarray(value, np.float64 if kind == "Floats" else np.int64)
        self.arrays[name] = value
        self.I[place] = value.__array_interface__["data"][0]


def _property(name: str, kind: str, place: int) -> property:
    if kind in ("Floats", "Ints"):
        return property(lambda run: run._array(name), lambda run, v: run._put_array(name, v))

    def get(self: NamedArrays) -> Any:
        return (self.F if kind == "float" else self.I)[place]

    def put(self: NamedArrays, value: Any) -> None:
        (self.F if kind == "float" else self.I)[place] = value

    return property(get, put)


# --- in compiled code -----------------------------------------------------------------------------


_P = types.CPointer(types.float64)
_Q = types.CPointer(types.int64)
_KINDS = {"float": types.float64, "int": types.int64, "Floats": _P, "Ints": _Q}


class NamedArraysType(types.Type):
    """`NamedArrays` in compiled code: the addresses of its two arrays."""

    def __init__(self, layout: type[NamedArrays]) -> None:
        self.layout = layout
        super().__init__(f"{layout.__module__}.{layout.__qualname__}")


@register_model(NamedArraysType)
class _Model(models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, [("F", _P), ("I", _Q)])


@infer_getattr
class _Names(AttributeTemplate):
    key = NamedArraysType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        return _KINDS[kind.layout.places[name][0]] if name in kind.layout.places else None


def _place(context: Any, builder: Any, kind: Any, run: Any, name: str) -> Any:
    """The address of a scalar, or of the number that says where an array begins."""
    what, place = kind.layout.places[name]
    arrays = cgutils.create_struct_proxy(kind)(context, builder, value=run)
    word = context.get_constant(types.int64, place)
    return builder.gep(arrays.F if what == "float" else arrays.I, [word])


@lower_getattr_generic(NamedArraysType)
def _get(context: Any, builder: Any, kind: Any, run: Any, name: str) -> Any:
    found, what = builder.load(_place(context, builder, kind, run, name)), kind.layout.places[name]
    if what[0] in ("float", "int"):
        return found
    if issubclass(kind.layout, Scattered):
        return builder.inttoptr(found, context.get_value_type(_KINDS[what[0]]))
    arrays = cgutils.create_struct_proxy(kind)(context, builder, value=run)
    return builder.gep(arrays.F if what[0] == "Floats" else arrays.I, [found])


@lower_setattr_generic(NamedArraysType)
def _set(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    builder.store(args[1], _place(context, builder, sig.args[0], args[0], name))


@typeof_impl.register(NamedArrays)
def _typeof(value: NamedArrays, context: Any) -> NamedArraysType:
    return NamedArraysType(type(value))


@unbox(NamedArraysType)
def _from_python(kind: Any, value: Any, c: Any) -> NativeValue:
    """The addresses of the arrays of `NamedArrays`, which keeps them."""
    made = cgutils.create_struct_proxy(kind)(c.context, c.builder)
    for name, dtype in (("F", types.float64), ("I", types.int64)):
        array, of = c.pyapi.object_getattr_string(value, name), types.Array(dtype, 1, "C")
        native = c.unbox(of, array).value
        setattr(made, name, c.context.make_array(of)(c.context, c.builder, native).data)
        c.context.nrt.decref(c.builder, of, native)
        c.pyapi.decref(array)
    return NativeValue(made._getvalue())


def _at_python(array: Any, places: int) -> Any:
    return array[places:]


if config.DISABLE_JIT:
    at: Callable[..., Any] = _at_python
else:

    @intrinsic
    def at(typingctx, array, places):  # type: ignore[no-untyped-def]
        """The address so many places behind another one."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return builder.gep(args[0], [context.cast(builder, args[1], sig.args[1], types.int64)])

        return array(array, places), codegen


@njit()
def copy(target: Floats, source: Floats, count: int) -> None:
    """Copy so many numbers."""
    for i in range(count):
        target[i] = source[i]


@njit()
def clear(target: Floats, count: int) -> None:
    """Put zeros into so many places."""
    for i in range(count):
        target[i] = 0
